//! Determinants, by elimination. The pivot of a column is its element with the largest absolute
//! value, or the first of several.

use anfora_ir::{Literal, element_count};

use super::arithmetic::dispatch;
use super::number::{Calc, FloatNumber};
use super::view::{Output, View, filled};
use super::{Failure, shape_text};

/// Returns the determinant of each matrix of a stack `(…, m, m)`.
pub(crate) fn determinant(x: &Literal) -> Result<Literal, Failure> {
    let &[ref batch @ .., rows, columns] = x.shape() else {
        return Err(Failure::Mismatch(format!("a matrix is expected, not the shape {}", shape_text(x.shape()))));
    };
    if rows != columns {
        return Err(Failure::Mismatch(format!("a matrix of {rows} rows and {columns} columns has no determinant")));
    }
    dispatch!(float x.dtype(), T => run::<T>(x, batch, rows))
}

fn run<T: FloatNumber>(x: &Literal, batch: &[usize], order: usize) -> Result<Literal, Failure> {
    let view = View::<T>::new(x);
    let narrow = |value: T::Calc| T::narrow(value);
    if order == 0 {
        return Ok(Literal::splat(batch, narrow(T::Calc::ONE)));
    }
    if let Some(element) = view.splat {
        // With equal rows, one step of the elimination leaves zeros or NaNs.
        let one = element.widen();
        let rest = one.sub(one.mul(one.div(one)));
        let value = match order {
            1 => one,
            _ if one == T::Calc::ZERO => one,
            _ => one.mul(rest),
        };
        return Ok(Literal::splat(batch, narrow(value)));
    }
    let size = element_count(&[order, order]).ok_or(Failure::TooLarge)?;
    let mut matrix = filled(size, T::Calc::ZERO)?;
    let mut out = Output::<T>::new(batch)?;
    for (o, elements) in out.raw().iter_mut().zip(view.raw.chunks_exact(size)) {
        for (m, &e) in matrix.iter_mut().zip(elements) {
            *m = T::load(e).widen();
        }
        *o = narrow(eliminate(&mut matrix, order)).store();
    }
    out.finish()
}

fn eliminate<C: Calc>(matrix: &mut [C], order: usize) -> C {
    let mut product = C::ONE;
    for step in 0..order {
        let mut pivot = step;
        for row in step + 1..order {
            if matrix[row * order + step].abs() > matrix[pivot * order + step].abs() {
                pivot = row;
            }
        }
        if pivot != step {
            for column in step..order {
                matrix.swap(pivot * order + column, step * order + column);
            }
            product = product.neg();
        }
        let divisor = matrix[step * order + step];
        product = product.mul(divisor);
        if divisor == C::ZERO {
            return product;
        }
        let (above, below) = matrix.split_at_mut((step + 1) * order);
        let row = &above[step * order + step + 1..];
        for other in below.chunks_exact_mut(order) {
            let factor = other[step].div(divisor);
            for (o, &r) in other[step + 1..].iter_mut().zip(row) {
                *o = o.sub(factor.mul(r));
            }
        }
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_stacks_of_matrices() {
        let x = Literal::from_elements(&[3, 2, 2], &[2f64, 3., 4., 2., 0., 1., 1., 0., 1., 2., 2., 4.]).unwrap();
        assert_eq!(determinant(&x).unwrap(), Literal::from_elements(&[3], &[-8f64, -1., -0.]).unwrap());
        let x = Literal::from_elements(&[3, 3], &[2f32, 0., 0., 5., 0., 4., 1., 3., 9.]).unwrap();
        assert_eq!(determinant(&x).unwrap(), Literal::scalar(-24f32));
        assert_eq!(determinant(&Literal::splat(&[2, 0, 0], 1f32)).unwrap(), Literal::splat(&[2], 1f32));
        assert_eq!(determinant(&Literal::splat(&[2, 1, 1], 3f32)).unwrap(), Literal::splat(&[2], 3f32));
        let huge = Literal::splat(&[1 << 40, 1 << 20, 1 << 20], 3f32);
        assert_eq!(determinant(&huge).unwrap(), Literal::splat(&[1 << 40], 0f32));
        assert!(determinant(&Literal::splat(&[2, 3], 1f32)).is_err());
    }
}
