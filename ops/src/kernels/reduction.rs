//! Reductions over axes. Every result combines its elements in ascending row-major order.

use std::ops::Range;

use anfora_ir::{Literal, Shape, element_count};
use smallvec::SmallVec;

use super::Failure;
use super::arithmetic::{Function, dispatch, divided, in_float32, wide_function};
use super::number::{Calc, FloatNumber, Number, Real, Scalar};
use super::positions::integer_list;
use super::strides::{Strides, Walk, resolve_axes, resolve_axis, row_major};
use super::view::{dense, elements, filled};

/// Returns the axes that a rank-1 integer tensor lists.
pub(crate) fn axes_operand(axes: &Literal) -> Result<Vec<i64>, Failure> {
    integer_list(axes, "list of axes")
}

/// The reduced axes. If `keepdims` is true, they stay in the result as extents of 1.
pub(crate) struct Axes {
    reduced: SmallVec<[bool; 6]>,
    keepdims: bool,
}

impl Axes {
    /// Returns the named axes, or all axes for `None`.
    ///
    /// # Errors
    /// If one is out of range or named twice.
    pub(crate) fn new(axes: Option<&[i64]>, rank: usize, keepdims: bool) -> Result<Axes, Failure> {
        let reduced = match axes {
            None => smallvec::smallvec![true; rank],
            Some(axes) => resolve_axes(axes, rank)?,
        };
        Ok(Axes { reduced, keepdims })
    }

    /// Returns all axes from `first` on.
    pub(crate) fn from(first: usize, rank: usize) -> Axes {
        Axes { reduced: (0..rank).map(|a| a >= first).collect(), keepdims: true }
    }

    /// Returns the strides of the result as a tensor of the operand's shape. The strides of reduced
    /// axes are 0.
    pub(crate) fn strides(&self, shape: &[usize]) -> Strides {
        let kept: Shape = shape.iter().zip(&self.reduced).map(|(&e, &reduced)| if reduced { 1 } else { e }).collect();
        let mut strides: Strides = row_major(&kept);
        for (stride, &reduced) in strides.iter_mut().zip(&self.reduced) {
            if reduced {
                *stride = 0;
            }
        }
        strides
    }

    pub(crate) fn result_shape(&self, shape: &[usize]) -> Shape {
        let mut result = Shape::new();
        for (&extent, &reduced) in shape.iter().zip(&self.reduced) {
            match (reduced, self.keepdims) {
                (false, _) => result.push(extent),
                (true, true) => result.push(1),
                (true, false) => {}
            }
        }
        result
    }

    /// Returns the number of elements of the result.
    ///
    /// # Errors
    /// If it overflows.
    pub(crate) fn result_count(&self, shape: &[usize]) -> Result<usize, Failure> {
        element_count(&self.result_shape(shape)).ok_or(Failure::TooLarge)
    }

    /// Returns the number of elements that are reduced to one element of the result.
    pub(crate) fn count(&self, shape: &[usize]) -> Result<u128, Failure> {
        let extents = shape.iter().zip(&self.reduced).filter(|&(_, &r)| r).map(|(&e, _)| e as u128);
        if extents.clone().any(|e| e == 0) {
            return Ok(0);
        }
        extents.into_iter().try_fold(1u128, u128::checked_mul).ok_or(Failure::TooLong)
    }
}

/// Combines each element of `x` with the value of its element of the result, in ascending order.
/// `x` must not be a splat.
pub(crate) fn accumulate<T: Scalar, A: Copy>(x: &Literal, axes: &Axes, folded: &mut [A], step: impl Fn(A, T) -> A) {
    debug_assert_eq!(x.dtype(), T::DTYPE);
    let raw = elements::<T::Raw>(x);
    for_each_run(x.shape(), axes, &mut |run, at, reduced| {
        let run = &raw[run];
        if reduced {
            let start = folded[at];
            folded[at] = run.iter().fold(start, |acc, &e| step(acc, T::load(e)));
        } else {
            for (acc, &e) in folded[at..].iter_mut().zip(run) {
                *acc = step(*acc, T::load(e));
            }
        }
    });
}

