//! Convolutions with up to three spatial axes and with groups.
//!
//! An element of the result is `0 + Σ w * x` over the channels of the group and then the taps, in
//! ascending order, plus the bias. Taps in the padding count as zeros, so an infinite weight there
//! produces a NaN.

use anfora_ir::{DType, Literal, Shape, element_count};

use super::arithmetic::{dispatch, in_float32, same_dtype};
use super::matmul::{Lanes, Part, ProductExtents, Strided, accumulate};
use super::number::{Calc, Number, Scalar};
use super::view::{Output, View, filled};
use super::window::{Sliding, Windows};
use super::{Failure, shape_text};

/// The extents of a convolution.
struct Plan {
    windows: Windows,
    batch: usize,
    groups: usize,
    /// The number of input channels of a group.
    channels: usize,
    /// The number of output channels of a group.
    features: usize,
    /// The number of spatial elements of one channel of the operand.
    plane: usize,
    /// The number of spatial elements of one channel of the result.
    positions: usize,
    /// The number of taps of one channel.
    taps: usize,
    shape: Shape,
}

/// Convolves `x` `(n, c, spatial…)` with `w` `(m, c / groups, kernel…)` and adds `bias` `(m)`. The
/// kernel extents come from the shape of `w`; `sliding.kernel` is ignored.
pub(crate) fn convolve(
    x: &Literal,
    w: &Literal,
    bias: Option<&Literal>,
    groups: i64,
    sliding: Sliding<'_>,
) -> Result<Literal, Failure> {
    let operands = [&[x, w][..], bias.as_slice()].concat();
    same_dtype(&operands)?;
    let (&[n, c, ref input @ ..], &[m, group_channels, ref kernel @ ..]) = (x.shape(), w.shape()) else {
        return Err(Failure::Mismatch("an operand has no channels".into()));
    };
    let kernel: Vec<i64> =
        kernel.iter().map(|&k| i64::try_from(k)).collect::<Result<_, _>>().map_err(|_| Failure::TooLarge)?;
    let windows = Windows::new(input, Sliding { kernel: &kernel, ..sliding })?;
    let groups = usize::try_from(groups).unwrap_or(0);
    if groups == 0 || group_channels.checked_mul(groups) != Some(c) || m % groups != 0 {
        return Err(Failure::Mismatch(format!(
            "{groups} groups do not divide {c} channels into {group_channels} and {m} features evenly"
        )));
    }
    if let Some(b) = bias
        && b.shape() != [m]
    {
        return Err(Failure::Mismatch(format!("a bias of shape {} for {m} features", shape_text(b.shape()))));
    }
    let mut shape = Shape::from_slice(&[n, m]);
    shape.extend_from_slice(&windows.output());
    let plan = Plan {
        batch: n,
        groups,
        channels: group_channels,
        features: m / groups,
        plane: if x.as_splat().is_some() { 0 } else { windows.product(|a| a.input)? },
        positions: if shape.contains(&0) { 0 } else { windows.product(|a| a.output)? },
        taps: windows.product(|a| a.kernel)?,
        windows,
        shape,
    };
    in_float32(&operands, &|of| match of[0].dtype() {
        DType::Int32 => plan.run::<i32>(of[0], of[1], of.get(2).copied()),
        dtype => dispatch!(wide float dtype, T => plan.run::<T>(of[0], of[1], of.get(2).copied())),
    })
}

