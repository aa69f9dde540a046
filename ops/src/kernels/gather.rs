//! Index maps whose indices are an operand.

use anfora_ir::{DType, Literal, Shape};

use super::arithmetic::dispatch;
use super::cast::cast;
use super::index::uniform;
use super::positions::{Integers, place};
use super::strides::{Walk, resolve_axis, row_major};
use super::view::{dense, elements};
use super::{Failure, shape_text};

/// Returns the slices of an axis at the indices. A negative index counts from the end.
pub(crate) fn take(x: &Literal, indices: &Literal, axis: i64) -> Result<Literal, Failure> {
    let axis = resolve_axis(axis, x.rank())?;
    let extent = x.shape()[axis];
    let mut shape: Shape = x.shape()[..axis].into();
    shape.extend_from_slice(indices.shape());
    shape.extend_from_slice(&x.shape()[axis + 1..]);
    let numbers = Integers::new(indices)?;
    // Indices are checked even if the result is uniform, since they may be out of range.
    let positions: Vec<usize> = numbers.distinct().map(|i| place(i, extent)).collect::<Result<_, _>>()?;
    if let Some(result) = uniform(x, &shape) {
        return Ok(result);
    }
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        let outer: usize = x.shape()[..axis].iter().product();
        let inner: usize = x.shape()[axis + 1..].iter().product();
        let count = indices.element_count();
        let repeated = indices.as_splat().is_some();
        dense::<R>(x.dtype(), &shape, &mut |out| {
            let mut slots = out.chunks_exact_mut(inner);
            for o in 0..outer {
                for i in 0..count {
                    let position = positions[if repeated { 0 } else { i }];
                    if let Some(slot) = slots.next() {
                        slot.copy_from_slice(&source[(o * extent + position) * inner..][..inner]);
                    }
                }
            }
        })
    })
}

/// Checks that a tensor of indices has the rank of the tensor `x`, and that its extents are not
/// larger except along `axis`.
pub(super) fn check_along(x: &[usize], indices: &[usize], axis: usize) -> Result<(), Failure> {
    let fits = x.len() == indices.len() && x.iter().zip(indices).enumerate().all(|(a, (x, i))| a == axis || i <= x);
    if fits {
        return Ok(());
    }
    let (x, i) = (shape_text(x), shape_text(indices));
    Err(Failure::Mismatch(format!("indices of shape {i} do not fit into {x} beside axis {axis}")))
}

/// Returns a tensor of the shape of `indices`. Each element is the element of `x` at the index
/// along the axis and at the same position along the other axes.
pub(crate) fn gather_elements(x: &Literal, indices: &Literal, axis: i64) -> Result<Literal, Failure> {
    let axis = resolve_axis(axis, x.rank())?;
    let extent = x.shape()[axis];
    check_along(x.shape(), indices.shape(), axis)?;
    let numbers = Integers::new(indices)?;
    for index in numbers.distinct() {
        place(index, extent)?;
    }
    if let Some(result) = uniform(x, indices.shape()) {
        return Ok(result);
    }
    let mut strides = row_major(x.shape());
    let along = strides[axis] as usize;
    strides[axis] = 0;
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        dense::<R>(x.dtype(), indices.shape(), &mut |out| {
            let walk = Walk::new(indices.shape(), [&strides]);
            let [step] = walk.run_strides();
            let mut done = 0;
            walk.for_each([0], |[at], len| {
                for i in 0..len {
                    // The indices were checked above.
                    let position = place(numbers.at(done + i), extent).unwrap_or(0);
                    out[done + i] = source[at + i * step as usize + position * along];
                }
                done += len;
            });
        })
    })
}

/// The slices of a tensor that lists of indices select, for `gather_nd` and `scatter_nd`.
pub(super) struct Slices {
    /// The number of lists of indices.
    pub(super) count: usize,
    /// The number of elements of each slice.
    pub(super) inner: usize,
    /// The shape of all slices together.
    pub(super) shape: Shape,
    numbers: Integers,
    /// The extents of the indexed axes, outermost first.
    extents: Shape,
    /// The number of lists for each element of the batch.
    lists: usize,
    batched: bool,
}

