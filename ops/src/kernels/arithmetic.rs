//! The computations of the elementwise operators on an element, and the selection of the loop by
//! element type.

use anfora_ir::{DType, Literal, Shape};

use super::cast::cast;
use super::elementwise::{map, select, zip};
use super::number::{Calc, FloatNumber, Number, Real, Scalar, integer_power};
use super::strides::broadcast_shapes;
use super::view::View;
use super::{Failure, shape_text};

/// Expands to a `match` on a dtype in which `$T` is the Rust type of the dtype, or the stored form
/// of its elements. Other dtypes give an error.
macro_rules! dispatch {
    (@arms $dtype:expr, $T:ident, $body:expr; $($name:ident $ty:ty),*) => {
        match $dtype {
            $(anfora_ir::DType::$name => {
                type $T = $ty;
                $body
            })*
            other => Err($crate::kernels::Failure::ElementType(other)),
        }
    };
    (any $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body;
            Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Float16 half::f16, BFloat16 half::bf16, Float32 f32, Float64 f64)
    };
    (number $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body;
            Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Float16 half::f16, BFloat16 half::bf16, Float32 f32, Float64 f64)
    };
    (integer $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body;
            Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64)
    };
    (float $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body;
            Float16 half::f16, BFloat16 half::bf16, Float32 f32, Float64 f64)
    };
    // Without 16-bit floats, for kernels that `in_float32` calls.
    (wide any $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body;
            Bool bool, Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Float32 f32, Float64 f64)
    };
    (wide number $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body;
            Int8 i8, Int16 i16, Int32 i32, Int64 i64, UInt8 u8, UInt16 u16, UInt32 u32, UInt64 u64,
            Float32 f32, Float64 f64)
    };
    (wide float $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body; Float32 f32, Float64 f64)
    };
    // The types that `in_product_type` computes in.
    (product $dtype:expr, $T:ident => $body:expr) => {
        $crate::kernels::arithmetic::dispatch!(@arms $dtype, $T, $body; Int32 i32, Int64 i64, Float32 f32, Float64 f64)
    };
    // The stored form of elements, for loops that move them.
    (size $dtype:expr, $T:ident => $body:expr) => {
        match $dtype.bits() {
            _ if !$dtype.has_kernels() => Err($crate::kernels::Failure::ElementType($dtype)),
            8 => { type $T = [u8; 1]; $body }
            16 => { type $T = [u8; 2]; $body }
            32 => { type $T = [u8; 4]; $body }
            _ => { type $T = [u8; 8]; $body }
        }
    };
}
pub(crate) use dispatch;

/// Returns the element type of all operands.
///
/// # Errors
/// If there are no operands, or their element types differ.
pub(crate) fn same_dtype(operands: &[&Literal]) -> Result<DType, Failure> {
    let Some(first) = operands.first() else { return Err(Failure::Mismatch("no operand".into())) };
    for other in operands {
        if other.dtype() != first.dtype() {
            let (a, b) = (first.dtype(), other.dtype());
            return Err(Failure::Mismatch(format!("operands of element types {a} and {b}")));
        }
    }
    Ok(first.dtype())
}

/// Returns 16-bit floats in float32, and a tensor of any other type as it is.
fn to_float32(x: &Literal) -> Result<Literal, Failure> {
    match x.dtype() {
        DType::Float16 => map(x, half::f16::widen),
        DType::BFloat16 => map(x, half::bf16::widen),
        _ => Ok(x.clone()),
    }
}

/// Returns a result in float32 rounded to `dtype` if this is a type of 16-bit floats, and any other
/// result as it is.
fn from_float32(result: Literal, dtype: DType) -> Result<Literal, Failure> {
    match (result.dtype(), dtype) {
        (DType::Float32, DType::Float16) => map(&result, half::f16::narrow),
        (DType::Float32, DType::BFloat16) => map(&result, half::bf16::narrow),
        _ => Ok(result),
    }
}

