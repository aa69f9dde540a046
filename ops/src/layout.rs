//! Operators that rearrange elements: tiles, triangles, blocks.

use anfora_ir::FusionPattern::{ElemWise, Injective};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, Context, DimId, DimOp, KernelCall, OpDef, Splat, TensorType, TypeCall,
    TypeError, TypeId, TypeRule,
};

use crate::elements;
use crate::kernels::Failure;
use crate::kernels::creation::shape_operand;
use crate::kernels::index;
use crate::kernels::layout::{self, BlockOrder, Triangle};
use crate::kernels::positions::one_integer;
use crate::kernels::strides::resolve_axis;
use crate::row::{row, with_kernel};
use crate::typing::{
    Elements, Extents, RequiredAttrs, as_extent, expect_one, expect_rank, one, ranked, result, tensor,
};

/// Returns the rows of this family.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "nn.flatten",
            "the axes before one as one, and those from there on as another",
            Arity::exactly(1),
            flatten,
            |c| {
                let x = c.operand(0)?;
                one(index::reshape(x, &layout::flattened_shape(x.shape(), c.attrs.required_int("axis")?)?))
            },
        )
        .splat(Splat::OfFirst)
        .elements(elements::kept)
        .attrs(
            const {
                &[AttrDef::new(
                    "axis",
                    AttrKind::Int,
                    AttrDefault::Int(1),
                    "the first axis of the second part; the rank for none",
                )]
            },
        )
        .relabels()
        .fusion(Injective),
        row("tile", "repeated along its axes", Arity::exactly(2), tile, |c| {
            one(layout::tile(c.operand(0)?, &shape_operand(c.operand(1)?)?))
        })
        .splat(Splat::OfFirst)
        .elements(elements::moved)
        .fusion(Injective)
        .shape_operands(&[1])
        .may_fail(),
        row(
            "tril",
            "what is on the diagonal of the last two axes and below, 0 above",
            Arity::between(1, 2),
            triangle,
            |c| one(layout::triangle(c.operand(0)?, diagonal(c)?, Triangle::Lower)),
        )
        .fusion(Injective)
        .may_fail(),
        row(
            "triu",
            "what is on the diagonal of the last two axes and above, 0 below",
            Arity::between(1, 2),
            triangle,
            |c| one(layout::triangle(c.operand(0)?, diagonal(c)?, Triangle::Upper)),
        )
        .fusion(Injective)
        .may_fail(),
        row(
            "eye_like",
            "ones on a diagonal and zeros elsewhere, of the shape of the operand",
            Arity::exactly(1),
            eye_like,
            |c| {
                let x = c.operand(0)?;
                let &[rows, columns] = x.shape() else {
                    return Err(Failure::Mismatch(format!("a matrix of rank {}", x.rank())).into());
                };
                let dtype = c.attrs.dtype("dtype").unwrap_or(x.dtype());
                one(layout::eye(rows, columns, c.attrs.required_int("k")?, dtype))
            },
        )
        .attrs(
            const {
                &[
                    AttrDef::new(
                        "k",
                        AttrKind::Int,
                        AttrDefault::Int(0),
                        "how far the diagonal is to the right of the main one",
                    ),
                    AttrDef::optional("dtype", AttrKind::DType, "the element type; that of the operand if left out"),
                ]
            },
        )
        .fusion(ElemWise),
        block_row("nn.depth_to_space", "channels become blocks of the last two axes", depth_to_space, |c| {
            one(layout::depth_to_space(c.operand(0)?, c.attrs.required_int("block_size")?, order(c.attrs.str("mode"))?))
        }),
        block_row("nn.space_to_depth", "blocks of the last two axes become channels", space_to_depth, |c| {
            one(layout::space_to_depth(c.operand(0)?, c.attrs.required_int("block_size")?, order(c.attrs.str("mode"))?))
        }),
    ]
}

with_kernel! {
    fn block_row(name: &'static str, doc: &'static str, infer: TypeRule; kernel) -> OpDef {
        row(name, doc, Arity::exactly(1), infer, kernel).attrs(BLOCKS).splat(Splat::OfFirst).fusion(Injective)
    }
}

const BLOCKS: &[AttrDef] = &[
    AttrDef::required("block_size", AttrKind::Int, "the extent of a block along both axes"),
    AttrDef::new(
        "mode",
        AttrKind::Str,
        AttrDefault::Str("DCR"),
        "how the channels lie: `DCR` (row and column in the block, then depth) or `CRD` (depth first)",
    ),
];

