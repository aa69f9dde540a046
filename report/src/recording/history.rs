//! The history of a binding.

use std::borrow::Cow;

use anfora_ir::spelled_local;

use super::{FunctionChange, RecordedLine, RecordedOutcome, RecordedPass, RecordedRewrite, Recording};

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
    /// Why: the rewrites of the binding. If there are none, those of the operands that it lost,
    /// with their names, or else those of the result and of the function as a whole. Then the
    /// messages that the pass left about the binding.
    pub reasons: Vec<Cow<'r, str>>,
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
            if let Some((kind, lines)) = found {
                let reasons = self.reasons(pass, function, (binding, name), lines);
                let [before, after] = lines.map(|line| line.map(|line| &*line.text));
                events.push(BindingEvent { run, kind, before, after, reasons });
            }
        }
        events
    }

    /// Returns the passes that were asked for, as a pipeline writes them: without those that ran as
    /// dependencies.
    ///
    /// Cost: linear in the text.
    pub fn pipeline(&self) -> String {
        let asked_for = self.runs.iter().filter(|run| run.parent.is_none() && run.dependency_of.is_none());
        let texts: Vec<&str> = asked_for.map(|run| run.text.as_str()).filter(|text| !text.is_empty()).collect();
        texts.join(",")
    }

    /// Returns what a change did to a binding, with its lines before and after.
    fn event<'r>(
        &'r self,
        change: &FunctionChange,
        name: Option<usize>,
    ) -> Option<(BindingEventKind, [Option<&'r RecordedLine>; 2])> {
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
        Some((kind, lines))
    }

    fn reasons<'r>(
        &'r self,
        run: &'r RecordedPass,
        function: &str,
        (binding, name): (&str, Option<usize>),
        [before, after]: [Option<&'r RecordedLine>; 2],
    ) -> Vec<Cow<'r, str>> {
        let is_about = |text: &Option<String>, name: &str| text.as_deref() == Some(name);
        let is_function = |of: usize| self.functions[of] == function;
        let of_binding =
            |r: &&RecordedRewrite| r.function.is_some_and(is_function) && r.binding.is_some() && r.binding == name;
        let why = |r: &RecordedRewrite| -> Cow<'r, str> { self.reasons[r.why].as_str().into() };
        let mut reasons: Vec<Cow<'r, str>> = run.rewrites.iter().filter(of_binding).map(why).collect();
        if let (Some(before), Some(after), true) = (before, after, reasons.is_empty()) {
            let is_lost = |name: u32| before.uses.contains(&name) && !after.uses.contains(&name);
            let lost = run.rewrites.iter().filter(|r| r.function.is_some_and(is_function));
            let lost = lost.filter_map(|r| Some((r.binding.filter(|&of| is_lost(of as u32))?, r)));
            reasons.extend(lost.map(|(of, r)| format!("{}: {}", self.names[of], why(r)).into()));
        }
        // Otherwise the rewrites of the function as a whole changed it.
        let of_whole = |r: &&RecordedRewrite| r.function.is_none_or(is_function) && r.binding.is_none();
        if reasons.is_empty() {
            reasons.extend(run.rewrites.iter().filter(of_whole).map(why));
        }
        let messages = run.messages.iter().filter(|d| is_about(&d.function, function) && is_about(&d.binding, binding));
        reasons.extend(messages.map(|d| Cow::from(&*d.message)));
        reasons
    }
}
