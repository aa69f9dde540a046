//! Margins in front of convolutions, which a convolution adds itself.

use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{is_last_use, is_plus_zero, margins_of_window};

/// Returns the rules for margins that a convolution adds itself.
pub(super) fn windows() -> RuleSet {
    rules![
        "nn.conv1d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv1d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if is_last_use,
            let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv2d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if is_last_use,
            let n = margins_of_window,
        "nn.conv3d(nn.pad(%x, %p, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv3d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if is_last_use,
            let n = margins_of_window,
        "nn.conv1d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv1d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if is_last_use,
            let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv2d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if is_last_use,
            let n = margins_of_window,
        "nn.conv3d(nn.pad(%x, %p, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv3d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if is_last_use,
            let n = margins_of_window,
        "nn.conv1d(nn.pad(%x, %p, %z, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv1d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if pads_with_zero,
            let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, %z, mode=none), %w, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv2d(%x, %w, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if pads_with_zero,
            let n = margins_of_window,
        "nn.conv2d(nn.pad(%x, %p, %z, mode=none), %w, %b, strides=%s, padding=%q, dilation=%d, groups=%g, data_layout=none, kernel_layout=%l)"
            => "nn.conv2d(%x, %w, %b, strides=%s, padding=%n, dilation=%d, groups=%g, kernel_layout=%l)", if pads_with_zero,
            let n = margins_of_window,
    ]
}

/// Returns true if the margin consists of the constant 0.
fn pads_with_zero(m: &Match<'_>) -> bool {
    is_plus_zero(m, "z") && m.is_last_use()
}
