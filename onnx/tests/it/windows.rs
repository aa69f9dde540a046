//! Windows, products and quantized tensors: the nodes that become our operators are written back
//! unchanged.

use anfora_onnx::convert::{float_attribute, int_attribute, ints_attribute, str_attribute, strs_attribute};
use anfora_onnx::proto::{AttributeProto, ModelProto, ValueInfoProto};

use crate::models::{FLOAT, INT64, again, graph, info, model, node, normalized, operators, read};

const UINT8: i32 = 2;
const INT8: i32 = 3;
const INT32: i32 = 6;
const FLOAT16: i32 = 10;
/// float8e4m3fn
const FLOAT8: i32 = 17;

/// The element type and the extents of an input.
type Input<'a> = (i32, &'a [i64]);

/// Returns a model of a single node with inputs of these element types and extents. An input of
/// type 0 without extents is left out.
fn one(opset: i64, op: &str, inputs: &[(i32, &[i64])], outputs: &[&str], attribute: Vec<AttributeProto>) -> ModelProto {
    let names: Vec<String> =
        inputs.iter().enumerate().map(|(i, x)| if x.0 == 0 { String::new() } else { format!("x{i}") }).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let infos = names.iter().zip(inputs).filter(|(n, _)| !n.is_empty()).map(|(n, x)| info(n, x.0, x.1)).collect();
    let results = outputs.iter().map(|o| ValueInfoProto { name: Some(o.to_string()), ..ValueInfoProto::default() });
    model(opset, graph("g", vec![node(op, &names, outputs, attribute)], infos, results.collect()))
}

/// Returns the operators that a model of a single node becomes. Asserts that it is written back as
/// the same node.
#[track_caller]
fn both_ways(model: &ModelProto) -> String {
    let back = normalized(again(model)).graph.expect("a graph");
    let original = normalized(model.clone()).graph.expect("a graph");
    assert_eq!(back.node, original.node);
    operators(&read(model)).join(" ")
}

/// Returns the operators that a model becomes.
fn becomes(model: &ModelProto) -> String {
    operators(&read(model)).join(" ")
}

#[test]
fn quantization_by_version() {
    let quantize = |opset, inputs: &[(i32, &[i64])], attribute| one(opset, "QuantizeLinear", inputs, &["y"], attribute);
    let x: (i32, &[i64]) = (FLOAT, &[2, 6]);
    let axis = || int_attribute("axis", 0);
    for (m, expected) in [
        (quantize(10, &[x, (FLOAT, &[])], vec![]), "quantize"),
        (quantize(10, &[x, (FLOAT, &[]), (INT8, &[])], vec![]), "quantize"),
        (quantize(13, &[x, (FLOAT, &[2]), (UINT8, &[2])], vec![axis()]), "quantize"),
        (quantize(10, &[x, (FLOAT, &[2]), (UINT8, &[2])], vec![axis()]), "onnx.QuantizeLinear"),
        (
            quantize(
                21,
                &[x, (FLOAT, &[2, 3])],
                vec![int_attribute("block_size", 2), int_attribute("output_dtype", 5)],
            ),
            "quantize",
        ),
        (
            quantize(23, &[x, (FLOAT, &[])], vec![int_attribute("output_dtype", 3), int_attribute("precision", 10)]),
            "quantize",
        ),
        (quantize(21, &[x, (FLOAT, &[])], vec![int_attribute("output_dtype", 21)]), "quantize"),
        (quantize(19, &[x, (FLOAT, &[]), (FLOAT8, &[])], vec![int_attribute("saturate", 0)]), "quantize"),
        (quantize(19, &[(INT32, &[2]), (INT32, &[])], vec![]), "onnx.QuantizeLinear"),
    ] {
        assert_eq!(both_ways(&m), expected, "{m:#?}");
    }
    let dequantize =
        |opset, inputs: &[(i32, &[i64])], attribute| one(opset, "DequantizeLinear", inputs, &["y"], attribute);
    for (m, expected) in [
        (dequantize(10, &[(UINT8, &[2, 6]), (FLOAT, &[])], vec![]), "dequantize"),
        (dequantize(13, &[(INT32, &[2, 6]), (FLOAT, &[2])], vec![axis()]), "dequantize"),
        (dequantize(19, &[(FLOAT8, &[2, 6]), (FLOAT, &[])], vec![]), "dequantize"),
        (
            dequantize(
                21,
                &[(INT8, &[2, 6]), (FLOAT16, &[2, 2]), (INT8, &[2, 2])],
                vec![int_attribute("block_size", 3)],
            ),
            "dequantize",
        ),
        (dequantize(23, &[(INT8, &[2, 6]), (FLOAT16, &[])], vec![int_attribute("output_dtype", 1)]), "dequantize"),
        (
            dequantize(21, &[(INT8, &[2, 6]), (FLOAT16, &[])], vec![int_attribute("output_dtype", 1)]),
            "onnx.DequantizeLinear",
        ),
    ] {
        assert_eq!(both_ways(&m), expected, "{m:#?}");
    }
    assert_eq!(both_ways(&one(11, "DynamicQuantizeLinear", &[x], &["y", "s", "z"], vec![])), "dynamic_quantize");
}

