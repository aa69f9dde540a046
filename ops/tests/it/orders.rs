//! The rules that write calls for operands in another order of axes, on the calls of every operator
//! with operands of every element type: the results are the same, in the order that the rule
//! states.

use anfora_ir::{
    AttrId, AxisOrder, Context, DType, ExprId, FunctionBuilder, LayoutRequest, Literal, Module, Relayout, element_count,
};

use crate::cases::cases;
use crate::rows::{Call, run};

/// Returns the orders of axes in which a call is written.
fn orders(rank: usize) -> Vec<AxisOrder> {
    let last: Vec<usize> = [0].into_iter().chain(2..rank).chain([1]).take(rank).collect();
    let swapped: Vec<usize> = (0..rank).map(|axis| if axis < 2 && rank > 1 { 1 - axis } else { axis }).collect();
    [last, swapped, (0..rank).rev().collect()].iter().filter_map(|axes| AxisOrder::new(axes)).collect()
}

/// Returns a tensor in another order of axes, as an operand that broadcasts to that many axes.
fn reordered(cx: &mut Context, x: &Literal, order: &AxisOrder) -> Literal {
    let added = order.rank() - x.rank();
    if x.rank() == 0 {
        return x.clone();
    }
    let shape: Vec<usize> = vec![1; added].into_iter().chain(x.shape().iter().copied()).collect();
    let axes: Vec<i64> = order.axes().iter().map(|&axis| axis as i64).collect();
    let axes = cx.ints_attr(&axes);
    run(cx, "permute_dims", &[Some(x.reshaped(&shape).unwrap())], &[("axes", axes)]).unwrap().1.remove(0)
}

/// Returns the answer of the row of a call.
fn answer(module: &mut Module, op: &str, call: &Call, request: &LayoutRequest<'_>) -> Option<Relayout> {
    let mut f = FunctionBuilder::new(module, "f");
    let operands: Vec<ExprId> = call
        .operands
        .iter()
        .map(|o| match o {
            Some(literal) => f.literal(literal.clone()),
            None => f.editor().none(),
        })
        .collect();
    let made = f.call_op(op, &operands, &call.attrs).unwrap();
    let editor = f.editor();
    Relayout::of(editor.cx, editor.body, made, request).unwrap()
}

fn numbers(cx: &mut Context, x: &Literal) -> Vec<f64> {
    let to = cx.attr(anfora_ir::Attr::DType(DType::Float64));
    let wide = run(cx, "astype", &[Some(x.clone())], &[("dtype", to)]).unwrap().1.remove(0);
    wide.elements::<f64>().map(|e| e.into_owned()).unwrap_or_default()
}

fn magnitudes(cx: &mut Context, x: &Literal) -> Literal {
    run(cx, "abs", &[Some(x.clone())], &[]).unwrap().1.remove(0)
}

/// Checks that two results are equal; floats up to rounding.
fn check_equal(cx: &mut Context, place: &str, found: &Literal, expected: &Literal) {
    assert_eq!((found.dtype(), found.shape()), (expected.dtype(), expected.shape()), "{place}");
    if !found.dtype().is_float() {
        assert_eq!(found.to_bytes(), expected.to_bytes(), "{place}");
        return;
    }
    if element_count(found.shape()) == Some(0) {
        return;
    }
    let nearness = if found.dtype().bits() == 16 { 0.02 } else { 1e-4 };
    let (a, b) = (numbers(cx, found), numbers(cx, expected));
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        let is_near = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= nearness * b.abs().max(1.0);
        assert!(is_near, "{place}: element {i} is {a}, not {b}");
    }
}

/// Evaluates a call that a rule has written, and compares it with the call that it was written for.
fn check_answer(cx: &mut Context, place: &str, op: &str, call: &Call, answer: &Relayout) {
    let expected = run(cx, op, &call.operands, &call.attrs).unwrap_or_else(|e| panic!("{place}: {e}")).1;
    let mut operands = call.operands.clone();
    for (operand, order) in operands.iter_mut().zip(&answer.operands) {
        if let (Some(x), Some(order)) = (&operand, order) {
            *operand = Some(reordered(cx, x, order));
        }
    }
    for (i, literal) in &answer.constants {
        operands[*i] = Some(literal.clone());
    }
    let mut attrs: Vec<(&str, AttrId)> = call.attrs.clone();
    for (name, value) in &answer.attrs {
        attrs.retain(|(other, _)| other != name);
        attrs.push((name, value.intern(cx)));
    }
    let results = run(cx, op, &operands, &attrs).unwrap_or_else(|e| panic!("{place}: {e}")).1;
    assert_eq!(results.len(), expected.len(), "{place}");
    // No kernel moves elements of a few bits.
    let both = results.iter().zip(&expected).enumerate().filter(|(_, (_, plain))| plain.dtype().has_kernels());
    for (i, (found, plain)) in both {
        let expected = match answer.results.get(i).and_then(Option::as_ref) {
            Some(order) => reordered(cx, plain, order),
            None => plain.clone(),
        };
        check_equal(cx, place, found, &expected);
    }
}

