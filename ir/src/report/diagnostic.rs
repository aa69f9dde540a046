//! What tools tell their user: a message with a place and a suggestion. Rendering is separate, at
//! the edge.

use std::fmt;
use std::ops::Range;

/// How bad it is.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Severity {
    /// Why something was not done.
    Remark,
    /// Something to know.
    Note,
    /// Something that is probably wrong.
    Warning,
    /// Something that is wrong.
    Error,
}

impl Severity {
    /// As it stands before a message.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Remark => "remark",
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A message about a place in a program. It names functions and bindings, never ids, so that it
/// outlives the edit it speaks of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is the matter, in a sentence without a full stop.
    pub message: String,
    /// Bytes of the source text that it is about.
    pub span: Option<Range<usize>>,
    /// What stands under the underlined place.
    pub label: Option<String>,
    /// Other places, with what stands under them.
    pub related: Vec<(Range<usize>, String)>,
    /// The function that it is about, without `@`.
    pub function: Option<String>,
    /// The binding that it is about, without `%`.
    pub binding: Option<String>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A message without a place.
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

    /// A remark without a place.
    ///
    /// Cost: linear in the text.
    pub fn remark(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Remark, message)
    }

    /// A note without a place.
    ///
    /// Cost: linear in the text.
    pub fn note(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Note, message)
    }

    /// A warning without a place.
    ///
    /// Cost: linear in the text.
    pub fn warning(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Warning, message)
    }

    /// An error without a place.
    ///
    /// Cost: linear in the text.
    pub fn error(message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Severity::Error, message)
    }

    /// About these bytes of the source.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Diagnostic {
        self.span = Some(span);
        self
    }

    /// With words under the underlined place.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn labelled(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = Some(label.into());
        self
    }

    /// With another place.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_related(mut self, span: Range<usize>, label: impl Into<String>) -> Diagnostic {
        self.related.push((span, label.into()));
        self
    }

    /// About a function.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn in_function(mut self, name: impl Into<String>) -> Diagnostic {
        self.function = Some(name.into());
        self
    }

    /// About a binding.
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

    /// With a suggestion.
    ///
    /// Cost: linear in the text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// One line, without the source.
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
