//! Selection by order.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, KernelCall, KernelError, Literal, OpDef, TypeCall, TypeError, TypeId,
};

use crate::kernels::order;
use crate::kernels::reduction::Extreme;
use crate::row::row;
use crate::typing::{Elements, RequiredAttrs, as_extent, axis_of, expect_one, extent, result, tensor};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "topk",
            "the k largest or smallest elements along an axis, in that order, and their indices; operands x, k",
            Arity::exactly(2),
            infer,
            run,
        )
        .attrs(
            const {
                &[
                    AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(-1), "the axis"),
                    AttrDef::new(
                        "largest",
                        AttrKind::Bool,
                        AttrDefault::Bool(true),
                        "whether the largest are meant, not the smallest",
                    ),
                    AttrDef::new(
                        "sorted",
                        AttrKind::Bool,
                        AttrDefault::Bool(true),
                        "whether their order matters to the program; they have it in any case",
                    ),
                ]
            },
        )
        .may_fail(),
    ]
}

fn run(c: &KernelCall<'_>) -> Result<Vec<Literal>, KernelError> {
    let extreme = if c.attrs.required_bool("largest")? { Extreme::Max } else { Extreme::Min };
    let k = order::count_operand(c.operand(1)?)?;
    Ok(order::top(extreme, c.operand(0)?, k, c.attrs.required_int("axis")?)?.to_vec())
}

fn infer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Number)?;
    let k = tensor(call, 1, Elements::Integer)?;
    expect_one(call.cx, &k, 1)?;
    let axis = axis_of(call.attrs().required_int("axis")?, &x)?;
    let k = call.literal(1).map(order::count_operand).transpose()?;
    let mut shape = x.shape.clone();
    if let (Some(shape), Some(axis)) = (&mut shape, axis) {
        if let (Some(k), Some(whole)) = (k, as_extent(call.cx, shape[axis]))
            && k > whole
        {
            return Err(TypeError::operand(1, format!("{k} of {whole} elements are requested")));
        }
        shape[axis] = match k {
            Some(k) => extent(call.cx, k),
            None => call.cx.types.dims.unknown(),
        };
    }
    let values = result(call.cx, x.dtype, shape.as_deref());
    let indices = result(call.cx, DType::Int64, shape.as_deref());
    Ok(call.cx.types.tuple(&[values, indices]))
}
