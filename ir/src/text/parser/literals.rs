//! Numbers and constant tensors.

use std::num::{IntErrorKind, ParseIntError};
use std::ops::Neg;
use std::str::FromStr;

use bytes::Bytes;
use half::{bf16, f16};

use super::{Parsed, Parser, SourceRange};
use crate::core::entity::{EntityId, LiteralId, TypeId};
use crate::tables::dtype::{DType, DTypeClass};
use crate::tables::literal::{Literal, LiteralError, Shape};
use crate::text::lexer::{Kind, Token, special_float, suffix_dtype, unescape};

/// The type of the last constant, with its text from `<` to `[`. Neighbouring constants often share
/// it.
pub(super) struct SplatType<'s> {
    text: &'s [u8],
    ty: TypeId,
    dtype: DType,
    shape: Shape,
}

/// The most scalars and splats that are cached by their bits.
const REMEMBERED: usize = 1 << 16;

/// The tag of a scalar in the cache of scalars; it is greater than all type ids.
const SCALAR: u32 = 1 << 31;

/// The type of a number without a suffix.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Unsuffixed {
    /// int32. A fraction must have a suffix.
    Expression,
    /// int64 or float64.
    Attribute,
}

/// A number: its element type and bits, little-endian.
#[derive(Copy, Clone)]
pub(super) struct Number {
    pub(super) dtype: DType,
    pub(super) bits: u64,
}

impl Number {
    pub(super) fn literal(self) -> Literal {
        Literal::splat_bytes(self.dtype, &[], &self.bits.to_le_bytes())
    }
}

/// The reason why a number is invalid.
enum BadNumber {
    Malformed,
    OutOfRange,
}

