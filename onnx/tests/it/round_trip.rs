//! Import and export preserve everything: names, docs, metadata, types, attributes of every kind,
//! subgraphs.

use anfora_ir::{Literal, Source, parse_module};
use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute, str_attribute, tensor_attribute};
use anfora_onnx::proto::sharded_extent::Extent as ShardedExtent;
use anfora_onnx::proto::tensor_shape_proto::{Dimension, Extent};
use anfora_onnx::proto::type_proto::{Sequence, Tensor, Value};
use anfora_onnx::proto::{
    AttributeProto, AttributeType, DeviceConfigurationProto, FunctionProto, GraphProto, IntIntListEntryProto,
    ModelProto, NodeDeviceConfigurationProto, OperatorSetIdProto, ShardedDimProto, ShardingSpecProto,
    SimpleShardedDimProto, SparseTensorProto, StringStringEntryProto, TensorAnnotation, TensorShapeProto,
    TrainingInfoProto, TypeProto, ValueInfoProto,
};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{ExportOptions, export, registry};
use bytes::Bytes;
use prost::Message;

use crate::models::{
    BOOL, FLOAT, again, float, floats, graph, graph_attribute, info, initializer, ints, model, node, normalized,
    operators, read, symbolic_type, tensor_type, typed,
};

fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) }
}

fn attribute(name: &str, ty: AttributeType, fill: impl FnOnce(&mut AttributeProto)) -> AttributeProto {
    let mut a = AttributeProto { name: Some(name.into()), ..AttributeProto::default() };
    a.set_type(ty);
    fill(&mut a);
    a
}

fn assert_comes_back(model: ModelProto) {
    let back = again(&model);
    let (model, back) = (normalized(model), normalized(back));
    assert!(model == back, "went in:\n{model:#?}\ncame out:\n{back:#?}");
}

#[test]
fn what_a_model_says_about_itself() {
    let x = float("x", &[2]);
    let mut g = graph("main graph", vec![node("Relu", &["x"], &["y"], vec![])], vec![x], vec![float("y", &[2])]);
    g.doc_string = Some("a graph".into());
    g.metadata_props = vec![entry("k", "v"), entry("k", "w"), entry("", "")];
    let mut m = model(13, g);
    m.producer_name = Some("p".into());
    m.producer_version = Some("1.\"2\"\n".into());
    m.domain = Some("org.example".into());
    m.model_version = Some(-5);
    m.doc_string = Some("doc\u{1f980}".into());
    m.metadata_props = vec![entry("a", "b")];
    m.opset_import.push(OperatorSetIdProto { domain: Some("com.example".into()), version: Some(3) });
    m.functions = vec![FunctionProto {
        name: Some("f".into()),
        domain: Some("local".into()),
        node: vec![node("Relu", &["a"], &["b"], vec![])],
        ..FunctionProto::default()
    }];
    m.configuration = vec![DeviceConfigurationProto {
        name: Some("two".into()),
        num_devices: Some(2),
        device: vec!["d0".into(), "d1".into()],
    }];
    assert_comes_back(m);
}

#[test]
fn what_a_node_says_about_itself() {
    let mut relu = node("Relu", &["x"], &["y"], vec![]);
    relu.name = Some("first relu".into());
    relu.doc_string = Some("does it".into());
    relu.metadata_props = vec![entry("layer", "1")];
    relu.device_configurations = vec![NodeDeviceConfigurationProto {
        configuration_id: Some("two".into()),
        sharding_spec: vec![ShardingSpecProto {
            tensor_name: Some("x".into()),
            device: vec![0, 1],
            index_to_device_group_map: vec![IntIntListEntryProto { key: Some(0), value: vec![0, 1] }],
            sharded_dim: vec![ShardedDimProto {
                axis: Some(0),
                simple_sharding: vec![SimpleShardedDimProto {
                    dim: Some(ShardedExtent::DimValue(2)),
                    num_shards: Some(2),
                }],
            }],
        }],
        pipeline_stage: Some(1),
    }];
    let mut other = node("Foo", &["y", "", "x"], &["z"], vec![]);
    other.domain = Some("com.example".into());
    other.overload = Some("o".into());
    let g = graph("g", vec![relu, other], vec![float("x", &[2])], vec![float("z", &[2])]);
    let mut m = model(13, g);
    m.opset_import.push(OperatorSetIdProto { domain: Some("com.example".into()), version: Some(3) });
    assert_comes_back(m);
}

