//! Numbers by channel, and constant tensors as such numbers.

use anfora_ir::{DType, Element, Literal};
use half::{bf16, f16};

use super::roles::{Shape, Side};

/// A number for each channel.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum PerChannel {
    /// The same number for all channels.
    Same(f64),
    /// One number per channel; from a tensor that is not a splat and so has memory for each.
    Each(Box<[f64]>),
}

impl PerChannel {
    /// Returns the elements of a tensor of a floating point type; `None` for any other type, and if
    /// the elements cannot be read.
    pub(super) fn of(literal: &Literal) -> Option<PerChannel> {
        literal.load().ok()?;
        Some(match literal.dtype() {
            DType::Float16 => of::<f16>(literal),
            DType::BFloat16 => of::<bf16>(literal),
            DType::Float32 => of::<f32>(literal),
            DType::Float64 => of::<f64>(literal),
            _ => return None,
        })
    }

    pub(super) fn map(&self, f: impl Fn(f64) -> f64) -> PerChannel {
        match self {
            PerChannel::Same(a) => PerChannel::Same(f(*a)),
            PerChannel::Each(a) => PerChannel::Each(a.iter().map(|&a| f(a)).collect()),
        }
    }

    /// Combines two sets of numbers. If neither is the same for all channels, both must have the
    /// same number of channels.
    pub(super) fn zip(&self, other: &PerChannel, f: impl Fn(f64, f64) -> f64) -> PerChannel {
        match (self, other) {
            (PerChannel::Same(a), b) => b.map(|b| f(*a, b)),
            (a, PerChannel::Same(b)) => a.map(|a| f(a, *b)),
            (PerChannel::Each(a), PerChannel::Each(b)) => {
                PerChannel::Each(a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect())
            }
        }
    }

    pub(super) fn all(&self, test: impl Fn(f64) -> bool) -> bool {
        match self {
            PerChannel::Same(a) => test(*a),
            PerChannel::Each(a) => a.iter().all(|&a| test(a)),
        }
    }

    /// Returns true if it is stored as one number.
    pub(super) fn is_same(&self) -> bool {
        matches!(self, PerChannel::Same(_))
    }

    fn get(&self, channel: usize) -> f64 {
        match self {
            PerChannel::Same(a) => *a,
            PerChannel::Each(a) => a[channel],
        }
    }

    /// Returns the rank-1 tensor of these numbers, each rounded once.
    pub(super) fn to_literal(&self, dtype: DType, channels: usize) -> Option<Literal> {
        let zeros = Literal::splat_bytes(dtype, &[channels], &[0; 8]);
        let mut channels = 0..channels;
        rewritten(&zeros, |_| channels.next().map_or(0.0, |channel| self.get(channel)), self.is_same())
    }
}

fn of<T: Float>(literal: &Literal) -> PerChannel {
    match literal.as_splat() {
        Some(element) => PerChannel::Same(T::read(element).widen()),
        None => {
            let bytes = literal.to_bytes();
            PerChannel::Each(bytes.chunks_exact(T::DTYPE.bits() / 8).map(|e| T::read(e).widen()).collect())
        }
    }
}

/// Returns the largest magnitude of each channel of a weight, NaN for a channel that contains one.
pub(super) fn magnitudes(weight: &Literal, side: &Side) -> Option<PerChannel> {
    if weight.as_splat().is_some() {
        return PerChannel::of(weight).map(|element| element.map(f64::abs));
    }
    let mut channels = Layout::of(weight, side).channels();
    let mut largest = vec![0.0f64; side.channels];
    for_each(weight, weight.element_count(), |e| raise(&mut largest[channels.next_channel()], e.abs()))?;
    Some(PerChannel::Each(largest.into()))
}

/// Calls a function with the first elements of a weight in order. Returns `None` if the weight has
/// no floating point type or cannot be read.
fn for_each(weight: &Literal, count: usize, f: impl FnMut(f64)) -> Option<()> {
    weight.load().ok()?;
    match weight.dtype() {
        DType::Float16 => for_each_of::<f16>(weight, count, f),
        DType::BFloat16 => for_each_of::<bf16>(weight, count, f),
        DType::Float32 => for_each_of::<f32>(weight, count, f),
        DType::Float64 => for_each_of::<f64>(weight, count, f),
        _ => None,
    }
}

fn for_each_of<T: Float>(weight: &Literal, count: usize, mut f: impl FnMut(f64)) -> Option<()> {
    match weight.as_splat() {
        Some(element) => (0..count).for_each(|_| f(T::read(element).widen())),
        None => {
            let elements = weight.as_dense()?.chunks_exact(T::DTYPE.bits() / 8);
            elements.take(count).for_each(|e| f(T::read(e).widen()));
        }
    }
    Some(())
}

/// Raises a maximum. Unlike `max`, keeps a NaN.
fn raise(largest: &mut f64, magnitude: f64) {
    if magnitude.is_nan() || magnitude > *largest {
        *largest = magnitude;
    }
}

/// The factors of the elements of a weight.
#[derive(Clone)]
pub(super) struct Factors {
    /// By channel of the result.
    pub(super) output: PerChannel,
    /// By channel of the operand.
    pub(super) input: PerChannel,
}

impl Factors {
    /// Returns true if all elements have the same factor.
    pub(super) fn is_same(&self) -> bool {
        self.output.is_same() && self.input.is_same()
    }
}

