//! Index maps that are separable by axis, such as tiles, padding and crops, and maps of the last
//! two axes: triangles and blocks.

use anfora_ir::{DType, Literal, Shape, element_count};

use super::arithmetic::dispatch;
use super::index::{permute_dims, reshape, uniform};
use super::strides::row_major;
use super::view::{dense, elements};
use super::{Failure, shape_text};

/// Returns a tensor each of whose elements is the element of `x` at a position that is computed for
/// each axis separately, or `fill` where a map returns `None`. `maps` has a map for each axis, or
/// `None` for an axis that stays as it is. Returns an error if the extent of such an axis changes.
pub(crate) fn separable<M: Fn(usize) -> Option<usize>>(
    x: &Literal,
    shape: &[usize],
    maps: &[Option<M>],
    fill: Option<&Literal>,
) -> Result<Literal, Failure> {
    // Check the shapes and the element type.
    let mut stays = x.shape().iter().zip(shape).zip(maps).map(|((from, to), map)| map.is_some() || from == to);
    if x.rank() != shape.len() || maps.len() != shape.len() || !stays.all(|s| s) {
        let (from, to) = (shape_text(x.shape()), shape_text(shape));
        return Err(Failure::Mismatch(format!("a tensor of shape {from} does not become one of shape {to}")));
    }
    if !x.dtype().has_kernels() {
        return Err(Failure::ElementType(x.dtype()));
    }
    // A result whose elements are all equal, or that has none.
    let same = |fill: &Literal| fill.as_splat() == x.as_splat();
    if (fill.is_none_or(same) || shape.contains(&0))
        && let Some(result) = uniform(x, shape)
    {
        // A result with elements cannot come from an `x` without elements.
        if !x.shape().contains(&0) || shape.contains(&0) {
            return Ok(result);
        }
    }
    if x.shape().contains(&0) {
        return match fill {
            Some(fill) => super::creation::full(shape, fill),
            None => Err(Failure::Mismatch(format!("elements of shape {} from none", shape_text(shape)))),
        };
    }
    // The last axes that stay as they are move together.
    let moved = maps.iter().rposition(Option::is_some).map_or(0, |a| a + 1);
    let inner: usize = shape[moved..].iter().product();
    let splat = x.as_splat().is_some();
    // The positions in a splat are irrelevant, and its extents may overflow.
    let strides = if splat { smallvec::smallvec![0; x.rank()] } else { row_major(x.shape()) };
    // Fill the rows of the result.
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        let fill = fill.map(|f| elements::<R>(f)[0]).unwrap_or_default();
        dense::<R>(x.dtype(), shape, &mut |out| {
            let place = |axis: usize, i: usize| match &maps[axis] {
                Some(map) => map(i).map(|p| p * strides[axis] as usize),
                None => Some(i * strides[axis] as usize),
            };
            let Some(run_axis) = moved.checked_sub(1) else {
                match splat {
                    true => out.fill(source[0]),
                    false => out.copy_from_slice(source),
                }
                return;
            };
            let mut index: Shape = smallvec::smallvec![0; run_axis];
            let width = shape[run_axis] * inner;
            for row in out.chunks_exact_mut(width) {
                let base = index.iter().enumerate().try_fold(0, |at, (axis, &i)| Some(at + place(axis, i)?));
                for (i, slot) in row.chunks_exact_mut(inner).enumerate() {
                    match base.and_then(|b| Some(b + place(run_axis, i)?)) {
                        None => slot.fill(fill),
                        Some(_) if splat => slot.fill(source[0]),
                        Some(at) => slot.copy_from_slice(&source[at..at + inner]),
                    }
                }
                for (i, &extent) in index.iter_mut().zip(shape).rev() {
                    *i += 1;
                    if *i < extent {
                        break;
                    }
                    *i = 0;
                }
            }
        })
    })
}