impl<'s> Parser<'s, '_> {
    /// Returns true if a constant begins here.
    pub(super) fn at_literal(&self) -> bool {
        match self.tok.kind {
            Kind::Number | Kind::Minus | Kind::True | Kind::False | Kind::Dense | Kind::Str => true,
            Kind::Word => special_float(self.slice(self.tok)).is_some(),
            _ => false,
        }
    }

    /// Reads a constant in an expression.
    pub(super) fn literal(&mut self) -> Parsed<(LiteralId, TypeId)> {
        match self.tok.kind {
            Kind::Dense => return self.dense(),
            Kind::Str => {
                let text = self.text_of(self.tok).into();
                self.next();
                let literal = Literal::from_strings(&[], vec![text]).expect("a rank-0 tensor has one element");
                return Ok(self.intern_literal(literal));
            }
            _ => {}
        }
        let number = self.number(Unsuffixed::Expression)?;
        Ok(self.remembered(SCALAR | number.dtype as u32, number.bits, |_| number.literal()))
    }

    pub(super) fn intern_literal(&mut self, literal: Literal) -> (LiteralId, TypeId) {
        let id = self.cx.literals.intern(literal);
        (id, self.cx.literal_type(id))
    }

    #[inline]
    fn remembered(&mut self, tag: u32, bits: u64, make: impl FnOnce(&Self) -> Literal) -> (LiteralId, TypeId) {
        if let Some(&known) = self.scalars.get(&(tag, bits)) {
            return known;
        }
        let literal = make(self);
        let known = self.intern_literal(literal);
        if self.scalars.len() < REMEMBERED {
            self.scalars.insert((tag, bits), known);
        }
        known
    }

    // ---- Numbers ----

    /// Reads a number or truth value, with the sign before it.
    pub(super) fn number(&mut self, unsuffixed: Unsuffixed) -> Parsed<Number> {
        let start = self.tok.start();
        let negative = self.eat(Kind::Minus);
        let tok = self.tok;
        match tok.kind {
            Kind::True | Kind::False if !negative => {
                self.next();
                Ok(Number { dtype: DType::Bool, bits: u64::from(tok.kind == Kind::True) })
            }
            Kind::Number => {
                self.next();
                Ok(self.suffixed(tok, negative, start, unsuffixed))
            }
            Kind::Word => match special_float(self.slice(tok)) {
                Some((nan, suffix)) => {
                    self.next();
                    let dtype = suffix_dtype(suffix).unwrap_or(DType::Float64);
                    if suffix.is_empty() && unsuffixed == Unsuffixed::Expression {
                        self.wants_suffix(self.slice(tok), start);
                    }
                    if nan && self.tok.kind == Kind::LParen && unsuffixed == Unsuffixed::Attribute {
                        return Ok(Number { dtype, bits: self.nan_payload(dtype)? });
                    }
                    Ok(Number { dtype, bits: special_bits(dtype, nan, negative) })
                }
                None => Err(self.unexpected("a number")),
            },
            _ => Err(self.unexpected("a number")),
        }
    }

    fn wants_suffix(&mut self, text: &str, start: u32) {
        let place = self.since(start);
        self.error_help(place, format!("`{text}` needs a suffix"), format!("write `{text}f` for float32"));
    }

    fn suffixed(&mut self, tok: Token, negative: bool, start: u32, unsuffixed: Unsuffixed) -> Number {
        let text = self.slice(tok);
        let place = self.since(start);
        let (digits, suffix) = split_suffix(text);
        let whole = !digits.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'));
        let dtype = match (suffix, unsuffixed) {
            ("", Unsuffixed::Expression) if whole => DType::Int32,
            ("", Unsuffixed::Attribute) if whole => DType::Int64,
            ("", Unsuffixed::Attribute) => DType::Float64,
            ("", Unsuffixed::Expression) => {
                self.wants_suffix(text, start);
                return Number { dtype: DType::Float32, bits: 0 };
            }
            _ => match suffix_dtype(suffix) {
                Some(dtype) => dtype,
                None => {
                    self.error_help(
                        place,
                        format!("unknown suffix `{suffix}` of a number"),
                        "the suffixes are i8 i16 i64 u8 u16 u32 u64 f f16 bf16 f64; without one it is int32",
                    );
                    return Number { dtype: DType::Int32, bits: 0 };
                }
            },
        };
        let bits = number_bits(dtype, digits, negative).unwrap_or_else(|bad| {
            self.bad_number(bad, place, dtype);
            0
        });
        Number { dtype, bits }
    }

    #[cold]
    fn bad_number(&mut self, bad: BadNumber, place: SourceRange, dtype: DType) {
        let text = &self.text[place.range()];
        match bad {
            BadNumber::Malformed => self.error_at(place, format!("`{text}` is not a number of type {dtype}")),
            BadNumber::OutOfRange => {
                let help = match integer_range(dtype) {
                    Some((low, high)) => format!("{dtype} goes from {low} to {high}"),
                    None => format!("the largest {dtype} is {:e}", largest_float(dtype)),
                };
                self.error_help(place, format!("`{text}` is out of range for {dtype}"), help)
            }
        };
    }

    /// Reads `(0x…)` behind `nan`: all the bits of the element.
    fn nan_payload(&mut self, dtype: DType) -> Parsed<u64> {
        self.expect(Kind::LParen)?;
        let tok = self.expect(Kind::Number)?;
        self.expect(Kind::RParen)?;
        let text = self.slice(tok);
        let bits = text.strip_prefix("0x").filter(|d| !d.is_empty()).and_then(|d| u64::from_str_radix(d, 16).ok());
        match bits {
            Some(bits) if is_nan(dtype, bits) => Ok(bits),
            _ => {
                let help = format!("such as nan(0x{:x})", special_bits(dtype, true, false));
                self.error_help(tok, format!("`{text}` are not the bits of a {dtype} NaN"), help);
                Ok(special_bits(dtype, true, false))
            }
        }
    }

    // ---- Tensors ----

    /// Reads `dense<TYPE>[…]` or `dense<TYPE>"0x…"`.
    pub(super) fn dense(&mut self) -> Parsed<(LiteralId, TypeId)> {
        let start = self.tok.start();
        if let Some(found) = self.dense_of_remembered_type() {
            return found;
        }
        self.next();
        let less = self.expect(Kind::Less)?;
        let type_start = self.tok.start();
        let errors = self.diagnostics.len();
        let ty = self.parse_type()?;
        let place = self.since(type_start);
        self.expect(Kind::Greater)?;
        let known = self.cx.types.as_tensor(ty).map(|t| t.dtype).zip(self.cx.types.static_shape(ty));
        let Some((dtype, shape)) = known else {
            if self.diagnostics.len() == errors {
                let found = self.cx.type_text(ty);
                self.error_help(
                    place,
                    format!("a constant has a tensor type of constant extents, not {found}"),
                    "such as `dense<Tensor[(2, 2), float32]>[1, 2, 3, 4]`",
                );
            }
            // The elements are skipped, since their type is unknown.
            self.skip_elements()?;
            return Ok(self.error_literal());
        };
        match self.tok.kind {
            Kind::LBracket => {
                let text = &self.text.as_bytes()[less.start() as usize..self.tok.end() as usize];
                self.splat_type = Some(SplatType { text, ty, dtype, shape: shape.clone() });
                self.next();
                self.elements(ty, dtype, &shape, start)
            }
            Kind::Str => self.raw_bytes(dtype, &shape, start),
            _ => {
                Err(self
                    .unexpected_help("`[` or a string", "the elements are `[1, 2]`, or raw bytes as `\"0x0000803F\"`"))
            }
        }
    }

    #[inline]
    fn dense_of_remembered_type(&mut self) -> Option<Parsed<(LiteralId, TypeId)>> {
        let known = self.splat_type.as_ref()?;
        let start = self.tok.start();
        if !self.lexer.rest().starts_with(known.text) {
            return None;
        }
        let (ty, dtype) = (known.ty, known.dtype);
        let after = self.tok.end() + known.text.len() as u32;
        self.seek(after);
        let shape = std::mem::take(&mut self.splat_type.as_mut()?.shape);
        let result = self.elements(ty, dtype, &shape, start);
        if let Some(known) = &mut self.splat_type {
            known.shape = shape;
        }
        Some(result)
    }

    /// Skips the elements of a constant whose type is wrong.
    fn skip_elements(&mut self) -> Parsed<()> {
        if self.tok.kind == Kind::Str {
            self.next();
            return Ok(());
        }
        self.expect(Kind::LBracket)?;
        while !matches!(
            self.tok.kind,
            Kind::RBracket | Kind::End | Kind::Bad | Kind::Semicolon | Kind::LBrace | Kind::RBrace | Kind::Def
        ) {
            self.next();
        }
        self.expect(Kind::RBracket).map(|_| ())
    }

    /// Reads elements up to `]`. The current token is the first of them.
    fn elements(&mut self, ty: TypeId, dtype: DType, shape: &[usize], start: u32) -> Parsed<(LiteralId, TypeId)> {
        if dtype == DType::String {
            return self.strings(shape, start);
        }
        if matches!(dtype.class(), DTypeClass::Opaque) && !dtype.is_small_integer() && self.tok.kind != Kind::RBracket {
            return Err(self.error_help(
                self.tok,
                format!("elements of type {dtype} are not written as numbers"),
                "give their bytes, little-endian: `dense<…>\"0x…\"`",
            ));
        }
        let mut count = 0usize;
        let mut first = 0u64;
        let mut bytes: Vec<u8> = Vec::new();
        let size = dtype.bits().div_ceil(8);
        self.list(Kind::RBracket, |p| {
            let bits = p.element(dtype)?;
            if count == 0 {
                first = bits;
            } else {
                if count == 1 {
                    bytes.extend_from_slice(&first.to_le_bytes()[..size]);
                }
                bytes.extend_from_slice(&bits.to_le_bytes()[..size]);
            }
            count += 1;
            Ok(())
        })?;
        if count == 1 {
            return Ok(
                self.remembered(ty.index() as u32, first, |_| Literal::splat_bytes(dtype, shape, &first.to_le_bytes()))
            );
        }
        let expected = crate::tables::literal::element_count(shape);
        if expected != Some(count) {
            let wanted = expected.map_or("more elements than can be counted".to_string(), |n| format!("{n} elements"));
            let place = self.since(start);
            self.error_help(
                place,
                format!("the type has {wanted}, but {count} are given"),
                "one element alone stands for all of them",
            );
            return Ok(self.error_literal());
        }
        let literal = match dtype.is_small_integer() {
            true => Literal::from_codes(dtype, shape, &bytes),
            false => Literal::from_bytes(dtype, shape, Bytes::from(bytes)),
        };
        self.literal_or_error(literal, start)
    }

    /// Returns a constant of the error type, which silences errors about it.
    fn error_literal(&mut self) -> (LiteralId, TypeId) {
        (self.cx.literals.intern(Literal::scalar(0.0f32)), self.cx.types.error())
    }

    fn literal_or_error(&mut self, literal: Result<Literal, LiteralError>, start: u32) -> Parsed<(LiteralId, TypeId)> {
        match literal {
            Ok(literal) => Ok(self.intern_literal(literal)),
            Err(e) => {
                let place = self.since(start);
                self.error_at(place, e.to_string());
                Ok(self.error_literal())
            }
        }
    }

    /// Reads one element without a suffix. Returns its bits.
    #[inline]
    fn element(&mut self, dtype: DType) -> Parsed<u64> {
        let start = self.tok.start();
        let negative = self.eat(Kind::Minus);
        let tok = self.tok;
        match tok.kind {
            Kind::Number => {
                self.next();
                match number_bits(dtype, self.slice(tok), negative) {
                    Ok(bits) => Ok(bits),
                    Err(bad) => {
                        let place = self.since(start);
                        self.bad_number(bad, place, dtype);
                        Ok(0)
                    }
                }
            }
            Kind::True | Kind::False if dtype == DType::Bool && !negative => {
                self.next();
                Ok(u64::from(tok.kind == Kind::True))
            }
            Kind::Word => match (self.slice(tok), dtype.is_float()) {
                ("inf", true) => {
                    self.next();
                    Ok(special_bits(dtype, false, negative))
                }
                ("nan", true) => {
                    self.next();
                    if self.tok.kind == Kind::LParen && !negative {
                        return self.nan_payload(dtype);
                    }
                    Ok(special_bits(dtype, true, negative))
                }
                ("elided", _) => Err(self.error_help(
                    tok,
                    "these elements were left out when this was printed",
                    "print it again without eliding",
                )),
                ("unreadable", _) => Err(self.error_help(
                    tok,
                    "these elements could not be read when this was printed",
                    "print it again from files that have not changed",
                )),
                _ => Err(self.unexpected(&format!("an element of type {dtype}"))),
            },
            _ => Err(self.unexpected(&format!("an element of type {dtype}"))),
        }
    }

    fn strings(&mut self, shape: &[usize], start: u32) -> Parsed<(LiteralId, TypeId)> {
        let mut strings: Vec<std::sync::Arc<str>> = Vec::new();
        self.list(Kind::RBracket, |p| {
            let tok = p.expect(Kind::Str)?;
            let name = p.quoted_name(tok, 0);
            strings.push(p.cx.names.get(name).into());
            Ok(())
        })?;
        self.literal_or_error(Literal::from_strings(shape, strings), start)
    }

    /// Reads raw bytes: those of every element, or of one element that all are equal to.
    fn raw_bytes(&mut self, dtype: DType, shape: &[usize], start: u32) -> Parsed<(LiteralId, TypeId)> {
        let tok = self.tok;
        let quoted = self.slice(tok);
        self.next();
        let text = unescape(quoted).unwrap_or(quoted.into());
        let Some(bytes) = text.strip_prefix("0x").and_then(decode_hex) else {
            self.error_help(
                tok,
                "these are not bytes",
                "raw bytes are `\"0x…\"` with two hexadecimal digits a byte, little-endian",
            );
            return Ok(self.error_literal());
        };
        let one = dtype.bits().div_ceil(8);
        let expected = crate::tables::literal::element_count(shape).and_then(|n| dtype.byte_len(n));
        if dtype != DType::String && bytes.len() == one && expected != Some(one) && !shape.contains(&0) {
            return Ok(self.intern_literal(Literal::splat_bytes(dtype, shape, &bytes)));
        }
        self.literal_or_error(Literal::from_bytes(dtype, shape, Bytes::from(bytes)), start)
    }
}

