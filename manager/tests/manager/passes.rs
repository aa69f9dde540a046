//! Kinds of passes, sequences and repetition.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anfora_ir::{DType, Expr, FunctionBuilder, retype_from};
use anfora_manager::{
    FunctionPass, MAX_NESTING, ModulePass, NestingError, Outcome, Pass, PassContext, PassInfo, PassKind, Repeat,
    Sequential, SkipReason, VerifyEach,
};

use crate::support::{Log, Recorder, bump, bumps, context, empty_module, idle, module, module_of, set_bumps, snapshot};

#[test]
fn a_module_pass_may_add_and_remove_functions() {
    let pass = ModulePass::new("p", 1, |module, _| {
        let first = module.order()[0];
        module.remove(&[first]);
        crate::support::add_function(module, "new");
        Ok(())
    });
    assert_eq!(*pass.info(), PassInfo::new("p", 1));
    let mut module = module();
    assert_eq!(pass.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Changed);
    let names: Vec<&str> = module.order().iter().map(|&k| module.name(k)).collect();
    assert_eq!(names, ["g", "h", "new"]);
}

#[test]
fn a_function_pass_sees_each_function_in_order() {
    let log = Log::default();
    let seen = log.clone();
    let pass = FunctionPass::new("p", 0, move |func, module, _| {
        let global = func.function.global().unwrap();
        assert!(module.purity().global_is_pure(global));
        seen.note(func.name());
        Ok(())
    });
    assert_eq!(pass.kind(), PassKind::Function);
    let mut module = module();
    assert_eq!(pass.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Unchanged);
    assert_eq!(log.take(), ["f", "g", "h"]);
}

#[test]
fn a_function_pass_leaves_declarations_and_marked_functions_alone() {
    let mut module = module();
    let yes = module.cx.attr(anfora_ir::Attr::Bool(true));
    let no = module.cx.attr(anfora_ir::Attr::Bool(false));
    for (i, mark) in [(0, no), (1, yes)] {
        let key = module.order()[i];
        let (f, cx) = module.get_mut(key).unwrap();
        f.attrs = cx.with_attr(f.attrs, "SkipOptimization", Some(mark));
    }
    let key = module.order()[2];
    module.get_mut(key).unwrap().0.kind = anfora_ir::FunctionKind::Declaration;
    let log = Log::default();
    let seen = log.clone();
    let pass = FunctionPass::new("p", 0, move |func, _, _| {
        seen.note(func.name());
        Ok(())
    });
    pass.apply(&mut module, &PassContext::new()).unwrap();
    assert_eq!(log.take(), ["f"]);
}

#[test]
fn a_function_pass_sees_the_module_as_it_was() {
    // @g becomes impure first, and @h still sees it as pure.
    let pass = FunctionPass::new("p", 0, |func, module, _| {
        if func.name() == "g" {
            let root = func.function.body.root();
            let mut editor = func.editor();
            let call = editor.call_named("print", &[editor.body.tail(root)])?;
            let tail_holder = std::iter::successors(Some(root), |&id| match editor.body.expr(id) {
                anfora_ir::Expr::Let { body, .. } => Some(body),
                _ => None,
            })
            .filter(|&id| matches!(editor.body.expr(id), anfora_ir::Expr::Let { .. }))
            .last()
            .expect("it has bindings");
            editor.body.set_let_body(tail_holder, call);
        }
        let g = func.cx.find_global("g").expect("it is there");
        assert!(module.purity().global_is_pure(g));
        Ok(())
    });
    let mut module = module();
    assert_eq!(pass.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Changed);
    let g = module.cx.find_global("g").unwrap();
    assert!(!anfora_ir::Purity::of_module(&module).global_is_pure(g));
}

#[test]
fn an_empty_sequence_does_nothing() {
    let mut module = module();
    let before = snapshot(&module);
    let passes = Sequential::new(Vec::new()).unwrap();
    assert_eq!(passes.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Unchanged);
    assert_eq!(snapshot(&module), before);
}

#[test]
fn sequences_run_modules_and_functions_passes_in_order() {
    let log = Log::default();
    let note = log.clone();
    let functions = FunctionPass::new("functions", 0, move |func, _, _| {
        note.note(func.name());
        Ok(())
    });
    let note = log.clone();
    let modules = ModulePass::new("modules", 0, move |module, _| {
        note.note(format!("{} functions", module.order().len()));
        crate::support::add_function(module, "new");
        Ok(())
    });
    let passes = Sequential::new(vec![Arc::new(modules), Arc::new(functions)]).unwrap();
    passes.apply(&mut module(), &PassContext::new()).unwrap();
    assert_eq!(log.take(), ["3 functions", "f", "g", "h", "new"]);
}

