//! Elementwise operators. `x` is the operand, `y` the result, `dy` its adjoint.

use anfora_ir::{AdjointRule, AdjointWriter, DecompositionPart as Part};

use crate::decompositions::cast;

use super::{give_summed, number};

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    // Functions of one operand: the derivative, by which `dy` is multiplied.
    ("abs", |a| by_derivative(a, |a, x, _| Some(a.op("sign", &[x])))),
    ("square", |a| by_derivative(a, |a, x, _| Some(a.op("add", &[x, x])))),
    ("exp", |a| by_derivative(a, |_, _, y| Some(y))),
    ("log", |a| by_derivative(a, |a, x, _| Some(a.op("reciprocal", &[x])))),
    ("sqrt", |a| by_derivative(a, |a, _, y| scaled_quotient(a, 0.5, y))),
    ("rsqrt", |a| {
        by_derivative(a, |a, x, y| {
            let quotient = a.op("divide", &[y, x]);
            scaled(a, quotient, -0.5)
        })
    }),
    ("reciprocal", |a| {
        by_derivative(a, |a, _, y| {
            let square = a.op("square", &[y]);
            Some(a.op("negative", &[square]))
        })
    }),
    ("tanh", |a| by_derivative(a, |a, _, y| one_minus_square(a, y))),
    ("sigmoid", |a| {
        by_derivative(a, |a, _, y| {
            let one = number(a, 0, 1.0)?;
            let rest = a.op("subtract", &[one, y]);
            Some(a.op("multiply", &[y, rest]))
        })
    }),
    ("erf", |a| {
        by_derivative(a, |a, x, _| {
            let square = a.op("square", &[x]);
            let negative = a.op("negative", &[square]);
            let power = a.op("exp", &[negative]);
            scaled(a, power, std::f64::consts::FRAC_2_SQRT_PI)
        })
    }),
    ("sin", |a| by_derivative(a, |a, x, _| Some(a.op("cos", &[x])))),
    ("cos", |a| {
        by_derivative(a, |a, x, _| {
            let sine = a.op("sin", &[x]);
            Some(a.op("negative", &[sine]))
        })
    }),
    ("tan", |a| by_derivative(a, |a, _, y| square_plus(a, y, 1.0))),
    ("asin", |a| {
        by_derivative(a, |a, x, _| {
            let rest = one_minus_square(a, x)?;
            Some(a.op("rsqrt", &[rest]))
        })
    }),
    ("acos", |a| {
        by_derivative(a, |a, x, _| {
            let rest = one_minus_square(a, x)?;
            let root = a.op("rsqrt", &[rest]);
            Some(a.op("negative", &[root]))
        })
    }),
    ("atan", |a| {
        by_derivative(a, |a, x, _| {
            let sum = square_plus(a, x, 1.0)?;
            Some(a.op("reciprocal", &[sum]))
        })
    }),
    ("sinh", |a| by_derivative(a, |a, x, _| Some(a.op("cosh", &[x])))),
    ("cosh", |a| by_derivative(a, |a, x, _| Some(a.op("sinh", &[x])))),
    ("asinh", |a| {
        by_derivative(a, |a, x, _| {
            let sum = square_plus(a, x, 1.0)?;
            Some(a.op("rsqrt", &[sum]))
        })
    }),
    ("acosh", |a| {
        by_derivative(a, |a, x, _| {
            let rest = square_plus(a, x, -1.0)?;
            Some(a.op("rsqrt", &[rest]))
        })
    }),
    ("atanh", |a| {
        by_derivative(a, |a, x, _| {
            let rest = one_minus_square(a, x)?;
            Some(a.op("reciprocal", &[rest]))
        })
    }),
    ("negative", |a| {
        let dy = a.adjoint()?;
        let dx = a.op("negative", &[dy]);
        a.give(0, dx);
        Some(())
    }),
    // 0 at 0.
    ("nn.relu", |a| {
        let (x, dy, zero) = (a.operand(0)?, a.adjoint()?, number(a, 0, 0.0)?);
        let is_positive = a.op("greater", &[x, zero]);
        let dx = a.op("where", &[is_positive, dy, zero]);
        a.give(0, dx);
        Some(())
    }),
    ("astype", |a| {
        let (from, to, dy) = (a.dtype(0)?, a.result_tensor()?.dtype, a.adjoint()?);
        let dx = cast(a, dy, to, from);
        a.give(0, dx);
        Some(())
    }),
    // The value passes as it is. The adjoint is cast to the type of the operand.
    ("match_cast", |a| {
        let dy = a.adjoint()?;
        a.give(0, dy);
        Some(())
    }),
    // Functions of two operands.
    ("add", |a| {
        let dy = a.adjoint()?;
        give_summed(a, 0, dy)?;
        give_summed(a, 1, dy)
    }),
    ("subtract", |a| {
        let dy = a.adjoint()?;
        give_summed(a, 0, dy)?;
        let negative = a.op("negative", &[dy]);
        give_summed(a, 1, negative)
    }),
    ("multiply", |a| {
        let (x0, x1, dy) = (a.operand(0)?, a.operand(1)?, a.adjoint()?);
        for (i, other) in [(0, x1), (1, x0)] {
            let product = a.op("multiply", &[dy, other]);
            give_summed(a, i, product)?;
        }
        Some(())
    }),
    ("divide", |a| {
        let (x1, y, dy) = (a.operand(1)?, a.result(), a.adjoint()?);
        let quotient = a.op("divide", &[dy, x1]);
        give_summed(a, 0, quotient)?;
        let product = a.op("multiply", &[quotient, y]);
        let negative = a.op("negative", &[product]);
        give_summed(a, 1, negative)
    }),
    ("mod", modulus),
    ("floor_mod", modulus),
    ("power", power),
    // Of equal elements, the first operand has the derivative.
    ("maximum", |a| selected(a, "greater_equal")),
    ("minimum", |a| selected(a, "less_equal")),
    ("where", |a| {
        let (condition, dy, zero) = (a.operand(0)?, a.adjoint()?, number(a, 1, 0.0)?);
        let chosen = a.op("where", &[condition, dy, zero]);
        give_summed(a, 1, chosen)?;
        let other = a.op("where", &[condition, zero, dy]);
        give_summed(a, 2, other)
    }),
];

