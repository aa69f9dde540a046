//! The numbers of at most 8 bits that no kernel computes with: the conversion between their codes
//! and other numbers.
//!
//! A code is the bits of an element, in the lowest bits of a byte. Every code of a float is exact
//! in float32. The conversion to a code rounds once, to the nearest value with ties to even.

use anfora_ir::{DType, Literal};

use super::Failure;
use super::elementwise::map;
use super::number::Scalar;

/// The treatment of numbers that a small float does not have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Rounding {
    /// True if numbers beyond the greatest value become that value, instead of an infinity or NaN.
    pub(crate) saturate: bool,
    /// The rounding of the numbers of `float8e8m0`, which are powers of two.
    pub(crate) powers: Powers,
}

impl Default for Rounding {
    fn default() -> Rounding {
        Rounding { saturate: true, powers: Powers::Up }
    }
}

/// The rounding to a power of two.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Powers {
    Up,
    Down,
    /// To the nearest power, and up from the middle of two.
    Nearest,
}

impl Powers {
    /// Returns the rounding of this name.
    ///
    /// # Errors
    /// If there is no such rounding.
    pub(crate) fn from_name(name: &str) -> Result<Powers, Failure> {
        match name {
            "up" => Ok(Powers::Up),
            "down" => Ok(Powers::Down),
            "nearest" => Ok(Powers::Nearest),
            _ => Err(Failure::Mismatch(format!("`round_mode` is `{name}`, but `up`, `down` or `nearest` is expected"))),
        }
    }
}

/// A floating-point format with a sign.
#[derive(Copy, Clone, Debug)]
struct Format {
    mantissa_bits: u32,
    bias: i32,
    /// The magnitude of the greatest finite value.
    greatest: u8,
    /// The code of a number that is out of range, if numbers do not saturate; `None` if they do
    /// always.
    overflow: Option<Overflow>,
    /// The code of NaN, or of the value that NaN becomes.
    nan: u8,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Overflow {
    /// Infinity, of which this is the magnitude.
    Infinity(u8),
    NaN,
}

impl Format {
    const fn of(dtype: DType) -> Option<Format> {
        let (mantissa_bits, bias, greatest, overflow, nan) = match dtype {
            DType::Float4E2M1 => (1, 1, 0x7, None, 0x8),
            DType::Float8E4M3FN => (3, 7, 0x7e, Some(Overflow::NaN), 0x7f),
            DType::Float8E4M3FNUZ => (3, 8, 0x7f, Some(Overflow::NaN), 0x80),
            DType::Float8E5M2 => (2, 15, 0x7b, Some(Overflow::Infinity(0x7c)), 0x7e),
            DType::Float8E5M2FNUZ => (2, 16, 0x7f, Some(Overflow::NaN), 0x80),
            _ => return None,
        };
        Some(Format { mantissa_bits, bias, greatest, overflow, nan })
    }

    const fn sign_bit(self) -> u8 {
        if self.greatest < 8 { 0x8 } else { 0x80 }
    }

    /// Returns true if the code of a negative zero is that of NaN.
    const fn has_one_zero(self) -> bool {
        self.nan == 0x80
    }

    fn decode(self, code: u8) -> f32 {
        let (sign, magnitude) = (code & self.sign_bit(), code & (self.sign_bit() - 1));
        if self.has_one_zero() && code == self.nan {
            return f32::NAN;
        }
        let value = if magnitude > self.greatest {
            if self.overflow == Some(Overflow::Infinity(magnitude)) { f32::INFINITY } else { f32::NAN }
        } else {
            let exponent = i32::from(magnitude >> self.mantissa_bits);
            let mantissa = i32::from(magnitude) & ((1 << self.mantissa_bits) - 1);
            let significand = if exponent == 0 { mantissa } else { mantissa | 1 << self.mantissa_bits };
            libm::scalbnf(significand as f32, exponent.max(1) - self.bias - self.mantissa_bits as i32)
        };
        if sign != 0 && !value.is_nan() { -value } else { value }
    }

