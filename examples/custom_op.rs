//! Custom operators. They are registered, and then parsed, printed, folded, fused, interpreted, and
//! read from and written to ONNX like the standard operators.
//!
//! `cargo run --release -p anfora --example custom_op`

use std::sync::Arc;

use anfora::interp::Interpreter;
use anfora::ir::{Arity, AttrDef, AttrDefault, AttrKind, FusionPattern, OpDef, OpRegistry, RegisterError, Splat};
use anfora::onnx::convert::{Conversion, Conversions};
use anfora::onnx::proto::AttributeType;
use anfora::onnx::{ExportOptions, ImportOptions};
use anfora::ops::loops::{compare_float, map_float};
use anfora::ops::typing::{Elements, RequiredAttrs, elementwise, elementwise_to, one};
use anfora::prelude::*;

/// Returns the standard operators, those that ONNX files may bring, and two custom operators.
fn registry() -> Result<Arc<OpRegistry>, RegisterError> {
    let mut registry = OpRegistry::clone(&anfora::onnx::registry());
    registry.register(
        OpDef::new("acme.squareplus", "(x + sqrt(x * x + b)) / 2", Arity::exactly(1), |call| {
            elementwise(call, Elements::Float)
        })
        .attrs(vec![AttrDef::new("b", AttrKind::Float, AttrDefault::Float(4.0), "how round the corner is")])
        .kernel(|call| {
            let b = call.attrs.required_float("b")?;
            one(map_float(
                call.operand(0)?,
                |x| 0.5 * (x + libm::sqrtf(x * x + b as f32)),
                |x| 0.5 * (x + libm::sqrt(x * x + b)),
            ))
        })
        .fusion(FusionPattern::ElemWise)
        .splat(Splat::OfAll),
    )?;
    registry.register(
        OpDef::new("acme.is_close", "whether two are at most `atol` apart", Arity::exactly(2), |call| {
            elementwise_to(call, Elements::Float, DType::Bool)
        })
        .attrs(vec![AttrDef::new("atol", AttrKind::Float, AttrDefault::Float(1e-8), "the most that they may be apart")])
        .kernel(|call| {
            let atol = call.attrs.required_float("atol")?;
            one(compare_float(
                call.operand(0)?,
                call.operand(1)?,
                |a, b| (a - b).abs() <= atol as f32,
                |a, b| (a - b).abs() <= atol,
            ))
        })
        .fusion(FusionPattern::Broadcast)
        .splat(Splat::OfAll)
        .commutative(),
    )?;
    Ok(Arc::new(registry))
}

/// Returns the conversions of the standard operators and of the custom operators, which are in the
/// domain `com.acme` in ONNX.
fn conversions() -> Conversions {
    let mut table = Conversions::default();
    let squareplus = Conversion::new("Squareplus", 1..=2, "acme.squareplus").domain("com.acme");
    table.register(squareplus.same(&[("b", AttributeType::Float)]));
    let is_close = Conversion::new("IsClose", 2..=2, "acme.is_close").domain("com.acme");
    table.register(is_close.same(&[("atol", AttributeType::Float)]));
    table
}

const PROGRAM: &str = "def @main(%x: Tensor[(n, 3), float32]) -> Tensor[(n, 3), float32] {
  let %bias = acme.squareplus(dense<Tensor[(3,), float32]>[-1.5, 0, 1.5]);
  let %same = acme.squareplus(%bias, b=4.0);
  let %a = add(%x, %bias);
  let %y = acme.squareplus(%a, b=0.25);
  let %close = acme.is_close(%y, %a, atol=0.125);
  let %z = where(%close, %a, %y);
  %z
}
";

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let registry = registry()?;
    let mut module = parse_module(Source::new("custom_op.anf", PROGRAM), registry.clone())?;

    // Constant calls are folded by the kernel. Attributes that have their defaults are not printed.
    println!("As it is read:\n{module}");
    let passes = anfora::passes::registry();
    let context = PassContext::with_registry(passes.clone());
    parse_pipeline(&passes, "FoldConstant,DeadCodeElimination")?.apply(&mut module, &context)?;
    println!("Folded:\n{module}");
    assert_eq!(module.to_string().matches("acme.squareplus").count(), 1, "only that of %a is left");

    let x = Literal::from_elements(&[2, 3], &[-4f32, -1.0, 0.0, 0.5, 1.0, 8.0])?;
    let before = Interpreter::new(&module).run("main", std::slice::from_ref(&x))?;

    // By their fusion patterns, both operators go into one group with the addition and the choice.
    let mut fused = module.clone();
    parse_pipeline(&passes, "ConvertToDataflow,FuseOps")?.apply(&mut fused, &context)?;
    println!("Fused:\n{fused}");
    let text = fused.to_string();
    let groups: Vec<&str> = text.split("def ").filter(|def| def.contains("Primitive=1")).collect();
    let [group] = groups.as_slice() else { panic!("one group is expected") };
    assert!(["add(", "acme.squareplus(", "acme.is_close(", "where("].iter().all(|op| group.contains(op)));
    assert!(Interpreter::new(&fused).run("main", std::slice::from_ref(&x))?.same(&before));

    // To ONNX and back. The version of the domain is the first that has both operators.
    let written = anfora::onnx::export(&module, &ExportOptions { conversions: conversions(), ..Default::default() })?;
    let options = ImportOptions { registry, conversions: conversions(), ..ImportOptions::default() };
    let read = anfora::onnx::import(written.bytes.clone().into(), &options)?;
    println!("Through {} bytes of ONNX:\n{}", written.bytes.len(), read.module);
    assert!(read.kept.is_empty());
    assert!(Interpreter::new(&read.module).run("main", &[x])?.same(&before));

    // An import without these operators keeps their nodes, and those that cannot be typed without
    // them. An export gives them back.
    let kept = anfora::onnx::import(written.bytes.into(), &ImportOptions::default())?;
    println!("Without our table:\n{}", kept.module);
    assert_eq!(kept.kept.len(), 3);
    Ok(())
}
