//! Elementwise operators: arithmetic, comparison, logic, functions, conversion, choice.

use anfora_ir::FusionPattern::{Broadcast, ElemWise};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, Kernel, OpDef, Splat, TypeCall, TypeError, TypeId, TypeRule,
};

use crate::kernels::arithmetic::{self, Binary, Classify, Compare, Function, Unary};
use crate::row::row;
use crate::typing::{Elements, Given, broadcast, given, is_tensor, one, result, same_elements, tensor};

/// The rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    let mut rows = arithmetic_rows();
    rows.extend(comparison_rows());
    rows.extend(unary_rows());
    rows.extend(function_rows());
    rows.extend(other_rows());
    rows
}

fn binary(name: &'static str, doc: &'static str, infer: TypeRule, kernel: Kernel) -> OpDef {
    row(name, doc, Arity::exactly(2), infer, kernel).fusion(Broadcast).splat(Splat::OfAll)
}

fn unary(name: &'static str, doc: &'static str, infer: TypeRule, kernel: Kernel) -> OpDef {
    row(name, doc, Arity::exactly(1), infer, kernel).fusion(ElemWise).splat(Splat::OfAll)
}

fn arithmetic_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::binary(Binary::$op, c.operand(0)?, c.operand(1)?))
        };
    }
    vec![
        binary("add", "the sum; integers wrap", same_number, kernel!(Add)).commutative(),
        binary("subtract", "the difference; integers wrap", same_number, kernel!(Subtract)),
        binary("multiply", "the product; integers wrap", same_number, kernel!(Multiply)).commutative(),
        binary(
            "divide",
            "the quotient; of integers, truncated toward zero, and a zero divisor fails",
            same_number,
            kernel!(Divide),
        )
        .may_fail(),
        binary(
            "floor_divide",
            "the quotient rounded down; a zero divisor of integers fails",
            same_number,
            kernel!(FloorDivide),
        )
        .may_fail(),
        binary(
            "mod",
            "the remainder of truncated division, with the sign of the dividend; a zero divisor of integers fails",
            same_number,
            kernel!(Mod),
        )
        .may_fail(),
        binary(
            "floor_mod",
            "the remainder of floor division, with the sign of the divisor; a zero divisor of integers fails",
            same_number,
            kernel!(FloorMod),
        )
        .may_fail(),
        binary(
            "power",
            "the first to the power of the second; a negative power of an integer truncates toward zero, of zero fails",
            same_number,
            kernel!(Power),
        )
        .may_fail(),
        binary("maximum", "the larger; NaN if one is NaN, and -0 is below +0", same_any, kernel!(Maximum))
            .commutative(),
        binary("minimum", "the smaller; NaN if one is NaN, and -0 is below +0", same_any, kernel!(Minimum))
            .commutative(),
    ]
}

fn comparison_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::compare(Compare::$op, c.operand(0)?, c.operand(1)?))
        };
    }
    vec![
        binary("less", "whether the first is less; false with a NaN", compare_number, kernel!(Less)),
        binary(
            "less_equal",
            "whether the first is less or equal; false with a NaN",
            compare_number,
            kernel!(LessEqual),
        ),
        binary("greater", "whether the first is greater; false with a NaN", compare_number, kernel!(Greater)),
        binary(
            "greater_equal",
            "whether the first is greater or equal; false with a NaN",
            compare_number,
            kernel!(GreaterEqual),
        ),
        binary("equal", "whether both are equal; false with a NaN, and -0 equals +0", compare_any, kernel!(Equal))
            .commutative(),
        binary("not_equal", "whether they differ; true with a NaN", compare_any, kernel!(NotEqual)).commutative(),
        binary("logical_and", "whether both hold", logical, |c| {
            one(arithmetic::logical(c.operand(0)?, c.operand(1)?, |a, b| a & b))
        })
        .commutative(),
        binary("logical_or", "whether one holds", logical, |c| {
            one(arithmetic::logical(c.operand(0)?, c.operand(1)?, |a, b| a | b))
        })
        .commutative(),
        binary("logical_xor", "whether just one holds", logical, |c| {
            one(arithmetic::logical(c.operand(0)?, c.operand(1)?, |a, b| a ^ b))
        })
        .commutative(),
    ]
}

fn unary_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::unary(Unary::$op, c.operand(0)?))
        };
    }
    vec![
        unary("negative", "with the other sign; integers wrap", keep_number, kernel!(Negative)),
        unary("abs", "without its sign; integers wrap", keep_number, kernel!(Abs)),
        unary("sign", "-1, 0 or 1; NaN of NaN", keep_number, kernel!(Sign)),
        unary("square", "the product with itself; integers wrap", keep_number, kernel!(Square)),
        unary("floor", "rounded down; integers stay", keep_number, kernel!(Floor)),
        unary("ceil", "rounded up; integers stay", keep_number, kernel!(Ceil)),
        unary("round", "rounded to nearest, halves to even; integers stay", keep_number, kernel!(Round)),
        unary("trunc", "rounded toward zero; integers stay", keep_number, kernel!(Trunc)),
        unary("nn.relu", "the larger of it and zero", keep_number, kernel!(Relu)),
        unary("logical_not", "whether it does not hold", logical_not, |c| one(arithmetic::logical_not(c.operand(0)?))),
    ]
}

