//! Constant tensors: element type, shape and shared bytes.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use half::{bf16, f16};
use smallvec::SmallVec;

use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::tables::dtype::DType;

/// The shape of a constant: its extents, outermost first.
pub type Shape = SmallVec<[usize; 4]>;

/// A constant tensor. Cloning shares the payload.
///
/// A tensor whose elements all have the same bits is stored as one element (a *splat*), whatever
/// its size. All constructors do so, so literals with equal contents are equal. Elements are
/// little-endian and row-major; elements of less than 8 bits are packed, the first in the lowest bits.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Literal {
    dtype: DType,
    shape: Shape,
    data: Data,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Data {
    /// The bits of the element, in the low bytes (unused bytes are zero).
    Splat([u8; 16]),
    Dense(Bytes),
    Strings(Arc<[Arc<str>]>),
}

/// The reason why bytes or elements and a shape do not make a literal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LiteralError {
    /// The number of bytes does not fit the shape.
    #[error("a tensor of {elements} {dtype} elements takes {expected} bytes, not {actual}")]
    ByteCount {
        /// The element type.
        dtype: DType,
        /// The product of the extents.
        elements: usize,
        /// The number of bytes that the shape needs.
        expected: usize,
        /// The number of bytes given.
        actual: usize,
    },
    /// The number of elements does not fit the shape.
    #[error("the shape has {expected} elements, but {actual} are given")]
    ElementCount {
        /// The product of the extents.
        expected: usize,
        /// The number of elements given.
        actual: usize,
    },
    /// The product of the extents, or the size in bytes, exceeds the address range.
    #[error("the tensor is too large")]
    TooLarge,
    /// The element type cannot be represented in this way.
    #[error("{0} elements cannot be made this way")]
    WrongKind(DType),
}

/// A Rust type that is the representation of an element type.
pub trait Element: Copy + PartialEq + Send + Sync + 'static {
    /// The represented element type.
    const DTYPE: DType;
    /// Reads an element; `bytes` has exactly its size.
    ///
    /// Cost: one loop.
    fn read(bytes: &[u8]) -> Self;
    /// Appends the bytes of the element.
    fn write(self, out: &mut Vec<u8>);
}

macro_rules! elements {
    ($($ty:ty, $dtype:ident;)*) => {$(
        impl Element for $ty {
            const DTYPE: DType = DType::$dtype;
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                <$ty>::from_le_bytes(bytes.try_into().expect("the caller passes one element"))
            }
            #[inline]
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}
elements! {
    i8, Int8; i16, Int16; i32, Int32; i64, Int64;
    u8, UInt8; u16, UInt16; u32, UInt32; u64, UInt64;
    f16, Float16; bf16, BFloat16; f32, Float32; f64, Float64;
}

impl Element for bool {
    const DTYPE: DType = DType::Bool;
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
    #[inline]
    fn write(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
}

/// Returns the number of elements of a shape; `None` if it overflows.
pub fn element_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d))
}

/// Returns a byte whose lowest `bits` bits are set.
fn low_bits(bits: usize) -> u8 {
    if bits < 8 { (1 << bits) - 1 } else { u8::MAX }
}

/// Returns a byte that consists of copies of an element of `bits` bits.
fn repeated(element: u8, bits: usize) -> u8 {
    (0..8 / bits).fold(0, |byte, i| byte | element << (i * bits))
}

/// Checks that a tensor of this shape has `actual` elements.
fn check_count(shape: &[usize], actual: usize) -> Result<(), LiteralError> {
    match element_count(shape).ok_or(LiteralError::TooLarge)? {
        expected if expected == actual => Ok(()),
        expected => Err(LiteralError::ElementCount { expected, actual }),
    }
}

impl Literal {
    /// Returns a rank-0 tensor.
    pub fn scalar<T: Element>(value: T) -> Literal {
        Literal::splat(&[], value)
    }

