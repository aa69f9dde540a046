//! Numbers and attribute values as Rust values, independent of any module.

use half::{bf16, f16};

use crate::core::entity::{AttrId, TypeId};
use crate::tables::dtype::{DType, DTypeClass};
use crate::tables::literal::Literal;

/// A number or boolean without a fixed width.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// A boolean.
    Bool(bool),
}

macro_rules! numbers {
    ($($ty:ty, $variant:ident;)*) => {$(
        impl From<$ty> for Number {
            fn from(value: $ty) -> Number {
                Number::$variant(value.into())
            }
        }
    )*};
}
numbers! { i32, Int; i64, Int; f32, Float; f64, Float; bool, Bool; }

impl Number {
    /// Returns true if all elements of a tensor are this number, in its element type.
    pub fn is_splat_of(self, literal: &Literal) -> bool {
        let Some(bits) = literal.as_splat() else { return false };
        let mut wide = [0u8; 8];
        let size = (literal.dtype().bits() / 8).min(8);
        wide[..size].copy_from_slice(&bits[..size]);
        let raw = u64::from_le_bytes(wide);
        match (self, literal.dtype().class()) {
            (Number::Bool(wanted), DTypeClass::Bool) => (raw != 0) == wanted,
            (Number::Int(wanted), DTypeClass::Unsigned) => u64::try_from(wanted) == Ok(raw),
            (Number::Int(wanted), DTypeClass::Signed) => {
                let unused = 64 - 8 * size as u32;
                ((raw << unused) as i64) >> unused == wanted
            }
            (Number::Float(wanted), DTypeClass::Float) => {
                let found = float_of(literal.dtype(), raw);
                let (nearest, bits) = nearest(wanted, literal.dtype());
                let exists = wanted.is_finite() == nearest.is_finite() && (wanted == 0.0) == (nearest == 0.0);
                raw == bits && exists || found.is_nan() && wanted.is_nan()
            }
            _ => false,
        }
    }

    /// Returns the same number as a float if it is an integer, and as an integer if it is a float;
    /// `None` if there is none.
    fn of_other_class(self) -> Option<Number> {
        match self {
            Number::Int(value) if value.unsigned_abs() <= 1 << 53 => Some(Number::Float(value as f64)),
            Number::Float(value) if value.trunc() == value && value.abs() <= (1u64 << 53) as f64 => {
                Some(Number::Int(value as i64))
            }
            _ => None,
        }
    }

    /// Returns the rank-0 tensor of an element type with this value; `None` if the element type
    /// cannot represent it. A float is rounded to the nearest number of the element type.
    pub fn scalar(self, dtype: DType) -> Option<Literal> {
        let splat = |bytes: &[u8]| Literal::splat_bytes(dtype, &[], bytes);
        let literal = match (self, dtype.class()) {
            (Number::Bool(value), DTypeClass::Bool) => splat(&[u8::from(value)]),
            (Number::Int(value), DTypeClass::Signed | DTypeClass::Unsigned) => splat(&value.to_le_bytes()),
            (Number::Int(value), DTypeClass::Float) if value.unsigned_abs() < 1 << 53 => {
                let wanted = value as f64;
                return if nearest(wanted, dtype).0 == wanted { Number::Float(wanted).scalar(dtype) } else { None };
            }
            (Number::Float(value), DTypeClass::Float) => splat(&nearest(value, dtype).1.to_le_bytes()),
            _ => return None,
        };
        // An integer that does not fit was truncated.
        (matches!(self, Number::Float(_)) || self.is_splat_of(&literal)).then_some(literal)
    }
}

/// Returns the number with these bits in a floating-point type.
fn float_of(dtype: DType, bits: u64) -> f64 {
    match dtype {
        DType::Float16 => f16::from_bits(bits as u16).to_f64(),
        DType::BFloat16 => bf16::from_bits(bits as u16).to_f64(),
        DType::Float32 => f64::from(f32::from_bits(bits as u32)),
        _ => f64::from_bits(bits),
    }
}

/// Returns the number of a floating-point type that is nearest to `wanted`, and its bits.
fn nearest(wanted: f64, dtype: DType) -> (f64, u64) {
    match dtype {
        DType::Float16 => (f16::from_f64(wanted).to_f64(), f16::from_f64(wanted).to_bits().into()),
        DType::BFloat16 => (bf16::from_f64(wanted).to_f64(), bf16::from_f64(wanted).to_bits().into()),
        DType::Float32 => ((wanted as f32).into(), (wanted as f32).to_bits().into()),
        _ => (wanted, wanted.to_bits()),
    }
}

impl Literal {
    /// Returns the number that all elements are, if they are floats.
    ///
    /// ```
    /// use anfora_ir::Literal;
    ///
    /// assert_eq!(Literal::splat(&[2, 3], 0.5f32).as_float_splat(), Some(0.5));
    /// assert_eq!(Literal::scalar(1i8).as_float_splat(), None);
    /// ```
    pub fn as_float_splat(&self) -> Option<f64> {
        let bits = self.as_splat().filter(|_| self.dtype().is_float())?;
        let mut wide = [0u8; 8];
        let size = (self.dtype().bits() / 8).min(8);
        wide[..size].copy_from_slice(&bits[..size]);
        Some(float_of(self.dtype(), u64::from_le_bytes(wide)))
    }

    /// Returns true if all elements are this number, whatever their type: the number `1.0` equals
    /// the integer `1`. A boolean equals only itself, and the sign of a zero counts.
    ///
    /// ```
    /// use anfora_ir::Literal;
    ///
    /// assert!(Literal::splat(&[2, 3], 1f32).is_splat(1));
    /// assert!(Literal::scalar(1i8).is_splat(1.0));
    /// assert!(!Literal::scalar(0.5f64).is_splat(1));
    /// ```
    pub fn is_splat(&self, number: impl Into<Number>) -> bool {
        let number = number.into();
        number.is_splat_of(self) || number.of_other_class().is_some_and(|same| same.is_splat_of(self))
    }
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Debug)]
pub enum AttrValue {
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float64 value.
    Float(f64),
    /// A string.
    Str(String),
    /// A list of integers.
    Ints(Vec<i64>),
    /// An element type.
    DType(DType),
    /// A type.
    Type(TypeId),
    /// A constant tensor.
    Literal(Literal),
    /// A value that the module has interned.
    Interned(AttrId),
}

macro_rules! attr_values {
    ($($ty:ty, $variant:ident;)*) => {$(
        impl From<$ty> for AttrValue {
            fn from(value: $ty) -> AttrValue {
                AttrValue::$variant(value.into())
            }
        }
    )*};
}
attr_values! { bool, Bool; i32, Int; i64, Int; f32, Float; f64, Float; &str, Str; String, Str; Vec<i64>, Ints; &[i64], Ints; DType, DType; TypeId, Type; Literal, Literal; AttrId, Interned; }

impl<const N: usize> From<[i64; N]> for AttrValue {
    fn from(value: [i64; N]) -> AttrValue {
        AttrValue::Ints(value.to_vec())
    }
}