#[test]
fn attributes_of_every_kind() {
    let scalar = tensor_of(&Literal::scalar(3i64), 8).unwrap();
    let mut named = tensor_of(&floats(&[1.0, 2.5]), 8).unwrap();
    named.name = Some("inner".into());
    let strings = Literal::from_strings(&[2], vec!["a".into(), "".into()]).unwrap();
    let sparse = SparseTensorProto {
        values: Some(tensor_of(&floats(&[1.0]), 8).unwrap()),
        indices: Some(tensor_of(&ints(&[1]), 8).unwrap()),
        dims: vec![3],
    };
    let mut documented = int_attribute("documented", 1);
    documented.doc_string = Some("why".into());
    let attributes = vec![
        int_attribute("i", -1),
        float_attribute("f", 0.1f32.into()),
        attribute("nan", AttributeType::Float, |a| a.f = Some(f32::INFINITY)),
        str_attribute("s", "text"),
        attribute("bytes", AttributeType::String, |a| a.s = Some(Bytes::from_static(&[0xff, 0]))),
        ints_attribute("is", &[1, -2, 3]),
        ints_attribute("no_is", &[]),
        attribute("fs", AttributeType::Floats, |a| a.floats = vec![1.0, 0.1]),
        attribute("no_fs", AttributeType::Floats, |_| {}),
        attribute("ss", AttributeType::Strings, |a| a.strings = vec!["a".into(), "b".into()]),
        attribute("no_ss", AttributeType::Strings, |_| {}),
        tensor_attribute("t", tensor_of(&floats(&[1.0, 2.0]), 8).unwrap()),
        tensor_attribute("scalar", scalar.clone()),
        tensor_attribute("named", named),
        tensor_attribute("strings", tensor_of(&strings, 8).unwrap()),
        attribute("ts", AttributeType::Tensors, |a| a.tensors = vec![scalar]),
        attribute("sp", AttributeType::SparseTensor, |a| a.sparse_tensor = Some(Box::new(sparse.clone()))),
        attribute("sps", AttributeType::SparseTensors, |a| a.sparse_tensors = vec![sparse]),
        attribute("tp", AttributeType::TypeProto, |a| a.tp = Some(Box::new(tensor_type(FLOAT, &[1])))),
        attribute("tps", AttributeType::TypeProtos, |a| a.type_protos = vec![tensor_type(FLOAT, &[1])]),
        attribute("onnx_ours", AttributeType::Int, |a| a.i = Some(2)),
        attribute("not an identifier", AttributeType::Int, |a| a.i = Some(2)),
        attribute("no_gs", AttributeType::Graphs, |_| {}),
        documented,
    ];
    let g = graph("g", vec![node("Odd", &["x"], &["y"], attributes)], vec![float("x", &[2])], vec![float("y", &[2])]);
    assert_comes_back(model(13, g));
}

#[test]
fn attributes_that_change_nothing() {
    let norm = node(
        "BatchNormalization",
        &["x", "s", "s", "s", "s"],
        &["y"],
        vec![float_attribute("epsilon", 1e-5), float_attribute("momentum", 0.5)],
    );
    let mut g = graph("g", vec![norm], vec![float("x", &[1, 2, 3])], vec![float("y", &[1, 2, 3])]);
    g.initializer = vec![initializer("s", &floats(&[1.0, 2.0]))];
    let m = model(13, g);
    assert_eq!(operators(&read(&m)), ["nn.batch_norm"]);
    assert_comes_back(m);
}

