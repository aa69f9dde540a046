//! `anfora convert`

use anfora::onnx::WRITTEN_OPSETS;
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, InputAndOutput};
use crate::report::Failure;

/// Converts between formats, without passes.
#[derive(Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    files: InputAndOutput,
    /// Writes a model for version N of ONNX's operators. Calls that the version lacks are written
    /// in other operators
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i64).range(WRITTEN_OPSETS))]
    opset: Option<i64>,
}

impl Convert {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let mut module = self.files.load(cli)?;
        if let Some(opset) = self.opset {
            file::set_opset(cli, &mut module, opset)?;
        }
        self.files.store(cli, &module)
    }
}
