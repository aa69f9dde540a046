//! Types of results of nodes that are kept unchanged.

use anfora_onnx::convert::{int_attribute, ints_attribute, str_attribute};
use anfora_onnx::proto::{AttributeProto, FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, ValueInfoProto};

use crate::models::{
    BOOL, FLOAT, INT64, float, graph, graph_attribute, info, model, node, operators, read, symbolic_type, typed,
};

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

/// Returns the type of the output `y` of nodes of a version with the given inputs, as the result of
/// `@main`.
fn result(opset: i64, nodes: Vec<NodeProto>, inputs: Vec<ValueInfoProto>) -> String {
    result_of(&model(opset, graph("g", nodes, inputs, vec![typed("y", Default::default())])))
}

fn result_of(model: &ModelProto) -> String {
    let text = read(model).to_string();
    let (_, rest) = text.split_once("-> ").expect("a result");
    rest.split_once(" {").expect("a body").0.to_string()
}

fn symbolic(name: &str, dims: &[&str]) -> ValueInfoProto {
    typed(name, symbolic_type(FLOAT, dims))
}

#[test]
fn known_elements_of_an_operand_are_not_those_of_a_result() {
    // The reduction came with version 16, so the node is kept.
    let add = vec![str_attribute("reduction", "add")];
    let nodes = vec![node("Shape", &["x"], &["s"], vec![]), node("ScatterElements", &["s", "i", "u"], &["y"], add)];
    let inputs = vec![symbolic("x", &["n", "4"]), info("i", INT64, &[1]), info("u", INT64, &[1])];
    assert_eq!(result(15, nodes, inputs), "Tensor[(2,), int64]");
}

#[test]
fn a_kept_node_has_what_is_found_and_what_is_stated() {
    let shrink = |stated: ValueInfoProto| {
        let kept = node("Celu", &["x"], &["y"], vec![int_attribute("new", 1)]);
        model(17, graph("g", vec![kept], vec![symbolic("x", &["n", "", "4"])], vec![stated]))
    };
    for (stated, found) in [
        (symbolic("y", &["", "3", ""]), "Tensor[(n, 3, 4), float32]"),
        // What is found takes precedence.
        (symbolic("y", &["5", "3", "4"]), "Tensor[(n, 3, 4), float32]"),
        (symbolic("y", &["n", "3", "5"]), "Tensor[(n, ?, 4), float32]"),
        (symbolic("y", &["n", "3"]), "Tensor[(n, ?, 4), float32]"),
        (info("y", INT64, &[2, 3, 4]), "Tensor[(n, ?, 4), float32]"),
    ] {
        assert_eq!(result_of(&shrink(stated.clone())), found, "{stated:?}");
    }
}

#[test]
fn nothing_is_known_of_other_operators_and_newer_versions() {
    let inputs = || vec![float("x", &[3])];
    let of = |op: &str| vec![node(op, &["x"], &["y"], vec![])];
    assert_eq!(result(28, of("Bernoulli"), inputs()), "Tensor[(3,), float32]");
    assert_eq!(result(29, of("Bernoulli"), inputs()), "Any");
    assert_eq!(result(28, of("Sharpen"), inputs()), "Any");
    // An operator of another domain that has the name of a known one.
    let mut m = model(17, graph("g", of("Bernoulli"), inputs(), vec![typed("y", Default::default())]));
    let graph = m.graph.as_mut().expect("a graph");
    graph.node[0].domain = Some("acme".into());
    m.opset_import.push(OperatorSetIdProto { domain: Some("acme".into()), version: Some(1) });
    assert_eq!(result_of(&m), "Any");
}

#[test]
fn operators_of_onnxruntime_have_types() {
    let mut m = model(17, graph("g", vec![], vec![], vec![typed("y", Default::default())]));
    m.opset_import.push(OperatorSetIdProto { domain: Some("com.microsoft".into()), version: Some(1) });
    let mut of = |op: &str, inputs: Vec<ValueInfoProto>, attributes: Vec<AttributeProto>| {
        let names: Vec<&str> = inputs.iter().map(|i| i.name()).collect();
        let kept = NodeProto { domain: Some("com.microsoft".into()), ..node(op, &names, &["y"], attributes) };
        let graph = m.graph.as_mut().expect("a graph");
        (graph.node, graph.input) = (vec![kept], inputs);
        result_of(&m)
    };
    let x = || symbolic("x", &["b", "s", "8"]);
    assert_eq!(of("FastGelu", vec![x(), float("w", &[8])], vec![]), "Tensor[(b, s, 8), float32]");
    assert_eq!(of("FusedMatMul", vec![x(), float("w", &[8, 5])], vec![]), "Tensor[(b, s, 5), float32]");
    let transposed = vec![int_attribute("transB", 1)];
    assert_eq!(of("FusedMatMul", vec![x(), float("w", &[5, 8])], transposed), "Tensor[(?, ?, ?), float32]");
    assert_eq!(of("MatMulNBits", vec![x()], vec![int_attribute("N", 6)]), "Tensor[(b, s, 6), float32]");
    assert_eq!(of("Attention", vec![x(), float("w", &[8, 24])], vec![]), "Tensor[(b, s, ?), float32]");
}

