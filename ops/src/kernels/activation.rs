//! Activation functions of neural networks.

use anfora_ir::Literal;

use super::arithmetic::{dispatch, in_float32, same_dtype, sigmoid};
use super::elementwise::{map, zip};
use super::number::{Calc, FloatNumber, Number, Real};
use super::strides::broadcast_shapes;
use super::{Failure, shape_text};

/// Activation functions of one operand of floats.
#[derive(Copy, Clone, PartialEq, Debug)]
pub(crate) enum Activation {
    LeakyRelu { alpha: f64 },
    ThresholdedRelu { alpha: f64 },
    Elu { alpha: f64 },
    Celu { alpha: f64 },
    Selu { alpha: f64, gamma: f64 },
    Gelu,
    GeluTanh,
    Silu { alpha: f64 },
    HardSigmoid { alpha: f64, beta: f64 },
    HardSwish,
    Mish,
    Softplus,
    Softsign,
    Shrink { lambd: f64, bias: f64 },
}

/// Applies an activation function to every element.
pub(crate) fn activation(op: Activation, x: &Literal) -> Result<Literal, Failure> {
    in_float32(&[x], &|x| wide_activation(op, x[0]))
}

/// Computes [`activation`] on types other than 16-bit floats.
fn wide_activation(op: Activation, x: &Literal) -> Result<Literal, Failure> {
    fn each<T: FloatNumber>(x: &Literal, f: impl Fn(T::Calc) -> T::Calc) -> Result<Literal, Failure> {
        map(x, |e: T| T::narrow(f(e.widen())))
    }
    dispatch!(wide float x.dtype(), T => {
        let constant = <T as Number>::Calc::from_f64;
        match op {
            Activation::LeakyRelu { alpha } => {
                let alpha = constant(alpha);
                each::<T>(x, |e| scaled_below_zero(e, alpha))
            }
            Activation::ThresholdedRelu { alpha } => {
                let alpha = constant(alpha);
                each::<T>(x, |e| if e > alpha { e } else { Calc::ZERO })
            }
            Activation::Elu { alpha } => {
                let alpha = constant(alpha);
                each::<T>(x, |e| elu(e, alpha))
            }
            Activation::Celu { alpha } => {
                let alpha = constant(alpha);
                each::<T>(x, |e| celu(e, alpha))
            }
            Activation::Selu { alpha, gamma } => {
                let (alpha, gamma) = (constant(alpha), constant(gamma));
                each::<T>(x, |e| gamma.mul(elu(e, alpha)))
            }
            Activation::Gelu => each::<T>(x, gelu),
            Activation::GeluTanh => each::<T>(x, gelu_tanh),
            Activation::Silu { alpha } => {
                let alpha = constant(alpha);
                each::<T>(x, |e| silu(e, alpha))
            }
            Activation::HardSigmoid { alpha, beta } => {
                let (alpha, beta) = (constant(alpha), constant(beta));
                each::<T>(x, |e| hard_sigmoid(e, alpha, beta))
            }
            Activation::HardSwish => {
                let (alpha, beta) = (constant(1.0 / 6.0), constant(0.5));
                each::<T>(x, |e| e.mul(hard_sigmoid(e, alpha, beta)))
            }
            Activation::Mish => each::<T>(x, |e| e.mul(Real::tanh(softplus(e)))),
            Activation::Softplus => each::<T>(x, softplus),
            Activation::Softsign => each::<T>(x, softsign),
            Activation::Shrink { lambd, bias } => {
                let (lambd, bias) = (constant(lambd), constant(bias));
                each::<T>(x, |e| shrink(e, lambd, bias))
            }
        }
    })
}

/// Returns `x` where it is not negative and `slope * x` elsewhere. `slope` broadcasts to the shape
/// of `x`.
pub(crate) fn prelu(x: &Literal, slope: &Literal) -> Result<Literal, Failure> {
    if broadcast_shapes(x.shape(), slope.shape())?.as_slice() != x.shape() {
        let (x, slope) = (shape_text(x.shape()), shape_text(slope.shape()));
        return Err(Failure::Mismatch(format!("shape {slope} does not broadcast to {x}")));
    }
    dispatch!(number same_dtype(&[x, slope])?, T => {
        zip(x, slope, |e: T, s: T| T::narrow(scaled_below_zero(e.widen(), s.widen())))
    })
}

/// Returns `silu(a) * b`. Both operands have the same shape.
pub(crate) fn swiglu(a: &Literal, b: &Literal, alpha: f64) -> Result<Literal, Failure> {
    if a.shape() != b.shape() {
        let (a, b) = (shape_text(a.shape()), shape_text(b.shape()));
        return Err(Failure::Mismatch(format!("shapes {a} and {b} differ")));
    }
    dispatch!(float same_dtype(&[a, b])?, T => {
        let alpha = Calc::from_f64(alpha);
        zip(a, b, |x: T, y: T| T::narrow(silu(x.widen(), alpha).mul(y.widen())))
    })
}

// These functions are generic so that a method call resolves to a trait. The methods of the
// standard library differ between machines.

fn scaled_below_zero<C: Calc>(x: C, factor: C) -> C {
    if x < C::ZERO { x.mul(factor) } else { x }
}

fn elu<C: Real>(x: C, alpha: C) -> C {
    if x < C::ZERO { alpha.mul(x.exp_m1()) } else { x }
}

fn celu<C: Real>(x: C, alpha: C) -> C {
    C::ZERO.larger(x).add(C::ZERO.smaller(alpha.mul(x.div(alpha).exp_m1())))
}

