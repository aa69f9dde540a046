//! Activation functions that are written as several operators.

use anfora_ir::DType;
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::{float_attribute, is_last_use, is_near, is_plus_zero, number, tensor};

/// Returns the rules for activation functions.
pub(super) fn activations() -> RuleSet {
    gelus().and(tanh_gelus()).and(sigmoids())
}

/// Returns the rules for `x / 2 * (1 + erf(x / √2))`.
fn gelus() -> RuleSet {
    rules![
        "multiply(multiply(%x, add(erf(divide(%x, %r)), 1)), %h)" => "nn.gelu(%x)", if |m| halves(m) && divides(m),
        "multiply(multiply(%x, %h), add(erf(divide(%x, %r)), 1))" => "nn.gelu(%x)", if |m| halves(m) && divides(m),
        "multiply(%x, multiply(%h, add(erf(divide(%x, %r)), 1)))" => "nn.gelu(%x)", if |m| halves(m) && divides(m),
        "multiply(%x, add(multiply(erf(divide(%x, %r)), %h), %h))" => "nn.gelu(%x)", if |m| halves(m) && divides(m),
        "multiply(multiply(%x, add(erf(multiply(%x, %r)), 1)), %h)" => "nn.gelu(%x)", if |m| halves(m) && scales(m),
        "multiply(multiply(%x, %h), add(erf(multiply(%x, %r)), 1))" => "nn.gelu(%x)", if |m| halves(m) && scales(m),
        "multiply(%x, multiply(%h, add(erf(multiply(%x, %r)), 1)))" => "nn.gelu(%x)", if |m| halves(m) && scales(m),
        "multiply(%x, add(multiply(erf(multiply(%x, %r)), %h), %h))" => "nn.gelu(%x)", if |m| halves(m) && scales(m),
    ]
}

/// Returns the rules for `x / 2 * (1 + tanh(√(2 / π) * (x + 0.044715 * x³)))`.
fn tanh_gelus() -> RuleSet {
    rules![
        "multiply(multiply(%x, add(tanh(multiply(add(%x, multiply(power(%x, 3), %c)), %r)), 1)), %h)"
            => "nn.gelu(%x, approximate=\"tanh\")", if is_tanh_gelu,
        "multiply(multiply(%x, %h), add(tanh(multiply(add(%x, multiply(power(%x, 3), %c)), %r)), 1))"
            => "nn.gelu(%x, approximate=\"tanh\")", if is_tanh_gelu,
        "multiply(%x, multiply(%h, add(tanh(multiply(add(%x, multiply(power(%x, 3), %c)), %r)), 1)))"
            => "nn.gelu(%x, approximate=\"tanh\")", if is_tanh_gelu,
        "multiply(multiply(%x, add(tanh(multiply(add(%x, multiply(multiply(multiply(%x, %x), %x), %c)), %r)), 1)), %h)"
            => "nn.gelu(%x, approximate=\"tanh\")", if is_tanh_gelu,
        "multiply(multiply(%x, %h), add(tanh(multiply(add(%x, multiply(multiply(multiply(%x, %x), %x), %c)), %r)), 1))"
            => "nn.gelu(%x, approximate=\"tanh\")", if is_tanh_gelu,
        "multiply(%x, multiply(%h, add(tanh(multiply(add(%x, multiply(multiply(multiply(%x, %x), %x), %c)), %r)), 1)))"
            => "nn.gelu(%x, approximate=\"tanh\")", if is_tanh_gelu,
    ]
}

