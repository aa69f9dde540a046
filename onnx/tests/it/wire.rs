//! The check of the bytes knows every field and finds faults.

use anfora_onnx::proto::sharded_extent::Extent as ShardedExtent;
use anfora_onnx::proto::tensor_proto::Segment;
use anfora_onnx::proto::tensor_shape_proto::{Dimension, Extent};
use anfora_onnx::proto::type_proto::{Map, Opaque, Optional, Sequence, SparseTensor, Tensor, Value};
use anfora_onnx::proto::{
    AttributeProto, DeviceConfigurationProto, FunctionProto, GraphProto, IntIntListEntryProto, ModelProto,
    NodeDeviceConfigurationProto, NodeProto, OperatorSetIdProto, ShardedDimProto, ShardingSpecProto,
    SimpleShardedDimProto, SparseTensorProto, StringStringEntryProto, TensorAnnotation, TensorProto, TensorShapeProto,
    TrainingInfoProto, TypeProto, ValueInfoProto,
};
use anfora_onnx::wire::{UnknownFields, WireProblem, check};
use anfora_onnx::{ImportOptions, import};
use bytes::Bytes;
use prost::Message;

use crate::models::{float, graph, model, node};

fn s() -> Option<String> {
    Some("s".into())
}

fn encoded(message: impl Message) -> Option<Bytes> {
    Some(Bytes::from(message.encode_to_vec()))
}

fn entries() -> Vec<StringStringEntryProto> {
    vec![StringStringEntryProto { key: s(), value: s() }]
}

fn shape() -> Option<TensorShapeProto> {
    let dims = [Some(Extent::DimValue(1)), Some(Extent::DimParam("n".into())), None];
    Some(TensorShapeProto { dim: dims.into_iter().map(|value| Dimension { value, denotation: s() }).collect() })
}

fn types() -> Vec<TypeProto> {
    let tensor =
        TypeProto { value: Some(Value::TensorType(Tensor { elem_type: Some(1), shape: shape() })), denotation: s() };
    let inner = || encoded(tensor.clone());
    let values = [
        Value::SequenceType(encoded(Sequence { elem_type: inner() }).unwrap()),
        Value::MapType(encoded(Map { key_type: Some(7), value_type: inner() }).unwrap()),
        Value::OptionalType(encoded(Optional { elem_type: inner() }).unwrap()),
        Value::OpaqueType(Opaque { domain: s(), name: s() }),
        Value::SparseTensorType(SparseTensor { elem_type: Some(1), shape: shape() }),
    ];
    let mut types: Vec<TypeProto> = values.into_iter().map(|v| TypeProto { value: Some(v), denotation: s() }).collect();
    types.push(tensor);
    types
}

fn tensor() -> TensorProto {
    TensorProto {
        dims: vec![1, 2],
        data_type: Some(1),
        segment: Some(Box::new(Segment { begin: Some(0), end: Some(1) })),
        float_data: vec![1.0],
        int32_data: vec![1, -1],
        string_data: vec!["a".into()],
        int64_data: vec![1],
        name: s(),
        raw_data: Some("abcd".into()),
        double_data: vec![1.0],
        uint64_data: vec![u64::MAX],
        doc_string: s(),
        external_data: entries(),
        data_location: Some(1),
        metadata_props: entries(),
    }
}

fn sparse() -> SparseTensorProto {
    SparseTensorProto { values: Some(tensor()), indices: Some(tensor()), dims: vec![1] }
}

