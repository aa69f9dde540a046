//! Constants, and values that are made from their shape alone.

use std::sync::Arc;

use anfora_ir::{Attr, DType, Literal};
use bytes::Bytes;

use super::extents::shape_tensor;
use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, export_direct, tensor_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};
use crate::sparse;
use crate::tensor::{TensorError, literal_of, tensor_of};

/// The version that brought `ConstantOfShape`, which makes a tensor of one repeated number.
pub(crate) const FILL_SINCE: i64 = 9;

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("Constant", OPSETS, "").import(import_constant).attributes(&[
            ("value", AttributeType::Tensor),
            ("value_float", AttributeType::Float),
            ("value_floats", AttributeType::Floats),
            ("value_int", AttributeType::Int),
            ("value_ints", AttributeType::Ints),
            ("value_string", AttributeType::String),
            ("value_strings", AttributeType::Strings),
            (sparse::ATTRIBUTE, AttributeType::SparseTensor),
        ]),
        Conversion::new("Identity", OPSETS, "").import(import_identity).any_operands(),
        Conversion::new("Identity", OPSETS, "match_cast").export(export_cast),
        Conversion::new("ConstantOfShape", FILL_SINCE..=NEWEST, "full")
            .import(import_full)
            .export(export_full)
            .attributes(&[("value", AttributeType::Tensor)]),
        Conversion::new("ConstantOfShape", FILL_SINCE..=NEWEST, "zeros").export(export_zeros),
        Conversion::new("ConstantOfShape", FILL_SINCE..=NEWEST, "ones").export(export_ones),
        Conversion::new("Range", 11..=NEWEST, "arange")
            .import(import_range)
            .export(export_direct)
            .attributes(&[("stash_type", AttributeType::Int)]),
    ];
    for row in rows {
        table.register(row);
    }
}

/// Writes a cast that is proved; the format has no checks.
fn export_cast(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().bool("proved") != Some(true) {
        return Err(ExportProblem::Operator("match_cast".to_owned()));
    }
    export_direct(n)
}

fn import_constant(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if n.operand_count() != 0 {
        return Err(because("it has inputs"));
    }
    let [attribute] = n.node_attributes() else {
        return Err(because("it does not have just one attribute"));
    };
    let text = |s: &Bytes| std::str::from_utf8(s).ok().map(Arc::<str>::from);
    if let (sparse::ATTRIBUTE, Some(sparse)) = (attribute.name(), &attribute.sparse_tensor) {
        return sparse::literal_of_sparse(sparse).map(Lowered::Constant);
    }
    if let ("value", Some(tensor)) = (attribute.name(), &attribute.t)
        && let Err(e) = literal_of(tensor)
    {
        return Err(because(e.to_string()));
    }
    let literal = || match attribute.name() {
        "value" => {
            let tensor = attribute.t.as_ref()?;
            let is_plain = tensor.doc_string.is_none() && tensor.metadata_props.is_empty();
            literal_of(tensor).ok().filter(|_| is_plain)
        }
        "value_float" => Some(Literal::scalar(attribute.f.unwrap_or(0.0))),
        "value_floats" => Literal::from_elements(&[attribute.floats.len()], &attribute.floats).ok(),
        "value_int" => Some(Literal::scalar(attribute.i.unwrap_or(0))),
        "value_ints" => Literal::from_elements(&[attribute.ints.len()], &attribute.ints).ok(),
        "value_string" => Literal::from_strings(&[], vec![text(attribute.s.as_ref()?)?]).ok(),
        "value_strings" => {
            let strings: Option<Vec<Arc<str>>> = attribute.strings.iter().map(text).collect();
            Literal::from_strings(&[attribute.strings.len()], strings?).ok()
        }
        _ => None,
    };
    let literal = literal()
        .ok_or_else(|| because(format!("the attribute `{}` is not a constant without more to it", attribute.name())))?;
    Ok(Lowered::Constant(literal))
}

/// Returns the attribute of a `Constant` node for a literal. It has the given name if an attribute
/// of that name can hold the literal; otherwise it holds a tensor.
pub(crate) fn constant_attribute(name: &str, literal: &Literal) -> Result<AttributeProto, TensorError> {
    let first_float = || literal.as_scalar::<f32>().filter(|_| literal.rank() == 0);
    let first_int = || literal.as_scalar::<i64>().filter(|_| literal.rank() == 0);
    let strings = || literal.as_strings().map(|s| s.iter().map(|s| Bytes::copy_from_slice(s.as_bytes())).collect());
    let mut a = AttributeProto { name: Some(name.to_owned()), ..AttributeProto::default() };
    let ty = match name {
        "value_float" if first_float().is_some() => {
            a.f = first_float();
            AttributeType::Float
        }
        "value_int" if first_int().is_some() => {
            a.i = first_int();
            AttributeType::Int
        }
        "value_floats" | "value_ints" | "value_strings" if literal.rank() != 1 => return value_attribute(literal),
        "value_floats" if literal.dtype() == DType::Float32 => {
            a.floats = literal.elements::<f32>().unwrap_or_default().into_owned();
            AttributeType::Floats
        }
        "value_ints" if literal.dtype() == DType::Int64 => {
            a.ints = literal.elements::<i64>().unwrap_or_default().into_owned();
            AttributeType::Ints
        }
        "value_strings" if literal.as_strings().is_some() => {
            a.strings = strings().unwrap_or_default();
            AttributeType::Strings
        }
        "value_string" if literal.rank() == 0 && literal.as_strings().is_some() => {
            a.s = strings().and_then(|s: Vec<Bytes>| s.into_iter().next());
            AttributeType::String
        }
        sparse::ATTRIBUTE => {
            return match sparse::sparse_of(literal) {
                Ok(sparse) => Ok(sparse::sparse_attribute(sparse)),
                Err(_) => value_attribute(literal),
            };
        }
        _ => return value_attribute(literal),
    };
    a.set_type(ty);
    Ok(a)
}

