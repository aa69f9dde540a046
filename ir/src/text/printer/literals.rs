//! Constant tensors.

use half::{bf16, f16};

use crate::core::context::LiteralTable;
use crate::core::entity::{EntityId, LiteralId};
use crate::tables::dtype::{DType, DTypeClass};
use crate::tables::literal::{Element, Literal};
use crate::text::lexer::dtype_suffix;

use super::PrintLiterals;
use super::numbers::{Decimal, decimal};
use super::output::Output;

/// The position of a constant: an unsuffixed integer is an int32 in an expression, but an int64 in
/// an attribute.
#[derive(Copy, Clone, PartialEq)]
pub(super) enum Position {
    Expression,
    Attribute,
}

/// Constants of up to this many characters are printed once and then copied.
const SHORT: usize = 96;

/// Up to this many elements are always written as numbers. For longer tensors, the first `SAMPLE`
/// elements decide.
const FEW: usize = 16;
const SAMPLE: usize = 1024;

/// The texts of the constants in expressions that were printed before. The default keeps none.
#[derive(Default)]
pub(super) struct LiteralTexts {
    text: String,
    /// The start and length of the text of each constant; 0 if there is no text.
    at: Vec<u64>,
}

impl LiteralTexts {
    pub(super) fn new(table: &LiteralTable) -> LiteralTexts {
        LiteralTexts { text: String::new(), at: vec![0; table.len()] }
    }

    /// Prints a constant in an expression.
    #[inline]
    pub(super) fn print(&mut self, table: &LiteralTable, id: LiteralId, how: PrintLiterals, out: &mut Output<'_>) {
        let known = self.at.get(id.index()).copied();
        if let Some(at) = known.filter(|&at| at != 0) {
            let (start, len) = ((at >> 8) as usize, (at & 0xff) as usize);
            return out.text(&self.text[start..start + len]);
        }
        let literal = table.get(id);
        if known.is_none() || literal.stored_bytes() > SHORT {
            return out.literal(literal, Position::Expression, how);
        }
        let mut text = String::new();
        let mut piece = Output::new(&mut text);
        piece.literal(literal, Position::Expression, how);
        piece.finish().expect("a string takes all text");
        out.text(&text);
        if text.len() <= SHORT
            && let Some(at) = self.at.get_mut(id.index())
        {
            *at = (self.text.len() as u64) << 8 | text.len() as u64;
            self.text.push_str(&text);
        }
    }
}

impl Literal {
    /// Returns the constant in the text format, for messages: without the elements, if there are
    /// more than a few.
    pub(crate) fn message_text(&self) -> String {
        const MOST: usize = 4;
        let mut text = String::new();
        let mut out = Output::new(&mut text);
        out.literal(self, Position::Expression, PrintLiterals::Elided { more_than: MOST });
        out.finish().expect("a string takes all text");
        text
    }
}

impl Output<'_> {
    /// Prints a constant: a scalar as a number with a suffix if the language has a suffix for it,
    /// any other constant as `dense<…>`.
    pub(super) fn literal(&mut self, literal: &Literal, position: Position, how: PrintLiterals) {
        // A scalar that has a suffix.
        let dtype = literal.dtype();
        if literal.rank() == 0
            && let Some(bits) = literal.as_splat()
        {
            match dtype.class() {
                DTypeClass::Float => {
                    let value = decimal(dtype, bits);
                    if !matches!(value, Decimal::NanBits(_)) {
                        self.float(value);
                        return self.text(dtype_suffix(dtype));
                    }
                }
                DTypeClass::Signed | DTypeClass::Unsigned
                    if dtype == DType::Int32 && position == Position::Attribute => {}
                DTypeClass::Signed | DTypeClass::Unsigned | DTypeClass::Bool => {
                    self.element(dtype, bits);
                    return self.text(dtype_suffix(dtype));
                }
                DTypeClass::Opaque => {}
            }
        }
        // The type of any other constant.
        self.text("dense<Tensor[(");
        for (i, &d) in literal.shape().iter().enumerate() {
            self.comma(i);
            self.number(d as u64);
        }
        self.text(if literal.rank() == 1 { ",), " } else { "), " });
        self.text(dtype.name());
        self.text("]>");
        // The elements: elided, texts, numbers or bytes.
        let count = literal.element_count();
        if let PrintLiterals::Elided { more_than } = how
            && count > more_than
            && literal.as_splat().is_none()
        {
            return self.elided(literal);
        }
        if let Some(strings) = literal.as_strings() {
            self.ascii(b'[');
            for (i, s) in strings.iter().enumerate() {
                self.comma(i);
                self.quoted(s);
                self.pass_on();
            }
            return self.ascii(b']');
        }
        let read;
        let bytes: &[u8] = match literal.as_splat() {
            // The byte of a single packed element would be read as all elements of a byte.
            Some(_) if matches!(dtype.bits(), 1..8) && count <= 8 / dtype.bits() => {
                read = literal.to_bytes();
                &read
            }
            Some(b) => b,
            None => match literal.read_dense() {
                Ok(bytes) => {
                    read = bytes;
                    &read
                }
                // The text cannot be parsed, and says why.
                Err(error) => {
                    self.text("[unreadable ");
                    self.quoted(&error.to_string());
                    return self.ascii(b']');
                }
            },
        };
        if bytes.is_empty() {
            self.text("[]");
        } else if dtype.has_kernels() && !self.is_shorter_in_bytes(dtype, bytes) {
            self.elements(dtype, bytes);
        } else {
            self.text("\"0x");
            for &b in bytes {
                self.hex_byte(b);
                self.pass_on();
            }
            self.ascii(b'"');
        }
    }

    fn elements(&mut self, dtype: DType, bytes: &[u8]) {
        self.ascii(b'[');
        for (i, element) in bytes.chunks_exact(dtype.bits() / 8).enumerate() {
            self.comma(i);
            self.element(dtype, element);
            self.pass_on();
        }
        self.ascii(b']');
    }

    /// Returns true if the bytes of many elements take fewer characters than the numbers, judged by
    /// the first elements.
    fn is_shorter_in_bytes(&self, dtype: DType, bytes: &[u8]) -> bool {
        let size = dtype.bits() / 8;
        if bytes.len() <= FEW * size {
            return false;
        }
        let sample = &bytes[..bytes.len().min(SAMPLE * size)];
        let mut text = String::new();
        let mut numbers = Output::new(&mut text);
        numbers.elements(dtype, sample);
        numbers.finish().expect("a string takes all text");
        text.len() > 2 * sample.len() + 4
    }

    /// Prints one element of a type that kernels compute with, without a suffix.
    fn element(&mut self, dtype: DType, bytes: &[u8]) {
        match dtype {
            DType::Bool => self.text(if bytes[0] != 0 { "true" } else { "false" }),
            DType::Int8 => self.signed(i8::read(bytes).into()),
            DType::Int16 => self.signed(i16::read(bytes).into()),
            DType::Int32 => self.signed(i32::read(bytes).into()),
            DType::Int64 => self.signed(i64::read(bytes)),
            DType::UInt8 => self.number(bytes[0].into()),
            DType::UInt16 => self.number(u16::read(bytes).into()),
            DType::UInt32 => self.number(u32::read(bytes).into()),
            DType::UInt64 => self.number(u64::read(bytes)),
            _ => self.float(decimal(dtype, bytes)),
        }
    }
}

const _: () = assert!(size_of::<f16>() == 2 && size_of::<bf16>() == 2 && SHORT < 256);
