//! Operators that work element by element.

use anfora_ir::{Attr, DType};

use super::{
    Conversion, Conversions, Lowered, OPSETS, export_direct, float_attribute, import_direct, int_attribute,
    str_attribute,
};
use crate::error::ExportProblem;
use crate::export::NodeExport;
use crate::import::NodeImport;
use crate::proto::AttributeType;
use crate::tensor::{dtype_of, number_of};

/// Operators with the same operands and results on both sides, and the version that brought each.
const DIRECT: &[(&str, i64, &str)] = &[
    ("Add", 9, "add"),
    ("Sub", 9, "subtract"),
    ("Mul", 9, "multiply"),
    ("Div", 9, "divide"),
    ("And", 9, "logical_and"),
    ("Or", 9, "logical_or"),
    ("Xor", 9, "logical_xor"),
    ("Not", 9, "logical_not"),
    ("Less", 9, "less"),
    ("LessOrEqual", 12, "less_equal"),
    ("Greater", 9, "greater"),
    ("GreaterOrEqual", 12, "greater_equal"),
    ("Equal", 9, "equal"),
    ("Where", 9, "where"),
    ("Neg", 9, "negative"),
    ("Abs", 9, "abs"),
    ("Sign", 9, "sign"),
    ("Exp", 9, "exp"),
    ("Log", 9, "log"),
    ("Sqrt", 9, "sqrt"),
    ("Tanh", 9, "tanh"),
    ("Sigmoid", 9, "sigmoid"),
    ("Erf", 9, "erf"),
    ("Sin", 9, "sin"),
    ("Cos", 9, "cos"),
    ("Tan", 9, "tan"),
    ("Asin", 9, "asin"),
    ("Acos", 9, "acos"),
    ("Atan", 9, "atan"),
    ("Sinh", 9, "sinh"),
    ("Cosh", 9, "cosh"),
    ("Asinh", 9, "asinh"),
    ("Acosh", 9, "acosh"),
    ("Atanh", 9, "atanh"),
    ("IsNaN", 9, "isnan"),
    ("Relu", 9, "nn.relu"),
];

