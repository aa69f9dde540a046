//! Quantisation.

use anfora_ir::DType;

use super::row::ElementType::{Attribute, Is, Of};
use super::row::OutputExtents::Like;
use super::row::OutputType::Tensor;
use super::row::{FLOAT, SCALAR, Signature, UINT8};

pub(super) const ROWS: &[Signature] = &[
    Signature::of(&["QuantizeLinear"], &[Tensor(&[Of(2), Attribute("output_dtype"), Is(DType::UInt8)], Like(0))]),
    Signature::of(&["DequantizeLinear"], &[Tensor(FLOAT, Like(0))]).until(18),
    Signature::of(&["DequantizeLinear"], &[Tensor(&[Attribute("output_dtype"), Of(1)], Like(0))]).since(19),
    Signature::of(&["DynamicQuantizeLinear"], &[Tensor(UINT8, Like(0)), Tensor(FLOAT, SCALAR), Tensor(UINT8, SCALAR)]),
];
