//! Scans.

use anfora_ir::Literal;

use super::{Conversion, Conversions, Lowered, NodeExport, NodeImport, OPSETS, as_int64, int_attribute, with_rank};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

/// The attributes, which have the same names in our operators.
const FLAGS: [&str; 2] = ["exclusive", "reverse"];

pub(super) fn register(table: &mut Conversions) {
    for (onnx, since, native) in [("CumSum", 11, "cumsum"), ("CumProd", 26, "cumprod")] {
        let row = Conversion::new(onnx, since..=*OPSETS.end(), native).import(import_scan).export(export_scan);
        table.register(row.attributes(&[("exclusive", AttributeType::Int), ("reverse", AttributeType::Int)]));
    }
}

fn import_scan(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let mut operands = vec![n.required(0)?];
    let mut attrs = Vec::new();
    match n.literal(1) {
        Ok(_) => {
            let axis = n.ints_operand(1)?;
            let &[axis] = axis.as_slice() else { return Err(because("its axis is not one number")) };
            attrs.push(("axis", n.cx().int_attr(axis)));
        }
        Err(_) => operands.push(n.required(1)?),
    }
    for name in FLAGS {
        attrs.push((name, n.bool_attr(n.int(name).unwrap_or(0) != 0)));
    }
    n.call(operands, attrs)
}

fn export_scan(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis");
    let mut inputs = n.operands()?;
    if inputs.len() > 1 {
        let axis = as_int64(n, 1)?;
        inputs[1] = with_rank(n, 1, axis, 0)?;
    } else {
        if axis.is_none() {
            let flat = n.ints_constant(&[-1], usize::MAX)?;
            inputs[0] = n.step("Reshape", vec![inputs[0].clone(), flat], Vec::new());
        }
        inputs.push(n.named_constant(&Literal::scalar(axis.unwrap_or(0)), 1)?);
    }
    let set = FLAGS.into_iter().filter(|name| n.attrs().bool(name).unwrap_or(false));
    let attributes = set.map(|name| int_attribute(name, 1)).collect();
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}
