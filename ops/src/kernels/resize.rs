//! Resizing: along each axis, every element of the result is a weighted sum of a few neighbouring
//! elements, its taps. The axes are resized one after the other, shrinking axes first, so that no
//! intermediate tensor is larger than the operand or the result.

use anfora_ir::{Literal, Shape, element_count};

use super::arithmetic::dispatch;
use super::index::uniform;
use super::number::{Calc, FloatNumber, Number, Scalar};
use super::strides::Around;
use super::view::{dense, elements, filled};
use super::{Failure, shape_text};

/// The choice of an element for a position between two elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Nearest {
    /// The nearest element; the lower one at the midpoint.
    RoundPreferFloor,
    /// The nearest element; the upper one at the midpoint.
    RoundPreferCeil,
    /// The lower element.
    Floor,
    /// The upper element.
    Ceil,
}

/// The method that determines the weights of taps.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Method {
    Nearest(Nearest),
    Linear,
    /// Keys' cubic convolution, with its coefficient.
    Cubic(f64),
}

/// The treatment of taps outside of the operand.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outside {
    /// The element at the border is used.
    Border,
    /// The tap is omitted, and the weights of the others are scaled to the sum 1.
    Excluded,
}

/// Selects whether taps are spread out on a shrinking axis, so that every element contributes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Spread {
    Fixed,
    WithScale,
}

/// The parameters of the weighted sum.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Filter {
    pub(crate) method: Method,
    pub(crate) outside: Outside,
    pub(crate) spread: Spread,
}

/// The mapping from positions in the result to positions in the operand.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    TfHalfPixelForNn,
    /// Positions at equal distances from `start` to `end`, where 0 is the first element and 1 the
    /// last.
    Crop {
        start: f64,
        end: f64,
    },
}

/// The scale of an axis as a quotient, which is exact for integers.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Ratio {
    pub(crate) numerator: f64,
    pub(crate) denominator: f64,
}

/// The parameters of the resizing of an axis.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct ResizedAxis {
    pub(crate) axis: usize,
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) ratio: Ratio,
    pub(crate) coordinates: Coordinates,
}

/// The position of an element and its weight.
#[derive(Copy, Clone, Debug)]
struct Tap {
    position: usize,
    weight: f64,
}

impl Tap {
    /// Returns the elements of the tap, in a slab with `inner` elements at each position.
    fn of<'a, E>(&self, slab: &'a [E], inner: usize) -> &'a [E] {
        &slab[self.position * inner..][..inner]
    }
}

impl ResizedAxis {
    /// Returns true if the axis does not change: every element of the result is the element at the
    /// same position.
    fn is_identity(&self) -> bool {
        let is_plain = match self.coordinates {
            Coordinates::Crop { start, end } => start == 0.0 && end == 1.0,
            Coordinates::TfHalfPixelForNn => false,
            _ => self.ratio.numerator == self.ratio.denominator,
        };
        is_plain && self.input == self.output
    }

    /// Returns the position in the operand of element `y` of the result; `None` if it is outside of
    /// a crop.
    fn place(&self, y: usize) -> Option<f64> {
        let Ratio { numerator, denominator } = self.ratio;
        let (y, input, output) = (y as f64, self.input as f64, self.output as f64);
        // The length of the result before it is rounded to an integer.
        let length = numerator * input / denominator;
        let half_pixel = (y + 0.5) * denominator / numerator - 0.5;
        let x = match self.coordinates {
            Coordinates::HalfPixel => half_pixel,
            Coordinates::HalfPixelSymmetric => input / 2.0 * (1.0 - output / length) + half_pixel,
            Coordinates::PytorchHalfPixel if self.output <= 1 => 0.0,
            Coordinates::PytorchHalfPixel => half_pixel,
            Coordinates::AlignCorners if self.output <= 1 => 0.0,
            Coordinates::AlignCorners => y * (input - 1.0) / (length - 1.0),
            Coordinates::Asymmetric => y * denominator / numerator,
            Coordinates::TfHalfPixelForNn => (y + 0.5) * denominator / numerator,
            Coordinates::Crop { start, end } => {
                let part = match self.output {
                    1 => 0.5 * (start + end),
                    _ => (start * (output - 1.0 - y) + end * y) / (output - 1.0),
                };
                let x = part * (input - 1.0);
                return (0.0..=input - 1.0).contains(&x).then_some(x);
            }
        };
        Some(x)
    }

