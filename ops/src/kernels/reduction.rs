//! Reductions over axes. Every result takes its elements in ascending row-major order.

use anfora_ir::dtype::DType;
use anfora_ir::literal::{Literal, Shape, element_count};
use smallvec::SmallVec;

use super::KernelError;
use super::arithmetic::dispatch;
use super::number::{Calc, Number, Scalar};
use super::strides::{Strides, Walk, resolve_axes, resolve_axis, row_major};
use super::view::{Output, View, filled};

/// Which axes are reduced, and whether they stay as extents of 1.
pub(crate) struct Axes {
    reduced: SmallVec<[bool; 6]>,
    keepdims: bool,
}

impl Axes {
    /// The named axes; all of them for `None`.
    ///
    /// # Errors
    /// If one is out of range or named twice.
    pub(crate) fn new(axes: Option<&[i64]>, rank: usize, keepdims: bool) -> Result<Axes, KernelError> {
        let reduced = match axes {
            None => smallvec::smallvec![true; rank],
            Some(axes) => resolve_axes(axes, rank)?,
        };
        Ok(Axes { reduced, keepdims })
    }

    /// All axes from `first` on.
    pub(crate) fn from(first: usize, rank: usize) -> Axes {
        Axes { reduced: (0..rank).map(|a| a >= first).collect(), keepdims: true }
    }

    fn result_shape(&self, shape: &[usize]) -> Shape {
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

    /// How many elements go into one of the result.
    fn count(&self, shape: &[usize]) -> Result<u128, KernelError> {
        let extents = shape.iter().zip(&self.reduced).filter(|&(_, &r)| r).map(|(&e, _)| e as u128);
        if extents.clone().any(|e| e == 0) {
            return Ok(0);
        }
        extents.into_iter().try_fold(1u128, u128::checked_mul).ok_or(KernelError::TooLong)
    }
}

/// One reduction: where it starts, how it takes an element, what `count` equal elements come to, and the result.
struct Fold<T, A, Step, Repeat, Finish> {
    init: A,
    step: Step,
    /// From `init`; `None` if it takes too long.
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

    fn run<R: Scalar>(&self, x: &Literal, axes: &Axes) -> Result<Literal, KernelError>
    where
        Finish: Fn(A) -> R,
    {
        let shape = axes.result_shape(x.shape());
        let view = View::<T>::new(x);
        if axes.count(x.shape())? == 0 {
            return Ok(Literal::splat(&shape, (self.finish)(self.init)));
        }
        if let Some(element) = view.splat {
            let folded = (self.repeat)(element, axes.count(x.shape())?).ok_or(KernelError::TooLong)?;
            return Ok(Literal::splat(&shape, (self.finish)(folded)));
        }
        let mut folded = filled(element_count(&shape).ok_or(KernelError::TooLarge)?, self.init)?;
        // The strides of the result with the reduced axes standing still.
        let kept: Shape =
            x.shape().iter().zip(&axes.reduced).map(|(&e, &reduced)| if reduced { 1 } else { e }).collect();
        let mut strides: Strides = row_major(&kept);
        for (stride, &reduced) in strides.iter_mut().zip(&axes.reduced) {
            if reduced {
                *stride = 0;
            }
        }
        let walk = Walk::new(x.shape(), [&strides]);
        let [advance] = walk.run_strides();
        let mut done = 0;
        walk.for_each([0], |[at], len| {
            let run = &view.raw[done..done + len];
            done += len;
            if advance == 0 {
                let start = folded[at];
                folded[at] = run.iter().fold(start, |acc, &e| (self.step)(acc, T::load(e)));
            } else {
                for (acc, &e) in folded[at..].iter_mut().zip(run) {
                    *acc = (self.step)(*acc, T::load(e));
                }
            }
        });
        let mut out = Output::<R>::new(&shape)?;
        for (o, acc) in out.raw().iter_mut().zip(folded) {
            *o = (self.finish)(acc).store();
        }
        out.finish()
    }
}

/// The reductions to one value of the element type.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reduce {
    Sum,
    Mean,
    Prod,
    Max,
    Min,
}

/// Reduces.
pub(crate) fn reduce(op: Reduce, x: &Literal, axes: &Axes) -> Result<Literal, KernelError> {
    match op {
        Reduce::Sum => dispatch!(number x.dtype(), T => sum::<T>(x, axes, |acc| acc)),
        Reduce::Mean => {
            let count = axes.count(x.shape())?;
            if count == 0 && x.dtype().is_integer() && !axes.result_shape(x.shape()).contains(&0) {
                return Err(KernelError::Empty);
            }
            dispatch!(number x.dtype(), T => mean::<T>(x, axes, count))
        }
        Reduce::Prod => dispatch!(number x.dtype(), T => prod::<T>(x, axes)),
        Reduce::Max => dispatch!(any x.dtype(), T => extreme::<T>(x, axes, lowest::<T>(), Calc::maximum)),
        Reduce::Min => dispatch!(any x.dtype(), T => extreme::<T>(x, axes, highest::<T>(), Calc::minimum)),
    }
}

fn sum<T: Number>(
    x: &Literal,
    axes: &Axes,
    finish: impl Fn(T::Calc) -> T::Calc,
) -> Result<Literal, KernelError> {
    Fold::new(
        T::Calc::ZERO,
        |acc: T::Calc, e: T| acc.add(e.widen()),
        |e: T, n| Some(e.widen().repeat_add(n)),
        |acc| T::narrow(finish(acc)),
    )
    .run::<T>(x, axes)
}

fn mean<T: Number>(x: &Literal, axes: &Axes, count: u128) -> Result<Literal, KernelError> {
    if T::DTYPE.is_integer() && T::Calc::from_count(count).is_zero() {
        // The count does not fit in the element type: the sum is divided in int64.
        return wide_mean::<T>(x, axes, count);
    }
    sum::<T>(x, axes, |acc| acc.div(T::Calc::from_count(count)))
}

fn prod<T: Number>(x: &Literal, axes: &Axes) -> Result<Literal, KernelError> {
    Fold::new(
        T::Calc::ONE,
        |acc: T::Calc, e: T| acc.mul(e.widen()),
        |e: T, n| e.widen().repeat_mul(n),
        T::narrow,
    )
    .run::<T>(x, axes)
}

fn extreme<T: Number>(
    x: &Literal,
    axes: &Axes,
    init: T::Calc,
    f: impl Fn(T::Calc, T::Calc) -> T::Calc,
) -> Result<Literal, KernelError> {
    Fold::new(init, |acc: T::Calc, e: T| f(acc, e.widen()), |e: T, _| Some(f(init, e.widen())), T::narrow)
        .run::<T>(x, axes)
}