#[test]
fn the_level_holds_wherever_a_pass_is_run() {
    let level = |n| PassContext::builder().opt_level(n).build().unwrap();
    let passes: Vec<Arc<dyn Pass>> = vec![
        Arc::new(ModulePass::new("always", 0, |m, _| {
            let n = bumps(m);
            set_bumps(m, n + 1);
            Ok(())
        })),
        Arc::new(ModulePass::new("aggressive", 3, |m, _| {
            let n = bumps(m);
            set_bumps(m, n + 10);
            Ok(())
        })),
    ];
    let nested = Sequential::new(vec![Arc::new(Sequential::new(passes.clone()).unwrap())]).unwrap();
    for (n, expected) in [(0, 1), (2, 1), (3, 11)] {
        let mut module = empty_module();
        nested.apply(&mut module, &level(n)).unwrap();
        assert_eq!(bumps(&module), expected);
    }
    // The level also holds for a pass on its own.
    let outcome = passes[1].apply(&mut empty_module(), &level(2)).unwrap();
    assert_eq!(outcome, Outcome::Skipped(SkipReason::OptLevel { pass: 3, context: 2 }));
    // It also holds for a sequence.
    let high = Sequential::named(PassInfo::new("high", 3), passes).unwrap();
    assert!(high.apply(&mut empty_module(), &level(2)).unwrap().is_skipped());
}

#[test]
fn disabled_beats_required_and_required_beats_the_level() {
    let cx = PassContext::builder()
        .opt_level(0)
        .knowing("a")
        .knowing("b")
        .require("a")
        .require("b")
        .disable("b")
        .build()
        .unwrap();
    let mut module = empty_module();
    let a = ModulePass::new("a", 3, |m, _| {
        set_bumps(m, 1);
        Ok(())
    });
    assert_eq!(a.apply(&mut module, &cx).unwrap(), Outcome::Changed);
    assert_eq!(idle("b", 0).apply(&mut module, &cx).unwrap(), Outcome::Skipped(SkipReason::Disabled));
    assert_eq!(
        idle("c", 1).apply(&mut module, &cx).unwrap(),
        Outcome::Skipped(SkipReason::OptLevel { pass: 1, context: 0 })
    );
    let remarks: Vec<String> = cx.take_remarks().into_iter().map(|r| r.diagnostic.message).collect();
    assert_eq!(
        remarks,
        ["pass `b` was skipped: it is disabled", "pass `c` was skipped: it runs from level 1, and the level is 0"]
    );
}

/// Makes a pass that decrements the count of the module until it is zero.
fn count_down(name: &str) -> ModulePass {
    ModulePass::new(name, 0, |m, _| {
        let n = bumps(m);
        if n > 0 {
            set_bumps(m, n - 1);
        }
        Ok(())
    })
}

#[test]
fn repetition_stops_when_nothing_changes() {
    for (start, max_rounds, left, remarks) in [(3, 10, 0, 0), (3, 2, 1, 1), (0, 10, 0, 0)] {
        let mut module = empty_module();
        set_bumps(&mut module, start);
        let cx = PassContext::new();
        let repeat = Repeat::new(vec![Arc::new(count_down("down"))], max_rounds).unwrap();
        assert_eq!(repeat.apply(&mut module, &cx).unwrap().is_changed(), start > 0);
        assert_eq!(bumps(&module), left);
        assert_eq!(cx.take_remarks().len(), remarks);
    }
}

#[test]
fn repetition_does_not_run_what_has_seen_the_module_as_it_is() {
    let log = Log::default();
    let cx = context(&[Recorder::new("i", &log)]);
    let mut module = empty_module();
    set_bumps(&mut module, 1);
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(count_down("a")), Arc::new(idle("b", 0)), Arc::new(idle("c", 0))];
    Repeat::new(passes, 10).unwrap().apply(&mut module, &cx).unwrap();
    let ran: Vec<String> = log.take().into_iter().filter(|e| e.contains("before")).collect();
    assert_eq!(ran, ["i before fixpoint<10>", "i before a", "i before b", "i before c", "i before a"]);
}

#[test]
fn a_sequence_in_a_repetition_counts_as_changed() {
    let mut module = empty_module();
    set_bumps(&mut module, 3);
    let inner = Sequential::new(vec![Arc::new(count_down("a")), Arc::new(idle("b", 0))]).unwrap();
    let outcome = Repeat::new(vec![Arc::new(inner)], 10).unwrap().apply(&mut module, &PassContext::new()).unwrap();
    assert_eq!((outcome, bumps(&module)), (Outcome::Changed, 0));
}

