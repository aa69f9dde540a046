//! The loops for kernels of custom operators.

use anfora_ir::{DType, Literal};
use anfora_ops::loops::{compare_float, map, map_float, zip, zip_float};
use half::{bf16, f16};

fn f32s(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len()], values).unwrap()
}

#[test]
fn elements_are_computed_in_their_own_type() {
    let third = |x: &Literal| map_float(x, |x| x / 3.0, |x| x / 3.0).unwrap();
    assert_eq!(third(&f32s(&[1.0])), f32s(&[1.0 / 3.0]));
    assert_eq!(third(&Literal::scalar(1f64)), Literal::scalar(1.0 / 3.0f64));
    assert_eq!(third(&Literal::scalar(f16::ONE)), Literal::scalar(f16::from_f32(1.0 / 3.0)));
    assert_eq!(third(&Literal::scalar(bf16::ONE)), Literal::scalar(bf16::from_f32(1.0 / 3.0)));
    assert!(map_float(&Literal::scalar(1i32), |x| x, |x| x).is_err());
    // The result is rounded once: 2049 is not a float16, but 2049 + 1 is.
    let sum = zip_float(
        &Literal::scalar(f16::from_f32(2048.0)),
        &Literal::scalar(f16::ONE),
        |a, b| a + b + 1.0,
        |a, b| a + b,
    );
    assert_eq!(sum.unwrap(), Literal::scalar(f16::from_f32(2050.0)));
    let mixed = zip_float(&Literal::scalar(1f32), &Literal::scalar(1f64), |a, _| a, |a, _| a);
    assert_eq!(mixed.unwrap_err().message, "operands of element types float32 and float64");
}

#[test]
fn other_elements_than_the_function_takes_are_refused() {
    let error = map(&Literal::scalar(1f32), |x: i32| x).unwrap_err();
    assert_eq!(error.message, "elements of float32, but int32 are expected");
    assert!(zip(&Literal::scalar(1i32), &Literal::scalar(1u32), |x: i32, _: i32| x).is_err());
    assert!(zip(&f32s(&[1.0, 2.0]), &f32s(&[1.0, 2.0, 3.0]), |x: f32, _: f32| x).is_err());
}

#[test]
fn nans_are_canonical_splats_stay_and_nothing_stays_nothing() {
    let odd = f32::from_bits(0xffc0_1234);
    let canonical = f32::from_bits(0x7fc0_0000);
    assert_eq!(map(&f32s(&[1.0, odd]), |x: f32| x).unwrap(), f32s(&[1.0, canonical]));
    assert_eq!(
        map(&f32s(&[1.0]), |_: f32| f64::from_bits(u64::MAX)).unwrap().elements::<f64>().unwrap()[0].to_bits(),
        0x7ff8 << 48
    );
    assert_eq!(
        zip(&f32s(&[1.0, 2.0]), &Literal::scalar(1f32), |_: f32, _: f32| odd).unwrap(),
        Literal::splat(&[2], canonical)
    );
    let huge = Literal::splat(&[1 << 40, 1 << 40], 2f32);
    assert_eq!(map_float(&huge, |x| x * 2.0, |x| x).unwrap(), Literal::splat(huge.shape(), 4f32));
    let close = compare_float(&huge, &Literal::scalar(2f32), |a, b| a == b, |a, b| a == b).unwrap();
    assert_eq!(close, Literal::splat(huge.shape(), true));
    assert!(zip(&huge, &f32s(&[1.0, 2.0]), |x: f32, _: f32| x).is_err());
    let none = Literal::from_elements::<f32>(&[0, 3], &[]).unwrap();
    assert_eq!(compare_float(&none, &Literal::scalar(1f32), |a, b| a < b, |a, b| a < b).unwrap().dtype(), DType::Bool);
    assert_eq!(map(&none, |x: f32| x).unwrap(), none);
}
