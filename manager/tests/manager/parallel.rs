//! Function passes have the same effects on several threads as on one thread.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use anfora_ir::{Attr, Body, Diagnostic, Expr, ExprId, FunctionBuilder, Literal, Module, NameId, TypeId};
use anfora_manager::{
    FunctionEdit, FunctionPass, MAX_THREADS, ModulePass, Outcome, Pass, PassContext, PassError, PassRemark, Statistics,
};

use crate::support::{Log, Recorder, add_function, idle, module, module_of, snapshot, unverified};

const FUNCTIONS: usize = 1000;

fn many() -> Module {
    let mut m = module_of(&[]);
    for i in 0..FUNCTIONS {
        add_function(&mut m, &format!("f{i}"));
    }
    m
}

/// Returns a context that distributes work for modules of any size.
fn context(threads: usize) -> PassContext {
    unverified().threads(threads).worth_sharing(0).build().unwrap()
}

fn number(func: &FunctionEdit<'_>) -> usize {
    func.name().trim_start_matches('f').parse().unwrap()
}

/// Interns names, types, constants and attributes of every kind, many of them for several
/// functions, and links them.
fn rewrite(func: &mut FunctionEdit<'_>) -> Result<(), PassError> {
    let i = number(func);
    let literal = func.cx.literals.intern(Literal::scalar((i % 37) as f32));
    let ty = func.cx.literal_type(literal);
    let text = func.cx.str_attr(&format!("text {}", i % 53));
    let attrs = func.cx.named_attrs(&[("note", text), (&format!("key{}", i % 11), text)]);
    let callee = func.cx.global(&format!("elsewhere{}", i % 5));
    let callee = func.cx.attr(Attr::Global(callee));
    func.function.attrs = func.cx.with_attr(func.function.attrs, "callee", Some(callee));
    func.function.meta = attrs;
    let name = func.cx.names.intern(&format!("v{}", i % 101));
    let body = &mut func.function.body;
    let constant = body.literal(literal, ty);
    let root = body.root();
    let result = body.type_of(root);
    let mut fields: Vec<TypeId> = vec![result; i % 7];
    fields.push(ty);
    let tuple = func.cx.types.tuple(&fields);
    let mut operands = vec![body.params()[0].expr(); i % 7];
    operands.push(constant);
    let list = body.push_operands(&operands);
    let value = body.push(Expr::Tuple(list), tuple, None);
    let var = body.push_var(Some(name), Default::default(), tuple, None);
    body.set_meta(var.expr(), Some(attrs));
    let first = body.push(Expr::Let { var, value, body: root, flags: Default::default() }, result, None);
    body.set_root(first);
    Ok(())
}

/// Returns all entries of the tables.
fn tables(m: &Module) -> String {
    let cx = &m.cx;
    let types: Vec<_> = cx.types.iter().collect();
    let attrs: Vec<_> = cx.attrs.iter().collect();
    let globals: Vec<_> = cx.globals.iter().map(|(id, _)| cx.global_name(id)).collect();
    format!("{types:?} {attrs:?} {globals:?} {} {} {}", cx.names.len(), cx.literals.len(), cx.attrs.list_count())
}

/// Returns the results of a pass over a thousand functions: its result, everything in the module,
/// messages and counts.
fn everything(pass: &FunctionPass, threads: usize) -> (String, String, String, Vec<PassRemark>, Statistics) {
    let mut m = many();
    let cx = context(threads);
    let result = match pass.apply(&mut m, &cx) {
        Ok(outcome) => format!("{outcome:?}"),
        Err(failure) => failure.to_diagnostics().iter().map(|d| format!("{d}\n")).collect(),
    };
    (result, m.to_string() + &snapshot(&m), tables(&m), cx.take_remarks(), cx.statistics())
}

fn same_on_all_numbers_of_threads(
    make: impl Fn() -> FunctionPass,
) -> (String, String, String, Vec<PassRemark>, Statistics) {
    let one = everything(&make(), 1);
    for threads in [2, 3, 8] {
        let many = everything(&make(), threads);
        assert_eq!(one.0, many.0, "the result with {threads} threads");
        assert!(one.1 == many.1, "the module with {threads} threads");
        assert_eq!(one.3, many.3, "the messages with {threads} threads");
        assert_eq!(one.4, many.4, "the counts with {threads} threads");
        if !one.0.contains("error") {
            assert!(one.2 == many.2, "the tables with {threads} threads");
        }
    }
    one
}

