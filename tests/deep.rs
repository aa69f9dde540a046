//! No shape of program overflows the stack: every operation runs on every shape, on a thread with a
//! stack of 128 KiB. An overflow ends the process.
//!
//! The ordinary run goes 1,500 deep, which leaves 87 bytes of the stack for a level;
//! `ANFORA_DEEP=1000000` sets another depth. Optimised, all of it runs on 48 KiB.
//!
//! An optimiser turns some recursions into loops, and users may build anfora without one.
//! `ANFORA_STACK_KIB=192 cargo test --profile test-unoptimised --workspace --test deep` shows that
//! there are no recursions. Its stack is larger because frames are larger, not because there are
//! more of them.

use std::sync::Arc;

use anfora_testing::programs::Shape;
use anfora_testing::stress::{Operation, Subject};
use anfora_testing::{depth, on_small_stack};

fn every_operation(shape: Shape) {
    let subject = Arc::new(on_small_stack(move || Subject::new(shape, depth(1_500))).expect("a shape builds"));
    let mut failures = Vec::new();
    let is_done = |operation: &Operation| operation.needs_program() || shape.name() == "chain";
    for operation in Operation::all().into_iter().filter(is_done) {
        let subject = Arc::clone(&subject);
        let name = operation.name().to_string();
        let done = on_small_stack(move || operation.prepare(&subject)?.run());
        if let Err(message) = done {
            failures.push(format!("{name}: {message}"));
        }
    }
    on_small_stack(move || drop(subject));
    assert!(failures.is_empty(), "on {}:\n{}", shape.name(), failures.join("\n"));
}

macro_rules! shapes {
    ($($test:ident $shape:literal;)*) => {
        $(
            #[test]
            fn $test() {
                every_operation($shape.parse().expect("a shape"));
            }
        )*

        #[test]
        fn every_shape_is_tested() {
            let tested = [$($shape),*];
            for shape in Shape::all() {
                assert!(tested.contains(&shape.name()), "{} is not tested", shape.name());
            }
        }
    };
}

shapes! {
    chain "chain";
    dead "dead";
    dup "dup";
    constant "const";
    constants "many-consts";
    diamond "diamond";
    skip "skip";
    parallel "parallel";
    images "images";
    weights "weights";
    nested_if "nested-if";
    nested_fn "nested-fn";
    nested_closure "nested-closure";
    nested_call "nested-call";
    nested_tuple "nested-tuple";
    nested_type "nested-type";
    nested_attribute "nested-attribute";
    let_in_value "let-in-value";
    if_in_value "if-in-value";
    siblings "siblings";
    region_chain "region-chain";
    region_fibonacci "region-fibonacci";
    region_fan_in "region-fan-in";
    region_skips "region-skips";
    random "random";
}