/// Returns true if the weight times the factors has no number above `range`, and no channel of the
/// result or of the operand has all its numbers below `range`. A product that underflows counts as
/// below.
///
/// Cost: `work` elements.
pub(super) fn stays_in_range(
    weight: &Literal,
    shape: &Shape,
    factors: &Factors,
    (range, work): ((f64, f64), usize),
) -> bool {
    let mut output = Layout::of(weight, &shape.output).channels();
    let mut input = Layout::of(weight, &shape.input).channels();
    let mut by_output = vec![0.0; shape.output.channels.min(work)];
    let mut by_input = vec![0.0; shape.input.channels.min(work)];
    let read = for_each(weight, work, |element| {
        let (o, i) = (output.next_channel(), input.next_channel());
        let magnitude = magnitude_of(element, factors.output.get(o) * factors.input.get(i));
        raise(&mut by_output[o], magnitude);
        raise(&mut by_input[i], magnitude);
    });
    if read.is_none() {
        return false;
    }
    let fits = |m: &f64| *m == 0.0 || (range.1..=range.0).contains(m);
    by_output.iter().all(fits) && by_input.iter().all(fits)
}

/// Returns the magnitude of a product, which is 0 only if a factor is 0.
pub(super) fn magnitude_of(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { (a * b).abs().max(f64::from_bits(1)) }
}

/// Returns the weight times the factors. Each element is computed in float64 and rounded once. A
/// splat times one number stays a splat.
pub(super) fn scaled(weight: &Literal, shape: &Shape, factors: &Factors) -> Option<Literal> {
    let mut output = Layout::of(weight, &shape.output).channels();
    let mut input = Layout::of(weight, &shape.input).channels();
    let product = |e| e * factors.output.get(output.next_channel()) * factors.input.get(input.next_channel());
    rewritten(weight, product, factors.is_same())
}

/// Returns a tensor of the results of a function that is called with each element in order. If all
/// results for equal elements are equal, a splat stays a splat.
fn rewritten(literal: &Literal, f: impl FnMut(f64) -> f64, is_same: bool) -> Option<Literal> {
    match literal.dtype() {
        DType::Float16 => rewritten_as::<f16>(literal, f, is_same),
        DType::BFloat16 => rewritten_as::<bf16>(literal, f, is_same),
        DType::Float32 => rewritten_as::<f32>(literal, f, is_same),
        DType::Float64 => rewritten_as::<f64>(literal, f, is_same),
        _ => None,
    }
}

fn rewritten_as<T: Float>(literal: &Literal, mut f: impl FnMut(f64) -> f64, is_same: bool) -> Option<Literal> {
    if let Some(element) = literal.as_splat().filter(|_| is_same) {
        return Some(Literal::splat(literal.shape(), T::narrow(f(T::read(element).widen()))));
    }
    let mut bytes = Vec::new();
    bytes.reserve_exact(literal.expanded_bytes()?);
    for_each_of::<T>(literal, literal.element_count(), |e| {
        bytes.extend_from_slice(T::narrow(f(e)).to_bytes().as_ref());
    })?;
    Literal::from_bytes(T::DTYPE, literal.shape(), bytes.into()).ok()
}

/// The channel of each element of a weight.
struct Layout {
    /// The number of channels of one group, and of elements of one group.
    channels: usize,
    group: usize,
    inner: usize,
}

impl Layout {
    fn of(weight: &Literal, side: &Side) -> Layout {
        // A tensor without elements needs no layout; avoid divisions by 0.
        let inner = weight.shape()[side.weight_axis + 1..].iter().try_fold(1usize, |n, &d| n.checked_mul(d));
        let channels = weight.shape()[side.weight_axis].max(1);
        let group = (weight.element_count() / (side.channels / channels).max(1)).max(1);
        Layout { channels, group, inner: inner.unwrap_or(usize::MAX).max(1) }
    }

    /// Returns the channels of the elements in order.
    fn channels(self) -> Channels {
        Channels { layout: self, inner: 0, channel: 0, element: 0, first: 0 }
    }
}

/// The channels of the elements of a weight, counted without divisions.
struct Channels {
    layout: Layout,
    /// The position of the next element in its run of elements of one channel.
    inner: usize,
    /// The channel in the group.
    channel: usize,
    /// The position of the next element in its group.
    element: usize,
    /// The first channel of the group.
    first: usize,
}

impl Channels {
    fn next_channel(&mut self) -> usize {
        let found = self.first + self.channel;
        self.inner += 1;
        if self.inner == self.layout.inner {
            self.inner = 0;
            self.channel += 1;
            if self.channel == self.layout.channels {
                self.channel = 0;
            }
        }
        self.element += 1;
        if self.element == self.layout.group {
            self.element = 0;
            self.first += self.layout.channels;
        }
        found
    }
}

/// A floating point element with conversions to and from float64.
trait Float: Element {
    fn widen(self) -> f64;
    /// Rounds to nearest, ties to even.
    fn narrow(value: f64) -> Self;
}

impl Float for f16 {
    fn widen(self) -> f64 {
        self.to_f64()
    }
    fn narrow(value: f64) -> f16 {
        f16::from_f64(value)
    }
}

impl Float for bf16 {
    fn widen(self) -> f64 {
        self.to_f64()
    }
    fn narrow(value: f64) -> bf16 {
        bf16::from_f64(value)
    }
}

impl Float for f32 {
    fn widen(self) -> f64 {
        self.into()
    }
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}

impl Float for f64 {
    fn widen(self) -> f64 {
        self
    }
    fn narrow(value: f64) -> f64 {
        value
    }
}
