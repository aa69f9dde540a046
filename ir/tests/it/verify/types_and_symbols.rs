//! Rules 9 to 11: calls, types and symbolic dimensions.

use anfora_ir::{
    Attr, Body, Context, DType, Expr, ExprId, Form, FunctionBuilder, LetFlags, OperandList, TypeId, VarFlags,
    verify_module,
};

use super::Rule;
use super::programs::{BRANCH, CHAIN, LAMBDA, assert_fine, edit_main, edited, errors, find, link, parse, parts, var};
use crate::tiny::{module, vector};

pub(super) fn rule_9_operands_and_attributes_agree_with_the_row(rule: &mut Rule) {
    let call = |f: fn(&mut Body, &mut Context, ExprId)| {
        edited(CHAIN, |b, cx| {
            let (_, value, ..) = parts(b, link(b, cx, "a"));
            f(b, cx, value);
        })
    };
    let m = call(|b, cx, value| {
        let Expr::CallOp { operands, attrs, .. } = b.expr(value) else { unreachable!() };
        b.set_expr(value, Expr::CallOp { op: cx.ops.find("add").unwrap(), operands, attrs });
    });
    rule.broken_by(&m, "`add` takes 2 operands, not 1", "@main %a");
    let m = call(|b, cx, value| {
        let Expr::CallOp { op, operands, .. } = b.expr(value) else { unreachable!() };
        let axis = cx.int_attr(1);
        let attrs = cx.named_attrs(&[("axes", axis)]);
        b.set_expr(value, Expr::CallOp { op, operands, attrs });
    });
    rule.broken_by(&m, "`negative` has no attribute `axes`", "@main %a");
    let m = call(|b, cx, value| {
        let Expr::CallOp { operands, .. } = b.expr(value) else { unreachable!() };
        let axis = cx.int_attr(0);
        let attrs = cx.named_attrs(&[("axis", axis)]);
        b.set_expr(value, Expr::CallOp { op: cx.ops.find("flip").unwrap(), operands, attrs });
    });
    rule.broken_by(&m, "not in their one form", "@main %a");
}

/// Checks that a program is valid. Returns the result type that `@main` states, and the errors if
/// it states another.
fn misstated(text: &str) -> (String, Vec<String>) {
    let mut m = parse(text);
    assert_eq!(verify_module(&m).map(|_| ()), Ok(()), "{text}");
    let main = m.find("main").unwrap();
    let (f, cx) = m.get_mut(main).unwrap();
    let other = cx.types.static_tensor(DType::Int8, &[3]);
    let stated = f.ret.replace(other).expect("`@main` states its result type");
    (cx.type_text(stated), errors(&m))
}

