//! Operators that work element by element.

use anfora_ir::{DType, Literal};
use half::{bf16, f16};

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, export_direct, float_attribute,
    import_direct, int_attribute, str_attribute, with_rank,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

/// Operators with the same operands and results in ONNX and here, with the version that brought
/// each.
const DIRECT: &[(&str, i64, &str)] = &[
    ("Add", 7, "add"),
    ("Sub", 7, "subtract"),
    ("Mul", 7, "multiply"),
    ("Div", 7, "divide"),
    ("And", 7, "logical_and"),
    ("Or", 7, "logical_or"),
    ("Xor", 7, "logical_xor"),
    ("Not", 1, "logical_not"),
    ("Less", 7, "less"),
    ("LessOrEqual", 12, "less_equal"),
    ("Greater", 7, "greater"),
    ("GreaterOrEqual", 12, "greater_equal"),
    ("Equal", 7, "equal"),
    ("Where", 9, "where"),
    ("BitwiseAnd", 18, "bitwise_and"),
    ("BitwiseOr", 18, "bitwise_or"),
    ("BitwiseXor", 18, "bitwise_xor"),
    ("BitwiseNot", 18, "bitwise_not"),
    ("Neg", 7, "negative"),
    ("Abs", 7, "abs"),
    ("Sign", 9, "sign"),
    ("Exp", 7, "exp"),
    ("Log", 7, "log"),
    ("Sqrt", 7, "sqrt"),
    ("Reciprocal", 7, "reciprocal"),
    ("Tanh", 7, "tanh"),
    ("Sigmoid", 7, "sigmoid"),
    ("Erf", 9, "erf"),
    ("Sin", 7, "sin"),
    ("Cos", 7, "cos"),
    ("Tan", 7, "tan"),
    ("Asin", 7, "asin"),
    ("Acos", 7, "acos"),
    ("Atan", 7, "atan"),
    ("Sinh", 9, "sinh"),
    ("Cosh", 9, "cosh"),
    ("Asinh", 9, "asinh"),
    ("Acosh", 9, "acosh"),
    ("Atanh", 9, "atanh"),
    ("IsNaN", 9, "isnan"),
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
        Conversion::new("Sum", OPSETS, "add_n").import(import_nary).export(export_direct),
        Conversion::new("Mean", OPSETS, "mean_n").import(import_nary).export(export_direct),
        Conversion::new("Max", OPSETS, "maximum_n").import(import_nary).export(export_direct),
        Conversion::new("Min", OPSETS, "minimum_n").import(import_nary).export(export_direct),
        Conversion::new("Max", 6..=NEWEST, "maximum").export(export_extreme),
        Conversion::new("Min", 6..=NEWEST, "minimum").export(export_extreme),
        Conversion::new("Clip", OPSETS, "clip")
            .import(import_clip)
            .export(export_clip)
            .attributes(&[("min", AttributeType::Float), ("max", AttributeType::Float)]),
        Conversion::new("BitShift", 11..=NEWEST, "right_shift").export(export_shift),
        Conversion::new("BitShift", 11..=NEWEST, "left_shift")
            .import(import_shift)
            .export(export_shift)
            .attributes(&[("direction", AttributeType::String)]),
        Conversion::new("Pow", OPSETS, "power").import(import_direct).export(export_power),
        Conversion::new("Mod", 10..=NEWEST, "mod").export(export_mod),
        Conversion::new("Mod", 10..=NEWEST, "floor_mod")
            .import(import_mod)
            .export(export_floor_mod)
            .attributes(&[("fmod", AttributeType::Int)]),
        Conversion::new("IsInf", 10..=NEWEST, "isinf")
            .import(import_isinf)
            .export(export_isinf)
            .attributes(&[("detect_negative", AttributeType::Int), ("detect_positive", AttributeType::Int)]),
        // Our operators that are written as several nodes.
        Conversion::new("Not", OPSETS, "not_equal").export(export_not_equal),
        Conversion::new("Mul", OPSETS, "square").export(export_square),
        Conversion::new("Reciprocal", OPSETS, "rsqrt").export(export_rsqrt),
        Conversion::new("Not", 10..=NEWEST, "isfinite").export(export_isfinite),
    ];
    for row in rows {
        table.register(row);
    }
}

/// Imports an operator of any number of operands. A single operand is the result itself; for two
/// operands there is an operator of two operands.
fn import_nary(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let two = match n.native() {
        "add_n" => Some("add"),
        "maximum_n" => Some("maximum"),
        "minimum_n" => Some("minimum"),
        _ => None,
    };
    match (operands.as_slice(), two) {
        ([], _) => Err(because("it has no inputs")),
        ([one], _) => Ok(Lowered::Operand(*one)),
        ([_, _], Some(op)) => Ok(Lowered::Call { op: op.into(), operands, attrs: Vec::new() }),
        _ => n.call(operands, Vec::new()),
    }
}

/// Writes `power`. Operands of different element types need version 12.
fn export_power(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.dtype(0) != n.dtype(1) || !n.dtype(0).is_some_and(DType::is_float) {
        n.needs_opset(12)?;
    }
    if n.dtype(0).is_some_and(|d| d.is_integer() && !matches!(d, DType::Int32 | DType::Int64)) {
        return Err(ExportProblem::Unsupported("`power` of integers other than int32 and int64".to_owned()));
    }
    export_direct(n)
}

