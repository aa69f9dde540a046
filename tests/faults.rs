//! Faults of passes are found and reduced: the passes of `broken_passes` on random programs, and
//! one wrong binding among very many.
//!
//! `ANFORA_BINDINGS=100000` sets the size of the large program, and `ANFORA_CASES=10` the number of
//! random programs.

mod broken_passes;
mod random_programs;

use std::sync::Arc;

use anfora::bisect::{BisectError, Judgement, bisect};
use anfora::ir::{Counts, Module, PrintOptions, Source, parse_module, verify_module, write_module};
use anfora::manager::{
    Pass, PassContext, PassContextBuilder, PassEntry, PassRegistry, ReproducerFile, Sequential, Verdict, Verification,
    parse_pipeline,
};
use anfora::onnx::{ExportOptions, ImportOptions};
use anfora::passes::CheckMeaning;
use anfora::reduce::{ReduceError, ReduceOptions, reduce, reduce_failure};
use broken_passes::Broken;
use random_programs::checking::{Program, Why};

/// Returns a context that interprets the program after each pass.
fn checking(registry: &Arc<PassRegistry>) -> PassContextBuilder {
    PassContext::builder()
        .registry(Arc::clone(registry))
        .opt_level(3)
        .verification(Verification::AfterEachPass)
        .print_to(std::io::sink())
        .instrument(Arc::new(CheckMeaning::new()))
}

/// Returns the names of the passes that a broken pass consists of. If one is a wrong edit before or
/// after a registered pass, it is the only one that can be found.
fn culprits(pass: &dyn Pass) -> Vec<String> {
    let (mut names, mut work) = (Vec::new(), vec![pass]);
    while let Some(pass) = work.pop() {
        match pass.passes() {
            [] => names.push(pass.info().name.clone()),
            parts => work.extend(parts.iter().map(|part| &**part)),
        }
    }
    let edits: Vec<String> = names.iter().filter(|name| *name == "Edit").cloned().collect();
    if edits.is_empty() { names } else { edits }
}

/// Returns the passes that change what programs compute.
fn miscompiling() -> Vec<Broken> {
    let changes = |why: &Why| matches!(why, Why::OtherResult | Why::OtherEffects);
    broken_passes::all().into_iter().filter(|broken| broken.why.iter().all(changes)).collect()
}

/// Returns a random program on which the pipeline fails, from a seed on.
fn failing_program(passes: &dyn Pass, context: &dyn Fn() -> PassContextBuilder, seed: u64) -> Option<Program> {
    (0..400).map(|i| Program::new(20 + (i % 5) * 20, seed * 1000 + i as u64)).find(|program| {
        let cx = context().build().expect("a context");
        passes.apply(&mut program.normal.clone(), &cx).is_err()
    })
}

