//! Comparison, logic, tests of floats, and selection by a condition.

use anfora_ir::{Arity, AttrDef, AttrDefault, AttrKind, DType, OpDef, TypeCall, TypeError, TypeId};

use super::{binary, broadcasting, keep, same, unary};
use crate::elements;
use crate::kernels::arithmetic::{self, Classify, Compare};
use crate::typing::{Elements, RequiredAttrs, broadcast, one, result, same_elements, tensor};

pub(super) fn rows() -> Vec<OpDef> {
    let mut rows = comparison_rows();
    rows.extend(logic_rows());
    rows.extend(test_rows());
    rows.push(
        broadcasting("where", "the second where the first holds, else the third", Arity::exactly(3), choose, |c| {
            one(arithmetic::choose(c.operand(0)?, c.operand(1)?, c.operand(2)?))
        })
        .elements(elements::chosen),
    );
    rows
}

fn comparison_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::compare(Compare::$op, c.operand(0)?, c.operand(1)?))
        };
    }
    vec![
        binary("less", "whether the first is less; false with a NaN", compare_number, kernel!(Less))
            .elements(elements::less),
        binary(
            "less_equal",
            "whether the first is less or equal; false with a NaN",
            compare_number,
            kernel!(LessEqual),
        )
        .elements(elements::less_equal),
        binary("greater", "whether the first is greater; false with a NaN", compare_number, kernel!(Greater))
            .elements(elements::greater),
        binary(
            "greater_equal",
            "whether the first is greater or equal; false with a NaN",
            compare_number,
            kernel!(GreaterEqual),
        )
        .elements(elements::greater_equal),
        binary("equal", "whether both are equal; false with a NaN, and -0 equals +0", compare_any, kernel!(Equal))
            .commutative()
            .elements(elements::equal),
        binary("not_equal", "whether they differ; true with a NaN", compare_any, kernel!(NotEqual))
            .commutative()
            .elements(elements::not_equal),
    ]
}

fn logic_rows() -> Vec<OpDef> {
    vec![
        binary("logical_and", "whether both hold", logical, |c| {
            one(arithmetic::logical(c.operand(0)?, c.operand(1)?, |a, b| a & b))
        })
        .commutative()
        .elements(elements::computed),
        binary("logical_or", "whether one holds", logical, |c| {
            one(arithmetic::logical(c.operand(0)?, c.operand(1)?, |a, b| a | b))
        })
        .commutative()
        .elements(elements::computed),
        binary("logical_xor", "whether just one holds", logical, |c| {
            one(arithmetic::logical(c.operand(0)?, c.operand(1)?, |a, b| a ^ b))
        })
        .commutative()
        .elements(elements::computed),
        unary("logical_not", "whether it does not hold", logical_not, |c| one(arithmetic::logical_not(c.operand(0)?)))
            .elements(elements::negation),
    ]
}

fn test_rows() -> Vec<OpDef> {
    const SIGNS: &[AttrDef] = &[
        AttrDef::new("detect_negative", AttrKind::Bool, AttrDefault::Bool(true), "whether negative infinity counts"),
        AttrDef::new("detect_positive", AttrKind::Bool, AttrDefault::Bool(true), "whether positive infinity counts"),
    ];
    vec![
        unary("isnan", "whether it is NaN", test_float, |c| one(arithmetic::classify(Classify::Nan, c.operand(0)?))),
        unary("isinf", "whether it is infinite, with a sign that counts", test_float, |c| {
            let negative = c.attrs.required_bool("detect_negative")?;
            let positive = c.attrs.required_bool("detect_positive")?;
            one(arithmetic::classify(Classify::Infinite { negative, positive }, c.operand(0)?))
        })
        .attrs(SIGNS),
        unary("isfinite", "whether it is neither infinite nor NaN", test_float, |c| {
            one(arithmetic::classify(Classify::Finite, c.operand(0)?))
        }),
    ]
}

/// Returns the type of a comparison: two operands of one element type that broadcast, with a result
/// of `bool`.
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

fn logical(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Bool)
}

fn logical_not(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Bool)
}

fn test_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    Ok(result(call.cx, DType::Bool, x.shape.as_deref()))
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
