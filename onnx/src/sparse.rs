//! Constants that a file stores in sparse form, by their nonzero elements.
//!
//! A sparse constant becomes a literal with all its elements if these take at most [`DENSE_GROWTH`]
//! times as many bytes as the sparse form, plus [`DENSE_BYTES`]. This keeps memory linear in the
//! file. Otherwise it is kept as a `Constant` node in sparse form.

use anfora_ir::{DType, Literal, element_count};

use crate::attributes::no_value;
use crate::error::{UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType, NodeProto, SparseTensorProto, TensorProto};
use crate::tensor::{TensorError, literal_of, tensor_of};

/// The attribute of a `Constant` node that holds a sparse tensor.
pub(crate) const ATTRIBUTE: &str = "sparse_value";
/// The elements of a sparse constant may take this many times the bytes of its sparse form, plus
/// [`DENSE_BYTES`].
const DENSE_GROWTH: usize = 128;
/// The number of bytes that the elements of a sparse constant may take in addition.
const DENSE_BYTES: usize = 4096;

/// Returns the literal of a sparse tensor.
///
/// # Errors
/// If it is malformed, has a doc string or metadata, or would take much more space as a literal.
pub(crate) fn literal_of_sparse(sparse: &SparseTensorProto) -> Result<Literal, UnsupportedReason> {
    let part = |tensor: &Option<TensorProto>, name: &'static str| {
        let tensor = tensor.as_ref().ok_or_else(|| because(format!("the sparse tensor has no {name}")))?;
        // The names are ignored: the name of an initializer was already taken out.
        if tensor.doc_string.is_some() || !tensor.metadata_props.is_empty() {
            return Err(because(format!("the sparse tensor's {name} have a text or metadata")));
        }
        literal_of(tensor).map_err(|e| because(format!("the sparse tensor's {name}: {e}")))
    };
    let (values, indices) = (part(&sparse.values, "values")?, part(&sparse.indices, "indices")?);
    let dtype = values.dtype();
    if dtype.bits() < 8 {
        return Err(because(format!("it is a sparse tensor of {dtype}")));
    }
    let dims: Option<Vec<usize>> = sparse.dims.iter().map(|&d| usize::try_from(d).ok()).collect();
    let sized = dims.and_then(|dims| Some((element_count(&dims)?, dims)));
    let (elements, shape) = sized.ok_or_else(|| because("the sparse tensor's extents are not those of a tensor"))?;
    let positions = positions(&indices, values.shape(), &shape)
        .ok_or_else(|| because("the sparse tensor's indices are not ascending positions in it, one a value"))?;
    let width = dtype.bits() / 8;
    if positions.is_empty() {
        return Ok(Literal::splat_bytes(dtype, &shape, &vec![0; width]));
    }
    let stored = positions.len() * (width + size_of::<i64>());
    let bytes =
        elements.checked_mul(width).filter(|&b| b <= stored.saturating_mul(DENSE_GROWTH).saturating_add(DENSE_BYTES));
    let Some(bytes) = bytes else {
        return Err(because(format!("the sparse tensor has {} of {elements} elements", positions.len())));
    };
    let mut dense = vec![0; bytes];
    for (element, position) in values.to_bytes().chunks_exact(width).zip(positions) {
        dense[position * width..][..width].copy_from_slice(element);
    }
    Literal::from_bytes(dtype, &shape, dense.into()).map_err(|e| because(e.to_string()))
}

/// Returns the ascending positions of the values among a tensor's elements, without duplicates.
/// `indices` holds positions, or a row of coordinates for each value.
fn positions(indices: &Literal, values: &[usize], shape: &[usize]) -> Option<Vec<usize>> {
    let &[count] = values else { return None };
    if indices.dtype() != DType::Int64 {
        return None;
    }
    let total = element_count(shape)?;
    let numbers = indices.elements::<i64>()?;
    let positions: Option<Vec<usize>> = match *indices.shape() {
        [n] if n == count => numbers.iter().map(|&i| usize::try_from(i).ok().filter(|&i| i < total)).collect(),
        [n, rank] if n == count && rank == shape.len() && rank > 0 => {
            let position = |row: &[i64]| {
                row.iter().zip(shape).try_fold(0usize, |at, (&i, &extent)| {
                    let i = usize::try_from(i).ok().filter(|&i| i < extent)?;
                    at.checked_mul(extent)?.checked_add(i)
                })
            };
            numbers.chunks_exact(rank).map(position).collect()
        }
        _ => None,
    };
    positions.filter(|p| p.is_sorted_by(|a, b| a < b))
}

/// Returns the sparse form of a constant: the elements whose bits are not all zero, and their
/// positions.
///
/// # Errors
/// If the elements are strings, smaller than a byte, or too many.
pub(crate) fn sparse_of(literal: &Literal) -> Result<SparseTensorProto, TensorError> {
    let (dtype, shape) = (literal.dtype(), literal.shape());
    let too_large = || TensorError::TooLarge(shape.to_vec());
    let width = dtype.bits() / 8;
    let is_zero = literal.as_splat().is_some_and(|e| e.iter().all(|&b| b == 0));
    let is_small = literal.expanded_bytes().is_some_and(|b| b <= i32::MAX as usize);
    let whole = match (width, is_zero) {
        (1.., true) => Default::default(),
        (1.., false) if is_small => {
            literal.load()?;
            literal.to_bytes()
        }
        _ => return Err(too_large()),
    };
    let (mut values, mut indices) = (Vec::new(), Vec::<i64>::new());
    for (i, element) in whole.chunks_exact(width).enumerate().filter(|(_, e)| e.iter().any(|&b| b != 0)) {
        values.extend_from_slice(element);
        indices.push(i as i64);
    }
    let count = indices.len();
    let part = |literal: Literal| tensor_of(&literal, i32::MAX as u64);
    let dims: Result<Vec<i64>, _> = shape.iter().map(|&d| i64::try_from(d)).collect();
    Ok(SparseTensorProto {
        values: Some(part(Literal::from_bytes(dtype, &[count], values.into())?)?),
        indices: Some(part(Literal::from_elements(&[count], &indices)?)?),
        dims: dims.map_err(|_| too_large())?,
    })
}

/// Returns the attribute of a `Constant` node that holds a sparse tensor.
pub(crate) fn sparse_attribute(sparse: SparseTensorProto) -> AttributeProto {
    AttributeProto { sparse_tensor: Some(Box::new(sparse)), ..no_value(ATTRIBUTE, AttributeType::SparseTensor) }
}

/// Returns the number of the element type and the extents of the tensor of a `Constant` node.
pub(crate) fn type_of_constant(node: &NodeProto) -> Option<(i32, &[i64])> {
    let attribute = node.attribute.iter().find(|a| matches!(a.name(), ATTRIBUTE | "value"))?;
    match (&attribute.sparse_tensor, &attribute.t) {
        (Some(sparse), _) => Some((sparse.values.as_ref()?.data_type?, &sparse.dims)),
        (None, Some(tensor)) => Some((tensor.data_type?, &tensor.dims)),
        (None, None) => None,
    }
}
