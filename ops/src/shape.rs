//! Operators that change the shape of a tensor or select some of its elements.

use anfora_ir::FusionPattern::{Broadcast, Injective};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, AttrReader, Context, DType, Dim, DimId, DimOp, Literal, OpDef, Shape, Splat,
    TensorType, TypeCall, TypeError, TypeId,
};
use smallvec::SmallVec;

use crate::creation::{SHAPE, given_dims, shape_dims};
use crate::elements;
use crate::kernels::Failure;
use crate::kernels::creation::{self, extents, shape_operand};
use crate::kernels::gather;
use crate::kernels::index::{self, Range};
use crate::kernels::positions::MAX_RANK;
use crate::kernels::strides::{broadcast_shapes, resolve_axes, resolve_axis};
use crate::reshape;
use crate::row::row;
use crate::steps;
use crate::typing::{
    Elements, Extents, RequiredAttrs, as_extent, axis_of, broadcast, differ, expect_rank, extent, given, one, optional,
    result, same_elements, tensor, unify,
};

/// The most parts that `split` returns.
pub(crate) const MAX_PARTS: usize = 1 << 16;

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    let mut rows = shape_rows();
    rows.extend(selection_rows());
    rows
}

/// Returns the rows that change or read only the shape.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
fn shape_rows() -> Vec<OpDef> {
    vec![
        row("reshape", "the same elements under another shape", Arity::exactly(2), reshape::infer, |c| {
            let x = c.operand(0)?;
            let target = shape_operand(c.operand(1)?)?;
            let shape = index::reshape_target(x.shape(), &target, c.attrs.required_bool("allowzero")?)?;
            one(index::reshape(x, &shape))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[AttrDef::flag("allowzero", "whether 0 in the shape is an extent, not the operand's at that place")]
            },
        )
        .fusion(Injective)
        .shape_operands(&[1])
        .elements(elements::kept)
        .relabels()
        .may_fail(),
        row("broadcast_to", "repeated along axes of extent 1 or none", Arity::exactly(2), broadcast_to, |c| {
            let x = c.operand(0)?;
            let shape = extents(&shape_operand(c.operand(1)?)?)?;
            one(if c.attrs.required_bool("bidirectional")? {
                index::broadcast_to(x, &broadcast_shapes(x.shape(), &shape)?)
            } else {
                index::broadcast_to(x, &shape)
            })
        })
        .attrs(
            const {
                &[AttrDef::flag(
                    "bidirectional",
                    "whether an extent of 1 or none in the shape leaves that of the operand",
                )]
            },
        )
        .splat(Splat::OfFirst)
        .fusion(Broadcast)
        .shape_operands(&[1])
        .elements(elements::moved)
        .may_fail(),
        row("permute_dims", "with the axes in another order", Arity::exactly(1), permute_dims, |c| {
            one(index::permute_dims(c.operand(0)?, c.attrs.ints("axes").as_deref()))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[AttrDef::optional("axes", AttrKind::Ints, "the axes in their new order; reversed if left out")]
            },
        )
        .fusion(Injective)
        .elements(elements::moved),
        row("expand_dims", "with extents of 1 put in", Arity::between(1, 2), expand_dims, |c| {
            let axes = listed_axes(c.attrs, c.optional(1))?.ok_or_else(no_axes)?;
            one(index::expand_dims(c.operand(0)?, &axes))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[AttrDef::optional("axis", AttrKind::Ints, "where they are in the result, if no operand says it")]
            },
        )
        .shape_operands(&[1])
        .elements(elements::kept)
        .relabels()
        .fusion(Injective),
        row("squeeze", "without extents of 1", Arity::between(1, 2), squeeze, |c| {
            one(index::squeeze(c.operand(0)?, listed_axes(c.attrs, c.optional(1))?.as_deref()))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[AttrDef::optional("axis", AttrKind::Ints, "which ones; all if left out and no operand says it")]
            },
        )
        .shape_operands(&[1])
        .elements(elements::kept)
        .fusion(Injective)
        .relabels()
        .may_fail(),
        row("shape_of", "the extents as a tensor", Arity::exactly(1), shape_of, |c| {
            let x = c.operand(0)?;
            one(creation::shape_of(&x.shape()[chosen_axes(&c.attrs, x.rank())]))
        })
        .steps(steps::one)
        .attrs(
            const {
                &[
                    AttrDef::new(
                        "start",
                        AttrKind::Int,
                        AttrDefault::Int(0),
                        "the first axis; a negative one counts from the end, one out of range is clamped",
                    ),
                    AttrDef::optional("end", AttrKind::Int, "before which axis to end, likewise; the rank if left out"),
                ]
            },
        )
        .elements(extents_of)
        .known_by_type(extents_known),
        row("shape_to_tensor", "extents that an attribute lists, as a tensor", Arity::exactly(0), shape_to_tensor, |c| {
            one(creation::integers(&given_dims(&c.attrs)?))
        })
        .attrs(const { &[SHAPE] })
        .elements(|call, _| Some(vec![shape_dims(&call.attrs())?.to_vec()]))
        .may_fail(),
        row("size", "the number of elements", Arity::exactly(1), size, |c| one(creation::size(c.operand(0)?.shape())))
            .steps(steps::one)
            .elements(size_of)
            .known_by_type(size_known),
    ]
}

