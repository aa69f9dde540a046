//! The open runs of passes, for instruments.

use std::collections::HashMap;
use std::thread::{self, ThreadId};

use crate::info::PassKind;
use crate::instrument::PassRun;

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

/// The runs that have begun on each thread and not ended, each with a value that the instrument
/// keeps until it ends. A context may run passes on several threads at once, each on a module of
/// its own. An instrument calls [`OpenRuns::begin`] at the end of its `run_before`, and
/// [`OpenRuns::end`] when the run ends, with or without success.
#[derive(Debug)]
pub struct OpenRuns<T> {
    threads: HashMap<ThreadId, Vec<(RunRole, T)>>,
}

impl<T> Default for OpenRuns<T> {
    fn default() -> OpenRuns<T> {
        OpenRuns { threads: HashMap::new() }
    }
}

impl<T> OpenRuns<T> {
    /// Returns the role of a run that is about to begin on this thread.
    pub fn role(&self, run: &PassRun<'_>) -> RunRole {
        match (self.role_of_innermost(), run.kind()) {
            (Some(RunRole::Whole | RunRole::Part), _) => RunRole::Part,
            (_, PassKind::Sequence) => RunRole::Sequence,
            _ => RunRole::Whole,
        }
    }

    /// Returns the role of the innermost run of this thread; `None` if no run is open.
    pub fn role_of_innermost(&self) -> Option<RunRole> {
        self.threads.get(&thread::current().id())?.last().map(|(role, _)| *role)
    }

    /// Begins a run on this thread, and returns its role.
    pub fn begin(&mut self, run: &PassRun<'_>, value: T) -> RunRole {
        let role = self.role(run);
        self.threads.entry(thread::current().id()).or_default().push((role, value));
        role
    }

    /// Returns the value of the innermost run of this thread; `None` if no run is open.
    pub fn innermost(&mut self) -> Option<&mut T> {
        self.threads.get_mut(&thread::current().id())?.last_mut().map(|(_, value)| value)
    }

    /// Returns the value of the outermost run of this thread; `None` if no run is open.
    pub fn outermost(&mut self) -> Option<&mut T> {
        self.threads.get_mut(&thread::current().id())?.first_mut().map(|(_, value)| value)
    }

    /// Ends the innermost run of this thread, and returns its value.
    pub fn end(&mut self) -> Option<T> {
        let id = thread::current().id();
        let open = self.threads.get_mut(&id)?;
        let ended = open.pop();
        if open.is_empty() {
            self.threads.remove(&id);
        }
        ended.map(|(_, value)| value)
    }

    /// Returns true if no run is open on any thread.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}
