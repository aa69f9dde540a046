//! Operations that add values to the positions that windows read: transposed convolutions, and the
//! composition of images from patches.
//!
//! An element of the result is `0 + Σ` over the taps that reach it, in ascending order. In a
//! transposed convolution, the term of a tap is `0 + Σ w * x` over the channels of the group, in
//! ascending order.

use anfora_ir::{Literal, Shape, element_count};

use super::arithmetic::{dispatch, in_float32, same_dtype};
use super::matmul::{ProductExtents, Strided, accumulate};
use super::number::{Calc, FloatNumber, Number};
use super::view::{Output, View, filled};
use super::window::{MAX_SPATIAL, Sliding, Windows};
use super::{Failure, MOST_STEPS, shape_text};

/// The number of terms that are computed before they are added to the result, unless one tap has
/// more.
const TERMS: usize = 1 << 14;

/// The mapping from the windows of one spatial axis to positions in the result: tap `t` of window
/// `i` is at `i * stride + t * dilation - begin`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct TransposedAxis {
    windows: usize,
    taps: usize,
    stride: usize,
    dilation: usize,
    begin: usize,
    result: usize,
}

impl TransposedAxis {
    const NONE: TransposedAxis = TransposedAxis { windows: 1, taps: 1, stride: 1, dilation: 1, begin: 0, result: 1 };

    /// Returns the range of windows in which a tap is inside of the result: the first window and
    /// the end.
    fn inside(&self, tap: usize) -> (usize, usize) {
        let offset = tap * self.dilation;
        let first = self.begin.saturating_sub(offset).div_ceil(self.stride);
        let beyond = (self.begin + self.result).saturating_sub(offset).div_ceil(self.stride).min(self.windows);
        (first, beyond)
    }

    /// Returns the position of a tap in the result. The tap must be inside.
    fn position(&self, window: usize, tap: usize) -> usize {
        window * self.stride + tap * self.dilation - self.begin
    }
}

/// The mapping from the windows of one channel to its result.
struct Layout {
    axes: [TransposedAxis; MAX_SPATIAL],
    windows: usize,
    taps: usize,
    result: usize,
}

impl Layout {
    fn new(axes: [TransposedAxis; MAX_SPATIAL]) -> Result<Layout, Failure> {
        let product = |of: fn(&TransposedAxis) -> usize| {
            axes.iter().try_fold(1usize, |n, a| n.checked_mul(of(a))).ok_or(Failure::TooLarge)
        };
        Ok(Layout {
            axes,
            windows: product(|a| a.windows)?,
            taps: product(|a| a.taps)?,
            result: product(|a| a.result)?,
        })
    }

    /// Returns an upper bound of the number of additions for one channel.
    fn steps(&self) -> u128 {
        self.axes.iter().fold(1u128, |n, a| n.saturating_mul(a.taps as u128 * a.windows.min(a.result).max(1) as u128))
    }

