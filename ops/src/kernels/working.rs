//! The types in which kernels of many steps compute: float32, or float64 for its own elements. The
//! operands are converted once, and results are rounded once.

use anfora_ir::{DType, Literal, element_count};

use super::number::{FloatNumber, Number, Real};
use super::{Failure, MOST_STEPS};

/// A type that is its own type of arithmetic.
pub(crate) trait Working: FloatNumber + Number<Calc = Self> + Real + Into<f64> {}

impl Working for f32 {}
impl Working for f64 {}

/// Returns the type in which elements of a floating-point type are computed.
///
/// # Errors
/// If it is not a floating-point type.
pub(crate) fn working_type(dtype: DType) -> Result<DType, Failure> {
    match dtype {
        DType::Float64 => Ok(DType::Float64),
        _ if dtype.is_float() => Ok(DType::Float32),
        _ => Err(Failure::ElementType(dtype)),
    }
}

/// Fails if a computation takes too many steps although none of its main operands takes memory, or
/// if the elements of an operand cannot be numbered. `None` stands for a number of steps that
/// overflows.
pub(crate) fn check_steps(main: &[&Literal], others: &[Option<&Literal>], steps: Option<u128>) -> Result<(), Failure> {
    let is_free = |o: &&Literal| o.as_splat().is_some() || o.element_count() == 0;
    if main.iter().copied().chain(others.iter().copied().flatten()).any(|o| element_count(o.shape()).is_none()) {
        return Err(Failure::TooLarge);
    }
    match main.iter().all(is_free) && steps.is_none_or(|n| n > MOST_STEPS) {
        true => Err(Failure::TooLong),
        false => Ok(()),
    }
}

/// Returns the product of numbers; `None` if it overflows.
pub(crate) fn product(factors: &[usize]) -> Option<u128> {
    factors.iter().try_fold(1u128, |n, &f| n.checked_mul(f as u128))
}