/// Returns the rows that join, cut and select elements.
fn selection_rows() -> Vec<OpDef> {
    vec![
        row("concat", "the operands one after the other along an axis", Arity::at_least(1), concat, |c| {
            let operands: SmallVec<[_; 8]> = (0..c.operands.len()).map(|i| c.operand(i)).collect::<Result<_, _>>()?;
            one(index::concat(&operands, c.attrs.required_int("axis")?))
        })
        .splat(Splat::OfEqual)
        .attrs(const { &[AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(0), "the axis along which they lie")] })
        .fusion(Injective)
        .elements(elements::joined),
        row("split", "the parts of an axis, as a tuple", Arity::between(1, 2), split, |c| {
            let x = c.operand(0)?;
            let axis = resolve_axis(c.attrs.required_int("axis")?, x.rank())?;
            let extent = x.shape()[axis];
            let cuts = match (c.attrs.int("sections"), c.attrs.ints("indices"), c.optional(1)) {
                (sections, None, Some(sizes)) => sizes_of(&shape_operand(sizes)?, sections, Some(extent))?,
                (Some(sections), None, None) => sections_of(extent, sections)?,
                (None, Some(indices), None) => indices_of(&indices)?,
                _ => return Err(one_of_two().into()),
            };
            Ok(index::split(x, &cuts, axis)?)
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[
                    AttrDef::optional(
                        "sections",
                        AttrKind::Int,
                        "how many parts; of equal extent unless an operand says them, and the last may be smaller",
                    ),
                    AttrDef::optional("indices", AttrKind::Ints, "where to cut, ascending"),
                    AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(0), "the axis that is cut"),
                ]
            },
        )
        .shape_operands(&[1])
        .elements(elements::moved)
        .fusion(Injective),
        row("strided_slice", "a range of each axis", Arity::exactly(1), strided_slice, |c| {
            let x = c.operand(0)?;
            one(index::slice(x, &Slice::read(&c.attrs)?.ranges(x.shape())?))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[
                    AttrDef::optional("axes", AttrKind::Ints, "the axes that are cut; the first ones if left out"),
                    AttrDef::required(
                        "begin",
                        AttrKind::Ints,
                        "the first index of each; a negative one counts from the end, one out of range is clamped",
                    ),
                    AttrDef::required("end", AttrKind::Ints, "before which index each ends"),
                    AttrDef::optional("strides", AttrKind::Ints, "the step of each, not 0; 1 if left out"),
                ]
            },
        )
        .fusion(Injective)
        .elements(elements::moved),
        row("take", "the slices of an axis that the indices name", Arity::exactly(2), take, |c| {
            one(gather::take(c.operand(0)?, c.operand(1)?, c.attrs.required_int("axis")?))
        })
        .splat(Splat::OfFirst)
        .attrs(
            const { &[AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(0), "the axis that the indices are of")] },
        )
        .fusion(Injective)
        .elements(elements::moved)
        .may_fail(),
    ]
}