    /// Returns a tensor whose elements are all `value`. Takes the memory of one element.
    pub fn splat<T: Element>(shape: &[usize], value: T) -> Literal {
        let mut bytes = Vec::with_capacity(16);
        value.write(&mut bytes);
        Literal::splat_bytes(T::DTYPE, shape, &bytes)
    }

    /// Returns a tensor of any element type except `string` whose elements all have the bits
    /// `element` (little-endian; at most 16 bytes are read; an element of less than 8 bits is in the
    /// lowest bits of a byte).
    ///
    /// Cost: one loop.
    pub fn splat_bytes(dtype: DType, shape: &[usize], element: &[u8]) -> Literal {
        if shape.contains(&0) {
            return Literal { dtype, shape: shape.into(), data: Data::Dense(Bytes::new()) };
        }
        let mut bits = [0; 16];
        let n = dtype.bits().div_ceil(8).min(element.len());
        bits[..n].copy_from_slice(&element[..n]);
        bits[0] &= low_bits(dtype.bits());
        if dtype == DType::Bool {
            bits[0] = u8::from(bits[0] != 0);
        }
        Literal { dtype, shape: shape.into(), data: Data::Splat(bits) }
    }

    /// Returns a tensor of the given elements, row-major.
    ///
    /// # Errors
    /// If the number of elements does not fit the shape.
    pub fn from_elements<T: Element>(shape: &[usize], elements: &[T]) -> Result<Literal, LiteralError> {
        check_count(shape, elements.len())?;
        let mut bytes = Vec::with_capacity(std::mem::size_of_val(elements));
        for &e in elements {
            e.write(&mut bytes);
        }
        Literal::from_bytes(T::DTYPE, shape, Bytes::from(bytes))
    }

