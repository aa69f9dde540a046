//! Normalisations by statistics of the normalised elements themselves: their mean and variance, or
//! their norm.

use anfora_ir::{DType, Literal, Shape, element_count};

use super::arithmetic::{dispatch, same_dtype};
use super::number::{Calc, FloatNumber, Number, Real, Scalar};
use super::reduction::{Axes, accumulate};
use super::strides::{Strides, Walk, broadcast_shapes, broadcast_strides, resolve_axis};
use super::view::{Output, View, filled};
use super::{Failure, shape_text};

/// The formula of a normalisation of the elements along the axes.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Statistic {
    /// `(x - mean) / sqrt(variance + epsilon)`
    Variance { epsilon: f64 },
    /// `(x - mean) / (sqrt(variance) + epsilon)`
    Deviation { epsilon: f64 },
    /// `x / sqrt(mean(x²) + epsilon)`
    MeanSquare { epsilon: f64 },
    /// `x / Σ|x|`, or 0 where all elements are 0.
    L1,
    /// `x / sqrt(Σx²)`, or 0 where all elements are 0.
    L2,
}

impl Statistic {
    fn is_centred(self) -> bool {
        matches!(self, Statistic::Variance { .. } | Statistic::Deviation { .. })
    }

    /// Returns the term of an element in the sum, from its difference to the mean.
    fn term<C: Real>(self, difference: C) -> C {
        if self == Statistic::L1 { difference.abs() } else { difference.mul(difference) }
    }

    /// Returns the divisor, from the sum of the terms of `n` elements.
    fn divisor<C: Real>(self, sum: C, n: C) -> C {
        match self {
            Statistic::Variance { epsilon } | Statistic::MeanSquare { epsilon } => {
                sum.div(n).add(C::from_f64(epsilon)).sqrt()
            }
            Statistic::Deviation { epsilon } => sum.div(n).sqrt().add(C::from_f64(epsilon)),
            Statistic::L1 => sum,
            Statistic::L2 => sum.sqrt(),
        }
    }

    fn quotient<C: Real>(self, difference: C, divisor: C) -> C {
        match self {
            Statistic::L1 | Statistic::L2 if divisor == C::ZERO => C::ZERO,
            _ => difference.div(divisor),
        }
    }
}

/// A normalisation over axes. The quotients are scaled and shifted by parameters that broadcast to
/// `x`.
struct Normalisation<'a> {
    statistic: Statistic,
    x: &'a Literal,
    axes: Axes,
    scale: Option<&'a Literal>,
    bias: Option<&'a Literal>,
}

/// The mean and the sum of terms of each group of elements that are normalised together. There is a
/// single entry if `x` is a splat or empty.
struct Sums<C> {
    of: Vec<(C, C)>,
    /// The number of elements that are normalised together.
    n: C,
}

