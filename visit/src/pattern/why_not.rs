//! The reasons why a pattern nearly matches.

use anfora_ir::{Expr, ExprId};

use crate::pattern::build::{Candidate, Condition, LiteralCondition, Node, OpNames, Wanted};
use crate::pattern::captures::Found;
use crate::pattern::compile::{Compiled, NodeMeaning};
use crate::pattern::search::{Failure, Search};
use crate::pattern::sight::Sight;
use crate::pattern::trace::node_text;

/// The steps that the test of a single use may take.
const STEPS: u64 = 256;

impl Search {
    /// Returns the condition at which a pattern fails that does not match at `root`, in the attempt
    /// that comes furthest, and the number of parts of the pattern that match before. Returns
    /// `None` if not even the operator at the root is one of the pattern's.
    #[cold]
    pub(crate) fn why_not(
        &mut self,
        sight: Sight<'_>,
        pattern: &Compiled,
        root: ExprId,
        budget: u64,
    ) -> Option<(usize, String)> {
        let failure = self.deepest_failure(sight, pattern, root, budget)?;
        let reason = Explanation { sight, pattern, failure: &failure, root }.reason()?;
        Some((if failure.is_deferred { usize::MAX } else { failure.matched }, reason))
    }
}

struct Explanation<'a> {
    sight: Sight<'a>,
    pattern: &'a Compiled,
    failure: &'a Failure,
    root: ExprId,
}

impl Explanation<'_> {
    fn reason(&self) -> Option<String> {
        let Explanation { sight, failure, root, .. } = *self;
        let Sight { body, facts, .. } = sight;
        let (expr, resolved) = (failure.expr, &self.pattern.resolved);
        let name = self.name(expr);
        if expr != root && !facts.may_be_operand(body, expr) {
            return Some(format!("{name} has effects, or a block"));
        }
        let mut at = failure.node;
        loop {
            match (&resolved.pattern.nodes[at as usize], resolved.meanings[at as usize]) {
                (Node::Capture { inner, .. }, NodeMeaning::Slot(slot)) => {
                    if let Found::One(other) = failure.found[slot as usize]
                        && facts.atom(other) != facts.atom(expr)
                    {
                        return Some(format!("{name} is not {}", self.name(other)));
                    }
                    at = *inner;
                }
                (Node::Filter { condition, inner }, meaning) => match self.condition(condition, meaning, &name) {
                    Some(reason) => return Some(reason),
                    None => at = *inner,
                },
                (Node::Link(inner), _) => at = *inner,
                (Node::Literal(test), _) => return Some(self.literal(test, &name)),
                (Node::Global(wanted), _) => return Some(format!("{name} is not `@{wanted}`")),
                (Node::NoneValue, _) => return Some(format!("{name} is given")),
                (Node::Proj { .. }, _) => return Some(format!("{name} is not the field that the rule wants")),
                (node, meaning) => return self.list(node, meaning, &name),
            }
        }
    }

    /// Returns the reason why a call or tuple does not match.
    fn list(&self, node: &Node, meaning: NodeMeaning, name: &str) -> Option<String> {
        let Explanation { sight: Sight { cx, body, facts }, failure, root, .. } = *self;
        let resolved = &self.pattern.resolved;
        let value = facts.value(body, failure.expr);
        let NodeMeaning::List { ops, operands, swap } = meaning else { return None };
        let is_of_kind = |value: ExprId| match (node, body.expr(value)) {
            (Node::Op { .. }, Expr::CallOp { op, .. }) => resolved.contains(ops, op),
            (Node::Call(_), Expr::Call { .. }) | (Node::Tuple(_), Expr::Tuple(_)) => true,
            _ => false,
        };
        if is_of_kind(value) {
            let text = node_text(cx, body, value);
            let parts = resolved.pattern.list(operands.first);
            if !swap || body.inputs(value).len() != parts.len() {
                return Some(format!("{text} has another number of operands"));
            }
            return Some(
                match parts.iter().filter_map(|&part| self.part_in_words(part)).collect::<Vec<_>>().as_slice() {
                    [] => format!("the operands of {text} fit in neither order"),
                    [wanted] => format!("no operand of {text} is {wanted}"),
                    [wanted, other] if wanted == other => format!("the operands of {text} are not both {wanted}"),
                    wanted => format!("the operands of {text} are in neither order {}", wanted.join(" and ")),
                },
            );
        }
        if failure.expr == root && failure.described.is_empty() {
            return None;
        }
        let bound = body.as_var(value).and_then(|var| facts.def_use.value(body, var));
        if bound.is_some_and(is_of_kind) {
            return Some(format!("patterns do not look through {name}, which has effects or is in another region"));
        }
        Some(format!("{name} is not {}", node_in_words(node)?))
    }

    /// Returns what a part of the pattern matches, in words; `None` if it matches anything.
    fn part_in_words(&self, mut part: u32) -> Option<String> {
        loop {
            match &self.pattern.resolved.pattern.nodes[part as usize] {
                Node::Capture { inner, .. } | Node::Filter { inner, .. } | Node::Link(inner) => part = *inner,
                node => return node_in_words(node),
            }
        }
    }

    fn literal(&self, test: &LiteralCondition, name: &str) -> String {
        let Sight { cx, body, facts } = self.sight;
        match body.as_literal(facts.atom(self.failure.expr)).map(|id| cx.literals.get(id)) {
            None => format!("{name} is not constant"),
            Some(literal) if test.holds_for(literal) => {
                format!("the extents of {} are not known, and {name} has several elements", self.name(self.root))
            }
            Some(_) => format!("{name} is another constant than the rule wants"),
        }
    }

    /// Returns the reason if a condition does not hold; `None` if it does.
    fn condition(&self, condition: &Condition, meaning: NodeMeaning, name: &str) -> Option<String> {
        let Explanation { sight, failure, root, .. } = *self;
        let Sight { cx, body, facts } = sight;
        let expr = failure.expr;
        let call = || node_text(cx, body, facts.value(body, expr));
        match condition {
            Condition::UsedOnce => {
                let mut steps = STEPS;
                (!sight.is_used_once(expr, root, &mut steps)).then(|| format!("{name} is used elsewhere"))
            }
            Condition::Attr { name: key, value } => {
                let Some(attrs) = sight.call(expr) else { return Some(format!("{name} has no attributes")) };
                let holds = match (value, meaning) {
                    (Wanted::Is(value), _) => value.is_value_of(&attrs, key),
                    (_, NodeMeaning::Slot(slot)) => match failure.found[slot as usize] {
                        Found::Attr(old) => old == cx.find_attr(attrs.attrs, key),
                        _ => true,
                    },
                    _ => cx.find_attr(attrs.attrs, key).is_none(),
                };
                (!holds).then(|| format!("{} has another `{key}`", call()))
            }
            Condition::AttrsWhere(test) => match sight.call(expr) {
                Some(attrs) if test(&attrs) => None,
                _ => Some(format!("the attributes of {} do not fit", call())),
            },
            Condition::TypeWhere(test) => (!test(&cx.types, body.type_of(expr)))
                .then(|| format!("the type of {name}, {}, does not fit", cx.type_text(body.type_of(expr)))),
            Condition::Where(test) => (!test(&Candidate { cx, body, expr, value: facts.value(body, expr) }))
                .then(|| format!("{name} does not meet a condition of the rule")),
            // Conditions of the whole match are checked last, when everything else holds.
            Condition::SameTypeAs(_) | Condition::Guard(_) if !failure.is_deferred => None,
            Condition::SameTypeAs(_) => match meaning {
                NodeMeaning::Slot(slot) => match failure.found[slot as usize] {
                    Found::One(other) if body.type_of(other) != body.type_of(expr) => {
                        Some(format!("{name} does not have the type of {}", self.name(other)))
                    }
                    _ => None,
                },
                _ => None,
            },
            Condition::Guard(guard) => Some(match sight.used_elsewhere(&failure.described, root) {
                Some(part) => format!("{}; {} is used elsewhere", guard.refusal(), self.name(part)),
                None => guard.refusal(),
            }),
            Condition::Order => None,
        }
    }

    /// Returns the name of the variable of an expression, or its text.
    fn name(&self, expr: ExprId) -> String {
        self.sight.name(expr)
    }
}

