//! `anfora reduce`

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anfora::bisect::Judgement;
use anfora::ir::{Counts, Module};
use anfora::manager::{PassContextBuilder, Verification};
use anfora::reduce::{FailingRun, ReduceError, ReduceOptions, ReduceProgress, Reduced, reduce, reduce_failure};
use clap::Args;

use crate::bisect::{check_place, nothing_compared, pipeline, write_reproducer};
use crate::command_line::CommandLine;
use crate::file::{self, Constants, Format};
use crate::meaning_checks::MeaningChecks;
use crate::pass_settings::PassSettings;
use crate::replay::seconds;
use crate::report::{self, Failure, counted};
use crate::signals;
use crate::test_command::{TestCommand, TestPlace};

/// Makes a program smaller as long as it shows a fault: removes functions, bindings, branches,
/// operands, extents and elements, by halves and then one by one. If a signal ends the program
/// (Ctrl-C), the smallest program so far is written first, with the reproducer of a failing
/// pipeline.
#[derive(Args)]
pub(crate) struct Reduce {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    #[command(flatten)]
    fault: Fault,
    /// Ends a run of the command of --test after this many seconds; the program shows nothing then
    #[arg(long, value_name = "SECONDS", requires = "test", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Where to write the smallest program; by default a file beside the input
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// The format of the output, and of the programs for --test
    #[arg(long)]
    to: Option<Format>,
    /// Where to write the reproducer of a failing pipeline; by default a file beside the input. A
    /// file that is there must be a reproducer
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    reproducer: Option<PathBuf>,
    #[command(flatten)]
    settings: PassSettings,
    /// Ends the search after this many smaller programs
    #[arg(long, value_name = "N", default_value_t = ReduceOptions::default().most_tries)]
    tries: u64,
    /// Prints no progress
    #[arg(long)]
    quiet: bool,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Fault {
    /// A program shows the fault if this command ends with status 0. The command gets the path of a
    /// program as its last argument. A program that cannot be written shows nothing
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// A program shows the fault if this pipeline fails on it, as on the whole program
    #[arg(long, value_name = "PIPELINE")]
    fails: Option<String>,
    /// A program shows the fault if the interpreter finds other results after a pass of this
    /// pipeline, or if the pipeline fails
    #[arg(long, value_name = "PIPELINE")]
    miscompiles: Option<String>,
}

/// The smallest program so far, and the files that it and its reproducer go to.
struct Best {
    cli: CommandLine,
    output: PathBuf,
    format: Format,
    reproducer: PathBuf,
    found: Mutex<Option<Smallest>>,
}

/// A program that shows the fault.
#[derive(Clone)]
struct Smallest {
    module: Arc<Module>,
    /// The run of the pipeline that fails on it, if the fault is that of a pipeline.
    failing: Option<FailingRun>,
}

impl Best {
    fn set(&self, smallest: Smallest) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(smallest);
    }

    fn get(&self) -> Option<Smallest> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes the smallest program, if there is one.
    fn write(&self) -> Result<(), Failure> {
        let Some(Smallest { module, .. }) = self.get() else { return Ok(()) };
        file::store(&module, &self.output, Some(self.format), &Constants::default(), self.cli.export_options(), 1)?;
        Ok(())
    }

    /// Writes the smallest program and its reproducer, and says so.
    fn write_all(&self, before: &str) -> Result<(), Failure> {
        let Some(Smallest { failing, .. }) = self.get() else { return Ok(()) };
        self.write()?;
        report::say(&format!("{before}wrote {}", self.output.display()));
        match failing.and_then(|failing| failing.reproducer()) {
            Some(text) => write_reproducer(&self.cli, &self.reproducer, &text),
            None => Ok(()),
        }
    }

    /// Returns the action before a signal ends the program: writes the files, and clears the place
    /// of a test.
    fn on_end(self: &Arc<Best>, place: Option<Arc<TestPlace>>) -> impl FnOnce() + Send + 'static {
        let best = Arc::clone(self);
        move || {
            place.iter().for_each(|place| place.clear());
            if let Err(failure) = best.write_all("interrupted; ") {
                report::print_failure(&failure);
            }
        }
    }
}

