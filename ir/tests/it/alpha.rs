//! Equality and hashing modulo the names of bound variables.

use std::sync::Arc;

use crate::tiny;
use crate::tiny::{SHAPES, Shape, add_deep, deep, deep_type_and_attribute, flag, module, vector};
use anfora_ir::{
    AlphaHasher, AlphaOptions, Attr, Cursor, DType, DimOp, Expr, ExprId, FunctionBuilder, LetFlags, Literal,
    MetaPolicy, Module, Step, Visibility, alpha_equal, alpha_equal_exprs, first_difference, first_difference_with,
    module_hash,
};
use anfora_testing::{depth, on_small_stack};
use fastrand::Rng;

fn assert_equal(a: &Module, b: &Module) {
    assert_eq!(first_difference(a, b).map(|d| d.to_string()), None);
    assert_eq!(first_difference(b, a).map(|d| d.to_string()), None);
    assert!(alpha_equal(a, b));
    assert_eq!(module_hash(a), module_hash(b));
}

fn assert_differ(a: &Module, b: &Module, what: &str) {
    let d = first_difference(a, b).expect("they differ").to_string();
    assert!(d.contains(what), "{d:?} does not say {what:?}");
    assert!(!alpha_equal(b, a));
    assert_ne!(module_hash(a), module_hash(b));
}

/// Returns a module whose tables have other ids than those of a new module.
fn shuffled() -> Module {
    let mut m = module();
    for i in 0..50 {
        m.cx.names.intern(&format!("other{i}"));
        m.cx.types.static_tensor(DType::Int8, &[i, 3]);
        m.cx.literals.intern(Literal::scalar(i as i32));
        m.cx.int_attr(i as i64 + 1000);
    }
    m
}

#[test]
fn names_of_variables_do_not_count() {
    for shape in SHAPES {
        let a = deep(shape, 5, "a", "multiply");
        let mut b = shuffled();
        add_deep(&mut b, "main", shape, 5, "another_", "multiply");
        assert_equal(&a, &b);
        assert_differ(&a, &deep(shape, 5, "a", "subtract"), "`multiply`");
        assert!(!alpha_equal(&a, &deep(shape, 6, "a", "multiply")));
    }
}

#[test]
fn the_first_difference_has_a_place() {
    let a = deep(Shape::NestedIf, 3, "a", "multiply");
    let b = deep(Shape::NestedIf, 3, "b", "subtract");
    let d = first_difference(&a, &b).unwrap();
    assert_eq!(d.what, "operators differ: `multiply` and `subtract`");
    assert_eq!(d.left_function.as_deref(), Some("main"));
    assert_eq!(d.left_path, ["ai", "ai", "ai", "ai"]);
    assert_eq!(d.right_path, ["bi", "bi", "bi", "bi"]);
    let d = first_difference(&deep(Shape::NestedIf, 100, "a", "add"), &deep(Shape::NestedIf, 100, "b", "subtract"))
        .unwrap();
    assert_eq!(d.left_path.len(), 9);
    assert_eq!(d.left_path[0], "…");
}

/// Returns `def @main(%x) { let %a = private(%x); let %b = private2(%a); %b }` with two private
/// functions of the given operators.
fn privates(names: [&str; 2], ops: [&str; 2], swap_order: bool) -> Module {
    let mut m = module();
    let v = vector(&mut m);
    let add_private = |m: &mut Module, name: &str, op: &str| {
        let mut b = FunctionBuilder::new(m, name);
        b.visibility(Visibility::Private);
        let x = b.param("x", v);
        let value = b.call_op(op, &[x], &[]).unwrap();
        let r = b.bind("r", value);
        b.finish(r).unwrap();
    };
    let mut todo = [(names[0], ops[0]), (names[1], ops[1])];
    if swap_order {
        todo.reverse();
    }
    for (name, op) in todo {
        add_private(&mut m, name, op);
    }
    let mut b = FunctionBuilder::new(&mut m, "main");
    let x = b.param("x", v);
    let (f, g) = (b.global(names[0]), b.global(names[1]));
    let first = b.call(f, &[x]).unwrap();
    let first = b.bind("a", first);
    let second = b.call(g, &[first]).unwrap();
    let second = b.bind("b", second);
    b.finish(second).unwrap();
    m
}

