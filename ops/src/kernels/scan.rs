//! Scans: every element of the result combines the elements up to its position along an axis.

use anfora_ir::{Literal, Shape};

use super::Failure;
use super::arithmetic::dispatch;
use super::number::{Calc, Number};
use super::strides::{Around, resolve_axis};
use super::view::{Output, View, filled};

/// The operation of a scan.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Scan {
    Sum,
    Product,
}

/// The end of the axis from which a scan starts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// Selects whether an element of the result includes the element at its own position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Own {
    Included,
    Excluded,
}

/// Scans along an axis. Without an axis, scans all elements in row-major order and returns a rank-1
/// tensor.
pub(crate) fn scan(
    op: Scan,
    x: &Literal,
    axis: Option<i64>,
    direction: Direction,
    own: Own,
) -> Result<Literal, Failure> {
    let flat;
    let (x, axis) = match axis {
        Some(axis) => (x, resolve_axis(axis, x.rank())?),
        None => {
            flat = x.reshaped(&[x.element_count()]).map_err(|_| Failure::TooLarge)?;
            (&flat, 0)
        }
    };
    dispatch!(number x.dtype(), T => match op {
        Scan::Sum => run::<T>(x, axis, direction, own, Calc::ZERO, Calc::add),
        Scan::Product => run::<T>(x, axis, direction, own, Calc::ONE, Calc::mul),
    })
}

fn run<T: Number>(
    x: &Literal,
    axis: usize,
    direction: Direction,
    own: Own,
    init: T::Calc,
    step: impl Fn(T::Calc, T::Calc) -> T::Calc,
) -> Result<Literal, Failure> {
    let mut out = Output::<T>::new(x.shape())?;
    let shape: Shape = x.shape().into();
    if shape.contains(&0) {
        return out.finish();
    }
    let Around { outer, extent, inner } = Around::new(&shape, axis..axis + 1);
    let view = View::<T>::new(x);
    let raw = out.raw();
    let mut so_far = filled(inner, init)?;
    for block in 0..outer {
        so_far.fill(init);
        for i in 0..extent {
            let place = if direction == Direction::Forward { i } else { extent - 1 - i };
            let start = (block * extent + place) * inner;
            for (k, acc) in so_far.iter_mut().enumerate() {
                let next = step(*acc, view.get(start + k).widen());
                raw[start + k] = T::narrow(if own == Own::Included { next } else { *acc }).store();
                *acc = next;
            }
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    #[test]
    fn both_ways_along_any_axis() {
        let x = Literal::from_elements(&[2, 3], &[1i32, 2, 3, 4, 5, 6]).unwrap();
        let of = |op, axis, direction, own| {
            scan(op, &x, axis, direction, own).unwrap().elements::<i32>().unwrap().into_owned()
        };
        assert_eq!(of(Scan::Sum, Some(1), Direction::Forward, Own::Included), [1, 3, 6, 4, 9, 15]);
        assert_eq!(of(Scan::Sum, Some(-1), Direction::Forward, Own::Excluded), [0, 1, 3, 0, 4, 9]);
        assert_eq!(of(Scan::Sum, Some(1), Direction::Backward, Own::Included), [6, 5, 3, 15, 11, 6]);
        assert_eq!(of(Scan::Sum, Some(0), Direction::Backward, Own::Excluded), [4, 5, 6, 0, 0, 0]);
        assert_eq!(of(Scan::Product, Some(-2), Direction::Forward, Own::Included), [1, 2, 3, 4, 10, 18]);
        assert_eq!(of(Scan::Product, Some(1), Direction::Backward, Own::Excluded), [6, 3, 1, 30, 6, 1]);
        assert_eq!(of(Scan::Sum, None, Direction::Forward, Own::Included), [1, 3, 6, 10, 15, 21]);
        assert_eq!(scan(Scan::Sum, &x, None, Direction::Forward, Own::Included).unwrap().shape(), &[6]);
        assert!(scan(Scan::Sum, &x, Some(2), Direction::Forward, Own::Included).is_err());
        assert!(scan(Scan::Sum, &Literal::scalar(1i32), Some(0), Direction::Forward, Own::Included).is_err());
    }

    #[test]
    fn integers_wrap_and_halves_do_not_lose_what_they_add() {
        let x = Literal::from_elements(&[3], &[100i8, 100, 100]).unwrap();
        let sums = scan(Scan::Sum, &x, Some(0), Direction::Forward, Own::Included).unwrap();
        assert_eq!(sums.elements::<i8>().unwrap()[..], [100, -56, 44]);
        let x = Literal::from_elements(&[3], &[2048.0, 1.0, 1.0].map(f16::from_f32)).unwrap();
        let sums = scan(Scan::Sum, &x, Some(0), Direction::Forward, Own::Included).unwrap();
        assert_eq!(sums.elements::<f16>().unwrap()[2], f16::from_f32(2050.0));
        let none = Literal::from_elements::<f32>(&[0, 1 << 40], &[]).unwrap();
        assert_eq!(scan(Scan::Sum, &none, Some(1), Direction::Backward, Own::Excluded).unwrap(), none);
    }
}