impl Reduce {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let text = self.fault.fails.as_ref().or(self.fault.miscompiles.as_ref());
        let passes = text.map(|text| pipeline(registry, text)).transpose()?;
        self.settings.builder(registry).build().map_err(|e| Failure::Usage(e.to_string()))?;
        let best = Arc::new(self.best(cli)?);
        if passes.is_some() {
            check_place(&best.reproducer)?;
        }
        let module = file::load(cli, &self.input, self.from)?.module;
        let test = self.fault.test.as_ref().map(|c| TestCommand::new(cli, c, self.timeout, best.format)).transpose()?;
        let _action = signals::before_end(best.on_end(test.as_ref().map(TestCommand::place)));
        let mut progress = Progress::new(best.clone(), self.quiet);
        let mut progress = |step: &ReduceProgress<'_>| progress.report(step);
        // A program that cannot be written shows nothing.
        let is_written = |module: &Module| {
            best.format != Format::Onnx || anfora::onnx::export_model(module, &cli.export_options()).is_ok()
        };
        let options = ReduceOptions { most_tries: self.tries, is_allowed: &is_written };
        let checks = self.fault.miscompiles.is_some().then(MeaningChecks::default);
        let context = || -> PassContextBuilder {
            let builder = self.settings.builder(registry).verification(Verification::AfterEachPass);
            checks.iter().fold(builder, |builder, checks| checks.instrument(builder))
        };
        let (reduced, failing) = match (passes, test) {
            (Some(passes), _) => {
                let found = reduce_failure(&module, &passes, &context, &options, &mut progress);
                let found = found.map_err(|e| {
                    checks.iter().for_each(MeaningChecks::print_notes);
                    match e {
                        ReduceError::Context(e) => Failure::Usage(e.to_string()),
                        ReduceError::NeverFails if checks.iter().any(|c| c.judge() == Judgement::Undecided) => {
                            nothing_compared()
                        }
                        ReduceError::NeverFails => Failure::Message(e.to_string()),
                    }
                })?;
                (found.reduced, Some(found.failing))
            }
            (None, Some(test)) => {
                let mut shows_fault = |module: &Module| test.judge(module) == Judgement::Wrong;
                let found = reduce(&module, &mut shows_fault, &options, &mut progress);
                test.check()?;
                let never = || Failure::Message("the command finds no fault in the whole program".to_string());
                (found.ok_or_else(never)?, None)
            }
            (None, None) => return Err(Failure::Usage("give --test, --fails or --miscompiles".to_string())),
        };
        best.set(Smallest { module: reduced.module.clone(), failing });
        report::print(&summary(&reduced))?;
        best.write_all("")
    }

    /// Returns the files of the result, for which no program is known yet.
    fn best(&self, cli: &CommandLine) -> Result<Best, Failure> {
        let from = file::format_of(&self.input, self.from)?;
        let output = self.output.clone().unwrap_or_else(|| beside(&self.input, "reduced", from));
        let format = match (self.to, &self.output) {
            (Some(format), _) => format,
            (None, Some(output)) => file::format_of(output, None)?,
            (None, None) => from,
        };
        let reproducer = self.reproducer.clone().unwrap_or_else(|| beside(&self.input, "reproducer", Format::Anf));
        Ok(Best { cli: cli.clone(), output, format, reproducer, found: Mutex::new(None) })
    }
}

/// Returns the path of a file beside the input: `model.reduced.onnx` for `model.onnx`.
fn beside(input: &Path, what: &str, format: Format) -> PathBuf {
    let suffix = if format == Format::Onnx { "onnx" } else { "anf" };
    let stem = input.file_stem().and_then(|stem| stem.to_str()).filter(|&stem| stem != "-").unwrap_or("program");
    input.with_file_name(format!("{stem}.{what}.{suffix}"))
}

/// The reports during a reduction.
struct Progress {
    best: Arc<Best>,
    quiet: bool,
    /// The number of bindings of the last report.
    reported: usize,
    /// The time of the last report.
    reported_at: Instant,
    /// The time of the last write of the smallest program.
    written: Instant,
}

/// The time after which a search that removes little reports again.
const REPORT_EVERY: Duration = Duration::from_secs(5);
/// The least time between two writes of the smallest program.
const WRITE_EVERY: Duration = Duration::from_secs(5);

impl Progress {
    fn new(best: Arc<Best>, quiet: bool) -> Progress {
        let now = Instant::now();
        Progress { best, quiet, reported: usize::MAX, reported_at: now, written: now }
    }

    /// Keeps a smaller program for an interruption. Reports the number of its bindings if it has
    /// become much smaller, and at intervals.
    fn report(&mut self, step: &ReduceProgress<'_>) -> bool {
        let is_late = self.reported_at.elapsed() >= REPORT_EVERY;
        if step.is_smaller {
            self.best.set(Smallest { module: step.best.clone(), failing: step.failing.cloned() });
        } else if !is_late {
            return true;
        }
        let Counts { bindings, functions, .. } = Counts::of_module(step.best);
        let is_due = is_late || bindings <= self.reported / 4 * 3;
        if !self.quiet && is_due {
            let (bindings, functions) = (counted(bindings, "binding"), counted(functions, "function"));
            let tests = counted(step.tests, "test");
            report::say(&format!("reduce: {bindings} in {functions} after {tests} ({})", step.part));
        }
        if is_due {
            (self.reported, self.reported_at) = (bindings, Instant::now());
        }
        if step.is_smaller && self.written.elapsed() >= WRITE_EVERY {
            // If this fails, the end of the command reports it.
            let _ = self.best.write();
            self.written = Instant::now();
        }
        true
    }
}

fn summary(reduced: &Reduced) -> String {
    let text = |counts: Counts| {
        format!("{} in {}", counted(counts.bindings, "binding"), counted(counts.functions, "function"))
    };
    let ended = if reduced.is_minimal { "" } else { "; the search ended before its end" };
    let (before, after, tests) = (text(reduced.before), text(reduced.after), counted(reduced.tests, "test"));
    format!("{before} became {after} after {tests}{ended}")
}
