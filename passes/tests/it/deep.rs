//! Tests of passes on long and deep programs, on a small stack.
//!
//! By default, programs are 5,000 deep; `ANFORA_DEEP=1000000` sets another depth.

use crate::programs::{ChainKind, NestKind, nest, straight, two_nests};
use anfora_ir::{Expr, ExprId, Invariant, Module, Purity, verify_module};
use anfora_manager::PassContext;
use anfora_passes::{
    FoldBudget, OperandOrder, canonicalize_bindings, eliminate_common_subexpr, eliminate_dead_code, fold_constant,
    to_a_normal_form,
};
use anfora_testing::{depth, on_small_stack};

/// Runs all passes. Returns true if they changed anything.
fn optimise(module: &mut Module) -> bool {
    let purity = Purity::of_module(module);
    module.begin_edit();
    let key = module.find("main").unwrap();
    let (f, cx) = module.get_mut(key).unwrap();
    to_a_normal_form(cx, &mut f.body);
    assert!(Invariant::ANormalForm.holds_in(cx, &f.body));
    fold_constant(cx, f, FoldBudget::default()).unwrap();
    canonicalize_bindings(cx, f).unwrap();
    eliminate_common_subexpr(cx, f, &purity, OperandOrder::Commutative).unwrap();
    eliminate_dead_code(module, &purity, &[], &PassContext::new()).unwrap();
    module.commit()
}

fn chain_length(module: &Module) -> usize {
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    anfora_visit::chain(body, body.root()).count()
}

fn tail(module: &Module) -> (Expr, ExprId) {
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    let id = body.tail(body.root());
    (body.expr(id), id)
}

fn check(make: impl FnOnce() -> Module + Send + 'static, length: usize) {
    on_small_stack(move || {
        let mut module = make();
        optimise(&mut module);
        verify_module(&module).unwrap();
        assert_eq!(chain_length(&module), length);
        assert!(!optimise(&mut module), "a second run changes nothing");
    });
}

#[test]
fn a_chain_that_is_all_live() {
    check(|| straight(depth(5_000), ChainKind::Live), depth(5_000));
}

#[test]
fn a_chain_that_is_all_dead() {
    check(|| straight(depth(5_000), ChainKind::Dead), 0);
}

#[test]
fn a_chain_of_one_value() {
    check(|| straight(depth(5_000), ChainKind::Duplicate), 1);
}

#[test]
fn a_chain_of_constants() {
    on_small_stack(|| {
        let mut module = straight(depth(5_000), ChainKind::Constant);
        optimise(&mut module);
        let (Expr::Literal(l), _) = tail(&module) else { panic!("a constant is left") };
        assert_eq!(module.cx.literals.get(l).as_scalar::<f32>(), Some(depth(5_000) as f32 + 1.0));
        assert_eq!(chain_length(&module), 0);
    });
}

#[test]
fn nested_ifs() {
    // The inner bindings are dead: the nest itself stays, without them.
    check(|| nest(depth(5_000), NestKind::If), 1);
}

#[test]
fn nested_ifs_of_known_conditions() {
    check(|| nest(depth(5_000), NestKind::KnownIf), 0);
}

#[test]
fn nested_lambdas() {
    check(|| nest(depth(5_000), NestKind::Lambda), 1);
}

#[test]
fn nested_calls() {
    check(|| nest(depth(5_000), NestKind::Call), depth(5_000) - 1);
}

#[test]
fn nested_blocks() {
    check(|| nest(depth(5_000), NestKind::Block), depth(5_000) - 1);
}

#[test]
fn two_equal_nests_of_ifs() {
    check(|| two_nests(depth(5_000) / 2), 1);
}
