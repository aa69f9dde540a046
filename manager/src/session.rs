//! What is remembered while a sequence runs.

use std::sync::{Mutex, MutexGuard};

use anfora_ir::Module;
use rustc_hash::FxHashSet;

use crate::compaction::Edited;
use crate::context::lock;
use crate::info::Outcome;
use crate::pass::{Pass, PassKind};
use crate::rounds::{Rounds, Visits};

/// What is known of the module that a sequence works on, from one of its passes to the next.
#[derive(Default)]
pub(crate) struct Session {
    /// The passes that finished on the module as it is now, as pipelines write them.
    finished: Mutex<FxHashSet<String>>,
    edited: Mutex<Edited>,
    /// Present while passes are repeated.
    rounds: Mutex<Option<Rounds>>,
}

impl Session {
    /// Whether a pass finished, with the same options, on the module as it is now.
    pub(crate) fn has_finished(&self, pass: &dyn Pass) -> bool {
        lock(&self.finished).contains(&pass.pipeline_text())
    }

    /// Notes that a pass is done with the module as it is.
    pub(crate) fn note_finished(&self, pass: &dyn Pass, outcome: &Outcome) {
        let mut finished = lock(&self.finished);
        // The passes of a sequence have noted themselves what they changed.
        if outcome.is_changed() && pass.kind() != PassKind::Sequence {
            finished.clear();
        }
        finished.insert(pass.pipeline_text());
    }

    /// Remembers, for as long as the guard is there, which functions passes left as they were. Inside of another repetition it is remembered anyway.
    pub(crate) fn repeat(&self) -> RepeatGuard<'_> {
        let mut rounds = lock(&self.rounds);
        let outermost = rounds.is_none();
        rounds.get_or_insert_default();
        RepeatGuard { session: self, outermost }
    }

    /// The functions that a pass may leave out; `None` where passes are not repeated.
    pub(crate) fn begin_visits(&self, pass: u64, module: &Module) -> Option<Visits> {
        lock(&self.rounds).as_mut().map(|rounds| rounds.begin(pass, module))
    }

    /// Notes which functions the pass left as they were, before anything else changes them.
    pub(crate) fn end_visits(&self, visits: &Visits, module: &Module) {
        if let Some(rounds) = lock(&self.rounds).as_mut() {
            rounds.end(visits, module);
        }
    }

    /// How much was edited since it was last looked for dead nodes.
    pub(crate) fn edited(&self) -> MutexGuard<'_, Edited> {
        lock(&self.edited)
    }
}

/// Passes are repeated as long as it is there.
pub(crate) struct RepeatGuard<'a> {
    session: &'a Session,
    outermost: bool,
}

impl Drop for RepeatGuard<'_> {
    fn drop(&mut self) {
        if self.outermost {
            *lock(&self.session.rounds) = None;
        }
    }
}
