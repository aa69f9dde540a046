//! Operators that select elements by indices in an operand.

use anfora_ir::FusionPattern::Injective;
use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, OpDef, Splat, TypeCall, TypeError, TypeId};

use crate::elements;
use crate::kernels::Failure;
use crate::kernels::gather;
use crate::kernels::strides::resolve_axis;
use crate::row::row;
use crate::typing::{
    Elements, Extents, RequiredAttrs, as_extent, axis_of, differ, expect_one, expect_rank, extent, one, result, tensor,
    unify,
};

const AXIS: AttrDef = AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(0), "the axis that the indices are of");

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row("gather_elements", "for each index, the element that is there along the axis, at the index's own place along the others", Arity::exactly(2), gather_elements, |c| {
            one(gather::gather_elements(c.operand(0)?, c.operand(1)?, c.attrs.required_int("axis")?))
        })
        .splat(Splat::OfFirst)
        .elements(elements::moved)
        .attrs(const { &[AXIS] })
        .fusion(Injective)
        .may_fail(),
        row("gather_nd", "the slices that the lists of indices in the last axis name", Arity::exactly(2), gather_nd, |c| {
            one(gather::gather_nd(c.operand(0)?, c.operand(1)?, c.attrs.required_int("batch_dims")?))
        })
        .splat(Splat::OfFirst)
        .elements(elements::moved)
        .attrs(const { &[AttrDef::new("batch_dims", AttrKind::Int, AttrDefault::Int(0), "how many first axes both operands have in common")] })
        .fusion(Injective)
        .may_fail(),
        row("one_hot", "for each index a row of `depth` elements: the second value at the index, the first elsewhere", Arity::exactly(3), one_hot, |c| {
            let depth = gather::depth_of(c.operand(1)?)?;
            one(gather::one_hot(c.operand(0)?, depth, c.operand(2)?, c.attrs.required_int("axis")?))
        })
        .attrs(const { &[AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(-1), "where the rows are in the result")] })
        .fusion(Injective)
        .shape_operands(&[1])
        .may_fail(),
        row("reverse_sequence", "with the first elements along one axis in reverse, as many as an operand says for each place along another axis", Arity::exactly(2), reverse_sequence, |c| {
            let (time, batch) = (c.attrs.required_int("time_axis")?, c.attrs.required_int("batch_axis")?);
            one(gather::reverse_sequence(c.operand(0)?, c.operand(1)?, time, batch))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[
                    AttrDef::new("time_axis", AttrKind::Int, AttrDefault::Int(0), "the axis that is reversed"),
                    AttrDef::new("batch_axis", AttrKind::Int, AttrDefault::Int(1), "the axis that the lengths are of"),
                ]
            },
        )
        .fusion(Injective)
        .may_fail(),
    ]
}

fn gather_elements(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let indices = tensor(call, 1, Elements::Integer)?;
    along(call, &x, &indices, 1)?;
    Ok(result(call.cx, x.dtype, indices.shape.as_deref()))
}

/// Checks that operand `i` has the rank of `x`, and that its extents are not larger except along
/// the axis.
pub(crate) fn along(
    call: &mut TypeCall<'_>,
    x: &anfora_ir::TensorType,
    indices: &anfora_ir::TensorType,
    i: usize,
) -> Result<(), TypeError> {
    let axis = call.attrs().required_int("axis")?;
    let axis = match axis_of(axis, x)? {
        Some(axis) => Some(axis),
        None => axis_of(axis, indices)?,
    };
    let (Some(of), Some(shape)) = (&x.shape, &indices.shape) else { return Ok(()) };
    expect_rank(indices, i, of.len())?;
    for (a, (&limit, &dim)) in of.iter().zip(shape).enumerate() {
        if let (Some(most), Some(e)) = (as_extent(call.cx, limit), as_extent(call.cx, dim))
            && e > most
            && Some(a) != axis
        {
            let message = format!("axis {a} of operand {i} is {e}, but operand 0 has only {most} there");
            return Err(TypeError::operand(i, message));
        }
    }
    Ok(())
}

