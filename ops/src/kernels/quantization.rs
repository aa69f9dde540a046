//! Quantization: an integer represents its distance from a zero point, times a scale. Scale and
//! zero point belong to the whole tensor, to an index along one axis, or to a block of indices
//! along one axis.

use std::ops::Range;

use anfora_ir::{DType, Element, Literal};

use super::arithmetic::{Binary, binary, dispatch, in_float32};
use super::cast::cast;
use super::convolution::convolve;
use super::elementwise::zip;
use super::matmul::matmul;
use super::number::{Calc, FloatNumber, Number, Scalar};
use super::reduction::{Axes, Reduce, reduce};
use super::strides::{broadcast_shapes, resolve_axis};
use super::view::{View, dense};
use super::window::Sliding;
use super::{Failure, shape_text, small_number};

/// The mapping from elements to scales.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Granularity {
    /// The numbers of elements before, along and after the axis.
    outer: usize,
    extent: usize,
    inner: usize,
    sharing: Sharing,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Sharing {
    /// All elements share one scale.
    All,
    /// The elements at one index along the axis share a scale.
    Index,
    /// The elements in a block of this extent along the axis share a scale.
    Block(usize),
}

impl Granularity {
    /// Returns the mapping for elements of shape `shape` and scales of shape `scales`.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub(crate) fn new(shape: &[usize], scales: &[usize], axis: i64, block: i64) -> Result<Granularity, Failure> {
        let block =
            usize::try_from(block).map_err(|_| Failure::Mismatch(format!("a block of {block} is out of range")))?;
        let mismatch = || {
            let of = if block == 0 { String::new() } else { format!(" of blocks of {block}") };
            let (scales, shape) = (shape_text(scales), shape_text(shape));
            Failure::Mismatch(format!("scales{of} of shape {scales} for elements of shape {shape} and axis {axis}"))
        };
        if block == 0 && matches!(scales, [] | [1]) {
            return Ok(Granularity { outer: 1, extent: 1, inner: 0, sharing: Sharing::All });
        }
        let axis = resolve_axis(axis, shape.len())?;
        let extent = shape[axis];
        if block == 0 {
            if scales != [extent] {
                return Err(mismatch());
            }
        } else {
            let fits = scales.len() == shape.len()
                && (0..shape.len()).all(|i| scales[i] == if i == axis { extent.div_ceil(block) } else { shape[i] });
            if !fits {
                return Err(mismatch());
            }
        }
        let product = |s: &[usize]| s.iter().fold(1usize, |n, &e| n.saturating_mul(e));
        let sharing = if block == 0 { Sharing::Index } else { Sharing::Block(block) };
        Ok(Granularity { outer: product(&shape[..axis]), extent, inner: product(&shape[axis + 1..]), sharing })
    }

    /// Returns the position of the first scale of a run of elements after the axis, and the
    /// distance to the next scale.
    fn scales(&self, outer: usize, index: usize) -> (usize, usize) {
        match self.sharing {
            Sharing::All => (0, 0),
            Sharing::Index => (index, 0),
            Sharing::Block(block) => ((outer * self.extent.div_ceil(block) + index / block) * self.inner, 1),
        }
    }
}

/// Scales or zero points.
struct Parameters<'a, T: Scalar> {
    view: View<'a, T>,
    granularity: Granularity,
}

