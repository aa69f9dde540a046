//! Pooling: a reduction of the taps of each window that are inside of the operand.

use anfora_ir::{DType, Literal, Shape, element_count};

use super::arithmetic::{dispatch, in_float32};
use super::number::{Calc, FloatNumber, Number, Real, Scalar};
use super::strides::row_major;
use super::view::{Output, View};
use super::window::{Axis, Sliding, Taps, Windows};
use super::{Failure, shape_text};

/// The divisor of an average.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Divisor {
    /// The number of taps in the operand.
    Inside,
    /// The number of taps in the operand or its padding.
    Padded,
}

/// Returns the largest element under each window; NaN if an element is NaN, and the lowest value if
/// the window has no element.
pub(crate) fn max_pool(x: &Literal, sliding: Sliding<'_>) -> Result<Literal, Failure> {
    let pool = Pool::new(x, sliding)?;
    in_float32(&[x], &|x| {
        dispatch!(wide number x[0].dtype(), T => {
            let lowest = <T as Number>::Calc::LOWEST;
            pool.run::<T>(
                x[0],
                lowest,
                Calc::larger,
                |element, count| if count == 0 { lowest } else { element },
                |best, _| T::narrow(best),
            )
        })
    })
}

/// Returns the mean of the elements under each window.
pub(crate) fn avg_pool(x: &Literal, sliding: Sliding<'_>, divisor: Divisor) -> Result<Literal, Failure> {
    fn average<T: FloatNumber>(pool: &Pool, x: &Literal, divisor: Divisor) -> Result<Literal, Failure> {
        pool.run::<T>(x, T::Calc::ZERO, Calc::add, Calc::repeat_add, |sum, window| {
            let count = window.count(&pool.windows, divisor == Divisor::Padded);
            T::narrow(sum.div(Calc::from_count(count)))
        })
    }
    let pool = Pool::new(x, sliding)?;
    in_float32(&[x], &|x| dispatch!(wide float x[0].dtype(), T => average::<T>(&pool, x[0], divisor)))
}

/// Returns the `p`-norm of the elements under each window.
pub(crate) fn lp_pool(x: &Literal, sliding: Sliding<'_>, p: i64) -> Result<Literal, Failure> {
    let pool = Pool::new(x, sliding)?;
    in_float32(&[x], &|x| dispatch!(wide float x[0].dtype(), T => norms::<T>(&pool, x[0], p)))
}

/// Returns the `p`-norm over the spatial axes, whose extents become 1.
pub(crate) fn global_lp_pool(x: &Literal, p: i64) -> Result<Literal, Failure> {
    let pool = Pool::global(x)?;
    in_float32(&[x], &|x| dispatch!(wide float x[0].dtype(), T => norms::<T>(&pool, x[0], p)))
}

fn norms<T: FloatNumber>(pool: &Pool, x: &Literal, p: i64) -> Result<Literal, Failure> {
    if p < 1 {
        return Err(Failure::Mismatch(format!("there is no {p}-norm")));
    }
    let exponent = T::Calc::from_f64(p as f64);
    let power = |e: T::Calc| match p {
        1 => e.abs(),
        2 => e.mul(e),
        _ => e.abs().power(exponent).unwrap_or(T::Calc::ZERO),
    };
    let root = |sum: T::Calc| match p {
        1 => sum,
        2 => sum.sqrt(),
        _ => sum.power(T::Calc::ONE.div(exponent)).unwrap_or(T::Calc::ZERO),
    };
    pool.run::<T>(
        x,
        T::Calc::ZERO,
        |sum, e| sum.add(power(e)),
        |e, count| power(e).repeat_add(count),
        |sum, _| T::narrow(root(sum)),
    )
}

/// The numbering of the elements of a channel.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Numbering {
    /// The last axis is the fastest.
    RowMajor,
    /// The first spatial axis is the fastest.
    ColumnMajor,
}

/// Returns the largest element under each window and the number of the first such element in the
/// operand; -1 if the window has no element.
pub(crate) fn max_pool_with_indices(
    x: &Literal,
    sliding: Sliding<'_>,
    numbering: Numbering,
) -> Result<Vec<Literal>, Failure> {
    let pool = Pool::new(x, sliding)?;
    dispatch!(number x.dtype(), T => pool.largest::<T>(x, numbering))
}