/// Returns the shape of the slices of operand 0 that the lists of indices in operand 1 select.
/// `batch` is the number of leading axes that both operands have in common.
pub(crate) fn slices(call: &mut TypeCall<'_>, batch: i64) -> Result<Option<Extents>, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let indices = tensor(call, 1, Elements::Integer)?;
    let Some(shape) = &indices.shape else { return Ok(None) };
    let batch = usize::try_from(batch).map_err(|_| TypeError::new(format!("{batch} common axes")))?;
    let Some((&depth, leading)) = shape.split_last() else {
        return Err(TypeError::operand(1, "operand 1 has rank 0, but lists of indices are expected"));
    };
    if batch > leading.len() {
        let message =
            format!("operand 1 has rank {}, but {batch} common axes and one of lists are expected", shape.len());
        return Err(TypeError::operand(1, message));
    }
    let Some(of) = &x.shape else { return Ok(None) };
    let depth = as_extent(call.cx, depth);
    let end = batch.saturating_add(depth.unwrap_or(0));
    if end > of.len() {
        let message = format!("operand 0 has rank {}, but {end} axes of it are indexed", of.len());
        return Err(TypeError::operand(0, message));
    }
    let mut dims: Extents = leading.into();
    for (axis, (dim, &other)) in dims.iter_mut().zip(of).take(batch).enumerate() {
        *dim = match unify(call.cx, *dim, other) {
            Some(d) => d,
            None => return Err(differ(call.cx, 1, &format!("axis {axis}"), *dim, other)),
        };
    }
    if depth.is_none() {
        return Ok(None);
    }
    dims.extend_from_slice(&of[end..]);
    Ok(Some(dims))
}

fn gather_nd(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let batch = call.attrs().required_int("batch_dims")?;
    let dims = slices(call, batch)?;
    let dtype = tensor(call, 0, Elements::Any)?.dtype;
    Ok(result(call.cx, dtype, dims.as_deref()))
}

fn one_hot(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let indices = tensor(call, 0, Elements::Number)?;
    let depth = tensor(call, 1, Elements::Number)?;
    let values = tensor(call, 2, Elements::Any)?;
    expect_rank(&values, 2, 1)?;
    if let Some(&dim) = values.shape.as_ref().and_then(|s| s.first()) {
        let two = call.cx.types.dims.constant(2);
        if unify(call.cx, dim, two).is_none() {
            return Err(differ(call.cx, 2, "the extent", dim, two));
        }
    }
    expect_one(call.cx, &depth, 1)?;
    let classes = match call.literal(1).map(gather::depth_of) {
        Some(Ok(depth)) => extent(call.cx, depth),
        Some(Err(Failure::ElementType(_))) | None => call.cx.types.dims.unknown(),
        Some(Err(failure)) => return Err(failure.into()),
    };
    let axis = call.attrs().required_int("axis")?;
    let Some(mut dims) = indices.shape else { return Ok(call.cx.types.unranked(values.dtype)) };
    dims.insert(resolve_axis(axis, dims.len() + 1)?, classes);
    Ok(result(call.cx, values.dtype, Some(&dims)))
}

fn reverse_sequence(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let mut x = tensor(call, 0, Elements::Any)?;
    let lengths = tensor(call, 1, Elements::Integer)?;
    expect_rank(&lengths, 1, 1)?;
    let (time, batch) = (call.attrs().required_int("time_axis")?, call.attrs().required_int("batch_axis")?);
    let (time, batch) = (axis_of(time, &x)?, axis_of(batch, &x)?);
    if time.is_some() && time == batch {
        return Err(TypeError::new("the two axes are the same one"));
    }
    if let (Some(shape), Some(batch), Some(lengths)) = (&mut x.shape, batch, &lengths.shape) {
        shape[batch] = match unify(call.cx, shape[batch], lengths[0]) {
            Some(d) => d,
            None => return Err(differ(call.cx, 1, "the extent", lengths[0], shape[batch])),
        };
    }
    Ok(result(call.cx, x.dtype, x.shape.as_deref()))
}
