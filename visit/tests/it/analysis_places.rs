//! Tests of blocks and counts of links against their definitions.

use std::collections::HashMap;

use anfora_ir::{AncestorTree, Body, Expr, ExprId, compact_body};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{Binding, BlockId, Blocks, Link, bindings, link_counts};
use proptest::prelude::*;

use crate::programs::{SHAPES, Shape, all_links, body, deep, first, parse, random};

#[test]
fn what_is_unlinked_or_appended_is_in_no_block() {
    let mut module = parse("def @main(%x: float32) { let %a = add(%x, %x); %x }");
    let key = first(&module);
    let (function, _) = module.get_mut(key).unwrap();
    let body = &mut function.body;
    let a = Binding::of(body, body.root()).unwrap();
    Link::Root.set(body, a.rest);
    let blocks = Blocks::of(body);
    assert_eq!((blocks.block(a.id), blocks.block(a.var.expr())), (None, None));
    let ty = body.ty(a.value);
    for _ in 0..3 {
        let late = body.push(Expr::Proj { tuple: a.rest, index: 0 }, ty, None);
        assert_eq!(blocks.block(late), None);
    }
}

#[test]
fn blocks_of_every_kind() {
    let module = parse(
        "def @main(%x: float32, %c: bool) {
            let %f = fn(%p: float32) -> float32 { let %q = add(%p, %x); %q };
            let %v = { let %i = if (%c) { let %t = %f(%x); %t } else { %x }; %i };
            %v
        }",
    );
    let body = body(&module);
    let blocks = Blocks::of(body);
    let all: HashMap<String, Binding> = bindings(body, body.root())
        .map(|b| (module.cx.names.get(body.var_name(b.var).unwrap()).to_string(), b))
        .collect();
    let of = |name: &str| {
        let b = all[name];
        let block = blocks.block(b.id).unwrap();
        assert_eq!(blocks.block(b.var.expr()), Some(block));
        block
    };
    let Expr::Lambda { lambda, .. } = body.expr(all["f"].value) else { panic!() };
    let p = body.lambda_params(lambda).next().unwrap();
    assert_eq!(of("f"), BlockId::ROOT);
    assert_eq!(blocks.link(of("q")), Link::Lambda(all["f"].value));
    assert_eq!(blocks.block(p.expr()), Some(of("q")));
    assert_eq!(blocks.link(of("i")), Link::Value(all["v"].id));
    assert_eq!(blocks.link(of("t")), Link::Then(all["i"].value));
    assert_eq!(blocks.parent(of("t")), Some(of("i")));
    assert_eq!((blocks.depth(of("t")), blocks.parent(BlockId::ROOT)), (2, None));
    assert_eq!(blocks.common(of("t"), of("q")), BlockId::ROOT);
    assert!(blocks.encloses(of("i"), of("t")) && !blocks.encloses(of("t"), of("i")));
    assert_eq!(blocks.len(), 5);
    for param in body.params() {
        assert_eq!(blocks.block(param.expr()), Some(BlockId::ROOT));
    }
}

#[test]
fn a_compacted_body_is_refused() {
    let mut module = parse("def @main(%x: float32) { let %a = add(%x, %x); %a }");
    let key = first(&module);
    let blocks = Blocks::of(body(&module));
    blocks.check(body(&module));
    let (function, _) = module.get_mut(key).unwrap();
    compact_body(&mut function.body).unwrap();
    let check = std::panic::AssertUnwindSafe(|| blocks.check(body(&module)));
    assert!(std::panic::catch_unwind(check).is_err());
}

