//! Operators that give elements other places without omitting or repeating any, and operators that
//! repeat them.

use anfora_ir::{AdjointRule, AdjointWriter, DecompositionPart as Part};

use crate::decompositions::counted;
use crate::decompositions::extents::Extent;
use crate::shape::MAX_PARTS;

use super::{reshaped_like, zeros_of};

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    ("reshape", reshaped_back),
    ("expand_dims", reshaped_back),
    ("squeeze", reshaped_back),
    ("nn.flatten", reshaped_back),
    ("permute_dims", permute_dims),
    ("broadcast_to", broadcast_to),
    ("concat", concat),
    ("split", split),
    ("nn.depth_to_space", |a| inverse(a, "nn.space_to_depth")),
    ("nn.space_to_depth", |a| inverse(a, "nn.depth_to_space")),
    // The first elements in reverse order, once more.
    ("reverse_sequence", same_on_adjoint),
    // The other triangle is 0.
    ("tril", same_on_adjoint),
    ("triu", same_on_adjoint),
];

fn reshaped_back(a: &mut AdjointWriter<'_>) -> Option<()> {
    let dy = a.adjoint()?;
    let dx = reshaped_like(a, 0, dy)?;
    a.give(0, dx);
    Some(())
}

fn permute_dims(a: &mut AdjointWriter<'_>) -> Option<()> {
    let dy = a.adjoint()?;
    let dx = match a.attrs().ints("axes") {
        None => a.op("permute_dims", &[dy]),
        Some(axes) => {
            let mut inverse = vec![0; axes.len()];
            for (to, &from) in axes.iter().enumerate() {
                *inverse.get_mut(counted(from, axes.len())?)? = to as i64;
            }
            a.op_with("permute_dims", &[dy], &[("axes", inverse.into())])
        }
    };
    a.give(0, dx);
    Some(())
}

/// The sum over the axes that were repeated. No other operand was broadcast.
fn broadcast_to(a: &mut AdjointWriter<'_>) -> Option<()> {
    let dy = a.adjoint()?;
    let from = a.result_tensor()?.shape.as_ref()?.to_vec();
    let to = a.tensor(0)?.shape.as_deref()?;
    let dx = super::summed_from(a, 0, dy, [to, &from], &[&from])?;
    a.give(0, dx);
    Some(())
}

/// The part of each operand. The extents are numbers, or computed.
fn concat(a: &mut AdjointWriter<'_>) -> Option<()> {
    let (dy, axis, count) = (a.adjoint()?, a.attrs().int("axis")?, a.operand_count());
    if count == 1 {
        a.give(0, dy);
        return Some(());
    }
    let at = counted(axis, a.rank(0)?)?;
    let extents: Option<Vec<i64>> = (0..count).map(|i| a.extent(i, at)).collect();
    let parts = match extents {
        Some(extents) => {
            let mut indices: Vec<i64> = Vec::with_capacity(count);
            let mut end = 0i64;
            for extent in extents {
                end = end.checked_add(extent)?;
                indices.push(end);
            }
            if count > MAX_PARTS {
                give_slices(a, dy, axis, &indices);
                return Some(());
            }
            indices.pop();
            a.op_with("split", &[dy], &[("indices", indices.into()), ("axis", axis.into())])
        }
        None if count > MAX_PARTS => return a.refuse("of so many operands, the extents must be known"),
        None => {
            let mut sizes = Vec::with_capacity(count);
            for i in 0..count {
                let extent = Extent::of(a, i, at)?;
                sizes.push(extent.list(a));
            }
            let sizes = a.op("concat", &sizes);
            a.op_with("split", &[dy, sizes], &[("axis", axis.into()), ("sections", (count as i64).into())])
        }
    };
    for i in 0..count {
        let part = a.field(parts, i as u32);
        a.give(i, part);
    }
    Some(())
}

/// Gives each operand the slice of an adjoint up to its end along an axis.
fn give_slices(a: &mut AdjointWriter<'_>, dy: Part, axis: i64, ends: &[i64]) {
    let mut begin = 0;
    for (i, &end) in ends.iter().enumerate() {
        let attrs = [("axes", [axis].into()), ("begin", [begin].into()), ("end", [end].into())];
        let slice = a.op_with("strided_slice", &[dy], &attrs);
        a.give(i, slice);
        begin = end;
    }
}

/// The adjoints of all parts, one after the other.
fn split(a: &mut AdjointWriter<'_>) -> Option<()> {
    let axis = a.attrs().int("axis")?;
    let mut parts = Vec::with_capacity(a.field_count());
    for i in 0..a.field_count() {
        let part = match a.field_adjoint(i) {
            Some(adjoint) => adjoint,
            None => zero_field(a, i)?,
        };
        parts.push(part);
    }
    let dx = match parts[..] {
        [] => return None,
        [part] => part,
        _ => a.op_with("concat", &parts, &[("axis", axis.into())]),
    };
    a.give(0, dx);
    Some(())
}

/// Returns zeros of the shape of a field of the result.
fn zero_field(a: &mut AdjointWriter<'_>, i: usize) -> Option<Part> {
    let types = &a.cx().types;
    let ty = types.as_tensor(*types.as_tuple(a.result_type())?.get(i)?)?;
    let result = a.result();
    zeros_of(a, ty, |a| a.field(result, i as u32))
}

/// The operator that is the inverse under the same attributes.
fn inverse(a: &mut AdjointWriter<'_>, op: &'static str) -> Option<()> {
    let (dy, attrs) = (a.adjoint()?, a.attrs());
    let (block_size, mode) = (attrs.int("block_size")?, attrs.str("mode")?);
    let dx = a.op_with(op, &[dy], &[("block_size", block_size.into()), ("mode", mode.into())]);
    a.give(0, dx);
    Some(())
}

/// The operator itself, of the adjoint.
fn same_on_adjoint(a: &mut AdjointWriter<'_>) -> Option<()> {
    let mut operands = vec![a.adjoint()?];
    operands.extend(a.operand(1));
    let dx = a.same_op(&operands)?;
    a.give(0, dx);
    Some(())
}
