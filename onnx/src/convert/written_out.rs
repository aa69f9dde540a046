//! Operators that are written by their definition for versions that do not have them.
//!
//! A pass may make an operator of ours from the several operators that a model states it with. If
//! the version of the model has no such operator, the export writes as many nodes again. A module
//! that states no version gets one that has the operator.

use anfora_ir::{DType, DimId, Literal, Module, Number, TensorType};

use super::normalization::{GROUPS_BY_CHANNEL_SINCE, epsilon};
use super::{Conversion, Conversions, NodeExport, float_attribute, int_attribute, ints_attribute};
use crate::contrib::replaces;
use crate::error::ExportProblem;
use crate::stated_opsets::stated_version;

/// The first version of the standard operators in which an operator of two operands repeats either
/// of them.
const BROADCASTS_SINCE: i64 = 7;

/// The last node of a definition, the versions before that of the operator, our operator and the
/// rule.
type Definition = (&'static str, std::ops::RangeInclusive<i64>, &'static str, super::ExportRule);

const DEFINITIONS: &[Definition] = &[
    ("Mul", 6..=13, "nn.hard_swish", export_hard_swish),
    ("Mul", 6..=17, "nn.mish", export_mish),
    ("Mul", 6..=23, "nn.silu", export_silu),
    ("Mul", 9..=19, "nn.gelu", export_gelu),
    ("Add", BROADCASTS_SINCE..=16, "nn.layer_norm", export_layer_norm),
    ("Mul", BROADCASTS_SINCE..=22, "nn.rms_norm", export_rms_norm),
    ("Add", BROADCASTS_SINCE..=17, "nn.group_norm", write_group_norm),
    ("MatMul", BROADCASTS_SINCE..=22, "nn.attention", export_attention),
];

pub(super) fn register(table: &mut Conversions) {
    for (last, opsets, native, rule) in DEFINITIONS {
        table.register(Conversion::new(last, opsets.clone(), native).export(*rule));
    }
}

/// Returns the operators of ours that passes should not make from their parts, since the version of
/// the standard operators that the module states has none of them: the export would write as many
/// nodes again. A module that states no version has all. With `contrib`, the operators that
/// [`fuse_contrib_ops`](crate::fuse_contrib_ops) replaces are left out, since it runs afterwards.
///
/// Cost: one loop.
///
/// ```
/// use anfora_ir::{Source, parse_module};
///
/// let text = "#![onnx_opsets=[[\"\", 17]]] def @main(%x: Tensor[(4,), float32]) { %x }";
/// let module = parse_module(Source::new("example", text), anfora_onnx::registry())?;
/// assert!(anfora_onnx::missing_operators(&module, false).contains(&"nn.gelu".to_string()));
/// assert!(!anfora_onnx::missing_operators(&module, false).contains(&"nn.layer_norm".to_string()));
/// assert!(!anfora_onnx::missing_operators(&module, true).contains(&"nn.gelu".to_string()));
/// # Ok::<(), anfora_ir::Diagnostics>(())
/// ```
pub fn missing_operators(module: &Module, contrib: bool) -> Vec<String> {
    let Some(version) = stated_version(module) else { return Vec::new() };
    let is_missing = |(_, opsets, native, _): &&Definition| match *native {
        // Its definition here takes fewer nodes than those that exporters write.
        "nn.hard_swish" => false,
        // Passes make the form with parameters by channel.
        "nn.group_norm" => version < GROUPS_BY_CHANNEL_SINCE,
        // A definition may be for late versions only; the earlier ones have neither.
        _ => version <= *opsets.end() && !(contrib && replaces(native)),
    };
    DEFINITIONS.iter().filter(is_missing).map(|(_, _, native, _)| (*native).to_owned()).collect()
}

/// Refuses a version that a module does not state, so that a later one is chosen.
fn is_stated(n: &NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.states_versions() { Ok(()) } else { n.needs_opset(n.row().opsets.end() + 1) }
}

