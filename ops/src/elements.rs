//! Known elements of results whose operands are known in part. They carry computed shapes into the
//! types of tensors.
//!
//! An element is a dimension: a number, a symbol, an expression of them, or `?`. Symbols represent
//! extents, so they are not negative, and [`bounds`] relies on this. Integers wrap and dimensions
//! do not, but a dimension that overflows is `?`, and so is a value that may not fit in an element
//! type with fewer bits than `int64`.

use anfora_ir::{Context, DType, Dim, DimId, DimOp, Dims, KernelCall, Literal, MAX_KNOWN_ELEMENTS, TypeCall, TypeId};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

/// The elements of each result.
type Known = Option<Vec<Vec<DimId>>>;

/// The most parts of a dimension that an analysis visits.
const MOST_PARTS: usize = 64;

// ---- Elements that stay the same ----

/// Returns the elements of operand 0, in the same order.
pub(crate) fn kept(call: &mut TypeCall<'_>, _: TypeId) -> Known {
    Some(vec![call.elements(0)?.to_vec()])
}

/// Returns elements of operand 0, at positions that the other operands and the attributes
/// determine. The other operands must be known. The kernel computes the positions: it runs on the
/// numbers of the elements.
pub(crate) fn moved(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
    moved_from(call, ty, 1)
}

/// Returns elements of all operands, at positions that the attributes determine. The kernel
/// computes the positions.
pub(crate) fn joined(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
    let count = call.count();
    moved_from(call, ty, count)
}

/// Returns elements of the first `count` operands, at positions that the other operands and the
/// attributes determine.
fn moved_from(call: &mut TypeCall<'_>, ty: TypeId, count: usize) -> Known {
    if (0..count).all(|i| call.elements(i).is_none()) {
        return None;
    }
    let mut elements: Vec<DimId> = Vec::new();
    let mut positions: SmallVec<[Literal; 4]> = SmallVec::new();
    for i in 0..count {
        let known = elements_or_unknown(call, i)?;
        let shape = call.cx.types.static_shape(call.operand(i)?)?;
        let numbers: Vec<i64> = (elements.len() as i64..).take(known.len()).collect();
        positions.push(Literal::from_elements(&shape, &numbers).ok()?);
        elements.extend(known);
    }
    let others = (count..call.count()).map(|i| match call.operand(i) {
        None => Some(None),
        Some(_) => call.literal(i).map(Some),
    });
    let operands: SmallVec<[Option<&Literal>; 4]> =
        positions.iter().map(|p| Some(Some(p))).chain(others).collect::<Option<_>>()?;
    let results = run(call, &operands, ty)?;
    let place = |result: &Literal| -> Option<Vec<DimId>> {
        if result.element_count() > MAX_KNOWN_ELEMENTS {
            return Some(Vec::new());
        }
        result.to_i64s()?.into_iter().map(|p| elements.get(usize::try_from(p).ok()?).copied()).collect()
    };
    results.iter().map(place).collect()
}

/// Returns the results of the kernel.
fn run(call: &TypeCall<'_>, operands: &[Option<&Literal>], ty: TypeId) -> Option<Vec<Literal>> {
    let kernel = call.cx.ops.get(call.op).kernel?;
    kernel(&KernelCall { operands, attrs: call.attrs(), ty }).ok()
}

/// Returns the elements of an operand, all of them `?` if none is known; `None` if their number is
/// not known.
fn elements_or_unknown(call: &mut TypeCall<'_>, i: usize) -> Option<SmallVec<[DimId; 8]>> {
    if let Some(elements) = call.elements(i) {
        return Some(elements);
    }
    let count = call.cx.types.element_count(call.operand(i)?)?;
    Some(smallvec::smallvec![call.cx.types.dims.unknown(); count])
}

/// Returns the elements of operand 0, converted to another element type.
pub(crate) fn converted(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
    let mut elements = call.elements(0)?.to_vec();
    let dtype = call.cx.types.as_tensor(ty)?.dtype;
    if dtype == DType::Bool {
        let dims = &mut call.cx.types.dims;
        let zero = dims.constant(0);
        for element in &mut elements {
            let is_zero = compared(dims, *element, zero, Comparison::Equal);
            *element = opposite(dims, is_zero);
        }
    }
    Some(vec![elements])
}

// ---- Elements that are computed ----

