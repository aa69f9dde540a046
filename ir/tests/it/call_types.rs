//! Types of calls that are inferred once: only those that follow from the types of the operands.

use std::cell::Cell;
use std::sync::Arc;

use anfora_ir::{Arity, Context, DType, Literal, OpDef, OpRegistry, Operand, TypeId, infer_op};

thread_local! {
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

fn count_run() {
    RUNS.set(RUNS.get() + 1);
}

/// Returns tables with three operators. The type of `types` is that of its first operand. The
/// results of `values` and `elements` have as many elements as their last operand says.
fn context() -> Context {
    let mut registry = OpRegistry::new();
    let types = OpDef::new("types", "for tests", Arity::between(1, 3), |call| {
        count_run();
        Ok(call.ty(0))
    });
    let values = OpDef::new("values", "for tests", Arity::exactly(2), |call| {
        count_run();
        let extent = call.literal(1).and_then(Literal::as_scalar::<f32>);
        Ok(match extent {
            Some(extent) => call.cx.types.static_tensor(DType::Float32, &[extent as usize]),
            None => call.cx.types.any(),
        })
    });
    let elements = OpDef::new("elements", "for tests", Arity::exactly(1), |call| {
        count_run();
        let extent = call.elements(0).and_then(|elements| elements.first().copied());
        let extent = extent.unwrap_or(call.cx.types.dims.unknown());
        Ok(call.cx.types.tensor(DType::Float32, &[extent]))
    });
    for row in [types, values, elements] {
        registry.register(row).unwrap();
    }
    Context::new(Arc::new(registry))
}

/// Returns the type of a call, and the number of runs of its rule.
fn infer(cx: &mut Context, op: &str, operands: &[Operand]) -> (TypeId, usize) {
    let (op, attrs, any) = (cx.ops.find(op).unwrap(), cx.attrs.empty(), cx.types.any());
    RUNS.set(0);
    let ty = infer_op(cx, op, operands, attrs, any).unwrap();
    (ty, RUNS.get())
}

fn of_type(ty: TypeId) -> Operand {
    Operand { ty, literal: None, absent: false }
}

#[test]
fn a_type_that_follows_from_types_is_inferred_once() {
    let mut cx = context();
    let [a, b] = [2, 3].map(|extent| of_type(cx.types.static_tensor(DType::Float32, &[extent])));
    let constant = cx.constant_operand(Some(&Literal::splat(&[3], 1.0f32)));
    for first in [1, 0] {
        assert_eq!(infer(&mut cx, "types", &[a]), (a.ty, first));
        assert_eq!(infer(&mut cx, "types", &[a, b]), (a.ty, first));
        assert_eq!(infer(&mut cx, "types", &[b, a]), (b.ty, first));
    }
    assert_eq!(constant.ty, b.ty);
    assert_eq!(infer(&mut cx, "types", &[a, constant]), (a.ty, 0), "the rule does not ask for the constant");
    let left_out = cx.constant_operand(None);
    for operands in [[a, b, b], [a, b, left_out]] {
        assert_eq!(infer(&mut cx, "types", &operands), (a.ty, 1));
    }
}

#[test]
fn a_type_that_depends_on_a_constant_is_inferred_each_time() {
    let mut cx = context();
    let any = of_type(cx.types.any());
    for extent in [4, 5, 4] {
        let constant = cx.constant_operand(Some(&Literal::scalar(extent as f32)));
        let wanted = cx.types.static_tensor(DType::Float32, &[extent]);
        assert_eq!(infer(&mut cx, "values", &[any, constant]), (wanted, 1));
    }
    let unknown = of_type(cx.types.scalar(DType::Float32));
    assert_eq!(infer(&mut cx, "values", &[any, unknown]), (cx.types.any(), 1));
}

#[test]
fn a_type_that_depends_on_elements_is_inferred_again_for_a_constant() {
    let mut cx = context();
    let plain = of_type(cx.types.static_tensor(DType::Int64, &[1]));
    let literal = cx.literals.intern(Literal::from_elements(&[1], &[4i64]).unwrap());
    let with_elements = of_type(cx.literal_type(literal));
    let unknown = cx.types.dims.unknown();
    let unknown = cx.types.tensor(DType::Float32, &[unknown]);
    let four = cx.types.static_tensor(DType::Float32, &[4]);
    for _ in 0..2 {
        assert_eq!(infer(&mut cx, "elements", &[plain]), (unknown, 1));
        // As the interpreter states constants: their types include no elements.
        assert_eq!(infer(&mut cx, "elements", &[Operand { literal: Some(literal), ..plain }]), (four, 1));
        assert_eq!(infer(&mut cx, "elements", &[with_elements]).0, four);
    }
}

#[test]
fn types_of_a_layer_that_is_taken_are_forgotten() {
    let mut cx = context();
    cx.freeze();
    let mut overlay = cx.overlay();
    let new = of_type(overlay.types.static_tensor(DType::Float32, &[7]));
    assert_eq!(infer(&mut overlay, "types", &[new]), (new.ty, 1));
    let additions = overlay.take_additions().expect("the type is new");
    let other = of_type(overlay.types.static_tensor(DType::Int32, &[]));
    assert_eq!(other.ty, new.ty, "the id is used again");
    assert_eq!(infer(&mut overlay, "types", &[other]), (other.ty, 1));
    drop(additions);
}
