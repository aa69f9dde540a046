//! Sampling of images, and selection of boxes in them.

use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, AttrReader, DType, KernelCall, Literal, OpDef, TypeCall, TypeError, TypeId,
};

use crate::kernels::Failure;
use crate::kernels::grid_sample::{self, Sampling};
use crate::kernels::non_max_suppression::{self, Selection};
use crate::row::row;
use crate::steps::saturated;
use crate::typing::{
    Elements, RequiredAttrs, differ, expect_one, extent, given, one, optional, ranked, result, tensor, unify,
};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "image.grid_sample",
            "the elements of an image at the positions in the last axis of a grid, from -1 to 1; operands x, grid",
            Arity::exactly(2),
            grid_sample_type,
            |c| one(grid_sample::grid_sample(c.operand(0)?, c.operand(1)?, sampling(&c.attrs)?)),
        )
        .steps(|c| match (c.optional(0), c.optional(1), sampling(&c.attrs)) {
            (Some(x), Some(grid), Ok(how)) => saturated(grid_sample::steps(x, grid, how)),
            _ => 1,
        })
        .attrs(
            const {
                &[
                    AttrDef::new("mode", AttrKind::Str, AttrDefault::Str("linear"), "`nearest`, `linear` or `cubic`"),
                    AttrDef::new(
                        "padding_mode",
                        AttrKind::Str,
                        AttrDefault::Str("zeros"),
                        "what is outside: `zeros`, `border` or `reflection`",
                    ),
                    AttrDef::flag("align_corners", "whether -1 and 1 are the centres of the outermost elements"),
                ]
            },
        ),
        row(
            "image.non_max_suppression",
            "batch, class and number of the boxes that overlap little with boxes of higher scores; operands boxes, scores, optionally the most boxes of a class, the largest overlap, the lowest score",
            Arity::between(2, 5),
            suppression_type,
            |c| one(non_max_suppression::non_max_suppression(c.operand(0)?, c.operand(1)?, selection(c)?)),
        )
        .steps(|c| match (c.optional(0), c.optional(1), selection(c)) {
            (Some(boxes), Some(scores), Ok(how)) => saturated(non_max_suppression::steps(boxes, scores, how.most).or(Some(1))),
            _ => 1,
        })
        .attrs(
            const {
                &[AttrDef::flag("center_point_box", "whether a box is a centre and extents, x first, and not two corners, y first")]
            },
        )
        .size_bound(|c| match (c.optional(0), c.optional(1), selection(c)) {
            (Some(boxes), Some(scores), Ok(how)) => rows_bound(boxes, scores, how.most),
            _ => 0,
        }),
    ]
}

fn sampling(attrs: &AttrReader<'_>) -> Result<Sampling, Failure> {
    let (mode, outside) = (given(attrs.str("mode"), "mode")?, given(attrs.str("padding_mode"), "padding_mode")?);
    Sampling::new(mode, outside, attrs.required_bool("align_corners")?)
}

fn selection(c: &KernelCall<'_>) -> Result<Selection, Failure> {
    let by_center = c.attrs.required_bool("center_point_box")?;
    Selection::new(by_center, c.optional(2), [c.optional(3), c.optional(4)])
}

/// Returns an upper bound of the bytes of the selected boxes.
fn rows_bound(boxes: &Literal, scores: &Literal, most: usize) -> usize {
    let rows = non_max_suppression::most_rows(boxes, scores, most);
    rows.and_then(|n| n.checked_mul(3 * size_of::<i64>())).unwrap_or(usize::MAX)
}

fn grid_sample_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    sampling(&call.attrs())?;
    let (x, grid) = (tensor(call, 0, Elements::Float)?, tensor(call, 1, Elements::Float)?);
    let (Some(shape), Some(places)) = (&x.shape, &grid.shape) else { return Ok(result(call.cx, x.dtype, None)) };
    if shape.len() < 3 || places.len() != shape.len() {
        let (rank, of_grid) = (shape.len(), places.len());
        return Err(TypeError::operand(1, format!("a grid of rank {of_grid} for an image of rank {rank}")));
    }
    let (last, batch) = (places[places.len() - 1], places[0]);
    let axes = extent(call.cx, shape.len() - 2);
    unify(call.cx, axes, last).ok_or_else(|| differ(call.cx, 1, "the last axis", last, axes))?;
    let first = unify(call.cx, shape[0], batch).ok_or_else(|| differ(call.cx, 1, "axis 0", batch, shape[0]))?;
    let mut all = vec![first, shape[1]];
    all.extend(&places[1..places.len() - 1]);
    Ok(result(call.cx, x.dtype, Some(&all)))
}

fn suppression_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    for (i, wanted) in
        [DType::Float32, DType::Float32, DType::Int64, DType::Float32, DType::Float32].into_iter().enumerate()
    {
        let operand =
            if i < 2 { Some(tensor(call, i, Elements::Number)?) } else { optional(call, i, Elements::Number)? };
        let Some(operand) = operand else { continue };
        if operand.dtype != wanted {
            let found = operand.dtype;
            return Err(TypeError::operand(
                i,
                format!("operand {i} has elements of {found}, but {wanted} is expected"),
            ));
        }
        if i < 2 {
            ranked(call.cx, &operand, i, 3)?;
        } else {
            expect_one(call.cx, &operand, i)?;
        }
    }
    let (unknown, three) = (call.cx.types.dims.unknown(), call.cx.types.dims.constant(3));
    Ok(result(call.cx, DType::Int64, Some(&[unknown, three])))
}
