//! The history of a binding.

use anfora_ir::spelled_local;

use super::{FunctionChange, RecordedOutcome, RecordedPass, RecordedRewrite, Recording};

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
    /// Why: the rewrites of the binding, or those of the function as a whole; then the messages
    /// that the pass left about it.
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
    /// The pass may have made, changed or removed it: not all changes of its function were kept.
    NotKept,
}

impl Recording {
    /// Returns the passes that made, changed and removed a binding, in the order in which they ran.
    /// `binding` is the name of its variable without `%`; for a variable without a name, it is the
    /// number that lines spell, such as `#57`. If the recording left changes out, an event of the
    /// kind [`NotKept`](BindingEventKind::NotKept) says so. A binding that no pass made was in the
    /// program before. Passes that failed, and parts of other passes, have no events. Parameters
    /// have events only if they were added or removed. Linear in the recorded changes of the
    /// function, the number of runs and that of names.
    ///
    /// Cost: linear in the text.
    pub fn history(&self, function: &str, binding: &str) -> Vec<BindingEvent<'_>> {
        let at = self.functions.iter().position(|name| name == function);
        let spellings = [spelled_local(binding), format!("%{binding}")];
        let name = spellings.iter().find_map(|spelling| self.names.iter().position(|name| name == spelling));
        let mut events = Vec::new();
        for (run, pass) in self.runs.iter().enumerate().filter(|(_, run)| run.outcome == RecordedOutcome::Changed) {
            let found = match at.and_then(|function| pass.change_of(function)) {
                Some(change) => self.event(change, name),
                None if pass.functions_left_out > 0 => Some((BindingEventKind::NotKept, [None; 2])),
                None => None,
            };
            if let Some((kind, [before, after])) = found {
                let reasons = self.reasons(pass, function, binding, name);
                events.push(BindingEvent { run, kind, before, after, reasons });
            }
        }
        events
    }

    /// Returns what a change did to a binding, with its lines before and after.
    fn event<'r>(
        &'r self,
        change: &FunctionChange,
        name: Option<usize>,
    ) -> Option<(BindingEventKind, [Option<&'r str>; 2])> {
        let is_name = |of: u32| Some(of as usize) == name;
        let line_of = |side: usize| {
            let lines = change.hunks.iter().flat_map(|hunk| [&hunk.old, &hunk.new][side]);
            let mut lines = lines.map(|&line| &self.lines[line as usize]);
            lines.find(|line| line.binding.is_some_and(is_name) || line.parameters.iter().any(|&p| is_name(p)))
        };
        let lines = [line_of(0), line_of(1)];
        let is_parameter = lines.map(|line| line.is_some_and(|line| !line.binding.is_some_and(is_name)));
        let kind = match (lines, change.rows_left_out > 0) {
            ([None, None], false) => return None,
            // A line may have changed around a parameter.
            ([Some(_), Some(_)], _) if is_parameter == [true; 2] => return None,
            ([Some(_), Some(_)], _) => BindingEventKind::Changed,
            (_, true) => BindingEventKind::NotKept,
            ([None, Some(_)], false) => BindingEventKind::Made,
            ([Some(_), None], false) => BindingEventKind::Removed,
        };
        Some((kind, lines.map(|line| line.map(|line| &*line.text))))
    }

    fn reasons<'r>(
        &'r self,
        run: &'r RecordedPass,
        function: &str,
        binding: &str,
        name: Option<usize>,
    ) -> Vec<&'r str> {
        let is_about = |text: &Option<String>, name: &str| text.as_deref() == Some(name);
        let is_function = |of: usize| self.functions[of] == function;
        let of_binding =
            |r: &&RecordedRewrite| r.function.is_some_and(is_function) && r.binding.is_some() && r.binding == name;
        // A binding without a rewrite of its own was changed by those of the function as a whole.
        let of_whole = |r: &&RecordedRewrite| r.function.is_none_or(is_function) && r.binding.is_none();
        let mut rewrites: Vec<&RecordedRewrite> = run.rewrites.iter().filter(of_binding).collect();
        if rewrites.is_empty() {
            rewrites = run.rewrites.iter().filter(of_whole).collect();
        }
        let messages = run.messages.iter().filter(|d| is_about(&d.function, function) && is_about(&d.binding, binding));
        rewrites.into_iter().map(|r| &*self.reasons[r.why]).chain(messages.map(|d| &*d.message)).collect()
    }
}
