//! Conversions only write operators, attributes and operands that the version of the model has.

use std::collections::{HashMap, HashSet};

use anfora_ir::{Source, parse_module};
use anfora_onnx::convert::Conversions;
use anfora_onnx::proto::{GraphProto, ModelProto, NodeProto};
use anfora_onnx::{ExportOptions, ExportProblem, export};
use bytes::Bytes;
use prost::Message;

/// The form of an operator in a version. Versions that changed nothing here are left out.
struct Schema {
    since: i64,
    inputs: (usize, usize),
    outputs: (usize, usize),
    attributes: HashSet<&'static str>,
    is_deprecated: bool,
}

/// Returns the standard operators, from the schemas of the PyPI package `onnx` 1.23
/// (`onnx.defs.get_all_schemas_with_history`). Each line of the file holds a name, a version, the
/// least and the most inputs, the least and the most outputs, and attributes.
fn schemas() -> HashMap<&'static str, Vec<Schema>> {
    let mut schemas: HashMap<&str, Vec<Schema>> = HashMap::new();
    for line in include_str!("versions.txt").lines() {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a word");
        let (name, since, inputs, outputs) = (word(), word(), word(), word());
        let range = |text: &str| {
            let (least, most) = text.split_once('-').expect("two numbers");
            let most = if most == "*" { usize::MAX } else { most.parse().expect("a number") };
            (least.parse().expect("a number"), most)
        };
        let mut attributes: HashSet<&str> = words.collect();
        let versions = schemas.entry(name).or_default();
        // The first version of GroupNormalization is marked as deprecated since the second exists,
        // but models use it.
        let is_deprecated = attributes.remove("DEPRECATED") && !versions.is_empty();
        versions.push(Schema {
            since: since.parse().expect("a version"),
            inputs: range(inputs),
            outputs: range(outputs),
            attributes,
            is_deprecated,
        });
    }
    schemas
}

fn at<'a>(schemas: &'a HashMap<&str, Vec<Schema>>, op: &str, opset: i64) -> Option<&'a Schema> {
    schemas.get(op)?.iter().rev().find(|s| s.since <= opset).filter(|s| !s.is_deprecated)
}

#[test]
fn rows_hold_for_versions_that_have_the_operator() {
    let schemas = schemas();
    for row in Conversions::default().rows().iter().filter(|r| r.domain.is_empty()) {
        let opsets = row.opsets.clone();
        assert!(at(&schemas, &row.onnx, *opsets.start()).is_some(), "{} in {opsets:?}", row.onnx);
        assert!(at(&schemas, &row.onnx, *opsets.end()).is_some(), "{} in {opsets:?}", row.onnx);
        for name in row.attributes.iter().map(|&(name, _)| name).chain(row.carried.iter().copied()) {
            let mut versions = opsets.clone().filter_map(|v| at(&schemas, &row.onnx, v));
            assert!(versions.any(|s| s.attributes.contains(name)), "`{name}` of {} in {opsets:?}", row.onnx);
        }
    }
}

/// The parameters of the calls below.
const PARAMETERS: &str = "%x: Tensor[(2, 3), float32], %h: Tensor[(2, 3), float16], %i: Tensor[(2, 3), int64], \
    %j: Tensor[(2, 3), int32], %u: Tensor[(2, 3), uint8], %b: Tensor[(2, 3), bool], %k: Tensor[(3,), float32], \
    %c: Tensor[(2,), float32], %n: Tensor[(1,), int64], %f: Tensor[(), float32], %t: Tensor[(2,), int64], \
    %s1: Tensor[(1, 2, 5), float32], %s2: Tensor[(1, 2, 5, 5), float32], %s3: Tensor[(1, 2, 5, 5, 5), float32], \
    %w1: Tensor[(2, 2, 3), float32], %w2: Tensor[(2, 2, 3, 3), float32], %w3: Tensor[(2, 2, 3, 3, 3), float32], \
    %d4: Tensor[(1, 4, 2, 2), float32], %q: Tensor[(3,), bool], %y: Tensor[(n, 3), float32], %a: Tensor[(2,), int64], \
    %p1: Tensor[(1, 2, 5), int64], %p2: Tensor[(1, 2, 5, 5), int64], %p3: Tensor[(1, 2, 5, 5, 5), int64], \
    %v: Tensor[(3, 2), uint8], %i1: Tensor[(1, 2, 5), uint8], %i2: Tensor[(1, 2, 5, 5), uint8], \
    %i3: Tensor[(1, 2, 5, 5, 5), uint8], %v1: Tensor[(2, 2, 3), uint8], %v2: Tensor[(2, 2, 3, 3), uint8], \
    %v3: Tensor[(2, 2, 3, 3, 3), uint8], %e1: Tensor[(1, 2, 1), float32], %r: Tensor[(3, 2, 4), float32], \
    %l1: Tensor[(1, 8, 4), float32], %l2: Tensor[(1, 8, 2), float32], %g1: Tensor[(1, 6, 4), float32], \
    %g2: Tensor[(1, 6, 2), float32], %m1: Tensor[(1, 2, 4), float32], %m2: Tensor[(1, 2, 2), float32], \
    %m3: Tensor[(2, 1, 3), float32], %z: Tensor[(1, 3, 3, 2), float32], %o: Tensor[(1, 5, 4), float32], \
    %e2: Tensor[(1, 2, 5), float32]";

