//! Messages about expressions, and errors after which a pass continues.

use std::io::Write;
use std::sync::{Arc, Mutex};

use anfora_ir::{
    Body, Cursor, Diagnostic, Expr, ExprId, FunctionKey, Module, RenderOptions, Severity, Source, Step, parse_module,
};
use anfora_manager::{
    FailureKind, FunctionPass, MAX_REMARKS, ModulePass, Outcome, Pass, PassContext, PassError, PassFailure, Remarks,
    Sequential, remarks_json, render_remarks,
};

use crate::support::{Log, Recorder, context, idle, module, module_of, snapshot};

/// The program of the tests as text: operands that are calls, branches, a function value, a tail.
const NESTED: &str = "def @main(%x: Tensor[(8,), float32], %c: Tensor[(), bool]) {
  let %a = add(negate(%x), negate(negate(%x)));
  let %b = if (%c) { negate(%a) } else {
    let %inner = add(%a, 2f);
    negate(%inner)
  };
  negate(%b)
}
";

fn nested() -> Module {
    parse_module(Source::new("nested.anf", NESTED), module().cx.ops.registry().clone()).unwrap()
}

/// Returns the calls of a body, in the order in which the cursor reaches them.
fn calls(body: &Body) -> Vec<ExprId> {
    let mut calls = Vec::new();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Flat(id) | Step::Enter(id) = step
            && matches!(body.expr(id), Expr::CallOp { .. })
        {
            calls.push(id);
        }
    }
    calls
}

/// Returns the messages of a context, each with its pass, severity and place.
fn left(cx: &PassContext) -> Vec<String> {
    cx.take_remarks().into_iter().map(|r| format!("{}: {}", r.pass, r.diagnostic)).collect()
}

fn key_of(module: &Module, name: &str) -> FunctionKey {
    module.find(name).unwrap()
}

#[test]
fn any_expression_has_a_place() {
    let pass = FunctionPass::new("look", 0, |func, _, _| {
        let body = &func.function.body;
        for (i, call) in calls(body).into_iter().enumerate() {
            func.remark(call, format!("call {i}"));
        }
        Ok(())
    });
    let cx = PassContext::new();
    let expected = [
        "look: remark: call 0 (in @main, at %a)",
        "look: remark: call 1 (in @main, at %a)",
        "look: remark: call 2 (in @main, at %a)",
        "look: remark: call 3 (in @main, at %a)",
        "look: remark: call 4 (in @main, at %b)",
        "look: remark: call 5 (in @main, at %inner)",
        "look: remark: call 6 (in @main, at %b)",
        "look: remark: call 7 (in @main)",
    ];
    assert_eq!(pass.apply(&mut nested(), &cx).unwrap(), Outcome::Unchanged);
    let remarks = cx.take_remarks();
    assert_eq!(
        remarks.iter().map(|r| format!("{}: {}", r.pass, r.diagnostic)).collect::<Vec<_>>(),
        expected,
        "in the order of reporting"
    );
    let shown: Vec<&str> = remarks.iter().map(|r| &NESTED[r.diagnostic.span.clone().unwrap()]).collect();
    assert_eq!(
        shown,
        [
            "add(negate(%x), negate(negate(%x)))",
            "negate(%x)",
            "negate(negate(%x))",
            "negate(%x)",
            "negate(%a)",
            "add(%a, 2f)",
            "negate(%inner)",
            "negate(%b)"
        ]
    );
    // The same for a pass over the module, and outside of any pass.
    let look = |module: &mut Module, cx: &PassContext| {
        let key = key_of(module, "main");
        for (i, call) in calls(&module.get(key).unwrap().body).into_iter().enumerate() {
            cx.report(module, key, call, Diagnostic::remark(format!("call {i}")));
        }
        Ok(())
    };
    ModulePass::new("look", 0, look).apply(&mut nested(), &cx).unwrap();
    assert_eq!(left(&cx), expected);
    look(&mut nested(), &cx).unwrap();
    assert_eq!(left(&cx), expected.map(|e| e.replacen("look", "", 1)));
}

#[test]
fn constants_and_variables_have_places() {
    let pass = FunctionPass::new("look", 0, |func, _, _| {
        let ids: Vec<ExprId> = func.function.body.exprs().map(|(id, _)| id).collect();
        for id in ids {
            match func.function.body.expr(id) {
                Expr::Literal(_) => func.note(id, "a constant"),
                Expr::Let { .. } => func.note(id, "a binding"),
                Expr::Var { .. } => func.warn(id, "a variable"),
                _ => {}
            }
        }
        Ok(())
    });
    let cx = PassContext::new();
    pass.apply(&mut nested(), &cx).unwrap();
    let mut found = left(&cx);
    found.sort();
    assert_eq!(
        found,
        [
            "look: note: a binding (in @main, at %a)",
            "look: note: a binding (in @main, at %b)",
            "look: note: a binding (in @main, at %inner)",
            "look: note: a constant (in @main, at %inner)",
            "look: warning: a variable (in @main, at %a)",
            "look: warning: a variable (in @main, at %b)",
            "look: warning: a variable (in @main, at %c)",
            "look: warning: a variable (in @main, at %inner)",
            "look: warning: a variable (in @main, at %x)",
        ]
    );
}

