//! Casts that change nothing, and casts of casts.

use anfora_ir::{Attr, DType};
use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;

use super::keeps_nans;
use crate::match_facts::tensor;

/// Returns the rules for casts.
pub(super) fn casts() -> RuleSet {
    rules![
        "astype(%x, dtype=%_)" => "%x", if |m| m.has_type_of_root("x"),
        "astype(astype(%x, dtype=%d), dtype=%t)" => "astype(%x, dtype=%t)", if first_keeps_numbers,
        "bitcast(%x, dtype=%_)" => "%x", if |m| m.has_type_of_root("x"),
        "bitcast(bitcast(%x), dtype=%t)" => "bitcast(%x, dtype=%t)",
    ]
}

/// Returns true if the first of two casts loses nothing, so that the second may be applied to `x`:
/// every number of the type of `x` is one of the type `d`. A cast makes every NaN the canonical
/// one. From float to integer a cast saturates, and between integers it wraps.
fn first_keeps_numbers(m: &Match<'_>) -> bool {
    let dtype = |name| match m.attr(name) {
        Some(Attr::DType(dtype)) => Some(*dtype),
        _ => None,
    };
    let (Some(from), Some(middle), Some(to)) = (tensor(m, "x").map(|t| t.dtype), dtype("d"), dtype("t")) else {
        return false;
    };
    let saturates = middle.is_float() && from.is_integer() && to.is_integer() && !embeds(from, to);
    embeds(from, middle) && !saturates && (from != to || keeps_nans(m))
}

/// Returns true if every number of one type is a number of another.
fn embeds(from: DType, to: DType) -> bool {
    if from == to || from == DType::Bool {
        return to.has_kernels();
    }
    // The bits of an integer, or of the fraction of a float, and those of its exponent.
    let size = |dtype| match dtype {
        DType::Float16 => Some((11, 5)),
        DType::BFloat16 => Some((8, 8)),
        DType::Float32 => Some((24, 8)),
        DType::Float64 => Some((53, 11)),
        DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64 => Some((dtype.bits() - 1, 0)),
        DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => Some((dtype.bits(), 0)),
        _ => None,
    };
    let (Some((digits, exponent)), Some((room, range))) = (size(from), size(to)) else { return false };
    let keeps_sign = !to.is_unsigned() || from.is_unsigned();
    digits <= room && exponent <= range && keeps_sign && (to.is_float() || from.is_integer())
}
