//! Errors and failures of passes.

use std::error::Error;
use std::fmt;
use std::iter::successors;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anfora_ir::{Diagnostic, IntoDiagnostics, Severity};

/// The greatest depth of nested pipelines, sequences and causes of errors.
pub const MAX_NESTING: usize = 64;

/// Runs `work`, and returns a panic in it as an error.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, PassError>) -> Result<T, PassError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(PassError::panic(payload)))
}

/// Returns the message of a panic.
fn panic_text(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = payload.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| payload.downcast_ref::<String>().cloned());
    // Dropping the payload may panic again, and so may dropping the payload of that panic.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text.unwrap_or_else(|| "it panicked with something that is not a text".to_string())
}

type Cause = Box<dyn Error + Send + Sync + 'static>;

/// An error of a pass: a message, with a place in the program and a cause.
#[derive(Debug)]
pub struct PassError(Box<ErrorParts>);

#[derive(Debug)]
struct ErrorParts {
    /// The message, with its place and help.
    what: Diagnostic,
    /// All diagnostics that were found, if they say more than the message.
    diagnostics: Vec<Diagnostic>,
    cause: Option<Cause>,
    panicked: bool,
    /// True if the error came from a walk, which noted where it ended.
    of_walk: bool,
}

impl PassError {
    /// Makes an error without a place.
    ///
    /// Cost: linear in the text.
    pub fn new(message: impl Into<String>) -> PassError {
        PassError::of(Diagnostic::error(message))
    }

    /// Makes an error from another error, with its message and those of up to [`MAX_NESTING`]
    /// causes as one message. For errors of the toolkit, and others that are [`IntoDiagnostics`],
    /// `?` is enough; it also keeps the place at which a walk ended.
    ///
    /// ```
    /// use anfora_manager::PassError;
    ///
    /// let number: Result<u32, PassError> = "many".parse().map_err(PassError::from_error);
    /// assert_eq!(number.unwrap_err().message(), "invalid digit found in string");
    /// ```
    pub fn from_error(error: impl Into<Cause>) -> PassError {
        PassError::from(Diagnostic::from_error(&*error.into()))
    }

    /// Makes the error that stands for a panic.
    pub(crate) fn panic(payload: Box<dyn std::any::Any + Send>) -> PassError {
        let mut error = PassError::new(panic_text(payload));
        error.0.panicked = true;
        error
    }

    /// Makes the error for the errors that a pass has reported: `all` holds those that were kept,
    /// `count` is their total number.
    pub(crate) fn reported(all: Vec<Diagnostic>, count: usize) -> PassError {
        if count < 2 {
            return PassError::from(all);
        }
        let first = all.first().map_or("", |d| d.message.as_str());
        let message = format!("it reported {count} errors, of which the first is: {first}");
        PassError::from(all).with_message(message)
    }

    /// Makes an error from the first error in `all`, or from the first diagnostic if none is an
    /// error. It keeps all of them if they say more than its message.
    fn from_all(all: Vec<Diagnostic>) -> PassError {
        let worst = all.iter().find(|d| d.severity == Severity::Error).or_else(|| all.first());
        let Some(worst) = worst else { return PassError::new("something is wrong, and nothing says what") };
        let says_more = all.len() > 1 || worst.span.is_some() || worst.label.is_some() || !worst.related.is_empty();
        let mut what = Diagnostic { severity: Severity::Error, ..worst.clone() };
        if all.len() > 1 {
            (what.span, what.label, what.related) = (None, None, Vec::new());
        }
        let mut error = PassError::of(what);
        error.0.diagnostics = if says_more { all } else { Vec::new() };
        error
    }

    fn of(what: Diagnostic) -> PassError {
        PassError(Box::new(ErrorParts { what, diagnostics: Vec::new(), cause: None, panicked: false, of_walk: false }))
    }

    /// Sets the function (without `@`).
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn in_function(mut self, name: impl Into<String>) -> PassError {
        self.0.what.function = Some(name.into());
        self
    }

    /// Sets the binding (without `%`).
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn on_binding(mut self, name: impl Into<String>) -> PassError {
        self.0.what.binding = Some(name.into());
        self
    }

