//! Checks of rows at registration, so that programs with the operator can be written, read back and
//! trusted.

use crate::ops::op_def::OpDef;
use crate::ops::op_kinds::{AttrDefault, AttrKind};
use crate::ops::register_error::RegisterError;

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
