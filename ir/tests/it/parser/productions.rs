//! The meaning of every production, shown by printing it.

use anfora_ir::{Attr, Expr, Function, FunctionKind, Module, Visibility, alpha_equal, parse_attr, parse_type};
use expect_test::expect;

use super::{module, prints, registry};

fn main_function(m: &Module) -> &Function {
    m.get(m.find("main").unwrap()).unwrap()
}

#[test]
fn definitions_and_bindings() {
    prints(
        "def @main(%x: Tensor[(8,), float32], %y: Tensor[(8,), float32]) {
           let %a = add(%x, %y); // a comment
           let %b: Tensor[(8,), float32] = multiply(%a, %a,); /* another /* inside */ */
           %b
         }",
        &expect![[r#"
            def @main(%x: Tensor[(8,), float32], %y: Tensor[(8,), float32]) -> Tensor[(8,), float32] {
              let %a = add(%x, %y);
              let %b = multiply(%a, %a);
              %b
            }
        "#]],
    );
}

#[test]
fn functions_of_every_kind() {
    let text = "#![version=\"1\", phase=2]
        #[doc=\"what it does\"]
        declare @external(%x: float32, Pure=1) -> float32;
        def private @\"odd name\"(Primitive=1) { () }
        def @main(%x: float32) { let %u = @\"odd name\"(); @external(%x) }";
    let m = module(text);
    let keys = m.order();
    assert_eq!(m.get(keys[0]).unwrap().kind, FunctionKind::Declaration);
    assert_eq!(m.get(keys[1]).unwrap().visibility, Visibility::Private);
    assert_eq!(m.get(keys[2]).unwrap().visibility, Visibility::Public);
    assert!(m.cx.find_attr(m.attrs(), "phase").is_some());
    assert!(m.cx.find_attr(m.get(keys[0]).unwrap().meta, "doc").is_some());
    assert!(m.cx.find_attr(m.get(keys[1]).unwrap().attrs, "Primitive").is_some());
    assert_eq!(m.source().unwrap().name(), "test.anf");
    prints(
        text,
        &expect![[r##"
        #![phase=2, version="1"]

        #[doc="what it does"]
        declare @external(%x: Tensor[(), float32], Pure=1) -> Tensor[(), float32];

        def private @"odd name"(Primitive=1) -> () {
          ()
        }

        def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
          let %u = @"odd name"();
          @external(%x)
        }
    "##]],
    );
}

#[test]
fn expressions_nest_and_group() {
    prints(
        "def @main(%x: float32, %c: bool) {
           let %t = (%x, (%c, (%x,)), ());
           let %p = %t.1.1.0;
           let %q = (add(%p, exp(%x)), less(%x, 1f)).0;
           let %f = (fn(%a: float32) { add(%a, %q) })(%p);
           let %i = (if (less(%x, %f)) { (%x, %f) } else { {let %s = (%f, %x); %s} }).0;
           let %n = note(%x, none, %x, axis=1, value=none);
           ((%i))
         }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32], %c: Tensor[(), bool]) -> Tensor[(), float32] {
              let %t = (%x, (%c, (%x,)), ());
              let %p = %t.1.1.0;
              let %q = (add(%p, exp(%x)), less(%x, 1f)).0;
              let %f = (fn (%a: Tensor[(), float32]) { add(%a, %q) })(%p);
              let %i = (if (less(%x, %f)) { (%x, %f) } else {
                let %s = (%f, %x);
                %s
              }).0;
              let %n = note(%x, none, %x, axis=1);
              %i
            }
        "#]],
    );
}

#[test]
fn blocks_are_values_and_have_scopes() {
    prints(
        "def @main(%x: float32) {
           let %a = { let %b = exp(%x); let %x = exp(%b); add(%x, %b) };
           let %a = add(%a, %x);
           add({ %a }, { let %a = exp(%a); %a })
         }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              let %a = {
                let %b = exp(%x);
                let %x$1 = exp(%b);
                add(%x$1, %b)
              };
              let %a$1 = add(%a, %x);
              add(%a$1, {
                let %a$2 = exp(%a$1);
                %a$2
              })
            }
        "#]],
    );
}

#[test]
fn recursive_functions_name_themselves() {
    let m = module(
        "def @main(%x: float32) {
           let %f = fn(%y: float32) -> float32 { let %f2 = %f; if (less(%y, 0f)) { %y } else { %f2(exp(%y)) } };
           let %g: fn(float32) -> float32 = fn(%y: float32) { %g(%y) };
           add(%f(%x), %g(%x))
         }",
    );
    let f = main_function(&m);
    assert_eq!(m.cx.type_text(f.body.type_of(f.body.root())), "Tensor[(), float32]");
}

