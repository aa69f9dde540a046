//! The operators of the domains `ai.onnx.preview.training` and `ai.onnx.preview`.

use anfora_ir::TypeId;

use super::node_types::NodeTypes;
use super::reductions::attended;
use super::row::OutputExtents::By;
use super::row::OutputType::{self, Tensor};
use super::row::{FIRST, Signature};

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["Adagrad", "Momentum"], &[OutputType::By(updated::<3>)]).repeating(),
    Signature::of(&["Adam"], &[OutputType::By(updated::<4>)]).repeating(),
    // The n-th output is the derivative with respect to the n-th input.
    Signature::of(&["Gradient"], &[OutputType::By(|node| node.like_operand(node.output))]).repeating(),
];

pub(super) const PREVIEW: &[Signature] = &[Signature::of(&["FlexAttention"], &[Tensor(FIRST, By(attended))])];

/// Returns the type of an updated tensor or state. After a rate and a counter, the operands are
/// tensors, their gradients and their states, in groups of equal length; the outputs are the same
/// without the gradients.
fn updated<const GROUPS: usize>(node: &mut NodeTypes<'_>) -> TypeId {
    let tensors = node.operands.len().saturating_sub(2);
    let length = tensors / GROUPS;
    if length == 0 || !tensors.is_multiple_of(GROUPS) {
        return node.cx.types.any();
    }
    let gradients = if node.output < length { 0 } else { length };
    node.like_operand(2 + node.output + gradients)
}
