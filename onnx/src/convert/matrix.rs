//! Matrix products.

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, exact_float, export_direct,
    import_direct, int_attribute, str_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::{AttributeProto, AttributeType};

pub(super) fn register(table: &mut Conversions) {
    table.register(Conversion::new("Det", 11..=NEWEST, "det").import(import_direct).export(export_direct));
    table.register(
        Conversion::new("Einsum", 12..=NEWEST, "einsum")
            .import(import_einsum)
            .export(export_einsum)
            .attributes(&[("equation", AttributeType::String)]),
    );
    table.register(Conversion::new("MatMul", OPSETS, "matmul").import(import_direct).export(export_direct));
    table.register(Conversion::new("Gemm", OPSETS, "nn.gemm").import(import_gemm).export(export_gemm).attributes(&[
        ("alpha", AttributeType::Float),
        ("beta", AttributeType::Float),
        ("transA", AttributeType::Int),
        ("transB", AttributeType::Int),
    ]));
}

fn import_einsum(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let equation = n.needed("equation", n.str("equation"))?.to_owned();
    let operands = n.all_operands()?;
    let subscripts = n.cx().str_attr(&equation);
    n.call(operands, vec![("subscripts", subscripts)])
}

fn export_einsum(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let equation = n.attrs().str("subscripts").unwrap_or_default().to_owned();
    let inputs = n.operands()?;
    n.emit("Einsum", inputs, vec![str_attribute("equation", &equation)]);
    Ok(())
}

pub(super) fn import_gemm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = n.float_dtype(0)?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    let mut attrs = Vec::new();
    for name in ["alpha", "beta"] {
        if let Some(value) = n.float(name) {
            attrs.push((name, n.float_attr(value, dtype)));
        }
    }
    for (ours, theirs) in [("trans_a", "transA"), ("trans_b", "transB")] {
        if let Some(value) = n.int(theirs) {
            attrs.push((ours, n.bool_attr(value != 0)));
        }
    }
    n.call(operands, attrs)
}

fn export_gemm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_gemm_with(n, Vec::new())
}

/// Writes `Gemm` with the attributes `more` besides its own.
pub(super) fn export_gemm_with(n: &mut NodeExport<'_>, more: Vec<AttributeProto>) -> Result<(), ExportProblem> {
    let mut inputs = n.operands()?;
    if inputs.len() == 2 && n.opset() < 11 {
        // Before version 11 the third operand was required.
        let zero = n.zero_like(0)?;
        inputs.push(n.own_constant(&zero)?);
    }
    let mut attributes = more;
    for name in ["alpha", "beta"] {
        let value = n.attrs().float(name).unwrap_or(1.0);
        if value != 1.0 {
            attributes.push(exact_float(n, name, value)?);
        }
    }
    for (ours, theirs) in [("trans_a", "transA"), ("trans_b", "transB")] {
        if n.attrs().bool(ours).unwrap_or(false) {
            attributes.push(int_attribute(theirs, 1));
        }
    }
    n.emit("Gemm", inputs, attributes);
    Ok(())
}
