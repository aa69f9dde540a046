//! Slices whose beginnings and ends are operands.

use anfora_ir::FusionPattern::Injective;
use anfora_ir::{Arity, DimId, KernelCall, Literal, OpDef, Splat, TypeCall, TypeError, TypeId};

use crate::elements;
use crate::kernels::Failure;
use crate::kernels::creation::shape_operand;
use crate::kernels::index;
use crate::kernels::strides::{resolve_axes, resolve_axis};
use crate::row::row;
use crate::shape::Slice;
use crate::typing::{Elements, as_extent, expect_rank, one, optional, result, tensor};

/// The indices of the operands that are lists.
const LISTS: std::ops::RangeInclusive<usize> = 1..=4;

/// Returns the row of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    let doc = "a range of each axis, as operands say: begin, end, axes, strides";
    let row = row("dynamic_strided_slice", doc, Arity::between(3, 5), infer, |c| {
        let x = c.operand(0)?;
        one(index::slice(x, &cut(c)?.ranges(x.shape())?))
    });
    vec![row.splat(Splat::OfFirst).fusion(Injective).shape_operands(&[1, 2, 3, 4]).elements(elements::moved).may_fail()]
}

fn cut(c: &KernelCall<'_>) -> Result<Slice, anfora_ir::KernelError> {
    Ok(slice(c.operand(1)?, c.operand(2)?, c.optional(3), c.optional(4))?)
}

fn slice(begin: &Literal, end: &Literal, axes: Option<&Literal>, strides: Option<&Literal>) -> Result<Slice, Failure> {
    let slice = Slice {
        axes: axes.map(shape_operand).transpose()?,
        begin: shape_operand(begin)?,
        end: shape_operand(end)?,
        strides: strides.map(shape_operand).transpose()?,
    };
    slice.checked()
}

fn infer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let mut count: Option<usize> = None;
    for i in LISTS {
        let list =
            if i <= 2 { Some(tensor(call, i, Elements::Integer)?) } else { optional(call, i, Elements::Integer)? };
        let Some(list) = list else { continue };
        expect_rank(&list, i, 1)?;
        let Some(listed) = list.shape.and_then(|s| as_extent(call.cx, s[0])) else { continue };
        match count {
            Some(count) if count != listed => {
                let message = format!("operand {i} lists {listed} numbers, but another lists {count}");
                return Err(TypeError::operand(i, message));
            }
            _ => count = Some(listed),
        }
    }
    let Some(mut shape) = x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    if let Some(count) = count.filter(|&c| c > shape.len()) {
        let message = format!("{count} axes are cut, but operand 0 has rank {}", shape.len());
        return Err(TypeError::operand(0, message));
    }
    let is_known = LISTS.into_iter().all(|i| call.operand(i).is_none() || call.literal(i).is_some());
    if let (true, Some(begin), Some(end)) = (is_known, call.literal(1), call.literal(2)) {
        let cut = slice(begin, end, call.literal(3), call.literal(4))?;
        cut.extents(call.cx, &mut shape)?;
        return Ok(result(call.cx, x.dtype, Some(&shape)));
    }
    let named = match (call.operand(3), call.literal(3), count) {
        (Some(_), Some(axes), _) => resolve_axes(&shape_operand(axes)?, shape.len())?.to_vec(),
        (None, _, Some(count)) => (0..shape.len()).map(|axis| axis < count).collect(),
        _ => vec![true; shape.len()],
    };
    for (axis, _) in named.iter().enumerate().filter(|(_, named)| **named) {
        shape[axis] = extent_of_axis(call, axis, shape[axis], shape.len()).unwrap_or(call.cx.types.dims.unknown());
    }
    Ok(result(call.cx, x.dtype, Some(&shape)))
}

/// Returns the extent of the range of an axis, if the elements of the lists say it.
fn extent_of_axis(call: &mut TypeCall<'_>, axis: usize, extent: DimId, rank: usize) -> Option<DimId> {
    let at = match call.operand(3) {
        None => axis,
        Some(_) => {
            let axes = shape_operand(call.literal(3)?).ok()?;
            axes.iter().position(|&a| resolve_axis(a, rank).is_ok_and(|a| a == axis))?
        }
    };
    if call.operand(4).is_some() {
        let stride = *call.elements(4)?.get(at)?;
        (call.cx.types.dims.as_constant(stride)? == 1).then_some(())?;
    }
    let (begin, end) = (*call.elements(1)?.get(at)?, *call.elements(2)?.get(at)?);
    Some(elements::range_extent(&mut call.cx.types.dims, begin, end, extent))
}
