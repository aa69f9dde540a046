//! A model that was written comes back unchanged, byte for byte, when it is read and written again.
//! Graphs that return constants need extra nodes and names.

use anfora_ir::{Source, parse_module};
use anfora_onnx::convert::tensor_attribute;
use anfora_onnx::proto::{
    AttributeProto, AttributeType, FunctionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    SparseTensorProto, TensorProto,
};
use anfora_onnx::registry;
use anfora_onnx::tensor::tensor_of;
use prost::Message;

use crate::models::{BOOL, again, float, floats, graph, graph_attribute, info, initializer, ints, model, node, write};

/// The elements of every constant of these tests.
const VALUE: [f32; 6] = [0.0, 5.0, 0.0, 0.0, 0.0, 7.0];

/// Reads and writes a model twice. Both results must be the same bytes and have `constants`
/// constants, those of inner graphs included.
#[track_caller]
fn assert_settles(what: &str, model: &ModelProto, constants: usize) {
    let once = again(model);
    let twice = again(&once);
    assert!(once.encode_to_vec() == twice.encode_to_vec(), "{what}: once\n{once:#?}\ntwice\n{twice:#?}");
    assert_eq!(count(&once), constants, "{what}: {once:#?}");
}

/// Returns the number of constants of a model.
fn count(model: &ModelProto) -> usize {
    let mut graphs: Vec<GraphProto> = model.graph.iter().cloned().collect();
    graphs.extend(model.functions.iter().map(|f| GraphProto { node: f.node.clone(), ..GraphProto::default() }));
    let mut constants = 0;
    while let Some(graph) = graphs.pop() {
        let nodes = graph.node.iter().filter(|n| n.op_type() == "Constant").count();
        constants += nodes + graph.initializer.len() + graph.sparse_initializer.len();
        let inner = graph.node.iter().flat_map(|n| &n.attribute).flat_map(|a| a.g.iter().chain(&a.graphs));
        graphs.extend(inner.map(|g| GraphProto::decode(g.clone()).expect("a subgraph")));
    }
    constants
}

fn sparse_tensor(name: &str) -> SparseTensorProto {
    let indices = tensor_of(&ints(&[1, 5]), 1 << 10).expect("it is small");
    SparseTensorProto { values: Some(initializer(name, &floats(&[5.0, 7.0]))), indices: Some(indices), dims: vec![6] }
}

/// The ways in which a graph defines a constant.
const FORMS: [&str; 5] = ["initializer", "documented initializer", "sparse initializer", "node", "sparse node"];

/// Adds a constant to a graph.
fn define(graph: &mut GraphProto, name: &str, form: &str) {
    let dense = initializer(name, &floats(&VALUE));
    match form {
        "initializer" => graph.initializer.push(dense),
        "documented initializer" => {
            graph.initializer.push(TensorProto { doc_string: Some("a constant".into()), ..dense });
        }
        "sparse initializer" => graph.sparse_initializer.push(sparse_tensor(name)),
        "node" => {
            let value = tensor_attribute("value", TensorProto { name: None, ..dense });
            graph.node.insert(0, node("Constant", &[], &[name], vec![value]));
        }
        _ => {
            let mut sparse = sparse_tensor("");
            sparse.values = sparse.values.map(|t| TensorProto { name: None, ..t });
            let mut a = AttributeProto { name: Some("sparse_value".into()), ..AttributeProto::default() };
            a.set_type(AttributeType::SparseTensor);
            a.sparse_tensor = Some(Box::new(sparse));
            graph.node.insert(0, node("Constant", &[], &[name], vec![a]));
        }
    }
}

/// Returns the nodes and the output of a graph that returns the constant `k`, directly or through a
/// node.
fn returning(is_direct: bool) -> GraphProto {
    match is_direct {
        true => graph("inner", vec![], vec![], vec![float("k", &[6])]),
        false => graph("inner", vec![node("Identity", &["k"], &["out"], vec![])], vec![], vec![float("out", &[6])]),
    }
}

