//! Observable effects of functions and expressions.

use crate::tiny;
use crate::tiny::{Shape, add_deep, deep, module, vector};
use anfora_ir::{
    BodyPurity, Expr, ExprId, FunctionBuilder, FunctionKey, FunctionKind, LazyBodyPurity, Module, OpPurity, Purity,
    VarFlags,
};
use anfora_testing::{depth, on_small_stack};

fn value_of(m: &Module, key: FunctionKey, name: &str) -> ExprId {
    let body = &m.get(key).unwrap().body;
    let name = m.cx.names.find(name).unwrap();
    body.exprs()
        .find_map(|(_, e)| match e {
            Expr::Let { var, value, .. } if body.var_name(var) == Some(name) => Some(value),
            _ => None,
        })
        .unwrap()
}

/// Returns true if the value of a binding is impure. The answer must not depend on when the body is
/// visited.
fn is_impure(m: &Module, key: FunctionKey, name: &str) -> bool {
    let purity = Purity::of_module(m);
    let (body, value) = (&m.get(key).unwrap().body, value_of(m, key, name));
    let impure = BodyPurity::new(&m.cx, body, &purity).is_impure(value);
    assert_eq!(LazyBodyPurity::new(&purity).is_impure(&m.cx, body, value), impure, "%{name}");
    impure
}

fn is_pure(m: &Module, name: &str) -> bool {
    Purity::of_module(m).global_is_pure(m.cx.find_global(name).unwrap())
}

/// Adds `def @name(%x) { let %r = CALLEE(%x); %r }`, where the callee is a function or an operator.
fn caller(m: &mut Module, name: &str, callee: &str) -> FunctionKey {
    let v = vector(m);
    let mut b = FunctionBuilder::new(m, name);
    let x = b.param("x", v);
    b.result(v);
    let value = match callee.strip_prefix('@') {
        Some(global) => {
            let g = b.global(global);
            b.call(g, &[x]).unwrap()
        }
        None => b.call_op(callee, &[x], &[]).unwrap(),
    };
    let r = b.bind("r", value);
    b.finish(r).unwrap()
}

fn declare(m: &mut Module, name: &str, pure: bool) {
    let v = vector(m);
    let mut f = anfora_ir::Function::new(&m.cx.types, m.cx.attrs.empty());
    f.kind = FunctionKind::Declaration;
    let x = m.cx.names.intern("x");
    let x = f.body.push_var(Some(x), VarFlags::PLAIN, v, None);
    f.body.set_params(vec![x]);
    f.ret = Some(v);
    if pure {
        let one = m.cx.int_attr(1);
        f.attrs = m.cx.named_attrs(&[("Pure", one)]);
    }
    assert!(m.add_named(name, f).is_ok());
}

#[test]
fn impurity_goes_from_callee_to_caller() {
    let mut m = module();
    caller(&mut m, "noisy", "random");
    caller(&mut m, "quiet", "negative");
    caller(&mut m, "over_noisy", "@noisy");
    caller(&mut m, "over_quiet", "@quiet");
    for (name, pure) in [("noisy", false), ("quiet", true), ("over_noisy", false), ("over_quiet", true)] {
        assert_eq!(is_pure(&m, name), pure, "@{name}");
    }
}

#[test]
fn recursion_alone_is_pure() {
    let mut m = module();
    // Set signatures first, since the functions call each other.
    let v = vector(&mut m);
    let signature = m.cx.types.function(&[v], v, &[]);
    for name in ["even", "odd", "loop"] {
        let g = m.cx.global(name);
        m.set_signature(g, signature);
    }
    caller(&mut m, "even", "@odd");
    caller(&mut m, "odd", "@even");
    caller(&mut m, "loop", "@loop");
    assert!(is_pure(&m, "even") && is_pure(&m, "odd") && is_pure(&m, "loop"));
    assert!(!is_pure(&Module::clone(&with_missing()), "calls_nothing"));
}

fn with_missing() -> Module {
    let mut m = module();
    let v = vector(&mut m);
    let signature = m.cx.types.function(&[v], v, &[]);
    let g = m.cx.global("nowhere");
    m.set_signature(g, signature);
    caller(&mut m, "calls_nothing", "@nowhere");
    m
}

#[test]
fn a_declaration_is_pure_if_it_says_so() {
    let mut m = module();
    declare(&mut m, "external", false);
    declare(&mut m, "promised", true);
    caller(&mut m, "f", "@external");
    caller(&mut m, "g", "@promised");
    assert!(!is_pure(&m, "external") && !is_pure(&m, "f"));
    assert!(is_pure(&m, "promised") && is_pure(&m, "g"));
}

