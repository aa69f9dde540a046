//! Normalisations that scale each element by a function of its neighbours along some axes.

use std::ops::Range;

use anfora_ir::Literal;

use super::arithmetic::{dispatch, in_float32, same_dtype};
use super::number::{Calc, FloatNumber, Number, Real};
use super::strides::{Around, resolve_axis};
use super::view::{Output, View, filled};
use super::{Failure, shape_text};

/// Returns the elements of a parameter, one for each channel, in the calculation type.
fn channels<T: Number>(x: &Literal, extent: usize) -> Result<Vec<T::Calc>, Failure> {
    let view = View::<T>::new(x);
    match view.splat {
        Some(e) => filled(extent, e.widen()),
        None => Ok(view.raw.iter().map(|&e| T::load(e).widen()).collect()),
    }
}

/// The operands of a batch normalisation besides `x`. Each has an element for each channel.
pub(crate) struct Statistics<'a> {
    pub(crate) scale: &'a Literal,
    pub(crate) bias: &'a Literal,
    pub(crate) mean: &'a Literal,
    pub(crate) var: &'a Literal,
}

/// Returns `(x - mean) * (scale / sqrt(var + epsilon)) + bias`, by channel along `axis`.
pub(crate) fn batch_norm(
    x: &Literal,
    statistics: &Statistics<'_>,
    axis: i64,
    epsilon: f64,
) -> Result<Literal, Failure> {
    let parameters = [statistics.scale, statistics.bias, statistics.mean, statistics.var];
    let operands = [&[x][..], &parameters].concat();
    same_dtype(&operands)?;
    let axis = resolve_axis(axis, x.rank())?;
    for p in parameters {
        if p.shape() != [x.shape()[axis]] {
            let extent = x.shape()[axis];
            return Err(Failure::Mismatch(format!(
                "a parameter of shape {} for {extent} channels",
                shape_text(p.shape())
            )));
        }
    }
    in_float32(&operands, &|of| {
        let [x, parameters @ ..] = <[&Literal; 5]>::try_from(of).map_err(|_| Failure::Empty)?;
        dispatch!(wide float x.dtype(), T => batch_norm_of::<T>(x, parameters, axis, epsilon))
    })
}

fn batch_norm_of<T: FloatNumber>(
    x: &Literal,
    parameters: [&Literal; 4],
    axis: usize,
    epsilon: f64,
) -> Result<Literal, Failure> {
    let epsilon = T::Calc::from_f64(epsilon);
    let each = |x: T, scale: T::Calc, bias: T::Calc, mean: T::Calc, var: T::Calc| {
        let factor = scale.div(var.add(epsilon).sqrt());
        T::narrow(x.widen().sub(mean).mul(factor).add(bias))
    };
    let view = View::<T>::new(x);
    let splats = parameters.map(|p| View::<T>::new(p).splat.map(T::widen));
    if let (Some(x_), [Some(scale), Some(bias), Some(mean), Some(var)]) = (view.splat, splats) {
        return Ok(Literal::splat(x.shape(), each(x_, scale, bias, mean, var)));
    }
    let mut out = Output::<T>::new(x.shape())?;
    if x.shape().contains(&0) {
        return out.finish();
    }
    let Around { outer, extent, inner } = Around::new(x.shape(), axis..axis + 1);
    let [scale, bias, mean, var] = [
        channels::<T>(parameters[0], extent)?,
        channels::<T>(parameters[1], extent)?,
        channels::<T>(parameters[2], extent)?,
        channels::<T>(parameters[3], extent)?,
    ];
    let factor: Vec<T::Calc> = scale.iter().zip(&var).map(|(&s, &v)| s.div(v.add(epsilon).sqrt())).collect();
    let mut runs = out.raw().chunks_exact_mut(inner).enumerate();
    for _ in 0..outer {
        for channel in 0..extent {
            let Some((run, slots)) = runs.next() else { break };
            let (mean, factor, bias) = (mean[channel], factor[channel], bias[channel]);
            let finish = |e: T| T::narrow(e.widen().sub(mean).mul(factor).add(bias)).store();
            match view.splat {
                Some(e) => slots.fill(finish(e)),
                None => {
                    for (o, &e) in slots.iter_mut().zip(&view.raw[run * inner..]) {
                        *o = finish(T::load(e));
                    }
                }
            }
        }
    }
    out.finish()
}