impl Normalisation<'_> {
    fn sums<T: FloatNumber>(&self) -> Result<Sums<T::Calc>, Failure> {
        let (x, axes, statistic) = (self.x, &self.axes, self.statistic);
        let count = axes.count(x.shape())?;
        let n = T::Calc::from_count(count);
        if x.shape().contains(&0) {
            // All groups are empty, so one entry is enough.
            let mean = if statistic.is_centred() { T::Calc::ZERO.div(n) } else { T::Calc::ZERO };
            return Ok(Sums { of: vec![(mean, T::Calc::ZERO)], n });
        }
        if let Some(e) = View::<T>::new(x).splat {
            let e = e.widen();
            let mean = if statistic.is_centred() { e.repeat_add(count).div(n) } else { T::Calc::ZERO };
            return Ok(Sums { of: vec![(mean, statistic.term(e.sub(mean)).repeat_add(count))], n });
        }
        let mut of = filled(axes.result_count(x.shape())?, (T::Calc::ZERO, T::Calc::ZERO))?;
        if statistic.is_centred() {
            accumulate(x, axes, &mut of, |(sum, terms), e: T| (sum.add(e.widen()), terms));
            for (mean, _) in &mut of {
                *mean = mean.div(n);
            }
        }
        accumulate(x, axes, &mut of, |(mean, sum), e: T| (mean, sum.add(statistic.term(e.widen().sub(mean)))));
        Ok(Sums { of, n })
    }

    fn run<T: FloatNumber>(&self, sums: &Sums<T::Calc>) -> Result<Literal, Failure> {
        let (x, statistic) = (self.x, self.statistic);
        for p in [self.scale, self.bias].into_iter().flatten() {
            if broadcast_shapes(p.shape(), x.shape())?.as_slice() != x.shape() {
                let (p, x) = (shape_text(p.shape()), shape_text(x.shape()));
                return Err(Failure::Mismatch(format!("a parameter of shape {p}, which does not broadcast to {x}")));
            }
        }
        let (view, scale, bias) = (View::<T>::new(x), self.scale.map(View::<T>::new), self.bias.map(View::<T>::new));
        let finish = |e: T, (mean, divisor): (T::Calc, T::Calc), scale: Option<T>, bias: Option<T>| {
            let normal = statistic.quotient(e.widen().sub(mean), divisor);
            let scaled = scale.map_or(normal, |s| normal.mul(s.widen()));
            T::narrow(bias.map_or(scaled, |b| scaled.add(b.widen())))
        };
        let divisors: Vec<(T::Calc, T::Calc)> =
            sums.of.iter().map(|&(mean, sum)| (mean, statistic.divisor(sum, sums.n))).collect();
        let is_splat = |p: &Option<View<'_, T>>| p.is_none_or(|p| p.splat.is_some());
        if let (Some(e), true, true, Some(&first)) = (view.splat, is_splat(&scale), is_splat(&bias), divisors.first()) {
            let one = |p: Option<View<'_, T>>| p.and_then(|p| p.splat);
            return Ok(Literal::splat(x.shape(), finish(e, first, one(scale), one(bias))));
        }
        let mut out = Output::<T>::new(x.shape())?;
        if x.shape().contains(&0) {
            return out.finish();
        }
        let still: Strides = smallvec::smallvec![0; x.rank()];
        let of_parameter = |p: Option<&Literal>| match p {
            Some(p) => broadcast_strides(p.shape(), x.shape(), p.as_splat().is_some()),
            None => still.clone(),
        };
        let groups = if view.splat.is_some() { still.clone() } else { self.axes.strides(x.shape()) };
        let walk = Walk::new(x.shape(), [&groups, &of_parameter(self.scale), &of_parameter(self.bias)]);
        // Operands are broadcast but not permuted, so in a run each operand stays at one element or
        // advances by one.
        let [by_group, by_scale, by_bias] = walk.run_strides().map(|s| s as usize);
        let raw = out.raw();
        let mut done = 0;
        walk.for_each([0, 0, 0], |[group, first_scale, first_bias], len| {
            let Some(run) = raw.get_mut(done..done + len) else { return };
            for (k, o) in run.iter_mut().enumerate() {
                let scale = scale.map(|s| s.get(first_scale + k * by_scale));
                let bias = bias.map(|b| b.get(first_bias + k * by_bias));
                *o = finish(view.get(done + k), divisors[group + k * by_group], scale, bias).store();
            }
            done += len;
        });
        out.finish()
    }
}

/// Returns values of a calculation type as a tensor of float64 if `dtype` is float64, and of
/// float32 otherwise. A single value becomes a splat.
fn statistics_literal<C: Real + Into<f64>>(dtype: DType, shape: &[usize], values: &[C]) -> Result<Literal, Failure> {
    fn of<T: Number>(shape: &[usize], values: impl ExactSizeIterator<Item = T::Calc>) -> Result<Literal, Failure> {
        let mut values = values;
        if values.len() == 1 {
            return values.next().map(|v| Literal::splat(shape, T::narrow(v))).ok_or(Failure::Empty);
        }
        let mut out = Output::<T>::new(shape)?;
        for (o, value) in out.raw().iter_mut().zip(values) {
            *o = T::narrow(value).store();
        }
        out.finish()
    }
    match dtype {
        DType::Float64 => of::<f64>(shape, values.iter().map(|&v| v.into())),
        _ => of::<f32>(shape, values.iter().map(|&v| v.into() as f32)),
    }
}

