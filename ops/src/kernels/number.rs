//! The numbers that kernels compute with: the stored form of an element, and the type of its
//! arithmetic.

use anfora_ir::Element;
use half::{bf16, f16};

/// The form of an element in a literal's payload: its little-endian bytes. Loops that only move
/// elements depend on this type, so they are compiled for four sizes instead of every element type.
pub trait RawElement: Copy + PartialEq + Default + AsRef<[u8]> + Send + Sync + 'static {
    /// Returns a payload as elements. Bytes after the last whole element are ignored.
    fn view(bytes: &[u8]) -> &[Self];
    /// Returns a payload as mutable elements.
    fn view_mut(bytes: &mut [u8]) -> &mut [Self];
}

macro_rules! raw {
    ($($size:literal)*) => {$(
        impl RawElement for [u8; $size] {
            #[inline(always)]
            fn view(bytes: &[u8]) -> &[Self] {
                bytes.as_chunks().0
            }
            #[inline(always)]
            fn view_mut(bytes: &mut [u8]) -> &mut [Self] {
                bytes.as_chunks_mut().0
            }
        }
    )*};
}
raw!(1 2 4 8);

/// An element type that kernels compute with: `bool`, the integers of 8 to 64 bits, and the floats
/// of 16 to 64 bits.
pub trait Scalar: Element {
    /// The form of an element in a literal's payload.
    type Raw: RawElement;
    /// Decodes an element.
    fn load(raw: Self::Raw) -> Self;
    /// Encodes an element.
    fn store(self) -> Self::Raw;
    /// Returns the value, with every NaN replaced by the canonical NaN.
    fn canonical(self) -> Self;
}

macro_rules! scalars {
    ($($ty:ty, $size:literal;)*) => {$(
        impl Scalar for $ty {
            type Raw = [u8; $size];
            #[inline(always)]
            fn load(raw: Self::Raw) -> Self {
                <$ty>::from_le_bytes(raw)
            }
            #[inline(always)]
            fn store(self) -> Self::Raw {
                self.to_le_bytes()
            }
            #[inline(always)]
            fn canonical(self) -> Self {
                <$ty as Number>::narrow(self.widen())
            }
        }
    )*};
}
scalars! {
    i8, 1; i16, 2; i32, 4; i64, 8;
    u8, 1; u16, 2; u32, 4; u64, 8;
    f16, 2; bf16, 2; f32, 4; f64, 8;
}

impl Scalar for bool {
    type Raw = [u8; 1];
    #[inline(always)]
    fn load(raw: Self::Raw) -> Self {
        raw[0] != 0
    }
    #[inline(always)]
    fn store(self) -> Self::Raw {
        [u8::from(self)]
    }
    #[inline(always)]
    fn canonical(self) -> Self {
        self
    }
}

/// An element type with the type of its arithmetic: float32 for the 16-bit floats, the type itself
/// otherwise.
pub(crate) trait Number: Scalar {
    /// The type of arithmetic.
    type Calc: Calc;
    /// Converts to the type of arithmetic, exactly.
    fn widen(self) -> Self::Calc;
    /// Rounds to nearest even. Every NaN becomes the canonical NaN.
    fn narrow(value: Self::Calc) -> Self;
}

/// A floating-point element type.
pub(crate) trait FloatNumber: Number<Calc: Real + Into<f64>> {
    /// Returns the nearest value, with a single rounding, or the canonical NaN for a NaN.
    fn nearest(value: f64) -> Self;
}

macro_rules! nearest {
    ($($ty:ty, $round:expr;)*) => {$(
        impl FloatNumber for $ty {
            fn nearest(value: f64) -> $ty {
                if value.is_nan() { <$ty>::narrow(Real::NAN) } else { $round(value) }
            }
        }
    )*};
}
nearest! {
    f16, f16_from_f64;
    bf16, bf16_from_f64;
    f32, |value| value as f32;
    f64, std::convert::identity;
}

