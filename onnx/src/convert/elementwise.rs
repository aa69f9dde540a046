//! Operators that work element by element.

use anfora_ir::{Attr, DType};

use super::{
    Conversion, Conversions, Lowered, NEWEST, OPSETS, export_direct, float_attribute, import_direct, int_attribute,
    str_attribute,
};
use crate::error::ExportProblem;
use crate::export::NodeExport;
use crate::import::{Kept, NodeImport};
use crate::proto::AttributeType;
use crate::tensor::{dtype_of, number_of};

/// Operators with the same operands and results on both sides, and the version that brought each.
const DIRECT: &[(&str, i64, &str)] = &[
    ("Add", 7, "add"),
    ("Sub", 7, "subtract"),
    ("Mul", 7, "multiply"),
    ("Div", 7, "divide"),
    ("And", 7, "logical_and"),
    ("Or", 7, "logical_or"),
    ("Xor", 7, "logical_xor"),
    ("Not", 7, "logical_not"),
    ("Less", 7, "less"),
    ("LessOrEqual", 12, "less_equal"),
    ("Greater", 7, "greater"),
    ("GreaterOrEqual", 12, "greater_equal"),
    ("Equal", 7, "equal"),
    ("Where", 7, "where"),
    ("Neg", 7, "negative"),
    ("Abs", 7, "abs"),
    ("Sign", 7, "sign"),
    ("Exp", 7, "exp"),
    ("Log", 7, "log"),
    ("Sqrt", 7, "sqrt"),
    ("Tanh", 7, "tanh"),
    ("Sigmoid", 7, "sigmoid"),
    ("Erf", 7, "erf"),
    ("Sin", 7, "sin"),
    ("Cos", 7, "cos"),
    ("Tan", 7, "tan"),
    ("Asin", 7, "asin"),
    ("Acos", 7, "acos"),
    ("Atan", 7, "atan"),
    ("Sinh", 7, "sinh"),
    ("Cosh", 7, "cosh"),
    ("Asinh", 7, "asinh"),
    ("Acosh", 7, "acosh"),
    ("Atanh", 7, "atanh"),
    ("IsNaN", 7, "isnan"),
    ("Relu", 7, "nn.relu"),
];

pub(super) fn register(table: &mut Conversions) {
    for &(onnx, since, native) in DIRECT {
        table
            .register(Conversion::new(onnx, since..=*OPSETS.end(), native).import(import_direct).export(export_direct));
    }
    for (onnx, since, native) in [("Floor", 7, "floor"), ("Ceil", 7, "ceil"), ("Round", 11, "round")] {
        let row = Conversion::new(onnx, since..=*OPSETS.end(), native);
        table.register(row.import(import_direct).export(export_rounding));
    }
    let rows = [
        Conversion::new("Sum", OPSETS, "add").import(import_sum),
        Conversion::new("Max", OPSETS, "maximum").import(import_binary).export(export_direct),
        Conversion::new("Min", OPSETS, "minimum").import(import_binary).export(export_direct),
        Conversion::new("Pow", OPSETS, "power").import(import_power).export(export_direct),
        Conversion::new("Mod", 10..=NEWEST, "mod").export(export_mod),
        Conversion::new("Mod", 10..=NEWEST, "floor_mod")
            .import(import_mod)
            .export(export_floor_mod)
            .attributes(&[("fmod", AttributeType::Int)]),
        Conversion::new("IsInf", 10..=NEWEST, "isinf")
            .import(import_isinf)
            .export(export_direct)
            .attributes(&[("detect_negative", AttributeType::Int), ("detect_positive", AttributeType::Int)]),
        Conversion::new("LeakyRelu", OPSETS, "nn.leaky_relu")
            .import(import_leaky_relu)
            .export(export_leaky_relu)
            .attributes(&[("alpha", AttributeType::Float)]),
        Conversion::new("Gelu", 20..=NEWEST, "nn.gelu")
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
        Conversion::new("Not", 10..=NEWEST, "isfinite").export(export_isfinite),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_sum(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    match n.all_operands()?.as_slice() {
        [one] => Ok(Lowered::Operand(*one)),
        both @ [_, _] => n.call(both.to_vec(), Vec::new()),
        more => Err(Kept::because(format!("it has {} inputs", more.len()))),
    }
}

fn import_binary(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    match n.operand_count() {
        2 => import_direct(n),
        more => Err(Kept::because(format!("it has {more} inputs"))),
    }
}

/// Of floats of one type: elsewhere the format leaves open how a result is rounded.
fn import_power(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let is_same_float = n.dtype(0)?.is_float() && n.dtype(0) == n.dtype(1);
    if is_same_float { import_binary(n) } else { Err(Kept::because("its inputs are not floats of one type")) }
}

fn import_mod(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let operands = n.all_operands()?;
    match n.int("fmod").unwrap_or(0) {
        0 if !n.dtype(0)?.is_integer() => n.unknown_elements(0),
        0 => n.call(operands, Vec::new()),
        1 => Ok(Lowered::Call { op: "mod".into(), operands, attrs: Vec::new() }),
        other => n.unknown_value("fmod", other),
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

fn import_isinf(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let both = n.int("detect_negative").unwrap_or(1) == 1 && n.int("detect_positive").unwrap_or(1) == 1;
    if both { import_direct(n) } else { Err(Kept::because("it tests for infinities of one sign")) }
}

fn import_leaky_relu(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
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

fn import_gelu(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let operands = n.all_operands()?;
    let attrs = match n.str("approximate") {
        None | Some("none") => Vec::new(),
        Some("tanh") => vec![("approximate", n.cx().str_attr("tanh"))],
        Some(other) => return n.unknown_value("approximate", other.to_owned()),
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

fn import_cast(n: &mut NodeImport<'_, '_>) -> Result<Lowered, Kept> {
    let to = n.needed("to", n.int("to"))?;
    let dtype = i32::try_from(to).ok().and_then(dtype_of);
    let Some(dtype) = dtype.filter(|d| d.has_kernels()) else {
        return Err(match dtype {
            Some(dtype) => Kept::because(format!("it casts to {dtype}, with which nothing is computed")),
            None => Kept::because(format!("it casts to the element type {to}")),
        });
    };
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
