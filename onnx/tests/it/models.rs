//! Short constructors of models.

use anfora_ir::{Cursor, Expr, Literal, Module, Step, verify_module};
use anfora_onnx::proto::tensor_shape_proto::{Dimension, Extent};
use anfora_onnx::proto::type_proto::{Tensor, Value};
use anfora_onnx::proto::{
    AttributeProto, AttributeType, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TypeProto, ValueInfoProto,
};
use anfora_onnx::tensor::tensor_of;
use anfora_onnx::{ExportOptions, ImportError, ImportOptions, export, import};
use bytes::Bytes;
use prost::Message;

pub(crate) const FLOAT: i32 = 1;
pub(crate) const INT64: i32 = 7;
pub(crate) const BOOL: i32 = 9;

pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[&str], attribute: Vec<AttributeProto>) -> NodeProto {
    NodeProto {
        input: inputs.iter().map(|s| s.to_string()).collect(),
        output: outputs.iter().map(|s| s.to_string()).collect(),
        op_type: Some(op.to_string()),
        attribute,
        ..NodeProto::default()
    }
}

pub(crate) fn graph_attribute(name: &str, graph: &GraphProto) -> AttributeProto {
    let g = Some(Bytes::from(graph.encode_to_vec()));
    let mut a = AttributeProto { name: Some(name.to_string()), g, ..AttributeProto::default() };
    a.set_type(AttributeType::Graph);
    a
}

pub(crate) fn tensor_type(elem_type: i32, dims: &[i64]) -> TypeProto {
    let dim = dims.iter().map(|&d| Dimension { value: Some(Extent::DimValue(d)), denotation: None }).collect();
    named_type(elem_type, dim)
}

/// Returns a type with the given symbolic dimensions.
pub(crate) fn symbolic_type(elem_type: i32, dims: &[&str]) -> TypeProto {
    let extent = |d: &&str| d.parse().map(Extent::DimValue).unwrap_or(Extent::DimParam(d.to_string()));
    let dim = dims.iter().map(|d| Dimension { value: Some(extent(d)), denotation: None }).collect();
    named_type(elem_type, dim)
}

fn named_type(elem_type: i32, dim: Vec<Dimension>) -> TypeProto {
    let tensor = Tensor { elem_type: Some(elem_type), shape: Some(TensorShapeProto { dim }) };
    TypeProto { value: Some(Value::TensorType(tensor)), denotation: None }
}

pub(crate) fn typed(name: &str, ty: TypeProto) -> ValueInfoProto {
    ValueInfoProto { name: Some(name.to_string()), r#type: Some(ty), ..ValueInfoProto::default() }
}

pub(crate) fn info(name: &str, elem_type: i32, dims: &[i64]) -> ValueInfoProto {
    typed(name, tensor_type(elem_type, dims))
}

pub(crate) fn float(name: &str, dims: &[i64]) -> ValueInfoProto {
    info(name, FLOAT, dims)
}

pub(crate) fn initializer(name: &str, literal: &Literal) -> TensorProto {
    let mut tensor = tensor_of(literal, 1 << 20).expect("the constants of tests are small");
    tensor.name = Some(name.to_string());
    tensor
}

pub(crate) fn ints(values: &[i64]) -> Literal {
    Literal::from_elements(&[values.len()], values).expect("one element an extent")
}

pub(crate) fn floats(values: &[f32]) -> Literal {
    Literal::from_elements(&[values.len()], values).expect("one element an extent")
}

pub(crate) fn graph(
    name: &str,
    node: Vec<NodeProto>,
    input: Vec<ValueInfoProto>,
    output: Vec<ValueInfoProto>,
) -> GraphProto {
    GraphProto { node, name: Some(name.to_string()), input, output, ..GraphProto::default() }
}

pub(crate) fn model(opset: i64, graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(opset) }],
        graph: Some(graph),
        ..ModelProto::default()
    }
}

