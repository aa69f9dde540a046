//! Normalizations and dropout.

use anfora_ir::{DType, Literal};

use super::written_out::write_group_norm;
use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, exact_float, float_attribute,
    int_attribute, ints_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};

const EPSILON: (&str, AttributeType) = ("epsilon", AttributeType::Float);
const OVER_LAST: &[(&str, AttributeType)] =
    &[("axis", AttributeType::Int), EPSILON, ("stash_type", AttributeType::Int)];

pub(super) fn register(table: &mut Conversions) {
    // The attributes differ between these three ranges of versions. All three normalize with one
    // scale per channel.
    let batch_norms: [(_, &'static [_]); 3] = [
        (7..=8, &[EPSILON, ("spatial", AttributeType::Int)]),
        (9..=13, &[EPSILON]),
        (14..=NEWEST, &[EPSILON, ("training_mode", AttributeType::Int)]),
    ];
    for (opsets, attributes) in batch_norms {
        table.register(
            Conversion::new("BatchNormalization", opsets, "nn.batch_norm")
                .import(import_batch_norm)
                .export(export_batch_norm)
                .attributes(attributes)
                .carried(&["momentum"]),
        );
    }
    let rows = [
        Conversion::new("BatchNormalization", 14..=NEWEST, "nn.batch_norm_training").export(export_batch_norm_training),
        Conversion::new("LayerNormalization", 17..=NEWEST, "nn.layer_norm")
            .import(import_layer_norm)
            .export(export_layer_norm)
            .attributes(OVER_LAST),
        Conversion::new("RMSNormalization", 23..=NEWEST, "nn.rms_norm")
            .import(import_rms_norm)
            .export(export_rms_norm)
            .attributes(OVER_LAST),
        Conversion::new("InstanceNormalization", OPSETS, "nn.instance_norm")
            .import(import_instance_norm)
            .export(export_instance_norm)
            .attributes(&[EPSILON]),
        Conversion::new("GroupNormalization", 18..=20, "nn.group_norm")
            .import(import_group_norm)
            .export(export_group_norm)
            .attributes(&[EPSILON, ("num_groups", AttributeType::Int)]),
        Conversion::new("GroupNormalization", 21..=NEWEST, "nn.group_norm")
            .import(import_group_norm)
            .export(export_group_norm)
            .attributes(&[EPSILON, ("num_groups", AttributeType::Int), ("stash_type", AttributeType::Int)]),
        Conversion::new("MeanVarianceNormalization", 9..=NEWEST, "nn.mean_variance_norm")
            .import(import_mean_variance_norm)
            .export(export_mean_variance_norm)
            .attributes(&[("axes", AttributeType::Ints)]),
        Conversion::new("LpNormalization", OPSETS, "nn.lp_norm")
            .import(import_lp_norm)
            .export(export_lp_norm)
            .attributes(&[("axis", AttributeType::Int), ("p", AttributeType::Int)]),
        Conversion::new("LRN", OPSETS, "nn.lrn").import(import_lrn).export(export_lrn).attributes(&[
            ("alpha", AttributeType::Float),
            ("beta", AttributeType::Float),
            ("bias", AttributeType::Float),
            ("size", AttributeType::Int),
        ]),
        Conversion::new("Dropout", 7..=11, "nn.dropout")
            .import(import_dropout)
            .export(export_dropout)
            .attributes(&[("ratio", AttributeType::Float)]),
        Conversion::new("Dropout", 12..=NEWEST, "nn.dropout")
            .import(import_dropout_with_operands)
            .export(export_dropout_with_operands)
            .carried(&["seed"]),
    ];
    for row in rows {
        table.register(row);
    }
}

/// Checks that all operands have the element type of the first, a float, and returns it.
fn has_one_float(n: &mut NodeImport<'_, '_>) -> Result<DType, UnsupportedReason> {
    let dtype = n.float_dtype(0)?;
    for i in 1..n.operand_count() {
        if n.operand(i).is_some() && n.dtype(i)? != dtype {
            return Err(because(format!("input {i} does not have the element type of the first")));
        }
    }
    Ok(dtype)
}

/// Checks that a node computes statistics in the type that we use: float64 for elements of float64,
/// otherwise float32.
fn has_our_stash(n: &NodeImport<'_, '_>, dtype: DType) -> Result<(), UnsupportedReason> {
    let stash = n.int("stash_type").unwrap_or(1);
    if stash == stash_of(dtype) {
        return Ok(());
    }
    Err(because(format!("the attribute `stash_type` is {stash}, for elements of {dtype}")))
}

/// Returns ONNX's number of the type in which we compute statistics.
fn stash_of(dtype: DType) -> i64 {
    if dtype == DType::Float64 { 11 } else { 1 }
}

/// Returns the attribute `stash_type`, unless it has its default value.
fn stash(n: &NodeExport<'_>) -> Option<AttributeProto> {
    let stash = n.dtype(0).map_or(1, stash_of);
    (stash != 1).then(|| int_attribute("stash_type", stash))
}

pub(super) fn epsilon(n: &NodeExport<'_>) -> Result<AttributeProto, ExportProblem> {
    exact_float(n, "epsilon", n.attrs().float("epsilon").unwrap_or(1e-5))
}

/// Refuses a first operand that is known to have no channel axis.
fn has_channels(n: &mut NodeImport<'_, '_>) -> Result<(), UnsupportedReason> {
    match n.rank(0) {
        Ok(rank) if rank < 2 => Err(because("input 0 has no axis of channels")),
        _ => Ok(()),
    }
}

pub(super) fn import_batch_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = has_one_float(n)?;
    has_channels(n)?;
    let spatial = n.int("spatial").unwrap_or(1);
    if spatial != 1 {
        return n.unknown_value("spatial", spatial);
    }
    let is_training = n.int("training_mode").unwrap_or(0) != 0;
    if !is_training && n.output_count() != 1 {
        return Err(because("its further outputs are those of training"));
    }
    let operands = n.all_operands()?;
    let mut attrs = vec![("epsilon", n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype))];
    if !is_training {
        return n.call(operands, attrs);
    }
    if n.attribute("momentum").is_some_and(|a| a.r#type() != AttributeType::Float || !a.ref_attr_name().is_empty()) {
        return Err(because("the attribute `momentum` is not of the type Float"));
    }
    attrs.push(("momentum", n.float_attr(n.float("momentum").unwrap_or(0.9), dtype)));
    Ok(Lowered::Call { op: "nn.batch_norm_training".into(), operands, attrs })
}