#[test]
fn initializers_that_are_unused_or_equal_or_documented() {
    let mut documented = initializer("w", &floats(&[5.0, 6.0]));
    documented.doc_string = Some("weights".into());
    documented.metadata_props = vec![entry("a", "b")];
    let nodes = vec![
        node("Add", &["x", "a"], &["p"], vec![]),
        node("Add", &["p", "b"], &["q"], vec![]),
        node("Add", &["q", "w"], &["y"], vec![]),
    ];
    let mut g = graph("g", nodes, vec![float("x", &[2])], vec![float("y", &[2]), float("b", &[2])]);
    g.initializer = vec![
        initializer("a", &floats(&[1.0, 2.0])),
        initializer("b", &floats(&[1.0, 2.0])),
        initializer("unused", &ints(&[1])),
        documented,
    ];
    assert_comes_back(model(13, g));
}

#[test]
fn views_of_constants() {
    let nodes = vec![
        node("Unsqueeze", &["w"], &["v"], vec![ints_attribute("axes", &[1])]),
        node("Squeeze", &["v"], &["u"], vec![ints_attribute("axes", &[1])]),
        node("Mul", &["x", "v"], &["p"], vec![]),
        node("Add", &["p", "u"], &["y"], vec![]),
    ];
    let mut g = graph("g", nodes, vec![float("x", &[2, 2])], vec![float("y", &[2, 2]), float("u", &[2])]);
    g.initializer = vec![initializer("w", &floats(&[1.0, 2.0]))];
    let m = model(9, g);
    let module = read(&m);
    let text = module.to_string();
    assert!(text.contains("multiply(%x, dense<Tensor[(2, 1), float32]>[1, 2])"), "{text}");
    let back = again(&m).graph.unwrap();
    assert_eq!(back.node[..4], m.graph.as_ref().unwrap().node[..]);
    assert_eq!(back.output[1].name(), "u");
}

#[test]
fn constants_in_every_form() {
    let constant = |name: &str, a: AttributeProto| node("Constant", &[], &[name], vec![a]);
    let mut tensor = constant("t", tensor_attribute("value", tensor_of(&floats(&[1.0, 2.0]), 8).unwrap()));
    tensor.name = Some("a node".into());
    let nodes = vec![
        tensor,
        constant("f", attribute("value_float", AttributeType::Float, |a| a.f = Some(2.0))),
        constant("fs", attribute("value_floats", AttributeType::Floats, |a| a.floats = vec![2.0, 2.0])),
        constant("i", attribute("value_int", AttributeType::Int, |a| a.i = Some(2))),
        constant("is", ints_attribute("value_ints", &[2])),
        constant("s", str_attribute("value_string", "x")),
        constant("ss", attribute("value_strings", AttributeType::Strings, |a| a.strings = vec!["x".into()])),
        node("Foo", &["t", "f", "fs", "i", "is", "s", "ss"], &["y"], vec![]),
    ];
    assert_comes_back(model(13, graph("g", nodes, vec![], vec![float("y", &[2])])));
}

#[test]
fn types_that_say_more() {
    let denoted = TypeProto {
        value: Some(Value::TensorType(Tensor {
            elem_type: Some(FLOAT),
            shape: Some(TensorShapeProto {
                dim: vec![
                    Dimension { value: Some(Extent::DimValue(2)), denotation: Some("DATA_BATCH".into()) },
                    Dimension::default(),
                ],
            }),
        })),
        denotation: Some("IMAGE".into()),
    };
    let sequence = Sequence { elem_type: Some(Bytes::from(tensor_type(FLOAT, &[2]).encode_to_vec())) };
    let sequence =
        TypeProto { value: Some(Value::SequenceType(Bytes::from(sequence.encode_to_vec()))), denotation: None };
    let future =
        TypeProto { value: Some(Value::TensorType(Tensor { elem_type: Some(25), shape: None })), denotation: None };
    let nodes = vec![
        node("Relu", &["x"], &["p"], vec![]),
        node("Foo", &["p", "s"], &["q", "", "r"], vec![]),
        node("Bar", &["q", "r", "n"], &["y", "z", "m"], vec![]),
    ];
    let documented = ValueInfoProto { doc_string: Some("a doc".into()), ..typed("x", denoted.clone()) };
    let mut g = graph(
        "g",
        nodes,
        vec![
            documented,
            typed("s", sequence.clone()),
            typed("n", symbolic_type(FLOAT, &["batch size", "min", "n", "3"])),
        ],
        vec![
            typed("y", sequence),
            typed("z", future),
            typed("m", symbolic_type(FLOAT, &["batch size", "unk", "min", "n"])),
        ],
    );
    g.value_info =
        vec![typed("p", denoted), typed("q", symbolic_type(FLOAT, &["unk_1", "4"])), info("r", BOOL, &[7, 0])];
    assert_comes_back(model(13, g));
}

