//! Matching: an explicit stack of goals, and of choices to come back to.

use anfora_ir::work::tick;
use anfora_ir::{AttrId, AttrReader, Body, Context, Expr, ExprId, Literal};

use crate::pattern::build::{Candidate, Children};
use crate::pattern::captures::{Captures, Found};
use crate::pattern::compile::{Compiled, Operands, Rest, Step, Test};
use crate::pattern::facts::Facts;
use crate::pattern::glance::Seen;
use crate::pattern::guard::Match;

/// A program as matching sees it.
#[derive(Copy, Clone)]
pub(crate) struct Sight<'a> {
    pub(crate) cx: &'a Context,
    pub(crate) body: &'a Body,
    pub(crate) facts: &'a Facts,
}

impl Sight<'_> {
    /// Returns true if an expression is used once, and in the block in which it is computed.
    fn is_used_once(&self, mut id: ExprId, root: ExprId, budget: &mut u64) -> bool {
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

    /// Returns true if a literal does not have a say in the extents of a match at `root`, but for
    /// what the types say: it is a scalar, or these extents are known. Of an operand of unknown
    /// extents it is not known what a tensor of several elements makes.
    fn keeps_extents(&self, literal: &Literal, root: ExprId) -> bool {
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

/// How an attempt ended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    Matched,
    Failed,
    /// It took more steps than it may.
    GaveUp,
}

const END: u32 = u32::MAX;

#[derive(Copy, Clone)]
struct Goal {
    step: u32,
    expr: ExprId,
    /// The goal after it.
    next: u32,
}

#[derive(Copy, Clone)]
enum Other {
    /// The alternatives of a list from this number on.
    Alternative(Children, u32, ExprId),
    /// The operands of a node the other way around.
    Swapped(Operands, ExprId),
}

#[derive(Copy, Clone)]
struct Choice {
    other: Other,
    next: u32,
    goals: u32,
    trail: u32,
    deferred: u32,
}

#[derive(Copy, Clone, PartialEq)]
enum Bound {
    Nothing,
    One(ExprId),
    /// The operands of a node from a number on.
    Tail(ExprId, u32),
    /// The value of an attribute; `None` is its default.
    Attr(Option<AttrId>),
}

/// Room for attempts, which take none of their own once it is large enough.
#[derive(Default)]
pub(crate) struct Search {
    goals: Vec<Goal>,
    choices: Vec<Choice>,
    bound: Vec<Bound>,
    /// Captures in the order in which they were bound.
    trail: Vec<u32>,
    /// Tests that speak of captures, for the end.
    deferred: Vec<(u32, ExprId)>,
    found: Vec<Found>,
    root: Option<ExprId>,
}

/// Steps that an attempt may take: enough for any pattern that does not have many ways to match in
/// each other.
pub(crate) fn default_budget(pattern: &Compiled) -> u64 {
    4096 + 64 * pattern.nodes.len() as u64
}

impl Search {
    /// Looks for a pattern at a node, in at most `budget` steps.
    pub(crate) fn attempt(&mut self, sight: Sight<'_>, pattern: &Compiled, root: ExprId, mut budget: u64) -> Attempt {
        self.goals.clear();
        self.choices.clear();
        self.trail.clear();
        self.deferred.clear();
        self.bound.clear();
        self.bound.resize(pattern.captures.len(), Bound::Nothing);
        self.root = Some(root);
        let mut next = self.push(pattern.root, root, END);
        loop {
            let after = match next {
                END => {
                    self.keep();
                    if self.deferred.iter().all(|&(test, expr)| self.passes_deferred(sight, pattern, test, expr)) {
                        return Attempt::Matched;
                    }
                    None
                }
                goal => self.step(sight, pattern, self.goals[goal as usize], root, &mut budget),
            };
            if budget == 0 {
                return Attempt::GaveUp;
            }
            budget -= 1;
            tick();
            next = match after.or_else(|| self.backtrack(sight.body, pattern)) {
                Some(next) => next,
                None => return Attempt::Failed,
            };
        }
    }

    /// What the last attempt, which matched, captured.
    pub(crate) fn captures<'m>(&'m self, pattern: &'m Compiled) -> Captures<'m> {
        let root = self.root.expect("an attempt was made");
        Captures { names: &pattern.captures, found: &self.found, root }
    }

    fn keep(&mut self) {
        self.found.clear();
        self.found.extend(self.bound.iter().map(|bound| match *bound {
            Bound::Nothing => Found::Nothing,
            Bound::One(id) => Found::One(id),
            Bound::Tail(id, from) => Found::Tail(id, from),
            Bound::Attr(value) => Found::Attr(value),
        }));
    }

    #[inline]
    fn push(&mut self, step: u32, expr: ExprId, next: u32) -> u32 {
        self.goals.push(Goal { step, expr, next });
        self.goals.len() as u32 - 1
    }

    fn push_operands(&mut self, pattern: &Compiled, operands: Operands, list: &[ExprId], mut next: u32) -> u32 {
        let steps = &pattern.children[operands.start as usize..][..operands.len as usize];
        for (&step, &operand) in steps.iter().zip(list).rev() {
            next = self.push(step, operand, next);
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
        });
    }

    /// Goes back to the last choice; the goal there, if there is one.
    fn backtrack(&mut self, body: &Body, pattern: &Compiled) -> Option<u32> {
        let choice = self.choices.pop()?;
        self.goals.truncate(choice.goals as usize);
        self.deferred.truncate(choice.deferred as usize);
        for slot in self.trail.drain(choice.trail as usize..) {
            self.bound[slot as usize] = Bound::Nothing;
        }
        Some(match choice.other {
            Other::Alternative(children, number, expr) => {
                self.alternative(pattern, children, number, expr, choice.next)
            }
            Other::Swapped(operands, id) => match *body.operands_of(id) {
                [a, b] => self.push_operands(pattern, operands, &[b, a], choice.next),
                _ => return None,
            },
        })
    }

    fn alternative(&mut self, pattern: &Compiled, children: Children, number: u32, expr: ExprId, next: u32) -> u32 {
        if number + 1 < children.len {
            self.choose(Other::Alternative(children, number + 1, expr), next);
        }
        let step = pattern.children[(children.start + number) as usize];
        self.push(step, expr, next)
    }

    /// Does what a goal asks; the goal after it, or `None` if it is not met.
    fn step(
        &mut self,
        sight: Sight<'_>,
        pattern: &Compiled,
        goal: Goal,
        root: ExprId,
        budget: &mut u64,
    ) -> Option<u32> {
        let Goal { mut step, expr, next } = goal;
        let Sight { body, facts, .. } = sight;
        if expr != root && !facts.may_be_operand(body, expr) {
            return None;
        }
        loop {
            match pattern.nodes[step as usize] {
                Step::Capture { slot, inner } => {
                    self.bind(sight, slot, Bound::One(expr), budget)?;
                    step = inner;
                }
                Step::Filter { test, inner } => {
                    self.passes(sight, pattern, test, expr, root, budget)?;
                    step = inner;
                }
                Step::Any => return Some(next),
                Step::Either(children) => return Some(self.alternative(pattern, children, 0, expr, next)),
                Step::Nothing => return None,
                Step::Literal(test) => {
                    let literal = body.as_literal(sight.facts.atom(expr))?;
                    let literal = sight.cx.literals.get(literal);
                    let test = &pattern.tests[test as usize];
                    let passes = test.holds_for(literal)
                        && (!matches!(test, Test::Whole(_) | Test::Splat(_)) || sight.keeps_extents(literal, root));
                    return passes.then_some(next);
                }
                Step::Global(wanted) => {
                    let found = body.expr(sight.facts.atom(expr));
                    return matches!(found, Expr::Global(g) if g == wanted).then_some(next);
                }
                Step::NoneValue => {
                    return matches!(body.expr(sight.facts.atom(expr)), Expr::None).then_some(next);
                }
                Step::Op { ops, operands, swap } => {
                    let value = sight.facts.value(sight.body, expr);
                    let Expr::CallOp { op, operands: list, .. } = body.expr(value) else { return None };
                    if !pattern.contains(ops, op) {
                        return None;
                    }
                    let list = body.operands(list);
                    let operands = given(pattern, operands, list.len());
                    if swap && let &[a, b] = list {
                        return self.either_order(sight, pattern, operands, value, [a, b], next);
                    }
                    return self.operands(sight, pattern, operands, value, list, next, budget);
                }
                Step::Call(operands) => {
                    let value = sight.facts.value(sight.body, expr);
                    let Expr::Call { operands: list, .. } = body.expr(value) else { return None };
                    return self.operands(sight, pattern, operands, value, body.operands(list), next, budget);
                }
                Step::Tuple(operands) => {
                    let value = sight.facts.value(sight.body, expr);
                    let Expr::Tuple(list) = body.expr(value) else { return None };
                    return self.operands(sight, pattern, operands, value, body.operands(list), next, budget);
                }
                Step::Proj { tuple: inner, index } => {
                    let Expr::Proj { tuple, index: found } = body.expr(sight.facts.value(sight.body, expr)) else {
                        return None;
                    };
                    if index.is_some_and(|wanted| wanted != found) {
                        return None;
                    }
                    return Some(self.push(inner, tuple, next));
                }
            }
            // A row of names and conditions is a step each.
            *budget = budget.checked_sub(1)?;
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn operands(
        &mut self,
        sight: Sight<'_>,
        pattern: &Compiled,
        operands: Operands,
        value: ExprId,
        list: &[ExprId],
        next: u32,
        budget: &mut u64,
    ) -> Option<u32> {
        let len = operands.len as usize;
        if list.len() < len || (list.len() > len && operands.rest == Rest::None) {
            return None;
        }
        if !sight.facts.is_anf && !list[len..].iter().all(|&o| sight.facts.may_be_operand(sight.body, o)) {
            return None;
        }
        if let Rest::Captured(slot) = operands.rest {
            self.bind(sight, slot, Bound::Tail(value, len as u32), budget)?;
        }
        Some(self.push_operands(pattern, operands, list, next))
    }

    /// The two operands in the order in which they may match at all; where both may, the other
    /// order is a choice to come back to.
    #[allow(clippy::too_many_arguments)]
    fn either_order(
        &mut self,
        sight: Sight<'_>,
        pattern: &Compiled,
        operands: Operands,
        value: ExprId,
        [a, b]: [ExprId; 2],
        next: u32,
    ) -> Option<u32> {
        let start = operands.start as usize;
        let (first, second) = (pattern.children[start], pattern.children[start + 1]);
        let (sees_a, sees_b) = (Seen::of(sight, a), Seen::of(sight, b));
        let fits = |step, seen: Seen<'_>| seen.may_meet(pattern, step);
        let straight = fits(first, sees_a) && fits(second, sees_b);
        let swapped = a != b && fits(first, sees_b) && fits(second, sees_a);
        match (straight, swapped) {
            (false, false) => None,
            (false, true) => Some(self.push_operands(pattern, operands, &[b, a], next)),
            (true, swapped) => {
                if swapped {
                    self.choose(Other::Swapped(operands, value), next);
                }
                Some(self.push_operands(pattern, operands, &[a, b], next))
            }
        }
    }

    fn bind(&mut self, sight: Sight<'_>, slot: u32, new: Bound, budget: &mut u64) -> Option<()> {
        match (self.bound[slot as usize], new) {
            (Bound::Nothing, _) => {
                self.bound[slot as usize] = new;
                self.trail.push(slot);
                Some(())
            }
            (Bound::Attr(old), Bound::Attr(new)) => (old == new).then_some(()),
            (Bound::One(old), Bound::One(new)) => {
                (old == new || sight.facts.atom(old) == sight.facts.atom(new)).then_some(())
            }
            (Bound::Tail(a, i), Bound::Tail(b, j)) => {
                let (a, b) = (tail(sight.body, a, i), tail(sight.body, b, j));
                *budget = budget.saturating_sub(a.len() as u64);
                let mut pairs = a.iter().zip(b);
                (a.len() == b.len() && pairs.all(|(&a, &b)| sight.facts.atom(a) == sight.facts.atom(b))).then_some(())
            }
            _ => None,
        }
    }

    fn passes(
        &mut self,
        sight: Sight<'_>,
        pattern: &Compiled,
        test: u32,
        expr: ExprId,
        root: ExprId,
        budget: &mut u64,
    ) -> Option<()> {
        let Sight { cx, body, .. } = sight;
        let attrs = || match body.expr(sight.facts.value(sight.body, expr)) {
            Expr::CallOp { op, attrs, .. } => Some(AttrReader { cx, op, attrs }),
            _ => None,
        };
        let passes = match &pattern.tests[test as usize] {
            Test::UsedOnce => sight.is_used_once(expr, root, budget),
            Test::Attr { name, value } => value.is_value_of(&attrs()?, name),
            Test::AttrAbsent(name) => {
                let attrs = attrs()?;
                cx.find_attr(attrs.attrs, name).is_none()
            }
            Test::AttrInto { name, slot } => {
                let value = cx.find_attr(attrs()?.attrs, name);
                return self.bind(sight, *slot, Bound::Attr(value), budget);
            }
            Test::AttrsWhere(test) => test(&attrs()?),
            Test::SameTypeAs(_) | Test::Guard(_) => {
                self.deferred.push((test, expr));
                true
            }
            Test::TypeWhere(test) => test(&cx.types, body.type_of(expr)),
            Test::Where(test) => test(&Candidate { cx, body, expr, value: sight.facts.value(sight.body, expr) }),
            Test::Number(_) | Test::Is(_) | Test::LiteralWhere(_) | Test::Whole(_) | Test::Splat(_) => false,
        };
        passes.then_some(())
    }

    fn passes_deferred(&self, sight: Sight<'_>, pattern: &Compiled, test: u32, expr: ExprId) -> bool {
        match &pattern.tests[test as usize] {
            Test::SameTypeAs(slot) => match self.bound[*slot as usize] {
                Bound::One(other) => sight.body.type_of(other) == sight.body.type_of(expr),
                _ => false,
            },
            Test::Guard(guard) => guard(&Match { sight, captures: self.captures(pattern) }),
            _ => true,
        }
    }
}

/// The patterns for the operands of a call that has so many: `none` at the end is met by an operand
/// that is not there.
fn given(pattern: &Compiled, mut operands: Operands, count: usize) -> Operands {
    while operands.len as usize > count && operands.rest == Rest::None {
        let last = pattern.children[(operands.start + operands.len - 1) as usize];
        if !matches!(pattern.nodes[last as usize], Step::NoneValue) {
            break;
        }
        operands.len -= 1;
    }
    operands
}

pub(crate) fn tail(body: &Body, id: ExprId, from: u32) -> &[ExprId] {
    body.operands_of(id).get(from as usize..).unwrap_or(&[])
}
