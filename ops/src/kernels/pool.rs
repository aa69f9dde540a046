//! Pooling: a reduction of the taps of a window that lie in the operand.

use anfora_ir::{Literal, Shape};

use super::Failure;
use super::arithmetic::dispatch;
use super::number::{Calc, FloatNumber, Number};
use super::view::{Output, View};
use super::window::{Axis, Sliding, Taps, Windows};

/// What an average divides by.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Divisor {
    /// The taps in the operand.
    Inside,
    /// Those in its padding too.
    Padded,
}

/// The largest element under each window; NaN if one is, the lowest value if the window has no element.
pub(crate) fn max_pool(x: &Literal, sliding: Sliding<'_>) -> Result<Literal, Failure> {
    let pool = Pool::new(x, sliding)?;
    dispatch!(number x.dtype(), T => {
        let lowest = <T as Number>::Calc::LOWEST;
        pool.run::<T>(
            x,
            lowest,
            Calc::larger,
            |element, count| if count == 0 { lowest } else { element },
            |best, _| T::narrow(best),
        )
    })
}

/// The mean of the elements under each window.
pub(crate) fn avg_pool(x: &Literal, sliding: Sliding<'_>, divisor: Divisor) -> Result<Literal, Failure> {
    fn average<T: FloatNumber>(pool: &Pool, x: &Literal, divisor: Divisor) -> Result<Literal, Failure> {
        pool.run::<T>(x, T::Calc::ZERO, Calc::add, Calc::repeat_add, |sum, window| {
            let count = window.count(&pool.windows, divisor == Divisor::Padded);
            T::narrow(sum.div(Calc::from_count(count)))
        })
    }
    let pool = Pool::new(x, sliding)?;
    dispatch!(float x.dtype(), T => average::<T>(&pool, x, divisor))
}

struct Pool {
    windows: Windows,
    /// Spatial elements of one channel.
    plane: usize,
    shape: Shape,
}

/// The place of one window in the result.
#[derive(Copy, Clone)]
struct Window([usize; 3]);

impl Window {
    /// How many of its taps are in the operand, or in the operand or its padding.
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

    /// Folds the elements under each window with `step`; `repeat` folds that many equal ones.
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
    fn a_splat_and_its_expansion_agree() {
        for padding in [[0; 4], [1; 4], [0, 2, 1, 0]] {
            let s = sliding(&[3, 3], &[2, 1], &padding, Rounding::Ceil);
            let splat = Literal::splat(&[1, 2, 5, 6], 0.1f32);
            let mut values = vec![0.1f32; 60];
            values.extend([0.2; 30]);
            // Two channels of one number, the third of another, so that it is stored dense.
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