#[test]
fn names_of_private_functions_and_order_of_functions_do_not_count() {
    let a = privates(["f", "g"], ["negative", "random"], false);
    assert_equal(&a, &privates(["p", "q"], ["negative", "random"], false));
    assert_equal(&a, &privates(["g", "f"], ["negative", "random"], true));
    assert_differ(&a, &privates(["f", "g"], ["random", "negative"], false), "operators differ");
    let mut public = privates(["f", "g"], ["negative", "random"], false);
    let f = public.find("f").unwrap();
    public.get_mut(f).unwrap().0.visibility = Visibility::Public;
    assert!(!alpha_equal(&a, &public));
    let mut renamed = deep(Shape::Chain, 2, "", "add");
    let main = renamed.cx.find_global("main").unwrap();
    let other = renamed.cx.names.intern("other");
    assert!(renamed.rename(main, other));
    assert_differ(&deep(Shape::Chain, 2, "", "add"), &renamed, "@main");
}

#[test]
fn a_private_function_that_nobody_calls_counts() {
    let with = |op: &str| {
        let mut m = deep(Shape::Chain, 2, "", "add");
        let v = vector(&mut m);
        let mut b = FunctionBuilder::new(&mut m, "unused");
        b.visibility(Visibility::Private);
        let x = b.param("x", v);
        let r = b.call_op(op, &[x], &[]).unwrap();
        b.finish(r).unwrap();
        m
    };
    assert_equal(&with("negative"), &with("negative"));
    assert_differ(&with("negative"), &with("random"), "`negative`");
    assert_differ(&with("negative"), &deep(Shape::Chain, 2, "", "add"), "@unused");
}

/// Returns `def @main(%x: T[(n + m,)], %y: T[(n,)], %z: T[(m,)], min(n, m))`, with the symbols made
/// in either order.
fn symbolic(swap: bool, minimum_of_same: bool) -> Module {
    let mut m = module();
    let mut b = FunctionBuilder::new(&mut m, "main");
    let (n, k) = if swap {
        let k = b.symbol("b");
        (b.symbol("a"), k)
    } else {
        let n = b.symbol("n");
        (n, b.symbol("m"))
    };
    let types = &mut b.cx().types;
    let sum = types.dims.add(n, k);
    let least = types.dims.op(DimOp::Min, if minimum_of_same { sum } else { n }, k);
    let types: Vec<_> = [sum, n, k, least].map(|d| types.tensor(DType::Float32, &[d])).into();
    let mut x = None;
    for t in types {
        x = Some(b.param("x", t));
    }
    b.finish(x.unwrap()).unwrap();
    m
}

#[test]
fn symbolic_dimensions_correspond_whatever_order_they_were_made_in() {
    assert_equal(&symbolic(false, false), &symbolic(true, false));
    let d = first_difference(&symbolic(false, false), &symbolic(true, true)).unwrap();
    assert!(d.what.contains("dimensions differ"), "{d}");
    // The shape (n, n) differs from (n, m).
    let square = |same: bool| {
        let mut m = module();
        let mut b = FunctionBuilder::new(&mut m, "main");
        let (n, k) = (b.symbol("n"), b.symbol("k"));
        let t = b.cx().types.tensor(DType::Float32, &[n, if same { n } else { k }]);
        let x = b.param("x", t);
        b.finish(x).unwrap();
        m
    };
    assert_differ(&square(true), &square(false), "parameter 0");
}

#[test]
fn computed_dimensions_are_equal_only_to_their_like() {
    // Each of the same two symbols.
    let of = |kind: usize| {
        let mut m = module();
        let mut b = FunctionBuilder::new(&mut m, "main");
        let (n, k) = (b.symbol("n"), b.symbol("k"));
        let given = b.cx().types.tensor(DType::Float32, &[n, k]);
        b.param("x", given);
        let dims = &mut b.cx().types.dims;
        let dim = match kind {
            0 => dims.add(n, k),
            1 => dims.mul(n, k),
            2 => dims.op(DimOp::Max, n, k),
            3 => dims.op(DimOp::Min, n, k),
            _ => dims.op(DimOp::FloorDiv, n, k),
        };
        let ty = b.cx().types.tensor(DType::Float32, &[dim]);
        let y = b.param("y", ty);
        b.finish(y).unwrap();
        m
    };
    for a in 0..5 {
        for b in 0..5 {
            assert_eq!(alpha_equal(&of(a), &of(b)), a == b, "{a} and {b}");
        }
    }
}

