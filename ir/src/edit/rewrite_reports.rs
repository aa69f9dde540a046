//! Reports of rewrites and of near misses, by their places in bodies.

use std::fmt::Display;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::text::binding_label;

impl Context {
    /// Counts a rewrite at a Let, variable or tail of a body; see
    /// [`Editor::rewrote`](crate::Editor::rewrote).
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn rewrote(&self, body: &Body, at: ExprId, why: impl Display) {
        self.rewrites.note_at(|| binding_label(self, body, at), why);
    }

    /// Records another binding that the last rewrite has changed, made or removed, by its Let or
    /// variable. Does nothing if the last rewrite is not recorded.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn rewrote_also(&self, body: &Body, at: ExprId, why: impl Display) {
        if self.rewrites.records_last()
            && let Some(label) = binding_label(self, body, at)
        {
            self.rewrites.note_also(Some(&label), why);
        }
    }

    /// Records a near miss at a Let, variable or tail of a body; see
    /// [`Editor::nearly`](crate::Editor::nearly).
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn nearly(&self, body: &Body, at: ExprId, what: &str, why: impl FnOnce() -> String) {
        if self.rewrites.may_explain() {
            self.rewrites.note_near_miss(binding_label(self, body, at).as_deref(), what, why);
        }
    }
}