/// Calls a kernel with a few operands of one element type. If they are 16-bit floats, it is called
/// with their values in float32, and a result in float32 is rounded once to their type. So the
/// kernel is compiled for two types of floats instead of four. Results of other types, such as
/// `bool`, are returned as they are. Callers must have checked that the types of the operands
/// agree.
///
/// # Errors
/// Those of the kernel, and if the allocation fails.
pub(crate) fn in_float32(
    operands: &[&Literal],
    kernel: &dyn Fn(&[&Literal]) -> Result<Literal, Failure>,
) -> Result<Literal, Failure> {
    let Some(dtype @ (DType::Float16 | DType::BFloat16)) = operands.first().map(|x| x.dtype()) else {
        return kernel(operands);
    };
    let wide = operands.iter().map(|x| to_float32(x)).collect::<Result<Vec<_>, _>>()?;
    from_float32(kernel(&wide.iter().collect::<Vec<_>>())?, dtype)
}

/// Calls a kernel of sums of products, as [`in_float32`] does. If its operands are integers, it is
/// called with operands of type int32, or int64 for 64 bits: as integers wrap, the lowest bits of
/// the result are the same. So the kernel is compiled for four types instead of twelve. Callers
/// must have checked that the types of the operands agree.
///
/// # Errors
/// Those of the kernel, and if the allocation fails.
pub(crate) fn in_product_type(
    operands: &[&Literal],
    kernel: &dyn Fn(&[&Literal]) -> Result<Literal, Failure>,
) -> Result<Literal, Failure> {
    let Some(dtype) = operands.first().map(|x| x.dtype()).filter(|d| d.is_integer()) else {
        return in_float32(operands, kernel);
    };
    let wide = if dtype.bits() < 64 { DType::Int32 } else { DType::Int64 };
    let operands = operands.iter().map(|x| cast(x, wide)).collect::<Result<Vec<_>, _>>()?;
    cast(&kernel(&operands.iter().collect::<Vec<_>>())?, dtype)
}

/// Elementwise operations on two operands of one element type.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Mod,
    FloorMod,
    Maximum,
    Minimum,
}

/// Applies an operation to every pair of elements, with broadcasting.
pub(crate) fn binary(op: Binary, a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    same_dtype(&[a, b])?;
    in_float32(&[a, b], &|x| wide_binary(op, x[0], x[1]))
}

/// Computes [`binary`] on types other than 16-bit floats.
fn wide_binary(op: Binary, a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    let dtype = a.dtype();
    match op {
        Binary::Maximum => dispatch!(wide any dtype, T => calc::<T>(a, b, Calc::larger)),
        Binary::Minimum => dispatch!(wide any dtype, T => calc::<T>(a, b, Calc::smaller)),
        Binary::Add => dispatch!(wide number dtype, T => calc::<T>(a, b, Calc::add)),
        Binary::Subtract => dispatch!(wide number dtype, T => calc::<T>(a, b, Calc::sub)),
        Binary::Multiply => dispatch!(wide number dtype, T => calc::<T>(a, b, Calc::mul)),
        Binary::Divide => dispatch!(wide number dtype, T => division::<T>(a, b, Calc::div)),
        Binary::FloorDivide => dispatch!(wide number dtype, T => division::<T>(a, b, Calc::floor_div)),
        Binary::Mod => dispatch!(wide number dtype, T => division::<T>(a, b, Calc::rem)),
        Binary::FloorMod => dispatch!(wide number dtype, T => division::<T>(a, b, Calc::floor_rem)),
    }
}

fn calc<T: Number>(a: &Literal, b: &Literal, f: impl Fn(T::Calc, T::Calc) -> T::Calc) -> Result<Literal, Failure> {
    zip(a, b, |x: T, y: T| T::narrow(f(x.widen(), y.widen())))
}

fn division<T: Number>(a: &Literal, b: &Literal, f: impl Fn(T::Calc, T::Calc) -> T::Calc) -> Result<Literal, Failure> {
    if T::DTYPE.is_integer() {
        // Every element of the divisor is used unless the result is empty.
        let divisor = View::<T>::new(b);
        let zero = divisor.raw.iter().any(|&e| T::load(e).widen() == T::Calc::ZERO);
        if zero && !a.shape().contains(&0) {
            return Err(Failure::DivisionByZero);
        }
    }
    calc::<T>(a, b, f)
}

