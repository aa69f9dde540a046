//! Conversion to another element type.

use anfora_ir::{AttrDef, AttrKind, OpDef, TypeCall, TypeError, TypeId};

use super::unary;
use crate::elements;
use crate::kernels::{bits, cast};
use crate::typing::{Elements, given, one, result, tensor};

pub(super) fn rows() -> Vec<OpDef> {
    const DTYPE: &[AttrDef] = &[AttrDef::required("dtype", AttrKind::DType, "the element type wanted")];
    vec![
        unary(
            "astype",
            "converted: floats to integers truncate and saturate, integers wrap, to bool is `!= 0`",
            astype,
            |c| one(cast::cast(c.operand(0)?, given(c.attrs.dtype("dtype"), "dtype")?)),
        )
        .attrs(DTYPE)
        .elements(elements::converted),
        unary("bitcast", "the same bits as elements of another type of as many bits", bitcast, |c| {
            one(bits::bitcast(c.operand(0)?, given(c.attrs.dtype("dtype"), "dtype")?))
        })
        .attrs(DTYPE),
    ]
}

fn astype(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let to = given(call.attrs().dtype("dtype"), "dtype")?;
    if to == x.dtype {
        return Ok(call.operands[0].ty);
    }
    Ok(result(call.cx, to, x.shape.as_deref()))
}

fn bitcast(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let to = given(call.attrs().dtype("dtype"), "dtype")?;
    bits::check_bitcast(x.dtype, to)?;
    Ok(result(call.cx, to, x.shape.as_deref()))
}