impl<'a, T: Scalar> Parameters<'a, T> {
    fn new(x: &Literal, parameters: &'a Literal, axis: i64, block: i64) -> Result<Parameters<'a, T>, Failure> {
        let granularity = Granularity::new(x.shape(), parameters.shape(), axis, block)?;
        Ok(Parameters { view: View::new(parameters), granularity })
    }

    fn is_one(&self) -> bool {
        self.view.splat.is_some() || self.granularity.sharing == Sharing::All
    }
}

/// Applies `f` to every element, its scale and its zero point.
fn each<X: Scalar, S: Scalar, R: Scalar>(
    x: &Literal,
    scales: &Parameters<'_, S>,
    zeros: &Parameters<'_, f64>,
    f: impl Fn(X, S, f64) -> R,
) -> Result<Literal, Failure> {
    let view = View::<X>::new(x);
    let is_uniform = view.splat.is_some() && scales.is_one() && zeros.is_one();
    if is_uniform && !x.shape().contains(&0) {
        let one = f(view.get(0), scales.view.get(0), zeros.view.get(0));
        return Ok(Literal::splat(x.shape(), one));
    }
    dense::<R::Raw>(R::DTYPE, x.shape(), &mut |out| {
        for_each_scaled_run(out.len(), scales.granularity, zeros.granularity, &mut |run, [scale, zero], [s, z]| {
            for (i, o) in out[run.clone()].iter_mut().enumerate() {
                let (scale, zero) = (scales.view.get(scale + i * s), zeros.view.get(zero + i * z));
                *o = f(view.get(run.start + i), scale, zero).store();
            }
        });
    })
}

/// Visits `count` elements in runs. `visit` is called with the positions of a run, the positions of
/// the scale and the zero point of its first element, and the strides of scales and zero points in
/// the run. A stride is 0 if the elements of the run share one.
fn for_each_scaled_run(
    count: usize,
    scales: Granularity,
    zeros: Granularity,
    visit: &mut dyn FnMut(Range<usize>, [usize; 2], [usize; 2]),
) {
    if count == 0 {
        return;
    }
    // The granularity of scales or zero points that are not for the whole tensor. If both are not,
    // they divide the tensor in the same way.
    let grid = if scales.sharing == Sharing::All { zeros } else { scales };
    let inner = if grid.sharing == Sharing::All { count } else { grid.inner };
    // If no elements follow the axis, the elements at several of its indices are one run.
    let indices = match grid.sharing {
        _ if inner > 1 => 1,
        Sharing::Block(extent) => extent,
        Sharing::All | Sharing::Index => grid.extent,
    };
    let stride = |of: Granularity, after| if inner > 1 { after } else { usize::from(of.sharing == Sharing::Index) };
    let mut done = 0;
    for outer in 0..grid.outer {
        for index in (0..grid.extent).step_by(indices) {
            let ((scale, scale_step), (zero, zero_step)) = (scales.scales(outer, index), zeros.scales(outer, index));
            let len = inner * indices.min(grid.extent - index);
            visit(done..done + len, [scale, zero], [stride(scales, scale_step), stride(zeros, zero_step)]);
            done += len;
        }
    }
}

/// Returns zero points as float64, which represents all integers of up to 32 bits.
fn zero_points(zero: Option<&Literal>) -> Result<Literal, Failure> {
    zero.map_or(Ok(Literal::scalar(0f64)), |z| cast(z, DType::Float64))
}

/// The axis along which elements share scales and zero points.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Along {
    pub(crate) axis: i64,
    /// The extent of a block that shares them; 0 if only elements of one index share them.
    pub(crate) block: i64,
}

/// Returns `round(x / scale) + zero`, saturated to the range of the integer type `to`. The quotient
/// is computed in `precision`, and NaN becomes 0. If `to` is a type of small floats, the sum is
/// rounded to it, and `saturate` is the treatment of numbers that are out of range.
pub(crate) fn quantize(
    x: &Literal,
    scale: &Literal,
    zero: Option<&Literal>,
    along: Along,
    precision: DType,
    to: DType,
    saturate: bool,
) -> Result<Literal, Failure> {
    let (x, scale, zero) = (cast(x, precision)?, cast(scale, precision)?, zero_points(zero)?);
    fn quotient<T: FloatNumber>(x: T, scale: T) -> f64 {
        T::narrow(x.widen().div(scale.widen())).widen().into()
    }
    let is_rounded = to.is_integer() || to.is_small_integer();
    let sum = |quotient: f64, zero: f64| match zero {
        _ if is_rounded => quotient.round_ties_even() + zero,
        // Keeps the sign of a zero.
        0.0 => quotient,
        _ => quotient + zero,
    };
    dispatch!(float precision, T => {
        let scales = Parameters::<T>::new(&x, &scale, along.axis, along.block)?;
        let zeros = Parameters::<f64>::new(&x, &zero, along.axis, if zero.rank() < 2 { 0 } else { along.block })?;
        if to.is_small_number() {
            let encode = small_number::nearest(to, saturate)?;
            let codes = each(&x, &scales, &zeros, |x: T, s: T, z| encode(sum(quotient(x, s), z)))?;
            return small_number::from_codes(&codes, to);
        }
        dispatch!(integer to, R => each(&x, &scales, &zeros, |x: T, s: T, z| sum(quotient(x, s), z) as R))
    })
}