/// Returns the shape of a tensor that is repeated `repeats` times along each axis.
pub(crate) fn tiled_shape(shape: &[usize], repeats: &[i64]) -> Result<Shape, Failure> {
    if shape.len() != repeats.len() {
        return Err(Failure::Mismatch(format!("{} repeats for rank {}", repeats.len(), shape.len())));
    }
    let extent = |(&e, &r): (&usize, &i64)| {
        let r = usize::try_from(r).map_err(|_| Failure::Mismatch(format!("{r} repeats")))?;
        e.checked_mul(r).ok_or(Failure::TooLarge)
    };
    shape.iter().zip(repeats).map(extent).collect()
}

/// Repeats a tensor along its axes.
pub(crate) fn tile(x: &Literal, repeats: &[i64]) -> Result<Literal, Failure> {
    let shape = tiled_shape(x.shape(), repeats)?;
    let maps: Vec<_> = x.shape().iter().zip(repeats).map(|(&e, &r)| (r != 1).then_some(move |i| Some(i % e))).collect();
    separable(x, &shape, &maps, None)
}

/// A side of the diagonal.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Triangle {
    /// The elements on the diagonal and below.
    Lower,
    /// The elements on the diagonal and above.
    Upper,
}

/// Returns the elements on one side of the diagonal of the last two axes, and 0 on the other side.
/// The diagonal is `k` to the right of the main diagonal.
pub(crate) fn triangle(x: &Literal, k: i64, side: Triangle) -> Result<Literal, Failure> {
    let &[.., rows, columns] = x.shape() else {
        return Err(Failure::Mismatch(format!("a tensor of rank {} has no diagonal", x.rank())));
    };
    let zero = Literal::splat_bytes(x.dtype(), &[], &[0; 8]);
    if (x.shape().contains(&0) || x.as_splat() == zero.as_splat())
        && let Some(result) = uniform(x, x.shape())
    {
        return Ok(result);
    }
    let splat = x.as_splat().is_some();
    dispatch!(size x.dtype(), R => {
        let source = elements::<R>(x);
        dense::<R>(x.dtype(), x.shape(), &mut |out| {
            for (n, row) in out.chunks_exact_mut(columns).enumerate() {
                // The column of the diagonal in this row.
                let diagonal = i64::try_from(n % rows).unwrap_or(i64::MAX).saturating_add(k);
                let place = |p: i64| usize::try_from(p.max(0)).map_or(columns, |p| p.min(columns));
                let kept = match side {
                    Triangle::Lower => 0..place(diagonal.saturating_add(1)),
                    Triangle::Upper => place(diagonal)..columns,
                };
                match splat {
                    true => row[kept].fill(source[0]),
                    false => row[kept.clone()].copy_from_slice(&source[n * columns..][kept]),
                }
            }
        })
    })
}

/// Returns a matrix with ones on the diagonal that is `k` to the right of the main diagonal, and
/// zeros elsewhere.
pub(crate) fn eye(rows: usize, columns: usize, k: i64, dtype: DType) -> Result<Literal, Failure> {
    let shape = [rows, columns];
    let [zero, one] = [0, 1].map(|v| super::creation::constant(&[], dtype, v));
    let (zero, one) = (zero?, one?);
    let start = i128::from(k);
    let meets = start < columns as i128 && -start < rows as i128;
    if shape.contains(&0) || !meets {
        return super::creation::full(&shape, &zero);
    }
    if shape == [1, 1] {
        return super::creation::full(&shape, &one);
    }
    dispatch!(size dtype, R => {
        let [zero, one] = [elements::<R>(&zero)[0], elements::<R>(&one)[0]];
        dense::<R>(dtype, &shape, &mut |out| {
            out.fill(zero);
            for (row, out) in out.chunks_exact_mut(columns).enumerate() {
                if let Some(o) = usize::try_from(row as i128 + start).ok().and_then(|c| out.get_mut(c)) {
                    *o = one;
                }
            }
        })
    })
}

/// The order of the channels of blocks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum BlockOrder {
    /// Row and column in the block, then depth.
    DepthLast,
    /// Depth, then row and column in the block.
    DepthFirst,
}