/// Returns the extents that operand `i` lists, with `?` for extents that are not known; `None` if
/// their number is not known.
pub(crate) fn listed_extents(call: &mut TypeCall<'_>, i: usize) -> Result<Option<Extents>, TypeError> {
    let shape = tensor(call, i, Elements::Integer)?;
    if shape.dtype != DType::Int64 {
        let found = shape.dtype;
        return Err(TypeError::operand(
            i,
            format!("operand {i} has elements of {found}, but a shape is a tensor of int64"),
        ));
    }
    expect_rank(&shape, i, 1)?;
    if let Some(literal) = call.literal(i) {
        let numbers = shape_operand(literal)?;
        return Ok(Some(numbers.into_iter().map(|n| call.cx.types.dims.constant(n)).collect()));
    }
    if let Some(elements) = call.elements(i) {
        return Ok(Some(elements.into_iter().collect()));
    }
    let rank = shape.shape.and_then(|s| as_extent(call.cx, s[0])).filter(|&r| r <= MAX_RANK);
    let unknown = call.cx.types.dims.unknown();
    Ok(rank.map(|r| smallvec::smallvec![unknown; r]))
}

/// Returns the type of a tensor whose shape is operand `i`.
pub(crate) fn plain_shape(call: &mut TypeCall<'_>, i: usize, dtype: DType) -> Result<TypeId, TypeError> {
    let dims = listed_extents(call, i)?;
    let numbers = dims.iter().flatten().filter_map(|&d| call.cx.types.dims.as_constant(d));
    extents(&numbers.collect::<Vec<i64>>())?;
    Ok(result(call.cx, dtype, dims.as_deref()))
}

fn broadcast_to(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let ty = plain_shape(call, 1, x.dtype)?;
    if call.attrs().required_bool("bidirectional")? {
        let Some(to) = call.cx.types.as_tensor(ty).cloned() else { return Ok(ty) };
        let dims = broadcast(call.cx, &[(0, &x), (1, &to)])?;
        return Ok(result(call.cx, x.dtype, dims.as_deref()));
    }
    if let (Some(from), Some(to)) = (&x.shape, call.cx.types.as_tensor(ty).and_then(|t| t.shape.clone())) {
        if from.len() > to.len() {
            let message = format!("operand 0 has rank {}, more than the {} of the shape", from.len(), to.len());
            return Err(TypeError::operand(0, message));
        }
        for (&a, &b) in from.iter().rev().zip(to.iter().rev()) {
            let dims = &call.cx.types.dims;
            if let (Some(x), Some(y)) = (dims.as_constant(a), dims.as_constant(b))
                && x != 1
                && x != y
            {
                return Err(differ(call.cx, 0, "an extent", a, b));
            }
        }
    }
    Ok(ty)
}

fn permute_dims(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let axes = call.attrs().ints("axes");
    if let Some(axes) = &axes {
        expect_rank(&x, 0, axes.len())?;
        resolve_axes(axes, axes.len())?;
    }
    let unknown = call.cx.types.dims.unknown();
    let dims: Option<Extents> = match (&x.shape, &axes) {
        (Some(shape), None) => Some(shape.iter().rev().copied().collect()),
        (Some(shape), Some(axes)) => {
            Some(axes.iter().map(|&a| Ok(shape[resolve_axis(a, shape.len())?])).collect::<Result<_, Failure>>()?)
        }
        (None, Some(axes)) => Some(smallvec::smallvec![unknown; axes.len()]),
        (None, None) => None,
    };
    Ok(result(call.cx, x.dtype, dims.as_deref()))
}

