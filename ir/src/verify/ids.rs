//! Rule 1: ids are in range. One scan of the arena, so that everything after it may follow any link.

use crate::body::Body;
use crate::context::Context;
use crate::entity::{AttrsId, EntityId, ExprId, TypeId};
use crate::expr::{Expr, OperandList};

/// The first node with an id that is not in its table, and what is wrong with it.
pub(super) fn find_dangling(cx: &Context, body: &Body) -> Option<(Option<ExprId>, String)> {
    if body.root().index() >= body.len() {
        return Some((None, "the body's expression does not exist".to_string()));
    }
    for &p in body.params() {
        if !is_var(body, p.expr()) {
            return Some((None, "a parameter is not a variable".to_string()));
        }
    }
    body.exprs().find_map(|(id, expr)| Some((Some(id), problem(cx, body, id, expr)?)))
}

fn is_var(body: &Body, id: ExprId) -> bool {
    id.index() < body.len() && matches!(body.expr(id), Expr::Var { .. })
}

#[inline]
fn problem(cx: &Context, body: &Body, id: ExprId, expr: Expr) -> Option<String> {
    let node = |id: ExprId| id.index() < body.len();
    let list = |l: OperandList| {
        l.start as usize + l.len() <= body.operand_count() && body.operands(l).iter().all(|&o| node(o))
    };
    let attrs = |a: AttrsId| a.index() < cx.attrs.list_count();
    let ty = |t: TypeId| t.index() < cx.types.len();
    if !ty(body.ty(id)) {
        return Some("the type does not exist".to_string());
    }
    let fine = match expr {
        Expr::Var { name, .. } => name.is_none_or(|n| n.index() < cx.names.len()),
        Expr::Literal(l) => l.index() < cx.literals.len(),
        Expr::Global(g) => g.index() < cx.globals.len(),
        Expr::Op(op) => op.index() < cx.ops.len(),
        Expr::None => true,
        Expr::CallOp { op, operands, attrs: a } => op.index() < cx.ops.len() && list(operands) && attrs(a),
        Expr::Call { operands, attrs: a } => {
            if operands.is_empty() {
                return Some("a call without a function".to_string());
            }
            list(operands) && attrs(a)
        }
        Expr::Tuple(fields) => list(fields),
        Expr::Proj { tuple, .. } => node(tuple),
        Expr::Let { var, value, body: rest, .. } => {
            if !is_var(body, var.expr()) {
                return Some("what a let binds is not a variable".to_string());
            }
            node(value) && node(rest)
        }
        Expr::If { cond, then_block, else_block } => node(cond) && node(then_block) && node(else_block),
        Expr::Lambda { lambda, body: block } => {
            if lambda.index() >= body.lambda_count() || !node(block) {
                return Some("a part of it does not exist".to_string());
            }
            let data = body.lambda(lambda);
            if !list(data.params) || !attrs(data.attrs) || !data.ret.is_none_or(ty) {
                return Some("a part of it does not exist".to_string());
            }
            if !body.operands(data.params).iter().all(|&p| is_var(body, p)) {
                return Some("a parameter is not a variable".to_string());
            }
            true
        }
    };
    (!fine).then(|| "a part of it does not exist".to_string())
}