/// Returns `(x - zero) * scale`, computed in the element type of the result.
pub(crate) fn dequantize(
    x: &Literal,
    scale: &Literal,
    zero: Option<&Literal>,
    along: Along,
    to: DType,
) -> Result<Literal, Failure> {
    fn typed<X: Scalar>(
        x: &Literal,
        [scale, zero]: [&Literal; 2],
        along: Along,
        wide: impl Fn(X) -> f64,
    ) -> Result<Literal, Failure> {
        dispatch!(wide float scale.dtype(), R => {
            let scales = Parameters::<R>::new(x, scale, along.axis, along.block)?;
            let zeros = Parameters::<f64>::new(x, zero, along.axis, if zero.rank() < 2 { 0 } else { along.block })?;
            each(x, &scales, &zeros, |x: X, s: R, z| {
                let distance = <R as Number>::Calc::from_f64(wide(x) - z);
                R::narrow(Calc::mul(distance, s.widen()))
            })
        })
    }
    let (scale, zero) = (cast(scale, to)?, zero_points(zero)?);
    in_float32(&[&scale], &|scale| {
        let parameters = [scale[0], &zero];
        if x.dtype().is_small_number() {
            let x = small_number::widened(x)?;
            return match x.dtype() {
                DType::Int8 => typed(&x, parameters, along, |e: i8| e.into()),
                _ => typed(&x, parameters, along, |e: f32| e.into()),
            };
        }
        dispatch!(integer x.dtype(), X => typed(x, parameters, along, |e: X| e as f64))
    })
}

/// Quantizes `x` to uint8. Returns the quantized tensor, the scale and the zero point. The range of
/// the scale includes the least and the greatest element of `x`, and zero.
pub(crate) fn dynamic_quantize(x: &Literal) -> Result<Vec<Literal>, Failure> {
    fn range<T: FloatNumber>(x: &Literal) -> Result<[Literal; 2], Failure> {
        let bound = |how| -> Result<T::Calc, Failure> {
            if x.element_count() == 0 {
                return Ok(T::Calc::ZERO);
            }
            let bound = reduce(how, x, &Axes::from(0, x.rank()))?;
            Ok(View::<T>::new(&bound).get(0).widen())
        };
        let (most, least) = (bound(Reduce::Max)?.larger(T::Calc::ZERO), bound(Reduce::Min)?.smaller(T::Calc::ZERO));
        let scale = T::narrow(most.sub(least).div(T::Calc::from_f64(255.0)));
        let zero: f64 = T::narrow(T::Calc::ZERO.sub(least).div(scale.widen())).widen().into();
        Ok([Literal::splat(&[], scale), Literal::scalar(zero.clamp(0.0, 255.0).round_ties_even() as u8)])
    }
    let [scale, zero] = dispatch!(float x.dtype(), T => range::<T>(x))?;
    let along = Along { axis: 0, block: 0 };
    let y = quantize(x, &scale, Some(&zero), along, x.dtype(), DType::UInt8, true)?;
    Ok(vec![y, scale, zero])
}

/// Returns a parameter of the rows of a matrix (its last axis but one) in a shape that broadcasts
/// with matrices. A list has an entry for each row.
fn by_row(parameters: &Literal) -> Result<Literal, Failure> {
    match parameters.shape() {
        &[rows] => parameters.reshaped(&[rows, 1]).map_err(|_| Failure::TooLarge),
        _ => Ok(parameters.clone()),
    }
}

