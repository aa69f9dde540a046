//! Modules that are written in another version of the operators than that of their file.

use anfora_ir::{Module, Source, parse_module};
use anfora_onnx::convert::Conversions;
use anfora_onnx::{ExportOptions, NodeCounts, export, set_opset};
use anfora_passes::onnx_version_with;

fn module(text: &str) -> Module {
    parse_module(Source::new("test", text), anfora_onnx::registry()).map_err(|e| e[0].to_string()).unwrap()
}

/// Returns the nodes of a function of one call of version `from` that is written in version `to`,
/// or the error.
fn written(call: &str, from: i64, to: i64) -> Result<NodeCounts, String> {
    let mut module = module(&format!(
        "#![onnx_ir_version=9, onnx_opsets=[[\"\", {from}], [\"com.acme\", 3]]]
         def @main(%x: Tensor[(n, 4, 3), float32], %s: Tensor[(4,), float32]) {{ {call} }}"
    ));
    set_opset(&mut module, to, &Conversions::default()).map_err(|e| e.diagnostic().to_string())?;
    let exported = export(&module, &ExportOptions::default()).map_err(|e| e.diagnostic().to_string())?;
    let back = anfora_onnx::import(exported.bytes.into(), &Default::default()).map_err(|e| e.to_string())?;
    let versions = format!("onnx_opsets=[[\"\", {to}], [\"com.acme\", 3]]");
    assert!(back.module.to_string().contains(&versions), "{}", back.module);
    assert!(back.kept.is_empty(), "{:?}", back.kept);
    Ok(exported.nodes)
}

#[test]
fn the_versions_of_composite_operators_are_those_of_the_conversions() {
    let conversions = Conversions::default();
    let registry = anfora_ops::standard();
    // The import of BatchNormalization decides by an attribute whether it is that of training.
    let is_own = |name: &str| name != "nn.batch_norm_training";
    for (_, row) in registry.rows().filter(|(_, row)| row.decomposition.is_some() && is_own(&row.name)) {
        let own = conversions.rows().iter().filter(|c| c.native == row.name && c.domain.is_empty());
        // A definition in other operators has no import.
        let both = own.filter(|c| c.import.is_some() && c.export.is_some());
        let since = both.map(|c| *c.opsets.start()).min().filter(|&since| since > 6);
        assert_eq!(onnx_version_with(&row.name).map(i64::from), since, "{}", row.name);
    }
}

#[test]
fn calls_that_a_version_lacks_are_written_in_others() {
    for (call, from, to, lost, found) in [
        ("nn.celu(%x, alpha=2.0)", 12, 11, "Celu", "Exp"),
        ("nn.mean_variance_norm(%x, axes=[2])", 13, 8, "MeanVarianceNormalization", "ReduceMean"),
        ("nn.shrink(%x)", 18, 9, "Celu", "Shrink"),
        ("nn.thresholded_relu(%x)", 22, 9, "ThresholdedRelu", "Where"),
        ("nn.mish(%x)", 18, 13, "Mish", "Softplus"),
        ("nn.layer_norm(%x, 1f, statistics=true)", 17, 13, "LayerNormalization", "ReduceMean"),
        ("nn.swiglu(%x, %x)", 28, 13, "SwiGLU", "Sigmoid"),
        ("nn.batch_norm_training(%x, %s, %s, %s, %s)", 15, 13, "BatchNormalization", "ReduceMean"),
        // These have another form.
        ("sum(%x, axis=[1])", 18, 11, "Sum", "ReduceSum"),
        ("clip(%x, 0f, 6f)", 13, 6, "Max", "Clip"),
        ("shape_of(%x, start=1)", 15, 13, "Gather", "Slice"),
        ("shape_of(%x, end=-1)", 15, 9, "Gather", "Slice"),
    ] {
        let nodes = written(call, from, to).unwrap_or_else(|e| panic!("{call}: {e}"));
        assert_eq!((nodes.of(lost), nodes.of(found) > 0), (0, true), "{call}: {:?}", nodes.by_operator());
    }
}

/// Steps with extents that are symbols need no attributes that the version lacks.
#[test]
fn shapes_are_written_without_younger_attributes() {
    let grouped = "nn.attention(%q, %k, %k, q_num_heads=4, kv_num_heads=2, is_causal=true)";
    let heads = "%q: Tensor[(n, l, 8), float32], %k: Tensor[(n, m, 4), float32]";
    let groups = "%x: Tensor[(n, 4, h), float32], %s: Tensor[(2,), float32]";
    for (params, call, from, to, found) in [
        // Extents of results that are known by symbols: the step that computes them is a cast.
        ("%x: Tensor[(n, 3, m), float32]", "nn.flatten(%x, axis=-2)", 13, 10, "Reshape"),
        (
            "%x: Tensor[(n, c, h), float32], %s: Tensor[(c,), float32]",
            "nn.group_norm(%x, %s, %s, num_groups=2)",
            21,
            13,
            "Reshape",
        ),
        (
            "%x: Tensor[(n, l, w), float32], %c: Tensor[(n, l, 2), float32]",
            "nn.rotary_embedding(%x, %c, %c, num_heads=2, rotary_embedding_dim=4)",
            23,
            13,
            "Concat",
        ),
        // Negative axes are of version 11.
        ("%x: Tensor[(n, 3, 4), float32]", "nn.flatten(%x, axis=-2)", 13, 8, "Reshape"),
        (groups, "nn.group_norm(%x, %s, %s, num_groups=2)", 18, 13, "Reshape"),
        (heads, grouped, 23, 13, "Range"),
        ("%q: Tensor[(n, 2, l, s), float32]", "nn.attention(%q, %q, %q)", 23, 13, "Softmax"),
    ] {
        let mut module =
            module(&format!("#![onnx_ir_version=8, onnx_opsets=[[\"\", {from}]]] def @main({params}) {{ {call} }}"));
        set_opset(&mut module, to, &Conversions::default()).unwrap_or_else(|e| panic!("{call}: {}", e.diagnostic()));
        let nodes = export(&module, &ExportOptions::default())
            .unwrap_or_else(|e| panic!("{call}: {}\n{module}", e.diagnostic()))
            .nodes;
        assert!(nodes.of(found) > 0, "{call}: {:?}", nodes.by_operator());
    }
}

#[test]
fn what_no_rule_writes_is_refused() {
    let error = written("nonzero(%x)", 13, 8).unwrap_err();
    assert!(error.contains("`nonzero` needs version 9 of the operators"), "{error}");
    let error = written("let %k: Tensor[(n, 4, 3), float32] = onnx.Sharpen(%x); %k", 13, 12).unwrap_err();
    let expected = "`Sharpen` is kept as version 13 of the operators defines it, and is not written in version 12";
    assert!(error.contains(expected), "{error}");
    assert!(error.contains("%k"), "{error}");
    let error = written("tanh(%x)", 13, 5).unwrap_err();
    assert!(error.contains("version 5 of the operators, which is not between 6 and 28, cannot be written"), "{error}");
}

#[test]
fn a_module_without_a_version_states_it() {
    let mut module = module("def @main(%x: Tensor[(n,), float32]) { tanh(nn.mish(%x)) }");
    set_opset(&mut module, 13, &Conversions::default()).unwrap();
    let text = module.to_text();
    assert!(text.starts_with("#![onnx_ir_version=8, onnx_opsets=[[\"\", 13]]]"), "{text}");
    let nodes = export(&module, &ExportOptions::default()).unwrap().nodes;
    assert_eq!(nodes.of("Mish"), 0);
}
