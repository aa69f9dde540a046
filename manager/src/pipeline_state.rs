//! The state that is kept while a sequence runs.

use std::sync::Mutex;

use anfora_ir::Module;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::change_tracker::{ChangeTracker, Round};
use crate::compaction::Edited;
use crate::sync::lock;

/// The state of the module that a sequence works on, from one of its passes to the next.
#[derive(Default)]
pub(crate) struct PipelineState(Mutex<State>);

#[derive(Default)]
struct State {
    /// The passes that finished on a module, as pipelines write them.
    finished: FxHashSet<String>,
    /// That module, as the identity of its globals and the number of its committed edits.
    finished_on: (u64, u64),
    /// The sizes of the edits since bodies were last checked for dead nodes.
    edited: Edited,
    /// Present while passes are repeated.
    tracker: Option<ChangeTracker>,
    /// The passes that changed the module, each with the number of its last change.
    changed_by: FxHashMap<String, u64>,
    /// The number of changes.
    changes: u64,
}

fn state_of(module: &Module) -> (u64, u64) {
    (module.cx.globals.stamp().identity(), module.revision())
}

impl PipelineState {
    /// Returns true if a pass finished, with the same options, on the module in its present state.
    pub(crate) fn has_finished(&self, pipeline_text: &str, module: &Module) -> bool {
        let state = lock(&self.0);
        state.finished_on == state_of(module) && state.finished.contains(pipeline_text)
    }

    /// Records that a pass has run on the module in its present state.
    pub(crate) fn note_finished(&self, pipeline_text: String, module: &Module) {
        let mut state = lock(&self.0);
        // A pass of the sequence, or one that ran under a context of its own, has changed the
        // module since.
        if state.finished_on != state_of(module) {
            state.finished.clear();
            state.finished_on = state_of(module);
        }
        state.finished.insert(pipeline_text);
    }

    /// Records the functions that passes leave unchanged, until the guard is dropped. Inside of
    /// another repetition they are recorded already.
    pub(crate) fn repeat(&self) -> RepeatGuard<'_> {
        let tracker = &mut lock(&self.0).tracker;
        let outermost = tracker.is_none();
        tracker.get_or_insert_default();
        RepeatGuard { state: self, outermost }
    }

    /// Returns the functions that a pass may skip; `None` if passes are not repeated.
    pub(crate) fn begin_round(&self, pass: u64, module: &Module) -> Option<Round> {
        lock(&self.0).tracker.as_mut().map(|tracker| tracker.begin(pass, module))
    }

    /// Records the functions that the pass left unchanged, before anything else changes them.
    pub(crate) fn end_round(&self, round: &Round, module: &Module) {
        if let Some(tracker) = &mut lock(&self.0).tracker {
            tracker.end(round, module);
        }
    }

    /// Records that a pass which is not a sequence changed the module.
    pub(crate) fn note_changed(&self, pass: &str) {
        let state = &mut *lock(&self.0);
        state.changes += 1;
        state.changed_by.insert(pass.to_string(), state.changes);
    }

    /// Returns the number of changes.
    pub(crate) fn changes(&self) -> u64 {
        lock(&self.0).changes
    }

    /// Returns the names of the passes that changed the module after the first `count` changes, in
    /// the order of their last changes.
    pub(crate) fn changed_since(&self, count: u64) -> Vec<String> {
        let state = lock(&self.0);
        let mut since: Vec<(u64, &String)> =
            state.changed_by.iter().map(|(name, &last)| (last, name)).filter(|&(last, _)| last > count).collect();
        since.sort_unstable();
        since.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// Calls a closure with the sizes of the edits since bodies were last checked for dead nodes.
    pub(crate) fn with_edited<T>(&self, f: impl FnOnce(&mut Edited) -> T) -> T {
        f(&mut lock(&self.0).edited)
    }
}

/// Keeps the record of a repetition until it is dropped.
pub(crate) struct RepeatGuard<'a> {
    state: &'a PipelineState,
    outermost: bool,
}

impl Drop for RepeatGuard<'_> {
    fn drop(&mut self) {
        if self.outermost {
            lock(&self.state.0).tracker = None;
        }
    }
}