    fn encode(self, value: f64, saturate: bool) -> u8 {
        if value.is_nan() {
            return self.nan;
        }
        let sign = if value.is_sign_negative() { self.sign_bit() } else { 0 };
        let exponent = exponent_of(value.abs()).max(1 - self.bias);
        let mantissa_bits = self.mantissa_bits as i32;
        let significand = libm::scalbn(value.abs(), mantissa_bits - exponent).round_ties_even();
        // A significand that is rounded up to the next power of two carries into the exponent.
        let magnitude = f64::from((exponent + self.bias - 1) << mantissa_bits) + significand;
        if magnitude <= f64::from(self.greatest) {
            let code = sign | magnitude as u8;
            return if self.has_one_zero() && code == self.nan { 0 } else { code };
        }
        match self.overflow {
            Some(Overflow::Infinity(infinity)) if !saturate => sign | infinity,
            Some(Overflow::NaN) if !saturate => self.nan,
            _ => sign | self.greatest,
        }
    }
}

/// Returns the exponent of a number that is not negative. The exponent of zero and of the smallest
/// numbers is lower than any of a small float.
fn exponent_of(value: f64) -> i32 {
    (value.to_bits() >> 52) as i32 - 1023
}

/// The code of NaN in `float8e8m0`. The other codes are exponents, of which this is the bias.
const POWER_NAN: u8 = 0xff;
const POWER_BIAS: i32 = 127;

/// Returns the code in `float8e8m0`. The format has no negative numbers; they become NaN.
fn encode_power(value: f64, rounding: Rounding) -> u8 {
    if value.is_nan() || value < 0.0 {
        return POWER_NAN;
    }
    let (lowest, highest) = (-POWER_BIAS, i32::from(POWER_NAN) - 1 - POWER_BIAS);
    let exponent = exponent_of(value.abs());
    let mantissa = value.to_bits() & ((1 << 52) - 1);
    let is_rounded_up = match rounding.powers {
        Powers::Up => mantissa != 0,
        Powers::Down => false,
        Powers::Nearest => mantissa >= 1 << 51,
    };
    let exponent = exponent + i32::from(is_rounded_up);
    if !rounding.saturate && (exponent > highest || exponent < lowest) {
        return POWER_NAN;
    }
    (exponent.clamp(lowest, highest) + POWER_BIAS) as u8
}

/// Returns the least and the greatest value of an integer type of less than 8 bits.
const fn integer_bounds(dtype: DType) -> Option<(i64, i64)> {
    match dtype {
        DType::Int2 => Some((-2, 1)),
        DType::UInt2 => Some((0, 3)),
        DType::Int4 => Some((-8, 7)),
        DType::UInt4 => Some((0, 15)),
        _ => None,
    }
}

/// Returns a number that is rounded to the nearest value of a type, as a code. Integers saturate.
///
/// # Errors
/// If the type is not that of a small number.
pub(crate) fn nearest(to: DType, saturate: bool) -> Result<impl Fn(f64) -> u8, Failure> {
    let rounding = Rounding { saturate, ..Rounding::default() };
    let encode = encoder(to, rounding)?;
    let bounds = integer_bounds(to).map(|(least, greatest)| (least as f64, greatest as f64));
    Ok(move |value: f64| match bounds {
        Some((least, greatest)) => encode(value.round_ties_even().max(least).min(greatest)),
        None => encode(value),
    })
}

/// Returns the function that converts a number to a code. Numbers are truncated to integers, of
/// which the lowest bits are kept.
fn encoder(to: DType, rounding: Rounding) -> Result<impl Fn(f64) -> u8, Failure> {
    let format = Format::of(to);
    if !to.is_small_number() {
        return Err(Failure::ElementType(to));
    }
    let low = ((1u16 << to.bits()) - 1) as u8;
    Ok(move |value: f64| match format {
        Some(format) => format.encode(value, rounding.saturate),
        None if to == DType::Float8E8M0 => encode_power(value, rounding),
        None => value as i64 as u8 & low,
    })
}

/// Converts every element to a small number. `wide` returns the value of an element; an integer
/// that float64 does not have is rounded to odd.
pub(crate) fn narrowed<T: Scalar>(
    x: &Literal,
    to: DType,
    rounding: Rounding,
    wide: impl Fn(T) -> f64,
) -> Result<Literal, Failure> {
    let encode = encoder(to, rounding)?;
    from_codes(&map(x, |e: T| encode(wide(e)))?, to)
}

/// Returns the tensor of a type of small numbers whose codes are the elements of `codes`.
pub(crate) fn from_codes(codes: &Literal, dtype: DType) -> Result<Literal, Failure> {
    if let Some(code) = codes.as_splat() {
        return Ok(Literal::splat_bytes(dtype, codes.shape(), code));
    }
    let bytes = codes.to_codes().ok_or(Failure::ElementType(codes.dtype()))?;
    Literal::from_codes(dtype, codes.shape(), &bytes).map_err(|_| Failure::TooLarge)
}

/// Converts small numbers to a type that kernels compute with and that has all of them: float32, or
/// int8 for integers.
pub(crate) fn widened(x: &Literal) -> Result<Literal, Failure> {
    let dtype = x.dtype();
    let codes = match x.to_codes() {
        Some(codes) if dtype.is_small_number() => codes,
        _ => return Err(Failure::ElementType(dtype)),
    };
    let codes = match x.as_splat() {
        Some(code) => Literal::splat(x.shape(), code[0]),
        None => Literal::from_elements(x.shape(), &codes).map_err(|_| Failure::TooLarge)?,
    };
    if let Some((least, _)) = integer_bounds(dtype) {
        let spare = if least < 0 { 8 - dtype.bits() as u32 } else { 0 };
        return map(&codes, |c: u8| (c << spare).cast_signed() >> spare);
    }
    match Format::of(dtype) {
        Some(format) => map(&codes, |c: u8| format.decode(c)),
        None => map(&codes, |c: u8| match c {
            POWER_NAN => f32::NAN,
            _ => libm::scalbnf(1.0, i32::from(c) - POWER_BIAS),
        }),
    }
}

#[cfg(test)]
mod tests {
    use half::{bf16, f16};

