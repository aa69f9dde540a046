//! Losses.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DimId, KernelCall, KernelError, OpDef, Splat, TypeCall, TypeError, TypeId,
};

use crate::kernels::loss::{self, Loss, Reduction};
use crate::row::row;
use crate::typing::{Elements, Extents, differ, given, one, optional, ranked, result, same_elements, tensor, unify};

const ATTRS: &[AttrDef] = &[
    AttrDef::new(
        "reduction",
        AttrKind::Str,
        AttrDefault::Str("mean"),
        "what becomes of the losses of the samples: `none`, `mean` (by weight) or `sum`",
    ),
    AttrDef::optional("ignore_index", AttrKind::Int, "samples of this class do not count"),
];

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "nn.nll_loss",
            "the negative of what the target's class has, by weight; operands log-probabilities, targets, optionally weights",
            Arity::between(2, 3),
            |call| Ok(infer(call)?.0),
            |c| one(loss::nll_loss(c.operand(0)?, c.operand(1)?, of(c)?)),
        )
        .attrs(ATTRS)
        .splat(Splat::OfAll)
        .may_fail(),
        row(
            "nn.softmax_cross_entropy",
            "the `nn.nll_loss` of the log-softmax, and that; operands scores, targets, optionally weights",
            Arity::between(2, 3),
            |call| {
                let (loss, scores) = infer(call)?;
                Ok(call.cx.types.tuple(&[loss, scores]))
            },
            |c| Ok(loss::softmax_cross_entropy(c.operand(0)?, c.operand(1)?, of(c)?)?.to_vec()),
        )
        .attrs(ATTRS)
        .splat(Splat::OfAll)
        .may_fail(),
    ]
}

fn of<'a>(c: &KernelCall<'a>) -> Result<Loss<'a>, KernelError> {
    Ok(Loss {
        weights: c.operands.get(2).copied().flatten(),
        reduction: Reduction::named(given(c.attrs.str("reduction"), "reduction")?)?,
        ignored: c.attrs.int("ignore_index"),
    })
}

/// Returns the types of the loss and of operand 0.
fn infer(call: &mut TypeCall<'_>) -> Result<(TypeId, TypeId), TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let targets = tensor(call, 1, Elements::Integer)?;
    let weights = optional(call, 2, Elements::Float)?;
    let reduction = Reduction::named(given(call.attrs().str("reduction"), "reduction")?)?;
    let unknown = call.cx.types.dims.unknown();
    let (classes, mut samples): (DimId, Option<Extents>) = match x.shape.as_deref() {
        None => (unknown, targets.shape.clone()),
        Some([batch, classes, behind @ ..]) => (*classes, Some([batch].into_iter().chain(behind).copied().collect())),
        Some(_) => return Err(TypeError::operand(0, "operand 0 has no axis of classes")),
    };
    if let (Some(samples), Some(_)) = (&mut samples, &x.shape) {
        let found = ranked(call.cx, &targets, 1, samples.len())?;
        for (wanted, found) in samples.iter_mut().zip(found) {
            *wanted = unify(call.cx, *wanted, found).ok_or_else(|| differ(call.cx, 1, "an extent", found, *wanted))?;
        }
    }
    if let Some(weights) = weights {
        same_elements(&x, &weights, 2)?;
        let found = ranked(call.cx, &weights, 2, 1)?[0];
        if unify(call.cx, found, classes).is_none() {
            return Err(differ(call.cx, 2, "the extent", found, classes));
        }
    }
    let loss = match reduction {
        Reduction::None => result(call.cx, x.dtype, samples.as_deref()),
        Reduction::Mean | Reduction::Sum => call.cx.types.scalar(x.dtype),
    };
    Ok((loss, call.ty(0)))
}