#[test]
fn what_was_unlinked_has_the_function_for_a_place() {
    let unlink = |body: &mut Body| body.set_root(body.params()[0].expr());
    let cx = PassContext::new();
    FunctionPass::new("cut", 0, move |func, _, _| {
        let call = calls(&func.function.body)[0];
        func.remark(call, "it goes");
        unlink(&mut func.function.body);
        Ok(())
    })
    .apply(&mut module(), &cx)
    .unwrap();
    assert_eq!(left(&cx), ["f", "g", "h"].map(|f| format!("cut: remark: it goes (in @{f})")));
    ModulePass::new("cut", 0, move |module, cx| {
        let [f, g, h] = ["f", "g", "h"].map(|f| key_of(module, f));
        for key in [f, g] {
            cx.report(module, key, calls(&module.get(key).unwrap().body)[0], Diagnostic::remark("it goes"));
        }
        unlink(&mut module.get_mut(f).unwrap().0.body);
        // The ids name other expressions in the new body.
        let other = module.get(h).unwrap().body.clone();
        module.get_mut(g).unwrap().0.body.replace(other);
        Ok(())
    })
    .apply(&mut module(), &cx)
    .unwrap();
    assert_eq!(left(&cx), ["f", "g"].map(|f| format!("cut: remark: it goes (in @{f})")));
}

#[test]
fn errors_let_a_pass_go_on_and_then_it_has_failed_with_all() {
    let log = Log::default();
    let cx = context(&[Recorder::new("i", &log)]);
    let pass = FunctionPass::new("no-negate", 0, |func, _, cx| {
        cx.count("looked", 1);
        let body = &mut func.function.body;
        let (calls, param) = (calls(body), body.params()[0].expr());
        body.set_root(param);
        func.report(calls[1], Diagnostic::error("no negate").with_help("expand it").labelled("here"));
        func.note(param, "of this");
        Ok(())
    });
    let mut module = module();
    let before = snapshot(&module);
    let failure = pass.apply(&mut module, &cx).unwrap_err();
    assert_eq!(snapshot(&module), before);
    assert_eq!((failure.pass(), failure.function(), failure.kind()), ("no-negate", Some("f"), &FailureKind::Error));
    assert_eq!(
        failure.to_string(),
        "pass `no-negate` failed: it reported 3 errors, of which the first is: no negate (in @f); expand it"
    );
    let found = failure.to_diagnostics();
    assert_eq!(
        found[1..].iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["f", "g", "h"].map(|f| format!("error: no negate (in @{f}); expand it"))
    );
    assert_eq!(found[1].label.as_deref(), Some("here"));
    assert_eq!(log.take(), ["i should_run no-negate", "i before no-negate", "i on_error no-negate (no-negate)"]);
    let severities: Vec<Severity> = cx.take_remarks().iter().map(|r| r.diagnostic.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Note].repeat(3));
    assert!(cx.statistics().is_empty());
    // The next run begins without the errors of the last one.
    idle("ok", 0).apply(&mut module, &cx).unwrap();
}

#[test]
fn one_error_is_what_the_failure_says() {
    let pass = ModulePass::new("p", 0, |module, cx| {
        let key = key_of(module, "g");
        let call = calls(&module.get(key).unwrap().body)[2];
        cx.report(module, key, call, Diagnostic::error("wrong").with_help("mend it"));
        Ok(())
    });
    let failure = pass.apply(&mut module(), &PassContext::new()).unwrap_err();
    assert_eq!(failure.to_string(), "pass `p` failed: wrong (in @g, at %c); mend it");
    assert_eq!(failure.to_diagnostics().len(), 1);
    // In a sequence the error stays the same, and the sequence adds no error of its own.
    let passes = Sequential::new(vec![Arc::new(pass)]).unwrap();
    let failure = passes.apply(&mut module(), &PassContext::new()).unwrap_err();
    assert_eq!((failure.pass(), failure.path(), failure.binding()), ("p", &["sequential".to_string()][..], Some("c")));
}

#[test]
fn what_ends_a_pass_comes_after_what_it_reported() {
    let ending = |end: fn() -> Result<(), PassError>| {
        let pass = ModulePass::new("p", 0, move |_, cx| {
            cx.remark(Diagnostic::error("first"));
            cx.remark(Diagnostic::remark("by the way"));
            end()
        });
        pass.apply(&mut module(), &PassContext::new()).unwrap_err()
    };
    let texts = |failure: &PassFailure| failure.to_diagnostics().iter().map(|d| d.message.clone()).collect::<Vec<_>>();
    let failed = ending(|| Err(PassError::new("last").with_cause("a cause")));
    assert_eq!(
        texts(&failed),
        ["pass `p` failed: it reported 2 errors, of which the first is: first", "first", "last: a cause"]
    );
    let panicked = ending(|| panic!("oh"));
    assert_eq!(panicked.kind(), &FailureKind::Panic);
    assert_eq!(texts(&panicked), ["pass `p` panicked: oh", "first"]);
}