/// Returns the results of the kernel if all elements of all operands are known.
pub(crate) fn computed(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
    let known = |i| match call.operand(i) {
        None => Some(None),
        Some(ty) => call.cx.types.element_count(ty).and_then(|_| call.literal(i)).map(Some),
    };
    let operands = (0..call.count()).map(known).collect::<Option<SmallVec<[Option<&Literal>; 4]>>>()?;
    let results = run(call, &operands, ty)?;
    drop(operands);
    let mut known = Vec::with_capacity(results.len());
    for result in &results {
        let numbers = (result.element_count() <= MAX_KNOWN_ELEMENTS).then(|| result.to_i64s()).flatten();
        let dims = &mut call.cx.types.dims;
        known.push(numbers.unwrap_or_default().into_iter().map(|n| dims.constant(n)).collect());
    }
    Some(known)
}

/// Computes each element of the result from elements of the operands, which broadcast.
fn each(call: &mut TypeCall<'_>, ty: TypeId, f: impl Fn(&mut Dims, &[DimId]) -> DimId) -> Known {
    let count = call.count();
    if (0..count).all(|i| call.elements(i).is_none()) {
        return None;
    }
    let shape = call.cx.types.static_shape(ty)?;
    let mut operands = Vec::with_capacity(count);
    for i in 0..count {
        let elements = elements_or_unknown(call, i)?;
        operands.push((elements, call.cx.types.static_shape(call.operand(i)?)?));
    }
    let mut known = Vec::with_capacity(call.cx.types.element_count(ty)?);
    let mut parts: SmallVec<[DimId; 3]> = SmallVec::new();
    for position in 0..known.capacity() {
        parts.clear();
        for (elements, from) in &operands {
            parts.push(*elements.get(broadcast_position(position, &shape, from))?);
        }
        known.push(f(&mut call.cx.types.dims, &parts));
    }
    Some(vec![known])
}

/// Returns the position in an operand of shape `from`, which broadcasts to `shape`, of the element
/// at a row-major position of `shape`.
fn broadcast_position(position: usize, shape: &[usize], from: &[usize]) -> usize {
    let (mut rest, mut at, mut stride) = (position, 0, 1);
    for (i, &extent) in shape.iter().rev().enumerate() {
        let index = rest % extent;
        rest /= extent;
        let Some(&own) = from.len().checked_sub(i + 1).and_then(|axis| from.get(axis)) else { break };
        if own != 1 {
            at += index * stride;
        }
        stride *= own;
    }
    at
}

macro_rules! elementwise {
    ($($(#[$doc:meta])* $name:ident = $f:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
            let f: fn(&mut Dims, &[DimId]) -> DimId = $f;
            each(call, ty, f)
        }
    )*};
}

elementwise! {
    /// Returns the sum of all operands.
    sum = |dims, parts| fold(parts, |a, b| dims.add(a, b));
    /// Returns the first operand minus the second.
    difference = |dims, parts| dims.sub(parts[0], parts[1]);
    /// Returns the product of two operands.
    product = |dims, parts| dims.mul(parts[0], parts[1]);
    /// Returns the operand with the opposite sign.
    negated = |dims, parts| { let zero = dims.constant(0); dims.sub(zero, parts[0]) };
    /// Returns the absolute value of the operand.
    magnitude = |dims, parts| match bounds(dims, parts[0]) {
        (Some(0..), _) => parts[0],
        (_, Some(..=0)) => { let zero = dims.constant(0); dims.sub(zero, parts[0]) }
        _ => dims.unknown(),
    };
    /// Returns the quotient, truncated toward zero.
    quotient = |dims, parts| truncated(dims, DimOp::FloorDiv, parts);
    /// Returns the remainder of the truncated quotient.
    remainder = |dims, parts| truncated(dims, DimOp::Mod, parts);
    /// Returns the quotient, rounded down.
    floor_quotient = |dims, parts| dims.op(DimOp::FloorDiv, parts[0], parts[1]);
    /// Returns the remainder of the quotient that is rounded down.
    floor_remainder = |dims, parts| dims.op(DimOp::Mod, parts[0], parts[1]);
    /// Returns the largest operand.
    maximum = |dims, parts| fold(parts, |a, b| extreme(dims, DimOp::Max, a, b));
    /// Returns the smallest operand.
    minimum = |dims, parts| fold(parts, |a, b| extreme(dims, DimOp::Min, a, b));
    /// Returns 1 where two operands are equal, and 0 where they differ.
    equal = |dims, parts| compared(dims, parts[0], parts[1], Comparison::Equal);
    /// Returns 1 where two operands differ, and 0 where they are equal.
    not_equal = |dims, parts| { let equal = compared(dims, parts[0], parts[1], Comparison::Equal); opposite(dims, equal) };
    /// Returns 1 where the first operand is less than the second, and 0 where it is not.
    less = |dims, parts| compared(dims, parts[0], parts[1], Comparison::Less);
    /// Returns 1 where the first operand is less than or equal to the second, and 0 where it is
    /// not.
    less_equal = |dims, parts| { let less = compared(dims, parts[1], parts[0], Comparison::Less); opposite(dims, less) };
    /// Returns 1 where the first operand is greater than the second, and 0 where it is not.
    greater = |dims, parts| compared(dims, parts[1], parts[0], Comparison::Less);
    /// Returns 1 where the first operand is greater than or equal to the second, and 0 where it is
    /// not.
    greater_equal = |dims, parts| { let less = compared(dims, parts[0], parts[1], Comparison::Less); opposite(dims, less) };
    /// Returns 1 where the operand is 0, and 0 elsewhere.
    negation = |dims, parts| opposite(dims, parts[0]);
    /// Returns the second operand where the first is not 0, and the third operand elsewhere.
    chosen = |dims, parts| match dims.as_constant(parts[0]) {
        Some(0) => parts[2],
        Some(_) => parts[1],
        None if parts[1] == parts[2] => parts[1],
        None => dims.unknown(),
    };
}

