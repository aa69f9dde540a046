//! Recordings: the passes that ran, the lines that they changed, and the history of a binding.

use std::sync::Arc;

use anfora_ir::{Body, Diagnostic, Expr, ExprId, Function, FunctionKey, Module};
use anfora_manager::{
    BindingEventKind, FunctionPass, ModulePass, Pass, PassContext, PassError, RecordedOutcome, RecordedPass, Recorder,
    Recording, Repeat, Sequential,
};

use crate::support::{add_function, idle, module, module_of};

/// Returns the first Let of a body whose variable has this name, and the Let before it.
fn find(cx: &anfora_ir::Context, body: &Body, name: &str) -> (Option<ExprId>, ExprId) {
    let (mut before, mut at) = (None, body.root());
    while let Expr::Let { body: rest, .. } = body.expr(at) {
        if body.binding_name(cx, at) == Some(name) {
            return (before, at);
        }
        (before, at) = (Some(at), rest);
    }
    panic!("there is no %{name}")
}

/// A pass that gives @f another chain: `%b` is computed by `add`, `%n` is new before it, and `%c`
/// is removed.
fn rework() -> FunctionPass {
    FunctionPass::new("Rework", 0, |edit, _, cx| {
        if edit.name() != "f" {
            return Ok(());
        }
        let mut editor = edit.editor();
        let (before, b) = find(editor.cx, editor.body, "b");
        let a = before.expect("%a is before %b");
        let Expr::Let { var: x, value, .. } = editor.body.expr(a) else { panic!("a Let") };
        let used = editor.body.operands_of(value)[0];
        let sum = editor.call_named("add", &[x.expr(), used])?;
        let Expr::Let { var, body: rest, flags, .. } = editor.body.expr(b) else { panic!("a Let") };
        let ty = editor.body.ty(sum);
        let name = editor.cx.names.intern("n");
        let new = editor.var(Some(name), anfora_ir::VarFlags::PLAIN, ty);
        let negated = editor.call_named("negate", &[x.expr()])?;
        // %c goes; the tail names %b.
        let Expr::Let { .. } = editor.body.expr(rest) else { panic!("%c is after %b") };
        let changed = editor.let_(var, sum, var.expr(), flags);
        let inserted = editor.let_(new, negated, changed, flags);
        editor.body.set_let_body(a, inserted);
        edit.report(a, Diagnostic::remark("the operand is not a constant"));
        cx.count("chains reworked", 1);
        Ok(())
    })
}

fn recorded(pass: &dyn Pass, module: &mut Module) -> Recording {
    let recorder = Arc::new(Recorder::new());
    let cx = PassContext::builder().instrument(recorder.clone()).build().unwrap();
    let _ = pass.apply(module, &cx);
    recorder.recording()
}

fn texts<'r>(recording: &'r Recording, lines: &[u32]) -> Vec<&'r str> {
    lines.iter().map(|&line| &*recording.lines[line as usize].text).collect()
}

/// Returns the rows of a function after a number of runs, which follow from the program and the
/// hunks.
fn rows_after(recording: &Recording, function: usize, runs: usize) -> Vec<u32> {
    let program = recording.program.iter().find(|(of, _)| *of == function);
    let mut rows = program.map_or_else(Vec::new, |(_, rows)| rows.clone());
    for run in &recording.runs[..runs] {
        for change in run.changes.iter().filter(|change| change.function == function) {
            for hunk in change.hunks.iter().rev() {
                let old = hunk.at[0]..hunk.at[0] + hunk.old.len();
                assert_eq!(rows[old.clone()], hunk.old, "the old rows are where the hunk says");
                rows.splice(old, hunk.new.iter().copied());
            }
        }
    }
    rows
}