/// Returns a model whose main graph calls `call` and returns its result `y`.
fn calling(call: NodeProto) -> ModelProto {
    let inputs = vec![info("c", BOOL, &[]), float("x", &[6])];
    model(13, graph("g", vec![call], inputs, vec![float("y", &[6])]))
}

/// Returns a model with a graph in an `If`, and one with the graph in a node that is kept.
fn around(inner: &GraphProto) -> [ModelProto; 2] {
    let other = graph("other", vec![node("Relu", &["x"], &["o"], vec![])], vec![], vec![float("o", &[6])]);
    let branches = vec![graph_attribute("then_branch", inner), graph_attribute("else_branch", &other)];
    let kept = node("Frob", &["x"], &["y"], vec![graph_attribute("body", inner)]);
    [calling(node("If", &["c"], &["y"], branches)), calling(kept)]
}

#[test]
fn constants_that_a_subgraph_returns() {
    for form in FORMS {
        for is_direct in [true, false] {
            let mut inner = returning(is_direct);
            define(&mut inner, "k", form);
            for m in around(&inner) {
                assert_settles(&format!("{form}, direct: {is_direct}"), &m, 1);
            }
        }
    }
}

#[test]
fn constants_of_the_main_graph_that_a_subgraph_returns() {
    for form in FORMS {
        for uses in [0, 1] {
            for mut m in around(&returning(false)) {
                let g = m.graph.as_mut().expect("a model has a graph");
                for _ in 0..uses {
                    g.node.insert(0, node("Add", &["x", "k"], &["z"], vec![]));
                    g.output.push(float("z", &[6]));
                }
                define(g, "k", form);
                assert_settles(&format!("{form}, {uses} uses"), &m, 1);
            }
        }
    }
}

/// The main graph uses the constant after the subgraph that returns it, and uses another before.
#[test]
fn constants_that_a_subgraph_returns_first() {
    for form in FORMS {
        for mut m in around(&returning(false)) {
            let g = m.graph.as_mut().expect("a model has a graph");
            g.node.insert(0, node("Add", &["x", "a"], &["p"], vec![]));
            g.node.push(node("Add", &["p", "k"], &["z"], vec![]));
            g.output.push(float("z", &[6]));
            define(g, "k", form);
            g.initializer.push(initializer("a", &floats(&[1.0; 6])));
            let copies = usize::from(form == "initializer");
            assert_settles(form, &m, 2 + copies);
        }
    }
}

#[test]
fn constants_that_the_main_graph_returns() {
    for form in FORMS {
        for is_direct in [true, false] {
            let mut g = returning(is_direct);
            define(&mut g, "k", form);
            assert_settles(&format!("{form}, direct: {is_direct}"), &model(13, g.clone()), 1);
            let mut old = model(9, g);
            old.ir_version = Some(3);
            assert_settles(&format!("{form}, direct: {is_direct}, version 3"), &old, 1);
        }
    }
}

#[test]
fn constants_that_a_function_returns() {
    for form in ["node", "sparse node"] {
        for is_direct in [true, false] {
            let mut inner = returning(is_direct);
            define(&mut inner, "k", form);
            let mut call = node("F", &["x"], &["y"], vec![]);
            call.domain = Some("com.example".into());
            let import =
                |domain: &str, version| OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) };
            let mut m = calling(call);
            m.opset_import.push(import("com.example", 1));
            m.functions = vec![FunctionProto {
                name: Some("F".into()),
                domain: Some("com.example".into()),
                input: vec!["a".into()],
                output: vec![inner.output[0].name().into()],
                node: inner.node,
                opset_import: vec![import("", 13), import("com.example", 1)],
                ..FunctionProto::default()
            }];
            assert_settles(&format!("{form}, direct: {is_direct}"), &m, 1);
        }
    }
}

