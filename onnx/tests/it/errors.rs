//! Files that are not models.

use anfora_ir::{DType, Literal};
use anfora_onnx::convert::{int_attribute, tensor_attribute};
use anfora_onnx::proto::tensor_proto::{DataLocation, Segment};
use anfora_onnx::proto::{
    GraphProto, ModelProto, NodeProto, SparseTensorProto, StringStringEntryProto, TensorProto, ValueInfoProto,
};
use anfora_onnx::tensor::{dtype_of, literal_of, tensor_of};
use anfora_onnx::{ImportOptions, import, read_tensor, write_tensor};
use bytes::Bytes;
use prost::Message;

use crate::models::{FLOAT, float, floats, graph, graph_attribute, initializer, ints, model, node, try_read};

/// Asserts that a model is refused with an error that contains these words.
fn refused(model: &ModelProto, words: &[&str]) {
    let error = match try_read(model) {
        Ok(module) => panic!("it was read:\n{module}"),
        Err(e) => e.to_string(),
    };
    for w in words {
        assert!(error.contains(w), "`{w}` is not in: {error}");
    }
}

fn of_nodes(nodes: Vec<anfora_onnx::proto::NodeProto>) -> ModelProto {
    model(13, graph("g", nodes, vec![float("x", &[2])], vec![float("y", &[2])]))
}

fn with_initializer(tensor: TensorProto) -> ModelProto {
    let mut m = of_nodes(vec![node("Add", &["x", "w"], &["y"], vec![])]);
    m.graph.as_mut().unwrap().initializer = vec![tensor];
    m
}

#[test]
fn a_cycle() {
    let nodes = vec![node("Add", &["x", "b"], &["a"], vec![]), node("Relu", &["a"], &["b"], vec![])];
    refused(&of_nodes(nodes), &["the graph `g`, node 0 (`Add`)", "`b` is used before", "cycle"]);
    refused(&of_nodes(vec![node("Add", &["x", "y"], &["y"], vec![])]), &["`y` is used before"]);
}

#[test]
fn missing_values() {
    let mut named = node("Add", &["x", "z"], &["y"], vec![]);
    named.name = Some("sum".into());
    refused(&of_nodes(vec![named]), &["node 0 (`Add` named `sum`)", "`z` is neither an input"]);
    refused(&of_nodes(vec![]), &["`y` is neither"]);
    let inner = graph("inner", vec![node("Relu", &["nowhere"], &["o"], vec![])], vec![], vec![float("o", &[2])]);
    let outer = node("If", &["x"], &["y"], vec![graph_attribute("then_branch", &inner)]);
    refused(&of_nodes(vec![outer]), &["node 0 (`If`), its `then_branch`, node 0 (`Relu`)", "`nowhere`"]);
}

#[test]
fn values_that_are_defined_twice() {
    let relu = || node("Relu", &["x"], &["y"], vec![]);
    refused(&of_nodes(vec![relu(), relu()]), &["node 1", "`y` is defined twice"]);
    refused(&of_nodes(vec![node("Relu", &["x"], &["x"], vec![])]), &["`x` is defined twice"]);
    let mut m = of_nodes(vec![relu()]);
    m.graph.as_mut().unwrap().input.push(float("x", &[2]));
    refused(&m, &["`x` is defined twice"]);
    let mut m = with_initializer(initializer("w", &floats(&[1.0, 2.0])));
    m.graph.as_mut().unwrap().initializer.push(initializer("w", &floats(&[1.0, 2.0])));
    refused(&m, &["`w` is defined twice"]);
    let twice = vec![int_attribute("axis", 0), int_attribute("axis", 0)];
    refused(&of_nodes(vec![node("Softmax", &["x"], &["y"], twice)]), &["the attribute `axis` is given twice"]);
}

#[test]
fn what_has_no_name() {
    let mut m = of_nodes(vec![node("Relu", &["x"], &["y"], vec![])]);
    m.graph.as_mut().unwrap().input.push(ValueInfoProto::default());
    refused(&m, &["an input without a name"]);
    refused(&with_initializer(TensorProto::default()), &["an initializer without a name"]);
    let mut m = of_nodes(vec![node("Relu", &["x"], &["y"], vec![])]);
    m.graph.as_mut().unwrap().output.push(ValueInfoProto::default());
    refused(&m, &["an output without a name"]);
    refused(&of_nodes(vec![node("", &["x"], &["y"], vec![])]), &["op_type is missing"]);
}

