//! Compaction drops unused entries.

use std::sync::Arc;

use crate::tiny::{SHAPES, Shape, add_deep, deep, deep_type_and_attribute, module, vector};
use anfora_ir::bumpalo::Bump;
use anfora_ir::{
    Attr, CompactError, DType, DimOp, Expr, ExprId, FunctionBuilder, Literal, Module, alpha_equal, compact_body,
    first_difference, is_sparse, live_nodes, module_hash,
};
use anfora_testing::{depth, on_small_stack};

/// Returns the names that the Lets of the function's own block bind, in program order.
fn chain_names(m: &Module, function: &str) -> Vec<String> {
    let body = &m.get(m.find(function).unwrap()).unwrap().body;
    std::iter::successors(Some(body.root()), |&l| match body.expr(l) {
        Expr::Let { body, .. } => Some(body),
        _ => None,
    })
    .filter_map(|l| match body.expr(l) {
        Expr::Let { var, .. } => Some(m.cx.names.get(body.var_name(var)?).to_string()),
        _ => None,
    })
    .collect()
}

/// Returns a chain in which the Let of every second binding is unlinked and its uses are replaced
/// by the parameter.
fn half_dead(n: usize) -> Module {
    let mut m = module();
    let v = vector(&mut m);
    let mut b = FunctionBuilder::new(&mut m, "main");
    let x = b.param("x", v);
    let mut last = x;
    for i in 0..n {
        let value = b.call_op("add", &[last, x], &[]).unwrap();
        last = b.bind(&format!("b{i}"), value);
    }
    b.finish(last).unwrap();
    let main = m.find("main").unwrap();
    let body = &mut m.get_mut(main).unwrap().0.body;
    let mut at = body.root();
    while let Expr::Let { body: next, .. } = body.expr(at) {
        let Expr::Let { var: skipped, body: after, .. } = body.expr(next) else { break };
        body.set_let_body(at, after);
        if let Expr::Let { value, .. } = body.expr(after) {
            let list = body.expr(value).operand_list().unwrap();
            body.set_operand(list, 0, x);
        } else if after == skipped.expr() {
            body.set_let_body(at, x);
        }
        at = after;
    }
    m
}

#[test]
fn a_compacted_body_is_the_same_program_in_less_room() {
    let before = half_dead(1001);
    let mut after = before.clone();
    let main = after.find("main").unwrap();
    let body = &mut after.get_mut(main).unwrap().0.body;
    let (generation, live) = (body.generation(), live_nodes(body, &Bump::new()));
    let x = body.params()[0];
    assert!(live < body.len());
    let old = body.clone();
    let remap = compact_body(body).unwrap();
    assert_eq!(body.len(), live);
    assert_eq!(body.generation(), generation + 1);
    assert_eq!(remap.var(x), Some(body.params()[0]));
    assert!(first_difference(&before, &after).is_none());
    assert_eq!(chain_names(&before, "main"), chain_names(&after, "main"));
    let body = &after.get(main).unwrap().body;
    let dropped = old.exprs().filter(|&(id, _)| remap.expr(id).is_none()).count();
    assert_eq!(dropped, old.len() - live);
    for (id, _) in old.exprs() {
        if let Some(new) = remap.expr(id) {
            assert_eq!(body.ty(new), old.ty(id));
        }
    }
    // Program order: the variables of the chain have rising ids.
    let mut last = 0;
    let mut at = body.root();
    while let Expr::Let { var, body: rest, .. } = body.expr(at) {
        assert!(var.index() > last);
        last = var.index();
        at = rest;
    }
}

#[test]
fn constants_and_globals_are_found_again() {
    let mut m = module();
    let unit = m.cx.types.unit();
    let mut b = FunctionBuilder::new(&mut m, "main");
    b.param("x", unit);
    let (dead, two) = (b.literal(Literal::scalar(1i32)), b.literal(Literal::scalar(2i32)));
    let global = b.cx().global("main");
    let global = b.editor().global(global);
    let pair = b.tuple(&[two, two, global]);
    let main = b.finish(pair).unwrap();
    let body = &mut m.get_mut(main).unwrap().0.body;
    let before = body.clone();
    let remap = compact_body(body).unwrap();
    assert_eq!(remap.expr(dead), None);
    for leaf in [two, global] {
        assert_eq!(body.expr(remap.expr(leaf).unwrap()), before.expr(leaf));
    }
}

