//! The counts that the benchmark program has after passes, as its specification predicts them.

mod programs;

use anfora_ir::{Module, Purity};
use anfora_passes::{
    FoldBudget, OperandOrder, canonicalize_bindings, eliminate_common_subexpr, eliminate_dead_code, fold_constant,
};
use programs::chain;

/// N, after DCE, after folding and DCE, after folding, CSE and DCE.
const COUNTS: [(usize, usize, usize, usize); 3] =
    [(1_000, 808, 704, 476), (10_000, 7_963, 6_969, 4_956), (100_000, 79_802, 69_878, 49_835)];

fn bindings(module: &Module) -> usize {
    let body = &module.get(module.find("main").unwrap()).unwrap().body;
    anfora_visit::chain(body, body.root()).count()
}

fn fold(module: &mut Module) {
    let key = module.find("main").unwrap();
    let (f, cx) = module.get_mut(key).unwrap();
    fold_constant(cx, f, FoldBudget::default()).unwrap();
}

fn cse(module: &mut Module) {
    let purity = Purity::of_module(module);
    let key = module.find("main").unwrap();
    let (f, cx) = module.get_mut(key).unwrap();
    eliminate_common_subexpr(cx, f, &purity, OperandOrder::Exact).unwrap();
}

fn dce(module: &mut Module) {
    let purity = Purity::of_module(module);
    eliminate_dead_code(module, &purity, &[]).unwrap();
}

#[test]
fn dead_code() {
    for (n, after, _, _) in COUNTS {
        let mut module = chain(n);
        assert_eq!(bindings(&module), n);
        dce(&mut module);
        assert_eq!(bindings(&module), after);
    }
}

#[test]
fn folding_and_dead_code() {
    for (n, _, after, _) in COUNTS {
        let mut module = chain(n);
        fold(&mut module);
        dce(&mut module);
        assert_eq!(bindings(&module), after);
    }
}

#[test]
fn folding_common_subexpressions_and_dead_code() {
    for (n, _, _, after) in COUNTS {
        let mut module = chain(n);
        fold(&mut module);
        cse(&mut module);
        dce(&mut module);
        assert_eq!(bindings(&module), after);
    }
}

#[test]
fn a_second_run_changes_nothing() {
    let mut module = chain(10_000);
    fold(&mut module);
    cse(&mut module);
    dce(&mut module);
    module.begin_edit();
    fold(&mut module);
    cse(&mut module);
    let key = module.find("main").unwrap();
    let (f, cx) = module.get_mut(key).unwrap();
    canonicalize_bindings(cx, f).unwrap();
    dce(&mut module);
    assert!(!module.commit());
}
