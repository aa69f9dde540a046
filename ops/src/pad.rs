//! Operators that cut and extend axes.

use anfora_ir::FusionPattern::Injective;
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, Context, DimId, KernelCall, Literal, OpDef, TypeCall, TypeError, TypeId,
};

use crate::kernels::Failure;
use crate::kernels::creation::shape_operand;
use crate::kernels::pad::{self, Beyond, Padding};
use crate::kernels::strides::{resolve_axes, resolve_axis};
use crate::row::row;
use crate::typing::{Elements, Extents, as_extent, expect_rank, one, result, same_elements, tensor};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row("nn.pad", "with axes cut and extended", Arity::between(2, 4), padded, |c| {
            let x = c.operand(0)?;
            let axes = c.optional(3).map(shape_operand).transpose()?;
            let paddings = paddings(x.rank(), &shape_operand(c.operand(1)?)?, axes.as_deref())?;
            one(pad::pad(x, &paddings, beyond(c.attrs.str("mode"))?, &value(c, x)?))
        })
        .attrs(
            const {
                &[AttrDef::new(
                    "mode",
                    AttrKind::Str,
                    AttrDefault::Str("constant"),
                    "what is put beyond the ends: `constant`, `edge`, `reflect` or `wrap`",
                )]
            },
        )
        .fusion(Injective)
        .shape_operands(&[1, 3])
        .may_fail(),
        row("center_crop_pad", "the middle of axes, or zeros around them", Arity::exactly(2), cropped, |c| {
            let x = c.operand(0)?;
            let to = shape_operand(c.operand(1)?)?;
            let axes = chosen(c.attrs.ints("axes").as_deref(), x.rank(), to.len())?;
            let mut paddings = vec![Padding { begin: 0, end: 0 }; x.rank()];
            for (&axis, &to) in axes.iter().zip(&to) {
                if to < 0 {
                    return Err(Failure::Mismatch(format!("extent {to} is negative")).into());
                }
                let from = i64::try_from(x.shape()[axis]).map_err(|_| Failure::TooLarge)?;
                paddings[axis] = Padding::centered(from, to);
            }
            one(pad::pad(x, &paddings, Beyond::Constant, &zero(x)))
        })
        .attrs(
            const { &[AttrDef::optional("axes", AttrKind::Ints, "the axes that the extents are of; all if left out")] },
        )
        .fusion(Injective)
        .shape_operands(&[1])
        .may_fail(),
    ]
}

fn beyond(mode: Option<&str>) -> Result<Beyond, Failure> {
    Ok(match mode {
        Some("constant") => Beyond::Constant,
        Some("edge") => Beyond::Edge,
        Some("reflect") => Beyond::Reflect,
        Some("wrap") => Beyond::Wrap,
        other => {
            let other = other.unwrap_or_default();
            return Err(Failure::Mismatch(format!(
                "attribute `mode` is `{other}`, not constant, edge, reflect or wrap"
            )));
        }
    })
}

fn zero(x: &Literal) -> Literal {
    Literal::splat_bytes(x.dtype(), &[], &[0; 8])
}

/// Returns the value beyond the ends.
fn value(c: &KernelCall<'_>, x: &Literal) -> Result<Literal, Failure> {
    match c.optional(2) {
        None => Ok(zero(x)),
        Some(value) if value.element_count() == 1 && value.dtype() == x.dtype() => Ok(value.clone()),
        Some(_) => Err(Failure::Mismatch("what is put beyond the ends is not one element of the same type".into())),
    }
}

/// Returns the axes to which a list of `count` numbers refers, counted from the start.
fn chosen(axes: Option<&[i64]>, rank: usize, count: usize) -> Result<Vec<usize>, Failure> {
    let axes = match axes {
        None => (0..rank).collect(),
        Some(axes) => {
            resolve_axes(axes, rank)?;
            axes.iter().map(|&a| resolve_axis(a, rank)).collect::<Result<Vec<_>, _>>()?
        }
    };
    if axes.len() != count {
        return Err(Failure::Mismatch(format!("{count} numbers for {} axes", axes.len())));
    }
    Ok(axes)
}