    /// Computes the taps of element `y` of the result, in ascending order. There are none if the
    /// element is outside of a crop.
    fn taps(&self, y: usize, filter: Filter, taps: &mut Vec<Tap>) {
        taps.clear();
        let Some(x) = self.place(y) else { return };
        let last = self.input as f64 - 1.0;
        let inside = |p: f64| p.clamp(0.0, last) as usize;
        let below = x.floor();
        let support = match filter.method {
            Method::Nearest(nearest) => {
                let part = x - below;
                let up = match nearest {
                    Nearest::RoundPreferFloor => part > 0.5,
                    Nearest::RoundPreferCeil => part >= 0.5,
                    Nearest::Floor => false,
                    Nearest::Ceil => part > 0.0,
                };
                let position = inside(if up { below + 1.0 } else { below });
                taps.push(Tap { position, weight: 1.0 });
                return;
            }
            Method::Linear => 1.0,
            Method::Cubic(_) => 2.0,
        };
        let squeeze = match filter.spread {
            Spread::Fixed => 1.0,
            Spread::WithScale => (self.ratio.numerator / self.ratio.denominator).min(1.0),
        };
        let reach = support / squeeze;
        let (mut p, end) = ((x - reach).ceil(), (x + reach).floor());
        let mut sum = 0.0;
        while p <= end {
            let weight = weight(filter.method, (p - x) * squeeze);
            let counts = filter.outside == Outside::Border || (0.0..=last).contains(&p);
            if weight != 0.0 && counts {
                sum += weight;
                let position = inside(p);
                match taps.last_mut() {
                    Some(tap) if tap.position == position => tap.weight += weight,
                    _ => taps.push(Tap { position, weight }),
                }
            }
            p += 1.0;
        }
        if sum == 0.0 {
            // No element is in reach, so the nearest one is used.
            taps.clear();
            taps.push(Tap { position: inside(x), weight: 1.0 });
            return;
        }
        for tap in taps {
            tap.weight /= sum;
        }
    }
}

/// Returns the weight of an element at a distance.
fn weight(method: Method, distance: f64) -> f64 {
    let d = distance.abs();
    match method {
        Method::Cubic(a) if d <= 1.0 => ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0,
        Method::Cubic(a) if d < 2.0 => ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a,
        Method::Cubic(_) => 0.0,
        _ => (1.0 - d).max(0.0),
    }
}

/// Resizes a tensor along some axes, each of which is named once. `extrapolation` is the value of
/// elements outside of a crop.
pub(crate) fn resize(
    x: &Literal,
    axes: &[ResizedAxis],
    filter: Filter,
    extrapolation: f64,
) -> Result<Literal, Failure> {
    let mut shape: Shape = x.shape().into();
    for a in axes {
        shape[a.axis] = a.output;
    }
    if !shape.contains(&0) && x.shape().contains(&0) {
        let (from, to) = (shape_text(x.shape()), shape_text(&shape));
        return Err(Failure::Mismatch(format!("there is nothing in {from} that could be resized to {to}")));
    }
    let crops = |a: &ResizedAxis| matches!(a.coordinates, Coordinates::Crop { .. });
    let leaves = |a: &ResizedAxis| crops(a) && (0..a.output).any(|y| a.place(y).is_none());
    if (shape.contains(&0) || !axes.iter().any(leaves))
        && let Some(result) = uniform(x, &shape)
    {
        return Ok(result);
    }
    let mut passes: Vec<ResizedAxis> = axes.iter().copied().filter(|a| !a.is_identity()).collect();
    if passes.is_empty() {
        return Ok(x.clone());
    }
    passes.sort_by_key(|a| a.output > a.input);
    // For a splat, only the positions outside of a crop need to be computed.
    let filter = match x.as_splat() {
        Some(_) => Filter { method: Method::Nearest(Nearest::Floor), ..filter },
        None => filter,
    };
    match filter.method {
        Method::Nearest(_) => dispatch!(any x.dtype(), T => {
            let outside = T::narrow(Calc::from_f64(extrapolation)).store();
            let (mut from, mut at) = start(x, &passes, elements::<<T as Scalar>::Raw>(x).to_vec())?;
            for a in &passes {
                from = pass(&from, &mut at, a, filter, outside, |taps, slab, out| {
                    if let [tap] = taps {
                        out.copy_from_slice(tap.of(slab, out.len()));
                    }
                })?;
            }
            dense(x.dtype(), &shape, &mut |out| out.copy_from_slice(&from))
        }),
        _ => dispatch!(float x.dtype(), T => mix::<T>(x, &shape, &passes, filter, extrapolation)),
    }
}