#[test]
fn calls_on_operands_in_another_order_agree() {
    let registry = anfora_ops::standard();
    let mut answered = 0;
    for (op, row) in registry.rows().filter(|(_, row)| row.relayout.is_some()) {
        let name = row.name.as_ref();
        let (mut of_row, mut has_axes) = (0, false);
        for (number, case) in cases(name).into_iter().flatten().enumerate() {
            for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
                for splats in [0, 1] {
                    let mut module = Module::new(registry.clone());
                    let typed = Call::typed(&mut module.cx, op, &case, number, dtype, splats);
                    let Some(mut call) = typed else { continue };
                    if name == "log_sum" {
                        // The logarithm of a sum that cancels depends on the order of the sum.
                        let x = call.operands[0].take().map(|x| magnitudes(&mut module.cx, &x));
                        call.operands[0] = x;
                    }
                    let ranks: Vec<Option<usize>> = call.operands.iter().map(|o| Some(o.as_ref()?.rank())).collect();
                    for (operand, rank) in ranks.into_iter().enumerate() {
                        let Some(rank) = rank.filter(|&rank| rank > 1) else { continue };
                        has_axes = true;
                        for order in orders(rank) {
                            let request = LayoutRequest::Follow { operand, order: &order };
                            let Some(answer) = answer(&mut module, name, &call, &request) else { continue };
                            let place = format!("{name}, case {number}, {dtype}, operand {operand} as {order:?}");
                            check_answer(&mut module.cx, &place, name, &call, &answer);
                            of_row += 1;
                        }
                    }
                }
            }
        }
        assert!(of_row > 0 || !has_axes, "{name} has a rule, and no case that it answers");
        answered += of_row;
    }
    assert!(answered > 1000);
}

#[test]
fn convolutions_have_any_layout_of_data_and_kernel() {
    let registry = anfora_ops::standard();
    let letters = |plain: &str| -> Vec<String> {
        let reversed: String = plain.chars().rev().collect();
        let last: String = plain.chars().take(1).chain(plain.chars().skip(2)).chain(plain.chars().nth(1)).collect();
        let first: String = plain.chars().skip(2).chain(plain.chars().take(2)).collect();
        vec![plain.to_owned(), reversed, last, first]
    };
    for axes in 1..=3 {
        let spatial = &["W", "HW", "DHW"][axes - 1];
        for suffix in ["", "_transpose"] {
            let name = format!("nn.conv{axes}d{suffix}");
            let op = registry.find(&name).unwrap();
            for (number, case) in cases(&name).unwrap().iter().enumerate() {
                for &dtype in DType::ALL.iter().filter(|d| d.has_kernels()) {
                    let mut module = Module::new(registry.clone());
                    let Some(call) = Call::typed(&mut module.cx, op, case, number, dtype, 0) else { continue };
                    for data in letters(&format!("NC{spatial}")) {
                        for kernel in letters(&format!("OI{spatial}")) {
                            let request = LayoutRequest::Letters { data: &data, kernel: Some(&kernel) };
                            let answer = answer(&mut module, &name, &call, &request).unwrap();
                            let place = format!("{name}, case {number}, {dtype}, {data}, {kernel}");
                            check_answer(&mut module.cx, &place, &name, &call, &answer);
                        }
                    }
                }
            }
        }
    }
}

/// Returns the error of the type rule for a call with an attribute.
fn refused(op: &str, shapes: &[&[usize]], name: &str, layout: &str) -> String {
    let mut cx = Context::new(anfora_ops::standard());
    let operands: Vec<Option<Literal>> = shapes.iter().map(|shape| Some(Literal::splat(shape, 1f32))).collect();
    let layout = if layout.parse::<i64>().is_ok() { cx.int_attr(layout.parse().unwrap()) } else { cx.str_attr(layout) };
    run(&mut cx, op, &operands, &[(name, layout)]).unwrap_err()
}

#[test]
fn other_letters_and_axes_are_refused() {
    let image: &[&[usize]] = &[&[1, 2, 3, 3], &[2, 2, 1, 1]];
    for layout in ["NHW", "NHWCC", "NHHC", "nhwc", ""] {
        let error = refused("nn.conv2d", image, "data_layout", layout);
        assert!(error.contains("the letters of \"NCHW\" in some order are expected"), "{error}");
    }
    assert!(refused("nn.conv2d", image, "kernel_layout", "NCHW").contains("the letters of \"OIHW\""));
    assert!(refused("nn.global_avg_pool2d", &image[..1], "layout", "NCWHD").contains("the letters of \"NCHW\""));
    let scales: &[&[usize]] = &[&[1, 2, 3], &[2], &[2]];
    for axis in ["0", "3", "-3", "-4"] {
        let error = refused("nn.instance_norm", scales, "axis", axis);
        assert!(error.contains("no axis of channels"), "{error}");
    }
    // The extents are those of the layout.
    assert!(refused("nn.conv2d", image, "data_layout", "NHWC").contains("the number of channels"));
}
