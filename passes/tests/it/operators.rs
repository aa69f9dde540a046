//! Tests of FoldConstant on operators of an embedder, correct and incorrect ones.

use std::sync::Arc;

use anfora_ir::{Arity, DType, Kernel, Literal, OpDef, OpRegistry, Source, TypeCall, parse_module, verify_module};
use anfora_ops::typing::{Elements, elementwise};
use anfora_passes::{FoldBudget, fold_constant};

/// Returns the text after folding, and the remarks.
fn folded(op: OpDef, body: &str) -> (String, Vec<String>) {
    let mut registry = OpRegistry::clone(&anfora_ops::standard());
    registry.register(op).unwrap();
    let text = format!("def @main(%x: Tensor[(2, 3), float32], %n: Tensor[(n,), float32]) {{ {body} }}");
    let mut module = parse_module(Source::new("test", text), Arc::new(registry)).map_err(|e| e[0].to_string()).unwrap();
    let key = module.find("main").unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    let done = fold_constant(cx, function, FoldBudget::default()).unwrap();
    verify_module(&module).unwrap();
    let text = module.to_text();
    let remarks = done.remarks.iter().map(|r| r.message.clone()).collect();
    (text.split_once("{\n").unwrap().1.replace("\n}\n", ""), remarks)
}

fn with_kernel(kernel: Kernel) -> OpDef {
    OpDef::new("acme.f", "for tests", Arity::exactly(1), |call| elementwise(call, Elements::Any)).kernel(kernel)
}

#[test]
fn a_kernel_that_is_wrong_is_told_and_leaves_the_program() {
    let kernels: [(Kernel, &str); 4] = [
        (|_| Ok(Vec::new()), "its kernel gives 0 results, and its type says 1"),
        (
            |_| Ok(vec![Literal::scalar(1i32)]),
            "its kernel gives Tensor[(), int32] as result 0, which its type says is Tensor[(), float32]",
        ),
        (
            |_| Ok(vec![Literal::splat(&[2], 1f32)]),
            "its kernel gives Tensor[(2,), float32] as result 0, which its type says is Tensor[(), float32]",
        ),
        (|_| panic!("no idea"), "its kernel panics: no idea"),
    ];
    for (kernel, why) in kernels {
        let (text, remarks) = folded(with_kernel(kernel), "acme.f(1f)");
        assert_eq!(text, "  acme.f(1f)");
        let expected = format!("`acme.f` on constants was not folded, because the operator is faulty: {why}");
        assert_eq!(remarks, [expected]);
    }
    let (text, remarks) = folded(with_kernel(|c| Ok(vec![c.operand(0)?.clone()])), "acme.f(2f)");
    assert_eq!((text.as_str(), remarks.len()), ("  2f", 0));
}

#[test]
fn what_the_types_tell_is_folded_by_the_row() {
    fn rank(call: &mut TypeCall<'_>) -> Option<Vec<Literal>> {
        let shape = call.cx.types.as_tensor(call.operand(0)?)?.shape.as_ref()?;
        Some(vec![Literal::scalar(shape.len() as i64)])
    }
    let op = |rule| {
        OpDef::new("acme.rank", "the number of extents", Arity::exactly(1), |call| {
            Ok(call.cx.types.scalar(DType::Int64))
        })
        .known_by_type(rule)
    };
    assert_eq!(
        folded(op(rank), "let %r = acme.rank(%x); let %s = acme.rank(%n); let %t = add(%r, %s); %t").0,
        "  3i64"
    );
    assert_eq!(folded(op(rank), "let %r = acme.rank(%x); add(%r, 1i64)").0, "  3i64");
    assert_eq!(folded(op(|_| None), "acme.rank(%x)").0, "  acme.rank(%x)");
    // A rule whose result has another type is ignored.
    assert_eq!(folded(op(|_| Some(vec![Literal::scalar(1f32)])), "acme.rank(%x)").0, "  acme.rank(%x)");
    assert_eq!(folded(op(rank).impure(), "acme.rank(%x)").0, "  acme.rank(%x)");
}
