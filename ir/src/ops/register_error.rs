//! The reasons why an operator is not registered.

use crate::core::entity::OpId;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};

/// The reason why an operator was not registered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RegisterError {
    /// The name is taken.
    #[error("an operator `{0}` is registered already")]
    Duplicate(String),
    /// The number of operators has reached the limit of ids.
    #[error("there can be at most {} operators", OpId::LIMIT)]
    TooMany,
    /// The operator has no name.
    #[error("an operator without a name")]
    NoName,
    /// The namespace of the name is declared opaque; or it is to be declared opaque, but has
    /// registered operators.
    #[error("the operator `{operator}` is in the namespace `{namespace}`, whose operators are opaque")]
    Opaque {
        /// The operator.
        operator: String,
        /// The namespace.
        namespace: String,
    },
    /// The properties in a row contradict each other.
    #[error("the row of `{operator}` contradicts itself: {why}")]
    Row {
        /// The operator.
        operator: String,
        /// The contradiction.
        why: String,
    },
}

impl IntoDiagnostics for RegisterError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}
