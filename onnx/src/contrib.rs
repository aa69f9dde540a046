//! Operators of `com.microsoft`, which onnxruntime has besides the standard ones, in place of
//! standard operators that compute the same.

use std::sync::Arc;

use anfora_ir::{DType, DimId};
use anfora_manager::{Declare, FunctionPass, Pass};
use anfora_passes::FromRules;
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

/// Returns the pass FuseContribOps, which replaces standard operators by operators of
/// `com.microsoft`. It runs on modules whose registry has the operators that an import keeps
/// ([`registry`](crate::registry)), after passes that have made `nn.gelu` and similar operators
/// from their parts. Nothing else reads a model with such operators than onnxruntime.
///
/// ```
/// use anfora_ir::{Source, parse_module};
/// use anfora_manager::{Pass, PassContext};
///
/// let text = "def @main(%x: Tensor[(n, 4), float32]) { nn.silu(%x, alpha=1.5) }";
/// let mut module = parse_module(Source::new("example", text), anfora_onnx::registry())?;
/// let cx = PassContext::builder().opt_level(3).build()?;
/// anfora_onnx::fuse_contrib_ops().apply(&mut module, &cx)?;
/// assert!(module.to_string().contains("onnx.com.microsoft.QuickGelu(%x, alpha=1.5)"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn fuse_contrib_ops() -> Arc<dyn Pass> {
    Arc::new(FunctionPass::from_rules("FuseContribOps", 3, rules()).with_tolerance(1e-4))
}

/// Returns the rules. They apply to elements of float32 and float16, which all of the operators
/// take.
fn rules() -> RuleSet {
    activations().and(normalizations()).and(products())
}

/// Returns true if a rule replaces an operator of ours, alone or with others.
pub(crate) fn replaces(native: &str) -> bool {
    rules().text().contains(&format!("{native}("))
}

fn activations() -> RuleSet {
    rules![
        "nn.gelu(add(%x, %b), approximate=none)" => "onnx.com.microsoft.BiasGelu(%x, %b)",
            if |m| is_taken(m, "x") && is_bias(m) && m.is_last_use(),
        "nn.gelu(add(%x, %b), approximate=\"tanh\")" => "onnx.com.microsoft.FastGelu(%x, %b)",
            if |m| is_taken(m, "x") && is_bias(m) && m.is_last_use(),
        "nn.gelu(%x, approximate=none)" => "onnx.com.microsoft.Gelu(%x)", if |m| is_taken(m, "x"),
        "nn.gelu(%x, approximate=\"tanh\")" => "onnx.com.microsoft.FastGelu(%x)", if |m| is_taken(m, "x"),
        "nn.silu(%x, alpha=%a)" => "onnx.com.microsoft.QuickGelu(%x, alpha=%v)", if |m| is_taken(m, "x"),
            let v = |m| Some(m.float("a").unwrap_or(1.0)),
    ]
}

fn normalizations() -> RuleSet {
    rules![
        "nn.layer_norm(add(%x, %y), %s, %b, axes=%a, epsilon=%e, statistics=none)"
            => "onnx.com.microsoft.SkipLayerNormalization(%x, %y, %s, %b, epsilon=%v)", if skips, let v = epsilon,
        "nn.layer_norm(add(%x, %y), %s, axes=%a, epsilon=%e, statistics=none)"
            => "onnx.com.microsoft.SkipLayerNormalization(%x, %y, %s, epsilon=%v)", if skips, let v = epsilon,
        "nn.rms_norm(add(%x, %y), %s, axes=%a, epsilon=%e)"
            => "onnx.com.microsoft.SkipSimplifiedLayerNormalization(%x, %y, %s, epsilon=%v)", if skips,
            let v = epsilon,
    ]
}

