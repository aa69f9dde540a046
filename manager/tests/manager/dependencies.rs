//! Passes that depend on other passes.

use std::sync::Arc;

use anfora_ir::Module;
use anfora_manager::{
    Declare, ModulePass, Outcome, Pass, PassContext, PassFailure, PassInfo, PassKind, PassRegistry, Sequential,
    parse_pipeline, register_pass,
};
use anfora_testing::on_small_stack;

use crate::support::{Log, Mischief, Recorder, bump, bumps, empty_module, idle};

/// Returns the passes that ran, in order, and the outcome.
fn run(
    pass: impl Pass + 'static,
    passes: Vec<ModulePass>,
    disabled: &[&str],
) -> (Vec<String>, Result<Outcome, PassFailure>) {
    run_with(pass, passes, disabled, Mischief::None)
}

fn run_with(
    pass: impl Pass + 'static,
    passes: Vec<ModulePass>,
    disabled: &[&str],
    mischief: Mischief,
) -> (Vec<String>, Result<Outcome, PassFailure>) {
    let mut registry = PassRegistry::new();
    for pass in passes {
        registry.register_pass(pass, "").unwrap();
    }
    let log = Log::default();
    let builder = PassContext::builder().registry(Arc::new(registry)).instrument(Recorder::with("i", &log, mischief));
    let cx = disabled.iter().fold(builder, |b, d| b.disable(*d)).build().unwrap();
    let result = pass.apply(&mut empty_module(), &cx);
    let ran = log.take().into_iter().filter_map(|e| e.strip_prefix("i before ").map(str::to_string)).collect();
    (ran, result)
}

#[test]
fn dependencies_run_first_and_theirs_before_them() {
    let (ran, result) = run(
        idle("a", 0).requiring(["b", "c"]),
        vec![idle("b", 0).requiring(["d"]), idle("c", 0).requiring(["d", "b"]), idle("d", 0)],
        &[],
    );
    assert_eq!(ran, ["d", "b", "c", "a"]);
    assert_eq!(result.unwrap(), Outcome::Unchanged);
}

#[test]
fn what_a_dependency_changed_counts() {
    let (_, result) = run(idle("a", 0).requiring(["b"]), vec![bump("b")], &[]);
    assert_eq!(result.unwrap(), Outcome::Changed);
}

#[test]
fn dependencies_ignore_the_level() {
    let (ran, _) = run(idle("a", 2).requiring(["b"]), vec![idle("b", 9)], &[]);
    assert_eq!(ran, ["b", "a"]);
}

#[test]
fn dependencies_of_a_pass_that_does_not_run_do_not_run() {
    let (ran, result) = run(idle("a", 3).requiring(["b"]), vec![idle("b", 0)], &[]);
    assert!(result.unwrap().is_skipped());
    assert_eq!(ran, [""; 0]);
    let (ran, result) = run_with(idle("a", 0).requiring(["b"]), vec![idle("b", 0)], &[], Mischief::Veto);
    assert!(result.unwrap().is_skipped());
    assert_eq!(ran, [""; 0]);
}

#[test]
fn a_disabled_dependency_is_an_error_that_names_both() {
    let (ran, result) = run(idle("a", 0).requiring(["b"]), vec![idle("b", 0)], &["b"]);
    assert_eq!(
        result.unwrap_err().to_string(),
        "pass `a` failed: it depends on `b`, which did not run: it is disabled"
    );
    assert_eq!(ran, [""; 0]);
}

#[test]
fn a_vetoed_dependency_is_an_error_that_names_both() {
    let (_, result) = run_with(idle("a", 0).requiring(["b"]), vec![idle("b", 0)], &[], Mischief::VetoPass("b"));
    assert_eq!(
        result.unwrap_err().to_string(),
        "pass `a` failed: it depends on `b`, which did not run: i did not let it run"
    );
}

#[test]
fn cycles_are_told() {
    let (ran, result) = run(
        idle("a", 0).requiring(["b"]),
        vec![idle("a", 0).requiring(["b"]), idle("b", 0).requiring(["c"]), idle("c", 0).requiring(["b"])],
        &[],
    );
    assert_eq!(result.unwrap_err().to_string(), "pass `a` failed: passes depend on each other: b -> c -> b");
    let (_, result) = run(idle("a", 0).requiring(["a"]), vec![idle("a", 0)], &[]);
    assert_eq!(result.unwrap_err().to_string(), "pass `a` failed: passes depend on each other: a -> a");
    assert_eq!(ran, [""; 0]);
}

#[test]
fn unknown_dependencies_are_told() {
    let (_, result) = run(idle("a", 0).requiring(["Fold"]), vec![idle("Folt", 0)], &[]);
    let said = result.unwrap_err().to_diagnostics()[0].message.clone();
    assert_eq!(
        said,
        "pass `a` failed: `a` depends on `Fold`, which cannot be made: unknown pass `Fold`; did you mean `Folt`? (known: Folt)"
    );
}

#[test]
fn a_failing_dependency_fails_the_pass() {
    let fails = ModulePass::new("b", 0, |_, _| Err("no".into()));
    let (ran, result) = run(idle("a", 0).requiring(["b"]), vec![fails], &[]);
    assert_eq!(result.unwrap_err().to_string(), "pass `b` failed: no");
    assert_eq!(ran, ["b"]);
}

