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
//! Shapes     f(x)       =>   x       f: a cast, reshape, broadcast or transposition without effect
//!            g(f(x))    =>   x       f, g: transpositions or changes of axes, each other's inverse
//!            g(f(x))    =>   g(x)    f, g: reshapes; bitcasts
//! Never      A rule does not apply if its result is not the same, bit for bit, for every element
//!            type: with infinities, both zeros, integers that wrap, and NaN. Arithmetic makes
//!            every NaN the canonical one, so a rule replaces a float operation by x only if x is
//!            itself a result of arithmetic. A rule does not apply either if the result has another
//!            shape, or may have one because extents are unknown (`?`).
//! Not done   Nothing is reassociated or distributed, since this would change rounding.
//! Cost       One walk, which tries the rules of its operator at each node, and time linear in the
//!            changes. Idempotent.
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

use std::sync::LazyLock;

use anfora_ir::{Context, Function, Purity};
use anfora_manager::register_pass;
use anfora_visit::pattern::{Match, Outcome, PatternRewriteError, RuleSet};
use anfora_visit::rules;

use crate::from_rules::{TRACE_RULES, run_rules, simplify_by};

register_pass! {
    /// Removes operations that change nothing, and pairs of operations that cancel out
    pub SIMPLIFY_EXPR = FunctionPass("SimplifyExpr", 1);
    configs { TRACE_RULES }
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
    simplify_by(cx, function, purity, &RULES, false)
}

static RULES: LazyLock<RuleSet> = LazyLock::new(|| neutral().and(repeated()).and(signs()).and(shapes()));

/// Returns the rules for operands that change nothing.
fn neutral() -> RuleSet {
    rules![
        "add(%x, 0)" => "%x",
        // -0 + 0 is 0: of floats, only -0 is neutral.
        "add(%x, -0f)" => "%x", if keeps_nans,
        "add(%x, -0f16)" => "%x", if keeps_nans,
        "add(%x, -0bf16)" => "%x", if keeps_nans,
        "add(%x, -0f64)" => "%x", if keeps_nans,
        "subtract(%x, 0)" => "%x",
        // -0 - 0 is -0.
        "subtract(%x, 0f)" => "%x", if keeps_nans,
        "subtract(%x, 0f16)" => "%x", if keeps_nans,
        "subtract(%x, 0bf16)" => "%x", if keeps_nans,
        "subtract(%x, 0f64)" => "%x", if keeps_nans,
        "multiply(%x, 1)" => "%x", if keeps_nans,
        "divide(%x, 1)" => "%x", if keeps_nans,
        "floor_divide(%x, 1)" => "%x", if |m| m.is_integer("x"),
        "bitwise_or(%x, 0)" => "%x",
        "bitwise_xor(%x, 0)" => "%x",
        "bitwise_and(%x, -1)" => "%x",
        "left_shift(%x, 0)" => "%x",
        "right_shift(%x, 0)" => "%x",
        "logical_and(%x, true)" => "%x",
        "logical_or(%x, false)" => "%x",
        "logical_xor(%x, false)" => "%x",
        "where(true, %x, %_)" => "%x", if |m| m.has_type_of_root("x"),
        "where(false, %_, %x)" => "%x", if |m| m.has_type_of_root("x"),
        "add_n(%x)" => "%x", if keeps_nans,
        "mean_n(%x)" => "%x", if keeps_nans,
        "maximum_n(%x)" => "%x", if keeps_nans,
        "minimum_n(%x)" => "%x", if keeps_nans,
        "concat(%x)" => "%x",
        "nn.dropout(%x).0" => "%x",
        "nn.dropout(%x, %_).0" => "%x",
    ]
}

/// Returns the rules for two equal operands.
fn repeated() -> RuleSet {
    rules![
        "maximum(%x, %x)" => "%x", if keeps_nans,
        "minimum(%x, %x)" => "%x", if keeps_nans,
        "logical_and(%x, %x)" => "%x",
        "logical_or(%x, %x)" => "%x",
        "bitwise_and(%x, %x)" => "%x",
        "bitwise_or(%x, %x)" => "%x",
        "where(%_, %x, %x)" => "%x", if |m| m.has_type_of_root("x"),
        "negative(negative(%x))" => "%x", if keeps_nans,
        "logical_not(logical_not(%x))" => "%x",
        "bitwise_not(bitwise_not(%x))" => "%x",
        "abs(abs(%x))" => "abs(%x)",
        "sign(sign(%x))" => "sign(%x)",
        "floor(floor(%x))" => "floor(%x)",
        "ceil(ceil(%x))" => "ceil(%x)",
        "round(round(%x))" => "round(%x)",
        "trunc(trunc(%x))" => "trunc(%x)",
        "nn.relu(nn.relu(%x))" => "nn.relu(%x)",
    ]
}

