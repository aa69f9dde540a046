//! ToMixedPrecision, beside TVM's pass of this name.

use std::collections::BTreeMap;

/// The number of casts that TVM's pass leaves in the modules of its test file, with
/// `out_dtype="float16"`; for `dynamic_strided_slice`, with `float32`. Casts of constants count.
const CASTS_OF_TVM: [(&str, usize); 15] = [
    ("conv2d", 3),
    ("conv2d_relu", 3),
    ("relu_conv2d_relu", 3),
    ("conv2d_relu_conv2d", 4),
    ("gemm_add_silu", 3),
    ("tuple", 4),
    ("concat_matmul", 3),
    ("conv2d_softmax", 3),
    ("conv2d_bias_conv2d", 2),
    ("tuple_get", 3),
    ("conv2d_bias_fp32", 4),
    ("conv2d_bias_fp32_out_of_range", 3),
    ("convert_sig", 2),
    ("call_tir_with_float16_args", 0),
    ("dynamic_strided_slice", 4),
];

#[test]
fn there_are_no_more_casts_than_in_tvm() {
    let file = include_str!("../../../tests/files/ToMixedPrecision/tvm.anf");
    let (_, result) = file.split_once("// ----\n").expect("the file has a result");
    let mut casts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut function = "";
    for line in result.lines() {
        if let Some((name, _)) = line.strip_prefix("def @").and_then(|rest| rest.split_once('(')) {
            function = name;
            casts.insert(name, 0);
        }
        *casts.entry(function).or_default() += line.matches("astype(").count();
    }
    for (name, of_tvm) in CASTS_OF_TVM {
        assert!(casts[name] <= of_tvm, "{name}: {} casts, and {of_tvm} in TVM", casts[name]);
    }
}
