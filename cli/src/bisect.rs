//! `anfora bisect`

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anfora::bisect::{BisectError, BisectStep, BisectUnit, FirstWrong, bisect};
use anfora::ir::{Module, RewriteRecord};
use anfora::manager::{PassContextBuilder, PassRegistry, Sequential, Verification, parse_pipeline};
use anfora::passes::CheckMeaning;
use clap::Args;

use crate::command_line::CommandLine;
use crate::file::{self, Format};
use crate::pass_settings::PassSettings;
use crate::replay::seconds;
use crate::report::{self, Failure};
use crate::signals;
use crate::test_command::TestCommand;

/// Finds the first run of a pass, then the first function, then the first single rewrite after
/// which a program is wrong, and writes a reproducer that `replay` runs. A program is wrong
/// if a pass fails, or if the interpreter finds other results than before the pass; with --test, if
/// a command says so. The exit status is 0 if a wrong rewrite is found.
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
    /// A program is wrong if this command ends with status 0. The command gets the path of the
    /// result, in the format of the input, as its last argument
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// Ends a run of the command of --test after this many seconds; the program is not wrong then
    #[arg(long, value_name = "SECONDS", requires = "test", value_parser = seconds)]
    timeout: Option<Duration>,
    /// A program is wrong only if a pass fails; nothing is interpreted
    #[arg(long, conflicts_with = "test")]
    fails: bool,
    /// Where to write the reproducer
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

/// Writes a reproducer, and says so.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write_reproducer(cli: &CommandLine, path: &std::path::Path, text: &str) -> Result<(), Failure> {
    file::write_file(path, |out| out.write_all(text.as_bytes()))?;
    let (name, path) = (cli.name(), path.display());
    report::say(&format!("wrote {path}; `{name} replay {path}` runs the pass again"));
    Ok(())
}

impl Bisect {
    pub(crate) fn run(self, cli: &CommandLine) -> Result<(), Failure> {
        let registry = cli.pass_registry();
        let text = self.passes.clone().unwrap_or_else(|| format!("O{}", self.settings.level));
        let passes = pipeline(registry, &text)?;
        self.settings.builder(registry).build().map_err(|e| Failure::Usage(e.to_string()))?;
        let module = file::load(cli, &self.input, self.from)?.module;
        let format = file::format_of(&self.input, self.from)?;
        let test = self.test.as_ref().map(|c| TestCommand::new(cli, c, self.timeout, format)).transpose()?;
        if let Some(folder) = test.as_ref().map(TestCommand::folder) {
            signals::set_action_before_end(Some(Box::new(move || _ = std::fs::remove_dir_all(folder))));
        }
        let interprets = !self.fails && test.is_none();
        let context = || -> PassContextBuilder {
            let builder = self.settings.builder(registry).verification(Verification::AfterEachPass);
            if interprets { builder.instrument(Arc::new(CheckMeaning::new())) } else { builder }
        };
        let mut is_wrong = |module: &Module| test.as_ref().is_some_and(|test| test.shows_fault(module));
        let mut progress = |step: &BisectStep| {
            if !self.quiet {
                report::say(&line(step));
            }
            true
        };
        let found = bisect(&module, &passes, &context, &mut is_wrong, &mut progress);
        signals::set_action_before_end(None);
        test.map_or(Ok(()), |test| test.check())?;
        let found = found.map_err(|e| match e {
            BisectError::Context(e) => Failure::Usage(e.to_string()),
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
fn line(step: &BisectStep) -> String {
    let unit = match step.unit {
        BisectUnit::Pipeline => "pipeline",
        BisectUnit::Run => "passes",
        BisectUnit::Function => "functions",
        BisectUnit::Rewrite => "rewrites",
    };
    let after = match step.limit {
        None => "after the whole pipeline".to_string(),
        Some(limit) => format!("after {limit} rewrites"),
    };
    format!("bisect: {unit}: {} {after}", if step.is_wrong { "wrong" } else { "right" })
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
    if let Some(failure) = &found.failure {
        lines.push(format!("failure:   {}", failure.to_diagnostics().first().map_or("", |d| d.message.as_str())));
    }
    lines.join("\n")
}
