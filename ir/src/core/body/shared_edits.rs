//! Edits of nodes with several uses, whose author may have one use in mind.

use rustc_hash::FxHashMap;

use super::Body;
use crate::core::entity::{EntityId, ExprId};
use crate::core::expr::Expr;

/// The meaning of overwriting a node that has several uses, during an edit.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum SharedEdits {
    /// The edit may be a mistake: builds with debug assertions record the node for
    /// [`Body::take_edited_shared`].
    #[default]
    Noted,
    /// The edit is meant for all uses of the node.
    Meant,
}

/// The nodes, and the positions in the pool of operands, that were overwritten while edits of
/// shared nodes were recorded.
#[derive(Clone, Default)]
pub(crate) struct EditedByHand {
    how: SharedEdits,
    exprs: Vec<ExprId>,
    operands: Vec<u32>,
}

impl EditedByHand {
    /// Returns an empty record for an edit inside of another edit.
    pub(crate) fn inside(outer: &EditedByHand) -> EditedByHand {
        EditedByHand { how: outer.how, ..EditedByHand::default() }
    }

    #[inline(always)]
    pub(crate) fn expr(&mut self, id: ExprId, old: Expr, new: Expr) {
        // A node that binds has one parent, and the name and flags of a variable belong to all its
        // uses.
        let is_of_all = matches!((old, new), (Expr::Var { .. }, Expr::Var { .. })) || old.binds() || new.binds();
        if self.how == SharedEdits::Noted && !is_of_all {
            self.exprs.push(id);
        }
    }

    #[inline(always)]
    pub(crate) fn operand(&mut self, at: usize) {
        if self.how == SharedEdits::Noted {
            self.operands.push(at as u32);
        }
    }

    /// Adds the record of an inner edit, which began with `exprs` nodes and `operands` operands.
    pub(crate) fn absorb(&mut self, inner: EditedByHand, exprs: usize, operands: usize) {
        self.exprs.extend(inner.exprs.into_iter().filter(|id| id.index() < exprs));
        self.operands.extend(inner.operands.into_iter().filter(|&at| (at as usize) < operands));
    }
}

impl Body {
    /// Sets the meaning of overwriting shared nodes for the rest of the innermost edit, and returns
    /// the previous one, which callers restore. A pass that overwrites nodes in place and means all
    /// their uses sets [`SharedEdits::Meant`].
    ///
    /// Cost: one node.
    #[inline(always)]
    pub fn shared_edits(&mut self, how: SharedEdits) -> SharedEdits {
        match &mut self.journal {
            Some(journal) if cfg!(debug_assertions) => std::mem::replace(&mut journal.by_hand.how, how),
            _ => how,
        }
    }

    /// Takes the nodes that were overwritten since the innermost open edit began, while edits of
    /// shared nodes were recorded. Each comes with the number 0. Empty in builds without debug
    /// assertions.
    pub(crate) fn take_edited_by_hand(&mut self) -> FxHashMap<ExprId, usize> {
        let Some(by_hand) = self.journal.as_mut().map(|j| &mut j.by_hand) else { return FxHashMap::default() };
        let mut nodes: FxHashMap<ExprId, usize> = by_hand.exprs.drain(..).map(|id| (id, 0)).collect();
        let mut places = std::mem::take(&mut by_hand.operands);
        places.sort_unstable();
        if !places.is_empty() {
            for (id, expr) in self.exprs() {
                let Some(list) = expr.operand_list() else { continue };
                let first = places.partition_point(|&at| at < list.start);
                if places.get(first).is_some_and(|&at| (at as usize) < list.start as usize + list.len()) {
                    nodes.insert(id, 0);
                }
            }
        }
        nodes
    }
}
