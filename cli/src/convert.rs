//! `anfora convert`

use std::path::PathBuf;

use anfora::onnx::WRITTEN_OPSETS;
use clap::Args;

use crate::command_line::CommandLine;
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
    /// Writes a model for version N of ONNX's operators. Calls that the version lacks are written
    /// in other operators
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(WRITTEN_OPSETS))]
    opset: Option<i64>,
    #[command(flatten)]
    constants: Constants,
}

impl Convert {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let mut loaded = file::load(cli, &self.input, self.from)?;
        if let Some(opset) = self.opset {
            file::set_opset(cli, &mut loaded.module, opset)?;
        }
        file::store(&loaded.module, &self.output, self.to, &self.constants, cli.export_options())?;
        Ok(())
    }
}
