//! Margins in front of pools, which a pool adds itself.

use anfora_ir::{Attr, DTypeClass};
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{extents, float_range, has_op, is_plus_zero, margins_of_window, number, tensor};

/// Operators that never return a float below 0.
const NEVER_NEGATIVE: &[&str] = &["abs", "exp", "nn.hard_sigmoid", "nn.relu", "nn.softmax", "sigmoid", "square"];

/// Returns the rules for pools along one to three axes.
pub(super) fn pools() -> RuleSet {
    pools_along!("1").and(pools_along!("2")).and(pools_along!("3"))
}

/// Makes the rules for margins that change neither the largest element nor the sum of a window, for
/// a number of axes. The margins are `p`, with the elements `z` or 0, and those of the pool are
/// `q`. The sums are `n`.
macro_rules! pools_along {
    ($axes:literal) => {
        rules![
            "nn.max_pool" $axes "d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none, layout=none)"
                => "nn.max_pool" $axes "d(%x, pool_size=%k, strides=%s, padding=%n)", if is_lowest,
                let n = narrow_margins,
            "nn.max_pool" $axes "d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none, layout=none)"
                => "nn.max_pool" $axes "d(%x, pool_size=%k, strides=%s, padding=%n)", if zero_is_lowest,
                let n = narrow_margins,
            "nn.avg_pool" $axes "d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c, layout=none)"
                => "nn.avg_pool" $axes "d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
                if |m| adds_to_sum(m) && is_plus_zero(m, "z"), let n = narrow_margins,
            "nn.avg_pool" $axes "d(nn.pad(%x, %p, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=%d, ceil_mode=none, count_include_pad=%c, layout=none)"
                => "nn.avg_pool" $axes "d(%x, pool_size=%k, strides=%s, padding=%n, dilation=%d, count_include_pad=true)",
                if adds_to_sum, let n = narrow_margins,
        ]
    };
}
use pools_along;

/// Returns true if the elements of the margins are the lowest of their type, the lowest finite
/// ones, or not above those of `x` that each window has.
fn is_lowest(m: &Match<'_>) -> bool {
    if is_plus_zero(m, "z") {
        return zero_is_lowest(m);
    }
    let Some(dtype) = tensor(m, "x").map(|t| t.dtype) else { return false };
    let is_lowest = match (dtype.class(), dtype.bits()) {
        (DTypeClass::Float, _) => {
            let lowest_finite = float_range(dtype).map(|(largest, _)| -largest);
            number(m, "z").is_some_and(|z| z == f64::NEG_INFINITY || Some(z) == lowest_finite)
        }
        (class @ (DTypeClass::Signed | DTypeClass::Unsigned), bits) => {
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
    let is_positive = m.is_float("x") && has_op(m, "x", NEVER_NEGATIVE);
    let has_each = is_positive && extents(m, "x").is_some_and(|extents| extents.iter().skip(2).all(has_elements));
    (m.is_unsigned("x") || has_each) && m.is_last_use()
}

/// Returns true if a pool of means counts its own margins, or has none.
fn adds_to_sum(m: &Match<'_>) -> bool {
    let counts = matches!(m.attr("c"), Some(Attr::Bool(true)));
    (counts || m.ints("q").is_none_or(|own| own.iter().all(|&margin| margin == 0))) && m.is_last_use()
}

/// Returns the margins of a pool of the size `k`, if each is narrower than the windows: onnxruntime
/// takes no wider ones. Each window then has an element of `x`, unless an extent of `x` is 0.
fn narrow_margins(m: &Match<'_>) -> Option<Vec<i64>> {
    let (margins, sizes) = (margins_of_window(m)?, m.ints("k")?);
    let (begins, ends) = margins.split_at_checked(sizes.len())?;
    let are_narrow = |margins: &[i64]| margins.iter().zip(&sizes).all(|(margin, size)| margin < size);
    (are_narrow(begins) && are_narrow(ends)).then_some(margins)
}
