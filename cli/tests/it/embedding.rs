//! The command line as a library, with passes and operators of its own. `examples/my_passes` tests
//! it as a program.

use anfora::ir::{Arity, OpDef, OpRegistry};
use anfora::manager::{FunctionPass, PassRegistry};
use anfora::onnx::convert::{Conversion, Conversions};
use anfora::ops::loops::map_float;
use anfora::ops::typing::{Elements, elementwise, one};
use anfora::passes::FromRules;
use anfora::visit::rules;
use anfora_cli::{CommandLine, main_with};

use crate::program::{Scratch, anfora, ends};

/// Returns a command line with an operator `own.twice`, a pass that makes it, one that fails and
/// one that is wrong.
fn own() -> CommandLine {
    let mut operators = OpRegistry::clone(&anfora::onnx::registry());
    let twice = OpDef::new("own.twice", "2 * x", Arity::exactly(1), |call| elementwise(call, Elements::Float));
    let twice = twice.kernel(|call| one(map_float(call.operand(0)?, |x| 2.0 * x, |x| 2.0 * x)));
    operators.register(twice).expect("the name is free");
    let mut passes = PassRegistry::clone(&anfora::passes::registry());
    let rules = rules!["add(%x, %x)" => "own.twice(%x)"];
    passes.register_pass(FunctionPass::from_rules("Twice", 1, rules), "finds it").expect("the name is free");
    let broken = FunctionPass::new("Broken", 0, |_, _, _| Err("it never works".into()));
    passes.register_pass(broken, "fails").expect("the name is free");
    let wrong = rules!["subtract(%x, %y)" => "add(%x, %y)"];
    passes
        .register_pass(FunctionPass::from_rules("Wrong", 1, wrong), "takes differences for sums")
        .expect("it is free");
    let mut conversions = Conversions::default();
    conversions.register(Conversion::new("Twice", 1..=1, "own.twice").domain("com.own").same(&[]));
    CommandLine::new("own", "1.2.3").passes(passes).operators(operators).conversions(conversions)
}

/// Runs a command, and asserts the exit status.
#[track_caller]
fn run(arguments: &[&str], status: u8) {
    let all = std::iter::once("own").chain(arguments.iter().copied());
    assert_eq!(main_with(own(), all), status, "{arguments:?}");
}

const TEXT: &str = "def @main(%x: Tensor[(3,), float32]) { let %y = add(%x, %x); exp(%y) }";

#[test]
fn passes_and_operators_of_ones_own_go_through_all_commands() {
    let dir = Scratch::new("embedding");
    let file = dir.file("model.anf", TEXT);
    let (text, model, back, slim) =
        (dir.path("out.anf"), dir.path("out.onnx"), dir.path("back.anf"), dir.path("slim.onnx"));
    run(&["opt", &file, "--passes", "Twice", "--check-meaning", "-o", &text, "--quiet"], 0);
    run(&["convert", &text, "-o", &model], 0);
    run(&["convert", &model, "-o", &back], 0);
    let read = std::fs::read_to_string(&back).expect("it was written");
    assert!(read.contains("let %y = own.twice(%x);"), "{read}");
    run(&["slim", &model, &slim, "--opset", "17", "--quiet"], 0);
    run(&["surgery", "extract", &slim, "--outputs", "y", "-o", &text], 0);
    assert!(std::fs::read_to_string(&text).expect("it was written").contains("own.twice(%x)"));
    // The kernel computes what the standard operators do.
    let (ours, standard) = (dir.path("ours"), dir.path("standard"));
    run(&["run", &model, "-o", &ours], 0);
    run(&["run", &file, "-o", &standard], 0);
    let output = |folder: &str| std::fs::read(std::path::Path::new(folder).join("output_0.npy")).expect("an output");
    assert_eq!(output(&ours), output(&standard));
    run(&["check", &model], 0);
    run(&["plan", &model], 0);
    run(&["diff", &model, &back], 0);
    // The program that has no such operator says so.
    let (_, err) = ends(anfora(&["check", &back]), 1);
    assert!(err.contains("own.twice"), "{err}");
}

#[test]
fn reproducers_of_passes_of_ones_own_are_replayed() {
    let dir = Scratch::new("embedding-replay");
    let (file, reproducer) = (dir.file("model.anf", TEXT), dir.path("failed.anf"));
    run(&["opt", &file, "--passes", "Twice,Broken", "--reproducer", &reproducer, "--emit", "none", "--quiet"], 1);
    run(&["replay", &reproducer], 1);
    let (_, err) = ends(anfora(&["replay", &reproducer]), 1);
    assert!(err.contains("Broken") || err.contains("own.twice"), "{err}");
}

/// A program with a difference, which the pass `Wrong` takes for a sum.
const DIFFERENCE: &str = "def @main(%x: Tensor[(3,), float32], %y: Tensor[(3,), float32]) {
  let %a = exp(%x);
  let %b = subtract(%a, %y);
  let %c = tanh(%b);
  add(%c, %x)
}";

#[test]
fn wrong_passes_of_ones_own_are_found_in_texts_and_models() {
    let dir = Scratch::new("embedding-wrong");
    let text = dir.file("model.anf", DIFFERENCE);
    let model = dir.path("model.onnx");
    run(&["convert", &text, "-o", &model], 0);
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    for file in [&text, &model] {
        let [found, smallest, reproducer, page] =
            ["found.anf", "smallest.anf", "reproducer.anf", "page.html"].map(|name| dir.path(name));
        run(&["bisect", file, "--passes", "Wrong", "-o", &found, "--quiet"], 0);
        run(&["replay", &found], 1);
        run(&["reduce", file, "--miscompiles", "Wrong", "-o", &smallest, "--reproducer", &reproducer, "--quiet"], 0);
        let bindings = read(&smallest).lines().filter(|line| line.trim_start().starts_with("let ")).count();
        assert!(bindings <= 1, "{}", read(&smallest));
        assert!(read(&smallest).contains("subtract"), "{}", read(&smallest));
        run(&["replay", &reproducer], 1);
        run(&["opt", file, "--passes", "Wrong", "--report", &page, "--emit", "none", "--quiet"], 0);
        assert!(read(&page).contains("subtract(%x, %y) ="), "the page names the rule");
    }
}
