//! Index maps: every element of the result is one element of an operand, at a computed position.
//! Bits are kept.

use anfora_ir::{Literal, Shape, element_count};
use smallvec::SmallVec;

use super::arithmetic::{dispatch, same_dtype};
use super::number::RawElement;
use super::strides::{Strides, Walk, broadcast_strides, resolve_axes, resolve_axis, row_major};
use super::view::{dense, elements};
use super::{Failure, shape_text};

/// Returns the result of an index map if the result is empty or `x` is a splat.
pub(super) fn uniform(x: &Literal, shape: &[usize]) -> Option<Literal> {
    if !x.dtype().has_kernels() {
        return None;
    }
    if shape.contains(&0) {
        return Some(Literal::splat_bytes(x.dtype(), shape, &[]));
    }
    x.as_splat().map(|element| Literal::splat_bytes(x.dtype(), shape, element))
}

/// Returns the elements at the positions that the strides and the start determine.
pub(super) fn strided(x: &Literal, shape: &[usize], strides: &[isize], start: isize) -> Result<Literal, Failure> {
    if let Some(result) = uniform(x, shape) {
        return Ok(result);
    }
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        dense::<R>(x.dtype(), shape, &mut |out| {
            let walk = Walk::new(shape, [strides]);
            let [step] = walk.run_strides();
            let mut done = 0;
            walk.for_each([start], |[at], len| {
                let run = &mut out[done..done + len];
                done += len;
                match step {
                    0 => run.fill(source[at]),
                    1 => run.copy_from_slice(&source[at..at + len]),
                    _ => {
                        let mut position = at as isize;
                        for o in run {
                            *o = source[position as usize];
                            position += step;
                        }
                    }
                }
            });
        })
    })
}

fn misfit(from: &[usize], to: &[impl ToString]) -> Failure {
    Failure::Mismatch(format!("a tensor of shape {} does not fit shape {}", shape_text(from), shape_text(to)))
}

/// Returns the elements in another shape with the same number of elements.
pub(crate) fn reshape(x: &Literal, shape: &[usize]) -> Result<Literal, Failure> {
    let fits = match (element_count(x.shape()), element_count(shape)) {
        (Some(a), Some(b)) => a == b,
        // Splats with more elements than the address space.
        _ => {
            x.shape().iter().try_fold(1u128, |n, &d| n.checked_mul(d as u128))
                == shape.iter().try_fold(1u128, |n, &d| n.checked_mul(d as u128))
        }
    };
    let mismatch = || misfit(x.shape(), shape);
    if !fits {
        return Err(mismatch());
    }
    match uniform(x, shape) {
        Some(result) => Ok(result),
        None => x.reshaped(shape).map_err(|_| mismatch()),
    }
}

/// Returns the target shape of `reshape`. An extent of 0 copies the extent of `from` (unless
/// `allow_zero`), and one -1 is inferred.
pub(crate) fn reshape_target(from: &[usize], target: &[i64], allow_zero: bool) -> Result<Shape, Failure> {
    let mut shape = Shape::new();
    let mut inferred = None;
    for (axis, &extent) in target.iter().enumerate() {
        shape.push(match extent {
            -1 if inferred.is_none() => {
                inferred = Some(axis);
                1
            }
            0 if !allow_zero => *from.get(axis).ok_or(Failure::Axis { axis: axis as i64, rank: from.len() })?,
            _ => usize::try_from(extent).map_err(|_| Failure::Mismatch(format!("extent {extent} of the new shape")))?,
        });
    }
    if let Some(axis) = inferred {
        let product = |s: &[usize]| {
            if s.contains(&0) {
                return Some(0);
            }
            s.iter().try_fold(1u128, |n, &d| n.checked_mul(d as u128))
        };
        let (have, rest) = (product(from), product(&shape));
        let extent = match (have, rest) {
            (Some(have), Some(rest)) if rest != 0 && have % rest == 0 => usize::try_from(have / rest).ok(),
            _ => None,
        };
        shape[axis] = extent.ok_or_else(|| misfit(from, target))?;
    }
    Ok(shape)
}

