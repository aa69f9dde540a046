//! The entry points of `anfora-manager`, `anfora-interp` and `anfora-onnx`.

use std::sync::Arc;

use anfora::bisect::{Judgement, bisect};
use anfora::interp::{Agreement, ArgumentGenerator, Arguments, EvalErrorKind, Interpreter, Limits};
use anfora::manager::{
    DataflowBlockPass, FunctionPass, LastRun, Memory, ModulePass, Pass, PassContext, PassEntry, PassError,
    PassRegistry, PassTiming, PrintIr, PrintWhen, Property, Reproducer, ReproducerFile, RunLog, Sequential, Verdict,
    Verification, VerifyEach, parse_pipeline, remarks_json, render_remarks, run_pass,
};
use anfora::onnx::{ExportOptions, ImportOptions};
use anfora::passes::{MemoryOptions, PlannedMemory, plan_memory};
use anfora::reduce::{ReduceOptions, reduce};
use anfora_ir::{Body, Counts, Diagnostic, Invariant, Module, RenderOptions, Source, VarFlags};

use super::{Done, Kind, NORMAL_FORM, Row, ensure, run_pipeline};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "instruments",
        covers: &[
            "manager::run_pass",
            "manager::FunctionPass::new",
            "manager::ModulePass::new",
            "manager::parse_pipeline",
            "manager::Pass::apply",
        ],
        kind: Kind::Module(instruments),
    },
    Row { name: "memory-plan", covers: &["interp::Interpreter::call_mirrored"], kind: Kind::Module(memory_plan) },
    Row {
        name: "failing-pass",
        covers: &["manager::FunctionEdit::error_at", "manager::FunctionEdit::diagnostic"],
        kind: Kind::Module(failing_pass),
    },
    Row {
        name: "properties",
        covers: &[
            "ir::Invariant::violations",
            "ir::Invariant::holds_in",
            "manager::Property::checked_by",
            "manager::Property::check",
        ],
        kind: Kind::Module(properties),
    },
    Row {
        name: "reports",
        covers: &[
            "manager::DataflowBlockPass::new",
            "manager::FunctionEdit::error",
            "manager::FunctionEdit::note",
            "manager::FunctionEdit::remark",
            "manager::FunctionEdit::report",
            "manager::FunctionEdit::report_all",
            "manager::FunctionEdit::warn",
            "manager::PassContext::report",
            "manager::remarks_json",
            "manager::render_remarks",
            "ir::Transplant::bindings",
            "ir::diagnostics_json_with",
        ],
        kind: Kind::Module(reports),
    },
    Row {
        name: "seeing-functions",
        covers: &[
            "ir::Function::fork",
            "ir::Function::end_fork",
            "ir::Function::join",
            "ir::Functions::find",
            "ir::Module::functions_and_tables",
            "manager::ModuleView::functions",
        ],
        kind: Kind::Module(seeing_functions),
    },
    Row {
        name: "returned-module",
        covers: &["ir::Module::replace_with", "manager::ModulePass::returning"],
        kind: Kind::Module(returned_module),
    },
    Row {
        name: "reproducer",
        covers: &["manager::ReproducerFile::parse", "manager::RecordedRun::reproducer"],
        kind: Kind::Module(reproducer),
    },
    Row { name: "bisect", covers: &[], kind: Kind::Module(search_for_rewrite) },
    Row { name: "reduce", covers: &[], kind: Kind::Module(make_smaller) },
    Row {
        name: "interpret",
        covers: &[
            "interp::Interpreter::new",
            "interp::Interpreter::run",
            "interp::Interpreter::call",
            "interp::Interpreter::call_counting",
            "interp::Values::tensor",
            "interp::Values::tuple",
            "interp::Values::text",
            "interp::Values::tensors",
            "interp::Values::same",
            "interp::Effect::same",
            "interp::ArgumentGenerator::arguments",
        ],
        kind: Kind::Module(interpret),
    },
    Row { name: "onnx", covers: &["onnx::export", "onnx::export_model", "onnx::import"], kind: Kind::Module(onnx) },
    Row { name: "set-opset", covers: &["onnx::set_opset"], kind: Kind::Module(set_opset) },
];