#[test]
fn modules_and_their_tables_are_the_same() {
    let (result, text, ..) = same_on_all_numbers_of_threads(|| {
        FunctionPass::new("rewrite", 0, |func, _, _| match number(func) % 3 {
            0 => Ok(()),
            _ => rewrite(func),
        })
    });
    assert_eq!(result, "Changed");
    assert!(text.contains("text 52") && text.contains("@elsewhere4") && text.contains("v100"));
}

#[test]
fn it_really_is_several_threads() {
    let seen = Arc::new(Mutex::new(HashSet::<ThreadId>::new()));
    let run = |cx: &PassContext, m: &mut Module| {
        let threads = seen.clone();
        let look = FunctionPass::new("look", 0, move |_, _, _| {
            threads.lock().unwrap().insert(std::thread::current().id());
            std::thread::sleep(std::time::Duration::from_micros(50));
            Ok(())
        });
        assert_eq!(look.apply(m, cx).unwrap(), Outcome::Unchanged);
        std::mem::take(&mut *seen.lock().unwrap())
    };
    let here = HashSet::from([std::thread::current().id()]);
    assert_eq!(run(&context(1), &mut many()), here);
    let cx = context(3);
    let workers = run(&cx, &mut many());
    assert!(workers.len() == 3 && workers.is_superset(&here), "{workers:?}");
    assert_eq!(run(&cx, &mut many()), workers, "the threads are kept");
    let derived = cx.derive().build().unwrap();
    assert_eq!((derived.threads(), derived.worth_sharing()), (3, 0));
    assert_eq!(run(&derived, &mut many()), workers, "and shared with contexts that derive from this one");
    assert_eq!(run(&cx.derive().threads(1).build().unwrap(), &mut many()), here);
    // Distributing small modules, or a single function, does not pay.
    let small = unverified().threads(2).build().unwrap();
    assert_eq!(run(&small, &mut module()), here);
    assert_eq!(run(&cx, &mut module_of(&["f"])), here);
    assert_eq!(unverified().build().unwrap().threads(), 1);
    assert!(unverified().threads(0).build().unwrap().threads() >= 1);
    assert_eq!(unverified().threads(usize::MAX).build().unwrap().threads(), MAX_THREADS);
}

#[test]
fn unchanged_stays_exact() {
    for threads in [1, 4] {
        let mut m = many();
        let before = snapshot(&m);
        let pass = FunctionPass::new("intern", 0, |func, _, _| {
            let i = number(func);
            func.cx.names.intern(&format!("unused{i}"));
            // Nodes that are appended and not linked.
            let name = func.cx.names.intern("nobody");
            let any = func.cx.types.any();
            func.function.body.push_var(Some(name), Default::default(), any, None);
            Ok(())
        });
        assert_eq!(pass.apply(&mut m, &context(threads)).unwrap(), Outcome::Unchanged);
        assert_eq!(snapshot(&m), before);
    }
    let (result, ..) = same_on_all_numbers_of_threads(|| {
        FunctionPass::new("one", 0, |func, _, _| if number(func) == 700 { rewrite(func) } else { Ok(()) })
    });
    assert_eq!(result, "Changed");
}

#[test]
fn the_first_failure_in_program_order_counts_and_all_is_taken_back() {
    let before = many();
    let expected = before.to_string() + &snapshot(&before);
    let (result, text, _, remarks, counts) = same_on_all_numbers_of_threads(|| {
        FunctionPass::new("fail", 0, |func, _, cx| {
            let i = number(func);
            rewrite(func)?;
            cx.count("seen", 1);
            cx.remark(Diagnostic::remark(format!("seen {i}")));
            if i >= 613 && i % 2 == 1 {
                let root = func.function.body.root();
                return Err(func.error_at(root, format!("{i} is odd")));
            }
            Ok(())
        })
    });
    assert!(result.contains("613 is odd") && result.contains("f613") && result.contains("at %v"), "{result}");
    assert_eq!(text, expected);
    assert_eq!(remarks.len(), 614, "those up to the failure");
    assert_eq!(remarks[613].diagnostic.message, "seen 613");
    assert!(counts.is_empty(), "what a failing pass counted is forgotten");
}

