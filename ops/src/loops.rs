//! The elementwise loops, for kernels of custom operators.
//!
//! The loops broadcast as the standard operators do, keep splats as splats, reject results that are
//! too large to be stored, and replace every NaN that they store by the canonical NaN. For results
//! with the same bits on every machine, take functions from `libm` instead of the standard library,
//! and do not fuse multiplications and additions.
//!
//! ```
//! use anfora_ir::Literal;
//! use anfora_ops::loops::{map_float, zip};
//!
//! let x = Literal::from_elements(&[3], &[1f32, 4.0, 9.0])?;
//! let roots = Literal::from_elements(&[3], &[1f32, 2.0, 3.0])?;
//! assert_eq!(map_float(&x, libm::sqrtf, libm::sqrt)?, roots);
//! let limit = Literal::splat(&[2, 1], 4f32);
//! let below = zip(&x, &limit, |x: f32, limit: f32| x < limit)?;
//! assert_eq!(below, Literal::from_elements(&[2, 3], &[true, false, false, true, false, false])?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use anfora_ir::{KernelError, Literal};

use crate::kernels::arithmetic::{dispatch, in_float32, same_dtype};
use crate::kernels::number::Number;
use crate::kernels::{Failure, elementwise};

pub use crate::kernels::number::{RawElement, Scalar};

/// Fails unless a literal has elements of `T`.
fn expect_elements<T: Scalar>(x: &Literal) -> Result<(), Failure> {
    match x.dtype() == T::DTYPE {
        true => Ok(()),
        false => Err(Failure::Mismatch(format!("elements of {}, but {} are expected", x.dtype(), T::DTYPE))),
    }
}

/// Applies `f` to every element.
///
/// # Errors
/// If `x` does not have elements of `T`, or the result is too large.
pub fn map<T: Scalar, R: Scalar>(x: &Literal, f: impl Fn(T) -> R) -> Result<Literal, KernelError> {
    expect_elements::<T>(x)?;
    Ok(elementwise::map(x, |e: T| f(e).canonical())?)
}

/// Applies `f` to every pair of elements, with broadcasting.
///
/// # Errors
/// If the operands do not have elements of `A` and `B`, or do not broadcast, or the result is too
/// large.
pub fn zip<A: Scalar, B: Scalar, R: Scalar>(
    a: &Literal,
    b: &Literal,
    f: impl Fn(A, B) -> R,
) -> Result<Literal, KernelError> {
    expect_elements::<A>(a)?;
    expect_elements::<B>(b)?;
    Ok(elementwise::zip(a, b, |x: A, y: B| f(x, y).canonical())?)
}

/// Applies a function to every float: `single` to `float32`, and `double` to `float64`. `float16`
/// and `bfloat16` are computed by `single` and rounded once.
///
/// # Errors
/// If the elements are not floating-point numbers, or the result is too large.
pub fn map_float(
    x: &Literal,
    single: impl Fn(f32) -> f32,
    double: impl Fn(f64) -> f64,
) -> Result<Literal, KernelError> {
    let apply = (single, double);
    Ok(in_float32(&[x], &|x| {
        dispatch!(wide float x[0].dtype(), T => {
            elementwise::map(x[0], |e: T| T::narrow(<T as Number>::Calc::apply1(&apply, e.widen())))
        })
    })?)
}

/// Applies a function to every pair of floats of two operands, with broadcasting: `single` to
/// `float32`, and `double` to `float64`. `float16` and `bfloat16` are computed by `single` and
/// rounded once.
///
/// # Errors
/// If the elements are not floating-point numbers of one type, the operands do not broadcast, or
/// the result is too large.
pub fn zip_float(
    a: &Literal,
    b: &Literal,
    single: impl Fn(f32, f32) -> f32,
    double: impl Fn(f64, f64) -> f64,
) -> Result<Literal, KernelError> {
    let apply = (single, double);
    same_dtype(&[a, b])?;
    Ok(in_float32(&[a, b], &|x| {
        dispatch!(wide float x[0].dtype(), T => {
            let f = |x: T, y: T| T::narrow(<T as Number>::Calc::apply2(&apply, x.widen(), y.widen()));
            elementwise::zip(x[0], x[1], f)
        })
    })?)
}

/// Compares every pair of floats of two operands, with broadcasting. Returns a tensor of `bool`.
/// The comparison is `single` or `double`, as for [`zip_float`].
///
/// # Errors
/// If the elements are not floating-point numbers of one type, the operands do not broadcast, or
/// the result is too large.
pub fn compare_float(
    a: &Literal,
    b: &Literal,
    single: impl Fn(f32, f32) -> bool,
    double: impl Fn(f64, f64) -> bool,
) -> Result<Literal, KernelError> {
    let apply = (single, double);
    same_dtype(&[a, b])?;
    Ok(in_float32(&[a, b], &|x| {
        dispatch!(wide float x[0].dtype(), T => {
            elementwise::zip(x[0], x[1], |x: T, y: T| <T as Number>::Calc::holds(&apply, x.widen(), y.widen()))
        })
    })?)
}

/// Selects the one of two functions that computes in this type.
trait Chosen: Sized {
    fn apply1(f: &(impl Fn(f32) -> f32, impl Fn(f64) -> f64), x: Self) -> Self;
    fn apply2(f: &(impl Fn(f32, f32) -> f32, impl Fn(f64, f64) -> f64), x: Self, y: Self) -> Self;
    fn holds(f: &(impl Fn(f32, f32) -> bool, impl Fn(f64, f64) -> bool), x: Self, y: Self) -> bool;
}

macro_rules! chosen {
    ($ty:ty, $field:tt) => {
        impl Chosen for $ty {
            fn apply1(f: &(impl Fn(f32) -> f32, impl Fn(f64) -> f64), x: Self) -> Self {
                f.$field(x)
            }
            fn apply2(f: &(impl Fn(f32, f32) -> f32, impl Fn(f64, f64) -> f64), x: Self, y: Self) -> Self {
                f.$field(x, y)
            }
            fn holds(f: &(impl Fn(f32, f32) -> bool, impl Fn(f64, f64) -> bool), x: Self, y: Self) -> bool {
                f.$field(x, y)
            }
        }
    };
}
chosen!(f32, 0);
chosen!(f64, 1);
