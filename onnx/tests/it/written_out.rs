//! Operators that the version of the model does not have are written by their definition.

use anfora_interp::{Agreement, ArgumentGenerator, Interpreter};
use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::proto::ModelProto;
use anfora_onnx::{ExportOptions, ImportOptions, export, import};
use prost::Message;

const X: &str = "%x: Tensor[(2, 3, 4), float32]";

/// Queries and keys, a mask, and parameters by channel.
const HEADS: &str = "%q: Tensor[(2, 2, 3, 4), float32], %k: Tensor[(2, 2, 5, 4), float32], \
                     %m: Tensor[(3, 5), float32], %c: Tensor[(3,), float32]";

fn module(opset: i64, block: &str) -> Module {
    let params = format!("{X}, %s: Tensor[(4,), float32], %b: Tensor[(4,), float32], {HEADS}");
    let text = format!("#![onnx_ir_version=10, onnx_opsets=[[\"\", {opset}]]]\ndef @main({params}) {{ {block} }}");
    parse_module(Source::new("test", text), anfora_onnx::registry()).unwrap_or_else(|e| panic!("{e}"))
}

fn written(opset: i64, block: &str) -> String {
    written_nodes(&module(opset, block), &format!("{opset}, {block}"))
}

/// Returns the operators of the nodes that are written for a module of one function, and checks
/// that the model computes the same when it is read again.
pub(crate) fn written_nodes(module: &Module, what: &str) -> String {
    let written = export(module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let model = ModelProto::decode(written.bytes.as_slice()).unwrap();
    let nodes: Vec<&str> = model.graph.as_ref().unwrap().node.iter().map(|node| node.op_type()).collect();
    let read = import(written.bytes.into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert!(read.kept.is_empty(), "{what}: {:?}", read.kept);
    for seed in 0..3 {
        let result = |module: &Module| {
            let (key, function) = module.functions().next().unwrap();
            let given = ArgumentGenerator::new(seed).arguments(&module.cx, function).unwrap();
            Interpreter::new(module).call(module.name(key), given.values, &given.list).unwrap()
        };
        // A definition overflows where the operator does not.
        let difference = Agreement::Within(1e-4).first_difference(&result(module), &result(&read.module));
        assert!(difference.is_none(), "{what}: {difference:?}");
    }
    nodes.join(" ")
}

#[test]
fn before_and_since_the_version_that_has_the_operator() {
    let layer = "nn.layer_norm(%x, %s, %b, epsilon=0.5)";
    assert_eq!(written(17, layer), "LayerNormalization");
    assert_eq!(written(16, layer), "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add");
    assert_eq!(written(7, "nn.layer_norm(%x, %s)"), "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul");
    let rms = "nn.rms_norm(%x, %s, epsilon=0.5)";
    assert_eq!(written(23, rms), "RMSNormalization");
    assert_eq!(written(22, rms), "Mul ReduceMean Add Sqrt Div Mul");
    assert_eq!(written(13, rms), "Mul ReduceMean Add Sqrt Div Mul");
    assert_eq!(written(20, "nn.gelu(%x)"), "Gelu");
    assert_eq!(written(19, "nn.gelu(%x)"), "Div Erf Add Mul Mul");
    assert_eq!(written(19, "nn.gelu(%x, approximate=\"tanh\")"), "Pow Mul Add Mul Tanh Add Mul Mul");
    assert_eq!(written(24, "nn.silu(%x, alpha=1.5)"), "Swish");
    assert_eq!(written(23, "nn.silu(%x, alpha=1.5)"), "Mul Sigmoid Mul");
    assert_eq!(written(6, "nn.silu(%x)"), "Sigmoid Mul");
    assert_eq!(written(14, "nn.hard_swish(%x)"), "HardSwish");
    let mean = "nn.avg_pool1d(%x, pool_size=[2], padding=[1, 0], count_include_pad=true)";
    assert_eq!(written(7, mean), "AveragePool");
    assert_eq!(written(6, mean), "Pad AveragePool");
    assert_eq!(written(13, "nn.hard_swish(%x)"), "HardSigmoid Mul");
    assert_eq!(written(18, "nn.mish(%x)"), "Mish");
    assert_eq!(written(17, "nn.mish(%x)"), "Softplus Tanh Mul");
}

#[test]
fn groups_of_channels() {
    let constants = "dense<Tensor[(3,), float32]>[1, 2, 3], dense<Tensor[(3,), float32]>[4, 5, 6]";
    let group = format!("nn.group_norm(%x, {constants}, num_groups=1, epsilon=0.5)");
    assert_eq!(written(21, &group), "GroupNormalization");
    for opset in [7, 17, 18, 20] {
        assert_eq!(written(opset, &group), "Reshape InstanceNormalization Reshape Mul Add");
    }
    let computed = "nn.group_norm(%x, %c, %c, num_groups=1)";
    assert_eq!(written(20, computed), "Reshape InstanceNormalization Reshape Reshape Reshape Mul Add");
    // One element for each group is also one for each channel.
    assert_eq!(written(18, "nn.group_norm(%x, %c, %c, num_groups=3)"), "GroupNormalization");
}

#[test]
fn attention_of_heads() {
    let plain = "nn.attention(%q, %k, %k)";
    assert_eq!(written(23, plain), "Attention");
    for opset in [7, 12, 13, 22] {
        assert_eq!(written(opset, plain), "Transpose MatMul Mul Softmax MatMul");
    }
    let masked = "nn.attention(%q, %k, %k, %m, scale=1.0)";
    assert_eq!(written(22, masked), "Transpose MatMul Add Softmax MatMul");
    assert_eq!(written(22, "nn.attention(%q, %k, %k, scale=0.25)"), "Transpose MatMul Mul Softmax MatMul");
}

/// Statistics of a normalization, parameters by group and a causal attention have no definition in
/// nodes here.
#[test]
fn what_has_no_definition_is_refused() {
    let refused = |opset, block: &str, words: &str| {
        let error = export(&module(opset, block), &ExportOptions::default()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    let layer = "let %t = nn.layer_norm(%x, %s, %b, statistics=true); %t.1";
    refused(16, layer, "`nn.layer_norm` needs version 17 of the operators");
    let by_group = "dense<Tensor[(1,), float32]>[1]";
    let group = format!("nn.group_norm(%x, {by_group}, {by_group}, num_groups=1)");
    refused(17, &group, "`nn.group_norm` needs version 21 of the operators");
    for attention in
        ["nn.attention(%q, %k, %k, is_causal=true)", "nn.attention(%x, %x, %x, q_num_heads=2, kv_num_heads=2)"]
    {
        refused(22, attention, "`nn.attention` needs version 23 of the operators");
    }
}
