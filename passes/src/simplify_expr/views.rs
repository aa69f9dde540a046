//! Operators that give elements another shape or order.

use anfora_visit::pattern::{Match, RuleSet};
use anfora_visit::rules;
use smallvec::SmallVec;

use crate::match_facts::{counted_axes, extents, is_extent, rank, root_extents, short_list};
use crate::simplify_shapes::reshape_numbers;

/// Returns the rules for operators that only move elements.
pub(super) fn views() -> RuleSet {
    transpositions().and(reshapes()).and(rules![
        "broadcast_to(%x, %_)" => "%x", if |m| m.has_type_of_root("x"),
        "broadcast_to(broadcast_to(%x, %_), %_)" => "broadcast_to(%x, %t)", let t = constant_extents,
        "tile(%x, %_)" => "%x", if |m| m.has_type_of_root("x"),
    ])
}

fn transpositions() -> RuleSet {
    rules![
        "permute_dims(permute_dims(%x, axes=none), axes=none)" => "%x",
        "permute_dims(permute_dims(%x, axes=%p), axes=%q)" => "%x", if |m| is_identity(after(m, "p", "q")),
        "permute_dims(permute_dims(%x, axes=%p), axes=%q)" => "permute_dims(%x, axes=%r)",
            let r = |m| after(m, "p", "q"),
        "permute_dims(%x, axes=%p)" => "%x", if |m| is_identity(m.ints("p")),
    ]
}

fn reshapes() -> RuleSet {
    rules![
        "reshape(%x, %_)" => "%x", if |m| m.has_type_of_root("x"),
        "nn.flatten(%x)" => "%x", if |m| m.has_type_of_root("x"),
        "squeeze(%x, axis=%_)" => "%x", if |m| m.has_type_of_root("x"),
        "expand_dims(%x, axis=%_)" => "%x", if |m| m.has_type_of_root("x"),
        "squeeze(expand_dims(%x, axis=%a), axis=%a)" => "%x", if |m| m.has_type_of_root("x"),
        "expand_dims(squeeze(%x, axis=%a), axis=%a)" => "%x", if |m| m.has_type_of_root("x"),
        "squeeze(squeeze(%x, axis=%a), axis=%b)" => "squeeze(%x, axis=%c)", let c = squeezed_axes,
        "expand_dims(expand_dims(%x, axis=%a), axis=%b)" => "expand_dims(%x, axis=%c)", let c = expanded_axes,
        "reshape(reshape(%x, %_), %s)" => "reshape(%x, %s)", if copies_no_extent,
        "reshape(expand_dims(%x, axis=%_), %s)" => "reshape(%x, %s)", if copies_no_extent,
        "reshape(squeeze(%x, axis=%_), %s)" => "reshape(%x, %s)", if copies_no_extent,
        "reshape(nn.flatten(%x), %s)" => "reshape(%x, %s)", if copies_no_extent,
        "reshape(reshape(%x, %_), %_)" => "reshape(%x, %t)", let t = target,
        "reshape(expand_dims(%x, axis=%_), %_)" => "reshape(%x, %t)", let t = target,
        "reshape(squeeze(%x, axis=%_), %_)" => "reshape(%x, %t)", let t = target,
        "expand_dims(reshape(%x, %_), axis=%_)" => "reshape(%x, %t)", let t = target,
        "squeeze(reshape(%x, %_), axis=%_)" => "reshape(%x, %t)", let t = target,
        "nn.flatten(reshape(%x, %_))" => "reshape(%x, %t)", let t = target,
        "squeeze(expand_dims(%x, axis=%_), axis=%_)" => "reshape(%x, %t)", let t = target,
        "expand_dims(squeeze(%x, axis=%_), axis=%_)" => "reshape(%x, %t)", let t = target,
        "reshape(permute_dims(%x, axes=%p), %_)" => "reshape(%x, %t)", if moves_only_units, let t = target,
        "permute_dims(reshape(%x, %_), axes=%p)" => "reshape(%x, %t)", if moves_only_units_of_result, let t = target,
    ]
}

