//! Sampling of images at the positions of a grid.

use anfora_ir::{DType, Literal, element_count};

use super::cast::cast;
use super::view::{Output, View};
use super::working::{Working, check_steps, product, working_type};
use super::{Failure, shape_text};

/// The interpolation between elements.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    Nearest,
    Linear,
    Cubic,
}

/// The value of positions outside of the image.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// The attributes of a sampling.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sampling {
    pub(crate) method: Method,
    pub(crate) outside: Outside,
    /// True if -1 and 1 are the centres of the outermost elements, and not their outer edges.
    pub(crate) align_corners: bool,
}

impl Sampling {
    /// Returns the sampling with these attributes.
    ///
    /// # Errors
    /// If a name is not known.
    pub(crate) fn new(method: &str, outside: &str, align_corners: bool) -> Result<Sampling, Failure> {
        let unknown = |name: &str, value: &str| Failure::Mismatch(format!("`{name}` is `{value}`, which is not known"));
        let method = match method {
            "nearest" => Method::Nearest,
            "linear" => Method::Linear,
            "cubic" => Method::Cubic,
            _ => return Err(unknown("mode", method)),
        };
        let outside = match outside {
            "zeros" => Outside::Zeros,
            "border" => Outside::Border,
            "reflection" => Outside::Reflection,
            _ => return Err(unknown("padding_mode", outside)),
        };
        Ok(Sampling { method, outside, align_corners })
    }

    fn taps(&self) -> usize {
        match self.method {
            Method::Nearest => 1,
            Method::Linear => 2,
            Method::Cubic => 4,
        }
    }

    /// Returns the lowest and the highest position of an axis.
    fn borders<T: Working>(&self, extent: usize) -> (T, T) {
        let end = T::from_f64(extent as f64);
        match self.align_corners {
            true => (T::ZERO, end.sub(T::ONE)),
            false => (T::from_f64(-0.5), end.sub(T::from_f64(0.5))),
        }
    }

    /// Returns the position in an axis of a number of the grid.
    fn position<T: Working>(&self, number: T, extent: usize) -> T {
        let (one, two, end) = (T::ONE, T::from_f64(2.0), T::from_f64(extent as f64));
        let position = match self.align_corners {
            true => number.add(one).div(two).mul(end.sub(one)),
            false => number.add(one).mul(end).sub(one).div(two),
        };
        let position = if self.method == Method::Nearest { position.round() } else { position };
        let (low, high) = self.borders::<T>(extent);
        match self.outside {
            _ if !(position < low || position > high) => position,
            Outside::Zeros => position,
            Outside::Border => position.larger(T::ZERO).smaller(end.sub(one)),
            Outside::Reflection => reflect(position, low, high),
        }
    }

    /// Returns the element of an axis that an index stands for, which may be outside; `None` if its
    /// value is 0.
    fn index<T: Working>(&self, index: T, extent: usize) -> Option<usize> {
        let last = extent.checked_sub(1)?;
        let value: f64 = index.into();
        match self.outside {
            Outside::Zeros if value >= 0.0 && value <= last as f64 => Some(value as usize),
            Outside::Zeros => None,
            Outside::Border => Some((value as usize).min(last)),
            Outside::Reflection => {
                let (low, high) = self.borders::<T>(extent);
                let value: f64 = reflect(index, low, high).into();
                Some((value as usize).min(last))
            }
        }
    }
}

/// Reflects a position at two borders until it is between them.
fn reflect<T: Working>(position: T, low: T, high: T) -> T {
    let range = high.sub(low);
    let (distance, from_low) = match () {
        () if position < low => (low.sub(position), true),
        () if position > high => (position.sub(high), false),
        () => return position,
    };
    if range <= T::ZERO {
        return low;
    }
    let times = distance.div(range).trunc();
    let rest = distance.sub(times.mul(range));
    let is_even = times.rem(T::from_f64(2.0)) == T::ZERO;
    if is_even == from_low { low.add(rest) } else { high.sub(rest) }
}

/// Returns the weights of the elements around a position, of which `rest` is the part after the
/// element before it.
fn weights<T: Working>(method: Method, rest: T) -> [T; 4] {
    let number = |x: f64| T::from_f64(x);
    match method {
        Method::Nearest => [T::ONE, T::ZERO, T::ZERO, T::ZERO],
        Method::Linear => [T::ONE.sub(rest), rest, T::ZERO, T::ZERO],
        Method::Cubic => {
            let alpha = number(-0.75);
            let outer = |x: T| {
                let first = alpha.mul(x).sub(number(5.0).mul(alpha));
                first.mul(x).add(number(8.0).mul(alpha)).mul(x).sub(number(4.0).mul(alpha))
            };
            let inner = |x: T| {
                let first = alpha.add(number(2.0)).mul(x).sub(alpha.add(number(3.0)));
                first.mul(x).mul(x).add(T::ONE)
            };
            [outer(rest.add(T::ONE)), inner(rest), inner(T::ONE.sub(rest)), outer(number(2.0).sub(rest))]
        }
    }
}

/// Returns the number of steps: the elements around each position. `None` if it overflows, or the
/// shapes do not fit.
pub(crate) fn steps(x: &Literal, grid: &Literal, how: Sampling) -> Option<u128> {
    let axes = u32::try_from(x.rank().checked_sub(2)?).ok()?;
    let around = (how.taps() as u128).checked_pow(axes)?;
    let places = grid.shape().split_last()?.1.get(1..)?;
    let channels = product(&x.shape()[..2])?;
    product(places)?.max(1).checked_mul(channels)?.checked_mul(around)
}

