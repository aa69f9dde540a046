//! Tests of post-dominators against their definition.

use std::collections::{BTreeMap, BTreeSet};

use anfora_ir::{Body, Expr, ExprId, Module, compact_body};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{Binding, Blocks, DefUse, Link, PostDominators, bindings, chain};
use proptest::prelude::*;

use crate::programs::{SHAPES, Shape, all_links, body, deep, first, parse, random};

fn name(module: &Module, id: ExprId) -> String {
    let body = body(module);
    match Binding::of(body, id) {
        Some(b) => module.cx.names.get(body.var_name(b.var).unwrap()).to_string(),
        None => format!("{:?}", body.expr(id)),
    }
}

/// Returns pairs `a>c`, where `c` is the immediate post-dominator of `a`; `.` is the exit.
fn tree(module: &Module) -> String {
    let body = body(module);
    let tree = PostDominators::of(body);
    let text = |b: Binding| {
        let up = tree.immediate(b.id).map_or(".".to_string(), |id| name(module, id));
        format!("{}>{up}", name(module, b.id))
    };
    bindings(body, body.root()).map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn diamonds_and_skip_connections() {
    let module = parse(
        "def @main(%x: float32) {
            let %a = negative(%x);
            let %b = negative(%a);
            let %c = negative(%b);
            let %d = add(%b, %c);
            let %e = add(%a, %d);
            let %dead = negative(%e);
            let %f = negative(%e);
            %f
        }",
    );
    assert_eq!(tree(&module), "a>e b>d c>d d>e e>. dead>. f>.");
    let body = body(&module);
    let tree = PostDominators::of(body);
    let [a, b, c, d, e, dead, f]: [Binding; 7] = chain(body, body.root()).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(tree.path(b.id).collect::<Vec<_>>(), [d.id, e.id]);
    assert_eq!(tree.common(b.id, c.id), Some(d.id));
    assert_eq!(tree.common(c.id, a.id), Some(e.id));
    assert_eq!(tree.common(f.id, a.id), None);
    assert_eq!((tree.depth(b.id), tree.depth(e.id), tree.depth(dead.id)), (3, 1, 1));
    assert!(tree.is_post_dominated(c.id, e.id) && tree.is_post_dominated(c.id, c.id));
    assert!(!tree.is_post_dominated(e.id, c.id) && !tree.is_post_dominated(a.id, f.id));
    // A binding is found by its variable and value as by its Let; parameters are not values.
    assert_eq!(tree.immediate(b.var.expr()), Some(d.id));
    assert_eq!(tree.immediate(b.value), Some(d.id));
    let x = body.params()[0].expr();
    assert_eq!((tree.immediate(x), tree.depth(x), tree.common(x, a.id)), (None, 0, None));
}

#[test]
fn outputs_and_uses_in_nested_blocks_go_to_the_exit() {
    let module = parse(
        "def @main(%x: float32, %c: bool) {
            dataflow {
                let %a = negative(%x);
                let %out = negative(%a);
                let %b = negative(%out);
                let %last = add(%a, %b);
                output(%out, %last)
            }
            let %captured = negative(%last);
            let %f = fn(%p: float32) -> float32 { let %q = add(%p, %captured); let %r = negative(%q); %r };
            let %branched = negative(%last);
            let %flag = less(%last, %x);
            let %i = if (%flag) { %branched } else { %x };
            let %v = { let %w = negative(%i); %w };
            let %alias = %v;
            let %y = %f(%alias);
            %y
        }",
    );
    assert_eq!(
        tree(&module),
        "a>. out>. b>last last>. captured>. q>r r>. f>y branched>. flag>i i>. w>. v>alias alias>y y>."
    );
}

#[test]
fn a_recursive_function_is_a_value_like_another() {
    let module = parse(
        "def @main(%x: float32, %c: bool) {
            let %f = fn(%p: float32) -> float32 { if (%c) { %f(%p) } else { %p } };
            let %y = %f(%x);
            let %z = negative(%y);
            %z
        }",
    );
    assert_eq!(tree(&module), "f>y y>z z>.");
}

