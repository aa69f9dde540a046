//! Activations whose steps overflow where the activation is a line.

use anfora_ir::{AdjointRule, AdjointWriter};

use crate::decompositions::Widened;

pub(super) const RULES: &[(&str, AdjointRule)] = &[("nn.gelu", gelu)];

/// For `x * Φ(x)`: `Φ(x) + x * φ(x)`, where `2 * Φ(x)` is `1 + erf(x * √½)`, and `φ` is the density
/// of the normal distribution.
///
/// For `x / 2 * (1 + t)` with `t = tanh(c * (x + k * x³))`:
/// `(1 + t + x * (1 - t²) * c * (1 + 3 * k * x²)) / 2`.
///
/// The second term is 0 beyond 40 or 10, where all element types round the gate to 0 or 1. So `x`
/// is bounded there, and no power of it overflows.
fn gelu(a: &mut AdjointWriter<'_>) -> Option<()> {
    let is_tanh = a.attrs().str("approximate") == Some("tanh");
    let types = Widened::of(a, 0)?;
    let (dy, one, half) = (a.adjoint()?, types.number(a, 1.0)?, types.number(a, 0.5)?);
    let (x, dy) = (types.operand(a, 0)?, types.widen(a, dy));
    let bound = if is_tanh { 10.0 } else { 40.0 };
    let (low, high) = (types.number(a, -bound)?, types.number(a, bound)?);
    let x = a.op("maximum", &[x, low]);
    let x = a.op("minimum", &[x, high]);
    let square = a.op("square", &[x]);
    let (gate, slope) = if is_tanh {
        let (cubic, root) = (0.044_715, (2.0 / std::f64::consts::PI).sqrt());
        let (k, c, thrice) = (types.number(a, cubic)?, types.number(a, root)?, types.number(a, 3.0 * cubic)?);
        let part = a.op("multiply", &[square, k]);
        let part = a.op("add", &[part, one]);
        let line = a.op("multiply", &[x, c]);
        let inner = a.op("multiply", &[line, part]);
        let gate = a.op("tanh", &[inner]);
        let gate_square = a.op("square", &[gate]);
        let rest = a.op("subtract", &[one, gate_square]);
        let part = a.op("multiply", &[square, thrice]);
        let part = a.op("add", &[part, one]);
        let part = a.op("multiply", &[line, part]);
        (gate, a.op("multiply", &[rest, part]))
    } else {
        let root = types.number(a, std::f64::consts::FRAC_1_SQRT_2)?;
        let (minus_half, double) = (types.number(a, -0.5)?, types.number(a, (2.0 / std::f64::consts::PI).sqrt())?);
        let inner = a.op("multiply", &[x, root]);
        let gate = a.op("erf", &[inner]);
        let exponent = a.op("multiply", &[square, minus_half]);
        let density = a.op("exp", &[exponent]);
        let density = a.op("multiply", &[density, double]);
        (gate, a.op("multiply", &[x, density]))
    };
    let sum = a.op("add", &[gate, one]);
    let sum = a.op("add", &[sum, slope]);
    let derivative = a.op("multiply", &[sum, half]);
    let dx = a.op("multiply", &[dy, derivative]);
    let dx = types.narrow(a, dx);
    a.give(0, dx);
    Some(())
}
