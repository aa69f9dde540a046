//! Normalizations that are written as several operators.

use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{are_last_axes, extents, float_attribute, number, rank, tensor};

/// Returns the rules for normalizations.
pub(super) fn normalizations() -> RuleSet {
    layer_norms().and(rms_norms())
}

/// Returns the rules for `(x - mean) / √(variance + epsilon) * scale`, and for the bias.
fn layer_norms() -> RuleSet {
    rules![
        "multiply(divide(subtract(%x, mean(%x, axis=%a, keepdims=true)), sqrt(add(mean(power(subtract(%x, mean(%x, axis=%a, keepdims=true)), 2), axis=%a, keepdims=true), %e))), %s)"
            => "nn.layer_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(divide(subtract(%x, mean(%x, axis=%a, keepdims=true)), sqrt(add(mean(square(subtract(%x, mean(%x, axis=%a, keepdims=true))), axis=%a, keepdims=true), %e))), %s)"
            => "nn.layer_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(divide(subtract(%x, mean(%x, axis=%a, keepdims=true)), sqrt(add(mean(multiply(subtract(%x, mean(%x, axis=%a, keepdims=true)), subtract(%x, mean(%x, axis=%a, keepdims=true))), axis=%a, keepdims=true), %e))), %s)"
            => "nn.layer_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "add(nn.layer_norm(%x, %s, axes=%a, epsilon=%e, statistics=none), %b)"
            => "nn.layer_norm(%x, %s, %b, axes=%a, epsilon=%e)", if |m| is_of_last_axes(m, "b") && m.is_last_use(),
    ]
}

/// Returns the rules for `x / √(mean(x²) + epsilon) * scale`.
fn rms_norms() -> RuleSet {
    rules![
        "multiply(divide(%x, sqrt(add(mean(power(%x, 2), axis=%a, keepdims=true), %e))), %s)"
            => "nn.rms_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(divide(%x, sqrt(add(mean(square(%x), axis=%a, keepdims=true), %e))), %s)"
            => "nn.rms_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(divide(%x, sqrt(add(mean(multiply(%x, %x), axis=%a, keepdims=true), %e))), %s)"
            => "nn.rms_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(multiply(%x, reciprocal(sqrt(add(mean(power(%x, 2), axis=%a, keepdims=true), %e)))), %s)"
            => "nn.rms_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(multiply(%x, reciprocal(sqrt(add(mean(square(%x), axis=%a, keepdims=true), %e)))), %s)"
            => "nn.rms_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
        "multiply(multiply(%x, reciprocal(sqrt(add(mean(multiply(%x, %x), axis=%a, keepdims=true), %e)))), %s)"
            => "nn.rms_norm(%x, %s, axes=%g, epsilon=%v)", if normalizes, let g = reduced_axes, let v = epsilon,
    ]
}

/// Returns true if a match normalizes `x` over its last axes `a`, with the scale `s`.
fn normalizes(m: &Match<'_>) -> bool {
    let Some(rank) = rank(m, "x") else { return false };
    m.is_float("x") && are_last_axes(m, "a", rank) && is_of_last_axes(m, "s") && m.is_last_use()
}

/// Returns true if a scale or bias has the extents of the axes `a` of `x`, all constants.
fn is_of_last_axes(m: &Match<'_>, name: &str) -> bool {
    let (Some(of), Some(from)) = (extents(m, name), extents(m, "x")) else { return false };
    let count = m.ints("a").map_or(1, |axes| axes.len());
    let dims = &m.program().0.types.dims;
    let same_type = tensor(m, name).map(|t| t.dtype) == tensor(m, "x").map(|t| t.dtype);
    let last = from.len().checked_sub(count).map(|first| &from[first..]);
    same_type && last == Some(of) && of.iter().all(|&extent| dims.as_constant(extent).is_some())
}

/// Returns the axes `a`.
fn reduced_axes(m: &Match<'_>) -> Option<Vec<i64>> {
    m.ints("a")
}

/// Returns the constant `e`, a positive number.
fn epsilon(m: &Match<'_>) -> Option<f64> {
    float_attribute(m, "x", number(m, "e").filter(|&epsilon| epsilon >= 0.0)?)
}