/// Returns a model of a single node with float inputs `x0`, `x1`, … of the given extents and the
/// output `y`.
pub(crate) fn one_node(opset: i64, op: &str, inputs: &[&[i64]], attribute: Vec<AttributeProto>) -> ModelProto {
    let names: Vec<String> = (0..inputs.len()).map(|i| format!("x{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let infos = names.iter().zip(inputs).map(|(n, dims)| float(n, dims)).collect();
    let output = vec![ValueInfoProto { name: Some("y".into()), ..ValueInfoProto::default() }];
    model(opset, graph("g", vec![node(op, &names, &["y"], attribute)], infos, output))
}

pub(crate) fn try_read(model: &ModelProto) -> Result<Module, ImportError> {
    let imported = import(Bytes::from(model.encode_to_vec()), &ImportOptions::default())?;
    Ok(imported.module)
}

/// Imports a model and checks that the module is well-formed.
pub(crate) fn read(model: &ModelProto) -> Module {
    let module = try_read(model).unwrap_or_else(|e| panic!("{e}"));
    if let Err(diagnostics) = verify_module(&module) {
        panic!("{}\n{module}", diagnostics[0]);
    }
    module
}

/// Exports a module. Checks that the file settles: what is read from it is written to a file that
/// is read and written unchanged.
pub(crate) fn write(module: &Module) -> ModelProto {
    let write = |module: &Module| export(module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{e}\n{module}"));
    let again = |bytes: &[u8]| match import(Bytes::copy_from_slice(bytes), &ImportOptions::default()) {
        Ok(imported) => write(&imported.module),
        Err(e) => panic!("what is written can be read: {e}\n{module}"),
    };
    let exported = write(module);
    let once = again(&exported.bytes);
    assert!(again(&once.bytes) == once, "the file does not settle:\n{module}");
    ModelProto::decode(Bytes::from(exported.bytes)).expect("what is written can be read")
}

pub(crate) fn again(model: &ModelProto) -> ModelProto {
    write(&read(model))
}

/// Returns the operators that a module's functions call, in order.
pub(crate) fn operators(module: &Module) -> Vec<String> {
    let mut names = Vec::new();
    for (_, function) in module.functions() {
        let mut cursor = Cursor::new(&function.body);
        while let Some(step) = cursor.next(&function.body) {
            if let Step::Flat(e) | Step::Enter(e) = step
                && let Expr::CallOp { op, .. } = function.body.expr(e)
            {
                names.push(module.cx.ops.get(op).name.to_string());
            }
        }
    }
    names
}

/// Returns the literals in `@main`.
pub(crate) fn literals(module: &Module) -> Vec<Literal> {
    let (_, main) = module.functions().next().expect("there is @main");
    let body = &main.body;
    body.exprs().filter_map(|(e, _)| body.as_literal(e)).map(|l| module.cx.literals.get(l).clone()).collect()
}

/// Returns the operators of a graph's nodes, in order.
pub(crate) fn node_types(model: &ModelProto) -> Vec<&str> {
    model.graph.as_ref().expect("a model has a graph").node.iter().map(|n| n.op_type()).collect()
}

/// Sorts the lists whose order has no meaning, including those of subgraphs.
pub(crate) fn normalized(mut model: ModelProto) -> ModelProto {
    model.graph = model.graph.map(normalized_graph);
    model
}

fn normalized_graph(mut graph: GraphProto) -> GraphProto {
    graph.initializer.sort_by(|a, b| a.name().cmp(b.name()));
    graph.value_info.sort_by(|a, b| a.name().cmp(b.name()));
    graph.node.sort_by_key(|n| n.op_type() != "Constant");
    for node in &mut graph.node {
        node.attribute.sort_by(|a, b| a.name().cmp(b.name()));
        for attribute in &mut node.attribute {
            for g in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                let inner = GraphProto::decode(g.clone()).expect("a subgraph");
                *g = Bytes::from(normalized_graph(inner).encode_to_vec());
            }
        }
    }
    graph
}
