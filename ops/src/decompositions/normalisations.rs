//! Normalisations, softmaxes and dropout.

use anfora_ir::{DType, Decomposer, DecompositionPart as Part, DecompositionRule, Literal};

use super::extents::{Extent, join_axes, split_axis};
use super::{Widened, by_channel, cast, counted, reduced, scaled};

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("nn.batch_norm", batch_norm),
    ("nn.batch_norm_training", batch_norm_training),
    ("nn.layer_norm", layer_norm),
    ("nn.rms_norm", rms_norm),
    ("nn.instance_norm", instance_norm),
    ("nn.group_norm", group_norm),
    ("nn.mean_variance_norm", mean_variance_norm),
    ("nn.lp_norm", lp_norm),
    ("nn.lrn", lrn),
    ("nn.softmax", softmax),
    ("nn.log_softmax", log_softmax),
    ("nn.hardmax", hardmax),
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

/// A layer norm of each channel over the axes that are neither the batch nor the channels.
fn instance_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let (channels, after) = channels(d).filter(|&(channels, _)| channels > 0)?;
    let axes: Vec<i64> = (1..=(channels + after) as i64).filter(|&axis| axis != channels as i64).collect();
    let x = types.operand(d, 0)?;
    let [difference, _, variance] = moments(d, x, &axes);
    let deviation = deviation(d, types, variance)?;
    let normal = d.op("divide", &[difference, deviation]);
    let [scale, bias] = [parameter(d, types, 1, after)?, parameter(d, types, 2, after)?];
    let scaled = d.op("multiply", &[normal, scale]);
    let result = d.op("add", &[scaled, bias]);
    Some(types.narrow(d, result))
}

/// Returns the axes of operand 0 with the channels as axis 1, and the axes that undo this order.
/// The other axes keep their order.
fn channels_second(d: &Decomposer<'_>) -> Option<[Vec<i64>; 2]> {
    let (channels, after) = channels(d).filter(|&(channels, _)| channels > 0)?;
    let others = |rank: usize| (1..rank).filter(|&axis| axis != channels);
    let order: Vec<i64> =
        [0, channels].into_iter().chain(others(channels + after + 1)).map(|axis| axis as i64).collect();
    let mut undone = vec![0; order.len()];
    order.iter().zip(0..).for_each(|(&axis, place)| undone[axis as usize] = place);
    Some([order, undone])
}

/// Returns a value with its axes in another order.
fn permuted(d: &mut Decomposer<'_>, x: Part, order: &[i64]) -> Part {
    let is_same = order.iter().zip(0..).all(|(&axis, place)| axis == place);
    if is_same { x } else { d.op_with("permute_dims", &[x], &[("axes", order.into())]) }
}