/// Repeats the elements along the axes on which `x` has extent 1 or which `x` does not have.
pub(crate) fn broadcast_to(x: &Literal, shape: &[usize]) -> Result<Literal, Failure> {
    let fits = x.rank() <= shape.len()
        && x.shape().iter().rev().zip(shape.iter().rev()).all(|(&from, &to)| from == to || from == 1);
    if !fits {
        let (from, to) = (shape_text(x.shape()), shape_text(shape));
        return Err(Failure::Mismatch(format!("shape {from} does not broadcast to {to}")));
    }
    strided(x, shape, &broadcast_strides(x.shape(), shape, false), 0)
}

/// Permutes the axes: axis i of the result is axis `axes[i]` of `x`. `None` reverses them.
pub(crate) fn permute_dims(x: &Literal, axes: Option<&[i64]>) -> Result<Literal, Failure> {
    let rank = x.rank();
    let order: SmallVec<[usize; 6]> = match axes {
        None => (0..rank).rev().collect(),
        Some(axes) => {
            resolve_axes(axes, rank)?;
            if axes.len() != rank {
                return Err(Failure::Mismatch(format!("{} axes for rank {rank}", axes.len())));
            }
            axes.iter().map(|&a| resolve_axis(a, rank)).collect::<Result<_, _>>()?
        }
    };
    let from = row_major(x.shape());
    let shape: Shape = order.iter().map(|&a| x.shape()[a]).collect();
    let strides: Strides = order.iter().map(|&a| from[a]).collect();
    strided(x, &shape, &strides, 0)
}

/// Inserts extents of 1, at the positions `axes` of the result.
pub(crate) fn expand_dims(x: &Literal, axes: &[i64]) -> Result<Literal, Failure> {
    let named = resolve_axes(axes, x.rank() + axes.len())?;
    let mut old = x.shape().iter();
    let shape: Shape = named.iter().map(|&new| if new { 1 } else { old.next().copied().unwrap_or(1) }).collect();
    reshape(x, &shape)
}

/// Removes the given axes, which must have extent 1, or all axes with extent 1.
pub(crate) fn squeeze(x: &Literal, axes: Option<&[i64]>) -> Result<Literal, Failure> {
    let named: SmallVec<[bool; 6]> = match axes {
        None => x.shape().iter().map(|&e| e == 1).collect(),
        Some(axes) => resolve_axes(axes, x.rank())?,
    };
    let mut shape = Shape::new();
    for (axis, (&extent, &out)) in x.shape().iter().zip(&named).enumerate() {
        match (out, extent) {
            (true, 1) => {}
            (true, _) => return Err(Failure::Mismatch(format!("axis {axis} has extent {extent}, not 1"))),
            (false, _) => shape.push(extent),
        }
    }
    reshape(x, &shape)
}

/// A part of an axis: a start, a step and a number of elements. All its positions are in range.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    /// The first element.
    pub(crate) start: usize,
    /// The distance from one element to the next; not 0.
    pub(crate) step: i64,
    /// The number of elements.
    pub(crate) count: usize,
}

impl Range {
    /// Returns the range from `begin` to before `end`. Negative positions count from the end, and
    /// positions out of range are clamped.
    ///
    /// # Errors
    /// If the step is 0.
    pub(crate) fn resolve(begin: i64, end: i64, step: i64, extent: usize) -> Result<Range, Failure> {
        if step == 0 {
            return Err(Failure::Mismatch("a stride is 0".into()));
        }
        let n = extent.min(i64::MAX as usize) as i64;
        let (low, high) = if step > 0 { (0, n) } else { (-1, n - 1) };
        let place = |p: i64| if p < 0 { p.saturating_add(n) } else { p }.clamp(low, high);
        let (begin, end) = (place(begin), place(end));
        let distance = if step > 0 { end.saturating_sub(begin) } else { begin.saturating_sub(end) };
        let count = if distance <= 0 { 0 } else { (distance as u64).div_ceil(step.unsigned_abs()) };
        Ok(Range { start: begin.max(0) as usize, step, count: count as usize })
    }
}

