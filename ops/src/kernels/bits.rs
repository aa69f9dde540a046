//! The computations of the elementwise operators on the bits of an element.

use anfora_ir::{DType, Literal};

use super::Failure;
use super::arithmetic::{dispatch, same_dtype};
use super::elementwise::{map, zip};

/// Elementwise operations on the bits of two integers.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Bitwise {
    And,
    Or,
    Xor,
    LeftShift,
    RightShift,
}

/// Applies an operation to the bits of every pair of integers, with broadcasting. Bits that are
/// shifted out are lost, and a right shift fills with the sign. A shift by a negative number, or by
/// at least the number of bits, leaves only the fill.
pub(crate) fn bitwise(op: Bitwise, a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    dispatch!(integer same_dtype(&[a, b])?, T => {
        let amount = |y: T| u32::try_from(i128::from(y)).ok().filter(|&n| n < T::BITS);
        match op {
            Bitwise::And => zip(a, b, |x: T, y: T| x & y),
            Bitwise::Or => zip(a, b, |x: T, y: T| x | y),
            Bitwise::Xor => zip(a, b, |x: T, y: T| x ^ y),
            Bitwise::LeftShift => zip(a, b, |x: T, y: T| amount(y).map_or(0, |n| x << n)),
            Bitwise::RightShift => zip(a, b, |x: T, y: T| amount(y).map_or((x >> (T::BITS - 1)) >> 1, |n| x >> n)),
        }
    })
}

/// Inverts all bits.
pub(crate) fn bitwise_not(x: &Literal) -> Result<Literal, Failure> {
    dispatch!(integer x.dtype(), T => map(x, |e: T| !e))
}

/// Reinterprets the bits of each element as an element of another type of the same size.
pub(crate) fn bitcast(x: &Literal, to: DType) -> Result<Literal, Failure> {
    check_bitcast(x.dtype(), to)?;
    if let Some(element) = x.as_splat() {
        return Ok(Literal::splat_bytes(to, x.shape(), element));
    }
    let bytes = x.as_dense().cloned().unwrap_or_default();
    Literal::from_bytes(to, x.shape(), bytes).map_err(|_| Failure::TooLarge)
}

/// Checks that every element of one type is an element of another type with the same bits.
///
/// # Errors
/// If the types have different numbers of bits, one of them is `string`, or `to` is `bool` and
/// `from` is not.
pub(crate) fn check_bitcast(from: DType, to: DType) -> Result<(), Failure> {
    let (has, wanted) = (from.bits(), to.bits());
    if from == DType::String || to == DType::String {
        Err(Failure::Mismatch("strings have no bits of their own".into()))
    } else if has != wanted {
        Err(Failure::Mismatch(format!("{from} has {has} bits, but {to} has {wanted}")))
    } else if to == DType::Bool && from != to {
        Err(Failure::Mismatch(format!("not every {from} is a bool")))
    } else {
        Ok(())
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
    fn shifts_out_of_range_leave_the_fill() {
        let (x, by) = (lit(&[-3i8, -3, -3, 5, 5, -128]), lit(&[1i8, 8, -1, 7, 100, 1]));
        assert_eq!(bitwise(Bitwise::RightShift, &x, &by).unwrap(), lit(&[-2i8, -1, -1, 0, 0, -64]));
        assert_eq!(bitwise(Bitwise::LeftShift, &x, &by).unwrap(), lit(&[-6i8, 0, 0, -128, 0, 0]));
        let (x, by) = (lit(&[u64::MAX, u64::MAX, 1]), lit(&[63u64, u64::MAX, 64]));
        assert_eq!(bitwise(Bitwise::RightShift, &x, &by).unwrap(), lit(&[1u64, 0, 0]));
        assert_eq!(bitwise(Bitwise::LeftShift, &x, &by).unwrap(), lit(&[1u64 << 63, 0, 0]));
    }

    #[test]
    fn bitcasts_share_the_bytes() {
        let x = lit(&[1f32, -0.0]);
        assert_eq!(bitcast(&x, DType::UInt32).unwrap(), lit(&[0x3f80_0000u32, 0x8000_0000]));
        assert_eq!(bitcast(&Literal::splat(&[1 << 40], 1f32), DType::Int32).unwrap().shape(), &[1 << 40]);
        assert_eq!(bitcast(&lit(&[true, false]), DType::UInt8).unwrap(), lit(&[1u8, 0]));
        assert_eq!(bitcast(&lit::<i64>(&[]), DType::Float64).unwrap(), lit::<f64>(&[]));
        assert!(bitcast(&x, DType::Float64).is_err());
        assert!(bitcast(&lit(&[1u8, 2]), DType::Bool).is_err());
    }
}
