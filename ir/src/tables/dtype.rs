//! Element types.

use std::fmt;
use std::str::FromStr;

macro_rules! dtypes {
    ($($variant:ident $name:literal $bits:literal $class:ident;)*) => {
        /// The type of a tensor's elements.
        #[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum DType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl DType {
            /// Every element type, in the order of the language reference.
            pub const ALL: &'static [DType] = &[$(DType::$variant),*];

            /// Returns the name in the text format.
            pub const fn name(self) -> &'static str {
                match self { $(DType::$variant => $name,)* }
            }

            /// Returns the number of bits of a stored element; 0 for `string`, whose elements have
            /// no fixed size.
            pub const fn bits(self) -> usize {
                match self { $(DType::$variant => $bits,)* }
            }

            /// Returns the family of numbers that the element type belongs to.
            pub const fn class(self) -> DTypeClass {
                match self { $(DType::$variant => DTypeClass::$class,)* }
            }
        }

        impl FromStr for DType {
            type Err = ();
            fn from_str(s: &str) -> Result<Self, ()> {
                match s { $($name => Ok(DType::$variant),)* _ => Err(()) }
            }
        }
    };
}

/// The family of numbers that an element type belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum DTypeClass {
    /// `bool`
    Bool,
    /// Two's complement integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floating point that kernels compute with.
    Float,
    /// Stored and typed. No kernel computes with these; conversions read and write those that are
    /// small numbers ([`DType::is_small_number`]).
    Opaque,
}

dtypes! {
    Bool "bool" 8 Bool;
    Int8 "int8" 8 Signed;
    Int16 "int16" 16 Signed;
    Int32 "int32" 32 Signed;
    Int64 "int64" 64 Signed;
    UInt8 "uint8" 8 Unsigned;
    UInt16 "uint16" 16 Unsigned;
    UInt32 "uint32" 32 Unsigned;
    UInt64 "uint64" 64 Unsigned;
    Float16 "float16" 16 Float;
    BFloat16 "bfloat16" 16 Float;
    Float32 "float32" 32 Float;
    Float64 "float64" 64 Float;
    String "string" 0 Opaque;
    Complex64 "complex64" 64 Opaque;
    Complex128 "complex128" 128 Opaque;
    Int2 "int2" 2 Opaque;
    UInt2 "uint2" 2 Opaque;
    Int4 "int4" 4 Opaque;
    UInt4 "uint4" 4 Opaque;
    Float4E2M1 "float4e2m1" 4 Opaque;
    Float8E4M3FN "float8e4m3fn" 8 Opaque;
    Float8E4M3FNUZ "float8e4m3fnuz" 8 Opaque;
    Float8E5M2 "float8e5m2" 8 Opaque;
    Float8E5M2FNUZ "float8e5m2fnuz" 8 Opaque;
    Float8E8M0 "float8e8m0" 8 Opaque;
}

impl DType {
    /// Returns true if the kernels compute with this element type.
    pub const fn has_kernels(self) -> bool {
        !matches!(self.class(), DTypeClass::Opaque)
    }

    /// Returns true if this is one of the numbers of at most 8 bits that are only converted from
    /// and to other numbers.
    pub const fn is_small_number(self) -> bool {
        matches!(self.class(), DTypeClass::Opaque) && matches!(self.bits(), 1..=8)
    }

    /// Returns true if this is an integer type of less than 8 bits.
    pub const fn is_small_integer(self) -> bool {
        matches!(self, DType::Int2 | DType::UInt2 | DType::Int4 | DType::UInt4)
    }

    /// Returns true if this is a floating-point type that the kernels compute with.
    pub const fn is_float(self) -> bool {
        matches!(self.class(), DTypeClass::Float)
    }

    /// Returns true if this is a signed or unsigned integer type that the kernels compute with.
    pub const fn is_integer(self) -> bool {
        matches!(self.class(), DTypeClass::Signed | DTypeClass::Unsigned)
    }

    /// Returns true if this is an unsigned integer type that the kernels compute with.
    pub const fn is_unsigned(self) -> bool {
        matches!(self.class(), DTypeClass::Unsigned)
    }

    /// Returns the number of bytes that `elements` packed elements take; `None` if it overflows, or
    /// for `string`.
    pub fn byte_len(self, elements: usize) -> Option<usize> {
        match self.bits() {
            0 => None,
            bits @ 0..8 => Some(elements.checked_mul(bits)?.div_ceil(8)),
            bits => elements.checked_mul(bits / 8),
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
