//! Iteration over several tensors in the order of one shape. Broadcasting, permuting and slicing
//! are expressed as strides.

use std::ops::Range;

use anfora_ir::Shape;
use smallvec::SmallVec;

use super::Failure;

/// The distance in elements between neighbours along each axis. A stride of 0 repeats, and a
/// negative stride walks backwards.
pub(crate) type Strides = SmallVec<[isize; 6]>;

/// Returns the shape that two shapes broadcast to.
///
/// # Errors
/// If two extents differ and neither is 1.
pub(crate) fn broadcast_shapes(a: &[usize], b: &[usize]) -> Result<Shape, Failure> {
    let rank = a.len().max(b.len());
    let at = |s: &[usize], axis: usize| (axis + s.len()).checked_sub(rank).map_or(1, |i| s[i]);
    (0..rank)
        .map(|axis| match (at(a, axis), at(b, axis)) {
            (x, y) if x == y => Ok(x),
            (1, y) => Ok(y),
            (x, 1) => Ok(x),
            (left, right) => Err(Failure::Broadcast { axis, left, right }),
        })
        .collect()
}

/// Returns row-major strides.
pub(crate) fn row_major(shape: &[usize]) -> Strides {
    let mut strides: Strides = smallvec::smallvec![0; shape.len()];
    let mut step = 1usize;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step as isize;
        step = step.saturating_mul(extent);
    }
    strides
}

/// Returns the strides of an operand of `shape` that is broadcast to `result`. They are 0 on axes
/// that the operand does not have or on which its extent is 1, and on all axes if it is a splat.
pub(crate) fn broadcast_strides(shape: &[usize], result: &[usize], splat: bool) -> Strides {
    let mut strides: Strides = smallvec::smallvec![0; result.len()];
    if !splat {
        let added = result.len() - shape.len();
        for (axis, stride) in row_major(shape).into_iter().enumerate() {
            strides[added + axis] = if shape[axis] == 1 { 0 } else { stride };
        }
    }
    strides
}

/// Visits a shape in row-major order, in runs along its last axis. Runs are as long as the strides
/// of `N` tensors allow: extents of 1 are omitted, and neighbouring axes are merged where one
/// stride covers both in every tensor.
pub(crate) struct Walk<const N: usize> {
    /// The extents and strides of the axes, outermost first, without the last axis, which is the
    /// run.
    axes: SmallVec<[(usize, [isize; N]); 6]>,
    run: usize,
    run_strides: [isize; N],
    empty: bool,
}

impl<const N: usize> Walk<N> {
    pub(crate) fn new(shape: &[usize], strides: [&[isize]; N]) -> Walk<N> {
        let mut axes: SmallVec<[(usize, [isize; N]); 6]> = SmallVec::new();
        for (axis, &extent) in shape.iter().enumerate() {
            if extent == 1 {
                continue;
            }
            let stride: [isize; N] = std::array::from_fn(|i| strides[i][axis]);
            match axes.last_mut() {
                Some((outer, outer_strides))
                    if (0..N).all(|i| Some(outer_strides[i]) == stride[i].checked_mul(extent as isize)) =>
                {
                    *outer = outer.saturating_mul(extent);
                    *outer_strides = stride;
                }
                _ => axes.push((extent, stride)),
            }
        }
        let empty = shape.contains(&0);
        let (run, run_strides) = axes.pop().unwrap_or((1, [1; N]));
        Walk { axes, run, run_strides, empty }
    }

    /// Returns the strides of the elements in a run.
    pub(crate) fn run_strides(&self) -> [isize; N] {
        self.run_strides
    }

    /// Visits all runs. The arguments of `visit` are the position in each tensor at which the run
    /// begins, and its length. `starts` are the positions of the first element.
    pub(crate) fn for_each(&self, starts: [isize; N], mut visit: impl FnMut([usize; N], usize)) {
        let mut positions = self.positions(starts);
        while let Some(at) = positions.next() {
            visit(at, self.run);
        }
    }

    fn positions(&self, starts: [isize; N]) -> Positions<'_, N> {
        let index = smallvec::smallvec![0; self.axes.len()];
        Positions { axes: &self.axes, index, next: (!self.empty).then_some(starts) }
    }
}