    /// Sets the help: what to do about the error.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> PassError {
        self.0.what.help = Some(help.into());
        self
    }

    /// Sets or clears the help: what to do about the error.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_optional_help(mut self, help: Option<String>) -> Self {
        self.0.what.help = help;
        self
    }

    /// Sets the cause. If the chain of causes is longer than [`MAX_NESTING`], only the text of its
    /// first error is kept.
    #[must_use]
    pub fn with_cause(mut self, cause: impl Into<Cause>) -> PassError {
        let cause = cause.into();
        if causes(&*cause).count() >= MAX_NESTING {
            self.0.what.message =
                format!("{}: {cause} (and more than {MAX_NESTING} causes behind it)", self.0.what.message);
        } else {
            self.0.cause = Some(cause);
        }
        self
    }

    /// Replaces the message.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> PassError {
        self.0.what.message = message.into();
        self
    }

    /// Returns the message, without its place.
    pub fn message(&self) -> &str {
        &self.0.what.message
    }

    /// Returns the function that the error is in, without `@`.
    pub fn function(&self) -> Option<&str> {
        self.0.what.function.as_deref()
    }

    /// Returns the binding that the error is at, without `%`.
    pub fn binding(&self) -> Option<&str> {
        self.0.what.binding.as_deref()
    }

    /// Returns all diagnostics that were found, if they say more than the message.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }

    /// Returns the error with its causes as a diagnostic, then everything else that was found.
    ///
    /// Cost: one entry.
    pub fn to_diagnostics(&self) -> Vec<Diagnostic> {
        self.diagnostics_as(self.message().to_string())
    }

    /// Returns the diagnostics with another first message, to which the causes are appended.
    fn diagnostics_as(&self, mut message: String) -> Vec<Diagnostic> {
        causes(self).take(MAX_NESTING).for_each(|cause| message += &format!(": {cause}"));
        let mut all = vec![Diagnostic { message, ..self.0.what.clone() }];
        if self.0.diagnostics.len() > 1 {
            all.extend(self.0.diagnostics.iter().cloned());
        }
        all
    }

    /// Returns true if the error is of a type that a walk of a body may end with. An error with a
    /// message of the pass itself is not, even if a walk failed before it.
    pub(crate) fn is_of_walk(&self) -> bool {
        self.0.of_walk
    }

    /// Sets the binding, unless the error has one.
    pub(crate) fn or_on_binding(mut self, name: &str) -> PassError {
        self.0.what.binding.get_or_insert_with(|| name.to_string());
        self
    }

    /// Sets the function, unless the error has one.
    pub(crate) fn or_in_function(mut self, name: &str) -> PassError {
        self.0.what.function.get_or_insert_with(|| name.to_string());
        self
    }
}

/// Returns the causes of an error, nearest first, up to one more than may be behind each other.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    successors(error.source(), |&e| e.source()).take(MAX_NESTING + 1)
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&without_severity(&self.0.what))
    }
}

/// Returns an error in one line: its message, place and help.
fn without_severity(error: &Diagnostic) -> String {
    error.to_string().split_off("error: ".len())
}

impl Error for PassError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.cause.as_deref().map(|e| e as _)
    }
}

/// Converts the operand of `?` in a pass: a text, a [`Diagnostic`] or several, and every error of
/// the toolkit.
impl<E: IntoDiagnostics> From<E> for PassError {
    fn from(error: E) -> PassError {
        let mut made = PassError::from_all(error.into_diagnostics().into_vec());
        made.0.of_walk = E::MAY_END_WALK;
        made
    }
}

/// Converts errors of the manager with the message that they display.
macro_rules! in_own_words {
    ($($error:ty),+) => {
        $(impl anfora_ir::IntoDiagnostics for $error {
            fn into_diagnostics(self) -> anfora_ir::Diagnostics {
                anfora_ir::Diagnostic::from_error(&self).into()
            }
        })+
    };
}

pub(crate) use in_own_words;

impl From<PassFailure> for PassError {
    fn from(failure: PassFailure) -> PassError {
        let mut error = PassError::new("a pass run by this one failed");
        error.0.what.function = failure.error().function().map(str::to_string);
        error.0.what.binding = failure.error().binding().map(str::to_string);
        error.with_cause(failure)
    }
}

/// The failure of a pass. The module is as it was before the pass ran.
#[derive(Debug)]
pub struct PassFailure(Box<FailureParts>);