/// Returns a parameter of the features of weights `(m, …)` or of results, which have a batch axis
/// before the features, in a shape that broadcasts.
fn by_feature(parameters: &Literal, spatial: usize) -> Result<Literal, Failure> {
    match parameters.shape() {
        &[features] => {
            let shape = [&[features][..], &vec![1; spatial]].concat();
            parameters.reshaped(&shape).map_err(|_| Failure::TooLarge)
        }
        _ => Ok(parameters.clone()),
    }
}

/// Fails unless the parameters broadcast to the shape of their elements without changing it.
fn belong(what: &str, parameters: &[&Literal], shape: &[usize]) -> Result<(), Failure> {
    for p in parameters {
        if !broadcast_shapes(shape, p.shape()).is_ok_and(|all| all.as_slice() == shape) {
            let (found, shape) = (shape_text(p.shape()), shape_text(shape));
            return Err(Failure::Mismatch(format!("{what} of shape {found} for elements of shape {shape}")));
        }
    }
    Ok(())
}

/// Returns the distances of 8-bit integers from their zero points, which broadcast, as int32.
fn centred(x: &Literal, zero: Option<Literal>) -> Result<Literal, Failure> {
    let Some(zero) = zero else { return cast(x, DType::Int32) };
    belong("zero points", &[&zero], x.shape())?;
    binary(Binary::Subtract, &cast(x, DType::Int32)?, &cast(&zero, DType::Int32)?)
}

/// Returns the int32 product of the distances of 8-bit integers from their zero points.
pub(crate) fn matmul_integer(
    a: &Literal,
    b: &Literal,
    a_zero: Option<&Literal>,
    b_zero: Option<&Literal>,
) -> Result<Literal, Failure> {
    let a_zero = a_zero.map(|z| if a.rank() > 1 { by_row(z) } else { Ok(z.clone()) }).transpose()?;
    matmul(&centred(a, a_zero)?, &centred(b, b_zero.cloned())?)
}

/// Returns the int32 convolution of the distances of 8-bit integers from their zero points. Padding
/// represents zero.
pub(crate) fn convolve_integer(
    x: &Literal,
    w: &Literal,
    x_zero: Option<&Literal>,
    w_zero: Option<&Literal>,
    bias: Option<&Literal>,
    groups: i64,
    sliding: Sliding<'_>,
) -> Result<Literal, Failure> {
    let w_zero = w_zero.map(|z| by_feature(z, w.rank().saturating_sub(1))).transpose()?;
    convolve(&centred(x, x_zero.cloned())?, &centred(w, w_zero)?, bias, groups, sliding)
}

/// The scale and the zero point of a quantized tensor.
#[derive(Copy, Clone)]
pub(crate) struct Scaled<'a> {
    pub(crate) scale: &'a Literal,
    pub(crate) zero: &'a Literal,
}

/// Returns `round(sums * (a_scale * b_scale / y_scale)) + zero`, saturated to the range of the
/// integer type `to`. The factor is computed in the element type of the scales, and the rest in
/// float64.
fn requantize(sums: &Literal, scales: [&Literal; 2], y: Scaled<'_>, to: DType) -> Result<Literal, Failure> {
    fn rounded<T: FloatNumber>(sums: &Literal, factor: &Literal) -> Result<Literal, Failure> {
        zip(sums, factor, |s: i32, f: T| (f64::from(s) * f.widen().into()).round_ties_even())
    }
    belong("scales", &[scales[0], scales[1], y.scale], sums.shape())?;
    belong("zero points", &[y.zero], sums.shape())?;
    let product = binary(Binary::Multiply, scales[0], scales[1])?;
    let factor = binary(Binary::Divide, &product, y.scale)?;
    let steps = dispatch!(float factor.dtype(), T => rounded::<T>(sums, &factor))?;
    let zero = cast(y.zero, f64::DTYPE)?;
    dispatch!(integer to, R => zip(&steps, &zero, |s: f64, z: f64| (s + z) as R))
}

