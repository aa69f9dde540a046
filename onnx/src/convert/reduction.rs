//! Reductions.

use anfora_ir::{AttrId, ExprId, Literal};

use super::{
    Conversion, Conversions, Lowered, NodeExport, NodeImport, OPSETS, int_attribute, ints_attribute, with_int64,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

/// Reductions, with the version that made the axes an operand.
const REDUCTIONS: &[(&str, i64, &str)] = &[
    ("ReduceSum", 13, "sum"),
    ("ReduceMean", 18, "mean"),
    ("ReduceMax", 18, "max"),
    ("ReduceMin", 18, "min"),
    ("ReduceProd", 18, "prod"),
    ("ReduceSumSquare", 18, "sum_square"),
    ("ReduceL1", 18, "l1_norm"),
    ("ReduceL2", 18, "l2_norm"),
    ("ReduceLogSum", 18, "log_sum"),
    ("ReduceLogSumExp", 18, "log_sum_exp"),
];

pub(super) fn register(table: &mut Conversions) {
    for &(onnx, operand_since, native) in REDUCTIONS {
        let before = Conversion::new(onnx, *OPSETS.start()..=operand_since - 1, native)
            .import(import_with_attribute)
            .export(export_with_attribute)
            .attributes(&[("axes", AttributeType::Ints), ("keepdims", AttributeType::Int)]);
        let since = Conversion::new(onnx, operand_since..=*OPSETS.end(), native)
            .import(import_with_operand)
            .export(export_with_operand)
            .attributes(&[("keepdims", AttributeType::Int), ("noop_with_empty_axes", AttributeType::Int)]);
        table.register(before);
        table.register(since);
    }
    for (onnx, native) in [("ArgMax", "argmax"), ("ArgMin", "argmin")] {
        let row = Conversion::new(onnx, OPSETS, native).import(import_arg).export(export_arg);
        table.register(row.attributes(&[
            ("axis", AttributeType::Int),
            ("keepdims", AttributeType::Int),
            ("select_last_index", AttributeType::Int),
        ]));
    }
}

fn import_with_attribute(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let axes = n.ints("axes").map(<[i64]>::to_vec);
    if n.operand_count() != 1 || axes.as_ref().is_some_and(Vec::is_empty) {
        return Err(because("its axes are not one list that an attribute gives, or there are none in it"));
    }
    import_axes(n, axes)
}

fn import_with_operand(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let noop = n.int("noop_with_empty_axes").unwrap_or(0) != 0;
    if n.operand(1).is_some() && n.literal(1).is_err() {
        let operands = n.all_operands()?;
        let attrs = vec![("noop_with_empty_axes", n.bool_attr(noop))];
        return import_operands(n, operands, attrs);
    }
    let axes = match n.operand(1) {
        Some(_) => Some(n.ints_operand(1)?).filter(|a| !a.is_empty()),
        None => None,
    };
    // Without axes, this attribute means "no axis" instead of "all axes".
    let axes = if axes.is_none() && noop { Some(Vec::new()) } else { axes };
    import_axes(n, axes)
}

fn import_axes(n: &mut NodeImport<'_, '_>, axes: Option<Vec<i64>>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let attrs = axes.map(|a| ("axis", n.cx().ints_attr(&a))).into_iter().collect();
    import_operands(n, vec![x], attrs)
}

fn import_operands(
    n: &mut NodeImport<'_, '_>,
    operands: Vec<ExprId>,
    mut attrs: Vec<(&'static str, AttrId)>,
) -> Result<Lowered, UnsupportedReason> {
    // The format does not define how the mean, a root or a logarithm of integers is rounded.
    let is_rounded = matches!(n.native(), "mean" | "l2_norm" | "log_sum" | "log_sum_exp");
    if is_rounded && !n.dtype(0)?.is_float() {
        return n.unknown_elements(0);
    }
    attrs.push(("keepdims", n.bool_attr(n.int("keepdims").unwrap_or(1) != 0)));
    n.call(operands, attrs)
}

fn export_with_attribute(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axes = n.attrs().ints("axis");
    let x = n.operand(0)?;
    let of_none = axes.as_ref().is_some_and(Vec::is_empty);
    if of_none && matches!(n.native(), "sum" | "mean" | "prod" | "max" | "min" | "log_sum_exp") {
        n.emit("Identity", vec![x], Vec::new());
        return Ok(());
    }
    if of_none || !n.operand(1)?.is_empty() {
        let row = REDUCTIONS.iter().find(|(onnx, ..)| *onnx == n.onnx());
        n.needs_opset(row.map_or(18, |&(_, operand_since, _)| operand_since))?;
    }
    let mut attributes: Vec<_> = axes.map(|a| ints_attribute("axes", &a)).into_iter().collect();
    attributes.extend(keepdims(n));
    n.emit(n.onnx(), vec![x], attributes);
    Ok(())
}

fn export_with_operand(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axes = n.attrs().ints("axis");
    let mut inputs = with_int64(n)?;
    let mut noop = n.attrs().bool("noop_with_empty_axes").unwrap_or(false) && inputs.len() > 1;
    match axes {
        Some(axes) if axes.is_empty() => noop = true,
        Some(axes) => inputs.push(n.ints_constant(&axes, 1)?),
        None => {}
    }
    let mut attributes: Vec<_> = keepdims(n).into_iter().collect();
    attributes.extend(noop.then(|| int_attribute("noop_with_empty_axes", 1)));
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

/// Returns the attribute `keepdims`, unless it has its default value.
fn keepdims(n: &NodeExport<'_>) -> Option<crate::proto::AttributeProto> {
    let keep = n.attrs().bool("keepdims").unwrap_or(false);
    (!keep).then(|| int_attribute("keepdims", 0))
}

fn import_arg(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let axis = n.int("axis").unwrap_or(0);
    let axis = n.cx().int_attr(axis);
    let keep = n.bool_attr(n.int("keepdims").unwrap_or(1) != 0);
    let last = n.bool_attr(n.int("select_last_index").unwrap_or(0) != 0);
    n.call(operands, vec![("axis", axis), ("keepdims", keep), ("select_last_index", last)])
}

fn export_arg(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut x = n.operand(0)?;
    let axis = n.attrs().int("axis");
    if axis.is_none() {
        if n.attrs().bool("keepdims").unwrap_or(false) {
            return Err(ExportProblem::Unsupported(format!("`{}` over all axes that keeps them", n.native())));
        }
        let flat = n.own_constant(&Literal::from_elements(&[1], &[-1i64]).expect("there is one element"))?;
        x = n.step("Reshape", vec![x, flat], Vec::new());
    }
    let mut attributes = vec![int_attribute("axis", axis.unwrap_or(0))];
    attributes.extend(keepdims(n));
    if n.attrs().bool("select_last_index").unwrap_or(false) {
        n.needs_opset(12)?;
        attributes.push(int_attribute("select_last_index", 1));
    }
    n.emit(n.onnx(), vec![x], attributes);
    Ok(())
}
