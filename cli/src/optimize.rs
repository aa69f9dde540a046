//! `anfora opt`

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anfora::ir::{Counts, Module};
use anfora::manager::{
    Bisect, DumpIr, Instrument, Pass, PassContext, PassRegistry, PassTiming, PrintIr, PrintWhen, RunLog, Unchanged,
    VerifyEach, parse_pipeline,
};
use anfora::onnx::ExportOptions;
use clap::{Args, ValueEnum};

use crate::file::{self, Format};
use crate::report::{self, Failure};

/// Runs a pipeline of passes over a program and writes the result.
#[derive(Args)]
pub(crate) struct Opt {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// Where to write the result: a `.anf` or `.onnx` file, or `-`; without it, text goes to standard output
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output
    #[arg(long)]
    to: Option<Format>,
    /// Passes with options, e.g. `FoldConstant,fixpoint<4>(CanonicalizeBindings,EliminateCommonSubexpr{commutative=true})`, or
    /// the name of a pipeline
    #[arg(long, value_name = "PIPELINE")]
    passes: Option<String>,
    /// Sets the level of the context, 0 to 3, and without --passes runs that pipeline
    #[arg(short = 'O', value_name = "LEVEL", default_value_t = 2, value_parser = clap::value_parser!(u8).range(0..=3))]
    level: u8,
    /// Leaves a pass out
    #[arg(long, value_name = "PASS")]
    disable: Vec<String>,
    /// Runs a pass whatever the level
    #[arg(long, value_name = "PASS")]
    require: Vec<String>,
    /// Sets a configuration option; `anfora configs` lists them
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Prints where the time went
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    timing: Option<Form>,
    /// Prints what the passes counted
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    stats: Option<Form>,
    /// Prints the module before a pass, to standard error
    #[arg(long, value_name = "PASS")]
    print_ir_before: Vec<String>,
    /// Prints the module after a pass, to standard error
    #[arg(long, value_name = "PASS")]
    print_ir_after: Vec<String>,
    /// Prints the module after each pass that changed it, to standard error
    #[arg(long)]
    print_changed: bool,
    /// Writes the module before the first pass and after each into a folder, as numbered files
    #[arg(long, value_name = "DIR")]
    dump_dir: Option<PathBuf>,
    /// Runs so many passes and leaves out those after them, to find the first one that breaks a program
    #[arg(long, value_name = "N")]
    bisect_limit: Option<u64>,
    /// Whether the module is verified after each pass
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    verify_each: bool,
    /// What to write
    #[arg(long, value_enum, default_value_t = Emit::Module)]
    emit: Emit,
    /// Prints no summary
    #[arg(long)]
    quiet: bool,
}

/// How a report is printed.
#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A table
    Text,
    /// JSON, in a line
    Json,
}

#[derive(Copy, Clone, PartialEq, Eq, ValueEnum)]
enum Emit {
    /// The optimised module
    Module,
    /// Nothing
    None,
}

impl Opt {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let registry = anfora::passes::registry();
        let pipeline = match &self.passes {
            Some(text) => text.clone(),
            None => format!("O{}", self.level),
        };
        let passes =
            parse_pipeline(&registry, &pipeline).map_err(|e| Failure::Usage(format!("{e}\n{}", e.marked())))?;
        let log = Arc::new(RunLog::new());
        let timing = self.timing.map(|form| (form, Arc::new(PassTiming::new())));
        let bisect = self.bisect_limit.map(|limit| Arc::new(Bisect::limit(limit)));
        let context = self.context(&registry, &log, timing.as_ref().map(|(_, timing)| timing), bisect.as_ref())?;

