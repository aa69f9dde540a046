//! The order in which the hooks of instruments are called.

use std::sync::Arc;

use crate::support::{Log, Mischief, Recorder, bump, bumps, context, empty_module, idle, set_bumps};
use anfora_ir::Module;
use anfora_manager::{
    FailureKind, Instrument, ModulePass, Outcome, Pass, PassContext, PassError, PassFailure, PassRun, Sequential,
    SkipReason,
};

fn events(instruments: &[Arc<Recorder>], run: impl FnOnce(&PassContext)) -> PassContext {
    let cx = context(instruments);
    run(&cx);
    cx
}

#[test]
fn a_scope_enters_runs_and_exits() {
    let log = Log::default();
    let cx = context(&[Recorder::new("i", &log)]);
    cx.scope(|| {
        for name in ["first", "second"] {
            let outcome = idle(name, 0).apply(&mut empty_module(), &PassContext::current()).unwrap();
            assert_eq!(outcome, Outcome::Unchanged);
        }
    })
    .unwrap();
    assert_eq!(
        log.take(),
        [
            "i enter",
            "i should_run first",
            "i before first",
            "i after first",
            "i should_run second",
            "i before second",
            "i after second",
            "i exit"
        ]
    );
}

#[test]
fn a_context_is_not_yet_current_when_it_is_entered_and_not_any_more_when_it_is_exited() {
    struct Around(Log);
    impl Instrument for Around {
        fn name(&self) -> &str {
            "around"
        }
        fn enter(&self, cx: &PassContext) -> Result<(), PassError> {
            self.0.note(format!("enter {} in {}", cx.opt_level(), PassContext::current().opt_level()));
            Ok(())
        }
        fn exit(&self, cx: &PassContext) -> Result<(), PassError> {
            self.0.note(format!("exit {} in {}", cx.opt_level(), PassContext::current().opt_level()));
            Ok(())
        }
    }
    let log = Log::default();
    let cx = PassContext::builder().opt_level(7).instrument(Arc::new(Around(log.clone()))).build().unwrap();
    cx.scope(|| cx.scope(|| ()).unwrap()).unwrap();
    assert_eq!(log.take(), ["enter 7 in 2", "enter 7 in 7", "exit 7 in 7", "exit 7 in 2"]);
}

#[test]
fn all_are_asked_and_all_must_agree() {
    let log = Log::default();
    let instruments = [Recorder::new("a", &log), Recorder::with("b", &log, Mischief::Veto), Recorder::new("c", &log)];
    events(&instruments, |cx| {
        let outcome = bump("pass").apply(&mut empty_module(), cx).unwrap();
        assert_eq!(outcome, Outcome::Skipped(SkipReason::Vetoed(vec!["b".to_string()])));
        let remark = &cx.take_remarks()[0].diagnostic;
        assert_eq!(remark.message, "pass `pass` was skipped: b did not let it run");
    });
    assert_eq!(log.take(), ["a should_run pass", "b should_run pass", "c should_run pass"]);
}

#[test]
fn a_vetoed_pass_is_skipped_and_the_next_one_runs() {
    let log = Log::default();
    let cx = context(&[Recorder::with("i", &log, Mischief::VetoPass("first"))]);
    let mut module = empty_module();
    let passes = Sequential::new(vec![Arc::new(bump("first")), Arc::new(bump("second"))]).unwrap();
    assert!(passes.apply(&mut module, &cx).unwrap().is_changed());
    assert_eq!(bumps(&module), 1);
    assert_eq!(
        log.take(),
        [
            "i should_run sequential",
            "i before sequential",
            "i should_run first",
            "i should_run second",
            "i before second",
            "i after second",
            "i after sequential"
        ]
    );
}

#[test]
fn a_required_pass_is_not_asked_about() {
    let log = Log::default();
    let cx = PassContext::builder()
        .knowing("pass")
        .require("pass")
        .opt_level(0)
        .instrument(Recorder::with("i", &log, Mischief::Veto))
        .build()
        .unwrap();
    idle("pass", 3).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(log.take(), ["i before pass", "i after pass"]);
}