fn no_axes() -> Failure {
    Failure::Mismatch("`expand_dims` needs axes, in an attribute or an operand".into())
}

/// Returns the axes that an attribute or an operand lists.
fn listed_axes(attrs: AttrReader<'_>, operand: Option<&Literal>) -> Result<Option<Vec<i64>>, Failure> {
    match (attrs.ints("axis"), operand) {
        (axes, None) => Ok(axes),
        (None, Some(operand)) => shape_operand(operand).map(Some),
        (Some(_), Some(_)) => Err(twice()),
    }
}

fn twice() -> Failure {
    Failure::Mismatch("the axes are an operand as well as an attribute".into())
}

/// The static knowledge of the axes in an attribute or an operand.
enum Axes {
    /// The axes are known; `None` if neither lists any.
    Known(Option<Vec<i64>>),
    /// Only the number of axes is known, or not even that.
    Count(Option<usize>),
}

fn axes_of(call: &mut TypeCall<'_>) -> Result<Axes, TypeError> {
    let Some(operand) = optional(call, 1, Elements::Integer)? else {
        return Ok(Axes::Known(call.attrs().ints("axis")));
    };
    if call.attrs().ints("axis").is_some() {
        return Err(twice().into());
    }
    expect_rank(&operand, 1, 1)?;
    let count = operand.shape.and_then(|s| as_extent(call.cx, s[0]));
    Ok(match (call.literal(1), count) {
        (Some(literal), _) => Axes::Known(Some(shape_operand(literal)?)),
        (None, Some(0)) => Axes::Known(Some(Vec::new())),
        (None, count) => Axes::Count(count),
    })
}

