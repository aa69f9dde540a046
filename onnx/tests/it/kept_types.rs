//! Types of results of nodes that are kept unchanged, where the file does not state them.

use anfora_onnx::convert::{int_attribute, str_attribute};
use anfora_onnx::proto::AttributeProto;

use crate::models::{FLOAT, float, graph, model, node, read, symbolic_type, typed};

/// Returns the types of the outputs of a recurrent node for an input of these extents.
fn recurrent(op: &str, input: &[&str], attributes: Vec<AttributeProto>) -> Vec<String> {
    let outputs: &[&str] = if op == "LSTM" { &["y", "h", "c"] } else { &["y", "h"] };
    let rnn = node(op, &["x", "w", "r"], outputs, attributes);
    let inputs = vec![typed("x", symbolic_type(FLOAT, input)), float("w", &[1, 64, 16]), float("r", &[1, 64, 8])];
    let results = outputs.iter().map(|o| typed(o, Default::default())).collect();
    let text = read(&model(14, graph("g", vec![rnn], inputs, results))).to_string();
    let types = text.split_once("-> (").and_then(|(_, rest)| rest.split_once(") {")).expect("a result").0;
    types.split(", Tensor").map(|ty| format!("Tensor{}", ty.trim_start_matches("Tensor"))).collect()
}

#[test]
fn states_of_recurrent_nodes() {
    let of = |text: &str| text.to_string();
    assert_eq!(
        recurrent("LSTM", &["t", "b", "16"], vec![int_attribute("hidden_size", 8)]),
        ["Tensor[(t, 1, b, 8), float32]", "Tensor[(1, b, 8), float32]", "Tensor[(1, b, 8), float32]"].map(of)
    );
    // The number of elements of a state is that of the recurrent weights.
    assert_eq!(
        recurrent("GRU", &["t", "b", "16"], vec![str_attribute("direction", "bidirectional")]),
        ["Tensor[(t, 2, b, 8), float32]", "Tensor[(2, b, 8), float32]"].map(of)
    );
    assert_eq!(
        recurrent("RNN", &["b", "t", "16"], vec![int_attribute("layout", 1), int_attribute("hidden_size", 8)]),
        ["Tensor[(b, t, 1, 8), float32]", "Tensor[(b, 1, 8), float32]"].map(of)
    );
    // Attributes that the format does not allow make the types unknown.
    assert_eq!(
        recurrent("RNN", &["t", "16"], vec![str_attribute("direction", "up"), int_attribute("hidden_size", -8)]),
        ["Tensor[(?, ?, ?, ?), float32]", "Tensor[(?, ?, ?), float32]"].map(of)
    );
}
