//! What is remembered while a sequence runs.

use std::sync::{Mutex, MutexGuard};

use crate::compaction::Edited;
use crate::context::lock;
use crate::info::Outcome;
use crate::pass::{Pass, PassKind};

/// What is known of the module that a sequence works on, from one of its passes to the next.
#[derive(Default)]
pub(crate) struct Session {
    /// The passes that finished on the module as it is now, as pipelines write them.
    finished: Mutex<Vec<String>>,
    edited: Mutex<Edited>,
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
        finished.push(pass.pipeline_text());
    }

    /// How much was edited since it was last looked for dead nodes.
    pub(crate) fn edited(&self) -> MutexGuard<'_, Edited> {
        lock(&self.edited)
    }
}
