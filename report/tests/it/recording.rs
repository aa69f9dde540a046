//! Recordings: the passes that ran, the lines that they changed, and the history of a binding.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anfora_ir::{
    Body, DType, Diagnostic, Editor, Expr, ExprId, Function, FunctionBuilder, FunctionKey, LetFlags, Literal, Module,
    VarFlags,
};
use anfora_manager::{
    Declare, FunctionPass, ModulePass, Pass, PassContext, PassError, PassRegistry, Repeat, Sequential,
};
use anfora_report::{
    BindingEventKind, MAX_FUNCTIONS_OF_RUN, MAX_RECORDING_BYTES, MAX_ROWS_OF_RUN, RecordedOutcome, RecordedPass,
    Recorder, Recording,
};

use crate::support::{add_function, idle, module, module_of, once};

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
        let negated = editor.call_named("negative", &[x.expr()])?;
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
    assert_eq!(texts(&recording, &hunk.old), ["let %b = negative(%a);", "let %c = add(%b, %a);", "%c"]);
    assert_eq!(texts(&recording, &hunk.new), ["let %n = negative(%a);", "let %b = add(%a, %x);", "%b"]);
    assert_eq!(texts(&recording, &hunk.before).last(), Some(&"let %a = add(%x, %x);"));
    assert_eq!(recording.operators["add"], 6);
    assert_eq!(run.operators.get("add"), None, "one call of it went, and one came");
    let json = recording.to_json();
    assert_eq!(json["runs"][0]["changes"][0]["bindings"], serde_json::json!([1, 1, 1]));
    assert_eq!(json["lines"][hunk.new[0] as usize][0], "let %n = negative(%a);");
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
    assert_eq!((event.before, event.after), (Some("let %b = negative(%a);"), Some("let %b = add(%a, %x);")));
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
    assert_eq!(recording.pipeline(), "fixpoint<5>(Once,Idle),Costly,Failing");
    assert!(recording.runs[6].changes.is_empty(), "the changes of a pass that failed were rolled back");
    assert!(recording.history("f", "b").is_empty());
}

fn failing() -> FunctionPass {
    FunctionPass::new("Failing", 0, |edit, _, _| {
        let (_, b) = find(edit.cx, &edit.function.body, "b");
        let Expr::Let { body: rest, .. } = edit.function.body.expr(b) else { panic!("a Let") };
        edit.function.body.set_root(rest);
        Err(PassError::new("it does not want to"))
    })
}

/// A pass that makes `%a` the result of each function, which leaves `%b` and `%c` out.
fn cut() -> FunctionPass {
    FunctionPass::new("Cut", 0, |edit, _, _| {
        let Function { body, .. } = &mut *edit.function;
        let (before, _) = find(edit.cx, body, "b");
        let a = before.expect("%a is before %b");
        let Expr::Let { var, .. } = body.expr(a) else { panic!("a Let") };
        body.set_let_body(a, var.expr());
        Ok(())
    })
}

#[test]
fn rounds_are_those_of_the_fixpoint() {
    let mut module = module();
    let mut registry = PassRegistry::new();
    registry.register_pass(idle("Needed", 0), "Does nothing").unwrap();
    let rounds = AtomicU32::new(0);
    let first = ModulePass::new("First", 0, move |module, _| {
        // It changes the module in the first two rounds.
        let round = rounds.fetch_add(1, Ordering::Relaxed);
        if round < 2 {
            let value = module.cx.int_attr(i64::from(round));
            let attrs = module.cx.with_attr(module.attrs(), "round", Some(value));
            module.set_attrs(attrs);
        }
        Ok(())
    });
    let first = Arc::new(first.requiring(["Needed"]));
    let twice: Arc<dyn Pass> = Arc::new(idle("Mine", 0));
    let inside: Vec<Arc<dyn Pass>> = vec![first, twice.clone(), Arc::new(idle("Other", 0)), twice];
    let recorder = Arc::new(Recorder::new());
    let cx = PassContext::builder().registry(Arc::new(registry)).instrument(recorder.clone()).build().unwrap();
    Repeat::new(inside, 4).unwrap().apply(&mut module, &cx).unwrap();
    let runs = recorder.recording().runs;
    let seen: Vec<(&str, Option<u32>)> = runs[1..].iter().map(|run| (&*run.name, run.round)).collect();
    let round = |n| [("Needed", Some(n)), ("First", Some(n)), ("Mine", Some(n)), ("Other", Some(n)), ("Mine", Some(n))];
    assert_eq!(seen[..10], [round(1), round(2)].concat());
}