impl Plan {
    fn run<T: Number>(&self, x: &Literal, w: &Literal, bias: Option<&Literal>) -> Result<Literal, Failure> {
        if self.shape.contains(&0) {
            return Output::<T>::new(&self.shape)?.finish();
        }
        let (x, w) = (View::<T>::new(x), View::<T>::new(w));
        let bias = bias.map(View::<T>::new);
        if let (Some(p), Some(q)) = (x.splat, w.splat)
            && self.windows.all_inside()
            && bias.is_none_or(|b| b.splat.is_some())
        {
            let terms = self.channels as u128 * self.taps as u128;
            return Ok(Literal::splat(&self.shape, add_bias(dot_of_splats(p, q, terms, 0), bias, 0)));
        }
        let mut out = Output::<T>::new(&self.shape)?;
        // With a splat of weights, all features have the same sums.
        let computed = if w.splat.is_some() { 1 } else { self.features };
        let mut sums = filled(element_count(&[computed, self.positions]).ok_or(Failure::TooLarge)?, T::Calc::ZERO)?;
        let mut targets = out.raw().chunks_exact_mut(self.positions);
        for image in 0..self.batch {
            for group in 0..self.groups {
                let first_channel = (image * self.groups + group) * self.channels;
                sums.fill(T::Calc::ZERO);
                match w.splat {
                    Some(weight) => self.sum_equal_weights(&x, weight, first_channel, &mut sums),
                    None => self.sum(&x, &w, group, first_channel, &mut sums)?,
                }
                for (feature, target) in (0..self.features).zip(&mut targets) {
                    let from = feature.min(computed - 1) * self.positions;
                    for (o, &sum) in target.iter_mut().zip(&sums[from..]) {
                        *o = add_bias(sum, bias, group * self.features + feature).store();
                    }
                }
            }
        }
        out.finish()
    }

    /// Computes the sums of one group as a matrix product: features x (channels and taps) x
    /// positions.
    fn sum<T: Number>(
        &self,
        x: &View<'_, T>,
        w: &View<'_, T>,
        group: usize,
        first_channel: usize,
        sums: &mut [T::Calc],
    ) -> Result<(), Failure> {
        let depth = self.channels * self.taps;
        let weights = Strided::<T> { raw: w.raw, start: group * self.features * depth, lane: depth, term: 1 };
        let extents = ProductExtents { rows: self.features, depth, columns: self.positions };
        if self.windows.are_elements() && x.splat.is_none() {
            let elements = Strided::<T> { raw: x.raw, start: first_channel * self.plane, lane: 1, term: self.plane };
            return accumulate(extents, &weights, &elements, sums);
        }
        let patches = Patches { plan: self, x, first_channel };
        accumulate(extents, &weights, &patches, sums)
    }

    /// Computes the sums of one feature whose weights are all equal. Taps in the padding are only
    /// counted.
    fn sum_equal_weights<T: Number>(&self, x: &View<'_, T>, weight: T, first_channel: usize, sums: &mut [T::Calc]) {
        let [a, b, c] = &self.windows.axes;
        let terms = self.channels as u128 * self.taps as u128;
        let factor = weight.widen();
        let mut sums = sums.iter_mut();
        for i in 0..a.output {
            let ti = a.taps(i, false);
            for j in 0..b.output {
                let tj = b.taps(j, false);
                for k in 0..c.output {
                    let tk = c.taps(k, false);
                    let inside = ti.count as u128 * tj.count as u128 * tk.count as u128 * self.channels as u128;
                    let Some(sum) = sums.next() else { return };
                    if let Some(element) = x.splat {
                        *sum = dot_of_splats(element, weight, inside, terms - inside);
                        continue;
                    }
                    let mut acc = T::Calc::ZERO;
                    if inside > 0 {
                        for channel in 0..self.channels {
                            let plane = &x.raw[(first_channel + channel) * self.plane..][..self.plane];
                            for p in 0..ti.count {
                                for q in 0..tj.count {
                                    let row = (ti.position + p * a.dilation) * b.input + tj.position + q * b.dilation;
                                    let start = row * c.input + tk.position;
                                    for r in 0..tk.count {
                                        let element = T::load(plane[start + r * c.dilation]).widen();
                                        acc = acc.add(factor.mul(element));
                                    }
                                }
                            }
                        }
                    }
                    if inside < terms {
                        acc = acc.add(factor.mul(T::Calc::ZERO));
                    }
                    *sum = acc;
                }
            }
        }
    }
}

/// Returns the sum of `inside` products of the two numbers and `padded` products of the weight with
/// zero.
fn dot_of_splats<T: Number>(element: T, weight: T, inside: u128, padded: u128) -> T::Calc {
    let sum = weight.widen().mul(element.widen()).repeat_add(inside);
    if padded > 0 { sum.add(weight.widen().mul(T::Calc::ZERO)) } else { sum }
}