    use super::*;

    const FLOATS: [DType; 5] =
        [DType::Float4E2M1, DType::Float8E4M3FN, DType::Float8E4M3FNUZ, DType::Float8E5M2, DType::Float8E5M2FNUZ];

    #[test]
    fn every_code_is_its_value() {
        for dtype in FLOATS {
            let format = Format::of(dtype).unwrap();
            for code in 0..=((1u16 << dtype.bits()) - 1) as u8 {
                let value = format.decode(code);
                if value.is_nan() {
                    assert_eq!(format.encode(f64::NAN, true), format.nan);
                } else {
                    assert_eq!(format.encode(value.into(), false), code, "{dtype} {code:#x} {value}");
                }
            }
        }
        for code in 0..POWER_NAN {
            let value = f64::from(libm::scalbnf(1.0, i32::from(code) - POWER_BIAS));
            for powers in [Powers::Up, Powers::Down, Powers::Nearest] {
                assert_eq!(encode_power(value, Rounding { saturate: false, powers }), code);
            }
        }
    }

    /// The hashes of the codes that the Python package `ml_dtypes` 0.5 rounds to, with one NaN.
    const HASHES: [u64; 5] = [
        0x3de1_2308_603c_d865,
        0x5d0e_d3f9_373d_6915,
        0xd65b_d55e_d1c2_38a5,
        0xa150_48f3_6e22_53a5,
        0x77ce_2e17_de25_4ba5,
    ];

    /// Returns the 64-bit FNV-1a hash of the codes of all values of float16 and of bfloat16.
    fn hash(dtype: DType, saturate: bool) -> u64 {
        let encode = encoder(dtype, Rounding { saturate, powers: Powers::Up }).unwrap();
        let halves = (0..=u16::MAX).map(|b| f16::from_bits(b).to_f64());
        let all = halves.chain((0..=u16::MAX).map(|b| bf16::from_bits(b).to_f64()));
        all.map(encode).fold(0xcbf2_9ce4_8422_2325, |h, code| (h ^ u64::from(code)).wrapping_mul(0x100_0000_01b3))
    }

    #[test]
    fn values_are_rounded_as_by_ml_dtypes() {
        let hashes = FLOATS.map(|dtype| hash(dtype, false));
        assert_eq!(hashes, HASHES);
    }

    #[test]
    fn powers_of_two() {
        let up = |x: f64| encode_power(x, Rounding::default());
        let down = |x: f64| encode_power(x, Rounding { saturate: false, powers: Powers::Down });
        let nearest = |x: f64| encode_power(x, Rounding { saturate: false, powers: Powers::Nearest });
        assert_eq!([1.0, 1.1, 2.0, 0.0, f64::INFINITY].map(up), [127, 128, 128, 0, 254]);
        assert_eq!([1.0, 1.9, 2.0, 0.0, f64::INFINITY].map(down), [127, 127, 128, 255, 255]);
        assert_eq!([1.4, 1.5, 2.9, 3.0, 1e39, f64::NAN, -1.0].map(nearest), [127, 128, 128, 129, 255, 255, 255]);
    }

    #[test]
    fn integers_wrap_or_saturate() {
        let wrap = encoder(DType::Int4, Rounding::default()).unwrap();
        assert_eq!([-9.0, -8.0, 7.9, 8.0, f64::NAN].map(wrap), [7, 8, 7, 8, 0]);
        let saturated = nearest(DType::Int4, true).unwrap();
        assert_eq!([-9.0, 6.5, 8.0, f64::INFINITY].map(saturated), [8, 6, 7, 7]);
        let codes = Literal::from_codes(DType::Int2, &[4], &[0, 1, 2, 3]).unwrap();
        assert_eq!(widened(&codes).unwrap(), Literal::from_elements(&[4], &[0i8, 1, -2, -1]).unwrap());
        assert_eq!(narrowed(&widened(&codes).unwrap(), DType::Int2, Rounding::default(), |e: i8| e.into()), Ok(codes));
        let huge = Literal::splat_bytes(DType::UInt4, &[1 << 40, 1 << 20], &[9]);
        assert_eq!(widened(&huge).unwrap().as_splat(), Some(&[9][..]));
        assert_eq!(widened(&Literal::scalar(1f32)), Err(Failure::ElementType(DType::Float32)));
    }
}
