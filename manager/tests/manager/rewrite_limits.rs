//! The context counts rewrites over passes, and stops them at a limit.

use std::sync::{Arc, Mutex};

use anfora_ir::{Editor, LogPosition, Module, RewriteOptions, Source};
use anfora_manager::{
    Declare, FunctionPass, LastRun, ModulePass, Outcome, Pass, PassContext, PassEntry, PassError, PassRegistry, Repeat,
    ReproducerFile, Sequential, SkipReason, Verdict,
};

use crate::support::{bump, bumps, empty_module, module, ops};

/// Makes a pass that renames the root of each function, without counting it.
fn touch(name: &str) -> FunctionPass {
    FunctionPass::new(name, 0, |edit, _, _| {
        let mark = edit.cx.int_attr(1);
        edit.function.attrs = edit.cx.with_attr(edit.function.attrs, "touched", Some(mark));
        Ok(())
    })
}

fn touched(module: &Module) -> usize {
    module.functions().filter(|(_, f)| module.cx.find_attr(f.attrs, "touched").is_some()).count()
}

/// Makes a pass that counts two rewrites of each function, of which it makes as many as it may.
fn count_two(name: &str) -> FunctionPass {
    FunctionPass::new(name, 0, |edit, _, cx| {
        for _ in 0..2 {
            let root = edit.function.body.root();
            let editor = Editor::new(edit.cx, &mut edit.function.body);
            if editor.may_rewrite() {
                editor.rewrote(root, "one of two");
                cx.count("made", 1);
            }
        }
        Ok(())
    })
}

fn sequence(passes: Vec<Arc<dyn Pass>>) -> Sequential {
    Sequential::new(passes).unwrap()
}

#[test]
fn passes_that_count_nothing_count_once_for_each_function() {
    let passes = sequence(vec![Arc::new(touch("touch")), Arc::new(bump("bump")), Arc::new(bump("again"))]);
    for limit in 0..=6 {
        let cx = PassContext::builder().threads(4).worth_sharing(0).limit_rewrites(limit).build().unwrap();
        let mut module = module();
        passes.apply(&mut module, &cx).unwrap();
        assert_eq!(touched(&module) as u64, limit.min(3));
        assert_eq!(bumps(&module) as u64, limit.saturating_sub(3).min(2));
        assert_eq!(cx.rewrites().count(), limit.min(5));
    }
}

#[test]
fn passes_that_count_are_not_counted_twice() {
    let cx = PassContext::builder().limit_rewrites(3).build().unwrap();
    let mut module = module();
    count_two("two").apply(&mut module, &cx).unwrap();
    assert_eq!((cx.rewrites().count(), cx.statistics().get("two", "made")), (3, 3));
    let skipped = touch("touch").apply(&mut module, &cx).unwrap();
    assert_eq!((skipped, touched(&module)), (Outcome::Skipped(SkipReason::RewriteLimit), 0));
    let remarks = cx.take_remarks();
    assert!(remarks.iter().any(|r| r.diagnostic.message.contains("the limit of rewrites is reached")), "{remarks:?}");
}

#[test]
fn nothing_runs_without_rewrites_left() {
    let cx = PassContext::builder().limit_rewrites(0).build().unwrap();
    let mut module = empty_module();
    let failing = ModulePass::new("failing", 0, |_, _| Err(PassError::new("no")));
    let passes = Repeat::new(vec![Arc::new(bump("bump")), Arc::new(failing)], 5).unwrap();
    assert!(!passes.apply(&mut module, &cx).unwrap().is_changed());
    assert_eq!(bumps(&module), 0);
    assert!(!module.cx.rewrites.is_on());
}

#[test]
fn records_name_pass_and_function() {
    let cx = PassContext::builder()
        .rewrites(RewriteOptions { recorded: Some(2..=4), spans: true, ..RewriteOptions::default() })
        .build()
        .unwrap();
    let mut module = module();
    sequence(vec![Arc::new(touch("touch")), Arc::new(bump("bump")), Arc::new(count_two("two"))])
        .apply(&mut module, &cx)
        .unwrap();
    let records = cx.rewrites().read_records(&mut LogPosition::default()).0;
    let shown: Vec<String> = records
        .iter()
        .map(|r| format!("{} {} @{} {}", r.number, r.pass, r.function.as_deref().unwrap_or("-"), r.why))
        .collect();
    assert_eq!(
        shown,
        ["2 touch @g changed the function", "3 touch @h changed the function", "4 bump @- changed the module"]
    );
    let spans: Vec<(u64, u64)> = cx.rewrites().spans().iter().map(|s| (s.run, s.first)).collect();
    assert_eq!(spans, [(1, 1), (1, 2), (1, 3), (2, 4), (3, 5), (3, 7), (3, 9)]);
}

#[test]
fn records_of_a_pass_that_fails_are_marked() {
    let cx = PassContext::builder()
        .rewrites(RewriteOptions { recorded: Some(1..=9), ..RewriteOptions::default() })
        .build()
        .unwrap();
    let mut module = module();
    touch("touch").apply(&mut module, &cx).unwrap();
    let failing = FunctionPass::new("failing", 0, |edit, _, _| {
        let root = edit.function.body.root();
        edit.editor().rewrote(root, "in vain");
        edit.error(root, "it is wrong");
        Ok(())
    });
    failing.apply(&mut module, &cx).unwrap_err();
    let undone: Vec<bool> =
        cx.rewrites().read_records(&mut LogPosition::default()).0.iter().map(|r| r.is_undone).collect();
    assert_eq!(undone, [false, false, false, true, true, true]);
}