#[test]
fn recurrent_networks() {
    let network = |opset, op, rows: i64, outputs: &[&str], attribute| {
        let (of_input, of_state) = ([1, rows, 4], [1, rows, 2]);
        let inputs: [(i32, &[i64]); 3] = [(FLOAT, &[3, 2, 4]), (FLOAT, &of_input), (FLOAT, &of_state)];
        one(opset, op, &inputs, outputs, attribute)
    };
    let hidden = || vec![int_attribute("hidden_size", 2)];
    let with = |attribute: AttributeProto| [vec![attribute], hidden()].concat();
    assert_eq!(both_ways(&network(7, "LSTM", 8, &["y", "h", "c"], hidden())), "nn.lstm");
    assert_eq!(both_ways(&network(22, "LSTM", 8, &["y"], with(str_attribute("direction", "reverse")))), "nn.lstm");
    assert_eq!(both_ways(&network(14, "GRU", 6, &["y", "h"], with(int_attribute("layout", 1)))), "nn.gru");
    assert_eq!(both_ways(&network(7, "RNN", 2, &["y", "h"], hidden())), "nn.rnn");
    // The activations are not those of our operator, the version has no layout, or the weights do
    // not fit.
    let relu = with(strs_attribute("activations", &["Relu"]));
    assert_eq!(both_ways(&network(7, "RNN", 2, &["y"], relu)), "onnx.RNN");
    assert_eq!(both_ways(&network(7, "GRU", 6, &["y"], with(int_attribute("layout", 1)))), "onnx.GRU");
    assert_eq!(both_ways(&network(7, "LSTM", 6, &["y"], hidden())), "onnx.LSTM");
}

#[test]
fn attention_by_version() {
    let heads: Input = (FLOAT, &[1, 2, 3, 4]);
    let attend = |opset, inputs: &[Input], outputs: &[&str], a| one(opset, "Attention", inputs, outputs, a);
    let scores = || vec![int_attribute("is_causal", 1), int_attribute("qk_matmul_output_mode", 3)];
    assert_eq!(both_ways(&attend(23, &[heads; 3], &["y"], vec![float_attribute("softcap", 2.0)])), "nn.attention");
    assert_eq!(both_ways(&attend(23, &[heads; 3], &["y", "k", "v", "s"], scores())), "nn.attention");
    let window = || vec![int_attribute("left_window_size", 1)];
    assert_eq!(both_ways(&attend(25, &[heads; 3], &["y"], window())), "nn.attention");
    assert_eq!(both_ways(&attend(23, &[heads; 3], &["y"], window())), "onnx.Attention");
    let lengths: [Input; 7] = [heads, heads, heads, (0, &[]), (0, &[]), (0, &[]), (INT64, &[1])];
    assert_eq!(both_ways(&attend(24, &lengths, &["y"], vec![])), "nn.attention");
    assert_eq!(both_ways(&attend(23, &lengths, &["y"], vec![])), "onnx.Attention");
    let table: Input = (FLOAT, &[1, 3, 2]);
    assert_eq!(both_ways(&one(23, "RotaryEmbedding", &[heads, table, table], &["y"], vec![])), "nn.rotary_embedding");
}