#[test]
fn broken_passes_are_found_on_random_programs() {
    let registry = anfora::passes::registry();
    let broken = miscompiling();
    let context = || checking(&registry);
    let (mut found, mut in_functions, mut bindings) = (0u64, 0, Vec::new());
    let seeds = anfora_testing::cases(5) as u64;
    for seed in 0..seeds {
        let Broken { of, mistake, make, .. } = &broken[seed as usize * 7 % broken.len()];
        let what = format!("seed {seed}, {of} that {mistake}");
        let pass = make();
        let culprits = culprits(&*pass);
        let right: Arc<dyn Pass> = registry.make("DeadCodeElimination").expect("a registered pass");
        let after: Arc<dyn Pass> = registry.make("CanonicalizeBindings").expect("a registered pass");
        let passes = Sequential::new(vec![right, pass, after]).expect("it does not nest deep");
        let program = failing_program(&passes, &context, seed).unwrap_or_else(|| panic!("{what}: no program fails"));
        // The first wrong rewrite is one of the broken pass.
        let wrong = bisect(&program.normal, &passes, &context, &mut |_| Judgement::Right, &mut |_| true);
        let wrong = wrong.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(culprits.iter().any(|name| name == wrong.pass()), "{what}: {} is found", wrong.pass());
        assert!(wrong.is_exact(), "{what}: {wrong:?}");
        let rewrite = wrong.rewrite.as_ref().unwrap_or_else(|| panic!("{what}: no rewrite is found"));
        assert!(rewrite.number >= 1 && rewrite.number <= wrong.total, "{what}: {rewrite:?}");
        // A pass over the whole module makes rewrites that are in no function. Others are in a
        // function of the program, or in one that the passes have made.
        let mut made = program.normal.clone();
        let plain = PassContext::builder().registry(registry.clone()).build().expect("a context");
        let _ = passes.apply(&mut made, &plain);
        let is_function = |name: &str| program.normal.find(name).or_else(|| made.find(name)).is_some();
        assert!(rewrite.function.as_deref().is_none_or(is_function), "{what}: {rewrite:?}");
        in_functions += usize::from(rewrite.function.is_some());
        // A small program fails in the same way.
        let reduced = reduce_failure(&program.normal, &passes, &context, &ReduceOptions::default(), &mut |_| true);
        let reduced = reduced.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(
            culprits.iter().any(|name| name == reduced.failing.failure.pass()),
            "{what}: {}",
            reduced.failing.failure
        );
        let counts = reduced.reduced.after;
        assert!(reduced.reduced.is_minimal && counts.bindings <= 12, "{what}: {}", reduced.reduced.module);
        bindings.push(counts.bindings);
        found += 1;
    }
    assert_eq!(found, seeds);
    assert!(in_functions as u64 * 2 >= seeds, "{in_functions} of {seeds} rewrites are in a function");
    bindings.sort_unstable();
    assert!(bindings[bindings.len() / 2] <= 4, "the numbers of bindings that are left are {bindings:?}");
}

/// The rule of [`wrong_pass`].
const WRONG_RULE: &str = "subtract(%x, %y) => add(%x, %y)";

/// Returns the broken pass that takes a difference for a sum. It has the name of SimplifyExpr.
fn wrong_pass() -> Arc<dyn Pass> {
    let takes_for_sum = |broken: &Broken| broken.mistake == "takes a difference for a sum";
    let broken = broken_passes::all().into_iter().find(takes_for_sum).expect("one of the broken passes");
    (broken.make)()
}

/// Returns a registry with the wrong pass in the place of SimplifyExpr.
fn registry_with_wrong_pass() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    let make = |_: &anfora::manager::Options| Ok(wrong_pass());
    let wrong = PassEntry { name: "SimplifyExpr", doc: "for tests", opt_level: 1, options: &[], configs: &[], make };
    for entry in [anfora::passes::CANONICALIZE_BINDINGS, anfora::passes::DEAD_CODE_ELIMINATION, wrong] {
        registry.register(entry).expect("a new name");
    }
    Arc::new(registry)
}

/// Returns a program of `bindings` bindings, each of which uses two others, with one that the wrong
/// pass miscompiles.
fn large(bindings: usize) -> Module {
    let mut text = String::from("def @main(%x: Tensor[(4,), float32], %y: Tensor[(4,), float32]) {\n");
    let name = |i: usize| match i {
        0 => "x".to_string(),
        1 => "y".to_string(),
        i => format!("v{i}"),
    };
    for i in 2..bindings + 2 {
        let op = match i {
            _ if i == bindings * 61 / 100 => "subtract",
            _ if i % 3 == 0 => "minimum",
            _ => "maximum",
        };
        text.push_str(&format!("  let %{} = {op}(%{}, %{});\n", name(i), name(i - 1), name(i - 1 - i % 2)));
    }
    text.push_str(&format!("  %{}\n}}\n", name(bindings + 1)));
    let mut module = parse_module(Source::new("large", text), anfora::onnx::registry()).expect("a program");
    module.set_source(None);
    module
}

