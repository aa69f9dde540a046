//! Resizing.

use anfora_ir::{AttrId, DType, Literal};

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, exact_float, floats_attribute, int_attribute,
    ints_attribute, str_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};

const UPSAMPLE: &[(&str, AttributeType)] = &[("mode", AttributeType::String), ("scales", AttributeType::Floats)];
const RESIZE: &[(&str, AttributeType)] = &[
    ("antialias", AttributeType::Int),
    ("axes", AttributeType::Ints),
    ("coordinate_transformation_mode", AttributeType::String),
    ("cubic_coeff_a", AttributeType::Float),
    ("exclude_outside", AttributeType::Int),
    ("extrapolation_value", AttributeType::Float),
    ("keep_aspect_ratio_policy", AttributeType::String),
    ("mode", AttributeType::String),
    ("nearest_mode", AttributeType::String),
];

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("Upsample", 7..=9, "image.resize")
            .import(import_by_scales)
            .export(export_by_scales)
            .attributes(UPSAMPLE),
        Conversion::new("Resize", 10..=10, "image.resize")
            .import(import_by_scales)
            .export(export_by_scales)
            .attributes(&[("mode", AttributeType::String)]),
        Conversion::new("Resize", 11..=NEWEST, "image.crop_and_resize").export(export_crop),
        Conversion::new("Resize", 11..=NEWEST, "image.resize")
            .import(import_resize)
            .export(export_resize)
            .attributes(RESIZE),
    ];
    for row in rows {
        table.register(row);
    }
}

/// An attribute with a fixed set of values: its name in ONNX, its name in our operators, its
/// default, and its values with the first and the last version that knows each.
struct Choice {
    onnx: &'static str,
    native: &'static str,
    default: &'static str,
    values: &'static [(&'static str, i64, i64)],
}

const METHOD: Choice = Choice {
    onnx: "mode",
    native: "method",
    default: "nearest",
    values: &[("nearest", 7, NEWEST), ("linear", 7, NEWEST), ("cubic", 11, NEWEST)],
};
const COORDINATES: Choice = Choice {
    onnx: "coordinate_transformation_mode",
    native: "coordinate_transformation_mode",
    default: "half_pixel",
    values: &[
        ("half_pixel", 11, NEWEST),
        ("half_pixel_symmetric", 19, NEWEST),
        ("pytorch_half_pixel", 11, NEWEST),
        ("align_corners", 11, NEWEST),
        ("asymmetric", 11, NEWEST),
        ("tf_half_pixel_for_nn", 11, 12),
        ("tf_crop_and_resize", 11, NEWEST),
    ],
};
const ROUNDING: Choice = Choice {
    onnx: "nearest_mode",
    native: "rounding_method",
    default: "round_prefer_floor",
    values: &[
        ("round_prefer_floor", 11, NEWEST),
        ("round_prefer_ceil", 11, NEWEST),
        ("floor", 11, NEWEST),
        ("ceil", 11, NEWEST),
    ],
};
const ASPECT_RATIO: Choice = Choice {
    onnx: "keep_aspect_ratio_policy",
    native: "keep_aspect_ratio_policy",
    default: "stretch",
    values: &[("stretch", 18, NEWEST), ("not_larger", 18, NEWEST), ("not_smaller", 18, NEWEST)],
};
const CROP: &str = "tf_crop_and_resize";

impl Choice {
    /// Returns the value of the attribute of a node, or the default.
    fn of_node(&self, n: &NodeImport<'_, '_>) -> Result<&'static str, UnsupportedReason> {
        if n.attribute(self.onnx).is_none() {
            return Ok(self.default);
        }
        let value = n.str(self.onnx).unwrap_or_default();
        match self.values.iter().find(|v| v.0 == value) {
            Some(&(value, first, last)) if (first..=last).contains(&n.opset()) => Ok(value),
            Some(_) => Err(because(format!("`{}` is `{value}`, which its version does not know", self.onnx))),
            None => Err(because(format!("the attribute `{}` is `{value}`", self.onnx))),
        }
    }

    /// Returns the attribute for a call; `None` if the node does not state it.
    fn import(&self, n: &mut NodeImport<'_, '_>) -> Result<Option<(&'static str, AttrId)>, UnsupportedReason> {
        let value = self.of_node(n)?;
        Ok(n.attribute(self.onnx).is_some().then(|| (self.native, n.cx().str_attr(value))))
    }

    /// Returns the attribute for a node; `None` if the call does not state it.
    fn export(&self, n: &NodeExport<'_>) -> Result<Option<AttributeProto>, ExportProblem> {
        if n.attrs().raw(self.native).is_none() {
            return Ok(None);
        }
        let value = n.attrs().str(self.native).unwrap_or_default();
        match self.values.iter().find(|v| v.0 == value) {
            Some(&(_, first, _)) if first > n.opset() && value != self.default => n.needs_opset(first).map(|()| None),
            Some(&(_, first, _)) if first > n.opset() => Ok(None),
            Some(&(_, _, last)) if n.opset() <= last => Ok(Some(str_attribute(self.onnx, value))),
            _ => {
                let problem = format!("`{}` with `{}` `{value}` in version {}", n.native(), self.native, n.opset());
                Err(ExportProblem::Unsupported(problem))
            }
        }
    }
}