impl Slices {
    /// Reads the lists of indices. The first `batch` axes of the tensor and the indices are common.
    ///
    /// # Errors
    /// If the shapes do not go together, or an index is out of range.
    pub(super) fn new(x: &[usize], indices: &Literal, batch: i64) -> Result<Slices, Failure> {
        let misfit = || {
            let (x, i) = (shape_text(x), shape_text(indices.shape()));
            Failure::Mismatch(format!(
                "indices of shape {i} do not fit a tensor of shape {x} after {batch} common axes"
            ))
        };
        let (&depth, leading) = indices.shape().split_last().ok_or_else(misfit)?;
        let batch = usize::try_from(batch).map_err(|_| misfit())?;
        let end = batch.checked_add(depth).filter(|&end| end <= x.len() && batch <= leading.len());
        let end = end.ok_or_else(misfit)?;
        if x[..batch] != leading[..batch] {
            return Err(misfit());
        }
        let mut shape: Shape = leading.into();
        shape.extend_from_slice(&x[end..]);
        // The products are irrelevant if there are no elements, so they may saturate.
        let product = |s: &[usize]| s.iter().fold(1usize, |n, &e| n.saturating_mul(e));
        let slices = Slices {
            count: product(leading),
            inner: product(&x[end..]),
            shape,
            numbers: Integers::new(indices)?,
            extents: x[batch..end].into(),
            lists: product(&leading[batch..]),
            batched: batch > 0,
        };
        if slices.numbers.is_splat() {
            if slices.count > 0 {
                slices.within(0)?;
            }
        } else if depth > 0 {
            for list in 0..slices.count {
                slices.within(list)?;
            }
        }
        Ok(slices)
    }

    /// Returns the position of the slice that a list selects, within its element of the batch.
    fn within(&self, list: usize) -> Result<usize, Failure> {
        let depth = self.extents.len();
        let mut position = 0usize;
        for (i, &extent) in self.extents.iter().enumerate() {
            position =
                position.saturating_mul(extent).saturating_add(place(self.numbers.at(list * depth + i), extent)?);
        }
        Ok(position)
    }

    /// Returns the position of the first element of the slice that a list selects.
    pub(super) fn start(&self, list: usize) -> usize {
        // The indices were checked in `new`.
        let within = self.within(list).unwrap_or(0);
        let batch = if self.batched { list / self.lists * self.extents.iter().product::<usize>() } else { 0 };
        (batch + within) * self.inner
    }
}

/// Returns the slices of `x` that the lists of indices in the last axis of `indices` select.
pub(crate) fn gather_nd(x: &Literal, indices: &Literal, batch_dims: i64) -> Result<Literal, Failure> {
    let slices = Slices::new(x.shape(), indices, batch_dims)?;
    if let Some(result) = uniform(x, &slices.shape) {
        return Ok(result);
    }
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        dense::<R>(x.dtype(), &slices.shape, &mut |out| {
            for (list, slot) in out.chunks_exact_mut(slices.inner).enumerate() {
                slot.copy_from_slice(&source[slices.start(list)..][..slices.inner]);
            }
        })
    })
}

/// Returns the number of classes of `one_hot`: the one element of a tensor.
pub(crate) fn depth_of(depth: &Literal) -> Result<usize, Failure> {
    if depth.element_count() != 1 {
        return Err(Failure::Mismatch("the depth is not one number".into()));
    }
    let depth = cast(depth, DType::Int64)?.to_i64s().and_then(|d| d.first().copied());
    let depth = depth.ok_or(Failure::TooLarge)?;
    usize::try_from(depth).map_err(|_| Failure::Mismatch(format!("depth {depth} is negative")))
}

