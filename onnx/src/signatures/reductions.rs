//! Reductions, normalisations with statistics, losses and products of matrices.

use anfora_ir::DimId;
use smallvec::SmallVec;

use super::node_types::NodeTypes;
use super::row::ElementType::{Attribute, Of};
use super::row::ExtentOf;
use super::row::OutputExtents::{Are, By, Ours, RankOf, Unranked};
use super::row::OutputType::{self, Tensor};
use super::row::{FIRST, INT32, INT64, IS_FLOAT, LIKE_FIRST, OutputShape, Signature};
use super::rules::listed_axes;

/// The batch, and unknown extents, of a cache or of attention weights.
const HEADS: [ExtentOf; 4] = [ExtentOf::Of(0, 0), ExtentOf::Unknown, ExtentOf::Unknown, ExtentOf::Unknown];
const CHANNELS: OutputType = Tensor(FIRST, Are(&[ExtentOf::Of(0, 1)]));
const CHANNELS_OF_FOURTH: OutputType = Tensor(&[Of(3)], Are(&[ExtentOf::Of(0, 1)]));
/// Until version 8, the statistics may have further extents.
const STATISTICS: OutputType = Tensor(FIRST, Unranked);
const MOMENTS: OutputType = Tensor(&[Attribute("stash_type"), IS_FLOAT], By(moments));

pub(super) const ROWS: &[Signature] = &[
    Signature::of(
        &[
            "ReduceL1",
            "ReduceL2",
            "ReduceLogSum",
            "ReduceLogSumExp",
            "ReduceMax",
            "ReduceMean",
            "ReduceMin",
            "ReduceProd",
            "ReduceSum",
            "ReduceSumSquare",
        ],
        &[Tensor(FIRST, By(reduced))],
    ),
    Signature::of(&["ArgMax", "ArgMin"], &[Tensor(INT64, By(reduced_along_axis))]),
    Signature::of(&["MatMul"], &[Tensor(FIRST, Ours("matmul", &[0, 1]))]),
    Signature::of(&["MatMulInteger"], &[Tensor(INT32, Ours("matmul", &[0, 1]))]),
    Signature::of(&["QLinearMatMul"], &[Tensor(&[Of(7)], Ours("matmul", &[0, 3]))]),
    Signature::of(&["Gemm"], &[Tensor(FIRST, By(matrix_product))]),
    Signature::of(&["Einsum"], &[Tensor(FIRST, By(summed))]),
    Signature::of(&["Det"], &[Tensor(FIRST, By(without_matrices))]),
    Signature::of(&["BatchNormalization"], &[LIKE_FIRST, STATISTICS, STATISTICS, STATISTICS, STATISTICS]).until(8),
    Signature::of(&["BatchNormalization"], &[LIKE_FIRST, CHANNELS, CHANNELS, CHANNELS, CHANNELS]).since(9).until(13),
    Signature::of(&["BatchNormalization"], &[LIKE_FIRST, CHANNELS_OF_FOURTH, CHANNELS_OF_FOURTH]).since(14),
    Signature::of(&["LayerNormalization"], &[LIKE_FIRST, MOMENTS, MOMENTS]),
    Signature::of(&["NegativeLogLikelihoodLoss"], &[Tensor(FIRST, By(loss))]),
    Signature::of(&["SoftmaxCrossEntropyLoss"], &[Tensor(FIRST, By(loss)), LIKE_FIRST]),
    Signature::of(
        &["Attention"],
        &[
            Tensor(FIRST, By(attended)),
            Tensor(FIRST, Are(&HEADS)),
            Tensor(&[Of(2)], Are(&HEADS)),
            Tensor(FIRST, Are(&HEADS)),
        ],
    ),
    Signature::of(
        &["LinearAttention"],
        &[
            Tensor(FIRST, RankOf(0, &[ExtentOf::Of(0, 0), ExtentOf::Of(0, 1)])),
            // Without a state, its element type is not known.
            Tensor(&[Of(3)], Are(&HEADS)),
        ],
    ),
];

/// Those of the first operand, where the listed axes, or all of them, are 1 or left out.
fn reduced(node: &mut NodeTypes<'_>) -> OutputShape {
    let rank = node.rank(0)?;
    let axes = listed_axes(node, rank);
    reduced_along(node, axes)
}

/// Those of the first operand, where the axes of an attribute, or all of them, are 1 or left out.
pub(super) fn reduced_by_attribute(node: &mut NodeTypes<'_>) -> OutputShape {
    let rank = node.rank(0)?;
    let axes = node.ints("axes").unwrap_or_default().iter().map(|&axis| NodeTypes::axis(axis, rank)).collect();
    reduced_along(node, axes)
}