pub(super) fn rule_10_stored_types_are_what_inference_gives(rule: &mut Rule) {
    // The type of a call, through the last binding, so that no other error follows.
    let other = |cx: &mut Context| cx.types.static_tensor(DType::Int8, &[3]);
    let m = edited(CHAIN, |b, cx| {
        let (v, value, ..) = parts(b, link(b, cx, "c"));
        let (any, wrong) = (cx.types.any(), other(cx));
        b.set_type(value, wrong);
        // The variable accepts any type; the function's result must still match.
        b.set_type(v.expr(), any);
    });
    let all = errors(&m);
    assert!(
        all[0].contains("the stored type is Tensor[(3,), int8], but its parts give Tensor[(8,), float32]"),
        "{all:?}"
    );
    // The type of a variable: less specific is allowed, different is not.
    let retyped = |wrong: fn(&mut Context) -> TypeId| {
        edited(CHAIN, |b, cx| {
            let ty = wrong(cx);
            let s = link(b, cx, "c");
            let (v, _, _, flags) = parts(b, s);
            // A binding that nothing uses.
            let unused = b.push_var(None, VarFlags::PLAIN, ty, None);
            let link = b.push(Expr::Let { var: unused, value: v.expr(), body: v.expr(), flags }, ty, None);
            b.set_let_body(s, link);
        })
    };
    assert_fine(&retyped(|cx| cx.types.any()), Form::Anf);
    rule.broken_by(&retyped(other), "is of type Tensor[(3,), int8], but its value is Tensor[(8,), float32]", "@main");
    // The type of a condition, a constant and a function's result.
    let m = edited(BRANCH, |b, cx| {
        let id = find(b, |e| matches!(e, Expr::If { .. }));
        let Expr::If { then_block, else_block, .. } = b.expr(id) else { unreachable!() };
        let x = var(b, cx, "x");
        b.set_expr(id, Expr::If { cond: x, then_block, else_block });
    });
    rule.broken_by(&m, "a condition is a rank-0 bool tensor", "@main %r");
    let constant = "def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = less(1f, %x); %x }";
    let m = edited(constant, |b, cx| {
        let ty = other(cx);
        let id = find(b, |e| matches!(e, Expr::Literal(_)));
        b.set_type(id, ty);
    });
    rule.broken_by(&m, "its parts give Tensor[(), float32]", "@main %a");
    let (_, all) = misstated(CHAIN);
    assert!(all[0].contains("the function returns Tensor[(8,), float32], but Tensor[(3,), int8] is stated"), "{all:?}");
    // The tail of a body may be its root, follow bindings, or have bindings in it.
    let tails = [
        ("{ %x }", "int8"),
        ("{ let %a = (%x, %x); let %b = (%a,); %a }", "(int8, int8)"),
        ("{ let %f = fn (%y: bool) { let %a = (%y,); %a }; %x }", "int8"),
        ("{ let %b = { let %a = (%x, %x); %a }; %x }", "int8"),
        ("{ if (less(%x, %x)) { let %a = (%x, %x); %x } else { let %a = (%x,); %x } }", "int8"),
        ("{ fn (%y: bool) { let %a = (%y,); %y } }", "fn(bool) -> bool"),
        ("{ let %f = (%x,); fn (%y: bool) { let %a = (%y,); %y } }", "fn(bool) -> bool"),
        ("{ let %t = (%x,); { let %a = (%x, %x); %a } }", "(int8, int8)"),
        ("{ let %t = (%x,); ({ let %a = (%x, %x); %a }, %x) }", "((int8, int8), int8)"),
    ];
    for (block, ret) in tails {
        let (found, all) = misstated(&format!("def @main(%x: int8) -> {ret} {block}"));
        let wanted = format!("the function returns {found}, but Tensor[(3,), int8] is stated");
        assert!(all[0].contains(&wanted), "{block}: {all:?}");
    }
    // The type of a `fn`'s result.
    let m = edited(LAMBDA, |b, cx| {
        let id = find(b, |e| matches!(e, Expr::Lambda { .. }));
        let Expr::Lambda { lambda, .. } = b.expr(id) else { unreachable!() };
        let mut data = b.lambda(lambda);
        data.ret = Some(other(cx));
        b.set_lambda(lambda, data);
    });
    rule.broken_by(&m, "but Tensor[(3,), int8] is stated", "@main %f");
    let m = edited(LAMBDA, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "r"));
        let f = b.operands_of(value)[0];
        let operands = b.push_operands(&[f]);
        b.set_expr(value, Expr::Call { operands, attrs: cx.attrs.empty() });
    });
    rule.broken_by(&m, "the function takes 1 arguments, not 0", "@main %r");
}

/// A program whose parameters, casts and functions bind symbols.
const BINDS_SYMBOLS: &str = "def @main(%x: Tensor[(n + m, n), float32], %y: Tensor[(m,), float32], %z: Tensor[?, float32], %p: bool) -> Tensor[(m,), float32] {
        let %a = match_cast(%z, to=Tensor[(k, n), float32]);
        let %b = negative(%a);
        let %f = fn (%q: Tensor[(j, k), float32]) { let %w = negative(%q); %w };
        let %c = if (%p) { let %d = match_cast(%z, to=Tensor[(l,), float32]); let %e = negative(%d); %y } else { %y };
        %c
    }";

#[test]
fn symbols_are_bound_in_every_way() {
    assert_fine(&parse(BINDS_SYMBOLS), Form::Anf);
    // A symbol that a branch, a `fn` or a block as a value binds may be in the type of its result.
    let out = "def @main(%x: Tensor[?, float32], %p: bool) {
        let %r = if (%p) { let %y = match_cast(%x, to=Tensor[(k,), float32]); %y }
            else { let %z = match_cast(%x, to=Tensor[(j,), float32]); %z };
        let %f = fn (%u: Tensor[?, float32]) { let %v = match_cast(%u, to=Tensor[(l,), float32]); %v };
        let %s = %f(%r);
        let %g = fn (%h: fn(Tensor[(n,), float32]) -> Tensor[(n,), float32], %u: Tensor[(n,), float32]) { let %z = %h(%u); %z };
        %s
    }";
    assert_fine(&parse(out), Form::Anf);
    let block = "def @main(%x: Tensor[?, float32]) {
        let %r = { let %y = match_cast(%x, to=Tensor[(k,), float32]); %y };
        let %s = add(%r, %r);
        %s
    }";
    assert_fine(&parse(block), Form::Graph);
}