        let loaded = file::load(&self.input, self.from)?;
        let mut module = loaded.module;
        if let Err(errors) = anfora::ir::verify_module(&module) {
            return Err(Failure::in_module(&errors, &module));
        }
        let before = Counts::of_module(&module);
        let start = Instant::now();
        let done = context.scope(|| passes.apply(&mut module, &context)).and_then(|done| done);
        let time = start.elapsed();
        match &timing {
            Some((Form::Text, timing)) => report::say(&timing.to_string()),
            Some((Form::Json, timing)) => report::say(&timing.to_json().to_string()),
            None => {}
        }
        match self.stats {
            Some(Form::Text) => report::say(&context.statistics().to_string()),
            Some(Form::Json) => report::say(&context.statistics().to_json().to_string()),
            None => {}
        }
        if let Some(bisect) = &bisect {
            report::say(&bisected(bisect));
        }
        if let Err(failure) = done {
            return Err(Failure::in_module(&failure.to_diagnostics(), &module));
        }
        let after = Counts::of_module(&module);
        let written = self.write(&module, &context)?;
        if !self.quiet {
            let files = Files { onnx_before: loaded.onnx_nodes, onnx_after: written };
            report::say(&summary(&log, &self.input, &pipeline, time, [before, after], &files));
            for remark in context.take_remarks().iter().take(MOST_REMARKS) {
                report::say(&format!("  {}: {}", remark.pass, remark.diagnostic));
            }
            if let Some(output) = &self.output
                && output != Path::new("-")
                && self.emit == Emit::Module
            {
                report::say(&format!("wrote {}", output.display()));
            }
        }
        Ok(())
    }

    fn context(
        &self,
        registry: &Arc<PassRegistry>,
        log: &Arc<RunLog>,
        timing: Option<&Arc<PassTiming>>,
        bisect: Option<&Arc<Bisect>>,
    ) -> Result<PassContext, Failure> {
        let mut builder = PassContext::builder().registry(Arc::clone(registry)).opt_level(self.level);
        for pass in &self.disable {
            builder = builder.disable(pass.clone());
        }
        for pass in &self.require {
            builder = builder.require(pass.clone());
        }
        for setting in &self.config {
            builder = builder.config_text(setting.clone());
        }
        if let Some(bisect) = bisect {
            builder = builder.instrument(Arc::clone(bisect) as Arc<dyn Instrument>);
        }
        for name in self.print_ir_before.iter().chain(&self.print_ir_after) {
            // The registry's error has the suggestion.
            registry.make(name).map_err(|e| Failure::Usage(e.to_string()))?;
        }
        let named = |names: &[String]| match names {
            [] => PrintWhen::Never,
            names => PrintWhen::Named(names.to_vec()),
        };
        if !self.print_ir_before.is_empty() || !self.print_ir_after.is_empty() {
            let print = PrintIr::new(named(&self.print_ir_before), named(&self.print_ir_after), std::io::stderr());
            builder = builder.instrument(Arc::new(print));
        }
        if self.print_changed {
            builder = builder.instrument(Arc::new(PrintIr::changed(std::io::stderr())));
        }
        if let Some(folder) = &self.dump_dir {
            builder = builder.instrument(Arc::new(DumpIr::new(folder, Unchanged::Dumped)));
        }
        if self.verify_each {
            builder = builder.instrument(Arc::new(VerifyEach::new()));
        }
        // Last, so that they know of the passes whose result the others did not let pass that they failed.
        if let Some(timing) = timing {
            builder = builder.instrument(Arc::clone(timing) as Arc<dyn Instrument>);
        }
        builder = builder.instrument(Arc::clone(log) as Arc<dyn Instrument>);
        builder.build().map_err(|e| Failure::Usage(e.to_string()))
    }

    /// Writes the result; the nodes of the ONNX file, if it is one.
    fn write(&self, module: &Module, context: &PassContext) -> Result<Option<usize>, Failure> {
        if self.emit == Emit::None {
            return Ok(None);
        }
        // What folding may grow a module by is also what a splat may grow an ONNX file by, where splats have no short form of their own.
        let budget = |key: &str| {
            context
                .config::<Option<u64>>(key)
                .map_err(|e| Failure::Message(e.to_string()))
                .map(|b| b.unwrap_or(u64::MAX))
        };
        let options = ExportOptions {
            max_splat_bytes: budget("FoldConstant.max_growth_bytes")?,
            max_total_splat_bytes: budget("FoldConstant.max_total_growth_bytes")?,
            ..ExportOptions::default()
        };
        let output = self.output.clone().unwrap_or_else(|| PathBuf::from("-"));
        let stored = file::store(module, &output, self.to, &options)?;
        Ok(stored.onnx_nodes)
    }
}

/// Which passes ran under a limit, and which one was the last.
fn bisected(bisect: &Bisect) -> String {
    let runs = bisect.runs();
    let ran: Vec<_> = runs.iter().filter(|r| r.ran).collect();
    let last = ran.last().map_or_else(String::new, |r| format!("; the last was {}, {}", r.number, r.pass));
    format!("bisect: {} of {} passes ran{last}", ran.len(), runs.len())
}

/// More remarks than this are not shown.
const MOST_REMARKS: usize = 8;

struct Files {
    onnx_before: Option<usize>,
    onnx_after: Option<usize>,
}

/// How often each pass ran and changed the module, and how long it took, with what there was before and after. Fits a screen.
fn summary(
    log: &RunLog,
    input: &Path,
    pipeline: &str,
    time: Duration,
    [before, after]: [Counts; 2],
    files: &Files,
) -> String {
    struct Row {
        pass: String,
        runs: usize,
        changed: usize,
        time: Duration,
    }
    let mut rows: Vec<Row> = Vec::new();
    for record in log.records() {
        let i = rows.iter().position(|r| r.pass == record.pass).unwrap_or_else(|| {
            rows.push(Row { pass: record.pass, runs: 0, changed: 0, time: Duration::ZERO });
            rows.len() - 1
        });
        rows[i].runs += 1;
        rows[i].changed += usize::from(record.changed == Some(true));
        rows[i].time += record.time;
    }
    let mut text = format!("{}: {pipeline} in {}\n", input.display(), milliseconds(time));
    for row in rows {
        let outcome = match (row.runs, row.changed) {
            (1, 0) => "unchanged".to_string(),
            (1, _) => "changed".to_string(),
            (runs, changed) => format!("changed {changed} of {runs} times"),
        };
        text.push_str(&format!("  {:26} {outcome:24} {:>12}\n", row.pass, milliseconds(row.time)));
    }
    let mut line = |what: &str, before: usize, after: usize| {
        text.push_str(&format!("  {what:26} {before} -> {after}\n"));
    };
    line("bindings", before.bindings, after.bindings);
    if before.functions != after.functions {
        line("functions", before.functions, after.functions);
    }
    match (files.onnx_before, files.onnx_after) {
        (Some(before), Some(after)) => line("ONNX nodes", before, after),
        (Some(nodes), None) | (None, Some(nodes)) => text.push_str(&format!("  {:26} {nodes}\n", "ONNX nodes")),
        (None, None) => {}
    }
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