#[test]
fn a_failure_that_comes_sooner_and_stands_later_does_not_count() {
    // @f fails when @h is about to fail.
    let (tell, told) = std::sync::mpsc::channel::<()>();
    let told = Mutex::new(told);
    let pass = FunctionPass::new("fail", 0, move |func, _, cx| {
        cx.remark(Diagnostic::remark(format!("seen {}", func.name())));
        match func.name() {
            "f" => {
                told.lock().unwrap().recv_timeout(std::time::Duration::from_secs(20)).expect("@h is worked on too");
                std::thread::sleep(std::time::Duration::from_millis(20));
                Err("the first".into())
            }
            "h" => {
                tell.send(()).expect("@f waits");
                Err("the last".into())
            }
            _ => Ok(()),
        }
    });
    let cx = context(2);
    let failure = pass.apply(&mut module(), &cx).unwrap_err();
    assert_eq!((failure.error().message(), failure.function()), ("the first", Some("f")));
    assert_eq!(cx.take_remarks().len(), 1, "those of @g and @h come after the failure");
}

#[test]
fn a_panic_on_a_thread_is_an_error_of_the_pass() {
    let (result, text, ..) = same_on_all_numbers_of_threads(|| {
        FunctionPass::new("panic", 0, |func, _, _| {
            rewrite(func)?;
            assert!(number(func) != 300, "three hundred");
            Ok(())
        })
    });
    assert!(result.contains("three hundred") && result.contains("@f300"), "{result}");
    let before = many();
    assert!(text == before.to_string() + &snapshot(&before));
    // The threads continue to work.
    let cx = context(2);
    let mut m = many();
    let panics = FunctionPass::new("panic", 0, |_, _, _| panic!("each time"));
    for _ in 0..3 {
        assert!(panics.apply(&mut m, &cx).unwrap_err().to_diagnostics()[0].to_string().contains("@f0"));
    }
    let rewrites = FunctionPass::new("rewrite", 0, |func, _, _| rewrite(func));
    assert_eq!(rewrites.apply(&mut m, &cx).unwrap(), Outcome::Changed);
}

/// Returns a name of other tables, which those of the module do not have. The lookup of the
/// bindings of reports, when the pass is done with the function, panics at such a name.
fn foreign_name() -> Option<NameId> {
    let mut other = module_of(&[]);
    (0..100_000).map(|i| other.cx.names.intern(&format!("n{i}"))).last()
}

/// Makes a binding with this name the first of a body, and returns its value.
fn bind_foreign_name(body: &mut Body, name: Option<NameId>) -> ExprId {
    let root = body.root();
    let ty = body.type_of(root);
    let fields = body.push_operands(&[]);
    let value = body.push(Expr::Tuple(fields), ty, None);
    let var = body.push_var(name, Default::default(), ty, None);
    let first = body.push(Expr::Let { var, value, body: root, flags: Default::default() }, ty, None);
    body.set_root(first);
    value
}

#[test]
fn a_panic_where_reports_are_named_is_an_error_of_the_function() {
    let pass = || {
        let foreign = foreign_name();
        FunctionPass::new("dangling", 0, move |func, _, _| {
            rewrite(func)?;
            if number(func) == 300 {
                let value = bind_foreign_name(&mut func.function.body, foreign);
                func.remark(value, "looked at");
            }
            Ok(())
        })
    };
    let (result, text, _, remarks, _) = same_on_all_numbers_of_threads(pass);
    assert!(result.contains("panicked") && result.contains("@f300"), "{result}");
    assert_eq!(remarks.len(), 1);
    let before = many();
    assert!(text == before.to_string() + &snapshot(&before));
    let (cx, mut m) = (context(2), many());
    assert!(pass().apply(&mut m, &cx).is_err());
    let rewrites = FunctionPass::new("rewrite", 0, |func, _, _| rewrite(func));
    assert_eq!(rewrites.apply(&mut m, &cx).unwrap(), Outcome::Changed);
}

