//! ToMixedPrecision, beside TVM's pass of this name.

use std::collections::{BTreeMap, BTreeSet};

use anfora_ir::{Attr, DType, Element, EntityId, FunctionBuilder, Literal, Module};
use anfora_passes::{FoldBudget, LowPrecision, PrecisionOptions, fold_constant, to_mixed_precision};
use half::{bf16, f16};

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

/// Returns numbers of all magnitudes up to a largest one, infinities and NaNs.
fn numbers(largest: f32) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(3);
    let drawn = std::iter::repeat_with(|| f32::from_bits(random.u32(..)));
    let mut numbers: Vec<f32> = drawn.filter(|x| !x.is_finite() || x.abs() <= largest).take(5000).collect();
    numbers.extend([largest, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, -f32::NAN, 0.0, -0.0, f32::MIN_POSITIVE]);
    // Halfway between two neighbours, and just beyond.
    numbers.extend([1.0 + 2f32.powi(-11), 1.0 + 3.0 * 2f32.powi(-11), 1.0 + 2f32.powi(-9), 2f32.powi(-25)]);
    numbers
}

/// Checks that the constant of a product is converted as `astype` converts it.
fn constants_agree<T: Element>(to: LowPrecision, largest: f32) {
    let numbers = numbers(largest);
    let weight = Literal::from_elements(&[numbers.len()], &numbers).unwrap();
    let mut module = Module::new(anfora_ops::standard());
    let mut f = FunctionBuilder::new(&mut module, "main");
    let ty = f.cx().types.static_tensor(DType::Float32, &[numbers.len()]);
    let (x, w) = (f.param("x", ty), f.literal(weight));
    let product = f.call_op("matmul", &[x, w], &[]).unwrap();
    let product = f.bind("p", product);
    let cast = f.cx().attr(Attr::DType(T::DTYPE));
    let cast = f.call_op("astype", &[w], &[("dtype", cast)]).unwrap();
    let cast = f.bind("c", cast);
    let pair = f.tuple(&[product, cast]);
    let key = f.finish(pair).unwrap();
    to_mixed_precision(&mut module, &PrecisionOptions { to, ..PrecisionOptions::default() }).unwrap();
    let (function, cx) = module.get_mut(key).unwrap();
    fold_constant(cx, function, FoldBudget::default()).unwrap();
    // Equal constants are one constant.
    let body = &module.get(key).unwrap().body;
    let literals: BTreeSet<usize> = body
        .exprs()
        .filter_map(|(id, _)| body.as_literal(id))
        .filter(|&id| module.cx.literals.get(id).dtype() == T::DTYPE)
        .map(|id| id.index())
        .collect();
    assert_eq!(literals.len(), 1, "they differ");
    assert_eq!(module.to_text().matches("astype(").count(), 2, "those of the parameter and of the result");
}

#[test]
fn constants_are_converted_as_by_casts() {
    constants_agree::<f16>(LowPrecision::Float16, 65504.0);
    constants_agree::<bf16>(LowPrecision::BFloat16, bf16::MAX.to_f32());
}
