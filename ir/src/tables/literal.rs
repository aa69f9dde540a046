//! Constant tensors: element type, shape and shared bytes.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use half::{bf16, f16};
use smallvec::SmallVec;

use crate::files::storage::{Digest, DigestState, FileRange, PIECE, StorageError};
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};
use crate::tables::dtype::DType;

/// The shape of a constant: its extents, outermost first.
pub type Shape = SmallVec<[usize; 4]>;

/// A constant tensor. Cloning shares the payload.
///
/// A tensor whose elements all have the same bits is stored as one element (a *splat*), whatever
/// its size. All constructors do so, so literals with equal contents are equal. Elements are
/// little-endian and row-major; elements of less than 8 bits are packed, the first in the lowest
/// bits.
///
/// The payload may be a range of a file ([`Literal::in_file`]). Its bytes are read when something
/// needs them, and such a literal equals one with the same bytes in memory. Two ranges are compared
/// by place, then by a sample, and by contents only if the samples agree. A range that cannot be
/// read equals only itself.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Literal {
    dtype: DType,
    shape: Shape,
    data: Data,
}

#[derive(Clone)]
enum Data {
    /// The bits of the element, in the low bytes (unused bytes are zero).
    Splat([u8; 16]),
    Dense(Bytes),
    Strings(Arc<[Arc<str>]>),
    Stored(Arc<StoredPayload>),
}

/// A payload that is a range of a file. It is neither empty nor a splat.
struct StoredPayload {
    range: FileRange,
    /// The hash of the payload's sample.
    sample: u64,
    bytes: OnceLock<Bytes>,
    /// The digest of all bytes; `None` if they cannot be read.
    digest: OnceLock<Option<Digest>>,
}

/// Payloads of at most this many bytes are hashed whole.
const HASHED_WHOLE: usize = 64 << 10;
/// The number of bytes at the beginning, in the middle and at the end of a larger payload that are
/// hashed.
const SAMPLE: usize = 4 << 10;
/// The bytes of payloads of at most this size are kept from the beginning. Larger payloads are read
/// when something needs them.
const KEPT: usize = SAMPLE;

/// Returns the ranges of a payload of `len` bytes that are hashed: the whole of it, or a sample.
fn hashed_parts(len: usize) -> SmallVec<[Range<usize>; 3]> {
    if len <= HASHED_WHOLE {
        return std::iter::once(0..len).collect();
    }
    // The middle part does not begin at half of the length. That is often a multiple of a large
    // power of 2, where regular contents often agree.
    [0, (len - SAMPLE) / 2, len - SAMPLE].map(|from| from..from + SAMPLE).into_iter().collect()
}

/// Returns the hash of a payload of `len` bytes, given the parts that are hashed.
fn sample_hash<'a>(len: usize, parts: impl Iterator<Item = &'a [u8]>) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write_usize(len);
    parts.for_each(|part| hasher.write(part));
    hasher.finish()
}

fn sample_hash_of(bytes: &[u8]) -> u64 {
    sample_hash(bytes.len(), hashed_parts(bytes.len()).into_iter().map(|part| &bytes[part]))
}

impl StoredPayload {
    fn digest(&self) -> Option<Digest> {
        *self.digest.get_or_init(|| match self.bytes.get() {
            Some(bytes) => Some(DigestState::of(bytes)),
            None => {
                let mut digest = DigestState::new();
                let read = self.range.for_each_piece(|piece| {
                    digest.add(piece);
                    true
                });
                read.ok().map(|()| digest.finish())
            }
        })
    }

    /// Returns the bytes, which are read and kept the first time.
    fn bytes(&self) -> Result<&Bytes, StorageError> {
        if let Some(bytes) = self.bytes.get() {
            return Ok(bytes);
        }
        let bytes = self.range.read()?;
        Ok(self.bytes.get_or_init(|| bytes))
    }

    fn is_same(&self, other: &StoredPayload) -> bool {
        self.range.is_same_place(&other.range)
            || (self.range.len() == other.range.len()
                && self.sample == other.sample
                && self.digest().is_some_and(|digest| other.digest() == Some(digest)))
    }

    fn is_same_as(&self, bytes: &Bytes) -> bool {
        self.range.len() == bytes.len()
            && match self.bytes.get() {
                Some(own) => own == bytes,
                None => {
                    self.sample == sample_hash_of(bytes)
                        && self.digest().is_some_and(|digest| digest == DigestState::of(bytes))
                }
            }
    }
}

impl PartialEq for Data {
    fn eq(&self, other: &Data) -> bool {
        match (self, other) {
            (Data::Splat(a), Data::Splat(b)) => a == b,
            (Data::Dense(a), Data::Dense(b)) => a == b,
            (Data::Strings(a), Data::Strings(b)) => a == b,
            (Data::Stored(a), Data::Stored(b)) => Arc::ptr_eq(a, b) || a.is_same(b),
            (Data::Stored(a), Data::Dense(b)) | (Data::Dense(b), Data::Stored(a)) => a.is_same_as(b),
            (Data::Splat(_) | Data::Dense(_) | Data::Strings(_) | Data::Stored(_), _) => false,
        }
    }
}

