//! Operators that select elements, repeat them or write them to given places.
//!
//! Where no operator is the transpose of another one, the rule applies the operator to the numbers
//! of the elements instead of the elements: [`added_to_places`].

use anfora_ir::{AdjointRule, AdjointWriter, AttrValue, DType, DecompositionPart as Part, Literal, Number};

use crate::decompositions::{cast, counted};

use super::{constant_ints, flattened, known_extents, number, reshaped_like, shape_of, zeros_like};

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    ("strided_slice", strided_slice),
    ("dynamic_strided_slice", |a| selected_again(a)),
    ("tile", |a| selected_again(a)),
    ("compress", |a| selected_again(a)),
    ("center_crop_pad", |a| selected_again(a)),
    ("nn.pad", pad),
    ("take", take),
    ("gather_elements", gather_elements),
    ("gather_nd", gather_nd),
    ("scatter_elements", |a| scatter(a, "gather_elements")),
    ("scatter_nd", |a| scatter(a, "gather_nd")),
    ("topk", topk),
    ("one_hot", one_hot),
];

// ---- Places ----

/// Returns the number of elements of an operand, as a scalar.
fn count_of(a: &mut AdjointWriter<'_>, i: usize) -> Option<Part> {
    match known_extents(a, i).and_then(|extents| extents.iter().try_fold(1i64, |n, &e| n.checked_mul(e))) {
        Some(count) => a.number(count, DType::Int64),
        None => {
            let x = a.operand(i)?;
            Some(a.op("size", &[x]))
        }
    }
}

/// Returns the numbers of the elements of an operand, from 1 on, in its shape.
fn places_of(a: &mut AdjointWriter<'_>, i: usize) -> Option<Part> {
    let (count, one) = (count_of(a, i)?, a.number(1, DType::Int64)?);
    let end = a.op("add", &[count, one]);
    let numbers = a.op("arange", &[one, end, one]);
    reshaped_like(a, i, numbers)
}

/// Returns zeros and, at each place, the sum of the elements of `values` whose place it is: place
/// 0, then the elements of an operand, as a list.
fn added_up(a: &mut AdjointWriter<'_>, i: usize, places: Part, values: Part) -> Option<Part> {
    let (count, one) = (count_of(a, i)?, a.number(1, DType::Int64)?);
    let length = a.op("add", &[count, one]);
    let list = a.ints(&[1]);
    let length = a.op("reshape", &[length, list]);
    let zero = Number::Float(0.0).scalar(a.dtype(i)?)?;
    let zeros = super::filled(a, length, zero);
    let [places, values] = [places, values].map(|x| flattened(a, x));
    let add: [(&str, AttrValue); 1] = [("reduction", "add".into())];
    Some(a.op_with("scatter_elements", &[zeros, places, values], &add))
}

/// Returns a range of a list.
fn range(a: &mut AdjointWriter<'_>, x: Part, begin: i64, end: i64) -> Part {
    a.op_with("strided_slice", &[x], &[("begin", [begin].into()), ("end", [end].into())])
}

/// Returns the adjoint of operand `i`: each element of `values` is added to the element with the
/// number at the same place of `places`. The number 0 stands for none.
fn added_to_places(a: &mut AdjointWriter<'_>, i: usize, places: Part, values: Part) -> Option<Part> {
    let sums = added_up(a, i, places, values)?;
    let sums = range(a, sums, 1, i64::MAX);
    reshaped_like(a, i, sums)
}

/// The operator, applied to the numbers of the elements, says where each element has come from.
fn selected_again(a: &mut AdjointWriter<'_>) -> Option<()> {
    let dy = a.adjoint()?;
    let mut operands = vec![places_of(a, 0)?];
    for i in 1..a.operand_count() {
        let operand = a.operand(i).unwrap_or_else(|| a.none());
        operands.push(operand);
    }
    let places = a.same_op(&operands)?;
    let dx = added_to_places(a, 0, places, dy)?;
    a.give(0, dx);
    Some(())
}

// ---- Ranges ----

