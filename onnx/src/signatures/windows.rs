//! Convolutions, pools and recurrent operators.

use anfora_ir::{DimId, TypeId};

use super::node_types::NodeTypes;
use super::row::ElementType::Of;
use super::row::ExtentOf;
use super::row::OutputExtents::{Are, By, RankOf};
use super::row::OutputType::{self, Tensor};
use super::row::{FIRST, INT32, INT64, OutputShape, Signature};

const BATCH: ExtentOf = ExtentOf::Of(0, 0);
const CHANNELS: ExtentOf = ExtentOf::Of(0, 1);
/// A convolution whose weights are the second operand.
const CONVOLVED: OutputType = Tensor(FIRST, RankOf(0, &[BATCH, ExtentOf::Of(1, 0)]));
const POOLED: OutputType = Tensor(FIRST, RankOf(0, &[BATCH, CHANNELS]));

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["Conv", "DeformConv"], &[CONVOLVED]),
    Signature::of(&["ConvInteger"], &[Tensor(INT32, RankOf(0, &[BATCH, ExtentOf::Of(1, 0)]))]),
    Signature::of(&["QLinearConv"], &[Tensor(&[Of(7)], RankOf(0, &[BATCH, ExtentOf::Of(3, 0)]))]),
    // The number of channels depends on the groups.
    Signature::of(&["ConvTranspose"], &[Tensor(FIRST, RankOf(0, &[BATCH]))]),
    Signature::of(&["AveragePool", "LpPool", "MaxUnpool"], &[POOLED]),
    Signature::of(&["MaxPool"], &[POOLED]).until(7),
    Signature::of(&["MaxPool"], &[POOLED, Tensor(INT64, RankOf(0, &[BATCH, CHANNELS]))]).since(8),
    Signature::of(&["GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"], &[Tensor(FIRST, By(pooled_globally))]),
    Signature::of(&["MaxRoiPool"], &[Tensor(FIRST, RankOf(0, &[ExtentOf::Of(1, 0), CHANNELS]))]),
    Signature::of(
        &["RoiAlign"],
        &[Tensor(
            FIRST,
            Are(&[
                ExtentOf::Of(1, 0),
                CHANNELS,
                ExtentOf::Attribute("output_height", 1),
                ExtentOf::Attribute("output_width", 1),
            ]),
        )],
    ),
    Signature::of(&["GRU", "RNN"], &[OutputType::By(recurrent), OutputType::By(recurrent)]),
    Signature::of(&["LSTM"], &[OutputType::By(recurrent), OutputType::By(recurrent), OutputType::By(recurrent)]),
];

/// Batch and channels, and ones.
fn pooled_globally(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    let one = node.constant(1);
    shape.iter_mut().skip(2).for_each(|dim| *dim = one);
    Some(shape)
}

/// Returns the type of an output of `LSTM`, `GRU` or `RNN`: all states by time, the last state, or
/// the last state of the cells.
///
/// The input has the extents time, batch and features, with batch first if `layout` is 1. The
/// states have an extent for the directions before the batch, or before their elements if batch is
/// first.
pub(super) fn recurrent(node: &mut NodeTypes<'_>) -> TypeId {
    let unknown = node.cx.types.dims.unknown();
    let batch_first = node.int("layout").is_some_and(|layout| layout != 0);
    let (time, batch) = match (node.extents(0).as_deref(), node.int("layout")) {
        (Some(&[batch, time, _]), Some(1)) => (time, batch),
        (Some(&[time, batch, _]), _) => (time, batch),
        _ => (unknown, unknown),
    };
    let directions = match node.attribute("direction").map_or(b"forward" as &[u8], |a| a.s()) {
        b"forward" | b"reverse" => node.constant(1),
        b"bidirectional" => node.constant(2),
        _ => unknown,
    };
    // Without the attribute, the recurrent weights have the number of elements of a state.
    let state = match node.int("hidden_size") {
        Some(size) => node.constant(size),
        None => node.extents(2).and_then(|r| r.last().copied()).unwrap_or(unknown),
    };
    let extents: &[DimId] = match (node.output, batch_first) {
        (0, false) => &[time, directions, batch, state],
        (0, true) => &[batch, time, directions, state],
        (_, false) => &[directions, batch, state],
        (_, true) => &[batch, directions, state],
    };
    node.tensor_like(0, Some(extents.iter().copied().collect()))
}