fn products() -> RuleSet {
    rules![
        "divide(matmul(%a, %b), %k)" => "onnx.com.microsoft.FusedMatMul(%a, %b, alpha=%n)", if multiplies,
            let n = |m| Some(1.0 / factor(m)?),
        "multiply(matmul(%a, %b), %k)" => "onnx.com.microsoft.FusedMatMul(%a, %b, alpha=%n)", if multiplies,
            let n = factor,
        "matmul(%a, permute_dims(%b, axes=%p))" => "onnx.com.microsoft.FusedMatMul(%a, %b, transB=%t)",
            if |m| is_product(m) && swaps(m, "b") && m.is_last_use(), let t = |_| Some(1i64),
        "matmul(permute_dims(%a, axes=%p), %b)" => "onnx.com.microsoft.FusedMatMul(%a, %b, transA=%t)",
            if |m| is_product(m) && swaps(m, "a") && m.is_last_use(), let t = |_| Some(1i64),
        "divide(onnx.com.microsoft.FusedMatMul(%a, %b, alpha=%s, transA=%t, transB=%u), %k)"
            => "onnx.com.microsoft.FusedMatMul(%a, %b, alpha=%n, transA=%t, transB=%u)", if |m| m.is_last_use(),
            let n = |m| Some(m.float("s").unwrap_or(1.0) / factor(m)?),
        "multiply(onnx.com.microsoft.FusedMatMul(%a, %b, alpha=%s, transA=%t, transB=%u), %k)"
            => "onnx.com.microsoft.FusedMatMul(%a, %b, alpha=%n, transA=%t, transB=%u)", if |m| m.is_last_use(),
            let n = |m| Some(m.float("s").unwrap_or(1.0) * factor(m)?),
    ]
}

/// Returns the extents of a capture of known rank whose elements the operators take.
fn extents<'m>(m: &Match<'m>, name: &str) -> Option<&'m [DimId]> {
    let tensor = m.program().0.types.as_tensor(m.ty(name)?)?;
    let is_taken = matches!(tensor.dtype, DType::Float32 | DType::Float16);
    tensor.shape.as_deref().filter(|_| is_taken)
}

fn is_taken(m: &Match<'_>, name: &str) -> bool {
    extents(m, name).is_some()
}

/// Returns true if `b` has one element for each along the last axis of `x`.
fn is_bias(m: &Match<'_>) -> bool {
    extents(m, "x").is_some_and(|x| is_list(m, "b", x))
}

/// Returns true if a capture has one element for each along the last of the extents `of`.
fn is_list(m: &Match<'_>, name: &str, of: &[DimId]) -> bool {
    let Some(&[extent]) = extents(m, name) else { return false };
    of.last() == Some(&extent) && m.program().0.types.dims.as_constant(extent).is_some()
}

/// Returns true if a normalization is of the last axis of the sum of two tensors of one shape and
/// of rank 2 or 3, which nothing else uses. The scale `s` and the bias `b` are lists.
fn skips(m: &Match<'_>) -> bool {
    let (Some(x), Some(y)) = (extents(m, "x"), extents(m, "y")) else { return false };
    let is_last = m.attr("a").is_none() || m.ints("a").is_some_and(|axes| axes == [-1] || axes == [x.len() as i64 - 1]);
    let is_known = x.iter().all(|&extent| extent != m.program().0.types.dims.unknown());
    let is_parameter = |name| m.ty(name).is_none() || is_list(m, name, x);
    let are_parameters = is_parameter("s") && is_parameter("b");
    x == y && is_known && are_parameters && (2..=3).contains(&x.len()) && is_last && m.is_last_use()
}

/// Returns the number that a normalization adds to the variance.
fn epsilon(m: &Match<'_>) -> Option<f64> {
    Some(m.float("e").unwrap_or(1e-5))
}

/// Returns true if `a` and `b` are float32 matrices, or the same number of them.
fn is_product(m: &Match<'_>) -> bool {
    let is_single =
        |name| m.ty(name).and_then(|ty| m.program().0.types.as_tensor(ty)).map(|t| t.dtype) == Some(DType::Float32);
    let rank = |name| extents(m, name).map_or(0, <[DimId]>::len);
    is_single("a") && is_single("b") && rank("a") >= 2 && rank("a") == rank("b")
}

/// Returns true if a product is scaled by one number, and nothing else uses it.
fn multiplies(m: &Match<'_>) -> bool {
    is_product(m) && m.is_last_use()
}

/// Returns the constant `k`, one number that is neither 0 nor infinite.
fn factor(m: &Match<'_>) -> Option<f64> {
    let literal = m.literal("k").filter(|literal| literal.element_count() == 1 && literal.rank() == 0)?;
    literal.as_float_splat().filter(|factor| factor.is_finite() && *factor != 0.0)
}

/// Returns true if the transposition `p` of a capture exchanges its last two axes.
fn swaps(m: &Match<'_>, name: &str) -> bool {
    let Some(rank) = extents(m, name).map(|extents| extents.len() as i64).filter(|&rank| rank >= 2) else {
        return false;
    };
    let count = |axis: i64| if axis < 0 { axis + rank } else { axis };
    let swapped = (0..rank - 2).chain([rank - 1, rank - 2]);
    match m.attr("p") {
        None => rank == 2,
        Some(_) => m.ints("p").is_some_and(|axes| axes.into_iter().map(count).eq(swapped)),
    }
}
