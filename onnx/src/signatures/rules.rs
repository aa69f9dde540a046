//! Extents that rows find with functions, in alphabetical order of their operators where these
//! share nothing.

use anfora_ir::{DType, DimId, TypeId};
use smallvec::SmallVec;

use super::node_types::NodeTypes;
use super::row::OutputShape;
use crate::convert::MAX_RANK;
use crate::sparse;
use crate::tensor::dtype_of;

/// Returns the type of the constant in the attribute of a node.
pub(super) fn constant(node: &mut NodeTypes<'_>) -> TypeId {
    let any = node.cx.types.any();
    let [attribute] = node.node.attribute.as_slice() else { return any };
    let numbers = |count: usize| i64::try_from(count).ok();
    let (dtype, dims) = match attribute.name() {
        "value_float" => (Some(DType::Float32), vec![]),
        "value_int" => (Some(DType::Int64), vec![]),
        "value_string" => (Some(DType::String), vec![]),
        "value_floats" => (Some(DType::Float32), vec![numbers(attribute.floats.len())]),
        "value_ints" => (Some(DType::Int64), vec![numbers(attribute.ints.len())]),
        "value_strings" => (Some(DType::String), vec![numbers(attribute.strings.len())]),
        "value" => match &attribute.t {
            Some(t) => (dtype_of(t.data_type.unwrap_or(0)), t.dims.iter().map(|&d| Some(d)).collect()),
            None => return any,
        },
        _ => match sparse::type_of_constant(node.node) {
            Some((number, dims)) => (dtype_of(number), dims.iter().map(|&d| Some(d)).collect()),
            None => return any,
        },
    };
    match dtype {
        Some(dtype) if dims.iter().all(|d| d.is_some_and(|d| d >= 0)) => {
            let dims: Vec<DimId> = dims.into_iter().flatten().map(|d| node.constant(d)).collect();
            node.cx.types.tensor(dtype, &dims)
        }
        _ => any,
    }
}

/// Returns the elements of a list of extents.
pub(super) fn extents_in(node: &mut NodeTypes<'_>, operand: usize) -> OutputShape {
    match node.list(operand) {
        Some(list) => Some(list.into_iter().map(|d| non_negative(node, d)).collect()),
        None => Some(node.unknown(length(node, operand)?)),
    }
}

/// Returns an extent; an unknown one for a negative constant.
fn non_negative(node: &NodeTypes<'_>, dim: DimId) -> DimId {
    match node.cx.types.dims.as_constant(dim) {
        Some(..0) => node.cx.types.dims.unknown(),
        _ => dim,
    }
}

/// Returns the number of elements of an operand that is a list.
fn length(node: &NodeTypes<'_>, operand: usize) -> Option<usize> {
    let [one] = *node.extents(operand)? else { return None };
    let length = usize::try_from(node.cx.types.dims.as_constant(one)?).ok()?;
    (length <= MAX_RANK).then_some(length)
}

/// `[N, *size, axes]`, where `size` is the second operand without its first two elements.
pub(super) fn affine_grid(node: &mut NodeTypes<'_>) -> OutputShape {
    let size = extents_in(node, 1)?;
    let (&batch, space) = (size.first()?, size.get(2..)?);
    let axes = node.constant(i64::try_from(space.len()).ok()?);
    Some([batch].into_iter().chain(space.iter().copied()).chain([axes]).collect())
}

/// The batch, unknown channels, and the extents of the image.
pub(super) fn image_of_columns(node: &mut NodeTypes<'_>) -> OutputShape {
    let image = extents_in(node, 1)?;
    let batch = node.extents(0).and_then(|s| s.first().copied());
    let unknown = node.cx.types.dims.unknown();
    Some([batch.unwrap_or(unknown), unknown].into_iter().chain(image).collect())
}

/// Batch and channels of the input, and the extents of the grid without its first and last.
pub(super) fn grid_sampled(node: &mut NodeTypes<'_>) -> OutputShape {
    let rank = node.rank(0).or_else(|| node.rank(1))?;
    let mut shape = node.unknown(rank);
    for (place, dim) in shape.iter_mut().zip(node.extents(0).into_iter().flatten().take(2)) {
        *place = dim;
    }
    if let Some(grid) = node.extents(1).filter(|g| g.len() == rank && rank > 2) {
        shape[2..].copy_from_slice(&grid[1..rank - 1]);
    }
    Some(shape)
}

/// Those of the operands, added up along `axis`. Until version 3, `axis` is 1 by default.
pub(super) fn concatenated(node: &mut NodeTypes<'_>) -> OutputShape {
    let axis = node.int("axis").unwrap_or(1);
    concatenated_along(node, 0, axis)
}

