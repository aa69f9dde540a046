//! Padding and cropping: an index map for each axis.

use anfora_ir::{Literal, Shape};

use super::layout::separable;
use super::{Failure, shape_text};

/// The values beyond the ends of an axis.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Beyond {
    /// A constant value.
    Constant,
    /// The element at the end.
    Edge,
    /// The elements in reverse, without the one at the end.
    Reflect,
    /// The elements from the other end.
    Wrap,
}

/// The number of elements by which an axis is extended at each end. The axis is cut where a number
/// is negative, before it is extended.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Padding {
    /// The number at the beginning.
    pub(crate) begin: i64,
    /// The number at the end.
    pub(crate) end: i64,
}

impl Padding {
    /// Returns the padding of a centered crop or extension from `from` to `to` elements.
    pub(crate) fn centered(from: i64, to: i64) -> Padding {
        let difference = to.saturating_sub(from);
        Padding { begin: difference / 2, end: difference - difference / 2 }
    }

    /// Returns the extent that remains of an axis after it is cut, and its final extent.
    ///
    /// # Errors
    /// If more elements are cut than the axis has, or the result is too large.
    pub(crate) fn extents(self, extent: i64) -> Result<(i64, i64), Failure> {
        let Padding { begin, end } = self;
        let left = i128::from(extent) + i128::from(begin.min(0)) + i128::from(end.min(0));
        if left < 0 {
            return Err(Failure::Mismatch(format!("{begin} and {end} cut more than the {extent} elements of an axis")));
        }
        let total = left + i128::from(begin.max(0)) + i128::from(end.max(0));
        Ok((left as i64, i64::try_from(total).map_err(|_| Failure::TooLarge)?))
    }

    /// Returns the position in the operand of element `i` of the result, relative to the part of
    /// `left` elements that remains of the axis. `None` if it is beyond the ends and has the
    /// constant value.
    fn place(self, i: usize, left: i64, beyond: Beyond) -> Option<usize> {
        let from = i as i64 - self.begin.max(0);
        let within = match beyond {
            _ if (0..left).contains(&from) => from,
            Beyond::Constant => return None,
            Beyond::Edge => from.clamp(0, left - 1),
            Beyond::Wrap => from.rem_euclid(left),
            Beyond::Reflect if left == 1 => 0,
            Beyond::Reflect => {
                let back = from.rem_euclid(2 * (left - 1));
                back.min(2 * (left - 1) - back)
            }
        };
        usize::try_from(within - self.begin.min(0)).ok()
    }
}

/// Cuts or extends each axis of a tensor. `value` is the constant for [`Beyond::Constant`].
pub(crate) fn pad(x: &Literal, paddings: &[Padding], beyond: Beyond, value: &Literal) -> Result<Literal, Failure> {
    let mut shape = Shape::new();
    let mut lefts = Vec::with_capacity(paddings.len());
    if paddings.len() != x.rank() {
        return Err(Failure::Mismatch(format!("{} paddings for rank {}", paddings.len(), x.rank())));
    }
    for (padding, &extent) in paddings.iter().zip(x.shape()) {
        let (left, total) = padding.extents(i64::try_from(extent).map_err(|_| Failure::TooLarge)?)?;
        if left == 0 && total > 0 && beyond != Beyond::Constant {
            let shape = shape_text(x.shape());
            return Err(Failure::Mismatch(format!("a tensor of shape {shape} has nothing to extend an axis with")));
        }
        lefts.push(left);
        shape.push(usize::try_from(total).map_err(|_| Failure::TooLarge)?);
    }
    let maps: Vec<_> = paddings
        .iter()
        .zip(&lefts)
        .map(|(&p, &left)| {
            let stays = p == Padding { begin: 0, end: 0 };
            (!stays).then_some(move |i| p.place(i, left, beyond))
        })
        .collect();
    separable(x, &shape, &maps, (beyond == Beyond::Constant).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn padded(n: i32, begin: i64, end: i64, beyond: Beyond) -> Result<Vec<i32>, Failure> {
        let x = Literal::from_elements(&[n as usize], &(1..=n).collect::<Vec<_>>()).unwrap();
        let padded = pad(&x, &[Padding { begin, end }], beyond, &Literal::scalar(9i32));
        padded.map(|l| l.elements::<i32>().unwrap().into_owned())
    }

    #[test]
    fn extends_and_cuts() {
        assert_eq!(padded(3, 2, 1, Beyond::Constant), Ok(vec![9, 9, 1, 2, 3, 9]));
        assert_eq!(padded(3, 2, 1, Beyond::Edge), Ok(vec![1, 1, 1, 2, 3, 3]));
        assert_eq!(padded(3, 2, 1, Beyond::Reflect), Ok(vec![3, 2, 1, 2, 3, 2]));
        assert_eq!(padded(3, 5, 0, Beyond::Reflect), Ok(vec![2, 1, 2, 3, 2, 1, 2, 3]));
        assert_eq!(padded(3, 4, 2, Beyond::Wrap), Ok(vec![3, 1, 2, 3, 1, 2, 3, 1, 2]));
        assert_eq!(padded(1, 2, 0, Beyond::Reflect), Ok(vec![1, 1, 1]));
        assert_eq!(padded(4, -1, 1, Beyond::Constant), Ok(vec![2, 3, 4, 9]));
        assert_eq!(padded(4, -1, 1, Beyond::Reflect), Ok(vec![2, 3, 4, 3]));
        assert_eq!(padded(4, -3, -1, Beyond::Edge), Ok(vec![]));
        assert_eq!(padded(0, 1, 1, Beyond::Constant), Ok(vec![9, 9]));
        assert!(padded(0, 1, 0, Beyond::Edge).is_err() && padded(2, -2, 1, Beyond::Wrap).is_err());
        assert!(padded(2, -3, 4, Beyond::Constant).is_err());
        assert_eq!(padded(2, i64::MAX, 1, Beyond::Edge), Err(Failure::TooLarge));
    }

    #[test]
    fn centers() {
        assert_eq!(Padding::centered(5, 2), Padding { begin: -1, end: -2 });
        assert_eq!(Padding::centered(2, 5), Padding { begin: 1, end: 2 });
    }

    #[test]
    fn splats_stay_splats_of_one_value() {
        let huge = Literal::splat(&[1 << 40], 1i8);
        let more = |value: i8, beyond| pad(&huge, &[Padding { begin: 1, end: 1 }], beyond, &Literal::scalar(value));
        assert!(more(1, Beyond::Constant).unwrap().as_splat().is_some());
        assert!(more(0, Beyond::Reflect).unwrap().as_splat().is_some());
    }
}