#[test]
fn a_recording_is_bounded() {
    let names: Vec<String> = (0..8000).map(|i| format!("f{i}")).collect();
    let mut module = module_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let recording = recorded(&cut(), &mut module);
    let [run] = &recording.runs[..] else { panic!("one run") };
    let rows: usize = run.changes.iter().flat_map(|c| &c.hunks).map(|h| h.old.len() + h.new.len()).sum();
    assert!(rows <= MAX_ROWS_OF_RUN && run.changes.len() <= MAX_FUNCTIONS_OF_RUN, "{rows} {}", run.changes.len());
    assert_eq!(run.changes.len() + run.functions_left_out, 8000, "all functions are counted");
    assert!(run.changes.iter().all(|change| change.bindings == [0, 0, 2]));
    let kinds = |function| recording.history(function, "b").iter().map(|event| event.kind).collect::<Vec<_>>();
    assert_eq!(kinds("f0"), [BindingEventKind::Removed]);
    assert_eq!(kinds("f7999"), [BindingEventKind::NotKept]);
}

/// Returns a module with a function of a chain of so many bindings.
fn chain_of(bindings: usize) -> Module {
    let mut module = module_of(&[]);
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    let mut f = FunctionBuilder::new(&mut module, "long");
    let mut last = f.param("x", ty);
    for i in 0..bindings {
        let call = f.call_op("negative", &[last], &[]).unwrap();
        last = f.bind(&format!("v{i}"), call);
    }
    f.finish(last).unwrap();
    module
}

/// A pass that removes all bindings of each function.
fn clear() -> FunctionPass {
    FunctionPass::new("Clear", 0, |edit, _, _| {
        let x = edit.function.body.params()[0].expr();
        edit.function.body.set_root(x);
        Ok(())
    })
}

#[test]
fn the_head_of_a_large_change_is_kept() {
    let mut module = chain_of(50_000);
    let recording = recorded(&clear(), &mut module);
    let [change] = &recording.runs[0].changes[..] else { panic!("one function") };
    let [hunk] = &change.hunks[..] else { panic!("one hunk") };
    assert_eq!(hunk.at, [1, 1]);
    let kept = hunk.old.len() + hunk.new.len();
    assert!(kept > MAX_ROWS_OF_RUN / 2 && kept <= MAX_ROWS_OF_RUN, "{kept}");
    assert_eq!(texts(&recording, &hunk.old[..1]), ["let %v0 = negative(%x);"]);
    assert_eq!(hunk.old.len() + hunk.left_out[0], 50_001, "the other rows are counted at their place");
    assert_eq!((change.rows_left_out, change.bindings), (50_002 - kept, [0, 0, 50_000]));
    // What became of bindings out of sight is not known.
    let event = |name| recording.history("long", name)[0].clone();
    assert_eq!(event("v40000").kind, BindingEventKind::NotKept);
    assert_eq!((event("v0").kind, event("v0").after), (BindingEventKind::NotKept, None));
}

