//! Windows that slide over the spatial axes of a tensor `(n, c, spatial…)`: their positions, and
//! the taps that are inside of the tensor.

use anfora_ir::Shape;

use super::Failure;

/// The maximum number of spatial axes.
pub(crate) const MAX_SPATIAL: usize = 3;

/// The parameters of sliding windows, with an entry for each spatial axis. `padding` lists all
/// beginnings, then all ends.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Sliding<'a> {
    pub(crate) kernel: &'a [i64],
    pub(crate) strides: &'a [i64],
    pub(crate) padding: &'a [i64],
    pub(crate) dilation: &'a [i64],
    pub(crate) rounding: Rounding,
}

/// Selects whether a last, incomplete window counts.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Rounding {
    /// An incomplete window does not count.
    Floor,
    /// An incomplete window counts unless it starts in the padding at the end.
    Ceil,
}

/// One spatial axis.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

/// The taps of one window along one axis that lie in a range of positions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taps {
    /// The index of the first tap.
    pub(crate) first: usize,
    /// The number of taps.
    pub(crate) count: usize,
    /// The position of the first tap in the input.
    pub(crate) position: usize,
}

impl Axis {
    /// A missing axis.
    const NONE: Axis = Axis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, begin: 0, end: 0 };

    /// Returns the taps of window `index` that are in the input or, if `padded`, in the input or
    /// its padding.
    pub(crate) fn taps(&self, index: usize, padded: bool) -> Taps {
        // `start` is the position of the window, counted from the beginning of the padding.
        let start = index * self.stride;
        let (low, high) =
            if padded { (0, self.begin + self.input + self.end) } else { (self.begin, self.begin + self.input) };
        let first = low.saturating_sub(start).div_ceil(self.dilation);
        let beyond = high.saturating_sub(start).div_ceil(self.dilation).min(self.kernel);
        let count = beyond.saturating_sub(first);
        let position = (start + first * self.dilation).saturating_sub(self.begin);
        Taps { first, count, position }
    }

    /// Returns the position of a tap in the input, if it is inside.
    pub(crate) fn position(&self, index: usize, tap: usize) -> Option<usize> {
        (index * self.stride + tap * self.dilation).checked_sub(self.begin).filter(|&p| p < self.input)
    }
}

/// The windows over a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Windows {
    /// Three axes. Missing axes come first.
    pub(crate) axes: [Axis; MAX_SPATIAL],
    /// The number of axes that are not missing.
    pub(crate) spatial: usize,
}

impl Windows {
    /// Returns the windows over a tensor with the spatial extents `input`.
    ///
    /// # Errors
    /// If the lists do not have an entry for each axis, an entry is out of range, or a window is
    /// larger than an extent by more than a stride.
    pub(crate) fn new(input: &[usize], sliding: Sliding<'_>) -> Result<Windows, Failure> {
        let spatial = input.len();
        let Sliding { kernel, strides, padding, dilation, rounding } = sliding;
        let bad = |what: &str| Failure::Mismatch(what.into());
        if spatial > MAX_SPATIAL {
            return Err(bad("too many spatial axes"));
        }
        if kernel.len() != spatial
            || strides.len() != spatial
            || dilation.len() != spatial
            || padding.len() != 2 * spatial
        {
            return Err(bad("lists of strides, padding, dilation or kernel extents of the wrong length"));
        }
        // Entries are small enough that no position overflows.
        let limited = |v: i64, least: i64, what: &str| match usize::try_from(v) {
            Ok(u) if v >= least && v < 1 << 31 => Ok(u),
            _ => Err(Failure::Mismatch(format!("{what} {v} is out of range"))),
        };
        let mut axes = [Axis::NONE; MAX_SPATIAL];
        for i in 0..spatial {
            if input[i] >= 1 << 61 {
                return Err(Failure::TooLarge);
            }
            let mut axis = Axis {
                input: input[i],
                output: 0,
                kernel: limited(kernel[i], 1, "kernel extent")?,
                stride: limited(strides[i], 1, "stride")?,
                dilation: limited(dilation[i], 1, "dilation")?,
                begin: limited(padding[i], 0, "padding")?,
                end: limited(padding[spatial + i], 0, "padding")?,
            };
            let padded = axis.begin + axis.input + axis.end;
            let reach = (axis.kernel - 1) * axis.dilation + 1;
            // A window may extend beyond the end, and the number of windows is rounded in the same
            // way. All values here are less than 2^63.
            let (room, stride) = (padded as i64 - reach as i64, axis.stride as i64);
            let windows = match rounding {
                Rounding::Floor => room.div_euclid(stride) + 1,
                Rounding::Ceil => {
                    let steps = -(-room).div_euclid(stride);
                    // The last window must start before the padding at the end.
                    if steps * stride >= (axis.begin + axis.input) as i64 { steps } else { steps + 1 }
                }
            };
            axis.output = usize::try_from(windows).map_err(|_| {
                Failure::Mismatch(format!(
                    "a window of {reach} does not fit in {padded}, the padded extent of spatial axis {i}"
                ))
            })?;
            axes[MAX_SPATIAL - spatial + i] = axis;
        }
        Ok(Windows { axes, spatial })
    }

