//! `anfora check`

use std::io::Write;
use std::path::PathBuf;

use anfora::ir::Counts;
use anfora::onnx::convert::Conversions;
use anfora::onnx::{NodeCounts, UnsupportedNodes};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::command_line::CommandLine;
use crate::file::{self, Format};
use crate::report::{Failure, wrapped};
use crate::types;

/// Parses, infers types and verifies a program; prints its form and the counts of its parts.
///
/// For an ONNX file, it also lists the nodes that anfora's operators cannot express and the
/// initializers that no constant can hold, with the reasons. These are kept unchanged and cannot be
/// run. Faults of the file that do not prevent its import are printed to standard error.
#[derive(Args)]
pub(crate) struct Check {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The form in which the counts are printed
    #[arg(long, value_enum, default_value_t = Stats::Text)]
    stats: Stats,
    /// Prints the type of every parameter and every binding too
    #[arg(long)]
    types: bool,
    /// Keeps every node of an ONNX file unchanged: its types are those of the table that
    /// `onnx-ops` lists
    #[arg(long)]
    keep_nodes: bool,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Stats {
    /// Lines
    Text,
    /// One JSON object
    Json,
}

fn kept_json(kept: &UnsupportedNodes) -> serde_json::Value {
    let UnsupportedNodes { domain, op_type, is_initializer, version, reason, first, count } = kept;
    match is_initializer {
        true => json!({ "initializer": true, "reason": reason, "first": first, "count": count }),
        false => json!({
            "domain": domain, "op_type": op_type, "version": version, "reason": reason, "first": first, "count": count
        }),
    }
}

impl Check {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let mut options = cli.import_options();
        if self.keep_nodes {
            options.conversions = Conversions::empty();
        }
        let loaded = file::load_with(cli, &self.input, self.from, options, 1)?;
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
                let mut object = json!({ "form": form, "phase": phase, "onnx_nodes": loaded.onnx_nodes.as_ref().map(NodeCounts::total) });
                if loaded.onnx_nodes.is_some() {
                    object["kept"] = loaded.kept.iter().map(kept_json).collect();
                    object["warnings"] = loaded.warnings.iter().map(|w| json!(w.message)).collect();
                }
                for (name, count) in rows {
                    object[name] = json!(count);
                }
                if self.types {
                    object["values"] = types::of_module(module).iter().map(|t| t.json(module)).collect();
                }
                writeln!(out, "{object}")?;
            }
            Stats::Text => {
                writeln!(out, "{:13} {form}", "form")?;
                writeln!(out, "{:13} {}", "phase", phase.as_deref().unwrap_or("none"))?;
                for (name, count) in rows {
                    writeln!(out, "{name:13} {count}")?;
                }
                if let Some(nodes) = loaded.onnx_nodes.as_ref().map(NodeCounts::total) {
                    writeln!(out, "{:13} {nodes}", "ONNX nodes")?;
                    writeln!(out, "{:13} {}", "kept nodes", loaded.kept_nodes())?;
                }
                for kept in &loaded.kept {
                    writeln!(out, "{}", wrapped(&kept.to_string(), 2, 4))?;
                }
                if self.types {
                    for typed in types::of_module(module) {
                        writeln!(out, "@{} %{}: {}", typed.function, typed.name.unwrap_or(""), typed.text(module))?;
                    }
                }
            }
        }
        Ok(())
    }
}