/// Samples `x` of shape `(batch, channels, …)` at the positions in the last axis of `grid`, of
/// which the innermost comes first.
pub(crate) fn grid_sample(x: &Literal, grid: &Literal, how: Sampling) -> Result<Literal, Failure> {
    let fits = x.rank() >= 3
        && grid.rank() == x.rank()
        && grid.shape()[0] == x.shape()[0]
        && grid.shape()[x.rank() - 1] == x.rank() - 2;
    if !fits {
        let (x, grid) = (shape_text(x.shape()), shape_text(grid.shape()));
        return Err(Failure::Mismatch(format!("a grid of shape {grid} for an image of shape {x}")));
    }
    let count = steps(x, grid, how).filter(|_| x.rank() < 9).ok_or(Failure::TooLong)?;
    check_steps(&[x, grid], &[], Some(count))?;
    let work = match [working_type(x.dtype())?, working_type(grid.dtype())?] {
        [DType::Float32, DType::Float32] => DType::Float32,
        _ => DType::Float64,
    };
    let (own, grid) = (cast(x, work)?, cast(grid, work)?);
    let y = match work {
        DType::Float64 => run::<f64>(&own, &grid, how)?,
        _ => run::<f32>(&own, &grid, how)?,
    };
    cast(&y, x.dtype())
}

fn run<T: Working>(x: &Literal, grid: &Literal, how: Sampling) -> Result<Literal, Failure> {
    let axes = x.rank() - 2;
    let (outer, extents) = x.shape().split_at(2);
    let places = &grid.shape()[1..=axes];
    let shape: Vec<usize> = outer.iter().chain(places).copied().collect();
    let mut out = Output::<T>::new(&shape)?;
    if shape.contains(&0) {
        return out.finish();
    }
    let (image, numbers) = (View::<T>::new(x), View::<T>::new(grid));
    let count = |extents: &[usize]| element_count(extents).ok_or(Failure::TooLarge);
    let (size, area) = (count(extents)?, count(places)?);
    let taps = how.taps();
    let mut around = vec![T::ZERO; taps.pow(axes as u32)];
    let mut indices = vec![[None; 4]; axes];
    let mut factors = vec![[T::ZERO; 4]; axes];
    for (batch, place) in (0..outer[0]).flat_map(|b| (0..area).map(move |p| (b, p))) {
        // The elements around the position, and their weights, by axis.
        for (axis, &extent) in extents.iter().enumerate() {
            let number = numbers.get((batch * area + place) * axes + axes - 1 - axis);
            let position = how.position(number, extent);
            let first = position.floor();
            factors[axis] = weights(how.method, position.sub(first));
            let before = if how.method == Method::Cubic { T::ONE } else { T::ZERO };
            for (tap, index) in indices[axis][..taps].iter_mut().enumerate() {
                *index = how.index(first.sub(before).add(T::from_f64(tap as f64)), extent);
            }
        }
        for channel in 0..outer[1] {
            let start = (batch * outer[1] + channel) * size;
            for (number, value) in around.iter_mut().enumerate() {
                *value = gathered(number, &indices, extents, taps).map_or(T::ZERO, |at| image.get(start + at));
            }
            // Each axis, the innermost first, is reduced to one element.
            let mut count = around.len();
            for factor in factors.iter().rev() {
                for i in 0..count / taps {
                    let products = (0..taps).map(|t| factor[t].mul(around[i * taps + t]));
                    around[i] = products.fold(T::ZERO, |sum, p| sum.add(p));
                }
                count /= taps;
            }
            out.raw()[(batch * outer[1] + channel) * area + place] = T::narrow(around[0]).store();
        }
    }
    out.finish()
}

/// Returns the position in a channel of an element around a position of the grid.
fn gathered(number: usize, indices: &[[Option<usize>; 4]], extents: &[usize], taps: usize) -> Option<usize> {
    let (mut rest, mut at, mut stride) = (number, 0, 1);
    for (index, &extent) in indices.iter().zip(extents).rev() {
        at += index[rest % taps]? * stride;
        rest /= taps;
        stride *= extent;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lit(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    #[test]
    fn positions_outside_are_zero_clamped_or_reflected() {
        let x = lit(&[1, 1, 4], &[1., 2., 3., 4.]);
        let grid = lit(&[1, 3, 1], &[-1.0, 1.5, 0.0]);
        let sample = |method, outside, align| grid_sample(&x, &grid, Sampling::new(method, outside, align).unwrap());
        assert_eq!(sample("linear", "zeros", false).unwrap(), lit(&[1, 1, 3], &[0.5, 0.0, 2.5]));
        assert_eq!(sample("linear", "border", false).unwrap(), lit(&[1, 1, 3], &[1.0, 4.0, 2.5]));
        assert_eq!(sample("linear", "reflection", true).unwrap(), lit(&[1, 1, 3], &[1.0, 3.25, 2.5]));
        // Halves are rounded to the even place.
        assert_eq!(sample("nearest", "zeros", false).unwrap(), lit(&[1, 1, 3], &[1.0, 0.0, 3.0]));
        let many = Literal::splat(&[1, 1 << 40, 4], 1f32);
        let places = Literal::splat(&[1, 1 << 40, 1], 0f32);
        let how = Sampling::new("linear", "zeros", false).unwrap();
        assert_eq!(grid_sample(&many, &places, how), Err(Failure::TooLong));
    }
}
