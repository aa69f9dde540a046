//! Resizing of images, and of tensors of any rank.

use anfora_ir::FusionPattern::{Injective, OutEWiseFusable};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, AttrReader, DType, DimOp, FusionPattern, KernelCall, KernelError, Literal,
    OpDef, Splat, TensorType, TypeCall, TypeError, TypeId,
};
use smallvec::SmallVec;

use crate::kernels::Failure;
use crate::kernels::cast::cast;
use crate::kernels::resize::{self, Coordinates, Filter, Method, Nearest, Outside, ResizedAxis, Spread};
use crate::kernels::resize_size::{AspectRatio, Size, Whole, scaled, whole};
use crate::kernels::strides::{resolve_axes, resolve_axis};
use crate::row::row;
use crate::steps;
use crate::typing::{Elements, Extents, RequiredAttrs, as_extent, expect_rank, extent, given, one, result, tensor};

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    vec![
        row(
            "image.resize",
            "resized along axes, by extents (int64) or scales (float32)",
            Arity::exactly(2),
            resized,
            |c| {
                let coordinates = coordinates(&c.attrs)?;
                one(resize::resize(c.operand(0)?, &axes(c, |_, _| coordinates)?, filter(&c.attrs)?, 0.0))
            },
        )
        .steps(steps::resize)
        .attrs(
            const {
                &[
                    AXES,
                    METHOD,
                    AttrDef::new(
                        "coordinate_transformation_mode",
                        AttrKind::Str,
                        AttrDefault::Str("half_pixel"),
                        "where the elements of the result lie in the operand",
                    ),
                    ROUNDING_METHOD,
                    CUBIC_ALPHA,
                    EXCLUDE_OUTSIDE,
                    ANTIALIAS,
                    ASPECT_RATIO,
                ]
            },
        )
        .splat(Splat::OfFirst)
        .fusion(OutEWiseFusable)
        .fusion_rule(by_method)
        .shape_operands(&[1])
        .may_fail(),
        row("image.crop_and_resize", "a region, resized to extents (int64)", Arity::exactly(3), cropped, |c| {
            let region = region(c.operand(2)?)?;
            let outside = c.attrs.required_float("extrapolation_value")?;
            let crop = |i: usize, n: usize| match (region.get(i), region.get(n + i)) {
                (Some(&start), Some(&end)) => Coordinates::Crop { start, end },
                _ => Coordinates::Crop { start: 0.0, end: 1.0 },
            };
            let axes = axes(c, crop)?;
            if region.len() != 2 * axes.len() {
                return Err(wrong_region(region.len(), axes.len()).into());
            }
            one(resize::resize(c.operand(0)?, &axes, filter(&c.attrs)?, outside))
        })
        .steps(steps::resize)
        .attrs(
            const {
                &[
                    AXES,
                    METHOD,
                    ROUNDING_METHOD,
                    CUBIC_ALPHA,
                    EXCLUDE_OUTSIDE,
                    ANTIALIAS,
                    ASPECT_RATIO,
                    AttrDef::new(
                        "extrapolation_value",
                        AttrKind::Float,
                        AttrDefault::Float(0.0),
                        "what an element is that lies outside the operand",
                    ),
                ]
            },
        )
        .fusion(OutEWiseFusable)
        .fusion_rule(by_method)
        .shape_operands(&[1])
        .may_fail(),
    ]
}

/// Returns the fusion pattern. With the nearest method, each element of the result is an element of
/// the operand; with other methods, it is a sum of several elements.
fn by_method(attrs: &AttrReader<'_>) -> FusionPattern {
    match attrs.str("method") {
        Some("nearest") => Injective,
        _ => OutEWiseFusable,
    }
}

const AXES: AttrDef =
    AttrDef::optional("axes", AttrKind::Ints, "the axes that are resized; all, in order, if left out");
const METHOD: AttrDef =
    AttrDef::new("method", AttrKind::Str, AttrDefault::Str("nearest"), "`nearest`, `linear` or `cubic`");
const ROUNDING_METHOD: AttrDef = AttrDef::new(
    "rounding_method",
    AttrKind::Str,
    AttrDefault::Str("round_prefer_floor"),
    "which element is the nearest: `round_prefer_floor`, `round_prefer_ceil`, `floor` or `ceil`",
);
const CUBIC_ALPHA: AttrDef =
    AttrDef::new("cubic_alpha", AttrKind::Float, AttrDefault::Float(-0.75), "the coefficient of the cubic weights");
