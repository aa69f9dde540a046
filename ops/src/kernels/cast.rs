//! Conversion between element types.

use anfora_ir::{DType, Literal};
use half::{bf16, f16};

use super::Failure;
use super::arithmetic::dispatch;
use super::elementwise::map;
use super::number::{FloatNumber, Scalar, bf16_from_f64, f16_from_f64, to_odd_f64};
use super::small_number::{Rounding, narrowed, widened};

/// Converts to another element type. Conversion to the same type is the identity and keeps all
/// bits.
pub(crate) fn cast(x: &Literal, to: DType) -> Result<Literal, Failure> {
    cast_with(x, to, Rounding::default())
}

/// Converts as [`cast`] does, with a treatment of numbers that a small float does not have.
pub(crate) fn cast_with(x: &Literal, to: DType, rounding: Rounding) -> Result<Literal, Failure> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    let wide;
    let x = if x.dtype().is_small_number() {
        wide = widened(x)?;
        &wide
    } else {
        x
    };
    match x.dtype() {
        from if from == to => Ok(x.clone()),
        DType::Bool => from_integer(x, to, rounding, |e: bool| i128::from(e)),
        from if from.is_integer() => {
            dispatch!(integer from, T => from_integer(x, to, rounding, |e: T| i128::from(e)))
        }
        from => dispatch!(float from, T => from_float::<T>(x, to, rounding)),
    }
}

fn from_integer<T: Scalar>(
    x: &Literal,
    to: DType,
    rounding: Rounding,
    wide: impl Fn(T) -> i128,
) -> Result<Literal, Failure> {
    match to {
        DType::Bool => map(x, |e: T| wide(e) != 0),
        DType::Float16 => map(x, |e: T| f16_from_f64(to_odd_f64(wide(e)))),
        DType::BFloat16 => map(x, |e: T| bf16_from_f64(to_odd_f64(wide(e)))),
        DType::Float32 => map(x, |e: T| wide(e) as f32),
        DType::Float64 => map(x, |e: T| wide(e) as f64),
        _ if to.is_small_integer() => narrowed(x, to, rounding, |e: T| (wide(e) & 0xff) as f64),
        _ if to.is_small_number() => narrowed(x, to, rounding, |e: T| to_odd_f64(wide(e))),
        _ => dispatch!(integer to, R => map(x, |e: T| wide(e) as R)),
    }
}

fn from_float<T: FloatNumber>(x: &Literal, to: DType, rounding: Rounding) -> Result<Literal, Failure> {
    let wide = |e: T| -> f64 { e.widen().into() };
    match to {
        DType::Bool => map(x, |e: T| wide(e) != 0.0),
        DType::Float16 => map(x, |e: T| f16::nearest(wide(e))),
        DType::BFloat16 => map(x, |e: T| bf16::nearest(wide(e))),
        DType::Float32 => map(x, |e: T| f32::nearest(wide(e))),
        DType::Float64 => map(x, |e: T| f64::nearest(wide(e))),
        _ if to.is_small_number() => narrowed(x, to, rounding, wide),
        _ => dispatch!(integer to, R => map(x, |e: T| wide(e) as R)),
    }
}

#[cfg(test)]
mod tests {
    use anfora_ir::Element;

    use super::*;

    fn lit<T: Element>(values: &[T]) -> Literal {
        Literal::from_elements(&[values.len()], values).unwrap()
    }

    #[test]
    fn casts() {
        let x = lit(&[-1.9f32, 300.0, f32::NAN, -0.0, f32::INFINITY]);
        assert_eq!(cast(&x, DType::Int8).unwrap(), lit(&[-1i8, 127, 0, 0, 127]));
        assert_eq!(cast(&x, DType::UInt8).unwrap(), lit(&[0u8, 255, 0, 0, 255]));
        assert_eq!(cast(&x, DType::Bool).unwrap(), lit(&[true, true, true, false, true]));
        assert_eq!(cast(&lit(&[-1i32, 300]), DType::UInt8).unwrap(), lit(&[255u8, 44]));
        assert_eq!(cast(&lit(&[true, false]), DType::Float32).unwrap(), lit(&[1f32, 0.0]));
        assert_eq!(cast(&lit(&[u64::MAX]), DType::Float32).unwrap(), lit(&[18_446_744_073_709_551_615f32]));
        assert_eq!(cast(&lit(&[u64::MAX]), DType::Int64).unwrap(), lit(&[-1i64]));
        let nan = lit(&[f32::from_bits(0xffc1_2345), 0.0]);
        assert_eq!(cast(&nan, DType::Float16).unwrap(), lit(&[f16::from_bits(0x7e00), f16::ZERO]));
        assert_eq!(cast(&nan, DType::Float32).unwrap(), nan);
        let small = cast(&lit(&[0.3f32, -1.0, 500.0]), DType::Float8E4M3FN).unwrap();
        assert_eq!(cast(&small, DType::Float64).unwrap(), lit(&[0.3125f64, -1.0, 448.0]));
        assert_eq!(cast(&small, DType::Int4).unwrap(), Literal::from_codes(DType::Int4, &[3], &[0, 15, 0]).unwrap());
        assert_eq!(
            cast(&lit(&[i64::MAX, -3]), DType::UInt2).unwrap(),
            Literal::from_codes(DType::UInt2, &[2], &[3, 1]).unwrap()
        );
        let strings = Literal::from_strings(&[1], vec!["x".into()]).unwrap();
        assert_eq!(cast(&strings, DType::Int8), Err(Failure::ElementType(DType::String)));
    }
}