#[derive(Debug)]
struct FailureParts {
    pass: String,
    path: Vec<String>,
    kind: FailureKind,
    error: PassError,
    /// The errors that the pass had reported before.
    reported: Vec<Diagnostic>,
}

/// The kind of a failure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FailureKind {
    /// The pass itself failed, or a pass that it depends on.
    Error,
    /// The pass panicked.
    Panic,
    /// A property that the pass needs does not hold. Nothing was run.
    Order,
    /// An instrument reported an error, or panicked.
    Instrument {
        /// The instrument.
        instrument: String,
        /// The hook: `should_run`, `run_before`, `run_after`, `enter` or `exit`.
        hook: &'static str,
    },
}

impl PassFailure {
    /// Adds the errors that the pass had reported before. An error that the pass returned is one
    /// more of them; the message of a panic or of an instrument comes first.
    pub(crate) fn after_reported(mut self, mut errors: Vec<Diagnostic>, count: usize) -> PassFailure {
        if self.0.kind == FailureKind::Error && self.0.pass.is_empty() {
            let own = self.0.error.to_diagnostics();
            let count = count + own.len();
            errors.extend(own);
            return PassError::reported(errors, count).into();
        }
        self.0.reported = errors;
        self
    }

    /// Makes the failure that a hand-written pass returns; the manager adds the name.
    pub(crate) fn new(kind: FailureKind, error: PassError) -> PassFailure {
        PassFailure(Box::new(FailureParts { pass: String::new(), path: Vec::new(), kind, error, reported: Vec::new() }))
    }

    pub(crate) fn at(mut self, pass: &str, path: impl FnOnce() -> Vec<String>) -> PassFailure {
        if self.0.pass.is_empty() {
            self.0.pass = pass.to_string();
            self.0.path = path();
        }
        self
    }

    /// Returns the name of the pass that failed: the innermost one, if it is part of a sequence. It
    /// is empty for a context that could not be entered or left.
    pub fn pass(&self) -> &str {
        &self.0.pass
    }

    /// Returns the sequences around the pass, outermost first.
    pub fn path(&self) -> &[String] {
        &self.0.path
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> &FailureKind {
        &self.0.kind
    }

    /// Returns the error.
    pub fn error(&self) -> &PassError {
        &self.0.error
    }

    /// Returns the function that the pass failed in, without `@`.
    pub fn function(&self) -> Option<&str> {
        self.0.error.function()
    }

    /// Returns the binding that the pass failed at, without `%`.
    pub fn binding(&self) -> Option<&str> {
        self.0.error.binding()
    }

    /// Returns diagnostics: the failure with its causes, then everything else that the pass found.
    pub fn to_diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = self.0.error.diagnostics_as(self.headline());
        all.extend(self.0.reported.iter().cloned());
        all
    }

    fn headline(&self) -> String {
        let FailureParts { pass, kind, error, .. } = &*self.0;
        let message = error.message();
        match (kind, pass.is_empty()) {
            (FailureKind::Error, _) => format!("pass `{pass}` failed: {message}"),
            (FailureKind::Panic, _) => format!("pass `{pass}` panicked: {message}"),
            (FailureKind::Order, _) => format!("pass `{pass}` cannot run there: {message}"),
            (FailureKind::Instrument { instrument, hook }, false) => {
                format!("pass `{pass}` failed in {instrument} ({hook}): {message}")
            }
            (FailureKind::Instrument { instrument, hook }, true) => {
                format!("instrument `{instrument}` failed ({hook}): {message}")
            }
        }
    }
}

impl From<PassError> for PassFailure {
    fn from(error: PassError) -> PassFailure {
        let kind = if error.0.panicked { FailureKind::Panic } else { FailureKind::Error };
        PassFailure::new(kind, error)
    }
}

impl fmt::Display for PassFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.0.error.0.what;
        let place = Diagnostic { message: self.headline(), help: None, ..what.clone() };
        f.write_str(&without_severity(&place))?;
        if !self.0.path.is_empty() {
            write!(f, " [{}]", self.0.path.join(" > "))?;
        }
        what.help.iter().try_for_each(|help| write!(f, "; {help}"))
    }
}

impl Error for PassFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.error.source()
    }
}
