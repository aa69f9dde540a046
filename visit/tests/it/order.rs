//! Tests of orders against recursion.

use std::collections::HashSet;

use anfora_ir::{Body, Expr, ExprId, Module};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{Binding, Link, bindings, chain, for_each_expr, link_counts, post_order, program_order};
use proptest::prelude::*;

use crate::programs::{SHAPES, Shape, body, deep, links_of, parse, random};

/// Returns the names of nodes: a Let by its variable, other nodes by their kind.
fn text(module: &Module, ids: impl Iterator<Item = ExprId>) -> String {
    let body = body(module);
    let name = |id| match body.expr(id) {
        Expr::Let { var, .. } => format!("%{}", module.cx.names.get(body.var_name(var).unwrap())),
        Expr::CallOp { op, .. } => module.cx.ops.get(op).name.to_string(),
        Expr::Call { .. } => "call".to_string(),
        Expr::Tuple(_) => "tuple".to_string(),
        Expr::Proj { .. } => "proj".to_string(),
        Expr::If { .. } => "if".to_string(),
        Expr::Lambda { .. } => "fn".to_string(),
        other => panic!("{other:?} is an atom"),
    };
    ids.map(name).collect::<Vec<_>>().join(" ")
}

const PROGRAM: &str = "def @main(%x: float32, %c: bool) {
    %shared = negative(%x);
    let %f = fn(%p: float32) -> float32 { let %q = add(%p, %shared); %q };
    let %v = { let %i = %f(%x); multiply(%i, %shared) };
    let %w = if (%c) { let %t = %v; %t } else { %x };
    (%w, %v)
}";

#[test]
fn each_order_of_a_program() {
    let module = parse(PROGRAM);
    let body = body(&module);
    let root = body.root();
    assert_eq!(text(&module, post_order(body, root)), "negative add %q fn call multiply %i %t if tuple %w %v %f");
    assert_eq!(text(&module, program_order(body, root)), "negative add %q fn %f call %i multiply %v %t if %w tuple");
    assert_eq!(text(&module, bindings(body, root).map(|b| b.id)), "%q %f %i %v %t %w");
    // Under a single expression.
    let lambda = Binding::of(body, root).unwrap().value;
    assert_eq!(text(&module, program_order(body, lambda)), "negative add %q fn");
}

#[test]
fn atoms_are_in_no_order() {
    let module = parse("def @main(%x: float32) { %x }");
    let body = body(&module);
    assert_eq!(program_order(body, body.root()).chain(post_order(body, body.root())).count(), 0);
}

#[test]
fn each_expression_is_visited_in_program_order() {
    let module = parse(PROGRAM);
    let body = body(&module);
    let mut all = Vec::new();
    for_each_expr(body, body.root(), |id| all.push(id));
    assert_eq!(all, program_order(body, body.root()).collect::<Vec<_>>());
}

/// The orders, computed by recursion.
#[derive(Default)]
struct Reference {
    seen: HashSet<ExprId>,
    post: Vec<ExprId>,
    program: Vec<ExprId>,
}

impl Reference {
    fn walk(&mut self, body: &Body, id: ExprId) {
        let expr = body.expr(id);
        if expr.is_atom() || !self.seen.insert(id) {
            return;
        }
        for link in links_of(body, id) {
            if link == Link::Rest(id) {
                self.program.push(id);
            }
            self.walk(body, link.target(body));
        }
        self.post.push(id);
        if !matches!(expr, Expr::Let { .. }) {
            self.program.push(id);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn orders_are_those_of_recursion(random in random()) {
        let module = random.module();
        let body = body(&module);
        let root = body.root();
        let mut reference = Reference::default();
        reference.walk(body, root);
        prop_assert_eq!(post_order(body, root).collect::<Vec<_>>(), reference.post);
        prop_assert_eq!(program_order(body, root).collect::<Vec<_>>(), reference.program.clone());
        let lets: Vec<ExprId> = reference.program.into_iter().filter(|&id| Binding::of(body, id).is_some()).collect();
        prop_assert_eq!(bindings(body, root).map(|b| b.id).collect::<Vec<_>>(), lets);
    }
}

#[test]
fn orders_of_deep_programs() {
    let n = depth(5_000);
    for shape in SHAPES {
        on_small_stack(move || {
            let module = deep(shape, n);
            let body = body(&module);
            let root = body.root();
            let count = program_order(body, root).count();
            assert!(count > n, "{shape:?}");
            assert_eq!(post_order(body, root).count(), count);
            let mut calls = 0;
            for_each_expr(body, root, |_| calls += 1);
            assert_eq!(calls, count);
            assert!(bindings(body, root).count() >= chain(body, root).count());
            let counts = link_counts(body);
            let shared = program_order(body, root).filter(|&id| counts[id] > 1).count();
            assert_eq!(shared, if shape == Shape::Diamonds { n } else { 0 }, "{shape:?}");
        });
    }
}
