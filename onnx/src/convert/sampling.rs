//! Sampling of images, selection of boxes, and windows of signals.

use anfora_ir::{Attr, DType};

use super::{Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, int_attribute, str_attribute};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeType;
use crate::tensor::{dtype_of, number_of};

const GRID_SAMPLE: &[(&str, AttributeType)] =
    &[("align_corners", AttributeType::Int), ("mode", AttributeType::String), ("padding_mode", AttributeType::String)];
/// The names of modes before version 20, and since.
const MODES: [(&str, &str); 3] = [("bilinear", "linear"), ("bicubic", "cubic"), ("nearest", "nearest")];
/// The windows, with the names of our operator.
const WINDOWS: [(&str, &str); 3] =
    [("HannWindow", "hann"), ("HammingWindow", "hamming"), ("BlackmanWindow", "blackman")];

pub(super) fn register(table: &mut Conversions) {
    table.register(Conversion::new("GridSample", 20..=NEWEST, "image.grid_sample").same(GRID_SAMPLE));
    table.register(
        Conversion::new("GridSample", 16..=19, "image.grid_sample")
            .import(import_flat_grid_sample)
            .export(export_flat_grid_sample)
            .attributes(GRID_SAMPLE),
    );
    table.register(
        Conversion::new("NonMaxSuppression", 10..=NEWEST, "image.non_max_suppression")
            .same(&[("center_point_box", AttributeType::Int)]),
    );
    for (onnx, _) in WINDOWS {
        let row = Conversion::new(onnx, 17..=NEWEST, "cosine_window").import(import_window).export(export_window);
        table.register(row.attributes(&[("output_datatype", AttributeType::Int), ("periodic", AttributeType::Int)]));
    }
}

/// Imports the first version of `GridSample`, for images of two axes.
fn import_flat_grid_sample(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let mut attrs = Vec::new();
    let mode = n.str("mode").unwrap_or("bilinear").to_owned();
    match MODES.iter().find(|m| m.0 == mode) {
        Some(&(_, ours)) => attrs.push(("mode", n.cx().str_attr(ours))),
        None => return n.unknown_value("mode", mode),
    }
    if let Some(outside) = n.str("padding_mode").map(str::to_owned) {
        attrs.push(("padding_mode", n.cx().str_attr(&outside)));
    }
    match n.int("align_corners") {
        None => {}
        Some(bit @ (0 | 1)) => attrs.push(("align_corners", n.bool_attr(bit == 1))),
        Some(other) => return n.unknown_value("align_corners", other),
    }
    let operands = n.all_operands()?;
    n.call(operands, attrs)
}

fn export_flat_grid_sample(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.partial_extents(0).is_none_or(|e| e.len() != 4) {
        return n.needs_opset(20);
    }
    let attrs = n.attrs();
    let mode = attrs.str("mode").unwrap_or_default();
    let theirs = MODES.iter().find(|m| m.1 == mode).map_or("bilinear", |m| m.0);
    let mut attributes = vec![str_attribute("mode", theirs)];
    if let Some(outside) = attrs.str("padding_mode").filter(|&p| p != "zeros") {
        attributes.push(str_attribute("padding_mode", outside));
    }
    if attrs.bool("align_corners") == Some(true) {
        attributes.push(int_attribute("align_corners", 1));
    }
    let inputs = n.operands()?;
    n.emit("GridSample", inputs, attributes);
    Ok(())
}

fn import_window(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let onnx = n.row().onnx.clone();
    let kind = WINDOWS.iter().find(|w| w.0 == onnx).map_or("hann", |w| w.1);
    let mut attrs = vec![("kind", n.cx().str_attr(kind))];
    match n.int("periodic") {
        None => {}
        Some(bit @ (0 | 1)) => attrs.push(("periodic", n.bool_attr(bit == 1))),
        Some(other) => return n.unknown_value("periodic", other),
    }
    if let Some(code) = n.int("output_datatype") {
        match i32::try_from(code).ok().and_then(dtype_of).filter(|d| d.has_kernels()) {
            Some(dtype) => attrs.push(("dtype", n.cx().attr(Attr::DType(dtype)))),
            None => return n.unknown_value("output_datatype", code),
        }
    }
    let operands = n.all_operands()?;
    n.call(operands, attrs)
}

fn export_window(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    let kind = attrs.str("kind").unwrap_or_default();
    let unsupported = |what: String| ExportProblem::Unsupported(what);
    let onnx = WINDOWS.iter().find(|w| w.1 == kind).map(|w| w.0);
    let onnx = onnx.ok_or_else(|| unsupported(format!("a window of the kind `{kind}`")))?;
    let mut attributes = Vec::new();
    if let Some(dtype) = attrs.dtype("dtype").filter(|&d| d != DType::Float32) {
        let number = number_of(dtype).ok_or_else(|| unsupported(format!("a window of {dtype}")))?;
        attributes.push(int_attribute("output_datatype", number.into()));
    }
    if attrs.bool("periodic") == Some(false) {
        attributes.push(int_attribute("periodic", 0));
    }
    let inputs = match n.dtype(0) {
        Some(DType::Int32 | DType::Int64) => n.operands()?,
        _ => vec![super::as_int64(n, 0)?],
    };
    n.emit(onnx, inputs, attributes);
    Ok(())
}