#[test]
fn tensors_that_are_not() {
    let base = || initializer("w", &floats(&[1.0, 2.0]));
    let with = |change: fn(&mut TensorProto)| {
        let mut tensor = base();
        change(&mut tensor);
        with_initializer(tensor)
    };
    let raw = |bytes: &'static [u8]| Some(Bytes::from_static(bytes));
    assert!(try_read(&with(|_| {})).is_ok());
    refused(&with(|t| t.raw_data = Some(Bytes::from_static(&[0; 7]))), &["the initializer `w`", "8 bytes, not 7"]);
    refused(&with(|t| t.dims = vec![-1]), &["-1 is not an extent"]);
    refused(&with(|t| t.dims = vec![i64::MAX, i64::MAX]), &["too large"]);
    refused(&with(|t| t.data_type = None), &["element type 0"]);
    refused(&with(|t| t.float_data = vec![1.0, 2.0]), &["float32 elements are in the wrong field, float_data"]);
    refused(&with(|t| t.raw_data = None), &["8 bytes, not 0"]);
    refused(&with(|t| t.segment = Some(Box::new(Segment::default()))), &["segment"]);
    refused(
        &with(|t| {
            t.set_data_location(DataLocation::External);
            t.raw_data = None;
            t.external_data =
                vec![StringStringEntryProto { key: Some("location".into()), value: Some("weights.bin".into()) }];
        }),
        &["the initializer `w`", "another file, `weights.bin`", "no source of other files"],
    );
    let mut strings = TensorProto { data_type: Some(8), dims: vec![1], ..TensorProto::default() };
    strings.string_data = vec![Bytes::from_static(&[0xff])];
    assert!(literal_of(&strings).unwrap_err().to_string().contains("not UTF-8"));
    strings.string_data = vec![];
    assert!(literal_of(&strings).unwrap_err().to_string().contains("1 elements, but 0"));
    strings.raw_data = raw(&[0]);
    assert!(literal_of(&strings).unwrap_err().to_string().contains("string elements are in the wrong field, raw_data"));
}

#[test]
fn external_data_wherever_it_is() {
    let external = || {
        let location = StringStringEntryProto { key: Some("location".into()), value: Some("f".into()) };
        let mut t = TensorProto { data_type: Some(1), external_data: vec![location], ..TensorProto::default() };
        t.set_data_location(DataLocation::External);
        t
    };
    refused(
        &of_nodes(vec![node("Foo", &["x"], &["y"], vec![tensor_attribute("t", external())])]),
        &["another file, `f`"],
    );
    let mut named = external();
    named.name = Some("inner".into());
    let odd = of_nodes(vec![node("Foo", &["x"], &["y"], vec![tensor_attribute("t", named)])]);
    refused(&odd, &["the tensor `inner`", "another file, `f`"]);
}

#[test]
fn models_that_are_not() {
    let good = || of_nodes(vec![node("Relu", &["x"], &["y"], vec![])]);
    refused(&ModelProto::default(), &["the file: it is empty"]);
    refused(&ModelProto { graph: None, ..good() }, &["graph is missing"]);
    refused(&ModelProto { ir_version: None, ..good() }, &["ir_version is missing"]);
    refused(&ModelProto { opset_import: vec![], ..good() }, &["opset_import is missing"]);
    let mut m = good();
    m.graph.as_mut().unwrap().sparse_initializer = vec![SparseTensorProto::default()];
    refused(&m, &["a sparse initializer without a name"]);
    refused(&ModelProto { graph: Some(GraphProto::default()), ..ModelProto::default() }, &["ir_version"]);
}

#[test]
fn tensors_of_every_type_come_back() {
    for &dtype in DType::ALL {
        if dtype == DType::String {
            continue;
        }
        let bytes: Vec<u8> =
            (0..dtype.byte_len(6).unwrap() as u8).map(|b| b % if dtype == DType::Bool { 2 } else { 100 }).collect();
        let literal = Literal::from_bytes(dtype, &[2, 3], Bytes::from(bytes)).unwrap();
        let tensor = tensor_of(&literal, 1000).unwrap();
        assert_eq!(dtype_of(tensor.data_type()), Some(dtype));
        assert_eq!(literal_of(&tensor).unwrap(), literal);
        assert_eq!(read_tensor(write_tensor(&literal).unwrap().into()).unwrap(), literal);
    }
}

