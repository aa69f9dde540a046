//! Bounds that hold already, and bounds of bounds.

use anfora_ir::{DType, DTypeClass, Literal};
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use crate::match_facts::tensor;

/// Returns the rules for lower and upper bounds. Bounds are compared with -0 before +0, as `clip`
/// and `nn.relu` do.
pub(super) fn bounds() -> RuleSet {
    rules![
        "nn.relu(exp(%x))" => "exp(%x)",
        "nn.relu(sigmoid(%x))" => "sigmoid(%x)",
        "nn.relu(nn.softmax(%x, axis=%a, axes=%b))" => "nn.softmax(%x, axis=%a, axes=%b)",
        // Of integers, both may wrap to a negative number.
        "nn.relu(abs(%x))" => "abs(%x)", if |m| m.is_float("x"),
        "nn.relu(square(%x))" => "square(%x)", if |m| m.is_float("x"),
        "abs(exp(%x))" => "exp(%x)",
        "abs(sigmoid(%x))" => "sigmoid(%x)",
        "abs(nn.relu(%x))" => "nn.relu(%x)",
        "clip(nn.relu(%x), %a, %b)" => "clip(%x, %a, %b)", if |m| at_least(bound(m, "a"), bound_of_zero()),
        "nn.relu(clip(%x, %a, %b))" => "clip(%x, %z, %b)",
            if |m| at_least(bound(m, "b"), bound(m, "a")) && at_least(bound(m, "b"), bound_of_zero()),
            let z = |m| if at_least(bound(m, "a"), bound_of_zero()) { m.literal("a").cloned() } else { zero(m) },
        "clip(clip(%x, %a, %b), %c, %d)" => "clip(%x, %l, %h)", if overlap,
            let l = |m| the(m, "a", "c", at_least(bound(m, "a"), bound(m, "c"))),
            let h = |m| the(m, "b", "d", at_least(bound(m, "d"), bound(m, "b"))),
    ]
}

/// A bound that is compared exactly.
#[derive(Copy, Clone)]
enum Bound {
    Float(f64),
    Integer(i128),
    /// The zero of any type, which is +0 of floats.
    Zero,
}

fn bound_of_zero() -> Option<Bound> {
    Some(Bound::Zero)
}

/// Returns a bound that is a constant and not NaN.
fn bound(m: &Match<'_>, name: &str) -> Option<Bound> {
    let literal = m.literal(name).filter(|literal| literal.element_count() == 1)?;
    if let Some(number) = literal.as_float_splat() {
        return (!number.is_nan()).then_some(Bound::Float(number));
    }
    Some(Bound::Integer(*literal.to_i128s()?.first()?))
}

/// Returns true if both bounds are known and the first is not below the second.
fn at_least(first: Option<Bound>, second: Option<Bound>) -> bool {
    let (Some(first), Some(second)) = (first, second) else { return false };
    let float = |bound| match bound {
        Bound::Float(number) => Some(number),
        Bound::Zero => Some(0.0),
        Bound::Integer(_) => None,
    };
    let integer = |bound| match bound {
        Bound::Integer(number) => Some(number),
        Bound::Zero => Some(0),
        Bound::Float(_) => None,
    };
    match (float(first), float(second), integer(first), integer(second)) {
        (Some(first), Some(second), ..) => first.total_cmp(&second).is_ge(),
        (.., Some(first), Some(second)) => first >= second,
        _ => false,
    }
}

/// Returns true if the numbers between `a` and `b` and those between `c` and `d` have some in
/// common.
fn overlap(m: &Match<'_>) -> bool {
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| bound(m, name));
    at_least(b, a) && at_least(d, c) && at_least(b, c) && at_least(d, a)
}

/// Returns one of two constants.
fn the(m: &Match<'_>, first: &str, second: &str, is_first: bool) -> Option<Literal> {
    m.literal(if is_first { first } else { second }).cloned()
}

/// Returns the zero of the element type of `x`.
fn zero(m: &Match<'_>) -> Option<Literal> {
    let dtype = tensor(m, "x")?.dtype;
    let is_number = matches!(dtype.class(), DTypeClass::Float | DTypeClass::Signed | DTypeClass::Unsigned);
    (is_number && DType::has_kernels(dtype)).then(|| Literal::splat_bytes(dtype, &[], &[0; 8]))
}
