//! Operators that draw random numbers.

use anfora_ir::DType;

use super::node_types::NodeTypes;
use super::row::ElementType::{Attribute, Is, Of};
use super::row::ExtentOf;
use super::row::OutputExtents::{Are, By, Like};
use super::row::OutputType::Tensor;
use super::row::{OutputShape, Signature};

pub(super) const ROWS: &[Signature] = &[
    Signature::of(
        &["Bernoulli", "RandomNormalLike", "RandomUniformLike"],
        &[Tensor(&[Attribute("dtype"), Of(0)], Like(0))],
    )
    .impure(),
    Signature::of(
        &["RandomNormal", "RandomUniform"],
        &[Tensor(&[Attribute("dtype"), Is(DType::Float32)], By(extents_of_attribute))],
    )
    .impure(),
    Signature::of(
        &["Multinomial"],
        &[Tensor(
            &[Attribute("dtype"), Is(DType::Int32)],
            Are(&[ExtentOf::Of(0, 0), ExtentOf::Attribute("sample_size", 1)]),
        )],
    )
    .impure(),
];

fn extents_of_attribute(node: &mut NodeTypes<'_>) -> OutputShape {
    let extents = node.ints("shape")?.to_vec();
    Some(extents.into_iter().map(|extent| node.constant(extent)).collect())
}