/// Returns the product of quantized matrices.
pub(crate) fn quantized_matmul(
    a: &Literal,
    of_a: Scaled<'_>,
    b: &Literal,
    of_b: Scaled<'_>,
    y: Scaled<'_>,
) -> Result<Literal, Failure> {
    let sums = matmul_integer(a, b, Some(of_a.zero), Some(of_b.zero))?;
    let rows = |p: &Literal| if a.rank() > 1 && b.rank() > 1 { by_row(p) } else { Ok(p.clone()) };
    let (y_scale, y_zero) = (rows(y.scale)?, rows(y.zero)?);
    let y = Scaled { scale: &y_scale, zero: &y_zero };
    requantize(&sums, [&rows(of_a.scale)?, of_b.scale], y, y.zero.dtype())
}

/// Returns the convolution of quantized tensors. The bias is int32, with the scale of the sums.
pub(crate) fn quantized_convolve(
    [x, w]: [&Literal; 2],
    of_x: Scaled<'_>,
    of_w: Scaled<'_>,
    y: Scaled<'_>,
    bias: Option<&Literal>,
    groups: i64,
    sliding: Sliding<'_>,
) -> Result<Literal, Failure> {
    let sums = convolve_integer(x, w, Some(of_x.zero), Some(of_w.zero), bias, groups, sliding)?;
    let spatial = sums.rank().saturating_sub(2);
    requantize(&sums, [of_x.scale, &by_feature(of_w.scale, spatial)?], y, y.zero.dtype())
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::*;

    fn lit<T: Element>(shape: &[usize], values: &[T]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    const ALL: Along = Along { axis: 1, block: 0 };

    #[test]
    fn zero_points_and_scales_do_not_repeat_elements() {
        let (a, b) = (lit(&[1, 2], &[1u8, 2]), lit(&[2, 1], &[3u8, 4]));
        let many = Literal::splat(&[1 << 31], 3u8);
        let error = matmul_integer(&a, &b, Some(&many), None).unwrap_err().to_string();
        assert_eq!(error, "zero points of shape (2147483648, 1) for elements of shape (1, 2)");
        let (one, zero) = (Literal::scalar(1f32), Literal::scalar(0u8));
        let (rows, columns) = (Literal::splat(&[1 << 20, 1], 1f32), Literal::splat(&[1, 1 << 20], 1f32));
        let y = Scaled { scale: &one, zero: &zero };
        let [of_a, of_b] = [&rows, &columns].map(|scale| Scaled { scale, zero: &zero });
        assert!(matches!(quantized_matmul(&a, of_a, &b, of_b, y), Err(Failure::Mismatch(_))));
    }

    #[test]
    fn rounds_to_even_and_saturates() {
        let x = lit(&[7], &[0.5f32, 1.5, -2.5, 300.0, -300.0, f32::NAN, f32::INFINITY]);
        let one = Literal::scalar(1f32);
        let q = |zero, to| quantize(&x, &one, zero, ALL, DType::Float32, to, true).unwrap();
        assert_eq!(q(None, DType::Int8), lit(&[7], &[0i8, 2, -2, 127, -128, 0, 127]));
        // The zero point is added after rounding.
        let zero = Literal::scalar(1u8);
        assert_eq!(q(Some(&zero), DType::UInt8), lit(&[7], &[1u8, 3, 0, 255, 0, 0, 255]));
        // The operands are converted to the type of the computation: 2051 becomes 2052 in float16.
        let x = Literal::scalar(2051i32);
        let two = Literal::scalar(f16::from_f32(2.0));
        let q = quantize(&x, &two, None, ALL, DType::Float16, DType::Int16, true).unwrap();
        assert_eq!(q, Literal::scalar(1026i16));
    }

    #[test]
    fn axes_and_blocks() {
        let x = lit(&[2, 3], &[2f32, 4., 6., 8., 10., 12.]);
        let q = |scale: &Literal, axis, block| {
            quantize(&x, scale, None, Along { axis, block }, DType::Float32, DType::UInt8, true)
        };
        assert_eq!(q(&lit(&[2], &[1f32, 2.0]), 0, 0).unwrap(), lit(&[2, 3], &[2u8, 4, 6, 4, 5, 6]));
        assert_eq!(q(&lit(&[3], &[1f32, 2.0, 3.0]), -1, 0).unwrap(), lit(&[2, 3], &[2u8, 2, 2, 8, 5, 4]));
        let scale = lit(&[2, 2], &[1f32, 2., 4., 6.]);
        assert_eq!(q(&scale, 1, 2).unwrap(), lit(&[2, 3], &[2u8, 4, 3, 2, 2, 2]));
        assert_eq!(q(&scale, -1, 2), q(&scale, 1, 2));
        assert_eq!(q(&lit(&[1, 3], &[1f32, 2., 4.]), 0, 2).unwrap(), lit(&[2, 3], &[2u8, 2, 2, 8, 5, 3]));
        let (one, zeros) = (Literal::scalar(2f32), lit(&[3], &[10u8, 20, 30]));
        let along = Along { axis: 1, block: 0 };
        let moved = quantize(&x, &one, Some(&zeros), along, DType::Float32, DType::UInt8, true);
        assert_eq!(moved.unwrap(), lit(&[2, 3], &[11u8, 22, 33, 14, 25, 36]));
        for (scale, axis, block) in [(&scale, 0, 2), (&scale, 1, 4), (&lit(&[2], &[1f32, 2.]), 1, 0), (&scale, 2, 2)] {
            assert!(q(scale, axis, block).is_err(), "{axis} {block}");
        }
        let back = dequantize(&q(&scale, 1, 2).unwrap(), &scale, None, Along { axis: 1, block: 2 }, DType::Float64);
        assert_eq!(back.unwrap(), lit(&[2, 3], &[2f64, 4., 6., 8., 8., 12.]));
    }

    #[test]
    fn distances_do_not_wrap() {
        let x = lit(&[2], &[-128i8, 127]);
        let (scale, zero) = (Literal::scalar(0.5f32), Literal::scalar(127i8));
        let y = dequantize(&x, &scale, Some(&zero), ALL, DType::Float32).unwrap();
        assert_eq!(y, lit(&[2], &[-127.5f32, 0.0]));
        let huge = Literal::splat(&[1 << 40, 1 << 20], 3i8);
        assert!(dequantize(&huge, &scale, Some(&zero), ALL, DType::Float32).unwrap().as_splat().is_some());
        let (a, b) = (lit(&[1, 2], &[255u8, 0]), lit(&[2, 1], &[-128i8, 127]));
        let sums = matmul_integer(&a, &b, Some(&Literal::scalar(3u8)), None).unwrap();
        assert_eq!(sums, lit(&[1, 1], &[252 * -128 - 3 * 127]));
    }

    #[test]
    fn dynamic_ranges_have_zero() {
        let q = |x: &[f32]| dynamic_quantize(&lit(&[x.len()], x)).unwrap();
        let r = q(&[0.0, 2.0, -3.0, -2.5, 1.34, 0.5]);
        assert_eq!(r[0], lit(&[6], &[153u8, 255, 0, 26, 221, 179]));
        assert_eq!((&r[1], &r[2]), (&Literal::scalar(5f32 / 255.0), &Literal::scalar(153u8)));
        assert_eq!(q(&[1.0, 2.55])[2], Literal::scalar(0u8));
        assert_eq!(q(&[])[0].shape(), &[0]);
        assert_eq!(q(&[0.0])[0], lit(&[1], &[0u8]));
    }

    #[test]
    fn the_padding_of_a_convolution_is_the_zero_point() {
        let x = lit(&[1, 1, 3], &[2u8, 3, 4]);
        let w = lit(&[2, 1, 2], &[1i8, 2, 3, 4]);
        let sliding = Sliding {
            kernel: &[],
            strides: &[1],
            padding: &[1, 0],
            dilation: &[1],
            rounding: super::super::window::Rounding::Floor,
        };
        let (x_zero, w_zero) = (Literal::scalar(2u8), lit(&[2], &[0i8, 1]));
        let sums = convolve_integer(&x, &w, Some(&x_zero), Some(&w_zero), None, 1, sliding).unwrap();
        assert_eq!(sums, lit(&[1, 2, 3], &[0, 2, 5, 0, 3, 8]));
    }
}
