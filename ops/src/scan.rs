//! Scans along an axis.

use anfora_ir::{
    Arity, AttrDef, AttrKind, DimId, KernelCall, KernelError, Literal, OpDef, TypeCall, TypeError, TypeId,
};

use crate::kernels::positions::one_integer;
use crate::kernels::scan::{self, Direction, Own, Scan};
use crate::row::{row, with_kernel};
use crate::typing::{Elements, RequiredAttrs, axis_of, expect_one, one, optional, tensor};

const ATTRS: &[AttrDef] = &[
    AttrDef::optional(
        "axis",
        AttrKind::Int,
        "the axis; without it or an operand that says it, all elements in row-major order",
    ),
    AttrDef::flag("reverse", "whether it starts from the last element"),
    AttrDef::flag("exclusive", "whether the element itself is left out"),
];

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        scan_row("cumsum", "the sum of the elements up to each along an axis; integers wrap", |c| run(c, Scan::Sum)),
        scan_row("cumprod", "the product of the elements up to each along an axis; integers wrap", |c| {
            run(c, Scan::Product)
        }),
    ]
}

with_kernel! {
    fn scan_row(name: &'static str, doc: &'static str; kernel) -> OpDef {
        row(name, doc, Arity::between(1, 2), infer, kernel).attrs(ATTRS).may_fail()
    }
}

fn run(c: &KernelCall<'_>, op: Scan) -> Result<Vec<Literal>, KernelError> {
    let axis = match c.optional(1) {
        Some(axis) => Some(one_integer(axis, "axis")?),
        None => c.attrs.int("axis"),
    };
    let direction = if c.attrs.required_bool("reverse")? { Direction::Backward } else { Direction::Forward };
    let own = if c.attrs.required_bool("exclusive")? { Own::Excluded } else { Own::Included };
    one(scan::scan(op, c.operand(0)?, axis, direction, own))
}

fn infer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Number)?;
    let attribute = call.attrs().int("axis");
    let Some(operand) = optional(call, 1, Elements::Integer)? else {
        let Some(axis) = attribute else {
            let one = call.cx.types.dims.constant(1);
            let count: DimId = match &x.shape {
                Some(shape) => shape.iter().fold(one, |count, &d| call.cx.types.dims.mul(count, d)),
                None => call.cx.types.dims.unknown(),
            };
            return Ok(call.cx.types.tensor(x.dtype, &[count]));
        };
        axis_of(axis, &x)?;
        return Ok(call.ty(0));
    };
    if attribute.is_some() {
        return Err(TypeError::operand(1, "the axis is an operand as well as an attribute"));
    }
    expect_one(call.cx, &operand, 1)?;
    if let Some(literal) = call.literal(1) {
        axis_of(one_integer(literal, "axis")?, &x)?;
    }
    Ok(call.ty(0))
}
