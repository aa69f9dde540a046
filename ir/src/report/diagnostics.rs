//! Several diagnostics as one error, and errors that convert to diagnostics.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::report::diagnostic::Diagnostic;
use crate::report::source::Source;

/// The most causes of an error that its message names.
const MOST_CAUSES: usize = 64;

/// All errors found in a text or a module, such as the errors of
/// [`parse_module`](crate::parse_module) and [`verify_module`](crate::verify_module). It is a slice
/// of [`Diagnostic`]s.
///
/// Its `Display` text contains all diagnostics as they are rendered for users. Diagnostics with a
/// place in a source have line, column and the line underlined. `Debug` gives the same text, so a
/// failed test or a `main` that returns the error prints it.
///
/// ```
/// use anfora_ir::{OpRegistry, Source, parse_module};
///
/// let source = Source::new("example.anf", "def @main(%x: float32) {\n  %y\n}");
/// let errors = parse_module(source, OpRegistry::new().into()).unwrap_err();
/// assert_eq!(errors[0].message, "unknown local `%y`");
/// assert!(errors.to_string().contains("example.anf:2:3"));
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
    source: Option<Arc<Source>>,
}

impl Diagnostics {
    /// Returns diagnostics whose places are in a source.
    ///
    /// Cost: one entry.
    pub fn in_source(list: Vec<Diagnostic>, source: Option<Arc<Source>>) -> Diagnostics {
        Diagnostics { list, source }
    }

    /// Returns the text that the places are in, if it is known.
    pub fn source(&self) -> Option<&Arc<Source>> {
        self.source.as_ref()
    }

    /// Returns the diagnostics without the source.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }

    /// Returns `Ok` if there are no diagnostics.
    ///
    /// # Errors
    /// All diagnostics, if there are any.
    pub fn into_result(self) -> Result<(), Diagnostics> {
        if self.list.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl Deref for Diagnostics {
    type Target = [Diagnostic];

    fn deref(&self) -> &[Diagnostic] {
        &self.list
    }
}

impl From<Vec<Diagnostic>> for Diagnostics {
    fn from(list: Vec<Diagnostic>) -> Diagnostics {
        Diagnostics { list, source: None }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Diagnostics {
        vec![one].into()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(list: I) -> Diagnostics {
        list.into_iter().collect::<Vec<Diagnostic>>().into()
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl fmt::Debug for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Diagnostics {}

/// An error that converts to diagnostics. In a pass, `?` turns such an error into the error of the
/// pass.
///
/// ```
/// use anfora_ir::{Diagnostic, Diagnostics, IntoDiagnostics};
///
/// struct TooLarge {
///     function: String,
/// }
///
/// impl IntoDiagnostics for TooLarge {
///     fn into_diagnostics(self) -> Diagnostics {
///         Diagnostic::error("the body is too large").in_function(self.function).into()
///     }
/// }
/// ```
pub trait IntoDiagnostics {
    /// True if a walk of the toolkit that edits may end with this error, so that the place that the
    /// last walk recorded belongs to the error. Set it for your own error types that stand for such
    /// an error.
    const MAY_END_WALK: bool = false;

    /// Returns the diagnostics of the error, with their places as far as they are known.
    fn into_diagnostics(self) -> Diagnostics;
}

impl Diagnostic {
    /// Returns an error whose message is the text of `error` and of up to 64 causes. Causes whose
    /// text the message already contains are left out.
    pub fn from_error(error: &dyn Error) -> Diagnostic {
        let mut message = error.to_string();
        let mut cause = error.source();
        for _ in 0..MOST_CAUSES {
            let Some(behind) = cause else { break };
            let text = behind.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            cause = behind.source();
        }
        Diagnostic::error(message)
    }
}

impl IntoDiagnostics for Diagnostics {
    fn into_diagnostics(self) -> Diagnostics {
        self
    }
}

impl IntoDiagnostics for Diagnostic {
    fn into_diagnostics(self) -> Diagnostics {
        self.into()
    }
}

impl IntoDiagnostics for Vec<Diagnostic> {
    fn into_diagnostics(self) -> Diagnostics {
        self.into()
    }
}

impl IntoDiagnostics for &str {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::error(self).into()
    }
}

impl IntoDiagnostics for String {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::error(self).into()
    }
}

impl IntoDiagnostics for Box<dyn Error + Send + Sync> {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&*self).into()
    }
}
