//! The messages of tools to their users, with a place and a suggestion. Rendering is separate.

use std::fmt;
use std::ops::Range;

/// The severity of a diagnostic.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// The reason why something was not done.
    Remark,
    /// Information.
    Note,
    /// A probable error.
    Warning,
    /// An error.
    Error,
}

impl Severity {
    /// Returns the word that precedes the message.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Remark => "remark",
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A message about a place in a program. It names functions and bindings, never ids, so it stays
/// valid when the program is edited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The message, a sentence without a full stop.
    pub message: String,
    /// The bytes of the source text that the message is about.
    pub span: Option<Range<usize>>,
    /// The text under the underlined place.
    pub label: Option<String>,
    /// Other places, each with the text under it.
    pub related: Vec<(Range<usize>, String)>,
    /// The function that the message is about, without `@`.
    pub function: Option<String>,
    /// The binding that the message is about, without `%`.
    pub binding: Option<String>,
    /// A suggestion for the user.
    pub help: Option<String>,
}

impl Diagnostic {
    /// Returns a message without a place.
    ///
    /// Cost: linear in the text.
    pub fn new(severity: Severity, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity,
            message: message.into(),
            span: None,
            label: None,
            related: Vec::new(),
            function: None,
            binding: None,
            help: None,
        }
    }

    /// Returns a remark without a place.
    ///
    /// Cost: linear in the text.
    pub fn remark(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Remark, message)
    }

    /// Returns a note without a place.
    ///
    /// Cost: linear in the text.
    pub fn note(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Note, message)
    }

    /// Returns a warning without a place.
    ///
    /// Cost: linear in the text.
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, message)
    }

    /// Returns an error without a place.
    ///
    /// Cost: linear in the text.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, message)
    }

    /// Sets the bytes of the source that the message is about.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Diagnostic {
        self.span = Some(span);
        self
    }

    /// Sets the text under the underlined place.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// Adds another place.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_related(mut self, span: Range<usize>, label: impl Into<String>) -> Diagnostic {
        self.related.push((span, label.into()));
        self
    }

    /// Sets the function that the message is about.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn in_function(mut self, name: impl Into<String>) -> Diagnostic {
        self.function = Some(name.into());
        self
    }

    /// Sets the binding that the message is about.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn on_binding(mut self, name: impl Into<String>) -> Diagnostic {
        self.binding = Some(name.into());
        self
    }

    /// Returns the function and the binding in parentheses, for a message without an excerpt.
    pub(crate) fn place_in_words(&self) -> String {
        match (&self.function, &self.binding) {
            (Some(function), Some(binding)) => format!(" (in @{function}, at %{binding})"),
            (Some(function), None) => format!(" (in @{function})"),
            (None, Some(binding)) => format!(" (at %{binding})"),
            (None, None) => String::new(),
        }
    }

    /// Sets the suggestion.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Writes one line, without the source.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}{}", self.severity.name(), self.message, self.place_in_words())?;
        if let Some(help) = &self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}
