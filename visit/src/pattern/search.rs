//! Matching with an explicit stack of goals, and of choices for backtracking.

use anfora_ir::work::tick;
use anfora_ir::{Expr, ExprId};

use crate::pattern::build::{Candidate, Children, Condition, LiteralCondition, Node, Wanted};
use crate::pattern::captures::{Captures, Found};
use crate::pattern::compile::{Compiled, NodeMeaning, Operands, Resolved, Rest};
use crate::pattern::glance::Seen;
use crate::pattern::guard::Match;
use crate::pattern::sight::{Sight, tail};

/// The result of an attempt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    Matched,
    Failed,
    /// It exceeded its budget of steps.
    GaveUp,
}

const END: u32 = u32::MAX;

#[derive(Copy, Clone)]
struct Goal {
    /// The node of the pattern.
    node: u32,
    expr: ExprId,
    /// The next goal.
    next: u32,
}

#[derive(Copy, Clone)]
enum Other {
    /// The alternatives of a list, from this number on.
    Alternative(Children, u32, ExprId),
    /// An existing goal.
    Goal(u32),
}

#[derive(Copy, Clone)]
struct Choice {
    other: Other,
    next: u32,
    goals: u32,
    trail: u32,
    deferred: u32,
    described: u32,
}

/// The memory of attempts, which is reused.
#[derive(Default)]
pub(crate) struct Search {
    goals: Vec<Goal>,
    choices: Vec<Choice>,
    found: Vec<Found>,
    /// Captures in the order in which they were made.
    trail: Vec<u32>,
    /// Conditions that refer to captures, checked at the end.
    deferred: Vec<(u32, ExprId)>,
    /// The calls, tuples and projections that nodes of the pattern matched.
    described: Vec<ExprId>,
    root: Option<ExprId>,
    /// True if the failures of an attempt are recorded.
    records_failures: bool,
    /// The failure after which most of the pattern had matched.
    deepest: Option<Failure>,
}

/// A part of a pattern that does not match.
pub(crate) struct Failure {
    /// The number of nodes and captures that had matched before.
    pub(crate) matched: usize,
    /// The node of the pattern.
    pub(crate) node: u32,
    pub(crate) expr: ExprId,
    /// True if everything else had matched, and a condition of the whole match did not hold.
    pub(crate) is_deferred: bool,
    /// The captures and the described nodes at that time.
    pub(crate) found: Vec<Found>,
    pub(crate) described: Vec<ExprId>,
}

/// Returns the number of steps that an attempt may take: enough for any pattern without many nested
/// choices.
pub(crate) fn default_budget(pattern: &Compiled) -> u64 {
    4096 + 64 * pattern.resolved.meanings.len() as u64
}

impl Search {
    /// Looks for a pattern at a node, in at most `budget` steps.
    pub(crate) fn attempt(&mut self, sight: Sight<'_>, pattern: &Compiled, root: ExprId, mut budget: u64) -> Attempt {
        self.goals.clear();
        self.choices.clear();
        self.trail.clear();
        self.deferred.clear();
        self.described.clear();
        self.found.clear();
        self.found.resize(pattern.names.list.len(), Found::Nothing);
        self.root = Some(root);
        self.deepest = None;
        let resolved = &pattern.resolved;
        let mut next = self.push(resolved.pattern.root, root, END);
        loop {
            let after = match next {
                END if self.deferred.iter().all(|&(at, expr)| self.passes_deferred(sight, pattern, at, expr)) => {
                    return Attempt::Matched;
                }
                END => {
                    if self.records_failures {
                        self.record_deferred(sight, pattern);
                    }
                    None
                }
                goal => {
                    let goal = self.goals[goal as usize];
                    let after = self.step(sight, resolved, goal, root, &mut budget);
                    if after.is_none() && self.records_failures {
                        self.record_failure(goal.node, goal.expr, false);
                    }
                    after
                }
            };
            if budget == 0 {
                return Attempt::GaveUp;
            }
            budget -= 1;
            tick();
            next = match after.or_else(|| self.backtrack(resolved)) {
                Some(next) => next,
                None => return Attempt::Failed,
            };
        }
    }

