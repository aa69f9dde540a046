//! `anfora bisect`

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anfora::bisect::{BisectError, BisectStep, BisectUnit, FirstWrong, Judgement, bisect};
use anfora::ir::{Module, RewriteRecord};
use anfora::manager::{
    PassContextBuilder, PassRegistry, Sequential, Verification, check_reproducer_place, parse_pipeline,
};
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, Format};
use crate::meaning_checks::MeaningChecks;
use crate::pass_settings::PassSettings;
use crate::replay::seconds;
use crate::report::{self, Failure, counted};
use crate::signals;
use crate::test_command::{TestCommand, TestPlace};

/// Finds the first run of a pass, then the first function, then the first single rewrite after
/// which a program is wrong, and writes a reproducer that `replay` runs. A program is wrong
/// if a pass fails, or if the interpreter finds other results than before the pass; with --test, if
/// a command says so. The exit status is 0 if a wrong rewrite is found. If a signal ends the search
/// (Ctrl-C), the reproducer of the nearest wrong state so far is written first.
#[derive(Args)]
pub(crate) struct Bisect {
    /// The program: a `.anf` or `.onnx` file, or `-`
    input: PathBuf,
    /// The format of the input
    #[arg(long)]
    from: Option<Format>,
    /// Passes with options, or the name of a pipeline
    #[arg(long, value_name = "PIPELINE")]
    passes: Option<String>,
    #[command(flatten)]
    settings: PassSettings,
    /// A program is wrong if this command ends with status 0; status 125 means that it cannot tell,
    /// and so does a result that cannot be written. The search then looks at a neighbouring state.
    /// The command gets the path of the result, in the format of the input, as its last argument
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// Ends a run of the command of --test after this many seconds; it cannot tell then
    #[arg(long, value_name = "SECONDS", requires = "test", value_parser = seconds)]
    timeout: Option<Duration>,
    /// A program is wrong only if a pass fails; nothing is interpreted
    #[arg(long, conflicts_with = "test")]
    fails: bool,
    /// Where to write the reproducer. A file that is there must be a reproducer
    #[arg(short, long, value_name = "FILE", default_value = "reproducer.anf")]
    output: PathBuf,
    /// Prints no progress
    #[arg(long)]
    quiet: bool,
}

/// Parses a pipeline of the command line.
///
/// # Errors
/// If it is not a pipeline.
pub(crate) fn pipeline(registry: &PassRegistry, text: &str) -> Result<Sequential, Failure> {
    parse_pipeline(registry, text).map_err(|e| Failure::Usage(format!("{e}\n{}", e.marked())))
}

/// Checks that a reproducer may be written to a path, before a search for it begins.
///
/// # Errors
/// If another file is there.
pub(crate) fn check_place(path: &Path) -> Result<(), Failure> {
    check_reproducer_place(path).map_err(|e| file::cannot_write(path, &e))
}

/// Writes a reproducer, and says so.
///
/// # Errors
/// If it cannot be written, or another file is there.
pub(crate) fn write_reproducer(cli: &CommandLine, path: &Path, text: &str) -> Result<(), Failure> {
    check_place(path)?;
    file::write_file(path, |out| out.write_all(text.as_bytes()))?;
    let (name, path) = (cli.name(), path.display());
    report::say(&format!("wrote {path}; `{name} replay {path}` runs the pass again"));
    Ok(())
}

/// Returns the failure of a search in which the interpreter could compare nothing.
pub(crate) fn nothing_compared() -> Failure {
    let text = "nothing could be compared: the interpreter cannot run the program\nhelp: give --test COMMAND";
    Failure::Message(text.to_string())
}

/// The nearest wrong state so far, and the file that its reproducer goes to.
struct Nearest {
    cli: CommandLine,
    output: PathBuf,
    found: Mutex<Option<FirstWrong>>,
}

impl Nearest {
    /// Returns the action before a signal ends the program: writes the reproducer, and clears the
    /// place of a test.
    fn on_end(self: &Arc<Nearest>, place: Option<Arc<TestPlace>>) -> impl FnOnce() + Send + 'static {
        let nearest = Arc::clone(self);
        move || {
            place.iter().for_each(|place| place.clear());
            let found = nearest.found.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(found) = found else { return };
            report::say(&format!("interrupted; the nearest wrong state so far:\n{}", summary(&found)));
            if let Some(Err(failure)) =
                found.reproducer().map(|text| write_reproducer(&nearest.cli, &nearest.output, &text))
            {
                report::print_failure(&failure);
            }
        }
    }
}