/// Returns a pass that adds a binding at the beginning of each function.
fn prepend() -> FunctionPass {
    FunctionPass::new("Prepend", 0, |function, _, _| {
        let mut editor = function.editor();
        let nothing = editor.tuple(&[]);
        let ty = editor.body.ty(nothing);
        let var = editor.var(None, VarFlags::PLAIN, ty);
        anfora::visit::insert_before(&mut editor, anfora::visit::Link::Root, &[(var, nothing)]);
        Ok(())
    })
}

fn instruments(mut module: Module) -> Done {
    let registry = anfora::passes::registry();
    let recorder = Arc::new(anfora::report::Recorder::new());
    let context = PassContext::builder()
        .registry(Arc::clone(&registry))
        .instrument(Arc::new(PrintIr::new(PrintWhen::Always, PrintWhen::Always, std::io::sink())))
        .instrument(Arc::new(PrintIr::diff(std::io::sink())))
        .instrument(Arc::new(VerifyEach::new()))
        .instrument(Arc::new(Memory::new()))
        .instrument(Arc::new(PassTiming::new()))
        .instrument(Arc::new(RunLog::new()))
        .instrument(recorder.clone())
        .build()
        .map_err(|e| e.to_string())?;
    let nothing = ModulePass::new("Nothing", 0, |_, _| Ok(()));
    let passes: Vec<Arc<dyn Pass>> = vec![Arc::new(prepend()), Arc::new(nothing)];
    let sequence = Sequential::new(passes).map_err(|e| e.to_string())?;
    let outcome = context.scope(|| run_pass(&sequence, &mut module, &context)).map_err(|e| e.to_string())?;
    ensure(outcome.map_err(|e| e.to_string())?.is_changed(), "a pass that binds something changes the module")?;
    let canonical = parse_pipeline(&registry, "ToANormalForm").map_err(|e| e.to_string())?;
    canonical.apply(&mut module, &context).map_err(|e| e.to_string())?;
    let recording = recorder.recording();
    ensure(!recording.to_json().is_null(), "a recording is an object")?;
    ensure(recording.history("main", "x").len() <= 1, "only a pass that ran has an event")?;
    ensure(!module.order().is_empty(), "the functions are still there")
}

/// Runs a pass that compares each function, after changing it, with the functions as they were.
fn seeing_functions(mut module: Module) -> Done {
    let pass = FunctionPass::new("Seeing", 0, |function, view, _| {
        let functions = view.functions()?;
        let mut editor = function.editor();
        let nothing = editor.tuple(&[]);
        let ty = editor.body.ty(nothing);
        let var = editor.var(None, VarFlags::PLAIN, ty);
        anfora::visit::insert_before(&mut editor, anfora::visit::Link::Root, &[(var, nothing)]);
        let itself = functions.find(function.cx, function.name()).ok_or("it is there")?;
        let global = function.cx.find_global(function.name()).ok_or("it has a name")?;
        let key = function.cx.globals.get(global).target.function().ok_or("it is a function")?;
        let same = functions.get(key).is_some_and(|f| f.body.root() == itself.body.root());
        if !same || itself.body.root() == function.function.body.root() || functions.iter().len() == 0 {
            return Err("a function is seen as it is, and not as it was".into());
        }
        Ok(())
    })
    .seeing_functions();
    let changes = module.order().iter().any(|&key| module.get(key).is_some_and(|f| f.is_definition()));
    for threads in [1, 2] {
        let context = PassContext::builder().threads(threads).worth_sharing(0).build().map_err(|e| e.to_string())?;
        let outcome = pass.apply(&mut module, &context).map_err(|e| e.to_string())?;
        ensure(outcome.is_changed() == changes, "a pass that binds something changes the module")?;
    }
    Ok(())
}