    /// Tries a pattern again that does not match, and returns the failure after which most of it
    /// had matched.
    pub(crate) fn deepest_failure(
        &mut self,
        sight: Sight<'_>,
        pattern: &Compiled,
        root: ExprId,
        budget: u64,
    ) -> Option<Failure> {
        self.records_failures = true;
        let attempt = self.attempt(sight, pattern, root, budget);
        self.records_failures = false;
        self.deepest.take().filter(|_| attempt == Attempt::Failed)
    }

    #[cold]
    fn record_failure(&mut self, node: u32, expr: ExprId, is_deferred: bool) {
        let matched = self.described.len() + self.trail.len();
        if self.deepest.as_ref().is_none_or(|d| (d.matched, d.is_deferred) < (matched, is_deferred)) {
            let (found, described) = (self.found.clone(), self.described.clone());
            self.deepest = Some(Failure { matched, node, expr, is_deferred, found, described });
        }
    }

    #[cold]
    fn record_deferred(&mut self, sight: Sight<'_>, pattern: &Compiled) {
        let failed = self.deferred.iter().find(|&&(at, expr)| !self.passes_deferred(sight, pattern, at, expr));
        if let Some(&(at, expr)) = failed {
            self.record_failure(at, expr, true);
        }
    }

    /// Returns the captures of the last attempt, which must have matched.
    pub(crate) fn captures<'m>(&'m self, pattern: &'m Compiled) -> Captures<'m> {
        let root = self.root.expect("an attempt was made");
        Captures { names: &pattern.names.list, found: &self.found, root }
    }

    /// Returns the calls, tuples and projections that the nodes of the pattern matched in the last
    /// attempt, which must have matched.
    pub(crate) fn described(&self) -> &[ExprId] {
        &self.described
    }

    #[inline]
    fn push(&mut self, node: u32, expr: ExprId, next: u32) -> u32 {
        self.goals.push(Goal { node, expr, next });
        self.goals.len() as u32 - 1
    }

    fn push_operands(&mut self, pattern: &Resolved, operands: Operands, list: &[ExprId], mut next: u32) -> u32 {
        for (&node, &operand) in pattern.pattern.list(operands.first).iter().zip(list).rev() {
            next = self.push(node, operand, next);
        }
        next
    }

    fn choose(&mut self, other: Other, next: u32) {
        self.choices.push(Choice {
            other,
            next,
            goals: self.goals.len() as u32,
            trail: self.trail.len() as u32,
            deferred: self.deferred.len() as u32,
            described: self.described.len() as u32,
        });
    }

    /// Returns to the last choice. Returns the goal of its alternative; `None` if no choice is
    /// left.
    fn backtrack(&mut self, pattern: &Resolved) -> Option<u32> {
        let choice = self.choices.pop()?;
        self.goals.truncate(choice.goals as usize);
        self.deferred.truncate(choice.deferred as usize);
        self.described.truncate(choice.described as usize);
        for slot in self.trail.drain(choice.trail as usize..) {
            self.found[slot as usize] = Found::Nothing;
        }
        Some(match choice.other {
            Other::Alternative(children, number, expr) => {
                self.alternative(pattern, children, number, expr, choice.next)
            }
            Other::Goal(goal) => goal,
        })
    }

    fn alternative(&mut self, pattern: &Resolved, children: Children, number: u32, expr: ExprId, next: u32) -> u32 {
        if number + 1 < children.len {
            self.choose(Other::Alternative(children, number + 1, expr), next);
        }
        self.push(pattern.pattern.list(children)[number as usize], expr, next)
    }

