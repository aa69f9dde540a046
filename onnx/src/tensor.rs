//! Conversion of constant tensors between ONNX and the IR.

use std::sync::Arc;

use anfora_ir::{DType, Literal, LiteralError, Shape, StorageError, element_count};
use bytes::Bytes;
use prost::Message;

use crate::proto::tensor_proto::DataLocation;
use crate::proto::{StringStringEntryProto, TensorProto};
use crate::wire::{self, UnknownFields, WireError};

/// Constants of at most this many bytes may be repeated: in the text at their definition and at
/// their uses, in a file in each subgraph that uses them.
pub(crate) const SMALL_CONSTANT: usize = 1024;

/// The reason why a tensor message is not a constant, or a constant cannot be written.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TensorError {
    /// The bytes are not a tensor message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The bytes are not a tensor message. The fault appears only when they are decoded.
    #[error("the file is damaged: {0}")]
    Decode(#[from] prost::DecodeError),
    /// The number of the element type is absent or has no counterpart.
    #[error("element type {0} is not supported")]
    DType(i32),
    /// An extent is negative.
    #[error("{0} is not an extent")]
    Extent(i64),
    /// The elements are in another file.
    #[error("the elements are in another file ({0})")]
    External(String),
    /// The message is a part of a larger tensor.
    #[error("the tensor is a segment of a larger one, which is not supported")]
    Segment,
    /// The elements are in a field that does not belong to the element type, or in two fields.
    #[error("{dtype} elements are in the wrong field, {field}")]
    Field {
        /// The element type.
        dtype: DType,
        /// The field that must be empty.
        field: &'static str,
    },
    /// The element type cannot represent an element.
    #[error("{value} is not a {dtype}")]
    Range {
        /// The element type.
        dtype: DType,
        /// The element.
        value: i64,
    },
    /// A string is not UTF-8.
    #[error("element {0} is not UTF-8 text")]
    Text(usize),
    /// The elements do not fit the shape.
    #[error(transparent)]
    Literal(#[from] LiteralError),
    /// The elements are in a file that cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The elements take too many bytes to be written out.
    #[error("a tensor of shape {0:?} is too large to be written out")]
    TooLarge(Vec<usize>),
}

const NUMBERS: &[(DType, i32)] = &[
    (DType::Float32, 1),
    (DType::UInt8, 2),
    (DType::Int8, 3),
    (DType::UInt16, 4),
    (DType::Int16, 5),
    (DType::Int32, 6),
    (DType::Int64, 7),
    (DType::String, 8),
    (DType::Bool, 9),
    (DType::Float16, 10),
    (DType::Float64, 11),
    (DType::UInt32, 12),
    (DType::UInt64, 13),
    (DType::Complex64, 14),
    (DType::Complex128, 15),
    (DType::BFloat16, 16),
    (DType::Float8E4M3FN, 17),
    (DType::Float8E4M3FNUZ, 18),
    (DType::Float8E5M2, 19),
    (DType::Float8E5M2FNUZ, 20),
    (DType::UInt4, 21),
    (DType::Int4, 22),
    (DType::Float4E2M1, 23),
    (DType::Float8E8M0, 24),
    (DType::UInt2, 25),
    (DType::Int2, 26),
];

/// Returns the element type for a number of the format.
pub fn dtype_of(number: i32) -> Option<DType> {
    NUMBERS.iter().find(|r| r.1 == number).map(|r| r.0)
}

/// Returns the number of an element type; `None` if ONNX does not have the type.
pub fn number_of(dtype: DType) -> Option<i32> {
    NUMBERS.iter().find(|r| r.0 == dtype).map(|r| r.1)
}

/// Reads a file that holds a single tensor, such as the test data of models (`.pb`).
///
/// Cost: linear in the bytes.
///
/// # Errors
/// If the bytes are not a tensor message, or it is one that [`literal_of`] refuses.
pub fn read_tensor(bytes: Bytes) -> Result<Literal, TensorError> {
    wire::check_tensor(&bytes, UnknownFields::Refuse)?;
    literal_of(&TensorProto::decode(bytes)?)
}

/// Returns the bytes of a file that holds a single tensor.
///
/// # Errors
/// If ONNX does not have the element type, or the elements take more bytes than protocol buffers
/// can hold.
pub fn write_tensor(literal: &Literal) -> Result<Vec<u8>, TensorError> {
    Ok(tensor_of(literal, i32::MAX as u64)?.encode_to_vec())
}

/// Returns the constant of a message. Raw data is shared with the message, not copied.
///
/// # Errors
/// If the message is malformed, or holds something that has no counterpart in the IR.
pub fn literal_of(tensor: &TensorProto) -> Result<Literal, TensorError> {
    let number = tensor.data_type.unwrap_or(0);
    let dtype = dtype_of(number).ok_or(TensorError::DType(number))?;
    if tensor.data_location == Some(DataLocation::External as i32) || !tensor.external_data.is_empty() {
        let location = tensor.external_data.iter().find(|e| e.key() == "location");
        return Err(TensorError::External(location.map_or("no location given", |e| e.value()).to_owned()));
    }
    if tensor.segment.is_some() {
        return Err(TensorError::Segment);
    }
    let mut shape = Shape::new();
    for &d in &tensor.dims {
        shape.push(usize::try_from(d).map_err(|_| TensorError::Extent(d))?);
    }
    let home = home_field(tensor, dtype)?;
    if let (Home::Raw, Some(raw)) = (home, &tensor.raw_data) {
        return Ok(Literal::from_bytes(dtype, &shape, raw.clone())?);
    }
    let bytes = match home {
        Home::Float => from_parts(&tensor.float_data, |f| f.to_le_bytes()),
        Home::Double => from_parts(&tensor.double_data, |f| f.to_le_bytes()),
        Home::Int64 => from_parts(&tensor.int64_data, |i| i.to_le_bytes()),
        Home::Int32 => from_int32s(&tensor.int32_data, dtype)?,
        Home::UInt64 => from_uint64s(&tensor.uint64_data, dtype)?,
        Home::String => return strings_of(tensor, &shape),
        Home::Raw => Bytes::new(),
    };
    Ok(Literal::from_bytes(dtype, &shape, bytes)?)
}

fn strings_of(tensor: &TensorProto, shape: &[usize]) -> Result<Literal, TensorError> {
    let expected = element_count(shape).ok_or(LiteralError::TooLarge)?;
    if expected != tensor.string_data.len() {
        return Err(LiteralError::ElementCount { expected, actual: tensor.string_data.len() }.into());
    }
    let mut strings: Vec<Arc<str>> = Vec::with_capacity(expected);
    for (i, s) in tensor.string_data.iter().enumerate() {
        strings.push(std::str::from_utf8(s).map_err(|_| TensorError::Text(i))?.into());
    }
    Ok(Literal::from_strings(shape, strings)?)
}

/// The field that holds a tensor's elements.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Home {
    Raw,
    Float,
    Double,
    Int32,
    Int64,
    UInt64,
    String,
}

