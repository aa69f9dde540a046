//! Checks of rows at registration, so that programs with the operator can be written, read back and
//! trusted.

use crate::core::entity::OpId;
use crate::ops::op_def::{AttrDefault, AttrKind, OpDef};
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

impl OpDef {
    /// Checks that the row has a name and does not contradict itself.
    pub(crate) fn check(&self) -> Result<(), RegisterError> {
        if self.name.is_empty() {
            return Err(RegisterError::NoName);
        }
        match self.contradiction() {
            Some(why) => Err(RegisterError::Row { operator: self.name.to_string(), why }),
            None => Ok(()),
        }
    }

    fn contradiction(&self) -> Option<String> {
        let (min, max) = (self.arity.min, self.arity.max);
        if max.is_some_and(|max| max < min) {
            return Some(format!("it takes at least {min} operands and at most {}", max.unwrap_or_default()));
        }
        if self.commutative && (min, max) != (2, Some(2)) {
            return Some("it is commutative, but does not take just two operands".to_owned());
        }
        let is_beyond = |operand: u32| max.is_some_and(|max| operand as usize >= max);
        if let Some((_, operand)) = self.forwards.iter().find(|&&(_, operand)| is_beyond(operand)) {
            return Some(format!("it forwards operand {operand}, which it does not take"));
        }
        if self.relabels && max == Some(0) {
            return Some("it gives its first operand another shape, but takes no operand".to_owned());
        }
        if let Some(operand) = self.shape_operands.iter().find(|&&operand| is_beyond(operand)) {
            return Some(format!("operand {operand} says its shape, but it does not take that one"));
        }
        self.attrs.iter().enumerate().find_map(|(i, attr)| {
            let name = attr.name;
            if name.is_empty() {
                Some("an attribute has no name".to_owned())
            } else if self.attrs[..i].iter().any(|other| other.name == name) {
                Some(format!("two attributes are called `{name}`"))
            } else if !attr.default.fits(attr.kind) {
                Some(format!("the default of attribute `{name}` is not {}", attr.kind.describe()))
            } else {
                None
            }
        })
    }
}

impl AttrDefault {
    /// Returns true if an attribute of this kind can have this default.
    fn fits(self, kind: AttrKind) -> bool {
        let own = match self {
            AttrDefault::Required | AttrDefault::Absent => return true,
            AttrDefault::Bool(_) => AttrKind::Bool,
            AttrDefault::Int(_) => AttrKind::Int,
            AttrDefault::Float(_) => AttrKind::Float,
            AttrDefault::Str(_) => AttrKind::Str,
            AttrDefault::Ints(_) => AttrKind::Ints,
            AttrDefault::DType(_) => AttrKind::DType,
        };
        kind == own || kind == AttrKind::Any
    }
}

impl IntoDiagnostics for RegisterError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}
