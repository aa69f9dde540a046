//! Signs and negations that cancel out.

use anfora_visit::pattern::RuleSet;
use anfora_visit::rules;

/// Returns the rules for signs and negations that cancel out.
pub(super) fn signs() -> RuleSet {
    rules![
        "subtract(%x, negative(%y))" => "add(%x, %y)",
        "add(%x, negative(%y))" => "subtract(%x, %y)",
        "multiply(negative(%x), negative(%y))" => "multiply(%x, %y)",
        // Of unsigned integers, `negative` wraps and `abs` does nothing.
        "abs(negative(%x))" => "abs(%x)", if |m| !m.is_unsigned("x"),
        "square(negative(%x))" => "square(%x)",
        "square(abs(%x))" => "square(%x)",
        "negative(subtract(%x, %y))" => "subtract(%y, %x)", if |m| m.is_integer("x"),
        "logical_not(equal(%x, %y))" => "not_equal(%x, %y)",
        "logical_not(not_equal(%x, %y))" => "equal(%x, %y)",
        // A comparison with a NaN is false, and so is its opposite.
        "logical_not(less(%x, %y))" => "greater_equal(%x, %y)", if |m| m.is_integer("x"),
        "logical_not(less_equal(%x, %y))" => "greater(%x, %y)", if |m| m.is_integer("x"),
        "logical_not(greater(%x, %y))" => "less_equal(%x, %y)", if |m| m.is_integer("x"),
        "logical_not(greater_equal(%x, %y))" => "less(%x, %y)", if |m| m.is_integer("x"),
        "where(logical_not(%c), %x, %y)" => "where(%c, %y, %x)",
    ]
}
