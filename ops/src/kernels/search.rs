//! Operators that search for elements. The sizes of their results depend on the values of the
//! operands.

use anfora_ir::{Literal, Shape, element_count};

use super::arithmetic::dispatch;
use super::gather::take;
use super::index::{reshape, uniform};
use super::number::{Calc, Number, Scalar};
use super::strides::{Around, resolve_axis};
use super::view::View;
use super::{Failure, shape_text};

/// Returns true if an element is not zero. A NaN is not zero.
fn is_nonzero<T: Number>(raw: T::Raw) -> bool {
    T::load(raw).widen() != T::Calc::ZERO
}

/// Returns the number of elements that are not zero. `None` if the number overflows or the element
/// type has no kernels.
pub(crate) fn nonzero_count(x: &Literal) -> Option<usize> {
    let count = element_count(x.shape());
    let counted: Result<Option<usize>, Failure> = dispatch!(any x.dtype(), T => Ok({
        let view = View::<T>::new(x);
        match view.splat {
            Some(e) if is_nonzero::<T>(e.store()) => count,
            Some(_) => Some(0),
            None => Some(view.raw.iter().filter(|&&e| is_nonzero::<T>(e)).count()),
        }
    }));
    counted.ok().flatten()
}

/// Returns the indices of the elements that are not zero, in row-major order. The result has a row
/// for each axis and a column for each element.
pub(crate) fn nonzero(x: &Literal) -> Result<Literal, Failure> {
    let count = nonzero_count(x).ok_or(Failure::TooLarge)?;
    let rank = x.rank();
    let mut indices = super::view::filled(rank.checked_mul(count).ok_or(Failure::TooLarge)?, 0i64)?;
    if !indices.is_empty() {
        dispatch!(any x.dtype(), T => write_indices::<T>(x, count, &mut indices))?;
    }
    Literal::from_elements(&[rank, count], &indices).map_err(|_| Failure::TooLarge)
}

/// Writes the indices of the `count` elements that are not zero, with a row for each axis.
fn write_indices<T: Number>(x: &Literal, count: usize, indices: &mut [i64]) -> Result<(), Failure> {
    let view = View::<T>::new(x);
    let mut index: Shape = smallvec::smallvec![0; x.rank()];
    let mut found = 0;
    for position in 0..element_count(x.shape()).ok_or(Failure::TooLarge)? {
        if is_nonzero::<T>(view.get(position).store()) {
            for (axis, &i) in index.iter().enumerate() {
                indices[axis * count + found] = i as i64;
            }
            found += 1;
        }
        for (i, &extent) in index.iter_mut().zip(x.shape()).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Ok(())
}

/// Returns the tensor to slice and its axis. Without an axis, the tensor is flattened.
fn sliced(x: &Literal, axis: Option<i64>) -> Result<(Literal, usize), Failure> {
    match axis {
        Some(axis) => Ok((x.clone(), resolve_axis(axis, x.rank())?)),
        None => Ok((reshape(x, &[element_count(x.shape()).ok_or(Failure::TooLarge)?])?, 0)),
    }
}

/// Returns the slices of an axis at which a condition is true, or, without an axis, the elements.
/// Slices beyond the end of the condition are omitted.
pub(crate) fn compress(x: &Literal, condition: &Literal, axis: Option<i64>) -> Result<Literal, Failure> {
    if condition.rank() != 1 {
        return Err(Failure::Mismatch("the condition does not have rank 1".into()));
    }
    if condition.dtype() != anfora_ir::DType::Bool {
        return Err(Failure::ElementType(condition.dtype()));
    }
    let (flat, axis) = sliced(x, axis)?;
    let count = nonzero_count(condition).ok_or(Failure::TooLarge)?;
    let extent = flat.shape()[axis];
    let mut shape: Shape = flat.shape().into();
    shape[axis] = count;
    let view = View::<bool>::new(condition);
    let last = match view.splat {
        Some(true) => condition.shape()[0].checked_sub(1),
        Some(false) => None,
        None => view.raw.iter().rposition(|e| e[0] != 0),
    };
    if let Some(index) = last.filter(|&l| l >= extent) {
        return Err(Failure::Index { index: i64::try_from(index).unwrap_or(i64::MAX), extent });
    }
    if let Some(result) = uniform(&flat, &shape) {
        return Ok(result);
    }
    let places: Vec<i64> = (0..condition.shape()[0]).filter(|&i| view.get(i)).map(|i| i as i64).collect();
    let places = Literal::from_elements(&[count], &places).map_err(|_| Failure::TooLarge)?;
    take(&flat, &places, axis as i64)
}

/// The results of `unique`.
pub(crate) struct Unique {
    /// The distinct values: slices of the axis, or elements.
    pub(crate) values: Literal,
    /// The position of the first occurrence of each value.
    pub(crate) first: Literal,
    /// For each slice of the operand, the index of its value.
    pub(crate) inverse: Literal,
    /// The number of occurrences of each value.
    pub(crate) counts: Literal,
}

/// The order of the values in the result of `unique`.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// Ascending; NaN comes last.
    Sorted,
    /// The order of their first occurrences in the operand.
    Found,
}

