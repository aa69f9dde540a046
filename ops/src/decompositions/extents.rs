//! Extents that are numbers or computed, an axis as two, and two axes as one.
//!
//! The lists for `reshape` are right for tensors without elements too, without the attribute
//! `allowzero`, which not every version of ONNX has. An extent 0 in such a list stands for the
//! extent at the same place of the operand. Therefore a tensor gets an axis of extent 1 first: then
//! all axes but two keep their places.

use anfora_ir::{DType, Decomposer, DecompositionPart as Part};

/// An extent.
#[derive(Copy, Clone)]
pub(crate) enum Extent {
    Known(i64),
    /// A list of one number.
    Computed(Part),
}

impl Extent {
    /// Returns an extent of an operand.
    pub(crate) fn of(d: &mut Decomposer<'_>, i: usize, axis: usize) -> Option<Extent> {
        if let Some(known) = d.extent(i, axis) {
            return Some(Extent::Known(known));
        }
        let x = d.operand(i)?;
        Some(Extent::computed(d, x, axis))
    }

    /// Returns an extent of a value, which is computed.
    pub(crate) fn computed(d: &mut Decomposer<'_>, x: Part, axis: usize) -> Extent {
        let (start, end) = (axis as i64, axis as i64 + 1);
        Extent::Computed(d.op_with("shape_of", &[x], &[("start", start.into()), ("end", end.into())]))
    }

    /// Returns the product with a number; `None` if it is too large.
    pub(crate) fn times(self, d: &mut Decomposer<'_>, factor: i64) -> Option<Extent> {
        Some(match self {
            Extent::Known(extent) => Extent::Known(extent.checked_mul(factor)?),
            Extent::Computed(list) => {
                let factor = d.ints(&[factor]);
                Extent::Computed(d.op("multiply", &[list, factor]))
            }
        })
    }

    /// Returns the quotient by a positive number.
    pub(crate) fn over(self, d: &mut Decomposer<'_>, divisor: i64) -> Extent {
        match self {
            Extent::Known(extent) => Extent::Known(extent / divisor),
            Extent::Computed(list) => {
                let divisor = d.ints(&[divisor]);
                Extent::Computed(d.op("divide", &[list, divisor]))
            }
        }
    }

    /// Returns the extent as a list of one number.
    pub(crate) fn list(self, d: &mut Decomposer<'_>) -> Part {
        match self {
            Extent::Known(extent) => d.ints(&[extent]),
            Extent::Computed(list) => list,
        }
    }

    /// Returns the extent as a scalar.
    pub(crate) fn scalar(self, d: &mut Decomposer<'_>) -> Option<Part> {
        match self {
            Extent::Known(extent) => d.number(extent, DType::Int64),
            Extent::Computed(list) => Some(d.op_with("squeeze", &[list], &[("axis", [0].into())])),
        }
    }
}

/// Returns a list for `reshape`, of `rank` extents, with two given ones at `axis` and after it. The
/// others are those of the operand.
fn with_extents(d: &mut Decomposer<'_>, rank: usize, axis: usize, first: i64, second: Extent) -> Part {
    let mut list = vec![0; rank];
    list[axis] = first;
    match second {
        Extent::Known(extent) => {
            list[axis + 1] = extent;
            d.ints(&list)
        }
        Extent::Computed(extent) => {
            let before = d.ints(&list[..=axis]);
            let after = &list[axis + 2..];
            if after.is_empty() {
                return d.op("concat", &[before, extent]);
            }
            let after = d.ints(after);
            d.op("concat", &[before, extent, after])
        }
    }
}

/// Returns a value of this rank with an axis as two: of `parts`, at least 1, and of the elements of
/// a part. `whole` is the extent of the axis.
pub(super) fn split_axis(
    d: &mut Decomposer<'_>,
    x: Part,
    (axis, whole): (usize, Extent),
    rank: usize,
    parts: i64,
) -> Part {
    let rest = whole.over(d, parts);
    split_axis_into(d, x, axis, rank, parts, rest)
}

/// Returns a value of this rank with an axis as two: of `parts`, at least 1, and of `rest`.
pub(crate) fn split_axis_into(
    d: &mut Decomposer<'_>,
    x: Part,
    axis: usize,
    rank: usize,
    parts: i64,
    rest: Extent,
) -> Part {
    let list = with_extents(d, rank + 1, axis, parts, rest);
    let longer = d.op_with("expand_dims", &[x], &[("axis", [axis as i64].into())]);
    d.op("reshape", &[longer, list])
}

/// Returns a value of this rank with an axis and the next one as a single axis of extent `whole`.
/// The extent of the axis must not be 0.
pub(crate) fn join_axes(d: &mut Decomposer<'_>, x: Part, axis: usize, rank: usize, whole: Extent) -> Part {
    let list = with_extents(d, rank, axis, 1, whole);
    let joined = d.op("reshape", &[x, list]);
    d.op_with("squeeze", &[joined], &[("axis", [axis as i64].into())])
}