#[test]
fn quantization_annotations_of_what_is_there() {
    let annotation = |name: &str| TensorAnnotation {
        tensor_name: Some(name.into()),
        quant_parameter_tensor_names: vec![entry("SCALE_TENSOR", "scale")],
    };
    let mut g = graph("g", vec![node("Relu", &["x"], &["y"], vec![])], vec![float("x", &[2])], vec![float("y", &[2])]);
    g.initializer = vec![initializer("scale", &floats(&[1.0]))];
    g.quantization_annotation = vec![annotation("x")];
    assert_comes_back(model(13, g));
}

#[test]
fn in_version_3_initializers_are_constants_and_inputs() {
    let mut g = graph(
        "g",
        vec![node("Reshape", &["x", "shape"], &["y"], vec![])],
        vec![float("x", &[2, 3]), info("shape", 7, &[2])],
        vec![float("y", &[3, 2])],
    );
    g.initializer = vec![initializer("shape", &ints(&[3, 2]))];
    let mut m = model(9, g);
    m.ir_version = Some(3);
    let module = read(&m);
    let main = module.get(module.find("main").unwrap()).unwrap();
    assert_eq!(main.body.params().len(), 1);
    assert_comes_back(m);
}

#[test]
fn later_initializers_that_are_inputs_are_defaults() {
    let mut g = graph(
        "g",
        vec![node("Add", &["x", "w"], &["y"], vec![])],
        vec![float("x", &[2]), float("w", &[2]), info("k", 7, &[])],
        vec![float("y", &[2])],
    );
    let mut documented = initializer("k", &Literal::scalar(3i64));
    documented.doc_string = Some("a doc".into());
    g.initializer = vec![documented, initializer("w", &floats(&[1.0, 2.0]))];
    let m = model(13, g);
    let module = read(&m);
    let main = module.get(module.find("main").unwrap()).unwrap();
    assert_eq!(main.body.params().len(), 3);
    assert_comes_back(m);
}

fn branch(name: &str, op: &str, captured: &str) -> GraphProto {
    let mut g = graph(name, vec![node(op, &[captured, "w"], &["out"], vec![])], vec![], vec![float("out", &[2])]);
    g.initializer = vec![initializer("w", &floats(&[1.0, 3.0]))];
    g.doc_string = Some("a branch".into());
    g
}

fn with_if(branches: [GraphProto; 2]) -> ModelProto {
    let [a, b] = branches;
    let attributes = vec![graph_attribute("then_branch", &a), graph_attribute("else_branch", &b)];
    let nodes = vec![node("Relu", &["x"], &["h"], vec![]), node("If", &["c"], &["y"], attributes)];
    model(13, graph("g", nodes, vec![info("c", BOOL, &[]), float("x", &[2])], vec![float("y", &[2])]))
}

#[test]
fn subgraphs_capture_what_they_use() {
    let m = with_if([branch("t", "Add", "h"), branch("e", "Mul", "x")]);
    let module = read(&m);
    assert_eq!(operators(&module), ["nn.relu", "add", "multiply"]);
    assert!(module.to_string().contains("if (%c) {"), "{module}");
    assert_comes_back(m);
}

#[test]
fn subgraphs_in_subgraphs() {
    let inner = vec![
        graph_attribute("then_branch", &branch("t", "Add", "h")),
        graph_attribute("else_branch", &branch("e", "Mul", "z")),
    ];
    let nodes = vec![node("Relu", &["x"], &["z"], vec![]), node("If", &["c"], &["out2"], inner)];
    let outer = graph("outer", nodes, vec![], vec![float("out2", &[2])]);
    assert_comes_back(with_if([outer, branch("e", "Mul", "x")]));
}