/// Returns the field that holds the elements of `tensor`, after a check that all others are empty.
fn home_field(tensor: &TensorProto, dtype: DType) -> Result<Home, TensorError> {
    let typed = match dtype {
        DType::Float32 | DType::Complex64 => Home::Float,
        DType::Float64 | DType::Complex128 => Home::Double,
        DType::Int64 => Home::Int64,
        DType::UInt32 | DType::UInt64 => Home::UInt64,
        DType::String => Home::String,
        _ => Home::Int32,
    };
    let filled = [
        (Home::Raw, "raw_data", tensor.raw_data.as_ref().is_some_and(|r| !r.is_empty())),
        (Home::Float, "float_data", !tensor.float_data.is_empty()),
        (Home::Double, "double_data", !tensor.double_data.is_empty()),
        (Home::Int32, "int32_data", !tensor.int32_data.is_empty()),
        (Home::Int64, "int64_data", !tensor.int64_data.is_empty()),
        (Home::UInt64, "uint64_data", !tensor.uint64_data.is_empty()),
        (Home::String, "string_data", !tensor.string_data.is_empty()),
    ];
    let mut home = None;
    for (field, name, is_filled) in filled {
        if !is_filled {
            continue;
        }
        let belongs = field == typed || (field == Home::Raw && dtype != DType::String);
        if !belongs || home.is_some() {
            return Err(TensorError::Field { dtype, field: name });
        }
        home = Some(field);
    }
    Ok(home.unwrap_or(typed))
}