/// The additional results of a layer normalisation: the means and the reciprocals of the
/// deviations, in the type of the computation (float64 for float64, float32 otherwise). The extents
/// of the normalised axes are 1.
pub(crate) struct LayerStatistics {
    pub(crate) mean: Literal,
    pub(crate) inverse_deviation: Literal,
}

/// Returns `(x - mean) / sqrt(variance + epsilon) * scale + bias` over the axes from `first` on, or
/// the form without the mean, as `statistic` specifies.
pub(crate) fn layer_norm(
    statistic: Statistic,
    x: &Literal,
    scale: &Literal,
    bias: Option<&Literal>,
    first: usize,
) -> Result<(Literal, LayerStatistics), Failure> {
    let dtype = same_dtype(&[&[x, scale][..], bias.as_slice()].concat())?;
    let norm = Normalisation { statistic, x, axes: Axes::from(first, x.rank()), scale: Some(scale), bias };
    let shape = norm.axes.result_shape(x.shape());
    dispatch!(float dtype, T => {
        let sums = norm.sums::<T>()?;
        let means: Vec<_> = sums.of.iter().map(|&(mean, _)| mean).collect();
        let inverses: Vec<_> =
            sums.of.iter().map(|&(_, sum)| <T as Number>::Calc::ONE.div(statistic.divisor(sum, sums.n))).collect();
        let statistics = LayerStatistics {
            mean: statistics_literal(dtype, &shape, &means)?,
            inverse_deviation: statistics_literal(dtype, &shape, &inverses)?,
        };
        Ok((norm.run::<T>(&sums)?, statistics))
    })
}

/// Normalises over the listed axes, without parameters.
pub(crate) fn normalise(statistic: Statistic, x: &Literal, axes: &[i64]) -> Result<Literal, Failure> {
    let axes = Axes::new(Some(axes), x.rank(), true)?;
    let norm = Normalisation { statistic, x, axes, scale: None, bias: None };
    dispatch!(float x.dtype(), T => norm.run::<T>(&norm.sums::<T>()?))
}

/// Returns a parameter, which has an element for each channel, as a tensor that broadcasts over the
/// `after` axes that follow the axis of channels.
fn by_channel(parameter: &Literal, channels: usize, after: usize) -> Result<Literal, Failure> {
    if parameter.shape() != [channels] {
        let found = shape_text(parameter.shape());
        return Err(Failure::Mismatch(format!("a parameter of shape {found} for {channels} channels")));
    }
    let mut shape = Shape::new();
    shape.resize(after + 1, 1);
    shape[0] = channels;
    parameter.reshaped(&shape).map_err(|_| Failure::TooLarge)
}

/// Returns the extents of the batch and of the channels, and the extents of the axes after them.
fn channels_of(x: &Literal) -> Result<(usize, usize, &[usize]), Failure> {
    match x.shape() {
        [batch, channels, spatial @ ..] => Ok((*batch, *channels, spatial)),
        _ => Err(Failure::Mismatch("the operand has no axis of channels".into())),
    }
}

/// Normalises each channel (axis 1) of each element of the batch separately. Scale and bias have an
/// element for each channel.
pub(crate) fn instance_norm(x: &Literal, scale: &Literal, bias: &Literal, epsilon: f64) -> Result<Literal, Failure> {
    let dtype = same_dtype(&[x, scale, bias])?;
    let (_, channels, spatial) = channels_of(x)?;
    let (scale, bias) = (by_channel(scale, channels, spatial.len())?, by_channel(bias, channels, spatial.len())?);
    let norm = Normalisation {
        statistic: Statistic::Variance { epsilon },
        x,
        axes: Axes::from(2, x.rank()),
        scale: Some(&scale),
        bias: Some(&bias),
    };
    dispatch!(float dtype, T => norm.run::<T>(&norm.sums::<T>()?))
}

