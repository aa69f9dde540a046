//! Prints numbers, with every bit kept.

use std::fmt::Write;

use half::{bf16, f16};

use crate::tables::dtype::DType;
use crate::tables::literal::Element;

use super::output::Output;

/// A floating-point number of any width, in the form in which it is printed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Decimal {
    /// A number that is printed as its shortest decimal, that of a float32 or of a float64.
    Single(f32),
    Double(f64),
    Infinity {
        negative: bool,
    },
    /// The NaN that computations give.
    Nan,
    /// Any other NaN, by its bits.
    NanBits(u64),
}

/// Returns the element in `bytes` of one of the floating-point types that kernels compute with.
pub(super) fn decimal(dtype: DType, bytes: &[u8]) -> Decimal {
    macro_rules! classify {
        ($ty:ty, $finite:expr) => {{
            let x = <$ty>::read(bytes);
            if x.is_nan() {
                if x.to_bits() == <$ty>::NAN.to_bits() { Decimal::Nan } else { Decimal::NanBits(x.to_bits().into()) }
            } else if x.is_infinite() {
                Decimal::Infinity { negative: x.is_sign_negative() }
            } else {
                $finite(x)
            }
        }};
    }
    match dtype {
        DType::Float32 => classify!(f32, Decimal::Single),
        DType::Float16 => classify!(f16, |x: f16| {
            let is_x = |y: f16| y.to_bits() == x.to_bits();
            shortest(x.to_f64(), |d| is_x(f16::from_f64(d)) && is_x(f16::from_f32(d as f32)))
        }),
        DType::BFloat16 => classify!(bf16, |x: bf16| {
            let is_x = |y: bf16| y.to_bits() == x.to_bits();
            shortest(x.to_f64(), |d| is_x(bf16::from_f64(d)) && is_x(bf16::from_f32(d as f32)))
        }),
        _ => classify!(f64, Decimal::Double),
    }
}

/// Returns the decimal with the fewest digits for which `reads_back` is true, as the nearest
/// float64.
fn shortest(exact: f64, reads_back: impl Fn(f64) -> bool) -> Decimal {
    let mut candidates = (0..8).filter_map(|digits| format!("{exact:.digits$e}").parse().ok());
    Decimal::Double(candidates.find(|&d| reads_back(d)).unwrap_or(exact))
}

impl Output<'_> {
    /// Prints a number so that it reads back as itself where a float of its type is expected. Whole
    /// numbers have no point.
    pub(super) fn float(&mut self, value: Decimal) {
        match value {
            Decimal::Single(x) => self.finite(x, x.abs() < 1e16),
            Decimal::Double(x) => self.finite(x, x.abs() < 1e16),
            Decimal::Infinity { negative: false } => self.text("inf"),
            Decimal::Infinity { negative: true } => self.text("-inf"),
            Decimal::Nan => self.text("nan"),
            Decimal::NanBits(bits) => {
                let _ = write!(self, "nan({bits:#x})");
            }
        }
    }

    fn finite<T: Into<f64> + Copy + std::fmt::Debug>(&mut self, x: T, small: bool) {
        let wide: f64 = x.into();
        if small && wide.fract() == 0.0 && !(wide == 0.0 && wide.is_sign_negative()) {
            return self.signed(wide as i64);
        }
        let _ = write!(self, "{x:?}");
    }

    /// Prints a float64 so that it does not read as an integer. It has no suffix unless it is
    /// infinite or not a number.
    pub(super) fn float_attribute(&mut self, bits: u64) {
        match decimal(DType::Float64, &bits.to_le_bytes()) {
            Decimal::Double(x) => {
                let _ = write!(self, "{x:?}");
            }
            Decimal::NanBits(bits) => {
                let _ = write!(self, "dense<Tensor[(), float64]>[nan({bits:#x})]");
            }
            other => {
                self.float(other);
                self.text("f64");
            }
        }
    }
}
