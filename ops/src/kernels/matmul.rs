//! Matrix products. Every element of a result is `0 + a0 * b0 + a1 * b1 + …`, in this order and
//! without fused operations, for every blocking of the loops. float16 and bfloat16 are summed in
//! float32; integers wrap.

use anfora_ir::{Literal, Shape, element_count};
#[cfg(feature = "kernels")]
use pulp::{Arch, Simd, WithSimd};

#[cfg(not(feature = "kernels"))]
use super::one_width::{Arch, Simd, WithSimd};

use super::arithmetic::{dispatch, in_product_type, same_dtype};
use super::number::{Calc, Number, Scalar};
use super::strides::{Strides, Walk, broadcast_shapes, broadcast_strides};
use super::view::{Output, View, filled};
use super::{Failure, shape_text};

/// The number of rows of a tile of the result.
const TILE_ROWS: usize = 4;
/// The number of columns of a tile of the result, for elements of up to 4 bytes: two vectors of 32
/// bytes.
const TILE_COLUMNS: usize = 16;
/// The number of columns of a tile of the result, for larger elements.
const TILE_COLUMNS_WIDE: usize = 8;
/// The number of terms of the summed axis that are packed at a time.
const DEPTH: usize = 256;
/// The number of columns that are packed at a time; a multiple of the columns of a tile.
const COLUMNS: usize = 128;

/// One operand of a product, as lanes: the rows of the left operand, or the columns of the right
/// one. Each lane has as many terms as the depth of the product.
pub(crate) trait Lanes<C> {
    /// Writes a part of the operand to `panel`: tiles of `width` lanes, each as a sequence of
    /// terms, each of which has an element for each lane. Elements of `panel` beyond the last lane
    /// are ignored.
    fn pack(&self, part: Part, width: usize, panel: &mut [C]);
}

/// A part of one operand of a product.
#[derive(Copy, Clone)]
pub(crate) struct Part {
    pub(crate) first_lane: usize,
    pub(crate) lanes: usize,
    pub(crate) first_term: usize,
    pub(crate) terms: usize,
}

/// Lanes of an operand with strides. A stride of 0 repeats.
#[derive(Copy, Clone)]
pub(crate) struct Strided<'a, T: Scalar> {
    pub(crate) raw: &'a [T::Raw],
    pub(crate) start: usize,
    pub(crate) lane: usize,
    pub(crate) term: usize,
}

impl<T: Number> Lanes<T::Calc> for Strided<'_, T> {
    fn pack(&self, part: Part, width: usize, panel: &mut [T::Calc]) {
        let start = self.start + part.first_lane * self.lane + part.first_term * self.term;
        let tiles = panel.chunks_exact_mut(part.terms * width);
        for (tile, panel) in tiles.take(part.lanes.div_ceil(width)).enumerate() {
            let first = tile * width;
            let lanes = (part.lanes - first).min(width);
            let start = start + first * self.lane;
            if self.term == 1 {
                for lane in 0..lanes {
                    let terms = &self.raw[start + lane * self.lane..][..part.terms];
                    for (slot, &e) in panel[lane..].iter_mut().step_by(width).zip(terms) {
                        *slot = T::load(e).widen();
                    }
                }
            } else if self.lane == 1 {
                for (term, slots) in panel.chunks_exact_mut(width).enumerate() {
                    let elements = &self.raw[start + term * self.term..][..lanes];
                    for (slot, &e) in slots.iter_mut().zip(elements) {
                        *slot = T::load(e).widen();
                    }
                }
            } else {
                for (term, slots) in panel.chunks_exact_mut(width).enumerate() {
                    let at = start + term * self.term;
                    for (lane, slot) in slots[..lanes].iter_mut().enumerate() {
                        *slot = T::load(self.raw[at + lane * self.lane]).widen();
                    }
                }
            }
        }
    }
}

/// The extents of a product.
#[derive(Copy, Clone)]
pub(crate) struct ProductExtents {
    pub(crate) rows: usize,
    pub(crate) depth: usize,
    pub(crate) columns: usize,
}

