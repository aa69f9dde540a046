//! A first look at operands, which tells of most rules that they do not match.

use anfora_ir::{Expr, ExprId, Literal, Number, OpId};
use smallvec::SmallVec;

use crate::pattern::build::{LiteralCondition, Node};
use crate::pattern::compile::{NodeMeaning, Resolved, Rest};
use crate::pattern::search::Sight;

/// An expression at first sight, variables looked through.
#[derive(Copy, Clone)]
pub(crate) enum Seen<'a> {
    Literal(&'a Literal),
    Op(OpId),
    Tuple,
    Other,
}

impl<'a> Seen<'a> {
    pub(crate) fn of(sight: Sight<'a>, expr: ExprId) -> Seen<'a> {
        let look = |id: ExprId| match sight.body.expr(id) {
            Expr::Literal(literal) => Seen::Literal(sight.cx.literals.get(literal)),
            Expr::CallOp { op, .. } => Seen::Op(op),
            Expr::Tuple(_) => Seen::Tuple,
            _ => Seen::Other,
        };
        look(sight.facts.value(sight.body, expr))
    }

    /// Returns true if it may meet a node of a pattern: false only if it cannot.
    pub(crate) fn may_meet(self, pattern: &Resolved, mut at: u32) -> bool {
        // What stands behind more names and conditions than this is looked at properly.
        for _ in 0..8 {
            match (&pattern.pattern.nodes[at as usize], pattern.meanings[at as usize]) {
                (Node::Capture { inner, .. } | Node::Filter { inner, .. } | Node::Link(inner), _) => at = *inner,
                // Of the author, and is asked once.
                (Node::Literal(LiteralCondition::Where(_)), _) => return matches!(self, Seen::Literal(_)),
                (Node::Literal(test), _) => return matches!(self, Seen::Literal(found) if test.holds_for(found)),
                (Node::Op { .. }, NodeMeaning::List { ops, .. }) => {
                    return matches!(self, Seen::Op(op) if pattern.contains(ops, op));
                }
                (Node::Tuple(_), _) => return matches!(self, Seen::Tuple),
                (Node::Global(_), NodeMeaning::Nothing) => return false,
                _ => return true,
            }
        }
        true
    }
}

/// The operands of a call of an operator, each looked at once for all rules.
pub(crate) struct Glance<'a> {
    operands: SmallVec<[Seen<'a>; 4]>,
}

impl<'a> Glance<'a> {
    /// Looks at the operands of a node; `None` where that would tell little.
    pub(crate) fn of(sight: Sight<'a>, node: ExprId) -> Option<Glance<'a>> {
        /// Of more operands, the patterns that look at them are few.
        const MOST: usize = 4;
        let Expr::CallOp { operands, .. } = sight.body.expr(node) else { return None };
        let list = sight.body.operands(operands);
        (list.len() <= MOST).then(|| Glance { operands: list.iter().map(|&o| Seen::of(sight, o)).collect() })
    }

    /// Returns true if a pattern may match at the node: false only if it cannot.
    pub(crate) fn may_match(&self, pattern: &Resolved) -> bool {
        let mut at = pattern.pattern.root;
        for _ in 0..8 {
            match (&pattern.pattern.nodes[at as usize], pattern.meanings[at as usize]) {
                (Node::Capture { inner, .. } | Node::Filter { inner, .. } | Node::Link(inner), _) => at = *inner,
                (Node::Op { .. }, NodeMeaning::List { operands, swap, .. }) => {
                    let parts = pattern.pattern.list(operands.first);
                    if parts.len() != self.operands.len() {
                        // `none` at the end may be left out.
                        return parts.len() > self.operands.len() || operands.rest != Rest::None;
                    }
                    let meet = |(seen, &part): (&Seen<'_>, &u32)| seen.may_meet(pattern, part);
                    return self.operands.iter().zip(parts).all(meet)
                        || swap && self.operands.iter().zip(parts.iter().rev()).all(meet);
                }
                _ => return true,
            }
        }
        true
    }
}

impl LiteralCondition {
    /// Returns true if a literal passes it.
    pub(crate) fn holds_for(&self, literal: &Literal) -> bool {
        match self {
            LiteralCondition::Number(number) => number.is_splat_of(literal),
            LiteralCondition::Is(wanted) => wanted == literal,
            LiteralCondition::Where(test) => test(literal),
            LiteralCondition::Whole(value) => is_whole(literal, *value),
            LiteralCondition::Splat(scalar) => {
                scalar.dtype() == literal.dtype()
                    && scalar.as_splat().is_some_and(|bits| literal.as_splat() == Some(bits))
            }
        }
    }
}

/// Returns true if all elements are a whole number, of whatever type. A float that is the nearest
/// one only is not it, and 0 is none of floats, which have two zeros.
fn is_whole(literal: &Literal, value: i64) -> bool {
    let has_it = || Number::Int(value).scalar(literal.dtype()).is_some();
    Number::Int(value).is_splat_of(literal)
        || value != 0 && Number::Float(value as f64).is_splat_of(literal) && has_it()
}
