//! Normalisations, softmaxes and dropout.

use anfora_ir::{Decomposer, DecompositionPart as Part, DecompositionRule, Literal};

use super::{Widened, by_channel, counted, reduced};

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("nn.batch_norm", batch_norm),
    ("nn.batch_norm_training", batch_norm_training),
    ("nn.layer_norm", layer_norm),
    ("nn.rms_norm", rms_norm),
    ("nn.instance_norm", instance_norm),
    ("nn.group_norm", group_norm),
    ("nn.mean_variance_norm", mean_variance_norm),
    ("nn.lp_norm", lp_norm),
    ("nn.softmax", softmax),
    ("nn.log_softmax", |d| log_softmax(d, None)),
    ("nn.dropout", dropout),
];

/// Returns the axis of the channels of operand 0, and the number of axes after it.
fn channels(d: &Decomposer<'_>) -> Option<(usize, usize)> {
    let rank = d.rank(0)?;
    let axis = counted(d.attrs().int("axis")?, rank)?;
    Some((axis, rank - axis - 1))
}

/// Returns `sqrt(variance + epsilon)`.
fn deviation(d: &mut Decomposer<'_>, types: Widened, variance: Part) -> Option<Part> {
    let epsilon = types.number(d, d.attrs().float("epsilon")?)?;
    let sum = d.op("add", &[variance, epsilon]);
    Some(d.op("sqrt", &[sum]))
}

/// Returns a parameter by channel, in the type that is computed in.
fn parameter(d: &mut Decomposer<'_>, types: Widened, i: usize, after: usize) -> Option<Part> {
    let parameter = types.operand(d, i)?;
    Some(by_channel(d, parameter, after))
}

/// `(x - mean) * (scale / sqrt(var + epsilon)) + bias`
fn batch_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let (_, after) = channels(d)?;
    let types = Widened::of(d, 0)?;
    let [scale, variance] = [types.operand(d, 1)?, types.operand(d, 4)?];
    let deviation = deviation(d, types, variance)?;
    let factor = d.op("divide", &[scale, deviation]);
    let factor = by_channel(d, factor, after);
    let [bias, mean] = [parameter(d, types, 2, after)?, parameter(d, types, 3, after)?];
    let x = types.operand(d, 0)?;
    let difference = d.op("subtract", &[x, mean]);
    let normal = d.op("multiply", &[difference, factor]);
    let result = d.op("add", &[normal, bias]);
    Some(types.narrow(d, result))
}

/// Returns the differences of values to their mean over axes, the mean, and the population
/// variance.
fn moments(d: &mut Decomposer<'_>, x: Part, axes: &[i64]) -> [Part; 3] {
    let mean = reduced(d, "mean", x, axes);
    let difference = d.op("subtract", &[x, mean]);
    let square = d.op("square", &[difference]);
    let variance = reduced(d, "mean", square, axes);
    [difference, mean, variance]
}