/// Returns the elementwise power, in the element type of `a`. If both operands have one type, the
/// power is computed in it, and exactly for integers. Pairs of different integer types are also
/// computed exactly. Other pairs are computed in float64, and the result is converted.
pub(crate) fn power(a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    let (base, exponent) = (a.dtype(), b.dtype());
    if base == exponent {
        return dispatch!(number base, T => power_with(a, b, |x: T, y: T| x.widen().power(y.widen()).map(T::narrow)));
    }
    if !(exponent.is_integer() || exponent.is_float()) {
        return Err(Failure::ElementType(exponent));
    }
    if base.is_integer() && exponent == DType::UInt64 {
        return dispatch!(integer base, T => power_with(a, b, |x: T, y: u64| integer_power(x, i128::from(y))));
    }
    if base.is_integer() && exponent.is_integer() {
        let b = cast(b, DType::Int64)?;
        return dispatch!(integer base, T => power_with(a, &b, |x: T, y: i64| integer_power(x, i128::from(y))));
    }
    let b = cast(b, DType::Float64)?;
    if base.is_integer() {
        return dispatch!(integer base, T => zip(a, &b, |x: T, y: f64| libm::pow(i128::from(x) as f64, y) as T));
    }
    dispatch!(float base, T => real_power::<T>(a, &b))
}

fn real_power<T: FloatNumber>(a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    zip(a, b, |x: T, y: f64| T::nearest(libm::pow(x.widen().into(), y)))
}

fn power_with<T: Number, U: Scalar>(
    a: &Literal,
    b: &Literal,
    f: impl Fn(T, U) -> Option<T>,
) -> Result<Literal, Failure> {
    let mut failed = false;
    let result = zip(a, b, |x: T, y: U| {
        let power = f(x, y);
        failed |= power.is_none();
        power.unwrap_or(T::narrow(T::Calc::ZERO))
    })?;
    if failed { Err(Failure::DivisionByZero) } else { Ok(result) }
}

/// The elementwise operations on any number of operands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Nary {
    Add,
    Mean,
    Maximum,
    Minimum,
}

/// Combines the elements of any number of operands, in their order, with broadcasting.
pub(crate) fn nary(op: Nary, operands: &[&Literal]) -> Result<Literal, Failure> {
    let dtype = same_dtype(operands)?;
    let has_loop = match op {
        Nary::Mean => dtype.is_float(),
        Nary::Add => dtype != DType::Bool,
        Nary::Maximum | Nary::Minimum => true,
    };
    if !has_loop || !dtype.has_kernels() {
        return Err(Failure::ElementType(dtype));
    }
    // The combination of some operands may have elements even if the result has none.
    let shape = operands.iter().try_fold(Shape::new(), |shape, x| broadcast_shapes(&shape, x.shape()))?;
    if shape.contains(&0) {
        return Ok(Literal::splat_bytes(dtype, &shape, &[]));
    }
    let pairwise = match op {
        Nary::Add | Nary::Mean => Binary::Add,
        Nary::Maximum => Binary::Maximum,
        Nary::Minimum => Binary::Minimum,
    };
    let (&first, rest) = operands.split_first().ok_or(Failure::Empty)?;
    if rest.is_empty() {
        // The maximum of an operand and itself has the canonical NaN for every NaN.
        return binary(Binary::Maximum, first, first);
    }
    // Operands are widened one at a time, since many of them may share their memory.
    let combined =
        rest.iter().try_fold(to_float32(first)?, |combined, x| wide_binary(pairwise, &combined, &to_float32(x)?))?;
    let combined = if op == Nary::Mean { divided(&combined, operands.len() as u128)? } else { combined };
    from_float32(combined, dtype)
}

/// Returns each element divided by a count, rounded to the type of the elements. They are float32
/// or float64.
pub(crate) fn divided(x: &Literal, count: u128) -> Result<Literal, Failure> {
    let count = match x.dtype() {
        DType::Float64 => Literal::scalar(count as f64),
        _ => Literal::scalar(count as f32),
    };
    wide_binary(Binary::Divide, x, &count)
}

