//! Elementwise loops over one, two or three operands, with broadcasting.

use anfora_ir::{DType, Literal};

use super::Failure;
use super::number::{RawElement, Scalar};
use super::strides::{Walk, broadcast_shapes, broadcast_strides};
use super::view::{dense, elements};

/// The number of elements of a result that are computed at once.
const BLOCK: usize = 256;

/// Applies `f` to every element.
pub(crate) fn map<T: Scalar, Out: Scalar>(x: &Literal, f: impl Fn(T) -> Out) -> Result<Literal, Failure> {
    debug_assert_eq!(x.dtype(), T::DTYPE);
    let raw = elements::<T::Raw>(x);
    dense_or_splat::<Out::Raw>(Out::DTYPE, x.shape(), x.as_splat().is_some(), &mut |out| {
        for (o, &e) in out.iter_mut().zip(raw) {
            *o = f(T::load(e)).store();
        }
    })
}

/// Returns a tensor of elements of type `dtype` that `write` fills in. If `splat` is true, `write`
/// fills in one element, which is the value of all.
fn dense_or_splat<R: RawElement>(
    dtype: DType,
    shape: &[usize],
    splat: bool,
    write: &mut dyn FnMut(&mut [R]),
) -> Result<Literal, Failure> {
    if !splat {
        return dense(dtype, shape, write);
    }
    let mut one = [R::default()];
    write(&mut one);
    Ok(Literal::splat_bytes(dtype, shape, one[0].as_ref()))
}

/// An operand that is broadcast.
struct Broadcast<'a, R> {
    raw: &'a [R],
    copies: [R; BLOCK],
}

