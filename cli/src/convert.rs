//! `anfora convert`

use std::path::PathBuf;

use anfora::onnx::ExportOptions;
use clap::Args;

use crate::file::{self, Constants, Format};
use crate::report::Failure;

/// Converts between formats, without passes.
#[derive(Args)]
pub(crate) struct Convert {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// Where to write it: a `.anf` or `.onnx` file, or `-`
    #[arg(short, long, default_value = "-")]
    output: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output
    #[arg(long)]
    to: Option<Format>,
    #[command(flatten)]
    constants: Constants,
}

impl Convert {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let loaded = file::load(&self.input, self.from)?;
        file::store(&loaded.module, &self.output, self.to, &self.constants, ExportOptions::default())?;
        Ok(())
    }
}
