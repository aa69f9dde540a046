//! Reductions that keep their axes instead of adding them again.

use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{counted_axes, rank};

/// Returns the rules for axes that a reduction removes and the next operator adds, or keeps and the
/// next operator removes.
pub(super) fn reductions() -> RuleSet {
    rules![
        "expand_dims(sum(%x, axis=%a, keepdims=none), axis=%b)" => "sum(%x, axis=%a, keepdims=true)", if same_axes,
        "expand_dims(mean(%x, axis=%a, keepdims=none), axis=%b)" => "mean(%x, axis=%a, keepdims=true)", if same_axes,
        "expand_dims(prod(%x, axis=%a, keepdims=none), axis=%b)" => "prod(%x, axis=%a, keepdims=true)", if same_axes,
        "expand_dims(max(%x, axis=%a, keepdims=none), axis=%b)" => "max(%x, axis=%a, keepdims=true)", if same_axes,
        "expand_dims(min(%x, axis=%a, keepdims=none), axis=%b)" => "min(%x, axis=%a, keepdims=true)", if same_axes,
        "squeeze(sum(%x, axis=%a, keepdims=true), axis=%b)" => "sum(%x, axis=%a)", if same_axes,
        "squeeze(mean(%x, axis=%a, keepdims=true), axis=%b)" => "mean(%x, axis=%a)", if same_axes,
        "squeeze(prod(%x, axis=%a, keepdims=true), axis=%b)" => "prod(%x, axis=%a)", if same_axes,
        "squeeze(max(%x, axis=%a, keepdims=true), axis=%b)" => "max(%x, axis=%a)", if same_axes,
        "squeeze(min(%x, axis=%a, keepdims=true), axis=%b)" => "min(%x, axis=%a)", if same_axes,
    ]
}

/// Returns true if the lists `a` and `b` are the same axes of `x`, in any order, and not none. Axes
/// that are added again are counted in the result, which has as many axes as `x`.
fn same_axes(m: &Match<'_>) -> bool {
    let Some(rank) = rank(m, "x") else { return false };
    let axes = |name| {
        let mut axes = counted_axes(&m.ints(name)?, rank)?;
        axes.sort_unstable();
        Some(axes)
    };
    axes("a").is_some_and(|reduced| !reduced.is_empty() && axes("b") == Some(reduced))
}
