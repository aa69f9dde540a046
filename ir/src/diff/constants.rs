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
    let int = |x: i128| Far::Int(x.unsigned_abs());
    let float = |x: f64| Far::Float(x.abs());
    match a.dtype() {
        DType::Int8 => differing::<i8>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::Int16 => differing::<i16>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::Int32 => differing::<i32>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::Int64 => differing::<i64>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::UInt8 => differing::<u8>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::UInt16 => differing::<u16>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::UInt32 => differing::<u32>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::UInt64 => differing::<u64>(a, b, |x, y| int(i128::from(x) - i128::from(y))),
        DType::Float16 => differing::<f16>(a, b, |x, y| float(x.to_f64() - y.to_f64())),
        DType::BFloat16 => differing::<bf16>(a, b, |x, y| float(x.to_f64() - y.to_f64())),
        DType::Float32 => differing::<f32>(a, b, |x, y| float(f64::from(x) - f64::from(y))),
        DType::Float64 => differing::<f64>(a, b, |x, y| float(x - y)),
        // Elements of these types are counted only.
        dtype => Some(counted(count_pairs(a, b, dtype.bits(), |_, _| ())?, a.element_count())),
    }
}

/// The distance of two numbers.
#[derive(Copy, Clone)]
enum Far {
    Int(u128),
    Float(f64),
}

impl Far {
    /// Returns the larger one of two distances of one kind. The distance from a NaN is a NaN, which
    /// stays.
    fn max(self, other: Far) -> Far {
        match (self, other) {
            (Far::Int(a), Far::Int(b)) => Far::Int(a.max(b)),
            (Far::Float(a), Far::Float(b)) if !a.is_nan() && !b.is_nan() => Far::Float(a.max(b)),
            _ => Far::Float(f64::NAN),
        }
    }
}

/// Returns the distance of two constants whose elements are `T`. Elements are compared by their
/// bits, as constants are.
fn differing<T: Element>(a: &Literal, b: &Literal, far: impl Fn(T, T) -> Far) -> Option<String> {
    let mut largest: Option<Far> = None;
    let differ = count_pairs(a, b, T::DTYPE.bits(), |x, y| {
        let far = far(T::read(x), T::read(y));
        largest = Some(largest.map_or(far, |largest| largest.max(far)));
    })?;
    let most = match largest? {
        Far::Int(far) => format!("by at most {far}"),
        Far::Float(far) if far.is_nan() => "NaN in some".to_string(),
        Far::Float(far) => format!("by at most {far}"),
    };
    Some(format!("{}, {most}", counted(differ, a.element_count())))
}

fn counted(differ: usize, of: usize) -> String {
    format!("{differ} of {of} elements differ")
}

/// Returns the number of elements of `bits` bits that differ, and calls `each` with the bytes of
/// those that have whole bytes; of a constant that repeats one element, once.
fn count_pairs(a: &Literal, b: &Literal, bits: usize, mut each: impl FnMut(&[u8], &[u8])) -> Option<usize> {
    let count = a.element_count();
    if bits < 8 {
        let are_splats = a.as_splat().is_some() && b.as_splat().is_some();
        let (a, b) = (a.to_codes()?, b.to_codes()?);
        // A constant that repeats one element has one code.
        let code = |codes: &[u8], i: usize| codes.get(if codes.len() == 1 { 0 } else { i }).copied();
        return Some(if are_splats { count } else { (0..count).filter(|&i| code(&a, i) != code(&b, i)).count() });
    }
    let size = bits / 8;
    match (a.as_splat(), b.as_splat()) {
        (Some(x), Some(y)) => {
            each(&x[..size], &y[..size]);
            Some(count)
        }
        (x, y) => {
            // Both shapes are the same, and one of the constants has all its elements.
            let (dense, other) = (a.read_dense().ok()?, b.read_dense().ok()?);
            let repeated = |splat: Option<&[u8]>| splat.map(|s| s[..size].to_vec());
            let (x, y) = (repeated(x), repeated(y));
            let mut differ = 0;
            for i in 0..count {
                let at = i * size..(i + 1) * size;
                let x = x.as_deref().or_else(|| dense.get(at.clone()))?;
                let y = y.as_deref().or_else(|| other.get(at))?;
                if x != y {
                    differ += 1;
                    each(x, y);
                }
            }
            Some(differ)
        }
    }
}
