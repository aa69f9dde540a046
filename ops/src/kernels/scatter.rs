//! Writes to positions that an operand specifies: the inverse of the index maps of `gather`.

use anfora_ir::{DType, Literal};

use super::arithmetic::{dispatch, same_dtype};
use super::gather::{Slices, check_along};
use super::number::{Calc, Number, RawElement};
use super::positions::{Integers, place};
use super::strides::{Walk, resolve_axis, row_major};
use super::view::{dense, elements};
use super::{Failure, MOST_STEPS, shape_text};

/// The combination of an element and the elements that are written to its position.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Write {
    /// The element that is written last remains.
    Update,
    /// Their sum.
    Add,
    /// Their product.
    Multiply,
    /// The largest of them.
    Maximum,
    /// The smallest of them.
    Minimum,
}

/// A function that calls its argument for each write that the indices specify, in order, with the
/// position in the result, the position in the updates, and the length.
type Visit<'a> = &'a dyn Fn(&mut dyn FnMut(usize, usize, usize));

/// Writes elements of `updates` into a copy of `x`.
fn written(
    x: &Literal,
    indices: &Literal,
    updates: &Literal,
    write: Write,
    visit: Visit<'_>,
) -> Result<Literal, Failure> {
    let dtype = same_dtype(&[x, updates])?;
    if updates.shape().contains(&0) || x.shape().contains(&0) {
        return Ok(x.clone());
    }
    if write == Write::Update && x.as_splat().is_some() && x.as_splat() == updates.as_splat() {
        return Ok(x.clone());
    }
    // A splat of updates may have many elements without memory. Its steps are limited, or bounded
    // by the elements of dense indices or of the result.
    let paid = if indices.as_splat().is_some() { 0 } else { indices.element_count() }.max(x.element_count());
    if updates.as_splat().is_some() && updates.element_count() as u128 > MOST_STEPS.max(paid as u128) {
        return Err(Failure::TooLong);
    }
    fn combine<R: RawElement>(
        x: &Literal,
        updates: &Literal,
        visit: Visit<'_>,
        apply: &dyn Fn(&mut [R], &[R]),
    ) -> Result<Literal, Failure> {
        let (source, news) = (elements::<R>(x), elements::<R>(updates));
        let (is_splat, same_news) = (x.as_splat().is_some(), updates.as_splat().is_some());
        dense(x.dtype(), x.shape(), &mut |out| {
            match is_splat {
                true => out.fill(source[0]),
                false => out.copy_from_slice(source),
            }
            visit(&mut |to, from, len| {
                apply(&mut out[to..to + len], if same_news { news } else { &news[from..from + len] });
            });
        })
    }
    // Returns a function that combines elements with as many updates, or all of them with one.
    fn calc<T: Number>(f: impl Fn(T::Calc, T::Calc) -> T::Calc) -> impl Fn(&mut [T::Raw], &[T::Raw]) {
        move |out, news| {
            let write_one = |o: &mut T::Raw, new| *o = T::narrow(f(T::load(*o).widen(), T::load(new).widen())).store();
            match news {
                &[new] => out.iter_mut().for_each(|o| write_one(o, new)),
                _ => out.iter_mut().zip(news).for_each(|(o, &new)| write_one(o, new)),
            }
        }
    }
    // The sum of booleans is their disjunction, and their product is their conjunction.
    let write = match write {
        Write::Add if dtype == DType::Bool => Write::Maximum,
        Write::Multiply if dtype == DType::Bool => Write::Minimum,
        write => write,
    };
    match write {
        Write::Update => dispatch!(size dtype, R => {
            combine::<R>(x, updates, visit, &|out, news| match news {
                &[new] => out.fill(new),
                _ => out.copy_from_slice(news),
            })
        }),
        Write::Add => dispatch!(number dtype, T => combine(x, updates, visit, &calc::<T>(Calc::add))),
        Write::Multiply => dispatch!(number dtype, T => combine(x, updates, visit, &calc::<T>(Calc::mul))),
        Write::Maximum => dispatch!(any dtype, T => combine(x, updates, visit, &calc::<T>(Calc::larger))),
        Write::Minimum => dispatch!(any dtype, T => combine(x, updates, visit, &calc::<T>(Calc::smaller))),
    }
}

/// Returns a copy of `x` with the elements of `updates` written at the index along the axis and at
/// their own position along the other axes.
pub(crate) fn scatter_elements(
    x: &Literal,
    indices: &Literal,
    updates: &Literal,
    axis: i64,
    write: Write,
) -> Result<Literal, Failure> {
    let axis = resolve_axis(axis, x.rank())?;
    let extent = x.shape()[axis];
    check_along(x.shape(), indices.shape(), axis)?;
    if indices.shape() != updates.shape() {
        let (i, u) = (shape_text(indices.shape()), shape_text(updates.shape()));
        return Err(Failure::Mismatch(format!("indices of shape {i} for updates of shape {u}")));
    }
    let numbers = Integers::new(indices)?;
    for index in numbers.distinct() {
        place(index, extent)?;
    }
    let mut strides = row_major(x.shape());
    let along = strides[axis] as usize;
    strides[axis] = 0;
    written(x, indices, updates, write, &|put| {
        let walk = Walk::new(indices.shape(), [&strides]);
        let [step] = walk.run_strides();
        let mut done = 0;
        walk.for_each([0], |[at], len| {
            for i in 0..len {
                // The indices were checked above.
                let position = place(numbers.at(done + i), extent).unwrap_or(0);
                put(at + i * step as usize + position * along, done + i, 1);
            }
            done += len;
        });
    })
}

