//! The program as matching reads it.

use anfora_ir::{AttrReader, Body, Context, Expr, ExprId, Literal};

use crate::pattern::facts::Facts;

/// The program as matching reads it.
#[derive(Copy, Clone)]
pub(crate) struct Sight<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) body: &'a Body,
    pub(crate) facts: &'a Facts<'a>,
}

impl<'a> Sight<'a> {
    /// Returns the attributes of an expression that is an operator call, looked through to its
    /// value.
    pub(crate) fn call(self, id: ExprId) -> Option<AttrReader<'a>> {
        match self.body.expr(self.facts.value(self.body, id)) {
            Expr::CallOp { op, attrs, .. } => Some(AttrReader { cx: self.cx, op, attrs }),
            _ => None,
        }
    }

    /// Returns the tensor if an expression is a literal, looked through to its value.
    pub(crate) fn literal(self, id: ExprId) -> Option<&'a Literal> {
        let value = self.facts.value(self.body, id);
        Some(self.cx.literals.get(self.body.as_literal(value)?))
    }

    /// Returns true if an expression is used once, in the block in which it is computed.
    pub(crate) fn is_used_once(&self, mut id: ExprId, root: ExprId, budget: &mut u64) -> bool {
        let (body, def_use) = (self.body, &self.facts.def_use);
        loop {
            let Some(var) = body.as_var(id) else {
                return body.expr(id).is_atom()
                    || id != root && def_use.is_used_once(id)
                    || id == root && self.root_is_used_once(id);
            };
            let Some(user) = def_use.users(id).next() else { return false };
            if !def_use.is_used_once(id) {
                return false;
            }
            if let Some(place) = self.facts.place_of_definition(body, var)
                && place.block != self.facts.place(user).block
            {
                return false;
            }
            match def_use.value(body, var) {
                Some(value) if body.as_var(value).is_some() && *budget > 0 => {
                    *budget -= 1;
                    id = value;
                }
                _ => return true,
            }
        }
    }

    /// Returns true if a literal cannot change the extents of a match at `root`: it is a scalar, or
    /// the extents of `root` are known. For operands of unknown extents, the effect of a tensor of
    /// several elements is not known.
    pub(crate) fn keeps_extents(&self, literal: &Literal, root: ExprId) -> bool {
        literal.shape().is_empty() || self.cx.types.has_known_extents(self.body.type_of(root))
    }

    fn root_is_used_once(&self, root: ExprId) -> bool {
        let def_use = &self.facts.def_use;
        let mut users = def_use.users(root);
        match (users.next().map(|user| self.body.expr(user)), users.next()) {
            (Some(Expr::Let { var, value, .. }), None) if value == root => def_use.is_used_once(var.expr()),
            _ => def_use.is_used_once(root),
        }
    }
}

/// Returns the operands of an expression from number `from` on.
pub(crate) fn tail(body: &Body, id: ExprId, from: u32) -> &[ExprId] {
    body.operands_of(id).get(from as usize..).unwrap_or(&[])
}