/// Those of the operands from the first one on, added up along an axis.
pub(super) fn concatenated_along(node: &mut NodeTypes<'_>, first: usize, axis: i64) -> OutputShape {
    let mut shape = node.extents(first)?;
    let axis = NodeTypes::axis(axis, shape.len())?;
    let unknown = node.cx.types.dims.unknown();
    for i in first + 1..node.operands.len() {
        let Some(other) = node.extents(i).filter(|s| s.len() == shape.len()) else {
            shape[axis] = unknown;
            continue;
        };
        for (at, (dim, &other)) in shape.iter_mut().zip(&other).enumerate() {
            if at == axis {
                *dim = node.cx.types.dims.add(*dim, other);
            } else if node.cx.types.dims.as_constant(*dim).is_none() && node.cx.types.dims.as_constant(other).is_some()
            {
                *dim = other;
            }
        }
    }
    Some(shape)
}

/// Those of the first operand and a list, broadcast. Elements that are not known may be anything
/// that broadcasts.
pub(super) fn expanded(node: &mut NodeTypes<'_>) -> OutputShape {
    let list = extents_in(node, 1)?;
    let operand = node.extents(0)?;
    let rank = list.len().max(operand.len());
    let mut shape = node.unknown(rank);
    for (at, place) in shape.iter_mut().enumerate() {
        let of = |list: &[DimId]| (at + list.len()).checked_sub(rank).map(|i| list[i]);
        let constant = |dim| node.cx.types.dims.as_constant(dim);
        match (of(&operand), of(&list)) {
            (Some(only), None) | (None, Some(only)) => *place = only,
            (Some(a), Some(b)) => match (constant(a), constant(b)) {
                (_, Some(1)) | (Some(2..), _) => *place = a,
                (Some(1), _) | (_, Some(2..)) => *place = b,
                _ => {}
            },
            (None, None) => {}
        }
    }
    Some(shape)
}

/// The product of the extents before an axis, and of those from it on.
pub(super) fn flattened(node: &mut NodeTypes<'_>) -> OutputShape {
    let axis = node.int("axis").unwrap_or(1);
    let Some(shape) = node.extents(0) else { return Some(node.unknown(2)) };
    let axis = if axis < 0 { axis.saturating_add(shape.len() as i64) } else { axis };
    let axis = usize::try_from(axis).unwrap_or(0).min(shape.len());
    let mut product = |dims: &[DimId]| {
        let one = node.cx.types.dims.constant(1);
        dims.iter().fold(one, |product, &d| node.cx.types.dims.mul(product, d))
    };
    Some(SmallVec::from_slice(&[product(&shape[..axis]), product(&shape[axis..])]))
}

/// Those of the first operand, with those of the indices in the place of an axis.
pub(super) fn gathered(node: &mut NodeTypes<'_>) -> OutputShape {
    let (mut shape, indices) = (node.extents(0)?, node.extents(1)?);
    let axis = NodeTypes::axis(node.int("axis").unwrap_or(0), shape.len())?;
    shape.remove(axis);
    shape.insert_many(axis, indices);
    Some(shape)
}

/// Those of the indices without the last, and those of the first operand that the last leaves.
pub(super) fn gathered_nd(node: &mut NodeTypes<'_>) -> OutputShape {
    let (shape, mut indices) = (node.extents(0)?, node.extents(1)?);
    let last = indices.pop()?;
    let depth = usize::try_from(node.cx.types.dims.as_constant(last)?).ok()?;
    let batch = usize::try_from(node.int("batch_dims").unwrap_or(0)).ok()?;
    indices.extend_from_slice(shape.get(batch.checked_add(depth)?..)?);
    Some(indices)
}

/// Those of the first operand, with another one in the place of an axis: the extents of the slices
/// are 1, and those of the whole are unknown.
fn with_extent(shape: OutputShape, axis: Option<usize>, dim: DimId) -> OutputShape {
    let mut shape = shape?;
    shape[axis?] = dim;
    Some(shape)
}

/// The rank of the operand and an unknown number of positions.
pub(super) fn positions(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.unknown(2);
    if let Some(rank @ 1..) = node.rank(0).and_then(|r| i64::try_from(r).ok()) {
        shape[0] = node.constant(rank);
    }
    Some(shape)
}

/// Those of the first operand, with another one inserted at an axis.
pub(super) fn one_hot(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    let axis = NodeTypes::axis(node.int("axis").unwrap_or(-1), shape.len() + 1)?;
    let depth = match node.list(1).as_deref() {
        Some(&[depth]) => non_negative(node, depth),
        _ => node.cx.types.dims.unknown(),
    };
    shape.insert(axis, depth);
    Some(shape)
}

/// Those that the second operand, or until version 4 an attribute, lists. -1 is unknown here.
pub(super) fn reshaped(node: &mut NodeTypes<'_>) -> OutputShape {
    let listed = node.ints("shape").map(<[i64]>::to_vec);
    let target: OutputShape = match listed {
        Some(list) => Some(list.into_iter().map(|n| node.cx.types.dims.constant(n)).collect()),
        None => match node.list(1) {
            Some(list) => Some(list.into_iter().collect()),
            None => return Some(node.unknown(length(node, 1)?)),
        },
    };
    let operand = node.extents(0);
    let unknown = node.cx.types.dims.unknown();
    let zero_is_zero = node.int("allowzero").unwrap_or(0) != 0;
    let of_operand = |at: usize| operand.as_ref().and_then(|s| s.get(at)).copied().unwrap_or(unknown);
    let extent = |(at, dim)| match node.cx.types.dims.as_constant(dim) {
        Some(0) if !zero_is_zero => of_operand(at),
        Some(..0) => unknown,
        Some(_) => dim,
        // A symbol may be 0.
        None => unknown,
    };
    Some(target?.into_iter().enumerate().map(extent).collect())
}