fn gelu<C: Real>(x: C) -> C {
    let (half, root) = (C::from_f64(0.5), C::from_f64(std::f64::consts::FRAC_1_SQRT_2));
    half.mul(x).mul(C::ONE.add(x.mul(root).error_function()))
}

fn gelu_tanh<C: Real>(x: C) -> C {
    let (half, cubic) = (C::from_f64(0.5), C::from_f64(0.044715));
    // sqrt(2 / pi)
    let root = C::from_f64(0.797_884_560_802_865_4);
    let inner = root.mul(x.add(cubic.mul(x.mul(x).mul(x))));
    half.mul(x).mul(C::ONE.add(inner.tanh()))
}

fn silu<C: Real>(x: C, alpha: C) -> C {
    x.mul(sigmoid(alpha.mul(x)))
}

fn hard_sigmoid<C: Real>(x: C, alpha: C, beta: C) -> C {
    C::ZERO.larger(C::ONE.smaller(alpha.mul(x).add(beta)))
}

/// Returns `ln(1 + exp(x))`, computed such that the exponential does not overflow.
fn softplus<C: Real>(x: C) -> C {
    x.larger(C::ZERO).add(x.abs().neg().exp().ln_1p())
}

fn softsign<C: Real>(x: C) -> C {
    x.div(C::ONE.add(x.abs()))
}

fn shrink<C: Real>(x: C, lambd: C, bias: C) -> C {
    if x < lambd.neg() {
        x.add(bias)
    } else if x > lambd {
        x.sub(bias)
    } else {
        C::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_have_their_known_values() {
        let x = Literal::from_elements(&[4], &[-2f64, 0.5, 3.0, f64::NAN]).unwrap();
        let close = |op, expected: [f64; 4]| {
            let got = activation(op, &x).unwrap().elements::<f64>().unwrap().into_owned();
            for (g, e) in got.iter().zip(expected) {
                assert!((g - e).abs() < 1e-12 || (g.is_nan() && e.is_nan()), "{op:?}: {g} {e}");
            }
        };
        let nan = f64::NAN;
        close(Activation::LeakyRelu { alpha: 0.1 }, [-0.2, 0.5, 3.0, nan]);
        close(Activation::ThresholdedRelu { alpha: 0.5 }, [0.0, 0.0, 3.0, 0.0]);
        close(Activation::Elu { alpha: 2.0 }, [-1.729_329_433_526_774_5, 0.5, 3.0, nan]);
        close(Activation::Celu { alpha: 2.0 }, [-1.264_241_117_657_115_4, 0.5, 3.0, nan]);
        close(Activation::Selu { alpha: 2.0, gamma: 0.5 }, [-0.864_664_716_763_387_3, 0.25, 1.5, nan]);
        close(Activation::Gelu, [-0.045_500_263_896_358_41, 0.345_731_230_637_006_55, 2.995_950_305_905_109, nan]);
        close(Activation::GeluTanh, [-0.045_402_305_912_334_73, 0.345_714_009_825_143_94, 2.996_362_607_918_228, nan]);
        close(
            Activation::Silu { alpha: 2.0 },
            [-0.035_972_419_924_182_95, 0.365_529_289_315_002_45, 2.992_582_130_530_096, nan],
        );
        close(Activation::HardSigmoid { alpha: 0.2, beta: 0.5 }, [0.1, 0.6, 1.0, nan]);
        close(Activation::HardSwish, [-1.0 / 3.0, 0.291_666_666_666_666_7, 3.0, nan]);
        close(Activation::Mish, [-0.252_501_482_695_708_9, 0.375_245_211_304_895_1, 2.986_535_004_967_957_5, nan]);
        close(Activation::Softplus, [0.126_928_011_042_972_5, 0.974_076_984_180_107_2, 3.048_587_351_573_742, nan]);
        close(Activation::Softsign, [-2.0 / 3.0, 1.0 / 3.0, 0.75, nan]);
        close(Activation::Shrink { lambd: 1.5, bias: 0.25 }, [-1.75, 0.0, 2.75, 0.0]);
    }

    #[test]
    fn extremes_stay_finite_where_the_function_does() {
        let x = Literal::from_elements(&[4], &[-1e30f32, -100.0, 100.0, 1e30]).unwrap();
        let values = |op| activation(op, &x).unwrap().elements::<f32>().unwrap().into_owned();
        assert_eq!(values(Activation::Softplus), [0.0, (-100f32).exp(), 100.0, 1e30]);
        assert_eq!(values(Activation::Mish)[2..], [100.0, 1e30]);
        assert_eq!(values(Activation::Softsign), [-1.0, -100.0 / 101.0, 100.0 / 101.0, 1.0]);
        assert_eq!(values(Activation::HardSwish), [-0.0, -0.0, 100.0, 1e30]);
    }

    #[test]
    fn a_slope_broadcasts_one_way() {
        let x = Literal::from_elements(&[2, 2], &[-1i32, 2, -3, 4]).unwrap();
        let slope = Literal::from_elements(&[2, 1], &[10, 100]).unwrap();
        assert_eq!(prelu(&x, &slope).unwrap(), Literal::from_elements(&[2, 2], &[-10, 2, -300, 4]).unwrap());
        let wide = Literal::from_elements(&[1, 2, 2], &[1i32, 2, 3, 4]).unwrap();
        assert!(prelu(&x, &wide).is_err());
    }
}
