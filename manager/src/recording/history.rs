//! The history of a binding.

use super::{RecordedPass, RecordedRewrite, Recording};
use crate::recording::RecordedOutcome;

/// An event in the history of a binding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BindingEvent<'r> {
    /// The index of the run of the pass.
    pub run: usize,
    /// The kind of event.
    pub kind: BindingEventKind,
    /// The line of the binding before the pass.
    pub before: Option<&'r str>,
    /// The line of the binding after the pass.
    pub after: Option<&'r str>,
    /// Why: the rewrites of the binding, or those of the function as a whole; then the messages that the pass left about it.
    pub reasons: Vec<&'r str>,
}

/// The effect of a pass on a binding.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BindingEventKind {
    /// The pass made it.
    Made,
    /// The pass changed its value or type, or moved it.
    Changed,
    /// The pass removed it.
    Removed,
}

impl Recording {
    /// Returns the passes that made, changed and removed a binding, in the order in which they ran.
    /// `binding` is the name of its variable without `%`. A binding that no pass made was in the
    /// program before. Passes that failed, and parts of other passes, have no events. Linear in the
    /// recorded changes of the function.
    ///
    /// Cost: linear in the text.
    pub fn history(&self, function: &str, binding: &str) -> Vec<BindingEvent<'_>> {
        let Some(function) = self.functions.iter().position(|name| name == function) else { return Vec::new() };
        let line_of = |lines: &[u32]| {
            let mut lines = lines.iter().map(|&line| &self.lines[line as usize]);
            lines.find(|line| line.binding.as_deref() == Some(binding)).map(|line| &*line.text)
        };
        let mut events = Vec::new();
        for (i, run) in self.runs.iter().enumerate().filter(|(_, run)| run.outcome == RecordedOutcome::Changed) {
            let hunks = || run.changes.iter().filter(|change| change.function == function).flat_map(|c| &c.hunks);
            let before = hunks().find_map(|hunk| line_of(&hunk.old));
            let after = hunks().find_map(|hunk| line_of(&hunk.new));
            let kind = match (before, after) {
                (None, None) => continue,
                (None, Some(_)) => BindingEventKind::Made,
                (Some(_), Some(_)) => BindingEventKind::Changed,
                (Some(_), None) => BindingEventKind::Removed,
            };
            events.push(BindingEvent { run: i, kind, before, after, reasons: self.reasons(run, function, binding) });
        }
        events
    }

    fn reasons<'r>(&'r self, run: &'r RecordedPass, function: usize, binding: &str) -> Vec<&'r str> {
        let is_about = |text: &Option<String>, name: &str| text.as_deref() == Some(name);
        let of_binding = |r: &&RecordedRewrite| r.function == Some(function) && r.binding.as_deref() == Some(binding);
        // A binding without a rewrite of its own was changed by those of the function as a whole.
        let of_whole = |r: &&RecordedRewrite| r.function.is_none_or(|of| of == function) && r.binding.is_none();
        let mut rewrites: Vec<&RecordedRewrite> = run.rewrites.iter().filter(of_binding).collect();
        if rewrites.is_empty() {
            rewrites = run.rewrites.iter().filter(of_whole).collect();
        }
        let messages = run
            .messages
            .iter()
            .filter(|d| is_about(&d.function, &self.functions[function]) && is_about(&d.binding, binding));
        rewrites.into_iter().map(|r| &*self.reasons[r.why]).chain(messages.map(|d| &*d.message)).collect()
    }
}
