//! Operators that select elements by the contents of operands: indices, conditions, diagonals.

use anfora_ir::DType;

use super::{
    Conversion, Conversions, FLOAT, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, export_direct, import_direct,
    int_attribute, str_attribute, with_indices, with_int64, with_rank,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

const AXIS: &[(&str, AttributeType)] = &[("axis", AttributeType::Int)];
const BLOCKS: &[(&str, AttributeType)] = &[("blocksize", AttributeType::Int), ("mode", AttributeType::String)];

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("GatherElements", 11..=NEWEST, "gather_elements")
            .import(import_gather_elements)
            .export(export_gather_elements)
            .attributes(AXIS),
        Conversion::new("GatherND", 11..=NEWEST, "gather_nd")
            .import(import_gather_nd)
            .export(export_gather_nd)
            .attributes(&[("batch_dims", AttributeType::Int)]),
        Conversion::new("OneHot", 9..=NEWEST, "one_hot").import(import_one_hot).export(export_one_hot).attributes(AXIS),
        Conversion::new("ReverseSequence", 10..=NEWEST, "reverse_sequence")
            .import(import_reverse_sequence)
            .export(export_reverse_sequence)
            .attributes(&[("time_axis", AttributeType::Int), ("batch_axis", AttributeType::Int)]),
        Conversion::new("NonZero", 9..=NEWEST, "nonzero").import(import_direct).export(export_direct),
        Conversion::new("Compress", 9..=NEWEST, "compress").import(import_found).export(export_found).attributes(AXIS),
        Conversion::new("Unique", 11..=NEWEST, "unique")
            .import(import_found)
            .export(export_found)
            .attributes(&[("axis", AttributeType::Int), ("sorted", AttributeType::Int)]),
        Conversion::new("Trilu", 14..=NEWEST, "tril").export(export_trilu),
        Conversion::new("Trilu", 14..=NEWEST, "triu")
            .import(import_trilu)
            .export(export_trilu)
            .attributes(&[("upper", AttributeType::Int)]),
        Conversion::new("EyeLike", 9..=NEWEST, "eye_like")
            .import(import_eye_like)
            .export(export_eye_like)
            .attributes(&[("dtype", AttributeType::Int), ("k", AttributeType::Int)]),
        Conversion::new("DepthToSpace", OPSETS, "nn.depth_to_space")
            .import(import_blocks)
            .export(export_blocks)
            .attributes(BLOCKS),
        Conversion::new("SpaceToDepth", OPSETS, "nn.space_to_depth")
            .import(import_blocks)
            .export(export_blocks)
            .attributes(BLOCKS),
    ];
    for row in rows {
        table.register(row);
    }
}

/// Returns a call on all operands with one integer attribute that has the same name in ONNX and
/// here.
fn import_with_int(n: &mut NodeImport<'_, '_>, name: &'static str, default: i64) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let value = n.int(name).unwrap_or(default);
    let value = n.cx().int_attr(value);
    n.call(operands, vec![(name, value)])
}