#[test]
fn constants_attributes_sharing_and_regions_count() {
    let with = |value: f32, axis: i64, shared: bool, dataflow: bool| {
        let mut m = shuffled();
        let v = vector(&mut m);
        let mut b = FunctionBuilder::new(&mut m, "main");
        let x = b.param("x", v);
        if dataflow {
            b.begin_dataflow();
        }
        let c = b.literal(Literal::splat(&[8], value));
        let axis = b.cx().int_attr(axis);
        let p = b.call_op("flip", &[x], &[("axis", axis)]).unwrap();
        let q = if shared { p } else { b.call_op("flip", &[x], &[("axis", axis)]).unwrap() };
        let sum = b.call_op("add", &[p, q], &[]).unwrap();
        let r = b.call_op("multiply", &[sum, c], &[]).unwrap();
        let r = b.bind("r", r);
        b.end_dataflow(&[r]);
        b.finish(r).unwrap();
        m
    };
    let a = with(1.0, 3, false, false);
    assert_equal(&a, &with(1.0, 3, false, false));
    assert_differ(&a, &with(2.0, 3, false, false), "constant");
    assert_differ(&with(0.0, 3, false, false), &with(-0.0, 3, false, false), "constant");
    assert_differ(&a, &with(1.0, 4, false, false), "`axis` is 3 and 4");
    assert_differ(&a, &with(1.0, 3, true, false), "uses a value again");
    assert_differ(&a, &with(1.0, 3, false, true), "dataflow");
}

#[test]
fn what_tools_carry_along_counts_if_asked_for() {
    let with = |note: Option<&str>| {
        let mut m = deep(Shape::Chain, 2, "", "add");
        if let Some(note) = note {
            let note = m.cx.str_attr(note);
            let meta = m.cx.named_attrs(&[("note", note)]);
            let main = m.find("main").unwrap();
            let body = &mut m.get_mut(main).unwrap().0.body;
            let Expr::Let { var, .. } = body.expr(body.root()) else { panic!("a chain begins with a Let") };
            body.set_meta(var.expr(), Some(meta));
        }
        m
    };
    let strict = AlphaOptions { meta: MetaPolicy::Compare };
    assert_equal(&with(None), &with(Some("a")));
    assert!(first_difference_with(&with(Some("a")), &with(Some("a")), strict).is_none());
    let d = first_difference_with(&with(Some("a")), &with(Some("b")), strict).unwrap();
    assert!(d.what.contains("`note` is \"a\" and \"b\""), "{d}");
    assert!(first_difference_with(&with(None), &with(Some("b")), strict).is_some());
}

#[test]
fn functions_in_attributes_are_compared() {
    let with = |prefix: &str, last: &str| {
        let mut m = deep(Shape::NestedIf, 3, prefix, last);
        let f = m.get(m.find("main").unwrap()).unwrap().clone();
        let f = m.cx.function_attrs.push(Arc::new(f));
        let f = m.cx.attr(Attr::Function(f));
        let attrs = m.cx.named_attrs(&[("body", f)]);
        let main = m.find("main").unwrap();
        m.remove(&[main]);
        let v = vector(&mut m);
        let mut b = FunctionBuilder::new(&mut m, "main");
        let x = b.param("x", v);
        let op = b.cx().ops.resolve("onnx.Loop").unwrap();
        let r = b.editor().call_opaque(op, &[x], attrs, v);
        b.finish(r).unwrap();
        m
    };
    assert_equal(&with("a", "add"), &with("b", "add"));
    assert_differ(&with("a", "add"), &with("b", "subtract"), "`add`");
}

#[test]
fn deep_programs_types_and_attributes_need_no_stack() {
    on_small_stack(|| {
        for shape in SHAPES {
            let a = deep(shape, depth(5_000), "a", "add");
            let b = deep(shape, depth(5_000), "b", "add");
            assert_equal(&a, &b);
            assert_differ(&a, &deep(shape, depth(5_000), "a", "subtract"), "`add`");
        }
        assert_equal(&deep_type_and_attribute(1), &deep_type_and_attribute(1));
        assert_differ(&deep_type_and_attribute(1), &deep_type_and_attribute(2), "");
    });
}

#[test]
fn what_is_printed_and_parsed_is_equal() {
    for shape in SHAPES {
        let m = deep(shape, 40, "a", "multiply");
        let text = m.to_string();
        let again = anfora_ir::parse_module(anfora_ir::Source::new("again", text), tiny::registry()).unwrap();
        assert_equal(&m, &again);
    }
    let m = symbolic(true, false);
    let again = anfora_ir::parse_module(anfora_ir::Source::new("again", m.to_string()), tiny::registry()).unwrap();
    assert_equal(&m, &again);
}

/// Returns the hashes of expressions of one body.
fn hashes(m: &Module, ids: &[ExprId]) -> Vec<u64> {
    let body = &m.get(m.find("main").unwrap()).unwrap().body;
    let mut hasher = AlphaHasher::new();
    ids.iter().map(|&id| hasher.hash(&m.cx, body, id)).collect()
}

