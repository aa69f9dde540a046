//! Calls whose form in ONNX differs from ours, in operands, attributes or elements.

use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::proto::{AttributeProto, GraphProto, ModelProto, NodeProto};
use anfora_onnx::{ExportOptions, ExportProblem, export, registry};
use bytes::Bytes;
use prost::Message;

use crate::models::{FLOAT, INT64, graph, info, model, node, operators, read, symbolic_type, typed};

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

/// Exports a function with these parameters to a version.
fn try_written(parameters: &str, call: &str, opset: Option<i64>) -> Result<ModelProto, ExportProblem> {
    let module = parse(&format!("def @main({parameters}) {{ {call} }}"));
    let exported = export(&module, &ExportOptions { opset, ..ExportOptions::default() }).map_err(|e| e.problem)?;
    Ok(ModelProto::decode(Bytes::from(exported.bytes)).expect("a model"))
}

#[track_caller]
fn written(parameters: &str, call: &str, opset: Option<i64>) -> GraphProto {
    try_written(parameters, call, opset).unwrap_or_else(|e| panic!("{call}: {e}")).graph.expect("a graph")
}

/// Returns the operators of the nodes.
#[track_caller]
fn nodes(parameters: &str, call: &str, opset: Option<i64>) -> String {
    let graph = written(parameters, call, opset);
    graph.node.iter().map(NodeProto::op_type).collect::<Vec<_>>().join(" ")
}

/// Returns the version that an export to an older version requires.
#[track_caller]
fn needed(parameters: &str, call: &str, opset: i64) -> i64 {
    match try_written(parameters, call, Some(opset)) {
        Err(ExportProblem::Opset { needed, .. }) => needed,
        other => panic!("{call}: {other:?}"),
    }
}

fn attribute<'a>(node: &'a NodeProto, name: &str) -> Option<&'a AttributeProto> {
    node.attribute.iter().find(|a| a.name() == name)
}

#[test]
fn the_order_of_axes_counts_from_the_first() {
    let g = written("%x: Tensor[(4, 3, 2), float32]", "permute_dims(%x, axes=[-1, 0, 1])", None);
    assert_eq!(attribute(&g.node[0], "perm").expect("an order").ints, [2, 0, 1]);
}

#[test]
fn parts_that_differ_before_the_last_are_listed() {
    let sizes = |extent: i64, parts: i64| {
        let parameters = format!("%x: Tensor[({extent},), float32]");
        let g = written(&parameters, &format!("split(%x, sections={parts})"), Some(18));
        let list = g.initializer.first().map(|t| t.raw_data().chunks(8).map(|b| b[0]).collect::<Vec<u8>>());
        assert_eq!(attribute(&g.node[0], "num_outputs").is_some(), list.is_none(), "{g:#?}");
        list
    };
    assert_eq!(sizes(5, 4), Some(vec![2, 2, 1, 0]));
    assert_eq!(sizes(2, 4), Some(vec![1, 1, 0, 0]));
    assert_eq!(sizes(7, 4), None);
    assert_eq!(sizes(0, 3), None);
    assert_eq!(sizes(5, 1), None);
}

#[test]
fn no_axes_are_no_node_of_theirs() {
    let x = "%x: Tensor[(1, 3, 2), float32]";
    for opset in [11, 18] {
        assert_eq!(nodes(x, "squeeze(%x, axis=[])", Some(opset)), "Identity");
        assert_eq!(nodes(x, "expand_dims(%x, axis=[])", Some(opset)), "Identity");
        assert_eq!(nodes(x, "squeeze(%x, dense<Tensor[(0,), int64]>[])", Some(opset)), "Identity");
        assert_eq!(nodes(x, "squeeze(%x)", Some(opset)), "Squeeze");
        assert_eq!(nodes(x, "squeeze(%x, axis=[0])", Some(opset)), "Squeeze");
    }
    let with = |axes: &str| format!("{x}, %a: Tensor[{axes}, int64]");
    assert_eq!(nodes(&with("(1,)"), "squeeze(%x, %a)", None), "Squeeze");
    let maybe_none = try_written(&with("(n,)"), "squeeze(%x, %a)", None).expect_err("there may be no axes");
    assert!(maybe_none.to_string().contains("axes that may be empty"), "{maybe_none}");
}

#[test]
fn a_list_of_axes_that_may_be_empty_is_kept() {
    let squeeze = |axes: &str| {
        let inputs = vec![info("x", FLOAT, &[1, 3, 1]), typed("a", symbolic_type(INT64, &[axes]))];
        let outputs = vec![typed("y", symbolic_type(FLOAT, &["p", "q"]))];
        operators(&read(&model(13, graph("g", vec![node("Squeeze", &["x", "a"], &["y"], vec![])], inputs, outputs))))
    };
    assert_eq!(squeeze("1"), ["squeeze"]);
    assert_eq!(squeeze("0"), ["onnx.Squeeze"]);
    assert_eq!(squeeze("n"), ["onnx.Squeeze"]);
}

