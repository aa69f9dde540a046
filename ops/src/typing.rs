//! Common parts of type rules: checks of operands and attributes, and shapes that broadcast or must
//! agree. The public items serve the rows of custom operators.
//!
//! ```
//! use anfora_ir::{Arity, DType, OpDef};
//! use anfora_ops::typing::{Elements, elementwise, elementwise_to};
//!
//! // `acme.softsign(x)` has the type of its operand. `acme.differ(a, b)` broadcasts, and its
//! // elements are of type `bool`.
//! OpDef::new("acme.softsign", "x / (1 + |x|)", Arity::exactly(1), |call| {
//!     elementwise(call, Elements::Float)
//! });
//! OpDef::new("acme.differ", "whether bits differ", Arity::exactly(2), |call| {
//!     elementwise_to(call, Elements::Any, DType::Bool)
//! });
//! ```
//!
//! Two dimensions are known to be equal if they have the same id other than `?`, and known to
//! differ if their difference is a constant other than 0. Conditions that are not known statically
//! are checked at run time.

use anfora_ir::{
    AttrReader, Context, DType, DTypeClass, Dim, DimId, DimOp, Dims, KernelError, Literal, TensorType, TypeCall,
    TypeError, TypeId,
};
use smallvec::SmallVec;

use crate::kernels::strides::resolve_axis;
use crate::kernels::{Failure, shape_text};

/// Extents, outermost first.
pub type Extents = SmallVec<[DimId; 4]>;

impl From<Failure> for TypeError {
    fn from(failure: Failure) -> TypeError {
        TypeError::new(failure.to_string())
    }
}

impl From<Failure> for KernelError {
    fn from(failure: Failure) -> KernelError {
        KernelError::new(failure.to_string())
    }
}

/// A set of element types that an operand may have. Types that no kernel computes with are
/// classified by the numbers that they represent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Elements {
    /// All types.
    Any,
    /// Integers and floats.
    Number,
    /// Floats.
    Float,
    /// Integers.
    Integer,
    /// `bool`.
    Bool,
}

impl Elements {
    /// Returns true if the set contains the element type.
    pub fn accepts(self, dtype: DType) -> bool {
        let opaque = dtype.class() == DTypeClass::Opaque && dtype != DType::String;
        let small_integer = dtype.is_small_integer();
        match self {
            Elements::Any => true,
            Elements::Number => dtype.is_integer() || dtype.is_float() || opaque,
            Elements::Float => dtype.is_float() || (opaque && !small_integer),
            Elements::Integer => dtype.is_integer() || small_integer,
            Elements::Bool => dtype == DType::Bool,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Elements::Any => "any element type",
            Elements::Number => "integers or floats",
            Elements::Float => "floats",
            Elements::Integer => "integers",
            Elements::Bool => "bool",
        }
    }
}

/// Returns the tensor type of operand `i`. The operand must be present and be a tensor with an
/// element type in `elements`.
///
/// # Errors
/// If it is omitted, is not a tensor, or has other elements.
pub fn tensor(call: &TypeCall<'_>, i: usize, elements: Elements) -> Result<TensorType, TypeError> {
    let ty = call.operand(i).ok_or_else(|| TypeError::operand(i, format!("operand {i} is missing")))?;
    let Some(t) = call.cx.types.as_tensor(ty) else {
        let found = call.cx.type_text(ty);
        let error = TypeError::operand(i, format!("operand {i} is {found}, but a tensor is expected"));
        return Err(if ty == call.cx.types.any() {
            error.with_help("a value of type Any is turned into a tensor by `match_cast(…, to=Tensor[…])`")
        } else {
            error
        });
    };
    if !elements.accepts(t.dtype) {
        let (found, wanted) = (t.dtype, elements.describe());
        return Err(TypeError::operand(i, format!("operand {i} has elements of {found}, but {wanted} are expected")));
    }
    Ok(t.clone())
}

/// Returns true if operand `i` is present and is a tensor with an element type in `elements`.
pub(crate) fn is_tensor(call: &TypeCall<'_>, i: usize, elements: Elements) -> bool {
    let tensor = call.operand(i).and_then(|ty| call.cx.types.as_tensor(ty));
    tensor.is_some_and(|t| elements.accepts(t.dtype))
}

/// Returns the tensor type of operand `i`, or `None` if it is omitted.
///
/// # Errors
/// If it is present and is not a tensor with an element type in `elements`.
pub fn optional(call: &TypeCall<'_>, i: usize, elements: Elements) -> Result<Option<TensorType>, TypeError> {
    match call.operand(i) {
        Some(_) => tensor(call, i, elements).map(Some),
        None => Ok(None),
    }
}

/// Checks that operand `i` has the element type of operand 0.
///
/// # Errors
/// If the element types differ.
pub fn same_elements(first: &TensorType, other: &TensorType, i: usize) -> Result<(), TypeError> {
    if first.dtype == other.dtype {
        return Ok(());
    }
    let (a, b) = (first.dtype, other.dtype);
    Err(TypeError::operand(i, format!("operand {i} has elements of {b}, but operand 0 has elements of {a}"))
        .with_help(format!("convert one: `astype(…, dtype={a})`")))
}