#[test]
fn a_disabled_pass_is_not_asked_about_either() {
    let log = Log::default();
    let cx = PassContext::builder()
        .knowing("pass")
        .require("pass")
        .disable("pass")
        .instrument(Recorder::new("i", &log))
        .build()
        .unwrap();
    let outcome = idle("pass", 0).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(outcome, Outcome::Skipped(SkipReason::Disabled));
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn when_an_enter_fails_those_before_are_exited_last_first() {
    for mischief in [Mischief::Fail("enter"), Mischief::Panic("enter")] {
        let log = Log::default();
        let cx = context(&[
            Recorder::new("a", &log),
            Recorder::new("b", &log),
            Recorder::with("c", &log, mischief),
            Recorder::new("d", &log),
        ]);
        let cx = cx.derive().opt_level(7).build().unwrap();
        let mut ran = false;
        let failure = cx.scope(|| ran = true).unwrap_err();
        assert!(!ran);
        assert_eq!(*failure.kind(), FailureKind::Instrument { instrument: "c".to_string(), hook: "enter" });
        assert_eq!(log.take(), ["a enter", "b enter", "c enter", "b exit", "a exit"]);
        // The context has lost its instruments, and is not current.
        assert_eq!(PassContext::current().opt_level(), 2);
        cx.scope(|| idle("pass", 0).apply(&mut empty_module(), &cx).unwrap()).unwrap();
        assert_eq!(log.take(), [""; 0]);
    }
}

#[test]
fn when_an_exit_fails_those_after_are_not_exited() {
    for mischief in [Mischief::Fail("exit"), Mischief::Panic("exit")] {
        let log = Log::default();
        let cx = context(&[Recorder::new("a", &log), Recorder::with("b", &log, mischief), Recorder::new("c", &log)]);
        let cx = cx.derive().opt_level(7).build().unwrap();
        let failure = cx.scope(|| ()).unwrap_err();
        assert!(failure.to_string().starts_with("instrument `b` failed (exit): b "), "{failure}");
        assert_eq!(log.take(), ["a enter", "b enter", "c enter", "a exit", "b exit"]);
        // The context has lost its instruments, and is not current.
        assert_eq!(PassContext::current().opt_level(), 2);
        cx.scope(|| ()).unwrap();
        assert_eq!(log.take(), [""; 0]);
    }
}

#[test]
fn when_a_pass_fails_what_was_begun_is_ended() {
    let passes: [fn() -> ModulePass; 2] = [
        || ModulePass::new("pass", 0, |_, _| Err(PassError::new("no"))),
        || ModulePass::new("pass", 0, |_, _| panic!("no")),
    ];
    for pass in passes {
        let log = Log::default();
        let cx = context(&[Recorder::new("a", &log), Recorder::new("b", &log)]);
        let failure = cx.scope(|| pass().apply(&mut empty_module(), &cx)).unwrap().unwrap_err();
        assert_eq!(failure.pass(), "pass");
        assert_eq!(
            log.take(),
            [
                "a enter",
                "b enter",
                "a should_run pass",
                "b should_run pass",
                "a before pass",
                "b before pass",
                "a on_error pass (pass)",
                "b on_error pass (pass)",
                "a exit",
                "b exit"
            ]
        );
    }
}

/// Returns the hooks that are called on three instruments for a pass, if the second instrument
/// fails or panics in a hook. Checks that the pass fails and the module stays unchanged.
fn heard_until(hook: &'static str, says: FailureKind) -> Vec<String> {
    let hear = |mischief: Mischief| {
        let log = Log::default();
        let cx = context(&[Recorder::new("a", &log), Recorder::with("b", &log, mischief), Recorder::new("c", &log)]);
        let noted = log.clone();
        let pass = ModulePass::new("pass", 0, move |module, _| {
            noted.note("runs");
            set_bumps(module, 1);
            Ok(())
        });
        let mut module = empty_module();
        let failure = cx.scope(|| pass.apply(&mut module, &cx)).unwrap().unwrap_err();
        assert_eq!((failure.pass(), failure.kind()), ("pass", &says));
        assert_eq!(bumps(&module), 0);
        log.take()
    };
    let heard = hear(Mischief::Fail(hook));
    assert_eq!(hear(Mischief::Panic(hook)), heard);
    assert_eq!(heard[..3], ["a enter", "b enter", "c enter"]);
    assert_eq!(heard[heard.len() - 3..], ["a exit", "b exit", "c exit"]);
    heard[3..heard.len() - 3].to_vec()
}

fn fault_of_b(hook: &'static str) -> FailureKind {
    FailureKind::Instrument { instrument: "b".to_string(), hook }
}

#[test]
fn when_should_run_fails_the_rest_are_not_asked() {
    assert_eq!(heard_until("should_run", fault_of_b("should_run")), ["a should_run pass", "b should_run pass"]);
}

#[test]
fn when_run_before_fails_the_pass_does_not_run() {
    assert_eq!(
        heard_until("before", fault_of_b("run_before")),
        [
            "a should_run pass",
            "b should_run pass",
            "c should_run pass",
            "a before pass",
            "b before pass",
            "a on_error pass (pass)"
        ]
    );
}

#[test]
fn when_run_after_fails_the_pass_is_taken_back() {
    assert_eq!(
        heard_until("after", fault_of_b("run_after")),
        [
            "a should_run pass",
            "b should_run pass",
            "c should_run pass",
            "a before pass",
            "b before pass",
            "c before pass",
            "runs",
            "a after pass",
            "b after pass",
            "c on_error pass (pass)"
        ]
    );
}

#[test]
fn nested_contexts_do_not_hear_of_each_other() {
    let log = Log::default();
    let outer = context(&[Recorder::new("outer", &log)]);
    let inner = context(&[Recorder::new("inner", &log)]);
    outer
        .scope(|| {
            inner.scope(|| idle("p", 0).apply(&mut empty_module(), &PassContext::current()).unwrap()).unwrap();
            idle("q", 0).apply(&mut empty_module(), &PassContext::current()).unwrap();
        })
        .unwrap();
    assert_eq!(
        log.take(),
        [
            "outer enter",
            "inner enter",
            "inner should_run p",
            "inner before p",
            "inner after p",
            "inner exit",
            "outer should_run q",
            "outer before q",
            "outer after q",
            "outer exit"
        ]
    );
}

#[test]
fn overriding_exits_the_old_and_enters_the_new() {
    let log = Log::default();
    let cx = context(&[Recorder::new("old", &log)]);
    cx.scope(|| {
        let new: Vec<Arc<dyn Instrument>> = vec![Recorder::new("new", &log), Recorder::new("newer", &log)];
        cx.override_instruments(new).unwrap();
        idle("p", 0).apply(&mut empty_module(), &cx).unwrap();
    })
    .unwrap();
    assert_eq!(
        log.take(),
        [
            "old enter",
            "old exit",
            "new enter",
            "newer enter",
            "new should_run p",
            "newer should_run p",
            "new before p",
            "newer before p",
            "new after p",
            "newer after p",
            "new exit",
            "newer exit"
        ]
    );
}

#[test]
fn overriding_with_what_cannot_be_entered_leaves_none() {
    let log = Log::default();
    let cx = context(&[Recorder::new("old", &log)]);
    cx.override_instruments(vec![Recorder::new("a", &log), Recorder::with("b", &log, Mischief::Fail("enter"))])
        .unwrap_err();
    assert_eq!(log.take(), ["old exit", "a enter", "b enter", "a exit"]);
    idle("p", 0).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn overriding_what_cannot_be_exited_leaves_none() {
    let log = Log::default();
    let cx = context(&[Recorder::with("a", &log, Mischief::Fail("exit")), Recorder::new("b", &log)]);
    cx.override_instruments(vec![Recorder::new("new", &log)]).unwrap_err();
    assert_eq!(log.take(), ["a exit"]);
    idle("p", 0).apply(&mut empty_module(), &cx).unwrap();
    assert_eq!(log.take(), [""; 0]);
}

#[test]
fn the_default_context_can_be_given_instruments() {
    let log = Log::default();
    let cx = PassContext::current();
    cx.override_instruments(vec![Recorder::new("i", &log)]).unwrap();
    idle("p", 0).apply(&mut empty_module(), &PassContext::current()).unwrap();
    cx.override_instruments(Vec::new()).unwrap();
    assert_eq!(log.take(), ["i enter", "i should_run p", "i before p", "i after p", "i exit"]);
}

#[test]
fn a_pass_in_a_pass_is_heard_of_inside() {
    let log = Log::default();
    let cx = context(&[Recorder::new("i", &log)]);
    let outer = ModulePass::new("outer", 0, |module, cx| {
        bump("inner").apply(module, cx)?;
        Ok(())
    });
    let mut module = empty_module();
    assert!(outer.apply(&mut module, &cx).unwrap().is_changed());
    assert_eq!(bumps(&module), 1);
    assert_eq!(
        log.take(),
        [
            "i should_run outer",
            "i before outer",
            "i should_run inner",
            "i before inner",
            "i after inner",
            "i after outer"
        ]
    );
}

#[test]
fn failures_go_up_through_all_that_was_begun() {
    let log = Log::default();
    let cx = context(&[Recorder::new("i", &log)]);
    let fails = ModulePass::new("fails", 0, |_, _| Err("no".into()));
    let passes = Sequential::new(vec![Arc::new(idle("ok", 0)), Arc::new(fails), Arc::new(idle("never", 0))]).unwrap();
    let failure = passes.apply(&mut empty_module(), &cx).unwrap_err();
    assert_eq!(failure.pass(), "fails");
    assert_eq!(failure.path(), ["sequential"]);
    let heard = log.take();
    assert_eq!(
        heard[5..],
        ["i should_run fails", "i before fails", "i on_error fails (fails)", "i on_error sequential (fails)"]
    );
}

#[test]
fn those_that_began_hear_last_how_it_ended() {
    struct End(Log, &'static str);
    impl Instrument for End {
        fn name(&self) -> &str {
            self.1
        }
        fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
            if run.name() == self.1 { Err("not me".into()) } else { Ok(()) }
        }
        fn run_after(&self, _: &Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
            self.0.note(format!("{} after", self.1));
            if run.name() == format!("{}'s", self.1) { Err("not this".into()) } else { Ok(()) }
        }
        fn on_error(&self, _: &Module, _: &PassRun<'_>, _: &PassFailure) {
            self.0.note(format!("{} on_error", self.1));
        }
        fn on_end(&self, module: &Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
            self.0.note(format!("{} on_end {} {} {}", self.1, run.name(), bumps(module), result.is_ok()));
            assert_ne!(run.name(), "panics");
        }
    }
    let log = Log::default();
    let [a, b, c] = ["a", "b", "c"].map(|name| Arc::new(End(log.clone(), name)));
    let cx = PassContext::builder().instrument(a).instrument(b).instrument(c).build().unwrap();
    let mut module = empty_module();
    let mut run = |name: &str| {
        let done = bump(name).apply(&mut module, &cx).is_ok();
        (done, log.take().join("; "))
    };
    let after = "a after; b after; c after; ";
    assert_eq!(run("fine"), (true, format!("{after}a on_end fine 1 true; b on_end fine 1 true; c on_end fine 1 true")));
    // The pass is rolled back before `on_error` and `on_end` are called.
    let rejected = "a after; b after; c on_error; a on_end b's 1 false; b on_end b's 1 false; c on_end b's 1 false";
    assert_eq!(run("b's"), (false, rejected.to_string()));
    assert_eq!(run("b"), (false, "a on_error; a on_end b 1 false".to_string()));
    // A panic in a hook ends neither the other hooks nor the pass.
    let panics = "a on_end panics 2 true; b on_end panics 2 true; c on_end panics 2 true";
    assert_eq!(run("panics"), (true, format!("{after}{panics}")));
    assert_eq!(cx.take_remarks().len(), 3);
}
