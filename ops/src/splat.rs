//! Which calls give a splat whatever their size.

use anfora_ir::Literal;

/// Whether all results of a call of a standard operator on these operands (`None` for one that is left out) are splats, so that they take
/// the memory of one element each however large they are. Errs on the safe side: a call of which it says no may give a splat too.
pub fn result_is_splat(op: &str, operands: &[Option<&Literal>]) -> bool {
    let splat = |i: usize| match operands.get(i) {
        Some(Some(literal)) => literal.as_splat().is_some(),
        // Left out.
        _ => true,
    };
    let all = || (0..operands.len()).all(splat);
    match op {
        // One element for all by definition.
        "zeros" | "ones" | "full" => true,
        // Elements of operand 0 are moved, at the command of the others.
        "reshape" | "broadcast_to" | "take" => splat(0),
        "permute_dims" | "expand_dims" | "squeeze" | "split" | "strided_slice" => splat(0),
        "concat" => {
            let first = operands.first().copied().flatten().and_then(Literal::as_splat);
            first.is_some() && operands.iter().all(|o| o.and_then(Literal::as_splat) == first)
        }
        // Equal elements are computed from equal elements.
        "add"
        | "subtract"
        | "multiply"
        | "divide"
        | "floor_divide"
        | "mod"
        | "floor_mod"
        | "power"
        | "maximum"
        | "minimum"
        | "less"
        | "less_equal"
        | "greater"
        | "greater_equal"
        | "equal"
        | "not_equal"
        | "logical_and"
        | "logical_or"
        | "logical_xor"
        | "logical_not"
        | "where"
        | "negative"
        | "abs"
        | "sign"
        | "square"
        | "floor"
        | "ceil"
        | "round"
        | "trunc"
        | "exp"
        | "log"
        | "sqrt"
        | "rsqrt"
        | "tanh"
        | "sigmoid"
        | "erf"
        | "sin"
        | "cos"
        | "tan"
        | "asin"
        | "acos"
        | "atan"
        | "sinh"
        | "cosh"
        | "asinh"
        | "acosh"
        | "atanh"
        | "isnan"
        | "isinf"
        | "isfinite"
        | "astype"
        | "nn.relu"
        | "nn.leaky_relu"
        | "nn.gelu"
        | "sum"
        | "mean"
        | "prod"
        | "max"
        | "min"
        | "argmax"
        | "argmin"
        | "matmul"
        | "nn.batch_norm"
        | "nn.layer_norm"
        | "nn.softmax"
        | "nn.log_softmax"
        | "nn.dropout"
        | "nn.global_avg_pool1d"
        | "nn.global_avg_pool2d"
        | "nn.global_avg_pool3d" => all(),
        _ => false,
    }
}
