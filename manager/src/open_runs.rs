//! The open runs of passes, for instruments that look at whole passes.

use std::collections::HashMap;
use std::thread::{self, ThreadId};

use crate::instrument::PassRun;
use crate::pass::PassKind;

/// The role of a run for an instrument that looks at whole passes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum RunRole {
    /// A sequence, which does nothing itself.
    Sequence,
    /// A pass that is not part of another pass.
    Whole,
    /// A pass that another pass runs itself, under its own context or another one.
    Part,
}

/// The runs that have begun on each thread and not ended, with a value that the instrument keeps
/// from the beginning of the outermost run to its end. An instrument calls [`OpenRuns::begin`] at
/// the end of its `run_before`, and [`OpenRuns::end`] in its `on_end`.
#[derive(Debug)]
pub struct OpenRuns<T> {
    threads: HashMap<ThreadId, Thread<T>>,
}

#[derive(Debug)]
struct Thread<T> {
    open: Vec<RunRole>,
    kept: T,
}

impl<T> Default for OpenRuns<T> {
    fn default() -> OpenRuns<T> {
        OpenRuns { threads: HashMap::new() }
    }
}

impl<T: Default> OpenRuns<T> {
    /// Makes a set without open runs.
    pub fn new() -> OpenRuns<T> {
        OpenRuns::default()
    }

    /// Returns the role of a run that is about to begin on this thread.
    pub fn role(&self, run: &PassRun<'_>) -> RunRole {
        let innermost = self.threads.get(&thread::current().id()).and_then(|t| t.open.last());
        match (innermost, run.kind()) {
            (Some(RunRole::Whole | RunRole::Part), _) => RunRole::Part,
            (_, PassKind::Sequence) => RunRole::Sequence,
            _ => RunRole::Whole,
        }
    }

    /// Begins a run on this thread.
    pub fn begin(&mut self, role: RunRole) {
        let begin = || Thread { open: Vec::new(), kept: T::default() };
        self.threads.entry(thread::current().id()).or_insert_with(begin).open.push(role);
    }

    /// Returns the role of the innermost run of this thread, and the kept value; `None` if no run
    /// is open.
    pub fn innermost(&mut self) -> Option<(RunRole, &mut T)> {
        let thread = self.threads.get_mut(&thread::current().id())?;
        Some((*thread.open.last()?, &mut thread.kept))
    }

    /// Ends the innermost run of this thread. If it was also the outermost one, returns the kept
    /// value.
    pub fn end(&mut self) -> Option<T> {
        let id = thread::current().id();
        let open = &mut self.threads.get_mut(&id)?.open;
        open.pop();
        if open.is_empty() { self.threads.remove(&id).map(|t| t.kept) } else { None }
    }

    /// Returns true if no run is open on any thread.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}
