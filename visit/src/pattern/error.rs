//! Why a pattern, or a rule, is refused.

use anfora_ir::{Arity, Diagnostic, Diagnostics, IntoDiagnostics, TypeError};

/// Why a pattern cannot be looked for, or cannot be built as the right side of a rule.
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
        /// How many it takes.
        wanted: String,
        /// How many the pattern has.
        found: usize,
    },
    /// The operator has no such attribute.
    #[error("`{op}` has no attribute `{attr}`{}", suggestion(.help.as_deref()))]
    UnknownAttr {
        /// The operator.
        op: String,
        /// What it was taken to have.
        attr: String,
        /// A suggestion.
        help: Option<String>,
    },
    /// The operator has to be given an attribute, which the right side of a rule leaves out.
    #[error("`{op}` needs the attribute `{attr}`")]
    MissingAttr {
        /// The operator.
        op: String,
        /// The attribute.
        attr: String,
    },
    /// The attribute never has such a value.
    #[error("attribute `{attr}` of `{op}` wants {wanted}")]
    AttrKind {
        /// The operator.
        op: String,
        /// The attribute.
        attr: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// Attributes or an order of operands are asked for where there is no operator.
    #[error("a condition on {0} stands where there is no operator")]
    NotAnOperator(&'static str),
    /// Both orders are asked for of other than two operands.
    #[error("operands can be exchanged only where there are two of them, not {0}")]
    NotTwoOperands(usize),
    /// No capture has that name.
    #[error("nothing is captured as `{name}`{}", suggestion(.help.as_deref()))]
    UnknownCapture {
        /// The name.
        name: String,
        /// A suggestion.
        help: Option<String>,
    },
    /// One name stands for different things in different places: an expression, a list or an
    /// attribute.
    #[error("`{0}` is captured as two of these: an expression, a list, an attribute")]
    MixedCapture(String),
    /// One name stands for values of attributes of different kinds or defaults.
    #[error("`{capture}` stands for another attribute too, which has another kind or default than `{attr}` of `{op}`")]
    MixedAttr {
        /// The name.
        capture: String,
        /// The operator.
        op: String,
        /// Its attribute.
        attr: String,
    },
    /// `rest()` stands elsewhere than at the end of a list of operands, arguments or fields, or has
    /// a condition.
    #[error("`rest()` has to be the last operand, argument or field, without conditions")]
    Rest,
    /// Alternatives without any.
    #[error("there is no alternative to match")]
    NoAlternatives,
    /// What is passed to the wrapping of `optional` is used outside of it.
    #[error("what `optional` passes to its wrapping is used outside of it")]
    Hole,
    /// It can match only an atom, and a match begins at calls, tuples and projections.
    #[error("a match begins at a call, tuple, projection, `if` or `fn`, not at an atom")]
    AtomRoot,
    /// No operator is in the list, or passes the test, with that many operands.
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
    /// The right side of a rule does not say what to build.
    #[error("{0} cannot stand on the right side of a rule: it does not say what to build")]
    NotBuildable(&'static str),
}

impl PatternError {
    /// What is wrong, and what may have been meant.
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

    /// At a node of a pattern.
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

/// Why a pattern is refused, and at which of its nodes.
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
