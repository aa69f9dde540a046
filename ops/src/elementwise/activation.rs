//! Activation functions.

use anfora_ir::{AttrDef, AttrDefault, AttrKind, FusionPattern, OpDef, TypeCall, TypeError, TypeId};

use super::{binary, keep, keep_float, unary};
use crate::kernels::activation::{self, Activation};
use crate::typing::{Elements, RequiredAttrs, broadcast, differ, one, same_elements, tensor, unify};

const fn float(name: &'static str, default: f64, doc: &'static str) -> AttrDef {
    AttrDef::new(name, AttrKind::Float, AttrDefault::Float(default), doc)
}

/// Returns the rows of this family.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
pub(super) fn rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(activation::activation(Activation::$op, c.operand(0)?))
        };
        ($op:ident $($attr:ident)+) => {
            |c| {
                $(let $attr = c.attrs.required_float(stringify!($attr))?;)+
                one(activation::activation(Activation::$op { $($attr),+ }, c.operand(0)?))
            }
        };
    }
    macro_rules! attrs {
        ($($name:ident $default:literal $doc:literal;)+) => {
            const { &[$(float(stringify!($name), $default, $doc)),+] }
        };
    }
    vec![
        unary("nn.leaky_relu", "it, or `alpha` times it where it is negative", keep_float, kernel!(LeakyRelu alpha))
            .attrs(attrs! { alpha 0.01 "slope where it is negative"; }),
        binary("nn.prelu", "it, or the second times it where it is negative", prelu, |c| {
            one(activation::prelu(c.operand(0)?, c.operand(1)?))
        }),
        unary(
            "nn.thresholded_relu",
            "it where it is above `alpha`, else 0",
            keep_float,
            kernel!(ThresholdedRelu alpha),
        )
        .attrs(attrs! { alpha 1.0 "the threshold"; }),
        unary("nn.elu", "it, or `alpha` times `exp(x) - 1` where it is negative", keep_float, kernel!(Elu alpha))
            .attrs(attrs! { alpha 1.0 "minus the limit on the negative side"; }),
        unary("nn.celu", "max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)", keep_float, kernel!(Celu alpha))
            .attrs(attrs! { alpha 1.0 "minus the limit on the negative side"; }),
        unary("nn.selu", "`gamma` times the `nn.elu` of it with `alpha`", keep_float, kernel!(Selu alpha gamma)).attrs(
            attrs! {
                alpha 1.673_263_192_176_818_8 "of `nn.elu`";
                gamma 1.050_701_022_148_132_3 "the factor";
            },
        ),
        unary("nn.gelu", "x times the normal distribution function of x", gelu, |c| {
            let tanh = c.attrs.str("approximate") == Some("tanh");
            let function = if tanh { Activation::GeluTanh } else { Activation::Gelu };
            one(activation::activation(function, c.operand(0)?))
        })
        .attrs(
            const {
                &[AttrDef::new(
                    "approximate",
                    AttrKind::Str,
                    AttrDefault::Str("none"),
                    "`none`: by erf; `tanh`: by tanh",
                )]
            },
        ),
        unary("nn.silu", "x times the sigmoid of `alpha` times x", keep_float, kernel!(Silu alpha))
            .attrs(attrs! { alpha 1.0 "factor inside the sigmoid"; }),
        binary("nn.swiglu", "the `nn.silu` of the first times the second, of the same shape", swiglu, |c| {
            one(activation::swiglu(c.operand(0)?, c.operand(1)?, c.attrs.required_float("alpha")?))
        })
        .fusion(FusionPattern::ElemWise)
        .attrs(attrs! { alpha 1.0 "factor inside the sigmoid"; }),
        unary(
            "nn.hard_sigmoid",
            "`alpha` times x plus `beta`, between 0 and 1",
            keep_float,
            kernel!(HardSigmoid alpha beta),
        )
        .attrs(attrs! {
            alpha 0.2 "the slope";
            beta 0.5 "the value at 0";
        }),
        unary("nn.hard_swish", "x times x / 6 + 1 / 2, the latter between 0 and 1", keep_float, kernel!(HardSwish)),
        unary("nn.mish", "x times the tanh of the `nn.softplus` of x", keep_float, kernel!(Mish)),
        unary("nn.softplus", "log(1 + exp(x))", keep_float, kernel!(Softplus)),
        unary("nn.softsign", "x / (1 + abs(x))", keep_float, kernel!(Softsign)),
        unary(
            "nn.shrink",
            "x nearer to 0 by `bias` where it is farther than `lambd`, else 0",
            keep_float,
            kernel!(Shrink lambd bias),
        )
        .attrs(attrs! {
            bias 0.0 "what is taken off";
            lambd 0.5 "the threshold";
        }),
    ]
}

fn gelu(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    match call.attrs().str("approximate") {
        Some("none" | "tanh") => keep(call, Elements::Float),
        other => Err(TypeError::new(format!("attribute `approximate` is {:?}", other.unwrap_or_default()))
            .with_help("it is `none` or `tanh`")),
    }
}

/// Returns the type of `prelu`, whose second operand broadcasts to the shape of the first.
fn prelu(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, slope) = (tensor(call, 0, Elements::Number)?, tensor(call, 1, Elements::Number)?);
    same_elements(&x, &slope, 1)?;
    if let (Some(all), Some(some)) = (&x.shape, &slope.shape) {
        let dims = &call.cx.types.dims;
        let is_one = |d| dims.as_constant(d) == Some(1);
        let aligned = all.iter().rev().zip(some.iter().rev());
        let grows = aligned.clone().any(|(&to, &from)| is_one(to) && dims.as_constant(from).is_some_and(|c| c != 1));
        if some.len() > all.len() || grows {
            return Err(TypeError::operand(1, "operand 1 does not broadcast to the shape of operand 0"));
        }
        broadcast(call.cx, &[(0, &x), (1, &slope)])?;
    }
    Ok(call.ty(0))
}

/// Returns the type of `swiglu`, whose operands have the same shape.
fn swiglu(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (a, b) = (tensor(call, 0, Elements::Float)?, tensor(call, 1, Elements::Float)?);
    same_elements(&a, &b, 1)?;
    let (Some(left), Some(right)) = (&a.shape, &b.shape) else {
        return Ok(call.ty(usize::from(a.shape.is_none())));
    };
    if left.len() != right.len() {
        let (l, r) = (left.len(), right.len());
        return Err(TypeError::operand(1, format!("operand 1 has rank {r}, but operand 0 has rank {l}")));
    }
    let mut dims = left.clone();
    for (axis, &d) in right.iter().enumerate() {
        dims[axis] = unify(call.cx, left[axis], d)
            .ok_or_else(|| differ(call.cx, 1, &format!("extent {axis}"), d, left[axis]))?;
    }
    Ok(call.cx.types.tensor(a.dtype, &dims))
}