/// Runs a pass that returns a copy of the module with one function more, and a pass that returns an
/// unchanged copy.
fn returned_module(mut module: Module) -> Done {
    let adds = ModulePass::returning("Adds", 0, |module, _| {
        let mut new = module.clone();
        let last = new.order().last().copied().ok_or("there is a function")?;
        anfora::visit::copy_function(&mut new, last, "one_more")?;
        Ok(new)
    });
    let same = ModulePass::returning("Same", 0, |module, _| Ok(module.clone()));
    let context = PassContext::new();
    let before = module.order().len();
    ensure(adds.apply(&mut module, &context).map_err(|e| e.to_string())?.is_changed(), "there is one more")?;
    ensure(module.order().len() == before + 1, "there is one function more")?;
    let outcome = same.apply(&mut module, &context).map_err(|e| e.to_string())?;
    ensure(!outcome.is_changed(), "a module that says the same changes nothing")
}

fn failing_pass(mut module: Module) -> Done {
    let text = module.to_text();
    let pass = FunctionPass::new("Failing", 0, |function, _, cx| {
        let mut editor = function.editor();
        let root = editor.body.root();
        let copy = anfora::visit::copy_fresh(&mut editor, root);
        editor.body.set_root(copy);
        cx.remark(function.diagnostic(anfora_ir::Severity::Remark, root, "about to fail"));
        Err(function.error_at(root, "it fails"))
    });
    let context = PassContext::new();
    let Err(failure) = pass.apply(&mut module, &context) else {
        return Err("a pass that fails is said to have succeeded".to_string());
    };
    ensure(failure.to_string().contains("it fails") && !format!("{failure:?}").is_empty(), "the failure is shown")?;
    ensure(!failure.to_diagnostics().is_empty() && !context.take_remarks().is_empty(), "and where it failed")?;
    let _: &PassError = failure.error();
    ensure(module.to_text() == text, "a failing pass leaves the module as it was")
}

/// Runs passes that report on the last node of each body, which a walk finds last.
fn reports(mut module: Module) -> Done {
    let last = |body: &Body| body.exprs().map(|(id, _)| id).last().unwrap_or(body.root());
    let over_functions = FunctionPass::new("Reports", 0, move |function, _, _| {
        let id = last(&function.function.body);
        function.remark(id, "a remark");
        function.note(id, "a note");
        function.warn(id, "a warning");
        function.report_all([(id, Diagnostic::remark("a remark"))]);
        Ok(())
    });
    let over_regions = DataflowBlockPass::new("Regions", 0, move |block, _, _| {
        let id = last(&block.function.body);
        block.remark(id, "a remark");
        block.note(id, "a note");
        block.warn(id, "a warning");
        // Writes the same root again, so that the region counts as changed and is put back.
        let root = block.function.body.root();
        let tail = block.function.body.tail(root);
        block.function.body.set_root(tail);
        block.function.body.set_root(root);
        Ok(())
    });
    let over_module = ModulePass::new("Module", 0, move |module, cx| {
        for &key in module.order() {
            let id = module.get(key).map(|f| last(&f.body));
            id.into_iter().for_each(|id| cx.report(module, key, id, Diagnostic::remark("a remark")));
        }
        Ok(())
    });
    let context = PassContext::builder().verification(Verification::Off).build().map_err(|e| e.to_string())?;
    for pass in [&over_functions as &dyn Pass, &over_regions, &over_module] {
        run_pass(pass, &mut module, &context).map_err(|e| e.to_string())?;
    }
    let remarks = context.take_remarks();
    let shown = render_remarks(&remarks, &module, &RenderOptions::default());
    ensure(shown.contains("a remark"), "what passes say is shown")?;
    ensure(remarks_json(&remarks, &module).lines().count() == remarks.len(), "also to machines")?;
    let failing = FunctionPass::new("Errors", 0, move |function, _, _| {
        let id = last(&function.function.body);
        function.error(id, "an error");
        function.report(id, Diagnostic::error("another"));
        Ok(())
    });
    let failed = failing.apply(&mut module, &context).is_err();
    ensure(failed || module.functions().all(|(_, f)| !f.is_definition()), "errors fail the pass that reports them")
}

