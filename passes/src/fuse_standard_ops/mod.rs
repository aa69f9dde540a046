//! # FuseStandardOps
//!
//! ```text
//! Notation   x, a, b any values; s, c, k constants or values of suitable shape; e a small
//!            constant.
//! Needs      Nothing: any form.
//! Functions  x / 2 * (1 + erf(x / √2))                                =>   nn.gelu(x)
//!            x / 2 * (1 + tanh(√(2 / π) * (x + 0.044715 * x³)))
//!                                                       =>   nn.gelu(x, approximate="tanh")
//!            x * sigmoid(k * x)                         =>   nn.silu(x, alpha=k)
//!            clip(x + c, 0, d) / d                      =>   nn.hard_sigmoid(x)
//!            x * clip(x + 3, 0, 6) / 6                  =>   nn.hard_swish(x)
//!            log(exp(x) + 1)                            =>   nn.softplus(x)
//!            max(x, 0) + log(exp(-|x|) + 1)             =>   nn.softplus(x)
//!            x * tanh(nn.softplus(x))                   =>   nn.mish(x)
//!            log(nn.softmax(x))                         =>   nn.log_softmax(x)
//! Norms      d / √(mean(d²) + e) * s, d = x - mean(x)   =>   nn.layer_norm(x, s)
//!            nn.layer_norm(x, s) + c                    =>   nn.layer_norm(x, s, c)
//!            x / √(mean(x²) + e) * s                    =>   nn.rms_norm(x, s)
//!            over the last axes, with s and c of their extents.
//!            reshape(nn.instance_norm(reshape(x, [0, g, -1]), 1, 0), shape of x) * s + c
//!                                                       =>   nn.group_norm(x, s, c, num_groups=g)
//!            with one number of s and c for each channel, and whole channels in a group.
//! Products   matmul(a, b) + c                           =>   nn.gemm(a, b, c)
//!            matmul(a, b) * k, matmul(a, b) / k         =>   nn.gemm(a, b, alpha=k)
//!            matmul(transposed a, b)                    =>   nn.gemm(a, b, trans_a=true)
//!            and the same of nn.gemm and of b, for matrices of floats.
//!            einsum(a, b, subscripts="..ij,..jk->..ik") =>   matmul(a, b)
//! Attention  matmul(nn.softmax(matmul(q, transposed k) * s + c), v)
//!                                                       =>   nn.attention(q, k, v, c, scale=s)
//!            of rank 4, with or without a positive scale s and a mask c that is added; q, and k
//!            before or after its transposition, may be scaled too.
//! Windows    conv(nn.pad(x, zeros), w)                  =>   conv(x, w) with more padding
//!            nn.max_pool(nn.pad(x, lowest number))      =>   nn.max_pool(x) with more padding
//!            nn.max_pool(nn.pad(x, 0))                  =>   the same, if x is never below 0
//!            nn.avg_pool(nn.pad(x, 0))                  =>   nn.avg_pool(x) with more padding
//!            where each margin is narrower than the windows.
//! Never      If a part of the left side is used elsewhere, except in the rows for transposed
//!            operands: it would be computed twice.
//! Changes    Results, by rounding: an operator rounds once where its parts round each. Where a
//!            part overflows, the operator may return a number, and where a weight is infinite or
//!            NaN, a margin of zeros makes a NaN and padding does not. Where a mask hides all keys,
//!            or a window has only NaN or the lowest number, runtimes differ. onnxruntime refuses
//!            an attention over no keys and a pool over no elements.
//! Not done   Statistics that are computed in another type (casts in between).
//! Cost       One walk, which tries the rules of its operator at each node, and time linear in the
//!            changes. Idempotent.
//!
//! before     def @f(%x: Tensor[(4,), float32]) {    after   def @f(%x: Tensor[(4,), float32]) {
//!              let %a = sigmoid(%x);                          let %b = nn.silu(%x);
//!              let %b = multiply(%x, %a);                     tanh(%b)
//!              tanh(%b)                                     }
//!            }
//! ```
//!
//! An export to ONNX writes an operator that the version of the model does not have by its
//! definition, in as many nodes as the rules take.

mod activations;
mod attention;
mod normalizations;
mod pools;
mod products;
mod windows;

use std::sync::LazyLock;

use anfora_ir::{Context, Function, Purity};
use anfora_manager::register_pass;
use anfora_visit::pattern::{Outcome, PatternOptions, PatternRewriteError, RuleSet};

use self::activations::activations;
use self::attention::attention;
use self::normalizations::normalizations;
use self::pools::pools;
use self::products::products;
use self::windows::windows;
use crate::from_rules::{NEVER_MAKE, TRACE_RULES, run_rules, simplify_by};

register_pass! {
    /// Replaces several operators by one standard function that they compute; changes rounding
    pub FUSE_STANDARD_OPS = FunctionPass("FuseStandardOps", 3)
        .breaking(["primitive-operators"])
        .with_tolerance(1e-4);
    configs { TRACE_RULES, NEVER_MAKE }
    run |edit, module, cx| run_rules(edit, module, cx, &RULES)
}

/// Replaces several operators of a function by one that they compute, and returns the counts of
/// each rule.
///
/// # Errors
/// If the body is ill-formed. The body is unchanged then.
pub fn fuse_standard_ops(
    cx: &mut Context,
    function: &mut Function,
    purity: &Purity,
) -> Result<Outcome, PatternRewriteError> {
    simplify_by(cx, function, &RULES, &PatternOptions { purity: Some(purity), ..PatternOptions::default() })
}

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let all = [activations(), normalizations(), products(), attention(), windows(), pools()];
    all.into_iter().fold(RuleSet::new(), RuleSet::and)
});

/// Returns the rules of FuseStandardOps.
pub(crate) fn rules() -> &'static RuleSet {
    &RULES
}