    /// Checks a goal. Returns the next goal, or `None` if this goal fails.
    fn step(
        &mut self,
        sight: Sight<'_>,
        pattern: &Resolved,
        goal: Goal,
        root: ExprId,
        budget: &mut u64,
    ) -> Option<u32> {
        let Goal { node: mut at, expr, next } = goal;
        let Sight { body, facts, .. } = sight;
        if expr != root && !facts.may_be_operand(body, expr) {
            return None;
        }
        loop {
            match (&pattern.pattern.nodes[at as usize], pattern.meanings[at as usize]) {
                (Node::Capture { inner, .. }, NodeMeaning::Slot(slot)) => {
                    self.bind(sight, slot, Found::One(expr), budget)?;
                    at = *inner;
                }
                (Node::Filter { inner, .. }, _) => {
                    self.passes(sight, pattern, at, expr, root, budget)?;
                    at = *inner;
                }
                (Node::Link(inner), _) => at = *inner,
                (Node::Any, _) => return Some(next),
                (Node::Either(children), _) => return Some(self.alternative(pattern, *children, 0, expr, next)),
                (Node::Literal(test), _) => {
                    let literal = sight.cx.literals.get(body.as_literal(facts.atom(expr))?);
                    let is_of_any_shape = matches!(test, LiteralCondition::Whole(_) | LiteralCondition::Splat(_));
                    let passes = test.holds_for(literal) && (!is_of_any_shape || sight.keeps_extents(literal, root));
                    return passes.then_some(next);
                }
                (Node::Global(_), NodeMeaning::Global(wanted)) => {
                    return matches!(body.expr(facts.atom(expr)), Expr::Global(g) if g == wanted).then_some(next);
                }
                (Node::NoneValue, _) => {
                    return matches!(body.expr(facts.atom(expr)), Expr::None).then_some(next);
                }
                (Node::Proj { tuple: inner, index }, _) => {
                    let value = facts.value(body, expr);
                    let Expr::Proj { tuple, index: found } = body.expr(value) else { return None };
                    if index.is_some_and(|wanted| wanted != found) {
                        return None;
                    }
                    self.described.push(value);
                    return Some(self.push(*inner, tuple, next));
                }
                (node, NodeMeaning::List { ops, mut operands, swap }) => {
                    let value = facts.value(body, expr);
                    let list = match (node, body.expr(value)) {
                        (Node::Op { .. }, Expr::CallOp { op, operands: list, .. }) if pattern.contains(ops, op) => {
                            operands = given(pattern, operands, list.len());
                            list
                        }
                        (Node::Call(_), Expr::Call { operands: list, .. }) | (Node::Tuple(_), Expr::Tuple(list)) => {
                            list
                        }
                        _ => return None,
                    };
                    self.described.push(value);
                    return match *body.operands(list) {
                        [a, b] if swap => self.either_order(sight, pattern, operands, [a, b], next),
                        _ => self.operands(sight, pattern, operands, value, next, budget),
                    };
                }
                // A global that the module does not know.
                _ => return None,
            }
            // Each capture or condition on the way is a step.
            *budget = budget.checked_sub(1)?;
        }
    }

    fn operands(
        &mut self,
        sight: Sight<'_>,
        pattern: &Resolved,
        operands: Operands,
        value: ExprId,
        next: u32,
        budget: &mut u64,
    ) -> Option<u32> {
        let (list, len) = (sight.body.operands_of(value), operands.first.len as usize);
        if list.len() < len || (list.len() > len && operands.rest == Rest::None) {
            return None;
        }
        if !sight.facts.is_anf && !list[len..].iter().all(|&o| sight.facts.may_be_operand(sight.body, o)) {
            return None;
        }
        if let Rest::Captured(slot) = operands.rest {
            self.bind(sight, slot, Found::Tail(value, len as u32), budget)?;
        }
        Some(self.push_operands(pattern, operands, list, next))
    }

    /// Returns the goal for the order of two operands that may match. If both orders may match, the
    /// other order becomes a choice for backtracking.
    fn either_order(
        &mut self,
        sight: Sight<'_>,
        pattern: &Resolved,
        operands: Operands,
        [a, b]: [ExprId; 2],
        next: u32,
    ) -> Option<u32> {
        let &[first, second] = pattern.pattern.list(operands.first) else { return None };
        let (sees_a, sees_b) = (Seen::of(sight, a), Seen::of(sight, b));
        let fits = |node, seen: Seen<'_>| seen.may_meet(pattern, node);
        let straight = fits(first, sees_a) && fits(second, sees_b);
        let swapped = a != b && fits(first, sees_b) && fits(second, sees_a);
        match (straight, swapped) {
            (false, false) => None,
            (false, true) => Some(self.push_operands(pattern, operands, &[b, a], next)),
            (true, swapped) => {
                if swapped {
                    let other = self.push_operands(pattern, operands, &[b, a], next);
                    self.choose(Other::Goal(other), next);
                }
                Some(self.push_operands(pattern, operands, &[a, b], next))
            }
        }
    }

