//! Conversion to another element type.

use anfora_ir::{AttrDef, AttrDefault, AttrKind, AttrReader, OpDef, TypeCall, TypeError, TypeId};

use super::unary;
use crate::elements;
use crate::kernels::small_number::{Powers, Rounding};
use crate::kernels::{Failure, bits, cast};
use crate::typing::{Elements, RequiredAttrs, given, one, result, tensor};

/// The attribute of operators whose result may have floats of 8 bits.
pub(crate) const SATURATE: AttrDef = AttrDef::new(
    "saturate",
    AttrKind::Bool,
    AttrDefault::Bool(true),
    "whether numbers that a float of 8 bits does not have become its greatest one; else an infinity or NaN",
);
const ROUND_MODE: AttrDef = AttrDef::new(
    "round_mode",
    AttrKind::Str,
    AttrDefault::Str("up"),
    "the rounding to float8e8m0: `up`, `down` or `nearest`",
);

pub(super) fn rows() -> Vec<OpDef> {
    const DTYPE: AttrDef = AttrDef::required("dtype", AttrKind::DType, "the element type wanted");
    vec![
        unary(
            "astype",
            "converted: floats to integers truncate and saturate, integers wrap, to bool is `!= 0`",
            astype,
            |c| one(cast::cast_with(c.operand(0)?, given(c.attrs.dtype("dtype"), "dtype")?, rounding(&c.attrs)?)),
        )
        .attrs(const { &[DTYPE, SATURATE, ROUND_MODE] })
        .elements(elements::converted),
        unary("bitcast", "the same bits as elements of another type of as many bits", bitcast, |c| {
            one(bits::bitcast(c.operand(0)?, given(c.attrs.dtype("dtype"), "dtype")?))
        })
        .attrs(const { &[DTYPE] }),
    ]
}

fn rounding(attrs: &AttrReader<'_>) -> Result<Rounding, Failure> {
    let powers = Powers::from_name(given(attrs.str("round_mode"), "round_mode")?)?;
    Ok(Rounding { saturate: attrs.required_bool("saturate")?, powers })
}

fn astype(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let to = given(call.attrs().dtype("dtype"), "dtype")?;
    rounding(&call.attrs())?;
    if to == x.dtype {
        return Ok(call.ty(0));
    }
    Ok(result(call.cx, to, x.shape.as_deref()))
}

fn bitcast(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let to = given(call.attrs().dtype("dtype"), "dtype")?;
    bits::check_bitcast(x.dtype, to)?;
    Ok(result(call.cx, to, x.shape.as_deref()))
}
