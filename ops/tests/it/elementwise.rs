//! Values of elementwise operators, computed through their rows: extremes, NaN, mixed element
//! types, bounds, signs of infinity.

use anfora_ir::{Attr, AttrId, AttrReader, Context, DType, Element, KernelCall, KernelError, Literal, infer_op};
use half::{bf16, f16};

/// Calls an operator on constants. `None` is an omitted operand.
fn call(op: &str, operands: &[Option<Literal>], attrs: &[(&str, Attr)]) -> Result<Literal, KernelError> {
    let mut cx = Context::new(anfora_ops::standard());
    let op = cx.ops.find(op).expect("a standard operator");
    let list: Vec<_> = operands.iter().map(|o| cx.constant_operand(o.as_ref())).collect();
    let attrs: Vec<(&str, AttrId)> = attrs.iter().map(|(name, a)| (*name, cx.attr(a.clone()))).collect();
    let attrs = cx.named_attrs(&attrs);
    let attrs = cx.check_op_attrs(op, attrs).expect("attributes of the operator");
    let annotated = cx.types.any();
    let ty = infer_op(&mut cx, op, &list, attrs, annotated).unwrap_or_else(|e| panic!("{e}"));
    let operands: Vec<Option<&Literal>> = operands.iter().map(Option::as_ref).collect();
    let kernel = cx.ops.get(op).kernel.expect("a kernel");
    let call = KernelCall { operands: &operands, attrs: AttrReader { cx: &cx, op, attrs }, ty };
    Ok(kernel(&call)?.remove(0))
}

fn list<T: Element>(values: &[T]) -> Option<Literal> {
    Some(Literal::from_elements(&[values.len()], values).expect("one element each"))
}

fn scalar<T: Element>(value: T) -> Option<Literal> {
    Some(Literal::scalar(value))
}

fn value(op: &str, operands: &[Option<Literal>]) -> Option<Literal> {
    call(op, operands, &[]).ok()
}

#[test]
fn powers_of_mixed_types() {
    let three = [1i64, 2, 3];
    assert_eq!(value("power", &[list(&three), list(&[4f32, 5.0, 6.0])]), list(&[1i64, 32, 729]));
    assert_eq!(value("power", &[list(&[2f32, -2.0]), list(&[-1i64, 3])]), list(&[0.5f32, -8.0]));
    assert_eq!(value("power", &[list(&[2i8, 2, -1, -1]), list(&[3i64, 8, -2, -3])]), list(&[8i8, 0, 1, -1]));
    assert_eq!(value("power", &[list(&[255u8, 1, 3]), list(&[-1i8, -5, 5])]), list(&[0u8, 1, 243]));
    // Integer powers are exact, however large the exponent is.
    assert_eq!(value("power", &[scalar(3i32), scalar(u64::MAX)]), scalar(3i32.wrapping_pow(u32::MAX)));
    assert_eq!(value("power", &[scalar(2i32), scalar(0.5f64)]), scalar(1i32));
    assert_eq!(value("power", &[scalar(10i8), scalar(3f32)]), scalar(127i8), "conversion saturates");
    assert_eq!(value("power", &[scalar(f16::from_f32(3.0)), scalar(2i32)]), scalar(f16::from_f32(9.0)));
    assert_eq!(value("power", &[scalar(bf16::from_f32(1.5)), scalar(2u8)]), scalar(bf16::from_f32(2.25)));
    assert!(call("power", &[scalar(0i32), scalar(-1i64)], &[]).is_err());
}

#[test]
fn bounds() {
    let x = || list(&[-3i32, 0, 7]);
    assert_eq!(value("clip", &[x(), scalar(-1i32), scalar(5i32)]), list(&[-1i32, 0, 5]));
    assert_eq!(value("clip", &[x(), None, list(&[5i32])]), list(&[-3i32, 0, 5]));
    assert_eq!(value("clip", &[x(), scalar(1i32)]), list(&[1i32, 1, 7]));
    assert_eq!(value("clip", &[x()]), x());
    assert_eq!(value("clip", &[x(), scalar(5i32), scalar(1i32)]), list(&[1i32, 1, 1]), "the upper one counts");
    let floats = value("clip", &[list(&[f32::NAN, f32::NEG_INFINITY, -0.0]), scalar(0f32), scalar(1f32)]);
    assert_eq!(floats, list(&[f32::NAN, 0.0, 0.0]));
}

#[test]
fn any_number_of_operands() {
    let (a, b, c) = (|| list(&[1f32, -0.0, f32::NAN]), || list(&[3f32, 0.0, 1.0]), || scalar(2f32));
    assert_eq!(value("maximum_n", &[a(), b(), c()]), list(&[3f32, 2.0, f32::NAN]));
    assert_eq!(value("minimum_n", &[a(), b()]), list(&[1f32, -0.0, f32::NAN]));
    assert_eq!(value("mean_n", &[a(), b(), c()]), list(&[2f32, 2.0 / 3.0, f32::NAN]));
    assert_eq!(value("add_n", &[list(&[100i8, 1]), scalar(100i8), scalar(100i8)]), list(&[44i8, -55]));
    assert_eq!(value("maximum_n", &[list(&[true, false]), scalar(false)]), list(&[true, false]));
    // 2048 + 1 + 1: rounding each sum separately would give 2048.
    let [big, one] = [2048.0, 1.0].map(f16::from_f32);
    assert_eq!(value("add_n", &[scalar(big), scalar(one), scalar(one)]), scalar(f16::from_f32(2050.0)));
}

#[test]
fn infinities_of_one_sign() {
    let x = || list(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0]);
    let of = |name| call("isinf", &[x()], &[(name, Attr::Bool(false))]).ok();
    assert_eq!(of("detect_negative"), list(&[true, false, false, false]));
    assert_eq!(of("detect_positive"), list(&[false, true, false, false]));
    assert_eq!(value("isinf", &[x()]), list(&[true, true, false, false]));
}

#[test]
fn bits_of_integers() {
    let (a, b) = (|| list(&[0b1100u16, 0xffff]), || list(&[0b1010u16, 1]));
    assert_eq!(value("bitwise_and", &[a(), b()]), list(&[0b1000u16, 1]));
    assert_eq!(value("bitwise_or", &[a(), b()]), list(&[0b1110u16, 0xffff]));
    assert_eq!(value("bitwise_xor", &[a(), b()]), list(&[0b0110u16, 0xfffe]));
    assert_eq!(value("bitwise_not", &[list(&[0i64, -1])]), list(&[-1i64, 0]));
    let bits = call("bitcast", &[list(&[1f64, -0.0])], &[("dtype", Attr::DType(DType::Int64))]).ok();
    assert_eq!(bits, list(&[0x3ff0_0000_0000_0000i64, i64::MIN]));
}