fn decode_hex(digits: &str) -> Option<Vec<u8>> {
    fn digit(b: u8) -> Option<u8> {
        char::from(b).to_digit(16).map(|d| d as u8)
    }
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    digits.chunks_exact(2).map(|d| Some(digit(d[0])? << 4 | digit(d[1])?)).collect()
}

/// Splits a number into digits and suffix.
fn split_suffix(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    if text.starts_with("0x") {
        return (text, "");
    }
    let mut i = 0;
    while i < bytes.len() {
        match bytes[i] {
            b'0'..=b'9' | b'.' => i += 1,
            b'e' | b'E' => {
                let sign = usize::from(matches!(bytes.get(i + 1), Some(b'+' | b'-')));
                if !bytes.get(i + 1 + sign).is_some_and(u8::is_ascii_digit) {
                    break;
                }
                i += 1 + sign;
            }
            _ => break,
        }
    }
    text.split_at(i)
}

fn integer_range(dtype: DType) -> Option<(i128, i128)> {
    match (dtype.class(), dtype) {
        (DTypeClass::Bool, _) => Some((0, 1)),
        (DTypeClass::Signed, _) | (_, DType::Int4 | DType::Int2) => {
            let half = 1 << (dtype.bits() - 1);
            Some((-half, half - 1))
        }
        (DTypeClass::Unsigned, _) | (_, DType::UInt4 | DType::UInt2) => Some((0, (1 << dtype.bits()) - 1)),
        _ => None,
    }
}

