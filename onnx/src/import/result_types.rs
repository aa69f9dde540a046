//! Result types of operators that are kept unchanged, where the file does not state them and the
//! operands determine them.
//!
//! A value of unknown type prevents every node that uses it from becoming one of our operators, so
//! handling a few common operators is worthwhile.

use anfora_ir::{Context, DType, DimId, Type, TypeId};

use crate::proto::NodeProto;
use crate::sparse;
use crate::tensor::dtype_of;

/// The operators of the standard domain whose first result has the type of their first operand, in
/// every version.
const LIKE_FIRST_OPERAND: &[&str] = &[
    "BatchNormalization",
    "Celu",
    "Clip",
    "CumSum",
    "Dropout",
    "Elu",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Hardmax",
    "InstanceNormalization",
    "LayerNormalization",
    "LogSoftmax",
    "LpNormalization",
    "MeanVarianceNormalization",
    "Mish",
    "PRelu",
    "Reciprocal",
    "ReverseSequence",
    "ScatterElements",
    "ScatterND",
    "Selu",
    "Shrink",
    "Softmax",
    "Softplus",
    "Softsign",
    "ThresholdedRelu",
    "Trilu",
];

/// Returns the type of an output of a node of the standard domain, determined by the types of its
/// operands. Returns `Any` if they do not determine it.
pub(super) fn result_type(cx: &mut Context, node: &NodeProto, output: usize, operands: &[TypeId]) -> TypeId {
    let any = cx.types.any();
    if let Some((number, dims)) = sparse::type_of_constant(node).filter(|_| node.op_type() == "Constant" && output == 0)
    {
        let Some(dtype) = dtype_of(number) else { return any };
        let extents: Vec<DimId> = dims.iter().map(|&d| cx.types.dims.constant(d)).collect();
        return if dims.iter().all(|&d| d >= 0) { cx.types.tensor(dtype, &extents) } else { any };
    }
    if matches!(node.op_type(), "LSTM" | "GRU" | "RNN") {
        return recurrent(cx, node, output, operands);
    }
    let (Some(&first), 0) = (operands.first(), output) else { return any };
    match node.op_type() {
        op if LIKE_FIRST_OPERAND.contains(&op) => match cx.types.get(first) {
            Type::Tensor(_) => first,
            _ => any,
        },
        "Flatten" => flattened(cx, node, first),
        "Size" => cx.types.scalar(DType::Int64),
        _ => any,
    }
}

/// Returns the type of an output of `LSTM`, `GRU` or `RNN`: all states by time, the last state, or
/// the last state of the cells.
///
/// The input has the extents time, batch and features, with batch first if `layout` is 1. The
/// states have an extent for the directions before the batch, or before their elements if batch is
/// first.
fn recurrent(cx: &mut Context, node: &NodeProto, output: usize, operands: &[TypeId]) -> TypeId {
    let Some(input) = operands.first().and_then(|&x| cx.types.as_tensor(x)).cloned() else { return cx.types.any() };
    let attribute = |name: &str| node.attribute.iter().find(|a| a.name() == name);
    let unknown = cx.types.dims.unknown();
    let (time, batch) = match input.shape.as_deref() {
        Some(&[batch, time, _]) if attribute("layout").is_some_and(|a| a.i() == 1) => (time, batch),
        Some(&[time, batch, _]) => (time, batch),
        _ => (unknown, unknown),
    };
    let directions = match attribute("direction").map_or(b"forward" as &[u8], |a| a.s()) {
        b"forward" | b"reverse" => cx.types.dims.constant(1),
        b"bidirectional" => cx.types.dims.constant(2),
        _ => unknown,
    };
    // Without the attribute, the recurrent weights have the number of elements of a state.
    let weights = operands.get(2).and_then(|&r| cx.types.as_tensor(r)).and_then(|r| r.shape.as_ref()?.last().copied());
    let state = match attribute("hidden_size").map(|a| a.i()) {
        Some(size @ 0..) => cx.types.dims.constant(size),
        Some(_) => unknown,
        None => weights.unwrap_or(unknown),
    };
    let batch_first = attribute("layout").is_some_and(|a| a.i() != 0);
    let extents: &[DimId] = match (output, batch_first) {
        (0, false) => &[time, directions, batch, state],
        (0, true) => &[batch, time, directions, state],
        (_, false) => &[directions, batch, state],
        (_, true) => &[batch, directions, state],
    };
    cx.types.tensor(input.dtype, extents)
}

/// Returns the type of a matrix: the product of the extents before an axis, and the product of
/// those from it on.
fn flattened(cx: &mut Context, node: &NodeProto, operand: TypeId) -> TypeId {
    let Type::Tensor(tensor) = cx.types.get(operand).clone() else { return cx.types.any() };
    let unknown = cx.types.dims.unknown();
    let attribute = node.attribute.iter().find(|a| a.name() == "axis");
    let (axis, Some(shape)) = (attribute.map_or(1, |a| a.i.unwrap_or(0)), tensor.shape) else {
        return cx.types.tensor(tensor.dtype, &[unknown, unknown]);
    };
    let axis = if axis < 0 { axis + shape.len() as i64 } else { axis };
    let axis = usize::try_from(axis).unwrap_or(0).min(shape.len());
    let mut product = |dims: &[DimId]| {
        let one = cx.types.dims.constant(1);
        dims.iter().fold(one, |product, &d| cx.types.dims.mul(product, d))
    };
    let extents = [product(&shape[..axis]), product(&shape[axis..])];
    cx.types.tensor(tensor.dtype, &extents)
}
