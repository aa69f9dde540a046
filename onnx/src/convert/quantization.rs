//! Quantization, and products of quantized tensors.

use anfora_ir::{Attr, DType};

use super::window::{CONV, conv_operands, export_windows};
use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, export_direct, import_direct, int_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};
use crate::tensor::{dtype_of, number_of};

pub(super) fn register(table: &mut Conversions) {
    // The attributes depend on the version: an attribute newer than the node's version is not
    // valid.
    table.register(
        Conversion::new("QuantizeLinear", 10..=NEWEST, "quantize")
            .import(import_quantize)
            .export(export_quantize)
            .attributes(&[
                ("axis", AttributeType::Int),
                ("block_size", AttributeType::Int),
                ("output_dtype", AttributeType::Int),
                ("precision", AttributeType::Int),
                ("saturate", AttributeType::Int),
            ])
            .number_operands(),
    );
    table.register(
        Conversion::new("DequantizeLinear", 10..=NEWEST, "dequantize")
            .import(import_dequantize)
            .export(export_dequantize)
            .attributes(&[
                ("axis", AttributeType::Int),
                ("block_size", AttributeType::Int),
                ("output_dtype", AttributeType::Int),
            ])
            .number_operands(),
    );
    table.register(
        Conversion::new("DynamicQuantizeLinear", 11..=NEWEST, "dynamic_quantize")
            .import(import_direct)
            .export(export_dynamic),
    );
    table.register(
        Conversion::new("MatMulInteger", 10..=NEWEST, "matmul_integer").import(import_optional).export(export_direct),
    );
    table.register(
        Conversion::new("QLinearMatMul", 10..=NEWEST, "quantized_matmul").import(import_direct).export(export_scaled),
    );
    for native in ["nn.conv_integer1d", "nn.conv_integer2d", "nn.conv_integer3d"] {
        let row = Conversion::new("ConvInteger", 10..=NEWEST, native).attributes(CONV);
        table.register(row.import(import_conv_integer).export(|n| export_windows(n, "ConvInteger", 1)));
    }
    for native in ["nn.quantized_conv1d", "nn.quantized_conv2d", "nn.quantized_conv3d"] {
        let row = Conversion::new("QLinearConv", 10..=NEWEST, native).attributes(CONV);
        table.register(row.import(import_quantized_conv).export(|n| {
            only_float32(n)?;
            export_windows(n, "QLinearConv", 3)
        }));
    }
}

/// Returns a call on the same operands. Operands from the third on may be left out.
fn import_optional(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = (0..n.operand_count()).map(|i| if i < 2 { n.required(i) } else { Ok(n.operand_or_none(i)) });
    let operands = operands.collect::<Result<_, _>>()?;
    n.call(operands, Vec::new())
}

fn import_quantize(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    import_linear(n, &[("output_dtype", "dtype"), ("precision", "precision")], 21)
}

fn import_dequantize(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    import_linear(n, &[("output_dtype", "dtype")], 23)
}

/// Imports a linear quantization. `typed` is the first version with an attribute for the result
/// type.
fn import_linear(
    n: &mut NodeImport<'_, '_>,
    types: &[(&'static str, &'static str)],
    typed: i64,
) -> Result<Lowered, UnsupportedReason> {
    for (attribute, since) in
        [("axis", 13), ("block_size", 21), ("output_dtype", typed), ("precision", 23), ("saturate", 19)]
    {
        if n.attribute(attribute).is_some() && n.opset() < since {
            return Err(because(format!("the attribute `{attribute}` is younger than the version")));
        }
    }
    n.float_dtype(1)?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    let mut attrs = Vec::new();
    for name in ["axis", "block_size"] {
        if let Some(value) = n.int(name) {
            attrs.push((name, n.cx().int_attr(value)));
        }
    }
    for &(theirs, ours) in types {
        // 0 means that the attribute is not set.
        if let Some(code) = n.int(theirs).filter(|&c| c != 0) {
            let dtype = i32::try_from(code).ok().and_then(dtype_of);
            let Some(dtype) = dtype.filter(|d| d.has_kernels() || d.is_small_number()) else {
                return n.unknown_value(theirs, code);
            };
            attrs.push((ours, n.cx().attr(Attr::DType(dtype))));
        }
    }
    match n.int("saturate") {
        Some(0) => attrs.push(("saturate", n.cx().attr(Attr::Bool(false)))),
        None | Some(1) => {}
        Some(other) => return n.unknown_value("saturate", other),
    }
    n.call(operands, attrs)
}