/// Here the constant is an attribute.
#[test]
fn constants_of_nodes_that_are_attributes() {
    let value = tensor_attribute("value", tensor_of(&ints(&[0]), 8).expect("it is small"));
    let constant = node("Constant", &[], &["axes"], vec![value]);
    let nodes = vec![constant, node("Unsqueeze", &["x", "axes"], &["y"], vec![])];
    assert_settles("main", &model(13, graph("g", nodes.clone(), vec![float("x", &[6])], vec![float("y", &[1, 6])])), 1);
    let inner = graph("inner", nodes, vec![], vec![float("y", &[1, 6])]);
    for m in around(&inner) {
        assert_settles("a subgraph", &m, 1);
    }
}

/// Equal constants of one graph keep their names, whichever of them the graph returns.
#[test]
fn equal_constants() {
    for returned in ["a", "b"] {
        let mut inner = graph(
            "inner",
            vec![
                node("Add", &["x", "a"], &["p"], vec![]),
                node("Add", &["p", "b"], &["q"], vec![]),
                node("Identity", &[returned], &["out"], vec![]),
            ],
            vec![],
            vec![float("out", &[6]), float("q", &[6])],
        );
        for name in ["a", "b"] {
            define(&mut inner, name, "initializer");
        }
        let kept = node("Frob", &["x"], &["y", "z"], vec![graph_attribute("body", &inner)]);
        assert_settles(returned, &calling(kept), 2);
    }
}

/// Constants that no file has named.
#[test]
fn constants_of_a_program() {
    let two = "dense<Tensor[(6,), float32]>[0, 1, 0, 1, 0, 1]";
    let many = "dense<Tensor[(300,), float32]>[0, 1, 0]".replace("0, 1, 0", &["0", "1", "2"].repeat(100).join(", "));
    for body in [
        format!("let %y = add(%x, {two}); let %k = ones(shape=shape(6)); (%y, %k)"),
        format!("let %y = add(%x, {two}); (%y, dense<Tensor[(2,), float32]>[3, 4], {two})"),
        format!("let %y = add(%x, {two}); let %k = dense<Tensor[(2,), float32]>[3, 4]; (%y, %k, {two}, %k)"),
        format!("let %y = if (%flag) {{ {two} }} else {{ nn.relu(%x) }}; add(%y, dense<Tensor[(1,), float32]>[3])"),
        format!(
            "let %p = exp(dense<Tensor[(1,), float32]>[3]); let %y = if (%flag) {{ {two} }} else {{ %x }}; (%p, %y)"
        ),
        format!(
            "let %p = exp(dense<Tensor[(1,), float32]>[3]); let %y = if (%flag) {{ {many} }} else {{ {many} }}; (%p, %y)"
        ),
        format!("let %y = @f(%x); let %a = %y.0; let %z = @f(%a); let %b = %z.0; (%b, {two})"),
    ] {
        let text = format!(
            "def @main(%flag: Tensor[(), bool], %x: Tensor[(6,), float32]) {{ {body} }}
             def @f(%a: Tensor[(6,), float32]) {{ let %b = add(%a, {two}); (%b, dense<Tensor[(1,), float32]>[7], {two}) }}"
        );
        let module = parse_module(Source::new("test", text.as_str()), registry());
        let module = module.unwrap_or_else(|e| panic!("{}\n{text}", e[0]));
        let once = write(&module);
        assert_eq!(again(&once), once, "{text}");
    }
}

/// A constant may be returned several times, and an inner graph may define an equal one.
#[test]
fn constants_in_several_graphs() {
    let mut innermost = returning(false);
    define(&mut innermost, "k", "initializer");
    let mut inner = graph(
        "outer",
        vec![
            node("Frob", &["x"], &["o1"], vec![graph_attribute("body", &innermost)]),
            node("Identity", &["w"], &["o2"], vec![]),
            node("Identity", &["w"], &["o3"], vec![]),
        ],
        vec![],
        vec![float("o1", &[6]), float("o2", &[6]), float("o3", &[6])],
    );
    define(&mut inner, "w", "initializer");
    assert_settles("both", &calling(node("Frob", &["x"], &["y"], vec![graph_attribute("body", &inner)])), 2);
}