/// Returns the name of a scalar constant of the element type of the first operand.
fn number(n: &mut NodeExport<'_>, value: f64) -> Result<String, ExportProblem> {
    let literal: Option<Literal> = n.dtype(0).and_then(|dtype| Number::Float(value).scalar(dtype));
    let unknown = || ExportProblem::Unsupported(format!("`{}` of this type", n.native()));
    let literal = literal.ok_or_else(unknown)?;
    n.own_constant(&literal)
}

/// Writes a step with two operands, of which the second is a scalar constant.
fn with_number(n: &mut NodeExport<'_>, op: &str, x: String, value: f64) -> Result<String, ExportProblem> {
    let constant = number(n, value)?;
    let broadcast = (n.opset() < BROADCASTS_SINCE).then(|| int_attribute("broadcast", 1));
    Ok(n.step(op, vec![x, constant], broadcast.into_iter().collect()))
}

/// Writes the last node, a product.
fn emit_product(n: &mut NodeExport<'_>, x: String, y: String) {
    n.emit("Mul", vec![x, y], Vec::new());
}

/// `x * HardSigmoid(x)`
fn export_hard_swish(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let x = n.operand(0)?;
    let attributes = vec![float_attribute("alpha", 1.0 / 6.0)];
    let gate = n.step("HardSigmoid", vec![x.clone()], attributes);
    emit_product(n, x, gate);
    Ok(())
}

/// `x * Tanh(Softplus(x))`
fn export_mish(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let x = n.operand(0)?;
    let softplus = n.step("Softplus", vec![x.clone()], Vec::new());
    let gate = n.step("Tanh", vec![softplus], Vec::new());
    emit_product(n, x, gate);
    Ok(())
}

/// `x * Sigmoid(alpha * x)`
fn export_silu(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let x = n.operand(0)?;
    let alpha = n.attrs().float("alpha").unwrap_or(1.0);
    let scaled = if alpha == 1.0 { x.clone() } else { with_number(n, "Mul", x.clone(), alpha)? };
    let gate = n.step("Sigmoid", vec![scaled], Vec::new());
    emit_product(n, x, gate);
    Ok(())
}

/// `x * (1 + Erf(x / √2)) / 2`, or the approximation with Tanh.
fn export_gelu(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let x = n.operand(0)?;
    let gate = match n.attrs().str("approximate") {
        None | Some("none") => {
            let quotient = with_number(n, "Div", x.clone(), std::f64::consts::SQRT_2)?;
            n.step("Erf", vec![quotient], Vec::new())
        }
        Some(_) => {
            let cube = with_number(n, "Pow", x.clone(), 3.0)?;
            let scaled = with_number(n, "Mul", cube, 0.044_715)?;
            let sum = n.step("Add", vec![x.clone(), scaled], Vec::new());
            let inner = with_number(n, "Mul", sum, (2.0 / std::f64::consts::PI).sqrt())?;
            n.step("Tanh", vec![inner], Vec::new())
        }
    };
    let gate = with_number(n, "Add", gate, 1.0)?;
    let half = with_number(n, "Mul", x, 0.5)?;
    emit_product(n, half, gate);
    Ok(())
}

/// Writes the mean over the axes of a normalization.
fn mean(n: &mut NodeExport<'_>, x: String) -> String {
    let axes = n.attrs().ints("axes").unwrap_or_else(|| vec![-1]);
    n.step("ReduceMean", vec![x], vec![ints_attribute("axes", &axes), int_attribute("keepdims", 1)])
}

/// Writes the mean of squares as a deviation: with epsilon, and its root.
fn deviation(n: &mut NodeExport<'_>, x: &str) -> Result<String, ExportProblem> {
    let square = n.step("Mul", vec![x.to_owned(), x.to_owned()], Vec::new());
    let variance = match n.opset() {
        // Then the axes are an operand.
        18.. => {
            let axes = n.attrs().ints("axes").unwrap_or_else(|| vec![-1]);
            let axes = n.ints_constant(&axes, usize::MAX)?;
            n.step("ReduceMean", vec![square, axes], vec![int_attribute("keepdims", 1)])
        }
        _ => mean(n, square),
    };
    let epsilon = n.attrs().float("epsilon").unwrap_or(1e-5);
    let sum = with_number(n, "Add", variance, epsilon)?;
    Ok(n.step("Sqrt", vec![sum], Vec::new()))
}

