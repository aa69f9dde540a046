//! The composite operators: those that the rows write in other operators.
//!
//! The table lists them with their rules. Every other operator is primitive: a pass author who runs
//! DecomposeOps first need not know the operators of the table. Rules are written once for all
//! element types of the row, and for extents that are numbers, symbols or unknown. A rule that
//! needs a rank that is not known does not apply.
//!
//! Where a kernel adds up 16-bit floats, it computes in float32 and rounds once. The rules of
//! normalisations, reductions, softmaxes and losses do the same with `astype` ([`Widened`]).
//! Elementwise operators are written in the element type of their operands, as the definitions of
//! ONNX are, and round at each step.

use anfora_ir::{AttrValue, DType, Decomposer, DecompositionPart as Part, DecompositionRule};

mod activations;
mod attention;
pub(crate) mod extents;
mod losses;
mod matrices;
mod normalisations;
mod pools;
pub(crate) mod reductions;
mod sequences;
mod variadic;

/// The composite operators with their rules, by family.
const TABLES: &[&[(&str, DecompositionRule)]] = &[
    activations::RULES,
    variadic::RULES,
    reductions::RULES,
    pools::RULES,
    normalisations::RULES,
    losses::RULES,
    matrices::RULES,
    attention::RULES,
    sequences::RULES,
];

/// Returns the rule of an operator; `None` if the operator is primitive.
pub(crate) fn rule_of(operator: &str) -> Option<DecompositionRule> {
    TABLES.iter().copied().flatten().find(|(name, _)| *name == operator).map(|&(_, rule)| rule)
}

/// The element types of a computation that rounds once, at its end.
#[derive(Copy, Clone)]
pub(crate) struct Widened {
    /// The element type of the operands and the result.
    pub(crate) own: DType,
    /// The element type that is computed in.
    pub(crate) wide: DType,
}

impl Widened {
    /// Returns the types of a computation on an operand: 16-bit floats are computed in float32.
    pub(crate) fn of(d: &Decomposer<'_>, operand: usize) -> Option<Widened> {
        let own = d.dtype(operand)?;
        let wide = if matches!(own, DType::Float16 | DType::BFloat16) { DType::Float32 } else { own };
        Some(Widened { own, wide })
    }

    /// Returns a value in the type that is computed in.
    pub(crate) fn widen(self, d: &mut Decomposer<'_>, x: Part) -> Part {
        cast(d, x, self.own, self.wide)
    }

    /// Returns a result in its own type.
    pub(crate) fn narrow(self, d: &mut Decomposer<'_>, x: Part) -> Part {
        cast(d, x, self.wide, self.own)
    }

    /// Returns a scalar of the type that is computed in.
    pub(crate) fn number(self, d: &mut Decomposer<'_>, number: f64) -> Option<Part> {
        d.number(number, self.wide)
    }

    /// Returns an operand in the type that is computed in; `None` if it is omitted.
    pub(crate) fn operand(self, d: &mut Decomposer<'_>, i: usize) -> Option<Part> {
        let x = d.operand(i)?;
        Some(self.widen(d, x))
    }
}

/// Returns a value with another element type.
pub(crate) fn cast(d: &mut Decomposer<'_>, x: Part, from: DType, to: DType) -> Part {
    if from == to { x } else { d.op_with("astype", &[x], &[("dtype", to.into())]) }
}

/// Returns the scalar of an element type with a whole number.
fn whole(d: &mut Decomposer<'_>, number: i64, dtype: DType) -> Option<Part> {
    if dtype.is_float() { d.number(number as f64, dtype) } else { d.number(number, dtype) }
}

/// Returns the product of a value and a number, or the value itself if the number is 1.
fn scaled(d: &mut Decomposer<'_>, x: Part, factor: f64, dtype: DType) -> Option<Part> {
    if factor == 1.0 {
        return Some(x);
    }
    let factor = d.number(factor, dtype)?;
    Some(d.op("multiply", &[x, factor]))
}

/// Reduces a value over the axes of a list. The axes stay with an extent of 1.
pub(crate) fn reduced(d: &mut Decomposer<'_>, op: &'static str, x: Part, axes: &[i64]) -> Part {
    d.op_with(op, &[x], &[("axis", axes.into()), ("keepdims", AttrValue::Bool(true))])
}

/// Returns a list of parameters, one for each channel, in a shape that broadcasts to a tensor in
/// which `after` axes follow the axis of channels.
fn by_channel(d: &mut Decomposer<'_>, parameter: Part, after: usize) -> Part {
    if after == 0 {
        return parameter;
    }
    let axes: Vec<i64> = (1..=after as i64).collect();
    d.op_with("expand_dims", &[parameter], &[("axis", axes.into())])
}

/// Returns an axis counted from the front; `None` if it is out of range.
pub(crate) fn counted(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}
