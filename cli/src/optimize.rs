//! `anfora opt`

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anfora::ir::{Counts, Module};
use anfora::manager::{
    Instrument, Outcome, Pass, PassContext, PassError, PassFailure, PassKind, PassRegistry, PassRun, PassTiming,
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
    #[arg(long)]
    timing: bool,
    /// Prints what the passes counted
    #[arg(long)]
    stats: bool,
    /// Whether the module is verified after each pass
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    verify_each: bool,
    /// What to write
    #[arg(long, value_enum, default_value_t = Emit::Module)]
    emit: Emit,
    /// Prints no summary
    #[arg(long)]
    quiet: bool,
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
        let passes = parse_pipeline(&registry, &pipeline).map_err(|e| {
            let help = e.suggestion.as_ref().map(|s| format!("; did you mean `{s}`?")).unwrap_or_default();
            Failure::Usage(format!("{e}{help}\n{}", e.marked()))
        })?;
        let summary = Arc::new(Summary::default());
        let timing = self.timing.then(|| Arc::new(PassTiming::new()));
        let context = self.context(&registry, &summary, timing.as_ref())?;

        let loaded = file::load(&self.input, self.from)?;
        let mut module = loaded.module;
        if let Err(errors) = anfora::ir::verify_module(&module) {
            return Err(Failure::in_module(&errors, &module));
        }
        let before = Counts::of_module(&module);
        let start = Instant::now();
        let done = context.scope(|| passes.apply(&mut module, &context)).and_then(|done| done);
        let time = start.elapsed();
        if let Some(timing) = &timing {
            report::say(&timing.to_string());
        }
        if let Err(failure) = done {
            return Err(Failure::in_module(&failure.to_diagnostics(), &module));
        }
        let after = Counts::of_module(&module);
        let written = self.write(&module, &context)?;
        if !self.quiet {
            let statistics = if self.stats { context.statistics().to_string() } else { String::new() };
            let files = Files { onnx_before: loaded.onnx_nodes, onnx_after: written };
            report::say(&summary.render(&self.input, &pipeline, time, [before, after], &files));
            for remark in context.take_remarks().iter().take(MOST_REMARKS) {
                report::say(&format!("  {}: {}", remark.pass, remark.diagnostic));
            }
            if !statistics.is_empty() {
                report::say(&statistics);
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
        summary: &Arc<Summary>,
        timing: Option<&Arc<PassTiming>>,
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
        if let Some(timing) = timing {
            builder = builder.instrument(Arc::clone(timing) as Arc<dyn Instrument>);
        }
        builder = builder.instrument(Arc::clone(summary) as Arc<dyn Instrument>);
        if self.verify_each {
            builder = builder.instrument(Arc::new(VerifyEach::new()));
        }
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

/// More remarks than this are not shown.
const MOST_REMARKS: usize = 8;

struct Files {
    onnx_before: Option<usize>,
    onnx_after: Option<usize>,
}

/// Notes how often each pass ran, changed the module, and how long it took.
#[derive(Default)]
struct Summary {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Vec<Row>,
    running: Vec<Instant>,
}

struct Row {
    pass: String,
    runs: usize,
    changed: usize,
    time: Duration,
}

impl Summary {
    fn note(&self, run: &PassRun<'_>, outcome: Option<&Outcome>) {
        if run.kind() == PassKind::Sequence {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let time = state.running.pop().map_or(Duration::ZERO, |start| start.elapsed());
        let name = run.name();
        let row = match state.rows.iter().position(|r| r.pass == name) {
            Some(i) => &mut state.rows[i],
            None => {
                state.rows.push(Row { pass: name.to_string(), runs: 0, changed: 0, time: Duration::ZERO });
                state.rows.last_mut().expect("it was just pushed")
            }
        };
        row.runs += 1;
        row.changed += usize::from(outcome.is_some_and(Outcome::is_changed));
        row.time += time;
    }

    fn render(&self, input: &Path, pipeline: &str, time: Duration, counts: [Counts; 2], files: &Files) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = format!("{}: {pipeline} in {}\n", input.display(), milliseconds(time));
        for row in &state.rows {
            let outcome = match (row.runs, row.changed) {
                (1, 0) => "unchanged".to_string(),
                (1, _) => "changed".to_string(),
                (runs, changed) => format!("changed {changed} of {runs} times"),
            };
            text.push_str(&format!("  {:26} {outcome:24} {:>12}\n", row.pass, milliseconds(row.time)));
        }
        let [before, after] = counts;
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
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

impl Instrument for Summary {
    fn name(&self) -> &str {
        "summary"
    }

    fn run_before(&self, _module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        if run.kind() != PassKind::Sequence {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).running.push(Instant::now());
        }
        Ok(())
    }

    fn run_after(&self, _module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        self.note(run, Some(outcome));
        Ok(())
    }

    fn on_error(&self, _module: &Module, run: &PassRun<'_>, _failure: &PassFailure) {
        self.note(run, None);
    }
}