fn infos() -> Vec<ValueInfoProto> {
    let info = |t| ValueInfoProto { name: s(), r#type: Some(t), doc_string: s(), metadata_props: entries() };
    types().into_iter().map(info).collect()
}

fn attribute(graph: Bytes) -> AttributeProto {
    AttributeProto {
        name: s(),
        f: Some(1.0),
        i: Some(-1),
        s: Some("s".into()),
        t: Some(Box::new(tensor())),
        g: Some(graph.clone()),
        floats: vec![1.0, 2.0],
        ints: vec![1, 2],
        strings: vec!["a".into()],
        tensors: vec![tensor()],
        graphs: vec![graph],
        doc_string: s(),
        tp: types().pop().map(Box::new),
        type_protos: types(),
        r#type: Some(1),
        ref_attr_name: s(),
        sparse_tensor: Some(Box::new(sparse())),
        sparse_tensors: vec![sparse()],
    }
}

fn full_node(graph: Bytes) -> NodeProto {
    let sharded = [Some(ShardedExtent::DimValue(1)), Some(ShardedExtent::DimParam("n".into()))];
    NodeProto {
        input: vec!["x".into()],
        output: vec!["y".into()],
        name: s(),
        op_type: s(),
        attribute: vec![attribute(graph)],
        doc_string: s(),
        domain: s(),
        overload: s(),
        metadata_props: entries(),
        device_configurations: vec![NodeDeviceConfigurationProto {
            configuration_id: s(),
            sharding_spec: vec![ShardingSpecProto {
                tensor_name: s(),
                device: vec![1],
                index_to_device_group_map: vec![IntIntListEntryProto { key: Some(1), value: vec![1] }],
                sharded_dim: vec![ShardedDimProto {
                    axis: Some(1),
                    simple_sharding: sharded.map(|dim| SimpleShardedDimProto { dim, num_shards: Some(1) }).into(),
                }],
            }],
            pipeline_stage: Some(1),
        }],
    }
}

fn full_graph(inner: Bytes) -> GraphProto {
    GraphProto {
        node: vec![full_node(inner)],
        name: s(),
        initializer: vec![tensor()],
        doc_string: s(),
        input: infos(),
        output: infos(),
        value_info: infos(),
        quantization_annotation: vec![TensorAnnotation { tensor_name: s(), quant_parameter_tensor_names: entries() }],
        sparse_initializer: vec![sparse()],
        metadata_props: entries(),
    }
}

fn full_model() -> ModelProto {
    let g = || full_graph(encoded(full_graph(Bytes::new())).unwrap());
    ModelProto {
        ir_version: Some(14),
        producer_name: s(),
        producer_version: s(),
        domain: s(),
        model_version: Some(1),
        doc_string: s(),
        graph: Some(g()),
        opset_import: vec![OperatorSetIdProto { domain: s(), version: Some(1) }],
        metadata_props: entries(),
        training_info: vec![TrainingInfoProto {
            initialization: Some(g()),
            algorithm: Some(g()),
            initialization_binding: entries(),
            update_binding: entries(),
        }],
        functions: vec![FunctionProto {
            name: s(),
            input: vec!["x".into()],
            output: vec!["y".into()],
            attribute: vec!["a".into()],
            node: vec![full_node(Bytes::new())],
            doc_string: s(),
            opset_import: vec![OperatorSetIdProto { domain: s(), version: Some(1) }],
            domain: s(),
            attribute_proto: vec![attribute(Bytes::new())],
            value_info: infos(),
            overload: s(),
            metadata_props: entries(),
        }],
        configuration: vec![DeviceConfigurationProto { name: s(), num_devices: Some(1), device: vec!["d".into()] }],
    }
}

#[test]
fn every_field_is_known() {
    let full = full_model();
    let bytes = full.encode_to_vec();
    let summary = check(&bytes, UnknownFields::Refuse).unwrap();
    assert!(summary.external_data.is_some());
    assert_eq!(ModelProto::decode(Bytes::from(bytes)).unwrap(), full);
}

/// Returns a delimited field with these contents.
fn delimited(number: u64, contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_varint(number << 3 | 2, &mut out);
    prost::encoding::encode_varint(contents.len() as u64, &mut out);
    out.extend_from_slice(contents);
    out
}

#[test]
fn unknown_fields_are_refused_or_dropped() {
    let x = float("x", &[2]);
    let m = model(13, graph("g", vec![node("Relu", &["x"], &["y"], vec![])], vec![x], vec![float("y", &[2])]));
    let mut bytes = m.encode_to_vec();
    let len = bytes.len();
    for unknown in [delimited(100, b"?"), vec![0xa0, 0x06, 5], vec![0xa1, 0x06, 0, 0, 0, 0, 0, 0, 0, 0]] {
        bytes.truncate(len);
        bytes.extend(unknown);
        let error = check(&bytes, UnknownFields::Refuse).unwrap_err();
        assert_eq!((error.offset, error.problem), (len, WireProblem::UnknownField(100)));
        let options = ImportOptions { unknown_fields: UnknownFields::Drop, ..ImportOptions::default() };
        assert!(import(Bytes::from(bytes.clone()), &options).is_ok());
    }
}

#[test]
fn damaged_bytes() {
    let problem = |bytes: &[u8]| check(bytes, UnknownFields::Drop).unwrap_err().problem;
    assert_eq!(problem(&[0x08]), WireProblem::Truncated);
    assert_eq!(problem(&[0x3a, 5, 0]), WireProblem::Truncated);
    assert_eq!(problem(&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), WireProblem::LongNumber);
    assert_eq!(problem(&[0x00]), WireProblem::BadTag(0));
    assert_eq!(problem(&[0x0a, 1, 0]), WireProblem::WireType(2));
    assert_eq!(problem(&[0x0f]), WireProblem::WireType(7));
    // A graph whose tensor has five bytes of packed floats.
    let floats = delimited(4, &[0; 5]);
    assert_eq!(problem(&delimited(7, &delimited(5, &floats))), WireProblem::Truncated);
    let graph = delimited(6, b"");
    let node = delimited(1, &delimited(5, &[graph.clone(), graph].concat()));
    let error = check(&delimited(7, &node), UnknownFields::Refuse).unwrap_err();
    assert_eq!((error.place.as_str(), error.problem), ("AttributeProto.g", WireProblem::Twice));
}

#[test]
fn nesting_has_the_limit_of_other_readers() {
    let nested = |types: usize| {
        let mut ty: Vec<u8> = Vec::new();
        for _ in 1..types {
            ty = delimited(4, &delimited(1, &ty));
        }
        // The path is model, graph, input, type…
        delimited(7, &delimited(11, &delimited(2, &ty)))
    };
    assert!(check(&nested(49), UnknownFields::Refuse).is_ok());
    let error = check(&nested(50), UnknownFields::Refuse).unwrap_err();
    assert_eq!(error.problem, WireProblem::TooDeep);
    assert!(error.to_string().contains("nested more than 100 deep"), "{error}");
}
