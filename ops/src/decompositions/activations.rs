//! Activation functions. Constants have the element type of the operand, unless a comparison with
//! the rounded constant would select other elements.

use anfora_ir::{DType, Decomposer, DecompositionPart as Part, DecompositionRule};

use super::{Widened, scaled, whole};

pub(super) const RULES: &[(&str, DecompositionRule)] = &[
    ("nn.leaky_relu", leaky_relu),
    ("nn.prelu", prelu),
    ("nn.thresholded_relu", thresholded_relu),
    ("nn.elu", elu),
    ("nn.celu", celu),
    ("nn.selu", selu),
    ("nn.gelu", gelu),
    ("nn.silu", silu),
    ("nn.swiglu", swiglu),
    ("nn.hard_sigmoid", hard_sigmoid),
    ("nn.hard_swish", hard_swish),
    ("nn.mish", mish),
    ("nn.softplus", softplus),
    ("nn.softsign", softsign),
    ("nn.shrink", shrink),
    ("clip", clip),
];

/// Returns operand 0 and its element type.
fn operand(d: &mut Decomposer<'_>) -> Option<(Part, DType)> {
    Some((d.operand(0)?, d.dtype(0)?))
}

/// Returns `below` where `x` is negative, and `x` elsewhere.
fn unless_negative(d: &mut Decomposer<'_>, x: Part, below: Part, dtype: DType) -> Option<Part> {
    let zero = whole(d, 0, dtype)?;
    let is_negative = d.op("less", &[x, zero]);
    Some(d.op("where", &[is_negative, below, x]))
}

/// `alpha * x` below 0, else x
fn leaky_relu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let alpha = d.number(d.attrs().float("alpha")?, dtype)?;
    let below = d.op("multiply", &[x, alpha]);
    unless_negative(d, x, below, dtype)
}

/// `slope * x` below 0, else x
fn prelu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let slope = d.operand(1)?;
    let below = d.op("multiply", &[x, slope]);
    unless_negative(d, x, below, dtype)
}

/// x above alpha, else 0
fn thresholded_relu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let types = Widened::of(d, 0)?;
    let alpha = types.number(d, d.attrs().float("alpha")?)?;
    let wide = types.widen(d, x);
    let is_above = d.op("greater", &[wide, alpha]);
    let zero = d.number(0.0, dtype)?;
    Some(d.op("where", &[is_above, x, zero]))
}

/// `alpha * (exp(x) - 1)`
fn exponential(d: &mut Decomposer<'_>, x: Part, alpha: f64, dtype: DType) -> Option<Part> {
    let power = d.op("exp", &[x]);
    let one = d.number(1.0, dtype)?;
    let less_one = d.op("subtract", &[power, one]);
    scaled(d, less_one, alpha, dtype)
}

/// `alpha * (exp(x) - 1)` below 0, else x
fn elu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    // Above 0, the power is not used. It may be infinite, which has no derivative.
    let zero = d.number(0.0, dtype)?;
    let negative = d.op("minimum", &[x, zero]);
    let below = exponential(d, negative, d.attrs().float("alpha")?, dtype)?;
    unless_negative(d, x, below, dtype)
}

/// `max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)`
fn celu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let alpha = d.attrs().float("alpha")?;
    let (divisor, zero) = (d.number(alpha, dtype)?, d.number(0.0, dtype)?);
    let above = d.op("maximum", &[x, zero]);
    let quotient = if alpha == 1.0 { x } else { d.op("divide", &[x, divisor]) };
    let exponent = if alpha > 0.0 { d.op("minimum", &[quotient, zero]) } else { quotient };
    let below = exponential(d, exponent, alpha, dtype)?;
    let below = d.op("minimum", &[below, zero]);
    Some(d.op("add", &[above, below]))
}

/// `gamma * elu(x, alpha)`
fn selu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (_, dtype) = operand(d)?;
    let gamma = d.attrs().float("gamma")?;
    let elu = elu(d)?;
    scaled(d, elu, gamma, dtype)
}

/// `x / 2 * (erf(x * √½) + 1)`, or the approximation by `tanh`.
fn gelu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let gate = if d.attrs().str("approximate") == Some("tanh") {
        let square = d.op("multiply", &[x, x]);
        let cube = d.op("multiply", &[square, x]);
        let cube = scaled(d, cube, 0.044_715, dtype)?;
        let sum = d.op("add", &[x, cube]);
        let inner = scaled(d, sum, (2.0 / std::f64::consts::PI).sqrt(), dtype)?;
        d.op("tanh", &[inner])
    } else {
        let inner = scaled(d, x, std::f64::consts::FRAC_1_SQRT_2, dtype)?;
        d.op("erf", &[inner])
    };
    let one = d.number(1.0, dtype)?;
    let gate = d.op("add", &[gate, one]);
    let half = scaled(d, x, 0.5, dtype)?;
    Some(d.op("multiply", &[half, gate]))
}

