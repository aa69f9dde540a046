//! The running passes, for an instrument.

use std::thread::ThreadId;

/// A value for each running pass, by thread, outermost first. A context may run passes on several
/// threads at once, each on a module of its own.
pub(super) struct OpenRuns<T> {
    threads: Vec<(ThreadId, Vec<T>)>,
}

impl<T> Default for OpenRuns<T> {
    fn default() -> OpenRuns<T> {
        OpenRuns { threads: Vec::new() }
    }
}

impl<T> OpenRuns<T> {
    /// Returns the values of the passes that are running on this thread.
    pub(super) fn here(&self) -> &[T] {
        let thread = std::thread::current().id();
        self.threads.iter().find(|(t, _)| *t == thread).map_or(&[], |(_, open)| open)
    }

    /// Returns the value of the innermost pass that is running on this thread.
    pub(super) fn last_mut(&mut self) -> Option<&mut T> {
        let thread = std::thread::current().id();
        self.threads.iter_mut().find(|(t, _)| *t == thread)?.1.last_mut()
    }

    /// Begins a pass on this thread.
    pub(super) fn begin(&mut self, run: T) {
        let thread = std::thread::current().id();
        match self.threads.iter_mut().find(|(t, _)| *t == thread) {
            Some((_, open)) => open.push(run),
            None => self.threads.push((thread, vec![run])),
        }
    }

    /// Ends the pass that began last on this thread, and returns its value. The runner reports the
    /// end of each run whose beginning it reported, with or without success.
    pub(super) fn end(&mut self) -> Option<T> {
        let thread = std::thread::current().id();
        let i = self.threads.iter().position(|(t, _)| *t == thread)?;
        let ended = self.threads[i].1.pop();
        if self.threads[i].1.is_empty() {
            self.threads.swap_remove(i);
        }
        ended
    }

    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }
}
