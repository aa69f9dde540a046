//! Operands whose elements say where other elements lie.

use anfora_ir::Literal;

use super::Failure;

/// The elements of an integer operand. A splat is one number.
pub(crate) struct Integers {
    numbers: Vec<i64>,
    is_splat: bool,
}

impl Integers {
    /// # Errors
    /// If they are not integers, or are past `i64::MAX`.
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

    /// The element at a row-major position, which is in range.
    #[inline(always)]
    pub(crate) fn at(&self, position: usize) -> i64 {
        self.numbers[if self.is_splat { 0 } else { position }]
    }

    pub(crate) fn is_splat(&self) -> bool {
        self.is_splat
    }

    /// The elements, each that differs from the one before at least once.
    pub(crate) fn distinct(&self) -> impl Iterator<Item = i64> {
        self.numbers.iter().copied()
    }
}

/// The place of an index in an axis; a negative one counts from the end.
///
/// # Errors
/// If it is out of range.
#[inline(always)]
pub(crate) fn place(index: i64, extent: usize) -> Result<usize, Failure> {
    let from_start = if index < 0 { index.checked_add_unsigned(extent as u64) } else { Some(index) };
    from_start.and_then(|i| usize::try_from(i).ok()).filter(|&i| i < extent).ok_or(Failure::Index { index, extent })
}
