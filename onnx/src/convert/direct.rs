//! Rules that many rows share: calls and nodes on the same operands, and operands in the forms that
//! ONNX takes.

use anfora_ir::DType;

use super::{Lowered, NodeExport, NodeImport, float_attribute, int_attribute};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeProto;

/// The number of float32 in the format.
pub(crate) const FLOAT: i32 = 1;
/// The number of int64 in the format.
const INT64: i32 = 7;

/// Returns a call on the same operands, without attributes.
pub(crate) fn import_direct(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    n.call(operands, Vec::new())
}

/// Writes a node on the same operands, without attributes.
pub(crate) fn export_direct(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, Vec::new());
    Ok(())
}

/// Returns the name of operand `i`, an integer tensor, cast to int64 if needed.
pub(crate) fn as_int64(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    let name = n.operand(i)?;
    match n.dtype(i) {
        Some(DType::Int64) => Ok(name),
        _ => Ok(n.step("Cast", vec![name], vec![int_attribute("to", i64::from(INT64))])),
    }
}

/// Returns the name of operand `i`, a tensor of indices. Integers other than int32 and int64 are
/// cast to int64.
pub(crate) fn as_indices(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    if n.dtype(i) == Some(DType::Int32) { n.operand(i) } else { as_int64(n, i) }
}

/// Returns the names of all operands. The second operand, if there is one, is cast to int64 if
/// needed.
pub(crate) fn with_int64(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let mut inputs = n.operands()?;
    if let Some(second) = inputs.get_mut(1) {
        *second = as_int64(n, 1)?;
    }
    Ok(inputs)
}

/// Returns the names of all operands. The second operand, if there is one, holds indices (see
/// [`as_indices`]).
pub(crate) fn with_indices(n: &mut NodeExport<'_>) -> Result<Vec<String>, ExportProblem> {
    let mut inputs = n.operands()?;
    if let Some(indices) = inputs.get_mut(1) {
        *indices = as_indices(n, 1)?;
    }
    Ok(inputs)
}

/// Returns the name of an operand of one element, reshaped to `rank` if needed.
pub(crate) fn with_rank(n: &mut NodeExport<'_>, i: usize, name: String, rank: usize) -> Result<String, ExportProblem> {
    if n.partial_extents(i).is_some_and(|e| e.len() == rank) {
        return Ok(name);
    }
    let shape = n.ints_constant(&vec![1; rank], usize::MAX)?;
    Ok(n.step("Reshape", vec![name, shape], Vec::new()))
}

/// Returns a float attribute of a call as an attribute of a node. The format stores it as float32.
/// On elements of float64 the float32 must equal the value, unless the value is the default of our
/// operator: the default stands for the float32 of the format.
pub(crate) fn exact_float(n: &NodeExport<'_>, name: &'static str, value: f64) -> Result<AttributeProto, ExportProblem> {
    let held = f64::from(value as f32);
    // Attributes that equal their default are not stated.
    let is_default = n.attrs().raw(name).is_none() && n.attrs().float(name) == Some(value);
    let is_rounded = held.to_bits() != value.to_bits() && !value.is_nan();
    if n.dtype(0) == Some(DType::Float64) && is_rounded && !is_default {
        return Err(ExportProblem::Rounded { operator: n.native().to_owned(), name, value, held });
    }
    Ok(float_attribute(name, value))
}
