//! # SimplifyExpr
//!
//! ```text
//! Notation   x, y, c any values; 1 the one of every element type, scalar or splat; 0 the zero of
//!            integers, and of floats the zero that is neutral; f, g operators.
//! Needs      Nothing: any form.
//! Neutral    x + 0, x - 0, x * 1, x / 1, x | 0, x ^ 0, x << 0, x >> 0, x & -1   =>   x
//!            x and true, x or false, x xor false, where(true, x, y)             =>   x
//! Repeated   max(x, x), min(x, x), x and x, x or x, x & x, x | x, where(c, x, x)   =>   x
//!            f(f(x))   =>   x       f: negative, logical_not, bitwise_not
//!            f(f(x))   =>   f(x)    f: abs, sign, floor, ceil, round, trunc, nn.relu
//! Signs      x - (-y)   =>   x + y         x + (-y)   =>   x - y       (-x) * (-y)   =>   x * y
//!            |-x|       =>   |x| (not of unsigned x)           (-x)^2, |x|^2   =>   x^2
//!            not x = y  =>   x != y        not x != y      =>   x = y
//!            integers: -(x - y)  =>   y - x        not x < y  =>   x >= y, and so on
//! Plus 0     x + 0.0    =>   x             x: the result of an operator that never returns -0
//! Casts      f(f(x))    =>   f(x)          the first cast keeps every number of its type
//! Bounds     relu, abs  =>   x             x: never below 0, as exp, sigmoid, nn.softmax
//!            clip(clip(x)), clip(relu(x)), relu(clip(x))   =>   clip(x), if the bounds allow it
//! Sums       f(x) without an axis, then with it again      =>   f(x, keepdims=true), and the other
//!                                          way round        f: sum, mean, prod, max, min
//! Shapes     f(x)       =>   x             f: a cast, reshape, broadcast, tiling or transposition
//!                                          without effect
//!            g(f(x))    =>   x             f, g: transpositions or changes of axes, inverse
//!            g(f(x))    =>   h(x)          f, g: two transpositions, squeezes, expansions of axes
//!                                          or broadcasts, which are one
//!            g(f(x))    =>   reshape(x)    f, g: reshapes, flattenings, changes of axes, and
//!                                          transpositions that move only extents of 1
//! Pieces     f(x)       =>   x             f: a slice, part, joint, margin or dropout without
//!                                          effect; a joint of all parts
//!            g(f(x))    =>   h(x)          f, g: slices along other axes; joints along one axis
//! Never      A slice or joint that is used elsewhere is not taken apart. A rule does not apply if
//!            its result is not the same, bit for bit, for every element type: with infinities,
//!            both zeros, integers that wrap, and NaN. Arithmetic makes every NaN the canonical
//!            one, so a rule replaces a float operation by x only if x is itself a result of
//!            arithmetic. A rule does not apply either if the result has another shape, or may have
//!            one because extents are unknown (`?`).
//! Not done   Nothing is reassociated or distributed, since this would change rounding.
//! Cost       One scan of the nodes, which shows if no rule can apply. Otherwise one walk, which
//!            tries the rules of its operator at each node, and time linear in the changes.
//!            Idempotent.
//!
//! before     def @f(%x: Tensor[(8,), float32]) {    after   def @f(%x: Tensor[(8,), float32]) {
//!              let %e = exp(%x);                              let %e = exp(%x);
//!              let %a = multiply(%e, 1f);                     tanh(%e)
//!              let %b = negative(negative(%a));             }
//!              tanh(%b)
//!            }
//! ```
//!
//! The pass counts the rewrites of each rule under the text of the rule. With the setting
//! `Rules.trace`, each change leaves a remark.

mod bounds;
mod casts;
mod neutral;
mod pieces;
mod reductions;
mod repeated;
mod signs;
mod views;

use std::sync::LazyLock;

use anfora_ir::{Context, Function, Purity};
use anfora_manager::register_pass;
use anfora_visit::pattern::{Match, Outcome, PatternOptions, PatternRewriteError, RuleSet};

use self::bounds::bounds;
use self::casts::casts;
use self::neutral::neutral;
use self::pieces::pieces;
use self::reductions::reductions;
use self::repeated::repeated;
use self::signs::signs;
use self::views::views;
use crate::from_rules::{NEVER_MAKE, TRACE_RULES, run_rules, simplify_by};
use crate::match_facts::has_op;

register_pass! {
    /// Removes operations that change nothing, and pairs of operations that cancel out
    pub SIMPLIFY_EXPR = FunctionPass("SimplifyExpr", 1);
    configs { TRACE_RULES, NEVER_MAKE }
    run |edit, module, cx| run_rules(edit, module, cx, &RULES)
}

/// Simplifies the expressions of a function, and returns the counts of each rule.
///
/// # Errors
/// If the body is ill-formed. The body is unchanged then.
pub fn simplify_expr(
    cx: &mut Context,
    function: &mut Function,
    purity: &Purity,
) -> Result<Outcome, PatternRewriteError> {
    simplify_by(cx, function, &RULES, &PatternOptions { purity: Some(purity), ..PatternOptions::default() })
}

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let all = [neutral(), repeated(), signs(), casts(), bounds(), reductions(), views(), pieces()];
    all.into_iter().fold(RuleSet::new(), RuleSet::and)
});

/// Returns the rules of SimplifyExpr.
pub(crate) fn rules() -> &'static RuleSet {
    &RULES
}

/// Returns true if arithmetic on `x` would not change its bits: `x` is not a float, or it is the
/// result of an operator that computes, whose NaNs are canonical. Arithmetic would change any other
/// NaN.
pub(super) fn keeps_nans(m: &Match<'_>) -> bool {
    const COMPUTING: &[&str] = &[
        "abs",
        "add",
        "ceil",
        "cos",
        "divide",
        "erf",
        "exp",
        "floor",
        "log",
        "matmul",
        "multiply",
        "negative",
        "nn.batch_norm",
        "nn.conv1d",
        "nn.conv2d",
        "nn.conv3d",
        "nn.gelu",
        "nn.gemm",
        "nn.hard_sigmoid",
        "nn.hard_swish",
        "nn.layer_norm",
        "nn.relu",
        "nn.silu",
        "nn.softmax",
        "reciprocal",
        "round",
        "rsqrt",
        "sigmoid",
        "sign",
        "sin",
        "sqrt",
        "square",
        "subtract",
        "tanh",
        "trunc",
    ];
    !m.is_float("x") || has_op(m, "x", COMPUTING)
}
