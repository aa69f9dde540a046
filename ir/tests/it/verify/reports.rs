//! Reports of the verifier: their contents, places and number; functions in attributes; deep
//! programs.

use anfora_ir::{Attr, Expr, Form, Function, FunctionBuilder, MAX_VERIFY_ERRORS, VarFlags, verify_module};
use anfora_testing::{depth, on_small_stack};

use super::assert_breaks;
use super::programs::{CHAIN, assert_fine, edit_main, edited, find, link, parse, parts, var};
use crate::tiny::{self, SHAPES, Shape, deep, deep_type_and_attribute, module, vector};

#[test]
fn errors_have_places_and_a_limit() {
    let text = CHAIN;
    let m = edited(text, |b, cx| {
        let (_, value, ..) = parts(b, link(b, cx, "b"));
        let c = var(b, cx, "c");
        let list = b.expr(value).operand_list().unwrap();
        b.set_operand(list, 0, c);
    });
    let all = verify_module(&m).unwrap_err();
    assert_eq!((all[0].function.as_deref(), all[0].binding.as_deref()), (Some("main"), Some("b")));
    let span = all[0].span.clone().expect("the text is kept");
    assert!(text.get(span).is_some());
}

#[test]
fn errors_past_the_limit_are_counted() {
    for (count, last) in [
        (MAX_VERIFY_ERRORS, None),
        (MAX_VERIFY_ERRORS + 1, Some("1 more error is not shown")),
        (1000, Some("900 more errors are not shown")),
    ] {
        let mut m = deep(Shape::Chain, count, "", "add");
        edit_main(&mut m, |b, cx| {
            let stray = b.push_var(None, VarFlags::PLAIN, cx.types.any(), None);
            let calls: Vec<_> = b.exprs().filter_map(|(_, e)| e.operand_list()).filter(|l| l.len() == 2).collect();
            let ty = b.ty(b.params()[0].expr());
            b.set_type(stray.expr(), ty);
            for list in calls {
                b.set_operand(list, 1, stray.expr());
            }
        });
        let all = verify_module(&m).unwrap_err();
        assert_eq!(all.get(MAX_VERIFY_ERRORS).map(|d| d.message.as_str()), last);
        assert!(all[..MAX_VERIFY_ERRORS].iter().all(|d| d.message.contains("nothing has bound it")));
        assert!(all.len() <= MAX_VERIFY_ERRORS + 1);
    }
}

#[test]
fn functions_in_attributes_are_verified() {
    let with = |sound: bool| {
        let mut m = parse(CHAIN);
        let mut inner: Function = m.get(m.find("main").unwrap()).unwrap().clone();
        if !sound {
            let c = var(&inner.body, &m.cx, "c");
            let (_, value, ..) = parts(&inner.body, link(&inner.body, &m.cx, "b"));
            let list = inner.body.expr(value).operand_list().unwrap();
            inner.body.set_operand(list, 0, c);
        }
        let inner = m.cx.function_attrs.push(std::sync::Arc::new(inner));
        let inner = m.cx.attr(Attr::Function(inner));
        let inner = m.cx.attr(Attr::List([inner].into()));
        edit_main(&mut m, |b, cx| {
            let attrs = cx.named_attrs(&[("body", inner)]);
            let (_, value, ..) = parts(b, b.root());
            let Expr::CallOp { operands, .. } = b.expr(value) else { unreachable!() };
            let op = cx.ops.opaque("onnx.Loop", anfora_ir::OpPurity::Pure).unwrap();
            b.set_expr(value, Expr::CallOp { op, operands, attrs });
        });
        m
    };
    assert_fine(&with(true), Form::Anf);
    assert_breaks(&with(false), "`%c` is used where nothing has bound it", "@main %b");
}

#[test]
fn deep_programs_need_no_stack() {
    on_small_stack(|| {
        for shape in SHAPES {
            let m = deep(shape, depth(5_000), "a", "add");
            let form = if matches!(shape, Shape::NestedCall | Shape::LetInValue) { Form::Graph } else { Form::Anf };
            assert_fine(&m, form);
        }
        // A diamond of shared nodes, each used again in another block.
        let mut m = module();
        let (v, c) = (vector(&mut m), tiny::flag(&mut m));
        let mut b = FunctionBuilder::new(&mut m, "main");
        let (x, p) = (b.param("x", v), b.param("p", c));
        let mut nodes = vec![x];
        let n = depth(5_000);
        for i in 0..n {
            let node = b.call_op("add", &[nodes[i], nodes[i]], &[]).unwrap();
            nodes.push(node);
        }
        let all = b.tuple(&nodes);
        b.bind("all", all);
        let choice = b.if_(p, nodes[n], nodes[n / 2]).unwrap();
        b.finish(choice).unwrap();
        assert_fine(&m, Form::Graph);
        let mut m = deep_type_and_attribute(8);
        assert_fine(&m, Form::Anf);
        // The message about such a type is short.
        let main = m.find("main").unwrap();
        let (f, cx) = m.get_mut(main).unwrap();
        f.ret = Some(cx.types.unit());
        let errors = verify_module(&m).unwrap_err();
        assert!(errors.iter().all(|e| e.message.len() < 100_000));
        // An error at the far end of each shape.
        for shape in SHAPES {
            let mut m = deep(shape, depth(5_000), "a", "add");
            edit_main(&mut m, |b, _| {
                let ty = b.ty(b.params()[0].expr());
                let stray = b.push_var(None, VarFlags::PLAIN, ty, None);
                let call = find(b, |e| matches!(e, Expr::CallOp { .. }));
                let first = b.expr(call).operand_list().unwrap();
                b.set_operand(first, 0, stray.expr());
            });
            let place = match shape {
                Shape::Chain => "@main %ab",
                Shape::NestedIf => "@main %ai",
                Shape::NestedFn => "@main %af",
                Shape::NestedCall => "@main",
                Shape::LetInValue => "@main %aw",
            };
            assert_breaks(&m, "is used where nothing has bound it", place);
        }
    });
}