#[test]
fn nodes_of_a_graph_are_values() {
    let module = parse(
        "def @main(%x: float32) {
            %g = negative(%x);
            %h = multiply(%g, %x);
            add(add(%g, %h), %h)
        }",
    );
    let body = body(&module);
    let tree = PostDominators::of(body);
    let root = body.root();
    let [inner, h] = body.operands_of(root).try_into().unwrap();
    let g = body.operands_of(inner)[0];
    assert_eq!(tree.immediate(root), None);
    assert_eq!((tree.immediate(inner), tree.immediate(h), tree.immediate(g)), (Some(root), Some(root), Some(root)));
}

#[test]
fn labels_of_paths() {
    // Edges to results of `multiply` have label 5, to results of `less` 9, and to others 1.
    let module = parse(
        "def @main(%x: float32) {
            let %a = negative(%x);
            let %b = multiply(%a, %x);
            let %c = negative(%b);
            let %d = add(%a, %c);
            let %e = negative(%d);
            let %f = less(%e, %x);
            %f
        }",
    );
    let body = body(&module);
    let tree = PostDominators::with_labels(body, |operand, user| match body.expr(user) {
        Expr::CallOp { op, .. } => {
            assert!(body.operands_of(user).contains(&operand));
            match &*module.cx.ops.get(op).name {
                "multiply" => 5,
                "less" => 9,
                _ => 1,
            }
        }
        _ => 0,
    });
    let labels: Vec<u8> = chain(body, body.root()).map(|b| tree.path_label(b.id)).collect();
    assert_eq!(labels, [5, 1, 1, 1, 9, 0]);
}

#[test]
fn a_compacted_body_is_refused() {
    let mut module = parse("def @main(%x: float32) { let %a = add(%x, %x); %a }");
    let key = first(&module);
    let tree = PostDominators::of(body(&module));
    tree.check(body(&module));
    let (function, _) = module.get_mut(key).unwrap();
    compact_body(&mut function.body).unwrap();
    let check = std::panic::AssertUnwindSafe(|| tree.check(body(&module)));
    assert!(std::panic::catch_unwind(check).is_err());
}

fn label(operand: ExprId, user: ExprId) -> u8 {
    use anfora_ir::EntityId;
    ((operand.index() * 31 + user.index() * 17) % 251) as u8
}