fn reduced_along(node: &mut NodeTypes<'_>, axes: Option<Vec<usize>>) -> OutputShape {
    let keeps = node.int("keepdims").unwrap_or(1) != 0;
    let shape = node.extents(0)?;
    let Some(axes) = axes else { return keeps.then(|| node.unknown(shape.len())) };
    if !axes.is_empty() {
        return Some(reduce(node, &shape, keeps, |axis| axes.contains(&axis)));
    }
    match node.int("noop_with_empty_axes").unwrap_or(0) {
        0 => Some(reduce(node, &shape, keeps, |_| true)),
        _ => Some(shape),
    }
}

fn reduced_along_axis(node: &mut NodeTypes<'_>) -> OutputShape {
    let keeps = node.int("keepdims").unwrap_or(1) != 0;
    let shape = node.extents(0)?;
    let reduced = NodeTypes::axis(node.int("axis").unwrap_or(0), shape.len())?;
    Some(reduce(node, &shape, keeps, |axis| axis == reduced))
}

fn reduce(
    node: &mut NodeTypes<'_>,
    shape: &[DimId],
    keeps: bool,
    is_reduced: impl Fn(usize) -> bool,
) -> SmallVec<[DimId; 4]> {
    let one = node.constant(1);
    let dims = shape.iter().enumerate().filter_map(|(axis, &dim)| match is_reduced(axis) {
        true => keeps.then_some(one),
        false => Some(dim),
    });
    dims.collect()
}

/// Those of the first operand, where the axes from `axis` on are 1.
fn moments(node: &mut NodeTypes<'_>) -> OutputShape {
    let shape = node.extents(0)?;
    let first = NodeTypes::axis(node.int("axis").unwrap_or(-1), shape.len())?;
    Some(reduce(node, &shape, true, |axis| axis >= first))
}

/// Those of the first operand without the last two.
fn without_matrices(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    shape.truncate(shape.len().checked_sub(2)?);
    Some(shape)
}

/// Those of the labels, or none if the losses are added up.
fn loss(node: &mut NodeTypes<'_>) -> OutputShape {
    match node.attribute("reduction").map(|a| a.s()) {
        None | Some(b"mean" | b"sum") => Some(SmallVec::new()),
        Some(b"none") => node.extents(1),
        Some(_) => None,
    }
}

fn matrix_product(node: &mut NodeTypes<'_>) -> OutputShape {
    matrix_product_of(node, 0, 1)
}

/// The rows of a matrix and the columns of another, each of which may be transposed.
pub(super) fn matrix_product_of(node: &mut NodeTypes<'_>, a: usize, b: usize) -> OutputShape {
    let extent = |operand, flag, axis: usize| {
        let axis = if node.int(flag).unwrap_or(0) == 0 { axis } else { 1 - axis };
        let shape = node.extents(operand).filter(|s| s.len() == 2);
        shape.map_or(node.cx.types.dims.unknown(), |s| s[axis])
    };
    Some(SmallVec::from_slice(&[extent(a, "transA", 0), extent(b, "transB", 1)]))
}

/// The extents of the letters of the result, if these are written down without an ellipsis.
fn summed(node: &mut NodeTypes<'_>) -> OutputShape {
    let equation = node.attribute("equation")?.s();
    let equation: String = std::str::from_utf8(equation).ok()?.split_whitespace().collect();
    let (operands, result) = equation.split_once("->").filter(|_| !equation.contains('.'))?;
    if result.len() > MAX_LETTERS {
        return None;
    }
    let mut shape = node.unknown(result.chars().count());
    for (i, letters) in operands.split(',').enumerate() {
        let Some(dims) = node.extents(i).filter(|s| s.len() == letters.chars().count()) else { continue };
        for (letter, dim) in letters.chars().zip(dims) {
            // An extent of 1 may be repeated.
            let is_one = node.cx.types.dims.as_constant(dim) == Some(1);
            for place in result.chars().zip(&mut shape).filter(|(l, _)| *l == letter && !is_one).map(|(_, p)| p) {
                *place = dim;
            }
        }
    }
    Some(shape)
}

/// The number of letters that an equation can have.
const MAX_LETTERS: usize = 52;

/// Those of the query, with those of the values on the last axis if the heads have an axis.
pub(super) fn attended(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    let unknown = node.cx.types.dims.unknown();
    let values = node.extents(2).filter(|v| v.len() == 4).and_then(|v| v.last().copied());
    let is_by_head = shape.len() == 4;
    if let Some(last) = shape.last_mut() {
        *last = values.filter(|_| is_by_head).unwrap_or(unknown);
    }
    Some(shape)
}
