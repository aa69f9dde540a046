//! The operators that ToMixedPrecision computes in 16 bits.
//!
//! The tables list them by policy ([`PrecisionPolicy`]). All other operators keep their element
//! types: sums over many elements, exponentials, powers, softmaxes, normalisations and losses,
//! whose intermediate results leave the range of `float16` or cancel; recurrent networks, whose
//! errors add up from step to step; and operators that ONNX has for `float32` alone.

use anfora_ir::PrecisionPolicy;

/// Products and convolutions.
const ALWAYS: &[&str] = &[
    "matmul",
    "nn.gemm",
    "einsum",
    "nn.attention",
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
    "nn.causal_conv1d",
];

/// Elementwise operators whose results are not much larger than their operands.
const FOLLOWING_ELEMENTWISE: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "divide",
    "maximum",
    "minimum",
    "add_n",
    "mean_n",
    "maximum_n",
    "minimum_n",
    "clip",
    "where",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "equal",
    "not_equal",
    "isnan",
    "negative",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "trunc",
    "sqrt",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "cos",
    "atan",
    "nn.relu",
    "nn.leaky_relu",
    "nn.prelu",
    "nn.thresholded_relu",
    "nn.elu",
    "nn.selu",
    "nn.gelu",
    "nn.silu",
    "nn.swiglu",
    "nn.hard_sigmoid",
    "nn.hard_swish",
    "nn.mish",
    "nn.softsign",
    "nn.shrink",
    "nn.batch_norm",
    "nn.dropout",
];

/// Operators that move or select elements, or read only the shape.
const FOLLOWING_MOVES: &[&str] = &[
    "astype",
    "reshape",
    "broadcast_to",
    "permute_dims",
    "expand_dims",
    "squeeze",
    "shape_of",
    "size",
    "concat",
    "split",
    "strided_slice",
    "dynamic_strided_slice",
    "take",
    "gather_elements",
    "gather_nd",
    "one_hot",
    "reverse_sequence",
    "nn.pad",
    "center_crop_pad",
    "nonzero",
    "compress",
    "unique",
    "nn.flatten",
    "tile",
    "tril",
    "triu",
    "eye_like",
    "nn.depth_to_space",
    "nn.space_to_depth",
    "nn.rotary_embedding",
    "image.resize",
    "max",
    "min",
    "argmax",
    "argmin",
    "topk",
    "nn.hardmax",
];

/// Pools whose windows are small, or whose results are elements or means of the operand.
const FOLLOWING_POOLS: &[&str] = &[
    "nn.max_pool1d",
    "nn.max_pool2d",
    "nn.max_pool3d",
    "nn.avg_pool1d",
    "nn.avg_pool2d",
    "nn.avg_pool3d",
    "nn.global_avg_pool1d",
    "nn.global_avg_pool2d",
    "nn.global_avg_pool3d",
    "nn.global_max_pool1d",
    "nn.global_max_pool2d",
    "nn.global_max_pool3d",
    "nn.max_pool_with_indices1d",
    "nn.max_pool_with_indices2d",
    "nn.max_pool_with_indices3d",
    "nn.max_unpool1d",
    "nn.max_unpool2d",
    "nn.max_unpool3d",
];

/// Returns the policy of an operator.
pub(crate) fn policy_of(operator: &str) -> PrecisionPolicy {
    if ALWAYS.contains(&operator) {
        return PrecisionPolicy::Always;
    }
    let following = [FOLLOWING_ELEMENTWISE, FOLLOWING_MOVES, FOLLOWING_POOLS];
    if following.into_iter().flatten().any(|&name| name == operator) {
        PrecisionPolicy::Follow
    } else {
        PrecisionPolicy::Never
    }
}
