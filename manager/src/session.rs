//! The state that is kept while a sequence runs.

use std::sync::{Mutex, MutexGuard};

use anfora_ir::Module;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::compaction::Edited;
use crate::context::lock;
use crate::pass::Pass;
use crate::rounds::{Rounds, Visits};

/// The state of the module that a sequence works on, from one of its passes to the next.
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
    /// The module, as the identity of its globals and the number of its committed edits.
    state: (u64, u64),
    passes: FxHashSet<String>,
}

fn state_of(module: &Module) -> (u64, u64) {
    (module.cx.globals.stamp().identity(), module.revision())
}

impl Session {
    /// Returns true if a pass finished, with the same options, on the module in its present state.
    pub(crate) fn has_finished(&self, pass: &dyn Pass, module: &Module) -> bool {
        let finished = lock(&self.finished);
        finished.state == state_of(module) && finished.passes.contains(&pass.pipeline_text())
    }

    /// Records that a pass has run on the module in its present state.
    pub(crate) fn note_finished(&self, pass: &dyn Pass, module: &Module) {
        let mut finished = lock(&self.finished);
        let state = state_of(module);
        // A pass of the sequence, or one that ran under a context of its own, has changed the
        // module since.
        if finished.state != state {
            finished.passes.clear();
            finished.state = state;
        }
        finished.passes.insert(pass.pipeline_text());
    }

    /// Records the functions that passes leave unchanged, until the guard is dropped. Inside of
    /// another repetition they are recorded already.
    pub(crate) fn repeat(&self) -> RepeatGuard<'_> {
        let mut rounds = lock(&self.rounds);
        let outermost = rounds.is_none();
        rounds.get_or_insert_default();
        RepeatGuard { session: self, outermost }
    }

    /// Returns the functions that a pass may skip; `None` if passes are not repeated.
    pub(crate) fn begin_visits(&self, pass: u64, module: &Module) -> Option<Visits> {
        lock(&self.rounds).as_mut().map(|rounds| rounds.begin(pass, module))
    }

    /// Records the functions that the pass left unchanged, before anything else changes them.
    pub(crate) fn end_visits(&self, visits: &Visits, module: &Module) {
        if let Some(rounds) = lock(&self.rounds).as_mut() {
            rounds.end(visits, module);
        }
    }

    /// Records that a pass which is not a sequence changed the module.
    pub(crate) fn note_changed(&self, pass: &str) {
        let mut changes = lock(&self.changes);
        changes.count += 1;
        let count = changes.count;
        match changes.last.get_mut(pass) {
            Some(last) => *last = count,
            None => drop(changes.last.insert(pass.to_string(), count)),
        }
    }

    /// Returns the number of changes.
    pub(crate) fn changes(&self) -> u64 {
        lock(&self.changes).count
    }

    /// Returns the names of the passes that changed the module after the first `count` changes, in
    /// the order of their last changes.
    pub(crate) fn changed_since(&self, count: u64) -> Vec<String> {
        let changes = lock(&self.changes);
        let mut since: Vec<(u64, &String)> =
            changes.last.iter().map(|(name, &last)| (last, name)).filter(|&(last, _)| last > count).collect();
        since.sort_unstable();
        since.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// Returns the sizes of the edits since bodies were last checked for dead nodes.
    pub(crate) fn edited(&self) -> MutexGuard<'_, Edited> {
        lock(&self.edited)
    }
}

/// Keeps the record of a repetition until it is dropped.
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