/// The form of a softmax: the exponentials or their logarithms.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Softmax {
    Plain,
    Log,
}

/// Returns `exp(x - m) / Σ exp(x - m)`, or `x - m - log(Σ …)`, along consecutive axes that are
/// treated as one. `m` is the largest element along them.
pub(crate) fn softmax(kind: Softmax, x: &Literal, axes: Range<usize>) -> Result<Literal, Failure> {
    in_float32(&[x], &|x| dispatch!(wide float x[0].dtype(), T => softmax_of::<T>(kind, x[0], axes.clone())))
}

fn softmax_of<T: FloatNumber>(kind: Softmax, x: &Literal, axes: Range<usize>) -> Result<Literal, Failure> {
    let view = View::<T>::new(x);
    if let Some(e) = view.splat {
        let e = e.widen();
        let shifted = e.sub(e);
        let count = x.shape()[axes].iter().try_fold(1u128, |n, &e| n.checked_mul(e as u128));
        let sum = shifted.exp().repeat_add(count.ok_or(Failure::TooLong)?);
        let result = match kind {
            Softmax::Plain => shifted.exp().div(sum),
            Softmax::Log => shifted.sub(sum.ln()),
        };
        return Ok(Literal::splat(x.shape(), T::narrow(result)));
    }
    let mut out = Output::<T>::new(x.shape())?;
    if x.shape().contains(&0) {
        return out.finish();
    }
    let Around { outer, extent, inner } = Around::new(x.shape(), axes);
    let raw = out.raw();
    let mut exps = filled(extent, T::Calc::ZERO)?;
    for block in 0..outer {
        for column in 0..inner {
            let at = |i: usize| (block * extent + i) * inner + column;
            let element = |i: usize| T::load(view.raw[at(i)]).widen();
            let largest = (0..extent).fold(T::Calc::LOWEST, |m, i| m.larger(element(i)));
            let mut sum = T::Calc::ZERO;
            for (i, slot) in exps.iter_mut().enumerate() {
                *slot = element(i).sub(largest).exp();
                sum = sum.add(*slot);
            }
            let log = if kind == Softmax::Log { sum.ln() } else { T::Calc::ZERO };
            for (i, &e) in exps.iter().enumerate() {
                let result = match kind {
                    Softmax::Plain => e.div(sum),
                    Softmax::Log => element(i).sub(largest).sub(log),
                };
                raw[at(i)] = T::narrow(result).store();
            }
        }
    }
    out.finish()
}

/// Returns 1 at the first largest element along consecutive axes that are treated as one, and 0
/// elsewhere. A NaN is the largest.
pub(crate) fn hardmax(x: &Literal, axes: Range<usize>) -> Result<Literal, Failure> {
    in_float32(&[x], &|x| dispatch!(wide float x[0].dtype(), T => hardmax_of::<T>(x[0], axes.clone())))
}

fn hardmax_of<T: FloatNumber>(x: &Literal, axes: Range<usize>) -> Result<Literal, Failure> {
    let mut out = Output::<T>::new(x.shape())?;
    if x.shape().contains(&0) {
        return out.finish();
    }
    let view = View::<T>::new(x);
    let Around { outer, extent, inner } = Around::new(x.shape(), axes);
    let raw = out.raw();
    for block in 0..outer {
        for column in 0..inner {
            let at = |i: usize| (block * extent + i) * inner + column;
            let element = |i: usize| view.get(at(i)).widen();
            let is_larger = |new: T::Calc, best: T::Calc| new > best || (new.is_nan() && !best.is_nan());
            let largest = (1..extent).fold(0, |best, i| if is_larger(element(i), element(best)) { i } else { best });
            raw[at(largest)] = T::narrow(T::Calc::ONE).store();
        }
    }
    out.finish()
}

/// The most products that [`lrn`] sums. The window sizes in models stay far below it. A window over
/// all channels would take quadratic time in the number of channels.
const MAX_RESPONSES: u128 = 1 << 36;