/// Returns a random `fn` of few operators and variables, so that many pairs of them are
/// alpha-equal.
fn random_fn(
    b: &mut FunctionBuilder<'_>,
    random: &mut Rng,
    scope: &mut Vec<ExprId>,
    p: ExprId,
    depth: usize,
) -> ExprId {
    let v = b.body().ty(scope[0]);
    let outer = scope.len();
    let params = b.open_lambda(&[("u", v), ("v", v)], None, &[]);
    scope.extend(params);
    for _ in 0..random.usize(..3) {
        let pick = |r: &mut Rng, scope: &[ExprId]| scope[r.usize(..scope.len())];
        let value = match random.usize(..4) {
            0 if depth > 0 => random_fn(b, random, scope, p, depth - 1),
            1 if depth > 0 => {
                b.open_block();
                let inner = b.call_op("add", &[pick(random, scope), pick(random, scope)], &[]).unwrap();
                let inner = b.bind("i", inner);
                let then = b.close_block(inner).unwrap();
                let other = pick(random, scope);
                b.if_(p, then, other).unwrap()
            }
            2 => b.call_op("negative", &[pick(random, scope)], &[]).unwrap(),
            _ => b.call_op("add", &[pick(random, scope), pick(random, scope)], &[]).unwrap(),
        };
        let is_fn = matches!(b.body().expr(value), Expr::Lambda { .. });
        let bound = b.bind("w", value);
        if !is_fn {
            scope.push(bound);
        }
    }
    let tail = scope[random.usize(..scope.len())];
    scope.truncate(outer);
    b.close_lambda(tail).unwrap()
}

#[test]
fn hashes_within_a_body_agree_with_equality() {
    let mut m = module();
    let (v, c) = (vector(&mut m), flag(&mut m));
    let mut b = FunctionBuilder::new(&mut m, "main");
    let mut scope = vec![b.param("x", v), b.param("y", v)];
    let p = b.param("p", c);
    let mut random = Rng::with_seed(7);
    let fns: Vec<ExprId> = (0..400).map(|_| random_fn(&mut b, &mut random, &mut scope, p, 2)).collect();
    for &f in &fns {
        b.bind("f", f);
    }
    b.finish(scope[0]).unwrap();
    let hashes = hashes(&m, &fns);
    let body = &m.get(m.find("main").unwrap()).unwrap().body;
    let (mut equal, mut different) = (0, 0);
    for i in 0..fns.len() {
        for j in 0..i {
            let same = alpha_equal_exprs(&m.cx, body, fns[i], fns[j]);
            assert_eq!(same, hashes[i] == hashes[j], "fns {i} and {j}");
            if same { equal += 1 } else { different += 1 }
        }
    }
    assert!(equal > 500 && different > 10_000, "{equal} equal pairs, {different} different ones");
}

#[test]
fn free_variables_count_by_identity_and_bound_ones_by_position() {
    let mut m = module();
    let v = vector(&mut m);
    let mut b = FunctionBuilder::new(&mut m, "main");
    let (x, y) = (b.param("x", v), b.param("y", v));
    let mut make = |first: usize, second: usize, free: ExprId| {
        let p = b.open_lambda(&[("a", v), ("b", v)], None, &[]);
        let sum = b.call_op("add", &[p[first], p[second]], &[]).unwrap();
        let sum = b.bind("s", sum);
        let product = b.call_op("multiply", &[sum, free], &[]).unwrap();
        let f = b.close_lambda(product).unwrap();
        b.bind("f", f);
        f
    };
    let fns = [make(0, 1, x), make(0, 1, x), make(1, 0, x), make(0, 1, y), make(0, 0, x)];
    b.finish(x).unwrap();
    let h = hashes(&m, &fns);
    let body = &m.get(m.find("main").unwrap()).unwrap().body;
    for i in 0..fns.len() {
        for j in 0..fns.len() {
            let expected = i == j || i + j == 1;
            assert_eq!(h[i] == h[j], expected, "{i} {j}");
            assert_eq!(alpha_equal_exprs(&m.cx, body, fns[i], fns[j]), expected, "{i} {j}");
        }
    }
}