const EXCLUDE_OUTSIDE: AttrDef = AttrDef::flag(
    "exclude_outside",
    "whether what is outside the operand has no weight; else the elements at the border stand for it",
);
const ANTIALIAS: AttrDef =
    AttrDef::flag("antialias", "whether the weights spread where an axis shrinks, so that every element counts");
const ASPECT_RATIO: AttrDef = AttrDef::new(
    "keep_aspect_ratio_policy",
    AttrKind::Str,
    AttrDefault::Str("stretch"),
    "how extents are meant: `stretch`, or, with one ratio for all axes, `not_larger` or `not_smaller`",
);

/// Returns the value for a string attribute.
fn choice<T: Copy>(attrs: &AttrReader<'_>, name: &str, values: &[(&str, T)]) -> Result<T, Failure> {
    let value = given(attrs.str(name), name)?;
    let found = values.iter().find(|(v, _)| *v == value);
    found.map(|&(_, v)| v).ok_or_else(|| Failure::Mismatch(format!("attribute `{name}` is \"{value}\"")))
}

fn coordinates(attrs: &AttrReader<'_>) -> Result<Coordinates, Failure> {
    let values = [
        ("half_pixel", Coordinates::HalfPixel),
        ("half_pixel_symmetric", Coordinates::HalfPixelSymmetric),
        ("pytorch_half_pixel", Coordinates::PytorchHalfPixel),
        ("align_corners", Coordinates::AlignCorners),
        ("asymmetric", Coordinates::Asymmetric),
        ("tf_half_pixel_for_nn", Coordinates::TfHalfPixelForNn),
    ];
    choice(attrs, "coordinate_transformation_mode", &values)
}

fn filter(attrs: &AttrReader<'_>) -> Result<Filter, Failure> {
    let rounding = [
        ("round_prefer_floor", Nearest::RoundPreferFloor),
        ("round_prefer_ceil", Nearest::RoundPreferCeil),
        ("floor", Nearest::Floor),
        ("ceil", Nearest::Ceil),
    ];
    let nearest = Method::Nearest(choice(attrs, "rounding_method", &rounding)?);
    let cubic = Method::Cubic(attrs.required_float("cubic_alpha")?);
    let method = choice(attrs, "method", &[("nearest", nearest), ("linear", Method::Linear), ("cubic", cubic)])?;
    let outside = if attrs.required_bool("exclude_outside")? { Outside::Excluded } else { Outside::Border };
    let spread = if attrs.required_bool("antialias")? { Spread::WithScale } else { Spread::Fixed };
    if method == nearest && (outside, spread) != (Outside::Border, Spread::Fixed) {
        let message = "`exclude_outside` and `antialias` go with the methods \"linear\" and \"cubic\"";
        return Err(Failure::Mismatch(message.into()));
    }
    Ok(Filter { method, outside, spread })
}

fn aspect_ratio(attrs: &AttrReader<'_>) -> Result<AspectRatio, Failure> {
    let values = [
        ("stretch", AspectRatio::Stretch),
        ("not_larger", AspectRatio::NotLarger),
        ("not_smaller", AspectRatio::NotSmaller),
    ];
    choice(attrs, "keep_aspect_ratio_policy", &values)
}

/// Returns the resized axes, counted from the start.
fn named_axes(attrs: &AttrReader<'_>, rank: usize) -> Result<SmallVec<[usize; 6]>, Failure> {
    match attrs.ints("axes") {
        None => Ok((0..rank).collect()),
        Some(axes) => {
            resolve_axes(&axes, rank)?;
            axes.iter().map(|&a| resolve_axis(a, rank)).collect()
        }
    }
}

/// Returns the parameters of each resized axis. The arguments of `coordinates` are the index of an
/// axis in the list of resized axes and the length of the list.
fn axes(
    c: &KernelCall<'_>,
    coordinates: impl Fn(usize, usize) -> Coordinates,
) -> Result<Vec<ResizedAxis>, KernelError> {
    let (x, size) = (c.operand(0)?, Size::read(c.operand(1)?)?);
    let named = named_axes(&c.attrs, x.rank())?;
    let inputs: SmallVec<[usize; 6]> = named.iter().map(|&a| x.shape()[a]).collect();
    let outputs = size.apply(aspect_ratio(&c.attrs)?, &inputs)?;
    let axis = |(i, (&axis, (output, ratio)))| {
        let coordinates = coordinates(i, named.len());
        ResizedAxis { axis, input: inputs[i], output, ratio, coordinates }
    };
    Ok(named.iter().zip(outputs).enumerate().map(axis).collect())
}