/// Gives the product of `dy` and a derivative, which is a function of `x` and `y`.
fn by_derivative(
    a: &mut AdjointWriter<'_>,
    derivative: impl FnOnce(&mut AdjointWriter<'_>, Part, Part) -> Option<Part>,
) -> Option<()> {
    let (x, y, dy) = (a.operand(0)?, a.result(), a.adjoint()?);
    let derivative = derivative(a, x, y)?;
    let dx = a.op("multiply", &[dy, derivative]);
    a.give(0, dx);
    Some(())
}

fn scaled(a: &mut AdjointWriter<'_>, x: Part, factor: f64) -> Option<Part> {
    let factor = number(a, 0, factor)?;
    Some(a.op("multiply", &[x, factor]))
}

/// `dividend / x`
fn scaled_quotient(a: &mut AdjointWriter<'_>, dividend: f64, x: Part) -> Option<Part> {
    let dividend = number(a, 0, dividend)?;
    Some(a.op("divide", &[dividend, x]))
}

fn one_minus_square(a: &mut AdjointWriter<'_>, x: Part) -> Option<Part> {
    let (square, one) = (a.op("square", &[x]), number(a, 0, 1.0)?);
    Some(a.op("subtract", &[one, square]))
}

fn square_plus(a: &mut AdjointWriter<'_>, x: Part, summand: f64) -> Option<Part> {
    let (square, summand) = (a.op("square", &[x]), number(a, 0, summand)?);
    Some(a.op("add", &[square, summand]))
}

/// The remainder `y = x0 - times * x1`. The result tells the whole number `times`: the quotient of
/// the operands may be rounded to another one.
fn modulus(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (x0, x1, y, dy) = (a.operand(0)?, a.operand(1)?, a.result(), a.adjoint()?);
    give_summed(a, 0, dy)?;
    let multiple = a.op("subtract", &[x0, y]);
    let quotient = a.op("divide", &[multiple, x1]);
    let times = a.op("round", &[quotient]);
    let product = a.op("multiply", &[dy, times]);
    let negative = a.op("negative", &[product]);
    give_summed(a, 1, negative)
}

/// `x1 * x0^(x1 - 1)` and `y * log(x0)`. The first is 0 where `x1` is 0, and the second where `x0`
/// is 0.
fn power(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (x0, x1, y, dy) = (a.operand(0)?, a.operand(1)?, a.result(), a.adjoint()?);
    let (dtype, of_power) = (a.dtype(0)?, a.dtype(1)?);
    if a.wants(0) {
        let one = if of_power.is_float() { a.number(1.0, of_power)? } else { a.number(1, of_power)? };
        let zero = if of_power.is_float() { a.number(0.0, of_power)? } else { a.number(0, of_power)? };
        let is_constant = a.op("equal", &[x1, zero]);
        let exponent = a.op("where", &[is_constant, one, x1]);
        let exponent = a.op("subtract", &[exponent, one]);
        let lower = a.op("power", &[x0, exponent]);
        let factor = cast(a, x1, of_power, dtype);
        let derivative = a.op("multiply", &[factor, lower]);
        let product = a.op("multiply", &[dy, derivative]);
        give_summed(a, 0, product)?;
    }
    if a.wants(1) {
        let (zero, one) = (a.number(0.0, dtype)?, a.number(1.0, dtype)?);
        let is_zero = a.op("equal", &[x0, zero]);
        let base = a.op("where", &[is_zero, one, x0]);
        let log = a.op("log", &[base]);
        let derivative = a.op("multiply", &[y, log]);
        let product = a.op("multiply", &[dy, derivative]);
        let product = cast(a, product, dtype, of_power);
        give_summed(a, 1, product)?;
    }
    Some(())
}

/// The adjoint goes to the first operand where a comparison with the second holds, and to the
/// second elsewhere.
fn selected(a: &mut AdjointWriter<'_>, comparison: &'static str) -> Option<()> {
    let (x0, x1, dy, zero) = (a.operand(0)?, a.operand(1)?, a.adjoint()?, number(a, 0, 0.0)?);
    let is_first = a.op(comparison, &[x0, x1]);
    let first = a.op("where", &[is_first, dy, zero]);
    give_summed(a, 0, first)?;
    let second = a.op("where", &[is_first, zero, dy]);
    give_summed(a, 1, second)
}