/// A layer norm of each group of channels with all axes but the batch. Scale and bias have an
/// element for each channel or for each group.
fn group_norm(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let [order, undone] = channels_second(d)?;
    let channel_axis = channels(d)?.0;
    let after = d.rank(0)?.checked_sub(2)?;
    let groups = d.attrs().int("num_groups").filter(|&groups| groups > 0)?;
    let extent = |i: usize, axis: usize| d.tensor(i)?.shape.as_ref()?.get(axis).copied();
    let unknown = d.cx().types.dims.unknown();
    let is_by_channel =
        |i: usize| extent(i, 0).filter(|&of| of != unknown).is_some_and(|of| Some(of) == extent(0, channel_axis));
    let is_by_group = |i: usize| d.extent(i, 0) == Some(groups);
    let by_channel_both = is_by_channel(1) && is_by_channel(2);
    let by_group_both = is_by_group(1) && is_by_group(2);
    if !(by_channel_both || by_group_both) {
        return None;
    }
    let rank = after + 2;
    let x = types.operand(d, 0)?;
    let all_channels = Extent::of(d, 0, channel_axis)?;
    let x = permuted(d, x, &order);
    let parts = split_axis(d, x, (1, all_channels), rank, groups);
    let axes: Vec<i64> = (2..=rank as i64).collect();
    let [difference, _, variance] = moments(d, parts, &axes);
    let deviation = deviation(d, types, variance)?;
    let normal = d.op("divide", &[difference, deviation]);
    // The axes of groups and of their channels are one axis again before or after the parameters.
    let (mut result, after) = match by_channel_both {
        true => (join_axes(d, normal, 1, rank + 1, all_channels), after),
        false => (normal, after + 1),
    };
    let [scale, bias] = [parameter(d, types, 1, after)?, parameter(d, types, 2, after)?];
    let scaled = d.op("multiply", &[result, scale]);
    result = d.op("add", &[scaled, bias]);
    if !by_channel_both {
        result = join_axes(d, result, 1, rank + 1, all_channels);
    }
    let result = permuted(d, result, &undone);
    Some(types.narrow(d, result))
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

/// The most channels under a window of an `nn.lrn` whose number of channels is not known.
const MOST_CHANNELS: i64 = 1 << 20;

/// `x / (bias + alpha / size * Σ x²)^beta`. The sum over the neighbouring channels is a pool with
/// the channels as a spatial axis. Its mean counts the padding, so it is the sum divided by a
/// constant. A pool has five axes at most, so other ranks stay.
fn lrn(d: &mut Decomposer<'_>) -> Option<Part> {
    let types = Widened::of(d, 0)?;
    let attrs = d.attrs();
    let (alpha, beta, bias) = (attrs.float("alpha")?, attrs.float("beta")?, attrs.float("bias")?);
    let size = attrs.int("size").filter(|&size| size >= 1)?;
    let channel_axis = channels(d).filter(|&(axis, _)| axis > 0)?.0;
    let mut around = [(size - 1) / 2, size / 2];
    match d.extent(0, channel_axis) {
        // Channels that do not exist add nothing.
        Some(channels) => around.iter_mut().for_each(|n| *n = (*n).min(channels)),
        None if size > MOST_CHANNELS => return None,
        None => {}
    }
    let window = around[0] + around[1] + 1;
    d.extent(0, channel_axis).unwrap_or(0).checked_add(window)?;
    // The axes of the pool.
    let (pool, spatial) = match d.rank(0)? {
        2 => ("nn.avg_pool1d", 1),
        3 => ("nn.avg_pool2d", 2),
        4 | 5 => ("nn.avg_pool3d", 3),
        _ => return None,
    };
    // The channels of the pool are another axis: a new one, or one of the five.
    let has_five_axes = d.rank(0)? == 5;
    let is_swapped = has_five_axes && channel_axis == 1;
    let swapped = [("axes", [0, 2, 1, 3, 4].into())];
    let x = types.operand(d, 0)?;
    let square = d.op("square", &[x]);
    let pooled = match has_five_axes {
        true if is_swapped => d.op_with("permute_dims", &[square], &swapped),
        true => square,
        false => d.op_with("expand_dims", &[square], &[("axis", [1].into())]),
    };
    // The axis of the channels among the spatial axes of the pool.
    let along = if has_five_axes { channel_axis.max(2) - 2 } else { channel_axis - 1 };
    let (mut sizes, mut padding) = (vec![1; spatial], vec![0; 2 * spatial]);
    (sizes[along], padding[along], padding[spatial + along]) = (window, around[0], around[1]);
    let lists = [("pool_size", sizes.into()), ("padding", padding.into()), ("count_include_pad", true.into())];
    let mean = d.op_with(pool, &[pooled], &lists);
    let mean = match has_five_axes {
        true if is_swapped => d.op_with("permute_dims", &[mean], &swapped),
        true => mean,
        false => d.op_with("squeeze", &[mean], &[("axis", [1].into())]),
    };
    let sum = scaled(d, mean, alpha * (window as f64 / size as f64), types.wide)?;
    let (bias, beta) = (types.number(d, bias)?, types.number(d, beta)?);
    let base = d.op("add", &[sum, bias]);
    let divisor = d.op("power", &[base, beta]);
    let result = d.op("divide", &[x, divisor]);
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

/// `x - m - log(sum(exp(x - m)))`, where `m` is the largest element.
fn log_softmax(d: &mut Decomposer<'_>) -> Option<Part> {
    let (types, axes) = (Widened::of(d, 0)?, softmax_axes(d)?);
    let [difference, _, sum] = exponentials(d, types, &axes)?;
    let log = d.op("log", &[sum]);
    let result = d.op("subtract", &[difference, log]);
    Some(types.narrow(d, result))
}

/// 1 at the first of the largest elements, 0 elsewhere. A NaN is the largest.
fn hardmax(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = (d.operand(0)?, d.dtype(0)?);
    let axes = softmax_axes(d)?;
    if axes.len() > 1 {
        d.rank(0)?;
    }
    let largest = reduced(d, "max", x, &axes);
    let (is_largest, is_nan) = (d.op("equal", &[x, largest]), d.op("isnan", &[x]));
    let mut is_found = d.op("logical_or", &[is_largest, is_nan]);
    // Along each axis, the first index with an element that is left over the later axes.
    for (i, &axis) in axes.iter().enumerate() {
        let mut flags = cast(d, is_found, DType::Bool, DType::Int64);
        if i + 1 < axes.len() {
            flags = reduced(d, "max", flags, &axes[i + 1..]);
        }
        let count = d.op_with("cumsum", &[flags], &[("axis", axis.into())]);
        let one = d.number(1, DType::Int64)?;
        let is_first = d.op("equal", &[count, one]);
        is_found = d.op("logical_and", &[is_found, is_first]);
    }
    Some(cast(d, is_found, DType::Bool, dtype))
}

/// The operand, and a mask of `true`.
fn dropout(d: &mut Decomposer<'_>) -> Option<Part> {
    let x = d.operand(0)?;
    let (one, shape) = (d.constant(Literal::scalar(true)), d.op("shape_of", &[x]));
    let mask = d.op("broadcast_to", &[one, shape]);
    Some(d.tuple(&[x, mask]))
}