fn add_bias<T: Number>(sum: T::Calc, bias: Option<View<'_, T>>, feature: usize) -> T {
    match bias {
        Some(b) => T::narrow(sum.add(b.get(feature).widen())),
        None => T::narrow(sum),
    }
}

/// The patches of the operand under the windows: a lane is a window, and a term is a tap of a
/// channel.
struct Patches<'a, T: Scalar> {
    plan: &'a Plan,
    x: &'a View<'a, T>,
    first_channel: usize,
}

/// The number of lanes of a term that are read before they are distributed to tiles.
const BUFFER: usize = 128;

impl<T: Number> Lanes<T::Calc> for Patches<'_, T> {
    fn pack(&self, part: Part, width: usize, panel: &mut [T::Calc]) {
        let tile = part.terms * width;
        let mut buffer = [T::Calc::ZERO; BUFFER];
        let step = BUFFER / width * width;
        for term in 0..part.terms {
            for lane in (0..part.lanes).step_by(step) {
                let lanes = (part.lanes - lane).min(step);
                self.read(part.first_term + term, part.first_lane + lane, &mut buffer[..lanes]);
                let tiles = panel[lane / width * tile..].chunks_mut(tile);
                for (slots, lanes) in tiles.zip(buffer[..lanes].chunks(width)) {
                    slots[term * width..][..lanes.len()].copy_from_slice(lanes);
                }
            }
        }
    }
}

