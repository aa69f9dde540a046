//! Tests of the callbacks of visitors, their order, and their verdicts.

use std::ops::ControlFlow;

use anfora_ir::{Body, Context, Expr, ExprId, VarId};
use anfora_visit::{Binding, Branch, Visit, Visitor, walk};
use expect_test::expect;

use crate::programs::{body, parse};

const EVERYTHING: &str = "def @main(%x: float32, %c: bool) {
    dataflow {
        let %a = negative(%x);
        let %b = add(%a, 1f);
        output(%b)
    }
    dataflow {
        let %d = negative(%b);
        output(%d)
    }
    let %f = fn(%p: float32) -> float32 { let %q = negative(%p); %q };
    let %v = { let %i = add(negative(%d), %d); %i };
    if (%c) { let %t = %f(%v); %t } else { %x }
}";

/// Records all callbacks. Skips names that begin with `skip`, and stops at `stop`.
struct Trace<'c> {
    cx: &'c Context,
    trace: String,
    depth: usize,
    skip: &'static str,
    stop: &'static str,
}

impl Trace<'_> {
    fn note(&mut self, line: &str) -> Visit<String> {
        for _ in 0..self.depth {
            self.trace.push_str("  ");
        }
        self.trace.push_str(line);
        self.trace.push('\n');
        if line == self.stop {
            return Visit::Stop(line.to_string());
        }
        if line == self.skip { Visit::Skip } else { Visit::Continue }
    }

    fn enter(&mut self, line: &str) -> Visit<String> {
        let verdict = self.note(line);
        if verdict == Visit::Continue {
            self.depth += 1;
        }
        verdict
    }

    fn exit(&mut self) -> ControlFlow<String> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn name(&self, body: &Body, var: VarId) -> String {
        body.var_name(var).map_or("?".into(), |n| self.cx.names.get(n).to_string())
    }
}

impl Visitor for Trace<'_> {
    type Break = String;

    fn visit_binding(&mut self, body: &Body, binding: Binding) -> Visit<String> {
        let name = self.name(body, binding.var);
        self.note(&format!("let {name}"))
    }
    fn visit_expr(&mut self, body: &Body, id: ExprId) -> Visit<String> {
        let line = match body.expr(id) {
            Expr::CallOp { op, .. } => self.cx.ops.get(op).name.to_string(),
            Expr::Call { .. } => "call".into(),
            Expr::If { .. } => "if".into(),
            Expr::Lambda { .. } => "fn".into(),
            other => format!("{other:?}"),
        };
        self.enter(&line)
    }
    fn exit_expr(&mut self, _: &Body, _: ExprId) -> ControlFlow<String> {
        self.exit()
    }
    fn visit_def(&mut self, body: &Body, var: VarId) -> Visit<String> {
        let name = self.name(body, var);
        self.note(&format!("def {name}"))
    }
    fn visit_use(&mut self, body: &Body, var: VarId) -> Visit<String> {
        let name = self.name(body, var);
        self.note(&format!("use {name}"))
    }
    fn visit_leaf(&mut self, _: &Body, _: ExprId) -> Visit<String> {
        self.note("leaf")
    }
    fn enter_lambda(&mut self, _: &Body, _: ExprId) -> Visit<String> {
        self.enter("lambda")
    }
    fn exit_lambda(&mut self, _: &Body, _: ExprId) -> ControlFlow<String> {
        self.exit()
    }
    fn enter_branch(&mut self, _: &Body, _: ExprId, branch: Branch) -> Visit<String> {
        self.enter(match branch {
            Branch::Then => "then",
            Branch::Else => "else",
        })
    }
    fn exit_branch(&mut self, _: &Body, _: ExprId, _: Branch) -> ControlFlow<String> {
        self.exit()
    }
    fn enter_block(&mut self, _: &Body, _: ExprId) -> Visit<String> {
        self.enter("block")
    }
    fn exit_block(&mut self, _: &Body, _: ExprId) -> ControlFlow<String> {
        self.exit()
    }
    fn enter_region(&mut self, _: &Body, _: ExprId) -> Visit<String> {
        self.enter("region")
    }
    fn exit_region(&mut self, _: &Body, _: ExprId) -> ControlFlow<String> {
        self.exit()
    }
}

fn trace(text: &str, skip: &'static str, stop: &'static str) -> (ControlFlow<String>, String) {
    let module = parse(text);
    let mut visitor = Trace { cx: &module.cx, trace: String::new(), depth: 0, skip, stop };
    let flow = walk(body(&module), &mut visitor);
    if flow.is_continue() {
        assert_eq!(visitor.depth, 0, "every enter has its exit");
    }
    (flow, visitor.trace)
}

#[test]
fn everything_is_visited_in_program_order() {
    let (flow, trace) = trace(EVERYTHING, "", "");
    assert!(flow.is_continue());
    expect![[r#"
        def x
        def c
        block
          region
            let a
            negative
              use x
            def a
            let b
            add
              use a
              leaf
            def b
          region
            let d
            negative
              use b
            def d
          let f
          fn
            lambda
              def p
              let q
              negative
                use p
              def q
              use q
          def f
          let v
          block
            let i
            add
              negative
                use d
              use d
            def i
            use i
          def v
          if
            use c
            then
              let t
              call
                use f
                use v
              def t
              use t
            else
              use x
    "#]]
    .assert_eq(&trace);
}

#[test]
fn a_shared_node_is_visited_once() {
    let (_, trace) = trace("def @main(%x: float32) { %g = negative(%x); (%g, (%g, %g)) }", "", "");
    assert_eq!(trace.matches("negative").count(), 1);
    assert_eq!(trace.matches("use x").count(), 1);
}

#[test]
fn skip_leaves_out_what_is_inside() {
    let (_, skipped) = trace(EVERYTHING, "let v", "");
    assert!(!skipped.contains("let i") && skipped.contains("def v"));
    let (_, skipped) = trace(EVERYTHING, "fn", "");
    assert!(!skipped.contains("def p") && skipped.contains("def f"));
    let (_, skipped) = trace(EVERYTHING, "lambda", "");
    assert!(!skipped.contains("let q") && skipped.contains("let v"));
    let (_, skipped) = trace(EVERYTHING, "then", "");
    assert!(!skipped.contains("let t") && skipped.contains("else"));
    let (_, skipped) = trace(EVERYTHING, "negative", "");
    assert!(!skipped.contains("use p") && skipped.contains("use c"));
}

#[test]
fn stop_ends_the_walk_with_its_value() {
    let (flow, trace) = trace(EVERYTHING, "", "let f");
    assert_eq!(flow, ControlFlow::Break("let f".to_string()));
    assert!(trace.ends_with("let f\n"));
}