#[test]
fn reports_do_not_pile_up_without_end_and_no_error_is_lost() {
    let pass = FunctionPass::new("p", 0, |func, _, _| {
        let root = func.function.body.root();
        for _ in 0..MAX_REMARKS + 5 {
            func.remark(root, "again");
        }
        if func.name() == "h" {
            func.error(root, "at last");
        }
        Ok(())
    });
    let cx = PassContext::new();
    let failure = pass.apply(&mut module(), &cx).unwrap_err();
    assert_eq!(failure.to_string(), "pass `p` failed: at last (in @h, at %a)");
    let remarks = cx.take_remarks();
    assert_eq!(remarks.len(), MAX_REMARKS + 1);
}

#[test]
fn what_was_not_kept_is_counted() {
    let many = 2 * MAX_REMARKS + 7;
    let speaks = |severity: Severity| {
        FunctionPass::new("p", 0, move |func, _, _| {
            let root = func.function.body.root();
            (0..many).for_each(|_| func.report(root, Diagnostic::new(severity, "again")));
            Ok(())
        })
    };
    let cx = PassContext::new();
    let last = |cx: &PassContext| cx.take_remarks().pop().unwrap().diagnostic.message;
    let mut one = module_of(&["f"]);
    assert_eq!(speaks(Severity::Remark).apply(&mut one, &cx).unwrap(), Outcome::Unchanged);
    assert_eq!(last(&cx), format!("{} more remarks were not kept", many - MAX_REMARKS));
    let failure = speaks(Severity::Error).apply(&mut one, &cx).unwrap_err();
    assert!(failure.to_string().contains(&format!("it reported {many} errors, of which")), "{failure}");
    assert_eq!(last(&cx), format!("{} more remarks were not kept", many - MAX_REMARKS));
}

#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Written {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Makes a pass that reports a warning about the second call of each function.
fn speaker(name: &str) -> FunctionPass {
    FunctionPass::new(name, 0, |func, _, _| {
        let call = calls(&func.function.body)[1];
        func.report(call, Diagnostic::warning("too slow").labelled("this one").with_help("leave it out"));
        Ok(())
    })
}

#[test]
fn messages_are_shown_in_the_source_or_in_the_printed_module() {
    let cx = PassContext::new();
    let mut parsed = nested();
    speaker("slow").apply(&mut parsed, &cx).unwrap();
    let remarks = cx.take_remarks();
    let shown = render_remarks(&remarks, &parsed, &RenderOptions::default());
    assert!(shown.contains("warning: slow: too slow") && shown.contains("nested.anf:2:16"), "{shown}");
    assert!(shown.contains("                ^^^^^^^^^^ this one") && shown.contains("help: leave it out"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&remarks_json(&remarks, &parsed)).unwrap();
    assert_eq!((&json["pass"], &json["severity"], &json["binding"]), (&"slow".into(), &"warning".into(), &"a".into()));
    assert_eq!((&json["line"], &json["column"], &json["help"]), (&2.into(), &16.into(), &"leave it out".into()));

    let mut built = module();
    speaker("slow").apply(&mut built, &cx).unwrap();
    let remarks = cx.take_remarks();
    let shown = render_remarks(&remarks, &built, &RenderOptions::default());
    assert!(shown.contains("@f, as printed:3:7") && shown.contains("let %b = negate(%a);"), "{shown}");
    assert!(shown.contains("^^ this one"), "{shown}");
    assert_eq!(remarks_json(&remarks, &built).lines().count(), 3);
}

#[test]
fn remarks_are_written_as_passes_end() {
    let (all, some, json) = (Written::default(), Written::default(), Written::default());
    let cx = PassContext::builder()
        .instrument(Arc::new(Remarks::new(all.clone())))
        .instrument(Arc::new(Remarks::new(some.clone()).of_passes(["two", "three"])))
        .instrument(Arc::new(Remarks::json(json.clone()).of_passes(["fails"])))
        .build()
        .unwrap();
    let fails = FunctionPass::new("fails", 0, |func, _, _| {
        func.error(func.function.body.root(), "no");
        Ok(())
    });
    let passes = Sequential::new(vec![Arc::new(speaker("one")), Arc::new(speaker("two")), Arc::new(fails)]).unwrap();
    passes.apply(&mut nested(), &cx).unwrap_err();
    assert_eq!(all.text().matches("too slow").count(), 2);
    assert!(all.text().contains("warning: one: too slow") && all.text().contains("error: fails: no"));
    assert!(some.text().starts_with("warning: two: too slow") && !some.text().contains(" one:"), "{}", some.text());
    assert_eq!(json.text().lines().count(), 1);
    assert!(
        json.text().starts_with("{\"pass\":\"fails\",\"severity\":\"error\",\"message\":\"no\""),
        "{}",
        json.text()
    );
    assert_eq!(cx.take_remarks().len(), 3, "the context has them too");
}
