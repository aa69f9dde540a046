//! Access to the payload of a literal as elements, and construction of results from elements. A
//! splat has one element that is the value of all.

use anfora_ir::{Literal, Shape, element_count};
use bytes::Bytes;

use super::Failure;
use super::number::Scalar;

/// The elements of an operand, without a copy.
#[derive(Copy, Clone)]
pub(crate) struct View<'a, T: Scalar> {
    /// One element if the operand is a splat, otherwise all elements.
    pub(crate) raw: &'a [T::Raw],
    /// The element of a splat.
    pub(crate) splat: Option<T>,
}

impl<'a, T: Scalar> View<'a, T> {
    /// Returns the elements of `literal`. Callers must have checked its element type.
    pub(crate) fn new(literal: &'a Literal) -> View<'a, T> {
        debug_assert_eq!(literal.dtype(), T::DTYPE);
        match literal.as_splat() {
            Some(element) => {
                let raw = T::view(element);
                View { raw, splat: raw.first().map(|&r| T::load(r)) }
            }
            None => View { raw: literal.as_dense().map_or(&[], |b| T::view(b)), splat: None },
        }
    }

    /// Returns the element at a row-major position, which must be in range.
    #[inline(always)]
    pub(crate) fn get(&self, position: usize) -> T {
        self.splat.unwrap_or_else(|| T::load(self.raw[position]))
    }
}

/// The elements of a result, written in row-major order or by position.
pub(crate) struct Output<T: Scalar> {
    shape: Shape,
    bytes: Vec<u8>,
    element: std::marker::PhantomData<T>,
}

impl<T: Scalar> Output<T> {
    /// Returns a result whose bytes are all zero.
    ///
    /// # Errors
    /// If its size overflows.
    pub(crate) fn new(shape: &[usize]) -> Result<Output<T>, Failure> {
        let bytes = zeroed(element_count(shape), size_of::<T::Raw>())?;
        Ok(Output { shape: shape.into(), bytes, element: std::marker::PhantomData })
    }

    /// Returns the elements for writing.
    pub(crate) fn raw(&mut self) -> &mut [T::Raw] {
        T::view_mut(&mut self.bytes)
    }

    /// Returns the literal. It is a splat if all elements have the same bits.
    pub(crate) fn finish(self) -> Result<Literal, Failure> {
        Literal::from_bytes(T::DTYPE, &self.shape, Bytes::from(self.bytes)).map_err(|_| Failure::TooLarge)
    }
}

/// Returns `elements * size` zero bytes.
///
/// # Errors
/// If the number overflows or the allocation fails.
pub(crate) fn zeroed(elements: Option<usize>, size: usize) -> Result<Vec<u8>, Failure> {
    let bytes = elements.and_then(|n| n.checked_mul(size)).filter(|&n| n <= isize::MAX as usize);
    let bytes = bytes.ok_or(Failure::TooLarge)?;
    let mut vec = Vec::new();
    vec.try_reserve_exact(bytes).map_err(|_| Failure::TooLarge)?;
    vec.resize(bytes, 0);
    Ok(vec)
}

/// Returns a vector of `elements` copies of a value.
///
/// # Errors
/// If the allocation fails.
pub(crate) fn filled<T: Copy>(elements: usize, value: T) -> Result<Vec<T>, Failure> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(elements).map_err(|_| Failure::TooLarge)?;
    vec.resize(elements, value);
    Ok(vec)
}
