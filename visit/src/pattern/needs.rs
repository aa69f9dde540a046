//! The operators and constants that a body must have for a rule to apply.
//!
//! One look at the nodes of a body shows that none of the rules of a pass can apply, as is usual
//! for all runs of the pass but the first. The facts for matching are not computed then.

use anfora_ir::{Body, Context, DType, Expr, Literal, Number, OpId, bumpalo};
use rustc_hash::FxHashMap;

use crate::pattern::build::{LiteralCondition, Node};
use crate::pattern::compile::{Compiled, NodeMeaning, Ops};

/// The needs of one rule.
#[derive(Default)]
struct RuleNeeds {
    /// The operators that the pattern calls in every match.
    ops: Vec<OpId>,
    /// The numbers of the tests of constants, of which each must hold for some constant.
    constants: Vec<usize>,
}

/// The needs of all rules of a table.
#[derive(Default)]
pub(crate) struct Needs {
    rules: Vec<RuleNeeds>,
    /// The tests of constants, each once.
    tests: Vec<LiteralCondition>,
    /// The tests that hold for a tensor of one repeated element, by its element type and bits.
    by_element: FxHashMap<(DType, u64), Vec<usize>>,
    /// The other tests.
    others: Vec<usize>,
}

impl Needs {
    pub(crate) fn new<'p>(patterns: impl Iterator<Item = &'p Compiled>) -> Needs {
        let mut needs = Needs::default();
        for compiled in patterns {
            let mut rule = RuleNeeds::default();
            let pattern = &compiled.resolved.pattern;
            for at in pattern.reached(pattern.root, |node| !matches!(node, Node::Either(_))) {
                match (&pattern.nodes[at as usize], compiled.resolved.meanings[at as usize]) {
                    (Node::Op { .. }, NodeMeaning::List { ops: Ops::One(op), .. }) => rule.ops.push(op),
                    // The test is the author's and is called once, by matching.
                    (Node::Literal(LiteralCondition::Where(_)), _) => {}
                    (Node::Literal(test), _) => {
                        let known = needs.tests.iter().position(|other| is_same(other, test));
                        rule.constants.push(known.unwrap_or(needs.tests.len()));
                        if known.is_none() {
                            needs.tests.push(test.clone());
                        }
                    }
                    _ => {}
                }
            }
            needs.rules.push(rule);
        }
        for (number, test) in needs.tests.iter().enumerate() {
            match test {
                LiteralCondition::Splat(scalar) => {
                    let element = element_of(scalar);
                    element.into_iter().for_each(|e| needs.by_element.entry(e).or_default().push(number));
                }
                &LiteralCondition::Whole(value) => {
                    let scalars = DType::ALL.iter().filter(|dtype| dtype.has_kernels());
                    let scalars = scalars.filter_map(|&dtype| Number::Int(value).scalar(dtype));
                    for element in scalars.filter(|scalar| test.holds_for(scalar)).filter_map(|s| element_of(&s)) {
                        needs.by_element.entry(element).or_default().push(number);
                    }
                }
                _ => needs.others.push(number),
            }
        }
        needs
    }

    /// Returns false if no rule can apply in a body, and true if one may.
    pub(crate) fn may_be_met(&self, cx: &Context, body: &Body) -> bool {
        let scratch = cx.scratch();
        let mut has_op = bumpalo::vec![in &scratch; false; cx.ops.len()];
        for (_, expr) in body.exprs() {
            if let Expr::CallOp { op, .. } = expr {
                has_op[op.index()] = true;
            }
        }
        let has_ops = |rule: &&RuleNeeds| rule.ops.iter().all(|op| has_op.get(op.index()) == Some(&true));
        let mut possible = self.rules.iter().filter(has_ops).peekable();
        if possible.peek().is_none() || possible.clone().any(|rule| rule.constants.is_empty()) {
            return possible.peek().is_some();
        }
        let mut is_met = bumpalo::vec![in &scratch; false; self.tests.len()];
        for (_, expr) in body.exprs() {
            let Expr::Literal(id) = expr else { continue };
            let literal = cx.literals.get(id);
            if let Some(tests) = element_of(literal).and_then(|element| self.by_element.get(&element)) {
                tests.iter().for_each(|&test| is_met[test] = true);
            }
            for &test in &self.others {
                is_met[test] |= self.tests[test].holds_for(literal);
            }
        }
        possible.any(|rule| rule.constants.iter().all(|&test| is_met[test]))
    }
}

/// Returns the element type and the bits of the element of a tensor that repeats one number.
fn element_of(literal: &Literal) -> Option<(DType, u64)> {
    let (dtype, bytes) = (literal.dtype(), literal.as_splat()?);
    let mut wide = [0u8; 8];
    let size = (dtype.bits() / 8).min(8).min(bytes.len());
    wide[..size].copy_from_slice(&bytes[..size]);
    Some((dtype, u64::from_le_bytes(wide)))
}

/// Returns true if two tests hold for the same constants.
fn is_same(a: &LiteralCondition, b: &LiteralCondition) -> bool {
    match (a, b) {
        (LiteralCondition::Whole(a), LiteralCondition::Whole(b)) => a == b,
        (LiteralCondition::Splat(a), LiteralCondition::Splat(b)) => a == b,
        (LiteralCondition::Is(a), LiteralCondition::Is(b)) => a == b,
        (LiteralCondition::Number(a), LiteralCondition::Number(b)) => a == b,
        _ => false,
    }
}