/// Returns a row of `depth` elements along a new axis for each index. A row has the second value at
/// the index and the first value elsewhere.
pub(crate) fn one_hot(indices: &Literal, depth: usize, values: &Literal, axis: i64) -> Result<Literal, Failure> {
    let axis = resolve_axis(axis, indices.rank() + 1)?;
    if values.shape() != [2] {
        return Err(Failure::Mismatch("the values are not two".into()));
    }
    let mut shape: Shape = indices.shape().into();
    shape.insert(axis, depth);
    if let Some(result) = uniform(values, &shape) {
        return Ok(result);
    }
    let integers = if indices.dtype().is_integer() { indices.clone() } else { cast(indices, DType::Int64)? };
    let numbers = Integers::new(&integers)?;
    if numbers.distinct().all(|index| place(index, depth).is_err()) {
        return super::index::slice(values, &[super::index::Range { start: 0, step: 1, count: 1 }])
            .and_then(|off| super::creation::full(&shape, &off));
    }
    dispatch!(size values.dtype(), R => {
        let [off, on] = <[_; 2]>::try_from(elements::<R>(values)).map_err(|_| Failure::TooLarge)?;
        let inner: usize = indices.shape()[axis..].iter().product();
        dense::<R>(values.dtype(), &shape, &mut |out| {
            out.fill(off);
            for (o, block) in out.chunks_exact_mut(depth * inner).enumerate() {
                for i in 0..inner {
                    if let Ok(class) = place(numbers.at(o * inner + i), depth) {
                        block[class * inner + i] = on;
                    }
                }
            }
        })
    })
}

