//! Conversion between element types.

use anfora_ir::{Attr, DType, ExprId};

use super::{Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, int_attribute};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;
use crate::tensor::{dtype_of, number_of};

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("CastLike", 15..=NEWEST, "astype")
            .import(import_cast_like)
            .carried(&["saturate", "round_mode"]),
        Conversion::new("Cast", OPSETS, "astype")
            .import(import_cast)
            .export(export_cast)
            .attributes(&[("to", AttributeType::Int)])
            .carried(&["saturate", "round_mode"]),
        Conversion::new("BitCast", 26..=NEWEST, "bitcast")
            .import(import_bitcast)
            .export(export_cast)
            .attributes(&[("to", AttributeType::Int)])
            .any_operands(),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_cast(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let dtype = stated_dtype(n)?;
    cast(n, operands, dtype)
}

/// Imports `CastLike`. Only the element type of the second operand matters.
fn import_cast_like(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let (x, dtype) = (n.required(0)?, n.dtype(1)?);
    cast(n, vec![x], dtype)
}

fn cast(n: &mut NodeImport<'_, '_>, operands: Vec<ExprId>, dtype: DType) -> Result<Lowered, UnsupportedReason> {
    if !dtype.has_kernels() {
        return Err(because(format!("it casts to {dtype}, with which nothing is computed")));
    }
    let dtype = n.cx().attr(Attr::DType(dtype));
    n.call(operands, vec![("dtype", dtype)])
}

fn import_bitcast(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let (from, to) = (n.dtype(0)?, stated_dtype(n)?);
    if to == DType::Bool && from != to {
        return Err(because("not every byte is a bool"));
    }
    let dtype = n.cx().attr(Attr::DType(to));
    n.call(operands, vec![("dtype", dtype)])
}

/// Returns the element type that the attribute `to` states.
fn stated_dtype(n: &NodeImport<'_, '_>) -> Result<DType, UnsupportedReason> {
    let to = n.needed("to", n.int("to"))?;
    let dtype = i32::try_from(to).ok().and_then(dtype_of);
    dtype.ok_or_else(|| because(format!("it casts to the element type {to}")))
}

fn export_cast(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let dtype = n.attrs().dtype("dtype").and_then(number_of);
    let to = dtype.ok_or_else(|| ExportProblem::Unsupported(format!("`{}` to this element type", n.native())))?;
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, vec![int_attribute("to", i64::from(to))]);
    Ok(())
}
