//! What is remembered while a sequence runs.

use std::sync::{Mutex, MutexGuard};

use anfora_ir::Module;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::compaction::Edited;
use crate::context::lock;
use crate::pass::Pass;
use crate::rounds::{Rounds, Visits};

/// What is known of the module that a sequence works on, from one of its passes to the next.
#[derive(Default)]
pub(crate) struct Session {
    finished: Mutex<Finished>,
    edited: Mutex<Edited>,
    /// Present while passes are repeated.
    rounds: Mutex<Option<Rounds>>,
    changes: Mutex<Changes>,
}

/// The passes that changed the module, each with the number of its last change.
#[derive(Default)]
struct Changes {
    count: u64,
    last: FxHashMap<String, u64>,
}

/// The passes that finished on a module, as pipelines write them.
#[derive(Default)]
struct Finished {
    /// The module, by the identity of its globals, and how many edits of it had been kept.
    state: (u64, u64),
    passes: FxHashSet<String>,
}

fn state_of(module: &Module) -> (u64, u64) {
    (module.cx.globals.stamp().identity(), module.revision())
}

impl Session {
    /// Whether a pass finished, with the same options, on the module as it is now.
    pub(crate) fn has_finished(&self, pass: &dyn Pass, module: &Module) -> bool {
        let finished = lock(&self.finished);
        finished.state == state_of(module) && finished.passes.contains(&pass.pipeline_text())
    }

    /// Notes that a pass is done with the module as it is.
    pub(crate) fn note_finished(&self, pass: &dyn Pass, module: &Module) {
        let mut finished = lock(&self.finished);
        let state = state_of(module);
        // Whoever changed the module since: a pass of the sequence, or one that ran under a context of its own.
        if finished.state != state {
            finished.passes.clear();
            finished.state = state;
        }
        finished.passes.insert(pass.pipeline_text());
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

    /// Notes that a pass which is no sequence changed the module.
    pub(crate) fn note_changed(&self, pass: &str) {
        let mut changes = lock(&self.changes);
        changes.count += 1;
        let count = changes.count;
        match changes.last.get_mut(pass) {
            Some(last) => *last = count,
            None => drop(changes.last.insert(pass.to_string(), count)),
        }
    }

    /// Returns how many changes there were.
    pub(crate) fn changes(&self) -> u64 {
        lock(&self.changes).count
    }

    /// Returns the names of the passes that changed the module after so many changes, in the order of their last ones.
    pub(crate) fn changed_since(&self, count: u64) -> Vec<String> {
        let changes = lock(&self.changes);
        let mut since: Vec<(u64, &String)> =
            changes.last.iter().map(|(name, &last)| (last, name)).filter(|&(last, _)| last > count).collect();
        since.sort_unstable();
        since.into_iter().map(|(_, name)| name.clone()).collect()
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