#[test]
fn ancestors_agree_with_walking_up() {
    let mut tree = AncestorTree::new();
    let mut random = fastrand::Rng::with_seed(7);
    for i in 1..3000u64 {
        // Deep overall, with forks.
        let parent = i - 1 - random.u64(..i.min(3));
        assert_eq!(tree.add(parent as u32), i as u32);
    }
    let up = |mut a: u32, mut b: u32| {
        while a != b {
            if tree.depth(a) >= tree.depth(b) { a = tree.parent(a) } else { b = tree.parent(b) }
        }
        a
    };
    for i in 0..3000u32 {
        for j in [0, i / 2, 2999 - i, 2999] {
            assert_eq!(tree.common(i, j), up(i, j));
            assert_eq!(tree.is_under(i, j), up(i, j) == j);
        }
        let mut at = i;
        for _ in 0..20 {
            assert_eq!(tree.ancestor(i, tree.depth(at)), at);
            at = tree.parent(at);
        }
    }
}

/// Returns the links of the blocks around each node, outermost first: the longest common prefix of
/// all references to it, found by visiting the links until nothing changes.
fn nesting(body: &Body) -> HashMap<ExprId, Vec<Link>> {
    let mut found: HashMap<ExprId, Vec<Link>> = HashMap::new();
    let links = all_links(body);
    loop {
        let before = found.clone();
        for &(link, target) in &links {
            if body.expr(target).is_atom() {
                continue;
            }
            let mut path = match link.holder() {
                None => Vec::new(),
                Some(owner) => match found.get(&owner) {
                    Some(path) => path.clone(),
                    None => continue,
                },
            };
            let begins = match link {
                Link::Root | Link::Rest(_) => false,
                Link::Then(_) | Link::Else(_) | Link::Lambda(_) => true,
                Link::Value(_) | Link::Operand(..) | Link::Cond(_) => matches!(body.expr(target), Expr::Let { .. }),
            };
            if begins {
                path.push(link);
            }
            let at = found.entry(target).or_insert_with(|| path.clone());
            let common = at.iter().zip(&path).take_while(|(a, b)| a == b).count();
            // A node that binds has one link, whose owner may have moved outwards.
            if body.expr(target).binds() { *at = path } else { at.truncate(common) }
        }
        if found == before {
            return found;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn links_are_counted(random in random()) {
        let module = random.module();
        let body = body(&module);
        let links = all_links(body);
        let counts = link_counts(body);
        for (id, _) in body.exprs() {
            prop_assert_eq!(counts[id] as usize, links.iter().filter(|l| l.1 == id).count());
        }
    }

    #[test]
    fn blocks_are_the_innermost_around_all_references(random in random()) {
        let module = random.module();
        let body = body(&module);
        let blocks = Blocks::of(body);
        let nesting = nesting(body);
        for (id, expr) in body.exprs() {
            if expr.is_atom() {
                continue;
            }
            let path = blocks.block(id).map(|block| {
                let mut path: Vec<Link> = Vec::new();
                let mut at = block;
                while let Some(parent) = blocks.parent(at) {
                    path.push(blocks.link(at));
                    at = parent;
                }
                path.reverse();
                assert_eq!(blocks.depth(block) as usize, path.len());
                path
            });
            prop_assert_eq!(path.as_ref(), nesting.get(&id));
            if let (Expr::Let { var, .. }, true) = (expr, path.is_some()) {
                prop_assert_eq!(blocks.block(var.expr()), blocks.block(id));
            }
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
            assert_eq!(link_counts(body)[body.root()], 1, "{shape:?}");
            let blocks = Blocks::of(body);
            let expected = match shape {
                Shape::Chain | Shape::NestedCall | Shape::Diamonds => 1,
                Shape::NestedFn | Shape::LetInValue => n + 1,
                Shape::NestedIf | Shape::IfInValue => 2 * n + 1,
            };
            assert_eq!(blocks.len(), expected, "{shape:?}");
            let deepest = (0..body.len()).filter_map(|i| blocks.block(anfora_ir::EntityId::from_index(i)));
            let deepest = deepest.max_by_key(|&b| blocks.depth(b)).unwrap();
            assert_eq!(blocks.depth(deepest) as usize, if expected == 1 { 0 } else { n }, "{shape:?}");
            assert_eq!(blocks.common(deepest, BlockId::ROOT), BlockId::ROOT);
            assert!(blocks.encloses(BlockId::ROOT, deepest));
        });
    }
}