/// Adds the product of `a` and `b` to `out` (row-major), in the order of the terms.
///
/// Panels of both operands are packed so that the innermost loop reads memory sequentially and
/// keeps a tile of the result in registers.
pub(crate) fn accumulate<C: Calc>(
    extents: ProductExtents,
    a: &impl Lanes<C>,
    b: &impl Lanes<C>,
    out: &mut [C],
) -> Result<(), Failure> {
    if size_of::<C>() > 4 {
        accumulate_tiles::<C, TILE_COLUMNS_WIDE>(extents, a, b, out)
    } else {
        accumulate_tiles::<C, TILE_COLUMNS>(extents, a, b, out)
    }
}

fn accumulate_tiles<C: Calc, const TILE: usize>(
    extents: ProductExtents,
    a: &impl Lanes<C>,
    b: &impl Lanes<C>,
    out: &mut [C],
) -> Result<(), Failure> {
    let ProductExtents { rows, depth, columns } = extents;
    let block_depth = depth.min(DEPTH);
    let block_columns = columns.min(COLUMNS).next_multiple_of(TILE);
    let mut panel_b = filled(block_depth * block_columns, C::ZERO)?;
    let mut panel_a = filled(block_depth * TILE_ROWS, C::ZERO)?;
    let arch = Arch::new();
    for first_column in (0..columns).step_by(COLUMNS) {
        let width = (columns - first_column).min(COLUMNS);
        for first_term in (0..depth).step_by(DEPTH) {
            let terms = (depth - first_term).min(DEPTH);
            b.pack(Part { first_lane: first_column, lanes: width, first_term, terms }, TILE, &mut panel_b);
            let b = panel_b[..terms * width.next_multiple_of(TILE)].as_chunks().0;
            for first_row in (0..rows).step_by(TILE_ROWS) {
                let height = (rows - first_row).min(TILE_ROWS);
                // Three rows are computed as four, so the loop is compiled for fewer heights.
                let tile_rows = height.next_power_of_two();
                a.pack(Part { first_lane: first_row, lanes: height, first_term, terms }, tile_rows, &mut panel_a);
                let a = &panel_a[..terms * tile_rows];
                let out = &mut out[first_row * columns + first_column..];
                let (stride, extents) = (columns, [height, width]);
                match tile_rows {
                    4 => arch.dispatch(TileRow::<C, 4, TILE> { a: a.as_chunks().0, b, out, stride, extents }),
                    2 => arch.dispatch(TileRow::<C, 2, TILE> { a: a.as_chunks().0, b, out, stride, extents }),
                    _ => arch.dispatch(TileRow::<C, 1, TILE> { a: a.as_chunks().0, b, out, stride, extents }),
                }
            }
        }
    }
    Ok(())
}

/// The product of packed rows and the tiles of packed columns. It is compiled for each vector size,
/// without fused operations.
struct TileRow<'a, C, const ROWS: usize, const TILE: usize> {
    a: &'a [[C; ROWS]],
    /// A sequence of tiles, each with as many terms as `a`.
    b: &'a [[C; TILE]],
    /// The result, from the first element of these rows on.
    out: &'a mut [C],
    /// The distance between rows of the result.
    stride: usize,
    /// The numbers of rows and columns of the result. Rows of `a` beyond them are ignored.
    extents: [usize; 2],
}

impl<C: Calc, const ROWS: usize, const TILE: usize> WithSimd for TileRow<'_, C, ROWS, TILE> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let TileRow { a, b, out, stride, extents: [rows, width] } = self;
        for (tile, b) in b.chunks_exact(a.len()).enumerate() {
            let from = tile * TILE;
            multiply_tile(a, b, &mut out[from..], stride, [rows, (width - from).min(TILE)]);
        }
    }
}

/// Adds the products of packed lanes to a tile of the result with `rows` rows and `width` columns.
#[inline(always)]
fn multiply_tile<C: Calc, const ROWS: usize, const TILE: usize>(
    a: &[[C; ROWS]],
    b: &[[C; TILE]],
    out: &mut [C],
    stride: usize,
    [rows, width]: [usize; 2],
) {
    let mut tile = [[C::ZERO; TILE]; ROWS];
    for (row, sums) in tile.iter_mut().take(rows).enumerate() {
        sums[..width].copy_from_slice(&out[row * stride..][..width]);
    }
    for (x, y) in a.iter().zip(b) {
        for row in 0..ROWS {
            for column in 0..TILE {
                tile[row][column] = tile[row][column].add(x[row].mul(y[column]));
            }
        }
    }
    for (row, sums) in tile.iter().take(rows).enumerate() {
        out[row * stride..][..width].copy_from_slice(&sums[..width]);
    }
}

