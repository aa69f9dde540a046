//! Operators that move elements.

use anfora_ir::{DType, Literal};

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, as_int64, export_direct, import_direct,
    int_attribute, ints_attribute, with_indices, with_int64,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

const AXIS: &[(&str, AttributeType)] = &[("axis", AttributeType::Int)];
const AXES: &[(&str, AttributeType)] = &[("axes", AttributeType::Ints)];

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("Reshape", OPSETS, "reshape")
            .import(import_reshape)
            .export(export_reshape)
            .attributes(&[("allowzero", AttributeType::Int)]),
        Conversion::new("Expand", 8..=NEWEST, "broadcast_to").import(import_expand).export(export_direct),
        Conversion::new("Flatten", OPSETS, "nn.flatten")
            .import(import_flatten)
            .export(export_axis_since_11)
            .attributes(AXIS),
        Conversion::new("Tile", OPSETS, "tile").import(import_direct).export(export_tile),
        Conversion::new("Transpose", OPSETS, "permute_dims")
            .import(import_transpose)
            .export(export_transpose)
            .attributes(&[("perm", AttributeType::Ints)]),
        Conversion::new("Unsqueeze", 7..=12, "expand_dims")
            .import(import_axes_attribute)
            .export(export_axes_attribute)
            .attributes(AXES),
        Conversion::new("Unsqueeze", 13..=NEWEST, "expand_dims")
            .import(import_axes_operand)
            .export(export_axes_operand),
        Conversion::new("Squeeze", 7..=12, "squeeze")
            .import(import_axes_attribute)
            .export(export_axes_attribute)
            .attributes(AXES),
        Conversion::new("Squeeze", 13..=NEWEST, "squeeze").import(import_axes_operand).export(export_axes_operand),
        Conversion::new("Concat", OPSETS, "concat").import(import_concat).export(export_axis).attributes(AXIS),
        Conversion::new("Split", 7..=12, "split")
            .import(import_split)
            .export(export_split)
            .attributes(&[("axis", AttributeType::Int), ("split", AttributeType::Ints)]),
        Conversion::new("Split", 13..=NEWEST, "split")
            .import(import_split)
            .export(export_split)
            .attributes(&[("axis", AttributeType::Int), ("num_outputs", AttributeType::Int)]),
        Conversion::new("Slice", 7..=9, "strided_slice")
            .import(import_slice_attributes)
            .export(export_slice_attributes)
            .attributes(&[
                ("axes", AttributeType::Ints),
                ("starts", AttributeType::Ints),
                ("ends", AttributeType::Ints),
            ]),
        Conversion::new("Slice", 10..=NEWEST, "dynamic_strided_slice").export(export_dynamic_slice),
        Conversion::new("Slice", 10..=NEWEST, "strided_slice")
            .import(import_slice_operands)
            .export(export_slice_operands),
        Conversion::new("Gather", OPSETS, "take").import(import_gather).export(export_gather).attributes(AXIS),
        Conversion::new("Shape", OPSETS, "shape_of")
            .import(import_shape)
            .export(export_shape)
            .attributes(&[("start", AttributeType::Int), ("end", AttributeType::Int)]),
        Conversion::new("Size", OPSETS, "size").import(import_direct).export(export_direct),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_reshape(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let allow = n.int("allowzero").unwrap_or(0) != 0;
    let operands = n.all_operands()?;
    let allow = n.bool_attr(allow);
    n.call(operands, vec![("allowzero", allow)])
}

fn export_reshape(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = Vec::new();
    if n.attrs().bool("allowzero").unwrap_or(false) {
        n.needs_opset(14)?;
        attributes.push(int_attribute("allowzero", 1));
    }
    let inputs = n.operands()?;
    n.emit("Reshape", inputs, attributes);
    Ok(())
}