fn size() -> usize {
    std::env::var("ANFORA_BINDINGS").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000)
}

/// Checks that the one wrong binding is found, and that the program is reduced to a few bindings,
/// which a reproducer runs.
fn one_of_many_is_found(module: &Module) {
    let registry = registry_with_wrong_pass();
    let passes =
        parse_pipeline(&registry, "CanonicalizeBindings,SimplifyExpr,DeadCodeElimination").expect("a pipeline");
    let context = || checking(&registry);
    let found = bisect(module, &passes, &context, &mut |_| Judgement::Right, &mut |_| true).expect("the wrong rewrite");
    let rewrite = found.rewrite.as_ref().expect("it is a rewrite");
    assert_eq!(
        (&*rewrite.pass, rewrite.function.as_deref(), &*rewrite.why),
        ("SimplifyExpr", Some("main"), WRONG_RULE)
    );
    assert!(found.tries < 40, "{}", found.tries);
    let mut smaller = Vec::new();
    let reduced = reduce_failure(module, &passes, &context, &ReduceOptions::default(), &mut |step| {
        if step.is_smaller {
            smaller.push((step.tests, Counts::of_module(step.best).bindings));
        }
        true
    });
    let reduced = reduced.expect("the pipeline fails");
    assert_eq!(reduced.pipeline, "SimplifyExpr");
    assert!(reduced.reduced.after.bindings <= 5, "{smaller:?}\n{}", reduced.reduced.module);
    assert!(reduced.reduced.tests < 500, "{} tests: {smaller:?}", reduced.reduced.tests);
    verify_module(&reduced.reduced.module).expect("it is well-formed");
    // Both end with a reproducer.
    for text in [found.reproducer(), reduced.failing.reproducer()] {
        let text = text.expect("a pass ran");
        let file = ReproducerFile::parse(Source::new("left.anf", text)).expect("a reproducer");
        let replay = file.run(&registry, anfora::onnx::registry(), &[Arc::new(CheckMeaning::new())]).expect("it runs");
        assert_eq!((replay.verdict, file.pass()), (Verdict::FailedAsRecorded, "SimplifyExpr"));
    }
}

#[test]
fn one_wrong_binding_of_many_is_found_in_text() {
    let module = large(size());
    let mut text = Vec::new();
    write_module(&module, &PrintOptions::default(), &mut text).expect("memory");
    let text = String::from_utf8(text).expect("text");
    let mut module = parse_module(Source::new("large", text), anfora::onnx::registry()).expect("a program");
    module.set_source(None);
    one_of_many_is_found(&module);
}

#[test]
fn one_wrong_binding_of_many_is_found_in_onnx() {
    let exported = anfora::onnx::export_model(&large(size()), &ExportOptions::default()).expect("a model");
    let mut bytes = Vec::new();
    exported.model.write_to(&mut bytes).expect("memory");
    let module = anfora::onnx::import(bytes.into(), &ImportOptions::default()).expect("a model").module;
    one_of_many_is_found(&module);
    // The result can be written as a model again, if that is asked for.
    let registry = registry_with_wrong_pass();
    let is_allowed = |module: &Module| anfora::onnx::export_model(module, &ExportOptions::default()).is_ok();
    let options = ReduceOptions { is_allowed: &is_allowed, ..ReduceOptions::default() };
    let reduced = reduce_failure(&module, &*wrong_pass(), &|| checking(&registry), &options, &mut |_| true);
    assert!(is_allowed(&reduced.expect("the pass fails").reduced.module));
}

/// Returns a small program with branches, a function, a constant and effects.
fn small() -> Module {
    let text = "def @main(%x: Tensor[(6, 4), float32], %n: int64) -> (Tensor[(6, 4), float32], float32) {
  let %c = less(%n, 3i64);
  let %w = if (%c) {
    let %a = tanh(%x);
    let %b = @scale(%a);
    subtract(%b, dense<Tensor[(4,), float32]>[1, 2, 3, 4])
  } else {
    let %p = print(%x);
    exp(%x)
  };
  let %s = sum(%w);
  (%w, %s)
}
def private @scale(%x: Tensor[(6, 4), float32]) { multiply(%x, 2f) }
def private @unused(%x: float32) -> float32 { @unused(%x) }";
    parse_module(Source::new("small", text), anfora::ops::standard()).expect("a program")
}

