//! The current context of a thread, and the contents of contexts.

use std::sync::Arc;

use anfora_ir::{Diagnostic, Module, Severity};
use anfora_manager::{
    Instrument, ModulePass, Outcome, Pass, PassContext, PassContextBuilder, PassError, PassRegistry, PassRun,
    ScopeGuard,
};

use crate::support::{Log, Mischief, Recorder, context, empty_module, idle, module};

fn level(n: u8) -> PassContext {
    PassContext::builder().opt_level(n).build().unwrap()
}

fn current() -> u8 {
    PassContext::current().opt_level()
}

#[test]
fn there_is_always_a_current_context() {
    assert_eq!(current(), 2);
    level(3)
        .scope(|| {
            assert_eq!(current(), 3);
            level(0).scope(|| assert_eq!(current(), 0)).unwrap();
            assert_eq!(current(), 3);
        })
        .unwrap();
    assert_eq!(current(), 2);
}

#[test]
fn the_default_context_stays_the_same() {
    PassContext::current().count("seen", 1);
    PassContext::current().count("seen", 2);
    assert_eq!(PassContext::current().statistics().get("", "seen"), 3);
}

#[test]
fn guards_leave_in_order() {
    let log = Log::default();
    let (a, b) = (context(&[Recorder::new("a", &log)]), context(&[Recorder::new("b", &log)]));
    let outer = a.enter().unwrap();
    let inner = b.enter().unwrap();
    // The outer guard is dropped first, and leaves the inner context too.
    outer.exit().unwrap();
    assert_eq!(log.take(), ["a enter", "b enter", "b exit", "a exit"]);
    assert_eq!(current(), 2);
    let third = level(3).enter().unwrap();
    inner.exit().unwrap();
    assert_eq!(current(), 3);
    drop(third);
    assert_eq!(current(), 2);
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn guards_stay_on_their_thread() {
    // The call is ambiguous, and does not compile, if a guard is `Send`.
    trait NotSend<Which> {
        fn is_not() {}
    }
    struct IfSend;
    impl<T> NotSend<()> for T {}
    impl<T: Send> NotSend<IfSend> for T {}
    <ScopeGuard as NotSend<_>>::is_not();
}

#[test]
fn a_context_may_be_entered_twice() {
    let log = Log::default();
    let cx = context(&[Recorder::new("i", &log)]);
    cx.scope(|| cx.scope(|| ()).unwrap()).unwrap();
    assert_eq!(log.take(), ["i enter", "i enter", "i exit", "i exit"]);
}

#[test]
fn a_dropped_guard_records_what_an_exit_returned() {
    let log = Log::default();
    let cx = context(&[Recorder::with("i", &log, Mischief::Fail("exit"))]);
    drop(cx.enter().unwrap());
    let remarks = cx.take_remarks();
    assert_eq!(remarks.len(), 1);
    assert_eq!(remarks[0].diagnostic.severity, Severity::Error);
    assert!(remarks[0].diagnostic.message.contains("`i` failed (exit)"));
}

#[test]
fn threads_have_their_own_and_can_be_given_one() {
    let cx = level(3);
    cx.scope(|| {
        std::thread::scope(|threads| {
            threads.spawn(|| {
                assert_eq!(current(), 2);
                cx.scope(|| assert_eq!(current(), 3)).unwrap();
                idle("p", 3).apply(&mut empty_module(), &cx).unwrap();
                cx.count("from a thread", 1);
            });
        });
    })
    .unwrap();
    assert_eq!(cx.statistics().get("", "from a thread"), 1);
}

#[test]
fn a_derived_context_is_the_same_but_for_what_is_said() {
    let log = Log::default();
    let cx = PassContext::builder()
        .opt_level(1)
        .knowing("a")
        .knowing("b")
        .knowing("c")
        .require("a")
        .disable("b")
        .instrument(Recorder::new("i", &log))
        .build()
        .unwrap();
    let derived = cx.derive().opt_level(3).disable("c").build().unwrap();
    assert_eq!(
        (derived.opt_level(), derived.required(), derived.disabled()),
        (3, cx.required(), &["b".to_string(), "c".to_string()][..])
    );
    derived.scope(|| ()).unwrap();
    assert_eq!(log.take(), ["i enter", "i exit"]);
    cx.derive().without_instruments().build().unwrap().scope(|| ()).unwrap();
    assert_eq!(log.take(), [""; 0]);
    // A context that does not derive inherits nothing.
    cx.scope(|| assert_eq!(PassContext::new().required(), [""; 0])).unwrap();
}

#[test]
fn misspelt_passes_are_told() {
    let mut registry = PassRegistry::new();
    registry.register_pass(idle("FoldConstant", 0), "folds").unwrap();
    registry.register_pass(idle("Normalize", 0), "normalizes").unwrap();
    let registry = Arc::new(registry);
    let build = |name: &str| {
        let b = || PassContext::builder().registry(registry.clone()).knowing("Mine");
        (b().disable(name).build().map(drop), b().require(name).build().map(drop))
    };
    for error in [build("FoldConstnat").0.unwrap_err(), build("FoldConstnat").1.unwrap_err()] {
        assert_eq!(
            error.to_string(),
            "unknown pass `FoldConstnat`; did you mean `FoldConstant`? (known: FoldConstant, Mine, Normalize)"
        );
    }
    assert!(build("FoldConstant").0.is_ok() && build("Mine").1.is_ok());
}

#[test]
fn passes_that_nobody_registered_are_named_only_where_they_are_said_to_be_known() {
    let known = || PassContext::builder().knowing("Mine");
    let message = |builder: PassContextBuilder| builder.build().unwrap_err().to_string();
    for builder in [known().require("Mina"), known().disable("Mina")] {
        assert_eq!(message(builder), "unknown pass `Mina`; did you mean `Mine`? (known: Mine)");
    }
    assert_eq!(message(PassContext::builder().require("X")), "unknown pass `X` (there are none)");
    assert!(known().require("Mine").disable("Mine").build().is_ok());
    // Known names are also known in derived contexts.
    assert!(known().build().unwrap().derive().disable("Mine").build().is_ok());
}

#[test]
fn the_instruments_of_a_context_can_be_read() {
    let names = |cx: &PassContext| cx.instruments().iter().map(|i| i.name().to_string()).collect::<Vec<_>>();
    let log = Log::default();
    let cx = PassContext::builder()
        .instrument(Recorder::new("first", &log))
        .instrument(Arc::new(anfora_manager::PassTiming::new()))
        .build()
        .unwrap();
    assert_eq!(names(&cx), ["first", "PassTiming"]);
    assert_eq!(names(&cx.derive().without_instruments().build().unwrap()), [""; 0]);
    assert_eq!(names(&PassContext::new()), [""; 0]);
    cx.override_instruments(vec![Recorder::new("second", &log)]).unwrap();
    assert_eq!(names(&cx), ["second"]);
    // Passes can read them, also on other threads, where they do not run.
    let read = anfora_manager::ModulePass::new("read", 0, |_, cx| match cx.instruments().len() {
        1 => Ok(()),
        n => Err(format!("{n} instruments").into()),
    });
    read.apply(&mut module(), &cx).unwrap();
    let broken = Recorder::with("broken", &log, Mischief::Fail("exit"));
    cx.override_instruments(vec![broken]).unwrap();
    assert!(cx.scope(|| ()).is_err());
    assert_eq!(names(&cx), [""; 0]);
}

#[test]
fn remarks_name_their_pass() {
    let cx = PassContext::new();
    let pass = ModulePass::new("p", 0, |_, cx| {
        cx.remark(Diagnostic::new(Severity::Remark, "too big").in_function("f"));
        Ok(())
    });
    pass.apply(&mut empty_module(), &cx).unwrap();
    let remarks = cx.take_remarks();
    assert_eq!((remarks.len(), remarks[0].pass.as_str()), (1, "p"));
    assert_eq!(remarks[0].diagnostic.to_string(), "remark: too big (in @f)");
    assert!(cx.take_remarks().is_empty());
}

#[test]
fn remarks_do_not_pile_up_without_end() {
    let cx = PassContext::new();
    for _ in 0..anfora_manager::MAX_REMARKS + 5 {
        cx.remark(Diagnostic::new(Severity::Remark, "again"));
    }
    let remarks = cx.take_remarks();
    assert_eq!(remarks.len(), anfora_manager::MAX_REMARKS + 1);
    assert_eq!(remarks.last().unwrap().diagnostic.message, "5 more remarks were not kept");
}

#[test]
fn passes_that_run_themselves_under_contexts_of_their_own_end() {
    fn again() -> ModulePass {
        ModulePass::new("again", 0, |_, _| {
            again().apply(&mut module(), &PassContext::new())?;
            Ok(())
        })
    }
    again().apply(&mut module(), &PassContext::new()).unwrap_err();
    // The thread can continue.
    idle("idle", 0).apply(&mut module(), &PassContext::new()).unwrap();
}

#[test]
fn instruments_that_watch_what_they_run_end() {
    struct Runs(&'static str);
    impl Runs {
        fn run(&self, hook: &str, run: &PassRun<'_>) -> Result<(), PassError> {
            if hook == self.0 {
                idle("inner", 0).apply(&mut module(), run.context())?;
            }
            Ok(())
        }
    }
    impl Instrument for Runs {
        fn name(&self) -> &str {
            "runs"
        }
        fn should_run(&self, _: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
            self.run("should_run", run).map(|()| true)
        }
        fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
            self.run("before", run)
        }
        fn run_after(&self, _: &Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
            self.run("after", run)
        }
    }
    for hook in ["should_run", "before", "after"] {
        let cx = PassContext::builder().instrument(Arc::new(Runs(hook))).build().unwrap();
        idle("idle", 0).apply(&mut module(), &cx).unwrap_err();
        idle("idle", 0).apply(&mut module(), &PassContext::new()).unwrap();
    }
}

#[test]
fn an_exit_that_panics_while_a_panic_goes_through_is_recorded() {
    let log = Log::default();
    let contexts: Vec<PassContext> = [Mischief::None, Mischief::Panic("exit"), Mischief::Panic("exit")]
        .into_iter()
        .map(|mischief| context(&[Recorder::with("I", &log, mischief)]))
        .collect();
    let outer = level(1);
    outer
        .scope(|| {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _guards: Vec<_> = contexts.iter().map(|cx| cx.enter().unwrap()).collect();
                panic!("on the way");
            }));
            assert!(result.is_err());
            assert_eq!(current(), 1);
        })
        .unwrap();
    let said: Vec<usize> = contexts.iter().map(|cx| cx.take_remarks().len()).collect();
    assert!(said[0] == 0 && said[1] > 0 && said[2] > 0, "{said:?}");
    assert_eq!(log.take().iter().filter(|e| e.ends_with("exit")).count(), 3);
}
