//! What the printer writes.

use std::sync::Arc;

use anfora_ir::{
    Annotations, Arity, Attr, AttrDef, BuildError, DType, Diagnostic, DimOp, ExprId, Function, FunctionBuilder,
    FunctionKind, FusionPattern, Literal, Module, OpDef, OpPurity, OpRegistry, PrintLiterals, PrintOptions, Source,
    TypeCall, TypeError, TypeId, VarFlags, Visibility, first_difference, parse_module, print_function, print_module,
    write_module,
};
use expect_test::{Expect, expect};
use half::{bf16, f16};

fn like_first(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    call.operand(0).ok_or_else(|| TypeError::new("an operand is missing"))
}

fn row(name: &'static str, arity: Arity, attrs: &'static [AttrDef]) -> OpDef {
    OpDef {
        name: name.into(),
        doc: "".into(),
        arity,
        attrs: attrs.into(),
        infer: like_first,
        purity: OpPurity::Pure,
        fusion: FusionPattern::ElemWise,
        kernel: None,
        commutative: false,
        may_fail: false,
        forwards: &[],
    }
}

fn registry() -> Arc<OpRegistry> {
    use anfora_ir::{AttrDefault, AttrKind};
    const NOTE: &[AttrDef] = &[
        AttrDef { name: "a", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
        AttrDef { name: "b", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
        AttrDef { name: "c", kind: AttrKind::Any, default: AttrDefault::Absent, doc: "" },
    ];
    let mut registry = OpRegistry::new();
    for op in [
        row("add", Arity::exactly(2), &[]),
        row("exp", Arity::exactly(1), &[]),
        row("nn.note", Arity::at_least(1), NOTE),
        row("if", Arity::at_least(1), &[]),
        row("strange op", Arity::at_least(1), &[]),
    ] {
        registry.register(op).unwrap();
    }
    registry.declare_opaque("onnx");
    Arc::new(registry)
}

fn module() -> Module {
    Module::new(registry())
}

/// Prints the module, and compares; then parses the text, which has to give the same module and to print the same.
fn check(module: &Module, expect: Expect) {
    let text = module.to_text();
    expect.assert_eq(&text);
    let parsed = parse(&text);
    if let Some(difference) = first_difference(module, &parsed) {
        panic!("parsing what was printed gives another module: {difference}");
    }
    assert_eq!(parsed.to_text(), text);
}

fn parse(text: &str) -> Module {
    parse_module(Source::new("printed.anf", text), registry()).unwrap_or_else(|errors| {
        panic!("{}\n{}", text.chars().take(5000).collect::<String>(), render_diagnostics(&errors))
    })
}

fn render_diagnostics(errors: &[Diagnostic]) -> String {
    errors.iter().map(|e| format!("{e} at {:?}\n", e.span)).collect()
}

/// What is written may be another form of the same program: it has to parse, and to print the same from then on.
fn check_text(module: &Module, expect: Expect) {
    let text = module.to_text();
    expect.assert_eq(&text);
    assert_eq!(parse(&text).to_text(), text);
}

fn f32x8(module: &mut Module) -> TypeId {
    module.cx.types.static_tensor(DType::Float32, &[8])
}

/// `def @main(%x: Tensor[(8,), float32])` with the block that `build` gives it.
fn main_of(build: impl FnOnce(&mut FunctionBuilder<'_>, ExprId) -> Result<ExprId, BuildError>) -> Module {
    let mut m = module();
    let ty = f32x8(&mut m);
    let mut f = FunctionBuilder::new(&mut m, "main");
    let x = f.param("x", ty);
    let tail = build(&mut f, x).unwrap();
    f.finish(tail).unwrap();
    m
}

fn condition(f: &mut FunctionBuilder<'_>) -> ExprId {
    f.literal(Literal::scalar(true))
}

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
fn symbols_and_computed_dimensions() {
    let mut m = module();
    let mut f = FunctionBuilder::new(&mut m, "main");
    let (n, n2, min, batch) = (f.symbol("n"), f.symbol("n"), f.symbol("min"), f.symbol("batch size"));
    let d = &mut f.cx().types.dims;
    let (two, minus_three, seven) = (d.constant(2), d.constant(-3), d.constant(7));
    let lowest = d.constant(i64::MIN);
    let product = d.mul(n, n2);
    let doubled = d.mul(product, two);
    let negative = d.mul(n2, minus_three);
    let sum = d.add(doubled, negative);
    let sum = d.add(sum, seven);
    let zero = d.constant(0);
    let all_negative = d.sub(zero, min);
    let huge = d.mul(lowest, n);
    let halved = d.op(DimOp::FloorDiv, sum, two);
    let largest = d.op(DimOp::Max, n2, halved);
    let scaled = d.mul(largest, n);
    let unknown = d.unknown();
    let types = &mut f.cx().types;
    let alone = types.tensor(DType::Float32, &[n, n2, min, batch]);
    let computed = types.tensor(DType::Int64, &[sum, all_negative, huge, scaled, unknown]);
    let g = types.function(&[alone], computed, &[]);
    let (k, j) = {
        let name = f.cx().names.intern("k");
        let dims = &mut f.cx().types.dims;
        (dims.new_symbol(name), dims.new_symbol(name))
    };
    let types = &mut f.cx().types;
    let (dk, dj) = (types.dims.symbol(k), types.dims.symbol(j));
    let inner = types.tensor(DType::Bool, &[dj, dk, n]);
    let inner = types.function(&[inner], inner, &[j]);
    let outer = types.tensor(DType::Bool, &[dk]);
    let h = types.function(&[outer, inner], outer, &[k]);
    let x = f.param("x", alone);
    f.param("y", computed);
    f.param("g", g);
    f.param("h", h);
    f.finish(x).unwrap();
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(n, n_1, min_, batch_size), float32], %y: Tensor[(2 * n * n_1 + 7 - 3 * n_1, 0 - min_, 0 - 9223372036854775807 * n - n, n * max(n_1, floordiv(2 * n * n_1 + 7 - 3 * n_1, 2)), ?), int64], %g: fn(Tensor[(n, n_1, min_, batch_size), float32]) -> Tensor[(2 * n * n_1 + 7 - 3 * n_1, 0 - min_, 0 - 9223372036854775807 * n - n, n * max(n_1, floordiv(2 * n * n_1 + 7 - 3 * n_1, 2)), ?), int64], %h: fn(Tensor[(n0,), bool], fn(Tensor[(n1, n0, n), bool]) -> Tensor[(n1, n0, n), bool]) -> Tensor[(n0,), bool]) -> Tensor[(n, n_1, min_, batch_size), float32] {
              %x
            }
        "#]],
    );
}