    /// Returns one window that is as large as the tensor.
    ///
    /// # Errors
    /// If there are too many axes, or one is empty.
    pub(crate) fn over_all(input: &[usize]) -> Result<Windows, Failure> {
        if input.len() > MAX_SPATIAL || input.contains(&0) {
            return Err(Failure::Mismatch(format!("no window fits over the extents {input:?}")));
        }
        let mut axes = [Axis::NONE; MAX_SPATIAL];
        for (axis, &extent) in axes[MAX_SPATIAL - input.len()..].iter_mut().zip(input) {
            if extent >= 1 << 61 {
                return Err(Failure::TooLarge);
            }
            *axis = Axis { input: extent, kernel: extent, ..Axis::NONE };
        }
        Ok(Windows { axes, spatial: input.len() })
    }

    /// Returns the spatial extents of the result.
    pub(crate) fn output(&self) -> Shape {
        self.axes[MAX_SPATIAL - self.spatial..].iter().map(|a| a.output).collect()
    }

    /// Returns the product of one number of each axis.
    pub(crate) fn product(&self, of: impl Fn(&Axis) -> usize) -> Result<usize, Failure> {
        self.axes.iter().try_fold(1usize, |n, a| n.checked_mul(of(a))).ok_or(Failure::TooLarge)
    }

    /// Returns true if each window is one element, in the same order.
    pub(crate) fn are_elements(&self) -> bool {
        self.axes.iter().all(|a| a.kernel == 1 && a.stride == 1 && a.begin == 0 && a.end == 0)
    }

    /// Returns true if no window extends into padding.
    pub(crate) fn all_inside(&self) -> bool {
        self.axes.iter().all(|a| {
            let last = a.taps(a.output.saturating_sub(1), false);
            a.begin == 0 && last.count == a.kernel
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(input: usize, kernel: i64, stride: i64, pads: [i64; 2], dilation: i64, rounding: Rounding) -> Axis {
        let sliding =
            Sliding { kernel: &[kernel], strides: &[stride], padding: &pads, dilation: &[dilation], rounding };
        Windows::new(&[input], sliding).unwrap().axes[2]
    }

    #[test]
    fn output_extents() {
        assert_eq!(windows(224, 7, 2, [3, 3], 1, Rounding::Floor).output, 112);
        assert_eq!(windows(112, 3, 2, [0, 0], 1, Rounding::Floor).output, 55);
        assert_eq!(windows(112, 3, 2, [0, 0], 1, Rounding::Ceil).output, 56);
        assert_eq!(windows(8, 3, 1, [0, 0], 3, Rounding::Floor).output, 2);
        // The fourth window would start in the padding.
        assert_eq!(windows(5, 2, 2, [1, 1], 1, Rounding::Ceil).output, 3);
        assert_eq!(windows(1, 1, 2, [0, 1], 1, Rounding::Ceil).output, 1);
        assert_eq!(windows(0, 1, 2, [0, 2], 1, Rounding::Ceil).output, 1);
        assert_eq!(windows(0, 1, 2, [0, 0], 1, Rounding::Ceil).output, 0);
        let refused = |input: usize, kernel: i64, stride: i64, rounding: Rounding| {
            let sliding = Sliding { kernel: &[kernel], strides: &[stride], padding: &[0, 0], dilation: &[1], rounding };
            Windows::new(&[input], sliding).is_err()
        };
        assert!(refused(2, 1, 0, Rounding::Floor));
        // A window that is larger than the extent, by at most a stride.
        for (kernel, stride, floor, ceil) in
            [(3, 1, Some(0), Some(0)), (3, 2, Some(0), Some(1)), (4, 2, Some(0), Some(0)), (4, 1, None, None)]
        {
            for (rounding, expected) in [(Rounding::Floor, floor), (Rounding::Ceil, ceil)] {
                match expected {
                    Some(n) => assert_eq!(windows(2, kernel, stride, [0, 0], 1, rounding).output, n),
                    None => assert!(refused(2, kernel, stride, rounding)),
                }
            }
        }
    }

    #[test]
    fn taps_inside_are_those_with_a_position() {
        for (input, kernel, stride, begin, end, dilation) in
            [(5, 3, 1, 1, 1, 1), (5, 3, 2, 2, 2, 2), (4, 2, 3, 5, 4, 5), (1, 5, 1, 2, 2, 1), (7, 4, 2, 0, 3, 2)]
        {
            let axis = windows(input, kernel, stride, [begin, end], dilation, Rounding::Floor);
            for index in 0..axis.output {
                let inside: Vec<usize> = (0..axis.kernel).filter(|&t| axis.position(index, t).is_some()).collect();
                let taps = axis.taps(index, false);
                assert_eq!(inside, (taps.first..taps.first + taps.count).collect::<Vec<_>>(), "{axis:?} {index}");
                if let Some(&first) = inside.first() {
                    assert_eq!(axis.position(index, first), Some(taps.position));
                }
                assert_eq!(axis.taps(index, true).count, axis.kernel);
            }
        }
    }
}