/// One operand: a stack of matrices, as lanes, over leading axes that broadcast.
struct Stack<'a, T: Scalar> {
    view: View<'a, T>,
    /// The strides of the leading axes.
    batch: Strides,
    lane: usize,
    term: usize,
}

impl<'a, T: Scalar> Stack<'a, T> {
    /// Returns a stack of matrices with `size` elements each. `lane` and `term` are the strides in
    /// a matrix.
    fn new(x: &'a Literal, size: usize, lane: usize, term: usize, batch: &[usize]) -> Stack<'a, T> {
        let view = View::<T>::new(x);
        if view.splat.is_some() {
            return Stack { view, batch: smallvec::smallvec![0; batch.len()], lane: 0, term: 0 };
        }
        let leading = &x.shape()[..x.rank().saturating_sub(2)];
        let batch = broadcast_strides(leading, batch, false).iter().map(|s| s * size as isize).collect();
        Stack { view, batch, lane, term }
    }

    fn at(&self, start: usize) -> Strided<'a, T> {
        Strided { raw: self.view.raw, start, lane: self.lane, term: self.term }
    }
}

fn do_not_multiply(a: &Literal, b: &Literal) -> Failure {
    Failure::Mismatch(format!("shapes {} and {} do not multiply", shape_text(a.shape()), shape_text(b.shape())))
}

/// Multiplies matrices with the semantics of numpy's `matmul`: rank-1 operands are a row and a
/// column, and leading axes broadcast.
pub(crate) fn matmul(a: &Literal, b: &Literal) -> Result<Literal, Failure> {
    same_dtype(&[a, b])?;
    let mismatch = || do_not_multiply(a, b);
    let (batch_a, rows, depth) = match a.shape() {
        [] => return Err(mismatch()),
        &[depth] => (&[][..], 1, depth),
        [batch @ .., rows, depth] => (batch, *rows, *depth),
    };
    let (batch_b, other_depth, columns) = match b.shape() {
        [] => return Err(mismatch()),
        &[depth] => (&[][..], depth, 1),
        [batch @ .., depth, columns] => (batch, *depth, *columns),
    };
    if other_depth != depth {
        return Err(mismatch());
    }
    let batch = broadcast_shapes(batch_a, batch_b)?;
    let mut shape: Shape = batch.clone();
    if a.rank() > 1 {
        shape.push(rows);
    }
    if b.rank() > 1 {
        shape.push(columns);
    }
    let extents = ProductExtents { rows, depth, columns };
    in_product_type(&[a, b], &|of| {
        dispatch!(product of[0].dtype(), T => {
            let left = Stack::<T>::new(of[0], rows.saturating_mul(depth), depth, 1, &batch);
            let right = Stack::<T>::new(of[1], depth.saturating_mul(columns), 1, columns, &batch);
            product(left, right, &batch, extents, &shape, true, None)
        })
    })
}