fn constants(literals: Vec<Literal>) -> Module {
    main_of(|f, x| {
        for l in literals {
            let l = f.literal(l);
            f.bind("", l);
        }
        Ok(x)
    })
}

#[test]
fn every_bit_of_a_constant_is_written() {
    let bytes =
        |d: DType, shape: &[usize], b: &[u8]| Literal::from_bytes(d, shape, bytes::Bytes::copy_from_slice(b)).unwrap();
    let m = constants(vec![
        Literal::scalar(true),
        Literal::scalar(-7i32),
        Literal::scalar(i64::MIN),
        Literal::scalar(u64::MAX),
        Literal::scalar(i8::MIN),
        Literal::scalar(1.5f32),
        Literal::scalar(-0.0f32),
        Literal::scalar(0.1f32),
        Literal::scalar(1e20f32),
        Literal::scalar(f32::MAX),
        Literal::scalar(f32::from_bits(1)),
        Literal::scalar(f32::INFINITY),
        Literal::scalar(f32::NEG_INFINITY),
        Literal::scalar(f32::NAN),
        Literal::scalar(f32::from_bits(0xffc0_0001)),
        Literal::scalar(f64::MIN_POSITIVE),
        Literal::scalar(1e15f64),
        Literal::scalar(f16::from_f32(0.1)),
        Literal::scalar(f16::MAX),
        Literal::scalar(f16::from_bits(1)),
        Literal::scalar(bf16::from_f32(0.1)),
        Literal::scalar(bf16::MAX),
        Literal::from_elements(&[2, 2], &[1.0f32, -0.0, f32::NEG_INFINITY, f32::from_bits(0x7f80_0001)]).unwrap(),
        Literal::from_elements(&[3], &[1u8, 2, 3]).unwrap(),
        Literal::from_elements(&[2], &[true, false]).unwrap(),
        Literal::splat(&[1_000_000, 1_000_000], f16::ONE),
        Literal::from_elements(&[0, 3], &[0i16; 0]).unwrap(),
        Literal::from_elements(&[20], &(0..20).collect::<Vec<i32>>()).unwrap(),
        Literal::from_elements(&[20], &(0..20).map(|i| 1.0 / i as f32).collect::<Vec<f32>>()).unwrap(),
        bytes(DType::Int4, &[3], &[0x21, 0x03]),
        Literal::splat_bytes(DType::Int4, &[2], &[5]),
        Literal::splat_bytes(DType::UInt4, &[9], &[5]),
        bytes(DType::Complex64, &[], &[0, 1, 2, 3, 4, 5, 6, 7]),
        Literal::splat_bytes(DType::Complex128, &[1 << 40], &[1; 16]),
        bytes(DType::Float8E4M3FN, &[2], &[1, 2]),
        Literal::from_strings(&[2], vec!["a\"".into(), "".into()]).unwrap(),
        Literal::from_strings(&[], vec!["s".into()]).unwrap(),
    ]);
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %0 = true;
              let %1 = -7;
              let %2 = -9223372036854775808i64;
              let %3 = 18446744073709551615u64;
              let %4 = -128i8;
              let %5 = 1.5f;
              let %6 = -0.0f;
              let %7 = 0.1f;
              let %8 = 1e20f;
              let %9 = 3.4028235e38f;
              let %10 = 1e-45f;
              let %11 = inff;
              let %12 = -inff;
              let %13 = nanf;
              let %14 = dense<Tensor[(), float32]>[nan(0xffc00001)];
              let %15 = 2.2250738585072014e-308f64;
              let %16 = 1000000000000000f64;
              let %17 = 0.1f16;
              let %18 = 65500f16;
              let %19 = 6e-8f16;
              let %20 = 0.1bf16;
              let %21 = 3.39e38bf16;
              let %22 = dense<Tensor[(2, 2), float32]>[1, -0.0, -inf, nan(0x7f800001)];
              let %23 = dense<Tensor[(3,), uint8]>[1, 2, 3];
              let %24 = dense<Tensor[(2,), bool]>[true, false];
              let %25 = dense<Tensor[(1000000, 1000000), float16]>[1];
              let %26 = dense<Tensor[(0, 3), int16]>[];
              let %27 = dense<Tensor[(20,), int32]>[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
              let %28 = dense<Tensor[(20,), float32]>"0x0000807F0000803F0000003FABAAAA3E0000803ECDCC4C3EABAA2A3E2549123E0000003E398EE33DCDCCCC3D8C2EBA3DABAAAA3DD9899D3D2549923D8988883D0000803DF1F0703D398E633D3694573D";
              let %29 = dense<Tensor[(3,), int4]>"0x2103";
              let %30 = dense<Tensor[(2,), int4]>"0x55";
              let %31 = dense<Tensor[(9,), uint4]>"0x05";
              let %32 = dense<Tensor[(), complex64]>"0x0001020304050607";
              let %33 = dense<Tensor[(1099511627776,), complex128]>"0x01010101010101010101010101010101";
              let %34 = dense<Tensor[(2,), float8e4m3fn]>"0x0102";
              let %35 = dense<Tensor[(2,), string]>["a\"", ""];
              let %36 = dense<Tensor[(), string]>["s"];
              %x
            }
        "#]],
    );
}

