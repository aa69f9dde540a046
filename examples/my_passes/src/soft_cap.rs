//! The operator `my.soft_cap(x, cap=30.0)`: `cap * tanh(x / cap)`.

use anfora::ir::{Arity, AttrDef, AttrDefault, AttrKind, Decomposer, DecompositionPart, FusionPattern, OpDef, Splat};
use anfora::onnx::convert::Conversion;
use anfora::onnx::proto::AttributeType;
use anfora::ops::loops::map_float;
use anfora::ops::typing::{Elements, RequiredAttrs, elementwise, one};

/// The name of the operator in programs. Its namespace keeps it apart from operators that anfora
/// may have in the future.
pub const SOFT_CAP: &str = "my.soft_cap";

/// Returns the row of the operator.
pub fn operator() -> OpDef {
    let cap = AttrDef::new("cap", AttrKind::Float, AttrDefault::Float(30.0), "the limit that results approach");
    OpDef::new(SOFT_CAP, "cap * tanh(x / cap)", Arity::exactly(1), |call| elementwise(call, Elements::Float))
        .attrs(vec![cap])
        .kernel(|call| {
            let cap = call.attrs.required_float("cap")?;
            one(map_float(
                call.operand(0)?,
                |x| libm::tanhf(x / cap as f32) * cap as f32,
                |x| libm::tanh(x / cap) * cap,
            ))
        })
        .decomposition(decomposed)
        .fusion(FusionPattern::ElemWise)
        .splat(Splat::OfAll)
}

/// Writes a call in standard operators.
fn decomposed(d: &mut Decomposer<'_>) -> Option<DecompositionPart> {
    let (x, cap, dtype) = (d.operand(0)?, d.attrs().float("cap")?, d.dtype(0)?);
    let cap = d.number(cap, dtype)?;
    let quotient = d.op("divide", &[x, cap]);
    let bounded = d.op("tanh", &[quotient]);
    Some(d.op("multiply", &[bounded, cap]))
}

/// Returns the counterpart in ONNX: `SoftCap` of the domain `com.example`.
pub fn conversion() -> Conversion {
    Conversion::new("SoftCap", 1..=1, SOFT_CAP).domain("com.example").same(&[("cap", AttributeType::Float)])
}
