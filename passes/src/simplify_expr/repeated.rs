//! Equal operands, and operators whose second application changes nothing.

use anfora_visit::pattern::RuleSet;
use anfora_visit::rules;

use super::keeps_nans;

/// Returns the rules for two equal operands.
pub(super) fn repeated() -> RuleSet {
    rules![
        "maximum(%x, %x)" => "%x", if keeps_nans,
        "minimum(%x, %x)" => "%x", if keeps_nans,
        "logical_and(%x, %x)" => "%x",
        "logical_or(%x, %x)" => "%x",
        "bitwise_and(%x, %x)" => "%x",
        "bitwise_or(%x, %x)" => "%x",
        "where(%_, %x, %x)" => "%x", if |m| m.has_type_of_root("x"),
        "negative(negative(%x))" => "%x", if keeps_nans,
        "logical_not(logical_not(%x))" => "%x",
        "bitwise_not(bitwise_not(%x))" => "%x",
        "abs(abs(%x))" => "abs(%x)",
        "sign(sign(%x))" => "sign(%x)",
        "floor(floor(%x))" => "floor(%x)",
        "ceil(ceil(%x))" => "ceil(%x)",
        "round(round(%x))" => "round(%x)",
        "trunc(trunc(%x))" => "trunc(%x)",
        "nn.relu(nn.relu(%x))" => "nn.relu(%x)",
    ]
}
