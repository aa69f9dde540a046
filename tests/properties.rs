//! What must hold for every program, on random well-typed ones of the whole language.
//!
//! `ANFORA_CASES=5000` sets how many programs each property is tried on.

use std::sync::Arc;

use anfora::interp::{EvalError, Interpreter, Limits, Outcome, ValueId, Values, random_tensor};
use anfora::ir::{Module, Source, alpha_equal, module_hash, parse_module, verify_module};
use anfora::manager::{Pass, PassContext, PassRegistry, parse_pipeline};
use anfora::programs::Shape;
use proptest::prelude::*;
use proptest::test_runner::Config;

fn cases() -> u32 {
    std::env::var("ANFORA_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(256)
}

fn config() -> Config {
    Config { cases: cases(), failure_persistence: None, ..Config::default() }
}

fn program(size: usize, seed: u64) -> Module {
    let shape: Shape = "random".parse().expect("a shape");
    shape.build(size, seed).expect("random programs are well-typed")
}

/// What `@main` comes to on inputs drawn from a seed.
fn meaning(module: &Module, seed: u64) -> Result<Outcome, EvalError> {
    let main = module.find("main").and_then(|k| module.get(k)).expect("a program has a main");
    let mut values = Values::new();
    let arguments: Vec<ValueId> = main
        .body
        .params()
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let ty = main.body.ty(p.expr());
            let dtype = module.cx.types.as_tensor(ty).expect("inputs are tensors").dtype;
            let shape = module.cx.types.static_shape(ty).expect("inputs have constant shapes");
            values.tensor(random_tensor(dtype, &shape, seed ^ i as u64).expect("small inputs can be drawn"))
        })
        .collect();
    let limits = Limits { steps: 1 << 20, ..Limits::default() };
    Interpreter::new(module).limits(limits).call("main", values, &arguments)
}

fn run(registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) -> bool {
    let passes = parse_pipeline(registry, pipeline).expect("a pipeline of registered passes");
    let context = PassContext::builder().registry(Arc::clone(registry)).opt_level(3).build().expect("an empty context");
    match passes.apply(module, &context) {
        Ok(outcome) => outcome.is_changed(),
        Err(failure) => panic!("{pipeline}: {failure}\n{module}"),
    }
}

fn check(module: &Module, what: &str) {
    if let Err(errors) = verify_module(module) {
        panic!("{what}: {}\n{module}", errors[0]);
    }
}

/// If the program succeeds before, it succeeds after, with the same results and effects, bit for bit.
fn same_meaning(before: &Module, after: &Module, seed: u64, what: &str) {
    let Ok(expected) = meaning(before, seed) else { return };
    match meaning(after, seed) {
        Ok(found) => assert!(expected.same(&found), "{what} changes what the program computes\n{before}\n{after}"),
        Err(e) => panic!("{what} makes the program fail: {e}\n{before}\n{after}"),
    }
}

/// A property about meaning says nothing of a program that fails.
#[test]
fn most_random_programs_succeed_and_exercise_the_language() {
    let mut succeeded = 0;
    let mut text = String::new();
    for seed in 0..200 {
        let module = program(100, seed);
        let outcome = meaning(&module, seed);
        succeeded += usize::from(outcome.is_ok());
        text.push_str(&module.to_text());
    }
    assert!(succeeded >= 190, "{succeeded} of 200 succeed");
    for part in ["dataflow {", "if (", "fn (", "print(", "match_cast(", "@loop(", "nan", "inf", ".0", ".1", "output("] {
        assert!(text.contains(part), "no program has `{part}`");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn programs_verify_run_and_survive_their_text(size in 1usize..120, seed: u64) {
        let module = program(size, seed);
        check(&module, "as built");
        let text = module.to_text();
        let parsed = match parse_module(Source::new("random.anf", text.clone()), anfora::ops::standard()) {
            Ok(m) => m,
            Err(errors) => panic!("{}\n{text}", errors[0]),
        };
        check(&parsed, "as parsed");
        prop_assert_eq!(parsed.to_text(), text);
        prop_assert!(alpha_equal(&module, &parsed));
        prop_assert_eq!(module_hash(&module), module_hash(&parsed));
        same_meaning(&module, &parsed, seed, "printing and parsing");
        let mut compacted = module.clone();
        compacted.compact().expect("no edit is open");
        prop_assert_eq!(compacted.to_text(), module.to_text());
    }

    #[test]
    fn passes_keep_meaning_and_say_what_they_do(size in 1usize..120, seed: u64) {
        let registry = anfora::passes::registry();
        let original = program(size, seed);
        let mut normal = original.clone();
        run(&registry, "ToANormalForm", &mut normal);
        for pass in registry.passes() {
            let name = pass.name();
            let before = if name == "ToANormalForm" { &original } else { &normal };
            let text = before.to_text();
            let mut after = before.clone();
            let changed = run(&registry, name, &mut after);
            check(&after, name);
            let result = after.to_text();
            prop_assert!(changed || result == text, "{} changed what it says it did not", name);
            same_meaning(before, &after, seed, name);
            let mut again = before.clone();
            run(&registry, name, &mut again);
            prop_assert_eq!(&again.to_text(), &result, "{} is not deterministic", name);
            prop_assert!(!run(&registry, name, &mut again), "{} is not idempotent\n{}\n{}", name, result, again);
        }
    }

    #[test]
    fn pipelines_keep_meaning(size in 1usize..150, seed: u64, order in proptest::collection::vec(0usize..4, 1..8)) {
        let registry = anfora::passes::registry();
        let names = ["FoldConstant", "CanonicalizeBindings", "EliminateCommonSubexpr", "DeadCodeElimination"];
        let mut pipeline = String::from("ToANormalForm");
        for i in order {
            pipeline.push(',');
            pipeline.push_str(names[i]);
        }
        let before = program(size, seed);
        for pipeline in [pipeline.as_str(), "O1", "O2", "O3"] {
            let mut after = before.clone();
            run(&registry, pipeline, &mut after);
            check(&after, pipeline);
            same_meaning(&before, &after, seed, pipeline);
        }
    }

    #[test]
    fn a_failing_pass_leaves_the_module_as_it_was(size in 1usize..120, seed: u64) {
        use anfora::manager::{ModulePass, PassError};
        let registry = anfora::passes::registry();
        let mut module = program(size, seed);
        let before = module.to_text();
        let inner = Arc::clone(&registry);
        let failing = ModulePass::new("Failing", 0, move |module, _| {
            let passes = parse_pipeline(&inner, "O2").expect("a named pipeline");
            passes.apply(module, &PassContext::with_registry(Arc::clone(&inner)))?;
            let keys = module.order().to_vec();
            module.remove(&keys[..1]);
            Err(PassError::new("after all that"))
        });
        prop_assert!(failing.apply(&mut module, &PassContext::new()).is_err());
        prop_assert_eq!(module.to_text(), before);
        check(&module, "rolled back");
    }
}
