//! Copies of a body that replace it or move to another module.

use std::hash::Hash;

use super::{Body, NO_SPAN};
use crate::core::entity::{EntityId, LambdaId};
use crate::core::expr::Expr;
use crate::edit::journal::Journal;

impl Body {
    /// Numbers the states of this body, a copy of `other`, as if they were states of `other`, which
    /// must not be edited meanwhile. The same is done for the bodies that a rollback brings back.
    pub(crate) fn continue_revisions_of(&mut self, other: &Body) {
        let mut next = Some((self, other));
        while let Some((copy, original)) = next {
            copy.revisions = original.revisions.of_same();
            next = replaced_in(copy.journal.as_deref_mut(), original.journal.as_deref());
        }
    }

    /// Returns the greatest number of a state that the body has had.
    pub(crate) fn last_revision(&self) -> u64 {
        self.revisions.last()
    }

    /// Skips the numbers of states up to `last`, which a copy has used.
    pub(crate) fn skip_revisions(&mut self, last: u64) {
        self.revisions.skip(last);
    }

    /// Removes the positions of all nodes in the source.
    pub(crate) fn drop_spans(&mut self) {
        self.spans.fill(NO_SPAN);
    }

    /// Hashes the contents that [`Body::has_nodes_of`] compares. Linear.
    pub(crate) fn hash_nodes(&self, hasher: &mut impl std::hash::Hasher) {
        (self.root, &self.params, &self.operands).hash(hasher);
        for (id, expr) in self.exprs() {
            (expr, self.meta(id)).hash(hasher);
            if !matches!(expr, Expr::Let { .. }) {
                self.ty(id).hash(hasher);
            }
        }
        for i in 0..self.lambda_count() {
            let id = LambdaId::from_index(i);
            (self.lambda(id), self.lambda_symbols(id)).hash(hasher);
        }
    }

    /// Returns true if another body has the same nodes under the same ids. Linear.
    pub(crate) fn has_nodes_of(&self, other: &Body) -> bool {
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
            && self.lambda_count() == other.lambda_count()
            && (0..self.lambda_count()).all(same_lambda)
            && self.exprs().all(|(id, _)| self.meta(id) == other.meta(id))
    }
}

/// Returns the bodies that were replaced by the bodies with these journals. `copy` is the journal
/// of a copy of the body of `original`.
fn replaced_in<'a>(
    mut copy: Option<&'a mut Journal>,
    mut original: Option<&'a Journal>,
) -> Option<(&'a mut Body, &'a Body)> {
    while let (Some(open), Some(same)) = (copy, original) {
        if open.replaced.is_some() {
            return open.replaced.as_deref_mut().zip(same.replaced.as_deref());
        }
        (copy, original) = (open.outer.as_deref_mut(), same.outer.as_deref());
    }
    None
}
