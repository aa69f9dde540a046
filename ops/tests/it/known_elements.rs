//! Known elements of small integer tensors in types, and the types of tensors with computed shapes.

use anfora_ir::{Source, parse_module, verify_module};

/// Returns the type of a block over `%x: Tensor[(n, m, 4), float32]`, `%i: Tensor[(2,), int64]` and
/// `%c: bool`.
fn type_of(block: &str) -> String {
    let text = format!("def @main(%x: Tensor[(n, m, 4), float32], %i: Tensor[(2,), int64], %c: bool) {{ {block} }}");
    let registry = anfora_ops::standard();
    let module = parse_module(Source::new("test.anf", text.as_str()), registry.clone())
        .unwrap_or_else(|e| panic!("{text}\n{}", e[0]));
    verify_module(&module).unwrap_or_else(|e| panic!("{text}\n{}", e[0]));
    // The printed text contains the whole type.
    let printed = module.to_text();
    let again =
        parse_module(Source::new("test.anf", printed.as_str()), registry).unwrap_or_else(|e| panic!("{}", e[0]));
    assert_eq!(again.to_text(), printed);
    assert!(anfora_ir::first_difference(&module, &again).is_none());
    let (_, function) = module.functions().next().expect("the program has a function");
    module.cx.type_text(function.body.type_of(function.body.root()))
}

#[track_caller]
fn check(block: &str, expected: &str) {
    assert_eq!(type_of(block), expected, "{block}");
}

const SHAPE: &str = "let %s = shape_of(%x); let %n = take(%s, 0); let %m = take(%s, 1);";

#[test]
fn extents_are_elements() {
    check("shape_of(%x)", "Tensor[(3,), int64, [n, m, 4]]");
    check("shape_of(%x, start=1)", "Tensor[(2,), int64, [m, 4]]");
    check("size(%x)", "Tensor[(), int64, 4 * n * m]");
    check("shape_of(%i)", "Tensor[(1,), int64, [2]]");
    check("shape_to_tensor(shape=shape(n, n * 2, 7))", "Tensor[(3,), int64, [n, 2 * n, 7]]");
    check("shape_to_tensor(shape=shape())", "Tensor[(0,), int64]");
    check("full(shape_to_tensor(shape=shape(m * 4, n)), value=1f)", "Tensor[(4 * m, n), float32]");
    check("full(shape_to_tensor(shape=shape(floordiv(n, 2))), value=1f)", "Tensor[(floordiv(n, 2),), float32]");
}

#[test]
fn elements_move() {
    check("take(shape_of(%x), 1)", "Tensor[(), int64, m]");
    check("take(shape_of(%x), dense<Tensor[(2,), int64]>[2, -3])", "Tensor[(2,), int64, [4, n]]");
    check("strided_slice(shape_of(%x), begin=[0], end=[2])", "Tensor[(2,), int64, [n, m]]");
    check("strided_slice(shape_of(%x), begin=[-1], end=[-9], strides=[-2])", "Tensor[(2,), int64, [4, n]]");
    check("concat(shape_of(%x, end=1), %i, dense<Tensor[(1,), int64]>[7])", "Tensor[(4,), int64, [n, ?, ?, 7]]");
    check("split(shape_of(%x), indices=[1]).1", "Tensor[(2,), int64, [m, 4]]");
    check("expand_dims(take(shape_of(%x), 0), axis=[0])", "Tensor[(1,), int64, [n]]");
    check("squeeze(shape_of(%x, end=1), axis=[0])", "Tensor[(), int64, n]");
    check("broadcast_to(take(shape_of(%x), 0), dense<Tensor[(2,), int64]>[2, 1])", "Tensor[(2, 1), int64, [n, n]]");
    check("tile(shape_of(%x, start=1), dense<Tensor[(1,), int64]>[2])", "Tensor[(4,), int64, [m, 4, m, 4]]");
    check(
        "permute_dims(reshape(concat(shape_of(%x), dense<Tensor[(1,), int64]>[1]), dense<Tensor[(2,), int64]>[2, 2]))",
        "Tensor[(2, 2), int64, [n, 4, m, 1]]",
    );
    check("take(shape_of(%x), take(%i, 0))", "Tensor[(), int64]");
}