/// Returns the graph by its definition: for each value, the values to which it flows (`None` is the
/// exit), with labels.
fn graph(body: &Body) -> BTreeMap<usize, Vec<(Option<usize>, u8)>> {
    use anfora_ir::EntityId;
    let (blocks, uses) = (Blocks::of(body), DefUse::new(body));
    // Returns the Let of a value or variable, if it has one.
    let named = |id: ExprId| match uses.only_use(body, id) {
        Some(Link::Value(l)) if !body.expr(id).is_atom() && Binding::of(body, id).is_none() => Some(l),
        _ => bindings(body, body.root()).find(|b| b.var.expr() == id).map(|b| b.id),
    };
    let value = |id: ExprId| named(id).unwrap_or(id);
    let mut graph: BTreeMap<usize, Vec<(Option<usize>, u8)>> = BTreeMap::new();
    for (id, expr) in body.exprs() {
        if uses.use_count(id) > 0 && !expr.is_atom() && value(id) == id {
            graph.insert(id.index(), Vec::new());
        }
    }
    let mut edge = |from: ExprId, to: Option<ExprId>, label: u8| {
        if let Some(edges) = graph.get_mut(&value(from).index()) {
            edges.push((to.map(|t| value(t).index()), label));
        }
    };
    for (link, target) in all_links(body) {
        let (Link::Value(user) | Link::Cond(user) | Link::Operand(user, _)) = link else {
            // A Let is the value of a binding. It does not flow to the place of its chain.
            if Binding::of(body, target).is_none() {
                edge(target, None, 0);
            }
            continue;
        };
        if Binding::of(body, target).is_some()
            || named(target) == Some(user) && uses.only_use(body, target) == Some(link) && !body.expr(target).is_atom()
        {
            continue;
        }
        if blocks.block(target) == blocks.block(user) {
            edge(target, Some(user), label(target, user));
        } else {
            edge(target, None, 0);
        }
    }
    for b in bindings(body, body.root()) {
        if b.flags.is_dataflow() && !body.is_dataflow_var(b.var) {
            edge(b.id, None, 0);
        }
    }
    // Values without uses.
    for edges in graph.values_mut() {
        if edges.is_empty() {
            edges.push((None, 0));
        }
    }
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn post_dominators_are_on_every_path(random in random()) {
        use anfora_ir::EntityId;
        let module = random.module();
        let body = body(&module);
        let graph = graph(body);
        // The values on every path from each value to the exit, by iteration to a fixpoint.
        let all: BTreeSet<usize> = graph.keys().copied().collect();
        let mut on_all: BTreeMap<usize, BTreeSet<usize>> = all.iter().map(|&v| (v, all.clone())).collect();
        loop {
            let before = on_all.clone();
            for (&v, edges) in &graph {
                let mut common = all.clone();
                for &(to, _) in edges {
                    match to {
                        Some(to) => common.retain(|x| on_all[&to].contains(x)),
                        None => common.clear(),
                    }
                }
                common.insert(v);
                on_all.insert(v, common);
            }
            if on_all == before {
                break;
            }
        }
        let tree = PostDominators::with_labels(body, label);
        let id = |v: usize| ExprId::from_index(v);
        for (&v, dominators) in &on_all {
            prop_assert_eq!(tree.depth(id(v)) as usize, dominators.len(), "{} of {:?}", module, id(v));
            let up = dominators.iter().copied().filter(|&d| d != v).max_by_key(|d| on_all[d].len());
            prop_assert_eq!(tree.immediate(id(v)), up.map(id), "{} of {:?}", module, id(v));
            for (&w, others) in &on_all {
                prop_assert_eq!(tree.is_post_dominated(id(v), id(w)), dominators.contains(&w));
                let common = dominators.iter().copied().filter(|d| others.contains(d)).max_by_key(|d| on_all[d].len());
                prop_assert_eq!(tree.common(id(v), id(w)), common.map(id));
            }
            // All values in between, and their outgoing edges.
            let Some(up) = up else {
                prop_assert_eq!(tree.path_label(id(v)), 0);
                continue;
            };
            let (mut between, mut work, mut greatest) = (BTreeSet::new(), vec![v], 0);
            while let Some(at) = work.pop() {
                if at != up && between.insert(at) {
                    for &(to, label) in &graph[&at] {
                        greatest = greatest.max(label);
                        work.extend(to);
                    }
                }
            }
            prop_assert_eq!(tree.path_label(id(v)), greatest);
        }
    }
}

#[test]
fn deep_programs() {
    let n = depth(5_000);
    for shape in SHAPES {
        on_small_stack(move || {
            let module = deep(shape, n);
            let body = body(&module);
            let tree = PostDominators::with_labels(body, |_, _| 3);
            let longest =
                (0..body.len()).map(|i| tree.depth(anfora_ir::EntityId::from_index(i))).max().unwrap() as usize;
            let expected = match shape {
                Shape::Chain | Shape::NestedCall | Shape::Diamonds => n + 1,
                Shape::NestedIf | Shape::LetInValue => 1,
                Shape::NestedFn => 2,
                Shape::IfInValue => 1,
            };
            assert_eq!(longest, expected, "{shape:?}");
            let deepest =
                (0..body.len()).map(anfora_ir::EntityId::from_index).max_by_key(|&id: &ExprId| tree.depth(id)).unwrap();
            assert_eq!(tree.path(deepest).count(), expected - 1);
            assert_eq!(tree.path_label(deepest), if expected == 1 { 0 } else { 3 });
            let last = tree.path(deepest).last().unwrap_or(deepest);
            assert_eq!(tree.common(deepest, last), Some(last));
        });
    }
}