#[test]
fn outputs_of_subgraphs() {
    let body = |states: &[ValueInfoProto], nodes: Vec<NodeProto>, outputs: &[&str]| {
        let inputs = [vec![info("i", INT64, &[]), info("c", BOOL, &[])], states.to_vec()].concat();
        let outputs = ["c"].iter().chain(outputs).map(|o| typed(o, Default::default())).collect();
        graph_attribute("body", &graph("b", nodes, inputs, outputs))
    };
    let relu = || vec![node("Relu", &["s"], &["t"], vec![])];
    let looped = |start: ValueInfoProto, body: AttributeProto, outputs: &[&str]| {
        let nodes = vec![node("Loop", &["n", "", start.name()], outputs, vec![body])];
        result(17, nodes, vec![info("n", INT64, &[]), start])
    };
    let state = |dims| body(&[symbolic("s", dims)], relu(), &["t"]);
    assert_eq!(looped(float("x", &[3, 4]), state(&["3", "4"]), &["y"]), "Tensor[(3, 4), float32]");
    assert_eq!(looped(float("x", &[3, 4]), state(&["", "4"]), &["y"]), "Tensor[(?, 4), float32]");
    // The body does not say that it takes the first state.
    assert_eq!(looped(float("x", &[2, 4]), state(&["3", "4"]), &["y"]), "Tensor[?, float32]");
    let values = body(&[float("s", &[3])], relu(), &["t", "t"]);
    assert_eq!(looped(float("x", &[3]), values, &["", "y"]), "Tensor[(?, 3), float32]");

    let step = graph(
        "b",
        vec![node("Add", &["s", "e"], &["t"], vec![]), node("Relu", &["t"], &["u"], vec![])],
        vec![float("s", &[3]), float("e", &[3])],
        vec![typed("t", Default::default()), typed("u", Default::default())],
    );
    let attributes = vec![
        graph_attribute("body", &step),
        int_attribute("num_scan_inputs", 1),
        ints_attribute("scan_output_axes", &[-1]),
    ];
    let scan = vec![node("Scan", &["x", "z"], &["", "y"], attributes)];
    let inputs = vec![float("x", &[3]), symbolic("z", &["n", "3"])];
    assert_eq!(result(17, scan, inputs), "Tensor[(3, n), float32]");
}

/// Returns the parameters of the `fn` of the first subgraph, as they are printed.
fn parameters_of_body(model: &ModelProto) -> String {
    let text = read(model).to_string();
    let (_, rest) = text.split_once("= fn (").expect("a subgraph");
    rest.split_once(") ").expect("parameters").0.to_string()
}

#[test]
fn inputs_of_subgraphs_have_the_types_of_the_operands() {
    let untyped = |name: &str| typed(name, Default::default());
    let of = |op: &str, inputs: &[&str], names: &[&str], attributes: Vec<AttributeProto>| {
        let body = graph("b", vec![], names.iter().map(|n| untyped(n)).collect(), vec![untyped(names[0])]);
        let attributes = [vec![graph_attribute("body", &body)], attributes].concat();
        let ends = (vec![symbolic("x", &["n", "4"]), float("z", &[2])], vec![untyped("y")]);
        let split = node("SplitToSequence", &["x"], &["q"], vec![int_attribute("keepdims", 0)]);
        parameters_of_body(&model(17, graph("g", vec![split, node(op, inputs, &["y"], attributes)], ends.0, ends.1)))
    };
    let loops = of("Loop", &["", "", "x", "q"], &["i", "c", "s", "t"], vec![]);
    assert_eq!(loops, "%i: Tensor[(), int64], %c: Tensor[(), bool], %s: Tensor[?, float32], %t: Any");
    let scans = of(
        "Scan",
        &["z", "x"],
        &["s", "e"],
        vec![int_attribute("num_scan_inputs", 1), ints_attribute("scan_input_axes", &[1])],
    );
    assert_eq!(scans, "%s: Tensor[(2,), float32], %e: Tensor[(n,), float32]");
    let maps = of("SequenceMap", &["q", "z"], &["e", "v"], vec![]);
    assert_eq!(maps, "%e: Tensor[(4,), float32], %v: Tensor[(2,), float32]");
    assert_eq!(of("Frob", &["x"], &["e"], vec![]), "%e: Any");
}