#[test]
fn a_dataflow_region_hides_what_it_does_not_output() {
    prints(
        "def @main(%x: float32) {
           dataflow { let %a = exp(%x); let %b = exp(%a); output(%b); }
           dataflow { let %a = exp(%b); output(%a) }
           dataflow { output() }
           let %c = exp(%a);
           dataflow { let %d = exp(%c); output(%d,) }
           %d
         }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              dataflow {
                let %a = exp(%x);
                let %b = exp(%a);
                output(%b);
              }
              dataflow {
                let %a$1 = exp(%b);
                output(%a$1);
              }
              let %c = exp(%a$1);
              dataflow {
                let %d = exp(%c);
                output(%d);
              }
              %d
            }
        "#]],
    );
}

#[test]
fn graph_bindings_share_nodes() {
    let m = module(
        "def @main(%x: float32) {
           #[name=\"shared\"] %s = exp(%x);
           %t = (%s, %s);
           let %a = add(%s, %t.0);
           %u = %a;
           add(%s, %u)
         }",
    );
    let body = &main_function(&m).body;
    let shared: Vec<_> = (0..body.len())
        .map(anfora_ir::EntityId::from_index)
        .filter(|&id| matches!(body.expr(id), Expr::CallOp { op, .. } if m.cx.ops.get(op).name == "exp"))
        .collect();
    assert_eq!(shared.len(), 1);
    assert!(body.meta(shared[0]).is_some());
}

#[test]
fn meta_stays_with_its_binding() {
    let m = module(
        "def @main(%x: float32) { #[a=1, b=\"two\"] #[c=[1, 2]] let %y = exp(%x); #[d=none] let %z = exp(%y); %z }",
    );
    let body = &main_function(&m).body;
    let Expr::Let { var, .. } = body.expr(body.root()) else { panic!("the root is a Let") };
    let meta = body.meta(var.expr()).unwrap();
    assert_eq!(m.cx.attrs.list(meta).len(), 3);
    prints(
        "def @main(%x: float32) { #[a=1, b=\"two\"] #[c=[1, 2]] let %y = exp(%x); %y }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              #[a=1, b="two", c=[1, 2]]
              let %y = exp(%x);
              %y
            }
        "#]],
    );
}

