//! Constants, attributes, types and dimensions.

use anfora_ir::{
    Attr, DType, DimOp, FunctionBuilder, Literal, Module, PrintLiterals, PrintOptions, Source, first_difference,
    parse_module, print_module,
};
use expect_test::expect;
use half::{bf16, f16};

use super::{check, f32x8, function_attr, main_of, module, parse, registry};

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

/// Returns literals of every kind: numbers at the limits of their types, arrays, packed elements
/// and strings.
fn literals_of_every_kind() -> Vec<Literal> {
    let bytes =
        |d: DType, shape: &[usize], b: &[u8]| Literal::from_bytes(d, shape, bytes::Bytes::copy_from_slice(b)).unwrap();
    vec![
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
    ]
}

#[test]
fn every_bit_of_a_constant_is_written() {
    let m = constants(literals_of_every_kind());
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
        // Many elements are printed as bytes, so use few at a time.
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