/// Visits the elements of a tensor in runs, in ascending order. The arguments of `visit` are the
/// positions of a run, the position in the result of its first element, and whether all elements of
/// the run belong to this position. Otherwise they belong to successive positions.
fn for_each_run(shape: &[usize], axes: &Axes, visit: &mut dyn FnMut(Range<usize>, usize, bool)) {
    let strides = axes.strides(shape);
    let walk = Walk::new(shape, [&strides]);
    let [advance] = walk.run_strides();
    let mut done = 0;
    walk.for_each([0], |[at], len| {
        visit(done..done + len, at, advance == 0);
        done += len;
    });
}

/// One reduction: the initial value, the step that combines an element, the value of `count` equal
/// elements, and the computation of the result.
struct Fold<T, A, Step, Repeat, Finish> {
    init: A,
    step: Step,
    /// Starts from `init`. Returns `None` if it takes too long.
    repeat: Repeat,
    finish: Finish,
    element: std::marker::PhantomData<T>,
}

impl<T, A, Step, Repeat, Finish> Fold<T, A, Step, Repeat, Finish>
where
    T: Scalar,
    A: Copy,
    Step: Fn(A, T) -> A,
    Repeat: Fn(T, u128) -> Option<A>,
{
    fn new(init: A, step: Step, repeat: Repeat, finish: Finish) -> Self {
        Fold { init, step, repeat, finish, element: std::marker::PhantomData }
    }

    fn run<R: Scalar>(&self, x: &Literal, axes: &Axes) -> Result<Literal, Failure>
    where
        Finish: Fn(A) -> R,
    {
        let count = axes.count(x.shape())?;
        let uniform = match x.as_splat() {
            _ if count == 0 => self.init,
            Some(_) => (self.repeat)(T::load(elements::<T::Raw>(x)[0]), count).ok_or(Failure::TooLong)?,
            None => return self.run_from(filled(axes.result_count(x.shape())?, self.init)?, x, axes),
        };
        Ok(Literal::splat(&axes.result_shape(x.shape()), (self.finish)(uniform)))
    }

    /// Runs with separate initial values for the elements of the result. `x` must not be a splat.
    fn run_from<R: Scalar>(&self, mut folded: Vec<A>, x: &Literal, axes: &Axes) -> Result<Literal, Failure>
    where
        Finish: Fn(A) -> R,
    {
        accumulate(x, axes, &mut folded, &self.step);
        dense::<R::Raw>(R::DTYPE, &axes.result_shape(x.shape()), &mut |out| {
            for (o, &acc) in out.iter_mut().zip(&folded) {
                *o = (self.finish)(acc).store();
            }
        })
    }
}

/// The reductions that compute a value of the element type.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reduce {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
    SumSquare,
    L1Norm,
    L2Norm,
    LogSum,
    LogSumExp,
}

/// Reduces a tensor along axes.
pub(crate) fn reduce(op: Reduce, x: &Literal, axes: &Axes) -> Result<Literal, Failure> {
    if matches!(op, Reduce::L2Norm | Reduce::LogSum) && !x.dtype().is_float() {
        return Err(Failure::ElementType(x.dtype()));
    }
    in_float32(&[x], &|x| {
        let x = x[0];
        let result = wide_reduce(op, x, axes)?;
        match op {
            Reduce::Mean if x.dtype().is_float() => divided(&result, axes.count(x.shape())?),
            Reduce::L2Norm => wide_function(Function::Sqrt, &result),
            Reduce::LogSum => wide_function(Function::Log, &result),
            _ => Ok(result),
        }
    })
}