#[test]
fn numbers_of_every_kind() {
    prints(
        "def @main() {
           (1, -1i8, 2i16, 3i64, 255u8, 4u16, 5u32, 18446744073709551615u64, -9223372036854775808i64, 1f, -1.5f, 1e-3f,
            2.5E+10f64, 1.5f16, 1.5bf16, inff, -inff, nanf, inff64, -nanf16, infbf16, true, false)
         }",
        &expect![[r#"
            def @main() -> (Tensor[(), int32, 1], Tensor[(), int8, 0 - 1], Tensor[(), int16, 2], Tensor[(), int64, 3], Tensor[(), uint8, 255], Tensor[(), uint16, 4], Tensor[(), uint32, 5], Tensor[(), uint64], Tensor[(), int64, 0 - 9223372036854775807 - 1], Tensor[(), float32], Tensor[(), float32], Tensor[(), float32], Tensor[(), float64], Tensor[(), float16], Tensor[(), bfloat16], Tensor[(), float32], Tensor[(), float32], Tensor[(), float32], Tensor[(), float64], Tensor[(), float16], Tensor[(), bfloat16], Tensor[(), bool, 1], Tensor[(), bool, 0]) {
              (1, -1i8, 2i16, 3i64, 255u8, 4u16, 5u32, 18446744073709551615u64, -9223372036854775808i64, 1f, -1.5f, 0.001f, 25000000000f64, 1.5f16, 1.5bf16, inff, -inff, nanf, inff64, dense<Tensor[(), float16]>[nan(0xfe00)], infbf16, true, false)
            }
        "#]],
    );
}

#[test]
fn constants_of_every_kind() {
    prints(
        "type !Row = Tensor[(2,), float32];
         def @main() {
           (dense<Tensor[(2, 2), float32]>[1, 2, 3, 4], dense<!Row>[1.5, 1.5], dense<!Row>[-0.0], dense<!Row>[0, -0.0],
            dense<Tensor[(3,), float64]>[inf, -inf, nan], dense<!Row>[nan(0x7fc00001), 1], dense<!Row>\"0x0000803F00000040\",
            dense<Tensor[(3,), int4]>[-8, 7, 1], dense<Tensor[(), int4]>[3], dense<Tensor[(3,), bool]>[true, false, true],
            dense<Tensor[(0, 4), int8]>[], dense<Tensor[(1000000, 1000000), int8]>[7,],
            dense<Tensor[(2,), string]>[\"a\", \"b\\n\"], dense<Tensor[(2,), complex64]>\"0x0000803F00000000\",
            dense<Tensor[(2,), float8e5m2]>\"0x3c40\", dense<Tensor[(2,), float16]>[65504, 6e-8],
            dense<Tensor[(2,), uint64]>[18446744073709551615, 0])
         }",
        &expect![[r#"
            def @main() -> (Tensor[(2, 2), float32], Tensor[(2,), float32], Tensor[(2,), float32], Tensor[(2,), float32], Tensor[(3,), float64], Tensor[(2,), float32], Tensor[(2,), float32], Tensor[(3,), int4], Tensor[(), int4], Tensor[(3,), bool, [1, 0, 1]], Tensor[(0, 4), int8], Tensor[(1000000, 1000000), int8], Tensor[(2,), string], Tensor[(2,), complex64], Tensor[(2,), float8e5m2], Tensor[(2,), float16], Tensor[(2,), uint64, [?, 0]]) {
              (dense<Tensor[(2, 2), float32]>[1, 2, 3, 4], dense<Tensor[(2,), float32]>[1.5], dense<Tensor[(2,), float32]>[-0.0], dense<Tensor[(2,), float32]>[0, -0.0], dense<Tensor[(3,), float64]>[inf, -inf, nan], dense<Tensor[(2,), float32]>[nan(0x7fc00001), 1], dense<Tensor[(2,), float32]>[1, 2], dense<Tensor[(3,), int4]>"0x7801", dense<Tensor[(), int4]>"0x03", dense<Tensor[(3,), bool]>[true, false, true], dense<Tensor[(0, 4), int8]>[], dense<Tensor[(1000000, 1000000), int8]>[7], dense<Tensor[(2,), string]>["a", "b\n"], dense<Tensor[(2,), complex64]>"0x0000803F00000000", dense<Tensor[(2,), float8e5m2]>"0x3C40", dense<Tensor[(2,), float16]>[65500, 6e-8], dense<Tensor[(2,), uint64]>[18446744073709551615, 0])
            }
        "#]],
    );
}

#[test]
fn a_splat_and_its_expansion_are_one() {
    let (a, b) = ("dense<Tensor[(2, 2), float32]>[0.1]", "dense<Tensor[(2, 2), float32]>[0.1, 0.1, 1e-1, 0.1]");
    let text = |c: &str| format!("def @main() {{ {c} }}");
    assert!(alpha_equal(&module(&text(a)), &module(&text(b))));
    let raw = "dense<Tensor[(2, 2), float32]>\"0xcdccCC3D\"";
    assert!(alpha_equal(&module(&text(a)), &module(&text(raw))));
}

#[test]
fn attributes_of_every_kind() {
    prints(
        "attr !a = [1, [2.5, \"x\"]];
         type !t = (float32, Tensor[(8,), float32]);
         def @g(%x: float32) { %x }
         def @main(%x: Tensor[(n, 4), float32]) {
           let %1 = note(%x, value=1, axis=-1);
           let %2 = note(%x, value=[1, -2.5, inf, -inf, nan, \"s\\u{e9}\", true, none, [], [[],],]);
           let %3 = note(%x, value=shape(2, n, ?, n * 2 + 1));
           let %4 = note(%x, value=dense<Tensor[(2,), int8]>[1, 2], let=1i32);
           let %5 = note(%x, value=[float32, Tensor[(), float32], Any, fn(float32) -> float32, fn() -> (), (), (int8,)]);
           let %6 = note(%x, value=[@g, add, nn.relu, op \"odd name!\", max]);
           let %7 = note(%x, value=!a, let=[!a, !t]);
           let %8 = note(%x, value=1.5f, let=2f64);
           let %9 = op \"odd name!\"(%x);
           %9
         }",
        &expect![[r#"
            def @g(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              %x
            }

            def @main(%x: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32] {
              let %1 = note(%x, axis=-1, value=1);
              let %2 = note(%x, value=[1, -2.5, inff64, -inff64, nanf64, "sé", true, none, [], [[]]]);
              let %3 = note(%x, value=shape(2, n, ?, 2 * n + 1));
              let %4 = note(%x, let=dense<Tensor[(), int32]>[1], value=dense<Tensor[(2,), int8]>[1, 2]);
              let %5 = note(%x, value=[float32, Tensor[(), float32], Any, fn(Tensor[(), float32]) -> Tensor[(), float32], fn() -> (), (), (Tensor[(), int8],)]);
              let %6 = note(%x, value=[@g, add, nn.relu, op "odd name!", max]);
              let %7 = note(%x, let=[[1, [2.5, "x"]], (Tensor[(), float32], Tensor[(8,), float32])], value=[1, [2.5, "x"]]);
              let %8 = note(%x, let=2.0, value=1.5f);
              let %9 = op "odd name!"(%x);
              %9
            }
        "#]],
    );
}

#[test]
fn functions_are_attribute_values() {
    prints(
        "def @g(%x: float32) { %x }
         def @main(%x: float32) {
           let %a = note(%x, value=fn(%x: Tensor[(n,), float32], K=2) -> Tensor[(n,), float32] { let %y = exp(%x); %y });
           let %b = note(%x, value=fn() { () }, let=[fn() -> float32 { @g(1f) }, fn(K=1) { fn(%z: int8) { %z } }]);
           let %c = note(%x, value=fn(%q: float32) { note(%q, value=fn(%q: int8) { %q }) });
           exp(%x)
         }",
        &expect![[r#"
            def @g(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              %x
            }

            def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              let %a = note(%x, value=fn (%x: Tensor[(n,), float32], K=2) -> Tensor[(n,), float32] {
                let %y = exp(%x);
                %y
              });
              let %b = note(%x, let=[fn () -> Tensor[(), float32] { @g(1f) }, fn (K=1) {
                fn (%z: Tensor[(), int8]) { %z }
              }], value=fn () { () });
              let %c = note(%x, value=fn (%q: Tensor[(), float32]) {
                note(%q, value=fn (%q: Tensor[(), int8]) { %q })
              });
              exp(%x)
            }
        "#]],
    );
}

#[test]
fn opaque_operators_have_the_type_that_is_written() {
    prints(
        "def @main(%x: float32) {
           let %y: (float32, int64) = onnx.Foo(%x, none, mode=\"a\", \"a key\"=[1]);
           let %z = onnx.Bar(%y.0);
           (%y.1, %z)
         }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32]) -> (Tensor[(), int64], Any) {
              let %y: (Tensor[(), float32], Tensor[(), int64]) = onnx.Foo(%x, none, "a key"=[1], mode="a");
              let %z = onnx.Bar(%y.0);
              (%y.1, %z)
            }
        "#]],
    );
}

#[test]
fn operators_and_globals_are_values() {
    prints(
        "def @g(%x: float32) { %x }
         def @main(%x: float32) { let %t = (add, @g, nn.relu, none); let %u = @g; %u(%x) }",
        &expect![[r#"
            def @g(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              %x
            }

            def @main(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              let %t = (add, @g, nn.relu, none);
              let %u = @g;
              %u(%x)
            }
        "#]],
    );
}

#[test]
fn keywords_are_keys_and_names() {
    prints(
        "type !fn = float32; type !0 = int8; type !a$1 = (!fn, !0);
         def @def(%let: !a$1, if=1, Tensor=2) { note(%let, let=3) }",
        &expect![[r#"
            def @def(%let: (Tensor[(), float32], Tensor[(), int8]), Tensor=2, if=1) -> (Tensor[(), float32], Tensor[(), int8]) {
              note(%let, let=3)
            }
        "#]],
    );
}

#[test]
fn types_are_read_alone() {
    let mut m = Module::new(registry());
    for text in [
        "Tensor[(2, 3), float32]",
        "Tensor[?, bool]",
        "Tensor[(), int8]",
        "Tensor[(?, 3), uint4]",
        "()",
        "(Any,)",
        "(Any, ((), Any))",
        "fn() -> ()",
        "fn(Any, (Any,)) -> fn(Any) -> Any",
        "Tensor[(n, 2 * n + 1), float32]",
    ] {
        let ty = parse_type(&mut m.cx, text).unwrap();
        assert_eq!(m.cx.type_text(ty), text);
    }
    let grouped = parse_type(&mut m.cx, "((Any))").unwrap();
    assert_eq!(grouped, m.cx.types.any());
    let scalar = parse_type(&mut m.cx, "float32").unwrap();
    assert_eq!(m.cx.type_text(scalar), "Tensor[(), float32]");
    let errors = parse_type(&mut m.cx, "Tensor[(8,), flot32] x").unwrap_err();
    assert_eq!(errors.len(), 2);
    assert_eq!(errors[0].help.as_deref(), Some("did you mean `float32`?"));
}

#[test]
fn attributes_are_read_alone() {
    let mut m = Module::new(registry());
    let attr = parse_attr(&mut m.cx, "[1, [\"a\"]]").unwrap();
    let Attr::List(items) = m.cx.attrs.get(attr).clone() else { panic!("a list") };
    assert_eq!(*m.cx.attrs.get(items[0]), Attr::Int(1));
    assert!(parse_attr(&mut m.cx, "[1, ").is_err());
}
