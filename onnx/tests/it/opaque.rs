//! Operators without a kernel or a type rule, which are kept as they are.

use anfora_ir::{Context, OpPurity};

use crate::models::{again, float, graph, model, node};

#[test]
fn names_come_back() {
    for (domain, op) in [("", "Frob"), ("com.microsoft", "Frob"), ("a", "b.c"), ("", "x!"), ("d", "%2E")] {
        let mut kept = node(op, &["x"], &["y"], vec![]);
        kept.domain = (!domain.is_empty()).then(|| domain.to_string());
        let mut file = model(13, graph("g", vec![kept.clone()], vec![float("x", &[2])], vec![float("y", &[2])]));
        if !domain.is_empty() {
            let mut import = file.opset_import[0].clone();
            import.domain = Some(domain.to_string());
            file.opset_import.push(import);
        }
        let written = again(&file).graph.expect("a graph");
        let names = |node: &anfora_onnx::proto::NodeProto| {
            (node.domain.clone().unwrap_or_default(), node.op_type.clone().unwrap_or_default())
        };
        assert_eq!(written.node.iter().map(names).collect::<Vec<_>>(), [names(&kept)]);
    }
}

#[test]
fn randomness_and_unknown_operators_are_impure() {
    let mut cx = Context::new(anfora_onnx::registry());
    for (name, expected) in [
        ("onnx.Relu", OpPurity::Pure),
        ("onnx.ai.onnx.Relu", OpPurity::Pure),
        ("onnx.ai.onnx.ml.Scaler", OpPurity::Pure),
        ("onnx.RandomNormalLike", OpPurity::Impure),
        ("onnx.Bernoulli", OpPurity::Impure),
        ("onnx.Dropout", OpPurity::Impure),
        ("onnx.ai.onnx.preview.training.Adam", OpPurity::Pure),
        ("onnx.com.microsoft.Gelu", OpPurity::Pure),
        ("onnx.com.microsoft.BiasDropout", OpPurity::Impure),
        // Nothing is known about these, in whatever domain they are.
        ("onnx.Sharpen", OpPurity::Impure),
        ("onnx.ai.onnx.ml.Sharpen", OpPurity::Impure),
        ("onnx.com.microsoft.Sharpen", OpPurity::Impure),
        ("onnx.com.example.Relu", OpPurity::Impure),
        ("onnx.example.Relu", OpPurity::Impure),
        // A subgraph of this node is impure.
        ("onnx.If!", OpPurity::Impure),
    ] {
        let op = cx.ops.resolve(name).expect("the namespace is opaque");
        assert_eq!(cx.ops.get(op).purity, expected, "{name}");
    }
}
