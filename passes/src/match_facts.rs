//! Facts about operators, and about matches for the conditions and computed values of rules.

use anfora_ir::{Context, DType, DimId, FusionPattern, Literal, Number, OpId, Splat, TensorType};
use anfora_visit::pattern::Match;
use half::{bf16, f16};
use smallvec::SmallVec;

/// Extents of a tensor.
pub(crate) type Extents<'m> = &'m [DimId];

/// Returns true if the replacement leaves no part of the match in the program
/// ([`Match::is_last_use`]).
pub(crate) fn is_last_use(m: &Match<'_>) -> bool {
    m.is_last_use()
}

/// Returns true if a capture is a call of one of these operators.
pub(crate) fn has_op(m: &Match<'_>, name: &str, ops: &[&str]) -> bool {
    m.op(name).is_some_and(|row| ops.contains(&&*row.name))
}

/// Returns the type of a capture that is a tensor.
pub(crate) fn tensor<'m>(m: &Match<'m>, name: &str) -> Option<&'m TensorType> {
    m.program().0.types.as_tensor(m.ty(name)?)
}

/// Returns the extents of a capture of known rank.
pub(crate) fn extents<'m>(m: &Match<'m>, name: &str) -> Option<Extents<'m>> {
    tensor(m, name)?.shape.as_deref()
}

/// Returns the extents of the replaced node, if its rank is known.
pub(crate) fn root_extents<'m>(m: &Match<'m>) -> Option<Extents<'m>> {
    let (cx, body) = m.program();
    cx.types.as_tensor(body.type_of(m.root()))?.shape.as_deref()
}

/// Returns the rank of a capture.
pub(crate) fn rank(m: &Match<'_>, name: &str) -> Option<usize> {
    Some(extents(m, name)?.len())
}

/// Returns true if an extent is this number.
pub(crate) fn is_extent(m: &Match<'_>, extent: DimId, number: i64) -> bool {
    m.program().0.types.dims.as_constant(extent) == Some(number)
}

/// Returns the number that all elements of a constant are, if they are floats.
pub(crate) fn number(m: &Match<'_>, name: &str) -> Option<f64> {
    m.literal(name)?.as_float_splat()
}

/// Returns true if a constant is the float 0, and not -0.
pub(crate) fn is_plus_zero(m: &Match<'_>, name: &str) -> bool {
    number(m, name).is_some_and(|number| number == 0.0 && number.is_sign_positive())
}

/// Returns true if all elements of a constant are a number, up to its rounding to their type or to
/// the six digits that exporters write.
pub(crate) fn is_near(m: &Match<'_>, name: &str, wanted: f64) -> bool {
    /// The greatest relative difference.
    const CLOSE: f64 = 4e-6;
    let Some(literal) = m.literal(name) else { return false };
    Number::Float(wanted).is_splat_of(literal)
        || literal.as_float_splat().is_some_and(|found| (found - wanted).abs() <= CLOSE * wanted.abs())
}

/// Returns a number as the value of a float attribute, which ONNX stores as float32. On elements of
/// float64, other numbers have no value.
pub(crate) fn float_attribute(m: &Match<'_>, operand: &str, value: f64) -> Option<f64> {
    let rounded = f64::from(value as f32);
    let is_exact = tensor(m, operand)?.dtype != DType::Float64 || rounded == value;
    (is_exact && rounded.is_finite()).then_some(rounded)
}

/// Returns the axes of a list of axes, each counted from the front; `None` if one is out of range.
pub(crate) fn counted_axes(axes: &[i64], rank: usize) -> Option<SmallVec<[usize; 6]>> {
    let count = |&axis: &i64| {
        let axis = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(axis).ok().filter(|&axis| axis < rank)
    };
    axes.iter().map(count).collect()
}

/// Returns true if a captured list of axes is the last axes of a tensor of this rank, in order, and
/// there is at least one.
pub(crate) fn are_last_axes(m: &Match<'_>, name: &str, rank: usize) -> bool {
    let axes = m.ints(name).and_then(|axes| counted_axes(&axes, rank));
    axes.is_some_and(|axes| !axes.is_empty() && axes.iter().copied().eq(rank - axes.len()..rank))
}

/// Returns the integers of a short constant list.
pub(crate) fn short_list(literal: &Literal) -> Option<Vec<i64>> {
    /// The greatest number of elements that are examined.
    const MOST_ELEMENTS: usize = 128;
    if literal.element_count() > MOST_ELEMENTS { None } else { literal.to_i64s() }
}

/// Returns the padding `q` of a convolution or pool with the margins `p` of its operand `x` added,
/// if these are not negative, and 0 on the axes of batch and channels.
pub(crate) fn margins_of_window(m: &Match<'_>) -> Option<Vec<i64>> {
    let rank = rank(m, "x")?;
    let spatial = rank.checked_sub(2)?;
    let added = short_list(m.literal("p")?).filter(|added| added.len() == 2 * rank)?;
    let old = if m.attr("q").is_some() { m.ints("q")? } else { vec![0; 2 * spatial] };
    if old.len() != 2 * spatial || added.iter().any(|&margin| margin < 0) {
        return None;
    }
    let (begins, ends) = added.split_at(rank);
    let is_inside = |margins: &[i64]| margins[..2] == [0, 0];
    let all = begins[2..].iter().chain(&ends[2..]);
    let sums: Option<Vec<i64>> = all.zip(&old).map(|(new, old)| new.checked_add(*old)).collect();
    sums.filter(|_| is_inside(begins) && is_inside(ends))
}

/// Returns the largest number of an element type, and the smallest positive one of full precision.
pub(crate) fn float_range(dtype: DType) -> Option<(f64, f64)> {
    Some(match dtype {
        DType::Float16 => (f16::MAX.into(), f16::MIN_POSITIVE.into()),
        DType::BFloat16 => (bf16::MAX.into(), bf16::MIN_POSITIVE.into()),
        DType::Float32 => (f32::MAX.into(), f32::MIN_POSITIVE.into()),
        DType::Float64 => (f64::MAX, f64::MIN_POSITIVE),
        _ => return None,
    })
}

/// Returns true if an operator computes each element of its result from one element of each
/// operand, at the same place after NumPy broadcasting, and if the place does not change the
/// computation.
pub(crate) fn is_pointwise(cx: &Context, op: OpId) -> bool {
    let row = cx.ops.get(op);
    match cx.ops.facts(op).fusion() {
        Some(FusionPattern::ElemWise) => row.splat == Splat::OfAll,
        // An attribute may name the axis of an operand of rank 1.
        Some(FusionPattern::Broadcast) => row.splat == Splat::OfAll && row.attrs.is_empty(),
        _ => false,
    }
}