fn fold(parts: &[DimId], mut f: impl FnMut(DimId, DimId) -> DimId) -> DimId {
    parts[1..].iter().fold(parts[0], |a, &b| f(a, b))
}

/// Returns a division that truncates. It is symbolic only for operands that are not negative, where
/// truncating is rounding down.
fn truncated(dims: &mut Dims, op: DimOp, parts: &[DimId]) -> DimId {
    if let (Some(a), Some(b)) = (dims.as_constant(parts[0]), dims.as_constant(parts[1])) {
        let number = if op == DimOp::Mod { a.checked_rem(b) } else { a.checked_div(b) };
        return number.map_or(dims.unknown(), |n| dims.constant(n));
    }
    match (bounds(dims, parts[0]), bounds(dims, parts[1])) {
        ((Some(0..), _), (Some(0..), _)) => dims.op(op, parts[0], parts[1]),
        _ => dims.unknown(),
    }
}

/// Returns the larger or the smaller dimension. If it is known which of the two it is, returns that
/// one.
fn extreme(dims: &mut Dims, op: DimOp, a: DimId, b: DimId) -> DimId {
    let difference = dims.sub(a, b);
    let (first, second) = if op == DimOp::Max { (a, b) } else { (b, a) };
    match bounds(dims, difference) {
        (Some(0..), _) => first,
        (_, Some(..=0)) => second,
        _ => dims.op(op, a, b),
    }
}

/// Returns the extent of the range from `begin` to `end`, in steps of 1, of an axis of an extent.
/// Negative indices count from the end, and indices out of range are clamped.
pub(crate) fn range_extent(dims: &mut Dims, begin: DimId, end: DimId, extent: DimId) -> DimId {
    let start = match dims.as_constant(begin) {
        Some(0) => begin,
        _ => match index_in_axis(dims, begin, extent) {
            // Where it is not known if an index is clamped, the difference would not be readable.
            start if matches!(dims.get(start), Dim::Op { op: DimOp::Min | DimOp::Max, .. }) => dims.unknown(),
            start => start,
        },
    };
    let stop = index_in_axis(dims, end, extent);
    let count = dims.sub(stop, start);
    let is_known = dims.as_constant(start) == Some(0) || matches!(bounds(dims, count).0, Some(0..));
    if is_known { count } else { dims.unknown() }
}

/// Returns the index in an axis of an extent that an index denotes which may be negative or out of
/// range.
fn index_in_axis(dims: &mut Dims, index: DimId, extent: DimId) -> DimId {
    match bounds(dims, index) {
        (Some(i64::MAX), _) => extent,
        (Some(0..), _) => extreme(dims, DimOp::Min, index, extent),
        (_, Some(..=-1)) => {
            let from_start = dims.add(extent, index);
            if matches!(bounds(dims, from_start).0, Some(0..)) { from_start } else { dims.unknown() }
        }
        _ => dims.unknown(),
    }
}

#[derive(Copy, Clone)]
enum Comparison {
    Equal,
    Less,
}

/// Returns 1 if the comparison is known to be true, 0 if it is known to be false, and `?`
/// otherwise.
fn compared(dims: &mut Dims, a: DimId, b: DimId, comparison: Comparison) -> DimId {
    let difference = dims.sub(a, b);
    let holds = match (comparison, bounds(dims, difference)) {
        (Comparison::Equal, (Some(0), Some(0))) => Some(true),
        (Comparison::Equal, (Some(1..), _) | (_, Some(..=-1))) => Some(false),
        (Comparison::Less, (_, Some(..=-1))) => Some(true),
        (Comparison::Less, (Some(0..), _)) => Some(false),
        _ => None,
    };
    holds.map_or(dims.unknown(), |h| dims.constant(h.into()))
}

