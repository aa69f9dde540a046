//! Checks rule 1: ids are in range. One scan of the arena; all later checks may follow any link.

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrsId, EntityId, ExprId, TypeId};
use crate::core::expr::{Expr, OperandList, VarId};
use crate::core::function::Function;

/// An id that is out of range, or that names an entry of the wrong kind.
pub(super) struct Dangling {
    pub(super) message: String,
    /// The variable of the Let that contains the id, if it can be determined.
    pub(super) var: Option<VarId>,
}

/// Returns the first invalid id of a function.
pub(super) fn find_dangling(cx: &Context, function: &Function) -> Option<Dangling> {
    let body = &function.body;
    let of_function = |what: &str| Some(Dangling { message: what.to_string(), var: None });
    if [function.attrs, function.meta].iter().any(|a| a.index() >= cx.attrs.list_count()) {
        return of_function("the function's attributes do not exist");
    }
    if function.ret.is_some_and(|t| t.index() >= cx.types.len()) {
        return of_function("the function's result type does not exist");
    }
    if body.root().index() >= body.len() {
        return of_function("the body's expression does not exist");
    }
    if !body.params().iter().all(|&p| is_var(body, p.expr())) {
        return of_function("a parameter is not a variable");
    }
    let (id, what) = body.exprs().find_map(|(id, expr)| Some((id, problem(cx, body, id, expr)?)))?;
    let bound = |(link, expr): (ExprId, Expr)| match expr {
        Expr::Let { var, value, .. } if link == id || value == id || var.expr() == id => Some(var),
        _ => None,
    };
    let message = format!("{what}, in {}", body.expr(id).kind());
    Some(Dangling { message, var: body.exprs().find_map(bound) })
}

fn is_var(body: &Body, id: ExprId) -> bool {
    id.index() < body.len() && matches!(body.expr(id), Expr::Var { .. })
}

#[inline]
fn problem(cx: &Context, body: &Body, id: ExprId, expr: Expr) -> Option<&'static str> {
    let node = |id: ExprId| id.index() < body.len();
    let list = |l: OperandList| {
        l.start as usize + l.len() <= body.operand_count() && body.operands(l).iter().all(|&o| node(o))
    };
    let attrs = |a: AttrsId| a.index() < cx.attrs.list_count();
    let ty = |t: TypeId| t.index() < cx.types.len();
    if !ty(body.ty(id)) {
        return Some("the type does not exist");
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
                return Some("a call without a function");
            }
            list(operands) && attrs(a)
        }
        Expr::Tuple(fields) => list(fields),
        Expr::Proj { tuple, .. } => node(tuple),
        Expr::Let { var, value, body: rest, .. } => {
            if !is_var(body, var.expr()) {
                return Some("what a let binds is not a variable");
            }
            node(value) && node(rest)
        }
        Expr::If { cond, then_block, else_block } => node(cond) && node(then_block) && node(else_block),
        Expr::Lambda { lambda, body: block } => {
            if lambda.index() >= body.lambda_count() || !node(block) {
                return Some("a part of it does not exist");
            }
            let data = body.lambda(lambda);
            if !list(data.params) || !attrs(data.attrs) || !data.ret.is_none_or(ty) {
                return Some("a part of it does not exist");
            }
            if !body.operands(data.params).iter().all(|&p| is_var(body, p)) {
                return Some("a parameter is not a variable");
            }
            true
        }
    };
    (!fine).then_some("a part of it does not exist")
}
