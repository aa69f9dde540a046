//! Operators with observable effects. They have no kernel; the interpreter runs them in order.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, KernelError, Literal, OpDef, TypeCall, TypeError, TypeId,
};

use crate::creation::{DTYPE, SHAPE, shaped_float};
use crate::kernels::random::{self, RandomStream};
use crate::typing::{Elements, expect_rank, tensor};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        OpDef::new("print", "shows its operands", Arity::at_least(0), unit)
            .attrs(const { &[AttrDef::new("format", AttrKind::Str, AttrDefault::Str(""), "text shown before them")] })
            .impure(),
        OpDef::new("assert", "fails unless its operand holds", Arity::exactly(1), assert)
            .attrs(const { &[AttrDef::new("message", AttrKind::Str, AttrDefault::Str(""), "what the failure says")] })
            .impure(),
        OpDef::new("random.uniform", "floats drawn evenly from `[low, high)`", Arity::exactly(0), shaped_float)
            .attrs(
                const {
                    &[
                        SHAPE,
                        AttrDef::new("low", AttrKind::Float, AttrDefault::Float(0.0), "the smallest"),
                        AttrDef::new("high", AttrKind::Float, AttrDefault::Float(1.0), "what all are below"),
                        DTYPE,
                    ]
                },
            )
            .impure(),
        OpDef::new("random.normal", "floats drawn from a normal distribution", Arity::exactly(0), shaped_float)
            .attrs(
                const {
                    &[
                        SHAPE,
                        AttrDef::new("mean", AttrKind::Float, AttrDefault::Float(0.0), "the mean"),
                        AttrDef::new("std", AttrKind::Float, AttrDefault::Float(1.0), "the standard deviation"),
                        DTYPE,
                    ]
                },
            )
            .impure(),
    ]
}

fn unit(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    Ok(call.cx.types.unit())
}

fn assert(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let condition = tensor(call, 0, Elements::Bool)?;
    expect_rank(&condition, 0, 0)?;
    Ok(call.cx.types.unit())
}

/// Draws floats in `[low, high)` as `random.uniform` does. Takes one number of the stream for each
/// element.
///
/// # Errors
/// If `dtype` is not a float with kernels, or the tensor is too large.
pub fn draw_uniform(
    shape: &[usize],
    dtype: DType,
    low: f64,
    high: f64,
    stream: &mut RandomStream,
) -> Result<Literal, KernelError> {
    Ok(random::uniform(shape, dtype, low, high, stream)?)
}

/// Draws floats of a normal distribution as `random.normal` does. Takes two numbers of the stream
/// for each element.
///
/// # Errors
/// If `dtype` is not a float with kernels, or the tensor is too large.
pub fn draw_normal(
    shape: &[usize],
    dtype: DType,
    mean: f64,
    std: f64,
    stream: &mut RandomStream,
) -> Result<Literal, KernelError> {
    Ok(random::normal(shape, dtype, mean, std, stream)?)
}
