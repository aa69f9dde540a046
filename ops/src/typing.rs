//! What type rules have in common: looking at operands and attributes, and shapes that broadcast or have to agree. What is public is
//! for the rows of operators of one's own.
//!
//! ```
//! use anfora_ir::{Arity, DType, OpDef};
//! use anfora_ops::typing::{Elements, elementwise, elementwise_to};
//!
//! // `acme.softsign(x)` has the type of its operand; `acme.differ(a, b)` broadcasts, and is of `bool`.
//! OpDef::new("acme.softsign", "x / (1 + |x|)", Arity::exactly(1), |call| elementwise(call, Elements::Float));
//! OpDef::new("acme.differ", "whether bits differ", Arity::exactly(2), |call| {
//!     elementwise_to(call, Elements::Any, DType::Bool)
//! });
//! ```
//!
//! Two dimensions are known to be equal if they are one id other than `?`, and known to differ if their difference is a constant
//! other than 0. Whatever is not known is left to the run.

use anfora_ir::{
    AttrReader, Context, DType, DTypeClass, DimId, KernelError, Literal, Operand, TensorType, TypeCall, TypeError,
    TypeId,
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

/// Which element types an operand may have. Those that are only stored count as what they stand for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Elements {
    /// All.
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
    /// Whether elements of a type are among them.
    pub fn accepts(self, dtype: DType) -> bool {
        let opaque = dtype.class() == DTypeClass::Opaque && dtype != DType::String;
        let small_integer = matches!(dtype, DType::Int4 | DType::UInt4);
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

/// The tensor type of an operand that has to be there and be a tensor of such elements.
///
/// # Errors
/// If it is left out, no tensor, or has other elements.
pub fn tensor(call: &TypeCall<'_>, i: usize, elements: Elements) -> Result<TensorType, TypeError> {
    let ty = call.operand(i).ok_or_else(|| TypeError::operand(i, format!("operand {i} is missing")))?;
    let Some(t) = call.cx.types.as_tensor(ty) else {
        let found = call.cx.type_text(ty);
        let error = TypeError::operand(i, format!("operand {i} is {found}, but a tensor is wanted"));
        return Err(if ty == call.cx.types.any() {
            error.with_help("a value of type Any is turned into a tensor by `match_cast(…, to=Tensor[…])`")
        } else {
            error
        });
    };
    if !elements.accepts(t.dtype) {
        let (found, wanted) = (t.dtype, elements.describe());
        return Err(TypeError::operand(i, format!("operand {i} has elements of {found}, but {wanted} are wanted")));
    }
    Ok(t.clone())
}

/// Whether an operand is there and is a tensor of such elements.
pub(crate) fn is_tensor(call: &TypeCall<'_>, i: usize, elements: Elements) -> bool {
    let tensor = call.operand(i).and_then(|ty| call.cx.types.as_tensor(ty));
    tensor.is_some_and(|t| elements.accepts(t.dtype))
}

/// The tensor type of an operand that may be left out.
///
/// # Errors
/// If it is there and no tensor of such elements.
pub fn optional(call: &TypeCall<'_>, i: usize, elements: Elements) -> Result<Option<TensorType>, TypeError> {
    match call.operand(i) {
        Some(_) => tensor(call, i, elements).map(Some),
        None => Ok(None),
    }
}

/// Fails unless operand `i` has the element type of operand 0.
///
/// # Errors
/// If it has not.
pub fn same_elements(first: &TensorType, other: &TensorType, i: usize) -> Result<(), TypeError> {
    if first.dtype == other.dtype {
        return Ok(());
    }
    let (a, b) = (first.dtype, other.dtype);
    Err(TypeError::operand(i, format!("operand {i} has elements of {b}, but operand 0 has elements of {a}"))
        .with_help(format!("convert one: `astype(…, dtype={a})`")))
}

/// A tensor type of known or unknown rank.
pub fn result(cx: &mut Context, dtype: DType, shape: Option<&[DimId]>) -> TypeId {
    match shape {
        Some(shape) => cx.types.tensor(dtype, shape),
        None => cx.types.unranked(dtype),
    }
}

/// The common value of two dimensions that have to be equal; `None` if they are known to differ.
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
        // Both hold; the constant says more.
        _ => Some(if dims.as_constant(b).is_some() { b } else { a }),
    }
}

/// The dimension that two broadcast to; `None` if they are known not to.
pub(crate) fn broadcast_dims(cx: &mut Context, a: DimId, b: DimId) -> Option<DimId> {
    let dims = &cx.types.dims;
    if a == b {
        return Some(a);
    }
    match (dims.as_constant(a), dims.as_constant(b)) {
        (Some(1), _) => Some(b),
        (_, Some(1)) => Some(a),
        (Some(_), Some(_)) => None,
        // The other one is 1 or the same, or the call fails.
        (Some(_), None) => Some(a),
        (None, Some(_)) => Some(b),
        (None, None) => Some(dims.unknown()),
    }
}

/// The shape that the operands (numbered) broadcast to; `None` if the rank of one is not known.
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

/// The type of an operator that works element by element: all operands (those that are left out apart) have one element type and
/// broadcast, and the result has that type too.
///
/// # Errors
/// If they have not, do not, or the elements are not such.
pub fn elementwise(call: &mut TypeCall<'_>, elements: Elements) -> Result<TypeId, TypeError> {
    let first = call.operand(0);
    let is_same = |(i, o): (usize, &Operand)| o.absent || (Some(o.ty) == first && is_tensor(call, i, elements));
    if let Some(ty) = first
        && call.operands.iter().enumerate().all(is_same)
    {
        return Ok(ty);
    }
    let (dtype, shape) = broadcast_all(call, elements)?;
    Ok(result(call.cx, dtype, shape.as_deref()))
}

