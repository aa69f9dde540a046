//! Normalizations, softmax and dropout.

use anfora_ir::{DType, Literal};

use super::{Conversion, Conversions, Lowered, NEWEST, OPSETS, float_attribute, int_attribute};
use crate::error::ExportProblem;
use crate::export::NodeExport;
use crate::import::{Kept, NodeImport};
use crate::proto::AttributeType;

const AXIS: &[(&str, AttributeType)] = &[("axis", AttributeType::Int)];

pub(super) fn register(table: &mut Conversions) {
    for (onnx, native) in [("Softmax", "nn.softmax"), ("LogSoftmax", "nn.log_softmax")] {
        let flattening = Conversion::new(onnx, 7..=12, native);
        table.register(flattening.import(import_flattening_softmax).export(export_flattening_softmax).attributes(AXIS));
        let row = Conversion::new(onnx, 13..=NEWEST, native);
        table.register(row.import(import_softmax).export(export_softmax).attributes(AXIS));
    }
    let rows = [
        Conversion::new("BatchNormalization", OPSETS, "nn.batch_norm")
            .import(import_batch_norm)
            .export(export_batch_norm)
            .attributes(&[("epsilon", AttributeType::Float), ("training_mode", AttributeType::Int)])
            .carried(&["momentum"]),
        Conversion::new("LayerNormalization", 17..=NEWEST, "nn.layer_norm")
            .import(import_layer_norm)
            .export(export_layer_norm)
            .attributes(&[
                ("axis", AttributeType::Int),
                ("epsilon", AttributeType::Float),
                ("stash_type", AttributeType::Int),
            ]),
        Conversion::new("LRN", OPSETS, "nn.lrn").import(import_lrn).export(export_lrn).attributes(&[
            ("alpha", AttributeType::Float),
            ("beta", AttributeType::Float),
            ("bias", AttributeType::Float),
            ("size", AttributeType::Int),
        ]),
        Conversion::new("Dropout", 7..=11, "nn.dropout")
            .import(import_dropout)
            .export(export_dropout)
            .attributes(&[("ratio", AttributeType::Float)]),
        Conversion::new("Dropout", 12..=NEWEST, "nn.dropout")
            .import(import_dropout_with_operands)
            .export(export_dropout_with_operands)
            .carried(&["seed"]),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_softmax(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let axis = n.int("axis").unwrap_or(-1);
    softmax_over(n, axis)
}

fn softmax_over(n: &mut NodeImport<'_, '_>, axis: i64) -> Result<Lowered, Kept> {
    let operands = n.all_operands()?;
    n.float_dtype(0)?;
    let axis = n.cx().int_attr(axis);
    n.call(operands, vec![("axis", axis)])
}

/// Before version 13 the axes from the given one on count as one. That is the same where all but the first of them are 1.
fn import_flattening_softmax(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let axis = n.int("axis").unwrap_or(1);
    let extents = n.extents(0)?;
    let position = usize::try_from(if axis < 0 { axis + extents.len() as i64 } else { axis }).ok();
    let rest = position.and_then(|p| extents.get(p.checked_add(1)?..));
    let rest = rest.ok_or_else(|| Kept::because(format!("axis {axis} is out of range")))?;
    match rest.iter().all(|&e| e == Some(1)) {
        true => softmax_over(n, axis),
        false => Err(Kept::because("before version 13 it is over all axes from the given one on")),
    }
}

fn export_softmax(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(-1);
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, vec![int_attribute("axis", axis)]);
    Ok(())
}

fn export_flattening_softmax(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(-1);
    let extents = n.partial_extents(0).unwrap_or_default();
    // A negative axis came with version 11.
    let position = if axis < 0 { axis + extents.len() as i64 } else { axis };
    let rest = usize::try_from(position).ok().and_then(|p| extents.get(p + 1..));
    if !rest.is_some_and(|r| r.iter().all(|&e| e == Some(1))) {
        n.needs_opset(13)?;
    }
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, vec![int_attribute("axis", position)]);
    Ok(())
}

/// All operands have the element type of the first.
fn has_one_float(n: &mut NodeImport<'_, '_>) -> Result<DType, Kept> {
    let dtype = n.float_dtype(0)?;
    for i in 1..n.operand_count() {
        if n.operand(i).is_some() && n.dtype(i)? != dtype {
            return Err(Kept::because(format!("input {i} does not have the element type of the first")));
        }
    }
    Ok(dtype)
}

fn import_batch_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let dtype = has_one_float(n)?;
    // More outputs, or this attribute, mean training.
    if n.output_count() != 1 || n.int("training_mode").unwrap_or(0) != 0 {
        return Err(Kept::because("it is the form for training"));
    }
    let operands = n.all_operands()?;
    let epsilon = n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype);
    n.call(operands, vec![("epsilon", epsilon)])
}

