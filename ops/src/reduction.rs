//! Reductions over axes.

use anfora_ir::FusionPattern::CommReduce;
use anfora_ir::{
    Arity, AttrDef, AttrKind, AttrReader, DType, KernelCall, KernelError, Literal, OpDef, Splat, TypeCall, TypeError,
    TypeId, TypeRule,
};

use crate::elements;
use crate::kernels::Failure;
use crate::kernels::reduction::{self, Axes, Extreme, Reduce, Tie};
use crate::kernels::strides::resolve_axes;
use crate::row::{row, with_kernel};
use crate::typing::{Elements, Extents, RequiredAttrs, as_extent, one, optional, ranked, result, tensor};

const KEEPDIMS: AttrDef = AttrDef::flag("keepdims", "whether reduced axes stay, with extent 1");
const AXES: &[AttrDef] = &[
    AttrDef::optional("axis", AttrKind::Ints, "the axes that are reduced; all if left out"),
    KEEPDIMS,
    AttrDef::flag("noop_with_empty_axes", "whether an operand that lists no axes means none of them, not all"),
];
const AXIS: &[AttrDef] = &[
    AttrDef::optional("axis", AttrKind::Int, "the axis; if left out, all elements in row-major order"),
    KEEPDIMS,
    AttrDef::flag("select_last_index", "whether the last of several is meant, not the first"),
];

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    with_kernel! {
        fn reduce(name: &'static str, doc: &'static str, infer: TypeRule; kernel) -> OpDef {
            let row = row(name, doc, Arity::between(1, 2), infer, kernel).attrs(AXES);
            row.fusion(CommReduce).shape_operands(&[1]).splat(Splat::OfFirst)
        }
    }
    with_kernel! {
        fn index(name: &'static str, doc: &'static str; kernel) -> OpDef {
            row(name, doc, Arity::exactly(1), reduce_to_index, kernel)
                .attrs(AXIS)
                .fusion(CommReduce)
                .splat(Splat::OfAll)
                .elements(elements::computed)
                .may_fail()
        }
    }
    vec![
        reduce("sum", "the sum, added in ascending index order; integers wrap", reduce_number, |c| {
            fold(c, Reduce::Sum)
        })
        .elements(elements::reduced_sum),
        reduce("mean", "the mean; of integers, truncated toward zero, and of none fails", reduce_number, |c| {
            fold(c, Reduce::Mean)
        })
        .may_fail(),
        reduce("prod", "the product, in ascending index order; integers wrap", reduce_number, |c| {
            fold(c, Reduce::Prod)
        })
        .elements(elements::reduced_product),
        reduce("max", "the largest; NaN if one is NaN; of none, the lowest value", reduce_any, |c| {
            fold(c, Reduce::Max)
        })
        .elements(elements::reduced_maximum),
        reduce("min", "the smallest; NaN if one is NaN; of none, the highest value", reduce_any, |c| {
            fold(c, Reduce::Min)
        })
        .elements(elements::reduced_minimum),
        reduce("sum_square", "the sum of the squares; integers wrap", reduce_number, |c| fold(c, Reduce::SumSquare)),
        reduce("l1_norm", "the sum of the absolute values; integers wrap", reduce_number, |c| fold(c, Reduce::L1Norm)),
        reduce("l2_norm", "the root of the sum of the squares", reduce_float, |c| fold(c, Reduce::L2Norm)),
        reduce("log_sum", "the logarithm of the sum", reduce_float, |c| fold(c, Reduce::LogSum)),
        reduce(
            "log_sum_exp",
            "the logarithm of the sum of the exponentials, which do not overflow",
            reduce_float,
            |c| fold(c, Reduce::LogSumExp),
        ),
        index("argmax", "the index of the largest, or of a NaN; of none fails", |c| arg(c, Extreme::Max)),
        index("argmin", "the index of the smallest, or of a NaN; of none fails", |c| arg(c, Extreme::Min)),
    ]
}

fn fold(c: &KernelCall<'_>, op: Reduce) -> Result<Vec<Literal>, KernelError> {
    let x = c.operand(0)?;
    let axes = match c.optional(1) {
        Some(axes) => listed(reduction::axes_operand(axes)?, c.attrs)?,
        None => c.attrs.ints("axis"),
    };
    let axes = Axes::new(axes.as_deref(), x.rank(), c.attrs.required_bool("keepdims")?)?;
    one(reduction::reduce(op, x, &axes))
}

/// Returns the axes that an operand lists; `None` if the list stands for all axes.
fn listed(axes: Vec<i64>, attrs: AttrReader<'_>) -> Result<Option<Vec<i64>>, Failure> {
    let none_means_none = attrs.required_bool("noop_with_empty_axes")?;
    Ok(if axes.is_empty() && !none_means_none { None } else { Some(axes) })
}

fn arg(c: &KernelCall<'_>, extreme: Extreme) -> Result<Vec<Literal>, KernelError> {
    let tie = if c.attrs.required_bool("select_last_index")? { Tie::Last } else { Tie::First };
    let keepdims = c.attrs.required_bool("keepdims")?;
    one(reduction::arg_extreme(extreme, tie, c.operand(0)?, c.attrs.int("axis"), keepdims))
}

fn reduce_number(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    reduce_listed(call, Elements::Number)
}

fn reduce_float(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    reduce_listed(call, Elements::Float)
}

fn reduce_any(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    reduce_listed(call, Elements::Any)
}

fn reduce_to_index(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let axes = call.attrs().int("axis").map(|a| vec![a]);
    reduce(call, Elements::Number, axes, Some(DType::Int64))
}

/// Returns the type of a reduction whose axes are an attribute or an operand.
fn reduce_listed(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    let axes = call.attrs().ints("axis");
    let Some(operand) = optional(call, 1, Elements::Integer)? else { return reduce(call, elements, axes, None) };
    if axes.is_some() {
        return Err(TypeError::operand(1, "the axes are an operand as well as an attribute"));
    }
    let count = as_extent(call.cx, ranked(call.cx, &operand, 1, 1)?[0]);
    if let Some(literal) = call.literal(1) {
        let axes = listed(reduction::axes_operand(literal)?, call.attrs())?;
        return reduce(call, elements, axes, None);
    }
    if count == Some(0) {
        let axes = listed(Vec::new(), call.attrs())?;
        return reduce(call, elements, axes, None);
    }
    let x = tensor(call, 0, elements)?;
    let keepdims = call.attrs().required_bool("keepdims")?;
    let Some(shape) = &x.shape else { return Ok(call.cx.types.unranked(x.dtype)) };
    // Axes are not listed twice, so a list with as many entries as there are axes names all of
    // them.
    match count {
        Some(count) if count > shape.len() => {
            Err(TypeError::operand(1, format!("operand 1 lists {count} axes, but there are {}", shape.len())))
        }
        Some(count) if count == shape.len() => reduce(call, elements, None, None),
        _ if keepdims => {
            let unknown = vec![call.cx.types.dims.unknown(); shape.len()];
            Ok(result(call.cx, x.dtype, Some(&unknown)))
        }
        Some(count) => {
            let unknown = vec![call.cx.types.dims.unknown(); shape.len() - count];
            Ok(result(call.cx, x.dtype, Some(&unknown)))
        }
        None => Ok(call.cx.types.unranked(x.dtype)),
    }
}

fn reduce(
    call: &mut TypeCall<'_>,
    elements: Elements,
    axes: Option<Vec<i64>>,
    dtype: Option<DType>,
) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, elements)?;
    let dtype = dtype.unwrap_or(x.dtype);
    let keepdims = call.attrs().required_bool("keepdims")?;
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
