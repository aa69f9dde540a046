//! Copies of a body that stand in its place, or stand in another module.

use super::{Body, NO_SPAN};
use crate::entity::{EntityId, LambdaId};
use crate::expr::Expr;

impl Body {
    /// Numbers the states of this body, a copy, as if they were states of `other`, which is not
    /// edited meanwhile.
    pub(crate) fn continue_revisions_of(&mut self, other: &Body) {
        self.revisions = other.revisions.of_same();
    }

    /// Returns the greatest number that a state of the body had.
    pub(crate) fn last_revision(&self) -> u64 {
        self.revisions.last()
    }

    /// Leaves out the numbers of states that a copy had.
    pub(crate) fn skip_revisions(&mut self, last: u64) {
        self.revisions.skip(last);
    }

    /// Forgets where the nodes stand in the source.
    pub(crate) fn drop_spans(&mut self) {
        self.spans.fill(NO_SPAN);
    }

    /// Returns true if another body has the same nodes under the same ids. Linear.
    pub(crate) fn has_nodes_of(&self, other: &Body) -> bool {
        let lambdas = |body: &Body| body.extras.as_ref().map_or(0, |e| e.lambdas.len());
        let same_lambda = |i: usize| {
            let id = LambdaId::from_index(i);
            self.lambda(id) == other.lambda(id) && self.lambda_symbols(id) == other.lambda_symbols(id)
        };
        self.root == other.root
            && self.params == other.params
            && self.operands == other.operands
            && self.exprs.len() == other.exprs.len()
            && self.exprs().eq(other.exprs())
            // A Let has no type of its own.
            && self.exprs().all(|(id, e)| matches!(e, Expr::Let { .. }) || self.ty(id) == other.ty(id))
            && lambdas(self) == lambdas(other)
            && (0..lambdas(self)).all(same_lambda)
            && self.exprs().all(|(id, _)| self.meta(id) == other.meta(id))
    }
}
