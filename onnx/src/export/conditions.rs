//! Conditions that are the single element of a tensor. A node `If` takes the tensor itself, so no
//! node extracts the element.

use anfora_ir::{Body, Context, Cursor, Expr, ExprId, Step, VarId};
use rustc_hash::FxHashMap;

use crate::keys;

/// The variables that the importer bound to the single element of a condition and that only `if`s
/// use.
#[derive(Default)]
pub(super) struct Conditions {
    /// For each variable, the tensor that contains the element.
    tensors: FxHashMap<VarId, ExprId>,
}

impl Conditions {
    pub(super) fn of(cx: &Context, body: &Body) -> Conditions {
        let mut conditions = Conditions::default();
        if cx.names.find(keys::CONDITION).is_none() {
            return conditions;
        }
        // The number of uses other than as a condition.
        let mut others: FxHashMap<VarId, i64> = FxHashMap::default();
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            match step {
                Step::Let(link) => {
                    if let Expr::Let { var, value, .. } = body.expr(link)
                        && body.meta(var.expr()).is_some_and(|m| cx.find_attr(m, keys::CONDITION).is_some())
                        && let Expr::CallOp { op, operands, .. } = body.expr(value)
                        && cx.ops.get(op).name == "reshape"
                        && let Some(&tensor) = body.operands(operands).first()
                        && body.expr(tensor).is_atom()
                    {
                        conditions.tensors.insert(var, tensor);
                    }
                }
                Step::Atom(atom) => count(body, atom, 1, &mut others),
                Step::Flat(id) => body.operands_of(id).iter().for_each(|&o| count(body, o, 1, &mut others)),
                Step::Enter(id) => {
                    if let Expr::If { cond, .. } = body.expr(id) {
                        count(body, cond, -1, &mut others);
                    }
                }
                _ => {}
            }
        }
        conditions.tensors.retain(|var, _| others.get(var).is_none_or(|&n| n == 0));
        conditions
    }

    /// Returns the tensor whose single element is the condition.
    pub(super) fn tensor(&self, body: &Body, condition: ExprId) -> Option<ExprId> {
        self.tensors.get(&body.as_var(condition)?).copied()
    }

    /// Returns true if the variable is such a condition.
    pub(super) fn contains(&self, var: Option<VarId>) -> bool {
        var.is_some_and(|v| self.tensors.contains_key(&v))
    }
}

fn count(body: &Body, atom: ExprId, by: i64, uses: &mut FxHashMap<VarId, i64>) {
    if let Some(var) = body.as_var(atom) {
        *uses.entry(var).or_insert(0) += by;
    }
}