#[test]
fn ranks_that_would_grow_without_bound_are_not_known() {
    let mut nodes = vec![node("Cast", &["x"], &["v0"], vec![int_attribute("to", 8)])];
    nodes.extend((0..200).map(|i| {
        let (from, to) = (format!("v{i}"), if i == 199 { "y".to_string() } else { format!("v{}", i + 1) });
        node("Gather", &[from.as_str(), "i"], &[to.as_str()], vec![])
    }));
    assert_eq!(result(17, nodes, vec![float("x", &[2, 2]), info("i", INT64, &[2, 2])]), "Tensor[?, string]");
}

#[test]
fn a_function_of_the_file_is_not_the_operator_of_its_name() {
    let mut m = model(17, graph("g", vec![], vec![float("x", &[3])], vec![typed("y", Default::default())]));
    m.opset_import.push(OperatorSetIdProto { domain: Some("com.microsoft".into()), version: Some(1) });
    let call = NodeProto { domain: Some("com.microsoft".into()), ..node("Gelu", &["x"], &["y"], vec![]) };
    m.graph.as_mut().expect("a graph").node = vec![call];
    assert_eq!(result_of(&m), "Tensor[(3,), float32]");
    // Its body uses what is not there, so that the function is kept unchanged.
    m.functions = vec![FunctionProto {
        name: Some("Gelu".into()),
        domain: Some("com.microsoft".into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        node: vec![node("Add", &["a", "missing"], &["b"], vec![])],
        opset_import: m.opset_import.clone(),
        ..FunctionProto::default()
    }];
    assert_eq!(result_of(&m), "Any");
    assert_eq!(operators(&read(&m)), ["onnx.com.microsoft.Gelu!"]);
}

#[test]
fn elements_of_sequences() {
    let inputs = || vec![symbolic("x", &["n", "4"]), float("z", &[2, 4]), info("i", INT64, &[])];
    let of = |nodes: &[(&str, &[&str], &str, Vec<AttributeProto>)]| {
        let nodes =
            nodes.iter().map(|(op, inputs, output, attributes)| node(op, inputs, &[output], attributes.clone()));
        result(17, nodes.collect(), inputs())
    };
    let int = int_attribute;
    let pair: (&str, &[&str], &str, Vec<AttributeProto>) = ("SequenceConstruct", &["x", "z"], "q", vec![]);
    let at: (&str, &[&str], &str, Vec<AttributeProto>) = ("SequenceAt", &["q", "i"], "y", vec![]);
    assert_eq!(of(&[pair.clone(), at.clone()]), "Tensor[(?, 4), float32]");
    assert_eq!(
        of(&[pair.clone(), ("ConcatFromSequence", &["q"], "y", vec![int("axis", 1)])]),
        "Tensor[(?, ?), float32]"
    );
    let stacked = vec![int("axis", 0), int("new_axis", 1)];
    assert_eq!(of(&[pair.clone(), ("ConcatFromSequence", &["q"], "y", stacked)]), "Tensor[(?, ?, 4), float32]");
    assert_eq!(of(&[("SplitToSequence", &["x"], "q", vec![int("axis", 1)]), at.clone()]), "Tensor[(n, 1), float32]");
    let without = vec![int("axis", 1), int("keepdims", 0)];
    assert_eq!(of(&[("SplitToSequence", &["x"], "q", without), at.clone()]), "Tensor[(n,), float32]");
    assert_eq!(of(&[("SplitToSequence", &["x", "i"], "q", vec![]), at.clone()]), "Tensor[(?, 4), float32]");
    // Through an alias, and with elements of another type, which do not fit.
    let alias: (&str, &[&str], &str, Vec<AttributeProto>) = ("Identity", &["p"], "q", vec![]);
    assert_eq!(of(&[("SequenceConstruct", &["x"], "p", vec![]), alias, at.clone()]), "Tensor[(n, 4), float32]");
    let mixed: (&str, &[&str], &str, Vec<AttributeProto>) = ("SequenceInsert", &["q", "i"], "r", vec![]);
    assert_eq!(of(&[pair.clone(), mixed, ("SequenceAt", &["r", "i"], "y", vec![])]), "Any");
    // A tensor that may be missing.
    let optional: (&str, &[&str], &str, Vec<AttributeProto>) = ("Optional", &["x"], "o", vec![]);
    assert_eq!(of(&[optional, ("OptionalGetElement", &["o"], "y", vec![])]), "Tensor[(n, 4), float32]");
}
