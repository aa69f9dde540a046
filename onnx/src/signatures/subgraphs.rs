//! Operators with subgraphs, whose outputs are those of the subgraphs.

use anfora_ir::{DType, DimId, Type, TypeId};

use super::node_types::NodeTypes;
use super::row::OutputType::{By, ElementOf};
use super::row::Signature;

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["If"], &[By(of_branches)]).repeating(),
    Signature::of(&["Loop"], &[By(of_loop)]).repeating(),
    Signature::of(&["Scan"], &[By(|node| of_scan(node, 1))]).until(8).repeating(),
    Signature::of(&["Scan"], &[By(|node| of_scan(node, 0))]).since(9).repeating(),
];

/// Returns the types that the parameters of a node's subgraph have in every call, as far as its
/// operands determine them; none for other nodes.
pub(super) fn parameters(node: &mut NodeTypes<'_>) -> Vec<TypeId> {
    let count = node.operands.len();
    match node.node.op_type() {
        "Loop" => {
            let counter = node.cx.types.scalar(DType::Int64);
            let condition = node.cx.types.scalar(DType::Bool);
            let states = (2..count).map(|i| node.tensor_like(i, None));
            [counter, condition].into_iter().chain(states).collect()
        }
        "Scan" => {
            let scanned = node.int("num_scan_inputs").and_then(|n| usize::try_from(n).ok()).unwrap_or(count);
            let states = count.saturating_sub(scanned);
            let of = |i| match i < states {
                // The shape of a state is the same in each iteration.
                true => node.like_operand(i),
                false => slice(node, i, i - states),
            };
            (0..count).map(of).collect()
        }
        "SequenceMap" => (0..count).map(|i| node.type_of(&ElementOf(i))).collect(),
        _ => Vec::new(),
    }
}

/// Returns the type of the elements of a scanned operand.
fn slice(node: &mut NodeTypes<'_>, operand: usize, number: usize) -> TypeId {
    let shape = node.extents(operand).and_then(|mut shape| {
        let axis = NodeTypes::axis(scan_axis(node, "scan_input_axes", number), shape.len())?;
        shape.remove(axis);
        Some(shape)
    });
    node.tensor_like(operand, shape)
}

/// Returns an axis in a list of the attributes of a `Scan`.
fn scan_axis(node: &NodeTypes<'_>, list: &str, number: usize) -> i64 {
    node.ints(list).and_then(|axes| axes.get(number).copied()).unwrap_or(0)
}

/// Returns the common type of the results of all branches.
fn of_branches(node: &mut NodeTypes<'_>) -> TypeId {
    let any = node.cx.types.any();
    let mut common = None;
    for i in node.node.input.len()..node.operands.len() {
        let Some(result) = result_of(node, i, node.output) else { return any };
        common = match common {
            None => Some(result),
            Some(common) => node.cx.types.join(common, result),
        };
        if common.is_none() {
            return any;
        }
    }
    common.unwrap_or(any)
}

/// Returns the type of a result of the subgraph that is an operand.
pub(super) fn result_of(node: &mut NodeTypes<'_>, operand: usize, result: usize) -> Option<TypeId> {
    let function = node.operand(operand)?.ty;
    let results = node.results_of(function)?;
    let result = *results.get(result)?;
    Some(node.cx.types.without_elements(result))
}

/// Returns the type of a final state, or of the values of all iterations. The body takes the number
/// of the iteration, a condition and the states, and returns a condition, the states and the
/// values.
fn of_loop(node: &mut NodeTypes<'_>) -> TypeId {
    let inputs = node.node.input.len();
    let states = inputs.saturating_sub(2);
    if node.output < states {
        return state(node, node.output + 2, inputs, node.output + 2, node.output + 1);
    }
    match result_of(node, inputs, node.output + 1) {
        Some(value) => stacked(node, value, 0, None),
        None => node.cx.types.any(),
    }
}

/// Returns the type of a state after any number of iterations: the common type of the first one and
/// of that of the body, if the declared parameter of the body takes both.
fn state(node: &mut NodeTypes<'_>, initial: usize, body: usize, parameter: usize, result: usize) -> TypeId {
    let any = node.cx.types.any();
    let Some(function) = node.operand(body).map(|f| f.ty) else { return any };
    let (Some(initial), Some(parameters)) = (node.operand(initial), node.parameters_of(function)) else { return any };
    let (Some(result), Some(&parameter)) = (result_of(node, body, result), parameters.get(parameter)) else {
        return any;
    };
    let initial = node.cx.types.without_elements(initial.ty);
    let Some(common) = node.cx.types.join(initial, result) else { return any };
    if node.cx.types.accepts(parameter, common) {
        return common;
    }
    // The body may compute another shape in the next iteration.
    match node.cx.types.get(common) {
        Type::Tensor(t) => {
            let dtype = t.dtype;
            node.cx.types.unranked(dtype)
        }
        _ => any,
    }
}

/// Returns the type of values of a type that are stacked along a new axis.
fn stacked(node: &mut NodeTypes<'_>, value: TypeId, axis: i64, length: Option<DimId>) -> TypeId {
    let Type::Tensor(tensor) = node.cx.types.get(value).clone() else { return node.cx.types.any() };
    let Some(mut shape) = tensor.shape.filter(|s| s.len() < crate::convert::MAX_RANK) else {
        return node.cx.types.unranked(tensor.dtype);
    };
    let length = length.unwrap_or_else(|| node.cx.types.dims.unknown());
    match NodeTypes::axis(axis, shape.len() + 1) {
        Some(axis) => shape.insert(axis, length),
        None => return node.cx.types.unranked(tensor.dtype),
    }
    node.cx.types.tensor(tensor.dtype, &shape)
}

/// Returns the type of a final state, or of the values of all iterations. In version 8, lengths
/// precede the other operands, and all but the lengths have a first axis for the batch.
fn of_scan(node: &mut NodeTypes<'_>, lengths: usize) -> TypeId {
    let any = node.cx.types.any();
    let inputs = node.node.input.len();
    let scanned = node.int("num_scan_inputs").and_then(|n| usize::try_from(n).ok()).unwrap_or(inputs);
    let Some(states) = inputs.checked_sub(lengths).and_then(|n| n.checked_sub(scanned)) else { return any };
    if lengths > 0 {
        let Some(result) = result_of(node, inputs, node.output) else { return any };
        let batch = node.extents(lengths).and_then(|s| s.first().copied());
        let value = if node.output < states { result } else { stacked(node, result, 0, None) };
        return stacked(node, value, 0, batch);
    }
    if node.output < states {
        return state(node, node.output, inputs, node.output, node.output);
    }
    let length = node.extents(states).and_then(|shape| {
        let axis = NodeTypes::axis(scan_axis(node, "scan_input_axes", 0), shape.len())?;
        Some(shape[axis])
    });
    let axis = scan_axis(node, "scan_output_axes", node.output - states);
    match result_of(node, inputs, node.output) {
        Some(value) => stacked(node, value, axis, length),
        None => any,
    }
}
