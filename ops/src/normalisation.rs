//! Normalisations and dropout.

use anfora_ir::FusionPattern::{Broadcast, OutEWiseFusable};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, Context, DType, DimId, KernelCall, KernelError, Literal, OpDef, Splat,
    TensorType, TypeCall, TypeError, TypeId,
};

use crate::axis_letters::{AxisPlaces, CHANNEL_AXIS, by_channels};
use crate::kernels::Failure;
use crate::kernels::normalise::{self, Response, Statistics};
use crate::kernels::standardise::{self, Running, Statistic};
use crate::kernels::strides::{resolve_axes, resolve_axis};
use crate::row::row;
use crate::steps;
use crate::typing::{
    Elements, Extents, RequiredAttrs, as_extent, axis_of, differ, extent, one, optional, ranked, result, same_elements,
    tensor, unify,
};

const EPSILON: AttrDef = AttrDef::new(
    "epsilon",
    AttrKind::Float,
    AttrDefault::Float(1e-5),
    "added to the variance before its root is taken",
);
const CHANNELS: AttrDef = AttrDef::new(CHANNEL_AXIS, AttrKind::Int, AttrDefault::Int(1), "the axis of the channels");
const LAST_AXES: AttrDef =
    AttrDef::new("axes", AttrKind::Ints, AttrDefault::Ints(&[-1]), "the axes normalised over: the last, in order");

/// Returns the rows of this family.
pub(crate) fn rows() -> Vec<OpDef> {
    let mut rows = by_given_statistics();
    rows.extend(by_own_statistics());
    rows
}