/// Refuses statistics as results, and a normalization over no axes.
fn is_plain(n: &NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let has_statistics = n.attrs().bool("statistics").unwrap_or(false);
    if has_statistics || n.attrs().ints("axes").is_some_and(|axes| axes.is_empty()) {
        return n.needs_opset(n.row().opsets.end() + 1);
    }
    Ok(())
}

/// `(x - mean) / deviation * scale + bias`
fn export_layer_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_plain(n)?;
    let [x, scale, bias] = [n.operand(0)?, n.operand(1)?, n.operand(2)?];
    let average = mean(n, x.clone());
    let centred = n.step("Sub", vec![x, average], Vec::new());
    let deviation = deviation(n, &centred)?;
    let quotient = n.step("Div", vec![centred, deviation], Vec::new());
    if bias.is_empty() {
        emit_product(n, quotient, scale);
        return Ok(());
    }
    let scaled = n.step("Mul", vec![quotient, scale], Vec::new());
    n.emit("Add", vec![scaled, bias], Vec::new());
    Ok(())
}

/// `x / deviation * scale`
fn export_rms_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_plain(n)?;
    let [x, scale] = [n.operand(0)?, n.operand(1)?];
    let deviation = deviation(n, &x)?;
    let quotient = n.step("Div", vec![x, deviation], Vec::new());
    emit_product(n, quotient, scale);
    Ok(())
}

/// `Reshape(InstanceNormalization(Reshape(x, [0, groups, -1]), 1, 0), shape of x) * scale + bias`,
/// with a scale and bias for each channel.
pub(super) fn write_group_norm(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let first = |extents: Option<Vec<Option<i64>>>| extents.and_then(|e| e.first().copied().flatten());
    let (extents, dtype) = (n.partial_extents(0).unwrap_or_default(), n.dtype(0));
    let parameters = [1, 2].map(|i| first(n.partial_extents(i)));
    let channels = extents.get(1).copied().flatten();
    let (Some(groups), Some(dtype)) = (n.attrs().int("num_groups").and_then(|g| usize::try_from(g).ok()), dtype) else {
        return n.needs_opset(GROUPS_BY_CHANNEL_SINCE);
    };
    if channels.is_none() || parameters.iter().any(|&of| of != channels) {
        return n.needs_opset(GROUPS_BY_CHANNEL_SINCE);
    }
    let x = n.operand(0)?;
    let list = n.ints_constant(&[0, groups as i64, -1], usize::MAX)?;
    let rows = n.step("Reshape", vec![x.clone(), list], Vec::new());
    let [ones, zeros] = [1.0, 0.0].map(|of| {
        let one = Number::Float(of).scalar(dtype);
        one.and_then(|one| one.as_splat().map(|bytes| Literal::splat_bytes(dtype, &[groups], bytes)))
    });
    let unknown = || ExportProblem::Unsupported("`nn.group_norm` of this type".to_owned());
    let (ones, zeros) = (ones.ok_or_else(unknown)?, zeros.ok_or_else(unknown)?);
    let plain = vec![rows, n.own_constant(&ones)?, n.own_constant(&zeros)?];
    let epsilon = epsilon(n)?;
    let normal = n.step("InstanceNormalization", plain, vec![epsilon]);
    let shape = shape_after_first(n, &x, &extents)?;
    let normal = n.step("Reshape", vec![normal, shape], Vec::new());
    let (scale, bias) = (by_channel(n, 1, extents.len())?, by_channel(n, 2, extents.len())?);
    let scaled = n.step("Mul", vec![normal, scale], Vec::new());
    n.emit("Add", vec![scaled, bias], Vec::new());
    Ok(())
}