#[test]
fn calls_through_known_variables_have_the_purity_of_the_function() {
    let mut m = module();
    caller(&mut m, "noisy", "random");
    caller(&mut m, "quiet", "negative");
    let v = vector(&mut m);
    let fun = m.cx.types.function(&[v], v, &[]);
    let mut b = FunctionBuilder::new(&mut m, "main");
    let x = b.param("x", v);
    let h = b.param("h", fun);
    let p = b.open_lambda(&[("y", v)], None, &[]);
    let body = b.call_op("random", &[p[0]], &[]).unwrap();
    let noisy_fn = b.close_lambda(body).unwrap();
    let noisy_fn = b.bind("noisy_fn", noisy_fn);
    let p = b.open_lambda(&[("y", v)], None, &[]);
    let body = b.call_op("negative", &[p[0]], &[]).unwrap();
    let quiet_fn = b.close_lambda(body).unwrap();
    let quiet_fn = b.bind("quiet_fn", quiet_fn);
    let alias = b.bind("alias", noisy_fn);
    let mut known = vec![("through_alias", alias, true), ("quiet_call", quiet_fn, false), ("param", h, true)];
    for (name, global, impure) in [("closed_noisy", "noisy", true), ("closed_quiet", "quiet", false)] {
        let g = b.global(global);
        let c = b.call_op("make_closure", &[g], &[]).unwrap();
        let c = b.bind("closure", c);
        known.push((name, c, impure));
    }
    let pair = b.tuple(&[quiet_fn]);
    let pair = b.bind("pair", pair);
    let field = b.proj(pair, 0).unwrap();
    let field = b.bind("field", field);
    known.push(("projected", field, true));
    let mut last = x;
    for &(name, f, _) in &known {
        let call = b.call(f, &[x]).unwrap();
        last = b.bind(name, call);
    }
    let key = b.finish(last).unwrap();
    assert!(!is_impure(&m, key, "noisy_fn"), "to define an impure fn is pure");
    for (name, _, impure) in known {
        assert_eq!(is_impure(&m, key, name), impure, "%{name}");
    }
}

#[test]
fn a_recursive_fn_is_as_impure_as_its_body() {
    for (op, impure) in [("random", true), ("negative", false)] {
        let mut m = module();
        let v = vector(&mut m);
        let fun = m.cx.types.function(&[v], v, &[]);
        let mut b = FunctionBuilder::new(&mut m, "main");
        let x = b.param("x", v);
        let f = b.declare_var("f", fun);
        let p = b.open_lambda(&[("y", v)], Some(v), &[]);
        let again = b.call(f.expr(), &[p[0]]).unwrap();
        let again = b.bind("again", again);
        let value = b.call_op(op, &[again], &[]).unwrap();
        let r = b.bind("inner", value);
        let lambda = b.close_lambda(r).unwrap();
        b.bind_var(f, lambda, None);
        let call = b.call(f.expr(), &[x]).unwrap();
        let r = b.bind("r", call);
        let key = b.finish(r).unwrap();
        assert_eq!(is_impure(&m, key, "r"), impure);
        assert_eq!(is_impure(&m, key, "again"), impure);
        assert_eq!(is_pure(&m, "main"), !impure);
    }
}

#[test]
fn an_if_is_impure_if_a_branch_is_and_so_is_the_chain_before_it() {
    let mut m = module();
    let (v, c) = (vector(&mut m), tiny::flag(&mut m));
    let mut b = FunctionBuilder::new(&mut m, "main");
    let (x, p) = (b.param("x", v), b.param("p", c));
    let quiet = b.call_op("negative", &[x], &[]).unwrap();
    let quiet = b.bind("quiet", quiet);
    b.open_block();
    let noise = b.call_op("random", &[quiet], &[]).unwrap();
    let noise = b.bind("noise", noise);
    let then = b.close_block(noise).unwrap();
    let choice = b.if_(p, then, x).unwrap();
    let choice = b.bind("choice", choice);
    let after = b.call_op("negative", &[choice], &[]).unwrap();
    let after = b.bind("after", after);
    let key = b.finish(after).unwrap();
    for (name, impure) in [("quiet", false), ("noise", true), ("choice", true), ("after", false)] {
        assert_eq!(is_impure(&m, key, name), impure, "%{name}");
    }
    let purity = Purity::of_module(&m);
    let body = &m.get(key).unwrap().body;
    let bodies = BodyPurity::new(&m.cx, body, &purity);
    let links: Vec<bool> = std::iter::successors(Some(body.root()), |&l| match body.expr(l) {
        Expr::Let { body, .. } => Some(body),
        _ => None,
    })
    .map(|l| bodies.is_impure(l))
    .collect();
    assert_eq!(links, [true, true, false, false]);
    assert!(bodies.is_impure_call(value_of(&m, key, "noise")) && !bodies.is_impure_call(value_of(&m, key, "choice")));
}

