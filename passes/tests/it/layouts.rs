//! ConvertLayout: the number of permutations that are left, and rules of embedders.

use std::path::Path;
use std::sync::Arc;

use anfora_ir::{Arity, OpDef, OpRegistry, RelayoutRule, Source, parse_module};
use anfora_manager::PassContext;
use anfora_ops::typing::{Elements, elementwise};
use anfora_passes::registry;

/// The number of permutations, or of transformations of layouts, that TVM's test of ConvertLayout
/// expects in each of its programs, and that TVM 0.26 leaves in the last nine, which are like those
/// of its later tests.
const OF_TVM: [(&str, usize); 43] = [
    ("conv2d", 3),
    ("conv2d_onlydim", 3),
    ("conv2d_symbolic", 3),
    ("conv2d_matchcast_bias", 4),
    ("conv2d_relu", 3),
    ("relu_conv2d_relu", 3),
    ("conv2d_relu_tanh", 3),
    ("conv2d_add", 4),
    ("conv2d_add_relu_conv2d", 5),
    ("conv2d_fma_relu_conv2d", 6),
    ("conv2d_sum", 2),
    ("conv2d_sum_keepdim", 3),
    ("conv2d_sum_negative_dims", 2),
    ("conv2d_sum_reduce", 2),
    ("conv2d_transpose", 3),
    ("expand_dims_scalar", 0),
    ("conv2d_expand_dims", 3),
    ("conv2d_expand_dims_squeeze", 3),
    ("conv2d_squeeze", 3),
    ("conv2d_strided_slice", 3),
    ("conv2d_relu_concat", 3),
    ("conv2d_relu_concat_split", 4),
    ("conv2d_maxpool2d", 3),
    ("conv2d_avgpool2d", 3),
    ("conv2d_softmax", 3),
    ("conv2d_batchnorm", 3),
    ("conv2d_layernorm", 3),
    ("conv2d_resize2d", 3),
    ("resize2d_conv2d", 3),
    ("conv2d_unknown_bias_dim", 3),
    ("binary_broadcast", 3),
    ("binary_ewise_scalar", 3),
    ("conv2d_conv2d_conv2d_concat", 7),
    ("pooling_branching", 7),
    ("conv2d_tile", 3),
    ("conv2d_repeat", 3),
    ("conv2d_flip", 3),
    ("conv2d_gather_elements", 4),
    ("conv2d_scatter_elements", 3),
    ("conv2d_scatter_nd", 4),
    ("conv2d_dynamic_strided_slice", 3),
    ("conv2d_group_norm", 3),
    ("conv2d_cumsum", 3),
];

/// The expected output of the file test with the programs, and the page that compares the numbers,
/// are read: the file tests hold the pass to the output.
#[test]
fn no_program_has_more_permutations_than_in_tvm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let file = read("tests/files/ConvertLayout/tvm.anf");
    let page = read("docs/peer-cases/ConvertLayout.md");
    let (input, output) = file.split_once("// ----\n").unwrap();
    let functions: Vec<&str> = output.split("def @").skip(1).collect();
    assert_eq!((functions.len(), input.matches("def @").count()), (OF_TVM.len(), OF_TVM.len()));
    for (text, (name, of_tvm)) in functions.iter().zip(OF_TVM) {
        assert_eq!(text.split('(').next(), Some(name));
        let ours = text.matches("permute_dims(").count();
        assert!(ours <= of_tvm, "@{name} has {ours} permutations, but {of_tvm} in TVM");
        let row = page.lines().find(|line| line.contains(&format!("(`@{name}`)"))).unwrap_or_else(|| panic!("{name}"));
        assert!(row.contains(&format!(": {of_tvm}, {ours}")), "{row}\nours: {ours}");
    }
}

/// Returns the body of a function after ConvertLayout, in which `acme.f` takes the result of a
/// convolution, or the error.
fn converted(rule: Option<RelayoutRule>) -> Result<String, String> {
    let mut ops = OpRegistry::clone(&anfora_ops::standard());
    let row = OpDef::new("acme.f", "for tests", Arity::exactly(1), |call| elementwise(call, Elements::Any));
    ops.register(rule.into_iter().fold(row, OpDef::relayout)).unwrap();
    let text = "def @main(%x: Tensor[(1, 2, 3, 4), float32], %w: Tensor[(2, 2, 1, 1), float32]) {
        let %a = nn.conv2d(%x, %w);
        acme.f(%a)
    }";
    let mut module = parse_module(Source::new("test", text), Arc::new(ops)).map_err(|e| e[0].to_string()).unwrap();
    let cx = PassContext::with_registry(registry());
    registry().make("ConvertLayout").unwrap().apply(&mut module, &cx).map_err(|e| e.to_string())?;
    let text = module.to_text();
    Ok(text.split_once("{\n").unwrap().1.replace("\n}\n", ""))
}

#[test]
fn operators_of_embedders_follow_by_their_rules() {
    let before = "  let %0 = permute_dims(%x, axes=[0, 2, 3, 1]);\n";
    let stays = format!(
        "{before}  let %a = nn.conv2d(%0, %w, data_layout=\"NHWC\");\n  \
         let %a$1 = permute_dims(%a, axes=[0, 3, 1, 2]);\n  acme.f(%a$1)"
    );
    assert_eq!(converted(None).unwrap(), stays);
    assert_eq!(converted(Some(|_| None)).unwrap(), stays);
    let follows = converted(Some(|c| c.with_first())).unwrap();
    assert!(follows.contains("acme.f(%a)") && follows.ends_with("permute_dims(%1, axes=[0, 3, 1, 2])"), "{follows}");
    let error = converted(Some(|_| panic!("no idea"))).unwrap_err();
    assert!(error.contains("`acme.f`: its rule for layouts panics: no idea"), "{error}");
}