#[test]
fn every_kind_of_part_is_removed() {
    let mut has_subtract = |module: &Module| module.to_text().contains("subtract");
    let reduced = reduce(&small(), &mut has_subtract, &ReduceOptions::default(), &mut |_| true).expect("it holds");
    let text = reduced.module.to_text();
    assert!(reduced.is_minimal && reduced.before.bindings > 5, "{text}");
    assert_eq!(reduced.after, Counts { functions: 1, calls: 1, depth: 1, ..Counts::default() }, "{text}");
    assert!(!text.contains("6") && !text.contains("4,"), "extents are small\n{text}");
}

/// Casts bind symbols, so they stay if nothing uses their values.
#[test]
fn casts_are_removed() {
    let text = "def @main(%x: Tensor[(?,), float32], %y: float32) {
        let %c = match_cast(%x, to=Tensor[(k,), float32]);
        let %d = match_cast(%c, to=Tensor[(3,), float32]);
        let %e = zeros(shape=shape(k), dtype=float32);
        let %t = tanh(%y);
        (%t, %e)
    }";
    let module = parse_module(Source::new("casts", text), anfora::ops::standard()).expect("a program");
    let mut has_tanh = |module: &Module| module.to_text().contains("tanh");
    let reduced = reduce(&module, &mut has_tanh, &ReduceOptions::default(), &mut |_| true).expect("it holds");
    assert_eq!((reduced.after.bindings, reduced.after.calls), (0, 1), "{}", reduced.module);
}

/// In a graph, nothing removes unused bindings but the search itself.
#[test]
fn unused_bindings_of_graphs_are_removed() {
    let text = "def private @h() {
        let %v = (1f, (0i64, 2f));
        let %known = greater_equal(1i64, 0i64);
        let %extents = sum(shape_of(dense<Tensor[(1, 1), float32]>[0]));
        let %cast = match_cast(dense<Tensor[(1,), float32]>[0], to=Tensor[(k,), float32]);
        1f
    }
    def @main() { @h() }";
    let module = parse_module(Source::new("graph", text), anfora::ops::standard()).expect("a program");
    let registry = anfora::passes::registry();
    let passes = parse_pipeline(&registry, "FoldConstant").expect("a pipeline");
    let context = || PassContext::builder().registry(registry.clone());
    let reduced = reduce_failure(&module, &passes, &context, &ReduceOptions::default(), &mut |_| true);
    let reduced = reduced.expect("it is not in A-normal form").reduced;
    assert_eq!(reduced.after.bindings, 1, "{}", reduced.module);
}

#[test]
fn graphs_are_reduced_too() {
    let text = "def @main(%x: float32) { let %a = add(exp(tanh(%x)), exp(%x)); multiply(negative(%a), exp(%a)) }";
    let module = parse_module(Source::new("graph", text), anfora::ops::standard()).expect("a program");
    // The fault is visible only in a graph.
    let mut is_nested = |module: &Module| module.to_text().contains("exp(tanh(");
    let reduced = reduce(&module, &mut is_nested, &ReduceOptions::default(), &mut |_| true).expect("it holds");
    assert_eq!(reduced.after.calls, 2, "{}", reduced.module);
}