fn export_batch_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().int("axis").unwrap_or(1) != 1 {
        return Err(ExportProblem::Unsupported("`nn.batch_norm` over an axis other than 1".to_owned()));
    }
    let epsilon = n.attrs().float("epsilon").unwrap_or(1e-5);
    let inputs = n.operands()?;
    n.emit("BatchNormalization", inputs, vec![float_attribute("epsilon", epsilon)]);
    Ok(())
}

fn import_layer_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let dtype = has_one_float(n)?;
    let rank = n.rank(0)? as i64;
    let axis = n.int("axis").unwrap_or(-1);
    let first = if axis < 0 { axis + rank } else { axis };
    // The statistics are computed in float32, which is what we do for every type but float64.
    if n.output_count() != 1 || n.int("stash_type").unwrap_or(1) != 1 || dtype == DType::Float64 {
        return Err(Kept::because("its statistics are not in float32, or are outputs"));
    }
    let extents = n.extents(0)?;
    let normalized = usize::try_from(first).ok().and_then(|first| extents.get(first..)).unwrap_or_default();
    if normalized.is_empty() {
        return Err(Kept::because(format!("axis {axis} is out of range")));
    }
    for i in 1..n.operand_count() {
        // ONNX lets them broadcast, our operator does not.
        if n.operand(i).is_some() && (n.extents(i)? != normalized || normalized.contains(&None)) {
            return Err(Kept::because(format!("input {i} is broadcast")));
        }
    }
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    let axes: Vec<i64> = (first - rank..0).collect();
    let axes = n.cx().ints_attr(&axes);
    let epsilon = n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype);
    n.call(operands, vec![("axes", axes), ("epsilon", epsilon)])
}

fn export_layer_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axes = n.attrs().ints("axes").unwrap_or_else(|| vec![-1]);
    if n.dtype(0) == Some(DType::Float64) {
        return Err(ExportProblem::Unsupported("`nn.layer_norm` of float64".to_owned()));
    }
    let axis = axes.first().copied().unwrap_or(-1);
    let epsilon = n.attrs().float("epsilon").unwrap_or(1e-5);
    let inputs = n.operands()?;
    let attributes = vec![int_attribute("axis", axis), float_attribute("epsilon", epsilon)];
    n.emit("LayerNormalization", inputs, attributes);
    Ok(())
}

const LRN_FLOATS: [(&str, f32); 3] = [("alpha", 0.0001), ("beta", 0.75), ("bias", 1.0)];

fn import_lrn(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let dtype = has_one_float(n)?;
    let operands = n.all_operands()?;
    let size = n.needed("size", n.int("size"))?;
    let mut attrs = vec![("size", n.cx().int_attr(size))];
    for (name, default) in LRN_FLOATS {
        let value = n.float(name).unwrap_or(default);
        attrs.push((name, n.float_attr(value, dtype)));
    }
    n.call(operands, attrs)
}

fn export_lrn(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = vec![int_attribute("size", n.attrs().int("size").unwrap_or(1))];
    for (name, default) in LRN_FLOATS {
        attributes.push(float_attribute(name, n.attrs().float(name).unwrap_or(f64::from(default))));
    }
    let inputs = n.operands()?;
    n.emit("LRN", inputs, attributes);
    Ok(())
}

fn import_dropout(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    // Before version 10 the mask was not a boolean tensor.
    if n.opset() < 10 && n.is_output_used(1) {
        return Err(Kept::because("before version 10 its mask is not boolean"));
    }
    let dtype = n.float_dtype(0)?;
    let operands = n.all_operands()?;
    let ratio = n.float_attr(n.float("ratio").unwrap_or(0.5), dtype);
    n.call(operands, vec![("ratio", ratio)])
}

fn import_dropout_with_operands(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let x = n.required(0)?;
    let dtype = n.float_dtype(0)?;
    if n.operand(2).is_some() && n.literal(2)?.as_scalar::<bool>() != Some(false) {
        return Err(Kept::because("it is the form for training"));
    }
    let ratio = match n.operand(1) {
        Some(_) => n.literal(1)?.as_scalar::<f32>().ok_or_else(|| Kept::because("its ratio is not a float32"))?,
        None => 0.5,
    };
    let ratio = n.float_attr(ratio, dtype);
    n.call(vec![x], vec![("ratio", ratio)])
}

fn export_dropout(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let ratio = n.attrs().float("ratio").unwrap_or(0.5);
    let inputs = n.operands()?;
    n.drop_unused_outputs(1);
    n.emit("Dropout", inputs, vec![float_attribute("ratio", ratio)]);
    Ok(())
}

fn export_dropout_with_operands(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let ratio = n.attrs().float("ratio").unwrap_or(0.5);
    let mut inputs = n.operands()?;
    if ratio != 0.5 {
        inputs.push(n.named_constant(&Literal::scalar(ratio as f32), 1)?);
    }
    n.drop_unused_outputs(1);
    n.emit("Dropout", inputs, Vec::new());
    Ok(())
}