/// Imports `Clip`. Before version 11 the bounds are attributes and have default values.
fn import_clip(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if n.opset() >= 11 {
        if let Some(a) = n.node_attributes().first() {
            return Err(because(format!("the attribute `{}` is older than version 11", a.name())));
        }
        let operands = n.operands();
        return n.call(operands, Vec::new());
    }
    let dtype = n.float_dtype(0)?;
    let mut operands = n.all_operands()?;
    for bound in [n.float("min").unwrap_or(f32::MIN), n.float("max").unwrap_or(f32::MAX)] {
        let literal = float_scalar(bound, dtype);
        operands.push(n.constant(literal));
    }
    n.call(operands, Vec::new())
}

fn float_scalar(value: f32, dtype: DType) -> Literal {
    match dtype {
        DType::Float16 => Literal::scalar(f16::from_f32(value)),
        DType::BFloat16 => Literal::scalar(bf16::from_f32(value)),
        DType::Float64 => Literal::scalar(f64::from(value)),
        _ => Literal::scalar(value),
    }
}

fn export_clip(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.opset() >= 11 {
        if !n.dtype(0).is_some_and(DType::is_float) {
            n.needs_opset(12)?;
        }
        let mut inputs = n.operands()?;
        for (i, bound) in inputs.iter_mut().enumerate().skip(1).filter(|(_, name)| !name.is_empty()) {
            *bound = with_rank(n, i, std::mem::take(bound), 0)?;
        }
        n.emit("Clip", inputs, Vec::new());
        return Ok(());
    }
    if !n.dtype(0).is_some_and(DType::is_float) {
        return n.needs_opset(12);
    }
    let mut attributes = Vec::new();
    for (i, name, default) in [(1, "min", f32::MIN), (2, "max", f32::MAX)] {
        let unbounded = if default < 0.0 { f32::NEG_INFINITY } else { f32::INFINITY };
        let bound = match (n.is_left_out(i), n.literal(i)) {
            (true, _) => unbounded,
            (false, Some(bound)) => {
                let bound = float_of(bound);
                bound.ok_or_else(|| ExportProblem::Unsupported(format!("`clip` with this `{name}`")))?
            }
            (false, None) => return n.needs_opset(11),
        };
        if bound.to_bits() != default.to_bits() {
            attributes.push(float_attribute(name, f64::from(bound)));
        }
    }
    let x = n.operand(0)?;
    n.emit("Clip", vec![x], attributes);
    Ok(())
}

/// Returns the value of a constant of one float, if float32 holds it exactly.
fn float_of(literal: &Literal) -> Option<f32> {
    if literal.element_count() != 1 {
        return None;
    }
    match literal.dtype() {
        DType::Float16 => literal.elements::<f16>()?.first().map(|v| v.to_f32()),
        DType::BFloat16 => literal.elements::<bf16>()?.first().map(|v| v.to_f32()),
        DType::Float64 => {
            let value = *literal.elements::<f64>()?.first()?;
            (f64::from(value as f32) == value || value.is_nan()).then_some(value as f32)
        }
        _ => literal.elements::<f32>()?.first().copied(),
    }
}

/// Imports `BitShift`. Signed integers came with version 28.
fn import_shift(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if n.opset() < 28 && !n.dtype(0)?.is_unsigned() {
        return n.unknown_elements(0);
    }
    let operands = n.all_operands()?;
    let op = match n.needed("direction", n.str("direction"))? {
        "LEFT" => "left_shift",
        "RIGHT" => "right_shift",
        other => return n.unknown_value("direction", other.to_owned()),
    };
    Ok(Lowered::Call { op: op.into(), operands, attrs: Vec::new() })
}

fn export_shift(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if !n.dtype(0).is_some_and(DType::is_unsigned) {
        n.needs_opset(28)?;
    }
    let direction = if n.native() == "left_shift" { "LEFT" } else { "RIGHT" };
    let inputs = n.operands()?;
    n.emit("BitShift", inputs, vec![str_attribute("direction", direction)]);
    Ok(())
}

fn import_mod(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    match n.int("fmod").unwrap_or(0) {
        0 if !n.dtype(0)?.is_integer() && n.opset() < 28 => n.unknown_elements(0),
        0 => n.call(operands, Vec::new()),
        1 => Ok(Lowered::Call { op: "mod".into(), operands, attrs: Vec::new() }),
        other => n.unknown_value("fmod", other),
    }
}

/// Writes `maximum` or `minimum`. Before version 8 both operands must have the same shape.
fn export_extreme(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.tensor(0).map(|t| &t.shape) != n.tensor(1).map(|t| &t.shape) {
        n.needs_opset(8)?;
    }
    export_direct(n)
}

fn export_mod(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    n.emit("Mod", inputs, vec![int_attribute("fmod", 1)]);
    Ok(())
}

fn export_floor_mod(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if !n.dtype(0).is_some_and(DType::is_integer) {
        n.needs_opset(28)?;
    }
    export_direct(n)
}

/// Writes a rounding. Integers are already whole, and the format has no such operator for them, so
/// they are written as `Identity`.
fn export_rounding(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let op = if n.dtype(0).is_some_and(DType::is_float) { n.onnx() } else { "Identity" };
    let inputs = n.operands()?;
    n.emit(op, inputs, Vec::new());
    Ok(())
}

/// The attributes of `IsInf` that say for which signs of infinity it tests.
const SIGNS: [&str; 2] = ["detect_negative", "detect_positive"];

fn import_isinf(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let mut attrs = Vec::new();
    for name in SIGNS {
        match n.int(name).unwrap_or(1) {
            0 => attrs.push((name, n.bool_attr(false))),
            1 => {}
            other => return n.unknown_value(name, other),
        }
    }
    n.call(operands, attrs)
}

fn export_isinf(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = n.operands()?;
    let left_out = SIGNS.iter().filter(|&&name| n.attrs().bool(name) == Some(false));
    let attributes = left_out.map(|name| int_attribute(name, 0)).collect();
    n.emit("IsInf", inputs, attributes);
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
