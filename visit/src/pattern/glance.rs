//! A first look at operands, which tells of most rules that they do not match.

use anfora_ir::{Expr, ExprId, Literal, Number, OpId};
use smallvec::SmallVec;

use crate::pattern::compile::{Compiled, Rest, Step, Test};
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

    /// Returns true if it may meet a step of a pattern: false only if it cannot.
    pub(crate) fn may_meet(self, pattern: &Compiled, mut step: u32) -> bool {
        // What stands behind more names and conditions than this is looked at properly.
        for _ in 0..8 {
            match pattern.nodes[step as usize] {
                Step::Capture { inner, .. } | Step::Filter { inner, .. } => step = inner,
                Step::Literal(test) => {
                    return match (self, &pattern.tests[test as usize]) {
                        // Of the author, and is asked once.
                        (Seen::Literal(_), Test::LiteralWhere(_)) => true,
                        (Seen::Literal(literal), test) => test.holds_for(literal),
                        _ => false,
                    };
                }
                Step::Op { ops, .. } => return matches!(self, Seen::Op(op) if pattern.contains(ops, op)),
                Step::Tuple(_) => return matches!(self, Seen::Tuple),
                Step::Nothing => return false,
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
    pub(crate) fn may_match(&self, pattern: &Compiled) -> bool {
        let mut step = pattern.root;
        for _ in 0..8 {
            match pattern.nodes[step as usize] {
                Step::Capture { inner, .. } | Step::Filter { inner, .. } => step = inner,
                Step::Op { operands, swap, .. } => {
                    let steps = &pattern.children[operands.start as usize..][..operands.len as usize];
                    if steps.len() != self.operands.len() {
                        // `none` at the end may be left out.
                        return steps.len() > self.operands.len() || operands.rest != Rest::None;
                    }
                    let meet = |(seen, &step): (&Seen<'_>, &u32)| seen.may_meet(pattern, step);
                    return self.operands.iter().zip(steps).all(meet)
                        || swap && self.operands.iter().zip(steps.iter().rev()).all(meet);
                }
                _ => return true,
            }
        }
        true
    }
}

impl Test {
    /// Returns true if a literal passes a test of literals.
    pub(crate) fn holds_for(&self, literal: &Literal) -> bool {
        match self {
            Test::Number(number) => number.is_splat_of(literal),
            Test::Is(wanted) => wanted == literal,
            Test::LiteralWhere(test) => test(literal),
            Test::Whole(value) => is_whole(literal, *value),
            Test::Splat(scalar) => {
                scalar.dtype() == literal.dtype()
                    && scalar.as_splat().is_some_and(|bits| literal.as_splat() == Some(bits))
            }
            _ => false,
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
