//! `anfora diff`

use std::ffi::OsString;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anfora::ir::{AlphaOptions, IntoDiagnostics, MetaPolicy};
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, Format};
use crate::page;
use crate::report::{self, Failure};

/// Compares two programs up to the names of their variables. Prints each difference with its
/// function and binding, and exits with status 1 if there are any.
#[derive(Args)]
pub(crate) struct Diff {
    /// The first program: a `.anf` or `.onnx` file, or `-`
    a: PathBuf,
    /// The second program
    b: PathBuf,
    /// The format of both programs
    #[arg(long)]
    from: Option<Format>,
    /// Prints a JSON object, with a line for each difference
    #[arg(long)]
    json: bool,
    /// Compares the metadata in `#[…]` too, such as the names of ONNX nodes
    #[arg(long)]
    metadata: bool,
    /// Writes the differences as a page of HTML, which needs no server and no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl Diff {
    pub(crate) fn run(self, cli: &CommandLine, arguments: &[OsString]) -> Result<(), Failure> {
        if self.a == Path::new("-") && self.b == self.a {
            return Err(Failure::Usage("standard input has one program; give a file for the other one".to_string()));
        }
        let a = file::load(cli, &self.a, self.from)?.module;
        let b = file::load(cli, &self.b, self.from)?.module;
        let meta = if self.metadata { MetaPolicy::Compare } else { MetaPolicy::Ignore };
        let differences = anfora::ir::diff_with(&a, &b, AlphaOptions { meta });
        for module in [&a, &b] {
            module.cx.literals.failure().map_err(|e| Failure::Diagnostics(e.into_diagnostics()))?;
        }
        if let Some(path) = &self.report {
            let page = page::of_differences(&differences, [(&self.a, &a), (&self.b, &b)], cli.name(), arguments);
            file::write_file(path, |out| out.write_all(page.as_bytes()))?;
            report::say(&format!("wrote {}", path.display()));
        }
        let mut out = BufWriter::new(std::io::stdout().lock());
        match self.json {
            true => writeln!(out, "{}", differences.to_json())?,
            false => write!(out, "{differences}")?,
        }
        out.flush()?;
        if differences.is_empty() { Ok(()) } else { Err(Failure::Reported) }
    }
}