/// Writes the elements of `x` at the positions `indices` (row-major positions in the result) of a
/// tensor of zeros. The last of several elements with the same position remains. If `padded` is
/// given, the result is extended with zeros from `shape` to that shape, at the end of each axis.
pub(crate) fn max_unpool(
    x: &Literal,
    indices: &Literal,
    shape: &[usize],
    padded: Option<&[usize]>,
) -> Result<Literal, Failure> {
    fn run<T: Scalar>(x: &Literal, indices: &Literal, shape: &[usize], whole: &[usize]) -> Result<Literal, Failure> {
        let mut out = Output::<T>::new(whole)?;
        let (view, places) = (View::<T>::new(x), View::<i64>::new(indices));
        let limit = element_count(shape).ok_or(Failure::TooLarge)?;
        let (inner, outer) = (row_major(shape), row_major(whole));
        let raw = out.raw();
        // All elements of a splat go to the given positions. If these are a splat too, there is
        // only one position.
        let count = match (view.splat, places.splat) {
            (Some(_), Some(_)) => x.element_count().min(1),
            _ => x.element_count(),
        };
        for i in 0..count {
            let index = places.get(i);
            let place = usize::try_from(index).ok().filter(|&p| p < limit);
            let place = place.ok_or(Failure::Index { index, extent: limit })?;
            let along = |axis: usize| place / inner[axis] as usize % shape[axis] * outer[axis] as usize;
            raw[(0..shape.len()).map(along).sum::<usize>()] = view.get(i).store();
        }
        out.finish()
    }
    if indices.shape() != x.shape() || indices.dtype() != DType::Int64 {
        let (found, wanted) = (shape_text(indices.shape()), shape_text(x.shape()));
        return Err(Failure::Mismatch(format!("indices of shape {found} for elements of shape {wanted}")));
    }
    let whole = padded.unwrap_or(shape);
    if whole.len() != shape.len() || whole.iter().zip(shape).any(|(w, s)| w < s) {
        let (found, least) = (shape_text(whole), shape_text(shape));
        return Err(Failure::Mismatch(format!("a result of shape {found}, but at least {least} is needed")));
    }
    dispatch!(any x.dtype(), T => run::<T>(x, indices, shape, whole))
}

struct Pool {
    windows: Windows,
    /// The number of spatial elements of one channel.
    plane: usize,
    shape: Shape,
}

/// The position of one window in the result.
#[derive(Copy, Clone)]
struct Window([usize; 3]);

impl Window {
    /// Returns the number of its taps that are in the operand or, if `padded`, in the operand or
    /// its padding.
    fn count(self, windows: &Windows, padded: bool) -> u128 {
        windows.axes.iter().zip(self.0).map(|(a, i)| a.taps(i, padded).count as u128).product()
    }
}

impl Pool {
    fn new(x: &Literal, sliding: Sliding<'_>) -> Result<Pool, Failure> {
        let &[n, c, ref input @ ..] = x.shape() else {
            return Err(Failure::Mismatch("the operand has no channels".into()));
        };
        let windows = Windows::new(input, sliding)?;
        let mut shape = Shape::from_slice(&[n, c]);
        shape.extend_from_slice(&windows.output());
        let plane = if x.as_splat().is_some() { 0 } else { windows.product(|a| a.input)? };
        Ok(Pool { windows, plane, shape })
    }

    /// Returns a pool with one window over all spatial elements.
    fn global(x: &Literal) -> Result<Pool, Failure> {
        let &[n, c, ref input @ ..] = x.shape() else {
            return Err(Failure::Mismatch("the operand has no channels".into()));
        };
        let windows = Windows::over_all(input)?;
        let mut shape = Shape::from_slice(&[n, c]);
        shape.extend_from_slice(&windows.output());
        let plane = if x.as_splat().is_some() { 0 } else { windows.product(|a| a.input)? };
        Ok(Pool { windows, plane, shape })
    }

