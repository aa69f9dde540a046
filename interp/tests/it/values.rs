//! Values: their texts, and values that are nested deep.

use anfora_interp::Values;
use anfora_ir::Literal;
use half::f16;

#[test]
fn texts() {
    let mut v = Values::new();
    let a = v.tensor(Literal::from_elements(&[3], &[1i8, -2, 3]).unwrap());
    let b = v.tensor(Literal::splat(&[2, 2], 0.5f32));
    let c = v.tensor(Literal::from_elements(&[2], &[0x3c01u16, 0xc000]).unwrap());
    let t = v.tuple(&[b]);
    let u = v.tuple(&[a, t, c]);
    assert_eq!(
        v.text(u, 1000),
        "(Tensor[(3,), int8][1, -2, 3], (Tensor[(2, 2), float32][0.5],), Tensor[(2,), uint16][15361, 49152])"
    );
    let halves = [0x3c01, 0xc000, 0x0001, 0x7c00].map(f16::from_bits);
    let halves = v.tensor(Literal::from_elements(&[4], &halves).unwrap());
    assert_eq!(v.text(halves, 1000), "Tensor[(4,), float16][1.0009766, -2, 0.000000059604645, inf]");
}

#[test]
fn a_million_deep_and_shared() {
    let mut v = Values::new();
    let mut deep = v.tensor(Literal::scalar(1i32));
    for _ in 0..1_000_000 {
        deep = v.tuple(&[deep, deep]);
    }
    assert!(v.same(deep, &v.clone(), deep));
    assert!(v.text(deep, 100).len() < 200);
    assert_eq!(v.tensors(deep, 5).len(), 5);
}