/// Returns the padding of each axis: `numbers` has all beginnings, then all ends.
fn paddings(rank: usize, numbers: &[i64], axes: Option<&[i64]>) -> Result<Vec<Padding>, Failure> {
    if numbers.len() % 2 == 1 {
        return Err(Failure::Mismatch(format!("{} numbers are not a begin and an end for each axis", numbers.len())));
    }
    let (begins, ends) = numbers.split_at(numbers.len() / 2);
    let mut paddings = vec![Padding { begin: 0, end: 0 }; rank];
    for ((axis, &begin), &end) in chosen(axes, rank, begins.len())?.into_iter().zip(begins).zip(ends) {
        paddings[axis] = Padding { begin, end };
    }
    Ok(paddings)
}

/// Returns the list of integers in an operand, if it is known.
fn list(call: &TypeCall<'_>, i: usize) -> Result<Option<Vec<i64>>, TypeError> {
    let operand = tensor(call, i, Elements::Integer)?;
    expect_rank(&operand, i, 1)?;
    Ok(call.literal(i).map(shape_operand).transpose()?)
}

fn padded(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    beyond(call.attrs().str("mode"))?;
    let numbers = list(call, 1)?;
    if call.operand(2).is_some() {
        let value = tensor(call, 2, Elements::Any)?;
        same_elements(&x, &value, 2)?;
        if value.shape.as_ref().is_some_and(|s| s.iter().any(|&d| as_extent(call.cx, d).is_some_and(|e| e != 1))) {
            return Err(TypeError::operand(2, "operand 2 is put beyond the ends, but is not one element"));
        }
    }
    let axes = match call.operand(3) {
        Some(_) => Some(list(call, 3)?),
        None => None,
    };
    let Some(mut shape) = x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    let unknown = call.cx.types.dims.unknown();
    match (numbers, axes) {
        (Some(numbers), axes @ (None | Some(Some(_)))) => {
            let paddings = paddings(shape.len(), &numbers, axes.flatten().as_deref())?;
            for (dim, padding) in shape.iter_mut().zip(paddings) {
                *dim = extended(call.cx, *dim, padding)?;
            }
        }
        (None, Some(Some(axes))) => {
            let named = resolve_axes(&axes, shape.len())?;
            for (dim, _) in shape.iter_mut().zip(named).filter(|(_, named)| *named) {
                *dim = unknown;
            }
        }
        _ => shape.fill(unknown),
    }
    Ok(result(call.cx, x.dtype, Some(&shape)))
}

fn extended(cx: &mut Context, dim: DimId, padding: Padding) -> Result<DimId, TypeError> {
    if let Some(extent) = cx.types.dims.as_constant(dim) {
        let (_, total) = padding.extents(extent)?;
        return Ok(cx.types.dims.constant(total));
    }
    let dims = &mut cx.types.dims;
    let Some(more) = padding.begin.checked_add(padding.end) else { return Ok(dims.unknown()) };
    let more = dims.constant(more);
    Ok(dims.add(dim, more))
}

fn cropped(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let to = list(call, 1)?;
    let Some(shape) = x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    let axes = call.attrs().ints("axes");
    let mut dims: Extents = shape;
    let rank = dims.len();
    match (to, axes) {
        (Some(to), axes) => {
            for (axis, &to) in chosen(axes.as_deref(), rank, to.len())?.into_iter().zip(&to) {
                if to < 0 {
                    return Err(TypeError::operand(1, format!("extent {to} is negative")));
                }
                dims[axis] = call.cx.types.dims.constant(to);
            }
        }
        (None, axes) => {
            let named = match axes {
                Some(axes) => resolve_axes(&axes, rank)?.to_vec(),
                None => vec![true; rank],
            };
            for (dim, _) in dims.iter_mut().zip(named).filter(|(_, n)| *n) {
                *dim = call.cx.types.dims.unknown();
            }
        }
    }
    Ok(result(call.cx, x.dtype, Some(&dims)))
}