macro_rules! integer_numbers {
    ($($ty:ty)*) => {$(
        impl Number for $ty {
            type Calc = $ty;
            #[inline(always)]
            fn widen(self) -> $ty { self }
            #[inline(always)]
            fn narrow(value: $ty) -> $ty { value }
        }
    )*};
}
integer_numbers!(i8 i16 i32 i64 u8 u16 u32 u64);

/// Ordered like the integers 0 and 1, for operators that compare.
impl Number for bool {
    type Calc = u8;
    #[inline(always)]
    fn widen(self) -> u8 {
        u8::from(self)
    }
    #[inline(always)]
    fn narrow(value: u8) -> bool {
        value != 0
    }
}

macro_rules! float_numbers {
    ($($ty:ty, $calc:ty, $nan:literal, $infinity:literal, $widen:expr, $narrow:expr;)*) => {$(
        impl Number for $ty {
            type Calc = $calc;
            #[inline(always)]
            fn widen(self) -> $calc {
                $widen(self)
            }
            #[inline(always)]
            fn narrow(value: $calc) -> $ty {
                // Compares bits, since the compiler may replace a NaN by another NaN.
                let bits = <$ty>::to_bits($narrow(value));
                <$ty>::from_bits(if bits & !(1 << (<$ty as Element>::DTYPE.bits() - 1)) > $infinity { $nan } else { bits })
            }
        }
    )*};
}
float_numbers! {
    f16, f32, 0x7e00, 0x7c00, f16::to_f32, f16::from_f32;
    bf16, f32, 0x7fc0, 0x7f80, bf16::to_f32, bf16::from_f32;
    f32, f32, 0x7fc0_0000, 0x7f80_0000, std::convert::identity, std::convert::identity;
    f64, f64, 0x7ff8_0000_0000_0000, 0x7ff0_0000_0000_0000, std::convert::identity, std::convert::identity;
}

/// Arithmetic that wraps on integers and follows IEEE 754 on floats.
pub(crate) trait Calc: Copy + PartialEq + PartialOrd + Send + Sync + 'static {
    const ZERO: Self;
    const ONE: Self;
    /// The identity of `larger`.
    const LOWEST: Self;
    /// The identity of `smaller`.
    const HIGHEST: Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Truncates on integers. A zero integer divisor gives 0, so the caller must check it first.
    fn div(self, other: Self) -> Self;
    /// Rounds down. Zero divisors are treated as by `div`.
    fn floor_div(self, other: Self) -> Self;
    /// Returns the remainder of `div`, with the sign of `self`.
    fn rem(self, other: Self) -> Self;
    /// Returns the remainder of `floor_div`, with the sign of `other`.
    fn floor_rem(self, other: Self) -> Self;
    /// Returns the power, or `None` for an integer 0 to a negative power.
    fn power(self, exponent: Self) -> Option<Self>;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn round(self) -> Self;
    fn trunc(self) -> Self;
    fn is_nan(self) -> bool;
    /// Returns a number whose order is that of the values. Zeros of either sign are equal. A NaN
    /// is larger than any number, and equals any other NaN.
    fn order_key(self) -> u64;
    /// Returns the larger value, or NaN if one of them is NaN.
    fn larger(self, other: Self) -> Self;
    /// Returns the smaller value, or NaN if one of them is NaN.
    fn smaller(self, other: Self) -> Self;
    /// Returns `0 + self + self + …` with `count` additions, in a time that does not depend on
    /// `count`.
    fn repeat_add(self, count: u128) -> Self;
    /// Returns `1 * self * self * …` with `count` factors, or `None` if it takes too long.
    fn repeat_mul(self, count: u128) -> Option<Self>;
    /// Returns the value nearest to a count.
    fn from_count(count: u128) -> Self;
    /// Converts an attribute. Truncates on integers.
    fn from_f64(value: f64) -> Self;
}

