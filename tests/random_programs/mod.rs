//! Random programs for properties, and checks that all properties share.
//!
//! A property that fails shows its smallest program: size, seed and text. `ANFORA_CASES=5000` sets
//! the number of programs for each property. `PROPTEST_RNG_SEED=7` chooses other programs; without
//! it, each run takes the same programs (`.cargo/config.toml`).

#![allow(dead_code, reason = "each test binary uses part of it")]

pub(crate) mod checking;
pub(crate) mod inputs;
pub(crate) mod widened;

use std::sync::Arc;

use anfora::ir::{FunctionKey, Module, Source, parse_module, verify_module};
use anfora::manager::{Pass, PassRegistry, parse_pipeline};
use anfora_testing::programs::{Random, Vocabulary};
use proptest::strategy::Strategy;
use proptest::test_runner::Config;

#[allow(unused_imports, reason = "each test binary uses part of it")]
pub(crate) use inputs::{arguments, call_main, meaning};

pub(crate) fn config() -> Config {
    Config { cases: anfora_testing::cases(8) as u32, failure_persistence: None, ..Config::default() }
}

/// Returns programs of the whole language.
pub(crate) fn programs(sizes: std::ops::Range<usize>) -> impl Strategy<Value = Random> {
    Random::strategy(Vocabulary::Whole, sizes)
}

/// Returns the program in A-normal form.
pub(crate) fn normal(random: &Random) -> Module {
    let mut module = random.module();
    run(&anfora::passes::registry(), "ToANormalForm", &mut module);
    module
}

/// Returns the functions that have a body.
pub(crate) fn definitions(module: &Module) -> Vec<FunctionKey> {
    module.functions().filter(|(_, f)| f.is_definition()).map(|(key, _)| key).collect()
}

/// Asserts that a program that succeeds before also succeeds after, with the same results and
/// effects, bit for bit.
pub(crate) fn same_meaning(before: &Module, after: &Module, seed: u64, what: &str) {
    let Ok(expected) = meaning(before, seed) else { return };
    match meaning(after, seed) {
        Ok(found) => assert!(expected.same(&found), "{what} changes what the program computes\n{before}\n{after}"),
        Err(e) => panic!("{what} makes the program fail: {e}\n{before}\n{after}"),
    }
}

/// Runs a pipeline. Returns true if it changed the module.
pub(crate) fn run(registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) -> bool {
    let passes = parse_pipeline(registry, pipeline).expect("a pipeline of registered passes");
    let context = checking::context(registry);
    match passes.apply(module, &context) {
        Ok(outcome) => outcome.is_changed(),
        Err(failure) => panic!("{pipeline}: {failure}\n{module}"),
    }
}

pub(crate) fn check(module: &Module, what: &str) {
    if let Err(errors) = verify_module(module) {
        panic!("{what}: {}\n{module}", errors[0]);
    }
}

/// Parses a text.
pub(crate) fn parse(text: &str) -> Module {
    match parse_module(Source::new("random.anf", text), anfora::ops::standard()) {
        Ok(module) => module,
        Err(errors) => panic!("{}\n{text}", errors[0]),
    }
}