#[test]
fn sequences_nest_so_deep_and_no_deeper() {
    let mut pass: Arc<dyn Pass> = Arc::new(bump("p"));
    for _ in 0..MAX_NESTING {
        pass = Arc::new(Sequential::new(vec![pass]).unwrap());
    }
    let mut module = empty_module();
    pass.apply(&mut module, &PassContext::new()).unwrap();
    assert_eq!(bumps(&module), 1);
    assert_eq!(Sequential::new(vec![pass.clone()]).unwrap_err(), NestingError);
    assert!(matches!(Repeat::new(vec![pass], 1), Err(NestingError)));
}

#[test]
fn a_pass_that_runs_itself_without_end_is_an_error() {
    struct Endless(PassInfo);
    impl Pass for Endless {
        fn info(&self) -> &PassInfo {
            &self.0
        }
        fn run(
            &self,
            module: &mut anfora_ir::Module,
            cx: &PassContext,
        ) -> Result<Outcome, anfora_manager::PassFailure> {
            self.apply(module, cx)
        }
    }
    let failure = Endless(PassInfo::new("endless", 0)).apply(&mut empty_module(), &PassContext::new()).unwrap_err();
    assert_eq!(failure.error().message(), "passes nest more than 64 deep");
}

#[test]
fn a_pass_of_ones_own_type_is_a_transaction_too() {
    struct Mine(PassInfo, AtomicUsize);
    impl Pass for Mine {
        fn info(&self) -> &PassInfo {
            &self.0
        }
        fn run(&self, module: &mut anfora_ir::Module, _: &PassContext) -> Result<Outcome, anfora_manager::PassFailure> {
            set_bumps(module, 9);
            match self.1.fetch_add(1, Ordering::Relaxed) {
                0 => Err(anfora_manager::PassError::new("not the first time").into()),
                // The change of the module is detected, whatever the pass returns.
                _ => Ok(Outcome::Unchanged),
            }
        }
    }
    let pass = Mine(PassInfo::new("mine", 0), AtomicUsize::new(0));
    let mut module = empty_module();
    assert_eq!(pass.apply(&mut module, &PassContext::new()).unwrap_err().pass(), "mine");
    assert_eq!(bumps(&module), 0);
    assert_eq!(pass.apply(&mut module, &PassContext::new()).unwrap(), Outcome::Changed);
    assert_eq!(bumps(&module), 9);
}

/// Returns a module in which @callee negates its parameter, and has a result type that is less
/// specific than possible; @caller_0 negates the result of @callee, @caller_1 that of @caller_0,
/// and so on.
fn callers(n: usize) -> anfora_ir::Module {
    let mut module = module_of(&[]);
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    let open = module.cx.types.unranked(DType::Float32);
    let mut f = FunctionBuilder::new(&mut module, "callee");
    let x = f.param("x", ty);
    let call = f.call_op("negate", &[x], &[]).unwrap();
    f.body().set_type(call, open);
    let a = f.bind("a", call);
    f.finish(a).unwrap();
    for i in 0..n {
        let callee = if i == 0 { "callee".to_string() } else { format!("caller_{}", i - 1) };
        let mut f = FunctionBuilder::new(&mut module, &format!("caller_{i}"));
        let x = f.param("x", ty);
        let global = f.global(&callee);
        let call = f.call(global, &[x]).unwrap();
        let a = f.bind("a", call);
        let call = f.call_op("negate", &[a], &[]).unwrap();
        let b = f.bind("b", call);
        f.finish(b).unwrap();
    }
    module
}

#[test]
fn callers_learn_of_a_more_specific_result() {
    let pass = |fails: bool| {
        FunctionPass::new("p", 0, move |func, _, _| {
            if func.name() == "callee" {
                let root = func.function.body.root();
                let Expr::Let { value, .. } = func.function.body.expr(root) else { return Err("no binding".into()) };
                let mut editor = func.editor();
                if editor.refresh_type(value)? {
                    retype_from(editor.cx, editor.body, value, root).map_err(|e| e.error)?;
                }
            }
            if fails && func.name() == "caller_7" { Err("no".into()) } else { Ok(()) }
        })
    };
    let mut module = callers(50);
    let before = snapshot(&module);
    let cx = PassContext::builder().instrument(Arc::new(VerifyEach::new())).build().unwrap();
    pass(true).apply(&mut module, &cx).unwrap_err();
    assert_eq!(snapshot(&module), before);
    assert_eq!(pass(false).apply(&mut module, &cx).unwrap(), Outcome::Changed);
    let fixed = module.cx.types.static_tensor(DType::Float32, &[8]);
    for (key, f) in module.functions() {
        assert_eq!(f.body.type_of(f.body.root()), fixed, "{}", module.name(key));
    }
    assert_eq!(pass(false).apply(&mut module, &cx).unwrap(), Outcome::Unchanged);
}