/// Clamps each element to the single element of `min` from below and then to that of `max` from
/// above. An absent bound does not apply.
pub(crate) fn clip(x: &Literal, min: Option<&Literal>, max: Option<&Literal>) -> Result<Literal, Failure> {
    fn bound<T: Number>(x: &Literal, bound: Option<&Literal>) -> Result<Option<T::Calc>, Failure> {
        let Some(bound) = bound else { return Ok(None) };
        same_dtype(&[x, bound])?;
        if bound.element_count() != 1 {
            let shape = shape_text(bound.shape());
            return Err(Failure::Mismatch(format!("a bound of shape {shape} is not one number")));
        }
        Ok(Some(View::<T>::new(bound).get(0).widen()))
    }
    dispatch!(number x.dtype(), T => {
        let (low, high) = (bound::<T>(x, min)?, bound::<T>(x, max)?);
        map(x, |e: T| {
            let e = e.widen();
            let e = low.map_or(e, |low| Calc::larger(e, low));
            T::narrow(high.map_or(e, |high| Calc::smaller(e, high)))
        })
    })
}

/// Elementwise comparisons.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Compare {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

/// Compares every pair of elements, with broadcasting. A NaN differs from everything and is neither
/// less nor greater.
pub(crate) fn compare(op: Compare, a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    same_dtype(&[a, b])?;
    in_float32(&[a, b], &|x| wide_compare(op, x[0], x[1]))
}

/// Computes [`compare`] on types other than 16-bit floats.
fn wide_compare(op: Compare, a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    // A comparison with swapped operands uses the same loop. Only the order of the operands in
    // broadcasting changes, which does not affect the result.
    dispatch!(wide any a.dtype(), T => match op {
        Compare::Less => zip(a, b, |x: T, y: T| x.widen() < y.widen()),
        Compare::Greater => zip(b, a, |x: T, y: T| x.widen() < y.widen()),
        Compare::LessEqual => zip(a, b, |x: T, y: T| x.widen() <= y.widen()),
        Compare::GreaterEqual => zip(b, a, |x: T, y: T| x.widen() <= y.widen()),
        Compare::Equal => zip(a, b, |x: T, y: T| x.widen() == y.widen()),
        Compare::NotEqual => zip(a, b, |x: T, y: T| x.widen() != y.widen()),
    })
}

/// Applies `f` to every pair of `bool` elements, with broadcasting.
pub(crate) fn logical(a: &Literal, b: &Literal, f: fn(bool, bool) -> bool) -> Result<Literal, Failure> {
    match same_dtype(&[a, b])? {
        DType::Bool => zip(a, b, f),
        other => Err(Failure::ElementType(other)),
    }
}

/// Returns `!x`, for `bool`.
pub(crate) fn logical_not(x: &Literal) -> Result<Literal, Failure> {
    match x.dtype() {
        DType::Bool => map(x, |e: bool| !e),
        other => Err(Failure::ElementType(other)),
    }
}

/// Elementwise operations on one operand, on integers and floats.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Unary {
    Negative,
    Abs,
    Sign,
    Square,
    Floor,
    Ceil,
    Round,
    Trunc,
    Relu,
}

/// Applies an operation to every element.
pub(crate) fn unary(op: Unary, x: &Literal) -> Result<Literal, Failure> {
    in_float32(&[x], &|x| wide_unary(op, x[0]))
}

/// Computes [`unary`] on types other than 16-bit floats.
fn wide_unary(op: Unary, x: &Literal) -> Result<Literal, Failure> {
    fn each<T: Number>(x: &Literal, f: impl Fn(T::Calc) -> T::Calc) -> Result<Literal, Failure> {
        map(x, |e: T| T::narrow(f(e.widen())))
    }
    dispatch!(wide number x.dtype(), T => match op {
        Unary::Negative => each::<T>(x, Calc::neg),
        Unary::Abs => each::<T>(x, Calc::abs),
        Unary::Sign => each::<T>(x, Calc::sign),
        Unary::Square => each::<T>(x, |e| Calc::mul(e, e)),
        Unary::Floor => each::<T>(x, Calc::floor),
        Unary::Ceil => each::<T>(x, Calc::ceil),
        Unary::Round => each::<T>(x, Calc::round),
        Unary::Trunc => each::<T>(x, Calc::trunc),
        Unary::Relu => each::<T>(x, |e| Calc::larger(e, Calc::ZERO)),
    })
}