#[test]
fn lambdas_that_differ_in_their_own_symbols_are_equal() {
    let mut m = module();
    let mut b = FunctionBuilder::new(&mut m, "main");
    let n = b.symbol("n");
    let outer = b.cx().types.tensor(DType::Float32, &[n]);
    let x = b.param("x", outer);
    let mut make = |own: bool| {
        let k = if own { b.symbol("k") } else { n };
        let two = b.cx().types.dims.constant(2);
        let double = b.cx().types.dims.mul(k, two);
        let (t, t2) = (b.cx().types.tensor(DType::Float32, &[k]), b.cx().types.tensor(DType::Float32, &[double]));
        let p = b.open_lambda(&[("a", t), ("b", t2)], None, if own { std::slice::from_ref(&k) } else { &[] });
        let r = b.call_op("negative", &[p[0]], &[]).unwrap();
        let f = b.close_lambda(r).unwrap();
        b.bind("f", f);
        f
    };
    let fns = [make(true), make(true), make(false)];
    b.finish(x).unwrap();
    let h = hashes(&m, &fns);
    let body = &m.get(m.find("main").unwrap()).unwrap().body;
    assert_eq!(h[0], h[1]);
    assert!(alpha_equal_exprs(&m.cx, body, fns[0], fns[1]));
    assert!(!alpha_equal_exprs(&m.cx, body, fns[0], fns[2]));
}

#[test]
fn hashing_every_nested_block_of_deep_programs_is_near_linear() {
    on_small_stack(|| {
        for shape in [Shape::NestedIf, Shape::NestedFn] {
            let m = deep(shape, depth(5_000), "a", "add");
            let body = &m.get(m.find("main").unwrap()).unwrap().body;
            let mut hasher = AlphaHasher::new();
            let mut cursor = Cursor::new(body);
            let mut count = 0;
            let mut last = None;
            while let Some(step) = cursor.next(body) {
                if let Step::Exit(id) = step
                    && body.expr(id).binds()
                {
                    last = Some((id, hasher.hash(&m.cx, body, id)));
                    count += 1;
                }
            }
            assert_eq!(count, depth(5_000));
            // Hashing the whole expression at once gives the same hash.
            let (id, hash) = last.unwrap();
            assert_eq!(AlphaHasher::new().hash(&m.cx, body, id), hash);
        }
    });
}

#[test]
fn deep_expressions_of_one_body_are_compared_without_a_stack() {
    on_small_stack(|| {
        let mut m = module();
        let (v, c) = (vector(&mut m), flag(&mut m));
        let mut b = FunctionBuilder::new(&mut m, "main");
        let (x, p) = (b.param("x", v), b.param("p", c));
        let mut nests = Vec::new();
        for op in ["negative", "negative", "random"] {
            for _ in 0..300_000 {
                b.open_block();
            }
            let mut inner = b.call_op(op, &[x], &[]).unwrap();
            for _ in 0..300_000 {
                let bound = b.bind("i", inner);
                let then = b.close_block(bound).unwrap();
                inner = b.if_(p, then, x).unwrap();
            }
            b.bind("n", inner);
            nests.push(inner);
        }
        b.finish(x).unwrap();
        let body = &m.get(m.find("main").unwrap()).unwrap().body;
        assert!(alpha_equal_exprs(&m.cx, body, nests[0], nests[1]));
        assert!(!alpha_equal_exprs(&m.cx, body, nests[0], nests[2]));
        let h = hashes(&m, &nests);
        assert!(h[0] == h[1] && h[0] != h[2]);
    });
}

#[test]
fn a_region_in_a_block_counts_within_a_body_too() {
    let mut m = module();
    let (v, c) = (vector(&mut m), flag(&mut m));
    let mut b = FunctionBuilder::new(&mut m, "main");
    let (x, p) = (b.param("x", v), b.param("p", c));
    let mut make = |flags: bool| {
        b.open_block();
        if flags {
            b.begin_dataflow();
        }
        let value = b.call_op("negative", &[x], &[]).unwrap();
        let r = b.bind("r", value);
        b.end_dataflow(&[r]);
        let then = b.close_block(r).unwrap();
        let choice = b.if_(p, then, x).unwrap();
        b.bind("choice", choice);
        choice
    };
    let ifs = [make(false), make(false), make(true)];
    b.finish(x).unwrap();
    let body = &m.get(m.find("main").unwrap()).unwrap().body;
    let Expr::If { then_block, .. } = body.expr(ifs[2]) else { panic!("it is an If") };
    assert!(matches!(body.expr(then_block), Expr::Let { flags: LetFlags::REGION_START, .. }));
    let h = hashes(&m, &ifs);
    assert!(h[0] == h[1] && h[0] != h[2]);
    assert!(alpha_equal_exprs(&m.cx, body, ifs[0], ifs[1]) && !alpha_equal_exprs(&m.cx, body, ifs[0], ifs[2]));
}
