//! DecomposeOps on operators of an embedder, with correct and incorrect decompositions.

use std::sync::Arc;

use anfora_ir::{Arity, DecompositionRule, OpDef, OpRegistry, Source, parse_module};
use anfora_manager::{PassContext, parse_pipeline};
use anfora_ops::typing::{Elements, elementwise};
use anfora_passes::{DecompositionTarget, registry};

/// Returns the body of a function of one call of `acme.f` after DecomposeOps, or the error.
fn decomposed(rule: DecompositionRule) -> Result<String, String> {
    let mut ops = OpRegistry::clone(&anfora_ops::standard());
    let row = OpDef::new("acme.f", "for tests", Arity::exactly(1), |call| elementwise(call, Elements::Any));
    ops.register(row.decomposition(rule)).unwrap();
    let text = "def @main(%x: Tensor[(2,), float32]) { acme.f(%x) }";
    let mut module = parse_module(Source::new("test", text), Arc::new(ops)).map_err(|e| e[0].to_string()).unwrap();
    let cx = PassContext::with_registry(registry());
    registry().make("DecomposeOps").unwrap().apply(&mut module, &cx).map_err(|e| e.to_string())?;
    let text = module.to_text();
    Ok(text.split_once("{\n").unwrap().1.replace("\n}\n", ""))
}

#[test]
fn steps_become_bindings() {
    assert_eq!(decomposed(|_| None).unwrap(), "  acme.f(%x)");
    assert_eq!(decomposed(|d| d.operand(0)).unwrap(), "  %x");
    let twice: DecompositionRule = |d| {
        let x = d.operand(0)?;
        let _unused = d.op("log", &[x]);
        let power = d.op("exp", &[x]);
        Some(d.op("multiply", &[power, power]))
    };
    assert_eq!(decomposed(twice).unwrap(), "  let %0 = exp(%x);\n  multiply(%0, %0)");
    // A step that has steps itself.
    let nested: DecompositionRule = |d| {
        let x = d.operand(0)?;
        let silu = d.op("nn.silu", &[x]);
        Some(d.op("tanh", &[silu]))
    };
    let expected = "  let %0 = sigmoid(%x);\n  let %1 = multiply(%x, %0);\n  tanh(%1)";
    assert_eq!(decomposed(nested).unwrap(), expected);
}

#[test]
fn rows_that_are_wrong_are_told() {
    let itself: DecompositionRule = |d| {
        let x = d.operand(0)?;
        let again = d.op("acme.f", &[x]);
        Some(d.op("tanh", &[again]))
    };
    let unknown: DecompositionRule = |d| {
        let x = d.operand(0)?;
        Some(d.op("acme.g", &[x]))
    };
    let too_many: DecompositionRule = |d| {
        let x = d.operand(0)?;
        Some(d.op("tanh", &[x, x]))
    };
    let panics: DecompositionRule = |_| panic!("no idea");
    for (rule, why) in [
        (itself, "`acme.f`: its decomposition does not end: it is a step of its own steps"),
        (unknown, "`acme.f`: its decomposition is wrong: unknown operator `acme.g`"),
        (too_many, "`acme.f`: its decomposition is wrong: `tanh` takes 1 operand"),
        (panics, "`acme.f`: its decomposition panics: no idea"),
    ] {
        let error = decomposed(rule).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    // A result of another shape is cast, which fails where the types exclude each other.
    let other_type: DecompositionRule = |d| {
        let x = d.operand(0)?;
        Some(d.op_with("sum", &[x], &[("keepdims", true.into())]))
    };
    assert!(decomposed(other_type).unwrap_err().contains("`acme.f`: its decomposition is wrong"));
}

#[test]
fn only_known_targets_are_taken() {
    let registry = registry();
    assert_eq!(parse_pipeline(&registry, "DecomposeOps").unwrap().to_string(), "DecomposeOps");
    let error = parse_pipeline(&registry, "DecomposeOps{to=primative}").unwrap_err();
    assert_eq!((error.column, error.suggestion.as_deref()), (17, Some("primitive")));
    assert!(error.to_string().contains("unknown value of `to` `primative`; did you mean `primitive`?"), "{error}");
    assert!("primitives".parse::<DecompositionTarget>().is_err());
}