#[test]
fn what_is_overwritten_is_looked_at_again() {
    let mut m = module();
    let key = caller(&mut m, "main", "negative");
    caller(&mut m, "noisy", "random");
    let noisy = m.cx.global("noisy");
    let purity = Purity::of_module(&m);
    let value = value_of(&m, key, "r");
    let negative = m.get(key).unwrap().body.expr(value);
    let Expr::CallOp { operands, attrs, .. } = negative else { panic!("it is a call of an operator") };
    let (main, cx) = m.get_mut(key).unwrap();
    let body = &mut main.body;
    let mut bodies = BodyPurity::new(cx, body, &purity);
    let random = cx.ops.resolve("random").unwrap();
    let x = body.operands(operands)[0];
    let callee = body.push(Expr::Global(noisy), cx.types.any(), None);
    let list = body.push_operands(&[callee, x]);
    let is_impure = [
        Expr::CallOp { op: random, operands, attrs },
        negative,
        Expr::Call { operands: list, attrs },
        Expr::Tuple(operands),
        Expr::Tuple(body.push_operands(&[value])),
    ]
    .map(|expr| {
        let id = if matches!(expr, Expr::Tuple(_)) { body.push(expr, cx.types.any(), None) } else { value };
        body.set_expr(id, expr);
        bodies.note(cx, body, &purity, id);
        (bodies.is_impure_call(id), bodies.is_impure(id))
    });
    assert_eq!(is_impure, [(true, true), (false, false), (true, true), (false, false), (false, true)]);
}

#[test]
fn the_facts_of_an_operator_are_those_of_its_row() {
    let mut m = module();
    let (pure, impure) = (m.cx.ops.resolve("onnx.Loop").unwrap(), m.cx.ops.opaque("onnx.Noise", OpPurity::Impure));
    assert!(!m.cx.ops.facts(pure).is_impure() && m.cx.ops.facts(impure.unwrap()).is_impure());
    for (op, row) in m.cx.ops.registry().rows() {
        let facts = m.cx.ops.facts(op);
        assert_eq!(facts.is_impure(), row.purity == OpPurity::Impure, "{row:?}");
        assert_eq!(facts.is_commutative(), row.commutative, "{row:?}");
        assert_eq!(facts.is_match_cast(), row.name == "match_cast", "{row:?}");
    }
}

#[test]
fn a_function_in_an_attribute_makes_its_operator_impure() {
    for (op, impure) in [("random", true), ("negative", false)] {
        let mut m = module();
        let key = caller(&mut m, "taken", op);
        let function = m.get(key).unwrap().clone();
        let function = m.cx.function_attrs.push(std::sync::Arc::new(function));
        let function = m.cx.attr(anfora_ir::Attr::Function(function));
        let list = m.cx.attr(anfora_ir::Attr::List([function].into()));
        let v = vector(&mut m);
        let mut b = FunctionBuilder::new(&mut m, "main");
        let x = b.param("x", v);
        let attrs = b.named_attrs(&[("body", list)]);
        let op = b.cx().ops.resolve("onnx.Loop").unwrap();
        let call = b.editor().call_opaque(op, &[x], attrs, v);
        let r = b.bind("looped", call);
        let key = b.finish(r).unwrap();
        assert_eq!(is_impure(&m, key, "looped"), impure);
        assert_eq!(is_pure(&m, "main"), !impure);
    }
}

#[test]
fn deep_programs_need_no_stack() {
    on_small_stack(|| {
        for shape in tiny::SHAPES {
            let mut m = deep(shape, depth(5_000), "", "add");
            if shape == Shape::NestedFn {
                assert!(is_pure(&m, "main"));
            }
            // The same shape with an impure call at the far end.
            let main = m.find("main").unwrap();
            let (f, cx) = m.get_mut(main).unwrap();
            let print = cx.ops.resolve("random").unwrap();
            let (last, _) =
                f.body.exprs().find(|(_, e)| matches!(e, Expr::CallOp { .. })).expect("there is a call at the far end");
            if let Expr::CallOp { operands, attrs, .. } = f.body.expr(last) {
                f.body.set_expr(last, Expr::CallOp { op: print, operands, attrs });
            }
            let purity = Purity::of_module(&m);
            assert!(!purity.global_is_pure(m.cx.find_global("main").unwrap()), "{shape:?}");
            let body = &m.get(main).unwrap().body;
            assert!(BodyPurity::new(&m.cx, body, &purity).is_impure(body.root()), "{shape:?}");
        }
        let mut m = module();
        add_deep(&mut m, "f0", Shape::Chain, 1, "", "add");
        for i in 1..20_000 {
            caller(&mut m, &format!("g{i}"), if i == 1 { "random".into() } else { format!("@g{}", i - 1) }.as_str());
        }
        assert!(!is_pure(&m, "g19999") && is_pure(&m, "f0"));
    });
}
