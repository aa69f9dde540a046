//! Constants that a file stores in sparse form, by their nonzero elements.

use anfora_ir::{DType, Literal};
use anfora_onnx::proto::{AttributeProto, AttributeType, GraphProto, ModelProto, SparseTensorProto, TensorProto};
use anfora_onnx::tensor::{literal_of, tensor_of};
use anfora_onnx::{ImportOptions, import};
use prost::Message;

use crate::models::{
    again, float, floats, graph, graph_attribute, ints, literals, model, node, operators, read, write,
};

fn tensor(name: &str, literal: &Literal) -> TensorProto {
    let tensor = tensor_of(literal, 1 << 20).expect("the constants of tests are small");
    TensorProto { name: Some(name.to_string()).filter(|n| !n.is_empty()), ..tensor }
}

fn sparse(name: &str, values: &Literal, indices: &Literal, dims: &[i64]) -> SparseTensorProto {
    let (values, indices) = (tensor(name, values), tensor("", indices));
    SparseTensorProto { values: Some(values), indices: Some(indices), dims: dims.to_vec() }
}

fn attribute(sparse: SparseTensorProto) -> AttributeProto {
    let mut a = AttributeProto { name: Some("sparse_value".into()), ..AttributeProto::default() };
    a.set_type(AttributeType::SparseTensor);
    a.sparse_tensor = Some(Box::new(sparse));
    a
}

/// Returns a model of `x + w`, with `w` as an initializer.
fn with_initializer(w: SparseTensorProto, dims: &[i64]) -> ModelProto {
    let nodes = vec![node("Add", &["x", "w"], &["y"], vec![])];
    let g = graph("g", nodes, vec![float("x", dims)], vec![float("y", dims)]);
    model(13, GraphProto { sparse_initializer: vec![w], ..g })
}

/// Returns a model of `x + w`, with `w` from a node.
fn with_node(w: SparseTensorProto, dims: &[i64]) -> ModelProto {
    let nodes = vec![node("Constant", &[], &["w"], vec![attribute(w)]), node("Add", &["x", "w"], &["y"], vec![])];
    model(13, graph("g", nodes, vec![float("x", dims)], vec![float("y", dims)]))
}

const DENSE: &str = "add(%x, dense<Tensor[(2, 3), float32]>[0, 5, 0, 0, 0, 7])";

#[test]
fn sparse_constants_are_literals_and_come_back() {
    let positions = sparse("w", &floats(&[5.0, 7.0]), &ints(&[1, 5]), &[2, 3]);
    let rows = Literal::from_elements(&[2, 2], &[0i64, 1, 1, 2]).unwrap();
    let coordinates = sparse("w", &floats(&[5.0, 7.0]), &rows, &[2, 3]);
    for w in [&positions, &coordinates] {
        let m = with_initializer(w.clone(), &[2, 3]);
        let module = read(&m);
        assert!(module.to_string().contains(DENSE), "{module}");
        let back = write(&module).graph.unwrap();
        assert_eq!((back.sparse_initializer, back.initializer), (vec![positions.clone()], vec![]));
        assert_eq!(back.node, m.graph.unwrap().node);
    }
    let mut named = positions.clone();
    named.indices.as_mut().unwrap().name = Some("indices".into());
    assert_eq!(again(&with_initializer(named, &[2, 3])).graph.unwrap().sparse_initializer, vec![positions.clone()]);
    let mut unnamed = positions.clone();
    unnamed.values.as_mut().unwrap().name = None;
    let m = with_node(unnamed, &[2, 3]);
    let module = read(&m);
    assert!(module.to_string().contains(DENSE), "{module}");
    assert_eq!(write(&module), m);
    // The text of the module is enough to write it back.
    let parsed = anfora_ir::parse_module(anfora_ir::Source::new("t", module.to_string()), anfora_onnx::registry());
    assert_eq!(write(&parsed.unwrap_or_else(|e| panic!("{}", e[0]))), m);
}

#[test]
fn what_is_said_of_them_comes_back() {
    let mut w = sparse("w", &floats(&[-0.0, 7.0]), &ints(&[0, 5]), &[2, 3]);
    let values = w.values.as_mut().unwrap();
    values.doc_string = Some("mostly zeros".into());
    let entry = anfora_onnx::proto::StringStringEntryProto { key: Some("k".into()), value: Some("v".into()) };
    values.metadata_props = vec![entry];
    let m = with_initializer(w.clone(), &[2, 3]);
    let imported = import(m.encode_to_vec().into(), &ImportOptions::default()).unwrap();
    assert_eq!((imported.nodes.total(), imported.kept.len()), (1, 0));
    assert_eq!(again(&m).graph.unwrap().sparse_initializer, [w]);
}

