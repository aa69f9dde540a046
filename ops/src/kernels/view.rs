//! Access to the payload of a literal as elements, and construction of results from elements. A
//! splat has one element that is the value of all.

use anfora_ir::{DType, Literal, Shape, element_count};
use bytes::Bytes;

use super::Failure;
use super::number::{RawElement, Scalar};

/// Returns the payload of a literal as elements, without a copy: one element if it is a splat,
/// otherwise all. `R` must have the size of the elements.
pub(crate) fn elements<R: RawElement>(x: &Literal) -> &[R] {
    debug_assert_eq!(x.dtype().bits(), 8 * size_of::<R>());
    x.as_splat().or(x.as_dense().map(|b| &b[..])).map_or(&[], R::view)
}

/// Returns a tensor of elements of type `dtype` that `write` fills in. It is a splat if all
/// elements have the same bits. Only `write` contains loops for an operator and its operand types,
/// so that the code around them is not compiled for each.
///
/// # Errors
/// If its size overflows or the allocation fails.
pub(crate) fn dense<R: RawElement>(
    dtype: DType,
    shape: &[usize],
    write: &mut dyn FnMut(&mut [R]),
) -> Result<Literal, Failure> {
    let mut bytes = zeroed(element_count(shape), size_of::<R>())?;
    write(R::view_mut(&mut bytes));
    Literal::from_bytes(dtype, shape, Bytes::from(bytes)).map_err(|_| Failure::TooLarge)
}

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
        let raw = elements::<T::Raw>(literal);
        View { raw, splat: literal.as_splat().and(raw.first()).map(|&r| T::load(r)) }
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
        T::Raw::view_mut(&mut self.bytes)
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