/// Elementwise functions on floats.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Function {
    Exp,
    Log,
    Sqrt,
    Rsqrt,
    Reciprocal,
    Tanh,
    Sigmoid,
    Erf,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
}

/// Applies a function to every element. The elements must be floats.
pub(crate) fn function(op: Function, x: &Literal) -> Result<Literal, Failure> {
    in_float32(&[x], &|x| wide_function(op, x[0]))
}

/// Computes [`function`] on types other than 16-bit floats.
pub(crate) fn wide_function(op: Function, x: &Literal) -> Result<Literal, Failure> {
    fn each<T: FloatNumber>(x: &Literal, f: impl Fn(T::Calc) -> T::Calc) -> Result<Literal, Failure> {
        map(x, |e: T| T::narrow(f(e.widen())))
    }
    dispatch!(wide float x.dtype(), T => match op {
        Function::Exp => each::<T>(x, Real::exp),
        Function::Log => each::<T>(x, Real::ln),
        Function::Sqrt => each::<T>(x, Real::sqrt),
        Function::Rsqrt => each::<T>(x, reciprocal_root),
        Function::Reciprocal => each::<T>(x, |e| Calc::div(Calc::ONE, e)),
        Function::Tanh => each::<T>(x, Real::tanh),
        Function::Sigmoid => each::<T>(x, sigmoid),
        Function::Erf => each::<T>(x, Real::error_function),
        Function::Sin => each::<T>(x, Real::sin),
        Function::Cos => each::<T>(x, Real::cos),
        Function::Tan => each::<T>(x, Real::tan),
        Function::Asin => each::<T>(x, Real::asin),
        Function::Acos => each::<T>(x, Real::acos),
        Function::Atan => each::<T>(x, Real::atan),
        Function::Sinh => each::<T>(x, Real::sinh),
        Function::Cosh => each::<T>(x, Real::cosh),
        Function::Asinh => each::<T>(x, Real::asinh),
        Function::Acosh => each::<T>(x, Real::acosh),
        Function::Atanh => each::<T>(x, Real::atanh),
    })
}

// These functions are generic so that a method call resolves to a trait. The methods of the
// standard library differ between machines.

fn reciprocal_root<C: Real>(x: C) -> C {
    C::ONE.div(x.sqrt())
}

/// Returns `1 / (1 + exp(-x))`.
pub(crate) fn sigmoid<C: Real>(x: C) -> C {
    C::ONE.div(C::ONE.add(x.neg().exp()))
}

/// Tests on floats.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Classify {
    Nan,
    /// Infinite, with one of these signs.
    Infinite {
        negative: bool,
        positive: bool,
    },
    Finite,
}

/// Applies a test to every element. The elements must be floats.
pub(crate) fn classify(op: Classify, x: &Literal) -> Result<Literal, Failure> {
    in_float32(&[x], &|x| wide_classify(op, x[0]))
}

/// Computes [`classify`] on types other than 16-bit floats.
fn wide_classify(op: Classify, x: &Literal) -> Result<Literal, Failure> {
    dispatch!(wide float x.dtype(), T => match op {
        Classify::Nan => map(x, |e: T| e.widen().is_nan()),
        Classify::Infinite { negative, positive } => map(x, |e: T| {
            let e = e.widen();
            Real::is_infinite(e) && if e < Calc::ZERO { negative } else { positive }
        }),
        Classify::Finite => map(x, |e: T| Real::is_finite(e.widen())),
    })
}

/// Returns the elements of `x` where `condition` is true, and those of `y` elsewhere.
pub(crate) fn choose(condition: &Literal, x: &Literal, y: &Literal) -> Result<Literal, Failure> {
    if condition.dtype() != DType::Bool {
        return Err(Failure::ElementType(condition.dtype()));
    }
    dispatch!(size same_dtype(&[x, y])?, R => select::<R>(condition, x, y))
}

#[cfg(test)]
mod tests {
    use anfora_ir::Element;
    use half::{bf16, f16};