#[test]
fn a_recording_of_a_large_program_has_a_limit() {
    // Each pass changes all functions, which have long names.
    let names: Vec<String> = (0..3_000).map(|i| format!("<{}>{i}", "f".repeat(60))).collect();
    let mut module = module_of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let rename = |round: usize| -> Arc<dyn Pass> {
        Arc::new(FunctionPass::new(format!("Rename{round}"), 0, move |edit, _, cx| {
            let ty = edit.function.body.ty(edit.function.body.params()[0].expr());
            let mut editor = edit.editor();
            let name = editor.cx.names.intern(&format!("\"<{round}>\"{}", "<".repeat(150)));
            let new = editor.var(Some(name), VarFlags::PLAIN, ty);
            let x = editor.body.params()[0].expr();
            let call = editor.call_named("negative", &[x])?;
            let root = editor.let_(new, call, new.expr(), LetFlags::default());
            editor.body.set_root(root);
            cx.count("functions renamed", 1);
            edit.report(root, Diagnostic::remark("<".repeat(500)));
            Ok(())
        }))
    };
    let passes: Vec<Arc<dyn Pass>> = (0..8).map(rename).collect();
    let recording = recorded(&Sequential::new(passes).unwrap(), &mut module);
    let json = recording.to_json().to_string().replace('<', "\\u003c");
    assert!(json.len() <= MAX_RECORDING_BYTES, "{} bytes", json.len());
    assert!(json.len() > MAX_RECORDING_BYTES / 4, "{} bytes: the room is used", json.len());
    assert!(recording.runs.iter().skip(1).all(|run| !run.changes.is_empty()), "each pass has a share of the room");
}

/// A pass that edits the body of @f.
fn editing(name: &str, edit_body: impl Fn(&mut Editor<'_>) + Send + Sync + 'static) -> FunctionPass {
    FunctionPass::new(name, 0, move |edit, _, _| {
        if edit.name() == "f" {
            edit_body(&mut edit.editor());
        }
        Ok(())
    })
}

#[test]
fn changes_that_a_line_does_not_show_are_recorded() {
    /// Makes `%k` a tuple of the operands, before the result, which is the parameter.
    fn set(
        name: &str,
        operands: impl Fn(&mut Editor<'_>, ExprId) -> Vec<ExprId> + Send + Sync + 'static,
    ) -> FunctionPass {
        editing(name, move |editor| {
            let x = editor.body.params()[0].expr();
            let operands = operands(editor, x);
            let tuple = editor.tuple(&operands);
            let ty = editor.body.ty(tuple);
            let name = editor.cx.names.intern("k");
            let var = editor.var(Some(name), VarFlags::PLAIN, ty);
            let root = editor.let_(var, tuple, x, LetFlags::default());
            editor.body.set_root(root);
        })
    }
    let hunk_of = |pass: &FunctionPass, module: &mut Module| {
        let recording = recorded(pass, module);
        let [run] = &recording.runs[..] else { panic!("one run") };
        assert_eq!(run.outcome, RecordedOutcome::Changed);
        let [change] = &run.changes[..] else { panic!("a change") };
        let [hunk] = &change.hunks[..] else { panic!("a hunk") };
        (hunk.clone(), recording.clone())
    };
    let mut module = module();
    // An element of a long constant.
    let constant = |values: [f32; 9]| {
        set("SetConstant", move |editor, x| {
            let literal = Literal::from_elements(&[9], &values).unwrap();
            vec![x, editor.literal(literal)]
        })
    };
    let _ = recorded(&constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]), &mut module);
    let (hunk, recording) = hunk_of(&constant([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 0.0]), &mut module);
    assert_ne!(texts(&recording, &hunk.old), texts(&recording, &hunk.new));
    // An operand after the end of a line.
    let operand = |value: f32| {
        set("SetOperand", move |editor, x| {
            let mut operands = vec![x; 600];
            operands[550] = editor.literal(Literal::scalar(value));
            operands
        })
    };
    let _ = recorded(&operand(1.0), &mut module);
    let (hunk, recording) = hunk_of(&operand(2.0), &mut module);
    assert_eq!(texts(&recording, &hunk.old), texts(&recording, &hunk.new));
    assert!(recording.lines[hunk.new[0] as usize].is_abridged);
}

#[test]
fn a_parameter_after_the_end_of_a_signature_is_recorded() {
    let mut module = module_of(&[]);
    let ty = module.cx.types.static_tensor(DType::Float32, &[8]);
    let mut f = FunctionBuilder::new(&mut module, "f");
    let params: Vec<ExprId> = (0..60).map(|i| f.param(&format!("parameter{i}"), ty)).collect();
    f.finish(params[0]).unwrap();
    let drop_one = editing("DropParameter", |editor| {
        let mut params = editor.body.params().to_vec();
        params.remove(50);
        editor.body.set_params(params);
    });
    let recording = recorded(&drop_one, &mut module);
    assert_eq!(recording.runs[0].changes.len(), 1);
    assert_eq!(recording.history("f", "parameter50")[0].kind, BindingEventKind::Removed);
    assert!(recording.history("f", "parameter51").is_empty());
}