/// Returns the elements in one range for each axis.
pub(crate) fn slice(x: &Literal, ranges: &[Range]) -> Result<Literal, Failure> {
    let shape: Shape = ranges.iter().map(|r| r.count).collect();
    if let Some(result) = uniform(x, &shape) {
        return Ok(result);
    }
    if !x.dtype().has_kernels() {
        return Err(Failure::ElementType(x.dtype()));
    }
    let from = row_major(x.shape());
    let mut strides = Strides::new();
    let mut start = 0;
    for (range, &stride) in ranges.iter().zip(&from) {
        start += range.start as isize * stride;
        // An axis with one element needs no step.
        strides.push(if range.count > 1 { stride * range.step as isize } else { 0 });
    }
    strided(x, &shape, &strides, start)
}

/// Splits an axis at the given positions and returns the parts.
pub(crate) fn split(x: &Literal, cuts: &[usize], axis: usize) -> Result<Vec<Literal>, Failure> {
    let extent = x.shape()[axis];
    let mut whole: SmallVec<[Range; 6]> = x.shape().iter().map(|&count| Range { start: 0, step: 1, count }).collect();
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    let mut start = 0;
    for &cut in cuts.iter().chain([&extent]) {
        let end = cut.clamp(start, extent);
        whole[axis] = Range { start, step: 1, count: end - start };
        parts.push(slice(x, &whole)?);
        start = end;
    }
    Ok(parts)
}

