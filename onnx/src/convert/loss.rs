//! Losses.

use super::{
    Conversion, Conversions, Lowered, NodeExport, NodeImport, OPSETS, int_attribute, str_attribute, with_indices,
};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeType;

pub(super) fn register(table: &mut Conversions) {
    let operators =
        [("NegativeLogLikelihoodLoss", "nn.nll_loss"), ("SoftmaxCrossEntropyLoss", "nn.softmax_cross_entropy")];
    for (onnx, native) in operators {
        let row = Conversion::new(onnx, 12..=*OPSETS.end(), native).import(import_loss).export(export_loss);
        table.register(row.attributes(&[("ignore_index", AttributeType::Int), ("reduction", AttributeType::String)]));
    }
}

fn import_loss(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = n.float_dtype(0)?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    if let Some(weights) = n.operand(2) {
        if n.dtype(2)? != dtype {
            return Err(UnsupportedReason::misfit("input 2 does not have the element type of the first"));
        }
        operands.push(weights);
    }
    let mut attrs = Vec::new();
    if n.attribute("reduction").is_some() {
        let reduction = n.str("reduction").unwrap_or_default().to_owned();
        if !matches!(reduction.as_str(), "none" | "mean" | "sum") {
            return n.unknown_value("reduction", reduction);
        }
        attrs.push(("reduction", n.cx().str_attr(&reduction)));
    }
    if let Some(ignored) = n.int("ignore_index") {
        attrs.push(("ignore_index", n.cx().int_attr(ignored)));
    }
    n.call(operands, attrs)
}

fn export_loss(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = with_indices(n)?;
    let mut attributes = vec![str_attribute("reduction", n.attrs().str("reduction").unwrap_or("mean"))];
    attributes.extend(n.attrs().int("ignore_index").map(|i| int_attribute("ignore_index", i)));
    n.drop_unused_outputs(1);
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}
