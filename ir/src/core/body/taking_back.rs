//! Commits and rollbacks of edits of a body.

use super::{Body, EditedByHand, Leaf};
use crate::core::entity::{EntityId, ExprId};
use crate::edit::journal::Journal;
use crate::report::diagnostic::Diagnostic;

impl Body {
    /// Opens a journal, which records all overwritten contents from now on. A journal that is
    /// already open records nothing until this one is closed.
    pub fn begin_journal(&mut self) {
        let mut journal = self.new_journal();
        journal.stop = self.stop();
        if let (true, Some(outer)) = (cfg!(debug_assertions), &self.journal) {
            journal.by_hand = EditedByHand::inside(&outer.by_hand);
        }
        journal.outer = self.journal.take();
        self.journal = Some(Box::new(journal));
    }

    /// Opens a journal as [`Body::begin_journal`] does, for an edit of the module that the body is
    /// in. Journals that are opened later are closed with it.
    pub(crate) fn begin_module_journal(&mut self) {
        self.begin_journal();
        if let Some(journal) = &mut self.journal {
            journal.of_module = true;
        }
    }

    /// Returns true if the innermost open journal was not opened by an edit of the module.
    fn has_own_journal(&self) -> bool {
        self.journal.as_ref().is_some_and(|j| !j.of_module)
    }

    /// Keeps the changes of the innermost edit of the module.
    pub(crate) fn commit_module_journal(&mut self) {
        while self.has_own_journal() {
            self.commit_journal();
        }
        self.commit_journal();
    }

    /// Rolls back the changes of the innermost edit of the module.
    pub(crate) fn rollback_module_journal(&mut self) {
        while self.has_own_journal() {
            self.rollback_journal();
        }
        self.rollback_journal();
    }

    /// Returns true if anything was overwritten in the innermost edit of the module. A body that
    /// has no journal during an edit was assigned, and counts as overwritten.
    pub(crate) fn is_edited_in_module(&self) -> bool {
        let mut journal = self.journal.as_deref();
        while let Some(open) = journal {
            if open.of_module || !open.is_empty() {
                return !open.is_empty();
            }
            journal = open.outer.as_deref();
        }
        true
    }

    fn new_journal(&self) -> Journal {
        Journal::new(self.revisions.now(), self.exprs.len(), self.operands.len(), self.lambda_count())
    }

    /// Replaces this body with another. While a journal is open this body is kept, so that a
    /// rollback can restore it (assigning to the body of a function would lose it). The new body
    /// has the next generation, so it refuses side tables of this body.
    pub fn replace(&mut self, mut new: Body) {
        new.journal = None;
        new.generation = self.generation + 1;
        let mut old = std::mem::replace(self, new);
        let Some(journal) = &mut old.journal else { return };
        // If this body was itself put in place during the edit, a rollback restores the first one.
        let (first, of_module) = (journal.replaced.take(), journal.of_module);
        let mut journal = self.new_journal();
        journal.of_module = of_module;
        journal.replaced = Some(first.unwrap_or_else(|| Box::new(old)));
        self.journal = Some(Box::new(journal));
    }

    /// Closes the journal and keeps the edit. Returns true if anything was overwritten; nodes that
    /// were only appended do not count, since nothing links to them.
    pub fn commit_journal(&mut self) -> bool {
        let Some(mut journal) = self.journal.take() else { return false };
        if let Some(mut old) = journal.replaced.take() {
            old.commit_journal();
            if let Some(open) = &old.journal {
                let mut outer = self.new_journal();
                outer.of_module = open.of_module;
                outer.stop = journal.stop;
                outer.remarks = journal.remarks;
                outer.replaced = Some(old);
                self.journal = Some(Box::new(outer));
            }
            return true;
        }
        let changed = !journal.is_empty();
        if let Some(mut outer) = journal.outer.take() {
            outer.absorb(*journal);
            self.journal = Some(outer);
        }
        changed
    }

