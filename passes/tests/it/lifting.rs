//! Tests of LambdaLifting in an edit that is rolled back.

use anfora_ir::{Body, EntityId, GlobalId, Source, compact_body, parse_module, verify_module};
use anfora_passes::lift_lambdas;

const PROGRAM: &str = "def @main(%x: Tensor[(n,), int32], %c: bool) {
    dataflow {
        let %f = fn (%y: Tensor[(n,), int32]) { negative(%y) };
        let %g = fn (%y: Tensor[(n,), int32]) { let %h = fn (%z: Tensor[(n,), int32]) { add(%z, %y) }; let %k = %h(%x); %f(%k) };
        let %a = %f(%x);
        let %b = %g(%a);
        output(%b);
    }
    let %p = (%b, %b);
    let %q = if (%c) { let %r = fn () { %p }; %r() } else { %p };
    %q.0
}";

#[test]
fn lifting_is_taken_back() {
    // In a body with a table of its atoms, and in a body whose atoms are searched.
    let small = "def @main(%x: int32) { let %f = fn (%y: int32) { negative(%y) }; let %a = %f(%x); %f(%a) }";
    for text in [PROGRAM, small] {
        let mut module = parse_module(Source::new("text", text), anfora_ops::standard()).unwrap();
        let (before, stamp) = (module.to_string(), module.stamp());
        for _ in 0..2 {
            module.begin_edit();
            assert!(lift_lambdas(&mut module).unwrap() > 0);
            verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
            assert!(!module.to_string().contains("fn (") && module.to_string() != before);
            module.rollback();
            assert_eq!(module.to_string(), before);
            assert!(module.stamp() == stamp);
            verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
        }
    }
}

#[test]
fn a_function_names_no_functions_of_inner_lambdas() {
    // In a body with a table of its atoms, and in a body whose atoms are searched.
    let small = "def @main(%x: int32) {
        let %f = fn (%y: int32) {
            let %g = fn (%z: int32) { negative(%z) };
            let %h = fn (%z: int32) { add(%z, %y) };
            let %a = %g(%y);
            let %b = %h(%a);
            fn () { %b }
        };
        let %k = %f(%x);
        %k()
    }";
    for text in [PROGRAM, small] {
        let mut module = parse_module(Source::new("text", text), anfora_ops::standard()).unwrap();
        lift_lambdas(&mut module).unwrap();
        verify_module(&module).unwrap_or_else(|errors| panic!("{errors:?}\n{module}"));
        let main = module.get(module.find("main").unwrap()).unwrap();
        let mut live = main.body.clone();
        compact_body(&mut live).unwrap();
        let named = |body: &Body| {
            let mut globals: Vec<GlobalId> = body.global_leaves().into_iter().map(|(_, global)| global).collect();
            globals.sort_unstable_by_key(|global| global.index());
            globals
        };
        assert_eq!(named(&main.body), named(&live), "{module}");
    }
}
