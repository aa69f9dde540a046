//! Orders, searches and links, against recursion.

use std::collections::HashSet;
use std::ops::ControlFlow;

use anfora_ir::{Body, Expr, ExprId, Module};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{
    Binding, Link, bindings, chain, find_expr, fold, for_each_expr, for_each_link, link_counts, post_order, pre_order,
    program_order, reverse_order, try_fold, use_counts,
};
use proptest::prelude::*;

use crate::programs::random::{choices, program};
use crate::programs::{SHAPES, Shape, body, deep, parse};

/// A Let by its variable, anything else by its kind.
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
    assert_eq!(text(&module, pre_order(body, root)), "%f fn %q add negative %v %i call multiply %w if %t tuple");
    assert_eq!(text(&module, post_order(body, root)), "negative add %q fn call multiply %i %t if tuple %w %v %f");
    assert_eq!(text(&module, program_order(body, root)), "negative add %q fn %f call %i multiply %v %t if %w tuple");
    assert_eq!(text(&module, reverse_order(body, root)), "tuple %w if %t %v multiply %i call %f fn %q add negative");
    assert_eq!(text(&module, bindings(body, root).map(|b| b.id)), "%q %f %i %v %t %w");
    // Under one expression alone.
    let lambda = Binding::of(body, root).unwrap().value;
    assert_eq!(text(&module, program_order(body, lambda)), "negative add %q fn");
}

#[test]
fn a_reverse_order_goes_both_ways() {
    let module = parse(PROGRAM);
    let body = body(&module);
    let mut reverse = reverse_order(body, body.root());
    assert_eq!(reverse.len(), 13);
    let ends = [reverse.next_back().unwrap(), reverse.next().unwrap()];
    assert_eq!(text(&module, ends.into_iter()), "negative tuple");
    assert_eq!(reverse.len(), 11);
}

#[test]
fn atoms_are_in_no_order() {
    let module = parse("def @main(%x: float32) { %x }");
    let body = body(&module);
    assert_eq!(pre_order(body, body.root()).chain(post_order(body, body.root())).count(), 0);
    assert_eq!(find_expr(body, body.root(), |_| true), None);
}

#[test]
fn searches_stop_where_they_find() {
    let module = parse(PROGRAM);
    let body = body(&module);
    let mut seen = Vec::new();
    let found = find_expr(body, body.root(), |id| {
        seen.push(id);
        matches!(body.expr(id), Expr::Lambda { .. })
    });
    assert_eq!(text(&module, seen.into_iter()), "negative add %q fn");
    assert_eq!(found, Some(Binding::of(body, body.root()).unwrap().value));

    let mut all = Vec::new();
    for_each_expr(body, body.root(), |id| all.push(id));
    assert_eq!(all, program_order(body, body.root()).collect::<Vec<_>>());
    assert_eq!(fold(body, body.root(), 0, |n, _| n + 1), all.len());
    let third = try_fold(body, body.root(), 1, |n, id| match n {
        3 => ControlFlow::Break(id),
        _ => ControlFlow::Continue(n + 1),
    });
    assert_eq!(third, ControlFlow::Break(all[2]));
}

/// The orders by recursion.
#[derive(Default)]
struct Reference {
    seen: HashSet<ExprId>,
    pre: Vec<ExprId>,
    post: Vec<ExprId>,
    program: Vec<ExprId>,
    links: Vec<Link>,
}

impl Reference {
    fn walk(&mut self, body: &Body, id: ExprId) {
        let expr = body.expr(id);
        if expr.is_atom() || !self.seen.insert(id) {
            return;
        }
        self.pre.push(id);
        let links: Vec<Link> = match expr {
            Expr::Let { .. } => vec![Link::Value(id), Link::Rest(id)],
            Expr::If { .. } => vec![Link::Cond(id), Link::Then(id), Link::Else(id)],
            Expr::Lambda { .. } => vec![Link::Lambda(id)],
            Expr::Proj { .. } => vec![Link::Operand(id, 0)],
            _ => (0..body.operands_of(id).len() as u32).map(|i| Link::Operand(id, i)).collect(),
        };
        self.links.extend(&links);
        for link in links {
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
    fn orders_are_those_of_recursion(choices in choices()) {
        let module = program(&choices);
        let body = body(&module);
        let root = body.root();
        let mut reference = Reference::default();
        reference.walk(body, root);
        prop_assert_eq!(pre_order(body, root).collect::<Vec<_>>(), reference.pre);
        prop_assert_eq!(post_order(body, root).collect::<Vec<_>>(), reference.post);
        prop_assert_eq!(program_order(body, root).collect::<Vec<_>>(), reference.program.clone());
        prop_assert_eq!(reverse_order(body, root).rev().collect::<Vec<_>>(), reference.program.clone());
        let lets: Vec<ExprId> = reference.program.into_iter().filter(|&id| Binding::of(body, id).is_some()).collect();
        prop_assert_eq!(bindings(body, root).map(|b| b.id).collect::<Vec<_>>(), lets);

        let mut links = Vec::new();
        for_each_link(body, root, |link, target| {
            assert_eq!(link.target(body), target);
            links.push(link);
        });
        prop_assert_eq!(&links, &reference.links);
        let (counts, uses) = (link_counts(body), use_counts(body));
        for (id, expr) in body.exprs() {
            let expected = links.iter().filter(|l| l.target(body) == id).count() + usize::from(id == root);
            prop_assert_eq!(counts[id] as usize, expected);
            if let Expr::Var { .. } = expr {
                prop_assert_eq!(counts[id], uses[id]);
            }
        }
    }
}

#[test]
fn orders_of_deep_programs() {
    let n = depth(100_000);
    for shape in SHAPES {
        on_small_stack(move || {
            let module = deep(shape, n);
            let body = body(&module);
            let root = body.root();
            let count = pre_order(body, root).count();
            assert!(count > n, "{shape:?}");
            assert_eq!(post_order(body, root).count(), count);
            assert_eq!(program_order(body, root).count(), count);
            assert_eq!(reverse_order(body, root).len(), count);
            assert_eq!(fold(body, root, 0, |n, _| n + 1), count);
            assert_eq!(
                try_fold(body, root, 0, |n, _| ControlFlow::<(), usize>::Continue(n + 1)),
                ControlFlow::Continue(count)
            );
            assert_eq!(find_expr(body, root, |_| false), None);
            let mut calls = 0;
            for_each_expr(body, root, |_| calls += 1);
            assert_eq!(calls, count);
            assert!(bindings(body, root).count() >= chain(body, root).count());
            let counts = link_counts(body);
            let shared = pre_order(body, root).filter(|&id| counts[id] > 1).count();
            assert_eq!(shared, if shape == Shape::Diamonds { n } else { 0 }, "{shape:?}");
        });
    }
}