pub(super) fn rule_11_symbols_are_named_where_they_are_bound(rule: &mut Rule) {
    // A symbol that nothing binds.
    let with_type = |make: fn(&mut Context) -> TypeId| {
        let mut m = module();
        let v = vector(&mut m);
        let ty = make(&mut m.cx);
        let mut b = FunctionBuilder::new(&mut m, "main");
        let x = b.param("x", v);
        let op = b.cx().ops.resolve("onnx.Foo").unwrap();
        let attrs = b.cx().attrs.empty();
        let call = b.editor().call_opaque(op, &[x], attrs, ty);
        b.bind("a", call);
        b.finish(x).unwrap();
        m
    };
    let all = errors(&with_type(|cx| {
        let name = cx.names.intern("n");
        let s = cx.types.dims.new_symbol(name);
        let d = cx.types.dims.symbol(s);
        cx.types.tensor(DType::Float32, &[d])
    }));
    assert!(all[0].contains("`n` is named where it is not bound"), "{all:?}");
    // A symbol of a branch, used after the branch.
    let m = edited(BINDS_SYMBOLS, |b, cx| {
        let d = var(b, cx, "d");
        let ty = b.ty(d);
        let c = link(b, cx, "c");
        let (_, _, rest, _) = parts(b, c);
        let op = cx.ops.opaque("onnx.Foo", anfora_ir::OpPurity::Pure).unwrap();
        let attrs = cx.attrs.empty();
        let call = b.push(Expr::CallOp { op, operands: OperandList::EMPTY, attrs }, ty, None);
        let any = cx.types.any();
        let v = b.push_var(None, VarFlags::PLAIN, any, None);
        let link = b.push(Expr::Let { var: v, value: call, body: rest, flags: LetFlags::PLAIN }, any, None);
        b.set_let_body(c, link);
    });
    rule.broken_by(&m, "`l` is named where it is not bound", "@main");
    // A symbol in an attribute.
    let mut m = parse("def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] { let %a = negative(%x); %a }");
    edit_main(&mut m, |b, cx| {
        let name = cx.names.intern("q");
        let s = cx.types.dims.new_symbol(name);
        let d = cx.types.dims.symbol(s);
        let shape = cx.attr(Attr::Shape([d].into()));
        let attrs = cx.named_attrs(&[("shape", shape)]);
        let (_, value, ..) = parts(b, b.root());
        let Expr::CallOp { operands, .. } = b.expr(value) else { unreachable!() };
        let op = cx.ops.opaque("onnx.Foo", anfora_ir::OpPurity::Pure).unwrap();
        b.set_expr(value, Expr::CallOp { op, operands, attrs });
    });
    rule.broken_by(&m, "`q` is named where it is not bound", "@main %a");
    // A symbol in an attribute of a function whose result type is not stated.
    let mut m = parse("def @main(%x: Tensor[(8,), float32]) { let %a = negative(%x); %a }");
    let main = m.find("main").unwrap();
    let (f, cx) = m.get_mut(main).unwrap();
    let name = cx.names.intern("q");
    let s = cx.types.dims.new_symbol(name);
    let d = cx.types.dims.symbol(s);
    let shape = cx.attr(Attr::Shape([d].into()));
    f.attrs = cx.named_attrs(&[("shape", shape)]);
    rule.broken_by(&m, "`q` is named where it is not bound", "@main");
    // One symbol in two functions.
    let mut m = module();
    let mut b = FunctionBuilder::new(&mut m, "f");
    let n = b.symbol("n");
    let t = b.cx().types.tensor(DType::Float32, &[n]);
    let x = b.param("x", t);
    b.finish(x).unwrap();
    assert_fine(&m, Form::Anf);
    let mut b = FunctionBuilder::new(&mut m, "g");
    let x = b.param("x", t);
    b.finish(x).unwrap();
    rule.broken_by(&m, "`n` is bound in another function too", "@g");
}