#[test]
fn what_has_finished_on_the_module_as_it_is_does_not_run_again() {
    let passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(idle("a", 0).requiring(["d"])),
        Arc::new(idle("b", 0).requiring(["d"])),
        Arc::new(Sequential::new(vec![Arc::new(idle("c", 0).requiring(["d"]))]).unwrap()),
        Arc::new(bump("change")),
        Arc::new(idle("e", 0).requiring(["d"])),
    ];
    let (ran, _) = run(Sequential::new(passes).unwrap(), vec![idle("d", 0)], &[]);
    assert_eq!(ran, ["sequential", "d", "a", "b", "sequential", "c", "change", "d", "e"]);
    // A dependency that changes the module counts as run on the changed module.
    let passes: Vec<Arc<dyn Pass>> =
        vec![Arc::new(idle("a", 0).requiring(["d"])), Arc::new(idle("b", 0).requiring(["d"]))];
    let (ran, _) = run(Sequential::new(passes).unwrap(), vec![bump("d")], &[]);
    assert_eq!(ran, ["sequential", "d", "a", "b"]);
}

#[test]
fn a_pass_of_the_sequence_itself_has_finished_too() {
    let passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(bump("d")),
        Arc::new(idle("a", 0).requiring(["d"])),
        Arc::new(idle("b", 0).requiring(["a", "d"])),
    ];
    let known = vec![bump("d"), idle("a", 0).requiring(["d"])];
    let (ran, _) = run(Sequential::new(passes).unwrap(), known, &[]);
    assert_eq!(ran, ["sequential", "d", "a", "b"]);
}

#[test]
fn what_has_finished_with_other_options_runs_again() {
    register_pass! {
        /// Has an option
        D = ModulePass("d", 0);
        options {
            /// a number
            n: u32 = 1,
        }
        run move |_module, cx| {
            cx.count("n", n.into());
            Ok(())
        }
    }
    let mut registry = PassRegistry::new();
    registry.register(D).unwrap();
    registry.register_pass(idle("a", 0).requiring(["d"]), "").unwrap();
    let registry = Arc::new(registry);
    let counted = |pipeline: &str| {
        let cx = PassContext::with_registry(registry.clone());
        parse_pipeline(&registry, pipeline).unwrap().apply(&mut empty_module(), &cx).unwrap();
        cx.statistics().get("d", "n")
    };
    assert_eq!(counted("d{n=1},a,a"), 1);
    assert_eq!(counted("d{n=10},a,a"), 11);
}

#[test]
fn a_dependency_that_the_context_requires_is_not_asked_about_and_runs_unless_it_is_disabled() {
    let mut registry = PassRegistry::new();
    registry.register_pass(idle("b", 9), "").unwrap();
    registry.register_pass(idle("a", 0).requiring(["b"]), "").unwrap();
    let log = Log::default();
    let cx = PassContext::builder()
        .registry(Arc::new(registry))
        .require("b")
        .instrument(Recorder::with("i", &log, Mischief::VetoPass("b")))
        .build()
        .unwrap();
    idle("a", 0).requiring(["b"]).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(log.take(), ["i should_run a", "i before b", "i after b", "i before a", "i after a"]);
    let disabled = cx.derive().disable("b").build().unwrap();
    let failure = idle("a", 0).requiring(["b"]).apply(&mut empty_module(), &disabled).unwrap_err();
    assert!(failure.to_string().ends_with("did not run: it is disabled"), "{failure}");
}

#[test]
fn a_long_chain_of_dependencies_is_not_deep() {
    let count = 3_000;
    let passes = (1..count)
        .map(|i| {
            if i + 1 < count {
                bump(&format!("p{i}")).requiring([format!("p{}", i + 1)])
            } else {
                bump(&format!("p{i}"))
            }
        })
        .collect::<Vec<_>>();
    let mut registry = PassRegistry::new();
    for pass in passes {
        registry.register_pass(pass, "").unwrap();
    }
    let cx = PassContext::with_registry(Arc::new(registry));
    let bumped = on_small_stack(move || {
        let mut module = empty_module();
        bump("p0").requiring(["p1"]).apply(&mut module, &cx).unwrap();
        bumps(&module)
    });
    assert_eq!(bumped, count as i64);
}

/// A sequence that runs a pass under a context of its own.
struct Elsewhere(PassInfo, ModulePass);

impl Pass for Elsewhere {
    fn info(&self) -> &PassInfo {
        &self.0
    }
    fn run(&self, module: &mut Module, cx: &PassContext) -> Result<Outcome, PassFailure> {
        self.1.apply(module, &cx.derive().build().unwrap())
    }
    fn kind(&self) -> PassKind {
        PassKind::Sequence
    }
}

#[test]
fn what_changes_under_a_context_of_its_own_counts() {
    for (inner, again) in [(bump("inner"), true), (idle("inner", 0), false)] {
        let passes: Vec<Arc<dyn Pass>> = vec![
            Arc::new(idle("b", 0)),
            Arc::new(Elsewhere(PassInfo::new("elsewhere", 0), inner)),
            Arc::new(idle("a", 0).requiring(["b"])),
        ];
        let (ran, result) = run(Sequential::new(passes).unwrap(), vec![idle("b", 0)], &[]);
        result.unwrap();
        assert_eq!(ran.iter().filter(|name| *name == "b").count(), 1 + usize::from(again), "{ran:?}");
    }
}

#[test]
fn a_sequence_of_a_pass_that_depends_on_the_sequence_is_an_error() {
    let mut registry = PassRegistry::new();
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(idle("a", 0).requiring(["s"]))];
    registry.register_pass(Sequential::named(PassInfo::new("s", 0), passes).unwrap(), "").unwrap();
    let cx = PassContext::with_registry(Arc::new(registry));
    let failure = idle("p", 0).requiring(["s"]).apply(&mut empty_module(), &cx).unwrap_err();
    assert_eq!(failure.error().message(), "passes nest more than 64 deep");
}
