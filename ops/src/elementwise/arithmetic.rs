//! Arithmetic on two or more operands, and bounds.

use anfora_ir::{Arity, KernelCall, KernelError, Literal, OpDef, TypeCall, TypeError, TypeId};

use super::{binary, broadcasting, same_any, same_float, same_number};
use crate::elements;
use crate::kernels::arithmetic::{self, Binary, Nary};
use crate::typing::{Elements, broadcast, expect_one, one, optional, result, same_elements, tensor};

pub(super) fn rows() -> Vec<OpDef> {
    let mut rows = binary_rows();
    rows.extend(nary_rows());
    rows.push(
        broadcasting(
            "clip",
            "not below the second, then not above the third; both are one number, and none is no bound",
            Arity::between(1, 3),
            clip,
            |c| one(arithmetic::clip(c.operand(0)?, c.optional(1), c.optional(2))),
        )
        .elements(elements::computed),
    );
    rows
}

fn binary_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::binary(Binary::$op, c.operand(0)?, c.operand(1)?))
        };
    }
    vec![
        binary("add", "the sum; integers wrap", same_number, kernel!(Add))
            .commutative()
            .elements(elements::sum),
        binary("subtract", "the difference; integers wrap", same_number, kernel!(Subtract)).elements(elements::difference),
        binary("multiply", "the product; integers wrap", same_number, kernel!(Multiply))
            .commutative()
            .elements(elements::product),
        binary(
            "divide",
            "the quotient; of integers, truncated toward zero, and a zero divisor fails",
            same_number,
            kernel!(Divide),
        )
        .elements(elements::quotient)
        .may_fail(),
        binary(
            "floor_divide",
            "the quotient rounded down; a zero divisor of integers fails",
            same_number,
            kernel!(FloorDivide),
        )
        .elements(elements::floor_quotient)
        .may_fail(),
        binary(
            "mod",
            "the remainder of truncated division, with the sign of the dividend; a zero divisor of integers fails",
            same_number,
            kernel!(Mod),
        )
        .elements(elements::remainder)
        .may_fail(),
        binary(
            "floor_mod",
            "the remainder of floor division, with the sign of the divisor; a zero divisor of integers fails",
            same_number,
            kernel!(FloorMod),
        )
        .elements(elements::floor_remainder)
        .may_fail(),
        binary(
            "power",
            "the first to the power of the second, which may be of another type; a negative power of an integer truncates toward zero, of zero fails",
            power,
            |c| one(arithmetic::power(c.operand(0)?, c.operand(1)?)),
        )
        .elements(elements::computed)
        .may_fail(),
        binary("maximum", "the larger; NaN if one is NaN, and -0 is below +0", same_any, kernel!(Maximum))
            .commutative()
            .elements(elements::maximum),
        binary("minimum", "the smaller; NaN if one is NaN, and -0 is below +0", same_any, kernel!(Minimum))
            .commutative()
            .elements(elements::minimum),
    ]
}

fn nary_rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(arithmetic::nary(Nary::$op, &all_operands(c)?))
        };
    }
    let several = Arity::at_least(1);
    vec![
        broadcasting("add_n", "the sum of all, rounded once; integers wrap", several, same_number, kernel!(Add))
            .elements(elements::sum),
        broadcasting("mean_n", "the mean of all, rounded once", several, same_float, kernel!(Mean)),
        broadcasting("maximum_n", "the largest; as with `maximum`", several, same_any, kernel!(Maximum))
            .elements(elements::maximum),
        broadcasting("minimum_n", "the smallest; as with `minimum`", several, same_any, kernel!(Minimum))
            .elements(elements::minimum),
    ]
}

fn all_operands<'a>(call: &'a KernelCall<'_>) -> Result<Vec<&'a Literal>, KernelError> {
    (0..call.operands.len()).map(|i| call.operand(i)).collect()
}

/// Returns the type of operands that broadcast, with the element type of the first.
fn power(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (base, exponent) = (tensor(call, 0, Elements::Number)?, tensor(call, 1, Elements::Number)?);
    let shape = broadcast(call.cx, &[(0, &base), (1, &exponent)])?;
    Ok(result(call.cx, base.dtype, shape.as_deref()))
}

fn clip(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Number)?;
    for i in 1..call.count() {
        let Some(bound) = optional(call, i, Elements::Number)? else { continue };
        same_elements(&x, &bound, i)?;
        expect_one(call.cx, &bound, i)?;
    }
    Ok(call.ty(0))
}
