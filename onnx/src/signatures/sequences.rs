//! Sequences and values that may be missing.

use anfora_ir::{DType, Type, TypeId};

use super::node_types::NodeTypes;
use super::row::OutputType::{By, ElementOf, Kind, Tensor};
use super::row::{BOOL, INT64, SCALAR, Signature};
use super::subgraphs::result_of;
use crate::tensor::dtype_of;

const KIND: &str = "a sequence";

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["SequenceConstruct"], &[Kind(KIND, constructed)]),
    Signature::of(&["SequenceEmpty"], &[Kind(KIND, empty)]),
    Signature::of(&["SequenceErase"], &[Kind(KIND, |node| node.elements_of(0))]),
    Signature::of(&["SequenceInsert"], &[Kind(KIND, inserted)]),
    Signature::of(&["SplitToSequence"], &[Kind(KIND, parts)]),
    Signature::of(&["SequenceMap"], &[Kind(KIND, |node| result_of(node, node.node.input.len(), node.output))])
        .repeating(),
    Signature::of(&["SequenceAt"], &[ElementOf(0)]),
    Signature::of(&["ConcatFromSequence"], &[By(joined)]),
    Signature::of(&["SequenceLength"], &[Tensor(INT64, SCALAR)]),
    Signature::of(&["Optional"], &[Kind("a value that may be missing", tensor_of_operand)]),
    Signature::of(&["OptionalGetElement"], &[ElementOf(0)]),
    Signature::of(&["OptionalHasElement"], &[Tensor(BOOL, SCALAR)]),
];

/// Returns the type of the first operand, if it is a tensor.
fn tensor_of_operand(node: &mut NodeTypes<'_>) -> Option<TypeId> {
    tensor_type(node, 0)
}

fn tensor_type(node: &mut NodeTypes<'_>, i: usize) -> Option<TypeId> {
    node.tensor(i)?;
    let ty = node.operand(i)?.ty;
    Some(node.cx.types.without_elements(ty))
}

/// Returns the common type of all operands.
fn constructed(node: &mut NodeTypes<'_>) -> Option<TypeId> {
    let mut common = tensor_type(node, 0)?;
    for i in 1..node.operands.len() {
        let other = tensor_type(node, i)?;
        common = node.cx.types.join(common, other)?;
    }
    Some(common)
}

fn empty(node: &mut NodeTypes<'_>) -> Option<TypeId> {
    let dtype = match node.int("dtype") {
        Some(number) => dtype_of(i32::try_from(number).ok()?)?,
        None => DType::Float32,
    };
    Some(node.cx.types.unranked(dtype))
}

fn inserted(node: &mut NodeTypes<'_>) -> Option<TypeId> {
    let (elements, new) = (node.elements_of(0)?, tensor_type(node, 1)?);
    node.cx.types.join(elements, new)
}

/// Returns the type of the parts of a tensor along an axis. The last one may be shorter.
fn parts(node: &mut NodeTypes<'_>) -> Option<TypeId> {
    let mut shape = node.extents(0);
    let axis = shape.as_ref().and_then(|s| NodeTypes::axis(node.int("axis").unwrap_or(0), s.len()));
    if let (Some(shape), Some(axis)) = (&mut shape, axis) {
        match (node.operand(1), node.int("keepdims").unwrap_or(1)) {
            (Some(_), _) => shape[axis] = node.cx.types.dims.unknown(),
            (None, 0) => drop(shape.remove(axis)),
            (None, _) => shape[axis] = node.constant(1),
        }
    }
    node.tensor(0)?;
    let shape = axis.and(shape);
    Some(node.tensor_like(0, shape))
}

/// Returns the type of the elements of a sequence, joined along an axis or a new one.
fn joined(node: &mut NodeTypes<'_>) -> TypeId {
    let any = node.cx.types.any();
    let Some(Type::Tensor(tensor)) = node.elements_of(0).map(|e| node.cx.types.get(e).clone()) else { return any };
    let unknown = node.cx.types.dims.unknown();
    let is_new = node.int("new_axis").unwrap_or(0) != 0;
    let shape = tensor.shape.and_then(|mut shape| {
        let axis = NodeTypes::axis(node.int("axis")?, shape.len() + usize::from(is_new))?;
        match is_new {
            true => shape.insert(axis, unknown),
            false => shape[axis] = unknown,
        }
        Some(shape)
    });
    node.tensor_of(tensor.dtype, shape)
}
