//! Threads that edit functions of one module, each under an overlay of its tables.

use std::fmt::Write;
use std::sync::Arc;

use crate::tiny::module;
use anfora_ir::{
    Additions, Attr, Context, DType, Editor, EntityId, Expr, Function, FunctionBuilder, Literal, Module, VarFlags,
    first_difference, verify_module,
};

const FUNCTIONS: usize = 40;

/// Returns a module of functions with one symbolic dimension and a few bindings each.
fn many() -> Module {
    let mut m = module();
    for i in 0..FUNCTIONS {
        let mut b = FunctionBuilder::new(&mut m, &format!("f{i}"));
        let n = b.symbol("n");
        let ty = b.cx().types.tensor(DType::Float32, &[n]);
        let x = b.param("x", ty);
        let call = b.call_op("add", &[x, x], &[]).unwrap();
        let a = b.bind("a", call);
        b.finish(a).unwrap();
    }
    m
}

/// Interns an entry of every kind, some of them equal for several functions, and links them into
/// the function.
fn edit(cx: &mut Context, f: &mut Function, i: usize) {
    let name = cx.names.intern(&format!("fresh{}", i % 7));
    let symbols = [0, 1].map(|_| cx.types.dims.new_symbol(name));
    let [n, k] = symbols.map(|s| cx.types.dims.symbol(s));
    let own = {
        let x = f.body.params()[0];
        let old = cx.types.as_tensor(f.body.ty(x.expr())).unwrap().shape.as_ref().unwrap()[0];
        let sum = cx.types.dims.add(k, n);
        let with_old = cx.types.dims.add(sum, old);
        cx.types.dims.op(anfora_ir::DimOp::Min, with_old, n)
    };
    let tensor = cx.types.tensor(DType::Float32, &[own, n]);
    let pair = cx.types.tuple(&[tensor, tensor]);
    let generic = cx.types.function(&[pair], tensor, &symbols);
    let literal = cx.literals.intern(Literal::from_elements(&[3], &[i as f32 % 5.0, 1.0, 2.0]).unwrap());
    let literal_ty = cx.literal_type(literal);
    let global = cx.global(&format!("elsewhere{}", i % 3));
    let op = cx.ops.resolve(&format!("onnx.New{}", i % 4)).unwrap();
    // A closed function with its own attributes.
    let inner = {
        let note = cx.str_attr(&format!("inner note {i}"));
        let attrs = cx.named_attrs(&[("note", note)]);
        let mut inner = Function::new(&cx.types, attrs);
        let c = inner.body.literal(literal, literal_ty);
        inner.body.set_root(c);
        inner.ret = Some(literal_ty);
        cx.function_attrs.push(Arc::new(inner))
    };
    let values = [
        Attr::Function(inner),
        Attr::Literal(literal),
        Attr::Type(generic),
        Attr::Shape([own, k].into()),
        Attr::Global(global),
        Attr::Op(op),
    ]
    .map(|a| cx.attr(a));
    let all = cx.attr(Attr::List(values.into()));
    let attrs = cx.named_attrs(&[("everything", all), (&format!("key{}", i % 6), values[2])]);
    f.attrs = cx.with_attr(f.attrs, "round", Some(values[3]));
    f.meta = attrs;
    let body = &mut f.body;
    let c = body.literal(literal, literal_ty);
    let callee = body.global(global, generic);
    let x = body.params()[0].expr();
    let any = cx.types.any();
    let call = Editor::new(cx, body).call_opaque(op, &[x, c, callee], attrs, any);
    let var = body.push_var(Some(name), VarFlags::default(), any, None);
    body.set_meta(var.expr(), Some(attrs));
    let p = body.push_var(Some(name), VarFlags::default(), tensor, None);
    let lambda = body.push_lambda(&[p], Some(tensor), attrs);
    body.set_lambda_symbols(lambda, symbols.to_vec());
    let lambda = body.push(Expr::Lambda { lambda, body: p.expr() }, generic, None);
    let list = body.push_operands(&[var.expr(), lambda]);
    let result = cx.types.tuple(&[any, generic]);
    let tail = body.push(Expr::Tuple(list), result, None);
    let root = body.push(Expr::Let { var, value: call, body: tail, flags: Default::default() }, any, None);
    // The type, the meta and the root are overwritten too, the type twice.
    body.set_type(x, pair);
    body.set_type(x, tensor);
    body.set_meta(x, Some(attrs));
    body.set_root(root);
}

/// Returns every id of a module with the entry that it names.
fn everything(m: &Module) -> String {
    let mut out = String::new();
    for (key, f) in m.functions() {
        writeln!(out, "{key:?} {f:?} {:?}", f.body.global_leaves()).unwrap();
        for (id, e) in f.body.exprs() {
            let ops = f.body.operands_of(id);
            writeln!(out, "{id:?} {e:?} : {:?} {ops:?} {:?}", f.body.ty(id), f.body.meta(id)).unwrap();
            if let Expr::Lambda { lambda, .. } = e {
                writeln!(out, "{:?} {:?}", f.body.lambda(lambda), f.body.lambda_symbols(lambda)).unwrap();
            }
        }
    }
    out
}

fn tables(m: &Module) -> String {
    let Context { names, types, attrs, literals, ops, globals, function_attrs, .. } = &m.cx;
    let mut out = format!("{} {} {}\n", names.len(), literals.len(), ops.len());
    for (id, ty) in types.iter() {
        writeln!(out, "{id:?} {ty:?} {}", types.is_symbolic(id)).unwrap();
    }
    for (id, attr) in attrs.iter() {
        writeln!(out, "{id:?} {attr:?}").unwrap();
    }
    for (id, global) in globals.iter() {
        writeln!(out, "{id:?} {} {global:?}", m.cx.global_name(id)).unwrap();
    }
    for (id, f) in function_attrs.iter() {
        writeln!(out, "{id:?} {f:?} {:?}", f.body.exprs().collect::<Vec<_>>()).unwrap();
    }
    write!(out, "{} {} {}", types.dims.len(), types.dims.symbol_count(), attrs.list_count()).unwrap();
    out
}