#[test]
fn a_changed_function_is_recorded_as_hunks_of_its_rows() {
    let mut module = module();
    let recording = recorded(&rework(), &mut module);
    let [run] = &recording.runs[..] else { panic!("one run") };
    assert_eq!((&*run.name, &run.outcome), ("Rework", &RecordedOutcome::Changed));
    assert_eq!(run.counts, [("chains reworked", 1)]);
    assert_eq!(run.messages[0].binding.as_deref(), Some("a"));
    let [change] = &run.changes[..] else { panic!("only @f changed: {:?}", run.changes) };
    assert_eq!(recording.functions[change.function], "f");
    assert_eq!(change.bindings, [1, 1, 1]);
    let [hunk] = &change.hunks[..] else { panic!("{:?}", change.hunks) };
    assert_eq!(texts(&recording, &hunk.old), ["let %b = negate(%a);", "let %c = add(%b, %a);", "%c"]);
    assert_eq!(texts(&recording, &hunk.new), ["let %n = negate(%a);", "let %b = add(%a, %x);", "%b"]);
    assert_eq!(texts(&recording, &hunk.before).last(), Some(&"let %a = add(%x, %x);"));
    assert_eq!(recording.operators["add"], 6);
    assert_eq!(run.operators.get("add"), None, "one call of it went, and one came");
    let json = recording.to_json();
    assert_eq!(json["runs"][0]["changes"][0]["bindings"], serde_json::json!([1, 1, 1]));
    assert_eq!(json["lines"][hunk.new[0] as usize][0], "let %n = negate(%a);");
}

#[test]
fn the_rows_after_each_pass_follow_from_the_hunks() {
    let mut module = module();
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(rework()), Arc::new(remove_first()), Arc::new(rework_again())];
    let recording = recorded(&Sequential::new(passes).unwrap(), &mut module);
    for (i, name) in recording.functions.iter().enumerate() {
        let rows = rows_after(&recording, i, recording.runs.len());
        let Some(key) = module.find(name) else {
            assert!(rows.is_empty());
            continue;
        };
        let printed = printed_rows(&module, key);
        let lines = texts(&recording, &rows);
        assert_eq!(lines[1..], printed[..], "@{name}");
    }
}

/// Returns the lines of a function in the text of the module, which has no blocks in it.
fn printed_rows(module: &Module, key: FunctionKey) -> Vec<String> {
    let mut text = String::new();
    anfora_ir::print_function(module, key, &Default::default(), &mut text).unwrap();
    let lines = text.lines().skip(1).map(|line| line.trim().to_string());
    lines.filter(|line| line != "}").collect()
}

/// A pass that removes @g and adds @k.
fn remove_first() -> ModulePass {
    ModulePass::new("Remove", 0, |module, _| {
        let key = module.find("g").expect("@g is there");
        module.remove(&[key]);
        add_function(module, "k");
        Ok(())
    })
}

/// A pass that replaces the body of @h by another one, with other ids.
fn rework_again() -> FunctionPass {
    FunctionPass::new("Replace", 0, |edit, _, _| {
        if edit.name() == "h" {
            let mut other = edit.function.body.clone();
            while other.has_journal() {
                other.commit_journal();
            }
            anfora_ir::compact_body(&mut other).expect("no edit is open");
            let (_, c) = find(edit.cx, &other, "c");
            let Expr::Let { value, .. } = other.expr(c) else { panic!("a Let") };
            let b = other.operands_of(value)[0];
            other.set_let_body(c, b);
            edit.function.body.replace(other);
        }
        Ok(())
    })
}

#[test]
fn a_binding_has_a_history() {
    let mut module = module();
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(idle("Idle", 0)), Arc::new(rework()), Arc::new(remove_first())];
    let recording = recorded(&Sequential::new(passes).unwrap(), &mut module);
    let kinds = |function: &str, binding: &str| {
        let events = recording.history(function, binding);
        events.iter().map(|e| (&*recording.runs[e.run].name, e.kind)).collect::<Vec<_>>()
    };
    assert_eq!(kinds("f", "n"), [("Rework", BindingEventKind::Made)]);
    assert_eq!(kinds("f", "b"), [("Rework", BindingEventKind::Changed)]);
    assert_eq!(kinds("f", "c"), [("Rework", BindingEventKind::Removed)]);
    assert_eq!(kinds("f", "a"), [], "it was in the program and stays");
    assert_eq!(kinds("g", "a"), [("Remove", BindingEventKind::Removed)]);
    assert_eq!(kinds("k", "a"), [("Remove", BindingEventKind::Made)]);
    let event = &recording.history("f", "b")[0];
    assert_eq!((event.before, event.after), (Some("let %b = negate(%a);"), Some("let %b = add(%a, %x);")));
}

