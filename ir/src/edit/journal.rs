//! The journal of a body: its state before an edit.

use crate::core::body::{Body, EditedByHand};
use crate::core::entity::{AttrsId, EntityId, ExprId, LambdaId, SymbolId, TypeId};
use crate::core::expr::{Expr, LambdaData, VarId};
use crate::report::diagnostic::Diagnostic;

/// The lengths of the arenas when the edit began, and the previous contents of overwritten entries,
/// oldest first.
#[derive(Clone, Default)]
pub(crate) struct Journal {
    /// The journal of the enclosing edit.
    pub(crate) outer: Option<Box<Journal>>,
    /// The body that this body replaced. It has its own journal; the other records of this journal
    /// are then not used.
    pub(crate) replaced: Option<Box<Body>>,
    /// True if this is an edit of the module, false if it is an edit of this body alone inside of
    /// that.
    pub(crate) of_module: bool,
    /// The revision of the body when the edit began.
    pub(crate) revision: u64,
    pub(crate) exprs_len: usize,
    pub(crate) operands_len: usize,
    pub(crate) lambdas_len: usize,
    pub(crate) exprs: Vec<(ExprId, Expr)>,
    pub(crate) types: Vec<(ExprId, TypeId)>,
    pub(crate) operands: Vec<(u32, ExprId)>,
    pub(crate) lambdas: Vec<(LambdaId, LambdaData)>,
    pub(crate) lambda_symbols: Vec<(LambdaId, Option<Box<[SymbolId]>>)>,
    pub(crate) meta: Vec<(ExprId, Option<AttrsId>)>,
    pub(crate) root: Option<ExprId>,
    pub(crate) params: Option<Vec<VarId>>,
    /// The expression at which a walk ended with an error.
    pub(crate) stop: Option<ExprId>,
    /// The remarks of walks for the author of the edit.
    pub(crate) remarks: Vec<(ExprId, Diagnostic)>,
    /// The record of edits of shared nodes. Empty in builds without debug assertions.
    pub(crate) by_hand: EditedByHand,
}

impl Journal {
    pub(crate) fn new(revision: u64, exprs_len: usize, operands_len: usize, lambdas_len: usize) -> Journal {
        Journal { revision, exprs_len, operands_len, lambdas_len, ..Journal::default() }
    }

    /// Records the previous contents of a node. Nodes appended during the edit are skipped, since a
    /// rollback removes them.
    #[inline]
    pub(crate) fn expr(&mut self, id: ExprId, old: Expr) {
        if id.index() < self.exprs_len {
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
        if id.index() < self.exprs_len {
            self.types.push((id, old));
        }
    }

    pub(crate) fn lambda(&mut self, id: LambdaId, old: LambdaData) {
        if id.index() < self.lambdas_len {
            self.lambdas.push((id, old));
        }
    }

    pub(crate) fn lambda_symbols(&mut self, id: LambdaId, old: Option<Box<[SymbolId]>>) {
        if id.index() < self.lambdas_len {
            self.lambda_symbols.push((id, old));
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

    /// Adds the records of an inner edit.
    pub(crate) fn absorb(&mut self, inner: Journal) {
        let Journal {
            exprs, types, operands, lambdas, lambda_symbols, meta, root, params, by_hand, stop, remarks, ..
        } = inner;
        self.by_hand.absorb(by_hand, self.exprs_len, self.operands_len);
        self.stop = stop;
        self.remarks.extend(remarks);
        exprs.into_iter().for_each(|(id, old)| self.expr(id, old));
        types.into_iter().for_each(|(id, old)| self.ty(id, old));
        operands.into_iter().for_each(|(at, old)| self.operand(at as usize, old));
        lambdas.into_iter().for_each(|(id, old)| self.lambda(id, old));
        lambda_symbols.into_iter().for_each(|(id, old)| self.lambda_symbols(id, old));
        meta.into_iter().for_each(|(id, old)| self.meta(id, old));
        root.into_iter().for_each(|old| self.root(old));
        params.into_iter().for_each(|old| self.params(old));
    }

    /// Returns the number of overwritten entries.
    pub(crate) fn len(&self) -> usize {
        let Journal { exprs, types, operands, lambdas, lambda_symbols, meta, root, params, .. } = self;
        exprs.len()
            + types.len()
            + operands.len()
            + lambdas.len()
            + lambda_symbols.len()
            + meta.len()
            + usize::from(root.is_some())
            + usize::from(params.is_some())
    }

    /// Returns true if no entry was overwritten that existed when the edit began.
    pub(crate) fn is_empty(&self) -> bool {
        self.replaced.is_none()
            && self.len() == self.meta.len()
            && self.meta.iter().all(|(id, _)| id.index() >= self.exprs_len)
    }
}