/// Multiplies two stacks of matrices. `finish` computes an element from its sum, its row and its
/// column; without it, an element is its sum. If `uniform` is true, `finish` maps equal sums to
/// equal elements.
fn product<T: Number>(
    a: Stack<'_, T>,
    b: Stack<'_, T>,
    batch: &[usize],
    extents: ProductExtents,
    shape: &[usize],
    uniform: bool,
    finish: Option<&dyn Fn(T::Calc, usize, usize) -> T>,
) -> Result<Literal, Failure> {
    if shape.contains(&0) {
        return Ok(Literal::splat_bytes(T::DTYPE, shape, &[]));
    }
    let ProductExtents { rows, depth, columns } = extents;
    let finish = |sum, row, column| finish.map_or_else(|| T::narrow(sum), |finish| finish(sum, row, column));
    let constant = match (a.view.splat, b.view.splat) {
        _ if depth == 0 => Some(T::Calc::ZERO),
        (Some(x), Some(y)) => Some(x.widen().mul(y.widen()).repeat_add(depth as u128)),
        _ => None,
    };
    if let Some(sum) = constant
        && uniform
    {
        return Ok(Literal::splat(shape, finish(sum, 0, 0)));
    }
    // With a splat on the left, all rows of the product are equal. With a splat on the right, all
    // columns are.
    let computed_rows = if a.view.splat.is_some() { 1 } else { rows };
    let computed_columns = if b.view.splat.is_some() { 1 } else { columns };
    // Tiles are wide, so a narrow product is computed as its transpose.
    let swap = computed_columns < TILE_COLUMNS_WIDE && computed_rows > computed_columns;
    let mut out = Output::<T>::new(shape)?;
    let raw = out.raw();
    let size = element_count(&[computed_rows, computed_columns]).ok_or(Failure::TooLarge)?;
    let mut sums = filled(size, constant.unwrap_or(T::Calc::ZERO))?;
    let (row_step, column_step) = if swap { (1, computed_rows) } else { (computed_columns, 1) };
    let walk = Walk::new(batch, [&a.batch, &b.batch]);
    let [step_a, step_b] = walk.run_strides().map(|s| s as usize);
    let mut done = 0;
    let mut result = Ok(());
    walk.for_each([0, 0], |[start_a, start_b], len| {
        for i in 0..len {
            if constant.is_none() && result.is_ok() {
                sums.fill(T::Calc::ZERO);
                let (left, right) = (a.at(start_a + i * step_a), b.at(start_b + i * step_b));
                result = if swap {
                    let transposed = ProductExtents { rows: computed_columns, depth, columns: computed_rows };
                    accumulate(transposed, &right, &left, &mut sums)
                } else {
                    let direct = ProductExtents { rows: computed_rows, depth, columns: computed_columns };
                    accumulate(direct, &left, &right, &mut sums)
                };
            }
            for row in 0..rows {
                let from = row.min(computed_rows - 1) * row_step;
                for (column, o) in raw[done..done + columns].iter_mut().enumerate() {
                    let sum = sums[from + column.min(computed_columns - 1) * column_step];
                    *o = finish(sum, row, column).store();
                }
                done += columns;
            }
        }
    });
    result?;
    out.finish()
}

/// The parameters of `gemm`.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) struct Gemm {
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) trans_a: bool,
    pub(crate) trans_b: bool,
}

/// Returns `alpha * a * b + beta * c`. `how` specifies whether `a` and `b` are transposed, and `c`
/// broadcasts to the result.
pub(crate) fn gemm(a: &Literal, b: &Literal, c: Option<&Literal>, how: Gemm) -> Result<Literal, Failure> {
    let operands = [&[a, b][..], c.as_slice()].concat();
    let dtype = same_dtype(&operands)?;
    let mismatch = || do_not_multiply(a, b);
    let (&[a0, a1], &[b0, b1]) = (a.shape(), b.shape()) else { return Err(mismatch()) };
    let (rows, depth) = if how.trans_a { (a1, a0) } else { (a0, a1) };
    let (other_depth, columns) = if how.trans_b { (b1, b0) } else { (b0, b1) };
    if depth != other_depth {
        return Err(mismatch());
    }
    if dtype.is_integer() && (how.alpha.fract() != 0.0 || how.beta.fract() != 0.0) {
        return Err(Failure::Mismatch("alpha and beta of an integer product have fractions".into()));
    }
    let shape = [rows, columns];
    if let Some(c) = c
        && (c.rank() > 2 || broadcast_shapes(c.shape(), &shape)?.as_slice() != shape)
    {
        return Err(Failure::Mismatch(format!(
            "shape {} does not broadcast to {}",
            shape_text(c.shape()),
            shape_text(&shape)
        )));
    }
    let extents = ProductExtents { rows, depth, columns };
    in_product_type(
        &operands,
        &|of| dispatch!(product of[0].dtype(), T => gemm_of::<T>(of[0], of[1], of.get(2).copied(), how, extents)),
    )
}