fn reproducer(module: Module) -> Done {
    let mut module = module;
    let text = module.to_text();
    let name = format!("anfora-stress-{}-{:?}.anf", std::process::id(), std::thread::current().id());
    let path = std::env::temp_dir().join(name);
    let entry = PassEntry {
        name: "Fails",
        doc: "fails",
        opt_level: 0,
        options: &[],
        configs: &[],
        make: |_| Ok(Arc::new(ModulePass::new("Fails", 0, |_, _| Err(PassError::new("it fails"))))),
    };
    let mut registry = PassRegistry::new();
    registry.register(entry).map_err(|e| e.to_string())?;
    let registry = Arc::new(registry);
    let reproducer = Arc::new(Reproducer::new(&path));
    let last = Arc::new(LastRun::new());
    let context =
        PassContext::builder().registry(Arc::clone(&registry)).instrument(reproducer).instrument(last.clone());
    let context = context.build();
    let context = context.map_err(|e| e.to_string())?;
    let pass = registry.make("Fails").map_err(|e| e.to_string())?;
    let failure = pass.apply(&mut module, &context).err().ok_or("it fails")?;
    let run = last.take().ok_or("a pass ran")?;
    ensure(run.reproducer(&module, Some(&failure)).ends_with(&text), "the last run has the program")?;
    let written = std::fs::read_to_string(&path).map_err(|e| e.to_string())?;
    // If the file cannot be removed, it is left to the system to clean up.
    let _ = std::fs::remove_file(&path);
    ensure(written.ends_with(&text), "a reproducer ends with the program")?;
    let show = |errors: anfora_ir::Diagnostics| errors.first().map_or_else(String::new, |e| e.to_string());
    let file = ReproducerFile::parse(Source::new("reproducer", written)).map_err(show)?;
    let replay = file.run(&registry, anfora::onnx::registry(), &[]).map_err(show)?;
    ensure(replay.verdict == Verdict::FailedAsRecorded, "and fails as it did")
}

/// Searches for the rewrite that adds a binding.
fn search_for_rewrite(module: Module) -> Done {
    let context = || PassContext::builder().registry(anfora::passes::registry());
    let before = Counts::of_module(&module).bindings;
    let mut judge = |module: &Module| match Counts::of_module(module).bindings > before {
        true => Judgement::Wrong,
        false => Judgement::Right,
    };
    let found = bisect(&module, &prepend(), &context, &mut judge, &mut |_| true).map_err(|e| e.to_string())?;
    ensure(found.rewrite.is_some_and(|rewrite| &*rewrite.pass == "Prepend"), "the pass is found")
}

/// Makes a program smaller without a limit: its first binding is left.
fn make_smaller(module: Module) -> Done {
    let reduced = reduce(&module, &mut |_| true, &ReduceOptions::default(), &mut |_| true);
    let reduced = reduced.ok_or("everything shows the fault")?;
    ensure(reduced.is_minimal && reduced.after.calls <= 1, "nothing is needed")
}

