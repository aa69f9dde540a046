//! The versions of ONNX that have the composite operators.

/// The composite operators that ONNX has only from some version on. The others are in all versions
/// that anfora writes. `onnx/tests` compares the table with the conversions.
const SINCE: &[(&str, u32)] = &[
    ("nn.dropout", 7),
    ("nn.prelu", 7),
    ("nn.mean_variance_norm", 9),
    ("nn.shrink", 9),
    ("nn.thresholded_relu", 10),
    ("nn.celu", 12),
    ("nn.nll_loss", 12),
    ("nn.softmax_cross_entropy", 12),
    ("nn.batch_norm_training", 14),
    ("nn.hard_swish", 14),
    ("nn.layer_norm", 17),
    ("nn.group_norm", 18),
    ("nn.mish", 18),
    ("nn.gelu", 20),
    ("nn.attention", 23),
    ("nn.rms_norm", 23),
    ("nn.rotary_embedding", 23),
    ("nn.silu", 24),
    ("nn.causal_conv1d", 27),
    ("nn.swiglu", 28),
];

/// Returns the first version of the standard operators of ONNX that has a composite operator;
/// `None` if all versions have it, or if the operator is none of those of anfora.
///
/// Cost: one loop.
pub fn onnx_version_with(operator: &str) -> Option<u32> {
    SINCE.iter().find(|(name, _)| *name == operator).map(|&(_, since)| since)
}
