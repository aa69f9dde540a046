//! The state that is kept while a sequence runs.

use anfora_ir::Module;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::change_tracker::ChangeTracker;
use crate::compaction::Edited;

/// The state of the module that a sequence works on, from one of its passes to the next.
#[derive(Default)]
pub(crate) struct PipelineState {
    /// The passes that finished on a module, as pipelines write them.
    finished: FxHashSet<String>,
    /// The module of `finished`, as the identity of its globals and the number of its committed
    /// edits.
    finished_on: (u64, u64),
    /// The sizes of the edits since bodies were last checked for dead nodes.
    pub(crate) edited: Edited,
    /// The functions that passes leave unchanged. Present while passes are repeated.
    pub(crate) tracker: Option<ChangeTracker>,
    /// The passes that changed the module, each with the number of its last change.
    changed_by: FxHashMap<String, u64>,
    /// The number of changes by passes that are not sequences.
    pub(crate) changes: u64,
}

fn state_of(module: &Module) -> (u64, u64) {
    (module.cx.globals.stamp().identity(), module.revision())
}

impl PipelineState {
    /// Returns true if a pass finished, with the same options, on the module in its present state.
    pub(crate) fn has_finished(&self, pipeline_text: &str, module: &Module) -> bool {
        self.finished_on == state_of(module) && self.finished.contains(pipeline_text)
    }

    /// Records that a pass has run on the module in its present state.
    pub(crate) fn note_finished(&mut self, pipeline_text: String, module: &Module) {
        // A pass of the sequence, or one that ran under a context of its own, has changed the
        // module since.
        if self.finished_on != state_of(module) {
            self.finished.clear();
            self.finished_on = state_of(module);
        }
        self.finished.insert(pipeline_text);
    }

    /// Tracks the functions that passes leave unchanged. Returns false if they are tracked already.
    pub(crate) fn begin_tracking(&mut self) -> bool {
        let begins = self.tracker.is_none();
        self.tracker.get_or_insert_default();
        begins
    }

    /// Records that a pass which is not a sequence changed the module.
    pub(crate) fn note_changed(&mut self, pass: &str) {
        self.changes += 1;
        self.changed_by.insert(pass.to_string(), self.changes);
    }

    /// Returns the names of the passes that changed the module after the first `count` changes, in
    /// the order of their last changes.
    pub(crate) fn changed_since(&self, count: u64) -> Vec<String> {
        let mut since: Vec<(u64, &String)> =
            self.changed_by.iter().map(|(name, &last)| (last, name)).filter(|&(last, _)| last > count).collect();
        since.sort_unstable();
        since.into_iter().map(|(_, name)| name.clone()).collect()
    }
}
