//! Normalizations that are written as several operators.

use anfora_ir::Literal;
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{are_last_axes, extents, float_attribute, is_extent, number, rank, short_list, tensor};

/// Returns the rules for normalizations.
pub(super) fn normalizations() -> RuleSet {
    layer_norms().and(rms_norms()).and(group_norms())
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

/// Returns the rules for groups of channels, which a reshape makes the channels of an instance
/// normalization that does not scale.
fn group_norms() -> RuleSet {
    rules![
        "add(multiply(reshape(nn.instance_norm(reshape(%x, %t, allowzero=none), %o, %z, epsilon=%e, axis=none), %q), %s), %b)"
            => "nn.group_norm(%x, %u, %v, num_groups=%g, epsilon=%e)", if normalizes_groups,
            let u = |m| by_channel(m, "s"), let v = |m| by_channel(m, "b"), let g = groups,
    ]
}

/// Returns true if a match normalizes groups of the channels of `x`, with scales and biases after
/// that.
fn normalizes_groups(m: &Match<'_>) -> bool {
    let is_plain = number(m, "o") == Some(1.0) && number(m, "z") == Some(0.0);
    is_plain && m.has_type_of_root("x") && m.is_last_use()
}

/// Returns the number of groups into which the reshape to `t` divides the channels of `x`, if each
/// has whole channels of one batch.
fn groups(m: &Match<'_>) -> Option<i64> {
    let (Some(&[batch, groups, size]), Some(&[n, c, ref inner @ ..])) =
        (m.literal("t").and_then(short_list).as_deref(), extents(m, "x"))
    else {
        return None;
    };
    let dims = &m.program().0.types.dims;
    let channels = dims.as_constant(c).filter(|&channels| groups > 0 && channels > 0 && channels % groups == 0)?;
    let elements = || inner.iter().try_fold(channels, |count, &extent| count.checked_mul(dims.as_constant(extent)?));
    let keeps_batch = match batch {
        0 => true,
        -1 => size > 0 && elements() == size.checked_mul(groups),
        _ => is_extent(m, n, batch),
    };
    keeps_batch.then_some(groups)
}

/// Returns a constant with one element for each channel of `x`, in place of the constant `name`
/// that the result of a normalization is scaled or shifted by.
fn by_channel(m: &Match<'_>, name: &str) -> Option<Literal> {
    let literal = m.literal(name)?;
    let (&[_, c, ref inner @ ..], own) = (extents(m, "x")?, literal.shape()) else { return None };
    let channels = own.len().checked_sub(inner.len() + 1)?;
    let is_by_channel = own.iter().enumerate().all(|(axis, &extent)| axis == channels || extent == 1);
    let fits = is_by_channel && is_extent(m, c, i64::try_from(own[channels]).ok()?);
    if fits { literal.reshaped(&[own[channels]]).ok() } else { None }
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
