//! Errors: what fails in Rust, as exceptions of the package.

use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anfora::ir::{
    Diagnostic, Diagnostics, Module, RenderOptions, Source, render_diagnostics, render_module_diagnostics,
};
use anfora::manager::{PassError, PassFailure};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyType};

use crate::place;

pyo3::import_exception!(anfora._errors, AnforaError);
pyo3::import_exception!(anfora._errors, ParseError);
pyo3::import_exception!(anfora._errors, VerifyError);
pyo3::import_exception!(anfora._errors, OnnxError);
pyo3::import_exception!(anfora._errors, ConfigError);
pyo3::import_exception!(anfora._errors, PatternError);
pyo3::import_exception!(anfora._errors, RunError);
pyo3::import_exception!(anfora._errors, StaleError);
pyo3::import_exception!(anfora._errors, SurgeryError);

mod raised {
    pyo3::import_exception!(anfora._errors, PassError);
}

/// The exception that a callback in Python raised, as the cause of a [`PassError`].
#[derive(Debug)]
pub(crate) struct Raised(pub(crate) PyErr);

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Python::attach(|py| {
            let name = self.0.get_type(py).qualname().map_or_else(|_| "an exception".to_string(), |n| n.to_string());
            match self.0.value(py).str().map(|s| s.to_string()) {
                Ok(text) if !text.is_empty() => write!(f, "{name}: {text}"),
                _ => f.write_str(&name),
            }
        })
    }
}

impl Error for Raised {}

/// Returns the error of a pass whose callback raised an exception, with the place that walks have
/// noted on the exception.
pub(crate) fn from_callback(error: PyErr) -> PassError {
    let (function, binding) = place::take(&error);
    let raised = Raised(error);
    let mut made = PassError::new(raised.to_string());
    if let Some(function) = function {
        made = made.in_function(function);
    }
    if let Some(binding) = binding {
        made = made.on_binding(binding);
    }
    made.with_cause(raised)
}