/// `x * sigmoid(alpha * x)`
fn silu(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let inner = scaled(d, x, d.attrs().float("alpha")?, dtype)?;
    let gate = d.op("sigmoid", &[inner]);
    Some(d.op("multiply", &[x, gate]))
}

/// `silu(a) * b`
fn swiglu(d: &mut Decomposer<'_>) -> Option<Part> {
    let silu = silu(d)?;
    let b = d.operand(1)?;
    Some(d.op("multiply", &[silu, b]))
}

/// `max(0, min(1, alpha * x + beta))`
fn hard_gate(d: &mut Decomposer<'_>, x: Part, alpha: f64, beta: f64, dtype: DType) -> Option<Part> {
    let line = scaled(d, x, alpha, dtype)?;
    let (beta, one, zero) = (d.number(beta, dtype)?, d.number(1.0, dtype)?, d.number(0.0, dtype)?);
    let line = d.op("add", &[line, beta]);
    let line = d.op("minimum", &[line, one]);
    Some(d.op("maximum", &[line, zero]))
}

fn hard_sigmoid(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let (alpha, beta) = (d.attrs().float("alpha")?, d.attrs().float("beta")?);
    hard_gate(d, x, alpha, beta, dtype)
}

/// `x * max(0, min(1, x / 6 + 0.5))`
fn hard_swish(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let gate = hard_gate(d, x, 1.0 / 6.0, 0.5, dtype)?;
    Some(d.op("multiply", &[x, gate]))
}

/// `x * tanh(softplus(x))`
fn mish(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, _) = operand(d)?;
    let softplus = softplus(d)?;
    let gate = d.op("tanh", &[softplus]);
    Some(d.op("multiply", &[x, gate]))
}

/// `max(x, 0) + log(exp(-|x|) + 1)`, whose exponential does not overflow.
fn softplus(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let (zero, one) = (d.number(0.0, dtype)?, d.number(1.0, dtype)?);
    let above = d.op("maximum", &[x, zero]);
    let size = d.op("abs", &[x]);
    let size = d.op("negative", &[size]);
    let power = d.op("exp", &[size]);
    let sum = d.op("add", &[power, one]);
    let rest = d.op("log", &[sum]);
    Some(d.op("add", &[above, rest]))
}

/// `x / (1 + |x|)`
fn softsign(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let one = d.number(1.0, dtype)?;
    let size = d.op("abs", &[x]);
    let divisor = d.op("add", &[size, one]);
    Some(d.op("divide", &[x, divisor]))
}

/// `x + bias` below -lambd, `x - bias` above lambd, else 0
fn shrink(d: &mut Decomposer<'_>) -> Option<Part> {
    let (x, dtype) = operand(d)?;
    let types = Widened::of(d, 0)?;
    let (lambd, bias) = (d.attrs().float("lambd")?, d.attrs().float("bias")?);
    let wide = types.widen(d, x);
    let (low, high) = (types.number(d, -lambd)?, types.number(d, lambd)?);
    let is_below = d.op("less", &[wide, low]);
    let is_above = d.op("greater", &[wide, high]);
    let (bias, zero) = (d.number(bias, dtype)?, d.number(0.0, dtype)?);
    let (below, above) = (d.op("add", &[x, bias]), d.op("subtract", &[x, bias]));
    let rest = d.op("where", &[is_above, above, zero]);
    Some(d.op("where", &[is_below, below, rest]))
}

/// `min(max(x, low), high)`
fn clip(d: &mut Decomposer<'_>) -> Option<Part> {
    let mut x = d.operand(0)?;
    for (i, op) in [(1, "maximum"), (2, "minimum")] {
        if !d.is_given(i) {
            continue;
        }
        // A bound of extents 1 may have more axes than the operand.
        let is_scalar = d.rank(i) == Some(0);
        let bound = d.operand(i)?;
        let bound = if is_scalar {
            bound
        } else {
            let shape = d.ints(&[]);
            d.op("reshape", &[bound, shape])
        };
        x = d.op(op, &[x, bound]);
    }
    Some(x)
}
