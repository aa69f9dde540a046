//! Tensors that are created from a few numbers.

use anfora_ir::{DType, Literal, Shape, element_count};

use super::Failure;
use super::arithmetic::{dispatch, same_dtype};
use super::number::{Calc, FloatNumber, Number, Scalar};
use super::positions::integer_list;
use super::view::Output;

/// Returns the numbers in a rank-1 integer tensor that represents a shape.
pub(crate) fn shape_operand(shape: &Literal) -> Result<Vec<i64>, Failure> {
    integer_list(shape, "shape")
}

/// Returns integers as a rank-1 tensor.
pub(crate) fn integers(numbers: &[i64]) -> Result<Literal, Failure> {
    Literal::from_elements(&[numbers.len()], numbers).map_err(|e| Failure::Mismatch(e.to_string()))
}

/// Converts extents, none of which may be negative.
pub(crate) fn extents(shape: &[i64]) -> Result<Shape, Failure> {
    shape
        .iter()
        .map(|&e| usize::try_from(e).map_err(|_| Failure::Mismatch(format!("extent {e} is negative"))))
        .collect()
}

/// Returns a tensor in which every element is the one element of `value`.
pub(crate) fn full(shape: &[usize], value: &Literal) -> Result<Literal, Failure> {
    match value.as_splat() {
        Some(element) if value.element_count() == 1 => Ok(Literal::splat_bytes(value.dtype(), shape, element)),
        _ => Err(Failure::Mismatch("the value does not have one element".into())),
    }
}

/// Returns a tensor in which every element is `value`, converted to `dtype`.
pub(crate) fn constant(shape: &[usize], dtype: DType, value: u8) -> Result<Literal, Failure> {
    let one = Literal::scalar(value);
    full(shape, &super::cast::cast(&one, dtype)?)
}

/// Returns the number of elements of `arange`.
pub(crate) fn arange_count(start: &Literal, end: &Literal, step: &Literal) -> Result<usize, Failure> {
    let dtype = same_dtype(&[start, end, step])?;
    if [start, end, step].iter().any(|l| l.rank() != 0) {
        return Err(Failure::Mismatch("the operands have rank 0".into()));
    }
    if dtype.is_integer() {
        let [start, end, step] = dispatch!(integer dtype, T => {
            let wide = |l: &Literal| l.as_scalar::<T>().map(i128::from).ok_or(Failure::ElementType(dtype));
            Ok([wide(start)?, wide(end)?, wide(step)?])
        })?;
        if step == 0 {
            return Err(Failure::DivisionByZero);
        }
        let distance = if step > 0 { end - start } else { start - end };
        let count = if distance <= 0 { 0 } else { distance.unsigned_abs().div_ceil(step.unsigned_abs()) };
        return usize::try_from(count).map_err(|_| Failure::TooLarge);
    }
    fn wide<T: FloatNumber>(l: &Literal) -> Result<f64, Failure> {
        l.as_scalar::<T>().map(|e| e.widen().into()).ok_or(Failure::ElementType(l.dtype()))
    }
    let [start, end, step] = dispatch!(float dtype, T => Ok([wide::<T>(start)?, wide::<T>(end)?, wide::<T>(step)?]))?;
    if step == 0.0 {
        return Err(Failure::DivisionByZero);
    }
    let count = ((end - start) / step).ceil();
    if count <= 0.0 {
        return Ok(0);
    }
    // The condition is false for NaN too.
    if count < 9e15 { Ok(count as usize) } else { Err(Failure::TooLarge) }
}

/// Returns the numbers `start + i * step` that come before `end`.
pub(crate) fn arange(start: &Literal, end: &Literal, step: &Literal) -> Result<Literal, Failure> {
    let count = arange_count(start, end, step)?;
    dispatch!(number start.dtype(), T => {
        let scalar = |l: &Literal| l.as_scalar::<T>().map(T::widen).ok_or(Failure::ElementType(l.dtype()));
        let (start, step) = (scalar(start)?, scalar(step)?);
        let mut out = Output::<T>::new(&[count])?;
        for (i, o) in out.raw().iter_mut().enumerate() {
            *o = T::narrow(Calc::add(start, Calc::mul(Calc::from_count(i as u128), step))).store();
        }
        out.finish()
    })
}

/// Returns the extents as a rank-1 tensor.
pub(crate) fn shape_of(shape: &[usize]) -> Result<Literal, Failure> {
    let extents: Vec<i64> =
        shape.iter().map(|&e| i64::try_from(e)).collect::<Result<_, _>>().map_err(|_| Failure::TooLarge)?;
    Literal::from_elements(&[extents.len()], &extents).map_err(|_| Failure::TooLarge)
}

/// Returns the number of elements of a shape as a rank-0 tensor.
pub(crate) fn size(shape: &[usize]) -> Result<Literal, Failure> {
    let count = element_count(shape).and_then(|n| i64::try_from(n).ok());
    count.map(Literal::scalar).ok_or(Failure::TooLarge)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn ranges() {
        let r = |a: i32, b: i32, c: i32| arange(&Literal::scalar(a), &Literal::scalar(b), &Literal::scalar(c));
        assert_eq!(r(2, 9, 3).unwrap(), Literal::from_elements(&[3], &[2i32, 5, 8]).unwrap());
        assert_eq!(r(2, -3, -2).unwrap(), Literal::from_elements(&[3], &[2i32, 0, -2]).unwrap());
        assert_eq!(r(2, 2, 1).unwrap().shape(), &[0]);
        assert_eq!(r(0, 5, 0), Err(Failure::DivisionByZero));
        let f = arange(&Literal::scalar(0f32), &Literal::scalar(1f32), &Literal::scalar(0.3f32)).unwrap();
        assert_eq!(f, Literal::from_elements(&[4], &[0f32, 0.3, 0.6, 3.0 * 0.3f32]).unwrap());
        let huge = arange(&Literal::scalar(0i64), &Literal::scalar(i64::MAX), &Literal::scalar(1i64));
        assert_eq!(huge, Err(Failure::TooLarge));
        let nan = Literal::scalar(f64::NAN);
        assert_eq!(arange(&nan, &nan, &nan), Err(Failure::TooLarge));
        let h = |v| Literal::scalar(f16::from_f32(v));
        assert_eq!(arange(&h(0.0), &h(1.0), &h(0.5)).unwrap().shape(), &[2]);
    }

    #[test]
    fn constants() {
        assert_eq!(constant(&[2], DType::BFloat16, 1).unwrap(), Literal::splat(&[2], half::bf16::ONE));
        assert_eq!(constant(&[0], DType::Bool, 1).unwrap(), Literal::from_elements::<bool>(&[0], &[]).unwrap());
        assert!(constant(&[2], DType::String, 0).is_err());
        assert!(full(&[2], &Literal::from_elements(&[2], &[1i8, 2]).unwrap()).is_err());
        assert_eq!(full(&[3], &Literal::splat(&[1, 1], 7u8)).unwrap(), Literal::splat(&[3], 7u8));
        assert_eq!(shape_of(&[3, 1 << 40]).unwrap().to_i64s(), Some(vec![3, 1 << 40]));
        assert!(shape_operand(&Literal::splat(&[1 << 40], 1i64)).is_err());
        assert!(extents(&[1, -1]).is_err());
    }
}
