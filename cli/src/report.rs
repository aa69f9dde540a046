//! How a command fails, and what the user sees of it.

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use anfora::ir::{Color, Diagnostic, Module, RenderOptions, Source, render_diagnostics, render_module_diagnostics};

/// Why a command did not do what it was asked for.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program has errors, each with a place.
    Diagnostics(Vec<Diagnostic>, Option<Arc<Source>>),
    /// A module has errors, or a pass over it had; the text shows where.
    Shown(String),
    /// Something else is wrong with the input, a pass or a check.
    Message(String),
    /// The command was not called rightly.
    Usage(String),
    /// What is wrong has been printed.
    Reported,
    /// The result could not be written.
    Output(std::io::Error),
}

impl Failure {
    /// Errors of a module, shown in its source if there is one, else in its printed text.
    pub(crate) fn in_module(list: &[Diagnostic], module: &Module) -> Failure {
        Failure::Shown(render_module_diagnostics(list, module, &render_options()))
    }
}

/// In colour on a terminal.
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

/// Prints why a command failed to standard error.
pub(crate) fn print_failure(failure: &Failure) {
    match failure {
        Failure::Diagnostics(list, source) => print_diagnostics(list, source.as_deref()),
        Failure::Shown(text) => say(text),
        Failure::Message(m) | Failure::Usage(m) => say(&format!("error: {m}")),
        Failure::Output(e) => say(&format!("error: cannot write the result: {e}")),
        Failure::Reported => {}
    }
}

/// Prints diagnostics to standard error, in colour on a terminal.
fn print_diagnostics(list: &[Diagnostic], source: Option<&Source>) {
    say(&render_diagnostics(list, source, &render_options()));
}

/// Prints a line to standard error. Where nobody reads it, it is lost.
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

/// A text in lines of at most 80 columns where its words allow: the first indented by `first` columns, the others by `others`.
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
