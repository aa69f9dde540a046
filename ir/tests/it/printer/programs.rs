//! Functions, blocks, bindings and names.

use anfora_ir::{
    Annotations, DType, Function, FunctionBuilder, FunctionKind, Literal, PrintOptions, VarFlags, Visibility,
    print_function, write_module,
};
use expect_test::expect;

use super::{check, check_text, condition, f32x8, main_of, module};

#[test]
fn a_region_lists_its_outputs() {
    let m = main_of(|f, x| {
        f.begin_dataflow();
        let one = f.literal(Literal::splat(&[8], 1.0f32));
        let a = f.call_op("add", &[x, one], &[])?;
        let a = f.bind("a", a);
        let b = f.call_op("exp", &[a], &[])?;
        let b = f.bind("b", b);
        f.end_dataflow(&[b]);
        f.begin_dataflow();
        let c = f.call_op("exp", &[b], &[])?;
        f.bind("c", c);
        f.end_dataflow(&[]);
        let d = f.tuple(&[b]);
        let d = f.bind("d", d);
        f.proj(d, 0)
    });
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              dataflow {
                let %a = add(%x, dense<Tensor[(8,), float32]>[1]);
                let %b = exp(%a);
                output(%b);
              }
              dataflow {
                let %c = exp(%b);
                output();
              }
              let %d = (%b,);
              %d.0
            }
        "#]],
    );
}

#[test]
fn names_are_told_apart_and_numbers_are_free_ones() {
    let m = main_of(|f, x| {
        for name in ["x", "", "1", "x$1", "x", "a b", "a b", "", "\n\"\\\u{7}é"] {
            let v = f.call_op("exp", &[x], &[])?;
            f.bind(name, v);
        }
        Ok(x)
    });
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %x$2 = exp(%x);
              let %0 = exp(%x);
              let %1 = exp(%x);
              let %x$1 = exp(%x);
              let %x$3 = exp(%x);
              let %"a b" = exp(%x);
              let %"a b$1" = exp(%x);
              let %2 = exp(%x);
              let %"\n\"\\\u{7}é" = exp(%x);
              %x
            }
        "#]],
    );
}

#[test]
fn blocks_branches_and_functions_nest() {
    let m = main_of(|f, x| {
        let c = condition(f);
        f.open_block();
        let t = f.call_op("exp", &[x], &[])?;
        let t = f.bind("t", t);
        let then_block = f.close_block(t)?;
        f.open_block();
        let else_block = f.close_block(x)?;
        let choice = f.if_(c, then_block, else_block)?;
        let y = f.bind("y", choice);
        f.open_block();
        let inner = f.call_op("exp", &[y], &[])?;
        let inner = f.bind("inner", inner);
        let block = f.close_block(inner)?;
        let z = f.bind("z", block);
        let ty = f.body().type_of(x);
        let p = f.open_lambda(&[("p", ty)], None, &[]);
        let lambda = f.close_lambda(p[0])?;
        let called = f.call(lambda, &[z])?;
        let nested = f.call_op("exp", &[called], &[])?;
        let sum = f.call_op("add", &[nested, x], &[])?;
        let sum = f.bind("sum", sum);
        let empty = f.tuple(&[]);
        f.open_block();
        let q = f.tuple(&[sum, empty]);
        let q = f.bind("q", q);
        let pair = f.close_block(q)?;
        f.proj(pair, 1)
    });
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> () {
              let %y = if (true) {
                let %t = exp(%x);
                %t
              } else { %x };
              let %z = {
                let %inner = exp(%y);
                %inner
              };
              let %sum = add(exp((fn (%p: Tensor[(8,), float32]) { %p })(%z)), %x);
              ({
                let %q = (%sum, ());
                %q
              }).1
            }
        "#]],
    );
}

