//! Failures of commands, and the messages that they print.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anfora::ir::{
    Color, Diagnostic, Diagnostics, Module, RenderOptions, Source, render_diagnostics, render_module_diagnostics,
};

use crate::command_line::CommandLine;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program has errors, each with its place in the source.
    Diagnostics(Diagnostics),
    /// A module, or a pass over it, has errors. The text shows them with their places.
    Shown(String),
    /// Something else is wrong with the input, a pass or a check.
    Message(String),
    /// The command line is wrong.
    Usage(String),
    /// The failure has already been printed.
    Reported,
    /// The command line is wrong, and the error has already been printed.
    Called,
    /// The result could not be written.
    Output(std::io::Error),
}

impl Failure {
    /// Returns the exit status: 2 for a wrong command line, 1 for any other failure.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Failure::Usage(_) | Failure::Called => 2,
            _ => 1,
        }
    }

    /// Returns the failure for errors of a module. They are shown in its source, or in its printed
    /// text if it has no source.
    pub(crate) fn in_module(list: &[Diagnostic], module: &Module) -> Failure {
        Failure::Shown(render_module_diagnostics(list, module, &render_options()))
    }
}

/// Returns options that show diagnostics in colour if standard error is a terminal.
pub(crate) fn render_options() -> RenderOptions {
    RenderOptions { color: if std::io::stderr().is_terminal() { Color::Always } else { Color::Never } }
}

impl From<String> for Failure {
    fn from(message: String) -> Failure {
        Failure::Message(message)
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Failure {
        Failure::Output(e)
    }
}

/// Prints the reason of a failure to standard error.
pub(crate) fn print_failure(failure: &Failure) {
    match failure {
        Failure::Diagnostics(list) => print_diagnostics(list, list.source().map(|s| &**s)),
        Failure::Shown(text) => say(text),
        Failure::Message(m) | Failure::Usage(m) => say(&format!("error: {m}")),
        Failure::Output(e) => say(&format!("error: cannot write the result: {e}")),
        Failure::Reported | Failure::Called => {}
    }
}

/// Prints the requested help or version, or the error in the arguments.
///
/// # Errors
/// If that cannot be written, or the arguments are wrong.
pub(crate) fn print_usage(usage: &clap::Error) -> Result<(), Failure> {
    let printed = usage.print().and_then(|()| std::io::stdout().flush());
    match usage.use_stderr() {
        true => Err(Failure::Called),
        false => Ok(printed?),
    }
}

/// The number of warnings that are printed. Further warnings are only counted.
const MOST_WARNINGS: usize = 20;

/// Prints warnings about a file to standard error.
pub(crate) fn print_warnings(cli: &CommandLine, file: &str, warnings: &[Diagnostic]) {
    let shown = warnings.iter().take(MOST_WARNINGS).map(|w| {
        let message = format!("{file}: {}", w.message);
        Diagnostic { message, ..w.clone() }
    });
    let mut shown: Vec<Diagnostic> = shown.collect();
    if let Some(more) = warnings.len().checked_sub(MOST_WARNINGS).filter(|&n| n > 0) {
        let help = format!("`{} check --stats json` lists all of them", cli.name());
        shown.push(Diagnostic::warning(format!("{file}: {more} more warnings")).with_help(help));
    }
    if !shown.is_empty() {
        print_diagnostics(&shown, None);
    }
}

/// Prints diagnostics to standard error, in colour on a terminal.
fn print_diagnostics(list: &[Diagnostic], source: Option<&Source>) {
    say(&render_diagnostics(list, source, &render_options()));
}

/// Prints a line to standard error. Errors are ignored: there is no place to report them.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", line.trim_end_matches('\n'));
}

/// Prints a line to standard output.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn print(line: &str) -> Result<(), Failure> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}

/// Returns a number of things: `1 rewrite`, `2 rewrites`.
pub(crate) fn counted<N: Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    format!("{number} {what}{}", if number == N::from(1) { "" } else { "s" })
}

/// Returns a text wrapped to lines of at most 80 columns; a longer word has a line of its own. The
/// first line is indented by `first` columns, the others by `others`.
pub(crate) fn wrapped(text: &str, first: usize, others: usize) -> String {
    const COLUMNS: usize = 80;
    let mut lines = " ".repeat(first);
    let mut column = first;
    for (i, word) in text.split_whitespace().enumerate() {
        let width = word.chars().count();
        if i > 0 && column + 1 + width > COLUMNS {
            lines.push('\n');
            lines.push_str(&" ".repeat(others));
            column = others;
        } else if i > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += width;
    }
    lines
}