/// Imports `Expand`. In ONNX either the operand or the shape may be the larger one. The result is
/// known to have the given shape only if every extent of the operand fits it.
fn import_expand(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let to = n.ints_operand(1).ok();
    let from = n.static_shape(0).ok();
    let is_one_directional = match (from, to) {
        (Some(from), Some(to)) => {
            let fits = |(&from, &to): (&usize, &i64)| from == 1 || usize::try_from(to) == Ok(from);
            from.len() <= to.len() && from.iter().rev().zip(to.iter().rev()).all(fits)
        }
        _ => false,
    };
    let bidirectional = n.bool_attr(!is_one_directional);
    n.call(operands, vec![("bidirectional", bidirectional)])
}

fn import_transpose(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let axes = n.ints("perm").map(<[i64]>::to_vec);
    let attrs = axes.map(|a| ("axes", n.cx().ints_attr(&a))).into_iter().collect();
    n.call(operands, attrs)
}

fn export_transpose(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    // The format does not allow negative axes here.
    let from_start = |axes: Vec<i64>| {
        let rank = axes.len() as i64;
        axes.into_iter().map(|a| if a < 0 { a + rank } else { a }).collect::<Vec<_>>()
    };
    let axes = n.attrs().ints("axes").map(from_start);
    let attributes = axes.map(|a| ints_attribute("perm", &a)).into_iter().collect();
    let inputs = n.operands()?;
    n.emit("Transpose", inputs, attributes);
    Ok(())
}

fn import_axes_attribute(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let axes = n.ints("axes").map(<[i64]>::to_vec);
    if n.operand_count() != 1 || (axes.is_none() && n.native() == "expand_dims") {
        return Err(because("its axes are not one list that an attribute gives"));
    }
    import_axes(n, axes)
}

fn import_axes_operand(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if n.operand(1).is_some() && n.literal(1).is_err() {
        if n.dtype(1)? != DType::Int64 {
            return n.unknown_elements(1);
        }
        let is_empty_excluded = matches!(n.extents(1).as_deref(), Ok([Some(1..)]));
        if n.native() == "squeeze" && !is_empty_excluded {
            return Err(because("its list of axes may be empty"));
        }
        let operands = n.all_operands()?;
        return n.call(operands, Vec::new());
    }
    let axes = match n.operand(1) {
        Some(_) => Some(n.ints_operand(1)?),
        None if n.native() == "squeeze" => None,
        None => return Err(because("it says no axes")),
    };
    import_axes(n, axes)
}

fn import_axes(n: &mut NodeImport<'_, '_>, axes: Option<Vec<i64>>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    // An empty list means no axis to our operators; the format does not define its meaning.
    if axes.as_ref().is_some_and(|a| a.is_empty() || a.len() > 64) {
        return Err(because("its list of axes is empty, or longer than any rank"));
    }
    let attrs = axes.map(|a| ("axis", n.cx().ints_attr(&a))).into_iter().collect();
    n.call(vec![x], attrs)
}

fn export_axes_attribute(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let listed = n.literal(1).and_then(Literal::to_i64s);
    if !n.is_left_out(1) && listed.is_none() {
        n.needs_opset(13)?;
    }
    let axes = n.attrs().ints("axis").or(listed);
    let x = n.operand(0)?;
    if axes.as_ref().is_some_and(Vec::is_empty) {
        return export_no_axes(n, x);
    }
    let attributes = axes.map(|a| ints_attribute("axes", &a)).into_iter().collect();
    n.emit(n.onnx(), vec![x], attributes);
    Ok(())
}

/// Writes `Identity` for an empty list of axes. Our operators take it as no axis, but readers of
/// the format treat it like a missing list.
fn export_no_axes(n: &mut NodeExport<'_>, x: String) -> Result<(), ExportProblem> {
    n.emit("Identity", vec![x], Vec::new());
    Ok(())
}

