//! `anfora diff`

use std::io::Write;
use std::path::{Path, PathBuf};

use anfora::ir::IntoDiagnostics;
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, Format};
use crate::report::Failure;

/// Compares two programs up to the names of their variables; prints the first difference.
#[derive(Args)]
pub(crate) struct Diff {
    /// The first program: a `.anf` or `.onnx` file, or `-`
    a: PathBuf,
    /// The second program
    b: PathBuf,
    /// The format of both programs
    #[arg(long)]
    from: Option<Format>,
}

impl Diff {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        if self.a == Path::new("-") && self.b == self.a {
            return Err(Failure::Usage("standard input has one program; give a file for the other one".to_string()));
        }
        let a = file::load(cli, &self.a, self.from)?.module;
        let b = file::load(cli, &self.b, self.from)?.module;
        let difference = anfora::ir::first_difference(&a, &b);
        for module in [&a, &b] {
            module.cx.literals.failure().map_err(|e| Failure::Diagnostics(e.into_diagnostics()))?;
        }
        match difference {
            None => Ok(()),
            Some(difference) => {
                writeln!(std::io::stdout().lock(), "{difference}")?;
                Err(Failure::Reported)
            }
        }
    }
}