fn opposite(dims: &mut Dims, holds: DimId) -> DimId {
    match dims.as_constant(holds) {
        Some(h) => dims.constant(i64::from(h == 0)),
        None => dims.unknown(),
    }
}

/// Returns a lower and an upper bound of a dimension, as far as they are known.
pub(crate) fn bounds(dims: &Dims, dim: DimId) -> (Option<i64>, Option<i64>) {
    match dims.get(dim) {
        Dim::Unknown => (None, None),
        Dim::Const(c) => (Some(*c), Some(*c)),
        Dim::Symbol(_) | Dim::Bound { .. } => (Some(0), None),
        Dim::Op { .. } => (is_not_negative(dims, dim).then_some(0), None),
        Dim::Sum(terms) => {
            let constant = terms.iter().find(|t| t.factors.is_empty()).map_or(0, |t| t.coefficient);
            let mut rest = terms.iter().filter(|t| !t.factors.is_empty());
            let products_are_not_negative = rest.clone().flat_map(|t| &t.factors).all(|&f| is_not_negative(dims, f));
            if !products_are_not_negative {
                return (None, None);
            }
            let is_positive = |t: &anfora_ir::Term| t.coefficient > 0;
            (rest.clone().all(is_positive).then_some(constant), (!rest.any(is_positive)).then_some(constant))
        }
    }
}

fn is_not_negative(dims: &Dims, dim: DimId) -> bool {
    let mut seen = FxHashSet::default();
    let mut pending = vec![dim];
    while let Some(d) = pending.pop() {
        if !seen.insert(d) {
            continue;
        }
        if seen.len() > MOST_PARTS {
            return false;
        }
        match dims.get(d) {
            Dim::Unknown => return false,
            Dim::Const(c) if *c < 0 => return false,
            Dim::Const(_) | Dim::Symbol(_) | Dim::Bound { .. } => {}
            Dim::Sum(terms) => {
                if terms.iter().any(|t| t.coefficient < 0) {
                    return false;
                }
                pending.extend(terms.iter().flat_map(|t| &t.factors));
            }
            // The remainder has the sign of the divisor.
            Dim::Op { op: DimOp::Mod, rhs, .. } => pending.push(*rhs),
            Dim::Op { op: DimOp::Max, lhs, rhs } if [lhs, rhs].iter().any(|&&p| dims.as_constant(p) >= Some(0)) => {}
            Dim::Op { lhs, rhs, .. } => pending.extend([*lhs, *rhs]),
        }
    }
    true
}

// ---- Reductions ----

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident = $f:expr;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
            let f: fn(&mut Dims, DimId, DimId) -> DimId = $f;
            reduced(call, ty, f)
        }
    )*};
}

reductions! {
    /// Returns the sum of the elements.
    reduced_sum = |dims, a, b| dims.add(a, b);
    /// Returns the product of the elements.
    reduced_product = |dims, a, b| dims.mul(a, b);
    /// Returns the largest element.
    reduced_maximum = |dims, a, b| extreme(dims, DimOp::Max, a, b);
    /// Returns the smallest element.
    reduced_minimum = |dims, a, b| extreme(dims, DimOp::Min, a, b);
}

/// Reduces all elements to one with `f`. A reduction of some axes is computed only if all elements
/// are known.
fn reduced(call: &mut TypeCall<'_>, ty: TypeId, f: impl Fn(&mut Dims, DimId, DimId) -> DimId) -> Known {
    if let known @ Some(_) = computed(call, ty) {
        return known;
    }
    let axes_are_known = call.operand(1).is_none() || call.literal(1).is_some();
    if !axes_are_known || call.cx.types.element_count(ty) != Some(1) {
        return None;
    }
    let elements = call.elements(0)?;
    let (&first, rest) = elements.split_first()?;
    let dims = &mut call.cx.types.dims;
    Some(vec![vec![rest.iter().fold(first, |a, &b| f(dims, a, b))]])
}

// ---- Elements that are made ----

/// Returns elements that are all the same number.
pub(crate) fn all(cx: &mut Context, ty: TypeId, number: i64) -> Known {
    let count = cx.types.element_count(ty)?;
    Some(vec![vec![cx.types.dims.constant(number); count]])
}

/// Returns as many elements as the result has. The first is operand 0, and each following element
/// is greater by operand 2.
pub(crate) fn counted(call: &mut TypeCall<'_>, ty: TypeId) -> Known {
    let count = call.cx.types.element_count(ty)?;
    let (start, step) = (call.elements(0)?[0], call.elements(2)?[0]);
    let dims = &mut call.cx.types.dims;
    let at = |i: usize| {
        let number = dims.constant(i as i64);
        let offset = dims.mul(number, step);
        dims.add(start, offset)
    };
    Some(vec![(0..count).map(at).collect()])
}