impl Eq for Data {}

impl Hash for Data {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Data::Splat(bits) => bits.hash(state),
            Data::Dense(bytes) => state.write_u64(sample_hash_of(bytes)),
            Data::Strings(strings) => strings.hash(state),
            Data::Stored(stored) => state.write_u64(stored.sample),
        }
    }
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
    /// The elements are in a file that cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A Rust type that is the representation of an element type.
pub trait Element: Copy + PartialEq + Send + Sync + 'static {
    /// The represented element type.
    const DTYPE: DType;
    /// Reads an element; `bytes` has exactly its size.
    ///
    /// Cost: one loop.
    fn read(bytes: &[u8]) -> Self;
    /// Returns the bytes of the element.
    ///
    /// Cost: one entry.
    fn to_bytes(self) -> impl AsRef<[u8]>;
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
            fn to_bytes(self) -> impl AsRef<[u8]> {
                self.to_le_bytes()
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
    fn to_bytes(self) -> impl AsRef<[u8]> {
        [u8::from(self)]
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

/// Returns true if all elements of this size are equal. That is so if and only if the bytes equal
/// themselves shifted by one element.
fn is_repeated(bytes: &[u8], size: usize) -> bool {
    bytes[size..] == bytes[..bytes.len() - size]
}

impl Literal {
    /// Returns a rank-0 tensor.
    pub fn scalar<T: Element>(value: T) -> Literal {
        Literal::splat(&[], value)
    }

    /// Returns a tensor whose elements are all `value`. Takes the memory of one element.
    pub fn splat<T: Element>(shape: &[usize], value: T) -> Literal {
        Literal::splat_bytes(T::DTYPE, shape, value.to_bytes().as_ref())
    }

    /// Returns a tensor of any element type except `string` whose elements all have the bits
    /// `element` (little-endian; at most 16 bytes are read; an element of less than 8 bits is in
    /// the lowest bits of a byte).
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
            bytes.extend_from_slice(e.to_bytes().as_ref());
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
        if is_repeated(&bytes, size) {
            return Ok(Literal::splat_bytes(dtype, shape, &bytes[..size]));
        }
        Ok(Literal { dtype, shape: shape.into(), data: Data::Dense(bytes) })
    }

    /// Returns a tensor of little-endian, row-major bytes that are a range of a file. They stay
    /// there until something needs them, unless they are few, or are stored in another form
    /// ([`Literal::from_bytes`]). Reads a sample, which is all of a small payload. If a larger one
    /// begins with equal elements, reads on until one differs.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the number of bytes does not fit the shape, `dtype` is `string`, or the file cannot be
    /// read.
    pub fn in_file(dtype: DType, shape: &[usize], range: FileRange) -> Result<Literal, LiteralError> {
        let elements = element_count(shape).ok_or(LiteralError::TooLarge)?;
        let expected = dtype.byte_len(elements).filter(|_| dtype != DType::String);
        let size = dtype.bits() / 8;
        // Bytes of packed elements and booleans may have another form, which all bytes decide.
        if expected != Some(range.len()) || range.is_empty() || size == 0 || dtype == DType::Bool {
            return Literal::from_bytes(dtype, shape, range.read()?);
        }
        let parts = hashed_parts(range.len());
        let is_whole = parts.len() == 1;
        let read = range.read_parts(&parts)?;
        let first = &read[..parts[0].len()];
        let mut is_splat = is_repeated(first, size);
        if is_splat && !is_whole {
            range.for_each_piece(|piece| {
                is_splat = is_repeated(piece, size) && piece[..size] == first[..size];
                is_splat
            })?;
        }
        if is_splat {
            return Ok(Literal::splat_bytes(dtype, shape, &first[..size]));
        }
        let sample = sample_hash(range.len(), read.chunks(first.len()));
        let bytes = if range.len() <= KEPT { OnceLock::from(Bytes::from(read)) } else { OnceLock::new() };
        let stored = StoredPayload { range, sample, bytes, digest: OnceLock::new() };
        Ok(Literal { dtype, shape: shape.into(), data: Data::Stored(Arc::new(stored)) })
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
    /// Cost: one loop.
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

    /// Returns the elements of at most 8 bits as one byte for each, in its lowest bits; `None` if
    /// an element takes more, or if the elements are in a file that cannot be read. A splat has one
    /// byte.
    ///
    /// Cost: one loop.
    pub fn to_codes(&self) -> Option<Cow<'_, [u8]>> {
        let bits = self.dtype.bits();
        match &self.data {
            _ if bits > 8 => None,
            Data::Strings(_) => None,
            Data::Splat(element) => Some(Cow::Borrowed(&element[..1])),
            Data::Dense(bytes) if bits == 8 => Some(Cow::Borrowed(bytes)),
            // Packed elements are never left in a file.
            Data::Stored(stored) => stored.bytes().ok().map(|bytes| Cow::Borrowed(&**bytes)),
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
            Data::Stored(s) => s.range.len(),
        }
    }

    /// Returns the number of bytes of the payload in memory. Those that are still in a file do not
    /// count.
    pub(crate) fn held_bytes(&self) -> usize {
        match &self.data {
            Data::Stored(s) => size_of::<StoredPayload>() + s.bytes.get().map_or(0, Bytes::len),
            _ => self.stored_bytes(),
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

    /// Returns the payload as stored, if it is not a splat and not strings. Bytes in a file are
    /// read and kept. `None` if they cannot be read; see [`Literal::load`].
    pub fn as_dense(&self) -> Option<&Bytes> {
        match &self.data {
            Data::Dense(b) => Some(b),
            Data::Stored(s) => s.bytes().ok(),
            _ => None,
        }
    }

    /// Returns true if the tensor is stored neither as a splat nor as strings.
    pub fn is_dense(&self) -> bool {
        matches!(self.data, Data::Dense(_) | Data::Stored(_))
    }

    /// Returns the place of the payload, if it is a range of a file.
    pub fn file_range(&self) -> Option<&FileRange> {
        match &self.data {
            Data::Stored(s) => Some(&s.range),
            _ => None,
        }
    }

    /// Reads the payload if it is in a file, and keeps it. Code that reads elements calls this
    /// first: without it, elements that cannot be read appear as if the tensor had none, and the
    /// error is only noted ([`LiteralTable::failure`](crate::LiteralTable::failure)).
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the file has changed or cannot be read.
    pub fn load(&self) -> Result<(), StorageError> {
        match &self.data {
            Data::Stored(s) => s.bytes().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// Calls a function with the bytes of a dense payload in order, in pieces that do not depend on
    /// where the bytes are. Bytes in a file are not kept.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the file has changed or cannot be read.
    pub fn for_each_piece(&self, mut f: impl FnMut(&[u8])) -> Result<(), StorageError> {
        let in_memory = match &self.data {
            Data::Dense(bytes) => Some(bytes),
            Data::Stored(stored) => match stored.bytes.get() {
                Some(bytes) => Some(bytes),
                None => {
                    return stored.range.for_each_piece(|piece| {
                        f(piece);
                        true
                    });
                }
            },
            Data::Splat(_) | Data::Strings(_) => None,
        };
        in_memory.into_iter().flat_map(|bytes| bytes.chunks(PIECE)).for_each(f);
        Ok(())
    }

    /// Returns a dense payload; bytes in a file are read and not kept. Empty for splats and
    /// strings.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the file has changed or cannot be read.
    pub fn read_dense(&self) -> Result<Bytes, StorageError> {
        match &self.data {
            Data::Dense(b) => Ok(b.clone()),
            Data::Stored(s) => match s.bytes.get() {
                Some(b) => Ok(b.clone()),
                None => s.range.read(),
            },
            Data::Splat(_) | Data::Strings(_) => Ok(Bytes::new()),
        }
    }

    /// Returns the error with which a read of the payload's file failed, if one has failed.
    pub(crate) fn failure(&self) -> Option<&StorageError> {
        self.file_range()?.file().failure()
    }

    /// Returns the strings, if the element type is `string`.
    pub fn as_strings(&self) -> Option<&[Arc<str>]> {
        match &self.data {
            Data::Strings(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the payload in full, with splats expanded to the size of the tensor. Callers should
    /// check [`Literal::expanded_bytes`] first if the shape is not trusted. Empty for strings, and
    /// for bytes in a file that cannot be read; see [`Literal::load`].
    pub fn to_bytes(&self) -> Bytes {
        match &self.data {
            Data::Dense(b) => b.clone(),
            Data::Stored(s) => s.bytes().cloned().unwrap_or_default(),
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

    /// Returns all elements; `None` if `T` does not represent the element type, or the elements are
    /// in a file that cannot be read.
    pub fn elements<T: Element>(&self) -> Option<Cow<'_, [T]>> {
        if T::DTYPE != self.dtype {
            return None;
        }
        let size = T::DTYPE.bits() / 8;
        Some(Cow::Owned(match &self.data {
            Data::Splat(bits) => vec![T::read(&bits[..size]); self.element_count()],
            Data::Dense(b) => b.chunks_exact(size).map(T::read).collect(),
            Data::Stored(s) => s.bytes().ok()?.chunks_exact(size).map(T::read).collect(),
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
        let kind = match &self.data {
            Data::Splat(_) => "splat",
            Data::Dense(_) | Data::Strings(_) => "dense",
            Data::Stored(_) => "stored",
        };
        write!(f, "{kind}<{}{:?}>({} bytes)", self.dtype, self.shape.as_slice(), self.stored_bytes())
    }
}

impl IntoDiagnostics for LiteralError {
    fn into_diagnostics(self) -> Diagnostics {
        match self {
            LiteralError::Storage(error) => error.into_diagnostics(),
            other => Diagnostic::from_error(&other).into(),
        }
    }
}