fn flatten(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let axis = call.attrs().required_int("axis")?;
    let dims = match &x.shape {
        None => [call.cx.types.dims.unknown(); 2],
        Some(shape) => {
            let at = if axis == shape.len() as i64 { shape.len() } else { resolve_axis(axis, shape.len())? };
            [&shape[..at], &shape[at..]].map(|part| product(call.cx, part))
        }
    };
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

fn product(cx: &mut Context, part: &[DimId]) -> DimId {
    let dims = &mut cx.types.dims;
    let one = dims.constant(1);
    part.iter().fold(one, |n, &d| dims.mul(n, d))
}

fn tile(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let repeats = tensor(call, 1, Elements::Integer)?;
    expect_rank(&repeats, 1, 1)?;
    let count = repeats.shape.and_then(|s| as_extent(call.cx, s[0]));
    let known = match call.literal(1).map(shape_operand).transpose()? {
        Some(numbers) => Some(numbers.into_iter().map(|n| call.cx.types.dims.constant(n)).collect()),
        None => call.elements(1),
    };
    let unknown = call.cx.types.dims.unknown();
    let Some(mut shape) = x.shape else {
        let shape = known.map(|k| vec![unknown; k.len()]);
        return Ok(result(call.cx, x.dtype, shape.as_deref()));
    };
    if count.is_some_and(|c| c != shape.len()) {
        let message = format!("{} repeats for rank {}", count.unwrap_or(0), shape.len());
        return Err(TypeError::operand(1, message));
    }
    for (axis, dim) in shape.iter_mut().enumerate() {
        *dim = match known.as_ref().and_then(|k| k.get(axis)) {
            Some(&r) => {
                let dims = &mut call.cx.types.dims;
                if let Some(r @ ..=-1) = dims.as_constant(r) {
                    return Err(TypeError::operand(1, format!("{r} repeats")));
                }
                dims.mul(*dim, r)
            }
            None => unknown,
        };
    }
    Ok(result(call.cx, x.dtype, Some(&shape)))
}

/// Returns the number of the diagonal in operand 1; 0 if it is omitted.
fn diagonal(c: &KernelCall<'_>) -> Result<i64, Failure> {
    let Some(k) = c.optional(1) else { return Ok(0) };
    one_integer(k, "diagonal")
}

fn triangle(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    if let Some(shape) = x.shape.as_ref().filter(|s| s.len() < 2) {
        return Err(TypeError::operand(
            0,
            format!("operand 0 has rank {}, but a diagonal needs two axes", shape.len()),
        ));
    }
    if call.operand(1).is_some() {
        let k = tensor(call, 1, Elements::Integer)?;
        expect_one(call.cx, &k, 1)?;
    }
    Ok(result(call.cx, x.dtype, x.shape.as_deref()))
}

fn eye_like(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    let dtype = call.attrs().dtype("dtype").unwrap_or(x.dtype);
    if !dtype.has_kernels() {
        return Err(TypeError::new(format!("there is no one of {dtype}")));
    }
    let shape = ranked(call.cx, &x, 0, 2)?;
    Ok(result(call.cx, dtype, Some(&shape)))
}

fn order(mode: Option<&str>) -> Result<BlockOrder, Failure> {
    match mode {
        Some("DCR") => Ok(BlockOrder::DepthLast),
        Some("CRD") => Ok(BlockOrder::DepthFirst),
        other => Err(Failure::Mismatch(format!("attribute `mode` is {:?}, not DCR or CRD", other.unwrap_or_default()))),
    }
}

/// Returns the type of the image, its shape and the extent of a block.
fn blocks(call: &mut TypeCall<'_>) -> Result<(TensorType, Extents, i64), TypeError> {
    let x = tensor(call, 0, Elements::Any)?;
    order(call.attrs().str("mode"))?;
    let block = call.attrs().required_int("block_size")?;
    if !(1..=i64::from(u32::MAX >> 1)).contains(&block) {
        return Err(TypeError::new(format!("blocks of size {block}")));
    }
    let shape = ranked(call.cx, &x, 0, 4)?;
    Ok((x, shape, block))
}

/// Divides a dimension by a constant that must divide it. Returns `?` if it is not known whether it
/// does.
fn divided(cx: &mut Context, dim: DimId, by: i64, what: &str) -> Result<DimId, TypeError> {
    let dims = &mut cx.types.dims;
    let by = dims.constant(by);
    let rest = dims.op(DimOp::Mod, dim, by);
    match dims.as_constant(rest) {
        Some(0) => Ok(dims.op(DimOp::FloorDiv, dim, by)),
        None => Ok(dims.unknown()),
        Some(_) => {
            let (dim, by) = (cx.dim_text(dim), cx.dim_text(by));
            Err(TypeError::operand(0, format!("{what} is {dim}, which {by} does not divide")))
        }
    }
}

fn depth_to_space(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, shape, block) = blocks(call)?;
    let channels = divided(call.cx, shape[1], block * block, "the number of channels")?;
    let dims = &mut call.cx.types.dims;
    let by = dims.constant(block);
    let shape = [shape[0], channels, dims.mul(shape[2], by), dims.mul(shape[3], by)];
    Ok(result(call.cx, x.dtype, Some(&shape)))
}

fn space_to_depth(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, shape, block) = blocks(call)?;
    let height = divided(call.cx, shape[2], block, "the height")?;
    let width = divided(call.cx, shape[3], block, "the width")?;
    let dims = &mut call.cx.types.dims;
    let by = dims.constant(block * block);
    let shape = [shape[0], dims.mul(shape[1], by), height, width];
    Ok(result(call.cx, x.dtype, Some(&shape)))
}