/// Returns the name of the shape of `x`, for a reshape of a tensor with the same first extent.
fn shape_after_first(n: &mut NodeExport<'_>, x: &str, extents: &[Option<i64>]) -> Result<String, ExportProblem> {
    let later = &extents[1..];
    let is_list = later.iter().filter(|extent| extent.is_none()).count() <= 1 && !later.contains(&Some(0));
    if !is_list {
        return Ok(n.step("Shape", vec![x.to_owned()], Vec::new()));
    }
    let list: Vec<i64> = std::iter::once(0).chain(later.iter().map(|extent| extent.unwrap_or(-1))).collect();
    n.ints_constant(&list, usize::MAX)
}

/// Returns the name of a list of parameters by channel in a shape that broadcasts to a tensor of
/// this rank.
fn by_channel(n: &mut NodeExport<'_>, i: usize, rank: usize) -> Result<String, ExportProblem> {
    let units = rank.saturating_sub(2);
    if let Some(literal) = n.literal(i) {
        let shape: Vec<usize> = literal.shape().iter().copied().chain(std::iter::repeat_n(1, units)).collect();
        if let Ok(literal) = literal.reshaped(&shape) {
            return n.own_constant(&literal);
        }
    }
    let list: Vec<i64> = std::iter::once(-1).chain(std::iter::repeat_n(1, units)).collect();
    let inputs = vec![n.operand(i)?, n.ints_constant(&list, usize::MAX)?];
    Ok(n.step("Reshape", inputs, Vec::new()))
}

/// `Softmax(query * transposed key * scale + mask) * value`, of operands with heads as an axis.
fn export_attention(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    is_stated(n)?;
    let attrs = n.attrs();
    let sizes = n.partial_extents(0).filter(|extents| extents.len() == 4);
    let scale = attrs.float("scale").or_else(|| Some(1.0 / (sizes?[3]? as f64).sqrt()));
    let (true, Some(scale)) = (is_plain_attention(n), scale) else {
        return n.needs_opset(n.row().opsets.end() + 1);
    };
    let [query, key, value] = [n.operand(0)?, n.operand(1)?, n.operand(2)?];
    let key = n.step("Transpose", vec![key], vec![ints_attribute("perm", &[0, 1, 3, 2])]);
    let mut scores = n.step("MatMul", vec![query, key], Vec::new());
    if scale != 1.0 {
        scores = with_number(n, "Mul", scores, scale)?;
    }
    if !n.is_left_out(3) {
        let mask = n.operand(3)?;
        scores = n.step("Add", vec![scores, mask], Vec::new());
    }
    let weights = n.step("Softmax", vec![scores], vec![int_attribute("axis", 3)]);
    n.emit("MatMul", vec![weights, value], Vec::new());
    Ok(())
}

/// Returns true if an attention has one result, operands of rank 4 with as many heads of queries as
/// of keys, no mask or one that is added to all scores, and nothing else but a scale.
fn is_plain_attention(n: &NodeExport<'_>) -> bool {
    let attrs = n.attrs();
    let is_default = |name: &str, default: i64| attrs.int(name).is_none_or(|value| value == default);
    let shape = |i: usize| n.tensor(i).and_then(|t| t.shape.as_deref());
    let (Some(&[_, heads, ..]), Some(&[_, others, keys, _])) = (shape(0), shape(1)) else { return false };
    let unknown = n.cx().types.dims.unknown();
    let masks_all = |mask: &TensorType| {
        let last = mask.shape.as_deref().and_then(<[DimId]>::last);
        mask.dtype != DType::Bool && keys != unknown && last == Some(&keys)
    };
    let has_plain_mask = n.is_left_out(3) || n.tensor(3).is_some_and(masks_all);
    heads == others
        && heads != unknown
        && shape(0).map(<[DimId]>::len) == Some(4)
        && has_plain_mask
        && (4..=6).all(|i| n.is_left_out(i))
        && attrs.bool("is_causal") != Some(true)
        && attrs.float("softcap").is_none_or(|cap| cap == 0.0)
        && attrs.dtype("softmax_precision").is_none()
        && [("left_window_size", -1), ("right_window_size", -1), ("results", 1)]
            .iter()
            .all(|&(name, of)| is_default(name, of))
}