/// The pass `Fail`, which fails if the module was bumped at least three times.
fn registry() -> Arc<PassRegistry> {
    let mut registry = PassRegistry::new();
    let entry = |name, make| PassEntry { name, doc: "for tests", opt_level: 0, options: &[], configs: &[], make };
    registry.register(entry("Bump", |_| Ok(Arc::new(bump("Bump"))))).unwrap();
    registry
        .register(entry("Fail", |_| {
            Ok(Arc::new(ModulePass::new("Fail", 0, |module, _| match bumps(module) {
                3.. => Err(PassError::new("bumped too often")),
                _ => Ok(()),
            })))
        }))
        .unwrap();
    Arc::new(registry)
}

#[test]
fn the_last_run_can_be_run_again() {
    let registry = registry();
    let last = Arc::new(LastRun::new());
    let cx = PassContext::builder().registry(registry.clone()).instrument(last.clone()).build().unwrap();
    let passes = anfora_manager::parse_pipeline(&registry, "Bump,Bump,Bump,Fail,Bump").unwrap();
    let mut module = module();
    let failure = passes.apply(&mut module, &cx).unwrap_err();
    let run = last.take().expect("passes ran");
    assert_eq!((run.number, &*run.pass, bumps(&run.module)), (4, "Fail", 3));
    let text = run.reproducer(&run.module, Some(&failure));
    let file = ReproducerFile::parse(Source::new("left.anf", text)).unwrap();
    assert_eq!((file.pass(), file.rewrites(), file.instruments().count()), ("Fail", None, 0));
    assert_eq!(file.run(&registry, ops(), &[]).unwrap().verdict, Verdict::FailedAsRecorded);
    assert!(last.take().is_none());
}

#[test]
fn a_reproducer_has_the_rewrites_that_are_left() {
    let registry = registry();
    let last = Arc::new(LastRun::new());
    let cx =
        PassContext::builder().registry(registry.clone()).instrument(last.clone()).limit_rewrites(2).build().unwrap();
    let passes = anfora_manager::parse_pipeline(&registry, "Bump,Bump,Bump").unwrap();
    let mut module = module();
    passes.apply(&mut module, &cx).unwrap();
    let run = last.take().expect("passes ran");
    let file = ReproducerFile::parse(Source::new("left.anf", run.reproducer(&run.module, None))).unwrap();
    assert_eq!((run.number, file.rewrites()), (2, Some(1)));
    assert_eq!(bumps(&file.run(&registry, ops(), &[]).unwrap().module), 2);
}

#[test]
fn derived_contexts_count_on() {
    let cx = PassContext::builder().limit_rewrites(2).build().unwrap();
    let mut module = empty_module();
    bump("a").apply(&mut module, &cx).unwrap();
    let derived = cx.derive().opt_level(3).build().unwrap();
    bump("b").apply(&mut module, &derived).unwrap();
    bump("c").requiring(["nothing"]).apply(&mut module, &derived).unwrap();
    assert_eq!((bumps(&module), cx.rewrites().count()), (2, 2));
}

/// Makes a pass that runs another one under a context of its own, on four threads.
fn under_another_context(inner: FunctionPass) -> ModulePass {
    ModulePass::new("outer", 0, move |module, _| {
        let cx =
            PassContext::builder().threads(4).worth_sharing(0).build().map_err(|e| PassError::new(e.to_string()))?;
        inner.apply(module, &cx)?;
        Ok(())
    })
}

#[test]
fn passes_under_another_context_count_in_the_ledger_of_the_module() {
    for limit in 0..=4 {
        let options = RewriteOptions { limit: Some(limit), recorded: Some(1..=9), ..RewriteOptions::default() };
        let cx = PassContext::builder().rewrites(options).build().unwrap();
        let mut module = module();
        under_another_context(touch("touch")).apply(&mut module, &cx).unwrap();
        assert_eq!((touched(&module) as u64, cx.rewrites().count()), (limit.min(3), limit.min(3)));
        let records = cx.rewrites().read_records(&mut LogPosition::default()).0;
        assert!(records.iter().all(|record| &*record.pass == "touch"), "{records:?}");
    }
}

#[test]
fn clones_that_a_pass_keeps_are_not_limited_after_it() {
    let kept: Arc<Mutex<Option<Module>>> = Arc::default();
    let keeping = {
        let kept = kept.clone();
        ModulePass::new("keep", 0, move |module, _| {
            *kept.lock().unwrap() = Some(module.clone());
            module.cx.rewrites.note(None, "kept");
            Ok(())
        })
    };
    let cx = PassContext::builder().limit_rewrites(1).build().unwrap();
    keeping.apply(&mut module(), &cx).unwrap();
    let mut clone = kept.lock().unwrap().take().unwrap();
    assert!(!clone.cx.rewrites.is_on());
    touch("touch").apply(&mut clone, &PassContext::new()).unwrap();
    assert_eq!((touched(&clone), cx.rewrites().count()), (3, 1));
}