    use super::*;

    fn f16s(values: &[f32]) -> Vec<f16> {
        values.iter().map(|&v| f16::from_f32(v)).collect()
    }

    fn lit<T: Element>(values: &[T]) -> Literal {
        Literal::from_elements(&[values.len()], values).unwrap()
    }

    #[test]
    fn integers_wrap_and_division_truncates() {
        let b = |op, x: &[i8], y: &[i8]| binary(op, &lit(x), &lit(y));
        assert_eq!(b(Binary::Add, &[127, -128], &[1, -1]).unwrap(), lit(&[-128i8, 127]));
        assert_eq!(b(Binary::Multiply, &[100, 3], &[3, 3]).unwrap(), lit(&[44i8, 9]));
        assert_eq!(b(Binary::Divide, &[-7, -128], &[2, -1]).unwrap(), lit(&[-3i8, -128]));
        assert_eq!(b(Binary::FloorDivide, &[-7, 7], &[2, 2]).unwrap(), lit(&[-4i8, 3]));
        assert_eq!(b(Binary::Mod, &[-7, 7], &[3, -3]).unwrap(), lit(&[-1i8, 1]));
        assert_eq!(b(Binary::FloorMod, &[-7, 7], &[3, -3]).unwrap(), lit(&[2i8, -2]));
        assert_eq!(b(Binary::Divide, &[1, 2], &[1, 0]), Err(Failure::DivisionByZero));
        assert_eq!(power(&lit(&[2i8, 0]), &lit(&[-1i8, -1])), Err(Failure::DivisionByZero));
        let empty = lit::<i8>(&[]);
        assert_eq!(binary(Binary::Divide, &empty, &Literal::scalar(0i8)).unwrap(), empty);
    }

    #[test]
    fn an_arithmetic_nan_is_canonical() {
        let x = lit(&[f32::from_bits(0xffc1_2345), 0.0]);
        let canonical = f32::from_bits(0x7fc0_0000);
        assert_eq!(binary(Binary::Add, &x, &Literal::scalar(1f32)).unwrap(), lit(&[canonical, 1.0]));
        assert_eq!(
            binary(Binary::Divide, &Literal::scalar(-0.0f64), &Literal::scalar(0f64)).unwrap().to_bytes()[..],
            { 0x7ff8_0000_0000_0000u64.to_le_bytes() }
        );
        assert_eq!(unary(Unary::Negative, &x).unwrap(), lit(&[canonical, -0.0]));
        assert_eq!(unary(Unary::Relu, &x).unwrap(), lit(&[canonical, 0.0]));
        assert_eq!(function(Function::Log, &Literal::scalar(-1f32)).unwrap(), Literal::scalar(canonical));
    }

    #[test]
    fn half_floats_round_once_an_op() {
        let a = lit(&f16s(&[2048.0, 60000.0]));
        let b = lit(&f16s(&[1.0, 10000.0]));
        assert_eq!(binary(Binary::Add, &a, &b).unwrap(), lit(&[f16::from_f32(2048.0), f16::INFINITY]));
        let t = Literal::scalar(bf16::from_f32(3.0));
        let one = Literal::scalar(bf16::ONE);
        assert_eq!(binary(Binary::Divide, &one, &t).unwrap(), Literal::scalar(bf16::from_f32(1.0 / 3.0)));
    }

