//! The number of allocations of the stages: far fewer than one per binding, a few for each function
//! that a pass makes, and few for each of many small functions. The allocator counts them, and
//! counts growth of what is allocated too.

use std::alloc::System;
use std::sync::Arc;

use anfora::ir::{Module, PrintOptions, Source, alpha_equal, module_hash, parse_module, verify_module, write_module};
use anfora::manager::{Pass, PassContext, PassRegistry, Verification, parse_pipeline};
use anfora_testing::programs::Shape;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of bindings of the benchmark program in these tests.
const BINDINGS: usize = 40_000;

/// The number of functions in a module of small functions.
const FUNCTIONS: usize = 2_000;

/// A function with three lambdas: the first captures a variable, the second has the captures of the
/// first, and the third captures nothing.
const SMALL_LAMBDAS: &str = "def @main(%x: int32) {
    let %f = fn (%y: int32) { add(%y, %x) };
    let %g = fn (%y: int32) { let %a = %f(%y); multiply(%a, %y) };
    let %h = fn (%y: int32) { negative(%y) };
    let %a = %g(%x);
    %h(%a)
}
";

/// The number of allocations that a stage may make, however small the program: for tables that
/// grow, the context and the pipeline.
const OVERHEAD: usize = 300;

/// Runs `work`. Returns the number of its allocations, and its result.
fn counted<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATOR.stats();
    let result = work();
    let after = ALLOCATOR.stats();
    let new = after.allocations - before.allocations + after.reallocations - before.reallocations;
    (new, result)
}

fn built(shape: &str, size: usize) -> Module {
    shape.parse::<Shape>().expect("a shape").build(size, 0).expect("shapes are well-typed")
}

fn parsed(text: &str) -> Module {
    match parse_module(Source::new("chain.anf", text), anfora::ops::standard()) {
        Ok(module) => module,
        Err(errors) => panic!("{}", errors[0]),
    }
}

fn run(registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) {
    run_on(1, registry, pipeline, module);
}

fn run_on(threads: usize, registry: &Arc<PassRegistry>, pipeline: &str, module: &mut Module) {
    let pipeline = parse_pipeline(registry, pipeline).expect("a pipeline of registered passes");
    let context = PassContext::builder().registry(registry.clone()).opt_level(3).verification(Verification::Off);
    let context = context.threads(threads).build().expect("an empty context");
    if let Err(failure) = pipeline.apply(module, &context) {
        panic!("{failure}");
    }
}

/// All checks are one test, since the allocations of a second thread would be counted too.
#[test]
fn allocations_are_few() {
    let registry = anfora::passes::registry();
    stages_allocate_much_less_than_once_a_binding(&registry);
    passes_that_make_functions_allocate_a_few_times_for_each(&registry);
    small_functions_share_the_memory_of_tables(&registry);
}

fn stages_allocate_much_less_than_once_a_binding(registry: &Arc<PassRegistry>) {
    let text = built("chain", BINDINGS).to_text();
    let mut failures = Vec::new();
    // The bound is in allocations per hundred bindings.
    let mut check = |stage: &str, bound: usize, allocations: usize| {
        println!("{stage}: {allocations} allocations");
        if allocations > OVERHEAD + BINDINGS / 100 * bound {
            failures.push(format!("{stage} allocates {allocations} times for {BINDINGS} bindings"));
        }
    };

    let (allocations, mut module) = counted(|| parsed(&text));
    check("parsing", 0, allocations);
    let (allocations, result) = counted(|| verify_module(&module).map(drop));
    check("verifying", 0, allocations);
    result.expect("what is parsed is well-formed");
    let (allocations, result) = counted(|| write_module(&module, &PrintOptions::default(), &mut std::io::sink()));
    // The allocations are the texts of the 1,024 constants.
    check("printing", 6, allocations);
    result.expect("a sink takes everything");
    let (allocations, _) = counted(|| module_hash(&module));
    check("hashing", 0, allocations);
    let (allocations, copy) = counted(|| module.clone());
    check("cloning", 0, allocations);
    let (allocations, equal) = counted(|| alpha_equal(&module, &copy));
    check("comparing", 0, allocations);
    assert!(equal, "a copy is equal");

    // A tenth of the bindings are folded, each to a constant with a tensor of its own.
    for (pass, bound) in
        [("FoldConstant", 40), ("CanonicalizeBindings", 0), ("EliminateCommonSubexpr", 0), ("DeadCodeElimination", 0)]
    {
        let (allocations, ()) = counted(|| run(registry, pass, &mut module));
        check(pass, bound, allocations);
    }
    let (allocations, result) = counted(|| module.compact().map(drop));
    check("compacting", 0, allocations);
    result.expect("no edit is open");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn passes_that_make_functions_allocate_a_few_times_for_each(registry: &Arc<PassRegistry>) {
    // The bound is in allocations per function that is made. Half an allocation more is for lists
    // that are longer than most.
    for (pass, shape, size, bound) in [
        ("FuseOps", "chain", BINDINGS, 6),
        ("LambdaLifting", "siblings", BINDINGS / 4, 6),
        ("LambdaLifting", "nested-fn", 5000, 6),
    ] {
        let mut module = built(shape, size);
        let before = module.order().len();
        let (allocations, ()) = counted(|| run(registry, pass, &mut module));
        let made = module.order().len() - before;
        println!("{pass} on {shape}: {allocations} allocations for {made} functions");
        assert!(made > 1000, "{pass} makes functions of {shape}");
        assert!(
            allocations <= OVERHEAD + bound * made + made / 2,
            "{pass} on {shape} allocates {allocations} times for {made} functions"
        );
    }
}

fn small_functions_share_the_memory_of_tables(registry: &Arc<PassRegistry>) {
    let one = built("chain", 100).to_text();
    let text: String = (0..FUNCTIONS).map(|i| one.replace("@main", &format!("@f{i}"))).collect();
    let chains = parsed(&text);
    let lambdas =
        parsed(&(0..FUNCTIONS).map(|i| SMALL_LAMBDAS.replace("@main", &format!("@f{i}"))).collect::<String>());
    // The bound is in allocations per function. LambdaLifting makes three functions of each. For
    // O2, 28 allocations are for the 14 constants that are folded, and 36 for the journals of its
    // seven passes.
    let rows = [
        ("O2", &chains, 1, 80),
        ("O2", &chains, 2, 96),
        ("FuseOps", &chains, 1, 22),
        ("SimplifyExpr", &chains, 1, 3),
        ("LambdaLifting", &lambdas, 1, 38),
    ];
    // The rules of SimplifyExpr are read once.
    run(registry, "SimplifyExpr", &mut built("chain", 1));
    for (pipeline, module, threads, bound) in rows {
        let mut module = module.clone();
        let (allocations, ()) = counted(|| run_on(threads, registry, pipeline, &mut module));
        println!("{pipeline} on {threads} threads: {allocations} allocations for {FUNCTIONS} functions");
        assert!(
            allocations <= OVERHEAD + bound * FUNCTIONS,
            "{pipeline} on {threads} threads allocates {allocations} times for {FUNCTIONS} functions"
        );
    }
}
