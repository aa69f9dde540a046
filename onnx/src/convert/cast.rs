//! Conversion between element types.

use anfora_ir::{Attr, DType, ExprId};

use super::{Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, int_attribute, str_attribute};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};
use crate::tensor::{dtype_of, number_of};

/// The attributes that affect the conversion to floats of 8 bits.
const ROUNDING: &[(&str, AttributeType)] = &[("saturate", AttributeType::Int), ("round_mode", AttributeType::String)];
const CAST: &[(&str, AttributeType)] =
    &[("to", AttributeType::Int), ("saturate", AttributeType::Int), ("round_mode", AttributeType::String)];
/// The versions of `Cast` that have each of these attributes.
const SATURATE_SINCE: i64 = 19;
const ROUND_MODE_SINCE: i64 = 24;

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("CastLike", 15..=NEWEST, "astype")
            .import(import_cast_like)
            .attributes(ROUNDING)
            .number_operands(),
        Conversion::new("Cast", OPSETS, "astype")
            .import(import_cast)
            .export(export_cast)
            .attributes(CAST)
            .number_operands(),
        Conversion::new("BitCast", 26..=NEWEST, "bitcast")
            .import(import_bitcast)
            .export(export_bitcast)
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
    if !dtype.has_kernels() && !dtype.is_small_number() {
        return Err(because(format!("it casts to {dtype}, with which nothing is computed")));
    }
    let saturate = match n.int("saturate") {
        None => true,
        Some(bit @ (0 | 1)) => bit == 1,
        Some(other) => return n.unknown_value("saturate", other),
    };
    let mut attrs = vec![("dtype", n.cx().attr(Attr::DType(dtype)))];
    // For other types than floats of 8 bits, the attributes have no effect.
    if !saturate {
        attrs.push(("saturate", n.cx().attr(Attr::Bool(false))));
    }
    if let Some(mode) = n.str("round_mode").map(str::to_owned) {
        attrs.push(("round_mode", n.cx().str_attr(&mode)));
    }
    n.call(operands, attrs)
}

fn is_rounded_to_eight_bits(dtype: DType) -> bool {
    dtype.is_small_number() && dtype.bits() == 8
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

/// Returns the attribute that states the element type of the result.
fn to_attribute(n: &NodeExport<'_>) -> Result<AttributeProto, ExportProblem> {
    let dtype = n.attrs().dtype("dtype").and_then(number_of);
    let to = dtype.ok_or_else(|| ExportProblem::Unsupported(format!("`{}` to this element type", n.native())))?;
    Ok(int_attribute("to", i64::from(to)))
}

fn export_cast(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    let dtype = attrs.dtype("dtype");
    let mut attributes = vec![to_attribute(n)?];
    if attrs.bool("saturate") == Some(false) {
        if dtype.is_some_and(is_rounded_to_eight_bits) {
            n.needs_opset(SATURATE_SINCE)?;
        }
        attributes.extend((n.opset() >= SATURATE_SINCE).then(|| int_attribute("saturate", 0)));
    }
    if let Some(mode) = attrs.str("round_mode").filter(|&m| m != "up") {
        if dtype == Some(DType::Float8E8M0) {
            n.needs_opset(ROUND_MODE_SINCE)?;
        }
        attributes.extend((n.opset() >= ROUND_MODE_SINCE).then(|| str_attribute("round_mode", mode)));
    }
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

fn export_bitcast(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let (inputs, to) = (n.operands()?, to_attribute(n)?);
    n.emit(n.onnx(), inputs, vec![to]);
    Ok(())
}