fn export_quantize(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    // Before there were types for the precision and for the scale, everything was computed in the
    // type of `x`.
    let mut attributes = linear_attributes(n)?;
    if let Some(dtype) = n.attrs().dtype("dtype") {
        // Without a zero point and an output type, the format's result is uint8.
        let has_zero = n.dtype(2).is_some();
        if !has_zero && dtype != DType::UInt8 {
            n.needs_opset(21)?;
            attributes.push(int_attribute("output_dtype", code(dtype)?));
        }
    }
    if let Some(precision) = n.attrs().dtype("precision") {
        n.needs_opset(23)?;
        attributes.push(int_attribute("precision", code(precision)?));
    }
    if n.attrs().bool("saturate") == Some(false) {
        n.needs_opset(19)?;
        attributes.push(int_attribute("saturate", 0));
    }
    if n.dtype(0) != n.dtype(1) && n.opset() < 23 && n.opset() >= 19 {
        n.needs_opset(23)?;
    }
    let inputs = n.operands()?;
    n.emit("QuantizeLinear", inputs, attributes);
    Ok(())
}

fn export_dequantize(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = linear_attributes(n)?;
    if let Some(dtype) = n.attrs().dtype("dtype").filter(|&d| Some(d) != n.dtype(1)) {
        n.needs_opset(23)?;
        attributes.push(int_attribute("output_dtype", code(dtype)?));
    }
    let inputs = n.operands()?;
    n.emit("DequantizeLinear", inputs, attributes);
    Ok(())
}

/// Returns the number of an element type in the format.
fn code(dtype: DType) -> Result<i64, ExportProblem> {
    let number = number_of(dtype).map(i64::from);
    number.ok_or_else(|| ExportProblem::Unsupported(format!("the element type {dtype}")))
}

fn linear_attributes(n: &NodeExport<'_>) -> Result<Vec<AttributeProto>, ExportProblem> {
    let mut attributes = Vec::new();
    if n.opset() < 19 && n.dtype(1) != Some(DType::Float32) {
        n.needs_opset(19)?;
    }
    let axis = n.attrs().int("axis").unwrap_or(1);
    if axis != 1 {
        n.needs_opset(13)?;
        attributes.push(int_attribute("axis", axis));
    }
    let block = n.attrs().int("block_size").unwrap_or(0);
    if block != 0 {
        n.needs_opset(21)?;
        attributes.push(int_attribute("block_size", block));
    }
    Ok(attributes)
}

fn export_dynamic(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    match n.dtype(0) {
        Some(DType::Float32) => export_direct(n),
        _ => Err(ExportProblem::Unsupported(format!("`{}` of elements that are not float32", n.native()))),
    }
}

fn only_float32(n: &NodeExport<'_>) -> Result<(), ExportProblem> {
    match n.dtype(1) {
        Some(DType::Float32) => Ok(()),
        _ => Err(ExportProblem::Unsupported(format!("`{}` with scales that are not float32", n.native()))),
    }
}

fn export_scaled(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.opset() < 21 && n.dtype(1) != Some(DType::Float32) {
        n.needs_opset(21)?;
    }
    export_direct(n)
}

fn import_conv_integer(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let (op, attrs) = conv_operands(n, 1, ["nn.conv_integer1d", "nn.conv_integer2d", "nn.conv_integer3d"])?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend((2..n.operand_count()).map(|i| n.operand_or_none(i)));
    Ok(Lowered::Call { op: op.into(), operands, attrs })
}

fn import_quantized_conv(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let (op, attrs) = conv_operands(n, 3, ["nn.quantized_conv1d", "nn.quantized_conv2d", "nn.quantized_conv3d"])?;
    let mut operands = (0..8).map(|i| n.required(i)).collect::<Result<Vec<_>, _>>()?;
    operands.extend(n.operand(8));
    Ok(Lowered::Call { op: op.into(), operands, attrs })
}
