//! Sums of products over named axes.

use anfora_ir::FusionPattern::OutEWiseFusable;
use anfora_ir::{Arity, AttrDef, AttrKind, DimId, Literal, OpDef, Splat, TensorType, TypeCall, TypeError, TypeId};

use crate::kernels::einsum::{self, Equation, Label};
use crate::row::row;
use crate::steps;
use crate::typing::{
    Elements, Extents, broadcast, broadcast_dims, differ, given, one, result, same_elements, tensor, unify,
};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row("einsum", "the sum of products that the subscripts say", Arity::at_least(1), einsum_type, |c| {
            let operands: Vec<&Literal> = (0..c.operands.len()).map(|i| c.operand(i)).collect::<Result<_, _>>()?;
            let text = given(c.attrs.str("subscripts"), "subscripts")?;
            one(einsum::einsum(&operands, &Equation::parse(text, operands.len())?))
        })
        .attrs(
            const {
                &[AttrDef::required(
                    "subscripts",
                    AttrKind::Str,
                    "the names of the axes of each operand and of the result, such as `ij,jk->ik`",
                )]
            },
        )
        .steps(steps::einsum)
        .splat(Splat::OfAll)
        .fusion(OutEWiseFusable),
    ]
}

fn einsum_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let count = call.count();
    let attrs = call.attrs();
    let equation = Equation::parse(given(attrs.str("subscripts"), "subscripts")?, count)?;
    let first = tensor(call, 0, Elements::Number)?;
    let mut named: Vec<(Label, DimId)> = Vec::new();
    let mut unnamed: Vec<(usize, TensorType)> = Vec::new();
    let mut all_known = true;
    for (i, term) in equation.operands.iter().enumerate() {
        let x = tensor(call, i, Elements::Number)?;
        same_elements(&first, &x, i)?;
        let Some(shape) = &x.shape else {
            all_known &= !term.has_ellipsis();
            continue;
        };
        let labels = term.labels_of(shape.len()).map_err(|e| TypeError::operand(i, e.to_string()))?;
        let mut rest = Extents::new();
        let mut own: Vec<(Label, DimId)> = Vec::new();
        for (&label, &dim) in labels.iter().zip(shape) {
            if let Label::Unnamed(_) = label {
                rest.push(dim);
                continue;
            }
            // The axes of a diagonal are equal; the axes of different operands broadcast.
            match own.iter_mut().find(|(l, _)| *l == label) {
                None => own.push((label, dim)),
                Some((_, before)) => match unify(call.cx, *before, dim) {
                    Some(both) => *before = both,
                    None => return Err(differ(call.cx, i, "an extent of one name", dim, *before)),
                },
            }
        }
        for (label, dim) in own {
            match named.iter_mut().find(|(l, _)| *l == label) {
                None => named.push((label, dim)),
                Some((_, before)) => match broadcast_dims(call.cx, *before, dim) {
                    Some(both) => *before = both,
                    None => return Err(differ(call.cx, i, "an extent of one name", dim, *before)),
                },
            }
        }
        unnamed.push((i, TensorType::new(x.dtype, Some(rest))));
    }
    let operands: Vec<(usize, &TensorType)> = unnamed.iter().map(|(i, t)| (*i, t)).collect();
    let rest = broadcast(call.cx, &operands)?.unwrap_or_default();
    if equation.result.has_ellipsis() && !all_known {
        return Ok(call.cx.types.unranked(first.dtype));
    }
    let unnamed = if equation.result.has_ellipsis() { rest.len() } else { 0 };
    let mut dims = Extents::new();
    for label in equation.result.labels(unnamed) {
        dims.push(match label {
            Label::Unnamed(from_end) => rest[rest.len() - 1 - from_end],
            letter => {
                let known = named.iter().find(|&&(l, _)| l == letter);
                known.map_or(call.cx.types.dims.unknown(), |&(_, dim)| dim)
            }
        });
    }
    Ok(result(call.cx, first.dtype, Some(&dims)))
}
