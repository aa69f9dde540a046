//! Recurrent networks, and the convolution that continues a sequence.

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, exact_float, int_attribute, str_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

const LSTM: &[(&str, AttributeType)] = &[
    ("activations", AttributeType::Strings),
    ("clip", AttributeType::Float),
    ("direction", AttributeType::String),
    ("hidden_size", AttributeType::Int),
    ("input_forget", AttributeType::Int),
    ("layout", AttributeType::Int),
];
const GRU: &[(&str, AttributeType)] = &[
    ("activations", AttributeType::Strings),
    ("clip", AttributeType::Float),
    ("direction", AttributeType::String),
    ("hidden_size", AttributeType::Int),
    ("layout", AttributeType::Int),
    ("linear_before_reset", AttributeType::Int),
];
const RNN: &[(&str, AttributeType)] = &[
    ("activations", AttributeType::Strings),
    ("clip", AttributeType::Float),
    ("direction", AttributeType::String),
    ("hidden_size", AttributeType::Int),
    ("layout", AttributeType::Int),
];
/// The version that added the attribute `layout`.
const LAYOUT_SINCE: i64 = 14;

pub(super) fn register(table: &mut Conversions) {
    let networks = [("LSTM", "nn.lstm", LSTM), ("GRU", "nn.gru", GRU), ("RNN", "nn.rnn", RNN)];
    for (onnx, native, attributes) in networks {
        let row = Conversion::new(onnx, 7..=NEWEST, native).import(import_network).export(export_network);
        table.register(row.attributes(attributes));
    }
    table.register(
        Conversion::new("CausalConvWithState", 27..=NEWEST, "nn.causal_conv1d")
            .same(&[("activation", AttributeType::String)]),
    );
}

/// Returns the activations of a network that are left out: those that ours have.
fn usual_activations(onnx: &str) -> &'static [&'static str] {
    match onnx {
        "LSTM" => &["Sigmoid", "Tanh", "Tanh"],
        "GRU" => &["Sigmoid", "Tanh"],
        _ => &["Tanh"],
    }
}

/// Returns the attribute of a network of its own kind, which is 0 or 1.
fn own_flag(onnx: &str) -> Option<&'static str> {
    match onnx {
        "LSTM" => Some("input_forget"),
        "GRU" => Some("linear_before_reset"),
        _ => None,
    }
}

fn import_network(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = n.float_dtype(0)?;
    let onnx = n.row().onnx.clone();
    if let Some(activations) = n.attribute("activations") {
        let usual = usual_activations(&onnx);
        let given = activations.strings.iter().zip(usual.iter().cycle());
        let mut differing = given.filter(|(name, usual)| !name.eq_ignore_ascii_case(usual.as_bytes()));
        if !activations.strings.len().is_multiple_of(usual.len()) || differing.next().is_some() {
            return Err(because("its activations are not those of our operator"));
        }
    }
    let mut attrs = Vec::new();
    if let Some(direction) = n.str("direction").map(str::to_owned) {
        attrs.push(("direction", n.cx().str_attr(&direction)));
    }
    if let Some(layout) = n.int("layout") {
        if n.opset() < LAYOUT_SINCE {
            return Err(because("the attribute `layout` is younger than the version"));
        }
        attrs.push(("layout", n.cx().int_attr(layout)));
    }
    if let Some(clip) = n.float("clip") {
        attrs.push(("clip", n.float_attr(clip, dtype)));
    }
    if let Some(name) = own_flag(&onnx)
        && let Some(value) = n.int(name)
    {
        match value {
            bit @ (0 | 1) => attrs.push((name, n.bool_attr(bit == 1))),
            other => return n.unknown_value(name, other),
        }
    }
    if let (Some(stated), Some(Some(hidden))) = (n.int("hidden_size"), n.extents(2)?.get(2).copied())
        && stated != hidden
    {
        return Err(UnsupportedReason::misfit(format!(
            "`hidden_size` is {stated}, but the state has {hidden} elements"
        )));
    }
    let operands = n.operands();
    n.call(operands, attrs)
}

fn export_network(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    let mut attributes = Vec::new();
    if let Some(hidden) = n.partial_extents(2).and_then(|e| e.get(2).copied().flatten()) {
        attributes.push(int_attribute("hidden_size", hidden));
    }
    if let Some(direction) = attrs.str("direction").filter(|&d| d != "forward") {
        attributes.push(str_attribute("direction", direction));
    }
    if let Some(layout) = attrs.int("layout").filter(|&l| l != 0) {
        n.needs_opset(LAYOUT_SINCE)?;
        attributes.push(int_attribute("layout", layout));
    }
    if let Some(clip) = attrs.float("clip") {
        attributes.push(exact_float(n, "clip", clip)?);
    }
    if let Some(name) = own_flag(n.onnx()).filter(|name| attrs.bool(name) == Some(true)) {
        attributes.push(int_attribute(name, 1));
    }
    let inputs = n.operands()?;
    n.omit_unused_outputs(0);
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}
