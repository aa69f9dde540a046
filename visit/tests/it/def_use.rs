//! Tests of definitions and uses that are kept up to date, against a fresh analysis of the body.

use anfora_ir::{Body, EntityId, Expr, ExprId};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{DefUse, Definition, Link, link_counts};
use proptest::prelude::*;

use crate::programs::{SHAPES, body, deep, first, parse, random};

fn ids(body: &Body) -> impl Iterator<Item = ExprId> + use<> {
    (0..body.len()).map(ExprId::from_index)
}

/// Checks that an updated analysis equals a fresh one, except for the order of uses.
fn check(body: &Body, kept: &DefUse) {
    let fresh = DefUse::new(body);
    for id in ids(body) {
        let sorted = |d: &DefUse| {
            let mut uses: Vec<String> = d.uses(body, id).map(|l| format!("{l:?}")).collect();
            uses.sort_unstable();
            uses
        };
        assert_eq!(sorted(kept), sorted(&fresh), "{id:?}");
        assert_eq!(kept.use_count(id), kept.uses(body, id).count());
        assert_eq!(kept.is_used_once(id), kept.only_use(body, id).is_some());
        assert!(kept.uses(body, id).all(|link| link.target(body) == id));
        if let Some(var) = body.as_var(id) {
            assert_eq!(kept.definition(body, var), fresh.definition(body, var));
            assert_eq!(kept.value(body, var), fresh.value(body, var));
        }
    }
}

#[test]
fn uses_are_listed_in_program_order() {
    let module = parse(
        "def @main(%x: float32, %c: bool) {
            let %a = add(%x, %x);
            let %f = fn (%p: float32) { multiply(%p, %a) };
            let %i = if (%c) { let %t = negative(%x); add(%t, %a) } else { %x };
            (%a, %i, add(negative(%x), %x))
        }",
    );
    let body = body(&module);
    let def_use = DefUse::new(body);
    let [x, c] = body.params() else { panic!() };
    let name = |id: ExprId| match body.expr(id) {
        Expr::CallOp { op, .. } => module.cx.ops.get(op).name.to_string(),
        other => format!("{other:?}").split(' ').next().unwrap().to_string(),
    };
    let users: Vec<String> = def_use.users(x.expr()).map(name).collect();
    assert_eq!(users, ["add", "add", "negative", "If", "negative", "add"]);
    assert!(matches!(def_use.only_use(body, c.expr()), Some(Link::Cond(_))));
    assert_eq!(def_use.definition(body, *x), Some(Definition::Param));
    let params = ids(body).filter_map(|id| body.as_var(id)).filter_map(|v| match def_use.definition(body, v) {
        Some(Definition::LambdaParam(lambda)) => Some((v, lambda)),
        _ => None,
    });
    let [(p, lambda)] = params.collect::<Vec<_>>()[..] else { panic!() };
    assert!(matches!(body.expr(lambda), Expr::Lambda { .. }));
    assert_eq!((def_use.use_count(p.expr()), def_use.value(body, p)), (1, None));
    let counts = link_counts(body);
    for id in ids(body).filter(|&id| body.as_var(id).is_some()) {
        assert_eq!(def_use.use_count(id), counts[id] as usize);
    }
}

proptest! {
    #[test]
    fn changes_keep_it_up_to_date(
        random in random(),
        edits in prop::collection::vec(any::<(u16, u16, u8)>(), 0..30),
    ) {
        let mut module = random.module();
        let key = first(&module);
        let body = &mut module.get_mut(key).unwrap().0.body;
        let mut def_use = DefUse::new(body);
        check(body, &def_use);
        for (at, by, how) in edits {
            let at = ExprId::from_index(at as usize % body.len());
            // An earlier node is never a part of a later one.
            let by = ExprId::from_index(by as usize % at.index().max(1));
            match body.expr(at) {
                Expr::Let { body: rest, var, flags, .. } => match how % 3 {
                    // Removed from its chain.
                    0 if def_use.use_count(at) == 1 => {
                        let link = def_use.only_use(body, at).unwrap();
                        def_use.set(body, link, rest);
                    }
                    // A Let inserted after it.
                    1 => {
                        let new_var = body.push_var(None, Default::default(), body.ty(var.expr()), None);
                        let new = Expr::Let { var: new_var, value: var.expr(), body: rest, flags };
                        let new = body.push(new, body.ty(at), None);
                        body.set_let_body(at, new);
                        def_use.sync(body, Link::Rest(at));
                    }
                    // Gets another value.
                    2 if !body.expr(by).binds() => def_use.set(body, Link::Value(at), by),
                    _ => {}
                },
                Expr::If { then_block, .. } if how % 2 == 0 => def_use.set(body, Link::Else(at), {
                    let tail = body.tail(then_block);
                    if body.expr(tail).is_atom() { tail } else { by_atom(body) }
                }),
                expr if expr.operand_list().is_some_and(|l| !l.is_empty()) && !body.expr(by).binds() => {
                    let number = u32::from(how) % expr.operand_list().unwrap().len() as u32;
                    def_use.set(body, Link::Operand(at, number), by);
                }
                _ => {}
            }
            check(body, &def_use);
        }
    }
}

fn by_atom(body: &Body) -> ExprId {
    body.params()[0].expr()
}

#[test]
fn losses_are_noted_with_what_falls_out_of_the_program() {
    let mut module = parse("def @main(%x: float32) { let %a = negative(%x); let %b = add(%a, %a); %b }");
    let key = first(&module);
    let body = &mut module.get_mut(key).unwrap().0.body;
    let mut def_use = DefUse::new(body);
    assert!(def_use.take_losses().is_empty());
    def_use.note_losses();
    let a = anfora_visit::Binding::of(body, body.root()).unwrap();
    def_use.set(body, Link::Rest(a.id), a.var.expr());
    let lost: Vec<ExprId> = def_use.take_losses();
    assert_eq!(lost.iter().filter(|&&id| id == a.var.expr()).count(), 2);
    assert!(def_use.is_used_once(a.var.expr()) && def_use.take_losses().is_empty());
    check(body, &def_use);
}

#[test]
fn every_shape_is_kept_on_a_small_stack() {
    for shape in SHAPES {
        on_small_stack(move || {
            let mut module = deep(shape, depth(5_000));
            let key = first(&module);
            let body = &mut module.get_mut(key).unwrap().0.body;
            let mut def_use = DefUse::new(body);
            let counts = link_counts(body);
            let x = body.params()[0].expr();
            assert_eq!(def_use.use_count(x), counts[x] as usize, "{shape:?}");
            // The whole program is removed at once.
            def_use.set(body, Link::Root, x);
            assert_eq!(def_use.only_use(body, x), Some(Link::Root));
            assert!(ids(body).all(|id| id == x || def_use.use_count(id) == 0), "{shape:?}");
        });
    }
}