#[test]
fn files_that_are_not_tensors() {
    for (bytes, words) in [
        (&[0x08][..], "at byte 0, in TensorProto.dims: the message ends"),
        (&[0xa2, 0x06, 0][..], "the field number 100 is not known"),
        (&[0x42, 1, 0xff], "the file is damaged"),
        (&[0x10, 1], "4 bytes, not 0"),
    ] {
        let error = read_tensor(Bytes::copy_from_slice(bytes)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn typed_fields_are_the_same_elements() {
    let tensor = |data_type: i32, dims: &[i64]| TensorProto {
        data_type: Some(data_type),
        dims: dims.to_vec(),
        ..TensorProto::default()
    };
    let elements = |t: TensorProto| literal_of(&t).map(|l| l.to_bytes().to_vec());
    assert_eq!(elements(TensorProto { float_data: vec![1.5], ..tensor(1, &[]) }).unwrap(), 1.5f32.to_le_bytes());
    assert_eq!(elements(TensorProto { float_data: vec![1.0, 2.0], ..tensor(14, &[1]) }).unwrap().len(), 8);
    assert_eq!(elements(TensorProto { double_data: vec![2.5], ..tensor(11, &[1]) }).unwrap(), 2.5f64.to_le_bytes());
    assert_eq!(elements(TensorProto { int64_data: vec![-3], ..tensor(7, &[1]) }).unwrap(), (-3i64).to_le_bytes());
    assert_eq!(elements(TensorProto { int32_data: vec![-3, 255], ..tensor(2, &[2]) }).unwrap(), [253, 255]);
    assert_eq!(elements(TensorProto { int32_data: vec![-3, 127], ..tensor(3, &[2]) }).unwrap(), [253, 127]);
    assert_eq!(elements(TensorProto { int32_data: vec![0x3c00], ..tensor(10, &[1]) }).unwrap(), [0, 0x3c]);
    assert_eq!(elements(TensorProto { int32_data: vec![0, 7], ..tensor(9, &[2]) }).unwrap(), [0, 1]);
    assert_eq!(elements(TensorProto { int32_data: vec![0x21, 0x3], ..tensor(22, &[3]) }).unwrap(), [0x21, 0x3]);
    assert_eq!(elements(TensorProto { uint64_data: vec![7], ..tensor(12, &[1]) }).unwrap(), 7u32.to_le_bytes());
    assert_eq!(elements(TensorProto { uint64_data: vec![u64::MAX], ..tensor(13, &[1]) }).unwrap(), [0xff; 8]);
    for (bad, words) in [
        (TensorProto { int32_data: vec![256], ..tensor(2, &[1]) }, "256 is not a uint8"),
        (TensorProto { int32_data: vec![-129], ..tensor(3, &[1]) }, "-129 is not a int8"),
        (TensorProto { uint64_data: vec![1 << 32], ..tensor(12, &[1]) }, "is not a uint32"),
        (TensorProto { int64_data: vec![1], ..tensor(6, &[1]) }, "int32 elements are in the wrong field, int64_data"),
    ] {
        assert_eq!(elements(bad).map_err(|e| e.to_string().contains(words)), Err(true), "{words}");
    }
    let empty = tensor(FLOAT, &[0, 5]);
    assert_eq!(literal_of(&empty).unwrap().shape(), [0, 5]);
    assert_eq!(literal_of(&tensor_of(&ints(&[]), 8).unwrap()).unwrap(), ints(&[]));
}

/// Returns the bytes of a model in which the text `bad!` is not UTF-8.
fn with_bad_text(model: &ModelProto) -> Vec<u8> {
    let mut bytes = model.encode_to_vec();
    let place = bytes.windows(4).position(|text| text == b"bad!").expect("the model has the text");
    bytes[place + 3] = 0xff;
    bytes
}

#[test]
fn texts_that_are_not_utf_8() {
    let relu = || node("Relu", &["x"], &["y"], vec![]);
    let mut in_name = relu();
    in_name.name = Some("bad!".into());
    let mut in_output = relu();
    in_output.output.push("bad!".into());
    let in_attribute = node("LeakyRelu", &["x"], &["y"], vec![int_attribute("bad!", 1)]);
    let inner = graph("inner", vec![node("bad!", &["x"], &["o"], vec![])], vec![], vec![float("o", &[2])]);
    let in_subgraph = node("If", &["x"], &["y"], vec![graph_attribute("then_branch", &inner)]);
    let mut in_graph = of_nodes(vec![relu()]);
    in_graph.graph.as_mut().unwrap().name = Some("bad!".into());
    let nodes = [in_name, in_output, in_attribute, in_subgraph].map(|node| of_nodes(vec![relu(), node]));
    for model in nodes.iter().chain([&in_graph]) {
        let bytes = Bytes::from(with_bad_text(model));
        let error = import(bytes, &ImportOptions::default()).map(drop).unwrap_err().to_string();
        assert!(error.contains("invalid string value: data is not UTF-8 encoded"), "{error}");
    }
}

#[test]
fn of_a_text_that_occurs_twice_the_last_counts() {
    let mut twice = node("Exp", &["x"], &["y"], vec![]);
    twice.name = Some("first".into());
    let mut bytes = twice.encode_to_vec();
    bytes.extend(
        NodeProto { op_type: Some("Relu".into()), name: Some("second".into()), ..Default::default() }.encode_to_vec(),
    );
    let mut model = of_nodes(vec![]);
    let mut encoded = vec![0x0a, bytes.len() as u8];
    encoded.extend(bytes);
    encoded.extend(model.graph.take().expect("a graph").encode_to_vec());
    let mut whole = model.encode_to_vec();
    whole.extend([0x3a, encoded.len() as u8]);
    whole.extend(encoded);
    let imported = import(Bytes::from(whole), &ImportOptions::default()).unwrap();
    let text = imported.module.to_text();
    assert!(text.contains("nn.relu(%x)") && text.contains("second") && !text.contains("first"), "{text}");
}
