//! Calls in other layouts than those of ONNX are written between transpositions, which cancel where
//! they meet.

use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::{ExportOptions, export, registry};

use crate::written_out::written_nodes;

fn parse(text: &str) -> Module {
    parse_module(Source::new("test", text), registry()).unwrap_or_else(|e| panic!("{}\n{text}", e[0]))
}

fn written(params: &str, block: &str) -> String {
    written_nodes(&parse(&format!("def @main({params}) {{ {block} }}")), block)
}

#[test]
fn each_operator_has_the_layout_of_onnx_again() {
    let x = "%x: Tensor[(2, 5, 6, 4), float32], %w: Tensor[(3, 3, 4, 2), float32], %s: Tensor[(4,), float32]";
    for (call, nodes) in [
        ("nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")", "Transpose Transpose Conv Transpose"),
        (
            "nn.conv2d_transpose(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")",
            "Transpose Transpose ConvTranspose Transpose",
        ),
        ("nn.max_pool2d(%x, pool_size=[2, 2], layout=\"NHWC\")", "Transpose MaxPool Transpose"),
        ("nn.avg_pool2d(%x, pool_size=[2, 3], layout=\"CWHN\")", "Transpose AveragePool Transpose"),
        ("nn.lp_pool2d(%x, pool_size=[2, 2], layout=\"NHWC\")", "Transpose LpPool Transpose"),
        ("nn.instance_norm(%x, %s, %s, axis=3)", "Transpose InstanceNormalization Transpose"),
        ("nn.lrn(%x, size=3, axis=-1)", "Transpose LRN Transpose"),
        // The axes of extent 1 are only put in elsewhere.
        ("nn.global_avg_pool2d(%x, layout=\"NHWC\")", "Transpose GlobalAveragePool Squeeze Unsqueeze"),
        ("nn.global_max_pool2d(%x, layout=\"NHWC\")", "Transpose GlobalMaxPool Squeeze Unsqueeze"),
    ] {
        assert_eq!(written(x, call), nodes, "{call}");
    }
}

#[test]
fn transpositions_between_calls_cancel() {
    let params = "%x: Tensor[(1, 5, 6, 2), float32], %w: Tensor[(2, 2, 3, 3), float32], %b: Tensor[(2,), float32]";
    let block = "
        let %c = nn.conv2d(%x, %w, data_layout=\"NHWC\", padding=[1, 1, 1, 1]);
        let %d = add(%c, %b);
        let %r = nn.relu(%d);
        let %p = nn.max_pool2d(%r, pool_size=[2, 2], layout=\"NHWC\");
        nn.conv2d(%p, %w, data_layout=\"NHWC\")";
    assert_eq!(written(params, block), "Transpose Conv Unsqueeze Add Relu MaxPool Conv Transpose");
    // They were made by ConvertLayout, and none is left.
    let params = "%x: Tensor[(1, 2, 5, 6), float32], %w: Tensor[(2, 2, 3, 3), float32]";
    let block = "
        let %x2 = permute_dims(%x, axes=[0, 2, 3, 1]);
        let %c = nn.conv2d(%x2, %w, data_layout=\"NHWC\");
        let %r = nn.relu(%c);
        let %y = permute_dims(%r, axes=[0, 3, 1, 2]);
        tanh(%y)";
    assert_eq!(written(params, block), "Conv Relu Tanh");
}

/// The same axes in other words need no transposition, and no attribute of a later version.
#[test]
fn the_layout_of_onnx_has_several_names() {
    let params = "%x: Tensor[(2, 3), float32], %s: Tensor[(3,), float32]";
    assert_eq!(written(params, "nn.batch_norm(%x, %s, %s, %s, %s, axis=-1)"), "BatchNormalization");
    let text = "#![onnx_ir_version=8, onnx_opsets=[[\"\", 13]]]
        def @main(%x: Tensor[(1, 2, 4, 4), float32]) {
          image.resize(%x, dense<Tensor[(4,), int64]>[1, 2, 8, 8], axes=[0, 1, 2, 3])
        }";
    assert_eq!(written_nodes(&parse(text), "resize"), "Resize");
}

#[test]
fn what_cannot_be_transposed_is_refused() {
    let refused = |block: &str| {
        let module = parse(&format!("def @main(%x: Tensor[?, float32], %s: Tensor[(4,), float32]) {{ {block} }}"));
        export(&module, &ExportOptions::default()).expect_err("the rank is not known").to_string()
    };
    let error = refused("nn.max_pool2d(%x, pool_size=[2, 2], layout=\"NHWC\")");
    assert!(error.contains("`nn.max_pool2d` in another layout than that of ONNX cannot be written"), "{error}");
    for call in [
        "nn.instance_norm(%x, %s, %s, axis=-1)",
        "nn.group_norm(%x, %s, %s, num_groups=2, axis=-1)",
        "nn.lrn(%x, size=3, axis=-1)",
    ] {
        let error = refused(call);
        assert!(error.contains("over an axis other than 1"), "{error}");
    }
}
