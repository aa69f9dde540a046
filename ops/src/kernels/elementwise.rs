//! Elementwise loops over one, two, three or any number of operands, with broadcasting.

use anfora_ir::{Literal, Shape};

use super::Failure;
use super::number::{Calc, Number, Scalar};
use super::strides::{Runs, Walk, broadcast_shapes, broadcast_strides};
use super::view::{Output, View};

/// The number of elements of a result that are computed at once.
const BLOCK: usize = 256;

/// Applies `f` to every element.
pub(crate) fn map<T: Scalar, R: Scalar>(x: &Literal, f: impl Fn(T) -> R) -> Result<Literal, Failure> {
    let raw = View::<T>::new(x).raw;
    written::<R>(x.shape(), x.as_splat().is_some(), &mut |out| {
        for (o, &e) in out.iter_mut().zip(raw) {
            *o = f(T::load(e)).store();
        }
    })
}

/// Returns a tensor whose elements `write` fills in. If `splat` is true, `write` fills in one
/// element, which is the value of all. Only `write` contains loops for an operator and its operand
/// types, so that the code around them is not compiled for each.
fn written<R: Scalar>(shape: &[usize], splat: bool, write: &mut dyn FnMut(&mut [R::Raw])) -> Result<Literal, Failure> {
    if splat {
        let mut one = [R::Raw::default()];
        write(&mut one);
        return Ok(Literal::splat(shape, R::load(one[0])));
    }
    let mut out = Output::<R>::new(shape)?;
    write(out.raw());
    out.finish()
}

/// An operand that is broadcast.
struct Broadcast<'a, T: Scalar> {
    raw: &'a [T::Raw],
    copies: [T::Raw; BLOCK],
}