/// Reverses the first elements along the time axis. `lengths` has the number of reversed elements
/// for each position along the batch axis.
pub(crate) fn reverse_sequence(
    x: &Literal,
    lengths: &Literal,
    time_axis: i64,
    batch_axis: i64,
) -> Result<Literal, Failure> {
    let (time, batch) = (resolve_axis(time_axis, x.rank())?, resolve_axis(batch_axis, x.rank())?);
    if time == batch {
        return Err(Failure::AxisTwice { axis: batch_axis });
    }
    if lengths.shape() != [x.shape()[batch]] {
        let (lengths, extent) = (shape_text(lengths.shape()), x.shape()[batch]);
        return Err(Failure::Mismatch(format!("lengths of shape {lengths} for {extent} sequences")));
    }
    let numbers = Integers::new(lengths)?;
    let whole = x.shape()[time];
    if let Some(length) = numbers.distinct().find(|&l| usize::try_from(l).map_or(true, |l| l > whole)) {
        return Err(Failure::Mismatch(format!("length {length} of a sequence in an axis of extent {whole}")));
    }
    if let Some(result) = uniform(x, x.shape()) {
        return Ok(result);
    }
    if !x.dtype().has_kernels() {
        return Err(Failure::ElementType(x.dtype()));
    }
    let (first, second) = (time.min(batch), time.max(batch));
    let product = |axes: std::ops::Range<usize>| x.shape()[axes].iter().product::<usize>();
    let (middle, inner) = (product(first + 1..second), product(second + 1..x.rank()));
    let (n, m) = (x.shape()[first], x.shape()[second]);
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        dense::<R>(x.dtype(), x.shape(), &mut |out| {
            for (slot, to) in out.chunks_exact_mut(inner).enumerate() {
                let (mut a, between, mut b) = (slot / m / middle % n, slot / m % middle, slot % m);
                let outer = slot / m / middle / n;
                let (t, length) = match first == time {
                    true => (&mut a, numbers.at(b) as usize),
                    false => (&mut b, numbers.at(a) as usize),
                };
                if *t < length {
                    *t = length - 1 - *t;
                }
                let from = ((outer * n + a) * middle + between) * m + b;
                to.copy_from_slice(&source[from * inner..][..inner]);
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::test_values::{counting, values};
    use super::*;

    fn ints(shape: &[usize], values: &[i64]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    #[test]
    fn takes_by_index() {
        let x = counting(&[2, 3]);
        let i = Literal::from_elements(&[2, 1], &[2i64, -3]).unwrap();
        let t = take(&x, &i, 1).unwrap();
        assert_eq!((t.shape(), values(&t)), (&[2, 2, 1][..], vec![2, 0, 5, 3]));
        assert_eq!(values(&take(&x, &Literal::splat(&[2], 1u8), 0).unwrap()), [3, 4, 5, 3, 4, 5]);
        let bad = Literal::scalar(3i32);
        assert_eq!(take(&x, &bad, 1), Err(Failure::Index { index: 3, extent: 3 }));
        let huge = Literal::splat(&[1 << 40, 4], 1f32);
        assert!(take(&huge, &bad, 1).unwrap().as_splat().is_some());
        assert!(take(&huge, &Literal::scalar(4i32), 1).is_err());
        assert!(take(&x, &Literal::scalar(u64::MAX), 0).is_err());
    }

    #[test]
    fn gathers_elements() {
        let x = counting(&[3, 3]);
        let g = gather_elements(&x, &ints(&[2, 3], &[1, 2, 0, 2, -3, 0]), 0).unwrap();
        assert_eq!((g.shape(), values(&g)), (&[2, 3][..], vec![3, 7, 2, 6, 1, 2]));
        let g = gather_elements(&x, &ints(&[3, 1], &[2, 1, 0]), -1).unwrap();
        assert_eq!((g.shape(), values(&g)), (&[3, 1][..], vec![2, 4, 6]));
        assert!(gather_elements(&x, &ints(&[4, 1], &[0; 4]), 1).is_err(), "more rows than there are");
        assert!(gather_elements(&x, &ints(&[1], &[0]), 0).is_err());
        let out = gather_elements(&x, &ints(&[1, 3], &[0, 3, 0]), 0);
        assert_eq!(out, Err(Failure::Index { index: 3, extent: 3 }));
    }

    #[test]
    fn gathers_slices() {
        let x = counting(&[2, 2, 2]);
        let g = |i: &Literal, b| gather_nd(&x, i, b);
        assert_eq!(values(&g(&ints(&[2, 3], &[0, 0, 1, 1, -1, 0]), 0).unwrap()), [1, 6]);
        let rows = g(&ints(&[2, 1], &[1, 0]), 1).unwrap();
        assert_eq!((rows.shape(), values(&rows)), (&[2, 2][..], vec![2, 3, 4, 5]));
        let all = g(&ints(&[1, 0], &[]), 0).unwrap();
        assert_eq!((all.shape(), values(&all)), (&[1, 2, 2, 2][..], values(&x)));
        assert!(g(&ints(&[1, 4], &[0; 4]), 0).is_err() && g(&ints(&[3, 1], &[0; 3]), 1).is_err());
        assert!(g(&ints(&[], &[0]), 0).is_err() && g(&ints(&[1, 1], &[0]), -1).is_err());
        assert_eq!(g(&ints(&[1, 1], &[2]), 0), Err(Failure::Index { index: 2, extent: 2 }));
    }

    #[test]
    fn one_hot_rows() {
        let v = Literal::from_elements(&[2], &[5i32, 7]).unwrap();
        let hot = one_hot(&ints(&[2], &[1, -3]), 3, &v, -1).unwrap();
        assert_eq!((hot.shape(), values(&hot)), (&[2, 3][..], vec![5, 7, 5, 7, 5, 5]));
        let hot = one_hot(&ints(&[2], &[1, 3]), 2, &v, 0).unwrap();
        assert_eq!((hot.shape(), values(&hot)), (&[2, 2][..], vec![5, 5, 7, 5]));
        let none = one_hot(&Literal::splat(&[1 << 40], 9i64), 8, &v, 0).unwrap();
        assert_eq!(none, Literal::splat(&[8, 1 << 40], 5i32));
        assert_eq!(depth_of(&Literal::splat(&[1], 3.7f32)), Ok(3));
        assert!(depth_of(&Literal::scalar(-1i8)).is_err() && depth_of(&ints(&[2], &[1, 2])).is_err());
    }

    #[test]
    fn reverses_the_first_elements() {
        let x = counting(&[2, 3]);
        let r = |lengths: &[i64], time, batch| reverse_sequence(&x, &ints(&[lengths.len()], lengths), time, batch);
        assert_eq!(values(&r(&[2, 3], 1, 0).unwrap()), [1, 0, 2, 5, 4, 3]);
        assert_eq!(values(&r(&[0, 1, 2], 0, 1).unwrap()), [0, 1, 5, 3, 4, 2]);
        assert!(
            r(&[2, 4], 1, 0).is_err()
                && r(&[2, -1], 1, 0).is_err()
                && r(&[2], 1, 0).is_err()
                && r(&[2, 2], 0, 0).is_err()
        );
    }
}
