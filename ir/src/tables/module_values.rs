//! Numbers and attribute values, compared with those of a module and interned in its tables.

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, ExprId};
use crate::ops::op::AttrReader;
use crate::ops::op_kinds::AttrKind;
use crate::tables::attrs::Attr;
use crate::tables::value::{AttrValue, Number};

impl Body {
    /// Returns true if an expression is a constant whose elements are all this number: see
    /// [`Literal::is_splat`](crate::Literal::is_splat).
    ///
    /// Cost: one node.
    pub fn is_splat(&self, cx: &Context, id: ExprId, number: impl Into<Number>) -> bool {
        self.as_literal(id).is_some_and(|literal| cx.literals.get(literal).is_splat(number))
    }
}

impl AttrValue {
    /// Returns true if the named attribute has this value, given or by default.
    ///
    /// Cost: one entry.
    pub fn is_value_of(&self, attrs: &AttrReader<'_>, name: &str) -> bool {
        match self {
            AttrValue::Bool(wanted) => attrs.bool(name) == Some(*wanted),
            AttrValue::Int(wanted) => match attrs.raw(name) {
                Some(Attr::Float(_)) => attrs.float(name) == Some(*wanted as f64),
                Some(Attr::Int(found)) => found == wanted,
                Some(_) => false,
                None => attrs.int(name) == Some(*wanted) || attrs.float(name) == Some(*wanted as f64),
            },
            AttrValue::Float(wanted) => attrs.float(name).is_some_and(|found| found.to_bits() == wanted.to_bits()),
            AttrValue::Str(wanted) => attrs.str(name) == Some(wanted),
            AttrValue::Ints(wanted) => AttrValue::is_ints(attrs, name, wanted),
            AttrValue::DType(wanted) => attrs.dtype(name) == Some(*wanted),
            AttrValue::Type(wanted) => attrs.ty(name) == Some(*wanted),
            AttrValue::Literal(wanted) => attrs.literal(name).as_ref() == Some(wanted),
            AttrValue::Interned(wanted) => attrs.cx.find_attr(attrs.attrs, name) == Some(*wanted),
        }
    }

    fn is_ints(attrs: &AttrReader<'_>, name: &str, wanted: &[i64]) -> bool {
        match attrs.raw(name) {
            Some(Attr::List(items)) => {
                items.len() == wanted.len()
                    && items
                        .iter()
                        .zip(wanted)
                        .all(|(&item, w)| matches!(attrs.cx.attrs.get(item), Attr::Int(i) if i == w))
            }
            Some(_) => false,
            None => attrs.ints(name).is_some_and(|found| found == wanted),
        }
    }

    /// Returns true if attributes of this kind can have the value.
    pub fn fits(&self, kind: AttrKind) -> bool {
        match self {
            AttrValue::Bool(_) => matches!(kind, AttrKind::Bool | AttrKind::Literal | AttrKind::Any),
            AttrValue::Int(_) => matches!(kind, AttrKind::Int | AttrKind::Float | AttrKind::Literal | AttrKind::Any),
            AttrValue::Float(_) => matches!(kind, AttrKind::Float | AttrKind::Literal | AttrKind::Any),
            AttrValue::Str(_) => matches!(kind, AttrKind::Str | AttrKind::Any),
            AttrValue::Ints(_) => matches!(kind, AttrKind::Ints | AttrKind::Any),
            AttrValue::DType(_) => matches!(kind, AttrKind::DType | AttrKind::Type | AttrKind::Any),
            AttrValue::Type(_) => matches!(kind, AttrKind::Type | AttrKind::Any),
            AttrValue::Literal(_) => matches!(kind, AttrKind::Literal | AttrKind::Any),
            AttrValue::Interned(_) => true,
        }
    }

    /// Returns the id of the value as an attribute of a module.
    ///
    /// Cost: one entry.
    pub fn intern(&self, cx: &mut Context) -> AttrId {
        match self {
            AttrValue::Bool(value) => cx.attr(Attr::Bool(*value)),
            AttrValue::Int(value) => cx.int_attr(*value),
            AttrValue::Float(value) => cx.float_attr(*value),
            AttrValue::Str(value) => cx.str_attr(value),
            AttrValue::Ints(values) => cx.ints_attr(values),
            AttrValue::DType(value) => cx.attr(Attr::DType(*value)),
            AttrValue::Type(value) => cx.attr(Attr::Type(*value)),
            AttrValue::Literal(value) => {
                let literal = cx.literals.intern(value.clone());
                cx.attr(Attr::Literal(literal))
            }
            AttrValue::Interned(value) => *value,
        }
    }
}
