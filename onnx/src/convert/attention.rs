//! Attention, linear attention and rotary embeddings.

use anfora_ir::{Attr, DType};

use super::{Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, exact_float, int_attribute};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};
use crate::tensor::{dtype_of, number_of};

/// The integer attributes that have the same names and defaults in our operator, with the version
/// that added each.
const NUMBERS: [(&str, i64); 5] = [
    ("q_num_heads", 23),
    ("kv_num_heads", 23),
    ("qk_matmul_output_mode", 23),
    ("left_window_size", 25),
    ("right_window_size", 25),
];

pub(super) fn register(table: &mut Conversions) {
    let rows = [
        Conversion::new("Attention", 23..=NEWEST, "nn.attention")
            .import(import_attention)
            .export(export_attention)
            .attributes(&[
                ("is_causal", AttributeType::Int),
                ("kv_num_heads", AttributeType::Int),
                ("left_window_size", AttributeType::Int),
                ("q_num_heads", AttributeType::Int),
                ("qk_matmul_output_mode", AttributeType::Int),
                ("right_window_size", AttributeType::Int),
                ("scale", AttributeType::Float),
                ("softcap", AttributeType::Float),
                ("softmax_precision", AttributeType::Int),
            ]),
        Conversion::new("LinearAttention", 27..=NEWEST, "nn.linear_attention")
            .same(&[
                ("kv_num_heads", AttributeType::Int),
                ("q_num_heads", AttributeType::Int),
                ("scale", AttributeType::Float),
                ("update_rule", AttributeType::String),
            ])
            .carried(&["chunk_size"]),
        Conversion::new("RotaryEmbedding", 23..=NEWEST, "nn.rotary_embedding").same(&[
            ("interleaved", AttributeType::Int),
            ("num_heads", AttributeType::Int),
            ("rotary_embedding_dim", AttributeType::Int),
        ]),
    ];
    for row in rows {
        table.register(row);
    }
}

fn import_attention(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let dtype = n.float_dtype(0)?;
    if n.operand_count() > 6 && n.opset() < 24 {
        return Err(because("input 6 is younger than the version"));
    }
    let mut attrs = Vec::new();
    for (name, since) in NUMBERS {
        if let Some(value) = n.int(name) {
            if n.opset() < since {
                return Err(because(format!("the attribute `{name}` is younger than the version")));
            }
            attrs.push((name, n.cx().int_attr(value)));
        }
    }
    if n.rank(0)? == 4 {
        // The numbers of heads are extents.
        attrs.retain(|(name, _)| !matches!(*name, "q_num_heads" | "kv_num_heads"));
    }
    match n.int("is_causal") {
        None => {}
        Some(bit @ (0 | 1)) => attrs.push(("is_causal", n.bool_attr(bit == 1))),
        Some(other) => return n.unknown_value("is_causal", other),
    }
    for name in ["scale", "softcap"] {
        if let Some(value) = n.float(name) {
            attrs.push((name, n.float_attr(value, dtype)));
        }
    }
    if let Some(code) = n.int("softmax_precision") {
        match i32::try_from(code).ok().and_then(dtype_of).filter(|d| d.is_float()) {
            Some(precision) => attrs.push(("softmax_precision", n.cx().attr(Attr::DType(precision)))),
            None => return n.unknown_value("softmax_precision", code),
        }
    }
    let results = match n.output_count() {
        0 | 1 => 1,
        2 | 3 => 3,
        _ => 4,
    };
    attrs.push(("results", n.cx().int_attr(results)));
    let operands = n.operands();
    n.call(operands, attrs)
}

fn export_attention(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let attrs = n.attrs();
    let mut attributes: Vec<AttributeProto> = Vec::new();
    for (name, since) in NUMBERS {
        if let Some(value) = attrs.int(name).filter(|_| attrs.raw(name).is_some()) {
            n.needs_opset(since)?;
            attributes.push(int_attribute(name, value));
        }
    }
    if attrs.bool("is_causal") == Some(true) {
        attributes.push(int_attribute("is_causal", 1));
    }
    for name in ["scale", "softcap"] {
        if let Some(value) = attrs.float(name).filter(|_| attrs.raw(name).is_some()) {
            attributes.push(exact_float(n, name, value)?);
        }
    }
    if let Some(precision) = attrs.dtype("softmax_precision") {
        let number = number_of(precision).map(i64::from);
        let number = number.ok_or_else(|| ExportProblem::Unsupported(format!("a softmax of {precision}")))?;
        attributes.push(int_attribute("softmax_precision", number));
    }
    if !n.is_left_out(6) {
        n.needs_opset(24)?;
    }
    let is_other_mask = |d: DType| d != DType::Bool && Some(d) != n.dtype(0);
    if n.dtype(3).is_some_and(is_other_mask) {
        return Err(ExportProblem::Unsupported(format!("`{}` with this mask", n.native())));
    }
    let inputs = n.operands()?;
    n.omit_unused_outputs(1);
    n.emit("Attention", inputs, attributes);
    Ok(())
}
