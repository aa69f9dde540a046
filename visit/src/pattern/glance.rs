//! A first look at operands, which excludes most rules without matching.

use anfora_ir::{Expr, ExprId, Literal, Number, OpId};
use smallvec::SmallVec;

use crate::pattern::build::{LiteralCondition, Node};
use crate::pattern::compile::{NodeMeaning, Resolved, Rest};
use crate::pattern::sight::Sight;

/// An expression at first sight, with variables looked through.
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

    /// Returns false if the expression cannot match a node of a pattern, and true if it may.
    pub(crate) fn may_meet(self, pattern: &Resolved, mut at: u32) -> bool {
        // Nodes behind more captures and conditions than this are left to matching.
        for _ in 0..8 {
            match (&pattern.pattern.nodes[at as usize], pattern.meanings[at as usize]) {
                (Node::Capture { inner, .. } | Node::Filter { inner, .. } | Node::Link(inner), _) => at = *inner,
                // The test is the author's and is called once, by matching.
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

/// The operands of an operator call, each looked at once for all rules.
pub(crate) struct Glance<'a> {
    operands: SmallVec<[Seen<'a>; 4]>,
}

impl<'a> Glance<'a> {
    /// Looks at the operands of a node. Returns `None` if the node is not an operator call or has
    /// too many operands.
    pub(crate) fn of(sight: Sight<'a>, node: ExprId) -> Option<Glance<'a>> {
        /// Few patterns look at calls with more operands.
        const MOST: usize = 4;
        let Expr::CallOp { operands, .. } = sight.body.expr(node) else { return None };
        let list = sight.body.operands(operands);
        (list.len() <= MOST).then(|| Glance { operands: list.iter().map(|&o| Seen::of(sight, o)).collect() })
    }

    /// Returns false if a pattern cannot match at the node, and true if it may.
    pub(crate) fn may_match(&self, pattern: &Resolved) -> bool {
        let mut at = pattern.pattern.root;
        for _ in 0..8 {
            match (&pattern.pattern.nodes[at as usize], pattern.meanings[at as usize]) {
                (Node::Capture { inner, .. } | Node::Filter { inner, .. } | Node::Link(inner), _) => at = *inner,
                (Node::Op { .. }, NodeMeaning::List { operands, swap, .. }) => {
                    let parts = pattern.pattern.list(operands.first);
                    if parts.len() != self.operands.len() {
                        // A `none` at the end may be omitted.
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
    /// Returns true if a literal passes the test.
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

/// Returns true if all elements are this whole number, of whatever element type. A float that is
/// only near to the number does not count, and neither does a zero of floats, which have two zeros.
fn is_whole(literal: &Literal, value: i64) -> bool {
    let has_it = || Number::Int(value).scalar(literal.dtype()).is_some();
    Number::Int(value).is_splat_of(literal)
        || value != 0 && Number::Float(value as f64).is_splat_of(literal) && has_it()
}
