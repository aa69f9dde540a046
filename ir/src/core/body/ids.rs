//! Checks that ids belong to this body. Ids carry no tag, so an id of another body is recognised
//! only if it is out of range or of the wrong kind. Debug builds check every write during an edit.

use super::Body;
use crate::core::entity::{EntityId, ExprId, LambdaId};
use crate::core::expr::{Expr, LambdaData, OperandList, VarId};

impl Body {
    /// # Panics
    /// In builds with debug assertions, if the body has no such node.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_id(&self, id: ExprId) {
        if cfg!(debug_assertions) && id.index() >= self.exprs.len() {
            not_of_body(id, self.exprs.len());
        }
    }

    /// Returns true if writes are checked.
    #[inline(always)]
    fn is_checked(&self) -> bool {
        cfg!(debug_assertions) && self.journal.is_some()
    }

    /// # Panics
    /// While an edit is open in a build with debug assertions, if an id is not a node of the body.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_ids(&self, ids: &[ExprId]) {
        if self.is_checked() {
            ids.iter().for_each(|&id| self.check_id(id));
        }
    }

    /// # Panics
    /// While an edit is open in a build with debug assertions, if a variable is not one of the
    /// body.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_vars(&self, vars: &[VarId]) {
        if self.is_checked() {
            vars.iter().for_each(|&var| self.check_var(var));
        }
    }

    #[track_caller]
    fn check_var(&self, var: VarId) {
        self.check_id(var.expr());
        let expr = self.exprs[var.expr()];
        assert!(
            matches!(expr, Expr::Var { .. }),
            "{:?} is bound, but it is {expr:?} and no variable: is it an id of another function?",
            var.expr()
        );
    }

    /// # Panics
    /// While an edit is open in a build with debug assertions, if `lambda` is not a `fn` of the
    /// body.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_lambda(&self, lambda: LambdaId) {
        if self.is_checked() {
            assert!(
                lambda.index() < self.lambda_count(),
                "{lambda:?} is not a `fn` of this body, which has {}: is it an id of another function?",
                self.lambda_count()
            );
        }
    }

    /// # Panics
    /// While an edit is open in a build with debug assertions, if a parameter is not a variable of
    /// the body.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_lambda_data(&self, data: LambdaData) {
        if self.is_checked() {
            self.check_list(data.params);
            let params = &self.operands[data.params.start as usize..][..data.params.len()];
            params.iter().for_each(|&param| self.check_var(VarId::from_expr(param)));
        }
    }

    #[track_caller]
    fn check_list(&self, list: OperandList) {
        assert!(
            list.start as usize + list.len() <= self.operands.len(),
            "{list:?} is not a list of operands of this body, which has {}: is it one of another function?",
            self.operands.len()
        );
    }

    /// # Panics
    /// While an edit is open in a build with debug assertions, if a part of a node is not in the
    /// body, or a Let or `fn` binds an expression that is not a variable.
    #[inline(always)]
    #[track_caller]
    pub(super) fn check_parts(&self, expr: Expr) {
        if self.is_checked() {
            self.check_parts_of(expr);
        }
    }

    #[track_caller]
    fn check_parts_of(&self, expr: Expr) {
        match expr {
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {}
            Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands) => {
                self.check_list(operands);
            }
            Expr::Proj { tuple, .. } => self.check_id(tuple),
            Expr::Let { var, value, body: rest, .. } => {
                self.check_var(var);
                self.check_ids(&[value, rest]);
            }
            Expr::If { cond, then_block, else_block } => self.check_ids(&[cond, then_block, else_block]),
            Expr::Lambda { lambda, body: block } => {
                self.check_lambda(lambda);
                self.check_id(block);
            }
        }
    }
}

#[cold]
#[track_caller]
fn not_of_body(id: ExprId, len: usize) -> ! {
    panic!("{id:?} is not an expression of this body, which has {len}: is it an id of another function?")
}