fn expand_dims(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let axes = match axes_of(call)? {
        Axes::Known(axes) => axes.ok_or_else(no_axes)?,
        Axes::Count(count) => {
            let rank = x.shape.as_ref().zip(count).and_then(|(s, c)| s.len().checked_add(c)).filter(|&r| r <= MAX_RANK);
            // If `x` has rank 0, all extents of the result are inserted.
            let dim = match x.shape.as_ref().is_some_and(|s| s.is_empty()) {
                true => call.cx.types.dims.constant(1),
                false => call.cx.types.dims.unknown(),
            };
            return Ok(result(call.cx, x.dtype, rank.map(|r| vec![dim; r]).as_deref()));
        }
    };
    let Some(shape) = &x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    let named = resolve_axes(&axes, shape.len() + axes.len())?;
    let one = call.cx.types.dims.constant(1);
    let mut old = shape.iter().copied();
    let dims: Extents = named.iter().map(|&new| if new { one } else { old.next().unwrap_or(one) }).collect();
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

fn squeeze(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let axes = axes_of(call)?;
    let Some(shape) = &x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    let axes = match axes {
        Axes::Known(axes) => axes,
        Axes::Count(None) => return Ok(call.cx.types.unranked(x.dtype)),
        Axes::Count(Some(count)) => {
            let Some(rank) = shape.len().checked_sub(count) else {
                let message = format!("operand 1 lists {count} axes, but there are {}", shape.len());
                return Err(TypeError::operand(1, message));
            };
            let unknown = vec![call.cx.types.dims.unknown(); rank];
            return Ok(result(call.cx, x.dtype, Some(&unknown)));
        }
    };
    let one = call.cx.types.dims.constant(1);
    let mut dims = Extents::new();
    match axes {
        None => {
            for &d in shape {
                match call.cx.types.dims.as_constant(d) {
                    Some(1) => {}
                    Some(_) => dims.push(d),
                    // The extent may or may not be 1.
                    None => return Ok(call.cx.types.unranked(x.dtype)),
                }
            }
        }
        Some(axes) => {
            let named = resolve_axes(&axes, shape.len())?;
            for (axis, (&d, out)) in shape.iter().zip(named).enumerate() {
                match call.cx.types.dims.as_constant(d) {
                    _ if !out => dims.push(d),
                    Some(1) | None => {}
                    Some(_) => return Err(differ(call.cx, 0, &format!("axis {axis}"), d, one)),
                }
            }
        }
    }
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

fn shape_of(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let count = x.shape.map(|s| chosen_axes(&call.attrs(), s.len()).len());
    let count = match count {
        Some(count) => extent(call.cx, count),
        None => call.cx.types.dims.unknown(),
    };
    Ok(result(call.cx, DType::Int64, Some(&[count])))
}

/// Returns the axes from attribute `start` to before `end`.
fn chosen_axes(attrs: &AttrReader<'_>, rank: usize) -> std::ops::Range<usize> {
    let place = |axis: i64| {
        let from_start = if axis < 0 { axis.saturating_add_unsigned(rank as u64) } else { axis };
        usize::try_from(from_start.max(0)).map_or(rank, |a| a.min(rank))
    };
    let start = place(attrs.int("start").unwrap_or(0));
    start..attrs.int("end").map_or(rank, place).max(start)
}

fn size(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    tensor(call, 0, Elements::Any)?;
    Ok(call.cx.types.scalar(DType::Int64))
}

/// Returns the type of a tensor with as many integers as the attribute lists.
fn shape_to_tensor(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let dims = given(shape_dims(&call.attrs()), "shape")?;
    if let Some(at) = dims.iter().position(|&d| *call.cx.types.dims.get(d) == Dim::Unknown) {
        let message = format!("entry {at} of attribute `shape` is `?`, which stands for no number");
        return Err(TypeError::new(message).with_help("name the extent: `match_cast` binds a symbol to it"));
    }
    let count = dims.len();
    let count = extent(call.cx, count);
    Ok(result(call.cx, DType::Int64, Some(&[count])))
}

/// Returns the selected extents of the operand as elements.
fn extents_of(call: &mut TypeCall<'_>, _: TypeId) -> Option<Vec<Vec<DimId>>> {
    let x = call.cx.types.as_tensor(call.operand(0)?)?;
    let shape = x.shape.as_ref()?;
    Some(vec![shape[chosen_axes(&call.attrs(), shape.len())].to_vec()])
}

/// Returns the number of elements of the operand as an element.
fn size_of(call: &mut TypeCall<'_>, _: TypeId) -> Option<Vec<Vec<DimId>>> {
    let shape = call.cx.types.as_tensor(call.operand(0)?)?.shape.clone()?;
    let dims = &mut call.cx.types.dims;
    let one = dims.constant(1);
    Some(vec![vec![shape.iter().fold(one, |n, &d| dims.mul(n, d))]])
}

/// Returns the selected extents of the operand, if they are known.
fn extents_known(call: &mut TypeCall<'_>) -> Option<Vec<Literal>> {
    let x = call.cx.types.as_tensor(call.operand(0)?)?;
    let shape = x.shape.as_ref()?;
    let chosen = &shape[chosen_axes(&call.attrs(), shape.len())];
    let extents: Shape = chosen.iter().map(|&d| as_extent(call.cx, d)).collect::<Option<_>>()?;
    creation::shape_of(&extents).ok().map(|l| vec![l])
}

/// Returns the number of elements of the operand, if it is known.
fn size_known(call: &mut TypeCall<'_>) -> Option<Vec<Literal>> {
    let shape = call.cx.types.static_shape(call.operand(0)?)?;
    creation::size(&shape).ok().map(|l| vec![l])
}

fn concat(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let first = tensor(call, 0, Elements::Any)?;
    let axis = call.attrs().required_int("axis")?;
    let mut joined: Option<Extents> = None;
    let mut any_unranked = false;
    for i in 0..call.count() {
        let x = tensor(call, i, Elements::Any)?;
        same_elements(&first, &x, i)?;
        let Some(shape) = x.shape else {
            any_unranked = true;
            continue;
        };
        let axis = resolve_axis(axis, shape.len())?;
        let Some(joined) = &mut joined else {
            joined = Some(shape);
            continue;
        };
        if joined.len() != shape.len() {
            let message = format!("operand {i} has rank {}, but another has rank {}", shape.len(), joined.len());
            return Err(TypeError::operand(i, message));
        }
        for (a, (so_far, &dim)) in joined.iter_mut().zip(&shape).enumerate() {
            *so_far = if a == axis {
                call.cx.types.dims.add(*so_far, dim)
            } else {
                match unify(call.cx, *so_far, dim) {
                    Some(d) => d,
                    None => return Err(differ(call.cx, i, &format!("axis {a}"), dim, *so_far)),
                }
            };
        }
    }
    if let Some(joined) = &mut joined
        && any_unranked
    {
        let axis = resolve_axis(axis, joined.len())?;
        joined[axis] = call.cx.types.dims.unknown();
    }
    Ok(result(call.cx, first.dtype, joined.as_deref()))
}

fn one_of_two() -> Failure {
    Failure::Mismatch("`split` needs exactly one of `sections`, `indices` and an operand of sizes".into())
}

/// Returns the cuts between parts of these sizes, which must add up to the whole axis.
fn sizes_of(sizes: &[i64], sections: Option<i64>, extent: Option<usize>) -> Result<Vec<usize>, Failure> {
    if sizes.is_empty() || sections.is_some_and(|s| usize::try_from(s) != Ok(sizes.len())) {
        let wanted = sections.map_or("some".to_owned(), |s| s.to_string());
        return Err(Failure::Mismatch(format!("{} sizes, but {wanted} are expected", sizes.len())));
    }
    let mut cuts = Vec::with_capacity(sizes.len());
    let mut end = 0usize;
    for &size in sizes {
        let size = usize::try_from(size).map_err(|_| Failure::Mismatch(format!("size {size} of a part")))?;
        end = end.checked_add(size).ok_or(Failure::TooLarge)?;
        cuts.push(end);
    }
    match extent {
        Some(extent) if extent != end => {
            Err(Failure::Mismatch(format!("parts of {end} elements in all, of an axis of {extent}")))
        }
        _ => {
            cuts.pop();
            Ok(cuts)
        }
    }
}

/// Returns the cuts between `sections` equal parts.
fn sections_of(extent: usize, sections: i64) -> Result<Vec<usize>, Failure> {
    let sections = part_count(sections)?;
    let part = extent.div_ceil(sections);
    Ok((1..sections).map(|i| part.saturating_mul(i).min(extent)).collect())
}

fn part_count(sections: i64) -> Result<usize, Failure> {
    usize::try_from(sections)
        .ok()
        .filter(|s| (1..=MAX_PARTS).contains(s))
        .ok_or_else(|| Failure::Mismatch(format!("{sections} sections")))
}

fn indices_of(indices: &[i64]) -> Result<Vec<usize>, Failure> {
    let ascending = indices.windows(2).all(|w| w[0] <= w[1]);
    if !ascending || indices.len() >= MAX_PARTS {
        return Err(Failure::Mismatch("the indices of `split` do not ascend".into()));
    }
    extents(indices).map(|s| s.to_vec())
}

fn split(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let attrs = call.attrs();
    let axis = axis_of(attrs.required_int("axis")?, &x)?;
    let (sections, indices) = (attrs.int("sections"), attrs.ints("indices"));
    let dim = axis.and_then(|a| x.shape.as_ref().map(|s| s[a]));
    let sizes = optional(call, 1, Elements::Integer)?;
    let parts = match (sections, indices, sizes) {
        (sections, None, Some(sizes)) => parts_of_sizes(call, sections, sizes, dim)?,
        (Some(sections), None, None) => parts_of_sections(call.cx, sections, dim)?,
        (None, Some(indices), None) => parts_at_indices(call.cx, &indices, dim)?,
        _ => return Err(one_of_two().into()),
    };
    let fields: Vec<TypeId> = parts
        .into_iter()
        .map(|part| {
            let mut shape = x.shape.clone();
            if let (Some(shape), Some(axis)) = (&mut shape, axis) {
                shape[axis] = part;
            }
            result(call.cx, x.dtype, shape.as_deref())
        })
        .collect();
    Ok(call.cx.types.tuple(&fields))
}

/// Returns the extents of the parts of `dim` if operand 1 is `sizes`.
fn parts_of_sizes(
    call: &mut TypeCall<'_>,
    sections: Option<i64>,
    sizes: TensorType,
    dim: Option<DimId>,
) -> Result<Vec<DimId>, TypeError> {
    expect_rank(&sizes, 1, 1)?;
    if let Some(literal) = call.literal(1) {
        let numbers = shape_operand(literal)?;
        let whole = dim.and_then(|d| as_extent(call.cx, d));
        sizes_of(&numbers, sections, whole)?;
        return Ok(numbers.into_iter().map(|n| call.cx.types.dims.constant(n)).collect());
    }
    let listed = sizes.shape.and_then(|s| as_extent(call.cx, s[0]));
    let count = match (sections.map(part_count).transpose()?, listed) {
        (Some(count), Some(listed)) if count != listed => {
            return Err(TypeError::operand(1, format!("operand 1 lists {listed} sizes, but {count} are expected")));
        }
        (Some(count), _) => count,
        (None, Some(listed)) => part_count(i64::try_from(listed).unwrap_or(i64::MAX))?,
        (None, None) => {
            let error = TypeError::operand(1, "how many sizes operand 1 lists is not known");
            return Err(error.with_help("say it: `sections=…`"));
        }
    };
    Ok(vec![call.cx.types.dims.unknown(); count])
}

/// Returns the extents of `sections` parts of `dim` that are as even as possible.
fn parts_of_sections(cx: &mut Context, sections: i64, dim: Option<DimId>) -> Result<Vec<DimId>, TypeError> {
    let count = part_count(sections)?;
    let unknown = cx.types.dims.unknown();
    let Some(dim) = dim else { return Ok(vec![unknown; count]) };
    if let Some(whole) = as_extent(cx, dim) {
        return Ok(extents_between(cx, &sections_of(whole, sections)?, whole));
    }
    let dims = &mut cx.types.dims;
    let by = dims.constant(sections);
    let rest = dims.op(DimOp::Mod, dim, by);
    let even = dims.as_constant(rest) == Some(0);
    Ok(vec![if even { dims.op(DimOp::FloorDiv, dim, by) } else { unknown }; count])
}

/// Returns the extents of the parts of `dim` that begin at 0 and at the indices.
fn parts_at_indices(cx: &mut Context, indices: &[i64], dim: Option<DimId>) -> Result<Vec<DimId>, TypeError> {
    let cuts = indices_of(indices)?;
    Ok(match dim.and_then(|d| as_extent(cx, d)) {
        Some(whole) => extents_between(cx, &cuts, whole),
        None => vec![cx.types.dims.unknown(); cuts.len() + 1],
    })
}

/// Returns the extents of the parts into which the cuts divide an axis of extent `whole`.
fn extents_between(cx: &mut Context, cuts: &[usize], whole: usize) -> Vec<DimId> {
    let mut start = 0;
    let mut parts = Vec::with_capacity(cuts.len() + 1);
    for &cut in cuts.iter().chain([&whole]) {
        let end = cut.clamp(start, whole);
        parts.push(extent(cx, end - start));
        start = end;
    }
    parts
}

/// The axes and ranges of a `strided_slice`.
pub(crate) struct Slice {
    pub(crate) axes: Option<Vec<i64>>,
    pub(crate) begin: Vec<i64>,
    pub(crate) end: Vec<i64>,
    pub(crate) strides: Option<Vec<i64>>,
}

impl Slice {
    fn read(attrs: &anfora_ir::AttrReader<'_>) -> Result<Slice, Failure> {
        let slice = Slice {
            axes: attrs.ints("axes"),
            begin: attrs.required_ints("begin")?,
            end: attrs.required_ints("end")?,
            strides: attrs.ints("strides"),
        };
        slice.checked()
    }

    /// Checks the lists and returns the slice.
    ///
    /// # Errors
    /// If the lists differ in length, or a stride is 0.
    pub(crate) fn checked(self) -> Result<Slice, Failure> {
        let n = self.begin.len();
        let long = |l: &Option<Vec<i64>>| l.as_ref().is_none_or(|l| l.len() == n);
        if self.end.len() != n || !long(&self.axes) || !long(&self.strides) {
            return Err(Failure::Mismatch("`axes`, `begin`, `end` and `strides` differ in length".into()));
        }
        if self.strides.iter().flatten().any(|&s| s == 0) {
            return Err(Failure::Mismatch("a stride is 0".into()));
        }
        Ok(self)
    }

    /// Returns the range of each axis of a shape.
    pub(crate) fn ranges(&self, shape: &[usize]) -> Result<SmallVec<[Range; 6]>, Failure> {
        let places = self.places(shape.len())?;
        let range = |(&count, place): (&usize, Option<usize>)| match place {
            Some(i) => Range::resolve(self.begin[i], self.end[i], self.stride(i), count),
            None => Ok(Range { start: 0, step: 1, count }),
        };
        shape.iter().zip(places).map(range).collect()
    }

    /// Replaces the extents of a shape by those of the slice.
    pub(crate) fn extents(&self, cx: &mut Context, shape: &mut [DimId]) -> Result<(), Failure> {
        let places = self.places(shape.len())?;
        for (dim, place) in shape.iter_mut().zip(places) {
            let Some(i) = place else { continue };
            let (begin, end, stride) = (self.begin[i], self.end[i], self.stride(i));
            *dim = match as_extent(cx, *dim) {
                Some(e) => {
                    let count = Range::resolve(begin, end, stride, e)?.count;
                    extent(cx, count)
                }
                None if stride == 1 => {
                    let dims = &mut cx.types.dims;
                    let (begin, end) = (dims.constant(begin), dims.constant(end));
                    elements::range_extent(dims, begin, end, *dim)
                }
                None => cx.types.dims.unknown(),
            };
        }
        Ok(())
    }

    fn stride(&self, i: usize) -> i64 {
        self.strides.as_ref().map_or(1, |s| s[i])
    }

    /// Returns for each axis the index of its entry in the lists.
    fn places(&self, rank: usize) -> Result<Vec<Option<usize>>, Failure> {
        let first: Vec<i64> = (0..self.begin.len() as i64).collect();
        let axes = self.axes.as_ref().unwrap_or(&first);
        resolve_axes(axes, rank)?;
        let mut places = vec![None; rank];
        for (i, &axis) in axes.iter().enumerate() {
            places[resolve_axis(axis, rank)?] = Some(i);
        }
        Ok(places)
    }
}

fn strided_slice(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let cut = Slice::read(&call.attrs())?;
    let Some(mut shape) = x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    cut.extents(call.cx, &mut shape)?;
    Ok(result(call.cx, x.dtype, Some(&shape)))
}

fn take(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let indices = tensor(call, 1, Elements::Integer)?;
    let axis = axis_of(call.attrs().required_int("axis")?, &x)?;
    let (Some(shape), Some(middle), Some(axis)) = (&x.shape, &indices.shape, axis) else {
        return Ok(call.cx.types.unranked(x.dtype));
    };
    let mut dims: Extents = shape[..axis].into();
    dims.extend_from_slice(middle);
    dims.extend_from_slice(&shape[axis + 1..]);
    Ok(result(call.cx, x.dtype, Some(&dims)))
}