/// Returns the keys by which the elements are ordered, in row-major order. `x` must not be a splat.
fn order_keys<T: Number>(x: &Literal) -> Vec<u64> {
    View::<T>::new(x).raw.iter().map(|&e| T::load(e).widen().order_key()).collect()
}

/// Returns the slices of an axis in ascending order, and the positions in that order at which the
/// groups of equal slices begin. `keys` are the order keys of the elements of the shape, which must
/// have elements.
fn grouped(keys: &[u64], shape: &[usize], axis: usize) -> (Vec<usize>, Vec<usize>) {
    let Around { outer, extent, inner } = Around::new(shape, axis..axis + 1);
    let slice = |i: usize| (0..outer).flat_map(move |o| &keys[(o * extent + i) * inner..][..inner]);
    let ordering = |&a: &usize, &b: &usize| slice(a).cmp(slice(b));
    let mut order_of: Vec<usize> = (0..extent).collect();
    // The sort is stable, so the first slice of a group is the first in the operand.
    order_of.sort_by(ordering);
    let begins = |&i: &usize| i == 0 || ordering(&order_of[i - 1], &order_of[i]).is_ne();
    let starts = (0..extent).filter(begins).collect();
    (order_of, starts)
}

/// Returns the distinct slices of an axis, or, without an axis, the distinct elements.
pub(crate) fn unique(x: &Literal, axis: Option<i64>, order: Order) -> Result<Unique, Failure> {
    let (flat, axis) = sliced(x, axis)?;
    let shape = flat.shape();
    let extent = shape[axis];
    let is_empty_slice = shape.iter().enumerate().any(|(a, &e)| a != axis && e == 0);
    let list = |values: &[i64]| Literal::from_elements(&[values.len()], values).map_err(|_| Failure::TooLarge);
    // All slices are equal.
    if extent == 0 || is_empty_slice || flat.as_splat().is_some() {
        if !x.dtype().has_kernels() {
            return Err(Failure::ElementType(x.dtype()));
        }
        let count = extent.min(1);
        let mut one: Shape = shape.into();
        one[axis] = count;
        let values = uniform(&flat, &one).ok_or_else(|| Failure::Mismatch(shape_text(&one)))?;
        let repeated = i64::try_from(extent).map_err(|_| Failure::TooLarge)?;
        let (first, counts) = (list(&[0][..count])?, list(&[repeated][..count])?);
        return Ok(Unique { values, first, inverse: Literal::splat(&[extent], 0i64), counts });
    }
    let keys = dispatch!(any flat.dtype(), T => Ok(order_keys::<T>(&flat)))?;
    let (order_of, starts) = grouped(&keys, shape, axis);
    let ends = starts.iter().skip(1).copied().chain([extent]);
    let mut groups: Vec<std::ops::Range<usize>> = starts.iter().zip(ends).map(|(&s, e)| s..e).collect();
    if order == Order::Found {
        groups.sort_by_key(|g| order_of[g.start]);
    }
    let mut inverse = vec![0i64; extent];
    for (number, group) in groups.iter().enumerate() {
        for &slice in &order_of[group.clone()] {
            inverse[slice] = number as i64;
        }
    }
    let first: Vec<i64> = groups.iter().map(|g| order_of[g.start] as i64).collect();
    let counts: Vec<i64> = groups.iter().map(|g| g.len() as i64).collect();
    let first = list(&first)?;
    Ok(Unique { values: take(&flat, &first, axis as i64)?, first, inverse: list(&inverse)?, counts: list(&counts)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(l: &Literal) -> Vec<i64> {
        l.to_i64s().unwrap()
    }

    #[test]
    fn indices_of_what_is_not_zero() {
        let x = Literal::from_elements(&[2, 3], &[0f32, f32::NAN, -0.0, 2.0, 0.0, -1.0]).unwrap();
        let n = nonzero(&x).unwrap();
        assert_eq!((n.shape(), ints(&n)), (&[2, 3][..], vec![0, 1, 1, 1, 0, 2]));
        assert_eq!(nonzero(&Literal::scalar(3u8)).unwrap().shape(), &[0, 1]);
        assert_eq!(nonzero(&Literal::splat(&[1 << 40, 2], false)).unwrap().shape(), &[2, 0]);
        assert_eq!(nonzero(&Literal::splat(&[0, 2], true)).unwrap().shape(), &[2, 0]);
        assert_eq!(nonzero(&Literal::splat(&[1 << 40, 1 << 40], true)), Err(Failure::TooLarge));
    }

    #[test]
    fn what_a_condition_chooses() {
        let x = Literal::from_elements(&[3, 2], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let c = |values: &[bool]| Literal::from_elements(&[values.len()], values).unwrap();
        let rows = compress(&x, &c(&[false, true, true]), Some(0)).unwrap();
        assert_eq!((rows.shape(), ints(&rows)), (&[2, 2][..], vec![3, 4, 5, 6]));
        assert_eq!(ints(&compress(&x, &c(&[false, true]), Some(-1)).unwrap()), [2, 4, 6]);
        assert_eq!(ints(&compress(&x, &c(&[false, true, false, false, true]), None).unwrap()), [2, 5]);
        assert_eq!(ints(&compress(&x, &c(&[true, false, false]), Some(1)).unwrap()), [1, 3, 5]);
        assert!(compress(&x, &c(&[true, false, true]), Some(1)).is_err(), "there is no third column");
        assert_eq!(compress(&x, &c(&[]), Some(0)).unwrap().shape(), &[0, 2]);
        let huge = Literal::splat(&[1 << 40], 1i8);
        assert_eq!(compress(&huge, &Literal::splat(&[1 << 40], true), None).unwrap(), huge);
    }

    #[test]
    fn each_value_once() {
        let x = Literal::from_elements(&[6], &[2f32, 1.0, f32::NAN, 1.0, f32::NAN, -0.0]).unwrap();
        let u = unique(&x, None, Order::Sorted).unwrap();
        assert_eq!(u.values.shape(), &[4]);
        assert_eq!(u.values.elements::<f32>().unwrap()[..3], [0.0, 1.0, 2.0]);
        assert_eq!((ints(&u.first), ints(&u.counts)), (vec![5, 1, 0, 2], vec![1, 2, 1, 2]));
        assert_eq!(ints(&u.inverse), [2, 1, 3, 1, 3, 0]);
        let u = unique(&x, None, Order::Found).unwrap();
        assert_eq!((ints(&u.first), ints(&u.inverse)), (vec![0, 1, 2, 5], vec![0, 1, 2, 1, 2, 3]));
        let columns = Literal::from_elements(&[2, 3], &[1i8, 0, 1, 2, 9, 2]).unwrap();
        let u = unique(&columns, Some(1), Order::Sorted).unwrap();
        assert_eq!((u.values.shape(), ints(&u.values)), (&[2, 2][..], vec![0, 1, 9, 2]));
        assert_eq!(ints(&u.inverse), [1, 0, 1]);
        let u = unique(&Literal::splat(&[1 << 40, 3], 7u8), Some(0), Order::Sorted).unwrap();
        assert_eq!((u.values, ints(&u.counts)), (Literal::splat(&[1, 3], 7u8), vec![1 << 40]));
        let u = unique(&Literal::splat(&[0, 3], 7u8), Some(0), Order::Sorted).unwrap();
        assert_eq!((u.values.shape(), u.counts.shape(), u.inverse.shape()), (&[0, 3][..], &[0][..], &[0][..]));
    }
}