fn export_axes_operand(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut inputs = vec![n.operand(0)?];
    let axes = n.attrs().ints("axis");
    let listed = axes.clone().or_else(|| n.literal(1).and_then(Literal::to_i64s));
    if listed.as_ref().is_some_and(Vec::is_empty) {
        return export_no_axes(n, inputs.remove(0));
    }
    if let Some(axes) = axes {
        inputs.push(n.ints_constant(&axes, 1)?);
    } else if !n.is_left_out(1) {
        let is_empty_excluded = listed.is_some() || matches!(n.partial_extents(1).as_deref(), Some([Some(1..)]));
        if n.native() == "squeeze" && !is_empty_excluded {
            return Err(ExportProblem::Unsupported("`squeeze` by a list of axes that may be empty".to_owned()));
        }
        inputs.push(as_int64(n, 1)?);
    }
    n.emit(n.onnx(), inputs, Vec::new());
    Ok(())
}

fn import_concat(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.needed("axis", n.int("axis"))?;
    import_axis(n)
}

fn import_gather(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if n.dtype(1)?.is_integer() { import_axis(n) } else { n.unknown_elements(1) }
}

fn import_axis(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let axis = n.int("axis").unwrap_or(0);
    let axis = n.cx().int_attr(axis);
    n.call(operands, vec![("axis", axis)])
}

fn export_axis(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(0);
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, vec![int_attribute("axis", axis)]);
    Ok(())
}

fn export_gather(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(0);
    let inputs = with_indices(n)?;
    n.emit("Gather", inputs, vec![int_attribute("axis", axis)]);
    Ok(())
}

fn export_tile(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let inputs = with_int64(n)?;
    n.emit("Tile", inputs, Vec::new());
    Ok(())
}

fn import_split(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let axis = n.int("axis").unwrap_or(0);
    let parts = n.output_count();
    if n.operand(1).is_some() && n.literal(1).is_err() {
        if n.dtype(1)? != DType::Int64 || n.int("num_outputs").is_some() {
            return Err(because("its sizes are not int64, or it says its number of outputs too"));
        }
        let operands = n.all_operands()?;
        let attrs = vec![("axis", n.cx().int_attr(axis)), ("sections", n.cx().int_attr(parts as i64))];
        return n.call(operands, attrs);
    }
    let extents = n.extents(0)?;
    let position = if axis < 0 { axis + extents.len() as i64 } else { axis };
    let extent = usize::try_from(position).ok().and_then(|p| extents.get(p).copied());
    let extent = extent.ok_or_else(|| UnsupportedReason::misfit(format!("axis {axis} is out of range")))?;
    let sizes = match n.operand(1) {
        Some(_) => Some(n.ints_operand(1)?),
        None => n.ints("split").map(<[i64]>::to_vec),
    };
    let mut attrs = vec![("axis", n.cx().int_attr(axis))];
    match sizes {
        Some(sizes) => {
            let mut end = 0i64;
            let mut cuts = Vec::with_capacity(sizes.len());
            for &size in &sizes {
                let next = end.checked_add(size).filter(|_| size >= 0);
                end = next.ok_or_else(|| UnsupportedReason::misfit("a size is negative, or their sum too large"))?;
                cuts.push(end);
            }
            if sizes.len() != parts || extent.is_some_and(|e| e != end) {
                return Err(UnsupportedReason::misfit("its sizes do not fit its outputs, or the extent that is cut"));
            }
            if extent.is_none() || n.int("num_outputs").is_some() {
                return Err(because("its sizes do not fit its outputs, or the extent that is cut"));
            }
            cuts.pop();
            attrs.push(("indices", n.cx().ints_attr(&cuts)));
        }
        None => {
            // Since version 18 the last part may be smaller, as in our operator.
            let (stated, uneven) = (n.int("num_outputs"), extent.is_none_or(|e| e % parts.max(1) as i64 != 0));
            if stated.is_some_and(|s| s != parts as i64) || (stated.is_none() && uneven) || parts == 0 {
                return Err(because("its number of outputs does not fit the extent that is cut"));
            }
            // All parts before the last have the same size, rounded up. If these parts need more
            // than the extent, ONNX does not define the last part.
            let before = |e: i64| (e / parts as i64 + i64::from(e % parts as i64 != 0)).checked_mul(parts as i64 - 1);
            if extent.is_some_and(|e| before(e).is_none_or(|b| b > e)) {
                return Err(because("the parts before the last are more than the extent that is cut"));
            }
            attrs.push(("sections", n.cx().int_attr(parts as i64)));
        }
    }
    n.call(vec![x], attrs)
}