/// Normalises by the batch's own statistics, and moves the running ones towards them.
fn batch_norm_training(d: &mut Decomposer<'_>) -> Option<Part> {
    let (axis, after) = channels(d)?;
    let types = Widened::of(d, 0)?;
    let axes: Vec<i64> = (0..axis + 1 + after).filter(|&other| other != axis).map(|other| other as i64).collect();
    let x = types.operand(d, 0)?;
    let [difference, mean, variance] = moments(d, x, &axes);
    let deviation = deviation(d, types, variance)?;
    let normal = d.op("divide", &[difference, deviation]);
    let [scale, bias] = [parameter(d, types, 1, after)?, parameter(d, types, 2, after)?];
    let scaled = d.op("multiply", &[normal, scale]);
    let result = d.op("add", &[scaled, bias]);
    let momentum = d.attrs().float("momentum")?;
    let mut results = vec![types.narrow(d, result)];
    for (i, of_batch) in [(3, mean), (4, variance)] {
        let of_batch = if axes.is_empty() {
            of_batch
        } else {
            d.op_with("squeeze", &[of_batch], &[("axis", axes.clone().into())])
        };
        let running = types.operand(d, i)?;
        let (kept, taken) = (types.number(d, momentum)?, types.number(d, 1.0 - momentum)?);
        let (kept, taken) = (d.op("multiply", &[running, kept]), d.op("multiply", &[of_batch, taken]));
        let moved = d.op("add", &[kept, taken]);
        results.push(types.narrow(d, moved));
    }
    Some(d.tuple(&results))
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias`, with the statistics if they are wanted.
fn layer_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let axes = d.attrs().ints("axes")?;
    let x = types.operand(d, 0)?;
    let [difference, mean, variance] = moments(d, x, &axes);
    let deviation = deviation(d, types, variance)?;
    let normal = d.op("divide", &[difference, deviation]);
    let scale = types.operand(d, 1)?;
    let mut result = d.op("multiply", &[normal, scale]);
    if let Some(bias) = types.operand(d, 2) {
        result = d.op("add", &[result, bias]);
    }
    let result = types.narrow(d, result);
    if !d.attrs().bool("statistics")? {
        return Some(result);
    }
    let inverse = d.op("reciprocal", &[deviation]);
    Some(d.tuple(&[result, mean, inverse]))
}

/// `x / sqrt(mean(x²) + epsilon) * scale`
fn rms_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let axes = d.attrs().ints("axes")?;
    let x = types.operand(d, 0)?;
    let square = d.op("square", &[x]);
    let mean = reduced(d, "mean", square, &axes);
    let deviation = deviation(d, types, mean)?;
    let normal = d.op("divide", &[x, deviation]);
    let scale = types.operand(d, 1)?;
    let result = d.op("multiply", &[normal, scale]);
    Some(types.narrow(d, result))
}

/// A layer norm of each channel over the axes after it.
fn instance_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let rank = d.rank(0)?;
    let after = rank.checked_sub(2)?;
    let axes: Vec<i64> = (2..rank as i64).collect();
    let x = types.operand(d, 0)?;
    let [difference, _, variance] = moments(d, x, &axes);
    let deviation = deviation(d, types, variance)?;
    let normal = d.op("divide", &[difference, deviation]);
    let [scale, bias] = [parameter(d, types, 1, after)?, parameter(d, types, 2, after)?];
    let scaled = d.op("multiply", &[normal, scale]);
    let result = d.op("add", &[scaled, bias]);
    Some(types.narrow(d, result))
}

/// A layer norm of each group of channels with the axes after it. Scale and bias have an element
/// for each channel or for each group.
fn group_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let after = d.rank(0)?.checked_sub(2)?;
    let groups = d.attrs().int("num_groups")?;
    let extent = |i: usize, axis: usize| d.tensor(i)?.shape.as_ref()?.get(axis).copied();
    let unknown = d.cx().types.dims.unknown();
    let is_by_channel = |i: usize| extent(i, 0).filter(|&of| of != unknown).is_some_and(|of| Some(of) == extent(0, 1));
    let is_by_group = |i: usize| d.extent(i, 0) == Some(groups);
    let by_channel_both = is_by_channel(1) && is_by_channel(2);
    let by_group_both = is_by_group(1) && is_by_group(2);
    if !(by_channel_both || by_group_both) {
        return None;
    }
    let x = types.operand(d, 0)?;
    let parts = grouped(d, x, groups)?;
    let [difference, _, variance] = moments(d, parts, &[2]);
    let deviation = deviation(d, types, variance)?;
    let mut result = d.op("divide", &[difference, deviation]);
    let x = d.operand(0)?;
    let shape = d.op("shape_of", &[x]);
    let allowzero = [("allowzero", true.into())];
    if by_channel_both {
        result = d.op_with("reshape", &[result, shape], &allowzero);
    }
    let after = if by_channel_both { after } else { 1 };
    let [scale, bias] = [parameter(d, types, 1, after)?, parameter(d, types, 2, after)?];
    let scaled = d.op("multiply", &[result, scale]);
    result = d.op("add", &[scaled, bias]);
    if !by_channel_both {
        result = d.op_with("reshape", &[result, shape], &allowzero);
    }
    Some(types.narrow(d, result))
}

/// Returns `x`, operand 0 in any element type, as `(batch, groups, elements of a group)`. No extent
/// is inferred where a tensor without elements would leave it open.
fn grouped(d: &mut Decomposer<'_>, x: Part, groups: i64) -> Option<Part> {
    let rank = d.rank(0)?;
    let of_batch = (1..rank).try_fold(1i64, |n, axis| n.checked_mul(d.extent(0, axis)?));
    let list = match (d.extent(0, 0), of_batch) {
        (_, Some(n)) if n != 0 => d.ints(&[0, groups, n.checked_div(groups)?]),
        (Some(batch), _) if batch != 0 => d.ints(&[batch, groups, -1]),
        _ => {
            let batch = d.op_with("shape_of", &[x], &[("end", 1.into())]);
            let rest = d.op_with("shape_of", &[x], &[("start", 1.into())]);
            let rest = d.op_with("prod", &[rest], &[("keepdims", true.into())]);
            let groups = d.ints(&[groups]);
            let rest = d.op("floor_divide", &[rest, groups]);
            let list = d.op("concat", &[batch, groups, rest]);
            return Some(d.op_with("reshape", &[x, list], &[("allowzero", true.into())]));
        }
    };
    Some(d.op("reshape", &[x, list]))
}

/// `(x - mean) / (sqrt(variance) + epsilon)`
fn mean_variance_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let axes = d.attrs().ints("axes")?;
    let x = types.operand(d, 0)?;
    let [difference, _, variance] = moments(d, x, &axes);
    let (root, epsilon) = (d.op("sqrt", &[variance]), types.number(d, d.attrs().float("epsilon")?)?);
    let divisor = d.op("add", &[root, epsilon]);
    let result = d.op("divide", &[difference, divisor]);
    Some(types.narrow(d, result))
}

/// The elements divided by their norm; 0 where that is 0.
fn lp_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let axes = [d.attrs().int("axis")?];
    let x = types.operand(d, 0)?;
    let norm = match d.attrs().int("p")? {
        1 => {
            let size = d.op("abs", &[x]);
            reduced(d, "sum", size, &axes)
        }
        2 => {
            let square = d.op("square", &[x]);
            let sum = reduced(d, "sum", square, &axes);
            d.op("sqrt", &[sum])
        }
        _ => return None,
    };
    let zero = types.number(d, 0.0)?;
    let (is_zero, quotient) = (d.op("equal", &[norm, zero]), d.op("divide", &[x, norm]));
    let result = d.op("where", &[is_zero, zero, quotient]);
    Some(types.narrow(d, result))
}

/// Returns the differences of the elements to the largest along the axes of a softmax, their
/// exponentials, and the sums of these.
fn exponentials(d: &mut Decomposer<'_>, types: Widened, axes: &[i64]) -> Option<[Part; 3]> {
    let x = types.operand(d, 0)?;
    let largest = reduced(d, "max", x, axes);
    let difference = d.op("subtract", &[x, largest]);
    let power = d.op("exp", &[difference]);
    let sum = reduced(d, "sum", power, axes);
    Some([difference, power, sum])
}

/// Returns the axes of a softmax.
fn softmax_axes(d: &Decomposer<'_>) -> Option<Vec<i64>> {
    let attrs = d.attrs();
    attrs.ints("axes").or_else(|| Some(vec![attrs.int("axis")?]))
}

/// `exp(x - m) / sum(exp(x - m))`, where `m` is the largest element.
fn softmax(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let axes = softmax_axes(d)?;
    let [_, power, sum] = exponentials(d, types, &axes)?;
    let result = d.op("divide", &[power, sum]);
    Some(types.narrow(d, result))
}

/// `x - m - log(sum(exp(x - m)))`, where `m` is the largest element, over these axes or those of
/// the call.
pub(super) fn log_softmax(d: &mut Decomposer<'_>, axes: Option<&[i64]>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let axes = axes.map(<[i64]>::to_vec).or_else(|| softmax_axes(d))?;
    let [difference, _, sum] = exponentials(d, types, &axes)?;
    let log = d.op("log", &[sum]);
    let result = d.op("subtract", &[difference, log]);
    Some(types.narrow(d, result))
}

/// The operand, and a mask of `true`.
fn dropout(d: &mut Decomposer<'_>) -> Option<Part> {
    let x = d.operand(0)?;
    let (one, shape) = (d.constant(Literal::scalar(true)), d.op("shape_of", &[x]));
    let mask = d.op("broadcast_to", &[one, shape]);
    Some(d.tuple(&[x, mask]))
}
