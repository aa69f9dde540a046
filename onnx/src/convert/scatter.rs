//! Operators that write elements at positions given by an operand.

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, int_attribute, str_attribute, with_indices,
    with_int64,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

const AXIS: &[(&str, AttributeType)] = &[("axis", AttributeType::Int)];
const REDUCED: &[(&str, AttributeType)] = &[("axis", AttributeType::Int), ("reduction", AttributeType::String)];

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("Scatter", 9..=10, "scatter_elements")
            .import(import_scatter)
            .export(export_scatter)
            .attributes(AXIS),
        Conversion::new("ScatterElements", 11..=NEWEST, "scatter_elements")
            .import(import_scatter)
            .export(export_scatter)
            .attributes(REDUCED),
        Conversion::new("ScatterND", 11..=NEWEST, "scatter_nd")
            .import(import_scatter)
            .export(export_scatter)
            .attributes(&[("reduction", AttributeType::String)]),
    ];
    for row in rows {
        table.register(row);
    }
}

/// Returns the first version that has the reduction.
fn reduction_since(reduction: &str) -> i64 {
    match reduction {
        "none" => 11,
        "add" | "mul" => 16,
        _ => 18,
    }
}

fn import_scatter(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if !n.dtype(1)?.is_integer() {
        return n.unknown_elements(1);
    }
    let operands = n.all_operands()?;
    let reduction = match n.attribute("reduction") {
        Some(_) => n.str("reduction").unwrap_or("not a text").to_owned(),
        None => "none".to_owned(),
    };
    let is_known = matches!(reduction.as_str(), "none" | "add" | "mul" | "max" | "min");
    let is_said = n.attribute("reduction").is_none() || n.opset() >= reduction_since(&reduction).max(16);
    if !is_known || !is_said {
        return n.unknown_value("reduction", reduction);
    }
    let ours = if reduction == "none" { "update" } else { &reduction };
    let mut attrs = vec![("reduction", n.cx().str_attr(ours))];
    if n.native() == "scatter_elements" {
        let axis = n.int("axis").unwrap_or(0);
        if axis < 0 && n.opset() < 11 {
            return Err(because("negative axes are of version 11"));
        }
        attrs.push(("axis", n.cx().int_attr(axis)));
    }
    n.call(operands, attrs)
}

fn export_scatter(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = Vec::new();
    if let Some(axis) = n.attrs().int("axis").filter(|&a| a != 0) {
        if axis < 0 {
            n.needs_opset(11)?;
        }
        attributes.push(int_attribute("axis", axis));
    }
    if let Some(reduction) = n.attrs().str("reduction").filter(|&r| r != "update") {
        n.needs_opset(reduction_since(reduction))?;
        attributes.push(str_attribute("reduction", reduction));
    }
    let inputs = if n.native() == "scatter_nd" { with_int64(n)? } else { with_indices(n)? };
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}