impl<'a, T: Scalar> Broadcast<'a, T> {
    fn new(literal: &'a Literal) -> Broadcast<'a, T> {
        Broadcast { raw: View::<T>::new(literal).raw, copies: [T::Raw::default(); BLOCK] }
    }

    /// Returns the `len` elements of a run that begins at `start`, from the element `offset` of the
    /// run on. If the operand does not advance in the run, returns copies of its element.
    /// Callers must take the blocks of a run in order, each but the last of `BLOCK` elements.
    fn block(&mut self, start: usize, advance: isize, offset: usize, len: usize) -> &[T::Raw] {
        if advance != 0 {
            return &self.raw[start + offset..][..len];
        }
        if offset == 0 {
            self.copies[..len].fill(self.raw[start]);
        }
        &self.copies[..len]
    }
}

/// Computes the elements of a result of type `R` from as many elements of two operands.
type WriteBlock<'f, A, B, R> = dyn FnMut(&mut [<R as Scalar>::Raw], &[<A as Scalar>::Raw], &[<B as Scalar>::Raw]) + 'f;

/// Returns a tensor whose elements `write` computes, a block at a time, from as many elements of
/// each operand. The operands are broadcast.
fn broadcast<A: Scalar, B: Scalar, R: Scalar>(
    a: &Literal,
    b: &Literal,
    write: &mut WriteBlock<'_, A, B, R>,
) -> Result<Literal, Failure> {
    let shape = if a.shape() == b.shape() { a.shape().into() } else { broadcast_shapes(a.shape(), b.shape())? };
    let splats = [a, b].map(|x| x.as_splat().is_some());
    let (mut x, mut y) = (Broadcast::<A>::new(a), Broadcast::<B>::new(b));
    if splats == [true; 2] && !shape.contains(&0) {
        return written::<R>(&shape, true, &mut |one| write(one, x.raw, y.raw));
    }
    let strides = [(a, splats[0]), (b, splats[1])].map(|(x, splat)| broadcast_strides(x.shape(), &shape, splat));
    let walk = Walk::new(&shape, [&strides[0], &strides[1]]);
    let advances = walk.run_strides();
    written::<R>(&shape, false, &mut |out| {
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
pub(crate) fn zip<A: Scalar, B: Scalar, R: Scalar>(
    a: &Literal,
    b: &Literal,
    mut f: impl FnMut(A, B) -> R,
) -> Result<Literal, Failure> {
    broadcast::<A, B, R>(a, b, &mut |out, x, y| {
        for ((o, &p), &q) in out.iter_mut().zip(x).zip(y) {
            *o = f(A::load(p), B::load(q)).store();
        }
    })
}

/// Returns the elements of `x` where `condition` is true, and those of `y` elsewhere. All three
/// operands broadcast. The bits of elements are kept.
pub(crate) fn select<T: Scalar>(condition: &Literal, x: &Literal, y: &Literal) -> Result<Literal, Failure> {
    let shape = broadcast_shapes(condition.shape(), &broadcast_shapes(x.shape(), y.shape())?)?;
    let (c, p, q) = (View::<bool>::new(condition), View::<T>::new(x), View::<T>::new(y));
    if shape.contains(&0) {
        return Output::<T>::new(&shape)?.finish();
    }
    if let Some(holds) = c.splat {
        let (chosen, view) = if holds { (x, p) } else { (y, q) };
        if let Some(element) = view.splat {
            return Ok(Literal::splat(&shape, element));
        }
        if chosen.shape() == shape.as_slice() {
            return Ok(chosen.clone());
        }
    } else if let (Some(s), Some(t)) = (p.splat, q.splat)
        && s.store() == t.store()
    {
        return Ok(Literal::splat(&shape, s));
    }
    let mut out = Output::<T>::new(&shape)?;
    let raw = out.raw();
    let strides = [
        broadcast_strides(condition.shape(), &shape, c.splat.is_some()),
        broadcast_strides(x.shape(), &shape, p.splat.is_some()),
        broadcast_strides(y.shape(), &shape, q.splat.is_some()),
    ];
    let walk = Walk::new(&shape, [&strides[0], &strides[1], &strides[2]]);
    let [cs, ps, qs] = walk.run_strides().map(|s| s as usize);
    let mut done = 0;
    walk.for_each([0, 0, 0], |[ci, pi, qi], len| {
        let Some(run) = raw.get_mut(done..done + len) else { return };
        done += len;
        for (k, o) in run.iter_mut().enumerate() {
            *o = if c.raw[ci + k * cs] != [0] { p.raw[pi + k * ps] } else { q.raw[qi + k * qs] };
        }
    });
    out.finish()
}

/// Returns `finish(f(… f(f(a, b), c) …))` of the elements of all operands, with broadcasting. There
/// must be at least one operand. Rounds once, at the end.
pub(crate) fn fold<T: Number>(
    operands: &[&Literal],
    f: impl Fn(T::Calc, T::Calc) -> T::Calc,
    finish: impl Fn(T::Calc) -> T::Calc,
) -> Result<Literal, Failure> {
    let mut shape = Shape::new();
    for operand in operands {
        shape = broadcast_shapes(&shape, operand.shape())?;
    }
    let views: Vec<View<T>> = operands.iter().map(|o| View::new(o)).collect();
    if !shape.contains(&0) && views.iter().all(|v| v.splat.is_some()) {
        let folded = views.iter().filter_map(|v| v.splat).map(T::widen).reduce(&f);
        return Ok(Literal::splat(&shape, T::narrow(finish(folded.unwrap_or(T::Calc::ZERO)))));
    }
    let mut out = Output::<T>::new(&shape)?;
    let mut runs: Vec<Runs> = operands
        .iter()
        .zip(&views)
        .map(|(o, v)| Runs::new(&shape, &broadcast_strides(o.shape(), &shape, v.splat.is_some())))
        .collect();
    for block in out.raw().chunks_mut(BLOCK) {
        let mut folded = [T::Calc::ZERO; BLOCK];
        for (number, (view, runs)) in views.iter().zip(&mut runs).enumerate() {
            let mut done = 0;
            while done < block.len() {
                let (at, len) = runs.take(block.len() - done);
                for (k, acc) in folded[done..done + len].iter_mut().enumerate() {
                    let element = T::load(view.raw[at + k * runs.stride()]).widen();
                    *acc = if number == 0 { element } else { f(*acc, element) };
                }
                done += len;
            }
        }
        for (o, &acc) in block.iter_mut().zip(&folded) {
            *o = T::narrow(finish(acc)).store();
        }
    }
    out.finish()
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
    fn fold_broadcasts_in_blocks() {
        let column: Vec<f32> = (0..300).map(|i| i as f32).collect();
        let (a, b) = (f32s(&[300, 1], &column), f32s(&[3], &[0.25, 0.5, 0.75]));
        let one = Literal::splat(&[300, 3], 1f32);
        let sum = fold::<f32>(&[&a, &b, &one], |x, y| x + y, |x| x * 2.0).unwrap();
        let two = zip(&zip(&a, &b, |x: f32, y: f32| x + y).unwrap(), &one, |x: f32, y: f32| (x + y) * 2.0).unwrap();
        assert_eq!(sum, two);
        let huge = Literal::splat(&[1 << 40, 1 << 40], 1f32);
        assert!(fold::<f32>(&[&huge, &huge], |x, y| x + y, |x| x).unwrap().as_splat().is_some());
        assert_eq!(fold::<f32>(&[&f32s(&[0, 3], &[]), &b], |x, y| x + y, |x| x).unwrap(), f32s(&[0, 3], &[]));
        assert_eq!(
            fold::<f32>(&[&huge, &b], |x, y| x + y, |x| x).unwrap_err(),
            Failure::Broadcast { axis: 1, left: 1 << 40, right: 3 }
        );
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
        let r = select::<f32>(&c, &x, &Literal::scalar(-0.0f32)).unwrap();
        assert_eq!(r, f32s(&[2, 2], &[odd_nan, 1.0, -0.0, -0.0]));
        let r = select::<f32>(&Literal::scalar(true), &x, &Literal::splat(&[3, 2], 0f32)).unwrap();
        assert_eq!(r.shape(), &[3, 2]);
        assert_eq!(
            select::<f32>(&c, &Literal::scalar(1f32), &Literal::scalar(1f32)).unwrap(),
            Literal::splat(&[2, 1], 1f32)
        );
    }
}
