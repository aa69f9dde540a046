//! `anfora reduce`

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anfora::ir::{Counts, Module};
use anfora::manager::{PassContextBuilder, Verification};
use anfora::passes::CheckMeaning;
use anfora::reduce::{ReduceError, ReduceOptions, ReduceProgress, Reduced, reduce, reduce_failure};
use clap::Args;

use crate::bisect::{pipeline, write_reproducer};
use crate::command_line::CommandLine;
use crate::file::{self, Constants, Format};
use crate::pass_settings::PassSettings;
use crate::replay::seconds;
use crate::report::{self, Failure};
use crate::signals;
use crate::test_command::TestCommand;

/// Makes a program smaller as long as it shows a fault: removes functions, bindings, branches,
/// operands, extents and elements, by halves and then one by one. If a signal ends the program
/// (Ctrl-C), the smallest program so far is written first.
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
    /// Where to write the reproducer of a failing pipeline; by default a file beside the input
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
    /// program as its last argument
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

/// The smallest program so far, and the file that it goes to.
struct Best {
    cli: CommandLine,
    output: PathBuf,
    format: Format,
    module: Mutex<Option<Arc<Module>>>,
}

impl Best {
    /// Writes the smallest program, if there is one.
    fn write(&self) -> Result<(), Failure> {
        let module = self.module.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(module) = module else { return Ok(()) };
        file::store(&module, &self.output, Some(self.format), &Constants::default(), self.cli.export_options())?;
        Ok(())
    }
}

impl Reduce {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let text = self.fault.fails.as_ref().or(self.fault.miscompiles.as_ref());
        let passes = text.map(|text| pipeline(registry, text)).transpose()?;
        self.settings.builder(registry).build().map_err(|e| Failure::Usage(e.to_string()))?;
        let from = file::format_of(&self.input, self.from)?;
        let output = self.output.clone().unwrap_or_else(|| beside(&self.input, "reduced", from));
        let format = match (self.to, &self.output) {
            (Some(format), _) => format,
            (None, Some(output)) => file::format_of(output, None)?,
            (None, None) => from,
        };
        let module = file::load(cli, &self.input, self.from)?.module;
        let test = self.fault.test.as_ref().map(|c| TestCommand::new(cli, c, self.timeout, format)).transpose()?;
        let best = Arc::new(Best { cli: cli.clone(), output: output.clone(), format, module: Mutex::new(None) });
        let folder = test.as_ref().map(TestCommand::folder);
        signals::set_action_before_end(Some(end_with(best.clone(), folder)));
        let mut progress = Progress::new(best.clone(), self.quiet);
        let mut progress = |step: &ReduceProgress<'_>| progress.report(step);
        // A program that cannot be written shows nothing.
        let is_written = |module: &Module| {
            format != Format::Onnx || anfora::onnx::export_model(module, &cli.export_options()).is_ok()
        };
        let options = ReduceOptions { most_tries: self.tries, is_allowed: &is_written };
        let interprets = self.fault.miscompiles.is_some();
        let context = || -> PassContextBuilder {
            let builder = self.settings.builder(registry).verification(Verification::AfterEachPass);
            if interprets { builder.instrument(Arc::new(CheckMeaning::new())) } else { builder }
        };
        let (reduced, reproducer) = match (passes, test) {
            (Some(passes), _) => {
                let found = reduce_failure(&module, &passes, &context, &options, &mut progress);
                let found = found.map_err(|e| match e {
                    ReduceError::Context(e) => Failure::Usage(e.to_string()),
                    ReduceError::NeverFails => Failure::Message(e.to_string()),
                })?;
                let reproducer = found.reproducer();
                (found.reduced, reproducer)
            }
            (None, Some(test)) => {
                let found = reduce(&module, &mut |module| test.shows_fault(module), &options, &mut progress);
                test.check()?;
                let never = || Failure::Message("the command finds no fault in the whole program".to_string());
                (found.ok_or_else(never)?, None)
            }
            (None, None) => return Err(Failure::Usage("give --test, --fails or --miscompiles".to_string())),
        };
        *best.module.lock().unwrap_or_else(PoisonError::into_inner) = Some(reduced.module.clone());
        best.write()?;
        signals::set_action_before_end(None);
        report::print(&summary(&reduced))?;
        report::say(&format!("wrote {}", output.display()));
        match reproducer {
            Some(text) => {
                let beside = || beside(&self.input, "reproducer", Format::Anf);
                write_reproducer(cli, &self.reproducer.clone().unwrap_or_else(beside), &text)
            }
            None => Ok(()),
        }
    }
}

/// Returns the action before a signal ends the program: writes the smallest program so far, and
/// removes the folder of a test.
fn end_with(best: Arc<Best>, folder: Option<PathBuf>) -> Box<dyn FnOnce() + Send> {
    Box::new(move || {
        match best.write() {
            Ok(()) if best.module.lock().unwrap_or_else(PoisonError::into_inner).is_some() => {
                report::say(&format!("interrupted; wrote {}", best.output.display()));
            }
            Ok(()) => {}
            Err(failure) => report::print_failure(&failure),
        }
        if let Some(folder) = folder {
            // A file that cannot be removed does no harm.
            let _ = std::fs::remove_dir_all(folder);
        }
    })
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
    /// The time of the last write of the smallest program.
    written: Instant,
}

/// The least time between two writes of the smallest program.
const WRITE_EVERY: Duration = Duration::from_secs(5);

impl Progress {
    fn new(best: Arc<Best>, quiet: bool) -> Progress {
        Progress { best, quiet, reported: usize::MAX, written: Instant::now() }
    }

    /// Keeps a smaller program for an interruption, and reports the number of its bindings if it
    /// has become much smaller.
    fn report(&mut self, step: &ReduceProgress<'_>) -> bool {
        if !step.is_smaller {
            return true;
        }
        *self.best.module.lock().unwrap_or_else(PoisonError::into_inner) = Some(step.best.clone());
        let Counts { bindings, functions, .. } = Counts::of_module(step.best);
        if !self.quiet && bindings <= self.reported / 4 * 3 {
            report::say(&format!(
                "reduce: {bindings} bindings in {functions} functions after {} tests ({})",
                step.tests, step.part
            ));
            self.reported = bindings;
        }
        if self.written.elapsed() >= WRITE_EVERY {
            // If this fails, the end of the command reports it.
            let _ = self.best.write();
            self.written = Instant::now();
        }
        true
    }
}

fn summary(reduced: &Reduced) -> String {
    let text = |counts: Counts| format!("{} bindings in {} functions", counts.bindings, counts.functions);
    let ended = if reduced.is_minimal { "" } else { "; the search ended before its end" };
    format!("{} became {} after {} tests{ended}", text(reduced.before), text(reduced.after), reduced.tests)
}
