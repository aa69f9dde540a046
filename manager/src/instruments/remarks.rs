//! Messages of passes, written as the passes end.

use std::io::Write;
use std::sync::Mutex;

use anfora_ir::{Diagnostic, Module, RenderOptions, diagnostics_json_with, render_module_diagnostics};

use crate::context::PassRemark;
use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::sync::lock;

/// An instrument that writes the messages that each pass left, when the pass ends: remarks (why
/// something was not done), notes, warnings and errors, with the name of the pass, each with its
/// place underlined in the source, or else in the module as it is then. The context keeps the
/// messages nevertheless.
///
/// A remark that a pass was skipped is not a message of the pass, and is not written.
pub struct Remarks {
    /// True for JSON, false for text.
    is_json: bool,
    passes: Option<Vec<String>>,
    to: Mutex<Box<dyn Write + Send>>,
}

impl Remarks {
    /// Writes text, for people.
    pub fn new(to: impl Write + Send + 'static) -> Remarks {
        Remarks { is_json: false, passes: None, to: Mutex::new(Box::new(to)) }
    }

    /// Writes JSON, for machines: an object per line, as in [`remarks_json`].
    pub fn json(to: impl Write + Send + 'static) -> Remarks {
        Remarks { is_json: true, ..Remarks::new(to) }
    }

    /// Writes only the messages of passes with these names.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn of_passes<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Remarks {
        self.passes.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    fn write(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        if self.passes.as_ref().is_some_and(|names| !names.iter().any(|n| n == run.name())) {
            return Ok(());
        }
        let pass = run.name().to_string();
        let remarks: Vec<PassRemark> =
            run.remarks().into_iter().map(|diagnostic| PassRemark { pass: pass.clone(), diagnostic }).collect();
        if remarks.is_empty() {
            return Ok(());
        }
        let text = match self.is_json {
            false => render_remarks(&remarks, module, &RenderOptions::default()),
            true => remarks_json(&remarks, module),
        };
        let to = &mut *lock(&self.to);
        to.write_all(text.as_bytes())
            .and_then(|()| to.flush())
            .map_err(|e| PassError::new("what passes left cannot be written").with_cause(e))
    }
}

impl Instrument for Remarks {
    fn name(&self) -> &str {
        "Remarks"
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        self.write(module, run)
    }

    fn on_error(&self, module: &Module, run: &PassRun<'_>, _: &PassFailure) {
        // The pass has failed already, for another reason.
        let _ = self.write(module, run);
    }
}

/// Renders the messages that passes left, one after the other, each after the name of its pass. A
/// message is shown with its place underlined in the source that the module was read from, if the
/// source is kept and has the place, or else at the line of the printed module that binds what the
/// message is about. Linear in the source, the messages, and the functions that they name.
pub fn render_remarks(remarks: &[PassRemark], module: &Module, options: &RenderOptions) -> String {
    let named: Vec<Diagnostic> = remarks
        .iter()
        .map(|PassRemark { pass, diagnostic }| {
            let mut named = diagnostic.clone();
            if !pass.is_empty() {
                named.message = format!("{pass}: {}", named.message);
            }
            named
        })
        .collect();
    render_module_diagnostics(&named, module, options)
}

/// Returns the messages that passes left as JSON objects, one a line: those of
/// [`diagnostics_json`](anfora_ir::diagnostics_json), with the name of the `pass` first (empty for
/// a message that no pass left). Linear in the source and the messages.
pub fn remarks_json(remarks: &[PassRemark], module: &Module) -> String {
    let items = remarks.iter().map(|r| (Some(("pass", r.pass.as_str())), &r.diagnostic));
    diagnostics_json_with(items, module.source().map(|s| &**s))
}

anfora_ir::brief_debug! { Remarks; }