#[test]
fn a_shared_node_is_bound_in_the_innermost_block_around_its_uses() {
    let m = main_of(|f, x| {
        let c = condition(f);
        let shared = f.call_op("exp", &[x], &[])?;
        let above = f.call_op("exp", &[shared], &[])?;
        let both = f.call_op("add", &[above, above], &[])?;
        f.open_block();
        let t = f.bind("t", both);
        let then_block = f.close_block(t)?;
        f.open_block();
        let e = f.call_op("exp", &[shared], &[])?;
        let else_block = f.close_block(e)?;
        let choice = f.if_(c, then_block, else_block)?;
        f.bind("before", x);
        let y = f.bind("y", choice);
        let twice = f.call_op("add", &[y, x], &[])?;
        f.call_op("add", &[twice, twice], &[])
    });
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %before = %x;
              %0 = exp(%x);
              let %y = if (true) {
                %1 = exp(%0);
                let %t = add(%1, %1);
                %t
              } else { exp(%0) };
              %2 = add(%y, %x);
              add(%2, %2)
            }
        "#]],
    );
}

#[test]
fn what_tools_carry_along_stands_before_bindings_and_functions() {
    let mut m = main_of(|f, x| {
        let one = f.cx().int_attr(1);
        let note = f.cx().named_attrs(&[("note", one)]);
        let inner = f.call_op("exp", &[x], &[])?;
        f.body().set_meta(inner, Some(note));
        let outer = f.call_op("exp", &[inner], &[])?;
        let y = f.bind("y", outer);
        f.body().set_meta(y, Some(note));
        f.visibility(Visibility::Private);
        f.attr("Primitive", one);
        Ok(y)
    });
    let doc = m.cx.str_attr("a \"doc\"\nstring");
    let attrs = m.cx.named_attrs(&[("let", doc), ("strange key", doc)]);
    m.set_attrs(attrs);
    let key = m.find("main").unwrap();
    let meta = m.cx.named_attrs(&[("doc", doc)]);
    m.get_mut(key).unwrap().0.meta = meta;
    check(
        &m,
        expect![[r##"
            #![let="a \"doc\"\nstring", "strange key"="a \"doc\"\nstring"]

            #[doc="a \"doc\"\nstring"]
            def private @main(%x: Tensor[(8,), float32], Primitive=1) -> Tensor[(8,), float32] {
              #[note=1]
              %0 = exp(%x);
              #[note=1]
              let %y = exp(%0);
              %y
            }
        "##]],
    );
}

#[test]
fn what_inference_cannot_find_is_annotated() {
    let m = main_of(|f, x| {
        let op = f.cx().ops.resolve("onnx.Foo").unwrap();
        let (ty, none) = (f.body().type_of(x), f.cx().attrs.empty());
        let any = f.cx().types.any();
        let known = f.editor().call_opaque(op, &[x], none, ty);
        let known = f.bind("known", known);
        let unknown = f.editor().call_opaque(op, &[known], none, any);
        f.bind("unknown", unknown);
        let operand = f.editor().call_opaque(op, &[], none, ty);
        let sum = f.call_op("add", &[operand, x], &[])?;
        f.bind("sum", sum);
        let open = f.cx().types.unranked(DType::Float32);
        let general = f.declare_var("general", open);
        let value = f.call_op("exp", &[x], &[])?;
        f.bind_var(general, value, None);
        let shared = f.editor().call_opaque(op, &[], none, ty);
        let pair = f.tuple(&[shared, shared]);
        f.bind("pair", pair);
        Ok(f.editor().call_opaque(op, &[x], none, ty))
    });
    check_text(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %known: Tensor[(8,), float32] = onnx.Foo(%x);
              let %unknown = onnx.Foo(%known);
              let %sum = add({
                let %0: Tensor[(8,), float32] = onnx.Foo();
                %0
              }, %x);
              let %general = exp(%x);
              let %1: Tensor[(8,), float32] = onnx.Foo();
              let %pair = (%1, %1);
              let %2: Tensor[(8,), float32] = onnx.Foo(%x);
              %2
            }
        "#]],
    );
}

#[test]
fn a_node_that_a_region_and_what_follows_use_stands_before_it_or_is_an_output() {
    let m = main_of(|f, x| {
        let early = f.call_op("exp", &[x], &[])?;
        f.begin_dataflow();
        let a = f.call_op("exp", &[x], &[])?;
        let a = f.bind("a", a);
        let late = f.call_op("exp", &[a], &[])?;
        let inside = f.call_op("exp", &[x], &[])?;
        let b = f.tuple(&[early, late, inside, inside]);
        f.bind("b", b);
        f.end_dataflow(&[a]);
        Ok(f.tuple(&[early, late]))
    });
    check_text(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> (Tensor[(8,), float32], Tensor[(8,), float32]) {
              %0 = exp(%x);
              dataflow {
                let %a = exp(%x);
                let %1 = exp(%a);
                %2 = exp(%x);
                let %b = (%0, %1, %2, %2);
                output(%a, %1);
              }
              (%0, %1)
            }
        "#]],
    );
}

#[test]
fn declarations_globals_and_none() {
    let mut m = module();
    let ty = f32x8(&mut m);
    let mut declared = Function::new(&m.cx.types, m.cx.attrs.empty());
    declared.kind = FunctionKind::Declaration;
    let name = m.cx.names.intern("x");
    let p = declared.body.push_var(Some(name), VarFlags::PLAIN, ty, None);
    declared.body.set_params(vec![p]);
    declared.ret = Some(ty);
    let one = m.cx.int_attr(1);
    declared.attrs = m.cx.named_attrs(&[("Pure", one)]);
    m.add_named("an external/function", declared).ok().unwrap();
    let mut f = FunctionBuilder::new(&mut m, "main");
    let x = f.param("x", ty);
    let g = f.global("an external/function");
    let y = f.call(g, &[x]).unwrap();
    let none = f.editor().none();
    let note = f.call_op("nn.note", &[y, none], &[]).unwrap();
    let pair = f.tuple(&[note, g]);
    f.finish(pair).unwrap();
    check(
        &m,
        expect![[r#"
            declare @"an external/function"(%x: Tensor[(8,), float32], Pure=1) -> Tensor[(8,), float32];

            def @main(%x: Tensor[(8,), float32]) -> (Tensor[(8,), float32], fn(Tensor[(8,), float32]) -> Tensor[(8,), float32]) {
              (nn.note(@"an external/function"(%x), none), @"an external/function")
            }
        "#]],
    );
}

#[test]
fn a_function_that_calls_itself_states_its_result() {
    let m = main_of(|f, x| {
        let ty = f.body().type_of(x);
        let arrow = f.cx().types.function(&[ty], ty, &[]);
        let loop_ = f.declare_var("loop", arrow);
        let p = f.open_lambda(&[("p", ty)], None, &[]);
        let again = f.call(loop_.expr(), &[p[0]])?;
        let lambda = f.close_lambda(again)?;
        f.bind_var(loop_, lambda, None);
        let p = f.open_lambda(&[("p", ty)], None, &[]);
        let once = f.close_lambda(p[0])?;
        f.bind("once", once);
        f.call(loop_.expr(), &[x])
    });
    check_text(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %loop = fn (%p: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %loop(%p) };
              let %once = fn (%p$1: Tensor[(8,), float32]) { %p$1 };
              %loop(%x)
            }
        "#]],
    );
    let options = PrintOptions { annotations: Annotations::All, ..PrintOptions::default() };
    let mut text = String::new();
    print_function(&m, m.find("main").unwrap(), &options, &mut text).unwrap();
    expect![[r#"
        def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
          let %loop: fn(Tensor[(8,), float32]) -> Tensor[(8,), float32] = fn (%p: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %loop(%p) };
          let %once: fn(Tensor[(8,), float32]) -> Tensor[(8,), float32] = fn (%p$1: Tensor[(8,), float32]) -> Tensor[(8,), float32] { %p$1 };
          %loop(%x)
        }
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_sink_that_is_full_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let m = main_of(|_, x| Ok(x));
    let error = write_module(&m, &PrintOptions::default(), &mut Full).unwrap_err();
    assert_eq!(error.to_string(), "full");
}
