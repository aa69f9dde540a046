//! Tests of liveness against its definition.

use std::collections::{HashMap, HashSet};

use anfora_ir::{Body, Expr, ExprId, Module, VarId, compact_body};
use anfora_testing::{depth, on_small_stack};
use anfora_visit::{Binding, LastUse, Liveness, bindings, bound_variables};
use proptest::prelude::*;

use crate::programs::{SHAPES, Shape, body, deep, first, parse, random};

fn name(module: &Module, var: VarId) -> String {
    module.cx.names.get(body(module).var_name(var).unwrap()).to_string()
}

fn variables(body: &Body) -> Vec<VarId> {
    let mut all = body.params().to_vec();
    all.extend(bound_variables(body, body.root()));
    all
}

/// Returns each variable with its last use: `;` is the tail, `-` means no use.
fn last_uses(module: &Module) -> String {
    let body = body(module);
    let liveness = Liveness::of(body);
    let text = |var: VarId| {
        let last = match liveness.last_use(var) {
            Some(LastUse::Let(id)) => name(module, Binding::of(body, id).unwrap().var),
            Some(LastUse::Tail) => ";".to_string(),
            None => "-".to_string(),
        };
        format!("{}:{last}", name(module, var))
    };
    variables(body).into_iter().map(text).collect::<Vec<_>>().join(" ")
}

#[test]
fn along_a_chain() {
    let module = parse(
        "def @main(%x: float32, %unused: float32) {
            let %a = negative(%x);
            let %b = add(%a, %x);
            let %dead = add(%a, %b);
            let %c = negative(%b);
            add(%c, %b)
        }",
    );
    assert_eq!(last_uses(&module), "x:b unused:- a:dead b:; dead:- c:;");
    let body = body(&module);
    let liveness = Liveness::of(body);
    let all: HashMap<String, VarId> = variables(body).into_iter().map(|v| (name(&module, v), v)).collect();
    let ranges: Vec<_> = ["x", "unused", "a", "b", "dead", "c"].iter().map(|n| liveness.range(all[*n])).collect();
    assert_eq!(ranges, [Some((0, 2)), None, Some((1, 3)), Some((2, 5)), None, Some((4, 5))]);
    // After %a: %x and %a.
    assert_eq!(liveness.max_live(), 2);
    let lets: Vec<Binding> = bindings(body, body.root()).collect();
    let live = |i: usize| {
        let live = variables(body).into_iter().filter(|&v| liveness.is_live_after(v, lets[i].id));
        live.map(|v| name(&module, v)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([live(0), live(1), live(2), live(3)], ["x a", "a b", "b", "b c"]);
}

#[test]
fn uses_in_nested_blocks_are_uses_of_what_they_are_part_of() {
    let module = parse(
        "def @main(%x: float32, %c: bool, %k: float32) {
            let %f = fn(%p: float32) -> float32 { let %q = add(%p, %k); if (%c) { %f(%q) } else { %q } };
            let %i = if (%c) { let %t = negative(%x); let %u = add(%t, %t); %u } else { %k };
            let %v = { let %w = %f(%i); let %z = negative(%w); %z };
            %v
        }",
    );
    assert_eq!(last_uses(&module), "x:i c:i k:i p:q q:; f:v t:u u:; i:v w:z z:; v:;");
    let body = body(&module);
    let liveness = Liveness::of(body);
    let all: HashMap<String, Binding> = bindings(body, body.root()).map(|b| (name(&module, b.var), b)).collect();
    let x = body.params()[0];
    // In a branch of its last user, a variable is live to the end. In the block of a Lambda it is
    // not live, even if the Lambda captures it.
    assert!(liveness.is_live_after(x, all["t"].id) && liveness.is_live_after(x, all["u"].id));
    assert!(!liveness.is_live_after(x, all["q"].id) && !liveness.is_live_after(x, all["i"].id));
    assert!(liveness.is_live_after(x, all["f"].id) && !liveness.is_live_after(x, all["w"].id));
    // A variable of a nested block is not live outside of it.
    assert!(!liveness.is_live_after(all["t"].var, all["i"].id));
    assert!(liveness.is_live_after(all["w"].var, all["w"].id) && !liveness.is_live_after(all["w"].var, all["z"].id));
    // In the branch after %t: %x, %c, %k, %f, %t.
    assert_eq!(liveness.max_live(), 5);
}

#[test]
fn a_function_that_only_calls_itself_is_not_live() {
    let module = parse(
        "def @main(%x: float32) {
            let %f = fn(%p: float32) -> float32 { %f(%p) };
            %x
        }",
    );
    let body = body(&module);
    let liveness = Liveness::of(body);
    let f = Binding::of(body, body.root()).unwrap();
    assert_eq!((liveness.range(f.var), liveness.is_live_after(f.var, f.id)), (None, false));
    assert_eq!(liveness.max_live(), 1);
}

#[test]
fn a_compacted_body_is_refused() {
    let mut module = parse("def @main(%x: float32) { let %a = add(%x, %x); %a }");
    let key = first(&module);
    let liveness = Liveness::of(body(&module));
    liveness.check(body(&module));
    let (function, _) = module.get_mut(key).unwrap();
    compact_body(&mut function.body).unwrap();
    let check = std::panic::AssertUnwindSafe(|| liveness.check(body(&module)));
    assert!(std::panic::catch_unwind(check).is_err());
}

/// A place: the positions of the enclosing blocks in each other, and the place's own position in
/// the innermost. Blocks of lambdas begin with a mark.
type Place = Vec<(ExprId, usize)>;

