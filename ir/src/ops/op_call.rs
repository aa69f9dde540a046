//! Read access to calls of operators: the operator, the operands and the attributes.

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, ExprId, OpId, TypeId};
use crate::core::expr::Expr;
use crate::ops::op::{AttrReader, TypeError};
use crate::report::suggest::did_you_mean;
use crate::tables::attrs::Attr;

/// A call of an operator, as read by [`Body::call_of`].
///
/// ```
/// # use anfora_ir::{Source, parse_module};
/// # let text = "def @main(%x: Tensor[(2, 3), float32]) { sum(%x, axis=[1]) }";
/// # let module = parse_module(Source::new("example", text), anfora_ops::standard())?;
/// # let (cx, body) = (&module.cx, &module.get(module.find("main").unwrap()).unwrap().body);
/// // Once for a pass, not once for a node:
/// let sum = cx.ops.find("sum");
/// if let Some(call) = body.call_of(body.root())
///     && Some(call.op) == sum
/// {
///     assert_eq!(call.operands, [body.params()[0].expr()]);
///     assert!(!call.attrs(cx).need_bool("keepdims")?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OpCall<'b> {
    /// The operator.
    pub op: OpId,
    /// The operands.
    pub operands: &'b [ExprId],
    /// The given attributes.
    pub attrs: AttrsId,
}

impl OpCall<'_> {
    /// Returns the attributes, with the defaults of the operator's row.
    ///
    /// Cost: one node.
    pub fn attrs<'c>(&self, cx: &'c Context) -> AttrReader<'c> {
        AttrReader { cx, op: self.op, attrs: self.attrs }
    }
}

impl Body {
    /// Returns the call of an operator that an expression is, if it is one.
    ///
    /// Cost: one node.
    #[inline]
    pub fn call_of(&self, id: ExprId) -> Option<OpCall<'_>> {
        match self.expr(id) {
            Expr::CallOp { op, operands, attrs } => Some(OpCall { op, operands: self.operands(operands), attrs }),
            _ => None,
        }
    }
}

impl Context {
    /// Returns the type that a `match_cast` casts to; `None` for any other node.
    ///
    /// Cost: one node.
    pub fn cast_type(&self, node: Expr) -> Option<TypeId> {
        let Expr::CallOp { op, attrs, .. } = node else { return None };
        if !self.ops.facts(op).is_match_cast() {
            return None;
        }
        match *self.attrs.get(self.find_attr(attrs, "to")?) {
            Attr::Type(to) => Some(to),
            _ => None,
        }
    }
}

/// Reads of attributes that return an error, with the names of the attribute and its operator, if
/// the attribute is missing or of another kind.
impl<'a> AttrReader<'a> {
    /// Returns a boolean attribute.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the attribute is not given and has no default, or is not a boolean.
    pub fn need_bool(&self, name: &str) -> Result<bool, TypeError> {
        self.bool(name).ok_or_else(|| self.wants(name, "a boolean"))
    }

    /// Returns an integer attribute.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the attribute is not given and has no default, or is not an integer.
    pub fn need_int(&self, name: &str) -> Result<i64, TypeError> {
        self.int(name).ok_or_else(|| self.wants(name, "an integer"))
    }

    /// Returns an attribute that is a list of integers.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the attribute is not given and has no default, or is not a list of integers.
    pub fn need_ints(&self, name: &str) -> Result<Vec<i64>, TypeError> {
        self.ints(name).ok_or_else(|| self.wants(name, "a list of integers"))
    }

    /// Returns a number attribute.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the attribute is not given and has no default, or is not a number.
    pub fn need_float(&self, name: &str) -> Result<f64, TypeError> {
        self.float(name).ok_or_else(|| self.wants(name, "a number"))
    }

    /// Returns a string attribute.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the attribute is not given and has no default, or is not a string.
    pub fn need_str(&self, name: &str) -> Result<&'a str, TypeError> {
        self.str(name).ok_or_else(|| self.wants(name, "a string"))
    }

    #[cold]
    fn wants(&self, name: &str, what: &str) -> TypeError {
        let row = self.cx.ops.get(self.op);
        let error = if self.raw(name).is_some() {
            TypeError::new(format!("attribute `{name}` of `{}` is not {what}", row.name))
        } else if row.attrs.iter().any(|a| a.name == name) {
            TypeError::new(format!("attribute `{name}` of `{}` is not given, or is not {what}", row.name))
        } else {
            let error = TypeError::new(format!("`{}` has no attribute `{name}`", row.name));
            match did_you_mean(name, row.attrs.iter().map(|a| a.name)) {
                Some(meant) => error.with_help(format!("did you mean `{meant}`?")),
                None => error,
            }
        };
        error.of_op(row.name.clone())
    }
}
