//! Symbolic dimensions: their syntax, their binding and their scopes.

use anfora_ir::{Module, parse_type};
use expect_test::expect;

use super::{fails, fails_in, module, prints, registry};

#[test]
fn arithmetic_is_normalised() {
    let mut m = Module::new(registry());
    for (written, normal) in [
        ("n, m, 2 + 3 * 4", "14"),
        ("n, m, n + m - n", "m"),
        ("n, m, (n + 1) * (m - 1)", "n * m - n + m - 1"),
        ("n, m, floordiv(2 * n, 2) + ceildiv(7, 2)", "n + 4"),
        ("n, m, mod(n, 3) * min(n, m)", "mod(n, 3) * min(n, m)"),
        ("n, m, max(n, (m))", "max(n, m)"),
        ("n, m, n * ?", "?"),
        ("n, m, 2 * (3)", "6"),
        ("n, m, 10 - 3 - 2", "5"),
    ] {
        let ty = parse_type(&mut m.cx, &format!("Tensor[({written}), int8]")).unwrap();
        let text = m.cx.type_text(ty);
        let last = text.strip_prefix("Tensor[(n, m, ").and_then(|t| t.strip_suffix("), int8]"));
        assert_eq!(last, Some(normal), "{written}");
    }
    let errors = parse_type(&mut m.cx, "Tensor[(-1,), int8]").unwrap_err();
    assert_eq!(errors[0].help.as_deref(), Some("a negative number is written `0 - 1`"));
}