/// Joins the operands along an axis.
pub(crate) fn concat(operands: &[&Literal], axis: i64) -> Result<Literal, Failure> {
    let dtype = same_dtype(operands)?;
    let mut shape: Shape = operands[0].shape().into();
    let axis = resolve_axis(axis, shape.len())?;
    for other in &operands[1..] {
        let fits = other.rank() == shape.len()
            && other.shape().iter().zip(&shape).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !fits {
            let (a, b) = (shape_text(operands[0].shape()), shape_text(other.shape()));
            return Err(Failure::Mismatch(format!("shapes {a} and {b} do not join along axis {axis}")));
        }
        shape[axis] = shape[axis].checked_add(other.shape()[axis]).ok_or(Failure::TooLarge)?;
    }
    // Operands without elements are ignored.
    let parts: SmallVec<[&Literal; 8]> = operands.iter().copied().filter(|o| !o.shape().contains(&0)).collect();
    match parts.as_slice() {
        [] => return Ok(Literal::splat_bytes(dtype, &shape, &[])),
        [only] => return Ok((*only).clone()),
        [first, rest @ ..] => {
            if let Some(element) = first.as_splat()
                && rest.iter().all(|o| o.as_splat() == Some(element))
            {
                return Ok(Literal::splat_bytes(dtype, &shape, element));
            }
        }
    }
    dispatch!(size dtype, R => {
        // The number of consecutive elements of each operand that are contiguous in the result.
        let runs: SmallVec<[usize; 8]> =
            parts.iter().map(|o| o.shape()[axis..].iter().product()).collect();
        let outer: usize = shape[..axis].iter().product();
        dense::<R>(dtype, &shape, &mut |mut out| {
            for i in 0..outer {
                for (part, &run) in parts.iter().zip(&runs) {
                    let (here, rest) = std::mem::take(&mut out).split_at_mut(run);
                    out = rest;
                    match part.as_splat() {
                        Some(element) => here.fill(R::view(element)[0]),
                        None => here.copy_from_slice(&elements::<R>(part)[i * run..][..run]),
                    }
                }
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_values::{counting, values};
    use super::*;

    #[test]
    fn reshape_copies_and_infers() {
        assert_eq!(reshape_target(&[2, 3, 4], &[0, -1], false).unwrap().as_slice(), &[2, 12]);
        assert_eq!(reshape_target(&[0, 3], &[3, 0], true).unwrap().as_slice(), &[3, 0]);
        assert!(reshape_target(&[2, 3], &[-1, -1], false).is_err());
        assert!(reshape_target(&[2, 3], &[4, -1], false).is_err());
        assert!(reshape_target(&[2], &[2, 0], false).is_err());
        assert!(reshape_target(&[0], &[0, -1], false).is_err());
        assert!(reshape(&counting(&[2, 3]), &[4]).is_err());
        let huge = Literal::splat(&[1 << 40, 1 << 40], 1u8);
        assert_eq!(reshape(&huge, &[1 << 20, 1 << 60]).unwrap().shape(), &[1 << 20, 1 << 60]);
    }

    #[test]
    fn permutes_and_broadcasts() {
        let x = counting(&[2, 3]);
        assert_eq!(values(&permute_dims(&x, None).unwrap()), [0, 3, 1, 4, 2, 5]);
        let y = counting(&[2, 2, 3]);
        let p = permute_dims(&y, Some(&[1, 2, 0])).unwrap();
        assert_eq!(p.shape(), &[2, 3, 2]);
        assert_eq!(values(&p), [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]);
        assert!(permute_dims(&x, Some(&[0])).is_err() && permute_dims(&x, Some(&[0, 0])).is_err());
        let b = broadcast_to(&counting(&[2, 1]), &[2, 2, 2]).unwrap();
        assert_eq!(values(&b), [0, 0, 1, 1, 0, 0, 1, 1]);
        assert!(broadcast_to(&x, &[2, 2, 2]).is_err() && broadcast_to(&x, &[3]).is_err());
    }

    #[test]
    fn extents_of_one_come_and_go() {
        let x = counting(&[2, 3]);
        assert_eq!(expand_dims(&x, &[0, -1]).unwrap().shape(), &[1, 2, 3, 1]);
        assert_eq!(squeeze(&expand_dims(&x, &[1]).unwrap(), None).unwrap(), x);
        assert!(squeeze(&x, Some(&[0])).is_err());
    }

    #[test]
    fn ranges_follow_onnx() {
        let r = |b, e, s, n| {
            let r = Range::resolve(b, e, s, n).unwrap();
            (0..r.count).map(|i| r.start as i64 + i as i64 * r.step).collect::<Vec<_>>()
        };
        assert_eq!(r(1, 100, 2, 6), [1, 3, 5]);
        assert_eq!(r(-2, i64::MAX, 1, 5), [3, 4]);
        assert_eq!(r(-1, i64::MIN, -2, 5), [4, 2, 0]);
        assert_eq!(r(i64::MAX, 0, -1, 3), [2, 1]);
        assert_eq!(r(3, 1, 1, 5), []);
        assert_eq!(r(0, -1, i64::MIN, 4), []);
        assert_eq!(r(3, i64::MIN, i64::MIN, 4), [3]);
        assert_eq!(r(0, 5, 1, 0), []);
        assert!(Range::resolve(0, 1, 0, 1).is_err());
    }

    #[test]
    fn slices_and_splits() {
        let x = counting(&[3, 4]);
        let rows = Range::resolve(-1, i64::MIN, -2, 3).unwrap();
        let columns = Range::resolve(1, 4, 2, 4).unwrap();
        assert_eq!(values(&slice(&x, &[rows, columns]).unwrap()), [9, 11, 1, 3]);
        let parts = split(&x, &[1, 3], 1).unwrap();
        assert_eq!(values(&parts[0]), [0, 4, 8]);
        assert_eq!(values(&parts[1]), [1, 2, 5, 6, 9, 10]);
        assert_eq!(parts[2].shape(), &[3, 1]);
        assert_eq!(values(&concat(&[&parts[0], &parts[1], &parts[2]], 1).unwrap()), values(&x));
    }

    #[test]
    fn concat_keeps_splats_where_it_can() {
        let a = Literal::splat(&[1 << 20, 1 << 20], 1f32);
        assert!(concat(&[&a, &a], 0).unwrap().as_splat().is_some());
        let b = Literal::splat(&[2, 2], 1i32);
        let c = concat(&[&b, &counting(&[2, 1]), &Literal::from_elements::<i32>(&[2, 0], &[]).unwrap()], -1).unwrap();
        assert_eq!(values(&c), [1, 1, 0, 1, 1, 1]);
        assert!(concat(&[&b, &counting(&[1, 1])], 1).is_err());
        assert_eq!(concat(&[], 0), Err(Failure::Mismatch("no operand".into())));
    }
}