impl Bisect {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let text = self.passes.clone().unwrap_or_else(|| format!("O{}", self.settings.level));
        let passes = pipeline(registry, &text)?;
        self.settings.builder(registry).build().map_err(|e| Failure::Usage(e.to_string()))?;
        check_place(&self.output)?;
        let module = file::load(cli, &self.input, self.from)?.module;
        let format = file::format_of(&self.input, self.from)?;
        let test = self.test.as_ref().map(|c| TestCommand::new(cli, c, self.timeout, format)).transpose()?;
        let nearest = Arc::new(Nearest { cli: cli.clone(), output: self.output.clone(), found: Mutex::new(None) });
        let _action = signals::before_end(nearest.on_end(test.as_ref().map(TestCommand::place)));
        let checks = (!self.fails && test.is_none()).then(MeaningChecks::default);
        let context = || -> PassContextBuilder {
            let builder = self.settings.builder(registry).verification(Verification::AfterEachPass);
            checks.iter().fold(builder, |builder, checks| checks.instrument(builder))
        };
        let mut judge = |module: &Module| match (&test, &checks) {
            (Some(test), _) => test.judge(module),
            (None, Some(checks)) => checks.judge(),
            (None, None) => Judgement::Right,
        };
        let mut progress = |step: &BisectStep<'_>| {
            checks.iter().for_each(MeaningChecks::print_notes);
            if !self.quiet {
                report::say(&line(step));
            }
            *nearest.found.lock().unwrap_or_else(PoisonError::into_inner) = step.found.cloned();
            true
        };
        let found = bisect(&module, &passes, &context, &mut judge, &mut progress);
        test.as_ref().map_or(Ok(()), TestCommand::check)?;
        let found = found.map_err(|e| match e {
            BisectError::Context(e) => Failure::Usage(e.to_string()),
            BisectError::ResultUndecided if checks.is_some() => nothing_compared(),
            other => Failure::Message(other.to_string()),
        })?;
        report::print(&summary(&found))?;
        match found.reproducer() {
            Some(text) => write_reproducer(cli, &self.output, &text),
            None => Ok(()),
        }
    }
}

/// Returns a line about a run of the pipeline.
fn line(step: &BisectStep<'_>) -> String {
    let unit = match step.unit {
        BisectUnit::Pipeline => "pipeline",
        BisectUnit::Run => "passes",
        BisectUnit::Function => "functions",
        BisectUnit::Rewrite => "rewrites",
    };
    let after = match step.limit {
        None => "after the whole pipeline".to_string(),
        Some(limit) => format!("after {}", counted(limit, "rewrite")),
    };
    let judgement = match step.judgement {
        Judgement::Right => "right",
        Judgement::Wrong => "wrong",
        Judgement::Undecided => "undecided",
    };
    format!("bisect: {unit}: {judgement} {after}")
}

/// Returns the lines about the first wrong rewrite.
fn summary(found: &FirstWrong) -> String {
    let mut lines = Vec::new();
    let run = found.run.as_ref().map_or(String::new(), |run| format!(", run {}: {}", run.number, run.pipeline));
    lines.push(format!("pass:      {}{run}", found.pass()));
    match &found.rewrite {
        Some(RewriteRecord { number, function, binding, why, .. }) => {
            if let Some(function) = function {
                lines.push(format!("function:  @{function}"));
            }
            let at = binding.as_ref().map_or(String::new(), |binding| format!(" at %{binding}"));
            lines.push(format!("rewrite:   {number} of {}{at}: {why}", found.total));
        }
        None => lines.push(format!("rewrite:   none of {}; the pass fails after them", found.total)),
    }
    if !found.is_exact() {
        lines.push(format!("           or one of those before it, from {} on", found.right + 1));
    }
    if found.undecided > 0 {
        lines.push(format!("undecided: {}", counted(found.undecided, "state")));
    }
    if let Some(failure) = &found.failure {
        lines.push(format!("failure:   {}", failure.to_diagnostics().first().map_or("", |d| d.message.as_str())));
    }
    lines.join("\n")
}
