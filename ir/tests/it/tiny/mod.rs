//! A small set of operators and programs of every shape for the tests of this crate.

#![allow(dead_code)]

use std::sync::Arc;

use anfora_ir::{
    Arity, Attr, AttrDef, AttrDefault, AttrKind, DType, ExprId, FunctionBuilder, FusionPattern, Literal, Module, OpDef,
    OpRegistry, TypeCall, TypeError, TypeId,
};

fn row(name: &'static str, arity: Arity, infer: anfora_ir::TypeRule) -> OpDef {
    OpDef::new(name, "for tests", arity, infer).fusion(FusionPattern::ElemWise)
}

fn same(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let first = call.operand(0).ok_or_else(|| TypeError::new("the first operand is missing"))?;
    for i in 1..call.count() {
        if call.operand(i) != Some(first) {
            let text = call.cx.type_text(first);
            return Err(TypeError::operand(i, format!("operand {i} is not {text}")));
        }
    }
    Ok(first)
}

fn boolean(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    Ok(call.cx.types.scalar(DType::Bool))
}

fn unit(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    Ok(call.cx.types.unit())
}

fn cast(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    call.attrs().ty("to").ok_or_else(|| TypeError::new("`to` is missing"))
}

/// Returns the type of the function without the parameters that the captures take.
fn closure(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let callee = call.operand(0).ok_or_else(|| TypeError::new("the function is missing"))?;
    let captures = call.count() - 1;
    let Some(f) = call.cx.types.as_function(callee).cloned() else {
        return Err(TypeError::operand(0, "not a function"));
    };
    let left = f.params.len().checked_sub(captures).ok_or_else(|| TypeError::new("too many captures"))?;
    Ok(call.cx.types.function(&f.params[..left], f.ret, &[]))
}

/// Returns a registry with the operators.
pub(crate) fn registry() -> Arc<OpRegistry> {
    const TO: &[AttrDef] =
        &[AttrDef { name: "to", kind: AttrKind::Type, default: AttrDefault::Required, doc: "the type" }];
    const AXIS: &[AttrDef] =
        &[AttrDef { name: "axis", kind: AttrKind::Int, default: AttrDefault::Int(0), doc: "the axis" }];
    let mut r = OpRegistry::new();
    for name in ["add", "multiply", "subtract"] {
        r.register(row(name, Arity::exactly(2), same)).unwrap();
    }
    r.register(row("negative", Arity::exactly(1), same)).unwrap();
    r.register(row("flip", Arity::exactly(1), same).attrs(AXIS)).unwrap();
    r.register(row("less", Arity::exactly(2), boolean)).unwrap();
    r.register(row("print", Arity::at_least(0), unit).impure()).unwrap();
    r.register(row("random", Arity::exactly(1), same).impure()).unwrap();
    r.register(row("match_cast", Arity::exactly(1), cast).attrs(TO)).unwrap();
    r.register(row("make_closure", Arity::at_least(1), closure)).unwrap();
    r.declare_opaque("onnx").unwrap();
    Arc::new(r)
}

/// Returns an empty module over these operators.
pub(crate) fn module() -> Module {
    Module::new(registry())
}

/// Returns `Tensor[(8,), float32]`.
pub(crate) fn vector(m: &mut Module) -> TypeId {
    m.cx.types.static_tensor(DType::Float32, &[8])
}

/// Returns `bool`.
pub(crate) fn flag(m: &mut Module) -> TypeId {
    m.cx.types.scalar(DType::Bool)
}

/// Returns a module with an `@main` of one parameter. Its type nests 100,000 deep, and so does an
/// attribute; each level has the next one twice. At the innermost level are a tensor of `innermost`
/// elements and the number `innermost`.
pub(crate) fn deep_type_and_attribute(innermost: usize) -> Module {
    let mut m = module();
    let mut ty = m.cx.types.static_tensor(DType::Float32, &[innermost]);
    let mut attr = m.cx.int_attr(innermost as i64);
    for _ in 0..100_000 {
        ty = m.cx.types.tuple(&[ty, ty]);
        attr = m.cx.attr(Attr::List([attr, attr].into()));
    }
    let mut b = FunctionBuilder::new(&mut m, "main");
    b.attr("deep", attr);
    let x = b.param("x", ty);
    b.finish(x).unwrap();
    m
}

/// A shape of programs.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    Chain,
    NestedIf,
    NestedFn,
    NestedCall,
    LetInValue,
}

/// Every shape.
pub(crate) const SHAPES: [Shape; 5] =
    [Shape::Chain, Shape::NestedIf, Shape::NestedFn, Shape::NestedCall, Shape::LetInValue];

/// Returns a module with an `@main` of a shape, `n` deep or long. Names of variables begin with
/// `prefix`; `last` is the operator at the far end.
pub(crate) fn deep(shape: Shape, n: usize, prefix: &str, last: &str) -> Module {
    let mut m = module();
    add_deep(&mut m, "main", shape, n, prefix, last);
    m
}

/// Adds a function like that of [`deep`].
pub(crate) fn add_deep(m: &mut Module, name: &str, shape: Shape, n: usize, prefix: &str, last: &str) {
    let (v, c) = (vector(m), flag(m));
    let mut b = FunctionBuilder::new(m, name);
    let x = b.param(&format!("{prefix}x"), v);
    let p = b.param(&format!("{prefix}p"), c);
    let name = |kind: &str| format!("{prefix}{kind}");
    let tail = match shape {
        Shape::Chain => {
            b.begin_dataflow();
            let mut at = x;
            for i in 0..n {
                let value = b.call_op(if i + 1 == n { last } else { "add" }, &[at, x], &[]).unwrap();
                at = b.bind(&name("b"), value);
            }
            b.end_dataflow(&[at]);
            at
        }
        Shape::NestedIf => {
            for _ in 0..n {
                b.open_block();
            }
            let value = b.call_op(last, &[x, x], &[]).unwrap();
            let mut inner = b.bind(&name("i"), value);
            for _ in 0..n {
                let then = b.close_block(inner).unwrap();
                let choice = b.if_(p, then, x).unwrap();
                inner = b.bind(&name("i"), choice);
            }
            inner
        }
        Shape::NestedFn => {
            let mut params: Vec<ExprId> = vec![x];
            for _ in 0..n {
                let p = b.open_lambda(&[(&name("a"), v)], None, &[]);
                params.push(p[0]);
            }
            let mut result = b.call_op(last, &[params[n], x], &[]).unwrap();
            for i in (0..n).rev() {
                let f = b.close_lambda(result).unwrap();
                let f = b.bind(&name("f"), f);
                result = b.call(f, &[params[i]]).unwrap();
            }
            result
        }
        Shape::NestedCall => {
            let mut at = b.call_op(last, &[x, x], &[]).unwrap();
            for _ in 0..n {
                at = b.call_op("add", &[at, x], &[]).unwrap();
            }
            at
        }
        Shape::LetInValue => {
            for _ in 0..n {
                b.open_block();
            }
            let mut at = b.call_op(last, &[x, x], &[]).unwrap();
            for _ in 0..n {
                let bound = b.bind(&name("w"), at);
                at = b.close_block(bound).unwrap();
            }
            at
        }
    };
    b.finish(tail).unwrap();
}

/// Returns a constant vector of ones.
pub(crate) fn one(b: &mut FunctionBuilder<'_>) -> ExprId {
    b.literal(Literal::splat(&[8], 1f32))
}