pub(super) fn register(table: &mut Conversions) {
    for &(onnx, since, native) in DIRECT {
        table
            .register(Conversion::new(onnx, since..=*OPSETS.end(), native).import(import_direct).export(export_direct));
    }
    for (onnx, since, native) in [("Floor", 9, "floor"), ("Ceil", 9, "ceil"), ("Round", 11, "round")] {
        let row = Conversion::new(onnx, since..=*OPSETS.end(), native);
        table.register(row.import(import_direct).export(export_rounding));
    }
    let rows = [
        Conversion::new("Sum", OPSETS, "add").import(import_sum),
        Conversion::new("Max", OPSETS, "maximum").import(import_binary).export(export_direct),
        Conversion::new("Min", OPSETS, "minimum").import(import_binary).export(export_direct),
        Conversion::new("Pow", OPSETS, "power").import(import_power).export(export_direct),
        Conversion::new("Mod", 10..=23, "mod").export(export_mod),
        Conversion::new("Mod", 10..=23, "floor_mod")
            .import(import_mod)
            .export(export_floor_mod)
            .attributes(&[("fmod", AttributeType::Int)]),
        Conversion::new("IsInf", 10..=23, "isinf")
            .import(import_isinf)
            .export(export_direct)
            .attributes(&[("detect_negative", AttributeType::Int), ("detect_positive", AttributeType::Int)]),
        Conversion::new("LeakyRelu", OPSETS, "nn.leaky_relu")
            .import(import_leaky_relu)
            .export(export_leaky_relu)
            .attributes(&[("alpha", AttributeType::Float)]),
        Conversion::new("Gelu", 20..=23, "nn.gelu")
            .import(import_gelu)
            .export(export_gelu)
            .attributes(&[("approximate", AttributeType::String)]),
        Conversion::new("Cast", OPSETS, "astype")
            .import(import_cast)
            .export(export_cast)
            .attributes(&[("to", AttributeType::Int)])
            .carried(&["saturate"]),
        // Operators of ours that are written as several nodes.
        Conversion::new("Not", OPSETS, "not_equal").export(export_not_equal),
        Conversion::new("Mul", OPSETS, "square").export(export_square),
        Conversion::new("Reciprocal", OPSETS, "rsqrt").export(export_rsqrt),
        Conversion::new("Not", 10..=23, "isfinite").export(export_isfinite),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_sum(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    match n.all_operands()?.as_slice() {
        [one] => Some(Lowered::Operand(*one)),
        both @ [_, _] => n.call(both.to_vec(), Vec::new()),
        _ => None,
    }
}

fn import_binary(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    if n.operand_count() == 2 { import_direct(n) } else { None }
}

/// Of floats of one type: elsewhere the format leaves open how a result is rounded.
fn import_power(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    let is_same_float = n.dtype(0)?.is_float() && n.dtype(0) == n.dtype(1);
    if is_same_float { import_binary(n) } else { None }
}

fn import_mod(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    let operands = n.all_operands()?;
    match n.int("fmod").unwrap_or(0) {
        0 if n.dtype(0)?.is_integer() => n.call(operands, Vec::new()),
        1 => Some(Lowered::Call { op: "mod".into(), operands, attrs: Vec::new() }),
        _ => None,
    }
}

fn export_mod(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    n.emit("Mod", inputs, vec![int_attribute("fmod", 1)]);
    Ok(())
}

fn export_floor_mod(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if !n.dtype(0).is_some_and(DType::is_integer) {
        return Err(ExportProblem::Unsupported("`floor_mod` of floats".to_owned()));
    }
    export_direct(n)
}

/// Integers are whole already, and the format has no such operator for them.
fn export_rounding(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let op = if n.dtype(0).is_some_and(DType::is_float) { n.onnx() } else { "Identity" };
    let inputs = n.operands()?;
    n.emit(op, inputs, Vec::new());
    Ok(())
}

fn import_isinf(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    let both = n.int("detect_negative").unwrap_or(1) == 1 && n.int("detect_positive").unwrap_or(1) == 1;
    if both { import_direct(n) } else { None }
}

fn import_leaky_relu(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    let dtype = n.dtype(0)?;
    let alpha = n.float_attr(n.float("alpha").unwrap_or(0.01), dtype);
    let operands = n.all_operands()?;
    n.call(operands, vec![("alpha", alpha)])
}

fn export_leaky_relu(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let alpha = n.attrs().float("alpha").unwrap_or(0.01);
    let inputs = n.operands()?;
    n.emit("LeakyRelu", inputs, vec![float_attribute("alpha", alpha)]);
    Ok(())
}

fn import_gelu(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    let operands = n.all_operands()?;
    let attrs = match n.str("approximate") {
        None | Some("none") => Vec::new(),
        Some("tanh") => vec![("approximate", n.cx().str_attr("tanh"))],
        Some(_) => return None,
    };
    n.call(operands, attrs)
}

fn export_gelu(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attributes = match n.attrs().str("approximate") {
        None | Some("none") => Vec::new(),
        Some(other) => vec![str_attribute("approximate", other)],
    };
    let inputs = n.operands()?;
    n.emit("Gelu", inputs, attributes);
    Ok(())
}

fn import_cast(n: &mut NodeImport<'_, '_>) -> Option<Lowered> {
    let dtype = dtype_of(i32::try_from(n.int("to")?).ok()?).filter(|d| d.has_kernels())?;
    let operands = n.all_operands()?;
    let dtype = n.cx().attr(Attr::DType(dtype));
    n.call(operands, vec![("dtype", dtype)])
}

fn export_cast(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let dtype = n.attrs().dtype("dtype").and_then(number_of);
    let to = dtype.ok_or_else(|| ExportProblem::Unsupported("`astype` to this element type".to_owned()))?;
    let inputs = n.operands()?;
    n.emit("Cast", inputs, vec![int_attribute("to", i64::from(to))]);
    Ok(())
}

fn export_not_equal(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    let equal = n.step("Equal", inputs, Vec::new());
    n.emit("Not", vec![equal], Vec::new());
    Ok(())
}

fn export_square(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let x = n.operand(0)?;
    n.emit("Mul", vec![x.clone(), x], Vec::new());
    Ok(())
}

fn export_rsqrt(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    let root = n.step("Sqrt", inputs, Vec::new());
    n.emit("Reciprocal", vec![root], Vec::new());
    Ok(())
}

fn export_isfinite(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let x = n.operand(0)?;
    let inf = n.step("IsInf", vec![x.clone()], Vec::new());
    let nan = n.step("IsNaN", vec![x], Vec::new());
    let either = n.step("Or", vec![inf, nan], Vec::new());
    n.emit("Not", vec![either], Vec::new());
    Ok(())
}
