//! Access to a match for the condition of a rule.

use std::sync::Arc;

use anfora_ir::{Attr, Body, Context, DTypeClass, ExprId, Literal, OpDef, TypeId};

use crate::pattern::captures::Captures;
use crate::pattern::sight::Sight;

/// A test of a whole match.
#[derive(Clone)]
pub(crate) struct Guard {
    pub(crate) test: Arc<dyn Fn(&Match<'_>) -> bool + Send + Sync>,
    /// The source text of the test, if it is known.
    pub(crate) text: Option<&'static str>,
}

impl Guard {
    pub(crate) fn new(test: impl Fn(&Match<'_>) -> bool + Send + Sync + 'static) -> Guard {
        Guard { test: Arc::new(test), text: None }
    }

    /// Returns what is said if the test fails.
    pub(crate) fn refusal(&self) -> String {
        // The parameter of a closure says nothing.
        let body = self.text.map(|text| match text.strip_prefix('|').and_then(|rest| rest.split_once('|')) {
            Some((_, body)) => body,
            None => text,
        });
        match body {
            Some(body) => format!("`{}` does not hold", body.split_whitespace().collect::<Vec<_>>().join(" ")),
            None => "a condition of the rule does not hold".to_string(),
        }
    }
}

/// A match before its replacement: the captures and their properties. For a name that captured
/// nothing, all properties are `None` or false.
#[derive(Copy, Clone)]
pub struct Match<'m> {
    pub(crate) sight: Sight<'m>,
    pub(crate) captures: Captures<'m>,
}

impl<'m> Match<'m> {
    /// Returns the tables of the module and the body.
    pub fn program(&self) -> (&'m Context, &'m Body) {
        (self.sight.cx, self.sight.body)
    }

    /// Returns the node that is to be replaced.
    pub fn root(&self) -> ExprId {
        self.captures.root()
    }

    /// Returns the captures.
    pub fn captures(&self) -> Captures<'m> {
        self.captures
    }

    /// Returns the type of a capture.
    pub fn ty(&self, name: &str) -> Option<TypeId> {
        Some(self.sight.body.type_of(self.captures.get(name)?))
    }

    /// Returns true if a capture is a tensor of integers.
    pub fn is_integer(&self, name: &str) -> bool {
        matches!(self.class(name), Some(DTypeClass::Signed | DTypeClass::Unsigned))
    }

    /// Returns true if a capture is a tensor of unsigned integers.
    ///
    /// Cost: one entry.
    pub fn is_unsigned(&self, name: &str) -> bool {
        self.class(name) == Some(DTypeClass::Unsigned)
    }

    /// Returns true if a capture is a tensor of floats.
    pub fn is_float(&self, name: &str) -> bool {
        self.class(name) == Some(DTypeClass::Float)
    }

    /// Returns true if a capture and the replaced node are tensors of the same type whose extents
    /// are all known: they have the same shape then.
    pub fn has_type_of_root(&self, name: &str) -> bool {
        let root = self.sight.body.type_of(self.root());
        self.ty(name) == Some(root) && self.sight.cx.types.has_known_extents(root)
    }

    /// Returns the tensor if a capture is a literal, looked through to its value.
    pub fn literal(&self, name: &str) -> Option<&'m Literal> {
        self.sight.literal(self.captures.get(name)?)
    }

    /// Returns the row of the operator that a capture calls, looked through to its value.
    ///
    /// Cost: one entry.
    pub fn op(&self, name: &str) -> Option<&'m OpDef> {
        let call = self.sight.call(self.captures.get(name)?)?;
        Some(self.sight.cx.ops.get(call.op))
    }

    /// Returns the captured value of an attribute; `None` if the attribute was omitted, so that it
    /// has its default.
    pub fn attr(&self, name: &str) -> Option<&'m Attr> {
        Some(self.sight.cx.attrs.get(self.captures.attr(name)?))
    }

    /// Returns the captured value of an attribute, if it is a list of integers.
    pub fn ints(&self, name: &str) -> Option<Vec<i64>> {
        self.sight.cx.attr_ints(self.captures.attr(name)?)
    }

    /// Returns the captured value of an attribute, if it is a float.
    ///
    /// Cost: one entry.
    pub fn float(&self, name: &str) -> Option<f64> {
        match self.attr(name)? {
            Attr::Float(bits) => Some(f64::from_bits(*bits)),
            _ => None,
        }
    }

    /// Returns true if everything that the match looks through, besides the replaced node, is used
    /// by the match alone and computed in its block. The replacement then leaves none of it in the
    /// program.
    ///
    /// Cost: one loop.
    pub fn is_last_use(&self) -> bool {
        self.sight.is_last_use(&self.captures)
    }

    fn class(&self, name: &str) -> Option<DTypeClass> {
        Some(self.sight.cx.types.as_tensor(self.ty(name)?)?.dtype.class())
    }
}

anfora_ir::brief_debug! { Match<'_>; }
