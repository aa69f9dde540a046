//! The adjoints of operators: the rules with which Gradient differentiates calls.
//!
//! The tables list the operators with their rules. A rule is written once for all floating-point
//! element types, and for extents that are numbers, symbols or unknown. Where a result does not
//! depend on an operand in a differentiable way (the index of a `take`, the operand of a `floor`),
//! the adjoint of the operand is left out, and stands for zeros. The operators of
//! [`WITHOUT_DERIVATIVE`] are constant almost everywhere, so their rule gives nothing.
//!
//! Composite operators have no rules here, since Gradient differentiates their steps. The
//! exceptions are softmaxes, whose adjoints are shorter and do not depend on the largest element,
//! and operators that have a derivative where one of their steps has none, or overflows.

use anfora_ir::{AdjointRule, AdjointWriter, AttrValue, DecompositionPart as Part, DimId, Literal, Number, TensorType};

use crate::decompositions::counted;

mod activations;
mod convolutions;
mod elementwise;
mod indexing;
mod layout;
mod matrices;
mod normalisations;
mod pools;
mod reductions;
mod softmaxes;

/// The rules, by family.
const TABLES: &[&[(&str, AdjointRule)]] = &[
    elementwise::RULES,
    reductions::RULES,
    layout::RULES,
    indexing::RULES,
    matrices::RULES,
    convolutions::RULES,
    pools::RULES,
    softmaxes::RULES,
    activations::RULES,
    normalisations::RULES,
];

/// Operators whose results are floats and whose derivatives are 0 wherever they exist, and
/// operators that use the shape of their operand alone.
const WITHOUT_DERIVATIVE: &[&str] = &["sign", "floor", "ceil", "round", "trunc", "floor_divide", "eye_like"];

/// Returns the rule of an operator; `None` if it has none.
pub(crate) fn rule_of(operator: &str) -> Option<AdjointRule> {
    if WITHOUT_DERIVATIVE.contains(&operator) {
        return Some(|_| Some(()));
    }
    TABLES.iter().copied().flatten().find(|(name, _)| *name == operator).map(|&(_, rule)| rule)
}

// ---- Shapes ----

/// Returns the extents of an operand if all of them are known and none is 0, which would have a
/// meaning of its own in the list of a `reshape`.
fn known_extents(a: &AdjointWriter<'_>, i: usize) -> Option<Vec<i64>> {
    (0..a.rank(i)?).map(|axis| a.extent(i, axis).filter(|&extent| extent > 0)).collect()
}

/// Returns the shape of an operand as a list.
fn shape_of(a: &mut AdjointWriter<'_>, i: usize) -> Option<Part> {
    if let Some(extents) = known_extents(a, i) {
        return Some(a.ints(&extents));
    }
    let x = a.operand(i)?;
    Some(a.op("shape_of", &[x]))
}