fn is_weighted(n: &mut NodeImport<'_, '_>) -> Result<bool, UnsupportedReason> {
    let is_weighted = METHOD.of_node(n)? != METHOD.default;
    if is_weighted {
        // The format does not define how results are rounded to integers.
        n.float_dtype(0)?;
    }
    Ok(is_weighted)
}

/// Imports `Upsample` and the first version of `Resize`, which scale from the corner.
fn import_by_scales(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let (scales, known) = match n.attribute("scales") {
        Some(a) if n.opset() < 9 => {
            let list = a.floats.clone();
            let literal = Literal::from_elements(&[list.len()], &list);
            let literal = literal.map_err(|_| because("it has too many scales"))?;
            (n.constant(literal), Some(list))
        }
        Some(_) => return Err(because("the attribute `scales` is of version 7")),
        None => {
            let known = n.literal(1).ok().and_then(|l| l.elements::<f32>()).map(|s| s.into_owned());
            (n.required(1)?, known)
        }
    };
    let shrinks = known.map(|s| s.iter().any(|&s| s < 1.0));
    let is_weighted = is_weighted(n)?;
    match shrinks {
        // For an axis that shrinks, the first version of `Resize` does not define which element is
        // the nearest.
        None if n.opset() == 10 && !is_weighted => {
            return Err(because("its scales are not constant"));
        }
        Some(true) if n.opset() < 10 || !is_weighted => {
            return Err(because("a scale is less than 1"));
        }
        _ => {}
    }
    let mut attrs = vec![("coordinate_transformation_mode", n.cx().str_attr("asymmetric"))];
    attrs.push(("rounding_method", n.cx().str_attr("floor")));
    attrs.extend(METHOD.import(n)?);
    n.call(vec![x, scales], attrs)
}

