//! `anfora check`

use std::io::Write;
use std::path::PathBuf;

use anfora::ir::Counts;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::file::{self, Format};
use crate::report::Failure;

/// Parses, infers types and verifies a program; prints what form it is in and how much there is of it.
#[derive(Args)]
pub(crate) struct Check {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// How to print the counts
    #[arg(long, value_enum, default_value_t = Stats::Text)]
    stats: Stats,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Stats {
    /// Lines
    Text,
    /// One JSON object
    Json,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let loaded = file::load(&self.input, self.from)?;
        let module = &loaded.module;
        let report = anfora::ir::verify_module(module).map_err(|errors| Failure::in_module(&errors, module))?;
        let counts = Counts::of_module(module);
        let phase = module.phase().map(|p| p.to_string());
        let form = report.form.name();
        let rows: [(&str, usize); 8] = [
            ("functions", counts.functions),
            ("declarations", counts.declarations),
            ("bindings", counts.bindings),
            ("calls", counts.calls),
            ("ifs", counts.ifs),
            ("lambdas", counts.lambdas),
            ("regions", counts.regions),
            ("depth", counts.depth),
        ];
        let mut out = std::io::stdout().lock();
        match self.stats {
            Stats::Json => {
                let mut object = json!({ "form": form, "phase": phase, "onnx_nodes": loaded.onnx_nodes });
                for (name, count) in rows {
                    object[name] = json!(count);
                }
                writeln!(out, "{object}")?;
            }
            Stats::Text => {
                writeln!(out, "{:13} {form}", "form")?;
                writeln!(out, "{:13} {}", "phase", phase.as_deref().unwrap_or("none"))?;
                for (name, count) in rows {
                    writeln!(out, "{name:13} {count}")?;
                }
                if let Some(nodes) = loaded.onnx_nodes {
                    writeln!(out, "{:13} {nodes}", "ONNX nodes")?;
                }
            }
        }
        Ok(())
    }
}