/// Normalises each of `groups` groups of channels (axis 1) of each element of the batch separately.
/// Scale and bias have an element for each channel or for each group.
pub(crate) fn group_norm(
    x: &Literal,
    scale: &Literal,
    bias: &Literal,
    groups: i64,
    epsilon: f64,
) -> Result<Literal, Failure> {
    let dtype = same_dtype(&[x, scale, bias])?;
    let (batch, channels, spatial) = channels_of(x)?;
    let groups = usize::try_from(groups).ok().filter(|&g| g > 0 && channels.is_multiple_of(g));
    let groups = groups.ok_or_else(|| {
        Failure::Mismatch(format!("{channels} channels cannot be divided into this number of equal groups"))
    })?;
    let behind = element_count(spatial).ok_or(Failure::TooLarge)?;
    let grouped = x.reshaped(&[batch, groups, channels / groups, behind]).map_err(|_| Failure::TooLarge)?;
    let parameter = |p: &Literal| match p.shape() {
        &[extent] if extent == channels => p.reshaped(&[groups, channels / groups, 1]).map_err(|_| Failure::TooLarge),
        _ => by_channel(p, groups, 2),
    };
    let (scale, bias) = (parameter(scale)?, parameter(bias)?);
    let norm = Normalisation {
        statistic: Statistic::Variance { epsilon },
        x: &grouped,
        axes: Axes::from(2, 4),
        scale: Some(&scale),
        bias: Some(&bias),
    };
    let result = dispatch!(float dtype, T => norm.run::<T>(&norm.sums::<T>()?))?;
    result.reshaped(x.shape()).map_err(|_| Failure::TooLarge)
}

/// The running statistics of a batch normalisation in training. `momentum` is the part of them that
/// is kept.
pub(crate) struct Running<'a> {
    pub(crate) mean: &'a Literal,
    pub(crate) var: &'a Literal,
    pub(crate) momentum: f64,
}