#[test]
fn elements_are_computed_with() {
    for (expression, expected) in [
        ("add(%n, 1i64)", "n + 1"),
        ("subtract(%n, %m)", "n - m"),
        ("subtract(%n, %n)", "0"),
        ("multiply(%n, %m)", "n * m"),
        ("divide(multiply(%n, 6i64), 3i64)", "2 * n"),
        ("divide(%n, 3i64)", "floordiv(n, 3)"),
        ("floor_divide(subtract(%n, 5i64), 3i64)", "floordiv(n - 5, 3)"),
        ("mod(%n, 3i64)", "mod(n, 3)"),
        ("negative(%n)", "0 - n"),
        ("abs(negative(%n))", "n"),
        ("maximum(%n, 0i64)", "n"),
        ("minimum(%n, add(%n, 1i64))", "n"),
        ("maximum(%n, %m)", "max(n, m)"),
        ("add_n(%n, %m, 1i64)", "n + m + 1"),
        ("where(equal(%n, -1i64), 5i64, %n)", "n"),
        ("where(%c, %n, %n)", "n"),
        ("astype(less(%n, 0i64), dtype=int64)", "0"),
        ("astype(greater_equal(add(%n, %m), 0i64), dtype=int64)", "1"),
        ("astype(not_equal(%n, %n), dtype=int64)", "0"),
        ("prod(%s)", "4 * n * m"),
        ("sum(%s)", "n + m + 4"),
        ("max(concat(expand_dims(%n, axis=[0]), dense<Tensor[(1,), int64]>[0]))", "n"),
        ("power(take(%s, 2i64), 2i64)", "16"),
        ("clip(take(%s, 2i64), 5i64, 9i64)", "5"),
        ("argmax(dense<Tensor[(3,), int64]>[1, 7, 2])", "1"),
    ] {
        check(&format!("{SHAPE} {expression}"), &format!("Tensor[(), int64, {expected}]"));
    }
    check("arange(take(shape_of(%x), 0), add(take(shape_of(%x), 0), 2i64), 1i64)", "Tensor[(2,), int64, [n, n + 1]]");
    check("full(shape_of(%i), value=9i64)", "Tensor[(2,), int64, [9, 9]]");
}

#[test]
fn what_is_not_known_is_not_said() {
    for expression in [
        "divide(subtract(%n, 5i64), 3i64)",
        "mod(subtract(%n, 5i64), 3i64)",
        "abs(subtract(%n, 5i64))",
        "where(equal(%n, 3i64), 5i64, %n)",
        "where(%c, %n, %m)",
        "multiply(%n, 9223372036854775807i64)",
        "add(take(%i, 0), %n)",
    ] {
        let found = type_of(&format!("{SHAPE} {expression}"));
        assert!(found == "Tensor[(), int64]" || found.contains("9223372036854775807 * n"), "{expression}: {found}");
    }
    check("astype(shape_of(%x), dtype=int32)", "Tensor[(3,), int32, [?, ?, 4]]");
    check("astype(300i64, dtype=int8)", "Tensor[(), int8]");
    check("multiply(100i8, 2i8)", "Tensor[(), int8]");
    check("add(9223372036854775807i64, 1i64)", "Tensor[(), int64]");
}

