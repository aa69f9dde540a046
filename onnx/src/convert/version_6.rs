//! Version 6 of the standard operators: the operators that version 7 left unchanged, and those that
//! it changed.
//!
//! Up to version 6 an elementwise operator repeated its second operand only if an attribute asked
//! for it, and aligned it with an axis of the first operand.

use super::{Conversion, Conversions, Lowered, NodeExport, NodeImport, int_attribute, matrix, normalization};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

const VERSION: i64 = 6;

/// The operators that version 7 added or changed. (To AveragePool it only added an attribute;
/// without the attribute the operator is unchanged.)
const CHANGED: &[&str] = &[
    "Acos",
    "Add",
    "And",
    "Asin",
    "Atan",
    "BatchNormalization",
    "Cos",
    "Div",
    "Dropout",
    "Equal",
    "GRU",
    "Gemm",
    "Greater",
    "LSTM",
    "Less",
    "Mul",
    "Multinomial",
    "Or",
    "PRelu",
    "Pow",
    "RNN",
    "Sin",
    "Sub",
    "Tan",
    "Upsample",
    "Xor",
];

/// Elementwise operators of two operands, and whether the operands may be swapped.
const BINARY: &[(&str, &str, Order)] = &[
    ("Add", "add", Order::Free),
    ("Sub", "subtract", Order::Fixed),
    ("Mul", "multiply", Order::Free),
    ("Div", "divide", Order::Fixed),
    ("Pow", "power", Order::Fixed),
    ("And", "logical_and", Order::Free),
    ("Or", "logical_or", Order::Free),
    ("Xor", "logical_xor", Order::Free),
    ("Equal", "equal", Order::Free),
    ("Less", "less", Order::Fixed),
    ("Greater", "greater", Order::Fixed),
];

#[derive(Copy, Clone, PartialEq, Eq)]
enum Order {
    Fixed,
    Free,
}

/// Extends the rows of a table to version 6 where the meaning is the same, and adds rows for the
/// operators that were different.
pub(super) fn register(table: &mut Conversions) {
    for row in table.rows_mut() {
        let begins_after = row.domain.is_empty() && *row.opsets.start() == VERSION + 1;
        if begins_after && row.import.is_some() && !CHANGED.contains(&&*row.onnx) {
            row.opsets = VERSION..=*row.opsets.end();
        }
    }
    for &(onnx, native, order) in BINARY {
        let export = match order {
            Order::Fixed => export_ordered,
            Order::Free => export_unordered,
        };
        let row = Conversion::new(onnx, VERSION..=VERSION, native).import(import_binary).export(export);
        table.register(row.attributes(&[("broadcast", AttributeType::Int), ("axis", AttributeType::Int)]));
    }
    let gemm = Conversion::new("Gemm", VERSION..=VERSION, "nn.gemm").import(import_gemm).export(export_gemm);
    table.register(gemm.attributes(&[
        ("alpha", AttributeType::Float),
        ("beta", AttributeType::Float),
        ("broadcast", AttributeType::Int),
        ("transA", AttributeType::Int),
        ("transB", AttributeType::Int),
    ]));
    table.register(
        Conversion::new("BatchNormalization", VERSION..=VERSION, "nn.batch_norm")
            .import(import_batch_norm)
            .export(export_batch_norm)
            .attributes(&[
                ("epsilon", AttributeType::Float),
                ("is_test", AttributeType::Int),
                ("spatial", AttributeType::Int),
            ])
            .carried(&["momentum"]),
    );
}

/// Returns true if an operand with the extents `small`, aligned with the last axes of `large`, can
/// be repeated to fill `large`.
fn fills<T: Copy + PartialEq>(large: &[T], small: &[T], one: T) -> bool {
    let rest = large.len().checked_sub(small.len()).map(|first| &large[first..]);
    rest.is_some_and(|r| r.iter().zip(small).all(|(&l, &s)| s == l || s == one))
}

fn import_binary(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let dtype = n.dtype(0)?;
    if n.dtype(1)? != dtype {
        return Err(UnsupportedReason::misfit("its inputs are not of one type"));
    }
    if n.native() == "power" && !dtype.is_float() {
        return Err(because("its inputs are not of a type that it takes"));
    }
    let (a, b) = (n.static_shape(0)?, n.static_shape(1)?);
    let is_single = b.iter().all(|&e| e == 1);
    match n.int("broadcast").unwrap_or(0) {
        0 if a != b => {
            return Err(UnsupportedReason::misfit("its inputs have different shapes, and `broadcast` is not set"));
        }
        0 => {}
        _ if !fills(&a, &b, 1) => {
            return Err(because("its second input does not have the last extents of the first"));
        }
        _ => {
            let last = a.len() as i64 - b.len() as i64;
            if n.int("axis").is_some_and(|axis| axis != last && !is_single) {
                return Err(because("its second input is not aligned with the last axes of the first"));
            }
        }
    }
    n.call(operands, Vec::new())
}

fn export_ordered(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_binary(n, Order::Fixed)
}

fn export_unordered(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_binary(n, Order::Free)
}

fn export_binary(n: &mut NodeExport<'_>, order: Order) -> Result<(), ExportProblem> {
    let mut inputs = n.operands()?;
    let mut attributes = Vec::new();
    match (n.extents(0), n.extents(1)) {
        (Some(a), Some(b)) if a == b => {}
        (Some(a), Some(b)) if fills(&a, &b, 1) => attributes.push(int_attribute("broadcast", 1)),
        (Some(a), Some(b)) if order == Order::Free && fills(&b, &a, 1) => {
            inputs.reverse();
            attributes.push(int_attribute("broadcast", 1));
        }
        _ => n.needs_opset(VERSION + 1)?,
    }
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

fn import_gemm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let (c, a, b) = (n.static_shape(2)?, n.static_shape(0)?, n.static_shape(1)?);
    let extent = |shape: &[usize], axis: usize| shape.get(axis).copied();
    let transposed = |name: &str| usize::from(n.int(name).unwrap_or(0) != 0);
    let product = [extent(&a, transposed("transA")), extent(&b, 1 - transposed("transB"))];
    let [Some(rows), Some(columns)] = product else {
        return Err(UnsupportedReason::misfit("its first inputs are not matrices"));
    };
    let is_repeated = n.int("broadcast").unwrap_or(0) != 0;
    let fits = if is_repeated { fills(&[rows, columns], &c, 1) } else { c[..] == [rows, columns] };
    if !fits {
        return Err(because("its third input does not have the last extents of the product"));
    }
    matrix::import_gemm(n)
}

fn export_gemm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let is_whole = n.extents(2).is_some_and(|c| n.result_shape() == Some(c));
    let more = if is_whole { Vec::new() } else { vec![int_attribute("broadcast", 1)] };
    matrix::export_gemm_with(n, more)
}

fn import_batch_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if n.int("is_test").unwrap_or(0) == 0 {
        return Err(because("it is the form for training"));
    }
    normalization::import_batch_norm(n)
}

fn export_batch_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    normalization::export_batch_norm_with(n, vec![int_attribute("is_test", 1)])
}
