//! Operators that search for elements. Their type does not determine the size of the result; the
//! row bounds it.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, KernelCall, OpDef, TypeCall, TypeError, TypeId, element_count,
};

use crate::kernels::search::{self, Order};
use crate::kernels::strides::resolve_axis;
use crate::row::row;
use crate::typing::{Elements, RequiredAttrs, axis_of, expect_rank, extent, one, result, tensor};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row("nonzero", "the indices of the elements that are not zero, a row for each axis", Arity::exactly(1), nonzero, |c| {
            one(search::nonzero(c.operand(0)?))
        })
        .size_bound(nonzero_bound),
        row("compress", "the slices of an axis, or the elements, at which a condition holds", Arity::exactly(2), compress, |c| {
            one(search::compress(c.operand(0)?, c.operand(1)?, c.attrs.int("axis")))
        })
        .attrs(const { &[AttrDef::optional("axis", AttrKind::Int, "the axis; all elements in row-major order if left out")] })
        .size_bound(compress_bound)
        .may_fail(),
        row("unique", "the slices of an axis, or the elements, each once; where each first is; which of them each is; how often each is there", Arity::exactly(1), unique, |c| {
            let order = if c.attrs.required_bool("sorted")? { Order::Sorted } else { Order::Found };
            let found = search::unique(c.operand(0)?, c.attrs.int("axis"), order)?;
            Ok(vec![found.values, found.first, found.inverse, found.counts])
        })
        .attrs(
            const {
                &[
                    AttrDef::optional("axis", AttrKind::Int, "the axis; all elements in row-major order if left out"),
                    AttrDef::new("sorted", AttrKind::Bool, AttrDefault::Bool(true), "whether they ascend; else they are in the order in which they first are there"),
                ]
            },
        )
        .size_bound(unique_bound),
    ]
}

fn nonzero(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let unknown = call.cx.types.dims.unknown();
    let rank = x.shape.map_or(unknown, |s| extent(call.cx, s.len()));
    Ok(result(call.cx, DType::Int64, Some(&[rank, unknown])))
}

fn nonzero_bound(c: &KernelCall<'_>) -> usize {
    let Some(x) = c.optional(0) else { return 0 };
    let count = search::nonzero_count(x).and_then(|n| n.checked_mul(x.rank())?.checked_mul(size_of::<i64>()));
    count.unwrap_or(usize::MAX)
}

fn compress(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let condition = tensor(call, 1, Elements::Bool)?;
    expect_rank(&condition, 1, 1)?;
    let unknown = call.cx.types.dims.unknown();
    let Some(axis) = call.attrs().int("axis") else { return Ok(result(call.cx, x.dtype, Some(&[unknown]))) };
    let axis = axis_of(axis, &x)?;
    let mut shape = x.shape;
    if let (Some(shape), Some(axis)) = (&mut shape, axis) {
        shape[axis] = unknown;
    }
    Ok(result(call.cx, x.dtype, shape.as_deref()))
}

fn compress_bound(c: &KernelCall<'_>) -> usize {
    let (Some(x), Some(condition)) = (c.optional(0), c.optional(1)) else { return 0 };
    let others = match c.attrs.int("axis") {
        None => Some(1),
        Some(axis) => {
            let axis = resolve_axis(axis, x.rank()).ok();
            let others = x.shape().iter().enumerate().filter(|&(a, _)| Some(a) != axis);
            others.map(|(_, &e)| e).try_fold(1usize, usize::checked_mul)
        }
    };
    let bytes = search::nonzero_count(condition).and_then(|n| x.dtype().byte_len(n.checked_mul(others?)?));
    bytes.unwrap_or(usize::MAX)
}

fn unique(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let axis = call.attrs().int("axis");
    let unknown = call.cx.types.dims.unknown();
    let (values, slices) = match axis {
        None => {
            let dims = &mut call.cx.types.dims;
            let one = dims.constant(1);
            let count = x.shape.map_or(unknown, |s| s.iter().fold(one, |n, &d| dims.mul(n, d)));
            (result(call.cx, x.dtype, Some(&[unknown])), count)
        }
        Some(axis) => {
            let axis = axis_of(axis, &x)?;
            let mut shape = x.shape;
            let mut slices = unknown;
            if let (Some(shape), Some(axis)) = (&mut shape, axis) {
                slices = std::mem::replace(&mut shape[axis], unknown);
            }
            (result(call.cx, x.dtype, shape.as_deref()), slices)
        }
    };
    let [found, inverse] = [unknown, slices].map(|d| result(call.cx, DType::Int64, Some(&[d])));
    Ok(call.cx.types.tuple(&[values, found, inverse, found]))
}

fn unique_bound(c: &KernelCall<'_>) -> usize {
    let Some(x) = c.optional(0) else { return 0 };
    if x.as_splat().is_some() {
        // One slice, which is a splat, and one element in each of the other results.
        return 4 * size_of::<u64>();
    }
    let slices = match c.attrs.int("axis") {
        None => element_count(x.shape()),
        Some(axis) => resolve_axis(axis, x.rank()).ok().map(|a| x.shape()[a]),
    };
    let numbers = slices.and_then(|n| n.checked_mul(3 * size_of::<i64>()));
    numbers.and_then(|n| n.checked_add(x.expanded_bytes()?)).unwrap_or(usize::MAX)
}
