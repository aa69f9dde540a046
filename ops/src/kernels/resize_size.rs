//! The size of a resized tensor, from extents or scales.

use anfora_ir::{DType, Literal};
use smallvec::SmallVec;

use super::Failure;
use super::creation::shape_operand;
use super::resize::Ratio;

/// The most axes that can be named, far more than any model has.
const MAX_RANK: usize = 1 << 12;

/// The size of the result, with an entry for each axis.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Size {
    /// The extents.
    Extents(Vec<usize>),
    /// The ratios of the extents to those of the operand.
    Scales(Vec<f32>),
}

/// The treatment of the aspect ratio.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum AspectRatio {
    /// Axes may be resized by different ratios.
    Stretch,
    /// All axes are resized by one ratio, so that no extent is larger than requested.
    NotLarger,
    /// All axes are resized by one ratio, so that no extent is smaller than requested.
    NotSmaller,
}

impl Size {
    /// Reads a size from a rank-1 tensor of int64 for extents or of float32 for scales.
    ///
    /// # Errors
    /// If the tensor has another rank or element type, an extent is negative, or a scale is not
    /// positive and finite.
    pub(crate) fn read(size: &Literal) -> Result<Size, Failure> {
        if size.dtype() != DType::Float32 {
            let extent = |e: i64| usize::try_from(e).map_err(|_| Failure::Mismatch(format!("extent {e} is negative")));
            return Ok(Size::Extents(shape_operand(size)?.into_iter().map(extent).collect::<Result<_, _>>()?));
        }
        if size.rank() != 1 || size.element_count() > MAX_RANK {
            return Err(Failure::Mismatch("scales are a short list".into()));
        }
        let scales = size.elements::<f32>().ok_or(Failure::ElementType(size.dtype()))?;
        match scales.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            Some(bad) => Err(Failure::Mismatch(format!("scale {bad} is not positive and finite"))),
            None => Ok(Size::Scales(scales.into_owned())),
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Size::Extents(e) => e.len(),
            Size::Scales(s) => s.len(),
        }
    }

    /// Returns the extent of the result on each axis, and its ratio to the extent of the operand.
    ///
    /// # Errors
    /// If the number of entries differs from that of `inputs`, an extent is too large, or the
    /// aspect ratio of a tensor without elements must be kept.
    pub(crate) fn apply(
        &self,
        aspect: AspectRatio,
        inputs: &[usize],
    ) -> Result<SmallVec<[(usize, Ratio); 6]>, Failure> {
        if self.len() != inputs.len() {
            return Err(Failure::Mismatch(format!("a size of {} entries for {} axes", self.len(), inputs.len())));
        }
        match self {
            Size::Scales(scales) => scales
                .iter()
                .zip(inputs)
                .map(|(&s, &i)| Ok((scaled(i, s)?, Ratio { numerator: s.into(), denominator: 1.0 })))
                .collect(),
            Size::Extents(extents) if aspect == AspectRatio::Stretch => {
                Ok(extents.iter().zip(inputs).map(|(&e, &i)| (e, quotient(e, i))).collect())
            }
            Size::Extents(extents) => {
                if inputs.contains(&0) {
                    return Err(Failure::Mismatch("a tensor without elements has no aspect ratio".into()));
                }
                let less =
                    |a: (usize, usize), b: (usize, usize)| (a.0 as u128 * b.1 as u128) < (b.0 as u128 * a.1 as u128);
                let ratios = extents.iter().copied().zip(inputs.iter().copied());
                let ratio = ratios.reduce(|a, b| match aspect {
                    AspectRatio::NotSmaller => {
                        if less(a, b) {
                            b
                        } else {
                            a
                        }
                    }
                    _ => {
                        if less(b, a) {
                            b
                        } else {
                            a
                        }
                    }
                });
                let Some((to, from)) = ratio else { return Ok(SmallVec::new()) };
                let half_up = |input: usize| {
                    let double = (to as u128 * input as u128).checked_mul(2)?.checked_add(from as u128)?;
                    usize::try_from(double / (2 * from as u128)).ok()
                };
                let extent = |&i: &usize| Ok((half_up(i).ok_or(Failure::TooLarge)?, quotient(to, from)));
                inputs.iter().map(extent).collect()
            }
        }
    }
}

fn quotient(to: usize, from: usize) -> Ratio {
    Ratio { numerator: to as f64, denominator: from as f64 }
}

/// Returns an extent times a scale, rounded down. Where the product is not exact, it is computed in
/// float32.
///
/// # Errors
/// If it is too large.
pub(crate) fn scaled(extent: usize, scale: f32) -> Result<usize, Failure> {
    let result = match whole(scale) {
        Some(Whole::Times(n)) => extent.checked_mul(n),
        Some(Whole::Part(n)) => Some(extent / n),
        None => {
            let product = extent as f32 * scale;
            (product < 9e18).then_some(product as usize)
        }
    };
    result.filter(|&r| i64::try_from(r).is_ok()).ok_or(Failure::TooLarge)
}

/// A scale that multiplies or divides by an integer without rounding.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Whole {
    Times(usize),
    /// Division by a power of two.
    Part(usize),
}

/// Returns the scale as a [`Whole`], if it is one.
pub(crate) fn whole(scale: f32) -> Option<Whole> {
    let is_power_of_two = scale.is_normal() && scale.to_bits().trailing_zeros() >= f32::MANTISSA_DIGITS - 1;
    if scale.fract() == 0.0 && (1.0..1e9).contains(&scale) {
        Some(Whole::Times(scale as usize))
    } else if is_power_of_two && (1e-9..1.0).contains(&scale) {
        Some(Whole::Part((1.0 / scale) as usize))
    } else {
        None
    }
}
