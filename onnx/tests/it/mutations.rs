//! Damaged files give errors or modules, but never a panic.

use std::sync::Arc;

use anfora_ir::{Literal, verify_module};
use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute, tensor_attribute};
use anfora_onnx::proto::{
    AttributeProto, AttributeType, ModelProto, SparseTensorProto, StringStringEntryProto, TensorProto,
};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::wire::UnknownFields;
use anfora_onnx::{DataFiles, ExportOptions, ImportOptions, export, import};
use bytes::Bytes;
use proptest::prelude::*;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::models::{
    BOOL, float, floats, graph, graph_attribute, info, initializer, ints, model, node, symbolic_type, typed,
};

/// Returns a model with parts of every kind.
fn base() -> ModelProto {
    let mut branch =
        graph("b", vec![node("Add", &["h", "w"], &["o"], vec![])], vec![], vec![float("o", &[1, 2, 4, 4])]);
    branch.initializer = vec![initializer("w", &Literal::scalar(2f32))];
    let nodes = vec![
        node(
            "ConstantOfShape",
            &["shape"],
            &["k"],
            vec![tensor_attribute("value", tensor_of(&floats(&[0.5]), 8).unwrap())],
        ),
        node(
            "Conv",
            &["x", "k"],
            &["c"],
            vec![ints_attribute("pads", &[1, 1, 1, 1]), ints_attribute("kernel_shape", &[3, 3])],
        ),
        node("BatchNormalization", &["c", "s", "s", "s", "s"], &["n"], vec![float_attribute("epsilon", 1e-3)]),
        node("Relu", &["n"], &["r"], vec![]),
        node(
            "MaxPool",
            &["r"],
            &["h"],
            vec![ints_attribute("kernel_shape", &[2, 2]), ints_attribute("strides", &[2, 2])],
        ),
        node("Split", &["h"], &["p", "q"], vec![int_attribute("axis", 1), ints_attribute("split", &[1, 1])]),
        node("Concat", &["p", "q"], &["j"], vec![int_attribute("axis", 1)]),
        node(
            "If",
            &["cond"],
            &["i"],
            vec![graph_attribute("then_branch", &branch), graph_attribute("else_branch", &branch)],
        ),
        node("Softmax", &["j"], &["m"], vec![int_attribute("axis", 3)]),
        node("Foo", &["m", "", "i"], &["f", "", "g"], vec![ints_attribute("list", &[1, 2])]),
        node(
            "Slice",
            &["x"],
            &["l"],
            vec![ints_attribute("starts", &[0]), ints_attribute("ends", &[2]), ints_attribute("axes", &[1])],
        ),
        node("Unsqueeze", &["l"], &["u"], vec![ints_attribute("axes", &[0])]),
    ];
    let mut g = graph(
        "g",
        nodes,
        vec![float("x", &[1, 3, 8, 8]), info("cond", BOOL, &[]), typed("d", symbolic_type(1, &["n", "m"]))],
        vec![float("f", &[1]), float("i", &[1, 2, 4, 4]), float("u", &[1, 1, 2, 8, 8])],
    );
    g.value_info = vec![float("r", &[1, 2, 8, 8])];
    g.initializer = vec![initializer("shape", &ints(&[2, 3, 3, 3])), initializer("s", &floats(&[1.0, 2.0]))];
    let mut m = model(9, g);
    m.producer_name = Some("test".into());
    m
}

/// Returns a small model with elements in another file, with sparse constants, and with a sparse
/// constant that is kept.
fn stored_otherwise() -> ModelProto {
    let entry = |key: &str, value: &str| StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) };
    let place = vec![entry("location", "w"), entry("offset", "4"), entry("length", "8")];
    let external = TensorProto {
        name: Some("e".into()),
        dims: vec![2],
        data_type: Some(1),
        data_location: Some(1),
        external_data: place,
        ..TensorProto::default()
    };
    let sparse = |name: Option<&str>, at: i64, dims: &[i64]| SparseTensorProto {
        values: Some(TensorProto { name: name.map(Into::into), ..tensor_of(&floats(&[5.0]), 8).unwrap() }),
        indices: Some(tensor_of(&ints(&[at]), 8).unwrap()),
        dims: dims.to_vec(),
    };
    let mut value = AttributeProto { name: Some("sparse_value".into()), ..AttributeProto::default() };
    value.set_type(AttributeType::SparseTensor);
    value.sparse_tensor = Some(Box::new(sparse(None, 1, &[2])));
    let nodes = vec![
        node("Constant", &[], &["c"], vec![value]),
        node("Sum", &["e", "s", "c"], &["y"], vec![]),
        node("Frob", &["y", "k"], &["z"], vec![]),
    ];
    let mut g = graph("g", nodes, vec![], vec![float("z", &[2])]);
    g.initializer = vec![external];
    g.sparse_initializer = vec![sparse(Some("s"), 0, &[2]), sparse(Some("k"), 7, &[1 << 20, 1 << 20])];
    model(13, g)
}

/// Reads bytes. If they are a model, writes it and reads the result.
fn survives(bytes: Vec<u8>) {
    let bytes = Bytes::from(bytes);
    // What is read with all its fields is the same if unknown fields are dropped.
    for unknown_fields in [UnknownFields::Refuse, UnknownFields::Drop] {
        let files: FxHashMap<String, Bytes> = [("w".to_string(), Bytes::from(vec![64; 16]))].into_iter().collect();
        let data_files = Some(Arc::new(files) as Arc<dyn DataFiles>);
        let options = ImportOptions { unknown_fields, data_files, ..ImportOptions::default() };
        let Ok(imported) = import(bytes.clone(), &options) else { continue };
        let module = imported.module;
        if let Err(e) = verify_module(&module) {
            panic!("{}\n{module}", e[0]);
        }
        let Ok(written) = export(&module, &ExportOptions::default()) else { continue };
        let again = match import(Bytes::from(written.bytes.clone()), &options) {
            Ok(again) => again,
            Err(e) => panic!("what is written can be read: {e}\n{module}"),
        };
        assert_eq!(again.nodes.total(), written.nodes.total());
        let twice = export(&again.module, &ExportOptions::default()).expect("what was written can be written");
        assert_eq!(twice, written, "a second round changes nothing");
        return;
    }
}