/// Returns a value in the shape of an operand, which has as many elements.
fn reshaped_like(a: &mut AdjointWriter<'_>, i: usize, x: Part) -> Option<Part> {
    let is_known = known_extents(a, i).is_some();
    let shape = shape_of(a, i)?;
    let zeros: &[(&'static str, AttrValue)] = if is_known { &[] } else { &[("allowzero", AttrValue::Bool(true))] };
    Some(a.op_with("reshape", &[x, shape], zeros))
}

/// Returns a value that broadcasts to the shape of an operand in this shape.
fn broadcast_like(a: &mut AdjointWriter<'_>, i: usize, x: Part) -> Option<Part> {
    let shape = shape_of(a, i)?;
    Some(a.op("broadcast_to", &[x, shape]))
}

/// Returns a tensor of a shape, filled with a number.
fn filled(a: &mut AdjointWriter<'_>, shape: Part, value: Literal) -> Part {
    a.op_with("full", &[shape], &[("value", value.into())])
}

/// Returns zeros of the shape and element type of an operand.
fn zeros_like(a: &mut AdjointWriter<'_>, i: usize) -> Option<Part> {
    let (ty, x) = (a.tensor(i)?, a.operand(i)?);
    zeros_of(a, ty, |_| x)
}

/// Returns zeros of a type, and of the shape of the value that `like` makes. The value is only
/// needed if an extent is not a number.
fn zeros_of(
    a: &mut AdjointWriter<'_>,
    ty: &TensorType,
    like: impl FnOnce(&mut AdjointWriter<'_>) -> Part,
) -> Option<Part> {
    let extents = |shape: &[DimId]| shape.iter().map(|&dim| a.cx().types.dims.as_constant(dim)).collect();
    let extents: Option<Vec<i64>> = ty.shape.as_deref().and_then(extents);
    let shape = match extents {
        Some(extents) => a.ints(&extents),
        None => {
            let x = like(a);
            a.op("shape_of", &[x])
        }
    };
    let zero = Number::Float(0.0).scalar(ty.dtype)?;
    Some(filled(a, shape, zero))
}

/// Returns a value as a list of its elements.
fn flattened(a: &mut AdjointWriter<'_>, x: Part) -> Part {
    let all = a.ints(&[-1]);
    a.op("reshape", &[x, all])
}

/// Returns a float scalar of the element type of an operand.
fn number(a: &mut AdjointWriter<'_>, i: usize, number: f64) -> Option<Part> {
    let dtype = a.dtype(i)?;
    a.number(number, dtype)
}

// ---- Broadcasting ----

/// Returns true if an axis of an operand has the extent of the result: the extents are equal, or
/// all other operands have the extent 1 there or no such axis. `None` if it depends on extents that
/// are not known.
fn fills_axis(a: &AdjointWriter<'_>, extent: DimId, of_result: DimId, others: &[Option<DimId>]) -> Option<bool> {
    let dims = &a.cx().types.dims;
    let is_one = |dim: DimId| dims.as_constant(dim) == Some(1);
    if extent == of_result && extent != dims.unknown() || is_one(of_result) {
        return Some(true);
    }
    if let Some(known) = dims.as_constant(extent) {
        return Some(known != 1);
    }
    others.iter().all(|other| other.is_none_or(is_one)).then_some(true)
}

/// Adds up an adjoint of the shape `from` to the shape of operand `i`, which was broadcast to
/// `from` together with the shapes `others`. Shapes are aligned at their ends. The last axes of the
/// operand may be left out of all shapes: they were not broadcast.
fn summed_from(
    a: &mut AdjointWriter<'_>,
    i: usize,
    mut x: Part,
    [to, from]: [&[DimId]; 2],
    others: &[&[DimId]],
) -> Option<Part> {
    let added = from.len().checked_sub(to.len())?;
    if added > 0 {
        let axes: Vec<i64> = (0..added as i64).collect();
        x = a.op_with("sum", &[x], &[("axis", axes.into())]);
    }
    let mut axes: Vec<i64> = Vec::new();
    for (axis, &extent) in to.iter().enumerate() {
        let from_end = to.len() - axis;
        let at = |shape: &[DimId]| shape.len().checked_sub(from_end).map(|at| shape[at]);
        let others: Vec<Option<DimId>> = others.iter().map(|shape| at(shape)).collect();
        match fills_axis(a, extent, from[added + axis], &others) {
            Some(true) => {}
            Some(false) => axes.push(axis as i64),
            None => return summed_where_different(a, i, x),
        }
    }
    if axes.is_empty() {
        return Some(x);
    }
    Some(a.op_with("sum", &[x], &[("axis", axes.into()), ("keepdims", AttrValue::Bool(true))]))
}

/// Adds up a value over the axes in which its extent differs from that of an operand of its rank,
/// which are found when the program runs.
fn summed_where_different(a: &mut AdjointWriter<'_>, i: usize, x: Part) -> Option<Part> {
    let operand = a.operand(i)?;
    let [own, wanted] = [x, operand].map(|x| a.op("shape_of", &[x]));
    let differs = a.op("not_equal", &[own, wanted]);
    let places = a.op("nonzero", &[differs]);
    let axes = a.op_with("squeeze", &[places], &[("axis", [0].into())]);
    let flags = [("keepdims", AttrValue::Bool(true)), ("noop_with_empty_axes", AttrValue::Bool(true))];
    Some(a.op_with("sum", &[x, axes], &flags))
}

/// Gives an operand of an elementwise operator an adjoint of the shape of the result, added up to
/// the shape of the operand.
fn give_summed(a: &mut AdjointWriter<'_>, i: usize, x: Part) -> Option<()> {
    if !a.wants(i) {
        return Some(());
    }
    let is_same = a.operand_count() == 1 || a.tensor(i)? == a.result_tensor()? && is_known(a, i);
    let sum = if is_same {
        x
    } else {
        let from: Vec<DimId> = a.result_tensor()?.shape.as_ref()?.to_vec();
        let mut others: Vec<&[DimId]> = Vec::new();
        for other in (0..a.operand_count()).filter(|&other| other != i) {
            others.push(a.tensor(other)?.shape.as_deref()?);
        }
        let to = a.tensor(i)?.shape.as_deref()?;
        summed_from(a, i, x, [to, &from], &others)?
    };
    a.give(i, sum);
    Some(())
}

/// Returns true if the extents of an operand are known, as numbers or as symbols.
fn is_known(a: &AdjointWriter<'_>, i: usize) -> bool {
    let unknown = a.cx().types.dims.unknown();
    a.tensor(i).and_then(|t| t.shape.as_ref()).is_some_and(|shape| !shape.contains(&unknown))
}

/// Returns an attribute that is a list of axes, counted from the front.
fn counted_axes(axes: &[i64], rank: usize) -> Option<Vec<i64>> {
    let mut axes: Vec<i64> =
        axes.iter().map(|&axis| counted(axis, rank).map(|axis| axis as i64)).collect::<Option<_>>()?;
    axes.sort_unstable();
    Some(axes)
}

/// Returns the integers of an operand that is a constant.
fn constant_ints(a: &AdjointWriter<'_>, i: usize) -> Option<Vec<i64>> {
    a.literal(i)?.to_i64s()
}
