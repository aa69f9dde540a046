//! The operators and constants that a body must have for a rule to apply.
//!
//! One look at the nodes of a body shows that none of the rules of a pass can apply, as is usual
//! for all runs of the pass but the first. The facts for matching are not computed then.

use anfora_ir::{Body, Context, DType, EntityId, Expr, ExprId, Literal, Number, OpId, ScratchVec, bumpalo};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::pattern::build::{LiteralCondition, Node};
use crate::pattern::compile::{Compiled, NodeMeaning, Ops};

/// The needs of one rule.
#[derive(Default)]
struct RuleNeeds {
    /// Sets of operators, of each of which every match calls one.
    ops: Vec<SmallVec<[OpId; 1]>>,
    /// The numbers of the tests of constants, of which each must hold for some constant.
    constants: Vec<usize>,
}

/// The needs of all rules of a table.
#[derive(Default)]
pub(crate) struct Needs {
    rules: Vec<RuleNeeds>,
    /// The tests of constants, each once: the operator of which the constant is an operand, if the
    /// pattern says it, and the condition.
    tests: Vec<(Option<OpId>, LiteralCondition)>,
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
            let reached = pattern.reached(pattern.root, |node| !matches!(node, Node::Either(_)));
            // The operator of the call of which a node is an operand; `None` if there are several.
            let mut called: FxHashMap<u32, Option<OpId>> = FxHashMap::default();
            for &at in &reached {
                let NodeMeaning::List { ops, .. } = compiled.resolved.meanings[at as usize] else { continue };
                match ops {
                    Ops::None => {}
                    Ops::One(op) => {
                        rule.ops.push(smallvec![op]);
                        for operand in pattern.parts(at).map(|operand| pattern.through_names(operand)) {
                            let of = called.entry(operand).or_insert(Some(op));
                            *of = of.filter(|&other| other == op);
                        }
                    }
                    Ops::Set(set) => rule.ops.push(compiled.resolved.ops_of(set).into()),
                }
            }
            for &at in &reached {
                // The test of an author is called once, by matching.
                let Node::Literal(condition) = &pattern.nodes[at as usize] else { continue };
                if matches!(condition, LiteralCondition::Where(_)) {
                    continue;
                }
                let op = called.get(&at).copied().flatten();
                let known = needs.tests.iter().position(|(of, other)| *of == op && is_same(other, condition));
                rule.constants.push(known.unwrap_or(needs.tests.len()));
                if known.is_none() {
                    needs.tests.push((op, condition.clone()));
                }
            }
            needs.rules.push(rule);
        }
        for (number, (_, test)) in needs.tests.iter().enumerate() {
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
        // The variables that are bound to constants and to other variables.
        let mut atoms: ScratchVec<'_, (usize, ExprId)> = ScratchVec::new_in(&scratch);
        for (_, expr) in body.exprs() {
            match expr {
                Expr::CallOp { op, .. } => has_op[op.index()] = true,
                Expr::Let { var, value, .. } if matches!(body.expr(value), Expr::Literal(_) | Expr::Var { .. }) => {
                    atoms.push((var.expr().index(), value));
                }
                _ => {}
            }
        }
        atoms.sort_unstable_by_key(|&(var, _)| var);
        for i in 0..atoms.len() {
            match atoms.binary_search_by_key(&atoms[i].1.index(), |&(var, _)| var) {
                Ok(earlier) if earlier < i => atoms[i].1 = atoms[earlier].1,
                // The variables are not numbered in the order of their bindings.
                Ok(_) => return true,
                Err(_) => {}
            }
        }
        let is_called = |op: &OpId| has_op.get(op.index()) == Some(&true);
        let has_ops = |rule: &&RuleNeeds| rule.ops.iter().all(|ops| ops.iter().any(is_called));
        let mut possible = self.rules.iter().filter(has_ops).peekable();
        if possible.peek().is_none() || possible.clone().any(|rule| rule.constants.is_empty()) {
            return possible.peek().is_some();
        }
        let mut is_met = bumpalo::vec![in &scratch; false; self.tests.len()];
        for (id, expr) in body.exprs() {
            let op = if let Expr::CallOp { op, .. } = expr { Some(op) } else { None };
            for &operand in body.operands_of(id) {
                let atom = match atoms.binary_search_by_key(&operand.index(), |&(var, _)| var) {
                    Ok(at) => atoms[at].1,
                    Err(_) => operand,
                };
                let Expr::Literal(literal) = body.expr(atom) else { continue };
                let literal = cx.literals.get(literal);
                let fits = |test: usize| self.tests[test].0.is_none_or(|of| Some(of) == op);
                let by_element = element_of(literal).and_then(|element| self.by_element.get(&element));
                by_element.into_iter().flatten().filter(|&&test| fits(test)).for_each(|&test| is_met[test] = true);
                for &test in self.others.iter().filter(|&&test| fits(test)) {
                    is_met[test] = is_met[test] || self.tests[test].1.holds_for(literal);
                }
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
