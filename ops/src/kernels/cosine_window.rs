//! Windows of sums of cosines, which weight the samples of a signal.

use anfora_ir::{DType, Literal};

use super::Failure;
use super::cast::cast;
use super::view::Output;

/// Returns the factors of the cosines of a window.
///
/// # Errors
/// If there is no window of this name.
fn factors(kind: &str) -> Result<[f64; 3], Failure> {
    match kind {
        "hann" => Ok([0.5, -0.5, 0.0]),
        "hamming" => Ok([25.0 / 46.0, 25.0 / 46.0 - 1.0, 0.0]),
        "blackman" => Ok([0.42, -0.5, 0.08]),
        _ => Err(Failure::Mismatch(format!("`kind` is `{kind}`, but `hann`, `hamming` or `blackman` is expected"))),
    }
}

/// Checks the name of a window.
///
/// # Errors
/// If there is no window of this name.
pub(crate) fn check_kind(kind: &str) -> Result<(), Failure> {
    factors(kind).map(|_| ())
}

/// Returns the extent in an operand of one integer.
///
/// # Errors
/// If it is not one integer that is not negative.
pub(crate) fn extent_of(size: &Literal) -> Result<usize, Failure> {
    let one = if size.element_count() == 1 { size.to_i64s() } else { None };
    let size = one.and_then(|n| usize::try_from(n[0]).ok());
    size.ok_or_else(|| Failure::Mismatch("the extent of a window is not one integer from 0 on".into()))
}

/// Returns a window, computed in float64. A periodic window is the beginning of one that is longer
/// by an element.
pub(crate) fn cosine_window(size: &Literal, kind: &str, periodic: bool, dtype: DType) -> Result<Literal, Failure> {
    let [mean, first, second] = factors(kind)?;
    let size = extent_of(size)?;
    let mut out = Output::<f64>::new(&[size])?;
    let period = size as f64 - if periodic { 0.0 } else { 1.0 };
    for (i, o) in out.raw().iter_mut().enumerate() {
        let angle = i as f64 * std::f64::consts::TAU / period;
        let value = mean + first * libm::cos(angle) + second * libm::cos(2.0 * angle);
        *o = if value.is_nan() { f64::NAN.to_le_bytes() } else { value.to_le_bytes() };
    }
    cast(&out.finish()?, dtype)
}