/// Zeros around a slice of neighbours, whose ends are known.
fn strided_slice(a: &mut AdjointWriter<'_>) -> Option<()> {
    let Some(paddings) = zeros_around(a) else { return selected_again(a) };
    let dy = a.adjoint()?;
    let paddings = a.ints(&paddings);
    let dx = a.op("nn.pad", &[dy, paddings]);
    a.give(0, dx);
    Some(())
}

/// Returns the numbers of elements before and after a slice; `None` if the slice does not consist
/// of neighbours, or if its ends are not known.
fn zeros_around(a: &AdjointWriter<'_>) -> Option<Vec<i64>> {
    let (rank, attrs) = (a.rank(0)?, a.attrs());
    let (begins, ends) = (attrs.ints("begin")?, attrs.ints("end")?);
    if attrs.ints("strides").is_some_and(|strides| strides.iter().any(|&stride| stride != 1)) {
        return None;
    }
    let axes = attrs.ints("axes").unwrap_or_else(|| (0..begins.len() as i64).collect());
    let mut paddings = vec![0; 2 * rank];
    for ((&axis, &begin), &end) in axes.iter().zip(&begins).zip(&ends) {
        let axis = counted(axis, rank)?;
        let extent = a.extent(0, axis)?;
        let clamped = |at: i64| if at < 0 { at.saturating_add(extent).max(0) } else { at.min(extent) };
        let (begin, end) = (clamped(begin), clamped(end));
        paddings[axis] = begin;
        paddings[rank + axis] = extent - end.max(begin);
    }
    Some(paddings)
}

/// The adjoint of the value beyond the ends is the sum over what was added.
fn pad(a: &mut AdjointWriter<'_>) -> Option<()> {
    let dy = a.adjoint()?;
    let is_constant = a.attrs().str("mode")? == "constant";
    if let Some(slices) = inside_of_padding(a).filter(|_| is_constant && !a.wants(2)) {
        let (begins, ends) = slices;
        let dx = a.op_with("strided_slice", &[dy], &[("begin", begins.into()), ("end", ends.into())]);
        a.give(0, dx);
        return Some(());
    }
    let (places, paddings, none) = (places_of(a, 0)?, a.operand(1)?, a.none());
    let axes = a.operand(3).unwrap_or_else(|| a.none());
    let places = a.same_op(&[places, paddings, none, axes])?;
    let sums = added_up(a, 0, places, dy)?;
    let inside = range(a, sums, 1, i64::MAX);
    let dx = reshaped_like(a, 0, inside)?;
    a.give(0, dx);
    if a.wants(2) {
        let beyond = range(a, sums, 0, 1);
        let dvalue = reshaped_like(a, 2, beyond)?;
        a.give(2, dvalue);
    }
    Some(())
}

/// Returns the range of each axis that is not padding, if paddings are known and nothing is cut.
fn inside_of_padding(a: &AdjointWriter<'_>) -> Option<(Vec<i64>, Vec<i64>)> {
    let rank = a.rank(0)?;
    let paddings = constant_ints(a, 1)?;
    if a.is_given(3) || paddings.len() != 2 * rank || paddings.iter().any(|&n| n < 0) {
        return None;
    }
    let begins = paddings[..rank].to_vec();
    let ends = (0..rank).map(|axis| a.extent(0, axis)?.checked_add(begins[axis])).collect::<Option<_>>()?;
    Some((begins, ends))
}

// ---- Indices ----

/// Adds the slices of `dy` to those that were taken.
fn take(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (rank, of_indices, axis) = (a.rank(0), a.rank(1)?, a.attrs().int("axis")?);
    let is_first = axis == 0 || rank.is_some_and(|rank| axis == -(rank as i64));
    if !is_first {
        return selected_again(a);
    }
    let (indices, dy, zeros) = (a.operand(1)?, a.adjoint()?, zeros_like(a, 0)?);
    let lists = a.op_with("expand_dims", &[indices], &[("axis", [of_indices as i64].into())]);
    let dx = a.op_with("scatter_nd", &[zeros, lists, dy], &[("reduction", "add".into())]);
    a.give(0, dx);
    Some(())
}

