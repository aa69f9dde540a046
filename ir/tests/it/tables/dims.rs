//! Dimensions have one form each, and are substituted without recursion.

use anfora_ir::{DimId, DimOp, Dims, Names};

fn setup() -> (Dims, DimId, DimId) {
    let (mut dims, mut names) = (Dims::default(), Names::default());
    let n = dims.new_symbol(names.intern("n"));
    let m = dims.new_symbol(names.intern("m"));
    let (n, m) = (dims.symbol(n), dims.symbol(m));
    (dims, n, m)
}

#[test]
fn sums_and_products_have_one_form() {
    let (mut d, n, m) = setup();
    let nm = d.add(n, m);
    let mn = d.add(m, n);
    assert_eq!(nm, mn);
    assert_eq!(d.sub(nm, m), n);
    let two = d.constant(2);
    let (a, b) = (d.mul(two, nm), d.add(nm, mn));
    assert_eq!(a, b);
    assert_eq!(d.op(DimOp::FloorDiv, a, two), nm);
    let zero = d.constant(0);
    assert_eq!(d.op(DimOp::Mod, a, two), zero);
    assert_eq!(d.sub(n, n), zero);
    let (x, y) = (d.op(DimOp::Max, n, m), d.op(DimOp::Max, m, n));
    assert_eq!(x, y);
}

#[test]
fn overflow_and_division_by_zero_are_unknown() {
    let (mut d, n, _) = setup();
    let (max, one, zero) = (d.constant(i64::MAX), d.constant(1), d.constant(0));
    assert_eq!(d.add(max, one), d.unknown());
    assert_eq!(d.op(DimOp::FloorDiv, n, zero), d.unknown());
    assert_eq!(DimOp::FloorDiv.evaluate(-7, 2), Some(-4));
    assert_eq!(DimOp::CeilDiv.evaluate(7, 2), Some(4));
    assert_eq!(DimOp::Mod.evaluate(-7, 2), Some(1));
    assert_eq!(DimOp::FloorDiv.evaluate(i64::MIN, -1), None);
}

#[test]
fn deep_operations_are_substituted_without_recursion() {
    let (mut d, n, m) = setup();
    let seven = d.constant(7);
    let (mut deep, mut expected) = (n, m);
    for _ in 0..100_000 {
        deep = d.op(DimOp::FloorDiv, deep, seven);
        expected = d.op(DimOp::FloorDiv, expected, seven);
    }
    let got = d.substitute(deep, |_, s| (s == n).then_some(m));
    assert_eq!(got, expected);
}
