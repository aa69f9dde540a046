//! Margins in front of convolutions and pools.

use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::fold_batch_norm::float_range;
use crate::match_facts::{is_last_use, is_plus_zero, margins_of_window, narrow_margins, number, tensor};

/// Returns the rules for margins that a convolution or pool adds itself.
pub(super) fn windows() -> RuleSet {
    rules![
        "nn.conv1d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv1d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins_of_window,
        "nn.conv3d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv3d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins_of_window,
        "nn.conv1d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv1d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins_of_window,
        "nn.conv3d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv3d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if is_last_use,
            let n = margins_of_window,
        "nn.conv1d(nn.pad(%x, %p, %z, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv1d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if pads_with_zero, let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, %z, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g)", if pads_with_zero, let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, %z, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g)"
            => "nn.conv2d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g)", if pads_with_zero,
            let n = margins_of_window,
        "nn.max_pool1d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool1d(%x, pool_size=%k, strides=%s, padding=%n)", if pads_with_lowest, let n = narrow_margins,
        "nn.max_pool2d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool2d(%x, pool_size=%k, strides=%s, padding=%n)", if pads_with_lowest, let n = narrow_margins,
        "nn.max_pool3d(nn.pad(%x, %p, %z, mode=none), pool_size=%k, strides=%s, padding=%q, dilation=none, ceil_mode=none)"
            => "nn.max_pool3d(%x, pool_size=%k, strides=%s, padding=%n)", if pads_with_lowest, let n = narrow_margins,
    ]
}

/// Returns true if the margin consists of the constant 0.
fn pads_with_zero(m: &Match<'_>) -> bool {
    is_plus_zero(m, "z") && m.is_last_use()
}

/// Returns true if the margin consists of the lowest finite number. Only infinities are below it.
fn pads_with_lowest(m: &Match<'_>) -> bool {
    let lowest = tensor(m, "x").and_then(|t| float_range(t.dtype)).map(|(largest, _)| -largest);
    lowest.is_some() && number(m, "z") == lowest && m.is_last_use()
}