/// Plans the memory of a program, and runs the program inside the plan.
fn memory_plan(mut module: Module) -> Done {
    run_pipeline(&mut module, NORMAL_FORM)?;
    let plan = plan_memory(&module, &MemoryOptions::default()).map_err(|e| e.to_string())?;
    for function in plan.functions() {
        let scope = function.own_scope();
        ensure(scope.live <= scope.arena, "an arena has room for what is live")?;
        ensure(function.live_points().iter().all(|p| p.bytes <= scope.live), "no more is live than at most")?;
        let key = function.key();
        let body = module.get(key).map(|f| &f.body).ok_or("a function with a plan is in the module")?;
        function.check(body);
    }
    let main = module.find("main").and_then(|key| module.get(key)).ok_or("there is no main")?;
    let Ok(Arguments { values, list: arguments }) = ArgumentGenerator::new(7).arguments(&module.cx, main) else {
        return Ok(());
    };
    let limits = Limits { steps: 50_000_000, ..Limits::default() };
    let mut memory = PlannedMemory::new(&module, &plan);
    match Interpreter::new(&module).limits(limits).call_mirrored("main", values, &arguments, &mut memory) {
        Ok(_) => Ok(()),
        Err(e) if e.kind == EvalErrorKind::Steps(limits.steps) => Ok(()),
        Err(e) => Err(e.to_string()),
    }
}

fn interpret(module: Module) -> Done {
    let main = module.find("main").and_then(|key| module.get(key)).ok_or("there is no main")?;
    let Ok(Arguments { values, list: arguments }) = ArgumentGenerator::new(7).arguments(&module.cx, main) else {
        return Ok(());
    };
    // Most of these programs run each of their bindings a few times; the random one loops as well,
    // and may be cut off.
    let limits = Limits { steps: 50_000_000, ..Limits::default() };
    let interpreter = Interpreter::new(&module).limits(limits);
    let (result, cost) = interpreter.call_counting("main", values, &arguments);
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(e) if e.kind == EvalErrorKind::Steps(limits.steps) => return Ok(()),
        Err(e) => return Err(e.to_string()),
    };
    ensure(cost.steps == outcome.steps, "the steps of a run are counted once")?;
    let text = outcome.values.text(outcome.result, 16);
    ensure(!text.is_empty() && outcome.same(&outcome), "a result can be shown, and equals itself")?;
    ensure(Agreement::Within(0.1).holds(&outcome, &outcome), "and is near itself")?;
    ensure(outcome.values.tensors(outcome.result, 16).len() <= 16, "no more tensors are listed than are asked for")?;
    match interpreter.run("main", &[]) {
        Ok(_) => ensure(arguments.is_empty(), "a function without arguments needs none"),
        Err(e) => ensure(!arguments.is_empty() && !format!("{e} {e:?}").is_empty(), "missing arguments are an error"),
    }
}

fn onnx(module: Module) -> Done {
    match anfora::onnx::export(&module, &ExportOptions::default()) {
        Ok(exported) => {
            let imported = anfora::onnx::import(exported.bytes.into(), &ImportOptions::default());
            imported.map(drop).map_err(|e| format!("what was exported is not imported: {e}"))
        }
        // A program that ONNX cannot express is refused, and the refusal says what to do about it.
        Err(refusal) => ensure(!refusal.diagnostic().to_string().is_empty(), "a refusal says what is the matter"),
    }
}

fn set_opset(mut module: Module) -> Done {
    match anfora::onnx::set_opset(&mut module, 13, &ExportOptions::default().conversions) {
        Ok(()) => ensure(module.to_text().contains("onnx_opsets=[[\"\", 13]]"), "the module states the version"),
        Err(refusal) => ensure(!refusal.diagnostic().to_string().is_empty(), "a refusal says what is the matter"),
    }
}

fn properties(module: Module) -> Done {
    let mut registry = PassRegistry::new();
    let again = Property::new("anf-again", "as `anf`").checked_by(|m| {
        let found = Invariant::ANormalForm.violations(m);
        if found.is_empty() { Ok(()) } else { Err(found) }
    });
    registry.register_property(again).map_err(|e| e.to_string())?;
    let holding: Vec<bool> = registry.properties().iter().map(|p| p.check(&module).is_ok()).collect();
    let bodies = module.functions().all(|(_, f)| Invariant::ANormalForm.holds_in(&module.cx, &f.body));
    ensure([holding.first(), holding.last()] == [Some(&bodies); 2], "a property holds of a module, or it does not")
}