fn export_split(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(0);
    let mut inputs = vec![n.operand(0)?];
    let mut attributes = vec![int_attribute("axis", axis)];
    let sections = n.attrs().int("sections");
    if !n.is_left_out(1) {
        match n.literal(1).and_then(Literal::to_i64s).filter(|_| n.opset() < 13) {
            Some(sizes) => attributes.push(ints_attribute("split", &sizes)),
            None => {
                n.needs_opset(13)?;
                inputs.push(as_int64(n, 1)?);
            }
        }
        n.emit("Split", inputs, attributes);
        return Ok(());
    }
    // For a number of parts, the format makes equal parts and a last part of the rest.
    let only_last_differs = |sizes: &[i64]| sizes[..sizes.len().saturating_sub(1)].windows(2).all(|w| w[0] == w[1]);
    match n.result_extents(axis) {
        // Without sizes, the format makes equal parts.
        Some(sizes) if n.opset() < 18 && sections.is_some() && sizes.windows(2).all(|w| w[0] == w[1]) => {}
        Some(sizes) if n.opset() < 13 => attributes.push(ints_attribute("split", &sizes)),
        Some(sizes) if n.opset() < 18 || sections.is_none() || !only_last_differs(&sizes) => {
            inputs.push(n.ints_constant(&sizes, 1)?)
        }
        _ => match sections {
            Some(parts) => {
                n.needs_opset(18)?;
                attributes.push(int_attribute("num_outputs", parts));
            }
            None => return Err(ExportProblem::Unsupported("`split` of an unknown extent".to_owned())),
        },
    }
    n.emit("Split", inputs, attributes);
    Ok(())
}

fn import_slice_attributes(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let list = |name: &str| n.ints(name).map(<[i64]>::to_vec);
    let (begin, end) = (n.needed("starts", list("starts"))?, n.needed("ends", list("ends"))?);
    let axes = list("axes");
    match n.operand_count() {
        1 => import_slice(n, begin, end, axes, None),
        more => Err(because(format!("it has {more} inputs"))),
    }
}

fn import_slice_operands(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    if (1..n.operand_count()).any(|i| n.operand(i).is_some() && n.literal(i).is_err()) {
        for i in 0..3 {
            n.required(i)?;
        }
        let operands = n.operands();
        for i in (1..operands.len()).filter(|&i| i <= 2 || n.operand(i).is_some()).collect::<Vec<_>>() {
            if !matches!(n.dtype(i)?, DType::Int32 | DType::Int64) {
                return n.unknown_elements(i);
            }
        }
        return Ok(Lowered::Call { op: "dynamic_strided_slice".into(), operands, attrs: Vec::new() });
    }
    let begin = n.ints_operand(1)?;
    let end = n.ints_operand(2)?;
    let mut optional = |i: usize| match n.operand(i) {
        Some(_) => n.ints_operand(i).map(Some),
        None => Ok(None),
    };
    let (axes, strides) = (optional(3)?, optional(4)?);
    import_slice(n, begin, end, axes, strides)
}

fn import_slice(
    n: &mut NodeImport<'_, '_>,
    begin: Vec<i64>,
    end: Vec<i64>,
    axes: Option<Vec<i64>>,
    strides: Option<Vec<i64>>,
) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let mut attrs = vec![("begin", n.cx().ints_attr(&begin)), ("end", n.cx().ints_attr(&end))];
    attrs.extend(axes.map(|a| ("axes", n.cx().ints_attr(&a))));
    attrs.extend(strides.map(|s| ("strides", n.cx().ints_attr(&s))));
    n.call(vec![x], attrs)
}