#[test]
fn an_interrupted_search_keeps_the_best_so_far() {
    let mut tests = 0;
    let mut has_subtract = |module: &Module| module.to_text().contains("subtract");
    let reduced = reduce(&small(), &mut has_subtract, &ReduceOptions::default(), &mut |step| {
        tests = step.tests;
        step.tests < 6
    });
    let reduced = reduced.expect("it holds");
    assert!(!reduced.is_minimal && reduced.tests == tests && tests <= 7);
    assert!(reduced.module.to_text().contains("subtract"));
    let options = ReduceOptions { most_tries: 3, ..ReduceOptions::default() };
    assert!(!reduce(&small(), &mut has_subtract, &options, &mut |_| true).expect("it holds").is_minimal);
}

#[test]
fn programs_without_the_fault_are_refused() {
    let registry = registry_with_wrong_pass();
    let context = || checking(&registry);
    let module = parse_module(Source::new("right", "def @main(%x: float32) { exp(%x) }"), anfora::ops::standard());
    let module = module.expect("a program");
    assert!(reduce(&module, &mut |_| false, &ReduceOptions::default(), &mut |_| true).is_none());
    let reduced = reduce_failure(&module, &*wrong_pass(), &context, &ReduceOptions::default(), &mut |_| true);
    assert!(matches!(reduced, Err(ReduceError::NeverFails)));
    let found = bisect(&module, &*wrong_pass(), &context, &mut |_| Judgement::Right, &mut |_| true);
    assert!(matches!(found, Err(BisectError::NeverWrong)));
    let found = bisect(&module, &*wrong_pass(), &context, &mut |_| Judgement::Wrong, &mut |_| true);
    assert!(matches!(found, Err(BisectError::WrongBefore)));
    let found = bisect(&module, &*wrong_pass(), &context, &mut |_| Judgement::Wrong, &mut |_| false);
    assert!(matches!(found, Err(BisectError::Ended)));
    let found = bisect(&module, &*wrong_pass(), &context, &mut |_| Judgement::Undecided, &mut |_| true);
    assert!(matches!(found, Err(BisectError::ResultUndecided)));
}

#[test]
fn a_pass_that_fails_without_a_wrong_rewrite_is_named() {
    let registry = anfora::passes::registry();
    let passes = parse_pipeline(&registry, "O1,BindParams{function=main,params=\"%y=1f\"},O1").expect("a pipeline");
    let found =
        bisect(&small(), &passes, &|| checking(&registry), &mut |_| Judgement::Right, &mut |_| true).expect("it fails");
    assert_eq!((found.pass(), found.rewrite.is_none(), found.total > 0), ("BindParams", true, true));
    let text = found.reproducer().expect("the pass ran");
    let file = ReproducerFile::parse(Source::new("left.anf", text)).expect("a reproducer");
    assert_eq!(file.run(&registry, anfora::ops::standard(), &[]).unwrap().verdict, Verdict::FailedAsRecorded);
    // It fails on a program with nothing but the function.
    let reduced =
        reduce_failure(&small(), &passes, &|| checking(&registry), &ReduceOptions::default(), &mut |_| true).unwrap();
    assert_eq!((&*reduced.failing.failure.pass().to_string(), reduced.reduced.after.calls), ("BindParams", 0));
}

/// Returns a program with multiplications by one, and a pipeline that removes them one by one.
fn with_multiplications(count: usize) -> (Module, Sequential) {
    let name = |i: usize| if i == 0 { "x".to_string() } else { format!("v{i}") };
    let lines: String =
        (1..=count).map(|i| format!("let %{} = multiply(tanh(%{}), 1f);\n", name(i), name(i - 1))).collect();
    let text = format!("def @main(%x: float32) {{ {lines} %{} }}", name(count));
    let module = parse_module(Source::new("text", text), anfora::ops::standard()).expect("a program");
    let passes = parse_pipeline(&anfora::passes::registry(), "ToANormalForm,SimplifyExpr").expect("a pipeline");
    (module, passes)
}