#[test]
fn compacting_again_changes_nothing() {
    let mut m = half_dead(101);
    let main = m.find("main").unwrap();
    let body = &mut m.get_mut(main).unwrap().0.body;
    compact_body(body).unwrap();
    let once = body.clone();
    let remap = compact_body(body).unwrap();
    for (id, expr) in once.exprs() {
        assert_eq!(remap.expr(id), Some(id));
        let same_lists = body.operands_of(id) == once.operands_of(id);
        assert!(same_lists && std::mem::discriminant(&expr) == std::mem::discriminant(&body.expr(id)));
    }
}

#[test]
fn what_lies_beside_the_nodes_goes_with_them() {
    let mut m = module();
    let mut b = FunctionBuilder::new(&mut m, "main");
    let n = b.symbol("n");
    let t = b.cx().types.tensor(DType::Float32, &[n]);
    let x = b.param("x", t);
    for _ in 0..20 {
        b.call_op("negative", &[x], &[]).unwrap();
    }
    let k = b.symbol("k");
    let own = b.cx().types.tensor(DType::Float32, &[k]);
    let p = b.open_lambda(&[("a", own)], Some(own), &[k]);
    let value = b.call_op("negative", &[p[0]], &[]).unwrap();
    let inner = b.bind("inner", value);
    let f = b.close_lambda(inner).unwrap();
    let f = b.bind("f", f);
    let r = b.call(f, &[x]).unwrap();
    let r = b.bind("r", r);
    let note = b.cx().str_attr("kept");
    let meta = b.named_attrs(&[("note", note)]);
    b.body().set_meta(r, Some(meta));
    let main = b.finish(r).unwrap();
    let body = &mut m.get_mut(main).unwrap().0.body;
    assert!(is_sparse(body, &Bump::new()));
    let (lambda, symbols) = body
        .exprs()
        .find_map(|(_, e)| match e {
            Expr::Lambda { lambda, .. } => Some((lambda, body.lambda_symbols(lambda).to_vec())),
            _ => None,
        })
        .unwrap();
    let remap = compact_body(body).unwrap();
    assert!(!is_sparse(body, &Bump::new()));
    assert_eq!(body.lambda_symbols(remap.lambda(lambda).unwrap()), symbols);
    assert_eq!(body.meta(remap.expr(r).unwrap()), Some(meta));
}

#[test]
fn an_open_edit_is_refused() {
    let mut m = half_dead(10);
    m.begin_edit();
    assert_eq!(m.compact().err(), Some(CompactError::EditOpen));
    let main = m.find("main").unwrap();
    assert_eq!(compact_body(&mut m.get_mut(main).unwrap().0.body).err(), Some(CompactError::EditOpen));
    m.rollback();
    assert!(m.compact().is_ok());
}

