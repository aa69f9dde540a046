//! Operators that cut and extend axes.

use anfora_ir::{DType, Literal};

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, as_indices, as_int64, float_attribute,
    ints_attribute, str_attribute, with_indices, with_int64,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};

const MODE: &[(&str, AttributeType)] = &[("mode", AttributeType::String)];

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("Pad", 7..=10, "nn.pad").import(import_attributes).export(export_attributes).attributes(&[
            ("mode", AttributeType::String),
            ("pads", AttributeType::Ints),
            ("value", AttributeType::Float),
        ]),
        Conversion::new("Pad", 11..=NEWEST, "nn.pad").import(import_operands).export(export_operands).attributes(MODE),
        Conversion::new("CenterCropPad", 18..=NEWEST, "center_crop_pad")
            .import(import_center)
            .export(export_center)
            .attributes(&[("axes", AttributeType::Ints)]),
    ];
    for row in rows {
        table.register(row);
    }
}

fn mode(n: &mut NodeImport<'_, '_>) -> Result<String, UnsupportedReason> {
    let mode = match n.attribute("mode") {
        Some(_) => n.str("mode").unwrap_or("not a text").to_owned(),
        None => "constant".to_owned(),
    };
    let is_known = matches!(mode.as_str(), "constant" | "edge" | "reflect") || (mode == "wrap" && n.opset() >= 19);
    if is_known { Ok(mode) } else { n.unknown_value("mode", &mode).map(|_| mode) }
}

fn import_attributes(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let mode = mode(n)?;
    let x = n.required(0)?;
    let dtype = n.float_dtype(0)?;
    let pads = n.needed("pads", n.ints("pads").map(<[i64]>::to_vec))?;
    let pads = Literal::from_elements(&[pads.len()], &pads).expect("the shape is made of the elements");
    let mut operands = vec![x, n.constant(pads)];
    let value = n.float("value").unwrap_or(0.0);
    if value.to_bits() != 0 {
        let value = match dtype {
            DType::Float64 => Literal::scalar(f64::from(value)),
            DType::Float16 => Literal::scalar(half::f16::from_f32(value)),
            DType::BFloat16 => Literal::scalar(half::bf16::from_f32(value)),
            _ => Literal::scalar(value),
        };
        operands.push(n.constant(value));
    }
    let attrs = vec![("mode", n.cx().str_attr(&mode))];
    n.call(operands, attrs)
}

fn export_attributes(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if !n.is_left_out(3) {
        n.needs_opset(18)?;
    }
    // Before version 11 the numbers are attributes and the elements are floats.
    if n.dtype(0).is_none_or(|d| !d.is_float()) {
        n.needs_opset(11)?;
    }
    let mut attributes = Vec::new();
    match n.literal(1).and_then(Literal::to_i64s) {
        Some(pads) => attributes.push(ints_attribute("pads", &pads)),
        None => n.needs_opset(11)?,
    }
    attributes.extend(mode_attribute(n)?);
    if !n.is_left_out(2) {
        match n.literal(2).and_then(float_of) {
            Some(value) => attributes.push(float_attribute("value", value.into())),
            None => n.needs_opset(11)?,
        }
    }
    let x = n.operand(0)?;
    n.emit("Pad", vec![x], attributes);
    Ok(())
}

/// Returns the value of a literal of equal elements, if float32 holds it exactly.
fn float_of(literal: &Literal) -> Option<f32> {
    let element = Literal::splat_bytes(literal.dtype(), &[], literal.as_splat()?);
    match literal.dtype() {
        DType::Float16 => element.as_scalar::<half::f16>().map(f32::from),
        DType::BFloat16 => element.as_scalar::<half::bf16>().map(f32::from),
        DType::Float64 => {
            let value = element.as_scalar::<f64>()?;
            (f64::from(value as f32).to_bits() == value.to_bits()).then_some(value as f32)
        }
        _ => element.as_scalar::<f32>(),
    }
}

/// Returns the attribute `mode`, unless it has its default value.
fn mode_attribute(n: &NodeExport<'_>) -> Result<Option<AttributeProto>, ExportProblem> {
    let mode = n.attrs().str("mode").filter(|&m| m != "constant");
    if mode == Some("wrap") {
        n.needs_opset(19)?;
    }
    Ok(mode.map(|m| str_attribute("mode", m)))
}

fn import_operands(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let mode = mode(n)?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    if n.dtype(1)? != DType::Int64 {
        return n.unknown_elements(1);
    }
    let (value, axes) = (n.operand(2), n.operand(3));
    if axes.is_some() && n.opset() < 18 {
        return Err(because("axes are of version 18"));
    }
    if value.is_some() || axes.is_some() {
        let value = match value {
            Some(value) => value,
            None => n.none(),
        };
        operands.push(value);
    }
    operands.extend(axes);
    let attrs = vec![("mode", n.cx().str_attr(&mode))];
    n.call(operands, attrs)
}

fn export_operands(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if !n.is_left_out(3) {
        n.needs_opset(18)?;
    }
    let attributes = mode_attribute(n)?.into_iter().collect();
    let mut inputs = with_int64(n)?;
    if let Some(axes) = inputs.get_mut(3) {
        // Checkers read constant axes as int64, although the format allows int32.
        *axes = if n.literal(3).is_some() { as_int64(n, 3)? } else { as_indices(n, 3)? };
    }
    n.emit("Pad", inputs, attributes);
    Ok(())
}

fn import_center(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let axes = n.ints("axes").map(<[i64]>::to_vec);
    let attrs = axes.map(|a| ("axes", n.cx().ints_attr(&a))).into_iter().collect();
    n.call(operands, attrs)
}

fn export_center(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attributes = n.attrs().ints("axes").map(|axes| ints_attribute("axes", &axes)).into_iter().collect();
    let inputs = with_indices(n)?;
    n.emit("CenterCropPad", inputs, attributes);
    Ok(())
}