/// Returns the extents of an image tensor and the size of its blocks, which is not 0.
fn image(x: &[usize], block: i64) -> Result<([usize; 4], usize), Failure> {
    let image = <[usize; 4]>::try_from(x);
    let image = image.map_err(|_| Failure::Mismatch(format!("an image of rank {}, not 4", x.len())))?;
    let size = usize::try_from(block).ok().filter(|&b| b > 0 && b.checked_mul(b).is_some());
    Ok((image, size.ok_or_else(|| Failure::Mismatch(format!("blocks of size {block}")))?))
}

/// Returns the shape of [`depth_to_space`].
pub(crate) fn depth_to_space_shape(x: &[usize], block: i64) -> Result<[usize; 4], Failure> {
    let ([n, c, h, w], b) = image(x, block)?;
    if c % (b * b) != 0 {
        return Err(Failure::Mismatch(format!("{c} channels cannot be divided into blocks of {}", b * b)));
    }
    let times = |e: usize| e.checked_mul(b).ok_or(Failure::TooLarge);
    Ok([n, c / (b * b), times(h)?, times(w)?])
}

/// Moves channels into blocks of the last two axes.
pub(crate) fn depth_to_space(x: &Literal, block: i64, order: BlockOrder) -> Result<Literal, Failure> {
    let shape = depth_to_space_shape(x.shape(), block)?;
    let ([n, _, h, w], b) = image(x.shape(), block)?;
    if let Some(result) = uniform(x, &shape) {
        return Ok(result);
    }
    let (apart, axes) = match order {
        BlockOrder::DepthLast => ([n, b, b, shape[1], h, w], [0, 3, 4, 1, 5, 2]),
        BlockOrder::DepthFirst => ([n, shape[1], b, b, h, w], [0, 1, 4, 2, 5, 3]),
    };
    reshape(&permute_dims(&reshape(x, &apart)?, Some(&axes))?, &shape)
}

/// Returns the shape of [`space_to_depth`].
pub(crate) fn space_to_depth_shape(x: &[usize], block: i64) -> Result<[usize; 4], Failure> {
    let ([n, c, h, w], b) = image(x, block)?;
    if h % b != 0 || w % b != 0 {
        return Err(Failure::Mismatch(format!("an image of {h} by {w} cannot be divided into blocks of {b} by {b}")));
    }
    Ok([n, c.checked_mul(b * b).ok_or(Failure::TooLarge)?, h / b, w / b])
}

/// Moves blocks of the last two axes into channels.
pub(crate) fn space_to_depth(x: &Literal, block: i64, order: BlockOrder) -> Result<Literal, Failure> {
    let shape = space_to_depth_shape(x.shape(), block)?;
    let ([n, c, h, w], b) = image(x.shape(), block)?;
    if let Some(result) = uniform(x, &shape) {
        return Ok(result);
    }
    let apart = [n, c, h / b, b, w / b, b];
    let axes = match order {
        BlockOrder::DepthLast => [0, 3, 5, 1, 2, 4],
        BlockOrder::DepthFirst => [0, 1, 3, 5, 2, 4],
    };
    reshape(&permute_dims(&reshape(x, &apart)?, Some(&axes))?, &shape)
}

/// Returns the product of the extents before an axis and the product of the others.
pub(crate) fn flattened_shape(shape: &[usize], axis: i64) -> Result<[usize; 2], Failure> {
    // The axis may equal the rank.
    let axis = match axis {
        a if a == shape.len() as i64 => shape.len(),
        a => super::strides::resolve_axis(a, shape.len())?,
    };
    let product = |s: &[usize]| element_count(s).ok_or(Failure::TooLarge);
    Ok([product(&shape[..axis])?, product(&shape[axis..])?])
}

#[cfg(test)]
mod tests {
    use super::super::test_values::{counting, values};
    use super::*;