fn has_channels_in_axis_1(n: &NodeExport<'_>) -> Result<(), ExportProblem> {
    let axis = n.attrs().int("axis").unwrap_or(1);
    let rank = n.partial_extents(0).map(|extents| extents.len() as i64);
    if axis == 1 || rank.is_some_and(|rank| axis + rank == 1) {
        return Ok(());
    }
    Err(ExportProblem::Unsupported(format!("`{}` over an axis other than 1", n.native())))
}

fn export_batch_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_batch_norm_with(n, Vec::new())
}

/// Writes `BatchNormalization` with the attributes `more` besides its own.
pub(super) fn export_batch_norm_with(n: &mut NodeExport<'_>, more: Vec<AttributeProto>) -> Result<(), ExportProblem> {
    has_channels_in_axis_1(n)?;
    let inputs = n.operands()?;
    let mut attributes = vec![epsilon(n)?];
    attributes.extend(more);
    n.emit("BatchNormalization", inputs, attributes);
    Ok(())
}

fn export_batch_norm_training(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    has_channels_in_axis_1(n)?;
    let momentum = n.attrs().float("momentum").unwrap_or(0.9);
    let inputs = n.operands()?;
    let attributes = vec![epsilon(n)?, exact_float(n, "momentum", momentum)?, int_attribute("training_mode", 1)];
    n.drop_unused_outputs(1);
    n.emit("BatchNormalization", inputs, attributes);
    Ok(())
}

/// The largest number of axes over which our operators normalize.
const MOST_AXES: i64 = 64;

/// Returns the axes from the attribute `axis` to the last, counted from the end.
fn last_axes(n: &mut NodeImport<'_, '_>) -> Result<Vec<i64>, UnsupportedReason> {
    let axis = n.int("axis").unwrap_or(-1);
    if let Ok(rank) = n.rank(0)
        && !(-(rank as i64)..rank as i64).contains(&axis)
    {
        return Err(UnsupportedReason::misfit(format!("axis {axis} is out of range")));
    }
    // A negative axis does not need the rank.
    let first = if axis < 0 { axis } else { axis - n.rank(0)? as i64 };
    if first < -MOST_AXES {
        return Err(because(format!("there are more than {MOST_AXES} axes from axis {axis} on")));
    }
    Ok((first..0).collect())
}

fn import_layer_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = has_one_float(n)?;
    has_our_stash(n, dtype)?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    let axes = last_axes(n)?;
    let with_statistics = n.output_count() > 1;
    let mut attrs = vec![("axes", n.cx().ints_attr(&axes))];
    attrs.push(("epsilon", n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype)));
    attrs.push(("statistics", n.bool_attr(with_statistics)));
    n.call(operands, attrs)
}

fn first_of_axes(n: &NodeExport<'_>) -> AttributeProto {
    let axes = n.attrs().ints("axes").unwrap_or_else(|| vec![-1]);
    int_attribute("axis", axes.first().copied().unwrap_or(-1))
}