/// Likewise, with a result of another element type.
///
/// # Errors
/// As [`elementwise`].
pub fn elementwise_to(call: &mut TypeCall<'_>, elements: Elements, dtype: DType) -> Result<TypeId, TypeError> {
    let (_, shape) = broadcast_all(call, elements)?;
    Ok(result(call.cx, dtype, shape.as_deref()))
}

/// The element type of all operands, and the shape that they broadcast to.
fn broadcast_all(call: &mut TypeCall<'_>, elements: Elements) -> Result<(DType, Option<Extents>), TypeError> {
    let first = tensor(call, 0, elements)?;
    let mut others: SmallVec<[(usize, TensorType); 3]> = SmallVec::new();
    for i in 1..call.operands.len() {
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

/// An error about two dimensions that differ.
pub(crate) fn differ(cx: &Context, operand: usize, what: &str, found: DimId, wanted: DimId) -> TypeError {
    let (found, wanted) = (cx.dim_text(found), cx.dim_text(wanted));
    TypeError::operand(operand, format!("{what} of operand {operand} is {found}, but {wanted} is wanted"))
}

/// Fails if an operand is known to have another rank.
///
/// # Errors
/// If it has.
pub fn expect_rank(tensor: &TensorType, operand: usize, rank: usize) -> Result<(), TypeError> {
    match &tensor.shape {
        Some(shape) if shape.len() != rank => Err(TypeError::operand(
            operand,
            format!("operand {operand} has rank {}, but rank {rank} is wanted", shape.len()),
        )),
        _ => Ok(()),
    }
}

/// Fails if an operand is known not to have just one element.
pub(crate) fn expect_one(cx: &Context, tensor: &TensorType, operand: usize) -> Result<(), TypeError> {
    let is_other = |&dim: &DimId| as_extent(cx, dim).is_some_and(|extent| extent != 1);
    match &tensor.shape {
        Some(shape) if shape.iter().any(is_other) => {
            let found = shape_text(&shape.iter().map(|&d| cx.dim_text(d)).collect::<Vec<_>>());
            Err(TypeError::operand(operand, format!("operand {operand} has shape {found}, but one number is wanted")))
        }
        _ => Ok(()),
    }
}

/// The extents of an operand of known rank, `?` each where the rank is not known.
pub(crate) fn ranked(cx: &Context, tensor: &TensorType, operand: usize, rank: usize) -> Result<Extents, TypeError> {
    expect_rank(tensor, operand, rank)?;
    Ok(tensor.shape.clone().unwrap_or_else(|| smallvec::smallvec![cx.types.dims.unknown(); rank]))
}

/// A dimension as an extent, if it is a constant that is not negative.
pub(crate) fn as_extent(cx: &Context, dim: DimId) -> Option<usize> {
    cx.types.dims.as_constant(dim).and_then(|c| usize::try_from(c).ok())
}

/// A constant dimension; `?` if it is too large to be one.
pub(crate) fn extent(cx: &mut Context, extent: usize) -> DimId {
    match i64::try_from(extent) {
        Ok(e) => cx.types.dims.constant(e),
        Err(_) => cx.types.dims.unknown(),
    }
}

/// An axis of an operand, counted from the start; `None` if its rank is not known.
pub(crate) fn axis_of(axis: i64, x: &TensorType) -> Result<Option<usize>, Failure> {
    x.shape.as_ref().map(|s| resolve_axis(axis, s.len())).transpose()
}

/// An attribute that the row gives a default or requires.
pub(crate) fn given<T>(value: Option<T>, name: &str) -> Result<T, Failure> {
    value.ok_or_else(|| Failure::Mismatch(format!("attribute `{name}` has no value")))
}

/// Typed access to attributes that the row gives a default or requires, in type rules and kernels.
pub trait Given {
    /// An integer.
    ///
    /// # Errors
    /// If there is none.
    fn given_int(&self, name: &str) -> Result<i64, Failure>;
    /// A list of integers.
    ///
    /// # Errors
    /// If there is none.
    fn given_ints(&self, name: &str) -> Result<Vec<i64>, Failure>;
    /// A float64.
    ///
    /// # Errors
    /// If there is none.
    fn given_float(&self, name: &str) -> Result<f64, Failure>;
    /// A boolean.
    ///
    /// # Errors
    /// If there is none.
    fn given_bool(&self, name: &str) -> Result<bool, Failure>;
}

impl Given for AttrReader<'_> {
    fn given_int(&self, name: &str) -> Result<i64, Failure> {
        given(self.int(name), name)
    }
    fn given_ints(&self, name: &str) -> Result<Vec<i64>, Failure> {
        given(self.ints(name), name)
    }
    fn given_float(&self, name: &str) -> Result<f64, Failure> {
        given(self.float(name), name)
    }
    fn given_bool(&self, name: &str) -> Result<bool, Failure> {
        given(self.bool(name), name)
    }
}

/// What a kernel with one result returns.
///
/// # Errors
/// As the result says.
pub fn one<E: Into<KernelError>>(result: Result<Literal, E>) -> Result<Vec<Literal>, KernelError> {
    Ok(vec![result.map_err(Into::into)?])
}