#[test]
fn lists_of_subgraphs_and_their_parameters() {
    let body = graph(
        "body",
        vec![node("Add", &["p", "x"], &["o"], vec![]), node("Relu", &["o"], &["o2"], vec![])],
        vec![ValueInfoProto { name: Some("p".into()), ..ValueInfoProto::default() }],
        vec![float("o", &[2]), float("o2", &[2])],
    );
    let graphs = attribute("bodies", AttributeType::Graphs, |a| {
        a.graphs = vec![Bytes::from(body.encode_to_vec()), Bytes::from(body.encode_to_vec())];
        a.doc_string = Some("two of them".into());
    });
    let g =
        graph("g", vec![node("Many", &["x"], &["y"], vec![graphs])], vec![float("x", &[2])], vec![float("y", &[2])]);
    // The file does not state the type of the parameter, but it states the types of the results.
    let back = again(&model(13, g.clone()));
    let bodies = &back.graph.as_ref().unwrap().node[0].attribute[0];
    assert_eq!((bodies.graphs.len(), bodies.doc_string()), (2, "two of them"));
    let inner = GraphProto::decode(bodies.graphs[1].clone()).unwrap();
    assert_eq!(inner.node[0].input, ["p", "x"]);
}

#[test]
fn what_can_be_observed_in_a_subgraph_shows_in_the_name() {
    let random = GraphProto {
        node: vec![node("RandomNormalLike", &["x"], &["out"], vec![])],
        initializer: vec![],
        ..branch("t", "Add", "h")
    };
    let body = node("Once", &["x"], &["y"], vec![graph_attribute("body", &random)]);
    let nodes = vec![node("Relu", &["x"], &["h"], vec![]), body];
    let module = read(&model(13, graph("g", nodes, vec![float("x", &[2])], vec![float("y", &[2])])));
    let names = operators(&module);
    assert_eq!(names.last().map(String::as_str), Some("onnx.Once!"));
    let op = module.cx.ops.find("onnx.Once!").unwrap();
    assert_eq!(module.cx.ops.get(op).purity, anfora_ir::OpPurity::Impure);
}

#[test]
fn the_text_says_it_all() {
    for m in [
        with_if([branch("t", "Add", "h"), branch("e", "Mul", "x")]),
        model(
            13,
            graph(
                "g",
                vec![node("A b.c!", &["x"], &["y", "", "z"], vec![])],
                vec![float("x", &[2])],
                vec![float("y", &[2])],
            ),
        ),
    ] {
        let module = read(&m);
        let text = module.to_string();
        let parsed = match parse_module(Source::new("model.anf", text.clone()), registry()) {
            Ok(parsed) => parsed,
            Err(e) => panic!("{}\n{text}", e[0]),
        };
        assert_eq!(parsed.to_string(), text);
        let options = ExportOptions::default();
        assert_eq!(export(&parsed, &options), export(&module, &options));
    }
}

#[test]
fn training_information_is_carried_along_while_it_is_true() {
    let mut algorithm =
        graph("step", vec![node("Add", &["w", "rate"], &["w2"], vec![])], vec![], vec![float("w2", &[2])]);
    algorithm.initializer = vec![initializer("rate", &floats(&[0.5, 0.5]))];
    let training = |state: &str| TrainingInfoProto {
        algorithm: Some(algorithm.clone()),
        update_binding: vec![entry(state, "w2")],
        ..TrainingInfoProto::default()
    };
    let mut g =
        graph("g", vec![node("Mul", &["x", "w"], &["y"], vec![])], vec![float("x", &[2])], vec![float("y", &[2])]);
    g.initializer = vec![initializer("w", &floats(&[1.0, 2.0]))];
    let mut m = model(13, g);
    m.training_info = vec![training("w")];
    assert_comes_back(m.clone());
    m.training_info = vec![training("gone")];
    let error = export(&read(&m), &ExportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("about `gone`, which is not there any more"), "{error}");
}
