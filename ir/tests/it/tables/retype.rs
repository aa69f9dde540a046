//! A more specific type of a node reaches the users of the node.

use std::sync::Arc;

use anfora_ir::{Body, Context, DType, EntityId, Expr, LetFlags, OpRegistry, OperandList, VarFlags, retype_from};

#[test]
fn a_more_specific_type_reaches_its_users_and_no_further() {
    let mut cx = Context::new(Arc::new(OpRegistry::new()));
    let mut body = Body::new(&cx.types);
    let open = cx.types.unranked(DType::Float32);
    let fixed = cx.types.static_tensor(DType::Float32, &[8]);
    let x = body.push_var(None, VarFlags::PLAIN, open, None).expr();
    let list = body.push_operands(&[x, x]);
    let pair = cx.types.tuple(&[open, open]);
    let tuple = body.push(Expr::Tuple(list), pair, None);
    let p = body.push_var(None, VarFlags::PLAIN, pair, None);
    let first = body.push(Expr::Proj { tuple: p.expr(), index: 0 }, open, None);
    let unit = body.push(Expr::Tuple(OperandList::EMPTY), cx.types.unit(), None);
    let q = body.push_var(None, VarFlags::PLAIN, cx.types.unit(), None);
    let last = body.push(Expr::Let { var: q, value: unit, body: first, flags: LetFlags::PLAIN }, open, None);
    let root = body.push(Expr::Let { var: p, value: tuple, body: last, flags: LetFlags::PLAIN }, open, None);
    body.set_root(root);
    body.set_type(x, fixed);
    assert_eq!(retype_from(&mut cx, &mut body, x, root), Ok(3));
    assert_eq!(body.type_of(root), fixed);
    assert_eq!(body.ty(p.expr()), cx.types.tuple(&[fixed, fixed]));
    assert_eq!(retype_from(&mut cx, &mut body, unit, root), Ok(0));
    assert!(x.index() < root.index());
}
