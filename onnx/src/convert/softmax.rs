//! Softmax and similar operators.

use super::{Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, int_attribute};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeType;

const AXIS: &[(&str, AttributeType)] = &[("axis", AttributeType::Int)];

pub(super) fn register(table: &mut Conversions) {
    let operators = [("Softmax", "nn.softmax"), ("LogSoftmax", "nn.log_softmax"), ("Hardmax", "nn.hardmax")];
    for (onnx, native) in operators {
        let flattening = Conversion::new(onnx, 7..=12, native);
        table.register(flattening.import(import_flattening).export(export_flattening).attributes(AXIS));
        let row = Conversion::new(onnx, 13..=NEWEST, native);
        table.register(row.import(import).export(export).attributes(AXIS));
    }
}

fn import(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let axis = n.int("axis").unwrap_or(-1);
    over_axis(n, axis)
}

fn over_axis(n: &mut NodeImport<'_, '_>, axis: i64) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    n.float_dtype(0)?;
    let axis = n.cx().int_attr(axis);
    n.call(operands, vec![("axis", axis)])
}

/// Imports an operator before version 13, which treats the axes from the given axis on as a single
/// axis.
fn import_flattening(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let axis = n.int("axis").unwrap_or(1);
    let extents = n.extents(0)?;
    let position = if axis < 0 { axis + extents.len() as i64 } else { axis };
    let first = usize::try_from(position).ok().filter(|&p| p < extents.len());
    let first = first.ok_or_else(|| UnsupportedReason::misfit(format!("axis {axis} is out of range")))?;
    // If all axes but the first of them have extent 1, the operator works along the first.
    if extents[first + 1..].iter().all(|&e| e == Some(1)) {
        return over_axis(n, axis);
    }
    let operands = n.all_operands()?;
    n.float_dtype(0)?;
    let axes: Vec<i64> = (position..extents.len() as i64).collect();
    let axes = n.cx().ints_attr(&axes);
    n.call(operands, vec![("axes", axes)])
}

fn export(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = match n.attrs().ints("axes").as_deref() {
        Some(&[axis]) => axis,
        Some(_) => {
            let what = format!("`{}` over several axes, in versions from 13 on", n.native());
            return Err(ExportProblem::Unsupported(what));
        }
        None => n.attrs().int("axis").unwrap_or(-1),
    };
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, vec![int_attribute("axis", axis)]);
    Ok(())
}

fn export_flattening(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let extents = n.partial_extents(0).unwrap_or_default();
    // Negative axes came with version 11.
    let position = |axis: i64| if axis < 0 { axis + extents.len() as i64 } else { axis };
    let axes = n.attrs().ints("axes");
    let (first, last) = match axes.as_deref() {
        Some([first, .., last]) => (position(*first), position(*last)),
        Some(&[axis]) => (position(axis), position(axis)),
        _ => {
            let axis = position(n.attrs().int("axis").unwrap_or(-1));
            (axis, axis)
        }
    };
    let rest = usize::try_from(last).ok().and_then(|p| extents.get(p.checked_add(1)?..));
    if !rest.is_some_and(|r| r.iter().all(|&e| e == Some(1))) {
        n.needs_opset(13)?;
    }
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, vec![int_attribute("axis", first)]);
    Ok(())
}