    /// Returns a tensor of little-endian, row-major bytes. They are shared, not copied, unless they
    /// are stored in another form (splats, packed elements, and `bool` bytes other than 0 and 1).
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If the number of bytes does not fit the shape, or `dtype` is `string`.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Bytes) -> Result<Literal, LiteralError> {
        if dtype == DType::String {
            return Err(LiteralError::WrongKind(dtype));
        }
        let elements = element_count(shape).ok_or(LiteralError::TooLarge)?;
        let expected = dtype.byte_len(elements).ok_or(LiteralError::TooLarge)?;
        if bytes.len() != expected {
            return Err(LiteralError::ByteCount { dtype, elements, expected, actual: bytes.len() });
        }
        if elements == 0 {
            return Ok(Literal { dtype, shape: shape.into(), data: Data::Dense(Bytes::new()) });
        }
        if dtype.bits() < 8 {
            return Ok(Literal::from_packed(dtype, shape, elements, &bytes));
        }
        let bytes = if dtype == DType::Bool && bytes.iter().any(|&b| b > 1) {
            Bytes::from(bytes.iter().map(|&b| u8::from(b != 0)).collect::<Vec<u8>>())
        } else {
            bytes
        };
        let size = dtype.bits() / 8;
        // All elements are equal if and only if the bytes equal themselves shifted by one element.
        if bytes[size..] == bytes[..bytes.len() - size] {
            return Ok(Literal::splat_bytes(dtype, shape, &bytes[..size]));
        }
        Ok(Literal { dtype, shape: shape.into(), data: Data::Dense(bytes) })
    }

    fn from_packed(dtype: DType, shape: &[usize], elements: usize, bytes: &[u8]) -> Literal {
        let first = bytes[0] & low_bits(dtype.bits());
        let mut bytes = bytes.to_vec();
        // The unused bits of the last byte are not part of the value.
        let used = low_bits(8 - (bytes.len() * 8 - elements * dtype.bits()));
        let last = bytes.last_mut().expect("there is an element");
        *last &= used;
        let (same, last) = (repeated(first, dtype.bits()), *last);
        if last == same & used && bytes[..bytes.len() - 1].iter().all(|&b| b == same) {
            return Literal::splat_bytes(dtype, shape, &[first]);
        }
        Literal { dtype, shape: shape.into(), data: Data::Dense(Bytes::from(bytes)) }
    }

    /// Returns a tensor of elements of at most 8 bits, given as one byte for each, in its lowest
    /// bits. Inverse of [`Literal::to_codes`].
    ///
    /// # Errors
    /// If the number of elements does not fit the shape, or an element takes more than 8 bits.
    pub fn from_codes(dtype: DType, shape: &[usize], codes: &[u8]) -> Result<Literal, LiteralError> {
        if !matches!(dtype.bits(), 1..=8) {
            return Err(LiteralError::WrongKind(dtype));
        }
        check_count(shape, codes.len())?;
        let (bits, low) = (dtype.bits(), low_bits(dtype.bits()));
        let pack = |c: &[u8]| c.iter().rev().fold(0u8, |byte, &c| byte.checked_shl(bits as u32).unwrap_or(0) | c & low);
        Literal::from_bytes(dtype, shape, codes.chunks(8 / bits).map(pack).collect())
    }

    /// Returns the elements of at most 8 bits as one byte for each, in its lowest bits; `None` if an
    /// element takes more. A splat has one byte.
    ///
    /// Cost: one loop.
    pub fn to_codes(&self) -> Option<Cow<'_, [u8]>> {
        let bits = self.dtype.bits();
        match &self.data {
            _ if bits > 8 => None,
            Data::Strings(_) => None,
            Data::Splat(element) => Some(Cow::Borrowed(&element[..1])),
            Data::Dense(bytes) if bits == 8 => Some(Cow::Borrowed(bytes)),
            Data::Dense(bytes) => {
                let unpack = |&b: &u8| (0..8 / bits).map(move |i| b >> (i * bits) & low_bits(bits));
                Some(Cow::Owned(bytes.iter().flat_map(unpack).take(self.element_count()).collect()))
            }
        }
    }

    /// Returns a tensor of strings.
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If the number of strings does not fit the shape.
    pub fn from_strings(shape: &[usize], strings: Vec<Arc<str>>) -> Result<Literal, LiteralError> {
        check_count(shape, strings.len())?;
        Ok(Literal { dtype: DType::String, shape: shape.into(), data: Data::Strings(strings.into()) })
    }

    /// Returns the element type.
    #[inline]
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the extents, outermost first.
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of extents.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements, saturating for splats beyond the address range.
    pub fn element_count(&self) -> usize {
        element_count(&self.shape).unwrap_or(usize::MAX)
    }

    /// Returns the number of bytes of the payload as stored: one element for a splat.
    pub fn stored_bytes(&self) -> usize {
        match &self.data {
            Data::Splat(_) => self.dtype.bits().div_ceil(8),
            Data::Dense(b) => b.len(),
            Data::Strings(s) => s.iter().map(|s| s.len() + 16).sum(),
        }
    }

    /// Returns the number of bytes of the payload in full; `None` if it overflows, or for strings.
    pub fn expanded_bytes(&self) -> Option<usize> {
        self.dtype.byte_len(element_count(&self.shape)?)
    }

    /// Returns the element of a splat as little-endian bytes; `None` if the tensor is not stored as
    /// a splat.
    pub fn as_splat(&self) -> Option<&[u8]> {
        match &self.data {
            Data::Splat(b) => Some(&b[..self.dtype.bits().div_ceil(8)]),
            _ => None,
        }
    }

    /// Returns the payload as stored, if it is not a splat and not strings.
    pub fn as_dense(&self) -> Option<&Bytes> {
        match &self.data {
            Data::Dense(b) => Some(b),
            _ => None,
        }
    }

    /// Returns the strings, if the element type is `string`.
    pub fn as_strings(&self) -> Option<&[Arc<str>]> {
        match &self.data {
            Data::Strings(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the payload in full, with splats expanded to the size of the tensor. Callers should
    /// check [`Literal::expanded_bytes`] first if the shape is not trusted. Empty for strings.
    pub fn to_bytes(&self) -> Bytes {
        match &self.data {
            Data::Dense(b) => b.clone(),
            Data::Strings(_) => Bytes::new(),
            Data::Splat(bits) => {
                let n = self.element_count();
                if self.dtype.bits() < 8 {
                    let mut v = vec![repeated(bits[0], self.dtype.bits()); (n * self.dtype.bits()).div_ceil(8)];
                    let spare = v.len() * 8 - n * self.dtype.bits();
                    if let Some(last) = v.last_mut() {
                        *last &= low_bits(8 - spare);
                    }
                    return Bytes::from(v);
                }
                Bytes::from(bits[..self.dtype.bits() / 8].repeat(n))
            }
        }
    }

    /// Returns all elements; `None` if `T` does not represent the element type.
    pub fn elements<T: Element>(&self) -> Option<Cow<'_, [T]>> {
        if T::DTYPE != self.dtype {
            return None;
        }
        let size = T::DTYPE.bits() / 8;
        Some(Cow::Owned(match &self.data {
            Data::Splat(bits) => vec![T::read(&bits[..size]); self.element_count()],
            Data::Dense(b) => b.chunks_exact(size).map(T::read).collect(),
            Data::Strings(_) => return None,
        }))
    }

    /// Returns the value of a tensor of one element; `None` if it has another number of elements or
    /// another element type.
    pub fn as_scalar<T: Element>(&self) -> Option<T> {
        match &self.data {
            Data::Splat(bits) if T::DTYPE == self.dtype && self.element_count() == 1 => {
                Some(T::read(&bits[..T::DTYPE.bits() / 8]))
            }
            _ => None,
        }
    }

    /// Returns the elements of an integer tensor of any width (or of a `bool` tensor) as `i64`;
    /// `None` for other element types and for `uint64` values above `i64::MAX`. Takes memory for
    /// every element.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        match self.dtype {
            DType::UInt64 => self.elements::<u64>()?.iter().map(|&e| e.try_into().ok()).collect(),
            _ => self.widened(),
        }
    }

    /// Returns the elements of an integer tensor of any width (or of a `bool` tensor) as `i128`;
    /// `None` for other element types. Takes memory for every element.
    pub fn to_i128s(&self) -> Option<Vec<i128>> {
        match self.dtype {
            DType::UInt64 => self.widen::<u64, _>(),
            _ => self.widened(),
        }
    }

    fn widen<T: Element + Into<W>, W>(&self) -> Option<Vec<W>> {
        Some(self.elements::<T>()?.iter().map(|&e| e.into()).collect())
    }

    /// Returns the elements of a tensor of `bool` or of integers that fit in an `i64`.
    fn widened<W: From<bool> + From<i8> + From<i16> + From<i32> + From<i64> + From<u8> + From<u16> + From<u32>>(
        &self,
    ) -> Option<Vec<W>> {
        match self.dtype {
            DType::Bool => self.widen::<bool, W>(),
            DType::Int8 => self.widen::<i8, W>(),
            DType::Int16 => self.widen::<i16, W>(),
            DType::Int32 => self.widen::<i32, W>(),
            DType::Int64 => self.widen::<i64, W>(),
            DType::UInt8 => self.widen::<u8, W>(),
            DType::UInt16 => self.widen::<u16, W>(),
            DType::UInt32 => self.widen::<u32, W>(),
            _ => None,
        }
    }

    /// Returns a tensor of integers or `bool` with the given elements, row-major, truncated to the
    /// lowest bits of each. Inverse of [`Literal::to_i64s`].
    ///
    /// # Errors
    /// If the number of elements does not fit the shape, or the element type is another.
    pub fn from_i64s(dtype: DType, shape: &[usize], elements: &[i64]) -> Result<Literal, LiteralError> {
        if !dtype.is_integer() && dtype != DType::Bool {
            return Err(LiteralError::WrongKind(dtype));
        }
        check_count(shape, elements.len())?;
        let size = dtype.bits() / 8;
        let bytes: Vec<u8> = elements.iter().flat_map(|e| e.to_le_bytes().into_iter().take(size)).collect();
        Literal::from_bytes(dtype, shape, Bytes::from(bytes))
    }

    /// Returns a tensor with the same elements and another shape.
    ///
    /// # Errors
    /// If the number of elements differs.
    pub fn reshaped(&self, shape: &[usize]) -> Result<Literal, LiteralError> {
        check_count(shape, self.element_count())?;
        Ok(Literal { dtype: self.dtype, shape: shape.into(), data: self.data.clone() })
    }
}