fn largest_float(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => f16::MAX.to_f64(),
        DType::BFloat16 => bf16::MAX.to_f64(),
        DType::Float32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// Returns the bits of a number of this element type, from its digits without a suffix.
#[inline]
fn number_bits(dtype: DType, digits: &str, negative: bool) -> Result<u64, BadNumber> {
    // A float32 is parsed directly: rounding a float64 would round twice.
    fn float<T: FromStr + Neg<Output = T>>(digits: &str, negative: bool) -> Result<T, BadNumber> {
        let value: T = digits.parse().map_err(|_| BadNumber::Malformed)?;
        Ok(if negative { -value } else { value })
    }
    let (bits, finite): (u64, bool) = match dtype {
        DType::Float32 => float::<f32>(digits, negative).map(|v| (v.to_bits().into(), v.is_finite()))?,
        DType::Float64 => float::<f64>(digits, negative).map(|v| (v.to_bits(), v.is_finite()))?,
        DType::Float16 => {
            let value = f16::from_f64(float(digits, negative)?);
            (value.to_bits().into(), value.is_finite())
        }
        DType::BFloat16 => {
            let value = bf16::from_f64(float(digits, negative)?);
            (value.to_bits().into(), value.is_finite())
        }
        _ => {
            let (low, high) = integer_range(dtype).ok_or(BadNumber::Malformed)?;
            let magnitude: u64 = digits.parse().map_err(|e: ParseIntError| match e.kind() {
                IntErrorKind::PosOverflow => BadNumber::OutOfRange,
                _ => BadNumber::Malformed,
            })?;
            let value = if negative { -i128::from(magnitude) } else { magnitude.into() };
            if value < low || value > high {
                return Err(BadNumber::OutOfRange);
            }
            let mask = u64::MAX >> (64 - dtype.bits().min(64));
            (value as u64 & mask, true)
        }
    };
    if finite { Ok(bits) } else { Err(BadNumber::OutOfRange) }
}

/// Returns the bits of infinity, the bit that turns it into a quiet NaN, and the position of the
/// sign bit.
fn float_layout(dtype: DType) -> (u64, u64, u32) {
    match dtype {
        DType::Float16 => (0x7c00, 0x200, 15),
        DType::BFloat16 => (0x7f80, 0x40, 15),
        DType::Float32 => (0x7f80_0000, 0x40_0000, 31),
        _ => (0x7ff0_0000_0000_0000, 0x8_0000_0000_0000, 63),
    }
}

fn special_bits(dtype: DType, nan: bool, negative: bool) -> u64 {
    let (infinity, quiet, sign) = float_layout(dtype);
    infinity | if nan { quiet } else { 0 } | u64::from(negative) << sign
}

fn is_nan(dtype: DType, bits: u64) -> bool {
    let (infinity, _, sign) = float_layout(dtype);
    bits >> sign <= 1 && bits & !(1 << sign) > infinity
}