fn export_layer_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let has_statistics = n.attrs().bool("statistics").unwrap_or(false);
    if has_statistics {
        n.drop_unused_outputs(1);
        if n.dtype(0) == Some(DType::Float64) {
            return Err(ExportProblem::Unsupported("`nn.layer_norm` with statistics of float64".to_owned()));
        }
    }
    over_last_axes(n)
}

fn over_last_axes(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().ints("axes").is_some_and(|a| a.is_empty()) {
        return Err(ExportProblem::Unsupported(format!("`{}` over no axes", n.native())));
    }
    let inputs = n.operands()?;
    let mut attributes = vec![first_of_axes(n), epsilon(n)?];
    attributes.extend(stash(n));
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

fn import_rms_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = has_one_float(n)?;
    has_our_stash(n, dtype)?;
    let operands = n.all_operands()?;
    let axes = last_axes(n)?;
    let attrs =
        vec![("axes", n.cx().ints_attr(&axes)), ("epsilon", n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype))];
    n.call(operands, attrs)
}

fn export_rms_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    over_last_axes(n)
}

fn import_instance_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = has_one_float(n)?;
    has_channels(n)?;
    let operands = n.all_operands()?;
    let epsilon = n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype);
    n.call(operands, vec![("epsilon", epsilon)])
}

fn export_instance_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    has_channels_in_axis_1(n)?;
    let inputs = n.operands()?;
    let attributes = vec![epsilon(n)?];
    n.emit("InstanceNormalization", inputs, attributes);
    Ok(())
}

/// The first version in which scale and bias have one element per channel. Before, they have one
/// per group.
pub(super) const GROUPS_BY_CHANNEL_SINCE: i64 = 21;

fn import_group_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = has_one_float(n)?;
    has_channels(n)?;
    if n.opset() >= GROUPS_BY_CHANNEL_SINCE {
        has_our_stash(n, dtype)?;
    }
    let operands = n.all_operands()?;
    let groups = n.needed("num_groups", n.int("num_groups"))?;
    let attrs = vec![
        ("num_groups", n.cx().int_attr(groups)),
        ("epsilon", n.float_attr(n.float("epsilon").unwrap_or(1e-5), dtype)),
    ];
    n.call(operands, attrs)
}

/// Returns the name of a list in which each of the `groups` elements of `name` is repeated `each`
/// times.
fn repeated(n: &mut NodeExport<'_>, name: String, groups: i64, each: i64) -> Result<String, ExportProblem> {
    let column = n.ints_constant(&[groups, 1], usize::MAX)?;
    let column = n.step("Reshape", vec![name, column], Vec::new());
    let shape = n.ints_constant(&[groups, each], usize::MAX)?;
    let rows = n.step("Expand", vec![column, shape], Vec::new());
    let whole = n.ints_constant(&[groups.saturating_mul(each)], usize::MAX)?;
    Ok(n.step("Reshape", vec![rows, whole], Vec::new()))
}

fn export_group_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    has_channels_in_axis_1(n)?;
    let groups = n.attrs().int("num_groups").unwrap_or(1);
    let extent =
        |n: &NodeExport<'_>, i, axis| n.partial_extents(i).and_then(|e: Vec<_>| e.get(axis).copied().flatten());
    // The form with one element per group is deprecated. It is written only for models that came
    // from files and state their versions.
    if !n.states_versions() {
        n.needs_opset(GROUPS_BY_CHANNEL_SINCE)?;
    }
    let by_channel = n.opset() >= GROUPS_BY_CHANNEL_SINCE;
    if !by_channel && [1, 2].iter().any(|&i| extent(n, i, 0).is_some_and(|found| found != groups)) {
        return write_group_norm(n);
    }
    let channels = extent(n, 0, 1);
    let mut inputs = n.operands()?;
    for (i, input) in inputs.iter_mut().enumerate().skip(1) {
        let Some(found) = extent(n, i, 0) else { continue };
        match channels {
            _ if !by_channel => {}
            Some(channels) if found == channels => {}
            Some(channels) => {
                let each = channels.checked_div(found).unwrap_or(0);
                *input = repeated(n, std::mem::take(input), found, each)?;
            }
            None if found == groups && !n.states_versions() => {
                let what = "`nn.group_norm` with a scale or bias by group and an unknown number of channels";
                return Err(ExportProblem::Unsupported(what.to_owned()));
            }
            None => {}
        }
    }
    let mut attributes = vec![int_attribute("num_groups", groups), epsilon(n)?];
    attributes.extend(stash(n).filter(|_| by_channel));
    n.emit("GroupNormalization", inputs, attributes);
    Ok(())
}

fn import_mean_variance_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let operands = n.all_operands()?;
    let axes = n.ints("axes").unwrap_or(&[0, 2, 3]).to_vec();
    let axes = n.cx().ints_attr(&axes);
    n.call(operands, vec![("axes", axes)])
}