#[test]
fn the_model_itself_survives() {
    let bytes = base().encode_to_vec();
    assert!(import(Bytes::from(bytes.clone()), &ImportOptions::default()).is_ok());
    survives(bytes);
    survives(stored_otherwise().encode_to_vec());
}

#[test]
fn every_truncation() {
    for bytes in [base().encode_to_vec(), stored_otherwise().encode_to_vec()] {
        for len in 0..bytes.len() {
            survives(bytes[..len].to_vec());
        }
    }
}

#[test]
fn every_bit() {
    survives_every_flip(&base().encode_to_vec());
}

#[test]
fn every_bit_stored_otherwise() {
    survives_every_flip(&stored_otherwise().encode_to_vec());
}

/// Flips one bit of each byte, or every bit if `ANFORA_CASES` is set.
fn survives_every_flip(bytes: &[u8]) {
    let all = std::env::var_os("ANFORA_CASES").is_some();
    for i in 0..bytes.len() {
        for bit in (0..8).filter(|&bit| all || bit == i % 8) {
            let mut damaged = bytes.to_vec();
            damaged[i] ^= 1 << bit;
            survives(damaged);
        }
    }
}

/// A change to a file: the byte at `.0` becomes `.1`, or the bytes from there on are replaced by
/// other bytes of the file, given by their offset and number.
type Edit = (usize, u8, Option<(usize, usize)>);

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit =
        (any::<prop::sample::Index>(), any::<u8>(), prop::option::of((any::<prop::sample::Index>(), 0usize..64)));
    let edit = edit
        .prop_map(|(at, value, copy)| (at.index(1 << 20), value, copy.map(|(from, len)| (from.index(1 << 20), len))));
    prop::collection::vec(edit, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutations(edits in edits(), is_base in any::<bool>()) {
        let mut bytes = if is_base { base() } else { stored_otherwise() }.encode_to_vec();
        for (at, value, copy) in edits {
            let at = at % bytes.len();
            match copy {
                None => bytes[at] = value,
                Some((from, len)) => {
                    let from = from % bytes.len();
                    let part = bytes[from..(from + len).min(bytes.len())].to_vec();
                    bytes.splice(at..(at + len / 2).min(bytes.len()), part);
                }
            }
            if bytes.is_empty() {
                break;
            }
        }
        survives(bytes);
    }

    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(bytes);
    }
}

/// Changes the messages and leaves the encoding valid.
fn change(m: &mut ModelProto, kind: u8, i: usize, j: usize) {
    let g = m.graph.as_mut().expect("a graph");
    let nodes = g.node.len().max(1);
    match kind {
        0 if !g.node.is_empty() => g.node.swap(i % nodes, j % nodes),
        1 if !g.node.is_empty() => drop(g.node.remove(i % nodes)),
        2 if !g.node.is_empty() => {
            let copy = g.node[i % nodes].clone();
            g.node.push(copy);
        }
        3 if !g.node.is_empty() => {
            let names = ["x", "h", "r", "", "cond", "d", "shape", "s", "m"];
            let inputs = &mut g.node[i % nodes].input;
            if let Some(slot) = inputs.len().checked_sub(1).map(|n| j % (n + 1)) {
                inputs[slot] = names[(i + j) % names.len()].to_string();
            }
        }
        4 if !g.node.is_empty() => {
            for a in &mut g.node[i % nodes].attribute {
                let values = [-1, 0, 1, 2, 5, i64::MAX, i64::MIN];
                a.i = a.i.map(|_| values[j % values.len()]);
                if let Some(n) = a.ints.len().checked_sub(1) {
                    a.ints[j % (n + 1)] = values[i % values.len()];
                }
            }
        }
        5 if !g.node.is_empty() => {
            let ops =
                ["Add", "Conv", "Reshape", "Transpose", "Gather", "Squeeze", "Expand", "Dropout", "Sum", "Identity"];
            g.node[i % nodes].op_type = Some(ops[j % ops.len()].to_string());
        }
        6 => m.opset_import[0].version = Some((i % 30) as i64),
        7 => m.ir_version = Some((i % 16) as i64),
        8 if !g.input.is_empty() => {
            let at = i % g.input.len();
            let shapes: [&[&str]; 5] = [&[], &["n"], &["1", "3", "n", "8"], &["0", "3"], &["n", "n", "n", "n"]];
            g.input[at].r#type = Some(symbolic_type((j % 30) as i32, shapes[i % 5]));
        }
        9 if !g.output.is_empty() => {
            let at = i % g.output.len();
            g.output[at].r#type = None;
            let copy = g.output[at].clone();
            g.output.push(copy);
        }
        10 if !g.initializer.is_empty() => {
            let at = i % g.initializer.len();
            g.initializer[at].dims = [vec![], vec![j as i64 % 5], vec![2, 1]][i % 3].clone();
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_messages(changes in prop::collection::vec((0u8..11, 0usize..100, 0usize..100), 1..6)) {
        let mut m = base();
        for (kind, i, j) in changes {
            change(&mut m, kind, i, j);
        }
        survives(m.encode_to_vec());
    }
}
