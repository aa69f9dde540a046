//! Softmaxes, over an axis or neighbouring axes.

use anfora_ir::{AdjointRule, AdjointWriter, AttrValue, DecompositionPart as Part};

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    // (dy - Σ dy * y) * y
    ("nn.softmax", |a| {
        let (dy, y) = (a.adjoint()?, a.result());
        let product = a.op("multiply", &[dy, y]);
        let sum = sum_over_axes(a, product)?;
        let difference = a.op("subtract", &[dy, sum]);
        let dx = a.op("multiply", &[difference, y]);
        a.give(0, dx);
        Some(())
    }),
    // dy - exp(y) * Σ dy
    ("nn.log_softmax", |a| {
        let (dy, y) = (a.adjoint()?, a.result());
        let sum = sum_over_axes(a, dy)?;
        let softmax = a.op("exp", &[y]);
        let product = a.op("multiply", &[softmax, sum]);
        let dx = a.op("subtract", &[dy, product]);
        a.give(0, dx);
        Some(())
    }),
];

/// Adds up a value over the axes of the call, which stay with an extent of 1.
fn sum_over_axes(a: &mut AdjointWriter<'_>, x: Part) -> Option<Part> {
    let attrs = a.attrs();
    let axes = match attrs.ints("axes") {
        Some(axes) => axes,
        None => vec![attrs.int("axis")?],
    };
    Some(a.op_with("sum", &[x], &[("axis", axes.into()), ("keepdims", AttrValue::Bool(true))]))
}
