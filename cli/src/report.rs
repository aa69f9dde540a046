//! How a command fails, and what the user sees of it.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anfora::ir::{Color, Diagnostic, RenderOptions, Source, render_diagnostics};

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program has errors, each with a place.
    Diagnostics(Vec<Diagnostic>, Option<Arc<Source>>),
    /// Something else is wrong with the input, a pass or a check.
    Message(String),
    /// The command was not called rightly.
    Usage(String),
    /// The two programs of a comparison differ, which has been printed.
    Differs,
    /// The result could not be written.
    Output(std::io::Error),
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

/// Prints why a command failed to standard error.
pub(crate) fn print_failure(failure: &Failure) {
    match failure {
        Failure::Diagnostics(list, source) => print_diagnostics(list, source.as_deref()),
        Failure::Message(m) | Failure::Usage(m) => say(&format!("error: {m}")),
        Failure::Output(e) => say(&format!("error: cannot write the result: {e}")),
        Failure::Differs => {}
    }
}

/// Prints diagnostics to standard error, in colour on a terminal.
pub(crate) fn print_diagnostics(list: &[Diagnostic], source: Option<&Source>) {
    let color = if std::io::stderr().is_terminal() { Color::Always } else { Color::Never };
    say(&render_diagnostics(list, source, &RenderOptions { color, ..RenderOptions::default() }));
}

/// Prints a line to standard error. Where nobody reads it, it is lost.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{}", line.trim_end_matches('\n'));
}