/// Returns the rules for signs and negations that cancel out.
fn signs() -> RuleSet {
    rules![
        "subtract(%x, negative(%y))" => "add(%x, %y)",
        "add(%x, negative(%y))" => "subtract(%x, %y)",
        "multiply(negative(%x), negative(%y))" => "multiply(%x, %y)",
        // Of unsigned integers, `negative` wraps and `abs` does nothing.
        "abs(negative(%x))" => "abs(%x)", if |m| !m.is_unsigned("x"),
        "square(negative(%x))" => "square(%x)",
        "square(abs(%x))" => "square(%x)",
        "logical_not(equal(%x, %y))" => "not_equal(%x, %y)",
        "logical_not(not_equal(%x, %y))" => "equal(%x, %y)",
        "where(logical_not(%c), %x, %y)" => "where(%c, %y, %x)",
    ]
}

/// Returns the rules for operators that only move elements.
fn shapes() -> RuleSet {
    rules![
        "permute_dims(permute_dims(%x, axes=none), axes=none)" => "%x",
        "permute_dims(permute_dims(%x, axes=%p), axes=%q)" => "%x", if |m| is_identity(after(m, "p", "q")),
        "permute_dims(%x, axes=%p)" => "%x", if |m| is_identity(m.ints("p")),
        "reshape(%x, %_)" => "%x", if |m| m.has_type_of_root("x"),
        "reshape(reshape(%x, %_), %s)" => "reshape(%x, %s)", if copies_no_extent,
        "broadcast_to(%x, %_)" => "%x", if |m| m.has_type_of_root("x"),
        "squeeze(expand_dims(%x, axis=%a), axis=%a)" => "%x", if |m| m.has_type_of_root("x"),
        "expand_dims(squeeze(%x, axis=%a), axis=%a)" => "%x", if |m| m.has_type_of_root("x"),
        "astype(%x, dtype=%_)" => "%x", if |m| m.has_type_of_root("x"),
        "bitcast(%x, dtype=%_)" => "%x", if |m| m.has_type_of_root("x"),
        "bitcast(bitcast(%x), dtype=%t)" => "bitcast(%x, dtype=%t)",
    ]
}

/// Returns true if arithmetic on `x` would not change its bits: `x` is not a float, or it is the
/// result of an operator that computes, whose NaNs are canonical. Arithmetic would change any other
/// NaN.
fn keeps_nans(m: &Match<'_>) -> bool {
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
        "multiply",
        "negative",
        "nn.relu",
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
    !m.is_float("x") || m.op("x").is_some_and(|row| COMPUTING.contains(&&*row.name))
}

/// Returns the axes of the composition of two transpositions.
fn after(m: &Match<'_>, first: &str, second: &str) -> Option<Vec<i64>> {
    let (first, second) = (m.ints(first)?, m.ints(second)?);
    let rank = first.len() as i64;
    let place = |axis: i64| first.get(usize::try_from(axis.rem_euclid(rank.max(1))).ok()?).copied();
    second.into_iter().map(place).collect()
}

/// Returns true if a transposition leaves all axes where they are.
fn is_identity(axes: Option<Vec<i64>>) -> bool {
    axes.is_some_and(|axes| {
        let rank = axes.len() as i64;
        (0..rank).zip(&axes).all(|(place, &axis)| axis == place || axis == place - rank)
    })
}

/// Returns true if the shape `s` of a reshape is known and has no extent 0, which could mean the
/// extent of the operand.
fn copies_no_extent(m: &Match<'_>) -> bool {
    /// The greatest number of axes of a shape that is examined.
    const MOST_AXES: usize = 64;
    let shape = m.literal("s").filter(|shape| shape.shape().iter().all(|&axes| axes <= MOST_AXES));
    shape.and_then(|shape| shape.to_i64s()).is_some_and(|extents| !extents.contains(&0))
}