fn from_parts<T: Copy, const N: usize>(parts: &[T], encode: impl Fn(T) -> [u8; N]) -> Bytes {
    let mut out = Vec::with_capacity(parts.len() * N);
    for &p in parts {
        out.extend_from_slice(&encode(p));
    }
    out.into()
}

/// Returns the elements of types of at most 32 bits. Each number is an element, or a byte of
/// elements of less than 8 bits. Types other than signed integers, such as floats, are stored by
/// their bits.
fn from_int32s(numbers: &[i32], dtype: DType) -> Result<Bytes, TensorError> {
    let width = dtype.bits().div_ceil(8);
    let bits = 8 * width as u32;
    let mut out = Vec::with_capacity(numbers.len() * width);
    for &n in numbers {
        let n = if dtype == DType::Bool { i32::from(n != 0) } else { n };
        // Writers differ in whether they extend the sign, so both readings of the bits are
        // accepted.
        let (low, high) = (-(1i64 << (bits - 1)), 1i64 << bits);
        if !(low..high).contains(&i64::from(n)) {
            return Err(TensorError::Range { dtype, value: i64::from(n) });
        }
        out.extend_from_slice(&n.to_le_bytes()[..width]);
    }
    Ok(out.into())
}

fn from_uint64s(numbers: &[u64], dtype: DType) -> Result<Bytes, TensorError> {
    let width = dtype.bits() / 8;
    let mut out = Vec::with_capacity(numbers.len() * width);
    for &n in numbers {
        if dtype == DType::UInt32 && n > u64::from(u32::MAX) {
            return Err(TensorError::Range { dtype, value: i64::try_from(n).unwrap_or(i64::MAX) });
        }
        out.extend_from_slice(&n.to_le_bytes()[..width]);
    }
    Ok(out.into())
}

/// Returns the message for a constant. The elements are raw data; a splat is written out.
///
/// # Errors
/// If ONNX does not have the element type, or the elements take more than `max_bytes`. These are
/// not allocated in that case.
pub fn tensor_of(literal: &Literal, max_bytes: u64) -> Result<TensorProto, TensorError> {
    let mut tensor = without_elements(literal)?;
    if let Some(strings) = literal.as_strings() {
        tensor.string_data = strings.iter().map(|s| Bytes::copy_from_slice(s.as_bytes())).collect();
        return Ok(tensor);
    }
    let size = literal.expanded_bytes().filter(|&n| n as u64 <= max_bytes || literal.is_dense());
    if size.is_none() {
        return Err(TensorError::TooLarge(literal.shape().to_vec()));
    }
    tensor.raw_data = Some(if literal.is_dense() { literal.read_dense()? } else { literal.to_bytes() });
    Ok(tensor)
}

/// Returns the message for a constant whose elements are in another file, at the location `place`.
pub(crate) fn external_tensor_of(
    literal: &Literal,
    place: Vec<StringStringEntryProto>,
) -> Result<TensorProto, TensorError> {
    let data_location = Some(DataLocation::External as i32);
    Ok(TensorProto { data_location, external_data: place, ..without_elements(literal)? })
}

/// Returns the message of a constant without its elements.
pub(crate) fn without_elements(literal: &Literal) -> Result<TensorProto, TensorError> {
    let data_type = number_of(literal.dtype()).ok_or(TensorError::DType(0))?;
    Ok(TensorProto { data_type: Some(data_type), dims: dims_of(literal)?, ..TensorProto::default() })
}

fn dims_of(literal: &Literal) -> Result<Vec<i64>, TensorError> {
    let dim = |&d: &usize| i64::try_from(d).map_err(|_| TensorError::TooLarge(literal.shape().to_vec()));
    literal.shape().iter().map(dim).collect()
}