impl<T: Number> Patches<'_, T> {
    /// Reads one tap of one channel under consecutive windows.
    fn read(&self, term: usize, first_window: usize, out: &mut [T::Calc]) {
        let [a, b, c] = &self.plan.windows.axes;
        let (channel, tap) = (term / self.plan.taps, term % self.plan.taps);
        let channel = (self.first_channel + channel) * self.plan.plane;
        let (tap_a, tap_b, tap_c) = (tap / (c.kernel * b.kernel), tap / c.kernel % b.kernel, tap % c.kernel);
        let mut done = 0;
        while done < out.len() {
            // The windows of the run are in one row of the result.
            let window = first_window + done;
            let (row, from) = (window / c.output, window % c.output);
            let run = (c.output - from).min(out.len() - done);
            let out = &mut out[done..done + run];
            done += run;
            let place_a = a.position(row / b.output, tap_a);
            let place_b = b.position(row % b.output, tap_b);
            let (Some(p), Some(q)) = (place_a, place_b) else {
                out.fill(T::Calc::ZERO);
                continue;
            };
            if let Some(element) = self.x.splat {
                for (i, o) in out.iter_mut().enumerate() {
                    let inside = c.position(from + i, tap_c).is_some();
                    *o = if inside { element.widen() } else { T::Calc::ZERO };
                }
                continue;
            }
            let line = &self.x.raw[channel + (p * b.input + q) * c.input..][..c.input];
            // Of the windows of the run, those in `low..high` have this tap inside of the operand.
            let at = from * c.stride + tap_c * c.dilation;
            let low = c.begin.saturating_sub(at).div_ceil(c.stride).min(run);
            let high = (c.begin + c.input).saturating_sub(at).div_ceil(c.stride).clamp(low, run);
            out[..low].fill(T::Calc::ZERO);
            out[high..].fill(T::Calc::ZERO);
            let inside = &mut out[low..high];
            if inside.is_empty() {
                continue;
            }
            let elements = &line[at + low * c.stride - c.begin..];
            if c.stride == 1 {
                for (o, &e) in inside.iter_mut().zip(elements) {
                    *o = T::load(e).widen();
                }
            } else {
                for (o, &e) in inside.iter_mut().zip(elements.iter().step_by(c.stride)) {
                    *o = T::load(e).widen();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use anfora_ir::Element;
    use half::bf16;

    use super::super::test_values::noise;
    use super::*;
    use crate::kernels::cast::cast;
    use crate::kernels::window::Rounding;

    fn sliding<'a>(strides: &'a [i64], padding: &'a [i64], dilation: &'a [i64]) -> Sliding<'a> {
        Sliding { kernel: &[], strides, padding, dilation, rounding: Rounding::Floor }
    }

    /// Computes a convolution with two spatial axes by its definition.
    fn slow(x: &Literal, w: &Literal, bias: Option<&Literal>, groups: usize, s: Sliding<'_>) -> Literal {
        let (&[n, c, h, v], &[m, gc, kh, kw]) = (x.shape(), w.shape()) else { panic!() };
        let (xs, ws) = (x.elements::<f32>().unwrap(), w.elements::<f32>().unwrap());
        let extent = |i: usize, input: usize, k: usize| {
            (input as i64 + s.padding[i] + s.padding[i + 2] - (k as i64 - 1) * s.dilation[i] - 1) / s.strides[i] + 1
        };
        let (oh, ow) = (extent(0, h, kh), extent(1, v, kw));
        let mut out = Vec::new();
        for b in 0..n {
            for f in 0..m {
                for i in 0..oh {
                    for j in 0..ow {
                        let mut acc = 0f32;
                        for t in 0..gc * kh * kw {
                            let (ch, p, q) = (t / (kh * kw), t / kw % kh, t % kw);
                            let ch = f / (m / groups) * gc + ch;
                            let y = i * s.strides[0] - s.padding[0] + p as i64 * s.dilation[0];
                            let z = j * s.strides[1] - s.padding[1] + q as i64 * s.dilation[1];
                            let inside = y >= 0 && z >= 0 && y < h as i64 && z < v as i64;
                            let at = || ((b * c + ch) * h + y as usize) * v + z as usize;
                            acc += ws[f * gc * kh * kw + t] * if inside { xs[at()] } else { 0.0 };
                        }
                        out.push(acc + bias.map_or(0.0, |l| l.elements::<f32>().unwrap()[f]));
                    }
                }
            }
        }
        let out: Vec<f32> = out.into_iter().map(f32::narrow).collect();
        Literal::from_elements(&[n, m, oh as usize, ow as usize], &out).unwrap()
    }

    #[test]
    fn is_the_definition_dense_or_splat() {
        type Case = ([usize; 4], [usize; 4], usize, [i64; 2], [i64; 4], [i64; 2]);
        let cases: [Case; 7] = [
            ([1, 3, 9, 11], [5, 3, 3, 3], 1, [1, 1], [1, 1, 1, 1], [1, 1]),
            ([2, 4, 8, 7], [6, 2, 3, 2], 2, [2, 1], [0, 2, 1, 0], [1, 2]),
            ([1, 6, 5, 5], [6, 1, 3, 3], 6, [1, 1], [1, 1, 1, 1], [1, 1]),
            ([1, 2, 12, 12], [3, 2, 1, 1], 1, [2, 2], [0, 0, 0, 0], [1, 1]),
            ([1, 1, 3, 3], [1, 1, 2, 2], 1, [1, 1], [4, 4, 4, 4], [3, 3]),
            ([1, 40, 20, 20], [4, 40, 3, 3], 1, [1, 1], [1, 1, 1, 1], [1, 1]),
            ([1, 1, 2, 2], [1, 1, 2, 2], 1, [3, 3], [0, 0, 1, 1], [1, 1]),
        ];
        for (i, (xs, ws, groups, strides, padding, dilation)) in cases.into_iter().enumerate() {
            let s = sliding(&strides, &padding, &dilation);
            let bias = noise(&[ws[0]], 5);
            for (x, w) in [
                (noise(&xs, 1), noise(&ws, 2)),
                (noise(&xs, 1), Literal::splat(&ws, 0.3f32)),
                (Literal::splat(&xs, 0.7f32), noise(&ws, 2)),
                (Literal::splat(&xs, 0.7f32), Literal::splat(&ws, 0.3f32)),
                (noise(&xs, 1), Literal::splat(&ws, f32::INFINITY)),
                (Literal::splat(&xs, 0.7f32), Literal::splat(&ws, f32::INFINITY)),
            ] {
                for bias in [None, Some(&bias)] {
                    let got = convolve(&x, &w, bias, groups as i64, s).unwrap();
                    assert_eq!(got, slow(&x, &w, bias, groups, s), "case {i}");
                }
            }
        }
    }

    #[test]
    fn one_and_three_spatial_axes() {
        let (x, w) = (noise(&[1, 2, 9], 1), noise(&[3, 2, 4], 2));
        let flat = convolve(&x, &w, None, 1, sliding(&[2], &[1, 2], &[1])).unwrap();
        let (x2, w2) = (x.reshaped(&[1, 2, 1, 9]).unwrap(), w.reshaped(&[3, 2, 1, 4]).unwrap());
        let two = convolve(&x2, &w2, None, 1, sliding(&[1, 2], &[0, 1, 0, 2], &[1, 1])).unwrap();
        assert_eq!(flat, two.reshaped(&[1, 3, 5]).unwrap());
        let (x3, w3) = (x2.reshaped(&[1, 2, 1, 1, 9]).unwrap(), w2.reshaped(&[3, 2, 1, 1, 4]).unwrap());
        let three = convolve(&x3, &w3, None, 1, sliding(&[1, 1, 2], &[0, 0, 1, 0, 0, 2], &[1, 1, 1])).unwrap();
        assert_eq!(three, two.reshaped(&[1, 3, 1, 1, 5]).unwrap());
    }

    #[test]
    fn half_floats_sum_in_float32() {
        let (x, w) = (noise(&[1, 2, 5, 5], 1), noise(&[2, 2, 3, 3], 2));
        let s = sliding(&[1, 1], &[1, 1, 1, 1], &[1, 1]);
        let narrow = |l: &Literal| cast(l, bf16::DTYPE).unwrap();
        let wide = |l: &Literal| cast(&narrow(l), f32::DTYPE).unwrap();
        let got = convolve(&narrow(&x), &narrow(&w), None, 1, s).unwrap();
        assert_eq!(got, narrow(&convolve(&wide(&x), &wide(&w), None, 1, s).unwrap()));
    }

    #[test]
    fn huge_splats_and_wrong_shapes() {
        let x = Literal::splat(&[1, 3, 1 << 40, 1 << 40], 1f32);
        let w = Literal::splat(&[2, 3, 1 << 20, 1 << 20], 1f32);
        let stride = [1 << 30, 1 << 30];
        let s = sliding(&stride, &[0, 0, 0, 0], &[1, 1]);
        let r = convolve(&x, &w, None, 1, s).unwrap();
        assert_eq!(r, Literal::splat(&[1, 2, 1024, 1024], 16_777_216f32));
        let x = noise(&[1, 2, 4, 4], 1);
        let far = [1 << 20; 4];
        let w = Literal::splat(&[1, 2, 1 << 20, 1 << 20], 1f32);
        let r = convolve(&x, &w, None, 1, sliding(&[1 << 19, 1 << 19], &far, &[1, 1])).unwrap();
        assert_eq!(r.shape(), &[1, 1, 3, 3]);
        for bad in [noise(&[1, 1, 2, 2], 1), noise(&[1, 2, 6, 1], 1), noise(&[1, 2, 2], 1), noise(&[1], 1)] {
            assert!(convolve(&x, &bad, None, 1, sliding(&[1, 1], &[0; 4], &[1, 1])).is_err());
        }
        let none = convolve(&x, &noise(&[3, 2, 5, 1], 1), None, 1, sliding(&[1, 1], &[0; 4], &[1, 1])).unwrap();
        assert_eq!(none.shape(), &[1, 3, 0, 4]);
        let w = noise(&[3, 1, 1, 1], 1);
        assert!(convolve(&x, &w, None, 2, sliding(&[1, 1], &[0; 4], &[1, 1])).is_err());
        assert!(convolve(&x, &w, None, 0, sliding(&[1, 1], &[0; 4], &[1, 1])).is_err());
        assert!(convolve(&x, &noise(&[1, 2, 1, 1], 1), Some(&x), 1, sliding(&[1, 1], &[0; 4], &[1, 1])).is_err());
    }
}