/// Returns the axes of the composition of two transpositions.
fn after(m: &Match<'_>, first: &str, second: &str) -> Option<Vec<i64>> {
    let (first, second) = (m.ints(first)?, m.ints(second)?);
    let axes = counted_axes(&second, first.len())?;
    Some(axes.into_iter().map(|axis| first[axis]).collect())
}

/// Returns true if a transposition leaves all axes where they are.
fn is_identity(axes: Option<Vec<i64>>) -> bool {
    axes.is_some_and(|axes| {
        let rank = axes.len() as i64;
        (0..rank).zip(&axes).all(|(place, &axis)| axis == place || axis == place - rank)
    })
}

/// Returns true if the shape `s` of a reshape is known and has no extent 0, which could mean the
/// extent of the operand.
fn copies_no_extent(m: &Match<'_>) -> bool {
    let shape = m.literal("s").and_then(short_list);
    shape.is_some_and(|extents| !extents.contains(&0))
}

/// Returns the shape for a reshape of `x` to the shape of the replaced node: constants, 0 for an
/// extent of `x` at the same axis, and at most one -1.
fn target(m: &Match<'_>) -> Option<Vec<i64>> {
    let dims = &m.program().0.types.dims;
    let numbers = reshape_numbers(dims, extents(m, "x")?, root_extents(m)?, None)?;
    // The extent that takes the place of -1 may be another expression than that of the type.
    (!numbers.contains(&-1)).then(|| numbers.to_vec())
}

/// Returns the extents of the replaced node, if all are constants.
fn constant_extents(m: &Match<'_>) -> Option<Vec<i64>> {
    let dims = &m.program().0.types.dims;
    root_extents(m)?.iter().map(|&extent| dims.as_constant(extent)).collect()
}

/// Returns the axes of `x` that two squeezes remove, first `a` and then `b`.
fn squeezed_axes(m: &Match<'_>) -> Option<Vec<i64>> {
    let rank = rank(m, "x")?;
    let first = counted_axes(&m.ints("a")?, rank)?;
    let left: SmallVec<[usize; 6]> = (0..rank).filter(|axis| !first.contains(axis)).collect();
    let second = counted_axes(&m.ints("b")?, left.len())?;
    let mut all: Vec<i64> =
        first.iter().copied().chain(second.iter().map(|&axis| left[axis])).map(|a| a as i64).collect();
    all.sort_unstable();
    Some(all)
}

/// Returns the axes of the replaced node that two expansions add, first `a` and then `b`.
fn expanded_axes(m: &Match<'_>) -> Option<Vec<i64>> {
    let rank = root_extents(m)?.len();
    let second = counted_axes(&m.ints("b")?, rank)?;
    let left: SmallVec<[usize; 6]> = (0..rank).filter(|axis| !second.contains(axis)).collect();
    let first = counted_axes(&m.ints("a")?, left.len())?;
    let mut all: Vec<i64> =
        second.iter().copied().chain(first.iter().map(|&axis| left[axis])).map(|a| a as i64).collect();
    all.sort_unstable();
    Some(all)
}

/// Returns true if the transposition by `p` of `x` keeps the order of the axes whose extent is not
/// 1.
fn moves_only_units(m: &Match<'_>) -> bool {
    let Some(from) = extents(m, "x") else { return false };
    let Some(axes) = m.ints("p").and_then(|p| counted_axes(&p, from.len())) else { return false };
    axes.iter().filter(|&&axis| !is_extent(m, from[axis], 1)).is_sorted()
}

/// Returns true if the transposition by `p`, whose result is the replaced node, keeps the order of
/// the axes whose extent is not 1.
fn moves_only_units_of_result(m: &Match<'_>) -> bool {
    let Some(to) = root_extents(m) else { return false };
    let Some(axes) = m.ints("p").and_then(|p| counted_axes(&p, to.len())) else { return false };
    axes.iter().zip(to).filter(|&(_, &extent)| !is_extent(m, extent, 1)).map(|(axis, _)| axis).is_sorted()
}