/// Computes [`gemm`] on one element type, for operands whose shapes fit.
fn gemm_of<T: Number>(
    a: &Literal,
    b: &Literal,
    c: Option<&Literal>,
    how: Gemm,
    extents: ProductExtents,
) -> Result<Literal, Failure> {
    let ProductExtents { rows, depth, columns } = extents;
    let shape = [rows, columns];
    let (lane, term) = if how.trans_a { (1, rows) } else { (depth, 1) };
    let left = Stack::<T>::new(a, rows.saturating_mul(depth), lane, term, &[]);
    let (lane, term) = if how.trans_b { (depth, 1) } else { (1, columns) };
    let right = Stack::<T>::new(b, depth.saturating_mul(columns), lane, term, &[]);
    let (alpha, beta) = (T::Calc::from_f64(how.alpha), T::Calc::from_f64(how.beta));
    let Some(c) = c else {
        let scale = |sum, _: usize, _: usize| T::narrow(alpha.mul(sum));
        return product(left, right, &[], extents, &shape, true, Some(&scale));
    };
    let view = View::<T>::new(c);
    let strides = broadcast_strides(c.shape(), &shape, view.splat.is_some());
    let [row_step, column_step] = [strides[0] as usize, strides[1] as usize];
    let add = |sum, row: usize, column: usize| {
        let bias = T::load(view.raw[row * row_step + column * column_step]).widen();
        T::narrow(alpha.mul(sum).add(beta.mul(bias)))
    };
    product(left, right, &[], extents, &shape, view.splat.is_some(), Some(&add))
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::test_values::noise;
    use super::*;

    /// Computes a product by its definition.
    fn slow(a: &Literal, b: &Literal, [m, k, n]: [usize; 3]) -> Vec<f32> {
        let (x, y) = (a.elements::<f32>().unwrap(), b.elements::<f32>().unwrap());
        let mut out = Vec::new();
        for i in 0..m {
            for j in 0..n {
                out.push((0..k).fold(0.0, |acc, p| acc + x[i * k + p] * y[p * n + j]));
            }
        }
        out
    }

    #[test]
    fn products_of_integers_wrap_in_their_type() {
        fn check<T: Number<Calc = T> + Calc>(values: [T; 6], other: [T; 6]) {
            let a = Literal::from_elements(&[2, 3], &values).unwrap();
            let b = Literal::from_elements(&[3, 2], &other).unwrap();
            let sum = |i: usize, j: usize| {
                (0..3).fold(<T as Calc>::ZERO, |acc, k| acc.add(values[i * 3 + k].mul(other[k * 2 + j])))
            };
            let sums = [sum(0, 0), sum(0, 1), sum(1, 0), sum(1, 1)];
            let expected = Literal::from_elements(&[2, 2], &sums).unwrap();
            assert_eq!(matmul(&a, &b).unwrap(), expected);
            let how = Gemm { alpha: -3.0, beta: 2.0, trans_a: false, trans_b: false };
            let factors = (<T as Calc>::from_f64(-3.0), <T as Calc>::from_f64(2.0));
            let scaled = sums.map(|sum| factors.0.mul(sum).add(factors.1.mul(sum)));
            let expected_scaled = Literal::from_elements(&[2, 2], &scaled).unwrap();
            assert_eq!(gemm(&a, &b, Some(&expected), how).unwrap(), expected_scaled);
        }
        check([127i8, -128, 3, 77, -1, 100], [-128, 127, 5, -77, 99, 2]);
        check([255u8, 128, 3, 77, 1, 100], [200, 127, 5, 177, 99, 2]);
        check([i16::MIN, i16::MAX, 3, 77, -1, 1000], [i16::MIN, 127, 500, -7777, 99, 2]);
        check([u16::MAX, 40_000, 3, 77, 1, 1000], [u16::MAX, 127, 500, 7777, 99, 2]);
        check([u32::MAX, 3_000_000_000, 3, 77, 1, 1000], [u32::MAX, 127, 500, 7777, 99, 2]);
        check([u64::MAX, 1 << 63, 3, 77, 1, 1000], [u64::MAX, 127, 500, 1 << 62, 99, 2]);
        check([i64::MIN, i64::MAX, 3, 77, -1, 1000], [i64::MIN, 127, 500, 1 << 62, -99, 2]);
    }

    #[test]
    fn blocking_does_not_change_a_bit() {
        for (i, &[m, k, n]) in
            [[1, 1, 1], [3, 5, 7], [4, 8, 8], [5, 300, 130], [1, 700, 19], [19, 700, 1], [130, 257, 3], [6, 513, 257]]
                .iter()
                .enumerate()
        {
            let (a, b) = (noise(&[m, k], i as u64), noise(&[k, n], 77 + i as u64));
            let expected = slow(&a, &b, [m, k, n]);
            assert_eq!(matmul(&a, &b).unwrap(), Literal::from_elements(&[m, n], &expected).unwrap(), "{m} {k} {n}");
            let transpose = |x: &Literal| crate::kernels::index::permute_dims(x, None).unwrap();
            for (trans_a, trans_b) in [(false, true), (true, false), (true, true)] {
                let how = Gemm { alpha: 1.0, beta: 1.0, trans_a, trans_b };
                let x = if trans_a { transpose(&a) } else { a.clone() };
                let y = if trans_b { transpose(&b) } else { b.clone() };
                let r = gemm(&x, &y, None, how).unwrap();
                assert_eq!(r, Literal::from_elements(&[m, n], &expected).unwrap());
            }
            let splat = Literal::splat(&[k, n], 0.3f32);
            assert_eq!(matmul(&a, &splat).unwrap().elements::<f32>().unwrap(), slow(&a, &splat, [m, k, n]));
            let splat = Literal::splat(&[m, k], 0.3f32);
            assert_eq!(matmul(&splat, &b).unwrap().elements::<f32>().unwrap(), slow(&splat, &b, [m, k, n]));
        }
    }

    #[test]
    fn ranks_and_batches_follow_numpy() {
        let a = noise(&[2, 1, 3, 4], 1);
        let b = noise(&[5, 4, 6], 2);
        let r = matmul(&a, &b).unwrap();
        assert_eq!(r.shape(), &[2, 5, 3, 6]);
        let part = |x: &Literal, from: usize, shape: &[usize]| {
            let n = element_count(shape).unwrap();
            Literal::from_elements(shape, &x.elements::<f32>().unwrap()[from * n..][..n]).unwrap()
        };
        let one = matmul(&part(&a, 1, &[3, 4]), &part(&b, 3, &[4, 6])).unwrap();
        assert_eq!(part(&r, 5 + 3, &[3, 6]), one);
        assert_eq!(matmul(&noise(&[4], 1), &b).unwrap().shape(), &[5, 6]);
        assert_eq!(matmul(&a, &noise(&[4], 1)).unwrap().shape(), &[2, 1, 3]);
        assert_eq!(matmul(&noise(&[4], 1), &noise(&[4], 1)).unwrap().rank(), 0);
        assert!(matmul(&noise(&[4], 1), &noise(&[3], 1)).is_err());
        assert!(matmul(&Literal::scalar(1f32), &b).is_err());
        let empty = Literal::from_elements::<f32>(&[2, 0], &[]).unwrap();
        let none = Literal::from_elements::<f32>(&[0, 3], &[]).unwrap();
        assert_eq!(matmul(&empty, &none).unwrap(), Literal::splat(&[2, 3], 0f32));
        assert_eq!(matmul(&none, &noise(&[3, 2], 1)).unwrap().shape(), &[0, 2]);
    }

    #[test]
    fn splats_multiply_to_a_splat() {
        let a = Literal::splat(&[1 << 40, 1 << 40], 1f32);
        let r = matmul(&a, &Literal::splat(&[1 << 40, 1 << 50], 1f32)).unwrap();
        assert_eq!(r, Literal::splat(&[1 << 40, 1 << 50], 16_777_216f32));
    }

    #[test]
    fn gemm_scales_adds_and_rounds_once() {
        let a = Literal::from_elements(&[2, 2], &[1i32, 2, 3, 4]).unwrap();
        let c = Literal::from_elements(&[2], &[10i32, 20]).unwrap();
        let how = Gemm { alpha: 2.0, beta: -1.0, trans_a: false, trans_b: true };
        let r = gemm(&a, &a, Some(&c), how).unwrap();
        assert_eq!(r, Literal::from_elements(&[2, 2], &[0i32, 2, 12, 30]).unwrap());
        assert!(gemm(&a, &a, Some(&c), Gemm { alpha: 0.5, ..how }).is_err());
        let ones = Literal::splat(&[2, 2], 1i32);
        let r = gemm(&ones, &ones, Some(&c), how).unwrap();
        assert_eq!(r, Literal::from_elements(&[2, 2], &[-6i32, -16, -6, -16]).unwrap());
        // 2049 is not a float16, but 2050 is.
        let h = |shape: &[usize], v: &[f32]| {
            Literal::from_elements(shape, &v.iter().map(|&v| f16::from_f32(v)).collect::<Vec<_>>()).unwrap()
        };
        let how = Gemm { alpha: 1.0, beta: 1.0, trans_a: false, trans_b: false };
        let (a, b, c) = (h(&[1, 2], &[2048.0, 1.0]), h(&[2, 1], &[1.0, 1.0]), h(&[1], &[1.0]));
        assert_eq!(gemm(&a, &b, Some(&c), how).unwrap(), h(&[1, 1], &[2050.0]));
    }
}