fn gather_elements(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (indices, dy, zeros, axis) = (a.operand(1)?, a.adjoint()?, zeros_like(a, 0)?, a.attrs().int("axis")?);
    let attrs = [("axis", axis.into()), ("reduction", "add".into())];
    let dx = a.op_with("scatter_elements", &[zeros, indices, dy], &attrs);
    a.give(0, dx);
    Some(())
}

fn gather_nd(a: &mut AdjointWriter<'_>) -> Option<()> {
    if a.attrs().int("batch_dims")? != 0 {
        return selected_again(a);
    }
    let (indices, dy, zeros) = (a.operand(1)?, a.adjoint()?, zeros_like(a, 0)?);
    let dx = a.op_with("scatter_nd", &[zeros, indices, dy], &[("reduction", "add".into())]);
    a.give(0, dx);
    Some(())
}

/// Updates take their adjoints from their places. Where the last update replaces others and the old
/// element, those have the adjoint 0.
fn scatter(a: &mut AdjointWriter<'_>, gather: &'static str) -> Option<()> {
    let (indices, dy) = (a.operand(1)?, a.adjoint()?);
    let reduction = a.attrs().str("reduction")?;
    let axis: Vec<(&'static str, AttrValue)> = match gather {
        "gather_elements" => vec![("axis", a.attrs().int("axis")?.into())],
        _ => Vec::new(),
    };
    match reduction {
        "add" => {
            a.give(0, dy);
            let written = a.op_with(gather, &[dy, indices], &axis);
            a.give(2, written);
        }
        "update" => {
            if a.wants(0) {
                let zeros = zeros_like(a, 2)?;
                let dx = a.same_op(&[dy, indices, zeros])?;
                a.give(0, dx);
            }
            if a.wants(2) {
                // The number of the update that is seen at each place.
                let (numbers, shape) = (places_of(a, 2)?, shape_of(a, 0)?);
                let none = super::filled(a, shape, Literal::scalar(0i64));
                let last = a.same_op(&[none, indices, numbers])?;
                let seen = a.op_with(gather, &[last, indices], &axis);
                let is_seen = a.op("equal", &[seen, numbers]);
                let (found, zero) = (a.op_with(gather, &[dy, indices], &axis), number(a, 2, 0.0)?);
                let dupdates = a.op("where", &[is_seen, found, zero]);
                a.give(2, dupdates);
            }
        }
        _ => return a.refuse("updates that are added or replace the elements have a derivative, others have none"),
    }
    Some(())
}

/// Adds the adjoints of the values to the elements that they were.
fn topk(a: &mut AdjointWriter<'_>) -> Option<()> {
    let Some(dvalues) = a.field_adjoint(0) else { return Some(()) };
    let (zeros, axis, result) = (zeros_like(a, 0)?, a.attrs().int("axis")?, a.result());
    let indices = a.field(result, 1);
    let attrs = [("axis", axis.into()), ("reduction", "add".into())];
    let dx = a.op_with("scatter_elements", &[zeros, indices, dvalues], &attrs);
    a.give(0, dx);
    Some(())
}

/// The two values have the sums of the adjoints where they stand.
fn one_hot(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (dtype, indices, depth, dy) = (a.dtype(2)?, a.operand(0)?, a.operand(1)?, a.adjoint()?);
    let sums = [[1, 0], [0, 1]].map(|values| {
        let values = values.map(f64::from);
        let values = a.constant(Literal::from_elements(&[2], &values).ok()?);
        let values = cast(a, values, DType::Float64, dtype);
        let places = a.same_op(&[indices, depth, values])?;
        let product = a.op("multiply", &[dy, places]);
        let sum = a.op("sum", &[product]);
        let list = a.ints(&[1]);
        Some(a.op("reshape", &[sum, list]))
    });
    let dvalues = a.op("concat", &[sums[0]?, sums[1]?]);
    a.give(2, dvalues);
    Some(())
}