#[test]
fn a_variable_without_a_name_is_not_taken_for_another_one() {
    let mut module = module_of(&["f"]);
    let insert = |name: &'static str| {
        editing(name, |editor| {
            let x = editor.body.params()[0].expr();
            let ty = editor.body.ty(x);
            let new = editor.var(None, VarFlags::PLAIN, ty);
            let number = editor.cx.names.intern(&new.index().to_string());
            let named = editor.var(Some(number), VarFlags::PLAIN, ty);
            let (one, two) =
                (editor.call_named("negative", &[x]).unwrap(), editor.call_named("negative", &[x]).unwrap());
            let inner = editor.let_(named, two, new.expr(), LetFlags::default());
            let root = editor.let_(new, one, inner, LetFlags::default());
            editor.body.set_root(root);
        })
    };
    let recording = recorded(&insert("Insert"), &mut module);
    let made: Vec<&str> = recording.names.iter().map(|name| &**name).filter(|name| name.contains('#')).collect();
    let [unnamed] = made[..] else { panic!("one variable without a name: {made:?}") };
    let number = &unnamed[2..];
    for name in [format!("#{number}"), number.to_string()] {
        let [event] = &recording.history("f", &name)[..] else { panic!("{name} was made once") };
        assert_eq!(event.kind, BindingEventKind::Made);
    }
}

#[test]
fn rewrites_of_variables_without_a_name_are_their_own() {
    let mut module = module_of(&["f"]);
    let insert = editing("Insert", |editor| {
        let x = editor.body.params()[0].expr();
        let ty = editor.body.ty(x);
        let mut rest = editor.body.root();
        for why in ["the second", "the first"] {
            let new = editor.var(None, VarFlags::PLAIN, ty);
            let value = editor.call_named("negative", &[x]).unwrap();
            rest = editor.let_(new, value, rest, LetFlags::default());
            editor.rewrote(new.expr(), why);
            editor.nearly(new.expr(), "Insert", |_| format!("not {why}"));
        }
        editor.body.set_root(rest);
    });
    let recording = recorded(&insert, &mut module);
    let unnamed: Vec<&str> = recording.names.iter().filter_map(|name| name.strip_prefix('%')).collect();
    let unnamed: Vec<&str> = unnamed.into_iter().filter(|name| name.starts_with('#')).collect();
    let mut reasons = Vec::new();
    for name in &unnamed {
        let [event] = &recording.history("f", name)[..] else { panic!("%{name} was made once") };
        reasons.push(event.reasons.clone());
    }
    reasons.sort();
    assert_eq!(reasons, [["the first"], ["the second"]]);
    let misses: Vec<&str> = recording.runs[0].near_misses.iter().filter_map(|miss| miss.binding.as_deref()).collect();
    assert!(misses.len() == 2 && misses.iter().all(|name| unnamed.contains(name)), "{misses:?} of {unnamed:?}");
}

#[test]
fn a_recording_names_the_parts_of_lines() {
    let mut module = module();
    let recording = recorded(&rework(), &mut module);
    let json = recording.to_json();
    let index = |list: &str, text: &str| json[list].as_array().unwrap().iter().position(|item| item == text);
    let line = recording.lines.iter().position(|line| line.text == "let %b = add(%a, %x);").unwrap();
    let line = &json["lines"][line];
    assert_eq!(line[4].as_u64().map(|n| n as usize), index("labels", "add"));
    assert_eq!(line[5].as_u64().map(|n| n as usize), index("names", "%b"));
    let uses = ["%a", "%x"].map(|name| index("names", name).unwrap());
    assert_eq!(line[6], serde_json::json!(uses));
    assert_eq!(json["runs"][0]["messages"][0]["name"], "%a");
}
