//! The causal convolution of each channel with a kernel of its own, which continues a sequence.

use anfora_ir::Literal;

use super::arithmetic::{dispatch, same_dtype};
use super::number::{Calc, FloatNumber, Real};
use super::view::{Output, View};
use super::working::{check_steps, product};
use super::{Failure, shape_text};

/// Returns the convolution of `x` of shape `(batch, channels, length)`, which `state` precedes, and
/// the end of the sequence. The kernels have shape `(channels, 1, taps)`. If `silu` is true, the
/// result is `y * sigmoid(y)` of the convolution.
pub(crate) fn causal_convolution(
    x: &Literal,
    weight: &Literal,
    bias: Option<&Literal>,
    state: Option<&Literal>,
    silu: bool,
) -> Result<Vec<Literal>, Failure> {
    let all: Vec<&Literal> = [Some(x), Some(weight), bias, state].into_iter().flatten().collect();
    let dtype = same_dtype(&all)?;
    let (&[batch, channels, length], &[kernels, 1, taps]) = (x.shape(), weight.shape()) else {
        return Err(mismatch(x, weight));
    };
    let fits = kernels == channels
        && taps > 0
        && bias.is_none_or(|b| b.shape() == [channels])
        && state.is_none_or(|s| s.shape() == [batch, channels, taps - 1]);
    if !fits {
        return Err(mismatch(x, weight));
    }
    check_steps(&[x, weight], &[bias, state], product(&[batch, channels, length.max(1), taps]))?;
    dispatch!(float dtype, T => run::<T>([x, weight], [bias, state], [batch, channels, length, taps], silu))
}

fn mismatch(x: &Literal, weight: &Literal) -> Failure {
    let (x, weight) = (shape_text(x.shape()), shape_text(weight.shape()));
    Failure::Mismatch(format!("kernels, a bias or a state that do not fit: {x} with kernels of shape {weight}"))
}

fn run<T: FloatNumber>(
    [x, weight]: [&Literal; 2],
    [bias, state]: [Option<&Literal>; 2],
    [batch, channels, length, taps]: [usize; 4],
    silu: bool,
) -> Result<Vec<Literal>, Failure> {
    let mut out = Output::<T>::new(&[batch, channels, length])?;
    let mut end = Output::<T>::new(&[batch, channels, taps - 1])?;
    let [x, weight] = [x, weight].map(View::<T>::new);
    let [bias, state] = [bias, state].map(|o| o.map(View::<T>::new));
    for row in 0..batch * channels {
        let channel = row % channels;
        // The element of the sequence with the state before it.
        let element = |i: usize| match (i.checked_sub(taps - 1), &state) {
            (Some(i), _) => x.get(row * length + i),
            (None, Some(state)) => state.get(row * (taps - 1) + i),
            (None, None) => T::narrow(T::Calc::ZERO),
        };
        for (i, o) in out.raw()[row * length..][..length].iter_mut().enumerate() {
            let products = (0..taps).map(|t| element(i + t).widen().mul(weight.get(channel * taps + t).widen()));
            let sum = products.fold(T::Calc::ZERO, Calc::add);
            let sum = bias.as_ref().map_or(sum, |b| sum.add(b.get(channel).widen()));
            let y = T::narrow(sum);
            *o = if silu { T::narrow(silu_of(y.widen())) } else { y }.store();
        }
        for (i, o) in end.raw()[row * (taps - 1)..][..taps - 1].iter_mut().enumerate() {
            *o = element(length + i).store();
        }
    }
    Ok(vec![out.finish()?, end.finish()?])
}

fn silu_of<C: Real>(y: C) -> C {
    y.mul(C::ONE.div(C::ONE.add(y.neg().exp())))
}