/// Returns a tensor type of known or unknown rank.
pub fn result(cx: &mut Context, dtype: DType, shape: Option<&[DimId]>) -> TypeId {
    match shape {
        Some(shape) => cx.types.tensor(dtype, shape),
        None => cx.types.unranked(dtype),
    }
}

/// Returns the common value of two dimensions that must be equal; `None` if they are known to
/// differ.
pub fn unify(cx: &mut Context, a: DimId, b: DimId) -> Option<DimId> {
    let dims = &mut cx.types.dims;
    let unknown = dims.unknown();
    if a == b || b == unknown {
        return Some(a);
    }
    if a == unknown {
        return Some(b);
    }
    let difference = dims.sub(a, b);
    match dims.as_constant(difference) {
        Some(c) if c != 0 => None,
        // Both are valid; a constant is more precise.
        _ => Some(if dims.as_constant(b).is_some() { b } else { a }),
    }
}

/// Returns the dimension that two dimensions broadcast to; `None` if they are known not to
/// broadcast.
pub(crate) fn broadcast_dims(cx: &mut Context, a: DimId, b: DimId) -> Option<DimId> {
    let dims = &cx.types.dims;
    if a == b {
        return Some(a);
    }
    match (dims.as_constant(a), dims.as_constant(b)) {
        (Some(1), _) => Some(b),
        (_, Some(1)) => Some(a),
        (Some(_), Some(_)) => None,
        // The other dimension is 1 or equal, or the call fails.
        (Some(_), None) => Some(a),
        (None, Some(_)) => Some(b),
        (None, None) if is_clamped(dims, b, a) => Some(a),
        (None, None) if is_clamped(dims, a, b) => Some(b),
        (None, None) => Some(dims.unknown()),
    }
}

/// Returns true if a dimension is the minimum of another one and of a constant above 1. If the two
/// broadcast, they are equal: if the minimum is 1, so is the other dimension.
fn is_clamped(dims: &Dims, clamped: DimId, dim: DimId) -> bool {
    match *dims.get(clamped) {
        Dim::Op { op: DimOp::Min, lhs, rhs } => {
            let bound = if lhs == dim { rhs } else { lhs };
            (lhs == dim || rhs == dim) && dims.as_constant(bound) > Some(1)
        }
        _ => false,
    }
}

/// Returns the shape that the operands, given with their indices, broadcast to; `None` if the rank
/// of an operand is not known.
///
/// # Errors
/// If two extents are known not to broadcast.
pub fn broadcast(cx: &mut Context, operands: &[(usize, &TensorType)]) -> Result<Option<Extents>, TypeError> {
    let mut result: Option<Extents> = None;
    for (position, (number, tensor)) in operands.iter().enumerate() {
        let Some(shape) = &tensor.shape else { return Ok(None) };
        let Some(so_far) = &mut result else {
            result = Some(shape.clone());
            continue;
        };
        while so_far.len() < shape.len() {
            let one = cx.types.dims.constant(1);
            so_far.insert(0, one);
        }
        let offset = so_far.len() - shape.len();
        for (axis, &dim) in shape.iter().enumerate() {
            let before = so_far[offset + axis];
            so_far[offset + axis] = broadcast_dims(cx, before, dim).ok_or_else(|| {
                let (a, b) = (cx.dim_text(before), cx.dim_text(dim));
                let what = if position == 1 { format!("operand {}", operands[0].0) } else { "the others".into() };
                TypeError::operand(
                    *number,
                    format!(
                        "axis {axis} of operand {number} has extent {b}, which does not broadcast with {a} of {what}"
                    ),
                )
            })?;
        }
    }
    Ok(result)
}

/// Returns the type of an elementwise operator. All operands that are present must have one element
/// type and broadcast, and the result has that type too.
///
/// # Errors
/// If the element types differ or are not in `elements`, or the operands do not broadcast.
pub fn elementwise(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    let first = call.operand(0);
    let is_same = |i| call.operand(i).is_none_or(|ty| Some(ty) == first && is_tensor(call, i, elements));
    if let Some(ty) = first
        && (0..call.count()).all(is_same)
    {
        return Ok(ty);
    }
    let (dtype, shape) = broadcast_all(call, elements)?;
    Ok(result(call.cx, dtype, shape.as_deref()))
}

/// Returns the type of an elementwise operator whose result has the element type `dtype`. The
/// operands must satisfy the conditions of [`elementwise`].
///
/// # Errors
/// In the cases in which [`elementwise`] fails.
pub fn elementwise_to(call: &mut TypeCall<'_>, elements: Elements, dtype: DType) -> Result<TypeId, TypeError> {
    let (_, shape) = broadcast_all(call, elements)?;
    Ok(result(call.cx, dtype, shape.as_deref()))
}