thread_local! {
    /// An exception that ends the program and was raised where nothing can fail. It is kept until
    /// the run of the pass ends.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Returns true if an exception ends the program, as `KeyboardInterrupt` does.
pub(crate) fn ends_program(py: Python<'_>, error: &PyErr) -> bool {
    !error.is_instance_of::<PyException>(py)
}

/// Keeps what ends the program until the run of the pass ends.
pub(crate) fn keep_interrupt(error: PyErr) {
    INTERRUPT.with(|kept| _ = kept.borrow_mut().get_or_insert(error));
}

/// Raises what was kept since the last call.
///
/// # Errors
/// The exception.
pub(crate) fn raise_interrupt() -> PyResult<()> {
    INTERRUPT.with(|kept| kept.borrow_mut().take()).map_or(Ok(()), Err)
}

/// The least stack that a run of passes needs.
const LEAST_STACK: usize = 24 << 10;

/// Checks that the stack of the thread holds one more run of passes. Passes in Python may run
/// passes.
///
/// # Errors
/// `PassError`, if it does not.
pub(crate) fn check_stack() -> PyResult<()> {
    match stacker::remaining_stack() {
        Some(left) if left < LEAST_STACK => {
            Err(raised::PassError::new_err("error: passes nest more than the stack of this thread holds"))
        }
        _ => Ok(()),
    }
}

/// Returns the exception that a callback raised, if one is the cause of an error.
fn raised_in<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e PyErr> {
    let mut next = Some(error);
    for _ in 0..2 * anfora::manager::MAX_NESTING {
        let error = next?;
        if let Some(Raised(raised)) = error.downcast_ref::<Raised>() {
            return Some(raised);
        }
        next = match error.downcast_ref::<PassFailure>() {
            Some(failure) => Some(failure.error()),
            None => error.source(),
        };
    }
    None
}

/// Returns the exception for a failed pass. An exception that ends a program, such as
/// `KeyboardInterrupt`, is returned as itself.
pub(crate) fn from_failure(py: Python<'_>, failure: &PassFailure, module: Option<&Module>) -> PyErr {
    let cause = raised_in(failure.error()).map(|e| e.clone_ref(py));
    if let Some(cause) = &cause
        && ends_program(py, cause)
    {
        return cause.clone_ref(py);
    }
    let mut all = failure.to_diagnostics();
    // The exception is the cause of this one, which Python shows: it is not said twice.
    if let (Some(_), Some(first)) = (&cause, all.first_mut()) {
        first.message = headline(failure);
    }
    let text = shown(&all, module);
    let exception = with_diagnostics(
        py,
        &py.get_type::<raised::PassError>(),
        &text,
        &all,
        module.and_then(|m| m.source().map(|s| &**s)),
    );
    let _ = exception.value(py).setattr("pass_name", failure.pass());
    exception.set_cause(py, cause);
    exception
}

/// Returns the first message of a failure, without the causes behind it.
fn headline(failure: &PassFailure) -> String {
    let text = failure.to_diagnostics().into_iter().next().map_or_else(String::new, |d| d.message);
    match failure.error().source() {
        Some(cause) => text.strip_suffix(&format!(": {cause}")).map_or(text.clone(), str::to_string),
        None => text,
    }
}

/// Returns the exception of a class for errors with places, such as those of a text.
pub(crate) fn from_diagnostics(py: Python<'_>, class: &Bound<'_, PyType>, all: &Diagnostics) -> PyErr {
    let source = all.source().map(|s| &**s);
    let text = render_diagnostics(all, source, &RenderOptions::default());
    with_diagnostics(py, class, &text, all, source)
}

/// Returns the exception of a class for errors of a module.
pub(crate) fn in_module(py: Python<'_>, class: &Bound<'_, PyType>, all: &[Diagnostic], module: &Module) -> PyErr {
    with_diagnostics(py, class, &shown(all, Some(module)), all, module.source().map(|s| &**s))
}

fn shown(all: &[Diagnostic], module: Option<&Module>) -> String {
    match module {
        Some(module) => render_module_diagnostics(all, module, &RenderOptions::default()),
        None => render_diagnostics(all, None, &RenderOptions::default()),
    }
}

fn with_diagnostics(
    py: Python<'_>,
    class: &Bound<'_, PyType>,
    text: &str,
    all: &[Diagnostic],
    source: Option<&Source>,
) -> PyErr {
    let made = || {
        let list = diagnostics(py, all, source)?;
        class.call1((text.trim_end(), list))
    };
    match made() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Returns diagnostics as objects of the class `Diagnostic` of the package.
pub(crate) fn diagnostics<'py>(
    py: Python<'py>,
    all: &[Diagnostic],
    source: Option<&Source>,
) -> PyResult<Bound<'py, PyList>> {
    let class = py.import("anfora._errors")?.getattr("Diagnostic")?;
    let mut lines = Lines { source, at: 0, line: 1, column: 1 };
    let list = PyList::empty(py);
    for diagnostic in all {
        let fields = PyDict::new(py);
        fields.set_item("severity", diagnostic.severity.name())?;
        fields.set_item("message", &diagnostic.message)?;
        fields.set_item("help", &diagnostic.help)?;
        fields.set_item("function", &diagnostic.function)?;
        fields.set_item("binding", &diagnostic.binding)?;
        if let (Some(span), Some(source)) = (&diagnostic.span, source) {
            let (line, column) = lines.place_of(span.start);
            fields.set_item("file", source.name())?;
            fields.set_item("line", line)?;
            fields.set_item("column", column)?;
        }
        list.append(class.call((), Some(&fields))?)?;
    }
    Ok(list)
}

/// Counts lines and columns up to places in a text. Places in ascending order are found in one walk
/// of the text.
struct Lines<'a> {
    source: Option<&'a Source>,
    at: usize,
    line: usize,
    column: usize,
}

impl Lines<'_> {
    /// Returns the line and the column, in characters, of a byte of the text, both from 1.
    fn place_of(&mut self, byte: usize) -> (usize, usize) {
        if byte < self.at {
            (self.at, self.line, self.column) = (0, 1, 1);
        }
        let rest = self.source.and_then(|s| s.text().get(self.at..)).unwrap_or_default();
        for (i, c) in rest.char_indices() {
            if self.at + i >= byte {
                break;
            }
            if c == '\n' {
                (self.line, self.column) = (self.line + 1, 1);
            } else {
                self.column += 1;
            }
        }
        self.at = self.at.max(byte.min(self.at + rest.len()));
        (self.line, self.column)
    }
}

/// Runs work in Rust. A panic in it becomes an exception that asks for a report.
///
/// # Errors
/// If the work panics.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(text), _) => (*text).to_string(),
            (_, Some(text)) => text.clone(),
            _ => "no message".to_string(),
        };
        AnforaError::new_err(format!("internal error, please report it with the program: {message}"))
    })
}
