//! Single calls on constants, as in constant folding.

use anfora_interp::{Evaluated, OpError, OpLimits, evaluate_op, random_tensor};
use anfora_ir::{Attr, Context, DType, Literal, infer_op};

fn evaluate(
    op: &str,
    operands: &[Option<Literal>],
    attrs: &[(&str, Attr)],
    max: usize,
) -> Result<Vec<Literal>, OpError> {
    within(op, operands, attrs, OpLimits { bytes: max, steps: u64::MAX })
}

fn within(
    op: &str,
    operands: &[Option<Literal>],
    attrs: &[(&str, Attr)],
    limits: OpLimits,
) -> Result<Vec<Literal>, OpError> {
    let mut cx = Context::new(anfora_ops::standard());
    let op = cx.ops.find(op).unwrap();
    let attrs: Vec<_> = attrs.iter().map(|(k, a)| (*k, cx.attr(a.clone()))).collect();
    let attrs = cx.named_attrs(&attrs);
    let list: Vec<_> = operands.iter().map(|o| cx.constant_operand(o.as_ref())).collect();
    let annotated = cx.types.error();
    let ty = infer_op(&mut cx, op, &list, attrs, annotated).unwrap();
    let operands: Vec<Option<&Literal>> = operands.iter().map(|o| o.as_ref()).collect();
    evaluate_op(&cx, op, attrs, &operands, ty, limits).results
}

#[test]
fn results_and_reasons_for_none() {
    let x = Literal::from_elements(&[3], &[1i32, 2, 3]).unwrap();
    let zero = Literal::scalar(0i32);
    let two = |op, max| evaluate(op, &[Some(x.clone()), Some(zero.clone())], &[], max);
    assert_eq!(two("add", 12), Ok(vec![x.clone()]));
    assert_eq!(two("add", 11), Err(OpError::TooLarge { bytes: 12, allowed: 11 }));
    assert_eq!(two("divide", 12).unwrap_err().to_string(), "integer division by zero");
    assert_eq!(evaluate("print", &[], &[], 100), Err(OpError::Impure));
    let dims = Attr::Type(Context::new(anfora_ops::standard()).types.any());
    assert_eq!(evaluate("match_cast", &[Some(zero.clone())], &[("to", dims)], 100), Err(OpError::NoKernel));
    // One float32 per element.
    let dropout = evaluate("nn.dropout", &[random_tensor(DType::Float32, &[8], 1)], &[], 40).unwrap();
    assert_eq!(dropout[1], Literal::splat(&[8], true));
}

#[test]
fn a_splat_counts_as_one_element() {
    let huge = Literal::splat(&[1 << 30, 1 << 30], 2f32);
    let sum = evaluate("add", &[Some(huge.clone()), Some(Literal::scalar(1f32))], &[], 4).unwrap();
    assert_eq!(sum, [Literal::splat(&[1 << 30, 1 << 30], 3f32)]);
    let shape = Literal::from_elements(&[2], &[1i64 << 30, 1 << 30]).unwrap();
    let one = evaluate("broadcast_to", &[Some(Literal::scalar(1u8)), Some(shape.clone())], &[], 1).unwrap();
    assert_eq!(one[0].shape(), &[1 << 30, 1 << 30]);
    let ramp = Literal::from_elements(&[2, 1], &[1u8, 2]).unwrap();
    let wide = Literal::from_elements(&[2], &[2i64, 1 << 40]).unwrap();
    let refused = evaluate("broadcast_to", &[Some(ramp), Some(wide)], &[], 1 << 20);
    assert_eq!(refused, Err(OpError::TooLarge { bytes: 1 << 41, allowed: 1 << 20 }));
}

#[test]
fn drawn_tensors_repeat() {
    for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
        let a = random_tensor(dtype, &[100], 3).unwrap();
        assert_eq!(Some(&a), random_tensor(dtype, &[100], 3).as_ref());
        assert_ne!(Some(a), random_tensor(dtype, &[100], 4));
    }
    assert_eq!(random_tensor(DType::String, &[1], 0), None);
    assert_eq!(random_tensor(DType::Int8, &[1 << 40, 1 << 40], 0), None);
}

#[test]
fn what_takes_too_many_steps_is_not_begun() {
    let splat = |shape: &[usize]| Some(Literal::splat(shape, 1f32));
    let long = |op: &str, operands: &[Option<Literal>], attrs: &[(&str, Attr)], steps: u64| {
        let limits = OpLimits { bytes: usize::MAX, steps: steps - 1 };
        assert_eq!(within(op, operands, attrs, limits), Err(OpError::TooLong { steps, allowed: steps - 1 }), "{op}");
    };
    let huge = 1 << 40;
    // The result is small, but the work is not.
    long("nn.gemm", &[splat(&[1, huge]), splat(&[huge, 1])], &[], 1 << 40);
    let plane = splat(&[1, 1, 1 << 20, 1 << 20]);
    long("nn.conv2d", &[plane.clone(), plane], &[], 1 << 40);
    long("topk", &[splat(&[huge]), Some(Literal::from_elements(&[1], &[1i64]).unwrap())], &[], (1 << 40) + 3);
    // The kernel copies a row for each element of a column that is not a splat.
    let column = Some(random_tensor(DType::Float32, &[2, 1], 1).unwrap());
    long("matmul", &[column, splat(&[1, huge])], &[], 1 << 41);
    long("add", &[splat(&[1 << 20, 1 << 20]), random_tensor(DType::Float32, &[1, 1 << 20], 1)], &[], 1 << 41);
    long("cumsum", &[splat(&[huge]), Some(Literal::scalar(0i64))], &[], (1 << 41) + 1);
    // Kernels whose result is a splat take no time.
    let limits = OpLimits { bytes: 64, steps: 8 };
    assert!(within("add", &[splat(&[huge]), splat(&[huge])], &[], limits).is_ok());
    assert!(within("sum", &[splat(&[huge, huge])], &[], limits).is_ok());
    assert!(within("shape_of", &[splat(&[huge, huge])], &[], limits).is_ok());
}

#[test]
fn extents_of_symbols_are_no_constants() {
    let mut cx = Context::new(anfora_ops::standard());
    let name = cx.names.intern("n");
    let symbol = cx.types.dims.new_symbol(name);
    let n = cx.types.dims.symbol(symbol);
    let (op, shape) = (cx.ops.find("shape_to_tensor").unwrap(), cx.attr(Attr::Shape([n].into())));
    let attrs = cx.named_attrs(&[("shape", shape)]);
    let annotated = cx.types.error();
    let ty = infer_op(&mut cx, op, &[], attrs, annotated).unwrap();
    let limits = OpLimits { bytes: 64, steps: 8 };
    let evaluated = evaluate_op(&cx, op, attrs, &[], ty, limits);
    assert_eq!(evaluated, Evaluated { results: Err(OpError::Symbolic), steps: 0 });
}
