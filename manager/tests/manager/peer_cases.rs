//! Cases of the tests of the peer's pass manager and instruments that no other test here covers;
//! `docs/peer-cases/pass-manager.md` lists the tests for the other cases.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anfora_ir::{Attr, FunctionKey, Module, module_hash};
use anfora_manager::{
    Declare, FailureKind, FunctionPass, Instrument, ModulePass, Outcome, Pass, PassContext, PassError, PassInfo,
    PassRun, PassTiming, Sequential,
};

use crate::support::{
    Log, Mischief, Recorder, add_function, bump, bumps, context, empty_module, idle, module, unverified, wreck,
};

/// Makes a pass that logs that it runs.
fn noting(name: &str, level: u8, log: &Log) -> Arc<dyn Pass> {
    let (text, log) = (name.to_string(), log.clone());
    Arc::new(ModulePass::new(name, level, move |_, _| {
        log.note(text.clone());
        Ok(())
    }))
}

fn sequence(passes: Vec<Arc<dyn Pass>>) -> Sequential {
    Sequential::new(passes).unwrap()
}

#[test]
fn timing_ends_when_other_instruments_take_its_place() {
    let timing = Arc::new(PassTiming::new());
    let cx = PassContext::current();
    cx.override_instruments(vec![timing.clone()]).unwrap();
    for name in ["first", "second", "third"] {
        idle(name, 0).apply(&mut empty_module(), &cx).unwrap();
    }
    let names: Vec<String> = timing.rows().into_iter().map(|r| r.name).collect();
    assert_eq!(names, ["first", "second", "third"]);
    cx.override_instruments(Vec::new()).unwrap();
    let rows = timing.rows().len();
    idle("fourth", 0).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(timing.rows().len(), rows);
}