    /// Returns true if a journal is open.
    ///
    /// Cost: one node.
    pub fn has_journal(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns true if anything was overwritten since the journal was opened; false without one.
    pub fn is_edited(&self) -> bool {
        self.journal.as_ref().is_some_and(|j| !j.is_empty())
    }

    /// Returns the number of overwritten and appended entries since the journal was opened; 0
    /// without a journal.
    pub fn edit_size(&self) -> usize {
        self.journal.as_ref().map_or(0, |j| match j.replaced {
            Some(_) => self.exprs.len(),
            None => j.len() + self.exprs.len() - j.exprs_len,
        })
    }

    /// Closes the journal and restores the body to its state when the journal was opened. Does
    /// nothing without a journal.
    pub fn rollback_journal(&mut self) {
        let Some(mut journal) = self.journal.take() else { return };
        // A body that was replaced as a whole comes back first, with its journal.
        while let Some(old) = journal.replaced.take() {
            *self = *old;
            let Some(own) = self.journal.take() else { return };
            journal = own;
        }
        // Restore what was overwritten, last change first.
        let Journal { outer, revision, exprs_len, operands_len, lambdas_len, .. } = *journal;
        let Journal { exprs, types, operands, lambdas, lambda_symbols, meta, root, params, .. } = *journal;
        for (id, old) in exprs.into_iter().rev() {
            let new = std::mem::replace(&mut self.exprs[id], old);
            // A node that was overwritten with an atom is no longer the node of that atom.
            if let Some(leaves) = &mut self.leaves
                && let Some(leaf) = Leaf::of(new)
                && leaves.get(&leaf) == Some(&id)
            {
                leaves.remove(&leaf);
            }
        }
        for (id, old) in types.into_iter().rev() {
            self.types[id.index()] = old;
        }
        for (at, old) in operands.into_iter().rev() {
            self.operands[at as usize] = old;
        }
        // Restore the root and the parameters.
        if let Some(root) = root {
            self.root = root;
        }
        if let Some(params) = params {
            self.params = params;
        }
        // Forget what was added to the side tables, and restore their entries.
        if self.exprs.len() > exprs_len
            && let Some(leaves) = &mut self.leaves
        {
            leaves.retain(|_, id| id.index() < exprs_len);
        }
        if let Some(extras) = &mut self.extras {
            for (id, old) in lambdas.into_iter().rev() {
                extras.lambdas[id] = old;
            }
            for (id, old) in meta.into_iter().rev() {
                match old {
                    Some(m) => extras.meta.insert(id, m),
                    None => extras.meta.remove(&id),
                };
            }
            for (id, old) in lambda_symbols.into_iter().rev() {
                match old {
                    Some(symbols) => extras.lambda_symbols.insert(id, symbols),
                    None => extras.lambda_symbols.remove(&id),
                };
            }
            if extras.lambdas.len() > lambdas_len {
                extras.lambda_symbols.retain(|id, _| id.index() < lambdas_len);
                extras.lambdas.truncate(lambdas_len);
            }
        }
        // Remove what was added.
        self.exprs.truncate(exprs_len);
        self.types.truncate(exprs_len);
        self.spans.truncate(exprs_len);
        self.operands.truncate(operands_len);
        self.revisions.back_to(revision);
        self.journal = outer;
    }

    // ---- Notes for the report of an edit ----

    /// Records the Let, or other expression, at which an editing walk ended with an error, for the
    /// report of that error; `None` when another walk begins. A commit keeps the note, a rollback
    /// restores the previous one. Without a journal nothing is recorded.
    ///
    /// Cost: one node.
    pub fn note_stop(&mut self, at: Option<ExprId>) {
        if let Some(journal) = &mut self.journal {
            journal.stop = at;
        }
    }

    /// Returns the expression at which the last editing walk ended with an error, if it did.
    ///
    /// Cost: one node.
    pub fn stop(&self) -> Option<ExprId> {
        self.journal.as_ref().and_then(|j| j.stop)
    }

    /// Records remarks for the author of an edit, each about an expression. The pass manager
    /// reports them together with the pass's own diagnostics. A commit keeps the remarks, a
    /// rollback drops them. Without a journal nothing is recorded.
    ///
    /// Cost: one node.
    pub fn note_remarks(&mut self, remarks: impl IntoIterator<Item = (ExprId, Diagnostic)>) {
        if let Some(journal) = &mut self.journal {
            journal.remarks.extend(remarks);
        }
    }

    /// Returns true if the innermost open edit has remarks for its author.
    ///
    /// Cost: one node.
    pub fn has_remarks(&self) -> bool {
        self.journal.as_ref().is_some_and(|j| !j.remarks.is_empty())
    }

    /// Takes the remarks for the author of the innermost open edit.
    ///
    /// Cost: one node.
    pub fn take_remarks(&mut self) -> Vec<(ExprId, Diagnostic)> {
        self.journal.as_mut().map(|j| std::mem::take(&mut j.remarks)).unwrap_or_default()
    }
}