/// The test cannot decide some states: the search goes around them, and says what is left.
#[test]
fn states_that_cannot_be_judged_are_skipped() {
    let (module, passes) = with_multiplications(42);
    let registry = anfora::passes::registry();
    let context = || PassContext::builder().registry(registry.clone());
    let total = {
        let mut all = Module::clone(&module);
        let cx = context().build().expect("a context");
        passes.apply(&mut all, &cx).expect("it runs");
        assert_eq!(all.to_text().matches("multiply").count(), 0);
        42
    };
    let left = |module: &Module| module.to_text().matches("multiply").count();
    // The program is wrong from the 17th removal on.
    let search = |undecided: &dyn Fn(usize) -> bool| {
        let mut judge = |module: &Module| match total - left(module) {
            removed if undecided(removed) => Judgement::Undecided,
            removed if removed >= 17 => Judgement::Wrong,
            _ => Judgement::Right,
        };
        let mut last = None;
        let found = bisect(&module, &passes, &context, &mut judge, &mut |step| {
            last = step.found.cloned();
            true
        });
        let (found, last) = (found.expect("it is wrong"), last.expect("a wrong state"));
        // An interrupted search has the same answer, with a reproducer.
        assert_eq!((last.right, last.wrong), (found.right, found.wrong));
        assert_eq!(last.reproducer(), found.reproducer());
        found
    };
    let exact = search(&|_| false);
    assert!(exact.is_exact() && exact.undecided == 0);
    // Every third state is decided, and so are those around the border.
    let some = search(&|removed| removed % 3 != 0 && !(16..=17).contains(&removed));
    assert!(some.is_exact() && some.undecided > 0, "{some:?}");
    assert_eq!(some.rewrite, exact.rewrite);
    // Those around the border are not decided.
    let around = search(&|removed| (15..=20).contains(&removed));
    assert!(!around.is_exact() && around.undecided >= 6, "{around:?}");
    assert!(around.right < exact.right + 1 && around.wrong > exact.wrong, "{around:?}");
    assert!(around.tries < 40, "{around:?}");
    let left_after = |module: &Module, passes: &dyn Pass, limit: u64| {
        let mut module = module.clone();
        let cx = context().limit_rewrites(limit).build().expect("a context");
        passes.apply(&mut module, &cx).expect("it runs");
        total - left(&module)
    };
    assert_eq!((left_after(&module, &passes, around.right), left_after(&module, &passes, around.wrong)), (14, 21));
}

/// A program that changes what it computes in the third rewrite, by a test of the result.
#[test]
fn a_test_of_the_result_finds_the_rewrite() {
    let text = "def @main(%x: float32, %y: float32) {
        let %a = add(%x, 0f);
        let %b = multiply(%a, 1f);
        let %c = exp(%b);
        let %d = multiply(%c, 1f);
        %d
    }";
    let module = parse_module(Source::new("text", text), anfora::ops::standard()).expect("a program");
    let registry = anfora::passes::registry();
    let context = || PassContext::builder().registry(registry.clone());
    let passes = parse_pipeline(&registry, "CanonicalizeBindings,SimplifyExpr").expect("a pipeline");
    let is_wrong = |module: &Module| !module.to_text().contains("%d = multiply");
    let mut judge = |module: &Module| if is_wrong(module) { Judgement::Wrong } else { Judgement::Right };
    let mut steps = Vec::new();
    let found = bisect(&module, &passes, &context, &mut judge, &mut |step| {
        steps.push(step.limit);
        true
    });
    let found = found.expect("the rewrite");
    let rewrite = found.rewrite.as_ref().expect("it is a rewrite");
    assert_eq!((&*rewrite.pass, rewrite.binding.as_deref()), ("SimplifyExpr", Some("d")));
    assert!(found.failure.is_none() && steps.len() as u64 == found.tries);
    // The reproducer makes just as many rewrites.
    let file = ReproducerFile::parse(Source::new("left.anf", found.reproducer().unwrap())).expect("a reproducer");
    let replay = file.run(&registry, anfora::ops::standard(), &[]).expect("it runs");
    assert!(replay.verdict == Verdict::Passed && is_wrong(&replay.module), "{}", replay.module);
}