fn export_by_scales(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    let is = |name: &str, value: &str| attrs.str(name) == Some(value);
    let is_plain = is(COORDINATES.native, "asymmetric")
        && (!is(METHOD.native, "nearest") || is(ROUNDING.native, "floor"))
        && attrs.bool("exclude_outside") == Some(false);
    if !is_plain || n.dtype(1) != Some(DType::Float32) {
        return n.needs_opset(11);
    }
    check_newer(n)?;
    let mut attributes: Vec<AttributeProto> = METHOD.export(n)?.into_iter().collect();
    let mut inputs = vec![n.operand(0)?];
    let scales = n.literal(1).and_then(|l| l.elements::<f32>());
    let shrinks = scales.as_ref().map(|s| s.iter().any(|&s| s < 1.0));
    match shrinks {
        None if n.opset() == 10 && is(METHOD.native, "nearest") => return n.needs_opset(11),
        Some(true) if is(METHOD.native, "nearest") => return n.needs_opset(11),
        Some(true) => n.needs_opset(10)?,
        _ => {}
    }
    match scales {
        Some(scales) if n.opset() < 9 => {
            let scales: Vec<f64> = scales.iter().map(|&s| s.into()).collect();
            attributes.push(floats_attribute("scales", &scales));
        }
        None if n.opset() < 9 => return n.needs_opset(9),
        _ => inputs.push(n.operand(1)?),
    }
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

/// Returns the axes of a call, unless they are all axes in their order, as without the attribute.
fn some_axes(n: &NodeExport<'_>) -> Option<Vec<i64>> {
    let rank = n.partial_extents(0).map(|extents| extents.len() as i64);
    n.attrs().ints("axes").filter(|axes| rank.is_none_or(|rank| !axes.iter().copied().eq(0..rank)))
}

/// Checks that nodes of this version can express the attributes of the call.
fn check_newer(n: &NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    if some_axes(n).is_some() || attrs.bool("antialias") == Some(true) {
        n.needs_opset(18)?;
    }
    Ok(())
}

/// Returns true if an operand is known to have no elements. Scales or sizes that are not used may
/// be empty.
fn is_empty(n: &mut NodeImport<'_, '_>, i: usize) -> bool {
    n.static_shape(i).is_ok_and(|s| s.contains(&0))
}

fn import_resize(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let x = n.required(0)?;
    let size = match (n.operand(2), n.operand(3)) {
        (Some(_), Some(sizes)) if is_empty(n, 2) => sizes,
        (Some(scales), Some(_)) if is_empty(n, 3) => scales,
        (Some(_), Some(_)) => return Err(because("it has both scales and sizes")),
        (Some(size), None) | (None, Some(size)) => size,
        (None, None) => return Err(because("it has neither scales nor sizes")),
    };
    if n.opset() < 18 {
        let newer = ["antialias", "axes", "keep_aspect_ratio_policy"].into_iter().find(|a| n.attribute(a).is_some());
        if let Some(name) = newer {
            return Err(because(format!("the attribute `{name}` is of version 18")));
        }
    }
    let is_weighted = is_weighted(n)?;
    let mut attrs = Vec::new();
    for name in ["antialias", "exclude_outside"] {
        if let Some(value) = n.int(name) {
            if value != 0 && !is_weighted {
                return Err(because(format!("the attribute `{name}` goes with weights, but `mode` is `nearest`")));
            }
            attrs.push((name, n.bool_attr(value != 0)));
        }
    }
    if let Some(axes) = n.ints("axes").map(<[i64]>::to_vec) {
        attrs.push(("axes", n.cx().ints_attr(&axes)));
    }
    let dtype = n.dtype(0)?;
    if let Some(alpha) = n.float("cubic_coeff_a") {
        attrs.push(("cubic_alpha", n.float_attr(alpha, dtype)));
    }
    for choice in [METHOD, ROUNDING, ASPECT_RATIO] {
        attrs.extend(choice.import(n)?);
    }
    if COORDINATES.of_node(n)? != CROP {
        attrs.extend(COORDINATES.import(n)?);
        return n.call(vec![x, size], attrs);
    }
    if n.operand(3) != Some(size) {
        return Err(because("the size of a region with scales is not agreed upon"));
    }
    if let Some(value) = n.float("extrapolation_value") {
        attrs.push(("extrapolation_value", n.float_attr(value, dtype)));
    }
    let roi = n.required(1)?;
    Ok(Lowered::Call { op: "image.crop_and_resize".into(), operands: vec![x, size, roi], attrs })
}

/// Returns the attributes that both of our resizing operators have.
fn common_attributes(n: &NodeExport<'_>) -> Result<Vec<AttributeProto>, ExportProblem> {
    check_newer(n)?;
    let attrs = n.attrs();
    let mut attributes = Vec::new();
    for name in ["antialias", "exclude_outside"] {
        let is_known = name == "exclude_outside" || n.opset() >= 18;
        if let Some(value) = attrs.bool(name).filter(|_| is_known && attrs.raw(name).is_some()) {
            attributes.push(int_attribute(name, value.into()));
        }
    }
    if let Some(axes) = some_axes(n) {
        attributes.push(ints_attribute("axes", &axes));
    }
    if let Some(alpha) = attrs.float("cubic_alpha").filter(|_| attrs.raw("cubic_alpha").is_some()) {
        attributes.push(exact_float(n, "cubic_coeff_a", alpha)?);
    }
    for choice in [METHOD, ROUNDING, ASPECT_RATIO] {
        attributes.extend(choice.export(n)?);
    }
    Ok(attributes)
}

/// Appends the size to the inputs at the position of its kind: scales or sizes. The inputs already
/// hold the operand and the region.
fn push_size(n: &mut NodeExport<'_>, inputs: &mut Vec<String>) -> Result<(), ExportProblem> {
    let is_scales = n.dtype(1) == Some(DType::Float32);
    if is_scales {
        inputs.push(n.operand_as(1, 2)?);
        return Ok(());
    }
    inputs.push(left_out(n, 2)?);
    inputs.push(n.operand_as(1, 3)?);
    Ok(())
}

/// Returns the name of an unused input: the empty name, or before version 13 the name of a list
/// without elements.
fn left_out(n: &mut NodeExport<'_>, i: usize) -> Result<String, ExportProblem> {
    if n.opset() >= 13 {
        return Ok(String::new());
    }
    n.named_constant(&Literal::splat_bytes(DType::Float32, &[0], &[]), i)
}

fn export_resize(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = common_attributes(n)?;
    attributes.extend(COORDINATES.export(n)?);
    let mut inputs = vec![n.operand(0)?, left_out(n, 1)?];
    push_size(n, &mut inputs)?;
    n.emit("Resize", inputs, attributes);
    Ok(())
}

fn export_crop(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.dtype(2) == Some(DType::BFloat16) {
        return Err(ExportProblem::Unsupported("a region of bfloat16".to_owned()));
    }
    let mut attributes = common_attributes(n)?;
    attributes.push(str_attribute(COORDINATES.onnx, CROP));
    let attrs = n.attrs();
    if let Some(value) = attrs.float("extrapolation_value").filter(|_| attrs.raw("extrapolation_value").is_some()) {
        attributes.push(exact_float(n, "extrapolation_value", value)?);
    }
    let mut inputs = vec![n.operand(0)?, n.operand_as(2, 1)?];
    push_size(n, &mut inputs)?;
    n.emit("Resize", inputs, attributes);
    Ok(())
}
