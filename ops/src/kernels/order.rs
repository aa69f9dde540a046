//! Selection by order.

use anfora_ir::{Literal, Shape};

use super::Failure;
use super::arithmetic::dispatch;
use super::number::{Calc, Number, Scalar};
use super::positions::one_integer;
use super::reduction::Extreme;
use super::strides::{Around, resolve_axis};
use super::view::{Output, View};

/// Returns the number in an integer tensor of one element as a count.
pub(crate) fn count_operand(count: &Literal) -> Result<usize, Failure> {
    let count = one_integer(count, "count")?;
    usize::try_from(count).map_err(|_| Failure::Mismatch(format!("the count is {count}, which is negative")))
}

/// Returns the `k` largest or smallest elements along an axis, in that order, and their indices. A
/// NaN is larger than any number, and equal elements keep their order. Keeps the bits of the
/// elements.
pub(crate) fn top(extreme: Extreme, x: &Literal, k: usize, axis: i64) -> Result<[Literal; 2], Failure> {
    let axis = resolve_axis(axis, x.rank())?;
    let extent = x.shape()[axis];
    if k > extent {
        return Err(Failure::Mismatch(format!("{k} of {extent} elements are requested")));
    }
    let mut shape: Shape = x.shape().into();
    shape[axis] = k;
    dispatch!(number x.dtype(), T => top_of::<T>(extreme, x, axis, &shape))
}

fn top_of<T: Number>(extreme: Extreme, x: &Literal, axis: usize, shape: &[usize]) -> Result<[Literal; 2], Failure> {
    let k = shape[axis];
    let mut indices = Output::<i64>::new(shape)?;
    let view = View::<T>::new(x);
    if shape.contains(&0) {
        return Ok([Output::<T>::new(shape)?.finish()?, indices.finish()?]);
    }
    if let Some(element) = view.splat {
        let Around { outer, inner, .. } = Around::new(shape, axis..axis + 1);
        for (at, index) in indices.raw().iter_mut().enumerate().take(outer * k * inner) {
            *index = ((at / inner % k) as i64).store();
        }
        return Ok([Literal::splat(shape, element), indices.finish()?]);
    }
    let mut values = Output::<T>::new(shape)?;
    let Around { outer, extent, inner } = Around::new(x.shape(), axis..axis + 1);
    let (raw_values, raw_indices) = (values.raw(), indices.raw());
    // Each place, after the key of its element.
    let mut places: Vec<(u64, usize)> = Vec::new();
    places.try_reserve_exact(extent).map_err(|_| Failure::TooLarge)?;
    for block in 0..outer {
        for column in 0..inner {
            let at = |place: usize| (block * extent + place) * inner + column;
            places.clear();
            places.extend((0..extent).map(|place| {
                let key = T::load(view.raw[at(place)]).widen().order_key();
                (if extreme == Extreme::Max { !key } else { key }, place)
            }));
            if k < extent {
                places.select_nth_unstable(k - 1);
            }
            places[..k].sort_unstable();
            for (i, &(_, place)) in places[..k].iter().enumerate() {
                let to = (block * k + i) * inner + column;
                raw_values[to] = view.raw[at(place)];
                raw_indices[to] = (place as i64).store();
            }
        }
    }
    Ok([values.finish()?, indices.finish()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    fn i64s(shape: &[usize], values: &[i64]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    #[test]
    fn in_order_along_any_axis() {
        let x = f32s(&[2, 4], &[1., 4., 4., 0., -1., 7., 3., 9.]);
        let [values, indices] = top(Extreme::Max, &x, 3, 1).unwrap();
        assert_eq!((values, indices), (f32s(&[2, 3], &[4., 4., 1., 9., 7., 3.]), i64s(&[2, 3], &[1, 2, 0, 3, 1, 2])));
        let [values, indices] = top(Extreme::Min, &x, 2, -1).unwrap();
        assert_eq!((values, indices), (f32s(&[2, 2], &[0., 1., -1., 3.]), i64s(&[2, 2], &[3, 0, 0, 2])));
        let [values, indices] = top(Extreme::Max, &x, 1, 0).unwrap();
        assert_eq!((values, indices), (f32s(&[1, 4], &[1., 7., 4., 9.]), i64s(&[1, 4], &[0, 1, 0, 1])));
        assert!(top(Extreme::Max, &x, 5, 1).is_err());
        assert_eq!(top(Extreme::Max, &x, 0, 1).unwrap()[0].shape(), &[2, 0]);
    }

    #[test]
    fn nan_is_largest_and_zeros_are_equal() {
        let x = f32s(&[5], &[0., f32::NAN, -0., 2., f32::INFINITY]);
        assert_eq!(top(Extreme::Max, &x, 5, 0).unwrap()[1], i64s(&[5], &[1, 4, 3, 0, 2]));
        assert_eq!(top(Extreme::Min, &x, 5, 0).unwrap()[1], i64s(&[5], &[0, 2, 3, 4, 1]));
        let big = Literal::from_elements(&[3], &[u64::MAX, 0, u64::MAX - 1]).unwrap();
        assert_eq!(top(Extreme::Max, &big, 2, 0).unwrap()[1], i64s(&[2], &[0, 2]));
    }

    #[test]
    fn of_equal_elements_the_first() {
        let x = Literal::splat(&[2, 1 << 40, 2], 3i8);
        let [values, indices] = top(Extreme::Max, &x, 2, 1).unwrap();
        assert_eq!(values, Literal::splat(&[2, 2, 2], 3i8));
        assert_eq!(indices, i64s(&[2, 2, 2], &[0, 0, 1, 1, 0, 0, 1, 1]));
        assert_eq!(count_operand(&i64s(&[1], &[3])), Ok(3));
        assert!(count_operand(&i64s(&[1], &[-3])).is_err() && count_operand(&i64s(&[2], &[3, 3])).is_err());
    }
}