#[test]
fn a_compacted_module_keeps_what_it_uses_and_only_that() {
    let mut m = module();
    // Entries that nothing uses.
    for i in 0..100 {
        m.cx.names.intern(&format!("unused{i}"));
        m.cx.types.static_tensor(DType::Int8, &[i, 7]);
        m.cx.literals.intern(Literal::scalar(i as i16));
        m.cx.int_attr(i as i64 + 500);
        m.cx.global(&format!("nobody{i}"));
        m.cx.ops.resolve(&format!("onnx.Unused{i}")).unwrap();
    }
    add_deep(&mut m, "helper", Shape::NestedIf, 4, "h", "subtract");
    // A function that uses all tables: symbols in sums, opaque operators, functions in attributes,
    // a missing global, meta.
    let inner = m.get(m.find("helper").unwrap()).unwrap().clone();
    let inner = m.cx.function_attrs.push(Arc::new(inner));
    let inner = m.cx.attr(Attr::Function(inner));
    let mut b = FunctionBuilder::new(&mut m, "main");
    let (k, n) = (b.symbol("k"), b.symbol("n"));
    let dims = &mut b.cx().types.dims;
    let two = dims.constant(2);
    let sum = dims.add(n, k);
    let product = dims.mul(sum, two);
    let least = dims.op(DimOp::Max, product, n);
    let types = [n, k, sum, product, least].map(|d| b.cx().types.tensor(DType::Float32, &[d]));
    let params: Vec<ExprId> = types.iter().map(|&t| b.param("p", t)).collect();
    let unit = b.cx().types.unit();
    let generic = b.cx().types.function(&[types[4]], unit, &[]);
    let h = b.param("h", generic);
    let c = b.literal(Literal::splat(&[3], 2.5f32));
    let shape = b.cx().attr(Attr::Shape([n, least].into()));
    let global = b.cx().global("nobody7");
    let global = b.cx().attr(Attr::Global(global));
    let attrs = b.named_attrs(&[("body", inner), ("shape", shape), ("callee", global)]);
    let op = b.cx().ops.resolve("onnx.Scan").unwrap();
    let call = b.editor().call_opaque(op, &[params[0], c, h], attrs, types[3]);
    let r = b.bind("r", call);
    let main = b.finish(r).unwrap();
    let note = m.cx.str_attr("a note");
    let meta = m.cx.named_attrs(&[("doc", note)]);
    m.get_mut(main).unwrap().0.meta = meta;
    let version = m.cx.int_attr(3);
    let version = m.cx.named_attrs(&[("version", version)]);
    m.set_attrs(version);

    let before = m.clone();
    let remaps = m.compact().unwrap();
    assert_eq!(remaps.len(), 2);
    assert_eq!(first_difference(&before, &m).map(|d| d.to_string()), None);
    assert_eq!(module_hash(&before), module_hash(&m));
    assert_eq!(m.cx.attrs.list(m.get(main).unwrap().meta).len(), 1);
    assert!(m.cx.names.find("unused5").is_none() && m.cx.names.find("nobody3").is_none());
    assert!(m.find("helper").is_some() && m.find("main") == Some(main));
    assert_eq!(m.cx.globals.len(), 3, "helper, main and the one that the attribute names");
    assert_eq!(m.cx.ops.len() - m.cx.ops.registry().rows().len(), 1);
    assert!(m.cx.literals.len() == 1 && m.cx.attrs.len() <= 6);
    assert_eq!(before.cx.types.len() - m.cx.types.len(), 100, "the unused ones");
    // A compacted module can be compacted and compared again.
    let once = m.clone();
    m.compact().unwrap();
    assert!(alpha_equal(&once, &m));
    assert_eq!(once.cx.types.len(), m.cx.types.len());
    assert_eq!(once.cx.names.len(), m.cx.names.len());
}

#[test]
fn sums_of_symbols_keep_their_form() {
    let mut m = module();
    let mut f = FunctionBuilder::new(&mut m, "main");
    // Two symbols with one name. The text distinguishes them by the order in which it names them.
    let (first, second) = (f.symbol("n"), f.symbol("n"));
    let sum = f.cx().types.dims.add(first, second);
    let types = [sum, second, first].map(|dim| f.cx().types.tensor(DType::Float32, &[dim]));
    let params = types.map(|ty| f.param("p", ty));
    f.finish(params[0]).unwrap();
    let before = m.to_text();
    m.compact().unwrap();
    assert_eq!(m.to_text(), before);
}

#[test]
fn deep_programs_need_no_stack() {
    on_small_stack(|| {
        for shape in SHAPES {
            let before = deep(shape, depth(5_000), "a", "add");
            let mut after = before.clone();
            after.compact().unwrap();
            assert!(alpha_equal(&before, &after), "{shape:?}");
            let main = after.find("main").unwrap();
            let body = &after.get(main).unwrap().body;
            assert_eq!(live_nodes(body, &Bump::new()), body.len());
        }
        let mut m = deep_type_and_attribute(8);
        let before = m.clone();
        m.compact().unwrap();
        assert!(alpha_equal(&before, &m));
    });
}