fn value_attribute(literal: &Literal) -> Result<AttributeProto, TensorError> {
    Ok(tensor_attribute("value", tensor_of(literal, i32::MAX as u64)?))
}

fn import_identity(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    match n.operand_count() {
        // A function parameter that is left out stays left out under a second name.
        1 if n.is_named(0) => Ok(Lowered::Operand(n.operands()[0])),
        1 => n.required(0).map(Lowered::Operand),
        more => Err(because(format!("it has {more} inputs"))),
    }
}

fn import_full(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let value = match n.attribute("value") {
        Some(a) => {
            let literal = a.t.as_ref().and_then(|t| literal_of(t).ok());
            let one = literal.filter(|l| l.element_count() == 1 && l.dtype().has_kernels());
            one.ok_or_else(|| because("the attribute `value` is not one number"))?
        }
        None => Literal::scalar(0f32),
    };
    let value = value.reshaped(&[]).expect("it has one element");
    let operands = n.all_operands()?;
    let id = n.cx().literals.intern(value);
    let value = n.cx().attr(Attr::Literal(id));
    n.call(operands, vec![("value", value)])
}

/// Imports `Range`. ONNX computes 16-bit floats in float32, as our operator does; `stash_type` does
/// not affect other types.
fn import_range(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    const FLOAT: i64 = 1;
    let is_half = matches!(n.dtype(0)?, DType::Float16 | DType::BFloat16);
    match n.int("stash_type").unwrap_or(FLOAT) {
        other if is_half && other != FLOAT => return n.unknown_value("stash_type", other),
        _ => {}
    }
    let mut operands = n.all_operands()?;
    for (i, operand) in operands.iter_mut().enumerate() {
        // The format requires rank 0. Runtimes also take tensors of one element, and such files
        // exist.
        if n.static_shape(i).is_ok_and(|shape| !shape.is_empty() && shape.iter().all(|&e| e == 1)) {
            let rank_0 = n.constant(Literal::from_elements(&[0], &[] as &[i64]).expect("there is no element"));
            *operand = n.step("reshape", &[*operand, rank_0], &[])?;
        }
    }
    n.call(operands, Vec::new())
}

fn export_full(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let value =
        n.attrs().literal("value").ok_or_else(|| ExportProblem::Unsupported("`full` without a value".to_owned()))?;
    let shape = n.operand(0)?;
    fill(n, shape, &value)
}

fn export_zeros(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_filled(n, 0)
}

fn export_ones(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_filled(n, 1)
}

fn export_filled(n: &mut NodeExport<'_>, number: i64) -> Result<(), ExportProblem> {
    let unknown = || ExportProblem::Unsupported(format!("`{}` of this element type", n.native()));
    let dtype = n.result_dtype().ok_or_else(unknown)?;
    let value = number_literal(dtype, number).ok_or_else(unknown)?;
    let shape = shape_tensor(n)?;
    fill(n, shape, &value)
}

/// Returns a small integer as a rank-0 tensor.
fn number_literal(dtype: DType, number: i64) -> Option<Literal> {
    let bytes: Vec<u8> = match dtype {
        DType::Float32 => (number as f32).to_le_bytes().to_vec(),
        DType::Float64 => (number as f64).to_le_bytes().to_vec(),
        // The bits of 0 and 1.
        DType::Float16 => if number == 0 { 0u16 } else { 0x3c00 }.to_le_bytes().to_vec(),
        DType::BFloat16 => if number == 0 { 0u16 } else { 0x3f80 }.to_le_bytes().to_vec(),
        d if d.has_kernels() => number.to_le_bytes().to_vec(),
        _ => return None,
    };
    Some(Literal::splat_bytes(dtype, &[], &bytes))
}

fn fill(n: &mut NodeExport<'_>, shape: String, value: &Literal) -> Result<(), ExportProblem> {
    let value = value.reshaped(&[1]).map_err(TensorError::from)?;
    let value = tensor_of(&value, 16)?;
    n.emit("ConstantOfShape", vec![shape], vec![tensor_attribute("value", value)]);
    Ok(())
}