fn function_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::function(Function::$op, c.operand(0)?))
        };
    }
    macro_rules! classify {
        ($op:ident) => {
            |c| one(arithmetic::classify(Classify::$op, c.operand(0)?))
        };
    }
    vec![
        unary("exp", "e to its power", keep_float, kernel!(Exp)),
        unary("log", "the natural logarithm", keep_float, kernel!(Log)),
        unary("sqrt", "the square root", keep_float, kernel!(Sqrt)),
        unary("rsqrt", "one over the square root", keep_float, kernel!(Rsqrt)),
        unary("tanh", "the hyperbolic tangent", keep_float, kernel!(Tanh)),
        unary("sigmoid", "1 / (1 + exp(-x))", keep_float, kernel!(Sigmoid)),
        unary("erf", "the error function", keep_float, kernel!(Erf)),
        unary("sin", "the sine", keep_float, kernel!(Sin)),
        unary("cos", "the cosine", keep_float, kernel!(Cos)),
        unary("tan", "the tangent", keep_float, kernel!(Tan)),
        unary("asin", "the inverse sine", keep_float, kernel!(Asin)),
        unary("acos", "the inverse cosine", keep_float, kernel!(Acos)),
        unary("atan", "the inverse tangent", keep_float, kernel!(Atan)),
        unary("sinh", "the hyperbolic sine", keep_float, kernel!(Sinh)),
        unary("cosh", "the hyperbolic cosine", keep_float, kernel!(Cosh)),
        unary("asinh", "the inverse hyperbolic sine", keep_float, kernel!(Asinh)),
        unary("acosh", "the inverse hyperbolic cosine", keep_float, kernel!(Acosh)),
        unary("atanh", "the inverse hyperbolic tangent", keep_float, kernel!(Atanh)),
        unary("isnan", "whether it is NaN", test_float, classify!(Nan)),
        unary("isinf", "whether it is infinite", test_float, classify!(Infinite)),
        unary("isfinite", "whether it is neither infinite nor NaN", test_float, classify!(Finite)),
        unary("nn.leaky_relu", "it, or `alpha` times it where it is negative", keep_float, |c| {
            let alpha = c.attrs.given_float("alpha")?;
            one(arithmetic::function(Function::LeakyRelu { alpha }, c.operand(0)?))
        })
        .attrs(
            const { &[AttrDef::new("alpha", AttrKind::Float, AttrDefault::Float(0.01), "slope where it is negative")] },
        ),
        unary("nn.gelu", "x times the normal distribution function of x", gelu, |c| {
            let tanh = c.attrs.str("approximate") == Some("tanh");
            let function = if tanh { Function::GeluTanh } else { Function::Gelu };
            one(arithmetic::function(function, c.operand(0)?))
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
    ]
}

fn other_rows() -> Vec<OpDef> {
    vec![
        unary(
            "astype",
            "converted: floats to integers truncate and saturate, integers wrap, to bool is `!= 0`",
            astype,
            |c| one(arithmetic::cast(c.operand(0)?, given(c.attrs.dtype("dtype"), "dtype")?)),
        )
        .attrs(const { &[AttrDef::new("dtype", AttrKind::DType, AttrDefault::Required, "the element type wanted")] }),
        row("where", "the second where the first holds, else the third", Arity::exactly(3), choose, |c| {
            one(arithmetic::choose(c.operand(0)?, c.operand(1)?, c.operand(2)?))
        })
        .fusion(Broadcast)
        .splat(Splat::OfAll),
    ]
}

/// Two operands of one element type that broadcast; the result has it too.
fn same(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    let ty = call.operands[0].ty;
    if ty == call.operands[1].ty && is_tensor(call, 0, elements) && is_tensor(call, 1, elements) {
        return Ok(ty);
    }
    let (a, b) = (tensor(call, 0, elements)?, tensor(call, 1, elements)?);
    same_elements(&a, &b, 1)?;
    let shape = broadcast(call.cx, &[(0, &a), (1, &b)])?;
    Ok(result(call.cx, a.dtype, shape.as_deref()))
}

fn same_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Number)
}

fn same_any(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Any)
}

fn logical(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Bool)
}

/// Likewise, with a result of `bool`.
fn compare(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    let (a, b) = (tensor(call, 0, elements)?, tensor(call, 1, elements)?);
    same_elements(&a, &b, 1)?;
    let shape = broadcast(call.cx, &[(0, &a), (1, &b)])?;
    Ok(result(call.cx, DType::Bool, shape.as_deref()))
}

fn compare_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    compare(call, Elements::Number)
}

fn compare_any(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    compare(call, Elements::Any)
}

/// One operand, whose type is the result's.
fn keep(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    if !is_tensor(call, 0, elements) {
        tensor(call, 0, elements)?;
    }
    Ok(call.operands[0].ty)
}

fn keep_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Number)
}

fn keep_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Float)
}

fn logical_not(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Bool)
}

fn test_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    Ok(result(call.cx, DType::Bool, x.shape.as_deref()))
}

fn gelu(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    match call.attrs().str("approximate") {
        Some("none" | "tanh") => keep(call, Elements::Float),
        other => Err(TypeError::new(format!("attribute `approximate` is {:?}", other.unwrap_or_default()))
            .with_help("it is `none` or `tanh`")),
    }
}

fn astype(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let to = given(call.attrs().dtype("dtype"), "dtype")?;
    if to == x.dtype {
        return Ok(call.operands[0].ty);
    }
    Ok(result(call.cx, to, x.shape.as_deref()))
}

fn choose(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let condition = tensor(call, 0, Elements::Bool)?;
    let (x, y) = (tensor(call, 1, Elements::Any)?, tensor(call, 2, Elements::Any)?);
    if x.dtype != y.dtype {
        let (a, b) = (x.dtype, y.dtype);
        return Err(TypeError::operand(2, format!("operand 2 has elements of {b}, but operand 1 has elements of {a}")));
    }
    let shape = broadcast(call.cx, &[(0, &condition), (1, &x), (2, &y)])?;
    Ok(result(call.cx, x.dtype, shape.as_deref()))
}
