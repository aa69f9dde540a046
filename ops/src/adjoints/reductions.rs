//! Reductions and scans.

use anfora_ir::{AdjointRule, AdjointWriter, AttrValue, DType, DecompositionPart as Part};

use crate::decompositions::reductions::over_axes;
use crate::decompositions::{Widened, cast};

use super::{broadcast_like, constant_ints, counted_axes, known_extents, reshaped_like};

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    ("sum", |a| {
        let dy = a.adjoint()?;
        let dx = spread(a, dy)?;
        a.give(0, dx);
        Some(())
    }),
    ("mean", mean),
    ("max", extreme),
    ("min", extreme),
    ("prod", prod),
    ("cumsum", cumsum),
];

/// The axes of a reduction.
enum ReducedAxes {
    All,
    These(Vec<i64>),
    /// An operand, which is not a constant.
    Computed,
}

/// Returns the axes that the call reduces; `None` if a list of axes does not fit.
fn reduced_axes(a: &AdjointWriter<'_>) -> Option<ReducedAxes> {
    if a.is_given(1) {
        let Some(axes) = constant_ints(a, 1) else { return Some(ReducedAxes::Computed) };
        return Some(match (axes.is_empty(), a.attrs().bool("noop_with_empty_axes")?) {
            (true, false) => ReducedAxes::All,
            _ => ReducedAxes::These(axes),
        });
    }
    Some(a.attrs().ints("axis").map_or(ReducedAxes::All, ReducedAxes::These))
}

/// Returns a value of the shape of the result with the reduced axes as axes of extent 1.
fn with_axes(a: &mut AdjointWriter<'_>, x: Part) -> Option<Part> {
    if a.attrs().bool("keepdims")? {
        return Some(x);
    }
    let axes = match reduced_axes(a)? {
        // A scalar broadcasts to any shape.
        ReducedAxes::All => return Some(x),
        ReducedAxes::These(axes) => axes,
        ReducedAxes::Computed => return a.refuse("the axes are computed: they must be known, or `keepdims` be true"),
    };
    let axes = match a.rank(0) {
        Some(rank) => counted_axes(&axes, rank)?,
        None => axes,
    };
    Some(if axes.is_empty() { x } else { a.op_with("expand_dims", &[x], &[("axis", axes.into())]) })
}

/// Returns a value of the shape of the result, repeated along the reduced axes.
fn spread(a: &mut AdjointWriter<'_>, x: Part) -> Option<Part> {
    let x = with_axes(a, x)?;
    broadcast_like(a, 0, x)
}

/// The adjoint of the sum, divided by the number of elements of each mean.
fn mean(a: &mut AdjointWriter<'_>) -> Option<()> {
    // The number of elements may be larger than any number of 16 bits.
    let (types, dy, y) = (Widened::of(a, 0)?, a.adjoint()?, a.result());
    let ones = |a: &AdjointWriter<'_>| {
        let shape = a.result_tensor()?.shape.as_ref()?;
        shape.iter().try_fold(1i64, |n, &dim| n.checked_mul(a.cx().types.dims.as_constant(dim)?))
    };
    let all = known_extents(a, 0).and_then(|extents| extents.iter().try_fold(1i64, |n, &e| n.checked_mul(e)));
    let count = match (all, ones(a)) {
        (Some(all), Some(of_result)) if of_result > 0 => types.number(a, (all / of_result) as f64)?,
        _ => {
            let x = a.operand(0)?;
            let [all, of_result] = [x, y].map(|x| {
                let size = a.op("size", &[x]);
                a.op_with("astype", &[size], &[("dtype", DType::Float64.into())])
            });
            let count = a.op("divide", &[all, of_result]);
            cast(a, count, DType::Float64, types.wide)
        }
    };
    let dy = types.widen(a, dy);
    let part = a.op("divide", &[dy, count]);
    let part = types.narrow(a, part);
    let dx = spread(a, part)?;
    a.give(0, dx);
    Some(())
}

/// The elements that are as large as the result share its adjoint.
fn extreme(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (types, x, y, dy) = (Widened::of(a, 0)?, a.operand(0)?, a.result(), a.adjoint()?);
    let [y, dy] = [with_axes(a, y)?, with_axes(a, dy)?];
    let is_extreme = a.op("equal", &[x, y]);
    let places = a.op_with("astype", &[is_extreme], &[("dtype", types.wide.into())]);
    // There may be more of them than any number of 16 bits.
    let count = over_axes(a, "sum", places, true)?;
    let dy = types.widen(a, dy);
    let share = a.op("divide", &[dy, count]);
    let (share, zero) = (types.narrow(a, share), super::number(a, 0, 0.0)?);
    let dx = a.op("where", &[is_extreme, share, zero]);
    a.give(0, dx);
    Some(())
}

/// `dy` times the product of all other elements. The axes are reduced one after another. The
/// derivative of the product along one axis is the product of the elements before each element and
/// of those after it, so it is right for zeros too.
fn prod(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (rank, dy) = (a.rank(0)?, a.adjoint()?);
    let axes = match reduced_axes(a)? {
        ReducedAxes::All => (0..rank as i64).collect(),
        ReducedAxes::These(axes) => counted_axes(&axes, rank)?,
        ReducedAxes::Computed => return a.refuse("the axes are computed: they must be known"),
    };
    let mut products = vec![a.operand(0)?];
    for &axis in &axes {
        let last = products[products.len() - 1];
        products.push(a.op_with("prod", &[last], &[("axis", [axis].into()), ("keepdims", true.into())]));
    }
    let mut adjoint = with_axes(a, dy)?;
    for (&axis, &product) in axes.iter().zip(&products).rev() {
        let [before, after] = [false, true].map(|reverse| {
            let attrs = [("axis", axis.into()), ("exclusive", true.into()), ("reverse", reverse.into())];
            a.op_with("cumprod", &[product], &attrs)
        });
        let others = a.op("multiply", &[before, after]);
        adjoint = a.op("multiply", &[adjoint, others]);
    }
    a.give(0, adjoint);
    Some(())
}

/// The sum from the other end.
fn cumsum(a: &mut AdjointWriter<'_>) -> Option<()> {
    let dy = a.adjoint()?;
    let attrs = a.attrs();
    let mut given = vec![("reverse", AttrValue::Bool(!attrs.bool("reverse")?))];
    given.push(("exclusive", attrs.bool("exclusive")?.into()));
    given.extend(attrs.int("axis").map(|axis| ("axis", axis.into())));
    let (axis, has_axis) = (a.operand(1), attrs.int("axis").is_some());
    let mut dx = match axis {
        Some(axis) => a.op_with("cumsum", &[dy, axis], &given),
        None => a.op_with("cumsum", &[dy], &given),
    };
    if axis.is_none() && !has_axis {
        dx = reshaped_like(a, 0, dx)?;
    }
    a.give(0, dx);
    Some(())
}
