//! Sums, means and extremes of any number of operands.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule};

use super::Widened;

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("add_n", |d| Some(sum(d)?.0)),
    ("mean_n", mean_n),
    ("maximum_n", |d| folded(d, "maximum")),
    ("minimum_n", |d| folded(d, "minimum")),
];

/// Combines all operands from the first to the last.
fn folded(d: &mut Decomposer<'_>, op: &'static str) -> Option<Part> {
    let mut result = d.operand(0)?;
    for i in 1..d.operand_count() {
        let operand = d.operand(i)?;
        result = d.op(op, &[result, operand]);
    }
    Some(result)
}

/// Returns the sum of all operands, rounded once, and in the type that it was computed in.
fn sum(d: &mut Decomposer<'_>) -> Option<(Part, Part)> {
    let types = Widened::of(d, 0)?;
    let mut sum = types.operand(d, 0)?;
    for i in 1..d.operand_count() {
        let operand = types.operand(d, i)?;
        sum = d.op("add", &[sum, operand]);
    }
    Some((types.narrow(d, sum), sum))
}

fn mean_n(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let (_, sum) = sum(d)?;
    let count = types.number(d, d.operand_count() as f64)?;
    let mean = d.op("divide", &[sum, count]);
    Some(types.narrow(d, mean))
}
