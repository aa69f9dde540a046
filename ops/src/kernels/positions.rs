//! Operands whose elements are positions of other elements.

use anfora_ir::Literal;

use super::Failure;

/// The most axes that an operand can list, and the most extents that a shape operand determines.
pub(crate) const MAX_RANK: usize = 1 << 12;

/// Returns the number in an integer operand of one element. `what` names the operand in the error.
///
/// # Errors
/// If it is not such an operand, or the number is greater than `i64::MAX`.
pub(crate) fn one_integer(operand: &Literal, what: &str) -> Result<i64, Failure> {
    let numbers = (operand.element_count() == 1).then(|| operand.to_i64s()).flatten();
    let one = numbers.and_then(|n| n.first().copied());
    one.ok_or_else(|| Failure::Mismatch(format!("the {what} is not a tensor of one integer")))
}

/// Returns the numbers in a rank-1 integer operand, at most [`MAX_RANK`]. `what` names the operand
/// in the error.
///
/// # Errors
/// If it is not such an operand, has more elements, or a number is greater than `i64::MAX`.
pub(crate) fn integer_list(operand: &Literal, what: &str) -> Result<Vec<i64>, Failure> {
    if operand.rank() != 1 || !operand.dtype().is_integer() {
        return Err(Failure::Mismatch(format!("the {what} is not a rank-1 tensor of integers")));
    }
    if operand.element_count() > MAX_RANK {
        return Err(Failure::TooLarge);
    }
    operand.to_i64s().ok_or(Failure::TooLarge)
}

/// The elements of an integer operand. A splat is one number.
pub(crate) struct Integers {
    numbers: Vec<i64>,
    is_splat: bool,
}

impl Integers {
    /// Reads the elements.
    ///
    /// # Errors
    /// If they are not integers, or one is greater than `i64::MAX`.
    pub(crate) fn new(literal: &Literal) -> Result<Integers, Failure> {
        if !literal.dtype().is_integer() {
            return Err(Failure::ElementType(literal.dtype()));
        }
        let numbers = match literal.as_splat() {
            Some(element) => Literal::splat_bytes(literal.dtype(), &[1], element).to_i64s(),
            None => literal.to_i64s(),
        };
        let numbers = numbers.ok_or_else(|| Failure::Mismatch("an index is larger than any extent".into()))?;
        Ok(Integers { numbers, is_splat: literal.as_splat().is_some() })
    }

    /// Returns the element at a row-major position, which must be in range.
    #[inline(always)]
    pub(crate) fn at(&self, position: usize) -> i64 {
        self.numbers[if self.is_splat { 0 } else { position }]
    }

    pub(crate) fn is_splat(&self) -> bool {
        self.is_splat
    }

    /// Iterates over values that include every distinct element: the one element of a splat, or all
    /// elements.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = i64> {
        self.numbers.iter().copied()
    }
}

/// Returns the position of an index in an axis. A negative index counts from the end.
///
/// # Errors
/// If it is out of range.
#[inline(always)]
pub(crate) fn place(index: i64, extent: usize) -> Result<usize, Failure> {
    let from_start = if index < 0 { index.checked_add_unsigned(extent as u64) } else { Some(index) };
    from_start.and_then(|i| usize::try_from(i).ok()).filter(|&i| i < extent).ok_or(Failure::Index { index, extent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_operands_say() {
        assert_eq!(one_integer(&Literal::scalar(-2i32), "axis"), Ok(-2));
        assert_eq!(one_integer(&Literal::splat(&[1, 1], 1i64), "axis"), Ok(1));
        for other in [Literal::splat(&[2], 1i64), Literal::splat(&[1 << 40], 1i64), Literal::splat(&[0], 1i64)] {
            assert!(one_integer(&other, "axis").is_err());
        }
        assert!(one_integer(&Literal::scalar(u64::MAX), "axis").is_err());
        assert!(one_integer(&Literal::scalar(1f32), "axis").is_err());
        assert_eq!(integer_list(&Literal::splat(&[2], 3u8), "shape"), Ok(vec![3, 3]));
        assert_eq!(integer_list(&Literal::splat(&[1 << 40], 3u8), "shape"), Err(Failure::TooLarge));
        assert!(integer_list(&Literal::scalar(3i64), "shape").is_err());
        assert!(integer_list(&Literal::splat(&[1], 3f32), "shape").is_err());
    }
}
