//! Pools of all elements: over all spatial axes, or with a window that has all elements.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule};

use super::{Widened, reduced};
use crate::axis_letters::{AxisPlaces, POOL_LAYOUT, plain_data};

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
    ("nn.avg_pool1d", mean_of_window::<1>),
    ("nn.avg_pool2d", mean_of_window::<2>),
    ("nn.avg_pool3d", mean_of_window::<3>),
    ("nn.max_pool1d", |d| of_window::<1>(d, |d| over_space::<1>(d, "max"))),
    ("nn.max_pool2d", |d| of_window::<2>(d, |d| over_space::<2>(d, "max"))),
    ("nn.max_pool3d", |d| of_window::<3>(d, |d| over_space::<3>(d, "max"))),
    ("nn.lp_pool1d", |d| of_window::<1>(d, norm_over_space::<1>)),
    ("nn.lp_pool2d", |d| of_window::<2>(d, norm_over_space::<2>)),
    ("nn.lp_pool3d", |d| of_window::<3>(d, norm_over_space::<3>)),
];

/// Returns the spatial axes in the layout of the operand.
fn space<const N: usize>(d: &Decomposer<'_>) -> Option<Vec<i64>> {
    let layout = AxisPlaces::read(&d.attrs(), POOL_LAYOUT, plain_data(N)).ok()?;
    let mut axes: Vec<i64> = (2..2 + N).map(|axis| layout.place(axis) as i64).collect();
    axes.sort_unstable();
    Some(axes)
}

fn over_space<const N: usize>(d: &mut Decomposer<'_>, op: &'static str) -> Option<Part> {
    let axes = space::<N>(d)?;
    let x = d.operand(0)?;
    Some(reduced(d, op, x, &axes))
}

/// `(Σ |x|^p)^(1/p)`
fn norm_over_space<const N: usize>(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let p = d.attrs().int("p").filter(|&p| p >= 1)?;
    let axes = space::<N>(d)?;
    let x = types.operand(d, 0)?;
    let term = match p {
        1 => d.op("abs", &[x]),
        2 => d.op("square", &[x]),
        _ => {
            let (size, exponent) = (d.op("abs", &[x]), types.number(d, p as f64)?);
            d.op("power", &[size, exponent])
        }
    };
    let sum = reduced(d, "sum", term, &axes);
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

/// Returns the reduction that a pool with windows is; `None` if there is not exactly one window, or
/// if that is not known to have all elements of each spatial axis.
fn of_window<const N: usize>(d: &mut Decomposer<'_>, reduction: DecompositionRule) -> Option<Part> {
    let attrs = d.attrs();
    let [size, padding, dilation] = ["pool_size", "padding", "dilation"].map(|name| attrs.ints(name));
    let (size, padding, dilation) = (size?, padding?, dilation?);
    let result = d.cx().types.as_tensor(d.result_type())?;
    let layout = AxisPlaces::read(&attrs, POOL_LAYOUT, plain_data(N)).ok()?;
    for axis in 0..N {
        let place = layout.place(2 + axis);
        let (taps, before, extent) = (*size.get(axis)?, *padding.get(axis)?, d.extent(0, place)?);
        let windows = d.cx().types.dims.as_constant(*result.shape.as_ref()?.get(place)?)?;
        // The window begins in the padding, if there is any, and ends behind the last element.
        let has_neighbours = taps == 1 || *dilation.get(axis)? == 1;
        let has_all = before >= 0 && extent >= 1 && taps.checked_sub(before)? >= extent;
        if windows != 1 || !has_neighbours || !has_all {
            return None;
        }
    }
    reduction(d)
}

/// The mean under a window with all elements. It stays if the padding counts.
fn mean_of_window<const N: usize>(d: &mut Decomposer<'_>) -> Option<Part> {
    let attrs = d.attrs();
    if attrs.bool("count_include_pad")? && attrs.ints("padding")?.iter().any(|&n| n != 0) {
        return None;
    }
    of_window::<N>(d, |d| over_space::<N>(d, "mean"))
}