    fn largest<T: Number>(&self, x: &Literal, numbering: Numbering) -> Result<Vec<Literal>, Failure> {
        let (mut best, mut numbers) = (Output::<T>::new(&self.shape)?, Output::<i64>::new(&self.shape)?);
        if self.shape.contains(&0) {
            return Ok(vec![best.finish()?, numbers.finish()?]);
        }
        let view = View::<T>::new(x);
        let [a, b, c] = &self.windows.axes;
        // The numbers may be large if the operand is a splat.
        let size = self.windows.product(|a| a.input)?;
        let steps = match numbering {
            Numbering::RowMajor => [b.input * c.input, c.input, 1],
            Numbering::ColumnMajor => {
                // Missing axes have extent 1 and come first.
                [1, a.input, a.input * b.input]
            }
        };
        // Fill each plane, window by window.
        let planes: usize = self.shape[..2].iter().product();
        planes.checked_mul(size).filter(|&n| i64::try_from(n).is_ok()).ok_or(Failure::TooLarge)?;
        let mut slots = best.raw().iter_mut().zip(numbers.raw());
        for plane in 0..planes {
            let elements = view.raw.get(plane * self.plane..).unwrap_or(&[]);
            for i in 0..a.output {
                let ti = a.taps(i, false);
                for j in 0..b.output {
                    let tj = b.taps(j, false);
                    for k in 0..c.output {
                        let tk = c.taps(k, false);
                        let mut largest: Option<(T::Calc, usize)> = None;
                        // All taps of a splat are equal, so the first is the largest.
                        let counts = [ti.count, tj.count, tk.count];
                        let most = if counts.contains(&0) {
                            0
                        } else if view.splat.is_some() {
                            1
                        } else {
                            usize::MAX
                        };
                        let counts = counts.map(|n| n.min(most));
                        // Find the largest element under the window.
                        for p in 0..counts[0] {
                            for q in 0..counts[1] {
                                for r in 0..counts[2] {
                                    let at = [
                                        ti.position + p * a.dilation,
                                        tj.position + q * b.dilation,
                                        tk.position + r * c.dilation,
                                    ];
                                    let element = match view.splat {
                                        Some(element) => element,
                                        None => T::load(elements[(at[0] * b.input + at[1]) * c.input + at[2]]),
                                    };
                                    let element = element.widen();
                                    let wins = largest
                                        .is_none_or(|(best, _)| !best.is_nan() && (element > best || element.is_nan()));
                                    if wins {
                                        let number = (0..3).map(|d| at[d] * steps[d]).sum::<usize>();
                                        largest = Some((element, plane * size + number));
                                    }
                                }
                            }
                        }
                        let Some((slot, number)) = slots.next() else { continue };
                        *slot = T::narrow(largest.map_or(T::Calc::LOWEST, |l| l.0)).store();
                        *number = largest.map_or(-1, |l| l.1 as i64).store();
                    }
                }
            }
        }
        Ok(vec![best.finish()?, numbers.finish()?])
    }

    /// Folds the elements under each window with `step`. `repeat` folds a number of equal elements,
    /// and `finish` computes an element of the result.
    fn run<T: Number>(
        &self,
        x: &Literal,
        init: T::Calc,
        step: impl Fn(T::Calc, T::Calc) -> T::Calc,
        repeat: impl Fn(T::Calc, u128) -> T::Calc,
        finish: impl Fn(T::Calc, Window) -> T,
    ) -> Result<Literal, Failure> {
        if self.shape.contains(&0) {
            return Output::<T>::new(&self.shape)?.finish();
        }
        let view = View::<T>::new(x);
        if let Some(element) = view.splat
            && self.windows.all_inside()
        {
            let first = Window([0; 3]);
            let folded = repeat(element.widen(), first.count(&self.windows, false));
            return Ok(Literal::splat(&self.shape, finish(folded, first)));
        }
        let [a, b, c] = &self.windows.axes;
        let mut out = Output::<T>::new(&self.shape)?;
        let mut slots = out.raw().iter_mut();
        let planes = self.shape[..2].iter().product();
        for plane in 0..planes {
            let elements = view.raw.get(plane * self.plane..).unwrap_or(&[]);
            for i in 0..a.output {
                let ti = a.taps(i, false);
                for j in 0..b.output {
                    let tj = b.taps(j, false);
                    for k in 0..c.output {
                        let window = Window([i, j, k]);
                        let folded = match view.splat {
                            Some(element) => repeat(element.widen(), window.count(&self.windows, false)),
                            None => fold::<T>(elements, [a, b, c], [ti, tj, c.taps(k, false)], init, &step),
                        };
                        if let Some(slot) = slots.next() {
                            *slot = finish(folded, window).store();
                        }
                    }
                }
            }
        }
        out.finish()
    }
}