    /// Adds the values of the windows at one tap to the result. `values` has an entry for each
    /// window, or one for all.
    fn scatter<C: Calc>(&self, tap: usize, values: &[C], result: &mut [C]) {
        let [a, b, c] = &self.axes;
        let taps = [tap / (c.taps * b.taps), tap / c.taps % b.taps, tap % c.taps];
        let ((a0, a1), (b0, b1), (c0, c1)) = (a.inside(taps[0]), b.inside(taps[1]), c.inside(taps[2]));
        for i in a0..a1 {
            for j in b0..b1 {
                if c0 >= c1 {
                    continue;
                }
                let row = a.position(i, taps[0]) * b.result + b.position(j, taps[1]);
                let line = &mut result[row * c.result..][..c.result];
                let targets = line[c.position(c0, taps[2])..].iter_mut().step_by(c.stride).take(c1 - c0);
                match values {
                    [value] => targets.for_each(|o| *o = o.add(*value)),
                    _ => {
                        let from = (i * b.windows + j) * c.windows;
                        for (o, &value) in targets.zip(&values[from + c0..from + c1]) {
                            *o = o.add(value);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the extent of the result of a transposed convolution along an axis.
pub(crate) fn transposed_extent(
    input: usize,
    kernel: i64,
    stride: i64,
    dilation: i64,
    padding: [i64; 2],
    output_padding: i64,
) -> Result<usize, Failure> {
    for (what, value, least) in [
        ("kernel extent", kernel, 1),
        ("stride", stride, 1),
        ("dilation", dilation, 1),
        ("padding", padding[0], 0),
        ("padding", padding[1], 0),
        ("output padding", output_padding, 0),
    ] {
        if value < least || value >= 1 << 31 {
            return Err(Failure::Mismatch(format!("{what} {value} is out of range")));
        }
    }
    // All values here are less than 2^62.
    let reach = (kernel - 1) * dilation + 1;
    let steps = i128::try_from(input).map_err(|_| Failure::TooLarge)? - 1;
    let extent = steps * i128::from(stride) + i128::from(output_padding + reach - padding[0] - padding[1]);
    if extent < 0 || input == 0 {
        return Err(Failure::Mismatch(format!("the padding {padding:?} leaves nothing of an extent of {input}")));
    }
    usize::try_from(extent).ok().filter(|&e| e < 1 << 61).ok_or(Failure::TooLarge)
}

/// Returns the transposed convolution of `x` `(n, c, spatial…)` with `w` `(c, m / groups,
/// kernel…)`, plus `bias` `(m)`. It is the gradient of the convolution with `w` with respect to its
/// operand. `output_padding` is added to the extents of the result, at the end.
pub(crate) fn convolve_transposed(
    x: &Literal,
    w: &Literal,
    bias: Option<&Literal>,
    groups: i64,
    sliding: Sliding<'_>,
    output_padding: &[i64],
) -> Result<Literal, Failure> {
    let operands = [&[x, w][..], bias.as_slice()].concat();
    let dtype = same_dtype(&operands)?;
    let (&[n, c, ref input @ ..], &[weight_channels, features, ref kernel @ ..]) = (x.shape(), w.shape()) else {
        return Err(Failure::Mismatch("an operand has no channels".into()));
    };
    let spatial = input.len();
    let lists = [sliding.strides.len(), sliding.dilation.len(), output_padding.len(), kernel.len()];
    if spatial > MAX_SPATIAL || lists != [spatial; 4] || sliding.padding.len() != 2 * spatial {
        return Err(Failure::Mismatch("lists of strides, padding, dilation or extents of the wrong length".into()));
    }
    let groups = usize::try_from(groups).unwrap_or(0);
    if groups == 0 || weight_channels != c || c % groups != 0 {
        return Err(Failure::Mismatch(format!(
            "{groups} groups do not divide {c} channels evenly, for weights of {weight_channels}"
        )));
    }
    let all_features = features.checked_mul(groups).ok_or(Failure::TooLarge)?;
    if let Some(b) = bias
        && b.shape() != [all_features]
    {
        return Err(Failure::Mismatch(format!(
            "a bias of shape {} for {all_features} features",
            shape_text(b.shape())
        )));
    }
    let mut axes = [TransposedAxis::NONE; MAX_SPATIAL];
    let mut shape = Shape::from_slice(&[n, all_features]);
    for i in 0..spatial {
        let taps = i64::try_from(kernel[i]).map_err(|_| Failure::TooLarge)?;
        let (stride, dilation) = (sliding.strides[i], sliding.dilation[i]);
        let padding = [sliding.padding[i], sliding.padding[spatial + i]];
        let result = transposed_extent(input[i], taps, stride, dilation, padding, output_padding[i])?;
        axes[MAX_SPATIAL - spatial + i] = TransposedAxis {
            windows: input[i],
            taps: kernel[i],
            stride: stride as usize,
            dilation: dilation as usize,
            begin: padding[0] as usize,
            result,
        };
        shape.push(result);
    }
    if !dtype.is_float() {
        return Err(Failure::ElementType(dtype));
    }
    if shape.contains(&0) {
        return Ok(Literal::splat_bytes(dtype, &shape, &[]));
    }
    let plan = Transposed { layout: Layout::new(axes)?, batch: n, groups, channels: c / groups, features, shape };
    in_float32(
        &operands,
        &|of| dispatch!(wide float of[0].dtype(), T => plan.run::<T>(of[0], of[1], of.get(2).copied())),
    )
}

struct Transposed {
    layout: Layout,
    batch: usize,
    groups: usize,
    /// The number of operand channels of a group.
    channels: usize,
    /// The number of result channels of a group.
    features: usize,
    shape: Shape,
}

impl Transposed {
    fn run<T: FloatNumber>(&self, x: &Literal, w: &Literal, bias: Option<&Literal>) -> Result<Literal, Failure> {
        let (x, w) = (View::<T>::new(x), View::<T>::new(w));
        let bias = bias.map(View::<T>::new);
        let Layout { windows, taps, result, .. } = self.layout;
        let is_splat = x.splat.is_some() || w.splat.is_some();
        let planes = self.batch as u128 * self.groups as u128 * self.features as u128;
        if is_splat
            && planes.saturating_mul(self.layout.steps()).saturating_mul(self.channels.max(1) as u128) > MOST_STEPS
        {
            return Err(Failure::TooLong);
        }
        // All windows of a splat operand are equal, and all taps of a splat weight are equal.
        let columns = if x.splat.is_some() { 1 } else { windows };
        let computed_taps = if w.splat.is_some() { 1 } else { taps };
        let chunk = (TERMS / columns).clamp(1, computed_taps);
        let mut terms = filled(chunk.checked_mul(columns).ok_or(Failure::TooLarge)?, T::Calc::ZERO)?;
        let mut sums = filled(result, T::Calc::ZERO)?;
        let mut out = Output::<T>::new(&self.shape)?;
        let mut targets = out.raw().chunks_exact_mut(result);
        for image in 0..self.batch {
            for group in 0..self.groups {
                let first_channel = (image * self.groups + group) * self.channels;
                let patches = match x.splat {
                    Some(_) => Strided::<T> { raw: x.raw, start: 0, lane: 0, term: 0 },
                    None => Strided::<T> { raw: x.raw, start: first_channel * windows, lane: 1, term: windows },
                };
                for (feature, target) in (0..self.features).zip(&mut targets) {
                    sums.fill(T::Calc::ZERO);
                    for first in (0..computed_taps).step_by(chunk) {
                        let rows = chunk.min(computed_taps - first);
                        let terms = &mut terms[..rows * columns];
                        terms.fill(T::Calc::ZERO);
                        let weights = match w.splat {
                            Some(_) => Strided::<T> { raw: w.raw, start: 0, lane: 0, term: 0 },
                            None => Strided::<T> {
                                raw: w.raw,
                                start: (group * self.channels * self.features + feature) * taps + first,
                                lane: 1,
                                term: self.features * taps,
                            },
                        };
                        let extents = ProductExtents { rows, depth: self.channels, columns };
                        accumulate(extents, &weights, &patches, terms)?;
                        if w.splat.is_some() {
                            (0..taps).for_each(|tap| self.layout.scatter(tap, terms, &mut sums));
                        } else {
                            for (row, values) in terms.chunks_exact(columns).enumerate() {
                                self.layout.scatter(first + row, values, &mut sums);
                            }
                        }
                    }
                    let feature = group * self.features + feature;
                    for (o, &sum) in target.iter_mut().zip(&sums) {
                        let sum = bias.map_or(sum, |b| sum.add(b.get(feature).widen()));
                        *o = T::narrow(sum).store();
                    }
                }
            }
        }
        out.finish()
    }
}

/// Returns the images `(n, c, image…)` whose patches under windows are the columns of `x` `(n, c *
/// taps, windows)`, in row-major order. Overlapping patches are added up. `sliding.kernel` has the
/// extents of a patch.
pub(crate) fn images_of_patches(x: &Literal, image: &[usize], sliding: Sliding<'_>) -> Result<Literal, Failure> {
    let &[n, rows, columns] = x.shape() else {
        return Err(Failure::Mismatch(format!("patches of shape {}, not of rank 3", shape_text(x.shape()))));
    };
    let windows = Windows::new(image, sliding)?;
    let axes = windows.axes.map(|a| TransposedAxis {
        windows: a.output,
        taps: a.kernel,
        stride: a.stride,
        dilation: a.dilation,
        begin: a.begin,
        result: a.input,
    });
    let layout = Layout::new(axes)?;
    if columns != layout.windows || rows % layout.taps != 0 {
        return Err(Failure::Mismatch(format!(
            "{rows} rows and {columns} columns are not the patches of {} taps under {} windows",
            layout.taps, layout.windows
        )));
    }
    let mut shape = Shape::from_slice(&[n, rows / layout.taps]);
    shape.extend_from_slice(image);
    fn run<T: Number>(layout: &Layout, x: &Literal, shape: &[usize]) -> Result<Literal, Failure> {
        let view = View::<T>::new(x);
        let mut out = Output::<T>::new(shape)?;
        if shape.contains(&0) || layout.windows == 0 {
            return out.finish();
        }
        let planes = element_count(&shape[..2]).ok_or(Failure::TooLarge)?;
        if view.splat.is_some() && (planes as u128).saturating_mul(layout.steps()) > MOST_STEPS {
            return Err(Failure::TooLong);
        }
        let columns = if view.splat.is_some() { 1 } else { layout.windows };
        let mut values = filled(columns, T::Calc::ZERO)?;
        let mut sums = filled(layout.result, T::Calc::ZERO)?;
        for (plane, target) in out.raw().chunks_exact_mut(layout.result).enumerate() {
            sums.fill(T::Calc::ZERO);
            for tap in 0..layout.taps {
                let start = if view.splat.is_some() { 0 } else { (plane * layout.taps + tap) * columns };
                for (value, &e) in values.iter_mut().zip(&view.raw[start..]) {
                    *value = T::load(e).widen();
                }
                layout.scatter(tap, &values, &mut sums);
            }
            for (o, &sum) in target.iter_mut().zip(&sums) {
                *o = T::narrow(sum).store();
            }
        }
        out.finish()
    }
    dispatch!(number x.dtype(), T => run::<T>(&layout, x, &shape))
}

#[cfg(test)]
mod tests {
    use super::super::window::Rounding;
    use super::*;

    fn f32s(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    fn counting(shape: &[usize]) -> Literal {
        let n: usize = shape.iter().product();
        f32s(shape, &(0..n).map(|i| (i % 11) as f32 - 3.0).collect::<Vec<_>>())
    }

    fn sliding<'a>(kernel: &'a [i64], strides: &'a [i64], padding: &'a [i64], dilation: &'a [i64]) -> Sliding<'a> {
        Sliding { kernel, strides, padding, dilation, rounding: Rounding::Floor }
    }

    /// Computes a transposed convolution with two spatial axes by its definition.
    fn slow(x: &Literal, w: &Literal, groups: usize, s: Sliding<'_>, output_padding: [i64; 2]) -> Literal {
        let (&[n, c, h, v], &[_, m, kh, kw]) = (x.shape(), w.shape()) else { panic!() };
        let extent = |i: usize, input: usize, k: usize| {
            (input as i64 - 1) * s.strides[i] + output_padding[i] + (k as i64 - 1) * s.dilation[i] + 1
                - s.padding[i]
                - s.padding[i + 2]
        };
        let (oh, ow) = (extent(0, h, kh), extent(1, v, kw));
        let (xs, ws) = (x.elements::<f32>().unwrap(), w.elements::<f32>().unwrap());
        let mut out = vec![0f32; n * m * groups * (oh * ow) as usize];
        for (b, ch, f) in (0..n).flat_map(|b| (0..c).flat_map(move |ch| (0..m).map(move |f| (b, ch, f)))) {
            for t in 0..kh * kw {
                for p in 0..h * v {
                    let y = (p / v) as i64 * s.strides[0] + (t / kw) as i64 * s.dilation[0] - s.padding[0];
                    let z = (p % v) as i64 * s.strides[1] + (t % kw) as i64 * s.dilation[1] - s.padding[1];
                    if (0..oh).contains(&y) && (0..ow).contains(&z) {
                        let feature = ch / (c / groups) * m + f;
                        let at = ((b * m * groups + feature) as i64 * oh + y) * ow + z;
                        out[at as usize] += ws[(ch * m + f) * kh * kw + t] * xs[(b * c + ch) * h * v + p];
                    }
                }
            }
        }
        f32s(&[n, m * groups, oh as usize, ow as usize], &out)
    }

    #[test]
    fn is_the_definition_dense_or_splat() {
        type Case = ([usize; 4], [usize; 4], usize, [i64; 2], [i64; 4], [i64; 2], [i64; 2]);
        let cases: [Case; 5] = [
            ([1, 1, 3, 3], [1, 2, 3, 3], 1, [1, 1], [0; 4], [1, 1], [0, 0]),
            ([2, 4, 3, 4], [4, 3, 2, 3], 2, [3, 2], [1, 0, 0, 2], [1, 2], [1, 0]),
            ([1, 2, 4, 4], [2, 1, 3, 3], 1, [2, 2], [2, 2, 2, 2], [2, 2], [0, 3]),
            ([1, 1, 2, 2], [1, 1, 1, 1], 1, [3, 3], [0; 4], [1, 1], [0, 0]),
            ([1, 3, 100, 200], [3, 2, 3, 3], 1, [1, 1], [1; 4], [1, 1], [0, 0]),
        ];
        for (i, (xs, ws, groups, strides, padding, dilation, more)) in cases.into_iter().enumerate() {
            let s = sliding(&[], &strides, &padding, &dilation);
            for (x, w) in [
                (counting(&xs), counting(&ws)),
                (Literal::splat(&xs, 2f32), counting(&ws)),
                (counting(&xs), Literal::splat(&ws, -3f32)),
                (Literal::splat(&xs, 2f32), Literal::splat(&ws, 3f32)),
            ] {
                let got = convolve_transposed(&x, &w, None, groups as i64, s, &more).unwrap();
                assert_eq!(got, slow(&x, &w, groups, s, more), "case {i}");
            }
        }
    }

    #[test]
    fn other_ranks_bias_and_what_does_not_fit() {
        let x = f32s(&[1, 1, 3], &[1., 2., 3.]);
        let w = f32s(&[1, 2, 2], &[1., 10., -1., 0.]);
        let bias = f32s(&[2], &[0.5, 0.0]);
        let y = convolve_transposed(&x, &w, Some(&bias), 1, sliding(&[], &[2], &[0, 1], &[1]), &[0]).unwrap();
        assert_eq!(y, f32s(&[1, 2, 5], &[1.5, 10.5, 2.5, 20.5, 3.5, -1., 0., -2., 0., -3.]));
        let x3 = x.reshaped(&[1, 1, 1, 1, 3]).unwrap();
        let w3 = w.reshaped(&[1, 2, 1, 1, 2]).unwrap();
        let s3 = sliding(&[], &[1, 1, 2], &[0, 0, 0, 0, 0, 1], &[1, 1, 1]);
        let y3 = convolve_transposed(&x3, &w3, Some(&bias), 1, s3, &[0, 0, 0]).unwrap();
        assert_eq!(y3.reshaped(&[1, 2, 5]).unwrap(), y);
        let fails = |groups, s| convolve_transposed(&x, &w, None, groups, s, &[0]).is_err();
        assert!(fails(2, sliding(&[], &[1], &[0, 0], &[1])));
        assert!(fails(1, sliding(&[], &[1], &[4, 4], &[1])));
        assert!(fails(1, sliding(&[], &[0], &[0, 0], &[1])));
        assert!(fails(1, sliding(&[], &[1, 1], &[0, 0], &[1])));
        let huge = Literal::splat(&[1, 1, 1 << 30], 1f32);
        let wide = Literal::splat(&[1, 1, 1 << 30], 1f32);
        let far = [1 << 30, (1 << 30) - 8];
        let r = convolve_transposed(&huge, &wide, None, 1, sliding(&[], &[1], &far, &[1]), &[0]);
        assert_eq!(r, Err(Failure::TooLong));
    }

    #[test]
    fn patches_that_overlap_add_up() {
        let x = counting(&[1, 4, 4]);
        let s = sliding(&[2, 2], &[1, 1], &[0; 4], &[1, 1]);
        let y = images_of_patches(&x, &[3, 3], s).unwrap();
        let v = x.elements::<f32>().unwrap();
        let at = |tap: usize, window: usize| v[tap * 4 + window];
        assert_eq!(y.elements::<f32>().unwrap()[4], at(0, 3) + at(1, 2) + at(2, 1) + at(3, 0));
        assert_eq!(y.shape(), &[1, 1, 3, 3]);
        let ones = images_of_patches(&Literal::splat(&[1, 4, 4], 1f32), &[3, 3], s).unwrap();
        assert_eq!(ones, f32s(&[1, 1, 3, 3], &[1., 2., 1., 2., 4., 2., 1., 2., 1.]));
        assert!(images_of_patches(&x, &[3, 4], s).is_err());
        let wide = sliding(&[1 << 30, 1 << 30], &[1 << 30, 1 << 30], &[0; 4], &[1, 1]);
        let nothing = Literal::splat(&[1, 1 << 60, 0], 1f32);
        assert_eq!(images_of_patches(&nothing, &[3, 3], wide).unwrap(), Literal::splat(&[1, 1, 3, 3], 0f32));
    }
}
