//! Reductions over axes.

use anfora_ir::FusionPattern::CommReduce;
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, Kernel, KernelCall, KernelError, Literal, OpDef, Splat, TypeCall,
    TypeError, TypeId, TypeRule,
};

use crate::kernels::Failure;
use crate::kernels::reduction::{self, Axes, Extreme, Reduce, Tie};
use crate::kernels::strides::resolve_axes;
use crate::row::row;
use crate::typing::{Elements, Extents, Given, one, result, tensor};

const KEEPDIMS: AttrDef =
    AttrDef::new("keepdims", AttrKind::Bool, AttrDefault::Bool(false), "whether reduced axes stay, with extent 1");
const AXES: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::Ints, AttrDefault::Absent, "the axes that are reduced; all if left out"),
    KEEPDIMS,
];
const AXIS: &[AttrDef] = &[
    AttrDef::new("axis", AttrKind::Int, AttrDefault::Absent, "the axis; if left out, all elements in row-major order"),
    KEEPDIMS,
    AttrDef::new(
        "select_last_index",
        AttrKind::Bool,
        AttrDefault::Bool(false),
        "whether the last of several is meant, not the first",
    ),
];

/// The rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    fn reduce(name: &'static str, doc: &'static str, infer: TypeRule, kernel: Kernel) -> OpDef {
        row(name, doc, Arity::exactly(1), infer, kernel).attrs(AXES).fusion(CommReduce).splat(Splat::OfAll)
    }
    fn index(name: &'static str, doc: &'static str, kernel: Kernel) -> OpDef {
        row(name, doc, Arity::exactly(1), reduce_to_index, kernel)
            .attrs(AXIS)
            .fusion(CommReduce)
            .splat(Splat::OfAll)
            .may_fail()
    }
    vec![
        reduce("sum", "the sum, added in ascending index order; integers wrap", reduce_number, |c| {
            fold(c, Reduce::Sum)
        }),
        reduce("mean", "the mean; of integers, truncated toward zero, and of none fails", reduce_number, |c| {
            fold(c, Reduce::Mean)
        })
        .may_fail(),
        reduce("prod", "the product, in ascending index order; integers wrap", reduce_number, |c| {
            fold(c, Reduce::Prod)
        }),
        reduce("max", "the largest; NaN if one is NaN; of none, the lowest value", reduce_any, |c| {
            fold(c, Reduce::Max)
        }),
        reduce("min", "the smallest; NaN if one is NaN; of none, the highest value", reduce_any, |c| {
            fold(c, Reduce::Min)
        }),
        index("argmax", "the index of the largest, or of a NaN; of none fails", |c| arg(c, Extreme::Max)),
        index("argmin", "the index of the smallest, or of a NaN; of none fails", |c| arg(c, Extreme::Min)),
    ]
}

fn fold(c: &KernelCall<'_>, op: Reduce) -> Result<Vec<Literal>, KernelError> {
    let x = c.operand(0)?;
    let axes = c.attrs.ints("axis");
    let axes = Axes::new(axes.as_deref(), x.rank(), c.attrs.given_bool("keepdims")?)?;
    one(reduction::reduce(op, x, &axes))
}

fn arg(c: &KernelCall<'_>, extreme: Extreme) -> Result<Vec<Literal>, KernelError> {
    let tie = if c.attrs.given_bool("select_last_index")? { Tie::Last } else { Tie::First };
    let keepdims = c.attrs.given_bool("keepdims")?;
    one(reduction::arg_extreme(extreme, tie, c.operand(0)?, c.attrs.int("axis"), keepdims))
}

fn reduce_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let axes = call.attrs().ints("axis");
    reduce(call, Elements::Number, axes, None)
}

fn reduce_any(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let axes = call.attrs().ints("axis");
    reduce(call, Elements::Any, axes, None)
}

fn reduce_to_index(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let axes = call.attrs().int("axis").map(|a| vec![a]);
    reduce(call, Elements::Number, axes, Some(DType::Int64))
}

fn reduce(
    call: &mut TypeCall<'_>,
    elements: Elements,
    axes: Option<Vec<i64>>,
    dtype: Option<DType>,
) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, elements)?;
    let dtype = dtype.unwrap_or(x.dtype);
    let keepdims = call.attrs().given_bool("keepdims")?;
    let Some(shape) = &x.shape else {
        return Ok(match axes {
            None if !keepdims => call.cx.types.scalar(dtype),
            _ => call.cx.types.unranked(dtype),
        });
    };
    let reduced = reduced_axes(axes.as_deref(), shape.len())?;
    let one = call.cx.types.dims.constant(1);
    let mut kept = Extents::new();
    for (&dim, reduced) in shape.iter().zip(reduced) {
        match (reduced, keepdims) {
            (false, _) => kept.push(dim),
            (true, true) => kept.push(one),
            (true, false) => {}
        }
    }
    Ok(result(call.cx, dtype, Some(&kept)))
}

fn reduced_axes(axes: Option<&[i64]>, rank: usize) -> Result<Vec<bool>, Failure> {
    Ok(match axes {
        None => vec![true; rank],
        Some(axes) => resolve_axes(axes, rank)?.to_vec(),
    })
}
