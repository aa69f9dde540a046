//! ToMixedPrecision, beside TVM's pass of this name.

use std::collections::{BTreeMap, BTreeSet};

use anfora_interp::Interpreter;
use anfora_ir::{
    Attr, DType, Element, EntityId, ExprId, FunctionBuilder, Literal, Module, TypeId, Visibility, verify_module,
};
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

/// Binds a value of `x` and `w` to a variable of a type.
type BoundValue = fn(&mut FunctionBuilder<'_>, [ExprId; 2]) -> ExprId;

fn product(f: &mut FunctionBuilder<'_>, operands: [ExprId; 2]) -> ExprId {
    f.call_op("matmul", &operands, &[]).unwrap()
}

/// A variable of the type `Any`, or a tuple with it, does not show the elements of its value, so
/// these stay as they are.
#[test]
fn values_of_variables_that_hide_their_elements_keep_them() {
    let atom: BoundValue = |f, operands| {
        let value = product(f, operands);
        f.bind("p", value)
    };
    let of_function: BoundValue = |f, operands| {
        let callee = f.global("product");
        f.call(callee, &operands).unwrap()
    };
    let field: BoundValue = |f, operands| {
        let value = product(f, operands);
        let p = f.bind("p", value);
        let tuple = f.tuple(&[p, p]);
        let tuple = f.bind("t", tuple);
        f.proj(tuple, 0).unwrap()
    };
    let choice: BoundValue = |f, [x, w]| {
        let mut block = |operands| {
            f.open_block();
            let value = product(f, operands);
            f.close_block(value).unwrap()
        };
        let (left, right) = (block([x, w]), block([w, x]));
        let condition = f.literal(Literal::scalar(true));
        f.if_(condition, left, right).unwrap()
    };
    for (name, value) in
        [("call", product as BoundValue), ("atom", atom), ("function", of_function), ("field", field), ("if", choice)]
    {
        for is_tuple in [false, true] {
            let mut module = Module::new(anfora_ops::standard());
            let tensor = module.cx.types.static_tensor(DType::Float32, &[2, 2]);
            let any = module.cx.types.any();
            let pair = module.cx.types.tuple(&[any, tensor]);
            let mut f = FunctionBuilder::new(&mut module, "product");
            f.visibility(Visibility::Private);
            let operands = [f.param("x", tensor), f.param("w", tensor)];
            let result = product(&mut f, operands);
            f.finish(result).unwrap();
            let mut f = FunctionBuilder::new(&mut module, "f");
            let operands = [f.param("x", tensor), f.param("w", tensor)];
            let value = value(&mut f, operands);
            let hidden = if is_tuple {
                let value = f.bind("value", value);
                let tuple = f.tuple(&[value, value]);
                let both = f.declare_var("both", pair);
                f.bind_var(both, tuple, None);
                let hidden = f.proj(both.expr(), 0).unwrap();
                f.bind("hidden", hidden)
            } else {
                let hidden = f.declare_var("hidden", any);
                f.bind_var(hidden, value, None);
                hidden.expr()
            };
            let to = cast_to(&mut f, hidden, tensor);
            f.finish(to).unwrap();
            verify_module(&module).unwrap();
            let before = module.to_text();
            to_mixed_precision(&mut module, &PrecisionOptions::default()).unwrap();
            verify_module(&module).unwrap_or_else(|errors| panic!("{name}: {}\n{before}\n{module}", errors[0]));
            let ones = Literal::from_elements(&[2, 2], &[1f32; 4]).unwrap();
            let outcome = Interpreter::new(&module).run("f", &[ones.clone(), ones]);
            let outcome = outcome.unwrap_or_else(|error| panic!("{name}: {error}\n{before}\n{module}"));
            assert_eq!(outcome.tensor().unwrap().elements::<f32>().unwrap().as_ref(), [2f32; 4], "{name}");
        }
    }
}

/// Binds the cast of a value to a type.
fn cast_to(f: &mut FunctionBuilder<'_>, value: ExprId, ty: TypeId) -> ExprId {
    let cast = f.editor().match_cast(value, ty).unwrap();
    f.bind("cast", cast)
}