#[test]
fn parameters_bind_and_the_result_sees() {
    prints(
        "def @main(%x: Tensor[(n, 2 * m), float32], %y: Tensor[(m,), float32]) -> (Tensor[(n, 2 * m), float32], Any) { (%x, %y) }",
        &expect![[r#"
            def @main(%x: Tensor[(n, 2 * m), float32], %y: Tensor[(m,), float32]) -> (Tensor[(n, 2 * m), float32], Any) {
              (%x, %y)
            }
        "#]],
    );
}

#[test]
fn a_match_cast_binds_for_the_rest_of_its_block() {
    prints(
        "def @main(%x: Any, %c: bool) {
           let %a = match_cast(%x, to=Tensor[(n,), float32]);
           let %b: Tensor[(n,), float32] = if (%c) {
             let %d = match_cast(%x, to=Tensor[(n, k), float32]);
             let %e: Tensor[(k,), float32] = match_cast(%x, to=Tensor[(k,), float32]);
             %a
           } else { exp(%a) };
           let %k = match_cast(%x, to=(Tensor[(k,), float32], Tensor[(k + n,), float32]));
           %b
         }",
        &expect![[r#"
            def @main(%x: Any, %c: Tensor[(), bool]) {
              let %a = match_cast(%x, to=Tensor[(n,), float32]);
              let %b = if (%c) {
                let %d = match_cast(%x, to=Tensor[(n, k), float32]);
                let %e = match_cast(%x, to=Tensor[(k,), float32]);
                %a
              } else { exp(%a) };
              let %k = match_cast(%x, to=(Tensor[(k_1,), float32], Tensor[(k_1 + n,), float32]));
              %b
            }
        "#]],
    );
    fails_in(
        "let %a = if (%c) { let %d = match_cast(%x, to=Tensor[(k,), float32]); %d } else { match_cast(%x, to=Tensor[(k,), float32]) };
         let %b: Tensor[(k,), float32] = %a;
         %b",
        &expect![[r#"
            k | unknown symbolic dimension `k` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
        "#]],
    );
}

#[test]
fn a_fn_sees_outer_symbols_and_binds_its_own() {
    let m = module(
        "def @main(%x: Tensor[(n,), float32]) {
           let %f = fn(%y: Tensor[(n, k), float32]) -> Tensor[(n, k), float32] { %y };
           let %g = fn(%y: Any) { let %z = match_cast(%y, to=Tensor[(j,), float32]); %z };
           (%f, %g)
         }",
    );
    let f = m.get(m.find("main").unwrap()).unwrap();
    let ty = f.body.type_of(f.body.root());
    let fields = m.cx.types.as_tuple(ty).unwrap();
    assert_eq!(m.cx.type_text(fields[0]), "fn(Tensor[(n, n0), float32]) -> Tensor[(n, n0), float32]");
    // Outside the block, nothing can name the symbols that it binds.
    assert_eq!(m.cx.type_text(fields[1]), "fn(Any) -> Tensor[(?,), float32]");
}

#[test]
fn function_types_bind_what_is_not_visible() {
    let mut m = Module::new(registry());
    let text = |m: &mut Module, t: &str| {
        let ty = parse_type(&mut m.cx, t).unwrap();
        m.cx.type_text(ty)
    };
    let v = |d: &str| format!("Tensor[({d},), int8]");
    assert_eq!(text(&mut m, &format!("fn({}) -> {}", v("a"), v("a"))), format!("fn({}) -> {}", v("n0"), v("n0")));
    // A name is bound by the innermost function type around all its occurrences.
    let inner = format!("fn({}) -> {}", v("a"), v("a"));
    assert_eq!(text(&mut m, &format!("fn(Any) -> {inner}")), format!("fn(Any) -> fn({}) -> {}", v("n0"), v("n0")));
    let (one, other) = (format!("fn({inner}, {}) -> Any", v("a")), format!("fn({inner}, {}) -> Any", v("b")));
    let one = text(&mut m, &one);
    assert_eq!(one, format!("fn(fn({}) -> {}, {}) -> Any", v("n0_1"), v("n0_1"), v("n0")));
    assert_ne!(one, text(&mut m, &other));
    // Names do not distinguish types.
    let a = parse_type(&mut m.cx, &format!("fn({}, {}) -> {}", v("x"), v("y"), v("x"))).unwrap();
    let b = parse_type(&mut m.cx, &format!("fn({}, {}) -> {}", v("y"), v("x"), v("y"))).unwrap();
    assert_eq!(a, b);
}

#[test]
fn a_function_type_before_the_parameter_that_binds() {
    let m = module(
        "def @main(%f: fn(Tensor[(n,), int8]) -> Any, %x: Tensor[(n,), int8]) { %f(%x) }
         def @other(%x: Tensor[(n,), int8], %f: fn(Tensor[(n,), int8]) -> Any) { %f(%x) }",
    );
    let of = |name: &str| {
        let f = m.get(m.find(name).unwrap()).unwrap();
        f.body.params().iter().map(|p| m.cx.type_text(f.body.ty(p.expr()))).collect::<Vec<_>>()
    };
    assert_eq!(of("main")[0], of("other")[1]);
    assert_eq!(of("main")[0], "fn(Tensor[(n,), int8]) -> Any");
}

#[test]
fn what_is_not_bound_is_an_error() {
    fails(
        "def @a(%x: Tensor[(n + 1,), int8]) { %x }
         def @b(%x: Tensor[(batch,), int8]) -> Tensor[(bach,), int8] { %x }
         def @c() { let %y: Tensor[(n,), int8] = 1; note(%y, value=shape(n)) }
         def @d(%x: Tensor[(0 - 2, 1 - 1), int8]) { %x }
         def @e(%x: Tensor[(floor(2, 2),), int8]) { %x }
         def @g(%x: Tensor[(99999999999999999999, 1f), int8]) { %x }
         type !t = Tensor[(n,), int8];",
        &expect![[r#"
            n | nothing binds the symbolic dimension `n` | it has to stand alone as a dimension somewhere, such as `Tensor[(n,), float32]`
            bach | unknown symbolic dimension `bach` | did you mean `batch`?
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
            0 - 2 | the dimension is -2 | an extent is 0 or more; `?` where it is not known
            floor | unknown operation `floor` on dimensions | there are floordiv, ceildiv, mod, min and max
            99999999999999999999 | `99999999999999999999` is out of range: a dimension is at most 9223372036854775807
            1f | `1f` is not a dimension | a dimension is a whole number without a suffix
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
        "#]],
    );
}

#[test]
fn functions_do_not_see_each_others_symbols() {
    fails(
        "def @a(%x: Tensor[(n,), int8]) { note(%x, value=fn(%y: int8) { note(%y, value=shape(n)) }) }
         def @b(%x: int8) { note(%x, value=shape(n)) }",
        &expect![[r#"
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
        "#]],
    );
}

#[test]
fn an_annotation_may_name_what_the_value_binds() {
    let text = "def @main(%x: Any) {
           let %a: Tensor[(n,), float32] = match_cast(%x, to=Tensor[(n,), float32]);
           let %b: Tensor[(k,), float32] = { let %c = match_cast(%x, to=Tensor[(k,), float32]); %c };
           let %d: fn(Tensor[(k,), float32]) -> Tensor[(k,), float32] = fn(%e: Tensor[(k,), float32]) { %d(%e) };
           (%a, %d(%b))
         }";
    let m = module(text);
    let mut all = String::new();
    let options = anfora_ir::PrintOptions { annotations: anfora_ir::Annotations::All, ..Default::default() };
    anfora_ir::print_module(&m, &options, &mut all).unwrap();
    assert_eq!(module(&all).to_string(), m.to_string());
    fails_in(
        "let %a: Tensor[(n,), float32] = %x; let %b: Tensor[(m,), float32] = fn(%z: int8) { %z }; %a",
        &expect![[r#"
            n | unknown symbolic dimension `n` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
            m | unknown symbolic dimension `m` | a parameter's type or a `match_cast` binds a dimension that stands alone in it; `?` is any
        "#]],
    );
}
