//! The program as matching reads it.

use anfora_ir::{AttrReader, Body, Context, Expr, ExprId, Literal};
use smallvec::SmallVec;

use crate::pattern::captures::{Captures, Found};
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

    /// Returns true if the parts of a match, which are between its root and the captures, have no
    /// uses outside of the match, and are computed in the block of the root.
    pub(crate) fn is_last_use(&self, captures: &Captures<'_>) -> bool {
        let is_captured = |id: ExprId| captures.found.contains(&Found::One(id));
        let is_part = |operand, value| !is_captured(operand) && !is_captured(value) && !self.body.expr(value).is_atom();
        self.own_parts(captures.root(), is_part).is_some()
    }

    /// Returns the root of a match, and the nodes that are parts of the match: an operand of a part
    /// is one if `is_part`, which is passed the operand and its value, returns true. Returns `None`
    /// if a part has a use outside of the match, or is not computed in the block of the root.
    pub(crate) fn own_parts(
        &self,
        root: ExprId,
        is_part: impl Fn(ExprId, ExprId) -> bool,
    ) -> Option<SmallVec<[ExprId; 16]>> {
        /// The greatest number of links of a match.
        const MOST_LINKS: usize = 256;
        let (body, facts) = (self.body, self.facts);
        // The nodes of the match, and the operands through which they are reached, once for each
        // link.
        let mut parts: SmallVec<[ExprId; 16]> = SmallVec::from_slice(&[root]);
        let mut links: SmallVec<[ExprId; 16]> = SmallVec::new();
        let mut at = 0;
        while let Some(&part) = parts.get(at) {
            at += 1;
            let expr = body.expr(part);
            let inputs: &[ExprId] = match &expr {
                Expr::Proj { tuple, .. } => std::slice::from_ref(tuple),
                _ => body.operands_of(part),
            };
            for &operand in inputs {
                let value = facts.value(body, operand);
                if !is_part(operand, value) {
                    continue;
                }
                let is_its_own = match body.as_var(operand) {
                    Some(var) => {
                        let place = facts.place_of_definition(body, var);
                        facts.def_use.value(body, var) == Some(value)
                            && place.is_some_and(|place| place.block == facts.place(root).block)
                    }
                    None => operand == value,
                };
                if !is_its_own || links.len() >= MOST_LINKS {
                    return None;
                }
                links.push(operand);
                if !parts.contains(&value) {
                    parts.push(value);
                }
            }
        }
        let uses = |link: ExprId| links.iter().filter(|&&other| other == link).count();
        links.iter().all(|&link| facts.def_use.use_count(link) == uses(link)).then_some(parts)
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