/// Returns the rules for functions of sigmoids, hard sigmoids and softplus.
fn sigmoids() -> RuleSet {
    rules![
        "multiply(%x, sigmoid(%x))" => "nn.silu(%x)", if is_last_use,
        "multiply(%x, sigmoid(multiply(%x, %a)))" => "nn.silu(%x, alpha=%v)", if is_last_use,
            let v = |m| float_attribute(m, "x", number(m, "a")?),
        "divide(clip(add(%x, %c), %l, %h), %d)" => "nn.hard_sigmoid(%x, alpha=%v, beta=%w)", if clips_to_one,
            let v = |m| float_attribute(m, "x", 1.0 / number(m, "d")?),
            let w = |m| float_attribute(m, "x", number(m, "c")? / number(m, "d")?),
        "multiply(%x, nn.hard_sigmoid(%x, alpha=%a, beta=%b))" => "nn.hard_swish(%x)",
            if |m| is_hard_swish(m) && m.is_last_use(),
        "divide(multiply(%x, clip(add(%x, %c), %l, %h)), %d)" => "nn.hard_swish(%x)", if clips_to_six,
        "multiply(%x, multiply(clip(add(%x, %c), %l, %h), %r))" => "nn.hard_swish(%x)", if clips_to_six_and_scales,
        "multiply(multiply(%x, clip(add(%x, %c), %l, %h)), %r)" => "nn.hard_swish(%x)", if clips_to_six_and_scales,
        "log(add(exp(%x), 1))" => "nn.softplus(%x)", if is_softplus,
        "add(nn.relu(%x), nn.softplus(negative(abs(%x))))" => "nn.softplus(%x)", if is_softplus,
        "multiply(%x, tanh(nn.softplus(%x)))" => "nn.mish(%x)", if is_last_use,
        "log(nn.softmax(%x, axis=%a, axes=%b))" => "nn.log_softmax(%x, axis=%a, axes=%b)", if is_last_use,
    ]
}

/// Returns true if nothing but the result of a softplus of `x` is used.
fn is_softplus(m: &Match<'_>) -> bool {
    runtimes_have_type(m) && m.has_type_of_root("x") && m.is_last_use()
}

/// Returns true if the elements of `x` are of float32 or float16. Softplus and the hard functions
/// of ONNX take bfloat16 only in later versions than the operators of their definitions do, and
/// onnxruntime has none of them for float64.
fn runtimes_have_type(m: &Match<'_>) -> bool {
    tensor(m, "x").is_some_and(|t| matches!(t.dtype, DType::Float32 | DType::Float16))
}

fn halves(m: &Match<'_>) -> bool {
    is_near(m, "h", 0.5) && m.has_type_of_root("x") && m.is_last_use()
}

fn divides(m: &Match<'_>) -> bool {
    is_near(m, "r", std::f64::consts::SQRT_2)
}

fn scales(m: &Match<'_>) -> bool {
    is_near(m, "r", std::f64::consts::FRAC_1_SQRT_2)
}

fn is_tanh_gelu(m: &Match<'_>) -> bool {
    let root = (2.0 / std::f64::consts::PI).sqrt();
    halves(m) && is_near(m, "r", root) && is_near(m, "c", 0.044_715)
}

/// Returns true for `clip(x + c, 0, d) / d`, which is between 0 and 1.
fn clips_to_one(m: &Match<'_>) -> bool {
    let upper = number(m, "h");
    runtimes_have_type(m)
        && is_plus_zero(m, "l")
        && upper.is_some_and(|upper| upper > 0.0)
        && upper == number(m, "d")
        && m.has_type_of_root("x")
        && m.is_last_use()
}

fn clips_to_six(m: &Match<'_>) -> bool {
    clips_to_one(m) && is_near(m, "c", 3.0) && is_near(m, "d", 6.0)
}

fn clips_to_six_and_scales(m: &Match<'_>) -> bool {
    runtimes_have_type(m)
        && is_plus_zero(m, "l")
        && is_near(m, "c", 3.0)
        && is_near(m, "h", 6.0)
        && is_near(m, "r", 1.0 / 6.0)
        && m.has_type_of_root("x")
        && m.is_last_use()
}

/// Returns true if the captured attributes are those of the hard sigmoid in `nn.hard_swish`.
fn is_hard_swish(m: &Match<'_>) -> bool {
    let is = |name, default: f64, wanted: f64| (m.float(name).unwrap_or(default) - wanted).abs() < 1e-7;
    is("a", 0.2, 1.0 / 6.0) && is("b", 0.5, 0.5)
}