impl fmt::Debug for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.as_splat().is_some() { "splat" } else { "dense" };
        write!(f, "{kind}<{}{:?}>({} bytes)", self.dtype, self.shape.as_slice(), self.stored_bytes())
    }
}

impl IntoDiagnostics for LiteralError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_splat_and_its_expansion_are_one_literal() {
        let dense = Literal::from_elements(&[2, 2], &[1.5f32; 4]).unwrap();
        assert_eq!(dense, Literal::splat(&[2, 2], 1.5f32));
        assert_eq!(dense.as_splat(), Some(&1.5f32.to_le_bytes()[..]));
        assert_eq!(dense.elements::<f32>().unwrap().as_ref(), &[1.5; 4]);
        assert_ne!(Literal::scalar(0.0f32), Literal::scalar(-0.0f32));
        assert_eq!(Literal::scalar(f32::NAN), Literal::scalar(f32::NAN));
    }

    #[test]
    fn a_huge_splat_takes_one_element() {
        let l = Literal::splat(&[1_000_000, 1_000_000], 0i8);
        assert_eq!(l.stored_bytes(), 1);
        assert_eq!(l.expanded_bytes(), Some(1_000_000_000_000));
    }

    #[test]
    fn nibbles_are_packed_and_the_spare_half_is_ignored() {
        let a = Literal::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x21, 0x93])).unwrap();
        let b = Literal::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x21, 0x03])).unwrap();
        assert_eq!(a, b);
        let s = Literal::from_bytes(DType::Int4, &[3], Bytes::from_static(&[0x55, 0x05])).unwrap();
        assert_eq!(s, Literal::splat_bytes(DType::Int4, &[3], &[5]));
        assert_eq!(s.to_bytes().as_ref(), &[0x55, 0x05]);
    }

    #[test]
    fn quarters_of_a_byte_are_packed() {
        let codes = [1, 2, 3, 0, 2];
        let a = Literal::from_codes(DType::UInt2, &[5], &codes).unwrap();
        assert_eq!(a, Literal::from_bytes(DType::UInt2, &[5], Bytes::from_static(&[0b00_11_10_01, 0xfe])).unwrap());
        assert_eq!(a.to_codes().unwrap().as_ref(), &codes);
        let s = Literal::from_codes(DType::Int2, &[5], &[2; 5]).unwrap();
        assert_eq!(s, Literal::splat_bytes(DType::Int2, &[5], &[2]));
        assert_eq!(s.to_bytes().as_ref(), &[0xaa, 2]);
        let b = Literal::from_codes(DType::Float8E5M2, &[2], &[0x3c, 0xff]).unwrap();
        assert_eq!(b.to_codes().unwrap().as_ref(), &[0x3c, 0xff]);
        assert_eq!(Literal::from_codes(DType::Int16, &[1], &[0]), Err(LiteralError::WrongKind(DType::Int16)));
        assert_eq!(Literal::scalar(1i16).to_codes(), None);
    }

    #[test]
    fn a_wrong_number_of_bytes_is_an_error() {
        let e = Literal::from_bytes(DType::Int16, &[3], Bytes::from_static(&[1, 2]));
        assert_eq!(e, Err(LiteralError::ByteCount { dtype: DType::Int16, elements: 3, expected: 6, actual: 2 }));
    }
}