/// Returns the starts and then the ends of the region, one of each for every axis.
fn region(roi: &Literal) -> Result<Vec<f64>, KernelError> {
    let wide = cast(roi, DType::Float64)?;
    Ok(wide.elements::<f64>().map(|e| e.into_owned()).unwrap_or_default())
}

fn wrong_region(entries: usize, axes: usize) -> Failure {
    Failure::Mismatch(format!("a region of {entries} entries for {axes} axes"))
}

fn resized(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    coordinates(&call.attrs())?;
    resize_type(call, &[DType::Int64, DType::Float32]).map(|(ty, _)| ty)
}

fn cropped(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (ty, axes) = resize_type(call, &[DType::Int64])?;
    let roi = tensor(call, 2, Elements::Float)?;
    expect_rank(&roi, 2, 1)?;
    let entries = roi.shape.and_then(|s| as_extent(call.cx, s[0]));
    match (entries, axes) {
        (Some(entries), Some(axes)) if entries != 2 * axes => {
            Err(TypeError::operand(2, wrong_region(entries, axes).to_string()))
        }
        _ => Ok(ty),
    }
}

/// Returns the type of the result, and the number of resized axes if it is known.
fn resize_type(call: &mut TypeCall<'_>, sizes: &[DType]) -> Result<(TypeId, Option<usize>), TypeError> {
    let filter = filter(&call.attrs())?;
    let aspect = aspect_ratio(&call.attrs())?;
    let elements = if matches!(filter.method, Method::Nearest(_)) { Elements::Any } else { Elements::Float };
    let x = tensor(call, 0, elements)?;
    let size = tensor(call, 1, Elements::Any)?;
    if !sizes.contains(&size.dtype) {
        let wanted = sizes.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(" or ");
        let message = format!("operand 1 has elements of {}, but {wanted} is expected", size.dtype);
        return Err(TypeError::operand(1, message));
    }
    expect_rank(&size, 1, 1)?;
    let entries = size.shape.and_then(|s| as_extent(call.cx, s[0]));
    let at_fault = |f: Failure| TypeError::operand(1, f.to_string());
    let known = call.literal(1).map(Size::read).transpose().map_err(at_fault)?;
    let unknown = call.cx.types.dims.unknown();
    let mut shape: Extents = match (&x, &known) {
        (TensorType { shape: Some(shape), .. }, _) => shape.clone(),
        (_, Some(known)) if call.attrs().ints("axes").is_none() => smallvec::smallvec![unknown; known.len()],
        _ => return Ok((result(call.cx, x.dtype, None), call.attrs().ints("axes").map(|a| a.len()).or(entries))),
    };
    let axes = named_axes(&call.attrs(), shape.len())?;
    if let Some(entries) = entries.filter(|&e| e != axes.len()) {
        return Err(TypeError::operand(1, format!("operand 1 has {entries} entries for {} axes", axes.len())));
    }
    let inputs: Option<SmallVec<[usize; 6]>> = axes.iter().map(|&a| as_extent(call.cx, shape[a])).collect();
    match (&known, inputs) {
        (Some(size), Some(inputs)) => {
            let outputs = size.apply(aspect, &inputs).map_err(at_fault)?;
            for (i, (output, _)) in outputs.into_iter().enumerate() {
                shape[axes[i]] = extent(call.cx, output);
            }
        }
        (Some(Size::Scales(scales)), None) => {
            for (&a, &scale) in axes.iter().zip(scales) {
                let dims = &mut call.cx.types.dims;
                shape[a] = match (dims.as_constant(shape[a]).and_then(|c| usize::try_from(c).ok()), whole(scale)) {
                    (Some(input), _) => {
                        let output = scaled(input, scale).map_err(at_fault)?;
                        extent(call.cx, output)
                    }
                    (None, Some(Whole::Times(n))) => {
                        let by = dims.constant(n as i64);
                        dims.mul(shape[a], by)
                    }
                    (None, Some(Whole::Part(n))) => {
                        let by = dims.constant(n as i64);
                        dims.op(DimOp::FloorDiv, shape[a], by)
                    }
                    (None, None) => unknown,
                };
            }
        }
        (Some(Size::Extents(extents)), None) if aspect == AspectRatio::Stretch => {
            for (&a, &e) in axes.iter().zip(extents) {
                shape[a] = extent(call.cx, e);
            }
        }
        _ => axes.iter().for_each(|&a| shape[a] = unknown),
    }
    Ok((result(call.cx, x.dtype, Some(&shape)), Some(axes.len())))
}