    #[test]
    fn any_number_of_operands_broadcast() {
        let column = Literal::from_elements(&[2, 1], &[1f32, 2.0]).unwrap();
        let row = lit(&[0.25f32, 0.5, 0.75]);
        let one = Literal::splat(&[2, 3], 1f32);
        let sum = Literal::from_elements(&[2, 3], &[2.25f32, 2.5, 2.75, 3.25, 3.5, 3.75]).unwrap();
        assert_eq!(nary(Nary::Add, &[&column, &row, &one]).unwrap(), sum);
        let huge = Literal::splat(&[1 << 40, 1 << 40], 1f32);
        assert_eq!(nary(Nary::Mean, &[&huge, &huge]).unwrap(), huge);
        let none = Literal::from_elements::<f32>(&[0, 3], &[]).unwrap();
        assert_eq!(nary(Nary::Maximum, &[&none, &row]).unwrap(), none);
        // The first two would have 2^42 elements together.
        let values: Vec<f32> = (0..1 << 21).map(|i| i as f32).collect();
        let high = Literal::from_elements(&[1, 1 << 21, 1], &values).unwrap();
        let wide = high.reshaped(&[1, 1, 1 << 21]).unwrap();
        let empty = Literal::splat(&[0, 1, 1], 1f32);
        assert_eq!(nary(Nary::Add, &[&high, &wide, &empty]).unwrap().shape(), &[0, 1 << 21, 1 << 21]);
        assert_eq!(nary(Nary::Add, &[&huge, &row]), Err(Failure::Broadcast { axis: 1, left: 1 << 40, right: 3 }));
        let nan = lit(&[f64::from_bits(0xfff8_0000_0000_0001), 1.0]);
        let same = nary(Nary::Minimum, &[&nan]).unwrap();
        assert_eq!(same.to_bytes(), lit(&[f64::from_bits(0x7ff8_0000_0000_0000), 1.0]).to_bytes());
        assert_eq!(nary(Nary::Mean, &[&lit(&[1i32])]), Err(Failure::ElementType(DType::Int32)));
        assert_eq!(nary(Nary::Add, &[&lit(&[true])]), Err(Failure::ElementType(DType::Bool)));
        assert_eq!(nary(Nary::Maximum, &[&lit(&[true]), &lit(&[false])]).unwrap(), lit(&[true]));
    }

    #[test]
    fn half_floats_round_once_for_all_operands() {
        let operands = [2048.0, 1.0, 1.0].map(|v| Literal::scalar(f16::from_f32(v)));
        let operands: Vec<&Literal> = operands.iter().collect();
        assert_eq!(nary(Nary::Add, &operands).unwrap(), Literal::scalar(f16::from_f32(2050.0)));
        let mean = f16::from_f32(2050.0 / 3.0);
        assert_eq!(nary(Nary::Mean, &operands).unwrap(), Literal::scalar(mean));
        let one = Literal::scalar(f16::from_f32(1.0));
        assert_eq!(nary(Nary::Minimum, &[&one]).unwrap(), one);
        let hot = Literal::scalar(bf16::from_f32(3e38));
        assert_eq!(nary(Nary::Mean, &[&hot, &hot]).unwrap(), Literal::scalar(bf16::INFINITY));
    }

    #[test]
    fn comparisons_broadcast_either_way() {
        let a = lit(&[1f32, f32::NAN, 3.0]);
        let two = Literal::scalar(2f32);
        let c = |op| compare(op, &a, &two).unwrap().elements::<bool>().unwrap().into_owned();
        assert_eq!(c(Compare::Less), [true, false, false]);
        assert_eq!(c(Compare::Greater), [false, false, true]);
        assert_eq!(c(Compare::GreaterEqual), [false, false, true]);
        assert_eq!(c(Compare::NotEqual), [true, true, true]);
        assert_eq!(compare(Compare::Equal, &a, &a).unwrap(), lit(&[true, false, true]));
    }

    #[test]
    fn functions_have_their_known_values() {
        let x = lit(&[-1f64, 0.5, 2.0]);
        let close = |op, expected: [f64; 3]| {
            let got = function(op, &x).unwrap().elements::<f64>().unwrap().into_owned();
            for (g, e) in got.iter().zip(expected) {
                assert!((g - e).abs() < 1e-12 || (g.is_nan() && e.is_nan()), "{op:?}: {g} {e}");
            }
        };
        close(Function::Sigmoid, [0.268_941_421_369_995_1, 0.622_459_331_201_854_6, 0.880_797_077_977_882_3]);
        close(Function::Erf, [-0.842_700_792_949_714_9, 0.520_499_877_813_046_5, 0.995_322_265_018_952_7]);
        close(Function::Rsqrt, [f64::NAN, std::f64::consts::SQRT_2, std::f64::consts::FRAC_1_SQRT_2]);
        close(Function::Reciprocal, [-1.0, 2.0, 0.5]);
    }
}