macro_rules! integer_calc {
    ($($ty:ty)*) => {$(
        impl Calc for $ty {
            const ZERO: Self = 0;
            const ONE: Self = 1;
            const LOWEST: Self = <$ty>::MIN;
            const HIGHEST: Self = <$ty>::MAX;
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn sub(self, other: Self) -> Self { self.wrapping_sub(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_div(other) }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_div(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let inexact = self.wrapping_rem(other) != 0;
                if inexact && (self < 0) != (other < 0) { quotient.wrapping_sub(1) } else { quotient }
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                if other == 0 { 0 } else { self.wrapping_rem(other) }
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn floor_rem(self, other: Self) -> Self {
                let r = self.rem(other);
                if r != 0 && (r < 0) != (other < 0) { r.wrapping_add(other) } else { r }
            }
            fn power(self, exponent: Self) -> Option<Self> { integer_power(self, i128::from(exponent)) }
            #[inline(always)]
            fn neg(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn abs(self) -> Self { if self < 0 { self.wrapping_neg() } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn sign(self) -> Self {
                if self > 0 { 1 } else if self == 0 { 0 } else { (0 as $ty).wrapping_sub(1) }
            }
            #[inline(always)]
            fn floor(self) -> Self { self }
            #[inline(always)]
            fn ceil(self) -> Self { self }
            #[inline(always)]
            fn round(self) -> Self { self }
            #[inline(always)]
            fn trunc(self) -> Self { self }
            #[inline(always)]
            fn order_key(self) -> u64 { (self as u64).wrapping_sub(<$ty>::MIN as u64) }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
            #[inline(always)]
            fn larger(self, other: Self) -> Self { self.max(other) }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self { self.min(other) }
            fn repeat_add(self, count: u128) -> Self { self.wrapping_mul(count as $ty) }
            fn repeat_mul(self, count: u128) -> Option<Self> {
                Some(repeat_mul_integer(self, count, 1, <$ty>::wrapping_mul))
            }
            fn from_count(count: u128) -> Self { count as $ty }
            fn from_f64(value: f64) -> Self { value as i128 as $ty }
        }
    )*};
}
integer_calc! {
    i8 i16 i32 i64 u8 u16 u32 u64
}

/// Returns a power of an integer. It wraps; for a negative exponent it is the real power truncated
/// toward zero. `None` for 0 to a negative power.
pub(crate) fn integer_power<C: Calc>(base: C, exponent: i128) -> Option<C> {
    if exponent >= 0 {
        return base.repeat_mul(exponent.unsigned_abs());
    }
    let minus_one = C::ZERO.sub(C::ONE);
    if base == C::ZERO {
        None
    } else if base == C::ONE || (base == minus_one && minus_one < C::ZERO && exponent % 2 != 0) {
        Some(base)
    } else if base == minus_one && minus_one < C::ZERO {
        Some(C::ONE)
    } else {
        Some(C::ZERO)
    }
}

/// Computes a power by squaring. Wrapping multiplication is associative, so the result is the
/// repeated product.
fn repeat_mul_integer<T: Copy>(base: T, mut count: u128, one: T, mul: impl Fn(T, T) -> T) -> T {
    let (mut square, mut product) = (base, one);
    while count > 0 {
        if count & 1 == 1 {
            product = mul(product, square);
        }
        square = mul(square, square);
        count >>= 1;
    }
    product
}

/// The most multiplications of a repeated float product.
const MAX_REPEATED_PRODUCTS: u128 = 1 << 26;

macro_rules! float_calc {
    ($ty:ty, $bits:ty, $mantissa:literal, $pow:path) => {
        impl Calc for $ty {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const LOWEST: Self = <$ty>::NEG_INFINITY;
            const HIGHEST: Self = <$ty>::INFINITY;
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self * other
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                self / other
            }
            #[inline(always)]
            fn floor_div(self, other: Self) -> Self {
                (self / other).floor()
            }
            #[inline(always)]
            fn rem(self, other: Self) -> Self {
                self % other
            }
            #[inline(always)]
            fn floor_rem(self, other: Self) -> Self {
                let r = self % other;
                if r == 0.0 {
                    (0.0 as $ty).copysign(other)
                } else if (r < 0.0) != (other < 0.0) {
                    r + other
                } else {
                    r
                }
            }
            fn power(self, exponent: Self) -> Option<Self> {
                Some($pow(self, exponent))
            }
            #[inline(always)]
            fn neg(self) -> Self {
                -self
            }
            #[inline(always)]
            fn abs(self) -> Self {
                <$ty>::abs(self)
            }
            #[inline(always)]
            fn sign(self) -> Self {
                if self > 0.0 {
                    1.0
                } else if self < 0.0 {
                    -1.0
                } else if self == 0.0 {
                    0.0
                } else {
                    self
                }
            }
            #[inline(always)]
            fn floor(self) -> Self {
                <$ty>::floor(self)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                <$ty>::ceil(self)
            }
            #[inline(always)]
            fn round(self) -> Self {
                self.round_ties_even()
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                <$ty>::trunc(self)
            }
            #[inline(always)]
            fn order_key(self) -> u64 {
                // The sum turns -0 into 0.
                let bits = (f64::from(self) + 0.0).to_bits();
                match bits >> 63 {
                    _ if self.is_nan() => u64::MAX,
                    0 => bits | 1 << 63,
                    _ => !bits,
                }
            }
            #[inline(always)]
            fn is_nan(self) -> bool {
                <$ty>::is_nan(self)
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                if self > other || self.is_nan() {
                    self
                } else if self == other && self.is_sign_positive() {
                    self
                } else {
                    other
                }
            }
            #[inline(always)]
            fn smaller(self, other: Self) -> Self {
                if self < other || self.is_nan() {
                    self
                } else if self == other && self.is_sign_negative() {
                    self
                } else {
                    other
                }
            }
            fn repeat_add(self, count: u128) -> Self {
                // While the exponent of the sum stays the same, each addition of the same number
                // changes the bits by the same amount, after a tie, if there is one, has been
                // rounded to even. So after two equal steps, the rest of the exponent's range is
                // one jump. That leaves a few additions for each exponent.
                const MANTISSA: $bits = (1 << $mantissa) - 1;
                let (mut sum, mut left) = (0.0 as $ty, count);
                while left > 0 {
                    let first = sum + self;
                    left -= 1;
                    if left == 0 || first.to_bits() == sum.to_bits() || !first.is_finite() {
                        return first;
                    }
                    let second = first + self;
                    left -= 1;
                    if left == 0 || second.to_bits() == first.to_bits() || !second.is_finite() {
                        return second;
                    }
                    let (a, b, c) = (sum.to_bits(), first.to_bits(), second.to_bits());
                    sum = second;
                    let step = c.wrapping_sub(b);
                    if a >> $mantissa == c >> $mantissa && step == b.wrapping_sub(a) && step <= MANTISSA {
                        let jumps = (((c | MANTISSA) - c) / step).min(left.try_into().unwrap_or(<$bits>::MAX));
                        sum = <$ty>::from_bits(c + jumps * step);
                        left -= u128::from(jumps);
                    }
                }
                sum
            }
            fn repeat_mul(self, count: u128) -> Option<Self> {
                let mut product = 1.0 as $ty;
                for done in 0..count {
                    let next = product * self;
                    if next.is_nan() || next.to_bits() == product.to_bits() {
                        return Some(next);
                    }
                    if next == -product && (self == -1.0 || next == 0.0 || next.is_infinite()) {
                        // From here on the product alternates.
                        return Some(if (count - done) % 2 == 1 { next } else { product });
                    }
                    if done >= MAX_REPEATED_PRODUCTS {
                        return None;
                    }
                    product = next;
                }
                Some(product)
            }
            fn from_count(count: u128) -> Self {
                count as $ty
            }
            fn from_f64(value: f64) -> Self {
                value as $ty
            }
        }
    };
}
float_calc!(f32, u32, 23, libm::powf);
float_calc!(f64, u64, 52, libm::pow);

macro_rules! real {
    ($($method:ident $f32:ident $f64:ident;)*) => {
        /// The functions on floats. They come from `libm`, in Rust, so that their results have the
        /// same bits on every machine.
        pub(crate) trait Real: Calc {
            const NAN: Self;
            $(fn $method(self) -> Self;)*
            /// Returns the correctly rounded square root.
            fn sqrt(self) -> Self;
            fn is_infinite(self) -> bool;
            fn is_finite(self) -> bool;
        }
        impl Real for f32 {
            const NAN: Self = f32::NAN;
            $(fn $method(self) -> Self { libm::$f32(self) })*
            #[inline(always)]
            fn sqrt(self) -> Self { f32::sqrt(self) }
            #[inline(always)]
            fn is_infinite(self) -> bool { f32::is_infinite(self) }
            #[inline(always)]
            fn is_finite(self) -> bool { f32::is_finite(self) }
        }
        impl Real for f64 {
            const NAN: Self = f64::NAN;
            $(fn $method(self) -> Self { libm::$f64(self) })*
            #[inline(always)]
            fn sqrt(self) -> Self { f64::sqrt(self) }
            #[inline(always)]
            fn is_infinite(self) -> bool { f64::is_infinite(self) }
            #[inline(always)]
            fn is_finite(self) -> bool { f64::is_finite(self) }
        }
    };
}
real! {
    exp expf exp; exp_m1 expm1f expm1; ln logf log; ln_1p log1pf log1p; tanh tanhf tanh; error_function erff erf;
    sin sinf sin; cos cosf cos; tan tanf tan; asin asinf asin; acos acosf acos; atan atanf atan;
    sinh sinhf sinh; cosh coshf cosh; asinh asinhf asinh; acosh acoshf acosh; atanh atanhf atanh;
}

/// Converts float64 to float16 with a single rounding.
pub(crate) fn f16_from_f64(value: f64) -> f16 {
    f16::from_f32(to_odd_f32(value))
}

/// Converts float64 to bfloat16 with a single rounding.
pub(crate) fn bf16_from_f64(value: f64) -> bf16 {
    bf16::from_f32(to_odd_f32(value))
}

/// Rounds to odd: the last bit of an inexact result is set. Rounding such a result again to far
/// fewer bits gives the same value as a single rounding.
fn to_odd_f32(value: f64) -> f32 {
    let near = value as f32;
    if near.is_nan() || f64::from(near) == value || near.to_bits() & 1 == 1 {
        return near;
    }
    let toward_zero = f64::from(near).abs() > value.abs();
    f32::from_bits(if toward_zero { near.to_bits() - 1 } else { near.to_bits() + 1 })
}

/// Converts an integer to float64 such that rounding the result to a 16-bit float gives the same
/// value as rounding the integer. Digits beyond the precision of float64 set its last bit.
pub(crate) fn to_odd_f64(value: i128) -> f64 {
    let magnitude = value.unsigned_abs();
    let excess = (128 - magnitude.leading_zeros()).saturating_sub(53);
    let kept = magnitude >> excess;
    let odd = kept | u128::from(kept << excess != magnitude);
    let result = (odd << excess) as f64;
    if value < 0 { -result } else { result }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_addition_is_the_loop() {
        fn slow<C: Calc>(x: C, n: u32) -> C {
            (0..n).fold(C::ZERO, |acc, _| acc.add(x))
        }
        let mut random = fastrand::Rng::with_seed(1);
        for case in 0..400 {
            let bits = random.u32(..);
            let x = if case % 3 == 0 { f32::from_bits(bits) } else { (bits as f32) / 3.0e9 - 0.5 };
            let n = random.u32(..300_000);
            assert_eq!(f32::narrow(x.repeat_add(n.into())).to_bits(), f32::narrow(slow(x, n)).to_bits(), "{x} {n}");
        }
        for n in [1u32, 2, 3, 1000, 123_457] {
            for x in [0.1f64, -0.1, 1e300, 5e-324, -3e-310, 0.0, -0.0, f64::INFINITY] {
                assert_eq!(x.repeat_add(n.into()).to_bits(), slow(x, n).to_bits(), "{x} {n}");
            }
        }
        // float32 cannot count beyond 2^24.
        assert_eq!(1f32.repeat_add(1 << 40), 16_777_216.0);
        assert_eq!(1f64.repeat_add(1 << 40), (1u64 << 40) as f64);
        assert_eq!(7i8.repeat_add(1000), (7000 % 256 - 256) as i8);
    }

    #[test]
    fn repeated_product_is_the_loop() {
        for x in [0.5f32, -0.5, -1.0, 1.0, 0.0, -0.0, 2.0, -2.0, 1.0001, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let (mut slow, mut factors) = (1.0f32, 0);
            for n in [0u32, 1, 2, 3, 200, 201, 300_000, 300_001] {
                slow = (factors..n).fold(slow, |p, _| p * x);
                factors = n;
                let fast = x.repeat_mul(n.into()).map(f32::narrow);
                assert_eq!(fast.map(f32::to_bits), Some(f32::narrow(slow).to_bits()), "{x} {n}");
            }
        }
        assert_eq!(3u8.repeat_mul(1_000_001), Some((0..1_000_001).fold(1u8, |p, _| p.wrapping_mul(3))));
        assert_eq!((1.0 + f64::EPSILON).repeat_mul(u128::MAX), None);
    }

    #[test]
    fn extremes_order_zeros_and_propagate_nan() {
        assert_eq!(0.0f32.larger(-0.0).to_bits(), 0);
        assert_eq!((-0.0f32).larger(0.0).to_bits(), 0);
        assert_eq!(0.0f32.smaller(-0.0).to_bits(), 1 << 31);
        assert_eq!((-0.0f32).smaller(0.0).to_bits(), 1 << 31);
        assert!(1.0f32.larger(f32::NAN).is_nan() && f32::NAN.larger(1.0).is_nan());
        assert!(1.0f32.smaller(f32::NAN).is_nan() && f32::NAN.smaller(1.0).is_nan());
        assert_eq!(1.0f32.larger(2.0), 2.0);
        assert_eq!(1.0f32.smaller(2.0), 1.0);
    }

    #[test]
    fn sixteen_bit_floats_are_rounded_once() {
        // Slightly above the midpoint between 1 and the next float16. Rounding to float32 first
        // would lose the excess.
        let above = 1.0 + f64::powi(2.0, -11) + f64::powi(2.0, -40);
        assert_eq!(f16_from_f64(above).to_bits(), 0x3c01);
        assert_eq!(f16_from_f64(1.0 + f64::powi(2.0, -11)).to_bits(), 0x3c00);
        assert_eq!(f16_from_f64(-above).to_bits(), 0xbc01);
        let above = 1.0 + f64::powi(2.0, -8) + f64::powi(2.0, -40);
        assert_eq!(bf16_from_f64(above).to_bits(), 0x3f81);
        assert_eq!(f16_from_f64(1e9), f16::INFINITY);
        assert_eq!(bf16_from_f64(f64::MAX), bf16::INFINITY);
        assert_eq!(bf16_from_f64(to_odd_f64((1 << 62) + (1 << 54) + 1)).to_bits(), 0x5e81);
        assert_eq!(bf16_from_f64(to_odd_f64((1 << 62) + (1 << 54))).to_bits(), 0x5e80);
    }

    #[test]
    fn integer_division_and_power() {
        assert_eq!((-7i32).div(2), -3);
        assert_eq!((-7i32).floor_div(2), -4);
        assert_eq!((-7i32).rem(2), -1);
        assert_eq!((-7i32).floor_rem(2), 1);
        assert_eq!(7i32.floor_rem(-2), -1);
        assert_eq!(i8::MIN.div(-1), i8::MIN);
        assert_eq!(i8::MIN.floor_div(-1), i8::MIN);
        assert_eq!(i8::MIN.floor_rem(-1), 0);
        assert_eq!((-7.5f32).floor_rem(2.0), 0.5);
        assert_eq!(2i8.power(8), Some(0));
        assert_eq!(3i32.power(4), Some(81));
        assert_eq!(2i32.power(-1), Some(0));
        assert_eq!((-1i32).power(-3), Some(-1));
        assert_eq!((-1i32).power(-2), Some(1));
        assert_eq!(0i32.power(-1), None);
        assert_eq!(0i32.power(0), Some(1));
    }
}