/// The places of all definitions and uses, found by recursion.
struct Places<'b> {
    body: &'b Body,
    seen: HashSet<ExprId>,
    defs: Vec<(VarId, Place)>,
    uses: Vec<(VarId, Place)>,
    lets: HashMap<ExprId, Place>,
    /// The first Lets or tails of the blocks of lambdas.
    frames: Vec<Place>,
    ends: Vec<Place>,
}

impl Places<'_> {
    fn chain(&mut self, start: ExprId, around: &Place, params: &[VarId]) {
        let mut place = around.clone();
        place.push((start, 0));
        for &param in params {
            self.defs.push((param, place.clone()));
        }
        self.ends.push(place.clone());
        let mut at = start;
        while let Some(b) = Binding::of(self.body, at) {
            place.last_mut().unwrap().1 += 1;
            self.defs.push((b.var, place.clone()));
            self.lets.insert(b.id, place.clone());
            self.ends.push(place.clone());
            self.expr(b.value, &place);
            at = b.rest;
        }
        place.last_mut().unwrap().1 += 1;
        self.expr(at, &place);
    }

    fn expr(&mut self, id: ExprId, place: &Place) {
        match self.body.expr(id) {
            Expr::Var { .. } => self.uses.push((self.body.as_var(id).unwrap(), place.clone())),
            Expr::Let { .. } => self.chain(id, place, &[]),
            expr if expr.is_atom() || !self.seen.insert(id) => {}
            Expr::If { cond, then_block, else_block } => {
                self.expr(cond, place);
                // Branches that are the same node begin with the same id, but are not walked twice.
                self.chain(then_block, place, &[]);
                self.chain(else_block, place, &[]);
            }
            Expr::Lambda { lambda, body: block } => {
                let mut inner = place.clone();
                inner.push((id, 0));
                self.frames.push(inner.clone());
                let params: Vec<VarId> = self.body.lambda_params(lambda).collect();
                self.chain(block, &inner, &params);
            }
            Expr::Proj { tuple, .. } => self.expr(tuple, place),
            _ => self.body.operands_of(id).to_vec().into_iter().for_each(|o| self.expr(o, place)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn liveness_is_from_definition_to_last_use(random in random()) {
        let module = random.module();
        let body = body(&module);
        let mut places = Places {
            body, seen: HashSet::new(), defs: Vec::new(), uses: Vec::new(), lets: HashMap::new(), frames: Vec::new(), ends: Vec::new(),
        };
        places.chain(body.root(), &Vec::new(), body.params());
        let liveness = Liveness::of(body);
        // The last use of each variable in its own chain.
        let mut ranges: Vec<(VarId, Place, usize)> = Vec::new();
        for (var, def) in &places.defs {
            let depth = def.len() - 1;
            let used = places.uses.iter().filter(|(v, _)| v == var).map(|(_, place)| place[depth].1).max();
            let range = used.filter(|&last| last > def[depth].1).map(|last| (def[depth].1 as u32, last as u32));
            prop_assert_eq!(liveness.range(*var), range, "{}", module);
            ranges.push((*var, def.clone(), used.unwrap_or(0)));
            let expected = used.map(|last| {
                let mut at = def.clone();
                at[depth].1 = last;
                match places.lets.iter().find(|(_, place)| **place == at) {
                    Some((&id, _)) => LastUse::Let(id),
                    None => LastUse::Tail,
                }
            });
            prop_assert_eq!(liveness.last_use(*var), expected);
        }
        // Returns true if a variable is live at a place: after its last position, or in a block
        // there.
        let is_live = |def: &Place, last: usize, at: &Place| {
            let depth = def.len() - 1;
            if at.len() <= depth || at[..depth] != def[..depth] || at[depth].0 != def[depth].0 {
                return false;
            }
            let (begin, at_position) = (def[depth].1, at[depth].1);
            if at.len() == def.len() {
                return begin <= at_position && at_position < last;
            }
            let same_frame = !places.frames.iter().any(|f| f.len() > def.len() && at.starts_with(f));
            same_frame && begin < at_position && at_position <= last
        };
        for (var, def, last) in &ranges {
            for (&id, at) in &places.lets {
                prop_assert_eq!(liveness.is_live_after(*var, id), is_live(def, *last, at), "{:?} {:?} in {}", var, id, module);
            }
        }
        let most = places.ends.iter().map(|at| ranges.iter().filter(|(_, def, last)| is_live(def, *last, at)).count());
        prop_assert_eq!(liveness.max_live(), most.max().unwrap_or(0), "{}", module);
    }
}

#[test]
fn deep_programs() {
    let n = depth(5_000);
    for shape in SHAPES {
        on_small_stack(move || {
            let module = deep(shape, n);
            let body = body(&module);
            let liveness = Liveness::of(body);
            let expected = match shape {
                // Variables that are used in a nested block are live to its end: %x, %c and the
                // innermost %v.
                Shape::IfInValue => 3,
                Shape::NestedCall | Shape::Diamonds => 1,
                _ => 2,
            };
            assert_eq!(liveness.max_live(), expected, "{shape:?}");
            let x = body.params()[0];
            assert!(liveness.range(x).is_some());
            let innermost = bindings(body, body.root()).next();
            if let (Some(b), Shape::LetInValue | Shape::Chain | Shape::IfInValue) = (innermost, shape) {
                assert!(liveness.is_live_after(x, b.id), "{shape:?}");
            }
        });
    }
}