/// Those of the first operand, with an unknown one at the axis of the attribute; without the
/// attribute, a list of unknown length.
pub(super) fn selected_along_axis(node: &mut NodeTypes<'_>) -> OutputShape {
    let unknown = node.cx.types.dims.unknown();
    let Some(axis) = node.int("axis") else { return Some(node.unknown(1)) };
    let shape = node.extents(0)?;
    let axis = NodeTypes::axis(axis, shape.len());
    with_extent(Some(shape), axis, unknown)
}

/// The number of extents, if none are left out.
pub(super) fn shape_of(node: &mut NodeTypes<'_>) -> OutputShape {
    let is_whole = node.attribute("start").is_none() && node.attribute("end").is_none();
    match node.rank(0).and_then(|r| i64::try_from(r).ok()).filter(|_| is_whole) {
        Some(rank) => Some(SmallVec::from_slice(&[node.constant(rank)])),
        None => Some(node.unknown(1)),
    }
}

/// Those of the first operand, with a part of that of the axis.
pub(super) fn split_part(node: &mut NodeTypes<'_>) -> OutputShape {
    let shape = node.extents(0)?;
    let axis = NodeTypes::axis(node.int("axis").unwrap_or(0), shape.len());
    let parts = node.ints("split").map(<[i64]>::to_vec).or_else(|| node.numbers(1));
    let part = match parts.and_then(|parts| parts.get(node.output).copied()) {
        Some(part) => node.constant(part),
        None => node.cx.types.dims.unknown(),
    };
    with_extent(Some(shape), axis, part)
}

/// The axes that an attribute or the second operand lists, as positions. `None` if they are not
/// known; an empty list if none are given.
pub(super) fn listed_axes(node: &mut NodeTypes<'_>, rank: usize) -> Option<Vec<usize>> {
    let axes = match node.ints("axes") {
        Some(axes) => axes.to_vec(),
        None if node.attribute("axes").is_some() => return None,
        None if node.operand(1).is_some() => node.numbers(1)?,
        None => Vec::new(),
    };
    axes.into_iter().map(|axis| NodeTypes::axis(axis, rank)).collect()
}

/// Those of the first operand without the listed ones, or without those that are 1.
pub(super) fn squeezed(node: &mut NodeTypes<'_>) -> OutputShape {
    let shape = node.extents(0)?;
    let mut axes = listed_axes(node, shape.len())?;
    if axes.is_empty() && node.attribute("axes").is_none() && node.operand(1).is_none() {
        for (axis, &dim) in shape.iter().enumerate() {
            match node.cx.types.dims.as_constant(dim) {
                Some(1) => axes.push(axis),
                Some(_) => {}
                None => return None,
            }
        }
    }
    Some(shape.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, &dim)| dim).collect())
}

/// Those of the first operand, with ones inserted at the listed positions of the result.
pub(super) fn unsqueezed(node: &mut NodeTypes<'_>) -> OutputShape {
    let shape = node.extents(0)?;
    let count = match node.ints("axes") {
        Some(axes) => axes.len(),
        None => node.numbers(1)?.len(),
    };
    let rank = shape.len() + count;
    let axes = listed_axes(node, rank)?;
    let one = node.constant(1);
    let mut rest = shape.into_iter();
    (0..rank).map(|axis| if axes.contains(&axis) { Some(one) } else { rest.next() }).collect()
}

/// Those of the first operand, with the number of elements that are kept at the axis.
pub(super) fn top(node: &mut NodeTypes<'_>) -> OutputShape {
    let shape = node.extents(0)?;
    let axis = NodeTypes::axis(node.int("axis").unwrap_or(-1), shape.len());
    let kept = match (node.int("k"), node.list(1).as_deref()) {
        (Some(k), _) => node.constant(k),
        (None, Some(&[k])) => non_negative(node, k),
        _ => node.cx.types.dims.unknown(),
    };
    with_extent(Some(shape), axis, kept)
}

/// Those of the operand in another order.
pub(super) fn transposed(node: &mut NodeTypes<'_>) -> OutputShape {
    let shape = node.extents(0)?;
    match node.ints("perm") {
        Some(perm) if perm.len() == shape.len() => {
            let dims = perm.iter().map(|&axis| shape.get(usize::try_from(axis).ok()?).copied());
            dims.collect()
        }
        Some(_) => Some(node.unknown(shape.len())),
        None => Some(shape.into_iter().rev().collect()),
    }
}

/// Those of the first operand and an unknown one.
pub(super) fn with_last_extent(node: &mut NodeTypes<'_>) -> OutputShape {
    let mut shape = node.extents(0)?;
    shape.push(node.cx.types.dims.unknown());
    Some(shape)
}
