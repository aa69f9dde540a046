//! The laws of the visit toolkit, on random well-typed programs of the whole language.
//!
//! `ANFORA_CASES=5000` sets the number of programs for each law.

mod random_programs;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::ControlFlow;

use anfora::ir::{
    Body, Cursor, Diagnostic, Editor, EntityId, Expr, ExprId, FunctionKey, Module, Step, TypeId, VarId, alpha_equal,
    signature_type, verify_module,
};
use anfora::visit::{
    Binding, Edits, Link, Memo, Mutator, RewriteError, Visit, Visitor, bound_variables, chain, copy_fresh,
    expand_a_normal_form, free_variables, mutate, substitute, walk,
};
use anfora_testing::programs::Random;
use proptest::prelude::*;
use random_programs::{arguments, call_main, check, config, definitions, normal, programs, run};

/// Edits the body of a function. Returns true if anything was written.
fn edit(module: &mut Module, key: FunctionKey, edit: impl FnOnce(&mut Editor<'_>)) -> bool {
    let (function, cx) = module.get_mut(key).expect("a function of the module");
    function.body.begin_journal();
    edit(&mut Editor::new(cx, &mut function.body));
    let edited = function.body.is_edited();
    assert_eq!(function.body.commit_journal(), edited);
    edited
}

fn body(module: &Module, key: FunctionKey) -> &Body {
    &module.get(key).expect("a function of the module").body
}

struct InPlace;
impl Mutator for InPlace {
    type Error = RewriteError;
}
struct Copied;
impl Mutator for Copied {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Copied;
}
struct Scoped;
impl Mutator for Scoped {
    type Error = RewriteError;
    const EDITS: Edits = Edits::Scoped;
}

/// The counts of what can be reached from the root of a body, found without the engine: how often
/// each node is reached when every node is entered once, and how often each atom is referred to.
#[derive(PartialEq, Eq, Debug, Default)]
struct Census {
    nodes: BTreeMap<usize, usize>,
    bindings: BTreeMap<usize, usize>,
    definitions: BTreeMap<usize, usize>,
    uses: BTreeMap<usize, usize>,
    leaves: BTreeMap<usize, usize>,
}

fn count(counts: &mut BTreeMap<usize, usize>, id: ExprId) {
    *counts.entry(id.index()).or_default() += 1;
}

fn census(body: &Body) -> Census {
    let mut census = Census::default();
    let mut seen = HashSet::new();
    let mut stack = vec![body.root()];
    body.params().iter().for_each(|p| count(&mut census.definitions, p.expr()));
    while let Some(id) = stack.pop() {
        match body.expr(id) {
            Expr::Var { .. } => {
                count(&mut census.uses, id);
                continue;
            }
            expr if expr.is_atom() => {
                count(&mut census.leaves, id);
                continue;
            }
            _ if !seen.insert(id) => continue,
            Expr::Let { var, .. } => {
                count(&mut census.bindings, id);
                count(&mut census.definitions, var.expr());
            }
            Expr::Lambda { lambda, .. } => {
                count(&mut census.nodes, id);
                body.lambda_params(lambda).for_each(|p| count(&mut census.definitions, p.expr()));
            }
            _ => count(&mut census.nodes, id),
        }
        stack.extend(body.parts(id));
    }
    census
}

#[derive(Default)]
struct Counting {
    census: Census,
    open: Vec<ExprId>,
}

impl Visitor for Counting {
    type Break = Infallible;
    fn visit_binding(&mut self, _: &Body, binding: Binding) -> Visit<Infallible> {
        count(&mut self.census.bindings, binding.id);
        Visit::Continue
    }
    fn visit_expr(&mut self, _: &Body, id: ExprId) -> Visit<Infallible> {
        count(&mut self.census.nodes, id);
        self.open.push(id);
        Visit::Continue
    }
    fn exit_expr(&mut self, _: &Body, id: ExprId) -> ControlFlow<Infallible> {
        assert_eq!(self.open.pop(), Some(id), "nodes are left in the reverse of the order in which they are entered");
        ControlFlow::Continue(())
    }
    fn visit_def(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        count(&mut self.census.definitions, var.expr());
        Visit::Continue
    }
    fn visit_use(&mut self, _: &Body, var: VarId) -> Visit<Infallible> {
        count(&mut self.census.uses, var.expr());
        Visit::Continue
    }
    fn visit_leaf(&mut self, _: &Body, id: ExprId) -> Visit<Infallible> {
        count(&mut self.census.leaves, id);
        Visit::Continue
    }
}

fn free(body: &Body, link: Link) -> BTreeSet<usize> {
    free_variables(body, link.target(body)).into_iter().map(|v| v.index()).collect()
}

/// Returns the variables of the function's own block, parameters first, each with the link after
/// which it is visible.
fn visible(body: &Body) -> Vec<(VarId, Link)> {
    let params = body.params().iter().map(|&p| (p, Link::Root));
    params.chain(chain(body, body.root()).map(|b| (b.var, Link::Rest(b.id)))).collect()
}

/// Returns two variables of one type, of which the second is bound after the first, and the link
/// after which both are visible. `choice` chooses among the pairs.
fn pair(body: &Body, choice: usize) -> Option<(VarId, VarId, Link)> {
    let plain: Vec<_> = visible(body).into_iter().filter(|&(v, _)| !body.is_dataflow_var(v)).collect();
    (0..plain.len()).find_map(|i| {
        let (second, link) = plain[(i + choice) % plain.len()];
        let earlier = plain.iter().take_while(|&&(v, _)| v != second);
        let (first, _) = *earlier.filter(|&&(v, _)| body.ty(v.expr()) == body.ty(second.expr())).last()?;
        Some((first, second, link))
    })
}

fn replace(module: &mut Module, key: FunctionKey, link: Link, replacements: &[(VarId, ExprId)]) -> bool {
    edit(module, key, |editor| substitute(editor, link, replacements).expect("atoms of the same types"))
}

/// Returns the program in A-normal form, without bindings of atoms. A substitution removes such
/// bindings, and with them the uses of atoms that they are.
fn without_aliases(random: &Random) -> Module {
    let mut module = normal(random);
    run(&anfora::passes::registry(), "CanonicalizeBindings", &mut module);
    module
}

/// An operation on a memo.
#[derive(Clone, Debug)]
enum MemoUse {
    Insert(u8, u32),
    Remove(u8),
    Begin,
    End,
}

fn memo_uses() -> impl Strategy<Value = Vec<MemoUse>> {
    let one = prop_oneof![
        4 => (0u8..20, any::<u32>()).prop_map(|(id, value)| MemoUse::Insert(id, value)),
        1 => (0u8..20).prop_map(MemoUse::Remove),
        2 => Just(MemoUse::Begin),
        2 => Just(MemoUse::End),
    ];
    proptest::collection::vec(one, 0..100)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_mutator_that_does_nothing_writes_nothing(random in programs(1..120)) {
        let mut module = random.module();
        let text = module.to_text();
        for key in definitions(&module) {
            let (len, root) = (body(&module, key).len(), body(&module, key).root());
            prop_assert!(!edit(&mut module, key, |e| mutate(e, &mut InPlace).expect("no rewrite")), "InPlace");
            prop_assert!(!edit(&mut module, key, |e| mutate(e, &mut Copied).expect("no rewrite")), "Copied");
            prop_assert!(!edit(&mut module, key, |e| mutate(e, &mut Scoped).expect("no rewrite")), "Scoped");
            prop_assert_eq!((body(&module, key).len(), body(&module, key).root()), (len, root));
        }
        prop_assert_eq!(module.to_text(), text);
    }

    #[test]
    fn a_visitor_sees_each_node_once_and_each_use(random in programs(1..120)) {
        let module = random.module();
        for key in definitions(&module) {
            let mut counting = Counting::default();
            let ControlFlow::Continue(()) = walk(body(&module, key), &mut counting);
            prop_assert_eq!(counting.open.len(), 0);
            let expected = census(body(&module, key));
            let once = [&expected.nodes, &expected.bindings, &expected.definitions];
            prop_assert!(once.iter().all(|counts| counts.values().all(|&n| n == 1)), "{:?}", expected);
            prop_assert_eq!(counting.census, expected);
        }
    }

    #[test]
    fn a_copy_is_alpha_equal_and_shares_no_binder_and_no_node(random in programs(1..120)) {
        let original = random.module();
        let mut module = original.clone();
        for key in definitions(&original) {
            let (before, root) = (census(body(&module, key)), body(&module, key).root());
            edit(&mut module, key, |editor| {
                let copy = copy_fresh(editor, root);
                assert_eq!(free_variables(editor.body, copy), free_variables(editor.body, root));
                let binders: HashSet<VarId> = bound_variables(editor.body, root).into_iter().collect();
                let copied = bound_variables(editor.body, copy);
                assert_eq!(copied.len(), binders.len());
                assert!(copied.iter().all(|v| !binders.contains(v)), "a binder is shared");
                editor.body.set_root(copy);
            });
            let after = census(body(&module, key));
            prop_assert!(after.nodes.keys().all(|id| !before.nodes.contains_key(id)), "a node is shared");
            prop_assert_eq!(after.nodes.len(), before.nodes.len());
        }
        check(&module, "copied");
        prop_assert!(alpha_equal(&original, &module));
        prop_assert_eq!(module.to_text(), original.to_text());
    }

    /// `p[x := x] = p`, and writes nothing.
    #[test]
    fn to_substitute_a_variable_by_itself_writes_nothing(random in programs(1..120)) {
        let mut module = random.module();
        for key in definitions(&module) {
            for (var, link) in visible(body(&module, key)) {
                prop_assert!(!replace(&mut module, key, link, &[(var, var.expr())]));
            }
        }
    }

    /// `fv(p[x := y]) = (fv(p) - {x}) + {y}` if `x` is free in `p`, else `fv(p)`. The result is
    /// well-formed, unless a function with effects may have taken the place of one that a dataflow
    /// region calls.
    #[test]
    fn free_variables_follow_a_substitution(random in programs(1..120), choice: usize) {
        let mut module = without_aliases(&random);
        let mut keeps_purity = true;
        for key in definitions(&module) {
            let Some((y, x, link)) = pair(body(&module, key), choice) else { continue };
            keeps_purity &= module.cx.types.as_tensor(body(&module, key).ty(x.expr())).is_some();
            let mut expected = free(body(&module, key), link);
            let was_free = expected.remove(&x.index());
            if was_free {
                expected.insert(y.index());
            }
            prop_assert_eq!(replace(&mut module, key, link, &[(x, y.expr())]), was_free);
            prop_assert_eq!(free(body(&module, key), link), expected);
        }
        match verify_module(&module) {
            Err(errors) if !keeps_purity => {
                let is_effect = |e: &Diagnostic| e.message.contains("a dataflow region holds no side effect");
                prop_assert!(errors.iter().all(is_effect), "substituted: {}\n{}", errors[0], module);
            }
            _ => check(&module, "substituted"),
        }
    }

    /// `p[x := y, y := x][x := y, y := x] = p`, and a single exchange exchanges the free variables,
    /// since a replacement is not substituted in again. A graph comes back with less sharing, since
    /// a shared node that changes is copied for each block that uses it.
    #[test]
    fn to_exchange_two_variables_twice_is_to_do_nothing(random in programs(1..120), choice: usize) {
        let original = without_aliases(&random);
        let mut module = original.clone();
        for key in definitions(&original) {
            let Some((x, y, link)) = pair(body(&module, key), choice) else { continue };
            let are_free = |module: &Module| {
                let free = free(body(module, key), link);
                (free.contains(&x.index()), free.contains(&y.index()))
            };
            let (x_free, y_free) = are_free(&module);
            for expected in [(y_free, x_free), (x_free, y_free)] {
                replace(&mut module, key, link, &[(x, y.expr()), (y, x.expr())]);
                prop_assert_eq!(are_free(&module), expected);
            }
        }
        check(&module, "exchanged");
        prop_assert!(alpha_equal(&original, &module), "{}\n{}", original, module);
    }

    /// `p[x := a][y := b] = p[y := b][x := a] = p[x := a, y := b]` for constants. With arguments
    /// for the parameters, this is a call.
    #[test]
    fn parameters_may_be_substituted_in_any_order_and_then_it_is_a_call(random in programs(1..120), order: u64) {
        let original = random.module();
        let key = original.find("main").expect("a program has a main");
        let literals = arguments(&original, random.seed);
        let apply = |module: &mut Module, which: &[usize]| {
            let params = body(module, key).params().to_vec();
            edit(module, key, |editor| {
                let replacements: Vec<(VarId, ExprId)> =
                    which.iter().map(|&i| (params[i], editor.literal(literals[i].clone()))).collect();
                substitute(editor, Link::Root, &replacements).expect("arguments of the parameters' types");
            });
            // The type of a constant may be more specific than that of the parameter.
            let (function, cx) = module.get_mut(key).expect("a function of the module");
            let types: Vec<TypeId> = function.body.params().iter().map(|p| function.body.ty(p.expr())).collect();
            let signature = signature_type(cx, &types, function.body.type_of(function.body.root()));
            let global = function.global().expect("a function of the module has a name");
            module.set_signature(global, signature);
        };
        let mut shuffled: Vec<usize> = (0..literals.len()).collect();
        shuffled.sort_by_key(|&i| order.rotate_left(11 * i as u32) % 1009);
        let (mut at_once, mut one_by_one, mut other_order) = (original.clone(), original.clone(), original.clone());
        apply(&mut at_once, &shuffled);
        (0..literals.len()).for_each(|i| apply(&mut one_by_one, &[i]));
        shuffled.iter().for_each(|&i| apply(&mut other_order, &[i]));
        check(&at_once, "substituted");
        prop_assert!(alpha_equal(&at_once, &one_by_one), "{}\n{}", at_once, one_by_one);
        prop_assert!(alpha_equal(&one_by_one, &other_order), "{}\n{}", one_by_one, other_order);
        if let Ok(expected) = call_main(&original, &literals) {
            match call_main(&at_once, &literals) {
                Ok(found) => prop_assert!(expected.same(&found), "another result:\n{}", at_once),
                Err(e) => prop_assert!(false, "{}:\n{}", e, at_once),
            }
        }
    }

    /// A chain is expanded downwards in program order and upwards in the exact reverse order. The
    /// result of `pre` for a Let is given to `post` for the same Let.
    #[test]
    fn every_chain_is_expanded_down_and_back_up(random in programs(1..120)) {
        let module = random.module();
        for key in definitions(&module) {
            let body = body(&module, key);
            let mut links = vec![Link::Root];
            let mut cursor = Cursor::new(body);
            while let Some(step) = cursor.next(body) {
                match step {
                    Step::Enter(id) if matches!(body.expr(id), Expr::If { .. }) => links.extend([Link::Then(id), Link::Else(id)]),
                    Step::Enter(id) if matches!(body.expr(id), Expr::Lambda { .. }) => links.push(Link::Lambda(id)),
                    Step::Let(id) => links.push(Link::Value(id)),
                    _ => {}
                }
            }
            for link in links {
                let mut context = (body, (Vec::new(), Vec::new()));
                let tail: ControlFlow<RewriteError, ExprId> = expand_a_normal_form(
                    &mut context,
                    link,
                    |(_, (down, _)), at| {
                        down.push(at.binding.id);
                        ControlFlow::Continue((at.binding.id, down.len()))
                    },
                    |(_, (_, up)), at, carried: (ExprId, usize)| {
                        up.push((at.binding.id, carried));
                        ControlFlow::Continue(())
                    },
                );
                prop_assert!(tail == ControlFlow::Continue(body.tail(link.target(body))));
                let (down, mut up) = context.1;
                let lets: Vec<ExprId> = chain(body, link.target(body)).map(|b| b.id).collect();
                prop_assert_eq!(&down, &lets);
                up.reverse();
                let expected: Vec<_> = lets.iter().enumerate().map(|(i, &id)| (id, (id, i + 1))).collect();
                prop_assert_eq!(up, expected);
            }
        }
    }

    /// A memo is a map, and each scope works on a copy of its own.
    #[test]
    fn a_memo_forgets_at_the_end_of_a_scope_what_it_learnt_in_it(uses in memo_uses()) {
        let mut memo = Memo::new();
        let mut maps: Vec<HashMap<u8, u32>> = vec![HashMap::new()];
        for one in uses {
            let depth = maps.len();
            let map = maps.last_mut().expect("the outermost is never dropped");
            match one {
                MemoUse::Insert(id, value) => {
                    memo.insert(ExprId::from_index(id.into()), value);
                    map.insert(id, value);
                }
                MemoUse::Remove(id) => {
                    memo.remove(ExprId::from_index(id.into()));
                    map.remove(&id);
                }
                MemoUse::Begin => {
                    memo.begin_scope();
                    let copy = map.clone();
                    maps.push(copy);
                }
                MemoUse::End => {
                    memo.end_scope();
                    if depth > 1 {
                        maps.pop();
                    }
                }
            }
            let map = maps.last().expect("the outermost is never dropped");
            prop_assert_eq!(memo.depth(), maps.len() - 1);
            for id in 0..20u8 {
                prop_assert_eq!(memo.get(ExprId::from_index(id.into())), map.get(&id).copied());
            }
        }
    }
}
