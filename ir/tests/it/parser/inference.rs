//! Type inference for whole modules.

use anfora_ir::{infer_module, print_module};
use expect_test::expect;

use super::{fails, fails_in, module, prints};

#[test]
fn callees_come_first_wherever_they_stand() {
    prints(
        "def @main(%x: float32) { let %y = @second(%x); @first(%y) }
         def @second(%x: float32) { (@first(%x)).0 }
         def @first(%x: float32) { (%x, 1) }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32]) -> (Tensor[(), float32], Tensor[(), int32, 1]) {
              let %y = @second(%x);
              @first(%y)
            }

            def @second(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              @first(%x).0
            }

            def @first(%x: Tensor[(), float32]) -> (Tensor[(), float32], Tensor[(), int32, 1]) {
              (%x, 1)
            }
        "#]],
    );
}

#[test]
fn recursive_functions_state_their_result() {
    prints(
        "def @even(%x: float32) -> bool { @odd(%x) }
         def @odd(%x: float32) -> bool { @even(%x) }
         def @self(%x: float32) -> float32 { @self(%x) }",
        &expect![[r#"
            def @even(%x: Tensor[(), float32]) -> Tensor[(), bool] {
              @odd(%x)
            }

            def @odd(%x: Tensor[(), float32]) -> Tensor[(), bool] {
              @even(%x)
            }

            def @self(%x: Tensor[(), float32]) -> Tensor[(), float32] {
              @self(%x)
            }
        "#]],
    );
    fails(
        "def @even(%x: float32) -> bool { @odd(%x) }
         def @odd(%x: float32) { @even(%x) }
         def @self(%x: float32) { add(@self(%x), 1) }
         def @fine(%x: float32) { @self(%x) }",
        &expect![[r#"
            @odd | `@odd` is in a cycle of calls (`@even`, `@odd`), but its result type is not stated | state it: `-> TYPE` behind the parameters
            @self | `@self` calls itself, but its result type is not stated | state it: `-> TYPE` behind the parameters
        "#]],
    );
}

#[test]
fn a_recursive_fn_states_its_result() {
    fails_in(
        "let %f = fn(%a: float32) { add(%f(%a), %f(1)) };
         let %g = fn(%a: float32) -> int8 { %g(%a) };
         %g(%x)",
        &expect![[r#"
            %f | `%f` calls itself, but its result type is not stated | state it: `fn(…) -> TYPE { … }`
            %x | argument 0 is Tensor[(8,), float32], but Tensor[(), float32] is expected
        "#]],
    );
}

/// The calls in the `fn` have the annotated result, so the `fn` keeps it, although its block has a
/// smaller type.
#[test]
fn the_annotation_of_a_recursive_fn_states_its_result() {
    prints(
        "def @main(%x: float32, %q: Tensor[(2,), float32], %c: bool) {
           let %f: fn(float32) -> Tensor[(?,), float32] = fn (%n: float32) {
             let %r = if (%c) { %f(%n) } else { %q };
             %q
           };
           %f(%x)
         }
         def @symbolic(%x: Tensor[(4,), float32], %c: bool) {
           let %f: fn(Tensor[(m,), float32]) -> Tensor[(?,), float32] = fn (%n: Tensor[(m,), float32]) {
             let %r = if (%c) { %f(%n) } else { %n };
             %n
           };
           %f(%x)
         }",
        &expect![[r#"
            def @main(%x: Tensor[(), float32], %q: Tensor[(2,), float32], %c: Tensor[(), bool]) -> Tensor[(?,), float32] {
              let %f = fn (%n: Tensor[(), float32]) -> Tensor[(?,), float32] {
                let %r = if (%c) { %f(%n) } else { %q };
                %q
              };
              %f(%x)
            }

            def @symbolic(%x: Tensor[(4,), float32], %c: Tensor[(), bool]) -> Tensor[(?,), float32] {
              let %f = fn (%n: Tensor[(m,), float32]) -> Tensor[(?,), float32] {
                let %r = if (%c) { %f(%n) } else { %n };
                %n
              };
              %f(%x)
            }
        "#]],
    );
}

#[test]
fn annotations_have_to_agree() {
    fails(
        "def @f(%x: Tensor[(8,), float32]) -> Tensor[(4,), float32] {
           let %a: Tensor[?, float32] = %x;
           let %b: int8 = %x;
           let %c: (Any, int8) = (%x, 1);
           let %g = fn(%y: int8) -> Tensor[(), int16] { %y };
           %x
         }",
        &expect![[r#"
            Tensor[(4,), float32] | `@f` returns Tensor[(8,), float32], but Tensor[(4,), float32] is stated
            int8 | `%b` is Tensor[(8,), float32], but Tensor[(), int8] is stated
            (Any, int8) | `%c` is (Tensor[(8,), float32], Tensor[(), int32, 1]), but (Any, Tensor[(), int8]) is stated
            Tensor[(), int16] | the `fn` returns Tensor[(), int8], but Tensor[(), int16] is stated
        "#]],
    );
}

#[test]
fn functions_in_attributes_are_checked() {
    fails_in(
        "let %a = note(%x, value=[fn(%q: int8) -> bool { %q }, fn(%q: int8) { let %r: bool = exp(%q); add(%q, %c2) }]);
         let %b = note(%x, value=fn(%q: int8) { @f(%q, %q, true) });
         note(%x, value=fn() { let %g = fn() -> bool { 1 }; exp(1, 2) })",
        &expect![[r#"
            bool | the function returns Tensor[(), int8], but Tensor[(), bool] is stated
            bool | `%r` is Tensor[(), int8], but Tensor[(), bool] is stated
            %c2 | unknown local `%c2`
            %q | argument 0 is Tensor[(), int8], but Tensor[(8,), float32] is expected
            bool | the `fn` returns Tensor[(), int32, 1], but Tensor[(), bool] is stated
            exp(1, 2) | `exp` takes 1 operands, not 2
        "#]],
    );
}

#[test]
fn errors_are_reported_once_and_where_they_are() {
    fails_in(
        "let %a = add(%x, 1);
         let %b = add(%a, %a);
         let %p = (%x, %y).2;
         let %q = (%x, (%y,)).1.0.3(%x);
         let %r = %x(%y);
         let %i = if (%x) { 1 } else { 2 };
         let %j = if (%c) { 1 } else { 2f };
         let %k = exp(%x, %y);
         let %f = fn(%a: float32) { %a };
         let %l = %f(1);
         let %m = %f(1f, 2f);
         let %n = concat(%x, add(%y, %y), exp(2f), %x);
         let %o = note(exp(%c), axis=1, value=[1, 2]);
         let %h = (%f)((%f)(3));
         add(%b, %j)",
        &expect![[r#"
            1 | operand 1 is Tensor[(), int32], not Tensor[(8,), float32]
            (%x, %y).2 | field 2 of a tuple of 2
            (%x, (%y,)).1.0.3 | a projection needs a tuple, not Tensor[(8,), float32]
            %x | Tensor[(8,), float32] cannot be called | a value of type Any is turned into a function by `match_cast(…, to=fn(…) -> …)`
            %x | a condition is a rank-0 bool tensor, not Tensor[(8,), float32]
            if (%c) { 1 } else { 2f } | the branches have nothing in common: Tensor[(), int32, 1] and Tensor[(), float32]
            exp(%x, %y) | `exp` takes 1 operands, not 2
            1 | argument 0 is Tensor[(), int32, 1], but Tensor[(), float32] is expected
            %f(1f, 2f) | the function takes 1 arguments, not 2
            exp(2f) | operand 2 is Tensor[(), float32], not Tensor[(8,), float32]
            3 | argument 0 is Tensor[(), int32, 3], but Tensor[(), float32] is expected
        "#]],
    );
}

#[test]
fn symbols_are_instantiated_at_calls() {
    prints(
        "def @pair(%x: Tensor[(n,), float32], %y: Tensor[(n, m), float32]) -> Tensor[(m,), float32] { match_cast(%x, to=Tensor[(m,), float32]) }
         def @main(%a: Tensor[(3,), float32], %b: Tensor[(3, k), float32]) { @pair(%a, %b) }",
        &expect![[r#"
            def @pair(%x: Tensor[(n,), float32], %y: Tensor[(n, m), float32]) -> Tensor[(m,), float32] {
              match_cast(%x, to=Tensor[(m,), float32])
            }

            def @main(%a: Tensor[(3,), float32], %b: Tensor[(3, k), float32]) -> Tensor[(k,), float32] {
              @pair(%a, %b)
            }
        "#]],
    );
    fails(
        "def @pair(%x: Tensor[(n,), float32], %y: Tensor[(n, m), float32]) { %y }
         def @main(%a: Tensor[(3,), float32], %b: Tensor[(4, k), float32]) { @pair(%a, %b) }",
        &expect![[r#"
            %b | argument 1 is Tensor[(4, k), float32], but Tensor[(3, k), float32] is expected
        "#]],
    );
}

#[test]
fn inferring_again_changes_nothing() {
    let mut m = module(
        "def @main(%x: Tensor[(n,), float32], %c: bool) {
           let %f = fn(%y: Tensor[(n,), float32]) -> Tensor[(n,), float32] { %f(%y) };
           dataflow { let %a = exp(%x); let %b: (Any, int8) = onnx.Foo(%a); output(%b) }
           if (%c) { (%f(%x), %b) } else { (%x, %b) }
         }",
    );
    let text = |m: &anfora_ir::Module| {
        let mut out = String::new();
        let options = anfora_ir::PrintOptions { annotations: anfora_ir::Annotations::All, ..Default::default() };
        print_module(m, &options, &mut out).unwrap();
        out
    };
    let before = text(&m);
    assert_eq!(infer_module(&mut m), vec![]);
    assert_eq!(text(&m), before);
}
