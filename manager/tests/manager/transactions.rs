//! Random edits in edits: each is committed or rolled back exactly.

use std::collections::HashMap;

use anfora_ir::{Body, Editor, Expr, LetFlags, Module, ModuleStamp, Stamp, VarFlags};

use crate::support::{add_function, module, set_bumps, snapshot};

/// A random number generator (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

fn edit_module(module: &mut Module, random: &mut Random, step: usize) {
    let order = module.order().to_vec();
    match random.below(6) {
        0 => add_function(module, &format!("new{step}")),
        1 if order.len() > 2 => module.remove(&[order[random.below(order.len())]]),
        2 => {
            let mut order = order;
            let n = order.len();
            order.swap(random.below(n), random.below(n));
            module.set_order(order);
        }
        3 => {
            let global = module.get(order[random.below(order.len())]).and_then(|f| f.global()).unwrap();
            let name = module.cx.names.intern(&format!("name{}", random.below(20)));
            module.rename(global, name);
        }
        4 => set_bumps(module, step as i64),
        _ => {
            let global = module.get(order[random.below(order.len())]).and_then(|f| f.global()).unwrap();
            let ty = module.cx.types.any();
            module.set_signature(global, ty);
        }
    }
}

fn edit_function(module: &mut Module, random: &mut Random) {
    let order = module.order().to_vec();
    let key = order[random.below(order.len())];
    let (f, cx) = module.get_mut(key).unwrap();
    let any = cx.types.any();
    let some = {
        let ids: Vec<_> = f.body.exprs().map(|(id, _)| id).collect();
        move |random: &mut Random| ids[random.below(ids.len())]
    };
    match random.below(12) {
        0 => f.body.set_root(some(random)),
        1 => f.body.set_params(Vec::new()),
        2 => f.body.set_type(some(random), any),
        3 => f.body.set_meta(some(random), Some(cx.attrs.empty())),
        4 => f.body.set_meta(some(random), None),
        5 => f.ret = Some(any),
        6 => f.body.replace(Body::new(&cx.types)),
        7 => {
            let new = f.body.clone();
            f.body.replace(new);
        }
        8 => {
            let var = f.body.push_var(None, VarFlags::PLAIN, any, None);
            let (value, rest) = (some(random), f.body.root());
            let link = Editor::new(cx, &mut f.body).let_(var, value, rest, LetFlags::PLAIN);
            f.body.set_root(link);
        }
        9 => {
            let lambda = f.body.push_lambda(&[], None, cx.attrs.empty());
            f.body.set_lambda(lambda, f.body.lambda(lambda));
            let body = some(random);
            let lambda = f.body.push(Expr::Lambda { lambda, body }, any, None);
            f.body.set_root(lambda);
        }
        _ => {
            let (from, to) = (some(random), some(random));
            match f.body.expr(from) {
                Expr::CallOp { operands, .. } => f.body.set_operand(operands, 0, to),
                Expr::Let { .. } => f.body.set_let_body(from, to),
                _ => f.body.set_expr(from, Expr::Proj { tuple: to, index: 0 }),
            }
        }
    }
}

/// Returns everything that the stamp of a body covers.
fn content(body: &Body) -> String {
    let nodes: Vec<_> =
        body.exprs().map(|(id, e)| (e, body.ty(id), body.operands_of(id).to_vec(), body.meta(id))).collect();
    format!("{nodes:?} {:?} {:?} {} {}", body.params(), body.root(), body.operand_count(), body.lambda_count())
}

#[test]
fn edits_in_edits_are_kept_or_taken_back() {
    for seed in 1..=300 {
        let mut random = Random(0x9E37_79B9_7F4A_7C15 ^ seed);
        let mut module = module();
        // The state of the module at the beginning of each open edit.
        let mut open: Vec<(String, ModuleStamp)> = Vec::new();
        let mut states: HashMap<Stamp, String> = HashMap::new();
        for step in 0..120 {
            match random.below(10) {
                0 if open.len() < 4 => {
                    open.push((snapshot(&module), module.stamp()));
                    module.begin_edit();
                }
                1 if !open.is_empty() => {
                    let (before, stamp) = open.pop().unwrap();
                    let now = snapshot(&module);
                    let said = module.has_changes();
                    assert_eq!(module.commit(), said, "seed {seed}");
                    assert!(!said || !stamp.is_of(&module), "seed {seed}");
                    assert!(said || now == before || appended_only(&before, &now), "seed {seed}");
                    assert_eq!(snapshot(&module), now, "seed {seed}");
                }
                2 if !open.is_empty() => {
                    module.rollback();
                    let (before, stamp) = open.pop().unwrap();
                    assert_eq!(snapshot(&module), before, "seed {seed}");
                    assert!(stamp.is_of(&module) && stamp == module.stamp(), "seed {seed}");
                }
                3 => edit_module(&mut module, &mut random, step),
                _ => edit_function(&mut module, &mut random),
            }
            assert_eq!(module.edit_depth(), open.len());
            for (_, f) in module.functions() {
                let now = content(&f.body);
                let then = states.entry(f.body.stamp()).or_insert_with(|| now.clone());
                assert_eq!(*then, now, "seed {seed}: bodies of one stamp are the same");
            }
        }
        while let Some((before, stamp)) = open.pop() {
            assert!(stamp.functions().iter().all(|(key, f)| match module.get(*key) {
                Some(now) => now.body.stamp() == f.body() || now.body.can_restore(f.body()),
                None => !module.order().contains(key),
            }));
            module.rollback();
            assert_eq!(snapshot(&module), before, "seed {seed}");
            assert!(stamp.is_of(&module), "seed {seed}");
        }
        assert!(module.functions().all(|(_, f)| !f.body.has_journal()), "seed {seed}");
    }
}

/// Returns true if all lines of `before` are still present, in order (except for the lines that
/// count operands).
fn appended_only(before: &str, now: &str) -> bool {
    let mut lines = now.lines();
    before.lines().filter(|l| !l.contains("operands")).all(|l| lines.any(|n| n == l))
}
