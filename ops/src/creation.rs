//! Operators that create tensors from attributes and scalars.

use anfora_ir::FusionPattern::ElemWise;
use anfora_ir::{
    Arity, Attr, AttrDef, AttrDefault, AttrKind, AttrReader, DType, DimId, DimOp, OpDef, Splat, TypeCall, TypeError,
    TypeId,
};

use crate::elements;
use crate::kernels::creation::{self, extents, shape_operand};
use crate::kernels::{Failure, cosine_window};
use crate::row::row;
use crate::shape::plain_shape;
use crate::typing::{Elements, RequiredAttrs, extent, given, one, result, same_elements, tensor};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row("zeros", "all elements 0", Arity::exactly(0), shaped, |c| {
            one(creation::constant(&extents(&given_dims(&c.attrs)?)?, dtype_attr(&c.attrs), 0))
        })
        .splat(Splat::Always)
        .elements(|call, ty| elements::all(call.cx, ty, 0))
        .attrs(const { &[SHAPE, DTYPE] })
        .fusion(ElemWise),
        row("ones", "all elements 1", Arity::exactly(0), shaped, |c| {
            one(creation::constant(&extents(&given_dims(&c.attrs)?)?, dtype_attr(&c.attrs), 1))
        })
        .splat(Splat::Always)
        .elements(|call, ty| elements::all(call.cx, ty, 1))
        .attrs(const { &[SHAPE, DTYPE] })
        .fusion(ElemWise),
        row("full", "all elements the one element of `value`", Arity::exactly(1), full, |c| {
            let value = given(c.attrs.literal("value"), "value")?;
            one(creation::full(&extents(&shape_operand(c.operand(0)?)?)?, &value))
        })
        .splat(Splat::Always)
        .elements(|call, ty| {
            let value = call.attrs().literal("value")?.to_i64s()?;
            elements::all(call.cx, ty, *value.first()?)
        })
        .attrs(const { &[AttrDef::required("value", AttrKind::Literal, "a tensor of one element")] })
        .fusion(ElemWise)
        .shape_operands(&[0])
        .may_fail(),
        row("arange", "`start + i * step` as long as that is before `end`", Arity::exactly(3), arange, |c| {
            one(creation::arange(c.operand(0)?, c.operand(1)?, c.operand(2)?))
        })
        .elements(elements::counted)
        .may_fail(),
        row(
            "cosine_window",
            "a window of sums of cosines; the operand is its extent",
            Arity::exactly(1),
            cosine_window_type,
            |c| {
                let kind = given(c.attrs.str("kind"), "kind")?;
                let periodic = c.attrs.required_bool("periodic")?;
                one(cosine_window::cosine_window(c.operand(0)?, kind, periodic, dtype_attr(&c.attrs)))
            },
        )
        .attrs(
            const {
                &[
                    AttrDef::required("kind", AttrKind::Str, "`hann`, `hamming` or `blackman`"),
                    AttrDef::new(
                        "periodic",
                        AttrKind::Bool,
                        AttrDefault::Bool(true),
                        "whether the window is the beginning of one that is longer by an element",
                    ),
                    DTYPE,
                ]
            },
        )
        .size_bound(|c| {
            let size = c.optional(0).and_then(|s| cosine_window::extent_of(s).ok()).unwrap_or(0);
            size.saturating_mul(size_of::<f64>())
        })
        .may_fail(),
    ]
}

fn cosine_window_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let size = tensor(call, 0, Elements::Integer)?;
    crate::typing::expect_one(call.cx, &size, 0)?;
    let attrs = call.attrs();
    cosine_window::check_kind(given(attrs.str("kind"), "kind")?)?;
    let dtype = dtype_attr(&attrs);
    if !dtype.is_float() && !dtype.is_integer() {
        return Err(TypeError::new(format!("the elements are {dtype}, but numbers are expected")));
    }
    if let Some(size) = call.literal(0).filter(|l| l.dtype().is_integer()) {
        cosine_window::extent_of(size)?;
    }
    let count = call.elements(0).and_then(|e| e.first().copied()).unwrap_or(call.cx.types.dims.unknown());
    Ok(result(call.cx, dtype, Some(&[count])))
}