/// Returns the elements and the shape that the passes start from. A splat needs only one element
/// along each axis that is resized.
fn start<E: Copy>(x: &Literal, passes: &[ResizedAxis], elements: Vec<E>) -> Result<(Vec<E>, Shape), Failure> {
    let mut shape: Shape = x.shape().into();
    if x.as_splat().is_none() {
        return Ok((elements, shape));
    }
    for a in passes {
        shape[a.axis] = 1;
    }
    let count = element_count(&shape).ok_or(Failure::TooLarge)?;
    let first = *elements.first().ok_or(Failure::Empty)?;
    Ok((filled(count, first)?, shape))
}

fn mix<T: FloatNumber>(
    x: &Literal,
    shape: &[usize],
    passes: &[ResizedAxis],
    filter: Filter,
    extrapolation: f64,
) -> Result<Literal, Failure> {
    let outside = Calc::from_f64(extrapolation);
    let wide: Vec<T::Calc> = elements::<T::Raw>(x).iter().map(|&e| T::load(e).widen()).collect();
    let (mut from, mut at) = start(x, passes, wide)?;
    for a in passes {
        from = pass(&from, &mut at, a, filter, outside, |taps, slab, out| match taps {
            [tap] => out.copy_from_slice(tap.of(slab, out.len())),
            [first, rest @ ..] => {
                let inner = out.len();
                let start = first.of(slab, inner);
                let scale: T::Calc = Calc::from_f64(first.weight);
                for (o, &e) in out.iter_mut().zip(start) {
                    *o = e.mul(scale);
                }
                for tap in rest {
                    let scale: T::Calc = Calc::from_f64(tap.weight);
                    for (o, &e) in out.iter_mut().zip(tap.of(slab, inner)) {
                        *o = o.add(e.mul(scale));
                    }
                }
                // Equal elements keep their value, even if the rounded weights do not add up to 1.
                for (i, (o, &e)) in out.iter_mut().zip(start).enumerate() {
                    if rest.iter().all(|tap| tap.of(slab, inner)[i] == e) {
                        *o = e;
                    }
                }
            }
            [] => {}
        })?;
    }
    dense::<T::Raw>(x.dtype(), shape, &mut |out| {
        for (o, &e) in out.iter_mut().zip(&from) {
            *o = T::narrow(e).store();
        }
    })
}

/// The most elements along an axis whose taps are held at once.
const BLOCK: usize = 1 << 10;

/// Resizes along one axis. The arguments of `write` are the taps of a position along the axis, the
/// elements of the operand at one position along the axes before, and the elements of the result at
/// both positions.
fn pass<E: Copy>(
    from: &[E],
    shape: &mut Shape,
    a: &ResizedAxis,
    filter: Filter,
    outside: E,
    write: impl Fn(&[Tap], &[E], &mut [E]),
) -> Result<Vec<E>, Failure> {
    let Around { outer, extent, inner } = Around::new(shape, a.axis..a.axis + 1);
    shape[a.axis] = a.output;
    let count = element_count(shape).ok_or(Failure::TooLarge)?;
    let mut out = filled(count, outside)?;
    let mut taps: Vec<Vec<Tap>> = Vec::new();
    for block in (0..a.output).step_by(BLOCK) {
        let len = BLOCK.min(a.output - block);
        taps.resize_with(len.max(taps.len()), Vec::new);
        for (i, taps) in taps[..len].iter_mut().enumerate() {
            a.taps(block + i, filter, taps);
            // A splat has one element for all positions.
            taps.iter_mut().for_each(|t| t.position = t.position.min(extent - 1));
        }
        for o in 0..outer {
            let slab = &from[o * extent * inner..][..extent * inner];
            for (i, taps) in taps[..len].iter().enumerate() {
                write(taps, slab, &mut out[(o * a.output + block + i) * inner..][..inner]);
            }
        }
    }
    Ok(out)
}
