//! Operators that cut tensors and put them together.

use anfora_visit::pattern::{Match, Pattern, RuleSet, capture, op, rest};
use anfora_visit::rules;

use crate::match_facts::{counted_axes, rank, short_list};

/// Returns the rules for slices, parts, joints and margins.
pub(super) fn pieces() -> RuleSet {
    let rules = rules![
        "strided_slice(%x, strides=%s)" => "%x", if |m| m.has_type_of_root("x") && is_forward(m, "s"),
        "strided_slice(strided_slice(%x, axes=%a, begin=%b, end=%e, strides=none), axes=%c, begin=%d, end=%f, strides=none)"
            => "strided_slice(%x, axes=%g, begin=%h, end=%i)",
            if |m| cut_other_axes(m) && m.is_last_use(),
            let g = |m| joined(m, "a", "c"), let h = |m| joined(m, "b", "d"), let i = |m| joined(m, "e", "f"),
        "nn.pad(%x, %p)" => "%x", if adds_nothing,
        "nn.pad(%x, %p, %_)" => "%x", if adds_nothing,
        "nn.pad(%x, %p, %_, %_)" => "%x", if adds_nothing,
        "concat(%x)" => "%x",
        "split(%x).0" => "%x", if |m| m.has_type_of_root("x"),
        "split(%x, %_).0" => "%x", if |m| m.has_type_of_root("x"),
        "concat(split(%x, sections=%n, axis=%a).0, split(%x, sections=%n, axis=%a).1, axis=%a)" => "%x",
            if |m| m.has_type_of_root("x"),
        "concat(split(%x, %s, sections=%n, axis=%a).0, split(%x, %s, sections=%n, axis=%a).1, axis=%a)" => "%x",
            if |m| m.has_type_of_root("x"),
        "nn.dropout(%x).0" => "%x",
        "nn.dropout(%x, %_).0" => "%x",
    ];
    rules.replace("concat(concat(%a…), %b…) => concat(%a…, %b…)", nested(0), joined_lists(0)).replace(
        "concat(%x, concat(%a…), %b…) => concat(%x, %a…, %b…)",
        nested(1),
        joined_lists(1),
    )
}

/// The greatest number of operands of a `concat` that becomes part of another. Without it, a long
/// chain would be copied again and again.
const MOST_OPERANDS: usize = 64;

/// Returns the pattern of a `concat` whose operand number `before` is another along the same axis.
fn nested(before: usize) -> Pattern {
    let inner = op("concat", [rest().capture("a")]).attr_as("axis", "k").used_once();
    let operands = (0..before).map(|_| capture("x")).chain([inner, rest().capture("b")]);
    op("concat", operands)
        .attr_as("axis", "k")
        .guard(|m: &Match<'_>| m.captures().list(m.program().1, "a").len() <= MOST_OPERANDS)
}

/// Returns the one `concat` for [`nested`].
fn joined_lists(before: usize) -> Pattern {
    let lists = [rest().capture("a"), rest().capture("b")];
    op("concat", (0..before).map(|_| capture("x")).chain(lists)).attr_as("axis", "k")
}

/// Returns true if strides are all positive. A list that is left out is.
fn is_forward(m: &Match<'_>, name: &str) -> bool {
    m.attr(name).is_none() || m.ints(name).is_some_and(|strides| strides.iter().all(|&stride| stride > 0))
}

/// Returns true if two slices of `x`, along `a` and then along `c`, have no axis in common.
fn cut_other_axes(m: &Match<'_>) -> bool {
    let Some(rank) = rank(m, "x") else { return false };
    let axes = |name| counted_axes(&m.ints(name)?, rank);
    let (Some(first), Some(second)) = (axes("a"), axes("c")) else { return false };
    second.iter().all(|axis| !first.contains(axis))
}

/// Returns two captured lists as one.
fn joined(m: &Match<'_>, first: &str, second: &str) -> Option<Vec<i64>> {
    Some([m.ints(first)?, m.ints(second)?].concat())
}

/// Returns true if the margins `p` are all 0.
fn adds_nothing(m: &Match<'_>) -> bool {
    let margins = m.literal("p").and_then(short_list);
    margins.is_some_and(|margins| margins.iter().all(|&margin| margin == 0))
}