/// At least one call of each operator that can be written.
const CALLS: &[&str] = &[
    // Operators of two operands.
    "add(%x, %k)",
    "subtract(%x, %k)",
    "subtract(%k, %x)",
    "multiply(%x, %x)",
    "divide(%x, %f)",
    "power(%x, %x)",
    "power(%x, %j)",
    "power(%i, %i)",
    "mod(%x, %x)",
    "mod(%i, %i)",
    "floor_mod(%i, %i)",
    "floor_mod(%x, %x)",
    "maximum(%x, %k)",
    "minimum(%x, %k)",
    "add_n(%x, %k, %f)",
    "mean_n(%x, %k)",
    "maximum_n(%x, %k, %x)",
    "minimum_n(%x, %k, %x)",
    "less(%x, %x)",
    "less_equal(%x, %x)",
    "greater(%x, %x)",
    "greater_equal(%x, %x)",
    "equal(%x, %x)",
    "not_equal(%i, %i)",
    "logical_and(%b, %b)",
    "logical_or(%b, %q)",
    "logical_xor(%b, %b)",
    "bitwise_and(%i, %i)",
    "bitwise_or(%i, %i)",
    "bitwise_xor(%i, %i)",
    "left_shift(%u, %u)",
    "right_shift(%u, %u)",
    "right_shift(%i, %i)",
    "where(%b, %x, %x)",
    "clip(%x, 0f, 1f)",
    "clip(%x, none, 1f)",
    "clip(%x, %f)",
    "clip(%i, 0i64)",
    // Operators of one operand.
    "negative(%x)",
    "abs(%x)",
    "sign(%x)",
    "square(%x)",
    "floor(%x)",
    "floor(%i)",
    "ceil(%x)",
    "round(%x)",
    "exp(%x)",
    "log(%x)",
    "sqrt(%x)",
    "rsqrt(%x)",
    "reciprocal(%x)",
    "tanh(%x)",
    "sigmoid(%x)",
    "erf(%x)",
    "sin(%x)",
    "cos(%x)",
    "tan(%x)",
    "asin(%x)",
    "acos(%x)",
    "atan(%x)",
    "sinh(%x)",
    "cosh(%x)",
    "asinh(%x)",
    "acosh(%x)",
    "atanh(%x)",
    "isnan(%x)",
    "isinf(%x)",
    "isinf(%x, detect_negative=false)",
    "isfinite(%x)",
    "logical_not(%b)",
    "bitwise_not(%i)",
    "nn.relu(%x)",
    "nn.prelu(%x, %k)",
    "nn.leaky_relu(%x, alpha=0.5)",
    "nn.thresholded_relu(%x)",
    "nn.elu(%x)",
    "nn.celu(%x)",
    "nn.selu(%x, alpha=2.0)",
    "nn.gelu(%x)",
    "nn.gelu(%x, approximate=\"tanh\")",
    "nn.silu(%x)",
    "nn.silu(%x, alpha=2.0)",
    "nn.swiglu(%x, %x)",
    "nn.hard_sigmoid(%x)",
    "nn.hard_swish(%x)",
    "nn.mish(%x)",
    "nn.softplus(%x)",
    "nn.softsign(%x)",
    "nn.shrink(%x)",
    "astype(%x, dtype=int32)",
    "bitcast(%x, dtype=int32)",
    // Reductions and scans.
    "sum(%x)",
    "sum(%x, axis=[1], keepdims=true)",
    "sum(%x, axis=[])",
    "sum(%x, %a)",
    "mean(%x, axis=[-1])",
    "prod(%x)",
    "max(%x, axis=[0])",
    "min(%x, axis=[])",
    "sum_square(%x)",
    "l1_norm(%x, axis=[1])",
    "l2_norm(%x)",
    "l2_norm(%x, axis=[])",
    "log_sum(%x)",
    "log_sum_exp(%x, axis=[1])",
    "argmax(%x)",
    "argmax(%x, axis=1, select_last_index=true)",
    "argmin(%x, axis=-1, keepdims=true)",
    "cumsum(%x, axis=1)",
    "cumsum(%x, %n)",
    "cumsum(%x)",
    "cumprod(%x, axis=0, reverse=true)",
    "topk(%x, 1i64)",
    "topk(%x, 1i64, largest=false)",
    "topk(%x, %n, axis=0)",
    // Shapes and indices.
    "reshape(%x, dense<Tensor[(1,), int64]>[-1])",
    "reshape(%x, %t, allowzero=true)",
    "match_cast(%x, to=Tensor[(2, 3), float32], proved=true)",
    "broadcast_to(%x, dense<Tensor[(3,), int64]>[4, 2, 3])",
    "permute_dims(%x)",
    "permute_dims(%x, axes=[1, 0])",
    "expand_dims(%x, axis=[0])",
    "expand_dims(%x, axis=[-1])",
    "squeeze(%n, axis=[0])",
    "squeeze(%n, axis=[-1])",
    "squeeze(%n)",
    "concat(%x, %x, axis=-1)",
    "split(%x, sections=3, axis=1)",
    "split(%x, sections=2, axis=-1)",
    "split(%x, indices=[1], axis=1)",
    "split(%y, sections=2)",
    "strided_slice(%x, axes=[1], begin=[0], end=[2])",
    "strided_slice(%x, axes=[-1], begin=[0], end=[2])",
    "strided_slice(%x, begin=[0, 2], end=[2, 0], strides=[1, -1])",
    "take(%x, %t)",
    "take(%x, %t, axis=-1)",
    "gather_elements(%x, %i, axis=-1)",
    "gather_nd(%x, %t)",
    "gather_nd(%x, dense<Tensor[(2, 1), int64]>[0, 1], batch_dims=1)",
    "one_hot(%i, 4i64, %c)",
    "one_hot(%i, 4i64, %c, axis=0)",
    "reverse_sequence(%x, %t, time_axis=1, batch_axis=0)",
    "tile(%x, %t)",
    "tril(%x)",
    "triu(%x, 1i64)",
    "nn.flatten(%x)",
    "nn.flatten(%x, axis=-1)",
    "nn.depth_to_space(%d4, block_size=2)",
    "nn.depth_to_space(%d4, block_size=2, mode=\"CRD\")",
    "nn.space_to_depth(%d4, block_size=2)",
    "nn.space_to_depth(%d4, block_size=2, mode=\"CRD\")",
    "shape_of(%y)",
    "shape_of(%y, start=1)",
    "size(%y)",
    "nonzero(%x)",
    "compress(%x, %q)",
    "compress(%x, %q, axis=-1)",
    "unique(%x)",
    "unique(%x, axis=-1, sorted=false)",
    "expand_dims(%x, %n)",
    "squeeze(%s1, %n)",
    "split(%x, %t, axis=1)",
    "dynamic_strided_slice(%x, %t, %t)",
    "dynamic_strided_slice(%x, %n, %n, %n, %n)",
    "scatter_elements(%x, %i, %x)",
    "scatter_elements(%x, %i, %x, axis=1, reduction=\"add\")",
    "scatter_elements(%x, %i, %x, axis=-1, reduction=\"max\")",
    "scatter_nd(%x, dense<Tensor[(1, 1), int64]>[0], dense<Tensor[(1, 3), float32]>[0])",
    "scatter_nd(%x, dense<Tensor[(1, 1), int64]>[0], dense<Tensor[(1, 3), float32]>[0], reduction=\"mul\")",
    "nn.pad(%x, dense<Tensor[(4,), int64]>[1, 0, 1, 0])",
    "nn.pad(%x, dense<Tensor[(4,), int64]>[1, 0, 1, 0], 2f)",
    "nn.pad(%x, dense<Tensor[(4,), int64]>[1, 0, 1, 0], mode=\"edge\")",
    "nn.pad(%x, dense<Tensor[(4,), int64]>[1, 0, 1, 0], mode=\"wrap\")",
    "nn.pad(%x, %t, none, %n)",
    "center_crop_pad(%x, %t)",
    "center_crop_pad(%x, %n, axes=[-1])",
    // Creation.
    "zeros(shape=shape(2, 3))",
    "shape_to_tensor(shape=shape(2, 3))",
    "ones(shape=shape(2, 3), dtype=int64)",
    "full(%t, value=2.5f)",
    "eye_like(%x)",
    "eye_like(%x, k=1, dtype=int32)",
    "arange(%f, %f, %f)",
    "multiply(%f, dense<Tensor[(1000, 1000), float32]>[1])",
    // Products and windows.
    "matmul(%x, %k)",
    "nn.gemm(%x, %x, trans_b=true)",
    "nn.gemm(%x, %x, %c, trans_b=true, alpha=2.0)",
    "nn.conv1d(%s1, %w1)",
    "nn.conv2d(%s2, %w2, %c, padding=[1, 1, 1, 1])",
    "nn.conv3d(%s3, %w3, strides=[2, 2, 2])",
    "nn.max_pool1d(%s1, pool_size=[2])",
    "nn.max_pool2d(%s2, pool_size=[2, 2], ceil_mode=true)",
    "nn.max_pool3d(%s3, pool_size=[2, 2, 2], dilation=[2, 2, 2])",
    "nn.avg_pool1d(%s1, pool_size=[2])",
    "nn.avg_pool2d(%s2, pool_size=[2, 2], padding=[1, 1, 1, 1], count_include_pad=true, ceil_mode=true)",
    "nn.avg_pool3d(%s3, pool_size=[2, 2, 2], dilation=[2, 2, 2])",
    "nn.global_avg_pool1d(%s1)",
    "nn.global_avg_pool2d(%s2)",
    "nn.global_avg_pool3d(%s3)",
    "nn.lp_pool1d(%s1, pool_size=[2])",
    "nn.lp_pool2d(%s2, pool_size=[2, 2], p=1)",
    "nn.lp_pool3d(%s3, pool_size=[2, 2, 2], dilation=[2, 2, 2])",
    "nn.global_max_pool1d(%s1)",
    "nn.global_max_pool2d(%s2)",
    "nn.global_max_pool3d(%s3)",
    "nn.global_lp_pool1d(%s1)",
    "nn.global_lp_pool2d(%s2, p=1)",
    "nn.global_lp_pool3d(%s3)",
    "nn.max_pool_with_indices1d(%s1, pool_size=[2])",
    "nn.max_pool_with_indices2d(%s2, pool_size=[2, 2], column_major=true)",
    "nn.max_pool_with_indices3d(%s3, pool_size=[2, 2, 2])",
    "nn.max_unpool1d(%s1, %p1, pool_size=[2])",
    "nn.max_unpool2d(%s2, %p2, pool_size=[2, 2])",
    "nn.max_unpool3d(%s3, %p3, pool_size=[2, 2, 2])",
    "nn.conv1d_transpose(%s1, %w1)",
    "nn.conv2d_transpose(%s2, %w2, %c, strides=[2, 2], output_padding=[1, 1])",
    "nn.conv3d_transpose(%s3, %w3)",
    "col2im(%s1, dense<Tensor[(2,), int64]>[5, 1], dense<Tensor[(2,), int64]>[1, 1])",
    "det(dense<Tensor[(2, 2), float32]>[1, 2, 3, 4])",
    "einsum(%x, %x, subscripts=\"ij,kj->ik\")",
    // Quantized tensors.
    "quantize(%x, %f, 3u8)",
    "quantize(%x, %k)",
    "dequantize(%u, %f)",
    "dequantize(%u, %f, 3u8)",
    "dynamic_quantize(%x)",
    "matmul_integer(%u, %v)",
    "quantized_matmul(%u, %f, 1u8, %v, %f, 1u8, %f, 1u8)",
    "nn.conv_integer1d(%i1, %v1)",
    "nn.conv_integer2d(%i2, %v2)",
    "nn.conv_integer3d(%i3, %v3)",
    "nn.quantized_conv1d(%i1, %f, 1u8, %v1, %f, 1u8, %f, 1u8)",
    "nn.quantized_conv2d(%i2, %f, 1u8, %v2, %f, 1u8, %f, 1u8)",
    "nn.quantized_conv3d(%i3, %f, 1u8, %v3, %f, 1u8, %f, 1u8)",
    // Images.
    "image.resize(%s2, dense<Tensor[(4,), float32]>[1, 1, 2, 2], coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\")",
    "image.resize(%s2, dense<Tensor[(4,), int64]>[1, 2, 9, 9], method=\"linear\")",
    "image.crop_and_resize(%s2, dense<Tensor[(4,), int64]>[1, 2, 9, 9], dense<Tensor[(8,), float32]>[0, 0, 0, 0, 1, 1, 1, 1])",
    // Normalizations, losses.
    "nn.batch_norm(%s2, %c, %c, %c, %c)",
    "nn.batch_norm_training(%s2, %c, %c, %c, %c)",
    "nn.layer_norm(%x, %k)",
    "nn.layer_norm(%x, %k, %k, statistics=true)",
    "nn.rms_norm(%x, %k)",
    "nn.instance_norm(%s2, %c, %c)",
    "nn.group_norm(%s2, %c, %c, num_groups=2)",
    "nn.mean_variance_norm(%s2)",
    "nn.lp_norm(%x)",
    "nn.softmax(%x)",
    "nn.softmax(%x, axis=0)",
    "nn.softmax(%s2, axes=[1, 2, 3])",
    "nn.log_softmax(%x)",
    "nn.hardmax(%x)",
    "nn.lrn(%s2, size=3)",
    "nn.dropout(%x)",
    "nn.dropout(%x, ratio=0.25)",
    "nn.dropout(%x, %f)",
    "let %t = nn.dropout(%x); %t.0",
    "let %t = nn.dropout(%x); %t.1",
    "nn.nll_loss(%x, %t)",
    "nn.nll_loss(%x, %t, %k, reduction=\"none\", ignore_index=1)",
    "nn.softmax_cross_entropy(%x, %t)",
    // Sequences, and places in images.
    "nn.attention(%s2, %s2, %s2)",
    "let %t = nn.attention(%s1, %s1, %s1, none, none, none, %n, q_num_heads=1, kv_num_heads=1, results=3); %t.1",
    "nn.attention(%s2, %s2, %s2, left_window_size=1, is_causal=true, softcap=2.0, scale=0.5)",
    "let %t = nn.attention(%s2, %s2, %s2, results=4, qk_matmul_output_mode=3, softmax_precision=float64); %t.3",
    "nn.linear_attention(%s1, %s1, %s1, q_num_heads=1, kv_num_heads=1, update_rule=\"linear\")",
    "nn.rotary_embedding(%d4, %e1, %e1)",
    "nn.lstm(%r, %l1, %l2)",
    "let %t = nn.lstm(%r, %l1, %l2, layout=1, clip=0.5, input_forget=true); %t.2",
    "nn.gru(%r, %g1, %g2, linear_before_reset=true)",
    "nn.rnn(%r, %m1, %m2, direction=\"reverse\")",
    "nn.causal_conv1d(%s1, %m3)",
    "image.grid_sample(%s2, %z)",
    "image.grid_sample(%s2, %z, mode=\"cubic\", align_corners=true, padding_mode=\"border\")",
    "image.non_max_suppression(%o, %e2, %n, %f, %f)",
    "cosine_window(%n, kind=\"hann\")",
    "cosine_window(%n, kind=\"hamming\", periodic=false, dtype=float64)",
    "cosine_window(%n, kind=\"blackman\", dtype=int32)",
    // Small numbers.
    "astype(%x, dtype=float8e4m3fn, saturate=false)",
    "astype(%x, dtype=float8e8m0, round_mode=\"down\")",
    "astype(%x, dtype=int2)",
    "quantize(%x, 1f, dtype=float8e5m2, saturate=false)",
];

