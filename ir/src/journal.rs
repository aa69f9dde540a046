//! What a body was before an edit.

use crate::entity::{AttrsId, ExprId, LambdaId, TypeId};
use crate::expr::{Expr, LambdaData, VarId};

/// The lengths of the arenas when the edit began, and what was overwritten since, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pub(crate) exprs_len: usize,
    pub(crate) operands_len: usize,
    pub(crate) lambdas_len: usize,
    pub(crate) exprs: Vec<(ExprId, Expr)>,
    pub(crate) types: Vec<(ExprId, TypeId)>,
    pub(crate) operands: Vec<(u32, ExprId)>,
    pub(crate) lambdas: Vec<(LambdaId, LambdaData)>,
    pub(crate) meta: Vec<(ExprId, Option<AttrsId>)>,
    pub(crate) root: Option<ExprId>,
    pub(crate) params: Option<Vec<VarId>>,
}

impl Journal {
    pub(crate) fn new(exprs_len: usize, operands_len: usize, lambdas_len: usize) -> Journal {
        Journal {
            exprs_len,
            operands_len,
            lambdas_len,
            exprs: Vec::new(),
            types: Vec::new(),
            operands: Vec::new(),
            lambdas: Vec::new(),
            meta: Vec::new(),
            root: None,
            params: None,
        }
    }

    /// Nodes appended during the edit are cut off by a rollback, so what they were does not matter.
    #[inline]
    pub(crate) fn expr(&mut self, id: ExprId, old: Expr) {
        if crate::entity::EntityId::index(id) < self.exprs_len {
            self.exprs.push((id, old));
        }
    }

    #[inline]
    pub(crate) fn operand(&mut self, at: usize, old: ExprId) {
        if at < self.operands_len {
            self.operands.push((at as u32, old));
        }
    }

    pub(crate) fn ty(&mut self, id: ExprId, old: TypeId) {
        if crate::entity::EntityId::index(id) < self.exprs_len {
            self.types.push((id, old));
        }
    }

    pub(crate) fn lambda(&mut self, id: LambdaId, old: LambdaData) {
        if crate::entity::EntityId::index(id) < self.lambdas_len {
            self.lambdas.push((id, old));
        }
    }

    pub(crate) fn meta(&mut self, id: ExprId, old: Option<AttrsId>) {
        self.meta.push((id, old));
    }

    pub(crate) fn root(&mut self, old: ExprId) {
        self.root.get_or_insert(old);
    }

    pub(crate) fn params(&mut self, old: Vec<VarId>) {
        self.params.get_or_insert(old);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.exprs.is_empty()
            && self.types.is_empty()
            && self.operands.is_empty()
            && self.lambdas.is_empty()
            && self.meta.is_empty()
            && self.root.is_none()
            && self.params.is_none()
    }
}