/// The attribute for a shape.
pub(crate) const SHAPE: AttrDef = AttrDef::required("shape", AttrKind::Shape, "the extents");
/// The attribute for an element type, which defaults to float32.
pub(crate) const DTYPE: AttrDef =
    AttrDef::new("dtype", AttrKind::DType, AttrDefault::DType(DType::Float32), "the element type");

/// Returns the dimensions in the attribute `shape`.
pub(crate) fn shape_dims<'a>(attrs: &AttrReader<'a>) -> Option<&'a [DimId]> {
    match attrs.raw("shape")? {
        Attr::Shape(dims) => Some(dims),
        _ => None,
    }
}

/// Returns the number of elements of `arange` for bounds that are known in part.
fn computed_count(call: &mut TypeCall<'_>) -> DimId {
    let [start, end, step] = [0, 1, 2].map(|i| call.elements(i).and_then(|e| e.first().copied()));
    let dims = &mut call.cx.types.dims;
    let (Some(start), Some(end), Some(step)) = (start, end, step) else { return dims.unknown() };
    // A step that is not known to be positive may count down.
    if dims.as_constant(step).is_none_or(|s| s <= 0) {
        return dims.unknown();
    }
    let distance = dims.sub(end, start);
    let count = dims.op(DimOp::CeilDiv, distance, step);
    if elements::bounds(dims, count).0 >= Some(0) {
        return count;
    }
    let zero = dims.constant(0);
    dims.op(DimOp::Max, count, zero)
}

/// Returns the numbers in the attribute `shape`, which contains no symbols when a kernel runs.
pub(crate) fn given_dims(attrs: &AttrReader<'_>) -> Result<Vec<i64>, Failure> {
    let dims = given(shape_dims(attrs), "shape")?;
    let number = |&d: &DimId| attrs.cx.types.dims.as_constant(d);
    let numbers: Option<Vec<i64>> = dims.iter().map(number).collect();
    numbers.ok_or_else(|| Failure::Mismatch("an extent in attribute `shape` is not known".into()))
}

/// Returns the attribute `dtype`, or its default.
pub(crate) fn dtype_attr(attrs: &AttrReader<'_>) -> DType {
    attrs.dtype("dtype").unwrap_or(DType::Float32)
}

/// Returns the type of a tensor with the attributes `shape` and `dtype`.
fn shaped(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let attrs = call.attrs();
    let dims = given(shape_dims(&attrs), "shape")?.to_vec();
    let dtype = dtype_attr(&attrs);
    for &d in &dims {
        if call.cx.types.dims.as_constant(d).is_some_and(|c| c < 0) {
            return Err(TypeError::new(format!("extent {} is negative", call.cx.dim_text(d))));
        }
    }
    Ok(result(call.cx, dtype, Some(&dims)))
}

/// Returns the type of a tensor of floats with the attributes `shape` and `dtype`.
pub(crate) fn shaped_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let dtype = dtype_attr(&call.attrs());
    if !Elements::Float.accepts(dtype) {
        return Err(TypeError::new(format!("the elements are {dtype}, but floats are expected")));
    }
    shaped(call)
}

fn full(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let value = given(call.attrs().literal("value"), "value")?;
    if value.element_count() != 1 {
        return Err(TypeError::new(format!("attribute `value` has {} elements, not one", value.element_count())));
    }
    plain_shape(call, 0, value.dtype())
}

fn arange(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let first = tensor(call, 0, Elements::Number)?;
    for i in 0..3 {
        let x = tensor(call, i, Elements::Number)?;
        same_elements(&first, &x, i)?;
        crate::typing::expect_rank(&x, i, 0)?;
    }
    let count = match (call.literal(0), call.literal(1), call.literal(2)) {
        (Some(a), Some(b), Some(c)) => match creation::arange_count(a, b, c) {
            Ok(count) => Some(count),
            Err(Failure::ElementType(_)) => None,
            Err(failure) => return Err(failure.into()),
        },
        _ => None,
    };
    let dim = match count {
        Some(count) => extent(call.cx, count),
        None => computed_count(call),
    };
    Ok(result(call.cx, first.dtype, Some(&[dim])))
}