/// Iterates over the beginnings of the runs of a walk. Hundreds of compiled loops share this code.
struct Positions<'a, const N: usize> {
    axes: &'a [(usize, [isize; N])],
    index: SmallVec<[usize; 6]>,
    next: Option<[isize; N]>,
}

impl<const N: usize> Positions<'_, N> {
    #[inline(never)]
    fn next(&mut self) -> Option<[usize; N]> {
        let at = self.next?;
        let mut next = at;
        self.next = None;
        for (index, &(extent, strides)) in self.index.iter_mut().zip(self.axes).rev() {
            *index += 1;
            if *index < extent {
                for i in 0..N {
                    next[i] += strides[i];
                }
                self.next = Some(next);
                break;
            }
            *index = 0;
            for i in 0..N {
                next[i] -= strides[i] * (extent as isize - 1);
            }
        }
        Some(at.map(|p| p as usize))
    }
}

/// The numbers of elements before, along and after consecutive axes that are treated as one.
#[derive(Copy, Clone)]
pub(crate) struct Around {
    pub(crate) outer: usize,
    pub(crate) extent: usize,
    pub(crate) inner: usize,
}

impl Around {
    /// Returns the numbers for axes of a shape. The shape must have elements, and their number must
    /// not overflow.
    pub(crate) fn new(shape: &[usize], axes: Range<usize>) -> Around {
        Around {
            outer: shape[..axes.start].iter().product(),
            extent: shape[axes.clone()].iter().product(),
            inner: shape[axes.end..].iter().product(),
        }
    }
}

/// Returns the axis counted from the start. A negative axis counts from the end.
///
/// # Errors
/// If it is out of range.
pub(crate) fn resolve_axis(axis: i64, rank: usize) -> Result<usize, Failure> {
    let resolved = if axis < 0 { axis.checked_add(rank as i64) } else { Some(axis) };
    resolved.and_then(|a| usize::try_from(a).ok()).filter(|&a| a < rank).ok_or(Failure::Axis { axis, rank })
}

/// Returns for each axis whether a list names it.
///
/// # Errors
/// If a listed axis is out of range or named twice.
pub(crate) fn resolve_axes(axes: &[i64], rank: usize) -> Result<SmallVec<[bool; 6]>, Failure> {
    let mut named: SmallVec<[bool; 6]> = smallvec::smallvec![false; rank];
    for &axis in axes {
        let resolved = resolve_axis(axis, rank)?;
        if std::mem::replace(&mut named[resolved], true) {
            return Err(Failure::AxisTwice { axis });
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broadcasting_follows_numpy() {
        assert_eq!(broadcast_shapes(&[8, 1, 6], &[7, 1]).unwrap().as_slice(), &[8, 7, 6]);
        assert_eq!(broadcast_shapes(&[], &[0]).unwrap().as_slice(), &[0]);
        assert_eq!(broadcast_shapes(&[1], &[0]).unwrap().as_slice(), &[0]);
        assert_eq!(broadcast_shapes(&[2, 3], &[2]), Err(Failure::Broadcast { axis: 1, left: 3, right: 2 }));
    }

    #[test]
    fn axes_merge_where_one_stride_covers_both() {
        let shape = [2, 3, 4];
        let contiguous = row_major(&shape);
        let walk = Walk::new(&shape, [&contiguous]);
        let mut runs = Vec::new();
        walk.for_each([0], |[at], len| runs.push((at, len)));
        assert_eq!(runs, [(0, 24)]);

        let transposed: Strides = smallvec::smallvec![1, 2, 6];
        let walk = Walk::new(&shape, [&transposed]);
        runs.clear();
        walk.for_each([0], |[at], len| runs.push((at, len)));
        assert_eq!(walk.run_strides(), [6]);
        assert_eq!(runs, [(0, 4), (2, 4), (4, 4), (1, 4), (3, 4), (5, 4)]);
    }

    #[test]
    fn an_empty_shape_has_one_element_and_a_zero_extent_none() {
        let mut visits = 0;
        Walk::<1>::new(&[], [&[]]).for_each([0], |_, len| visits += len);
        assert_eq!(visits, 1);
        Walk::<1>::new(&[3, 0], [&[0, 1]]).for_each([0], |_, _| visits += 1);
        assert_eq!(visits, 1);
    }
}