#[test]
fn shapes_are_elements() {
    for (expression, expected) in [
        ("reshape(%x, concat(expand_dims(%n, axis=[0]), dense<Tensor[(1,), int64]>[-1]))", "n, 4 * m"),
        ("reshape(%x, concat(dense<Tensor[(1,), int64]>[-1], expand_dims(%m, axis=[0])))", "4 * n, m"),
        ("reshape(%x, concat(dense<Tensor[(2,), int64]>[2, -1], shape_of(%x, end=2)), allowzero=true)", "2, 2, n, m"),
        ("reshape(%x, expand_dims(prod(%s), axis=[0]))", "4 * n * m"),
        ("reshape(%x, expand_dims(take(%i, 0i64), axis=[0]))", "4 * n * m"),
        ("full(strided_slice(%s, begin=[1], end=[3]), value=0.0f32)", "m, 4"),
        ("broadcast_to(take(%x, 0i64, axis=2), concat(dense<Tensor[(1,), int64]>[3], shape_of(%x, end=2)))", "3, n, m"),
        ("tile(%x, %s)", "n * n, m * m, 16"),
        ("astype(arange(0i64, %n, 1i64), dtype=float32)", "n"),
        ("astype(arange(%m, %n, 2i64), dtype=float32)", "max(ceildiv(n - m, 2), 0)"),
    ] {
        let comma = if expected.contains(", ") && !expected.starts_with("max") { "" } else { "," };
        check(&format!("{SHAPE} {expression}"), &format!("Tensor[({expected}{comma}), float32]"));
    }
}

#[test]
fn ranges_of_extents_are_extents() {
    let slice = |begin: &str, end: &str| format!("{SHAPE} dynamic_strided_slice(%x, {begin}, {end})");
    let list = |n: i64| format!("dense<Tensor[(1,), int64]>[{n}]");
    let extent = |of: &str| format!("expand_dims({of}, axis=[0])");
    for (begin, end, expected) in [
        (list(0), extent("%n"), "n"),
        (list(0), extent("%m"), "min(n, m)"),
        (list(0), extent("add(%n, 3i64)"), "n"),
        (list(0), list(3), "min(n, 3)"),
        (list(0), list(i64::MAX), "n"),
        // It is not known if the range is empty, or where it begins.
        (list(1), list(i64::MAX), "?"),
        (list(0), list(-1), "?"),
        (list(0), extent("subtract(%m, 1i64)"), "?"),
        (extent("%m"), extent("%n"), "?"),
        (list(0), extent("take(%i, 0i64)"), "?"),
    ] {
        check(&slice(&begin, &end), &format!("Tensor[({expected}, m, 4), float32]"));
    }
    // The same of attributes, of some axes, and of steps.
    check("strided_slice(%x, begin=[0], end=[3])", "Tensor[(min(n, 3), m, 4), float32]");
    check("strided_slice(%x, begin=[0], end=[3], strides=[2])", "Tensor[(?, m, 4), float32]");
    let axis = |axis: i64, stride: i64| {
        let (begin, end) = (list(0), extent("%n"));
        format!("{SHAPE} dynamic_strided_slice(%x, {begin}, {end}, {}, {})", list(axis), list(stride))
    };
    check(&axis(-2, 1), "Tensor[(n, min(n, m), 4), float32]");
    check(&axis(1, -1), "Tensor[(n, ?, 4), float32]");
    let long = "let %y = concat(%x, %x);";
    check(
        &format!("{SHAPE} {long} dynamic_strided_slice(%y, {}, {})", extent("%n"), list(i64::MAX)),
        "Tensor[(n, m, 4), float32]",
    );
    check(
        &format!("{SHAPE} {long} dynamic_strided_slice(%y, {}, {})", list(0), extent("negative(%n)")),
        "Tensor[(?, m, 4), float32]",
    );
}

#[test]
fn an_extent_broadcasts_with_itself_where_it_is_clamped() {
    // If n > 8, the call fails; if n is 1, both extents are 1.
    check("add(strided_slice(%x, begin=[0], end=[8]), %x)", "Tensor[(n, m, 4), float32]");
    check("add(%x, strided_slice(%x, begin=[0], end=[8]))", "Tensor[(n, m, 4), float32]");
    // min(n, 1) broadcasts with every n, and so does min(n, m) where m is 1.
    check("add(strided_slice(%x, begin=[0], end=[1]), %x)", "Tensor[(?, m, 4), float32]");
    check(
        &format!(
            "{SHAPE} add(dynamic_strided_slice(%x, dense<Tensor[(1,), int64]>[0], expand_dims(%m, axis=[0])), %x)"
        ),
        "Tensor[(?, m, 4), float32]",
    );
}

