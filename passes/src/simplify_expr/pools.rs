//! Margins in front of pools, which a pool adds itself.

use anfora_ir::{Attr, DTypeClass};
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use super::neutral::NEVER_MINUS_ZERO;
use crate::match_facts::{extents, has_op, narrow_margins, number, tensor};

/// Returns the rules for margins that change neither the largest element nor the sum of a window.
/// The margins are `p`, with the elements `z` or 0, and those of the pool are `q`. The sums are
/// `n`.
pub(super) fn pools() -> RuleSet {
    rules![
        "nn.max_pool1d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool1d(%x, pool_size=%k, strides=%s, padding=%n)", if is_lowest, let n = narrow_margins,
        "nn.max_pool1d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool1d(%x, pool_size=%k, strides=%s, padding=%n)", if zero_is_lowest, let n = narrow_margins,
        "nn.max_pool2d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool2d(%x, pool_size=%k, strides=%s, padding=%n)", if is_lowest, let n = narrow_margins,
        "nn.max_pool2d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool2d(%x, pool_size=%k, strides=%s, padding=%n)", if zero_is_lowest, let n = narrow_margins,
        "nn.max_pool3d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool3d(%x, pool_size=%k, strides=%s, padding=%n)", if is_lowest, let n = narrow_margins,
        "nn.max_pool3d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool3d(%x, pool_size=%k, strides=%s, padding=%n)", if zero_is_lowest, let n = narrow_margins,
        "nn.avg_pool1d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c)"
            => "nn.avg_pool1d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
            if |m| adds_to_sum(m) && number(m, "z") == Some(0.0), let n = narrow_margins,
        "nn.avg_pool1d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c)"
            => "nn.avg_pool1d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
            if adds_to_sum, let n = narrow_margins,
        "nn.avg_pool2d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c)"
            => "nn.avg_pool2d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
            if |m| adds_to_sum(m) && number(m, "z") == Some(0.0), let n = narrow_margins,
        "nn.avg_pool2d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c)"
            => "nn.avg_pool2d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
            if adds_to_sum, let n = narrow_margins,
        "nn.avg_pool3d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c)"
            => "nn.avg_pool3d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
            if |m| adds_to_sum(m) && number(m, "z") == Some(0.0), let n = narrow_margins,
        "nn.avg_pool3d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c)"
            => "nn.avg_pool3d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
            if adds_to_sum, let n = narrow_margins,
    ]
}

/// Returns true if the elements of the margins are the lowest of their type, or not above those of
/// `x` that each window has.
fn is_lowest(m: &Match<'_>) -> bool {
    if number(m, "z") == Some(0.0) {
        // -0 is below the 0 that a window may have.
        return zero_is_lowest(m);
    }
    let is_lowest = match tensor(m, "x").map(|t| (t.dtype.class(), t.dtype.bits())) {
        Some((DTypeClass::Float, _)) => number(m, "z") == Some(f64::NEG_INFINITY),
        Some((class @ (DTypeClass::Signed | DTypeClass::Unsigned), bits)) => {
            let lowest = if class == DTypeClass::Signed { -(1i128 << (bits - 1)) } else { 0 };
            let one = m.literal("z").filter(|literal| literal.element_count() == 1);
            one.and_then(|one| one.to_i128s()).is_some_and(|found| found == [lowest])
        }
        _ => false,
    };
    is_lowest && m.is_last_use()
}

/// Returns true if 0 is not above the elements of `x`, of which each window has one.
fn zero_is_lowest(m: &Match<'_>) -> bool {
    let dims = &m.program().0.types.dims;
    let has_elements = |&extent| dims.as_constant(extent).is_some_and(|extent| extent > 0);
    let is_positive = m.is_float("x") && has_op(m, "x", NEVER_MINUS_ZERO);
    let has_each = is_positive && extents(m, "x").is_some_and(|extents| extents.iter().skip(2).all(has_elements));
    (m.is_unsigned("x") || has_each) && m.is_last_use()
}

/// Returns true if a pool of means counts its own margins, or has none.
fn adds_to_sum(m: &Match<'_>) -> bool {
    let counts = matches!(m.attr("c"), Some(Attr::Bool(true)));
    (counts || m.ints("q").is_none_or(|own| own.iter().all(|&margin| margin == 0))) && m.is_last_use()
}
