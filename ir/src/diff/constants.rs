//! The distance of two constants.

use half::{bf16, f16};

use crate::tables::dtype::DType;
use crate::tables::literal::{Element, Literal};

/// Returns how far two different constants of one type and shape are apart, in words: the number of
/// elements that differ, and the largest difference. `None` if the types or shapes differ, which
/// the texts of the constants show, or if there is one element, or if the elements cannot be read.
pub(super) fn distance(a: &Literal, b: &Literal) -> Option<String> {
    if a.dtype() != b.dtype() || a.shape() != b.shape() || a.element_count() == 1 {
        return None;
    }
    if let (Some(a), Some(b)) = (a.as_strings(), b.as_strings()) {
        let count = a.iter().zip(b).filter(|(a, b)| a != b).count();
        return Some(format!("{count} of {} elements differ", a.len()));
    }
    match a.dtype() {
        DType::Bool => differing::<bool>(a, b, |x| f64::from(u8::from(x))),
        DType::Int8 => differing::<i8>(a, b, f64::from),
        DType::Int16 => differing::<i16>(a, b, f64::from),
        DType::Int32 => differing::<i32>(a, b, f64::from),
        DType::Int64 => differing::<i64>(a, b, |x| x as f64),
        DType::UInt8 => differing::<u8>(a, b, f64::from),
        DType::UInt16 => differing::<u16>(a, b, f64::from),
        DType::UInt32 => differing::<u32>(a, b, f64::from),
        DType::UInt64 => differing::<u64>(a, b, |x| x as f64),
        DType::Float16 => differing::<f16>(a, b, f16::to_f64),
        DType::BFloat16 => differing::<bf16>(a, b, bf16::to_f64),
        DType::Float32 => differing::<f32>(a, b, f64::from),
        DType::Float64 => differing::<f64>(a, b, |x| x),
        _ => None,
    }
}

/// Returns the distance of two constants whose elements are `T`. Elements are compared by their
/// bits, as constants are.
fn differing<T: Element>(a: &Literal, b: &Literal, number: impl Fn(T) -> f64) -> Option<String> {
    let count = a.element_count();
    let size = T::DTYPE.bits() / 8;
    let (mut differ, mut largest) = (0usize, 0f64);
    let mut add = |x: &[u8], y: &[u8]| {
        if x != y {
            let far = (number(T::read(x)) - number(T::read(y))).abs();
            differ += 1;
            // The distance from a NaN is a NaN, which stays.
            largest = if far.is_nan() || largest.is_nan() { f64::NAN } else { largest.max(far) };
        }
    };
    match (a.as_splat(), b.as_splat()) {
        (Some(x), Some(y)) => {
            add(&x[..size], &y[..size]);
            differ = count;
        }
        (x, y) => {
            // Both shapes are the same, and one of the constants has all its elements.
            let (dense, other) = (a.read_dense().ok()?, b.read_dense().ok()?);
            let repeated = |splat: Option<&[u8]>| splat.map(|s| s[..size].to_vec());
            let (x, y) = (repeated(x), repeated(y));
            for i in 0..count {
                let at = i * size..(i + 1) * size;
                let x = x.as_deref().or_else(|| dense.get(at.clone()))?;
                let y = y.as_deref().or_else(|| other.get(at))?;
                add(x, y);
            }
        }
    }
    let most = match largest {
        far if far.is_nan() => "NaN in some".to_string(),
        far => format!("by at most {far}"),
    };
    Some(format!("{differ} of {count} elements differ, {most}"))
}