    fn bind(&mut self, sight: Sight<'_>, slot: u32, new: Found, budget: &mut u64) -> Option<()> {
        match (self.found[slot as usize], new) {
            (Found::Nothing, _) => {
                self.found[slot as usize] = new;
                self.trail.push(slot);
                Some(())
            }
            (Found::Attr(old), Found::Attr(new)) => (old == new).then_some(()),
            (Found::One(old), Found::One(new)) => {
                (old == new || sight.facts.atom(old) == sight.facts.atom(new)).then_some(())
            }
            (Found::Tail(a, i), Found::Tail(b, j)) => {
                let (a, b) = (tail(sight.body, a, i), tail(sight.body, b, j));
                *budget = budget.saturating_sub(a.len() as u64);
                let mut pairs = a.iter().zip(b);
                (a.len() == b.len() && pairs.all(|(&a, &b)| sight.facts.atom(a) == sight.facts.atom(b))).then_some(())
            }
            _ => None,
        }
    }

    /// Checks the condition at a node of the pattern.
    fn passes(
        &mut self,
        sight: Sight<'_>,
        pattern: &Resolved,
        at: u32,
        expr: ExprId,
        root: ExprId,
        budget: &mut u64,
    ) -> Option<()> {
        let Sight { cx, body, facts } = sight;
        let Node::Filter { condition, .. } = &pattern.pattern.nodes[at as usize] else { return None };
        let attrs = || sight.call(expr);
        let passes = match (condition, pattern.meanings[at as usize]) {
            (Condition::UsedOnce, _) => sight.is_used_once(expr, root, budget),
            (Condition::Attr { name, value: Wanted::Is(value) }, _) => value.is_value_of(&attrs()?, name),
            (Condition::Attr { name, .. }, meaning) => {
                let value = cx.find_attr(attrs()?.attrs, name);
                match meaning {
                    NodeMeaning::Slot(slot) => return self.bind(sight, slot, Found::Attr(value), budget),
                    _ => value.is_none(),
                }
            }
            (Condition::AttrsWhere(test), _) => test(&attrs()?),
            (Condition::SameTypeAs(_) | Condition::Guard(_), _) => {
                self.deferred.push((at, expr));
                true
            }
            (Condition::TypeWhere(test), _) => test(&cx.types, body.type_of(expr)),
            (Condition::Where(test), _) => test(&Candidate { cx, body, expr, value: facts.value(body, expr) }),
            (Condition::Order, _) => false,
        };
        passes.then_some(())
    }

    fn passes_deferred(&self, sight: Sight<'_>, pattern: &Compiled, at: u32, expr: ExprId) -> bool {
        let resolved = &pattern.resolved;
        match (&resolved.pattern.nodes[at as usize], resolved.meanings[at as usize]) {
            (Node::Filter { condition: Condition::Guard(guard), .. }, _) => {
                (guard.test)(&Match { sight, captures: self.captures(pattern) })
            }
            (_, NodeMeaning::Slot(slot)) => match self.found[slot as usize] {
                Found::One(other) => sight.body.type_of(other) == sight.body.type_of(expr),
                _ => false,
            },
            _ => true,
        }
    }
}

/// Returns the operand patterns for a call with `count` operands: patterns for `none` at the end
/// match omitted operands.
fn given(pattern: &Resolved, mut operands: Operands, count: usize) -> Operands {
    while operands.first.len as usize > count && operands.rest == Rest::None {
        let Some(&last) = pattern.pattern.list(operands.first).last() else { break };
        if !matches!(pattern.pattern.nodes[pattern.pattern.through_links(last) as usize], Node::NoneValue) {
            break;
        }
        operands.first.len -= 1;
    }
    operands
}