fn one_after_the_other(m: &mut Module) {
    let (functions, cx) = m.get_all_mut();
    for (i, (_, f)) in functions.into_iter().enumerate() {
        edit(cx, f, i);
    }
}

fn side_by_side(m: &mut Module) {
    m.cx.freeze();
    let (functions, cx) = m.get_all_mut();
    let done: Vec<(Additions, &mut Function)> = std::thread::scope(|threads| {
        let running: Vec<_> = functions
            .into_iter()
            .enumerate()
            .map(|(i, (_, f))| {
                let mut overlay = cx.overlay();
                assert_eq!(overlay.globals.stamp(), cx.globals.stamp());
                threads.spawn(move || {
                    assert!(overlay.take_additions().is_none());
                    edit(&mut overlay, f, i);
                    let additions = overlay.take_additions().unwrap();
                    assert!(overlay.take_additions().is_none());
                    (additions, f)
                })
            })
            .collect();
        running.into_iter().map(|t| t.join().unwrap()).collect()
    });
    cx.thaw();
    for (i, (additions, f)) in done.into_iter().enumerate() {
        let translation = cx.absorb(&additions).unwrap();
        assert_eq!(translation.is_identity(), i == 0, "the first finds the tables as they were frozen");
        f.translate(&translation);
    }
}

#[test]
fn tables_and_bodies_are_the_same_as_if_one_was_edited_after_the_other() {
    let (mut one, mut two) = (many(), many());
    one.begin_edit();
    two.begin_edit();
    one_after_the_other(&mut one);
    side_by_side(&mut two);
    assert_eq!(tables(&one), tables(&two));
    assert_eq!(everything(&one), everything(&two));
    assert!(one.commit() && two.commit());
    assert_eq!(one.to_string(), two.to_string());
    // The tables continue as if they had not been forked.
    side_by_side(&mut two);
    one_after_the_other(&mut one);
    assert_eq!(tables(&one), tables(&two));
    assert_eq!(everything(&one), everything(&two));
}

#[test]
fn what_was_edited_under_overlays_is_taken_back() {
    let before = many();
    let mut m = before.clone();
    m.begin_edit();
    m.begin_edit();
    side_by_side(&mut m);
    assert!(m.has_changes());
    m.commit();
    m.begin_edit();
    side_by_side(&mut m);
    m.rollback();
    m.rollback();
    assert_eq!(everything(&m), everything(&before));
    assert_eq!(verify_module(&m).err(), verify_module(&before).err());
    assert!(first_difference(&m, &before).is_none());
}

#[test]
fn a_frozen_module_can_be_edited_like_any_other() {
    let (mut one, mut two) = (many(), many());
    two.cx.freeze();
    let kept = two.clone();
    for m in [&mut one, &mut two] {
        m.begin_edit();
        one_after_the_other(m);
        let key = m.find("f3").unwrap();
        let global = m.get(key).unwrap().global().unwrap();
        let name = m.cx.names.intern("renamed");
        assert!(m.rename(global, name));
        assert!(m.find("renamed") == Some(key) && m.find("f3").is_none());
        m.rollback();
        m.begin_edit();
        one_after_the_other(m);
        m.remove(&[key]);
        m.commit();
    }
    assert_eq!(tables(&one), tables(&two));
    assert_eq!(everything(&one), everything(&two));
    assert_eq!(everything(&kept), everything(&many()));
    let text = two.to_string();
    two.compact().unwrap();
    assert_eq!(two.to_string(), text);
}

#[test]
fn an_overlay_finds_what_is_frozen_and_numbers_on() {
    let mut tables = Context::new(Default::default());
    let known = (tables.names.intern("known"), tables.str_attr("known"));
    let symbol = tables.types.dims.new_symbol(known.0);
    tables.freeze();
    let mut overlay = tables.overlay();
    assert_eq!((overlay.names.intern("known"), overlay.str_attr("known")), known);
    let mut intern = |name: &str| {
        let id = overlay.names.intern(name);
        let symbol = overlay.types.dims.new_symbol(id);
        (id, overlay.str_attr(name), symbol)
    };
    let (first, second) = (intern("first"), intern("second"));
    assert_eq!((first.0.index(), second.0.index()), (known.0.index() + 1, known.0.index() + 2));
    assert_eq!(first.2.index(), symbol.index() + 1);
    // The overlay keeps its entries, whatever is frozen and thawed.
    for step in [Context::freeze, Context::freeze, Context::thaw, Context::thaw, Context::freeze] {
        step(&mut overlay);
        for (name, (id, attr, symbol)) in [("first", first), ("second", second)] {
            assert_eq!((overlay.names.intern(name), overlay.str_attr(name)), (id, attr));
            assert_eq!((overlay.names.get(id), overlay.types.dims.symbol_name(symbol)), (name, id));
        }
        assert_eq!(overlay.names.len(), tables.names.len() + 2);
    }
    assert_eq!(tables.names.find("first"), None);
    tables.thaw();
    let other = tables.names.intern("other");
    assert_eq!(other, first.0, "tables that part do not know of each other");
    assert_eq!((tables.names.get(other), overlay.names.get(other)), ("other", "first"));
}
