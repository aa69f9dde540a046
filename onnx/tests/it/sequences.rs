//! Values that are not tensors. Old versions of `Identity` do not take them.

use anfora_onnx::proto::type_proto::Value;
use anfora_onnx::proto::{GraphProto, ModelProto, TypeProto, ValueInfoProto};
use anfora_onnx::{ExportOptions, ImportOptions, export, import};
use bytes::Bytes;
use prost::Message;

use crate::models::{
    BOOL, FLOAT, INT64, again, float, graph, graph_attribute, info, model, node, read, tensor_type, typed, write,
};

/// Returns an encoded message whose first field is a type. Sequences and optional values have this
/// form.
fn of_floats() -> Bytes {
    let element = tensor_type(FLOAT, &[3]).encode_to_vec();
    [&[0x0a, element.len() as u8], element.as_slice()].concat().into()
}

fn typed_as(name: &str, value: Value) -> ValueInfoProto {
    typed(name, TypeProto { value: Some(value), denotation: None })
}

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), ..ValueInfoProto::default() }
}

/// Returns a model of a loop with the initial state `q` that returns its state `s` unchanged.
fn loop_over(opset: i64, given: Vec<ValueInfoProto>, state: ValueInfoProto) -> ModelProto {
    let added = node("Add", &["a", "a"], &["b"], vec![]);
    let inputs = vec![info("i", INT64, &[]), info("c", BOOL, &[]), state.clone(), float("a", &[3])];
    let body = graph("b", vec![added], inputs, vec![info("c", BOOL, &[]), state, float("b", &[3])]);
    let mut nodes = Vec::new();
    if given.is_empty() {
        nodes.push(node("SequenceConstruct", &["x", "x"], &["q"], vec![]));
    }
    nodes.push(node("Loop", &["n", "", "q", "x"], &["r", "z"], vec![graph_attribute("body", &body)]));
    let inputs = [vec![float("x", &[3]), info("n", INT64, &[])], given].concat();
    model(opset, graph("g", nodes, inputs, vec![float("z", &[3])]))
}

/// Returns the operators and the outputs of the first graph in a model's nodes.
fn inside(model: &ModelProto) -> (Vec<String>, Vec<String>) {
    let nodes = &model.graph.as_ref().expect("a graph").node;
    let bytes = nodes.iter().flat_map(|n| &n.attribute).find_map(|a| a.g.clone()).expect("a node has a graph");
    let inner = GraphProto::decode(bytes).expect("it is a graph");
    (
        inner.node.iter().map(|n| n.op_type().to_owned()).collect(),
        inner.output.iter().map(|o| o.name().to_owned()).collect(),
    )
}

#[test]
fn a_state_that_is_no_tensor_is_returned_directly_where_identity_does_not_take_it() {
    let sequence = |name: &str| typed_as(name, Value::SequenceType(of_floats()));
    let optional = |name: &str| typed_as(name, Value::OptionalType(of_floats()));
    for (given, state, since) in [
        (vec![], sequence("s"), 14),
        (vec![], untyped("s"), 14),
        (vec![sequence("q")], sequence("s"), 14),
        (vec![sequence("q")], untyped("s"), 14),
        (vec![optional("q")], optional("s"), 16),
        (vec![optional("q")], untyped("s"), 16),
        (vec![float("q", &[3])], float("s", &[3]), 1),
        (vec![float("q", &[3])], untyped("s"), 1),
    ] {
        for opset in [13, 14, 15, 16] {
            let (operators, outputs) = inside(&again(&loop_over(opset, given.clone(), state.clone())));
            let identities = operators.iter().filter(|op| *op == "Identity").count();
            // The condition is always returned through a node.
            let expected = if opset < since { 1 } else { 2 };
            assert_eq!(identities, expected, "{opset}: {given:?} {state:?}");
            assert_eq!(outputs[1] == "s", opset < since, "{opset}: {outputs:?}");
        }
    }
}

#[test]
fn a_branch_gives_an_outer_sequence_directly_where_identity_does_not_take_it() {
    let sequence = |name: &str| typed_as(name, Value::SequenceType(of_floats()));
    let then = graph("t", vec![], vec![], vec![sequence("q")]);
    let other = graph("e", vec![node("SequenceInsert", &["q", "x"], &["t"], vec![])], vec![], vec![sequence("t")]);
    let branches = vec![graph_attribute("then_branch", &then), graph_attribute("else_branch", &other)];
    let nodes = vec![
        node("SplitToSequence", &["x"], &["q"], vec![]),
        node("If", &["c"], &["r"], branches),
        node("SequenceLength", &["r"], &["y"], vec![]),
    ];
    let ends = (vec![float("x", &[3]), info("c", BOOL, &[])], vec![info("y", INT64, &[])]);
    for (opset, expected) in [(13, &[][..]), (14, &["Identity"])] {
        let m = model(opset, graph("g", nodes.clone(), ends.0.clone(), ends.1.clone()));
        assert_eq!(inside(&again(&m)).0, expected, "{opset}");
    }
}

#[test]
fn a_model_that_gives_a_sequence_twice_needs_a_version_that_can() {
    let sequence = |name: &str| typed_as(name, Value::SequenceType(of_floats()));
    let nodes = vec![node("SequenceConstruct", &["x"], &["p"], vec![]), node("Identity", &["p"], &["q"], vec![])];
    let of =
        |opset| model(opset, graph("g", nodes.clone(), vec![float("x", &[3])], vec![sequence("p"), sequence("q")]));
    assert_eq!(again(&of(14)), of(14));
    let refused = export(&read(&of(13)), &ExportOptions::default()).expect_err("no node of version 13 does that");
    assert!(refused.to_string().contains("Identity") && refused.to_string().contains("14"), "{refused}");
}

#[test]
fn a_tensor_that_is_stated_as_something_else_is_written_as_a_tensor() {
    let map = Value::MapType(Bytes::from_static(&[0x08, 7]));
    for (value, words) in [
        (Value::SequenceType(of_floats()), "a sequence"),
        (Value::OptionalType(of_floats()), "a value that may be missing"),
        (map, "a map"),
    ] {
        // A node that becomes one of our operators, and a node that is kept.
        for op in ["Relu", "Softplus"] {
            let nodes = vec![node(op, &["x"], &["a"], vec![]), node(op, &["a"], &["y"], vec![])];
            let mut m = model(17, graph("g", nodes, vec![float("x", &[3])], vec![typed_as("y", value.clone())]));
            m.graph.as_mut().expect("a graph").value_info = vec![typed_as("a", value.clone())];
            let imported = import(m.encode_to_vec().into(), &ImportOptions::default()).expect("it can be read");
            let messages: Vec<&str> = imported.warnings.iter().map(|w| w.message.as_str()).collect();
            assert_eq!(messages.len(), 2, "{op}: {messages:?}");
            for (message, name) in messages.iter().zip(["`a`", "`y`"]) {
                let expected = format!("{name} is Tensor[(3,), float32], but the file says {words}");
                assert!(message.ends_with(&expected), "{op}: {message}");
            }
            let written = write(&imported.module).graph.expect("a graph");
            assert_eq!((written.output, written.value_info), (vec![float("y", &[3])], vec![float("a", &[3])]));
        }
    }
}