#[test]
fn a_panic_where_reports_of_a_module_pass_are_named_is_an_error_of_the_pass() {
    let foreign = foreign_name();
    let pass = ModulePass::new("dangling", 0, move |module, cx| {
        let key = module.order()[3];
        let Some((function, _)) = module.get_mut(key) else { return Ok(()) };
        let value = bind_foreign_name(&mut function.body, foreign);
        cx.report(module, key, value, Diagnostic::remark("looked at"));
        Ok(())
    });
    let (cx, mut m) = (context(1), many());
    let before = m.to_string();
    let error = pass.apply(&mut m, &cx).unwrap_err().to_string();
    assert!(error.contains("panicked"), "{error}");
    assert_eq!((m.to_string() == before, m.edit_depth()), (true, 0));
    assert_eq!(cx.take_remarks().len(), 1);
}

#[test]
fn messages_and_counts_are_in_program_order() {
    let (_, _, _, remarks, counts) = same_on_all_numbers_of_threads(|| {
        FunctionPass::new("say", 0, |func, _, cx| {
            let i = number(func);
            let root = func.function.body.root();
            func.remark(root, format!("reported {i}"));
            cx.remark(Diagnostic::note(format!("left {i}")));
            // Messages and counts may also go through the current context of the thread.
            PassContext::current().remark(Diagnostic::note(format!("current {i}")));
            PassContext::current().count("current", 1);
            cx.count(["a", "b", "c", "d"][i % 4], i as u64);
            // Run a pass on another module inside of this one.
            if i.is_multiple_of(100) {
                let says = ModulePass::new("inner", 0, move |_, cx| {
                    cx.remark(Diagnostic::note(format!("inner {i}")));
                    cx.count("runs", 1);
                    Ok(())
                });
                says.apply(&mut module(), cx)?;
            }
            Ok(())
        })
    });
    let of = |start: &str| -> Vec<String> {
        remarks.iter().map(|r| r.diagnostic.message.clone()).filter(|m| m.starts_with(start)).collect()
    };
    for start in ["reported", "left", "current"] {
        assert_eq!(of(start), (0..FUNCTIONS).map(|i| format!("{start} {i}")).collect::<Vec<_>>());
    }
    assert_eq!(of("inner"), (0..10).map(|i| format!("inner {}", i * 100)).collect::<Vec<_>>());
    assert!(remarks.iter().all(|r| r.pass == if r.diagnostic.message.starts_with("inner") { "inner" } else { "say" }));
    assert_eq!(counts.get("say", "current"), 1000);
    assert_eq!(counts.get("inner", "runs"), 10);
    let names: Vec<&str> = counts.rows().iter().map(|r| r.counter).collect();
    assert_eq!(names, ["runs", "current", "a", "b", "c", "d"]);
}

#[test]
fn errors_that_let_a_pass_go_on_are_all_there() {
    let (result, _, _, remarks, _) = same_on_all_numbers_of_threads(|| {
        FunctionPass::new("check", 0, |func, _, _| {
            let (i, root) = (number(func), func.function.body.root());
            if i % 400 == 7 {
                func.error(root, format!("wrong: {i}"));
            }
            Ok(())
        })
    });
    for i in [7, 407, 807] {
        assert!(result.contains(&format!("wrong: {i}")), "{result}");
    }
    assert!(remarks.len() <= 3);
}

