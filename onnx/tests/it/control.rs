//! `If` becomes branches and is written back; other nodes with subgraphs are kept unchanged.

use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use anfora_onnx::{ImportOptions, import, registry};
use bytes::Bytes;
use prost::Message;

use crate::models::{
    BOOL, FLOAT, again, float, floats, graph, graph_attribute, info, initializer, model, node, node_types, normalized,
    operators, read, write,
};

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.into()), ..ValueInfoProto::default() }
}

fn if_node(outputs: &[&str], then_branch: &GraphProto, else_branch: &GraphProto) -> NodeProto {
    let branches = vec![graph_attribute("then_branch", then_branch), graph_attribute("else_branch", else_branch)];
    node("If", &["c"], outputs, branches)
}

fn with_condition(condition: ValueInfoProto, nodes: Vec<NodeProto>, outputs: Vec<ValueInfoProto>) -> ModelProto {
    model(13, graph("g", nodes, vec![condition, float("x", &[2])], outputs))
}

fn unary(name: &str, op: &str, output: &str) -> GraphProto {
    graph(name, vec![node(op, &["x"], &[output], vec![])], vec![], vec![float(output, &[2])])
}

fn assert_comes_back(model: &ModelProto) {
    let (model, back) = (normalized(model.clone()), normalized(again(model)));
    assert!(model == back, "went in:\n{model:#?}\ncame out:\n{back:#?}");
}

/// Returns the graphs in the attributes of a model's nodes.
fn graphs_of(model: &ModelProto) -> Vec<GraphProto> {
    let nodes = &model.graph.as_ref().unwrap().node;
    let graphs = nodes.iter().flat_map(|n| &n.attribute).filter_map(|a| a.g.clone());
    graphs.map(|g| GraphProto::decode(g).unwrap()).collect()
}

fn parsed(text: &str) -> Module {
    parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

fn reasons(model: &ModelProto) -> Vec<String> {
    let imported = import(Bytes::from(model.encode_to_vec()), &ImportOptions::default()).unwrap();
    imported.kept.iter().map(|k| k.reason.clone()).collect()
}

#[test]
fn several_results_are_a_tuple() {
    let two = |name: &str, op: &str, shape: &[i64]| {
        let mut g = graph(
            name,
            vec![node(op, &["x"], &["a"], vec![]), node(op, &["k"], &["b"], vec![])],
            vec![],
            vec![float("a", &[2]), float("b", shape)],
        );
        let elements = vec![1.0; shape.iter().product::<i64>() as usize];
        g.initializer =
            vec![initializer("k", &floats(&elements).reshaped(&[shape[0] as usize, shape[1] as usize]).unwrap())];
        g
    };
    let nodes = vec![if_node(&["p", "q"], &two("t", "Relu", &[2, 3]), &two("e", "Neg", &[4, 3]))];
    let m = with_condition(info("c", BOOL, &[]), nodes, vec![float("p", &[2]), untyped("q")]);
    let mut m = m;
    m.graph.as_mut().unwrap().output[1] = ValueInfoProto { name: Some("q".into()), ..info("q", FLOAT, &[]) };
    // The shape of the second result depends on the branch.
    let shape = crate::models::symbolic_type(FLOAT, &["rows", "3"]);
    m.graph.as_mut().unwrap().output[1].r#type = Some(shape);
    let module = read(&m);
    assert!(module.to_string().contains("%0.1"), "{module}");
    assert_eq!(operators(&module), ["nn.relu", "nn.relu", "negative", "negative"]);
    assert_comes_back(&m);
}

#[test]
fn a_condition_of_rank_1_takes_no_node() {
    for dims in [&[1][..], &[1, 1]] {
        let nodes = vec![if_node(&["y"], &unary("t", "Relu", "a"), &unary("e", "Neg", "b"))];
        let m = with_condition(info("c", BOOL, dims), nodes, vec![float("y", &[2])]);
        let module = read(&m);
        assert_eq!(operators(&module), ["reshape", "nn.relu", "negative"]);
        assert_eq!(node_types(&write(&module)), ["If"]);
        assert_comes_back(&m);
    }
    // The condition needs a node if its element has another use.
    let module = parsed(
        "def @main(%c: Tensor[(1,), bool], %x: Tensor[(2,), float32]) {
           #[onnx_condition=true] let %k = reshape(%c, dense<Tensor[(0,), int64]>[]);
           let %y = if (%k) { %x } else { let %n = negative(%x); %n };
           let %z = logical_not(%k);
           (%y, %z)
         }",
    );
    assert_eq!(node_types(&write(&module)), ["Reshape", "If", "Not"]);
}

