//! Operators on the bits of integers.

use anfora_ir::{OpDef, TypeCall, TypeError, TypeId};

use super::{binary, keep, same, unary};
use crate::kernels::bits::{self, Bitwise};
use crate::typing::{Elements, one};

pub(super) fn rows() -> Vec<OpDef> {
    macro_rules! kernel {
        ($op:ident) => {
            |c| one(bits::bitwise(Bitwise::$op, c.operand(0)?, c.operand(1)?))
        };
    }
    vec![
        binary("bitwise_and", "the bits that both have", same_integer, kernel!(And)).commutative(),
        binary("bitwise_or", "the bits that one has", same_integer, kernel!(Or)).commutative(),
        binary("bitwise_xor", "the bits that just one has", same_integer, kernel!(Xor)).commutative(),
        unary("bitwise_not", "the bits that it does not have", keep_integer, |c| one(bits::bitwise_not(c.operand(0)?))),
        binary(
            "left_shift",
            "the bits moved up by the second; 0 if that is negative or as many as there are bits",
            same_integer,
            kernel!(LeftShift),
        ),
        binary(
            "right_shift",
            "the bits moved down by the second, filled with the sign; only the fill if that is negative or as many as there are bits",
            same_integer,
            kernel!(RightShift),
        ),
    ]
}

fn same_integer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    same(call, Elements::Integer)
}

fn keep_integer(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    keep(call, Elements::Integer)
}
