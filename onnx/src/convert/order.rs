//! Selection by order.

use anfora_ir::Literal;

use super::{Conversion, Conversions, Lowered, NodeExport, NodeImport, OPSETS, as_int64, int_attribute, with_rank};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeType;

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("TopK", 7..=9, "topk")
            .import(import_with_attribute)
            .export(export_with_attribute)
            .attributes(&[("axis", AttributeType::Int), ("k", AttributeType::Int)]),
        Conversion::new("TopK", 10..=10, "topk")
            .import(import_with_operand)
            .export(export_with_operand)
            .attributes(&[("axis", AttributeType::Int)]),
        Conversion::new("TopK", 11..=*OPSETS.end(), "topk")
            .import(import_with_operand)
            .export(export_with_operand)
            .attributes(&[
                ("axis", AttributeType::Int),
                ("largest", AttributeType::Int),
                ("sorted", AttributeType::Int),
            ]),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_with_attribute(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let k = n.needed("k", n.int("k"))?;
    let k = n.constant(Literal::splat(&[1], k));
    let axis = n.int("axis").unwrap_or(-1);
    let attrs = vec![("axis", n.cx().int_attr(axis))];
    n.call(vec![x, k], attrs)
}

fn import_with_operand(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let axis = n.int("axis").unwrap_or(-1);
    let mut attrs = vec![("axis", n.cx().int_attr(axis))];
    for name in ["largest", "sorted"] {
        attrs.push((name, n.bool_attr(n.int(name).unwrap_or(1) != 0)));
    }
    n.call(operands, attrs)
}

/// Writes `TopK` of a version in which `k` is an attribute and only the largest elements can be
/// selected.
fn export_with_attribute(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(-1);
    takes_the_largest(n)?;
    let Some(&[k, ..]) = n.result_extents(axis).as_deref() else { return n.needs_opset(10) };
    let x = n.operand(0)?;
    n.emit("TopK", vec![x], vec![int_attribute("axis", axis), int_attribute("k", k)]);
    Ok(())
}

/// Checks that a call selects the largest elements. Versions before 11 can only do that, and always
/// sort the results.
fn takes_the_largest(n: &NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().bool("largest").unwrap_or(true) { Ok(()) } else { n.needs_opset(11) }
}

fn export_with_operand(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = vec![int_attribute("axis", n.attrs().int("axis").unwrap_or(-1))];
    if n.opset() < 11 {
        takes_the_largest(n)?;
    } else {
        let unset = ["largest", "sorted"].into_iter().filter(|name| !n.attrs().bool(name).unwrap_or(true));
        attributes.extend(unset.map(|name| int_attribute(name, 0)));
    }
    let k = as_int64(n, 1)?;
    let inputs = vec![n.operand(0)?, with_rank(n, 1, k, 1)?];
    n.emit("TopK", inputs, attributes);
    Ok(())
}