/// Returns the problem of a node in a version, if it has one.
fn problem(schemas: &HashMap<&str, Vec<Schema>>, node: &NodeProto, opset: i64) -> Option<String> {
    let Some(schema) = at(schemas, node.op_type(), opset) else { return Some("there is no such operator".to_owned()) };
    let unknown = node.attribute.iter().find(|a| !schema.attributes.contains(a.name()));
    if let Some(a) = unknown {
        return Some(format!("there is no attribute `{}`", a.name()));
    }
    let lies = |n: usize, (least, most): (usize, usize)| least <= n && n <= most;
    if !lies(node.input.len(), schema.inputs) {
        return Some(format!("{} inputs", node.input.len()));
    }
    (!lies(node.output.len(), schema.outputs)).then(|| format!("{} outputs", node.output.len()))
}

#[test]
fn what_is_written_is_there_in_the_version() {
    let schemas = schemas();
    let mut wrong = Vec::new();
    let mut written: HashSet<String> = HashSet::new();
    for call in CALLS {
        let text = format!("def @main({PARAMETERS}) {{ {call} }}");
        let module = parse_module(Source::new("call", text), anfora_onnx::registry());
        let module = module.unwrap_or_else(|e| panic!("{call}: {}", e[0]));
        let mut is_written = false;
        for opset in 6..=28 {
            let options = ExportOptions { opset: Some(opset), ..ExportOptions::default() };
            let exported = match export(&module, &options) {
                Ok(exported) => exported,
                Err(e) => match e.problem {
                    // The export requires a later version.
                    ExportProblem::Opset { needed, .. } if needed > opset => continue,
                    ExportProblem::Unsupported(_) => continue,
                    other => panic!("{call} in {opset}: {other}"),
                },
            };
            is_written = true;
            let model = ModelProto::decode(Bytes::from(exported.bytes)).expect("a model");
            let GraphProto { node, .. } = model.graph.expect("a graph");
            wrong.extend(node.iter().filter_map(|n| {
                problem(&schemas, n, opset).map(|p| format!("{call} in {opset}: {}: {p}", n.op_type()))
            }));
        }
        assert!(is_written, "{call} is written in no version");
        written.extend(call.trim_start_matches("let %t = ").split('(').next().map(str::to_owned));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let table = Conversions::default();
    let left_out = table.rows().iter().filter(|r| r.export.is_some() && !written.contains(&*r.native));
    let left_out: Vec<_> = left_out.map(|r| &r.native).collect();
    assert!(left_out.is_empty(), "no call of {left_out:?}");
}

/// Exports a call and returns the version of the model.
fn written(call: &str, parameter: &str, opset: Option<i64>) -> Result<i64, ExportProblem> {
    let text = format!("def @main(%x: Tensor[(2, 2), {parameter}]) {{ {call} }}");
    let module = parse_module(Source::new("call", text), anfora_onnx::registry());
    let module = module.unwrap_or_else(|e| panic!("{call}: {}", e[0]));
    let exported = export(&module, &ExportOptions { opset, ..ExportOptions::default() }).map_err(|e| e.problem)?;
    let model = ModelProto::decode(Bytes::from(exported.bytes)).expect("a model");
    Ok(model.opset_import[0].version())
}

#[test]
fn element_types_that_came_later_raise_the_version() {
    assert_eq!(written("sin(%x)", "float32", None), Ok(18));
    assert_eq!(written("sin(%x)", "bfloat16", None), Ok(22));
    assert_eq!(written("sin(%x)", "bfloat16", Some(23)), Ok(23));
    assert_eq!(
        written("let %y = sin(%x); let %z = astype(%y, dtype=int16); dequantize(%z, 1f)", "bfloat16", None),
        Ok(22)
    );
    assert_eq!(written("add(%x, %x)", "int8", Some(14)), Ok(14));
    for (call, dtype, opset, needed) in [
        ("sin(%x)", "bfloat16", 18, 22),
        ("add(%x, %x)", "int8", 13, 14),
        ("add(1i8, %x)", "int8", 13, 14),
        ("equal(%x, %x)", "float32", 9, 11),
        ("full(dense<Tensor[(1,), int64]>[4], value=1bf16)", "int8", 18, 20),
        ("topk(%x, 1i64)", "bfloat16", 13, 24),
    ] {
        let problem = written(call, dtype, Some(opset)).expect_err(call);
        let ExportProblem::Opset { needed: found, present, .. } = problem else { panic!("{call}: {problem}") };
        assert_eq!((found, present), (needed, opset), "{call}");
    }
}

#[test]
fn element_types_that_no_version_has_are_refused() {
    let problem = written("matmul(%x, %x)", "int8", None).expect_err("no version multiplies them");
    assert_eq!(problem.to_string(), "no version of ONNX's `MatMul` has elements of int8");
}
