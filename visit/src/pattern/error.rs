//! The errors of patterns and rules.

use anfora_ir::{Arity, Diagnostic, Diagnostics, IntoDiagnostics, TypeError};

/// The reason why a pattern is invalid, or cannot be built as the right side of a rule.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// No operator has that name.
    #[error("{}{}", .0.message, suggestion(.0.help.as_deref()))]
    UnknownOp(TypeError),
    /// The operator never has that many operands.
    #[error("a pattern of `{op}` has {found} operands, but it takes {wanted}")]
    Arity {
        /// The operator.
        op: String,
        /// The number of operands that it takes.
        wanted: String,
        /// The number of operands in the pattern.
        found: usize,
    },
    /// The operator has no such attribute.
    #[error("`{op}` has no attribute `{attr}`{}", suggestion(.help.as_deref()))]
    UnknownAttr {
        /// The operator.
        op: String,
        /// The unknown attribute.
        attr: String,
        /// A suggestion.
        help: Option<String>,
    },
    /// The right side of a rule omits an attribute that the operator requires.
    #[error("`{op}` needs the attribute `{attr}`")]
    MissingAttr {
        /// The operator.
        op: String,
        /// The attribute.
        attr: String,
    },
    /// The attribute never has this value.
    #[error("attribute `{attr}` of `{op}` must be {wanted}")]
    AttrKind {
        /// The operator.
        op: String,
        /// The attribute.
        attr: String,
        /// The kind of value that it takes.
        wanted: &'static str,
    },
    /// Attributes or an order of operands are required of a node that is not an operator.
    #[error("there is no operator for a condition on {0}")]
    NotAnOperator(&'static str),
    /// Both orders are required for a number of operands other than two.
    #[error("operands can be exchanged only if there are two, not {0}")]
    NotTwoOperands(usize),
    /// No capture has that name.
    #[error("nothing is captured as `{name}`{}", suggestion(.help.as_deref()))]
    UnknownCapture {
        /// The name.
        name: String,
        /// A suggestion.
        help: Option<String>,
    },
    /// One name is used for different kinds of captures: an expression, a list or an attribute.
    #[error("`{0}` is captured as two of these: an expression, a list, an attribute")]
    MixedCapture(String),
    /// One name captures values of attributes of different kinds or defaults.
    #[error("`{capture}` stands for another attribute too, which has another kind or default than `{attr}` of `{op}`")]
    MixedAttr {
        /// The name.
        capture: String,
        /// The operator.
        op: String,
        /// Its attribute.
        attr: String,
    },
    /// `rest()` is not at the end of a list of operands, arguments or fields, or has a condition.
    #[error("`rest()` has to be the last operand, argument or field, without conditions")]
    Rest,
    /// The list of alternatives is empty.
    #[error("there is no alternative to match")]
    NoAlternatives,
    /// The argument of the wrapping of `optional` is used outside of the wrapping.
    #[error("what `optional` passes to its wrapping is used outside of it")]
    Hole,
    /// The pattern can match only an atom, but a match begins at a call, tuple, projection, `if` or
    /// `fn`.
    #[error("a match begins at a call, tuple, projection, `if` or `fn`, not at an atom")]
    AtomRoot,
    /// The list of operators is empty, or no operator with this number of operands passes the test.
    #[error("no operator is asked for, or none that takes that many operands passes the test")]
    NoOperator,
    /// The right side of a rule names a function that the module does not have.
    #[error("there is no function `@{name}`{}", suggestion(.help.as_deref()))]
    UnknownGlobal {
        /// The name.
        name: String,
        /// A suggestion.
        help: Option<String>,
    },
    /// The right side of a rule is not specific enough to be built.
    #[error("{0} cannot be on the right side of a rule: it does not determine what to build")]
    NotBuildable(&'static str),
}

impl PatternError {
    /// Returns the message and the suggestion.
    pub(crate) fn message_and_help(mut self) -> (String, Option<String>) {
        let help = match &mut self {
            PatternError::UnknownOp(error) => error.help.take(),
            PatternError::UnknownAttr { help, .. }
            | PatternError::UnknownCapture { help, .. }
            | PatternError::UnknownGlobal { help, .. } => help.take(),
            _ => None,
        };
        (self.to_string(), help)
    }

    /// Adds the node of the pattern at fault.
    pub(crate) fn at(self, node: u32) -> Refused {
        Refused { error: self, node }
    }
}

/// A side of a rule.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Side {
    Left,
    Right,
}

/// The error of a pattern, with the node at fault.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: PatternError,
    pub(crate) node: u32,
}

impl IntoDiagnostics for PatternError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

fn suggestion(help: Option<&str>) -> String {
    help.map_or_else(String::new, |help| format!("; {help}"))
}

pub(crate) fn arity_text(arity: Arity) -> String {
    match (arity.min, arity.max) {
        (min, Some(max)) if min == max => min.to_string(),
        (min, Some(max)) => format!("{min} to {max}"),
        (min, None) => format!("at least {min}"),
    }
}
