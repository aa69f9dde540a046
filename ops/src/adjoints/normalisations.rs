//! Normalisations that divide by a root of the elements, which has no derivative at 0. Rows that
//! are constant, or zeros, still have one, or are given zeros.

use anfora_ir::{AdjointRule, AdjointWriter, DecompositionPart as Part};

use crate::decompositions::{Widened, reduced};

pub(super) const RULES: &[(&str, AdjointRule)] =
    &[("nn.mean_variance_norm", mean_variance_norm), ("nn.lp_norm", lp_norm)];

/// Returns true where a value is 0, and the value with 1 there.
fn zeros_as_ones(a: &mut AdjointWriter<'_>, types: Widened, x: Part) -> Option<[Part; 2]> {
    let (zero, one) = (types.number(a, 0.0)?, types.number(a, 1.0)?);
    let is_zero = a.op("equal", &[x, zero]);
    Some([is_zero, a.op("where", &[is_zero, one, x])])
}

/// `g - mean(g) - d * mean(g * d) / (r * (r + epsilon))`, where `d` is the difference to the mean,
/// `r` the root of the variance, and `g = dy / (r + epsilon)`. The last term is 0 where `r` is.
fn mean_variance_norm(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (types, axes, dy) = (Widened::of(a, 0)?, a.attrs().ints("axes")?, a.adjoint()?);
    let epsilon = a.attrs().float("epsilon")?;
    let epsilon = types.number(a, epsilon)?;
    let (x, dy) = (types.operand(a, 0)?, types.widen(a, dy));
    let mean = reduced(a, "mean", x, &axes);
    let difference = a.op("subtract", &[x, mean]);
    let square = a.op("square", &[difference]);
    let variance = reduced(a, "mean", square, &axes);
    let root = a.op("sqrt", &[variance]);
    let divisor = a.op("add", &[root, epsilon]);
    let quotient = a.op("divide", &[dy, divisor]);
    let mean = reduced(a, "mean", quotient, &axes);
    let own = a.op("subtract", &[quotient, mean]);
    let product = a.op("multiply", &[quotient, difference]);
    let mean = reduced(a, "mean", product, &axes);
    let [_, root] = zeros_as_ones(a, types, root)?;
    let mean = a.op("divide", &[mean, root]);
    let mean = a.op("divide", &[mean, divisor]);
    let of_root = a.op("multiply", &[difference, mean]);
    let dx = a.op("subtract", &[own, of_root]);
    let dx = types.narrow(a, dx);
    a.give(0, dx);
    Some(())
}

/// `(dy - s * Σ dy * y) / norm`, where `s` is the derivative of the norm: `sign(x)`, or `y`. It is
/// 0 where the norm is.
fn lp_norm(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (types, axes, dy, y) = (Widened::of(a, 0)?, [a.attrs().int("axis")?], a.adjoint()?, a.result());
    let (x, dy, y) = (types.operand(a, 0)?, types.widen(a, dy), types.widen(a, y));
    let (norm, slope) = match a.attrs().int("p")? {
        1 => {
            let size = a.op("abs", &[x]);
            (reduced(a, "sum", size, &axes), a.op("sign", &[x]))
        }
        2 => {
            let square = a.op("square", &[x]);
            let sum = reduced(a, "sum", square, &axes);
            (a.op("sqrt", &[sum]), y)
        }
        _ => return None,
    };
    let product = a.op("multiply", &[dy, y]);
    let sum = reduced(a, "sum", product, &axes);
    let along = a.op("multiply", &[slope, sum]);
    let across = a.op("subtract", &[dy, along]);
    let [is_zero, norm] = zeros_as_ones(a, types, norm)?;
    let (quotient, zero) = (a.op("divide", &[across, norm]), types.number(a, 0.0)?);
    let dx = a.op("where", &[is_zero, zero, quotient]);
    let dx = types.narrow(a, dx);
    a.give(0, dx);
    Some(())
}