#[test]
fn samplings_by_version() {
    let [image, grid]: [Input; 2] = [(FLOAT, &[1, 2, 3, 4]), (FLOAT, &[1, 5, 6, 2])];
    let sample = |opset, mode| one(opset, "GridSample", &[image, grid], &["y"], vec![str_attribute("mode", mode)]);
    assert_eq!(both_ways(&sample(16, "bicubic")), "image.grid_sample");
    assert_eq!(both_ways(&sample(20, "cubic")), "image.grid_sample");
    assert_eq!(both_ways(&sample(16, "cubic")), "onnx.GridSample");
    assert_eq!(both_ways(&sample(22, "bicubic")), "onnx.GridSample");
    let boxes: [Input; 3] = [(FLOAT, &[1, 6, 4]), (FLOAT, &[1, 2, 6]), (INT64, &[1])];
    assert_eq!(both_ways(&one(10, "NonMaxSuppression", &boxes, &["y"], vec![])), "image.non_max_suppression");
    let periodic = || vec![int_attribute("output_datatype", 11), int_attribute("periodic", 0)];
    assert_eq!(both_ways(&one(17, "HannWindow", &[(INT64, &[])], &["y"], periodic())), "cosine_window");
}

#[test]
fn products_of_quantized_tensors() {
    let [a, b]: [Input; 2] = [(UINT8, &[2, 3]), (INT8, &[3, 4])];
    assert_eq!(both_ways(&one(10, "MatMulInteger", &[a, b], &["y"], vec![])), "matmul_integer");
    let zero = one(10, "MatMulInteger", &[a, b, (0, &[]), (INT8, &[4])], &["y"], vec![]);
    assert_eq!(both_ways(&zero), "matmul_integer");
    let scale: (i32, &[i64]) = (FLOAT, &[]);
    let inputs = [a, scale, (UINT8, &[]), b, scale, (INT8, &[]), scale, (INT8, &[])];
    assert_eq!(both_ways(&one(10, "QLinearMatMul", &inputs, &["y"], vec![])), "quantized_matmul");
    let pads = || vec![ints_attribute("kernel_shape", &[2, 2]), ints_attribute("pads", &[1, 0, 0, 1])];
    let [x, w]: [Input; 2] = [(UINT8, &[1, 2, 5, 5]), (INT8, &[3, 2, 2, 2])];
    assert_eq!(both_ways(&one(10, "ConvInteger", &[x, w, (UINT8, &[])], &["y"], pads())), "nn.conv_integer2d");
    let inputs = [x, scale, (UINT8, &[]), w, (FLOAT, &[3]), (INT8, &[3]), scale, (UINT8, &[]), (INT32, &[3])];
    assert_eq!(both_ways(&one(10, "QLinearConv", &inputs, &["y"], pads())), "nn.quantized_conv2d");
}

#[test]
fn sums_of_products() {
    let [a, b]: [Input; 2] = [(FLOAT, &[2, 3]), (FLOAT, &[3, 4])];
    let einsum = one(12, "Einsum", &[a, b], &["y"], vec![str_attribute("equation", "ij, jk -> ki")]);
    assert_eq!(both_ways(&einsum), "einsum");
    let one_by_one = [(FLOAT, &[2, 3][..]), (FLOAT, &[1])];
    let broadcast = one(12, "Einsum", &one_by_one, &["y"], vec![str_attribute("equation", "ij,j->i")]);
    assert_eq!(both_ways(&broadcast), "einsum");
    assert_eq!(both_ways(&one(11, "Det", &[(FLOAT, &[5, 3, 3])], &["y"], vec![])), "det");
}