/// Before version 22, windows that begin in the padding at the end count, and windows that are cut
/// off are divided by the number of all taps.
#[test]
fn windows_that_begin_in_the_padding_raise_the_version() {
    let x = "%x: Tensor[(1, 1, 5), float32]";
    for op in ["nn.max_pool1d", "nn.avg_pool1d", "nn.lp_pool1d", "nn.max_pool_with_indices1d"] {
        let call = |more: &str| format!("{op}(%x, pool_size=[2], ceil_mode=true, strides=[2]{more})");
        assert_eq!(needed(x, &call(", padding=[1, 1]"), 18), 22);
        assert_eq!(needed("%x: Tensor[(1, 1, n), float32]", &call(""), 18), 22);
        assert_eq!(try_written(x, &call(", padding=[1, 1]"), None).unwrap().opset_import[0].version(), 22);
        assert_eq!(try_written(x, &call(""), None).unwrap().opset_import[0].version(), 18);
    }
    let counted = "nn.avg_pool1d(%x, pool_size=[3], ceil_mode=true, strides=[2], count_include_pad=true)";
    assert_eq!(needed(x, counted, 18), 22);
}

#[test]
fn indices_and_sizes_are_of_types_that_the_format_takes() {
    let of = |dtype: &str, shape: &str| format!("%x: Tensor[(4,), float32], %i: Tensor[{shape}, {dtype}]");
    let update = |shape: &str| format!("dense<Tensor[{shape}, float32]>[1]");
    for (dtype, scatter_nd, other) in
        [("int8", "Cast ", "Cast "), ("int32", "Cast ", ""), ("int64", "", ""), ("uint64", "Cast ", "Cast ")]
    {
        let nd = format!("scatter_nd(%x, %i, {})", update("(1,)"));
        assert_eq!(nodes(&of(dtype, "(1, 1)"), &nd, None), format!("{scatter_nd}ScatterND"), "{dtype}");
        let elements = format!("scatter_elements(%x, %i, {})", update("(1,)"));
        assert_eq!(nodes(&of(dtype, "(1,)"), &elements, None), format!("{other}ScatterElements"), "{dtype}");
        assert_eq!(nodes(&of(dtype, "(2,)"), "nn.pad(%x, %i)", None), format!("{scatter_nd}Pad"), "{dtype}");
        let some = "nn.pad(%x, dense<Tensor[(2,), int64]>[1, 1], none, %i)";
        assert_eq!(nodes(&of(dtype, "(1,)"), some, None), format!("{other}Pad"), "{dtype}");
        let known = format!("nn.pad(%x, dense<Tensor[(2,), int64]>[1, 1], none, dense<Tensor[(1,), {dtype}]>[0])");
        assert_eq!(nodes(&of(dtype, "(1,)"), &known, None), format!("{scatter_nd}Pad"), "{dtype}");
        let crop = "center_crop_pad(%x, %i)";
        assert_eq!(nodes(&of(dtype, "(1,)"), crop, None), format!("{other}CenterCropPad"), "{dtype}");
    }
    let rows = "one_hot(%i, 3i64, dense<Tensor[(2,), float32]>[0, 1])";
    assert_eq!(nodes(&of("bfloat16", "(2,)"), rows, None), "Cast OneHot");
    assert_eq!(nodes(&of("float32", "(2,)"), rows, None), "OneHot");
}

#[test]
fn a_mask_of_dropout_is_boolean_since_version_10() {
    let x = "%x: Tensor[(4,), float32]";
    assert_eq!(needed(x, "nn.dropout(%x)", 9), 10);
    assert_eq!(nodes(x, "nn.dropout(%x)", Some(10)), "Dropout");
    assert_eq!(nodes(x, "let %t = nn.dropout(%x); %t.0", Some(9)), "Dropout");
}

/// The module states the version, so it cannot be raised.
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

/// Attributes of the format are float32.
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
        // A default is that of the format, which is a float32.
        let is_default = !call.contains('=');
        match try_written(&of("float64"), call, None) {
            Ok(_) => assert!(is_default, "{call}"),
            Err(refused) => {
                assert!(!is_default && matches!(refused, ExportProblem::Rounded { .. }), "{call}: {refused}");
            }
        }
        assert_eq!(nodes(&of("float64"), held, None), nodes(&of("float32"), call, None));
    }
    let refused = try_written(&x("float64"), "nn.leaky_relu(%x, alpha=0.1)", None).expect_err("it is no float32");
    assert!(refused.to_string().contains("such as 0.10000000149011612"), "{refused}");
}

/// Before version 21 the scale of a group norm was by group. No reader needs to support that form
/// any more.
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
