//! Inference of the extents of a reshape, from the numbers in the shape and from the number of
//! elements.

use anfora_ir::{Context, Dim, DimId, DimOp, Dims, Term, TypeCall, TypeError, TypeId};
use smallvec::SmallVec;

use crate::elements;
use crate::shape::listed_extents;
use crate::typing::{Elements, Extents, RequiredAttrs, result, tensor};

/// Returns the type of a reshape.
pub(crate) fn infer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let Some(target) = listed_extents(call, 1)? else { return Ok(call.cx.types.unranked(x.dtype)) };
    let allow_zero = call.attrs().required_bool("allowzero")?;
    let mut dims = Extents::new();
    let mut inferred = None;
    for (axis, &d) in target.iter().enumerate() {
        let dim = match call.cx.types.dims.as_constant(d) {
            None if extent_is_said(call.cx, d, x.shape.as_deref(), axis, allow_zero) => d,
            None => call.cx.types.dims.unknown(),
            Some(-1) if inferred.is_none() => {
                inferred = Some(axis);
                call.cx.types.dims.unknown()
            }
            Some(0) if !allow_zero => match &x.shape {
                Some(shape) => *shape.get(axis).ok_or_else(|| {
                    TypeError::operand(1, format!("extent {axis} of the shape copies one that operand 0 does not have"))
                })?,
                None => call.cx.types.dims.unknown(),
            },
            Some(e) if e < 0 => return Err(TypeError::operand(1, format!("extent {axis} of the shape is {e}"))),
            Some(_) => d,
        };
        dims.push(dim);
    }
    if let Some(shape) = &x.shape {
        let inferred = inferred.or_else(|| left_over(call.cx, &dims));
        fit(call.cx, shape, &mut dims, inferred)?;
    }
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

/// Returns the axis of an unknown extent that follows from the number of elements and the other
/// extents. All other extents must be known to be at least 1.
fn left_over(cx: &mut Context, dims: &[DimId]) -> Option<usize> {
    let unknown = cx.types.dims.unknown();
    let axis = dims.iter().position(|&d| d == unknown)?;
    let others = dims.iter().enumerate().filter(|&(a, _)| a != axis);
    let one = cx.types.dims.constant(1);
    let rest = others.fold(one, |n, (_, &d)| cx.types.dims.mul(n, d));
    (elements::bounds(&cx.types.dims, rest).0 >= Some(1)).then_some(axis)
}

/// Returns true if a symbolic number in the target shape of a reshape is the extent of the result.
/// It must not be possible that the number is -1. If 0 copies an extent of the operand, the number
/// must not be 0 unless that extent is 0.
fn extent_is_said(cx: &mut Context, dim: DimId, from: Option<&[DimId]>, axis: usize, allow_zero: bool) -> bool {
    let dims = &mut cx.types.dims;
    match elements::bounds(dims, dim).0 {
        Some(1..) => return true,
        Some(0) if allow_zero => return true,
        Some(0) => {}
        _ => return false,
    }
    let Some(from) = from else { return false };
    // Without an extent to copy, a 0 makes the call fail.
    let Some(&copied) = from.get(axis) else { return true };
    let multiple = match dims.get(dim) {
        Dim::Sum(terms) if terms.len() == 1 => terms[0].coefficient,
        _ => 1,
    };
    let by = dims.constant(multiple);
    copied != dims.unknown() && dims.mul(copied, by) == dim
}

/// Computes the inferred extent of a reshape, and fails if the numbers of elements are known to
/// differ.
fn fit(cx: &mut Context, from: &[DimId], to: &mut Extents, inferred: Option<usize>) -> Result<(), TypeError> {
    let unknown = cx.types.dims.unknown();
    // Extents on both sides cancel out, unless they are 0.
    let mut left: SmallVec<[DimId; 4]> = from.into();
    let mut right: SmallVec<[DimId; 4]> = SmallVec::new();
    for (axis, &dim) in to.iter().enumerate() {
        if Some(axis) == inferred {
            continue;
        }
        match left.iter().position(|&d| d == dim && d != unknown && cx.types.dims.as_constant(d) != Some(0)) {
            Some(i) => {
                left.remove(i);
            }
            None => right.push(dim),
        }
    }
    let mut product = |dims: &[DimId]| {
        let one = cx.types.dims.constant(1);
        dims.iter().fold(one, |n, &d| cx.types.dims.mul(n, d))
    };
    let (have, rest) = (product(&left), product(&right));
    let dims = &mut cx.types.dims;
    let misfit = |cx: &Context| {
        let text = |dims: &[DimId]| dims.iter().map(|&d| cx.dim_text(d)).collect::<Vec<_>>().join(", ");
        TypeError::operand(1, format!("a tensor of shape ({}) does not fit the shape ({})", text(from), text(to)))
    };
    match (inferred, dims.as_constant(have), dims.as_constant(rest)) {
        (Some(_), Some(h), Some(r)) if r == 0 || h % r != 0 => Err(misfit(cx)),
        (Some(axis), _, Some(r)) if r != 0 => {
            let remainder = dims.op(DimOp::Mod, have, rest);
            let quotient = dims.op(DimOp::FloorDiv, have, rest);
            // The call fails unless the remainder is 0. If it is not known to be 0, the extent
            // stays unknown.
            to[axis] = if dims.as_constant(remainder) == Some(0) { quotient } else { unknown };
            Ok(())
        }
        // If one of the other extents is 0, the call fails.
        (Some(axis), ..) => {
            to[axis] = quotient(dims, have, rest).unwrap_or(unknown);
            Ok(())
        }
        // An extent on both sides that is not known may be 0, and then the shapes fit.
        (None, Some(h), Some(r)) if h != r && from.iter().all(|&d| dims.as_constant(d).is_some()) => Err(misfit(cx)),
        (None, ..) => Ok(()),
    }
}

/// Returns the quotient of a dimension and a product of symbols; `None` if it is not known, or the
/// divisor is not such a product.
fn quotient(dims: &mut Dims, dim: DimId, by: DimId) -> Option<DimId> {
    let terms_of = |dims: &Dims, d: DimId| match dims.get(d) {
        Dim::Sum(terms) => Some(terms.to_vec()),
        Dim::Symbol(_) | Dim::Bound { .. } | Dim::Op { .. } => {
            Some(vec![Term { coefficient: 1, factors: smallvec::smallvec![d] }])
        }
        Dim::Const(_) | Dim::Unknown => None,
    };
    let [divisor] = terms_of(dims, by)?.try_into().ok()?;
    let mut sum = dims.constant(0);
    for mut term in terms_of(dims, dim)? {
        for factor in &divisor.factors {
            let at = term.factors.iter().position(|f| f == factor)?;
            term.factors.remove(at);
        }
        if term.coefficient.checked_rem(divisor.coefficient)? != 0 {
            return None;
        }
        let start = dims.constant(term.coefficient / divisor.coefficient);
        let product = term.factors.iter().fold(start, |n, &f| dims.mul(n, f));
        sum = dims.add(sum, product);
    }
    Some(sum)
}