/// Reduces a tensor along axes, without the last step of `Mean` of floats, `L2Norm` and `LogSum`.
/// The elements are not 16-bit floats.
fn wide_reduce(op: Reduce, x: &Literal, axes: &Axes) -> Result<Literal, Failure> {
    let dtype = x.dtype();
    match op {
        Reduce::Mean if dtype.is_integer() => integer_mean(x, axes),
        Reduce::Mean | Reduce::LogSum | Reduce::Sum => dispatch!(wide number dtype, T => sum::<T>(x, axes, |e| e)),
        Reduce::L2Norm | Reduce::SumSquare => dispatch!(wide number dtype, T => sum::<T>(x, axes, |e| e.mul(e))),
        Reduce::L1Norm => dispatch!(wide number dtype, T => sum::<T>(x, axes, Calc::abs)),
        Reduce::Prod => dispatch!(wide number dtype, T => prod::<T>(x, axes)),
        Reduce::Max => dispatch!(wide any dtype, T => extreme::<T>(x, axes, Calc::LOWEST, Calc::larger)),
        Reduce::Min => dispatch!(wide any dtype, T => extreme::<T>(x, axes, Calc::HIGHEST, Calc::smaller)),
        Reduce::LogSumExp => dispatch!(wide float dtype, T => log_sum_exp::<T>(x, axes)),
    }
}

/// Sums `term` of the elements.
fn sum<T: Number>(x: &Literal, axes: &Axes, term: impl Fn(T::Calc) -> T::Calc) -> Result<Literal, Failure> {
    Fold::new(
        T::Calc::ZERO,
        |acc: T::Calc, e: T| acc.add(term(e.widen())),
        |e: T, count| Some(term(e.widen()).repeat_add(count)),
        T::narrow,
    )
    .run::<T>(x, axes)
}

/// Returns `m + log(Σ exp(x - m))`, where `m` is the largest element if it is finite, and 0
/// otherwise. No exponential overflows, and infinities give the logarithm of the sum.
fn log_sum_exp<T: FloatNumber>(x: &Literal, axes: &Axes) -> Result<Literal, Failure> {
    let finite = |largest: T::Calc| if largest.is_infinite() { T::Calc::ZERO } else { largest };
    let fold = Fold::new(
        (T::Calc::ZERO, T::Calc::ZERO),
        |(largest, sum): (T::Calc, T::Calc), e: T| (largest, sum.add(e.widen().sub(largest).exp())),
        |e: T, count| {
            let largest = finite(e.widen());
            Some((largest, e.widen().sub(largest).exp().repeat_add(count)))
        },
        |(largest, sum): (T::Calc, T::Calc)| T::narrow(sum.ln().add(largest)),
    );
    if x.as_splat().is_some() || axes.count(x.shape())? == 0 {
        return fold.run::<T>(x, axes);
    }
    let mut starts = filled(axes.result_count(x.shape())?, (T::Calc::LOWEST, T::Calc::ZERO))?;
    accumulate(x, axes, &mut starts, |(largest, sum), e: T| (largest.larger(e.widen()), sum));
    for (largest, _) in &mut starts {
        *largest = finite(*largest);
    }
    fold.run_from::<T>(starts, x, axes)
}

/// Returns the exact sum, divided by the count and truncated toward zero.
fn integer_mean(x: &Literal, axes: &Axes) -> Result<Literal, Failure> {
    let count = i128::try_from(axes.count(x.shape())?).map_err(|_| Failure::TooLong)?;
    if count == 0 && !axes.result_shape(x.shape()).contains(&0) {
        return Err(Failure::Empty);
    }
    dispatch!(integer x.dtype(), T => {
        Fold::new(
            0i128,
            |acc: i128, e: T| acc.wrapping_add(i128::from(e)),
            |e: T, _| i128::from(e).checked_mul(count),
            |acc: i128| (acc / count.max(1)) as T,
        )
        .run::<T>(x, axes)
    })
}

fn prod<T: Number>(x: &Literal, axes: &Axes) -> Result<Literal, Failure> {
    Fold::new(
        T::Calc::ONE,
        |acc: T::Calc, e: T| acc.mul(e.widen()),
        |e: T, count| e.widen().repeat_mul(count),
        T::narrow,
    )
    .run::<T>(x, axes)
}

fn extreme<T: Number>(
    x: &Literal,
    axes: &Axes,
    init: T::Calc,
    f: impl Fn(T::Calc, T::Calc) -> T::Calc,
) -> Result<Literal, Failure> {
    Fold::new(init, |acc: T::Calc, e: T| f(acc, e.widen()), |e: T, _| Some(f(init, e.widen())), T::narrow)
        .run::<T>(x, axes)
}

/// The position of the selected element among several equal largest (or smallest) elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Tie {
    First,
    Last,
}