fn export_mean_variance_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    // The number that the format's definition of the operator adds to the deviation.
    if n.attrs().float("epsilon") != Some(1e-9) {
        return Err(ExportProblem::Unsupported("`nn.mean_variance_norm` with an epsilon of its own".to_owned()));
    }
    let axes = n.attrs().ints("axes").unwrap_or_default();
    let inputs = n.operands()?;
    n.emit("MeanVarianceNormalization", inputs, vec![ints_attribute("axes", &axes)]);
    Ok(())
}

fn import_lp_norm(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let operands = n.all_operands()?;
    let (axis, p) = (n.int("axis").unwrap_or(-1), n.int("p").unwrap_or(2));
    if !(1..=2).contains(&p) {
        return n.unknown_value("p", p);
    }
    let attrs = vec![("p", n.cx().int_attr(p)), ("axis", n.cx().int_attr(axis))];
    n.call(operands, attrs)
}

fn export_lp_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let (axis, p) = (n.attrs().int("axis").unwrap_or(-1), n.attrs().int("p").unwrap_or(2));
    let inputs = n.operands()?;
    n.emit("LpNormalization", inputs, vec![int_attribute("axis", axis), int_attribute("p", p)]);
    Ok(())
}

const LRN_FLOATS: [(&str, f32); 3] = [("alpha", 0.0001), ("beta", 0.75), ("bias", 1.0)];

fn import_lrn(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = has_one_float(n)?;
    let operands = n.all_operands()?;
    let size = n.needed("size", n.int("size"))?;
    let mut attrs = vec![("size", n.cx().int_attr(size))];
    for (name, default) in LRN_FLOATS {
        let value = n.float(name).unwrap_or(default);
        attrs.push((name, n.float_attr(value, dtype)));
    }
    n.call(operands, attrs)
}

fn export_lrn(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    has_channels_in_axis_1(n)?;
    let mut attributes = vec![int_attribute("size", n.attrs().int("size").unwrap_or(1))];
    for (name, default) in LRN_FLOATS {
        attributes.push(exact_float(n, name, n.attrs().float(name).unwrap_or(f64::from(default)))?);
    }
    let inputs = n.operands()?;
    n.emit("LRN", inputs, attributes);
    Ok(())
}

fn import_dropout(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    // Before version 10 the mask was not a boolean tensor.
    if n.opset() < 10 && n.is_output_used(1) {
        return Err(because("before version 10 its mask is not boolean"));
    }
    let dtype = n.float_dtype(0)?;
    let operands = n.all_operands()?;
    let ratio = n.float_attr(n.float("ratio").unwrap_or(0.5), dtype);
    n.call(operands, vec![("ratio", ratio)])
}

fn import_dropout_with_operands(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let dtype = n.float_dtype(0)?;
    let is_zero = |ratio: &Literal| ratio.as_splat().is_some_and(|bytes| bytes.iter().all(|&b| b == 0));
    let drops_nothing = n.literal(1).is_ok_and(is_zero);
    // Dropout in training with a ratio of 0 has the same result as without training.
    if n.operand(2).is_some() && !drops_nothing && n.literal(2)?.as_scalar::<bool>() != Some(false) {
        return Err(because("it is the form for training"));
    }
    if n.operand(1).is_none() {
        return n.call(vec![x], Vec::new());
    }
    match n.literal(1).ok().and_then(Literal::as_scalar::<f32>) {
        Some(ratio) => {
            let ratio = n.float_attr(ratio, dtype);
            n.call(vec![x], vec![("ratio", ratio)])
        }
        None => {
            n.float_dtype(1)?;
            let ratio = n.required(1)?;
            n.call(vec![x, ratio], Vec::new())
        }
    }
}

fn export_dropout(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let ratio = n.attrs().float("ratio").unwrap_or(0.5);
    let inputs = n.operands()?;
    if inputs.len() > 1 {
        n.needs_opset(12)?;
    }
    if n.opset() < 10 && n.is_output_used(1) {
        // Before version 10 the mask was not boolean.
        n.needs_opset(10)?;
    }
    n.drop_unused_outputs(1);
    n.emit("Dropout", inputs, vec![float_attribute("ratio", ratio)]);
    Ok(())
}

fn export_dropout_with_operands(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let ratio = n.attrs().float("ratio").unwrap_or(0.5);
    let mut inputs = n.operands()?;
    if ratio != 0.5 && inputs.len() < 2 {
        inputs.push(n.named_constant(&Literal::scalar(ratio as f32), 1)?);
    }
    n.drop_unused_outputs(1);
    n.emit("Dropout", inputs, Vec::new());
    Ok(())
}