#[test]
fn the_context_is_inherited_and_instruments_stay_on_their_thread() {
    for threads in [1, 4] {
        let log = Log::default();
        let cx = unverified()
            .threads(threads)
            .worth_sharing(0)
            .opt_level(3)
            .instrument(Recorder::new("I", &log))
            .build()
            .unwrap();
        let outer = unverified().opt_level(1).build().unwrap();
        let inner = Arc::new(AtomicUsize::new(0));
        let seen = inner.clone();
        let look = FunctionPass::new("look", 0, move |_, _, cx| {
            let current = PassContext::current();
            assert_eq!((cx.opt_level(), cx.pass(), cx.depth()), (3, Some("look"), 1));
            assert_eq!((current.opt_level(), current.pass(), current.depth()), (3, Some("look"), 1));
            // A context that is entered and not left is current only as long as the function is
            // worked on.
            let guard = unverified().opt_level(0).build().unwrap().enter()?;
            assert_eq!(PassContext::current().opt_level(), 0);
            std::mem::forget(guard);
            seen.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        outer
            .scope(|| {
                cx.scope(|| look.apply(&mut many(), &cx)).unwrap().unwrap();
                assert_eq!(PassContext::current().opt_level(), 1);
            })
            .unwrap();
        assert_eq!(inner.load(Ordering::Relaxed), FUNCTIONS);
        assert_eq!(
            log.take(),
            ["I enter", "I should_run look", "I before look", "I after look", "I exit"].map(String::from),
            "with {threads} threads"
        );
    }
}

#[test]
fn instruments_are_not_told_of_passes_that_run_on_other_threads() {
    let log = Log::default();
    let cx = context(4).derive().instrument(Recorder::new("I", &log)).build().unwrap();
    let nests = FunctionPass::new("nests", 0, |_, _, cx| {
        idle("inner", 0).apply(&mut module(), cx)?;
        // This pass is not distributed again.
        FunctionPass::new("innermost", 0, |_, _, _| Ok(())).apply(&mut many(), cx)?;
        Ok(())
    });
    let mut few = module_of(&["a", "b", "c"]);
    nests.apply(&mut few, &cx).unwrap();
    assert_eq!(log.take(), ["I should_run nests", "I before nests", "I after nests"].map(String::from));
}

#[test]
fn deep_bodies_need_no_stack() {
    let mut m = module_of(&[]);
    let ty = m.cx.types.static_tensor(anfora_ir::DType::Float32, &[8]);
    for name in ["a", "b", "c"] {
        let mut b = FunctionBuilder::new(&mut m, name);
        let x = b.param("x", ty);
        let mut last = x;
        for _ in 0..200_000 {
            last = b.call_op("negate", &[last], &[]).unwrap();
        }
        b.finish(last).unwrap();
    }
    let pass = FunctionPass::new("deep", 0, |func, _, _| {
        // New types, so that everything is translated, and reports, so that everything is walked.
        let fields = 1 + usize::from(func.name().as_bytes()[0] - b'a');
        let result = func.function.body.type_of(func.function.body.root());
        let ty = func.cx.types.tuple(&vec![result; fields]);
        let body = &mut func.function.body;
        let root = body.root();
        let list = body.push_operands(&vec![root; fields]);
        let tuple = body.push(Expr::Tuple(list), ty, None);
        body.set_root(tuple);
        func.remark(root, "deep");
        Ok(())
    });
    let mut one = m.clone();
    assert_eq!(pass.apply(&mut one, &context(1)).unwrap(), Outcome::Changed);
    assert_eq!(pass.apply(&mut m, &context(2)).unwrap(), Outcome::Changed);
    assert!(anfora_ir::alpha_equal(&one, &m));
}

#[test]
fn a_module_pass_edits_each_of_many_functions() {
    let edit = |threads: usize, step: usize| {
        let mut module = many();
        let mut keys: Vec<_> = module.order().iter().copied().rev().step_by(step).collect();
        let removed = keys.remove(1);
        module.remove(&[removed]);
        keys.extend([removed, keys[0]]);
        let unit = module.cx.types.unit();
        let edited = context(threads).edit_each(&mut module, &keys, |cx, function| {
            function.ret = Some(unit);
            function.global().map(|global| cx.global_name(global).to_string())
        });
        keys.truncate(keys.len() - 2);
        assert!(edited.iter().map(|(key, _)| key).eq(&keys));
        assert!(edited.iter().all(|(key, name)| name.as_deref() == Some(module.name(*key))));
        let unedited = module.functions().filter(|(key, f)| (f.ret == Some(unit)) != keys.contains(key)).count();
        assert_eq!(unedited, 0);
        edited
    };
    // Functions of a large part of a module, and of a small part of it.
    for step in [2, 100] {
        assert_eq!(edit(1, step), edit(3, step));
    }
}