#[test]
fn every_element_type_has_a_sparse_form() {
    for &dtype in DType::ALL {
        if dtype.bits() < 8 {
            continue;
        }
        let width = dtype.bits() / 8;
        let mut dense = vec![0u8; 4 * width];
        dense[2 * width] = 1;
        let values = Literal::from_bytes(dtype, &[1], dense[2 * width..3 * width].to_vec().into()).unwrap();
        let w = sparse("w", &values, &ints(&[2]), &[4]);
        let nodes = vec![node("Frob", &["w"], &["y"], vec![])];
        let g = graph("g", nodes, vec![], vec![float("y", &[1])]);
        let m = model(13, GraphProto { sparse_initializer: vec![w.clone()], ..g });
        let module = read(&m);
        let expected = Literal::from_bytes(dtype, &[4], dense.into()).unwrap();
        let is_there = literals(&module).contains(&expected);
        assert!(is_there, "{dtype}: {module}");
        assert_eq!(write(&module).graph.unwrap().sparse_initializer, [w], "{dtype}");
    }
}

#[test]
fn zeros_take_no_room_and_the_very_sparse_is_kept() {
    let none = sparse("w", &floats(&[]), &ints(&[]), &[1 << 40]);
    let m = with_initializer(none.clone(), &[1 << 40]);
    let module = read(&m);
    assert!(module.to_string().contains("dense<Tensor[(1099511627776,), float32]>[0]"), "{module}");
    assert_eq!(again(&m).graph.unwrap().sparse_initializer, [none]);

    let one = sparse("w", &floats(&[3.0]), &ints(&[1 << 39]), &[1 << 20, 1 << 20]);
    let mut unnamed = one.clone();
    unnamed.values.as_mut().unwrap().name = None;
    for (m, what) in [
        (with_initializer(one, &[1 << 20, 1 << 20]), "initializer `w`: "),
        (with_node(unnamed, &[1 << 20, 1 << 20]), "node `Constant`"),
    ] {
        let imported = import(m.encode_to_vec().into(), &ImportOptions::default()).unwrap();
        let kept: Vec<String> = imported.kept.iter().map(|k| k.to_string()).collect();
        assert!(kept.len() == 1 && kept[0].starts_with(what) && kept[0].contains("1 of 1099511627776"), "{kept:?}");
        assert_eq!(operators(&imported.module), ["onnx.Constant", "add"]);
        let text = imported.module.to_string();
        assert!(text.contains("let %w: Tensor[(1048576, 1048576), float32] = onnx.Constant("), "{text}");
        assert_eq!(again(&m).graph, m.graph);
    }
}

#[test]
fn malformed_ones_are_kept_with_the_reason() {
    let two = || floats(&[5.0, 7.0]);
    let cases = [
        (sparse("w", &two(), &ints(&[5, 1]), &[2, 3]), "ascending"),
        (sparse("w", &two(), &ints(&[1, 1]), &[2, 3]), "ascending"),
        (sparse("w", &two(), &ints(&[1, 6]), &[2, 3]), "ascending"),
        (sparse("w", &two(), &ints(&[-1, 1]), &[2, 3]), "ascending"),
        (sparse("w", &two(), &ints(&[1]), &[2, 3]), "ascending"),
        (sparse("w", &two(), &two(), &[2, 3]), "ascending"),
        (sparse("w", &two(), &ints(&[1, 2]), &[2, -3]), "extents"),
        (SparseTensorProto { indices: None, ..sparse("w", &two(), &ints(&[]), &[2, 3]) }, "no indices"),
    ];
    for (w, reason) in cases {
        let m = with_initializer(w, &[2, 3]);
        let imported = import(m.encode_to_vec().into(), &ImportOptions::default()).unwrap();
        assert!(imported.kept[0].reason.contains(reason), "{:?}", imported.kept);
        assert_eq!(again(&m).graph.unwrap().sparse_initializer, m.graph.unwrap().sparse_initializer);
    }
    let mut twice = with_initializer(sparse("w", &two(), &ints(&[1, 2]), &[2, 3]), &[2, 3]);
    let copy = twice.graph.as_ref().unwrap().sparse_initializer[0].clone();
    twice.graph.as_mut().unwrap().sparse_initializer.push(copy);
    let error = import(twice.encode_to_vec().into(), &ImportOptions::default()).expect_err("refused").to_string();
    assert!(error.contains("the initializer `w`") && error.contains("defined twice"), "{error}");
}

#[test]
fn subgraphs_have_them_too() {
    let w = sparse("v", &floats(&[5.0, 7.0]), &ints(&[1, 5]), &[2, 3]);
    let inner = graph("b", vec![node("Neg", &["v"], &["o"], vec![])], vec![], vec![float("o", &[2, 3])]);
    let inner = GraphProto { sparse_initializer: vec![w.clone()], ..inner };
    let nodes = vec![node("Frob", &[], &["y"], vec![graph_attribute("body", &inner)])];
    let back = again(&model(13, graph("g", nodes, vec![], vec![float("y", &[2, 3])]))).graph.unwrap();
    let inner = GraphProto::decode(back.node[0].attribute[0].g.clone().unwrap()).unwrap();
    assert_eq!(inner.sparse_initializer, [w]);
    assert!(literal_of(inner.sparse_initializer[0].values.as_ref().unwrap()).is_ok());
}