fn export_slice_attributes(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().ints("strides").is_some_and(|s| s.iter().any(|&s| s != 1)) {
        n.needs_opset(10)?;
    }
    let mut attributes = Vec::new();
    for (ours, theirs) in [("begin", "starts"), ("end", "ends"), ("axes", "axes")] {
        attributes.extend(n.attrs().ints(ours).map(|v| ints_attribute(theirs, &v)));
    }
    let inputs = n.operands()?;
    n.emit("Slice", inputs, attributes);
    Ok(())
}

fn export_slice_operands(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut inputs = n.operands()?;
    for (i, name) in ["begin", "end", "axes", "strides"].into_iter().enumerate() {
        inputs.push(match n.attrs().ints(name) {
            Some(values) => n.ints_constant(&values, i + 1)?,
            None => String::new(),
        });
    }
    while inputs.last().is_some_and(String::is_empty) {
        inputs.pop();
    }
    n.emit("Slice", inputs, Vec::new());
    Ok(())
}

/// Writes a slice whose lists are operands. All lists must have the same element type, int32 or
/// int64.
fn export_dynamic_slice(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut inputs = n.operands()?;
    let lists: Vec<usize> = (1..inputs.len()).filter(|&i| !n.is_left_out(i)).collect();
    let are = |dtype: DType| lists.iter().all(|&i| n.dtype(i) == Some(dtype));
    if !are(DType::Int32) && !are(DType::Int64) {
        for i in lists {
            inputs[i] = as_int64(n, i)?;
        }
    }
    n.emit("Slice", inputs, Vec::new());
    Ok(())
}

fn import_shape(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let mut attrs = Vec::new();
    for name in ["start", "end"] {
        if let Some(axis) = n.int(name) {
            if n.opset() < 15 {
                return Err(because(format!("the attribute `{name}` is of version 15")));
            }
            attrs.push((name, n.cx().int_attr(axis)));
        }
    }
    n.call(operands, attrs)
}

/// The first version in which Shape takes a range of axes.
const RANGE_OF_AXES_SINCE: i64 = 15;

fn export_shape(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let start = n.attrs().int("start").filter(|&s| s != 0);
    let end = n.attrs().int("end");
    let inputs = n.operands()?;
    if n.opset() < RANGE_OF_AXES_SINCE && n.states_versions() && start.or(end).is_some() {
        return write_part_of_shape(n, inputs, start.unwrap_or(0), end.unwrap_or(i64::MAX));
    }
    let mut attributes = Vec::new();
    for (name, axis) in [("start", start), ("end", end)] {
        if let Some(axis) = axis {
            n.needs_opset(RANGE_OF_AXES_SINCE)?;
            attributes.push(int_attribute(name, axis));
        }
    }
    n.emit("Shape", inputs, attributes);
    Ok(())
}

/// Writes a part of a shape as a slice of the whole. Both count from the end if they are negative.
fn write_part_of_shape(n: &mut NodeExport<'_>, inputs: Vec<String>, start: i64, end: i64) -> Result<(), ExportProblem> {
    let shape = n.step("Shape", inputs, Vec::new());
    if n.opset() < 10 {
        n.emit("Slice", vec![shape], vec![ints_attribute("starts", &[start]), ints_attribute("ends", &[end])]);
        return Ok(());
    }
    let bounds = [n.ints_constant(&[start], usize::MAX)?, n.ints_constant(&[end], usize::MAX)?];
    let inputs = [shape].into_iter().chain(bounds).collect();
    n.emit("Slice", inputs, Vec::new());
    Ok(())
}

fn import_flatten(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let axis = n.int("axis").unwrap_or(1);
    if axis < 0 && n.opset() < 11 {
        return Err(because("negative axes are of version 11"));
    }
    let axis = n.cx().int_attr(axis);
    n.call(operands, vec![("axis", axis)])
}

fn export_axis_since_11(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().int("axis").is_some_and(|a| a < 0) {
        n.needs_opset(11)?;
    }
    export_axis(n)
}