#[test]
fn every_small_float_reads_back() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).collect();
    let brains: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).collect();
    for chunk in 0..1024 {
        let range = chunk * 64..chunk * 64 + 64;
        // Bytes are shorter where there are many, so few at a time.
        let literals = halves[range.clone()]
            .chunks(16)
            .map(|c| Literal::from_elements(&[16], c).unwrap())
            .chain(brains[range].chunks(16).map(|c| Literal::from_elements(&[16], c).unwrap()))
            .collect();
        let m = constants(literals);
        let parsed = parse(&m.to_text());
        assert!(first_difference(&m, &parsed).is_none(), "{m}");
    }
}

#[test]
fn long_constants_can_be_left_out() {
    let m = constants(vec![
        Literal::from_elements(&[17], &(0..17).collect::<Vec<i32>>()).unwrap(),
        Literal::splat(&[17], 1i32),
        Literal::from_elements(&[2], &[1, 2]).unwrap(),
    ]);
    let options = PrintOptions { literals: PrintLiterals::Elided { more_than: 16 }, ..PrintOptions::default() };
    let mut text = String::new();
    print_module(&m, &options, &mut text).unwrap();
    expect![[r#"
        def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
          let %0 = dense<Tensor[(17,), int32]>[elided 17];
          let %1 = dense<Tensor[(17,), int32]>[1];
          let %2 = dense<Tensor[(2,), int32]>[1, 2];
          %x
        }
    "#]]
    .assert_eq(&text);
    assert!(parse_module(Source::new("x", text), registry()).is_err());
}

/// A closed function `fn (%x: …) { body }` as an attribute.
fn function_attr(m: &mut Module, name: &str, attrs: &[(&str, anfora_ir::AttrId)]) -> anfora_ir::AttrId {
    let ty = f32x8(m);
    let mut function = Function::new(&m.cx.types, m.cx.attrs.empty());
    let name = m.cx.names.intern(name);
    let x = function.body.push_var(Some(name), VarFlags::PLAIN, ty, None);
    function.body.set_params(vec![x]);
    let op = m.cx.ops.resolve("nn.note").unwrap();
    let attrs = m.cx.named_attrs(attrs);
    let call = anfora_ir::Editor::new(&mut m.cx, &mut function.body).call_op(op, &[x.expr()], attrs).unwrap();
    function.body.set_root(call);
    let id = m.cx.function_attrs.push(Arc::new(function));
    m.cx.attr(Attr::Function(id))
}

#[test]
fn attributes_of_every_kind() {
    let mut m = module();
    let ty = f32x8(&mut m);
    let one = m.cx.int_attr(1);
    let f = function_attr(&mut m, "x", &[("a", one)]);
    let nested = function_attr(&mut m, "x", &[("a", f)]);
    let scalar = m.cx.types.scalar(DType::Float32);
    let unit = m.cx.types.unit();
    let pair = m.cx.types.tuple(&[ty, unit]);
    let arrow = m.cx.types.function(&[ty], unit, &[]);
    let mut attrs = vec![m.cx.attr(Attr::None), m.cx.attr(Attr::Bool(true)), m.cx.int_attr(i64::MIN)];
    for x in [1.0, -2.5, 1e300, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::from_bits(0xfff8_0000_0000_0001)]
    {
        attrs.push(m.cx.float_attr(x));
    }
    let (four, unknown) = (m.cx.types.dims.constant(-4), m.cx.types.dims.unknown());
    let lowest = m.cx.types.dims.constant(i64::MIN);
    let global = m.cx.global("main");
    let (add, quoted) = (m.cx.ops.find("add").unwrap(), m.cx.ops.find("strange op").unwrap());
    let literals = [
        Literal::scalar(1i32),
        Literal::scalar(1u8),
        Literal::scalar(f32::NAN),
        Literal::scalar(f32::from_bits(0xffc0_0000)),
        Literal::from_elements(&[2], &[1i64, 2]).unwrap(),
        Literal::from_strings(&[], vec!["s".into()]).unwrap(),
    ]
    .map(|l| m.cx.literals.intern(l));
    for a in [
        Attr::Shape([four, unknown, lowest].into()),
        Attr::Shape([].into()),
        Attr::DType(DType::Float32),
        Attr::Type(scalar),
        Attr::Type(ty),
        Attr::Type(unit),
        Attr::Type(pair),
        Attr::Type(arrow),
        Attr::Global(global),
        Attr::Op(add),
        Attr::Op(quoted),
        Attr::List([].into()),
    ]
    .into_iter()
    .chain(literals.map(Attr::Literal))
    {
        let a = m.cx.attr(a);
        attrs.push(a);
    }
    attrs.push(m.cx.str_attr("text"));
    attrs.push(nested);
    let inner = m.cx.attr(Attr::List(attrs[..2].into()));
    attrs.push(inner);
    let list = m.cx.attr(Attr::List(attrs.into()));
    let mut b = FunctionBuilder::new(&mut m, "main");
    let x = b.param("x", ty);
    let y = b.call_op("nn.note", &[x], &[("b", one), ("a", list)]).unwrap();
    let y = b.bind("y", y);
    let z = b.call_op("if", &[y], &[]).unwrap();
    let z = b.bind("z", z);
    let w = b.call_op("strange op", &[z], &[]).unwrap();
    b.finish(w).unwrap();
    check(
        &m,
        expect![[r#"
            def @main(%x: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %y = nn.note(%x, a=[none, true, -9223372036854775808, 1.0, -2.5, 1e300, -0.0, inff64, -inff64, nanf64, dense<Tensor[(), float64]>[nan(0xfff8000000000001)], shape(0 - 4, ?, 0 - 9223372036854775807 - 1), shape(), float32, Tensor[(), float32], Tensor[(8,), float32], (), (Tensor[(8,), float32], ()), fn(Tensor[(8,), float32]) -> (), @main, add, op "strange op", [], dense<Tensor[(), int32]>[1], 1u8, nanf, dense<Tensor[(), float32]>[nan(0xffc00000)], dense<Tensor[(2,), int64]>[1, 2], dense<Tensor[(), string]>["s"], "text", fn (%x: Tensor[(8,), float32]) {
                nn.note(%x, a=fn (%x: Tensor[(8,), float32]) { nn.note(%x, a=1) })
              }, [none, true]], b=1);
              let %z = op "if"(%y);
              op "strange op"(%z)
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
fn large_and_deep_types_and_attributes_get_aliases() {
    let mut m = module();
    let ty = f32x8(&mut m);
    let large = m.cx.types.tuple(&[ty; 9]);
    let mut deep = ty;
    for _ in 0..70 {
        deep = m.cx.types.tuple(&[deep]);
    }
    let wrapped = m.cx.types.tuple(&[large, ty]);
    let ints = m.cx.ints_attr(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
    let mut deep_attr = ints;
    for _ in 0..40 {
        deep_attr = m.cx.attr(Attr::List([deep_attr].into()));
    }
    let mut f = FunctionBuilder::new(&mut m, "main");
    let x = f.param("x", large);
    f.param("y", wrapped);
    f.param("z", deep);
    f.attr("a", ints);
    f.attr("b", deep_attr);
    f.finish(x).unwrap();
    check(
        &m,
        expect![[r#"
            type !t0 = (Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32], Tensor[(8,), float32]);
            type !t1 = (((((((((((((((((((((((((((((((Tensor[(8,), float32],),),),),),),),),),),),),),),),),),),),),),),),),),),),),),),);
            type !t2 = (((((((((((((((((((((((((((((((!t1,),),),),),),),),),),),),),),),),),),),),),),),),),),),),),),);
            attr !a0 = [0, 1, 2, 3, 4, 5, 6, 7, 8];
            attr !a1 = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[!a0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]];

            def @main(%x: !t0, %y: (!t0, Tensor[(8,), float32]), %z: ((((((((!t2,),),),),),),),), a=!a0, b=[[[[[[[[[!a1]]]]]]]]]) -> !t0 {
              %x
            }
        "#]],
    );
}

/// Runs on a small stack.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(64 * 1024).spawn(run).unwrap().join().unwrap();
}

const DEEP: usize = 1_000_000;

#[test]
fn shared_parts_of_types_and_attributes_are_written_once() {
    on_a_small_stack(|| {
        let mut m = module();
        let mut ty = f32x8(&mut m);
        let mut attr = m.cx.int_attr(1);
        let mut function = attr;
        for i in 0..200 {
            ty = m.cx.types.tuple(&[ty, ty]);
            attr = m.cx.attr(Attr::List([attr, attr].into()));
            function = function_attr(&mut m, &i.to_string(), &[("a", function), ("b", function)]);
        }
        let mut f = FunctionBuilder::new(&mut m, "main");
        let x = f.param("x", ty);
        f.attr("a", attr);
        f.attr("f", function);
        f.finish(x).unwrap();
        let text = m.to_text();
        assert!(text.len() < 50_000, "{}", text.len());
        assert_eq!(parse(&text).to_text(), text);
    });
}

#[test]
fn deep_types_and_attributes_need_no_stack() {
    on_a_small_stack(|| {
        let mut m = module();
        let mut b = FunctionBuilder::new(&mut m, "main");
        let n = b.symbol("n");
        let seven = b.cx().types.dims.constant(7);
        let mut dim = n;
        let mut symbolic = b.cx().types.tensor(DType::Float32, &[n]);
        let mut ty = b.cx().types.scalar(DType::Float32);
        let mut attr = b.cx().int_attr(1);
        for _ in 0..100_000 {
            dim = b.cx().types.dims.op(DimOp::FloorDiv, dim, seven);
            symbolic = b.cx().types.tuple(&[symbolic]);
            ty = b.cx().types.function(&[ty], ty, &[]);
            attr = b.cx().attr(Attr::List([attr].into()));
        }
        let dims = b.cx().types.tensor(DType::Float32, &[n, dim]);
        let x = b.param("x", dims);
        b.param("y", symbolic);
        b.param("z", ty);
        b.attr("a", attr);
        b.finish(x).unwrap();
        let text = m.to_text();
        assert_eq!(parse(&text).to_text(), text);
        let mut bytes = Vec::new();
        write_module(&m, &PrintOptions::default(), &mut bytes).unwrap();
        assert_eq!(bytes, text.into_bytes());
    });
}

fn round_trip_deep(build: fn(&mut FunctionBuilder<'_>, ExprId) -> Result<ExprId, BuildError>) {
    on_a_small_stack(move || {
        let m = main_of(build);
        let text = m.to_text();
        assert!(text.len() < DEEP * 400);
        drop(m);
        let parsed = parse(&text);
        assert!(parsed.to_text() == text, "printing again gives another text");
    });
}

#[test]
fn deep_chains() {
    round_trip_deep(|f, x| {
        f.begin_dataflow();
        let mut last = x;
        for _ in 0..DEEP {
            last = f.call_op("exp", &[last], &[])?;
            last = f.bind("", last);
        }
        f.end_dataflow(&[last]);
        Ok(last)
    });
}

#[test]
fn deep_calls() {
    round_trip_deep(|f, mut x| {
        for _ in 0..DEEP {
            x = f.call_op("exp", &[x], &[])?;
        }
        Ok(x)
    });
}

#[test]
fn deep_shared_calls() {
    round_trip_deep(|f, mut x| {
        for _ in 0..DEEP / 4 {
            x = f.call_op("add", &[x, x], &[])?;
        }
        Ok(x)
    });
}

#[test]
fn deep_branches() {
    round_trip_deep(|f, x| {
        let c = condition(f);
        let mut block = x;
        for _ in 0..DEEP {
            block = f.if_(c, block, x)?;
        }
        Ok(block)
    });
}

#[test]
fn deep_branches_with_a_shared_node_at_the_bottom() {
    round_trip_deep(|f, x| {
        let c = condition(f);
        let shared = f.call_op("exp", &[x], &[])?;
        let mut block = f.call_op("add", &[shared, shared], &[])?;
        for i in 0..DEEP / 4 {
            let other = if i % 1000 == 0 { shared } else { x };
            block = f.if_(c, block, other)?;
        }
        Ok(block)
    });
}

#[test]
fn deep_functions() {
    round_trip_deep(|f, x| {
        let ty = f.body().type_of(x);
        for _ in 0..DEEP / 10 {
            f.open_lambda(&[("p", ty)], None, &[]);
        }
        let mut tail = x;
        for _ in 0..DEEP / 10 {
            let lambda = f.close_lambda(tail)?;
            let lambda = f.bind("f", lambda);
            tail = f.call(lambda, &[x])?;
        }
        Ok(tail)
    });
}

#[test]
fn deep_blocks_as_values() {
    round_trip_deep(|f, x| {
        for _ in 0..DEEP {
            f.open_block();
        }
        let mut value = x;
        for _ in 0..DEEP {
            let v = f.bind("v", value);
            value = f.close_block(v)?;
        }
        Ok(f.bind("w", value))
    });
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
