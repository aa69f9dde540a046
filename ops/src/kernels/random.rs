//! Random tensors from a counter. The n-th number of a stream depends only on the seed and n, so a
//! run can be repeated.

use anfora_ir::{DType, Literal};

use super::Failure;
use super::arithmetic::dispatch;
use super::number::{Calc, FloatNumber, Number, Scalar, bf16_from_f64, f16_from_f64};
use super::view::Output;

/// A stream of random bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct RandomStream {
    seed: u64,
    drawn: u64,
}

/// An odd constant whose multiples are distributed evenly.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

impl RandomStream {
    /// Returns the stream of a seed, at its beginning.
    pub fn new(seed: u64) -> RandomStream {
        RandomStream { seed: mix(seed.wrapping_add(INCREMENT)), drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_add(1);
        mix(self.seed.wrapping_add(self.drawn.wrapping_mul(INCREMENT)))
    }
}

/// Mixes bits by the function of Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators" (OOPSLA 2014), in the variant of Stafford.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Returns a number in `[0, 1)` with 53 random bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Draws numbers in `[low, high)`. A number that rounds to `high` becomes `low`.
pub(crate) fn uniform(
    shape: &[usize],
    dtype: DType,
    low: f64,
    high: f64,
    stream: &mut RandomStream,
) -> Result<Literal, Failure> {
    dispatch!(float dtype, T => {
        let mut out = Output::<T>::new(shape)?;
        for o in out.raw() {
            let drawn = round::<T>(low + unit(stream.next()) * (high - low));
            let beyond = low < high && drawn.widen() >= round::<T>(high).widen();
            *o = if beyond { round::<T>(low) } else { drawn }.store();
        }
        out.finish()
    })
}

/// Draws numbers of a normal distribution, by the Box-Muller transform.
pub(crate) fn normal(
    shape: &[usize],
    dtype: DType,
    mean: f64,
    std: f64,
    stream: &mut RandomStream,
) -> Result<Literal, Failure> {
    dispatch!(float dtype, T => {
        let mut out = Output::<T>::new(shape)?;
        for o in out.raw() {
            let radius = (-2.0 * libm::log(1.0 - unit(stream.next()))).sqrt();
            let angle = 2.0 * std::f64::consts::PI * unit(stream.next());
            *o = round::<T>(mean + std * (radius * libm::cos(angle))).store();
        }
        out.finish()
    })
}

/// Converts float64 to any float type with a single rounding.
fn round<T: FloatNumber>(value: f64) -> T {
    let narrow: T::Calc = match T::DTYPE {
        DType::Float16 => Calc::from_f64(f16_from_f64(value).to_f64()),
        DType::BFloat16 => Calc::from_f64(bf16_from_f64(value).to_f64()),
        _ => Calc::from_f64(value),
    };
    T::narrow(narrow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_repeat_and_go_on() {
        let mut a = RandomStream::new(7);
        let x = uniform(&[1000], DType::Float32, -1.0, 3.0, &mut a).unwrap();
        let y = uniform(&[1000], DType::Float32, -1.0, 3.0, &mut a).unwrap();
        let mut b = RandomStream::new(7);
        assert_eq!(uniform(&[2, 500], DType::Float32, -1.0, 3.0, &mut b).unwrap().to_bytes(), x.to_bytes());
        assert_ne!(x, y);
        assert_ne!(uniform(&[1000], DType::Float32, -1.0, 3.0, &mut RandomStream::new(8)).unwrap(), x);
        let values = x.elements::<f32>().unwrap().into_owned();
        assert!(values.iter().all(|&v| (-1.0..3.0).contains(&v)));
        let mean = values.iter().sum::<f32>() / 1000.0;
        assert!((mean - 1.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn rounding_never_reaches_the_end() {
        let mut stream = RandomStream::new(1);
        let x = uniform(&[10_000], DType::BFloat16, 0.0, 1.0, &mut stream).unwrap();
        assert!(x.elements::<half::bf16>().unwrap().iter().all(|v| v.to_f32() < 1.0));
        assert!(uniform(&[1], DType::Int8, 0.0, 1.0, &mut stream).is_err());
    }

    #[test]
    fn a_normal_distribution() {
        let x = normal(&[20_000], DType::Float64, 2.0, 3.0, &mut RandomStream::new(3)).unwrap();
        let values = x.elements::<f64>().unwrap().into_owned();
        let mean = values.iter().sum::<f64>() / 2e4;
        let var = values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / 2e4;
        assert!((mean - 2.0).abs() < 0.1 && (var - 9.0).abs() < 0.4, "{mean} {var}");
    }
}
