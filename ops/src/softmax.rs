//! Softmax and similar operators.

use std::ops::Range;

use anfora_ir::FusionPattern::OutEWiseFusable;
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, KernelCall, KernelError, Literal, OpDef, Splat, TypeCall, TypeError, TypeId,
};

use crate::kernels::Failure;
use crate::kernels::normalise::{self, Softmax};
use crate::kernels::strides::resolve_axis;
use crate::row::row;
use crate::typing::{Elements, RequiredAttrs, one, tensor};

const ATTRS: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(-1), "the axis along which they sum to 1"),
    AttrDef::optional("axes", AttrKind::Ints, "instead of `axis`: neighbouring axes, in order, which count as one"),
];

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row("nn.softmax", "the exponentials, divided by their sum along an axis", Arity::exactly(1), infer, |c| {
            run(c, Softmax::Plain)
        })
        .splat(Splat::OfAll)
        .attrs(ATTRS)
        .fusion(OutEWiseFusable),
        row("nn.log_softmax", "the logarithm of the softmax along an axis", Arity::exactly(1), infer, |c| {
            run(c, Softmax::Log)
        })
        .splat(Splat::OfAll)
        .attrs(ATTRS)
        .fusion(OutEWiseFusable),
        row("nn.hardmax", "1 at the first largest element along an axis, 0 elsewhere", Arity::exactly(1), infer, |c| {
            let x = c.operand(0)?;
            one(normalise::hardmax(x, axes(c, x.rank())?))
        })
        .attrs(ATTRS)
        .fusion(OutEWiseFusable),
    ]
}

fn run(c: &KernelCall<'_>, kind: Softmax) -> Result<Vec<Literal>, KernelError> {
    let x = c.operand(0)?;
    one(normalise::softmax(kind, x, axes(c, x.rank())?))
}

fn axes(c: &KernelCall<'_>, rank: usize) -> Result<Range<usize>, Failure> {
    neighbours(c.attrs.required_int("axis")?, c.attrs.ints("axes").as_deref(), rank)
}

/// Returns the axes that are treated as one.
fn neighbours(axis: i64, axes: Option<&[i64]>, rank: usize) -> Result<Range<usize>, Failure> {
    let Some(axes) = axes else {
        let axis = resolve_axis(axis, rank)?;
        return Ok(axis..axis + 1);
    };
    let wrong = || Failure::Mismatch(format!("axes {axes:?} are not neighbours in order"));
    let first = resolve_axis(*axes.first().ok_or_else(wrong)?, rank)?;
    for (i, &axis) in axes.iter().enumerate() {
        if resolve_axis(axis, rank)? != first + i {
            return Err(wrong());
        }
    }
    Ok(first..first + axes.len())
}

fn infer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    if let Some(shape) = &x.shape {
        let (axis, axes) = (call.attrs().required_int("axis")?, call.attrs().ints("axes"));
        neighbours(axis, axes.as_deref(), shape.len())?;
    }
    Ok(call.ty(0))
}
