//! Edits that overwrite a part of a body. Each gives the body a new stamp, is recorded in the
//! journal of an open edit, and is reported to the watch of links.

use super::Body;
use crate::core::entity::{AttrsId, EntityId, ExprId, LambdaId, TypeId};
use crate::core::expr::{Expr, LambdaData, OperandList, VarId};
use crate::work;

impl Body {
    /// Overwrites a node. Its type stays; see [`Body::set_type`]. All uses of the node see the new
    /// expression: see [`SharedEdits`](crate::SharedEdits).
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If there is no such node; while an edit is open in a build with debug assertions, also if an
    /// id in it is not of this body.
    #[inline]
    #[track_caller]
    pub fn set_expr(&mut self, id: ExprId, expr: Expr) {
        self.check_id(id);
        self.check_parts(expr);
        let old = self.exprs[id];
        if old == expr {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.expr(id, old);
            if cfg!(debug_assertions) && id.index() < j.exprs_len {
                j.by_hand.expr(id, old, expr);
            }
        }
        if !matches!(old, Expr::Var { .. }) {
            self.watch.expr(id.index());
        }
        self.revisions.bump();
        self.exprs[id] = expr;
    }

    /// Overwrites one operand of a list. All uses of the node with this list see the new operand:
    /// see [`SharedEdits`](crate::SharedEdits).
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If the list has no operand of that number; while an edit is open in a build with debug
    /// assertions, also if the operand is not of this body.
    #[inline]
    #[track_caller]
    pub fn set_operand(&mut self, list: OperandList, i: usize, operand: ExprId) {
        assert!(i < list.len(), "operand {i} of a list of {}", list.len());
        self.check_ids(&[operand]);
        work::tick();
        let at = list.start as usize + i;
        let old = self.operands[at];
        if old == operand {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.operand(at, old);
            if cfg!(debug_assertions) && at < j.operands_len {
                j.by_hand.operand(at);
            }
        }
        self.watch.operand(at);
        self.revisions.bump();
        self.operands[at] = operand;
    }

    /// Overwrites the stored type of a node.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If there is no such node.
    #[track_caller]
    pub fn set_type(&mut self, id: ExprId, ty: TypeId) {
        self.check_id(id);
        work::tick();
        let old = self.types[id.index()];
        if old == ty {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.ty(id, old);
        }
        self.revisions.bump();
        self.types[id.index()] = ty;
    }

    /// Overwrites the root: the expression that the body evaluates to.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if the root is not of this body.
    #[track_caller]
    pub fn set_root(&mut self, root: ExprId) {
        self.check_ids(&[root]);
        if self.root == root {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.root(self.root);
        }
        self.watch.expr(0);
        self.revisions.bump();
        self.root = root;
    }

    /// Overwrites the parameters.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if a parameter is not a variable of
    /// this body.
    #[track_caller]
    pub fn set_params(&mut self, params: Vec<VarId>) {
        self.check_vars(&params);
        if self.params == params {
            return;
        }
        self.revisions.bump();
        let old = std::mem::replace(&mut self.params, params);
        if let Some(j) = &mut self.journal {
            j.params(old);
        }
    }

    /// Appends a parameter of the function.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if the parameter is not a variable
    /// of this body.
    #[track_caller]
    pub fn push_param(&mut self, param: VarId) {
        self.check_vars(&[param]);
        if let Some(j) = &mut self.journal
            && j.params.is_none()
        {
            j.params(self.params.clone());
        }
        self.revisions.bump();
        self.params.push(param);
    }

    /// Overwrites the parameters, result annotation and attributes of a `fn`.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If there is no such `fn`; while an edit is open in a build with debug assertions, also if a
    /// parameter is not a variable of this body.
    #[track_caller]
    pub fn set_lambda(&mut self, id: LambdaId, data: LambdaData) {
        self.check_lambda(id);
        self.check_lambda_data(data);
        let old = self.lambda(id);
        if old == data {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.lambda(id, old);
        }
        self.revisions.bump();
        self.extras_mut().lambdas[id] = data;
    }

    /// Sets or removes the metadata that tools attach to a binding or graph node.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// While an edit is open in a build with debug assertions, if there is no such node.
    #[track_caller]
    pub fn set_meta(&mut self, id: ExprId, meta: Option<AttrsId>) {
        self.check_ids(&[id]);
        if self.meta(id) == meta {
            return;
        }
        let of = &mut self.extras_mut().meta;
        let old = match meta {
            Some(m) => of.insert(id, m),
            None => of.remove(&id),
        };
        self.revisions.bump();
        if let Some(j) = &mut self.journal {
            j.meta(id, old);
        }
    }

    /// Overwrites the body of a Let. Links are removed from and inserted into a chain with this.
    ///
    /// Cost: one node.
    ///
    /// # Panics
    /// If `id` is not a Let; while an edit is open in a build with debug assertions, also if
    /// `new_body` is not of this body.
    #[inline]
    #[track_caller]
    pub fn set_let_body(&mut self, id: ExprId, new_body: ExprId) {
        self.check_id(id);
        self.check_ids(&[new_body]);
        let Expr::Let { body: old, .. } = self.exprs[id] else { panic!("{id:?} is {:?}, not a Let", self.exprs[id]) };
        if old == new_body {
            return;
        }
        if let Some(j) = &mut self.journal {
            j.expr(id, self.exprs[id]);
        }
        self.watch.expr(id.index());
        self.revisions.bump();
        // Only this field is written. Reading a whole node to write it back stalls if its fields
        // were written one by one shortly before.
        if let Expr::Let { body, .. } = &mut self.exprs[id] {
            *body = new_body;
        }
    }
}