/// The parameters of local response normalisation.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Response {
    pub(crate) size: i64,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) bias: f64,
}

/// Returns `x / (bias + alpha / size * Σ x²) ^ beta`, where the sum is over `size` channels (axis
/// 1) around the channel of the element.
pub(crate) fn lrn(x: &Literal, how: Response) -> Result<Literal, Failure> {
    if x.rank() < 2 {
        return Err(Failure::Mismatch("the operand has no channels".into()));
    }
    if how.size < 1 {
        return Err(Failure::Mismatch(format!("size {}", how.size)));
    }
    in_float32(&[x], &|x| dispatch!(wide float x[0].dtype(), T => lrn_of::<T>(x[0], how)))
}

fn lrn_of<T: FloatNumber>(x: &Literal, how: Response) -> Result<Literal, Failure> {
    let mut out = Output::<T>::new(x.shape())?;
    if x.shape().contains(&0) {
        return out.finish();
    }
    let Around { outer, extent, inner } = Around::new(x.shape(), 1..2);
    let window = u128::from(how.size.unsigned_abs()).min(extent as u128);
    if x.element_count() as u128 * window > MAX_RESPONSES {
        return Err(Failure::TooLong);
    }
    let view = View::<T>::new(x);
    let (beta, bias) = (T::Calc::from_f64(how.beta), T::Calc::from_f64(how.bias));
    let factor = T::Calc::from_f64(how.alpha).div(T::Calc::from_f64(how.size as f64));
    // The window reaches from `before` channels earlier to `after` channels later.
    let before = usize::try_from((how.size - 1) / 2).unwrap_or(usize::MAX);
    let after = usize::try_from(how.size - 1 - (how.size - 1) / 2).unwrap_or(usize::MAX);
    let raw = out.raw();
    let mut sums = filled(inner, T::Calc::ZERO)?;
    for image in 0..outer {
        for channel in 0..extent {
            sums.fill(T::Calc::ZERO);
            let last = channel.saturating_add(after).min(extent - 1);
            for other in channel.saturating_sub(before)..=last {
                let start = (image * extent + other) * inner;
                for (i, sum) in sums.iter_mut().enumerate() {
                    let e = view.get(start + i).widen();
                    *sum = sum.add(e.mul(e));
                }
            }
            let start = (image * extent + channel) * inner;
            for (i, (o, &sum)) in raw[start..start + inner].iter_mut().zip(&sums).enumerate() {
                let scale = bias.add(factor.mul(sum)).power(beta).unwrap_or(T::Calc::ONE);
                *o = T::narrow(view.get(start + i).widen().div(scale)).store();
            }
        }
    }
    out.finish()
}

#[cfg(test)]
mod tests {
    use super::super::test_values::{close, f64s};
    use super::*;

    #[test]
    fn a_response_over_all_of_many_channels_is_refused() {
        let how = |size| Response { size, alpha: 1.0, beta: 1.0, bias: 1.0 };
        let many = f64s(&[1, 1 << 19, 1], &vec![1.0; 1 << 19]);
        assert_eq!(lrn(&many, how(i64::MAX)), Err(Failure::TooLong));
        assert_eq!(lrn(&many, how(1)), Ok(f64s(&[1, 1 << 19, 1], &vec![0.5; 1 << 19])));
        let few = f64s(&[1, 4, 1], &[1.0; 4]);
        assert_eq!(lrn(&few, how(i64::MAX)), Ok(few));
    }

