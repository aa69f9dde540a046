//! Messages that walks note in a body, and that the manager reports.

use anfora_ir::{Body, BuildError, Diagnostic, Diagnostics, Expr, ExprId, IntoDiagnostics, TypeError};
use anfora_manager::{FunctionPass, ModulePass, Pass, PassContext, PassError};

use crate::support::module;

struct OfAuthor;

impl IntoDiagnostics for OfAuthor {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::error("no").into()
    }
}

/// Returns the failure of a pass in @g after a walk that ended at its first binding.
fn after_a_walk(error: fn() -> PassError) -> String {
    let pass = FunctionPass::new("P", 0, move |function, _, _| {
        let body = &mut function.function.body;
        let root = body.root();
        body.note_stop(Some(root));
        if function.name() == "g" { Err(error()) } else { Ok(()) }
    });
    pass.apply(&mut module(), &PassContext::new()).unwrap_err().to_string()
}

#[test]
fn only_the_error_of_a_walk_is_put_where_a_walk_ended() {
    assert_eq!(after_a_walk(|| TypeError::new("no").into()), "pass `P` failed: no (in @g, at %a)");
    let others: [fn() -> PassError; 5] = [
        || OfAuthor.into(),
        || PassError::from_error("no"),
        || PassError::from_error(TypeError::new("no")),
        || Diagnostics::from(Diagnostic::error("no")).into(),
        || Box::<dyn std::error::Error + Send + Sync>::from("no").into(),
    ];
    for error in others {
        assert_eq!(after_a_walk(error), "pass `P` failed: no (in @g)");
    }
    let unbalanced = after_a_walk(|| BuildError::Unbalanced.into());
    assert!(unbalanced.ends_with("(in @g)"), "{unbalanced}");
}

/// Returns a remark about the value of the first binding.
fn remark(body: &Body) -> (ExprId, Diagnostic) {
    let Expr::Let { value, .. } = body.expr(body.root()) else { panic!("a function of bindings") };
    (value, Diagnostic::remark("it went round"))
}

/// Makes passes whose walks note a remark. If `reports`, the passes report the same remark
/// themselves.
fn noting(reports: bool) -> [Box<dyn Pass>; 3] {
    let function = move || {
        FunctionPass::new("P", 0, move |function, _, _| {
            let remark = remark(&function.function.body);
            function.function.body.note_remarks([remark.clone()]);
            if reports {
                function.report_all([remark]);
            }
            Ok(())
        })
    };
    let module = ModulePass::new("P", 0, move |module, cx| {
        for key in module.order().to_vec() {
            let (function, _) = module.get_mut(key).unwrap();
            let (at, remark) = remark(&function.body);
            function.body.note_remarks([(at, remark.clone())]);
            if reports {
                cx.report(module, key, at, remark);
            }
        }
        Ok(())
    });
    [Box::new(function()), Box::new(function().seeing_functions()), Box::new(module)]
}

#[test]
fn what_a_walk_noted_is_reported_once() {
    for reports in [false, true] {
        for (i, pass) in noting(reports).into_iter().enumerate() {
            for threads in [1, 3] {
                let cx = PassContext::builder().threads(threads).build().unwrap();
                pass.apply(&mut module(), &cx).unwrap();
                let said: Vec<String> = cx.take_remarks().iter().map(|r| r.diagnostic.to_string()).collect();
                let wanted = ["f", "g", "h"].map(|name| format!("remark: it went round (in @{name}, at %a)"));
                assert_eq!(said, wanted, "pass {i}, reports: {reports}");
            }
        }
    }
}

#[test]
fn notes_share_the_fate_of_their_edit() {
    let pass = FunctionPass::new("P", 0, |function, _, _| {
        let body = &mut function.function.body;
        let (at, _) = remark(body);
        let note = |message: &str| [(at, Diagnostic::remark(message))];
        body.begin_journal();
        body.note_remarks(note("rolled back"));
        body.rollback_journal();
        body.begin_journal();
        body.note_remarks(note("kept"));
        body.commit_journal();
        Ok(())
    });
    let cx = PassContext::new();
    pass.apply(&mut module(), &cx).unwrap();
    let said: Vec<String> = cx.take_remarks().into_iter().map(|r| r.diagnostic.message).collect();
    assert_eq!(said, ["kept"; 3]);
}