#[test]
fn an_instrument_may_let_only_passes_of_a_name_run() {
    struct Only(&'static str);
    impl Instrument for Only {
        fn name(&self) -> &str {
            "only"
        }
        fn should_run(&self, _: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
            Ok(run.name() == self.0)
        }
    }
    let log = Log::default();
    let cx = unverified().instrument(Arc::new(Only("third"))).build().unwrap();
    for name in ["first", "second", "third"] {
        noting(name, 0, &log).apply(&mut empty_module(), &cx).unwrap();
    }
    assert_eq!(log.take(), ["third"]);
}

#[test]
fn one_instrument_does_not_hear_of_what_another_skipped() {
    let log = Log::default();
    let cx = context(&[
        Recorder::with("a", &log, Mischief::VetoPass("first")),
        Recorder::with("b", &log, Mischief::VetoPass("second")),
        Recorder::new("c", &log),
    ]);
    for name in ["first", "second", "third"] {
        idle(name, 0).apply(&mut empty_module(), &cx).unwrap();
    }
    let ran: Vec<String> = log.take().into_iter().filter(|e| e.contains("before")).collect();
    assert_eq!(ran, ["a before third", "b before third", "c before third"]);
}

/// An instrument that counts runs while its context is entered.
#[derive(Default)]
struct Counts {
    before: AtomicUsize,
    after: AtomicUsize,
}

impl Counts {
    fn get(&self) -> (usize, usize) {
        (self.before.load(Ordering::SeqCst), self.after.load(Ordering::SeqCst))
    }

    fn clear(&self) {
        self.before.store(0, Ordering::SeqCst);
        self.after.store(0, Ordering::SeqCst);
    }
}

impl Instrument for Counts {
    fn name(&self) -> &str {
        "counts"
    }
    fn enter(&self, _: &PassContext) -> Result<(), PassError> {
        self.clear();
        Ok(())
    }
    fn exit(&self, _: &PassContext) -> Result<(), PassError> {
        self.clear();
        Ok(())
    }
    fn run_before(&self, _: &Module, _: &PassRun<'_>) -> Result<(), PassError> {
        self.before.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn run_after(&self, _: &Module, _: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        self.after.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn an_instrument_counts_from_enter_to_exit_and_sequences_in_sequences_count() {
    let log = Log::default();
    let counts = Arc::new(Counts::default());
    let cx = unverified().instrument(counts.clone()).build().unwrap();
    let inner = sequence(vec![noting("a", 0, &log), noting("b", 0, &log)]);
    let passes = sequence(vec![Arc::new(inner), noting("c", 0, &log)]);
    cx.scope(|| {
        passes.apply(&mut module(), &cx).unwrap();
        assert_eq!(counts.get(), (5, 5));
    })
    .unwrap();
    assert_eq!(counts.get(), (0, 0));
    cx.scope(|| assert_eq!(counts.get(), (0, 0))).unwrap();
}

#[test]
fn two_instruments_and_two_passes() {
    let log = Log::default();
    let cx = context(&[Recorder::new("1", &log), Recorder::new("2", &log)]);
    cx.scope(|| {
        for name in ["x", "y"] {
            noting(name, 2, &log).apply(&mut module(), &cx).unwrap();
        }
    })
    .unwrap();
    let of = |pass: &str| {
        let hooks = |hook: &str| ["1", "2"].map(|i| format!("{i} {hook} {pass}"));
        [hooks("should_run").to_vec(), hooks("before").to_vec(), vec![pass.to_string()], hooks("after").to_vec()]
            .concat()
    };
    let ends = |hook: &str| ["1", "2"].map(|i| format!("{i} {hook}")).to_vec();
    assert_eq!(log.take(), [ends("enter"), of("x"), of("y"), ends("exit")].concat());
}

#[test]
fn a_failing_pass_under_two_instruments() {
    let log = Log::default();
    let cx = context(&[Recorder::new("1", &log), Recorder::new("2", &log)]);
    let result = cx.scope(|| ModulePass::new("x", 2, |_, _| Err("no".into())).apply(&mut module(), &cx)).unwrap();
    assert!(result.is_err());
    let events = [
        "1 enter",
        "2 enter",
        "1 should_run x",
        "2 should_run x",
        "1 before x",
        "2 before x",
        "1 on_error x (x)",
        "2 on_error x (x)",
        "1 exit",
        "2 exit",
    ];
    assert_eq!(log.take(), events);
}

#[test]
fn sequences_in_sequences_heed_level_lists_and_order() {
    let log = Log::default();
    let make = || {
        sequence(vec![
            noting("first", 0, &log),
            Arc::new(sequence(vec![noting("high", 3, &log), noting("low", 0, &log)])),
            noting("last", 0, &log),
        ])
    };
    let run = |cx: PassContext| {
        make().apply(&mut module(), &cx).unwrap();
        log.take()
    };
    let level = || unverified().opt_level(0);
    assert_eq!(run(level().build().unwrap()), ["first", "low", "last"]);
    let lists = level().knowing("high").knowing("low").require("high").require("low").disable("low");
    assert_eq!(run(lists.build().unwrap()), ["first", "high", "last"]);
    assert_eq!(run(unverified().opt_level(3).build().unwrap()), ["first", "high", "low", "last"]);
    let passes = make();
    assert_eq!(passes.passes()[1].passes()[0].info().name, "high");
}

#[test]
fn a_context_of_a_level_skips_passes_of_a_sequence_in_an_outer_context() {
    let log = Log::default();
    let passes = sequence(vec![noting("one", 1, &log), noting("two", 2, &log), noting("three", 3, &log)]);
    let outer = unverified().opt_level(3).build().unwrap();
    let inner = unverified().opt_level(1).build().unwrap();
    outer
        .scope(|| {
            passes.apply(&mut module(), &PassContext::current()).unwrap();
            inner.scope(|| passes.apply(&mut module(), &PassContext::current()).unwrap()).unwrap();
            passes.apply(&mut module(), &PassContext::current()).unwrap();
        })
        .unwrap();
    let all = ["one", "two", "three"];
    assert_eq!(log.take(), [&all[..], &["one"], &all].concat());
}

#[test]
fn a_pass_knows_its_name_level_and_dependencies() {
    let module_pass = idle("p", 3).requiring(["a", "b"]);
    let function_pass = FunctionPass::new("q", 1, |_, _, _| Ok(()));
    let named = Sequential::named(PassInfo::new("s", 2), Vec::new()).unwrap();
    let of = |pass: &dyn Pass| (pass.info().name.clone(), pass.info().opt_level, pass.info().required.clone());
    assert_eq!(of(&module_pass), ("p".to_string(), 3, vec!["a".to_string(), "b".to_string()]));
    assert_eq!(of(&function_pass), ("q".to_string(), 1, vec![]));
    assert_eq!(of(&named), ("s".to_string(), 2, vec![]));
}

/// Makes a pass that gives each function an attribute that counts the visits.
fn mark() -> FunctionPass {
    FunctionPass::new("mark", 1, |func, _, _| {
        let now = match func.cx.find_attr(func.function.attrs, "marks").map(|a| func.cx.attrs.get(a).clone()) {
            Some(Attr::Int(n)) => n + 1,
            _ => 1,
        };
        let value = func.cx.int_attr(now);
        func.function.attrs = func.cx.with_attr(func.function.attrs, "marks", Some(value));
        Ok(())
    })
}

fn marks(module: &Module) -> Vec<(String, bool)> {
    let marked = |key: FunctionKey| module.cx.find_attr(module.get(key).unwrap().attrs, "marks").is_some();
    module.order().iter().map(|&key| (module.name(key).to_string(), marked(key))).collect()
}

#[test]
fn function_passes_see_the_functions_that_module_passes_before_them_added() {
    let add = || {
        Arc::new(ModulePass::new("add", 1, |module, _| {
            add_function(module, "added");
            Ok(())
        }))
    };
    let run = |passes: Vec<Arc<dyn Pass>>| {
        let mut module = module();
        sequence(passes).apply(&mut module, &unverified().build().unwrap()).unwrap();
        marks(&module)
            .into_iter()
            .map(|(name, marked)| format!("{name}{}", if marked { "!" } else { "" }))
            .collect::<Vec<_>>()
    };
    assert_eq!(run(vec![]), ["f", "g", "h"]);
    assert_eq!(run(vec![add()]), ["f", "g", "h", "added"]);
    assert_eq!(run(vec![Arc::new(mark())]), ["f!", "g!", "h!"]);
    assert_eq!(run(vec![add(), Arc::new(mark())]), ["f!", "g!", "h!", "added!"]);
    assert_eq!(run(vec![Arc::new(mark()), add()]), ["f!", "g!", "h!", "added"]);
}

/// Runs work that panics or fails, three contexts deep, each context with a recorder. Returns the
/// recorded events.
fn three_deep(mischief: [Mischief; 3], work: impl FnOnce(&PassContext)) -> Vec<String> {
    let log = Log::default();
    let contexts: Vec<PassContext> = ["1", "2", "3"]
        .iter()
        .zip([1u8, 3, 0])
        .zip(mischief)
        .map(|((name, level), mischief)| {
            let recorder = Recorder::with(name, &log, mischief);
            unverified().opt_level(level).instrument(recorder).build().unwrap()
        })
        .collect();
    let outside = PassContext::current().opt_level();
    let result = catch_unwind(AssertUnwindSafe(|| {
        let one = contexts[0].enter().unwrap();
        let two = contexts[1].enter().unwrap();
        let three = contexts[2].enter().unwrap();
        work(&PassContext::current());
        assert_eq!(PassContext::current().opt_level(), 0, "the innermost is current still");
        three.exit().unwrap();
        assert_eq!(PassContext::current().opt_level(), 3);
        two.exit().unwrap();
        assert_eq!(PassContext::current().opt_level(), 1);
        one.exit().unwrap();
    }));
    assert!(result.is_ok());
    assert_eq!(PassContext::current().opt_level(), outside);
    log.take().into_iter().filter(|e| e.contains("enter") || e.contains("exit")).collect()
}

const IN_ORDER: [&str; 6] = ["1 enter", "2 enter", "3 enter", "3 exit", "2 exit", "1 exit"];
const NONE: [Mischief; 3] = [Mischief::None; 3];

#[test]
fn a_panic_in_a_pass_three_contexts_deep() {
    let mut module = module();
    let before = module_hash(&module);
    let events = three_deep(NONE, |cx| {
        let failure = wreck("wreck", || panic!("in the pass")).apply(&mut module, cx).unwrap_err();
        assert_eq!(failure.pass(), "wreck");
    });
    assert_eq!(events, IN_ORDER);
    assert_eq!(module_hash(&module), before);
}

#[test]
fn a_panic_in_an_instrument_three_contexts_deep() {
    for hook in ["should_run", "before", "after"] {
        let mut module = module();
        let before = module_hash(&module);
        let events = three_deep([Mischief::None, Mischief::None, Mischief::Panic(hook)], |cx| {
            let failure = wreck("wreck", || Ok(())).apply(&mut module, cx).unwrap_err();
            assert!(matches!(failure.kind(), FailureKind::Instrument { .. }));
        });
        assert_eq!(events, IN_ORDER, "{hook}");
        assert_eq!(module_hash(&module), before, "{hook}");
    }
}

#[test]
fn a_panic_on_a_thread_that_was_given_the_context_three_contexts_deep() {
    let mut module = module();
    let before = module_hash(&module);
    let events = three_deep(NONE, |cx| {
        let pass = ModulePass::new("threads", 0, |module, cx| {
            crate::support::set_bumps(module, 5);
            let worker = std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        let _guard = unverified().opt_level(9).build().unwrap().enter().unwrap();
                        cx.count("seen", 1);
                        panic!("on the thread")
                    })
                    .join()
            });
            worker.map_err(|_| PassError::new("a thread panicked"))
        });
        let failure = pass.apply(&mut module, cx).unwrap_err();
        assert!(failure.to_string().contains("a thread panicked"), "{failure}");
        assert!(cx.statistics().is_empty());
    });
    assert_eq!(events, IN_ORDER);
    assert_eq!(module_hash(&module), before);
}

#[test]
fn a_panic_in_a_sequence_keeps_what_came_before_and_says_where() {
    let mut module = module();
    let passes = sequence(vec![Arc::new(bump("good")), Arc::new(wreck("bad", || panic!("here")))]);
    let failure = passes.apply(&mut module, &unverified().build().unwrap()).unwrap_err();
    assert_eq!((failure.pass(), bumps(&module)), ("bad", 1));
}