fn export_with_int(
    n: &mut NodeExport<'_>,
    inputs: Vec<String>,
    name: &'static str,
    default: i64,
) -> Result<(), ExportProblem> {
    let value = n.attrs().int(name).unwrap_or(default);
    let attributes = if value == default { Vec::new() } else { vec![int_attribute(name, value)] };
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

/// Checks that operand `i` has integer elements, as indices must.
fn indices(n: &mut NodeImport<'_, '_>, i: usize) -> Result<(), UnsupportedReason> {
    if n.dtype(i)?.is_integer() { Ok(()) } else { n.unknown_elements(i).map(|_| ()) }
}

fn import_gather_elements(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    indices(n, 1)?;
    import_with_int(n, "axis", 0)
}

fn export_gather_elements(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(0);
    let inputs = with_indices(n)?;
    n.emit("GatherElements", inputs, vec![int_attribute("axis", axis)]);
    Ok(())
}

fn import_gather_nd(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    indices(n, 1)?;
    if n.opset() < 12 && n.int("batch_dims").is_some() {
        return Err(because("the attribute `batch_dims` is of version 12"));
    }
    import_with_int(n, "batch_dims", 0)
}

fn export_gather_nd(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().int("batch_dims").unwrap_or(0) != 0 {
        n.needs_opset(12)?;
    }
    let inputs = with_int64(n)?;
    export_with_int(n, inputs, "batch_dims", 0)
}

fn import_one_hot(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    // The first version does not define the result for an index out of range. Our operator leaves
    // the row as it is, like the later versions.
    import_with_int(n, "axis", -1)
}

fn export_one_hot(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut inputs = n.operands()?;
    for (i, input) in inputs.iter_mut().enumerate().take(2) {
        if n.dtype(i) == Some(DType::BFloat16) {
            let to = int_attribute("to", i64::from(FLOAT));
            *input = n.step("Cast", vec![std::mem::take(input)], vec![to]);
        }
    }
    export_with_int(n, inputs, "axis", -1)
}

fn import_reverse_sequence(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    indices(n, 1)?;
    let operands = n.all_operands()?;
    let (time, batch) = (n.int("time_axis").unwrap_or(0), n.int("batch_axis").unwrap_or(1));
    for (name, axis) in [("time_axis", time), ("batch_axis", batch)] {
        if !(0..=1).contains(&axis) {
            return n.unknown_value(name, axis);
        }
    }
    let attrs = vec![("time_axis", n.cx().int_attr(time)), ("batch_axis", n.cx().int_attr(batch))];
    n.call(operands, attrs)
}

fn export_reverse_sequence(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let rank = n.partial_extents(0).map_or(0, |e| e.len() as i64);
    let mut attributes = Vec::new();
    for name in ["time_axis", "batch_axis"] {
        let axis = n.attrs().int(name).unwrap_or(0);
        let axis = if axis < 0 { axis.saturating_add(rank) } else { axis };
        if !(0..=1).contains(&axis) {
            return Err(ExportProblem::Unsupported("`reverse_sequence` beyond the first two axes".to_owned()));
        }
        attributes.push(int_attribute(name, axis));
    }
    let inputs = with_int64(n)?;
    n.emit("ReverseSequence", inputs, attributes);
    Ok(())
}

fn import_found(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    if n.opset() < 11 && n.int("axis").is_some_and(|a| a < 0) {
        return Err(because("negative axes are of version 11"));
    }
    let mut attrs = Vec::new();
    if let Some(axis) = n.int("axis") {
        attrs.push(("axis", n.cx().int_attr(axis)));
    }
    if let Some(sorted) = n.int("sorted") {
        attrs.push(("sorted", n.bool_attr(sorted != 0)));
    }
    n.call(operands, attrs)
}

fn export_found(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = Vec::new();
    if let Some(axis) = n.attrs().int("axis") {
        if axis < 0 {
            n.needs_opset(11)?;
        }
        attributes.push(int_attribute("axis", axis));
    }
    if n.attrs().bool("sorted") == Some(false) {
        attributes.push(int_attribute("sorted", 0));
    }
    let inputs = n.operands()?;
    n.drop_unused_outputs(1);
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

fn import_trilu(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let mut operands = vec![n.required(0)?];
    operands.extend(n.operand(1));
    let op = if n.int("upper").unwrap_or(1) != 0 { "triu" } else { "tril" };
    Ok(Lowered::Call { op: op.into(), operands, attrs: Vec::new() })
}

fn export_trilu(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut inputs = with_int64(n)?;
    if let Some(k) = inputs.get(1).cloned() {
        inputs[1] = with_rank(n, 1, k, 0)?;
    }
    let attributes = if n.native() == "tril" { vec![int_attribute("upper", 0)] } else { Vec::new() };
    n.emit("Trilu", inputs, attributes);
    Ok(())
}

fn import_eye_like(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let mut attrs = Vec::new();
    if let Some(k) = n.int("k") {
        attrs.push(("k", n.cx().int_attr(k)));
    }
    if let Some(number) = n.int("dtype") {
        let dtype = i32::try_from(number).ok().and_then(crate::tensor::dtype_of).filter(|d| d.has_kernels());
        let dtype = dtype.ok_or_else(|| because(format!("the attribute `dtype` is `{number}`")))?;
        attrs.push(("dtype", n.cx().attr(anfora_ir::Attr::DType(dtype))));
    }
    n.call(operands, attrs)
}

fn export_eye_like(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = Vec::new();
    if let Some(dtype) = n.attrs().dtype("dtype") {
        let number = crate::tensor::number_of(dtype);
        let number = number.ok_or_else(|| ExportProblem::Unsupported(format!("elements of {dtype}")))?;
        attributes.push(int_attribute("dtype", i64::from(number)));
    }
    let k = n.attrs().int("k").unwrap_or(0);
    if k != 0 {
        attributes.push(int_attribute("k", k));
    }
    let inputs = n.operands()?;
    n.emit("EyeLike", inputs, attributes);
    Ok(())
}

/// Returns the first version in which a node can state either order of the channels.
fn mode_since(onnx: &str) -> i64 {
    if onnx == "DepthToSpace" { 11 } else { 28 }
}

fn import_blocks(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let block = n.needed("blocksize", n.int("blocksize"))?;
    let mode = match n.attribute("mode") {
        Some(_) => n.str("mode").map(str::to_owned),
        None => Some("DCR".to_owned()),
    };
    let onnx = if n.native() == "nn.depth_to_space" { "DepthToSpace" } else { "SpaceToDepth" };
    let mode = match mode.as_deref() {
        Some("DCR") if n.attribute("mode").is_none() || n.opset() >= mode_since(onnx) => "DCR",
        Some("CRD") if n.opset() >= mode_since(onnx) => "CRD",
        other => return n.unknown_value("mode", other.unwrap_or("not a text")),
    };
    let attrs = vec![("block_size", n.cx().int_attr(block)), ("mode", n.cx().str_attr(mode))];
    n.call(operands, attrs)
}

fn export_blocks(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = vec![int_attribute("blocksize", n.attrs().int("block_size").unwrap_or(1))];
    if let Some(mode) = n.attrs().str("mode").filter(|&m| m != "DCR") {
        n.needs_opset(mode_since(n.onnx()))?;
        attributes.push(str_attribute("mode", mode));
    }
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}