/// Returns what a node of a pattern matches, in words; `None` for a wildcard, and for a node that
/// only wraps others.
fn node_in_words(node: &Node) -> Option<String> {
    Some(match node {
        Node::Op { names: OpNames::One(name), .. } => format!("a call of `{name}`"),
        Node::Op { names, .. } => match names.listed() {
            [first, .., last] => format!("a call of `{first}`, `{last}` or the like"),
            [one] => format!("a call of `{one}`"),
            [] => "a call of an operator that the rule takes".to_string(),
        },
        Node::Tuple(_) => "a tuple".to_string(),
        Node::Call(_) => "a call of a function".to_string(),
        Node::Proj { .. } => "a field of a tuple".to_string(),
        // Floats have two zeros.
        Node::Literal(LiteralCondition::Whole(0)) => "the integer 0".to_string(),
        Node::Literal(LiteralCondition::Whole(number)) => format!("the constant {number}"),
        Node::Literal(_) => "a constant that the rule takes".to_string(),
        Node::Global(name) => format!("`@{name}`"),
        Node::NoneValue => "`none`".to_string(),
        Node::Any
        | Node::Rest
        | Node::Hole(_)
        | Node::Link(_)
        | Node::Either(_)
        | Node::Capture { .. }
        | Node::Filter { .. } => return None,
    })
}

impl Sight<'_> {
    /// Returns the name of the variable of an expression, or the text of the expression.
    pub(crate) fn name(&self, expr: ExprId) -> String {
        let Sight { cx, body, facts } = *self;
        let bound = || facts.let_of(body, expr).and_then(|binding| body.binding_name(cx, binding.id));
        match body.binding_name(cx, expr).or_else(bound) {
            Some(name) => format!("%{name}"),
            None => node_text(cx, body, expr),
        }
    }

    /// Returns one of the nodes of a match, other than its root, that is used outside of the match.
    pub(crate) fn used_elsewhere(&self, described: &[ExprId], root: ExprId) -> Option<ExprId> {
        let Sight { body, facts, .. } = *self;
        described.iter().copied().filter(|&part| part != root).find(|&part| {
            let link = facts.let_of(body, part).map_or(part, |binding| binding.var.expr());
            facts.def_use.users(link).any(|user| !described.contains(&user))
        })
    }
}
