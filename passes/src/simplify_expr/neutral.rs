//! Operands that change nothing.

use anfora_visit::pattern::{RuleSet, capture, literal, op, op_in, rest};
use anfora_visit::rules;

use super::keeps_nans;

/// Returns the rules for operands that change nothing.
pub(super) fn neutral() -> RuleSet {
    let rules = rules![
        "add(%x, 0)" => "%x",
        // -0 + 0 is 0: of floats, only -0 is neutral.
        "add(%x, -0f)" => "%x", if keeps_nans,
        "add(%x, -0f16)" => "%x", if keeps_nans,
        "add(%x, -0bf16)" => "%x", if keeps_nans,
        "add(%x, -0f64)" => "%x", if keeps_nans,
        "subtract(%x, 0)" => "%x",
        // -0 - 0 is -0.
        "subtract(%x, 0f)" => "%x", if keeps_nans,
        "subtract(%x, 0f16)" => "%x", if keeps_nans,
        "subtract(%x, 0bf16)" => "%x", if keeps_nans,
        "subtract(%x, 0f64)" => "%x", if keeps_nans,
        "multiply(%x, 1)" => "%x", if keeps_nans,
        "divide(%x, 1)" => "%x", if keeps_nans,
        "power(%x, 1)" => "%x", if keeps_nans,
        "floor_divide(%x, 1)" => "%x", if |m| m.is_integer("x"),
        "bitwise_or(%x, 0)" => "%x",
        "bitwise_xor(%x, 0)" => "%x",
        "bitwise_and(%x, -1)" => "%x",
        "left_shift(%x, 0)" => "%x",
        "right_shift(%x, 0)" => "%x",
        "logical_and(%x, true)" => "%x",
        "logical_or(%x, false)" => "%x",
        "logical_xor(%x, false)" => "%x",
        "where(true, %x, %_)" => "%x", if |m| m.has_type_of_root("x"),
        "where(false, %_, %x)" => "%x", if |m| m.has_type_of_root("x"),
        "where(%x, true, false)" => "%x", if |m| m.has_type_of_root("x"),
        "add_n(%x)" => "%x", if keeps_nans,
        "mean_n(%x)" => "%x", if keeps_nans,
        "maximum_n(%x)" => "%x", if keeps_nans,
        "minimum_n(%x)" => "%x", if keeps_nans,
    ];
    let never_minus_zero = op_in(NEVER_MINUS_ZERO.iter().copied(), [rest()]).capture("x");
    rules.replace("add(%x, 0.0) => %x", op("add", [never_minus_zero, literal(0.0)]), capture("x"))
}

/// Operators that never return a float below 0, nor -0, which a sum with 0 would change, nor a NaN
/// that it would change.
const NEVER_MINUS_ZERO: &[&str] = &["abs", "exp", "nn.hard_sigmoid", "nn.relu", "nn.softmax", "sigmoid", "square"];
