//! Margins of zeros in front of convolutions.

use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{is_last_use, is_plus_zero, rank, short_list};

/// Returns the rules for margins that a convolution adds itself.
pub(super) fn windows() -> RuleSet {
    rules![
        "nn.conv1d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv1d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins,
        "nn.conv2d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins,
        "nn.conv3d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv3d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins,
        "nn.conv1d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv1d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins,
        "nn.conv2d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins,
        "nn.conv3d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv3d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins,
        "nn.conv1d(nn.pad(%x, %p, %z, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv1d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if pads_with_zero, let n = margins,
        "nn.conv2d(nn.pad(%x, %p, %z, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if pads_with_zero, let n = margins,
        "nn.conv2d(nn.pad(%x, %p, %z, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if pads_with_zero,
            let n = margins,
    ]
}

/// Returns true if the margin consists of the constant 0.
fn pads_with_zero(m: &Match<'_>) -> bool {
    is_plus_zero(m, "z") && m.is_last_use()
}

/// Returns the padding `q` of a convolution with the margins `p` of its operand added, if these are
/// not negative, and 0 on the axes of batch and channels.
fn margins(m: &Match<'_>) -> Option<Vec<i64>> {
    let rank = rank(m, "x")?;
    let spatial = rank.checked_sub(2)?;
    let added = short_list(m.literal("p")?).filter(|added| added.len() == 2 * rank)?;
    let old = if m.attr("q").is_some() { m.ints("q")? } else { vec![0; 2 * spatial] };
    if old.len() != 2 * spatial || added.iter().any(|&margin| margin < 0) {
        return None;
    }
    let (begins, ends) = added.split_at(rank);
    let is_inside = |margins: &[i64]| margins[..2] == [0, 0];
    let all = begins[2..].iter().chain(&ends[2..]);
    let sums: Option<Vec<i64>> = all.zip(&old).map(|(new, old)| new.checked_add(*old)).collect();
    sums.filter(|_| is_inside(begins) && is_inside(ends))
}