/// Folds the elements at the given taps, in ascending order.
fn fold<T: Number>(
    elements: &[T::Raw],
    [a, b, c]: [&Axis; 3],
    [ti, tj, tk]: [Taps; 3],
    init: T::Calc,
    step: impl Fn(T::Calc, T::Calc) -> T::Calc,
) -> T::Calc {
    let mut folded = init;
    if [ti, tj, tk].iter().any(|taps| taps.count == 0) {
        return folded;
    }
    for p in 0..ti.count {
        for q in 0..tj.count {
            let row = (ti.position + p * a.dilation) * b.input + tj.position + q * b.dilation;
            let line = &elements[row * c.input + tk.position..];
            for e in line.iter().step_by(c.dilation).take(tk.count) {
                folded = step(folded, T::load(*e).widen());
            }
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::window::Rounding;

    fn f32s(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    fn counting(shape: &[usize]) -> Literal {
        let n: usize = shape.iter().product();
        f32s(shape, &(0..n).map(|i| i as f32).collect::<Vec<_>>())
    }

    fn sliding<'a>(kernel: &'a [i64], strides: &'a [i64], padding: &'a [i64], rounding: Rounding) -> Sliding<'a> {
        Sliding { kernel, strides, padding, dilation: &[1, 1], rounding }
    }

    #[test]
    fn maxima() {
        let x = counting(&[1, 1, 4, 4]);
        let s = sliding(&[2, 2], &[2, 2], &[0; 4], Rounding::Floor);
        assert_eq!(max_pool(&x, s).unwrap(), f32s(&[1, 1, 2, 2], &[5., 7., 13., 15.]));
        let s = sliding(&[3, 3], &[2, 2], &[1; 4], Rounding::Floor);
        assert_eq!(max_pool(&x, s).unwrap(), f32s(&[1, 1, 2, 2], &[5., 7., 13., 15.]));
        let s = sliding(&[3, 3], &[2, 2], &[0; 4], Rounding::Ceil);
        assert_eq!(max_pool(&x, s).unwrap(), f32s(&[1, 1, 2, 2], &[10., 11., 14., 15.]));
        let s = Sliding { kernel: &[2], strides: &[1], padding: &[0, 0], dilation: &[2], rounding: Rounding::Floor };
        let y = f32s(&[1, 2, 4], &[4., 3., f32::NAN, 1., -1., -2., -3., -4.]);
        let r = max_pool(&y, s).unwrap();
        assert_eq!(r, f32s(&[1, 2, 2], &[f32::from_bits(0x7fc0_0000), 3., -1., -2.]));
        let ints = Literal::from_elements(&[1, 1, 2], &[-3i8, -5]).unwrap();
        let s = Sliding { kernel: &[2], strides: &[1], padding: &[1, 1], dilation: &[1], rounding: Rounding::Floor };
        assert_eq!(max_pool(&ints, s).unwrap(), Literal::from_elements(&[1, 1, 3], &[-3i8, -3, -5]).unwrap());
    }

    #[test]
    fn averages() {
        let x = counting(&[1, 1, 3, 3]);
        let s = sliding(&[2, 2], &[2, 2], &[1, 1, 0, 0], Rounding::Floor);
        assert_eq!(avg_pool(&x, s, Divisor::Inside).unwrap(), f32s(&[1, 1, 2, 2], &[0., 1.5, 4.5, 6.]));
        assert_eq!(avg_pool(&x, s, Divisor::Padded).unwrap(), f32s(&[1, 1, 2, 2], &[0., 0.75, 2.25, 6.]));
        // The part of a window beyond the padding never counts.
        let s = sliding(&[2, 2], &[2, 2], &[0; 4], Rounding::Ceil);
        assert_eq!(avg_pool(&x, s, Divisor::Padded).unwrap(), f32s(&[1, 1, 2, 2], &[2., 3.5, 6.5, 8.]));
    }

    #[test]
    fn norms_of_windows() {
        let x = f32s(&[1, 1, 4], &[3., -4., 0., 2.]);
        let s = Sliding { kernel: &[2], strides: &[1], padding: &[1, 0], dilation: &[1], rounding: Rounding::Floor };
        assert_eq!(lp_pool(&x, s, 1).unwrap(), f32s(&[1, 1, 4], &[3., 7., 4., 2.]));
        assert_eq!(lp_pool(&x, s, 2).unwrap(), f32s(&[1, 1, 4], &[3., 5., 4., 2.]));
        assert_eq!(global_lp_pool(&x, 1).unwrap(), f32s(&[1, 1, 1], &[9.]));
        assert_eq!(lp_pool(&f32s(&[1, 1, 2], &[2., 0.]), s, 3).unwrap(), f32s(&[1, 1, 2], &[2., 2.]));
        assert!(lp_pool(&x, s, 0).is_err());
        let huge = Literal::splat(&[2, 1, 1 << 40, 1 << 20], 0.5f32);
        assert_eq!(global_lp_pool(&huge, 2).unwrap().shape(), &[2, 1, 1, 1]);
    }

    #[test]
    fn where_the_largest_is_and_back() {
        let x = f32s(&[1, 2, 2, 3], &[1., 7., 7., 4., 5., 6., 0., 0., 0., f32::NAN, 9., 0.]);
        let s = sliding(&[2, 2], &[1, 1], &[0, 0, 0, 0], Rounding::Floor);
        let rows = max_pool_with_indices(&x, s, Numbering::RowMajor).unwrap();
        assert_eq!(rows[0], max_pool(&x, s).unwrap());
        assert_eq!(rows[1], Literal::from_elements(&[1, 2, 1, 2], &[1i64, 1, 9, 10]).unwrap());
        let columns = max_pool_with_indices(&x, s, Numbering::ColumnMajor).unwrap();
        assert_eq!(columns[1], Literal::from_elements(&[1, 2, 1, 2], &[2i64, 2, 7, 9]).unwrap());
        let splat = max_pool_with_indices(&Literal::splat(&[1, 1, 2, 3], 1f32), s, Numbering::RowMajor).unwrap();
        assert_eq!(splat[1], Literal::from_elements(&[1, 1, 1, 2], &[0i64, 1]).unwrap());

        let (y, i) = (f32s(&[1, 1, 2], &[5., 6.]), Literal::from_elements(&[1, 1, 2], &[1i64, 2]).unwrap());
        assert_eq!(max_unpool(&y, &i, &[1, 1, 4], None).unwrap(), f32s(&[1, 1, 4], &[0., 5., 6., 0.]));
        let (y, i) = (y.reshaped(&[1, 1, 2, 1]).unwrap(), i.reshaped(&[1, 1, 2, 1]).unwrap());
        let padded = max_unpool(&y, &i, &[1, 1, 2, 2], Some(&[1, 1, 2, 3])).unwrap();
        assert_eq!(padded, f32s(&[1, 1, 2, 3], &[0., 5., 0., 6., 0., 0.]));
        let far = Literal::from_elements(&[1, 1, 2, 1], &[1i64, 4]).unwrap();
        assert_eq!(max_unpool(&y, &far, &[1, 1, 2, 2], None), Err(Failure::Index { index: 4, extent: 4 }));
        assert!(max_unpool(&y, &i, &[1, 1, 2, 2], Some(&[1, 1, 1, 4])).is_err());
    }

    #[test]
    fn a_splat_and_its_expansion_agree() {
        for padding in [[0; 4], [1; 4], [0, 2, 1, 0]] {
            let s = sliding(&[3, 3], &[2, 1], &padding, Rounding::Ceil);
            let splat = Literal::splat(&[1, 2, 5, 6], 0.1f32);
            let mut values = vec![0.1f32; 60];
            values.extend([0.2; 30]);
            // Two channels have the same number and the third another one, so the tensor is stored
            // dense.
            let dense = f32s(&[1, 3, 5, 6], &values);
            let first = |l: Literal| {
                let n = 2 * l.element_count() / 3;
                l.elements::<f32>().unwrap()[..n].to_vec()
            };
            for divisor in [Divisor::Inside, Divisor::Padded] {
                let a = avg_pool(&splat, s, divisor).unwrap();
                assert_eq!(a.elements::<f32>().unwrap(), first(avg_pool(&dense, s, divisor).unwrap()));
            }
            let a = max_pool(&splat, s).unwrap();
            assert_eq!(a.elements::<f32>().unwrap(), first(max_pool(&dense, s).unwrap()));
        }
        let huge = Literal::splat(&[1, 1, 1 << 30, 1 << 30], 1f32);
        let kernel = [1 << 29, 1 << 29];
        let s = sliding(&kernel, &kernel, &[0; 4], Rounding::Floor);
        assert_eq!(max_pool(&huge, s).unwrap(), Literal::splat(&[1, 1, 2, 2], 1f32));
        assert_eq!(avg_pool(&Literal::splat(&[1, 1, 1 << 30, 1 << 30], 1f64), s, Divisor::Inside).unwrap(), {
            Literal::splat(&[1, 1, 2, 2], 1f64 / ((1u64 << 58) as f64) * (1u64 << 53) as f64)
        });
    }
}
