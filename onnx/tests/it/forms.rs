//! Calls that the format has in another form than ours: of operands, of attributes, of elements.

use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::proto::{GraphProto, ModelProto, NodeProto};
use anfora_onnx::{ExportOptions, ExportProblem, export, registry};
use bytes::Bytes;
use prost::Message;

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

/// A function of these parameters, exported to a version.
fn try_written(parameters: &str, call: &str, opset: Option<i64>) -> Result<ModelProto, ExportProblem> {
    let module = parse(&format!("def @main({parameters}) {{ {call} }}"));
    let exported = export(&module, &ExportOptions { opset, ..ExportOptions::default() }).map_err(|e| e.problem)?;
    Ok(ModelProto::decode(Bytes::from(exported.bytes)).expect("a model"))
}

#[track_caller]
fn written(parameters: &str, call: &str, opset: Option<i64>) -> GraphProto {
    try_written(parameters, call, opset).unwrap_or_else(|e| panic!("{call}: {e}")).graph.expect("a graph")
}

/// The operators of the nodes.
#[track_caller]
fn nodes(parameters: &str, call: &str, opset: Option<i64>) -> String {
    let graph = written(parameters, call, opset);
    graph.node.iter().map(NodeProto::op_type).collect::<Vec<_>>().join(" ")
}

/// The version that an export to an older one asks for.
#[track_caller]
fn needed(parameters: &str, call: &str, opset: i64) -> i64 {
    match try_written(parameters, call, Some(opset)) {
        Err(ExportProblem::Opset { needed, .. }) => needed,
        other => panic!("{call}: {other:?}"),
    }
}

#[test]
fn element_types_are_looked_at_where_the_module_says_the_version() {
    for (call, dtype, said) in [
        ("nn.max_pool1d(%x, pool_size=[2])", "int32", "no version of ONNX's `MaxPool` has elements of int32"),
        ("sum(%x)", "int8", "no version of ONNX's `ReduceSum` has elements of int8"),
        ("nn.avg_pool1d(%x, pool_size=[2])", "bfloat16", "needs version 22"),
        ("nn.pad(%x, dense<Tensor[(6,), int64]>[0, 0, 1, 0, 0, 1])", "bool", "needs version 13"),
    ] {
        let text = format!(
            "#![onnx_ir_version=8, onnx_opsets=[[\"\", 11]]] def @main(%x: Tensor[(1, 1, 4), {dtype}]) {{ {call} }}"
        );
        let refused = export(&parse(&text), &ExportOptions::default()).expect_err(call).to_string();
        assert!(refused.contains(said), "{call}: {refused}");
    }
}

#[test]
fn floats_among_float64_are_what_the_format_holds() {
    let x =
        |dtype: &str| format!("%x: Tensor[(1, 2, 4), {dtype}], %s: Tensor[(4,), {dtype}], %c: Tensor[(2,), {dtype}]");
    for (call, held) in [
        ("nn.leaky_relu(%x, alpha=0.1)", "nn.leaky_relu(%x, alpha=0.10000000149011612)"),
        ("nn.leaky_relu(%x)", "nn.leaky_relu(%x, alpha=0.009999999776482582)"),
        ("nn.elu(%x, alpha=0.1)", "nn.elu(%x, alpha=0.5)"),
        ("nn.layer_norm(%x, %s)", "nn.layer_norm(%x, %s, epsilon=9.999999747378752e-6)"),
        ("nn.batch_norm(%x, %c, %c, %c, %c)", "nn.batch_norm(%x, %c, %c, %c, %c, epsilon=9.999999747378752e-6)"),
        ("nn.instance_norm(%x, %c, %c, epsilon=0.1)", "nn.instance_norm(%x, %c, %c, epsilon=0.25)"),
        ("nn.lrn(%x, size=1, alpha=0.1)", "nn.lrn(%x, size=1, alpha=0.5)"),
        ("nn.gemm(%c2, %c2, alpha=0.1)", "nn.gemm(%c2, %c2, alpha=0.5)"),
    ] {
        let of = |dtype: &str| format!("{}, %c2: Tensor[(2, 2), {dtype}]", x(dtype));
        let refused = try_written(&of("float64"), call, None).expect_err(call);
        assert!(matches!(refused, ExportProblem::Rounded { .. }), "{call}: {refused}");
        assert_eq!(nodes(&of("float64"), held, None), nodes(&of("float32"), call, None));
    }
    let refused = try_written(&x("float64"), "nn.leaky_relu(%x, alpha=0.1)", None).expect_err("it is no float32");
    assert!(refused.to_string().contains("such as 0.10000000149011612"), "{refused}");
}

#[test]
fn a_scale_by_group_is_repeated_for_the_channels() {
    let of = |extent: i64, channels: &str| {
        format!("%x: Tensor[(1, {channels}, 2), float32], %s: Tensor[({extent},), float32], %b: Tensor[(4,), float32]")
    };
    let call = |bias: &str| format!("nn.group_norm(%x, %s, {bias}, num_groups=2)");
    assert_eq!(needed(&of(2, "4"), &call("%s"), 20), 21);
    assert_eq!(nodes(&of(4, "4"), &call("%b"), None), "GroupNormalization");
    let repeat = "Reshape Expand Reshape";
    assert_eq!(nodes(&of(2, "4"), &call("%b"), None), format!("{repeat} GroupNormalization"));
    assert_eq!(nodes(&of(2, "4"), &call("%s"), Some(21)), format!("{repeat} {repeat} GroupNormalization"));
    let unknown = try_written(&of(2, "n"), &call("%s"), None).expect_err("how often is not known");
    assert!(unknown.to_string().contains("number of channels"), "{unknown}");
}