    #[test]
    fn tiles() {
        let t = tile(&counting(&[2, 2]), &[2, 2]).unwrap();
        assert_eq!(t.shape(), &[4, 4]);
        assert_eq!(values(&t), [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(values(&tile(&counting(&[2, 2]), &[2, 1]).unwrap()), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert_eq!(tile(&counting(&[2, 2]), &[0, 1]).unwrap().shape(), &[0, 2]);
        assert_eq!(tile(&counting(&[]), &[]).unwrap(), counting(&[]));
        assert_eq!(tile(&Literal::splat(&[3], 1i8), &[1 << 40]).unwrap(), Literal::splat(&[3 << 40], 1i8));
        assert!(tile(&counting(&[2]), &[-1]).is_err() && tile(&counting(&[2]), &[1, 1]).is_err());
        assert_eq!(tile(&counting(&[2]), &[i64::MAX]), Err(Failure::TooLarge));
    }

    #[test]
    fn triangles() {
        let t = |k, side| values(&triangle(&counting(&[2, 3]), k, side).unwrap());
        assert_eq!(t(0, Triangle::Lower), [0, 0, 0, 3, 4, 0]);
        assert_eq!(t(1, Triangle::Upper), [0, 1, 2, 0, 0, 5]);
        assert_eq!(t(-1, Triangle::Lower), [0, 0, 0, 3, 0, 0]);
        assert_eq!(t(i64::MAX, Triangle::Lower), [0, 1, 2, 3, 4, 5]);
        assert_eq!(t(i64::MIN, Triangle::Upper), [0, 1, 2, 3, 4, 5]);
        assert_eq!(t(i64::MAX, Triangle::Upper), [0; 6]);
        assert!(triangle(&counting(&[3]), 0, Triangle::Lower).is_err());
        assert_eq!(values(&triangle(&Literal::splat(&[2, 2], 1i32), 0, Triangle::Upper).unwrap()), [1, 1, 0, 1]);
    }

    #[test]
    fn ones_on_a_diagonal() {
        let e = |k| values(&eye(2, 3, k, DType::Int32).unwrap());
        assert_eq!(e(0), [1, 0, 0, 0, 1, 0]);
        assert_eq!(e(2), [0, 0, 1, 0, 0, 0]);
        assert_eq!(e(-1), [0, 0, 0, 1, 0, 0]);
        assert_eq!((e(i64::MIN), e(3)), (vec![0; 6], vec![0; 6]));
        assert!(eye(1 << 40, 1 << 40, i64::MAX, DType::Float16).unwrap().as_splat().is_some());
    }

    #[test]
    fn blocks_and_channels() {
        let x = counting(&[1, 8, 1, 2]);
        for order in [BlockOrder::DepthLast, BlockOrder::DepthFirst] {
            let y = depth_to_space(&x, 2, order).unwrap();
            assert_eq!(y.shape(), &[1, 2, 2, 4]);
            assert_eq!(space_to_depth(&y, 2, order).unwrap(), x);
        }
        assert_eq!(values(&depth_to_space(&x, 2, BlockOrder::DepthLast).unwrap())[..4], [0, 4, 1, 5]);
        assert_eq!(values(&depth_to_space(&x, 2, BlockOrder::DepthFirst).unwrap())[..4], [0, 2, 1, 3]);
        assert!(depth_to_space(&x, 3, BlockOrder::DepthLast).is_err());
        assert!(space_to_depth(&x, 2, BlockOrder::DepthLast).is_err());
        assert!(
            depth_to_space(&x, 0, BlockOrder::DepthLast).is_err()
                && depth_to_space(&x, i64::MAX, BlockOrder::DepthLast).is_err()
        );
    }

    #[test]
    fn flattens() {
        assert_eq!(flattened_shape(&[2, 3, 4], 1), Ok([2, 12]));
        assert_eq!(flattened_shape(&[2, 3, 4], 3), Ok([24, 1]));
        assert_eq!(flattened_shape(&[2, 3, 4], -1), Ok([6, 4]));
        assert_eq!(flattened_shape(&[], 0), Ok([1, 1]));
        assert!(flattened_shape(&[2], 2).is_err() && flattened_shape(&[2], -2).is_err());
    }
}
