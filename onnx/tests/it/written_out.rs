//! Operators that the version of the model does not have are written by their definition.

use anfora_interp::{Agreement, ArgumentGenerator, Interpreter};
use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::proto::ModelProto;
use anfora_onnx::{ExportOptions, ImportOptions, export, import};
use prost::Message;

const X: &str = "%x: Tensor[(2, 3, 4), float32]";

fn module(opset: i64, block: &str) -> Module {
    let params = format!("{X}, %s: Tensor[(4,), float32], %b: Tensor[(4,), float32]");
    let text = format!("#![onnx_ir_version=10, onnx_opsets=[[\"\", {opset}]]]\ndef @main({params}) {{ {block} }}");
    parse_module(Source::new("test", text), anfora_onnx::registry()).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the operators of the nodes that are written for a block, and checks that the model
/// computes the same when it is read again.
fn written(opset: i64, block: &str) -> String {
    let module = module(opset, block);
    let written = export(&module, &ExportOptions::default()).unwrap_or_else(|e| panic!("{opset}, {block}: {e}"));
    let model = ModelProto::decode(written.bytes.as_slice()).unwrap();
    let nodes: Vec<&str> = model.graph.as_ref().unwrap().node.iter().map(|node| node.op_type()).collect();
    let read = import(written.bytes.into(), &ImportOptions::default()).unwrap_or_else(|e| panic!("{opset}: {e}"));
    for seed in 0..3 {
        let result = |module: &Module| {
            let (key, function) = module.functions().next().unwrap();
            let given = ArgumentGenerator::new(seed).arguments(&module.cx, function).unwrap();
            Interpreter::new(module).call(module.name(key), given.values, &given.list).unwrap()
        };
        // The definition overflows where the operator does not.
        let difference = Agreement::Within(1e-4).first_difference(&result(&module), &result(&read.module));
        assert!(difference.is_none(), "{opset}, {block}: {difference:?}");
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
    assert_eq!(written(13, "nn.hard_swish(%x)"), "HardSigmoid Mul");
    assert_eq!(written(18, "nn.mish(%x)"), "Mish");
    assert_eq!(written(17, "nn.mish(%x)"), "Softplus Tanh Mul");
}

/// Statistics of a normalization have no definition in nodes here.
#[test]
fn what_has_no_definition_is_refused() {
    let module = module(16, "let %t = nn.layer_norm(%x, %s, %b, statistics=true); %t.1");
    let error = export(&module, &ExportOptions::default()).unwrap_err().to_string();
    assert!(error.contains("`nn.layer_norm` needs version 17 of the operators"), "{error}");
}
