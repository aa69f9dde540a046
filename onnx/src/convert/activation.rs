//! Activation functions.

use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, exact_float, export_direct, import_direct,
    str_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason};
use crate::proto::AttributeType;

/// An operator whose attributes are all floats.
struct Activation {
    onnx: &'static str,
    since: i64,
    native: &'static str,
    attributes: &'static [(&'static str, AttributeType)],
    /// The values of attributes that are left out.
    defaults: &'static [f32],
}

const fn activation(
    onnx: &'static str,
    since: i64,
    native: &'static str,
    attributes: &'static [(&'static str, AttributeType)],
    defaults: &'static [f32],
) -> Activation {
    Activation { onnx, since, native, attributes, defaults }
}

const ALPHA: &[(&str, AttributeType)] = &[("alpha", AttributeType::Float)];
const ALPHA_BETA: &[(&str, AttributeType)] = &[("alpha", AttributeType::Float), ("beta", AttributeType::Float)];
const ALPHA_GAMMA: &[(&str, AttributeType)] = &[("alpha", AttributeType::Float), ("gamma", AttributeType::Float)];
const BIAS_LAMBD: &[(&str, AttributeType)] = &[("bias", AttributeType::Float), ("lambd", AttributeType::Float)];

const ACTIVATIONS: &[Activation] = &[
    activation("LeakyRelu", 6, "nn.leaky_relu", ALPHA, &[0.01]),
    activation("ThresholdedRelu", 10, "nn.thresholded_relu", ALPHA, &[1.0]),
    activation("Elu", 6, "nn.elu", ALPHA, &[1.0]),
    activation("Celu", 12, "nn.celu", ALPHA, &[1.0]),
    activation("Selu", 6, "nn.selu", ALPHA_GAMMA, &[1.673_263_2, 1.050_701]),
    activation("HardSigmoid", 6, "nn.hard_sigmoid", ALPHA_BETA, &[0.2, 0.5]),
    activation("Swish", 24, "nn.silu", ALPHA, &[1.0]),
    activation("SwiGLU", 28, "nn.swiglu", ALPHA, &[1.0]),
    activation("Shrink", 9, "nn.shrink", BIAS_LAMBD, &[0.0, 0.5]),
];

/// Activation functions without attributes.
const DIRECT: &[(&str, i64, &str)] = &[
    ("Relu", 7, "nn.relu"),
    ("PRelu", 7, "nn.prelu"),
    ("HardSwish", 14, "nn.hard_swish"),
    ("Mish", 18, "nn.mish"),
    ("Softplus", 1, "nn.softplus"),
    ("Softsign", 1, "nn.softsign"),
];

pub(super) fn register(table: &mut Conversions) {
    for &(onnx, since, native) in DIRECT {
        let row = Conversion::new(onnx, since..=NEWEST, native);
        table.register(row.import(import_direct).export(export_direct));
    }
    for &Activation { onnx, since, native, attributes, .. } in ACTIVATIONS {
        let row = Conversion::new(onnx, since..=NEWEST, native).attributes(attributes);
        table.register(row.import(import_activation).export(export_activation));
    }
    table.register(
        Conversion::new("Gelu", 20..=NEWEST, "nn.gelu")
            .import(import_gelu)
            .export(export_gelu)
            .attributes(&[("approximate", AttributeType::String)]),
    );
}

/// Returns the names of the attributes of the activation `native`, with their defaults in ONNX.
fn attributes_of(native: &str) -> impl Iterator<Item = (&'static str, f32)> + use<> {
    let found = ACTIVATIONS.iter().find(|a| a.native == native);
    found.into_iter().flat_map(|a| a.attributes.iter().zip(a.defaults).map(|(&(name, _), &default)| (name, default)))
}

fn import_activation(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let dtype = n.float_dtype(0)?;
    let mut attrs = Vec::new();
    for (name, default) in attributes_of(n.native()) {
        let value = n.float(name).unwrap_or(default);
        attrs.push((name, n.float_attr(value, dtype)));
    }
    n.call(operands, attrs)
}

/// Writes an activation. Attributes with their default value are left out.
fn export_activation(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = Vec::new();
    for (name, default) in attributes_of(n.native()) {
        let value = n.attrs().float(name).unwrap_or(f64::from(default));
        let attribute = exact_float(n, name, value)?;
        if (value as f32).to_bits() != default.to_bits() {
            attributes.push(attribute);
        }
    }
    let inputs = n.operands()?;
    n.emit(n.onnx(), inputs, attributes);
    Ok(())
}

fn import_gelu(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let attrs = match n.str("approximate") {
        None | Some("none") => Vec::new(),
        Some("tanh") => vec![("approximate", n.cx().str_attr("tanh"))],
        Some(other) => return n.unknown_value("approximate", other.to_owned()),
    };
    n.call(operands, attrs)
}

fn export_gelu(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attributes = match n.attrs().str("approximate") {
        None | Some("none") => Vec::new(),
        Some(other) => vec![str_attribute("approximate", other)],
    };
    let inputs = n.operands()?;
    n.emit("Gelu", inputs, attributes);
    Ok(())
}
