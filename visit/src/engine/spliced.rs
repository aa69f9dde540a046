//! The Lets that a rewriting walk has spliced, and the check that each has one parent.

use std::ops::ControlFlow;

use anfora_ir::{Body, Editor, ExprId, IdSet, VarId};

use crate::error::{RewriteError, name_for_error};
use crate::link::Binding;
use crate::visitor::{Visit, Visitor, walk_from};

/// Lets that were moved to another chain. Each must have one parent afterwards.
pub(crate) struct Spliced(IdSet<ExprId>);

impl Default for Spliced {
    fn default() -> Spliced {
        Spliced(IdSet::with_capacity(0))
    }
}

impl Spliced {
    pub(crate) fn insert(&mut self, id: ExprId) {
        self.0.insert(id);
    }

    pub(crate) fn contains(&self, id: ExprId) -> bool {
        self.0.contains(id)
    }

    /// Checks that the walk reaches none of them twice under `root`. The check stops at the second
    /// time, so that it also ends in a program that contains itself.
    pub(crate) fn check(&self, editor: &Editor<'_>, root: ExprId) -> Result<(), RewriteError> {
        let mut twice = Twice { spliced: &self.0, seen: IdSet::with_capacity(0) };
        match walk_from(editor.body, root, &mut twice) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(var) => Err(spliced_twice(editor, var)),
        }
    }
}

/// Returns the error for a Let with two parents.
#[cold]
pub(crate) fn spliced_twice(editor: &Editor<'_>, var: VarId) -> RewriteError {
    RewriteError::SplicedTwice { name: name_for_error(editor.cx, editor.body, var) }
}

struct Twice<'a> {
    spliced: &'a IdSet<ExprId>,
    seen: IdSet<ExprId>,
}

impl Visitor for Twice<'_> {
    type Break = VarId;

    #[inline]
    fn visit_binding(&mut self, _: &Body, binding: Binding) -> Visit<VarId> {
        if self.spliced.contains(binding.id) && !self.seen.insert(binding.id) {
            Visit::Stop(binding.var)
        } else {
            Visit::Continue
        }
    }
}