impl<'a, R: RawElement> Broadcast<'a, R> {
    fn new(literal: &'a Literal) -> Broadcast<'a, R> {
        Broadcast { raw: elements(literal), copies: [R::default(); BLOCK] }
    }

    /// Returns the `len` elements of a run that begins at `start`, from the element `offset` of the
    /// run on. If the operand does not advance in the run, returns copies of its element.
    /// Callers must take the blocks of a run in order, each but the last of `BLOCK` elements.
    fn block(&mut self, start: usize, advance: isize, offset: usize, len: usize) -> &[R] {
        if advance != 0 {
            return &self.raw[start + offset..][..len];
        }
        if offset == 0 {
            self.copies[..len].fill(self.raw[start]);
        }
        &self.copies[..len]
    }
}

/// A function that computes the elements of a result from as many elements of two operands.
type WriteBlock<'f, A, B, R> = dyn FnMut(&mut [R], &[A], &[B]) + 'f;

/// Returns a tensor of elements of type `dtype` that `write` computes, a block at a time, from as
/// many elements of each operand. The operands are broadcast.
fn broadcast<A: RawElement, B: RawElement, R: RawElement>(
    dtype: DType,
    a: &Literal,
    b: &Literal,
    write: &mut WriteBlock<'_, A, B, R>,
) -> Result<Literal, Failure> {
    let shape = if a.shape() == b.shape() { a.shape().into() } else { broadcast_shapes(a.shape(), b.shape())? };
    let splats = [a, b].map(|x| x.as_splat().is_some());
    let (mut x, mut y) = (Broadcast::<A>::new(a), Broadcast::<B>::new(b));
    if splats == [true; 2] && !shape.contains(&0) {
        return dense_or_splat(dtype, &shape, true, &mut |one| write(one, x.raw, y.raw));
    }
    let strides = [(a, splats[0]), (b, splats[1])].map(|(x, splat)| broadcast_strides(x.shape(), &shape, splat));
    let walk = Walk::new(&shape, [&strides[0], &strides[1]]);
    let advances = walk.run_strides();
    dense(dtype, &shape, &mut |out| {
        let mut rest = out;
        walk.for_each([0; 2], |[i, j], len| {
            let Some((run, after)) = std::mem::take(&mut rest).split_at_mut_checked(len) else { return };
            for (number, block) in run.chunks_mut(BLOCK).enumerate() {
                let (offset, len) = (number * BLOCK, block.len());
                write(block, x.block(i, advances[0], offset, len), y.block(j, advances[1], offset, len));
            }
            rest = after;
        });
    })
}

/// Applies `f` to every pair of elements, with broadcasting.
pub(crate) fn zip<A: Scalar, B: Scalar, Out: Scalar>(
    a: &Literal,
    b: &Literal,
    mut f: impl FnMut(A, B) -> Out,
) -> Result<Literal, Failure> {
    debug_assert_eq!((a.dtype(), b.dtype()), (A::DTYPE, B::DTYPE));
    broadcast::<A::Raw, B::Raw, Out::Raw>(Out::DTYPE, a, b, &mut |out, x, y| {
        for ((o, &p), &q) in out.iter_mut().zip(x).zip(y) {
            *o = f(A::load(p), B::load(q)).store();
        }
    })
}

/// Returns the elements of `x` where `condition` is true, and those of `y` elsewhere. All three
/// operands broadcast, and those of `x` and `y` have one type, of the size of `R`. The bits of
/// elements are kept.
pub(crate) fn select<R: RawElement>(condition: &Literal, x: &Literal, y: &Literal) -> Result<Literal, Failure> {
    let shape = broadcast_shapes(condition.shape(), &broadcast_shapes(x.shape(), y.shape())?)?;
    if shape.contains(&0) {
        return Ok(Literal::splat_bytes(x.dtype(), &shape, &[]));
    }
    let splats = [condition, x, y].map(Literal::as_splat);
    if let Some(holds) = splats[0] {
        let (chosen, splat) = if holds == [0] { (y, splats[2]) } else { (x, splats[1]) };
        if let Some(element) = splat {
            return Ok(Literal::splat_bytes(x.dtype(), &shape, element));
        }
        if chosen.shape() == shape.as_slice() {
            return Ok(chosen.clone());
        }
    } else if let (Some(p), Some(q)) = (splats[1], splats[2])
        && p == q
    {
        return Ok(Literal::splat_bytes(x.dtype(), &shape, p));
    }
    let (c, p, q) = (elements::<[u8; 1]>(condition), elements::<R>(x), elements::<R>(y));
    let strides = [condition, x, y].map(|x| broadcast_strides(x.shape(), &shape, x.as_splat().is_some()));
    let walk = Walk::new(&shape, [&strides[0], &strides[1], &strides[2]]);
    let [cs, ps, qs] = walk.run_strides().map(|s| s as usize);
    dense(x.dtype(), &shape, &mut |out| {
        let mut done = 0;
        walk.for_each([0, 0, 0], |[ci, pi, qi], len| {
            let Some(run) = out.get_mut(done..done + len) else { return };
            done += len;
            for (k, o) in run.iter_mut().enumerate() {
                *o = if c[ci + k * cs] != [0] { p[pi + k * ps] } else { q[qi + k * qs] };
            }
        });
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(shape: &[usize], values: &[f32]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    #[test]
    fn zip_broadcasts() {
        let a = f32s(&[2, 1, 3], &[1., 2., 3., 4., 5., 6.]);
        let b = f32s(&[2, 1], &[10., 20.]);
        let sum = zip(&a, &b, |x: f32, y: f32| x + y).unwrap();
        assert_eq!(sum, f32s(&[2, 2, 3], &[11., 12., 13., 21., 22., 23., 14., 15., 16., 24., 25., 26.]));
        let c = f32s(&[3], &[1., 0., -1.]);
        assert_eq!(zip(&c, &a, |x: f32, y: f32| x - y).unwrap(), f32s(&[2, 1, 3], &[0., -2., -4., -3., -5., -7.]));
        let s = Literal::splat(&[2, 2, 3], 1f32);
        assert_eq!(zip(&s, &a, |x: f32, y: f32| x + y).unwrap().shape(), &[2, 2, 3]);
    }

    #[test]
    fn splats_stay_splats_and_empty_stays_empty() {
        let huge = Literal::splat(&[1 << 20, 1 << 20, 1 << 20, 1 << 20], 2f32);
        assert_eq!(map(&huge, |x: f32| x + 1.0).unwrap().as_splat(), Some(&3f32.to_le_bytes()[..]));
        let one = Literal::scalar(1f32);
        assert_eq!(zip(&huge, &one, |x: f32, y: f32| x + y).unwrap().shape(), huge.shape());
        let empty = f32s(&[0, 5], &[]);
        assert_eq!(zip(&empty, &one, |x: f32, y: f32| x + y).unwrap(), empty);
        let tiny = f32s(&[2], &[1., 2.]);
        let wide = Literal::splat(&[1 << 40, 1 << 40, 2], 1f32);
        assert_eq!(zip(&wide, &tiny, |x: f32, y: f32| x + y), Err(Failure::TooLarge));
    }

    #[test]
    fn select_broadcasts_and_keeps_bits() {
        let c = Literal::from_elements(&[2, 1], &[true, false]).unwrap();
        let odd_nan = f32::from_bits(0xffc0_1234);
        let x = f32s(&[1, 2], &[odd_nan, 1.0]);
        let r = select::<[u8; 4]>(&c, &x, &Literal::scalar(-0.0f32)).unwrap();
        assert_eq!(r, f32s(&[2, 2], &[odd_nan, 1.0, -0.0, -0.0]));
        let r = select::<[u8; 4]>(&Literal::scalar(true), &x, &Literal::splat(&[3, 2], 0f32)).unwrap();
        assert_eq!(r.shape(), &[3, 2]);
        assert_eq!(
            select::<[u8; 4]>(&c, &Literal::scalar(1f32), &Literal::scalar(1f32)).unwrap(),
            Literal::splat(&[2, 1], 1f32)
        );
    }
}