#[test]
fn pools_by_version() {
    let x: (i32, &[i64]) = (FLOAT, &[1, 2, 7, 7]);
    let kernel = || ints_attribute("kernel_shape", &[2, 3]);
    let pool = |opset, op: &str, outputs: &[&str], more: Vec<AttributeProto>| {
        one(opset, op, &[x], outputs, [vec![kernel()], more].concat())
    };
    for (m, expected) in [
        (pool(8, "MaxPool", &["y", "i"], vec![]), "nn.max_pool_with_indices2d"),
        (pool(12, "MaxPool", &["y", "i"], vec![int_attribute("storage_order", 1)]), "nn.max_pool_with_indices2d"),
        (pool(12, "MaxPool", &["y"], vec![int_attribute("storage_order", 1)]), "nn.max_pool2d"),
        (pool(11, "LpPool", &["y"], vec![int_attribute("p", 3)]), "nn.lp_pool2d"),
        (pool(18, "LpPool", &["y"], vec![int_attribute("p", 1), ints_attribute("dilations", &[2, 1])]), "nn.lp_pool2d"),
        (one(9, "GlobalMaxPool", &[x], &["y"], vec![]), "nn.global_max_pool2d"),
        (one(9, "GlobalLpPool", &[x], &["y"], vec![int_attribute("p", 1)]), "nn.global_lp_pool2d"),
        (one(11, "MaxUnpool", &[x, (INT64, &[1, 2, 7, 7])], &["y"], vec![kernel()]), "nn.max_unpool2d"),
        (one(18, "Col2Im", &[(FLOAT, &[1, 4, 9]), (INT64, &[2]), (INT64, &[2])], &["y"], vec![]), "col2im"),
    ] {
        assert_eq!(both_ways(&m), expected, "{m:#?}");
    }
    // Since version 22 the format defines the treatment of a window that begins in the padding at
    // the end.
    let past = |opset| {
        let attribute = vec![
            ints_attribute("kernel_shape", &[1]),
            ints_attribute("strides", &[2]),
            ints_attribute("pads", &[0, 1]),
            int_attribute("ceil_mode", 1),
            int_attribute("count_include_pad", 1),
        ];
        becomes(&one(opset, "AveragePool", &[(FLOAT, &[1, 1, 4])], &["y"], attribute))
    };
    assert_eq!((past(19).as_str(), past(22).as_str()), ("onnx.AveragePool", "nn.avg_pool1d"));
}

#[test]
fn windows_larger_than_what_they_slide_over() {
    let pool = |opset: i64, op: &str, kernel: i64, stride: i64, ceil: i64| {
        let lists = vec![ints_attribute("kernel_shape", &[kernel]), ints_attribute("strides", &[stride])];
        one(opset, op, &[(FLOAT, &[1, 1, 2])], &["y"], [lists, vec![int_attribute("ceil_mode", ceil)]].concat())
    };
    for (op, native) in [("MaxPool", "nn.max_pool1d"), ("AveragePool", "nn.avg_pool1d"), ("LpPool", "nn.lp_pool1d")] {
        for opset in [19, 22] {
            assert_eq!(becomes(&pool(opset, op, 3, 2, 1)), native);
            assert_eq!(becomes(&pool(opset, op, 3, 1, 0)), native);
            assert_eq!(becomes(&pool(opset, op, 4, 2, 0)), native);
            // Rounding towards zero gives one window; rounding down gives none.
            assert_eq!(becomes(&pool(opset, op, 3, 2, 0)), format!("onnx.{op}"));
        }
    }
}

#[test]
fn transposed_convolutions() {
    let [x, w]: [Input; 2] = [(FLOAT, &[1, 2, 4, 5]), (FLOAT, &[2, 3, 3, 3])];
    let convolve = |attribute: Vec<AttributeProto>| {
        one(11, "ConvTranspose", &[x, w], &["y"], [vec![ints_attribute("kernel_shape", &[3, 3])], attribute].concat())
    };
    let strides = || ints_attribute("strides", &[2, 2]);
    let explicit = convolve(vec![
        strides(),
        ints_attribute("pads", &[1, 0, 1, 2]),
        ints_attribute("output_padding", &[1, 0]),
        ints_attribute("dilations", &[1, 2]),
    ]);
    assert_eq!(both_ways(&explicit), "nn.conv2d_transpose");
    let pads_of = |m: &ModelProto| {
        let back = again(m).graph.expect("a graph");
        let pads = back.node[0].attribute.iter().find(|a| a.name() == "pads").map(|a| a.ints.clone());
        (back.node[0].op_type().to_owned(), pads)
    };
    let transposed = |pads: &[i64]| ("ConvTranspose".to_owned(), Some(pads.to_vec()));
    let shape = || ints_attribute("output_shape", &[8, 10]);
    assert_eq!(pads_of(&convolve(vec![strides(), shape()])), transposed(&[1, 1, 0, 0]));
    assert_eq!(
        pads_of(&convolve(vec![strides(), shape(), str_attribute("auto_pad", "SAME_UPPER")])),
        transposed(&[0, 0, 1, 1])
    );
    assert_eq!(pads_of(&convolve(vec![strides(), str_attribute("auto_pad", "SAME_LOWER")])), transposed(&[1, 1, 0, 0]));
    let too_large = convolve(vec![strides(), ints_attribute("output_shape", &[20, 20])]);
    assert_eq!(becomes(&too_large), "onnx.ConvTranspose");
}
