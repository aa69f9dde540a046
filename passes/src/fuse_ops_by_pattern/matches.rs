//! The matches of patterns in a function.

use anfora_ir::{Body, Context, Cursor, Expr, ExprId, Function, Purity, Step};
use anfora_manager::PassError;
use anfora_visit::pattern::Matcher;
use anfora_visit::{Binding, RewriteError};
use rustc_hash::{FxHashMap, FxHashSet};

use super::CompositePattern;

/// A value of a match.
#[derive(Copy, Clone, Debug)]
pub(super) struct Member {
    pub(super) value: ExprId,
    /// The binding of the value; `None` if it is the tail of a block.
    pub(super) binding: Option<Binding>,
}

impl Member {
    /// Returns the Let of the value, or the value itself if it is a tail.
    pub(super) fn at(&self) -> ExprId {
        self.binding.map_or(self.value, |binding| binding.id)
    }
}

/// A match of a pattern.
pub(super) struct Match {
    /// The number of the pattern.
    pub(super) pattern: usize,
    /// In program order; the last one is the result.
    pub(super) members: Vec<Member>,
}

/// Returns the matches of patterns in a function, for each pattern in program order. A value is in
/// one match at most: that of the first pattern, and there of the match that ends last.
///
/// # Errors
/// If a pattern is invalid, or if the function is not in A-normal form.
pub(super) fn find_matches(
    cx: &mut Context,
    function: &Function,
    patterns: &[CompositePattern],
    purity: &Purity,
) -> Result<Vec<Match>, PassError> {
    let body = &function.body;
    let values = MovableValues::of(cx, body, purity)?;
    let mut taken: FxHashSet<ExprId> = FxHashSet::default();
    let mut found = Vec::new();
    let explained: Vec<bool> = patterns.iter().map(|pattern| cx.rewrites.explains(&pattern.name)).collect();
    let mut misses: Vec<(ExprId, usize, String)> = Vec::new();
    let matchers = Matcher::of_patterns(cx, body, patterns.iter().map(|pattern| &pattern.pattern), Some(purity));
    for (number, (pattern, matcher)) in patterns.iter().zip(matchers).enumerate() {
        let invalid = |error| PassError::new(format!("the pattern `{}` is invalid: {error}", pattern.name));
        let mut matcher = matcher.map_err(invalid)?;
        let before = found.len();
        // The last node first: of the matches of a pattern with alternatives, the larger one ends
        // later.
        for member in values.order.iter().rev() {
            let is_taken = taken.contains(&member.value);
            let Some(parts) = matcher.own_parts(member.value).filter(|_| !is_taken) else {
                if explained[number] && !is_taken {
                    misses.extend(matcher.why_not(member.value).map(|why| (member.at(), number, why)));
                }
                continue;
            };
            match values.members(&parts, &taken) {
                Some(members) => {
                    taken.extend(&parts);
                    found.push(Match { pattern: number, members });
                }
                None if explained[number] => {
                    let why = "a part of the match has effects, or belongs to another match".to_string();
                    misses.push((member.at(), number, why));
                }
                None => {}
            }
        }
        found[before..].reverse();
    }
    for (at, number, why) in misses.into_iter().rev() {
        cx.nearly(body, at, &patterns[number].name, || why);
    }
    Ok(found)
}

/// The values of a function that may be computed later.
struct MovableValues {
    /// In program order.
    order: Vec<Member>,
    /// By value: its number in the order.
    numbers: FxHashMap<ExprId, usize>,
}

impl MovableValues {
    fn of(cx: &Context, body: &Body, purity: &Purity) -> Result<MovableValues, RewriteError> {
        let mut values = MovableValues { order: Vec::new(), numbers: FxHashMap::default() };
        let mut binding = None;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(cx, body, &cursor, step)?;
            match step {
                Step::Let(id) => binding = Binding::of(body, id),
                Step::Flat(value) if may_move(cx, body, purity, value) => {
                    let binding = binding.filter(|binding| binding.value == value);
                    values.numbers.insert(value, values.order.len());
                    values.order.push(Member { value, binding });
                }
                _ => {}
            }
        }
        Ok(values)
    }

    /// Returns the parts of a match in program order; `None` if one of them is taken, or cannot
    /// move.
    fn members(&self, parts: &[ExprId], taken: &FxHashSet<ExprId>) -> Option<Vec<Member>> {
        let number = |part: &ExprId| self.numbers.get(part).copied().filter(|_| !taken.contains(part));
        let mut numbers: Vec<usize> = parts.iter().map(number).collect::<Option<_>>()?;
        numbers.sort_unstable();
        Some(numbers.into_iter().map(|number| self.order[number]).collect())
    }
}

/// Returns true if a value may be computed later in its block.
fn may_move(cx: &Context, body: &Body, purity: &Purity, value: ExprId) -> bool {
    match body.expr(value) {
        Expr::CallOp { op, .. } => !cx.ops.facts(op).is_match_cast() && !purity.call_is_impure(cx, body, value),
        Expr::Call { .. } => !purity.call_is_impure(cx, body, value),
        Expr::Tuple(_) | Expr::Proj { .. } => true,
        _ => false,
    }
}
