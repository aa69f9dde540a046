//! Normalisations, softmax and dropout.

use anfora_ir::FusionPattern::{Broadcast, OutEWiseFusable};
use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, DType, Literal, OpDef, Splat, TypeCall, TypeError, TypeId};

use crate::kernels::Failure;
use crate::kernels::normalise::{self, Response, Softmax, Statistics};
use crate::kernels::strides::resolve_axis;
use crate::row::row;
use crate::typing::{
    Elements, Given, axis_of, differ, expect_rank, one, optional, ranked, result, same_elements, tensor, unify,
};

const EPSILON: AttrDef = AttrDef::new(
    "epsilon",
    AttrKind::Float,
    AttrDefault::Float(1e-5),
    "added to the variance before its root is taken",
);
const LAST_AXIS: AttrDef =
    AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(-1), "the axis along which they sum to 1");

/// The rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "nn.batch_norm",
            "`(x - mean) * (scale / sqrt(var + epsilon)) + bias` by channel; operands x, scale, bias, mean, var",
            Arity::exactly(5),
            batch_norm,
            |c| {
                let statistics = Statistics {
                    scale: c.operand(1)?,
                    bias: c.operand(2)?,
                    mean: c.operand(3)?,
                    var: c.operand(4)?,
                };
                let (axis, epsilon) = (c.attrs.given_int("axis")?, c.attrs.given_float("epsilon")?);
                one(normalise::batch_norm(c.operand(0)?, &statistics, axis, epsilon))
            },
        ).splat(Splat::OfAll)
        .attrs(
            const {
                &[AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(1), "the axis of the channels"), EPSILON] })
        .fusion(Broadcast),
        row(
            "nn.layer_norm",
            "`(x - mean) / sqrt(variance + epsilon) * scale + bias` over the last axes; operands x, scale, optionally bias",
            Arity::between(2, 3),
            layer_norm,
            |c| {
                let x = c.operand(0)?;
                let first = first_axis(&c.attrs.given_ints("axes")?, x.rank())?;
                let epsilon = c.attrs.given_float("epsilon")?;
                one(normalise::layer_norm(x, c.operand(1)?, c.optional(2), first, epsilon))
            },
        ).splat(Splat::OfAll)
        .attrs(
            const {
                &[
                    AttrDef::new("axes", AttrKind::Ints, AttrDefault::Ints(&[-1]), "the axes normalised over: the last, in order"),
                    EPSILON,
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row("nn.softmax", "the exponentials, divided by their sum along an axis", Arity::exactly(1), softmax, |c| {
            one(normalise::softmax(Softmax::Plain, c.operand(0)?, c.attrs.given_int("axis")?))
        }).splat(Splat::OfAll)
        .attrs(
            const {
                &[LAST_AXIS] })
        .fusion(OutEWiseFusable),
        row("nn.log_softmax", "the logarithm of the softmax along an axis", Arity::exactly(1), softmax, |c| {
            one(normalise::softmax(Softmax::Log, c.operand(0)?, c.attrs.given_int("axis")?))
        }).splat(Splat::OfAll)
        .attrs(
            const {
                &[LAST_AXIS] })
        .fusion(OutEWiseFusable),
        row(
            "nn.lrn",
            "`x / (bias + alpha / size * s) ^ beta`, s the sum of squares over `size` channels around",
            Arity::exactly(1),
            lrn,
            |c| {
                let how = Response {
                    size: c.attrs.given_int("size")?,
                    alpha: c.attrs.given_float("alpha")?,
                    beta: c.attrs.given_float("beta")?,
                    bias: c.attrs.given_float("bias")?,
                };
                one(normalise::lrn(c.operand(0)?, how))
            },
        )
        .attrs(
            const {
                &[
                    AttrDef::new("size", AttrKind::Int, AttrDefault::Required, "how many channels are summed over"),
                    AttrDef::new("alpha", AttrKind::Float, AttrDefault::Float(0.0001), "factor of the mean square"),
                    AttrDef::new("beta", AttrKind::Float, AttrDefault::Float(0.75), "exponent"),
                    AttrDef::new("bias", AttrKind::Float, AttrDefault::Float(1.0), "added before the power is taken"),
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row("nn.dropout", "for inference: the operand itself, and a mask of `true`", Arity::exactly(1), dropout, |c| {
            let x = c.operand(0)?;
            Ok(vec![x.clone(), Literal::splat(x.shape(), true)])
        }).splat(Splat::OfAll)
        .attrs(
            const {
                &[AttrDef::new("ratio", AttrKind::Float, AttrDefault::Float(0.5), "what part would be dropped in training")]
            },
        )
        .forwards(&[(0, 0)]),
    ]
}

fn batch_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let axis = axis_of(call.attrs().given_int("axis")?, &x)?;
    let channels = match (&x.shape, axis) {
        (Some(shape), Some(axis)) => shape[axis],
        _ => call.cx.types.dims.unknown(),
    };
    for i in 1..5 {
        let p = tensor(call, i, Elements::Float)?;
        same_elements(&x, &p, i)?;
        let shape = ranked(call.cx, &p, i, 1)?;
        if unify(call.cx, shape[0], channels).is_none() {
            return Err(differ(call.cx, i, "the extent", shape[0], channels));
        }
    }
    Ok(call.operands[0].ty)
}

/// The first of the axes that are normalised over.
fn first_axis(axes: &[i64], rank: usize) -> Result<usize, Failure> {
    let first = rank.checked_sub(axes.len());
    let in_order = |first: usize| {
        axes.iter().enumerate().try_fold(true, |ok, (i, &a)| Ok(ok && resolve_axis(a, rank)? == first + i))
    };
    match first {
        Some(first) if in_order(first)? => Ok(first),
        _ => Err(Failure::Mismatch(format!("axes {axes:?} are not the last of rank {rank}, in order"))),
    }
}

fn layer_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let axes = call.attrs().given_ints("axes")?;
    let normalised = match &x.shape {
        Some(shape) => Some(&shape[first_axis(&axes, shape.len())?..]),
        None => None,
    };
    for i in 1..3 {
        let Some(p) = optional(call, i, Elements::Float)? else {
            if i == 1 {
                tensor(call, i, Elements::Float)?;
            }
            continue;
        };
        same_elements(&x, &p, i)?;
        expect_rank(&p, i, axes.len())?;
        let (Some(shape), Some(normalised)) = (&p.shape, normalised) else { continue };
        for (&found, &wanted) in shape.iter().zip(normalised) {
            if unify(call.cx, found, wanted).is_none() {
                return Err(differ(call.cx, i, "an extent", found, wanted));
            }
        }
    }
    Ok(call.operands[0].ty)
}

fn softmax(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    axis_of(call.attrs().given_int("axis")?, &x)?;
    Ok(call.operands[0].ty)
}

fn lrn(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    if x.shape.as_ref().is_some_and(|s| s.len() < 2) {
        return Err(TypeError::operand(0, "operand 0 has no axis of channels"));
    }
    let size = call.attrs().given_int("size")?;
    if size < 1 {
        return Err(TypeError::new(format!("attribute `size` is {size}, but at least 1 is wanted")));
    }
    Ok(call.operands[0].ty)
}

fn dropout(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let mask = result(call.cx, DType::Bool, x.shape.as_deref());
    Ok(call.cx.types.tuple(&[call.operands[0].ty, mask]))
}