#[test]
fn a_zero_that_a_reshape_may_copy_is_no_extent() {
    // `m` may be 0, and then the first extent is `n`.
    check(&format!("{SHAPE} reshape(%x, concat(expand_dims(%m, axis=[0]), %i))"), "Tensor[(?, ?, ?), float32]");
    check(
        &format!("{SHAPE} reshape(%x, concat(expand_dims(%m, axis=[0]), %i), allowzero=true)"),
        "Tensor[(m, ?, ?), float32]",
    );
    check(
        &format!("{SHAPE} reshape(%x, concat(expand_dims(add(%m, 1i64), axis=[0]), %i))"),
        "Tensor[(m + 1, ?, ?), float32]",
    );
    check(
        &format!("{SHAPE} reshape(%x, concat(expand_dims(multiply(%n, 3i64), axis=[0]), %i))"),
        "Tensor[(3 * n, ?, ?), float32]",
    );
}

#[test]
fn branches_have_elements_in_common() {
    check("if (%c) { 1i64 } else { 1i64 }", "Tensor[(), int64, 1]");
    check("if (%c) { 1i64 } else { 2i64 }", "Tensor[(), int64]");
    check("if (%c) { shape_of(%x) } else { concat(shape_of(%x, end=1), %i) }", "Tensor[(3,), int64, [n, ?, ?]]");
}

#[test]
fn a_known_condition_selects_a_branch() {
    check("if (true) { 1i64 } else { 2i64 }", "Tensor[(), int64, 1]");
    check("if (equal(size(shape_of(%x)), 2i64)) { %x } else { 1f }", "Tensor[(), float32]");
    check(&format!("{SHAPE} if (less(%n, add(%n, 1i64))) {{ %x }} else {{ (%x, %i) }}"), "Tensor[(n, m, 4), float32]");
    check(&format!("{SHAPE} if (less(%n, %m)) {{ %x }} else {{ 1f }}"), "Tensor[?, float32]");
}

#[test]
fn functions_pass_elements_on() {
    check(
        "let %f = fn(%y: Tensor[(k,), float32]) { shape_of(%y) }; %f(take(take(%x, 0, axis=2), 0, axis=1))",
        "Tensor[(1,), int64, [n]]",
    );
    check(
        "let %f = fn(%k: Tensor[(), int64, k]) { full(expand_dims(%k, axis=[0]), value=0.0f32) }; %f(take(shape_of(%x), 1))",
        "Tensor[(m,), float32]",
    );
    check(
        "let %f = fn(%k: int64) { full(expand_dims(%k, axis=[0]), value=0.0f32) }; %f(3i64)",
        "Tensor[(?,), float32]",
    );
    check(
        "let %k = match_cast(take(%i, 0), to=Tensor[(), int64, k]); full(expand_dims(%k, axis=[0]), value=0.0f32)",
        "Tensor[(k,), float32]",
    );
}

#[test]
fn elements_that_a_type_cannot_say_are_mistakes() {
    for (ty, message) in [
        ("Tensor[(2,), int64, [1]]", "1 elements, but Tensor[(2,), int64] has 2"),
        ("Tensor[(2,), float32, [1, 2]]", "the elements of Tensor[(2,), float32] cannot be said"),
        ("Tensor[?, int64, [1]]", "the elements of Tensor[?, int64] cannot be said"),
        ("Tensor[(n,), int64, [1]]", "the elements of Tensor[(n,), int64] cannot be said"),
        ("Tensor[(), int8, 300]", "Tensor[(), int8] cannot have such elements"),
        ("Tensor[(), int32, n]", "Tensor[(), int32] cannot have such elements"),
    ] {
        let text = format!("def @main(%x: {ty}) {{ %x }}");
        let errors = parse_module(Source::new("test.anf", text.as_str()), anfora_ops::standard()).expect_err(ty);
        assert_eq!(errors[0].message, message);
    }
}
