//! Reductions of a function of the elements. They keep the axes of the call, which may be an
//! operand, and its attributes.

use anfora_ir::{AttrValue, Decomposer, DecompositionPart as Part, DecompositionRule};

use super::Widened;

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("sum_square", |d| reduction_of(d, Some("square"), None)),
    ("l1_norm", |d| reduction_of(d, Some("abs"), None)),
    ("l2_norm", |d| reduction_of(d, Some("square"), Some("sqrt"))),
    ("log_sum", |d| reduction_of(d, None, Some("log"))),
    ("log_sum_exp", log_sum_exp),
];

/// Reduces a value over the axes of the call.
pub(crate) fn over_axes(d: &mut Decomposer<'_>, op: &'static str, x: Part, keepdims: bool) -> Option<Part> {
    let attrs = d.attrs();
    let mut given = vec![("keepdims", AttrValue::Bool(keepdims))];
    given.push(("noop_with_empty_axes", attrs.bool("noop_with_empty_axes")?.into()));
    given.extend(attrs.ints("axis").map(|axes| ("axis", axes.into())));
    let axes = d.operand(1);
    Some(match axes {
        Some(axes) => d.op_with(op, &[x, axes], &given),
        None => d.op_with(op, &[x], &given),
    })
}

/// Returns a function of the sum of a function of the elements.
fn reduction_of(d: &mut Decomposer<'_>, before: Option<&'static str>, after: Option<&'static str>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let mut x = types.operand(d, 0)?;
    if let Some(before) = before {
        x = d.op(before, &[x]);
    }
    x = over_axes(d, "sum", x, d.attrs().bool("keepdims")?)?;
    if let Some(after) = after {
        x = d.op(after, &[x]);
    }
    Some(types.narrow(d, x))
}

/// `m + log(sum(exp(x - m)))`, where `m` is the largest element if that is finite, and 0 otherwise.
fn log_sum_exp(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let x = types.operand(d, 0)?;
    let largest = over_axes(d, "max", x, true)?;
    let (is_finite, zero) = (d.op("isfinite", &[largest]), types.number(d, 0.0)?);
    let start = d.op("where", &[is_finite, largest, zero]);
    let difference = d.op("subtract", &[x, start]);
    let power = d.op("exp", &[difference]);
    let keepdims = d.attrs().bool("keepdims")?;
    let sum = over_axes(d, "sum", power, keepdims)?;
    let log = d.op("log", &[sum]);
    // A reduction over the axes that have an extent of 1 now removes them.
    let start = if keepdims { start } else { over_axes(d, "max", start, false)? };
    let result = d.op("add", &[log, start]);
    Some(types.narrow(d, result))
}