#[test]
fn a_branch_that_gives_a_value_from_outside_repeats_it() {
    let module = parsed(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(2,), float32]) {
           let %y = if (%c) { %x } else { dense<Tensor[(2,), float32]>[1, 2] };
           %y
         }",
    );
    let written = write(&module);
    for g in graphs_of(&written) {
        assert_eq!(g.node.iter().map(NodeProto::op_type).collect::<Vec<_>>(), ["Identity"]);
        assert_ne!(g.output[0].name(), "x");
        assert_eq!(g.node[0].output[0], g.output[0].name());
    }
    assert_comes_back(&written);
}

#[test]
fn names_in_branches_are_names_of_their_own() {
    let module = parsed(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(2,), float32]) {
           let %y = if (%c) { let %y = nn.relu(%x); let %z = negative(%y); %z } else { let %y = negative(%x); if (%c) { %y } else { %x } };
           let %z = nn.relu(%y);
           %z
         }",
    );
    let written = write(&module);
    let outer: Vec<&str> =
        written.graph.as_ref().unwrap().node.iter().flat_map(|n| &n.output).map(String::as_str).collect();
    assert_eq!(outer, ["y", "z"]);
    for g in graphs_of(&written) {
        for name in g.node.iter().flat_map(|n| &n.output) {
            assert!(!outer.contains(&name.as_str()), "{name}");
        }
    }
    assert_comes_back(&written);
}

#[test]
fn an_if_may_be_the_result() {
    let module = parsed(
        "def @main(%c: Tensor[(), bool], %x: Tensor[(2,), float32]) {
           if (%c) { let %a = nn.relu(%x); (%a, %x) } else { (%x, %x) }
         }",
    );
    let written = write(&module);
    assert_eq!(written.graph.as_ref().unwrap().output.len(), 2);
    assert_comes_back(&written);
}

#[test]
fn what_is_no_if_of_ours_is_kept_and_says_why() {
    let (then_branch, else_branch) = (unary("t", "Relu", "a"), unary("e", "Neg", "b"));
    let outputs = || vec![float("y", &[2])];
    let condition = || info("c", BOOL, &[]);
    let plain = if_node(&["y"], &then_branch, &else_branch);

    let of_floats = with_condition(info("c", FLOAT, &[]), vec![plain.clone()], outputs());
    let two_of_one = with_condition(
        condition(),
        vec![if_node(&["y", "z"], &then_branch, &else_branch)],
        vec![float("y", &[2]), float("z", &[2])],
    );
    let one_branch = with_condition(
        condition(),
        vec![node("If", &["c"], &["y"], vec![graph_attribute("then_branch", &then_branch)])],
        outputs(),
    );
    let mut old = with_condition(condition(), vec![plain], outputs());
    old.opset_import[0].version = Some(5);
    for (model, reason) in [
        (of_floats, "the condition is not known to be a tensor of bool"),
        (two_of_one, "a branch has 1 outputs, and the node 2"),
        (one_branch, "its attributes are not just `then_branch` and `else_branch`"),
        (old, "its meaning is known in versions 6 to 28"),
    ] {
        let module = read(&model);
        assert_eq!(operators(&module).last().map(String::as_str), Some("onnx.If"), "{module}");
        assert!(reasons(&model).iter().any(|r| r == reason), "{:?}", reasons(&model));
        assert_comes_back(&model);
    }
}

#[test]
fn what_a_loop_captures_stays() {
    let body = graph(
        "body",
        vec![node("Add", &["v", "h"], &["w"], vec![]), node("Identity", &["go"], &["again"], vec![])],
        vec![info("i", 7, &[]), info("go", BOOL, &[]), float("v", &[2])],
        vec![info("again", BOOL, &[]), float("w", &[2])],
    );
    let nodes = vec![
        node("Relu", &["x"], &["h"], vec![]),
        node("Loop", &["", "c", "x"], &["y"], vec![graph_attribute("body", &body)]),
    ];
    assert_comes_back(&with_condition(info("c", BOOL, &[]), nodes, vec![float("y", &[2])]));
}