/// Returns the element type of all operands, and the shape that they broadcast to.
fn broadcast_all(call: &mut TypeCall<'_>, elements: Elements) -> Result<(DType, Option<Extents>), TypeError> {
    let first = tensor(call, 0, elements)?;
    let mut others: SmallVec<[(usize, TensorType); 3]> = SmallVec::new();
    for i in 1..call.count() {
        if let Some(other) = optional(call, i, elements)? {
            same_elements(&first, &other, i)?;
            others.push((i, other));
        }
    }
    let mut all: SmallVec<[(usize, &TensorType); 4]> = smallvec::smallvec![(0, &first)];
    all.extend(others.iter().map(|(i, t)| (*i, t)));
    let shape = broadcast(call.cx, &all)?;
    Ok((first.dtype, shape))
}

/// Returns an error about two dimensions that differ.
pub(crate) fn differ(cx: &Context, operand: usize, what: &str, found: DimId, wanted: DimId) -> TypeError {
    let (found, wanted) = (cx.dim_text(found), cx.dim_text(wanted));
    TypeError::operand(operand, format!("{what} of operand {operand} is {found}, but {wanted} is expected"))
}

/// Fails if an operand is known to have another rank.
///
/// # Errors
/// If the rank is known and is not `rank`.
pub fn expect_rank(tensor: &TensorType, operand: usize, rank: usize) -> Result<(), TypeError> {
    match &tensor.shape {
        Some(shape) if shape.len() != rank => Err(TypeError::operand(
            operand,
            format!("operand {operand} has rank {}, but rank {rank} is expected", shape.len()),
        )),
        _ => Ok(()),
    }
}

/// Fails if an operand is known not to have exactly one element.
pub(crate) fn expect_one(cx: &Context, tensor: &TensorType, operand: usize) -> Result<(), TypeError> {
    let is_other = |&dim: &DimId| as_extent(cx, dim).is_some_and(|extent| extent != 1);
    match &tensor.shape {
        Some(shape) if shape.iter().any(is_other) => {
            let found = shape_text(&shape.iter().map(|&d| cx.dim_text(d)).collect::<Vec<_>>());
            Err(TypeError::operand(operand, format!("operand {operand} has shape {found}, but one number is expected")))
        }
        _ => Ok(()),
    }
}

/// Returns the extents of an operand of rank `rank`, all `?` if the operand's rank is not known.
pub(crate) fn ranked(cx: &Context, tensor: &TensorType, operand: usize, rank: usize) -> Result<Extents, TypeError> {
    expect_rank(tensor, operand, rank)?;
    Ok(tensor.shape.clone().unwrap_or_else(|| smallvec::smallvec![cx.types.dims.unknown(); rank]))
}

/// Returns a dimension as an extent, if it is a constant that is not negative.
pub(crate) fn as_extent(cx: &Context, dim: DimId) -> Option<usize> {
    cx.types.dims.as_constant(dim).and_then(|c| usize::try_from(c).ok())
}

/// Returns a constant dimension; `?` if the extent is too large for one.
pub(crate) fn extent(cx: &mut Context, extent: usize) -> DimId {
    match i64::try_from(extent) {
        Ok(e) => cx.types.dims.constant(e),
        Err(_) => cx.types.dims.unknown(),
    }
}

/// Returns an axis of an operand, counted from the start; `None` if the rank is not known.
pub(crate) fn axis_of(axis: i64, x: &TensorType) -> Result<Option<usize>, Failure> {
    x.shape.as_ref().map(|s| resolve_axis(axis, s.len())).transpose()
}

/// Returns the value of an attribute that the row requires or gives a default.
pub(crate) fn given<T>(value: Option<T>, name: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::Mismatch(format!("attribute `{name}` has no value")))
}

/// Typed access to attributes that the row requires or gives a default, in type rules and kernels.
pub trait RequiredAttrs {
    /// Returns the integer in the attribute `name`.
    ///
    /// # Errors
    /// If the attribute has no value of this kind.
    fn required_int(&self, name: &str) -> Result<i64, Failure>;
    /// Returns the list of integers in the attribute `name`.
    ///
    /// # Errors
    /// If the attribute has no value of this kind.
    fn required_ints(&self, name: &str) -> Result<Vec<i64>, Failure>;
    /// Returns the float64 in the attribute `name`.
    ///
    /// # Errors
    /// If the attribute has no value of this kind.
    fn required_float(&self, name: &str) -> Result<f64, Failure>;
    /// Returns the boolean in the attribute `name`.
    ///
    /// # Errors
    /// If the attribute has no value of this kind.
    fn required_bool(&self, name: &str) -> Result<bool, Failure>;
}

impl RequiredAttrs for AttrReader<'_> {
    fn required_int(&self, name: &str) -> Result<i64, Failure> {
        given(self.int(name), name)
    }
    fn required_ints(&self, name: &str) -> Result<Vec<i64>, Failure> {
        given(self.ints(name), name)
    }
    fn required_float(&self, name: &str) -> Result<f64, Failure> {
        given(self.float(name), name)
    }
    fn required_bool(&self, name: &str) -> Result<bool, Failure> {
        given(self.bool(name), name)
    }
}

/// Returns the results of a kernel that has one result.
///
/// # Errors
/// If `result` is an error.
pub fn one<E: Into<KernelError>>(result: Result<Literal, E>) -> Result<Vec<Literal>, KernelError> {
    Ok(vec![result.map_err(Into::into)?])
}
