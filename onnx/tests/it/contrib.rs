//! Operators of `com.microsoft` in place of standard ones ([`fuse_contrib_ops`]).

use anfora_ir::{Module, Source, parse_module};
use anfora_manager::PassContext;
use anfora_onnx::fuse_contrib_ops;

use crate::models::write;

const PARAMS: &str = "%x: Tensor[(n, 3, 4), float32], %y: Tensor[(n, 3, 4), float32], \
                      %b: Tensor[(4,), float32], %s: Tensor[(4,), float32], %o: Tensor[(1, 4), float32], \
                      %k: Tensor[(n, 4, 3), float32], %h: Tensor[(n, 3, 4), float16], \
                      %d: Tensor[(n, 3, 4), float64], %q: Tensor[(3, 4), float32]";

fn fused(block: &str) -> Module {
    let text = format!("#![onnx_ir_version=8, onnx_opsets=[[\"\", 17]]]\ndef @main({PARAMS}) {{ {block} }}");
    let source = Source::new("test", text);
    let mut module = parse_module(source, anfora_onnx::registry()).unwrap_or_else(|e| panic!("{block}: {e}"));
    let cx = PassContext::builder().opt_level(3).build().unwrap();
    fuse_contrib_ops().apply(&mut module, &cx).unwrap();
    module
}

/// Asserts that the pass makes a call as expected, in which `ms.` stands for the domain.
fn check(block: &str, expected: &str) {
    let text = fused(block).to_string();
    let expected = expected.replace("ms.", "onnx.com.microsoft.");
    assert!(text.contains(&format!(" = {expected};\n")), "{block}: not {expected}, but {text}");
}

/// Asserts that the pass leaves a block as it is.
fn stays(block: &str) {
    let text = fused(block).to_string();
    assert!(!text.contains("microsoft"), "{block}: {text}");
}

#[test]
fn activations() {
    check("nn.gelu(%x)", "ms.Gelu(%x)");
    check("nn.gelu(%h)", "ms.Gelu(%h)");
    check("nn.gelu(%x, approximate=\"tanh\")", "ms.FastGelu(%x)");
    check("nn.gelu(add(%x, %b))", "ms.BiasGelu(%x, %b)");
    check("nn.gelu(add(%b, %x))", "ms.BiasGelu(%x, %b)");
    check("nn.gelu(add(%x, %b), approximate=\"tanh\")", "ms.FastGelu(%x, %b)");
    check("nn.silu(%x)", "ms.QuickGelu(%x, alpha=1.0)");
    check("nn.silu(%x, alpha=1.5)", "ms.QuickGelu(%x, alpha=1.5)");
    stays("nn.gelu(%d)");
    // The other operand has elements for all places, or the sum is used elsewhere.
    check("nn.gelu(add(%x, %y))", "ms.Gelu(add(%x, %y))");
    check("let %a = add(%x, %b); let %g = nn.gelu(%a); (%a, %g)", "ms.Gelu(%a)");
}

#[test]
fn normalizations_of_sums() {
    let layer = "nn.layer_norm(add(%x, %y), %s, %b, epsilon=0.5)";
    check(layer, "ms.SkipLayerNormalization(%x, %y, %s, %b, epsilon=0.5)");
    check("nn.layer_norm(add(%x, %y), %s)", "ms.SkipLayerNormalization(%x, %y, %s, epsilon=1e-5)");
    let rms = "nn.rms_norm(add(%x, %y), %s, axes=[2])";
    check(rms, "ms.SkipSimplifiedLayerNormalization(%x, %y, %s, epsilon=1e-5)");
    // The sum is used elsewhere, or of tensors of two shapes; the parameters are no list of the
    // last axis; the statistics are results; or the axes are others.
    stays("let %a = add(%x, %y); let %l = nn.layer_norm(%a, %s); (%a, %l)");
    stays("nn.layer_norm(add(%x, %b), %s)");
    stays("nn.layer_norm(add(%x, %y), %o)");
    stays("nn.layer_norm(add(%x, %y), %s, %o)");
    stays("nn.rms_norm(add(%x, %y), %o)");
    stays("let %t = nn.layer_norm(add(%x, %y), %s, %b, statistics=true); %t.0");
    stays("nn.layer_norm(add(%x, %y), dense<Tensor[(3, 4), float32]>[1], axes=[1, 2])");
}

#[test]
fn products() {
    check("divide(matmul(%x, %k), 4f)", "ms.FusedMatMul(%x, %k, alpha=0.25)");
    check("multiply(matmul(%x, %k), 4f)", "ms.FusedMatMul(%x, %k, alpha=4.0)");
    let transposed = "permute_dims(%y, axes=[0, 2, 1])";
    check(&format!("matmul(%x, {transposed})"), "ms.FusedMatMul(%x, %y, transB=1)");
    check(&format!("matmul({transposed}, %x)"), "ms.FusedMatMul(%y, %x, transA=1)");
    let product = format!("let %t = {transposed}; let %p = matmul(%x, %t);");
    check(&format!("{product} multiply(%p, 4f)"), "ms.FusedMatMul(%x, %y, alpha=4.0, transB=1)");
    check(&format!("{product} divide(%p, 4f)"), "ms.FusedMatMul(%x, %y, alpha=0.25, transB=1)");
    let twice = format!("{product} let %m = multiply(%p, 4f); divide(%m, 8f)");
    check(&twice, "ms.FusedMatMul(%x, %y, alpha=0.5, transB=1)");
    check("matmul(%q, permute_dims(%q))", "ms.FusedMatMul(%q, %q, transB=1)");
    // The product is used elsewhere, matrices are repeated, the factor is a list or 0, elements are
    // of 16 bits, or the transposition exchanges other axes.
    stays("let %a = matmul(%x, %k); let %m = multiply(%a, 4f); (%a, %m)");
    stays("multiply(matmul(%q, %k), 4f)");
    stays("multiply(matmul(%x, %k), dense<Tensor[(3,), float32]>[1, 2, 3])");
    stays("divide(matmul(%x, %k), 0f)");
    stays("multiply(matmul(%h, permute_dims(%h, axes=[0, 2, 1])), 4f16)");
    stays("matmul(permute_dims(%k, axes=[0, 1, 2]), %x)");
}

#[test]
fn the_model_names_the_domain() {
    let model = write(&fused("let %g = nn.gelu(add(%x, %b)); tanh(%g)"));
    let graph = model.graph.as_ref().unwrap();
    let nodes: Vec<(&str, &str)> = graph.node.iter().map(|node| (node.domain(), node.op_type())).collect();
    assert_eq!(nodes, [("com.microsoft", "BiasGelu"), ("", "Tanh")]);
    let opsets: Vec<(&str, i64)> = model.opset_import.iter().map(|o| (o.domain(), o.version())).collect();
    assert_eq!(opsets, [("", 17), ("com.microsoft", 1)]);
}