/// Returns the rows whose statistics are operands, or that need none.
fn by_given_statistics() -> Vec<OpDef> {
    vec![
        row(
            "nn.batch_norm",
            "`(x - mean) * (scale / sqrt(var + epsilon)) + bias` by channel; operands x, scale, bias, mean, var",
            Arity::exactly(5),
            batch_norm,
            |c| {
                let statistics =
                    Statistics { scale: c.operand(1)?, bias: c.operand(2)?, mean: c.operand(3)?, var: c.operand(4)? };
                let (axis, epsilon) = (c.attrs.required_int("axis")?, c.attrs.required_float("epsilon")?);
                one(normalise::batch_norm(c.operand(0)?, &statistics, axis, epsilon))
            },
        )
        .splat(Splat::OfAll)
        .attrs(const { &[CHANNELS, EPSILON] })
        .fusion(Broadcast),
        row(
            "nn.lrn",
            "`x / (bias + alpha / size * s) ^ beta`, s the sum of squares over `size` channels around",
            Arity::exactly(1),
            lrn,
            |c| {
                let how = Response {
                    size: c.attrs.required_int("size")?,
                    alpha: c.attrs.required_float("alpha")?,
                    beta: c.attrs.required_float("beta")?,
                    bias: c.attrs.required_float("bias")?,
                };
                by_channels(c, |x| normalise::lrn(x, how))
            },
        )
        .steps(steps::neighbouring_channels)
        .attrs(
            const {
                &[
                    AttrDef::required("size", AttrKind::Int, "how many channels are summed over"),
                    AttrDef::new("alpha", AttrKind::Float, AttrDefault::Float(0.0001), "factor of the mean square"),
                    AttrDef::new("beta", AttrKind::Float, AttrDefault::Float(0.75), "exponent"),
                    AttrDef::new("bias", AttrKind::Float, AttrDefault::Float(1.0), "added before the power is taken"),
                    CHANNELS,
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row(
            "nn.dropout",
            "for inference: the operand itself, and a mask of `true`; operands x, optionally the ratio",
            Arity::between(1, 2),
            dropout,
            |c| {
                let x = c.operand(0)?;
                Ok(vec![x.clone(), Literal::splat(x.shape(), true)])
            },
        )
        .splat(Splat::OfFirst)
        .attrs(
            const {
                &[AttrDef::new(
                    "ratio",
                    AttrKind::Float,
                    AttrDefault::Float(0.5),
                    "what part would be dropped in training, if no operand says it",
                )]
            },
        )
        .forwards(&[(0, 0)]),
    ]
}

/// Returns the rows that normalise by statistics of their operand.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
fn by_own_statistics() -> Vec<OpDef> {
    vec![
        row(
            "nn.layer_norm",
            "`(x - mean) / sqrt(variance + epsilon) * scale + bias` over the last axes; operands x, scale, optionally bias",
            Arity::between(2, 3),
            layer_norm,
            |c| {
                let epsilon = c.attrs.required_float("epsilon")?;
                let (y, statistics) = over_last_axes(c, Statistic::Variance { epsilon })?;
                Ok(match c.attrs.required_bool("statistics")? {
                    true => vec![y, statistics.mean, statistics.inverse_deviation],
                    false => vec![y],
                })
            },
        )
        .splat(Splat::OfAll)
        .attrs(
            const {
                &[
                    LAST_AXES,
                    EPSILON,
                    AttrDef::flag(
                        "statistics",
                        "whether the means and the reciprocals of the deviations are results too",
                    ),
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row(
            "nn.rms_norm",
            "`x / sqrt(mean(x * x) + epsilon) * scale` over the last axes; operands x, scale",
            Arity::exactly(2),
            rms_norm,
            |c| {
                let epsilon = c.attrs.required_float("epsilon")?;
                Ok(vec![over_last_axes(c, Statistic::MeanSquare { epsilon })?.0])
            },
        )
        .splat(Splat::OfAll)
        .attrs(const { &[LAST_AXES, EPSILON] })
        .fusion(OutEWiseFusable),
        row(
            "nn.instance_norm",
            "a layer norm over the axes that are neither batch (axis 0) nor channels, of each channel; operands x, scale, bias",
            Arity::exactly(3),
            instance_norm,
            |c| {
                let epsilon = c.attrs.required_float("epsilon")?;
                let [scale, bias] = [c.operand(1)?, c.operand(2)?];
                by_channels(c, |x| standardise::instance_norm(x, scale, bias, epsilon))
            },
        )
        .splat(Splat::OfAll)
        .attrs(const { &[EPSILON, CHANNELS] })
        .fusion(OutEWiseFusable),
        row(
            "nn.group_norm",
            "a layer norm over groups of channels and all axes but that of the batch (axis 0); operands x, scale, bias",
            Arity::exactly(3),
            group_norm,
            |c| {
                let (groups, epsilon) = (c.attrs.required_int("num_groups")?, c.attrs.required_float("epsilon")?);
                let [scale, bias] = [c.operand(1)?, c.operand(2)?];
                by_channels(c, |x| standardise::group_norm(x, scale, bias, groups, epsilon))
            },
        )
        .splat(Splat::OfAll)
        .attrs(
            const {
                &[
                    AttrDef::required("num_groups", AttrKind::Int, "the number of groups"),
                    EPSILON,
                    CHANNELS,
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row(
            "nn.mean_variance_norm",
            "`(x - mean) / (sqrt(variance) + epsilon)` over any axes",
            Arity::exactly(1),
            mean_variance_norm,
            |c| {
                let epsilon = c.attrs.required_float("epsilon")?;
                let axes = c.attrs.required_ints("axes")?;
                one(standardise::normalise(Statistic::Deviation { epsilon }, c.operand(0)?, &axes))
            },
        )
        .splat(Splat::OfAll)
        .attrs(
            const {
                &[
                    AttrDef::new("axes", AttrKind::Ints, AttrDefault::Ints(&[0, 2, 3]), "the axes normalised over"),
                    AttrDef::new(
                        "epsilon",
                        AttrKind::Float,
                        AttrDefault::Float(1e-9),
                        "added to the root of the variance",
                    ),
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row("nn.lp_norm", "the elements, divided by their norm along an axis; zeros stay", Arity::exactly(1), lp_norm, |c| {
            let statistic = norm_of_order(c.attrs.required_int("p")?)?;
            one(standardise::normalise(statistic, c.operand(0)?, &[c.attrs.required_int("axis")?]))
        })
        .splat(Splat::OfAll)
        .attrs(
            const {
                &[
                    AttrDef::new("p", AttrKind::Int, AttrDefault::Int(2), "the order of the norm: 1 or 2"),
                    AttrDef::new("axis", AttrKind::Int, AttrDefault::Int(-1), "the axis normalised over"),
                ]
            },
        )
        .fusion(OutEWiseFusable),
        row(
            "nn.batch_norm_training",
            "a batch norm by the batch's own mean and variance, and the running ones moved towards them; operands x, scale, bias, mean, var",
            Arity::exactly(5),
            batch_norm_training,
            |c| {
                let running =
                    Running { mean: c.operand(3)?, var: c.operand(4)?, momentum: c.attrs.required_float("momentum")? };
                let (axis, epsilon) = (c.attrs.required_int("axis")?, c.attrs.required_float("epsilon")?);
                let [x, scale, bias] = [c.operand(0)?, c.operand(1)?, c.operand(2)?];
                Ok(standardise::batch_norm_training(x, scale, bias, &running, axis, epsilon)?.to_vec())
            },
        )
        .attrs(
            const {
                &[
                    CHANNELS,
                    EPSILON,
                    AttrDef::new(
                        "momentum",
                        AttrKind::Float,
                        AttrDefault::Float(0.9),
                        "what part of the running statistics is kept",
                    ),
                ]
            },
        ),
    ]
}

fn over_last_axes(
    c: &KernelCall<'_>,
    statistic: Statistic,
) -> Result<(Literal, standardise::LayerStatistics), KernelError> {
    let x = c.operand(0)?;
    let first = first_axis(&c.attrs.required_ints("axes")?, x.rank())?;
    Ok(standardise::layer_norm(statistic, x, c.operand(1)?, c.optional(2), first)?)
}

fn norm_of_order(p: i64) -> Result<Statistic, Failure> {
    match p {
        1 => Ok(Statistic::L1),
        2 => Ok(Statistic::L2),
        p => Err(Failure::Mismatch(format!("attribute `p` is {p}, but 1 or 2 is expected"))),
    }
}

/// Returns the extent of the channels of operand 0; `?` if it is not known.
fn channels(call: &TypeCall<'_>, x: &TensorType) -> Result<DimId, TypeError> {
    match x.shape.as_deref() {
        None => Ok(call.cx.types.dims.unknown()),
        Some(shape) if shape.len() < 2 => Err(TypeError::operand(0, "operand 0 has no axis of channels")),
        Some(shape) => {
            let places = AxisPlaces::of_channels(call.attrs().required_int(CHANNEL_AXIS)?, shape.len())?;
            Ok(shape[places.place(1)])
        }
    }
}

/// Checks operands that have an element for each channel.
fn by_channel(call: &mut TypeCall<'_>, x: &TensorType, channels: DimId, last: usize) -> Result<(), TypeError> {
    for i in 1..=last {
        let p = tensor(call, i, Elements::Float)?;
        same_elements(x, &p, i)?;
        let shape = ranked(call.cx, &p, i, 1)?;
        if unify(call.cx, shape[0], channels).is_none() {
            return Err(differ(call.cx, i, "the extent", shape[0], channels));
        }
    }
    Ok(())
}

fn batch_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    batch_channels(call)?;
    Ok(call.ty(0))
}

/// Returns the extent of the channels, which all operands of a batch norm but the first have.
fn batch_channels(call: &mut TypeCall<'_>) -> Result<DimId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let axis = axis_of(call.attrs().required_int("axis")?, &x)?;
    let channels = match (&x.shape, axis) {
        (Some(shape), Some(axis)) => shape[axis],
        _ => call.cx.types.dims.unknown(),
    };
    by_channel(call, &x, channels, 4)?;
    Ok(channels)
}

fn batch_norm_training(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let channels = batch_channels(call)?;
    let dtype = tensor(call, 0, Elements::Float)?.dtype;
    let running = call.cx.types.tensor(dtype, &[channels]);
    Ok(call.cx.types.tuple(&[call.ty(0), running, running]))
}

/// Returns the first of the normalised axes.
fn first_axis(axes: &[i64], rank: usize) -> Result<usize, Failure> {
    let first = rank.checked_sub(axes.len());
    let in_order = |first: usize| {
        axes.iter().enumerate().try_fold(true, |ok, (i, &a)| Ok(ok && resolve_axis(a, rank)? == first + i))
    };
    match first {
        Some(first) if in_order(first)? => Ok(first),
        _ => Err(Failure::Mismatch(format!("axes {axes:?} are not the last of rank {rank}, in order"))),
    }
}

/// Checks that an operand broadcasts to the shape of operand 0.
fn broadcasts(cx: &mut Context, x: &TensorType, p: &TensorType, i: usize) -> Result<(), TypeError> {
    same_elements(x, p, i)?;
    let (Some(shape), Some(whole)) = (&p.shape, &x.shape) else { return Ok(()) };
    let Some(added) = whole.len().checked_sub(shape.len()) else {
        let (rank, most) = (shape.len(), whole.len());
        return Err(TypeError::operand(i, format!("operand {i} has rank {rank}, but operand 0 has rank {most}")));
    };
    for (&found, &wanted) in shape.iter().zip(&whole[added..]) {
        if cx.types.dims.as_constant(found) != Some(1) && unify(cx, found, wanted).is_none() {
            return Err(differ(cx, i, "an extent", found, wanted));
        }
    }
    Ok(())
}

/// Returns the type of operand 0, and the shape of the statistics, which have one element for each
/// group of elements that are normalised together. The shape is `None` if it is not known.
fn statistics_shape(call: &mut TypeCall<'_>, last_operand: usize) -> Result<(TensorType, Option<Extents>), TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let axes = call.attrs().required_ints("axes")?;
    let mut shape = x.shape.clone();
    if let Some(shape) = &mut shape {
        let first = first_axis(&axes, shape.len())?;
        let one = call.cx.types.dims.constant(1);
        shape[first..].fill(one);
    }
    let scale = tensor(call, 1, Elements::Float)?;
    broadcasts(call.cx, &x, &scale, 1)?;
    for i in 2..=last_operand {
        if let Some(bias) = optional(call, i, Elements::Float)? {
            broadcasts(call.cx, &x, &bias, i)?;
        }
    }
    Ok((x, shape))
}

fn layer_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, shape) = statistics_shape(call, 2)?;
    let y = call.ty(0);
    if !call.attrs().required_bool("statistics")? {
        return Ok(y);
    }
    let computed_in = if x.dtype == DType::Float64 { DType::Float64 } else { DType::Float32 };
    let statistics = result(call.cx, computed_in, shape.as_deref());
    Ok(call.cx.types.tuple(&[y, statistics, statistics]))
}

fn rms_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    statistics_shape(call, 1)?;
    Ok(call.ty(0))
}

fn instance_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let channels = channels(call, &x)?;
    by_channel(call, &x, channels, 2)?;
    Ok(call.ty(0))
}

fn group_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let channels = channels(call, &x)?;
    let groups = call.attrs().required_int("num_groups")?;
    let Some(groups) = usize::try_from(groups).ok().filter(|&g| g > 0) else {
        return Err(TypeError::new(format!("attribute `num_groups` is {groups}, but at least 1 is expected")));
    };
    if let Some(channels) = as_extent(call.cx, channels)
        && !channels.is_multiple_of(groups)
    {
        return Err(TypeError::operand(0, format!("{channels} channels are not {groups} equal groups")));
    }
    let by_group = extent(call.cx, groups);
    for i in 1..3 {
        let p = tensor(call, i, Elements::Float)?;
        same_elements(&x, &p, i)?;
        let shape = ranked(call.cx, &p, i, 1)?;
        if unify(call.cx, shape[0], channels).is_none() && unify(call.cx, shape[0], by_group).is_none() {
            return Err(differ(call.cx, i, "the extent", shape[0], channels));
        }
    }
    Ok(call.ty(0))
}

fn mean_variance_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let axes = call.attrs().required_ints("axes")?;
    if let Some(shape) = &x.shape {
        resolve_axes(&axes, shape.len())?;
    }
    Ok(call.ty(0))
}

fn lp_norm(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    axis_of(call.attrs().required_int("axis")?, &x)?;
    norm_of_order(call.attrs().required_int("p")?)?;
    Ok(call.ty(0))
}

fn lrn(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    channels(call, &x)?;
    let size = call.attrs().required_int("size")?;
    if size < 1 {
        return Err(TypeError::new(format!("attribute `size` is {size}, but at least 1 is expected")));
    }
    Ok(call.ty(0))
}

fn dropout(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    optional(call, 1, Elements::Float)?;
    let mask = result(call.cx, DType::Bool, x.shape.as_deref());
    Ok(call.cx.types.tuple(&[call.ty(0), mask]))
}