/// Returns a copy of `x` with the slices of `updates` written at the positions that the lists of
/// indices select.
pub(crate) fn scatter_nd(x: &Literal, indices: &Literal, updates: &Literal, write: Write) -> Result<Literal, Failure> {
    let slices = Slices::new(x.shape(), indices, 0)?;
    if updates.shape() != slices.shape.as_slice() {
        let (wanted, found) = (shape_text(&slices.shape), shape_text(updates.shape()));
        return Err(Failure::Mismatch(format!("updates of shape {found} where {wanted} is indexed")));
    }
    written(x, indices, updates, write, &|put| {
        for list in 0..slices.count {
            put(slices.start(list), list * slices.inner, slices.inner);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(shape: &[usize], values: &[i64]) -> Literal {
        Literal::from_elements(shape, values).unwrap()
    }

    fn values(l: Result<Literal, Failure>) -> Vec<i64> {
        l.unwrap().to_i64s().unwrap()
    }

    #[test]
    fn writes_elements_in_order() {
        let x = ints(&[5], &[1, 2, 3, 4, 5]);
        let s = |i: &[i64], u: &[i64], write| {
            let (i, u) = (ints(&[i.len()], i), ints(&[u.len()], u));
            scatter_elements(&x, &i, &u, 0, write)
        };
        assert_eq!(values(s(&[1, -2, 1], &[7, 8, 9], Write::Update)), [1, 9, 3, 8, 5]);
        assert_eq!(values(s(&[1, 1], &[7, 9], Write::Add)), [1, 18, 3, 4, 5]);
        assert_eq!(values(s(&[1, 1], &[7, i64::MAX], Write::Multiply))[1], 14i64.wrapping_mul(i64::MAX));
        assert_eq!(values(s(&[0, 4], &[7, 1], Write::Maximum)), [7, 2, 3, 4, 5]);
        assert_eq!(values(s(&[0, 4], &[7, 1], Write::Minimum)), [1, 2, 3, 4, 1]);
        assert_eq!(s(&[5], &[1], Write::Update), Err(Failure::Index { index: 5, extent: 5 }));
        assert!(s(&[1, 2], &[1], Write::Update).is_err());
        let rows = scatter_elements(
            &ints(&[2, 3], &[0; 6]),
            &ints(&[2, 1], &[2, 0]),
            &ints(&[2, 1], &[5, 6]),
            1,
            Write::Update,
        );
        assert_eq!(values(rows), [0, 0, 5, 6, 0, 0]);
        let nan = Literal::from_elements(&[1], &[f32::NAN]).unwrap();
        let max = scatter_elements(&Literal::splat(&[1], 1f32), &ints(&[1], &[0]), &nan, 0, Write::Maximum).unwrap();
        assert!(max.as_scalar::<f32>().unwrap_or(f32::NAN).is_nan());
    }

    #[test]
    fn booleans_are_added_as_or_and_multiplied_as_and() {
        let bools = |values: &[bool]| Literal::from_elements(&[values.len()], values).unwrap();
        let (x, updates) = (bools(&[false, false, true, true]), bools(&[false, true, false, true]));
        let s = |write| scatter_elements(&x, &ints(&[4], &[0, 1, 2, 3]), &updates, 0, write);
        assert_eq!(s(Write::Add), Ok(bools(&[false, true, true, true])));
        assert_eq!(s(Write::Multiply), Ok(bools(&[false, false, false, true])));
    }

    #[test]
    fn updates_without_end_are_refused() {
        let many = 1usize << 40;
        let (x, zeros, ones) =
            (ints(&[4], &[1, 2, 3, 4]), Literal::splat(&[many], 0i64), Literal::splat(&[many], 1i64));
        assert_eq!(scatter_elements(&x, &zeros, &ones, 0, Write::Add), Err(Failure::TooLong));
        let lists = Literal::splat(&[many, 1], 0i64);
        assert_eq!(scatter_nd(&x, &lists, &ones, Write::Add), Err(Failure::TooLong));
        let (none, slices) = (Literal::splat(&[many, 0], 0i64), Literal::splat(&[many, 4], 1i64));
        assert_eq!(scatter_nd(&x, &none, &slices, Write::Add), Err(Failure::TooLong));
    }

    #[test]
    fn writes_slices_in_order() {
        let x = ints(&[3, 2], &[1, 2, 3, 4, 5, 6]);
        let s = |i: &Literal, u: &Literal, write| scatter_nd(&x, i, u, write);
        let twice = ints(&[2, 1], &[1, -2]);
        assert_eq!(values(s(&twice, &ints(&[2, 2], &[7, 8, 9, 10]), Write::Update)), [1, 2, 9, 10, 5, 6]);
        assert_eq!(values(s(&twice, &ints(&[2, 2], &[7, 8, 9, 10]), Write::Add)), [1, 2, 19, 22, 5, 6]);
        assert_eq!(values(s(&ints(&[1, 2], &[2, 0]), &ints(&[1], &[0]), Write::Multiply)), [1, 2, 3, 4, 0, 6]);
        assert!(s(&twice, &ints(&[2], &[7, 8]), Write::Update).is_err());
        assert!(s(&ints(&[1, 1], &[3]), &ints(&[1, 2], &[7, 8]), Write::Update).is_err());
        let huge = Literal::splat(&[1 << 40], 1i64);
        assert_eq!(scatter_nd(&huge, &ints(&[1, 1], &[9]), &ints(&[1], &[1]), Write::Update).unwrap(), huge);
    }
}
