//! LambdaLifting keeps what the interpreter computes and prints, on many lambdas side by side and
//! on deeply nested lambdas, on a thread with a small stack.
//!
//! The ordinary run has 5,000 lambdas; `ANFORA_DEEP=1000000` sets another number.

use std::fmt::Write as _;

use anfora::interp::{Interpreter, Outcome};
use anfora::ir::{Literal, Module, Source, parse_module};
use anfora::manager::{Pass, PassContext, parse_pipeline};
use anfora_testing::{depth, on_small_stack};

fn outcome(module: &Module) -> Outcome {
    Interpreter::new(module).run("main", &[Literal::scalar(7i32)]).expect("it runs")
}

/// Lifts the lambdas of a program of a given number of them. Asserts that each becomes a function,
/// and that the program computes the same before and after.
fn keeps_meaning(program: impl FnOnce(usize) -> String + Send + 'static) {
    let work = move || {
        let n = depth(5_000);
        let mut module = parse_module(Source::new("program", program(n)), anfora::ops::standard()).expect("it parses");
        let before = outcome(&module);
        let functions = module.order().len();
        let registry = anfora::passes::registry();
        let pipeline = parse_pipeline(&registry, "LambdaLifting").expect("it is registered");
        let cx = PassContext::builder().registry(registry).opt_level(3).build().expect("a context");
        pipeline.apply(&mut module, &cx).expect("it lifts");
        assert_eq!(module.order().len() - functions, n, "each lambda is a function");
        let after = outcome(&module);
        assert!(before.same(&after), "the result or what is printed is another");
    };
    on_small_stack(work);
}

/// Returns lambdas side by side, of each kind in turn. Each is called with the result of the call
/// before.
fn siblings(n: usize) -> String {
    let mut text = "def @main(%x: int32) {\n  let %r = %x;\n".to_string();
    for i in 0..n {
        let lambda = match i % 7 {
            0 => "let %f = fn (%y: int32) { add(%y, %r) };",
            1 => "let %g = fn (%y: int32) { multiply(%y, 3) };",
            // Names two earlier lambdas: one that captures something, and one that does not.
            2 => "let %h = fn (%y: int32) { let %a = %f(%y); let %b = %g(%a); subtract(%b, %x) };",
            3 => {
                "let %k = fn (%y: int32) -> int32 {
                    let %c = less(%y, 1);
                    if (%c) { %r } else { let %d = minimum(%y, 3); let %e = subtract(%d, 1); let %s = %k(%e); add(%s, %x) }
                };"
            }
            // Uses a lambda as a value, and has an alias.
            4 => {
                "let %l = fn (%y: int32) { let %t = (%h, %g); let %u = %t.0; let %v = %u(%y); add(%v, %r) };
                 let %m = %l;"
            }
            5 => "let %o = fn (%y: int32) { let %p = print(%y, %r); %y };",
            _ => "let %p = fn (%y: int32, %q: fn(int32) -> int32) { let %s = %q(%y); add(%s, %r) };",
        };
        let call = ["%f(%r)", "%g(%r)", "%h(%r)", "%k(%r)", "%m(%r)", "%o(%r)", "%p(%r, %h)"][i % 7];
        writeln!(text, "  {lambda}\n  let %r = {call};").expect("strings take any text");
    }
    text + "  %r\n}\n"
}

/// Returns lambdas each of which calls the lambda before it, and has the captures of that lambda.
fn chained(n: usize) -> String {
    let mut text = "def @main(%x: int32) {\n  let %f = fn (%y: int32) { subtract(%y, %x) };\n".to_string();
    for i in 1..n {
        writeln!(text, "  let %f{i} = fn (%y: int32) {{ let %a = %f(%y); add(%a, {i}) }};\n  let %f = %f{i};")
            .expect("strings take any text");
    }
    text + "  %f(3)\n}\n"
}

/// Returns lambdas each of which is in the block of the lambda before it, and is called there.
/// `inner` is the result of the innermost lambda.
fn nested(n: usize, inner: &str, after: &str) -> String {
    let mut text = "def @main(%x: int32) {\n  let %y = %x;\n".to_string();
    for _ in 0..n {
        text.push_str("let %f = fn (%z: int32) {\nlet %v = %y;\nlet %y = %z;\n");
    }
    write!(text, "let %s = {inner};\n%s\n}};\n").expect("strings take any text");
    for _ in 1..n {
        write!(text, "let %t = %f(%y);\n{after}\n}};\n").expect("strings take any text");
    }
    text + "%f(%y)\n}\n"
}

#[test]
fn siblings_keep_their_meaning() {
    keeps_meaning(siblings);
}

#[test]
fn lambdas_that_call_each_other_keep_their_meaning() {
    keeps_meaning(chained);
}

#[test]
fn nested_lambdas_that_capture_nothing_keep_their_meaning() {
    keeps_meaning(|n| nested(n, "multiply(%z, 3)", "add(%t, 1)").replace("let %v = %y;\n", ""));
}

#[test]
fn nested_lambdas_with_a_capture_of_the_innermost_keep_their_meaning() {
    keeps_meaning(|n| nested(n, "multiply(%z, %x)", "add(%t, 1)").replace("let %v = %y;\n", ""));
}

#[test]
fn nested_lambdas_that_each_capture_keep_their_meaning() {
    keeps_meaning(|n| nested(n, "multiply(%z, %v)", "add(%t, %v)"));
}

#[test]
fn nested_lambdas_that_print_keep_their_meaning() {
    keeps_meaning(|n| nested(n, "multiply(%z, %v)", "let %p = print(%t);\nadd(%t, %v)"));
}