    #[test]
    fn batch_norm_by_channel() {
        let x = f64s(&[1, 2, 2], &[1., 2., 3., 4.]);
        let p = |a, b| f64s(&[2], &[a, b]);
        let statistics = Statistics { scale: &p(2., 1.), bias: &p(0., 10.), mean: &p(1., 3.), var: &p(4., 0.25) };
        close(&batch_norm(&x, &statistics, 1, 0.0).unwrap(), &[1, 2, 2], &[0., 1., 10., 12.]);
        let r = batch_norm(&Literal::splat(&[1, 2, 2], 3f64), &statistics, -2, 0.0).unwrap();
        close(&r, &[1, 2, 2], &[2., 2., 10., 10.]);
        let one = Literal::splat(&[1 << 40], 1f64);
        let flat = Statistics { scale: &one, bias: &one, mean: &one, var: &one };
        let huge = Literal::splat(&[1 << 40, 1 << 40], 2f64);
        assert_eq!(batch_norm(&huge, &flat, 1, 3.0).unwrap(), Literal::splat(&[1 << 40, 1 << 40], 1.5f64));
        assert!(batch_norm(&x, &statistics, 2, 0.0).is_ok());
        assert!(batch_norm(&x, &statistics, 0, 0.0).is_err());
    }

    #[test]
    fn softmax_along_any_axis() {
        let x = f64s(&[2, 3], &[1., 2., 3., 1000., 1000., 1000.]);
        let third = 1. / 3.;
        let row = [0.090_030_573_170_380_46, 0.244_728_471_054_797_64, 0.665_240_955_774_821_8];
        let r = softmax(Softmax::Plain, &x, 1..2).unwrap();
        close(&r, &[2, 3], &[row[0], row[1], row[2], third, third, third]);
        close(&softmax(Softmax::Plain, &x, 0..1).unwrap(), &[2, 3], &[0., 0., 0., 1., 1., 1.]);
        let r = softmax(Softmax::Log, &x, 1..2).unwrap();
        let log = [-2.407_605_964_444_38, -1.407_605_964_444_38, -0.407_605_964_444_380_3];
        close(&r, &[2, 3], &[log[0], log[1], log[2], -third.recip().ln(), -third.recip().ln(), -third.recip().ln()]);
        for kind in [Softmax::Plain, Softmax::Log] {
            let splat = softmax(kind, &Literal::splat(&[1, 3], 1000f64), 1..2).unwrap();
            let dense = softmax(kind, &x, 1..2).unwrap();
            assert_eq!(splat.elements::<f64>().unwrap()[..], dense.elements::<f64>().unwrap()[3..]);
            assert!(softmax(kind, &Literal::splat(&[1 << 40, 1 << 40], 1f32), 1..2).unwrap().as_splat().is_some());
        }
    }

    #[test]
    fn neighbouring_axes_count_as_one() {
        let x = f64s(&[2, 2, 2], &[1., 2., 3., 4., 5., 6., 7., 9.]);
        let flat = |x: &Literal| x.reshaped(&[2, 4]).unwrap();
        for kind in [Softmax::Plain, Softmax::Log] {
            assert_eq!(flat(&softmax(kind, &x, 1..3).unwrap()), softmax(kind, &flat(&x), 1..2).unwrap());
        }
        assert_eq!(hardmax(&x, 1..3).unwrap(), f64s(&[2, 2, 2], &[0., 0., 0., 1., 0., 0., 0., 1.]));
        assert_eq!(hardmax(&x, 0..1).unwrap(), f64s(&[2, 2, 2], &[0., 0., 0., 0., 1., 1., 1., 1.]));
        let ties = f64s(&[5], &[1., f64::NAN, 7., f64::NAN, f64::INFINITY]);
        assert_eq!(hardmax(&ties, 0..1).unwrap(), f64s(&[5], &[0., 1., 0., 0., 0.]));
        assert_eq!(hardmax(&Literal::splat(&[2], 3f64), 0..1).unwrap(), f64s(&[2], &[1., 0.]));
    }

    #[test]
    fn lrn_sums_over_neighbouring_channels() {
        let x = f64s(&[1, 4, 1], &[1., 2., 3., 4.]);
        let how = Response { size: 2, alpha: 2.0, beta: 1.0, bias: 1.0 };
        close(&lrn(&x, how).unwrap(), &[1, 4, 1], &[1. / 6., 2. / 14., 3. / 26., 4. / 17.]);
        let wide = lrn(&x, Response { size: i64::MAX, alpha: 0.0, beta: 0.5, bias: 4.0 }).unwrap();
        close(&wide, &[1, 4, 1], &[0.5, 1., 1.5, 2.]);
        assert!(lrn(&x, Response { size: 0, ..how }).is_err());
    }
}