/// The kind of extreme element: the largest or the smallest.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extreme {
    Max,
    Min,
}

/// Returns the index of the largest or smallest element along an axis or, without an axis, among
/// all elements in row-major order. A NaN is both largest and smallest. Zeros of either sign are
/// equal.
pub(crate) fn arg_extreme(
    extreme: Extreme,
    tie: Tie,
    x: &Literal,
    axis: Option<i64>,
    keepdims: bool,
) -> Result<Literal, Failure> {
    let axes = match axis {
        None => Axes::new(None, x.rank(), keepdims)?,
        Some(axis) => {
            resolve_axis(axis, x.rank())?;
            Axes::new(Some(&[axis]), x.rank(), keepdims)?
        }
    };
    let count = axes.count(x.shape())?;
    if count == 0 && !axes.result_shape(x.shape()).contains(&0) {
        return Err(Failure::Empty);
    }
    in_float32(&[x], &|x| dispatch!(wide number x[0].dtype(), T => arg::<T>(extreme, tie, x[0], &axes)))
}

fn arg<T: Number>(extreme: Extreme, tie: Tie, x: &Literal, axes: &Axes) -> Result<Literal, Failure> {
    #[derive(Copy, Clone)]
    struct Best<C> {
        value: C,
        index: i64,
        /// The number of elements processed so far.
        seen: i64,
    }
    let better = |new: T::Calc, best: T::Calc| match tie {
        _ if new.is_nan() => tie == Tie::Last || !best.is_nan(),
        Tie::First if extreme == Extreme::Max => new > best,
        Tie::First => new < best,
        Tie::Last if extreme == Extreme::Max => new >= best,
        Tie::Last => new <= best,
    };
    Fold::new(
        Best { value: T::Calc::ZERO, index: 0, seen: 0 },
        |best: Best<T::Calc>, e: T| {
            let (value, seen) = (e.widen(), best.seen + 1);
            if best.seen == 0 || better(value, best.value) {
                Best { value, index: best.seen, seen }
            } else {
                Best { seen, ..best }
            }
        },
        |e: T, count| {
            let index = if tie == Tie::First { 0 } else { i64::try_from(count - 1).ok()? };
            Some(Best { value: e.widen(), index, seen: 0 })
        },
        |best: Best<T::Calc>| best.index,
    )
    .run::<i64>(x, axes)
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn f32s(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    fn over(op: Reduce, x: &Literal, axes: &[i64]) -> Literal {
        reduce(op, x, &Axes::new(Some(axes), x.rank(), false).unwrap()).unwrap()
    }

    #[test]
    fn every_set_of_axes() {
        let x = Literal::from_elements(&[2, 3, 4], &(0..24).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        assert_eq!(
            over(Reduce::Sum, &x, &[0]),
            f32s(&[3, 4], &[12., 14., 16., 18., 20., 22., 24., 26., 28., 30., 32., 34.])
        );
        assert_eq!(over(Reduce::Sum, &x, &[1]), f32s(&[2, 4], &[12., 15., 18., 21., 48., 51., 54., 57.]));
        assert_eq!(over(Reduce::Sum, &x, &[-1]), f32s(&[2, 3], &[6., 22., 38., 54., 70., 86.]));
        assert_eq!(over(Reduce::Max, &x, &[0, 2]), f32s(&[3], &[15., 19., 23.]));
        assert_eq!(over(Reduce::Mean, &x, &[0, 1, 2]), Literal::scalar(11.5f32));
        assert_eq!(over(Reduce::Min, &x, &[]), x);
        let kept = reduce(Reduce::Prod, &x, &Axes::new(Some(&[1]), 3, true).unwrap()).unwrap();
        assert_eq!(kept.shape(), &[2, 1, 4]);
        assert_eq!(kept.elements::<f32>().unwrap()[1], 45.0);
        assert!(matches!(Axes::new(Some(&[0, -3]), 3, false), Err(Failure::AxisTwice { axis: -3 })));
        assert!(matches!(Axes::new(Some(&[3]), 3, false), Err(Failure::Axis { axis: 3, rank: 3 })));
    }

    #[test]
    fn a_splat_is_reduced_without_writing_it_out() {
        let huge = Literal::splat(&[1 << 30, 1 << 30], 1f32);
        assert_eq!(over(Reduce::Sum, &huge, &[1]), Literal::splat(&[1 << 30], 16_777_216f32));
        assert_eq!(over(Reduce::Sum, &Literal::splat(&[1 << 30, 1 << 30], 3i32), &[0, 1]), Literal::scalar(0i32));
        assert_eq!(over(Reduce::Mean, &Literal::splat(&[1 << 30, 1 << 30], 3i8), &[0, 1]), Literal::scalar(3i8));
        assert_eq!(over(Reduce::Max, &huge, &[0]), Literal::splat(&[1 << 30], 1f32));
        let r = arg_extreme(Extreme::Max, Tie::Last, &huge, Some(0), false).unwrap();
        assert_eq!(r, Literal::splat(&[1 << 30], (1i64 << 30) - 1));
        let beyond = Literal::splat(&[usize::MAX, usize::MAX, usize::MAX], 1f32);
        assert_eq!(reduce(Reduce::Sum, &beyond, &Axes::new(None, 3, false).unwrap()), Err(Failure::TooLong));
        let dense = f32s(&[1000], &[0.1; 1000]);
        let parts = f32s(&[2, 1000], &[[0.1; 1000], [0.2; 1000]].concat());
        let sums = over(Reduce::Sum, &parts, &[1]).elements::<f32>().unwrap().into_owned();
        assert_eq!(over(Reduce::Sum, &dense, &[0]), Literal::scalar(sums[0]));
    }

    #[test]
    fn of_nothing() {
        let none = f32s(&[0, 2], &[]);
        assert_eq!(over(Reduce::Sum, &none, &[0]), Literal::splat(&[2], 0f32));
        assert_eq!(over(Reduce::Max, &none, &[0]), Literal::splat(&[2], f32::NEG_INFINITY));
        assert_eq!(over(Reduce::Mean, &none, &[0]), Literal::splat(&[2], f32::from_bits(0x7fc0_0000)));
        assert_eq!(over(Reduce::Sum, &none, &[1]), f32s(&[0], &[]));
        assert_eq!(arg_extreme(Extreme::Max, Tie::First, &none, Some(0), false), Err(Failure::Empty));
        assert_eq!(
            over(Reduce::Sum, &Literal::from_elements::<f32>(&[0, 1 << 50], &[]).unwrap(), &[0]).shape(),
            &[1 << 50]
        );
    }

    #[test]
    fn means_of_integers_are_exact_and_truncate() {
        let x = Literal::from_elements(&[2, 200], &[[127i8; 200], [-128i8; 200]].concat()).unwrap();
        assert_eq!(over(Reduce::Mean, &x, &[1]), Literal::from_elements(&[2], &[127i8, -128]).unwrap());
        let y = Literal::from_elements(&[2], &[-3i8, -4]).unwrap();
        assert_eq!(over(Reduce::Mean, &y, &[0]), Literal::scalar(-3i8));
    }

    #[test]
    fn half_sums_are_rounded_once() {
        let x = Literal::from_elements(&[3], &[2048.0, 1.0, 1.0].map(f16::from_f32)).unwrap();
        assert_eq!(over(Reduce::Sum, &x, &[0]), Literal::scalar(f16::from_f32(2050.0)));
    }

    #[test]
    fn indices_of_extremes() {
        let x = f32s(&[2, 4], &[1., 3., 3., 0., f32::NAN, 9., f32::NAN, -1.]);
        let arg = |e, t, axis| arg_extreme(e, t, &x, axis, false).unwrap().elements::<i64>().unwrap().into_owned();
        assert_eq!(arg(Extreme::Max, Tie::First, Some(1)), [1, 0]);
        assert_eq!(arg(Extreme::Max, Tie::Last, Some(-1)), [2, 2]);
        assert_eq!(arg(Extreme::Min, Tie::First, Some(1)), [3, 0]);
        assert_eq!(arg(Extreme::Min, Tie::First, Some(0)), [1, 0, 1, 1]);
        assert_eq!(arg(Extreme::Max, Tie::First, None), [4]);
    }
}