/// Normalises by channel along `axis`, with the mean and the variance of the batch. Returns the
/// result and the running mean and variance, moved towards those of the batch.
pub(crate) fn batch_norm_training(
    x: &Literal,
    scale: &Literal,
    bias: &Literal,
    running: &Running<'_>,
    axis: i64,
    epsilon: f64,
) -> Result<[Literal; 3], Failure> {
    let dtype = same_dtype(&[x, scale, bias, running.mean, running.var])?;
    let axis = resolve_axis(axis, x.rank())?;
    let (channels, after) = (x.shape()[axis], x.rank() - axis - 1);
    let (scale, bias) = (by_channel(scale, channels, after)?, by_channel(bias, channels, after)?);
    for p in [running.mean, running.var] {
        by_channel(p, channels, 0)?;
    }
    let others: Vec<i64> = (0..x.rank()).filter(|&a| a != axis).map(|a| a as i64).collect();
    let norm = Normalisation {
        statistic: Statistic::Variance { epsilon },
        x,
        axes: Axes::new(Some(&others), x.rank(), true)?,
        scale: Some(&scale),
        bias: Some(&bias),
    };
    dispatch!(float dtype, T => {
        let sums = norm.sums::<T>()?;
        let momentum = <T as Number>::Calc::from_f64(running.momentum);
        let rest = <T as Number>::Calc::ONE.sub(momentum);
        let moved = |old: &Literal, new: &dyn Fn(usize) -> <T as Number>::Calc| -> Result<Literal, Failure> {
            let view = View::<T>::new(old);
            let mut out = Output::<T>::new(&[channels])?;
            for (i, o) in out.raw().iter_mut().enumerate() {
                *o = T::narrow(view.get(i).widen().mul(momentum).add(new(i).mul(rest))).store();
            }
            out.finish()
        };
        let of = |i: usize| if sums.of.len() == 1 { sums.of[0] } else { sums.of[i] };
        let mean = moved(running.mean, &|i| of(i).0)?;
        let var = moved(running.var, &|i| of(i).1.div(sums.n))?;
        Ok([norm.run::<T>(&sums)?, mean, var])
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_values::{close, f64s};
    use super::*;

    const NO_EPSILON: Statistic = Statistic::Variance { epsilon: 0.0 };

    #[test]
    fn groups_without_elements_are_not_walked() {
        let x = f64s(&[1 << 40, 0], &[]);
        assert_eq!(normalise(NO_EPSILON, &x, &[1]).unwrap().shape(), x.shape());
        let (y, statistics) = layer_norm(NO_EPSILON, &x, &f64s(&[0], &[]), None, 1).unwrap();
        assert_eq!((y.shape(), statistics.mean.shape()), (x.shape(), &[1 << 40, 1][..]));
        assert!(statistics.mean.as_splat().is_some_and(|m| f64::from_le_bytes(m.try_into().unwrap()).is_nan()));
    }

    #[test]
    fn layer_norm_over_the_last_axes() {
        let of = |x: &Literal, scale: &Literal, bias: Option<&Literal>, first| {
            layer_norm(NO_EPSILON, x, scale, bias, first).map(|(y, _)| y)
        };
        let x = f64s(&[2, 2], &[1., 3., -2., 2.]);
        let r = of(&x, &f64s(&[2], &[1., 2.]), Some(&f64s(&[2], &[0., 1.])), 1).unwrap();
        close(&r, &[2, 2], &[-1., 3., -1., 3.]);
        let r = of(&x, &Literal::splat(&[2, 2], 1f64), None, 0).unwrap();
        close(&r, &[2, 2], &[0., 1.069_044_967_649_697_6, -1.603_567_451_474_546_4, 0.534_522_483_824_848_8]);
        // Parameters broadcast to the whole operand.
        let r = of(&x, &f64s(&[2, 1], &[1., 10.]), Some(&Literal::scalar(1f64)), 1).unwrap();
        close(&r, &[2, 2], &[0., 2., -9., 11.]);
        let equal = Literal::splat(&[3, 7], 0.1f32);
        let mixed = Literal::from_elements(&[2, 7], &[[0.1f32; 7], [0.3; 7]].concat()).unwrap();
        let ones = Literal::splat(&[7], 1f32);
        let a = of(&equal, &ones, None, 1).unwrap();
        let b = of(&mixed, &ones, None, 1).unwrap();
        assert_eq!(a.elements::<f32>().unwrap()[..7], b.elements::<f32>().unwrap()[..7]);
        assert!(of(&x, &Literal::splat(&[7], 1f64), None, 1).is_err());
        assert!(of(&x, &Literal::splat(&[3, 2, 2], 1f64), None, 1).is_err(), "the operand does not broadcast");
    }

    #[test]
    fn layer_norm_tells_its_statistics() {
        let x = f64s(&[2, 2], &[1., 3., -2., 2.]);
        let (_, statistics) = layer_norm(NO_EPSILON, &x, &Literal::scalar(1f64), None, 1).unwrap();
        close(&statistics.mean, &[2, 1], &[2., 0.]);
        close(&statistics.inverse_deviation, &[2, 1], &[1., 0.5]);
        let half = Literal::splat(&[2, 2], half::f16::from_f32(3.0));
        let scale = Literal::scalar(half::f16::ONE);
        let (_, statistics) = layer_norm(Statistic::Variance { epsilon: 0.25 }, &half, &scale, None, 1).unwrap();
        assert_eq!(statistics.mean, Literal::splat(&[2, 1], 3f32));
        assert_eq!(statistics.inverse_deviation, Literal::splat(&[2, 1], 2f32));
        let statistic = Statistic::MeanSquare { epsilon: 0.0 };
        let (y, _) =
            layer_norm(statistic, &f64s(&[1, 2], &[3., 4.]), &Literal::scalar(12.5f64.sqrt()), None, 1).unwrap();
        close(&y, &[1, 2], &[3., 4.]);
    }

    #[test]
    fn norms_of_zeros_are_zero() {
        let x = f64s(&[2, 2], &[0., 0., 3., -4.]);
        close(&normalise(Statistic::L2, &x, &[1]).unwrap(), &[2, 2], &[0., 0., 0.6, -0.8]);
        close(&normalise(Statistic::L1, &x, &[-1]).unwrap(), &[2, 2], &[0., 0., 3. / 7., -4. / 7.]);
        close(&normalise(Statistic::L1, &x, &[0]).unwrap(), &[2, 2], &[0., 0., 1., -1.]);
        let huge = Literal::splat(&[1 << 40, 1 << 40], 1f64);
        assert!(normalise(Statistic::L2, &huge, &[1]).unwrap().as_splat().is_some());
    }

    #[test]
    fn any_axes_are_normalised_over() {
        let x = f64s(&[2, 2, 2], &[1., 2., 3., 4., 5., 10., 7., 12.]);
        let r = normalise(Statistic::Deviation { epsilon: 0.0 }, &x, &[0, 2]).unwrap();
        let channel = |values: [f64; 4]| {
            let mean = values.iter().sum::<f64>() / 4.0;
            let deviation = (values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 4.0).sqrt();
            values.map(|v| (v - mean) / deviation)
        };
        let (a, b) = (channel([1., 2., 5., 10.]), channel([3., 4., 7., 12.]));
        close(&r, &[2, 2, 2], &[a[0], a[1], b[0], b[1], a[2], a[3], b[2], b[3]]);
    }

    #[test]
    fn groups_of_channels() {
        let x = f64s(&[1, 4, 2], &[1., 3., 5., 7., 0., 0., 2., 2.]);
        let (scale, bias) = (f64s(&[4], &[1., 2., 1., 3.]), Literal::splat(&[4], 1f64));
        let each = instance_norm(&x, &scale, &bias, 0.0).unwrap();
        close(&each, &[1, 4, 2], &[0., 2., -1., 3., f64::NAN, f64::NAN, f64::NAN, f64::NAN]);
        assert_eq!(group_norm(&x, &scale, &bias, 4, 0.5).unwrap(), instance_norm(&x, &scale, &bias, 0.5).unwrap());
        let two = group_norm(&x, &scale, &bias, 2, 0.0).unwrap();
        let r5 = 5f64.sqrt();
        close(&two, &[1, 4, 2], &[1. - 3. / r5, 1. - 1. / r5, 1. + 2. / r5, 1. + 6. / r5, 0., 0., 4., 4.]);
        let per_group = group_norm(&x, &f64s(&[2], &[1., 3.]), &Literal::splat(&[2], 1f64), 2, 0.0).unwrap();
        close(&per_group, &[1, 4, 2], &[1. - 3. / r5, 1. - 1. / r5, 1. + 1. / r5, 1. + 3. / r5, -2., -2., 4., 4.]);
        assert!(group_norm(&x, &scale, &bias, 3, 0.0).is_err());
        assert!(group_norm(&x, &scale, &bias, 0, 0.0).is_err());
        assert!(instance_norm(&Literal::scalar(1f64), &scale, &bias, 0.0).is_err());
    }

    #[test]
    fn training_moves_the_running_statistics() {
        let x = f64s(&[2, 1, 2], &[1., 3., 5., 7.]);
        let one = |v| f64s(&[1], &[v]);
        let (mean, var) = (one(0.), one(1.));
        let running = Running { mean: &mean, var: &var, momentum: 0.5 };
        let [y, mean, var] = batch_norm_training(&x, &one(1.), &one(0.), &running, 1, 0.0).unwrap();
        let r5 = 5f64.sqrt();
        close(&y, &[2, 1, 2], &[-3. / r5, -1. / r5, 1. / r5, 3. / r5]);
        close(&mean, &[1], &[2.]);
        close(&var, &[1], &[3.]);
        assert!(batch_norm_training(&x, &one(1.), &f64s(&[2], &[0., 0.]), &running, 1, 0.0).is_err());
    }
}