#[test]
fn runs_nest_and_fixpoints_have_rounds() {
    let mut module = module();
    let inside: Vec<Arc<dyn Pass>> = vec![Arc::new(once()), Arc::new(idle("Idle", 0))];
    let passes: Vec<Arc<dyn Pass>> =
        vec![Arc::new(Repeat::new(inside, 5).unwrap()), Arc::new(idle("Costly", 3)), Arc::new(failing())];
    let recording = recorded(&Sequential::new(passes).unwrap(), &mut module);
    let shown = |run: &RecordedPass| {
        let outcome = match &run.outcome {
            RecordedOutcome::Failed(why) => format!("Failed: {}", why.lines().next().unwrap_or_default()),
            other => format!("{other:?}"),
        };
        format!("{} in {:?} round {:?}: {outcome}", run.name, run.parent, run.round)
    };
    let runs: Vec<String> = recording.runs.iter().map(shown).collect();
    assert_eq!(
        runs[..6],
        [
            "sequential in None round None: Failed: pass `Failing` failed: it does not want to (in @f) [sequential]",
            "fixpoint<5> in Some(0) round None: Changed",
            "Once in Some(1) round Some(1): Changed",
            "Idle in Some(1) round Some(1): Unchanged",
            "Once in Some(1) round Some(2): Unchanged",
            "Costly in Some(0) round None: Skipped(\"it runs from level 3, and the level is 2\")",
        ]
    );
    assert!(recording.runs[6].changes.is_empty(), "the changes of a pass that failed were rolled back");
    assert!(recording.history("f", "b").is_empty());
}

/// A pass that changes each function the first time.
fn once() -> FunctionPass {
    FunctionPass::new("Once", 0, |edit, _, _| {
        let size = edit.cx.int_attr(1);
        edit.function.attrs = edit.cx.with_attr(edit.function.attrs, "seen", Some(size));
        Ok(())
    })
}

fn failing() -> FunctionPass {
    FunctionPass::new("Failing", 0, |edit, _, _| {
        let (_, b) = find(edit.cx, &edit.function.body, "b");
        let Expr::Let { body: rest, .. } = edit.function.body.expr(b) else { panic!("a Let") };
        edit.function.body.set_root(rest);
        Err(PassError::new("it does not want to"))
    })
}

#[test]
fn a_recording_is_bounded() {
    let names: Vec<String> = (0..8000).map(|i| format!("f{i}")).collect();
    let mut module = module_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let cut = FunctionPass::new("Cut", 0, |edit, _, _| {
        let Function { body, .. } = &mut *edit.function;
        let (before, _) = find(edit.cx, body, "b");
        let a = before.expect("%a is before %b");
        let Expr::Let { var, .. } = body.expr(a) else { panic!("a Let") };
        body.set_let_body(a, var.expr());
        Ok(())
    });
    let recording = recorded(&cut, &mut module);
    let [run] = &recording.runs[..] else { panic!("one run") };
    assert_eq!(run.changes.len(), 8000, "each function is there");
    let rows: usize = run.changes.iter().flat_map(|c| &c.hunks).map(|h| h.old.len() + h.new.len()).sum();
    let left_out: usize = run.changes.iter().map(|c| c.rows_left_out).sum();
    assert!(rows <= anfora_manager::MAX_ROWS_OF_RUN && left_out > 0, "{rows} {left_out}");
    assert!(run.changes.iter().all(|change| change.bindings == [0, 0, 2]), "all bindings are counted");
}
