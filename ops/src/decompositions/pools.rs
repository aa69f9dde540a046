//! Pools over all spatial axes.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule};

use super::{Widened, reduced};

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("nn.global_avg_pool1d", |d| over_space::<1>(d, "mean")),
    ("nn.global_avg_pool2d", |d| over_space::<2>(d, "mean")),
    ("nn.global_avg_pool3d", |d| over_space::<3>(d, "mean")),
    ("nn.global_max_pool1d", |d| over_space::<1>(d, "max")),
    ("nn.global_max_pool2d", |d| over_space::<2>(d, "max")),
    ("nn.global_max_pool3d", |d| over_space::<3>(d, "max")),
    ("nn.global_lp_pool1d", norm_over_space::<1>),
    ("nn.global_lp_pool2d", norm_over_space::<2>),
    ("nn.global_lp_pool3d", norm_over_space::<3>),
];

/// Returns the spatial axes.
fn space<const N: usize>() -> Vec<i64> {
    (2..2 + N as i64).collect()
}

fn over_space<const N: usize>(d: &mut Decomposer<'_>, op: &'static str) -> Option<Part> {
    let x = d.operand(0)?;
    Some(reduced(d, op, x, &space::<N>()))
}

/// `(Σ |x|^p)^(1/p)`
fn norm_over_space<const N: usize>(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let p = d.attrs().int("p").filter(|&p| p >= 1)?;
    let x = types.operand(d, 0)?;
    let term = match p {
        1 => d.op("abs", &[x]),
        2 => d.op("square", &[x]),
        _ => {
            let (size, exponent) = (d.op("abs", &[x]), types.number(d, p as f64)?);
            d.op("power", &[size, exponent])
        }
    };
    let sum = reduced(d, "sum", term, &space::<N>());
    let norm = match p {
        1 => sum,
        2 => d.op("sqrt", &[sum]),
        _ => {
            let exponent = types.number(d, 1.0 / p as f64)?;
            d.op("power", &[sum, exponent])
        }
    };
    Some(types.narrow(d, norm))
}
