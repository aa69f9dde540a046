//! Messages about expressions of a body that a pass is editing.

use anfora_ir::{Body, Context, Diagnostic, ExprId, FunctionKey, Module};
use rustc_hash::FxHashSet;

use crate::context::PassContext;
use crate::left::{Dropped, is_full};
use crate::place::{Place, name_bindings, name_place};

/// The messages about one body, in order.
#[derive(Default)]
pub(crate) struct Reports {
    items: Vec<Report>,
    /// The counts of the messages that were not kept.
    dropped: Dropped,
}

/// A message about an expression of the body, with the place that is still to be looked up.
struct Report {
    diagnostic: Diagnostic,
    place: Option<Place>,
}

impl Reports {
    /// Adds a message about an expression of the body of a function.
    pub(crate) fn push(&mut self, cx: &Context, body: &Body, function: &str, expr: ExprId, mut diagnostic: Diagnostic) {
        if is_full(self.items.len(), &diagnostic) {
            self.dropped.add(&diagnostic);
            return;
        }
        diagnostic.function.get_or_insert_with(|| function.to_string());
        let (diagnostic, place) = name_place(cx, body, expr, diagnostic);
        self.items.push(Report { diagnostic, place });
    }

    /// Adds the messages that walks noted in the body of a function for the author of the pass,
    /// except for those that the author reported.
    pub(crate) fn take_noted(&mut self, cx: &Context, body: &mut Body, function: &str) {
        let noted = body.take_remarks();
        if noted.is_empty() {
            return;
        }
        let from = self.items.len();
        noted.into_iter().for_each(|(expr, diagnostic)| self.push(cx, body, function, expr, diagnostic));
        self.name_bindings(cx, body);
        drop_repeated(&mut self.items, from, |report| &report.diagnostic);
    }

    /// Looks up the bindings of the messages, while the body exists.
    pub(crate) fn name_bindings(&mut self, cx: &Context, body: &Body) {
        name_bindings(cx, body, self.items.iter_mut().filter_map(|r| Some((r.place.take()?, &mut r.diagnostic))));
    }

    /// Appends messages about a part of the body; their bindings are looked up already.
    pub(crate) fn append(&mut self, part: Reports) {
        self.dropped.add_all(&part.dropped);
        for report in part.items {
            if is_full(self.items.len(), &report.diagnostic) {
                self.dropped.add(&report.diagnostic);
            } else {
                self.items.push(report);
            }
        }
    }

    /// Moves all messages to the context.
    pub(crate) fn leave(&mut self, context: &PassContext) {
        self.items.drain(..).for_each(|r| context.remark(r.diagnostic));
        context.note_dropped(&std::mem::take(&mut self.dropped));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Reports the messages that walks noted in bodies for the author of a pass that is about to end.
pub(crate) fn report_noted(module: &mut Module, cx: &PassContext) {
    let has_remarks = |&key: &FunctionKey| module.get(key).is_some_and(|f| f.body.has_remarks());
    let noted: Vec<FunctionKey> = module.order().iter().copied().filter(has_remarks).collect();
    if noted.is_empty() {
        return;
    }
    cx.begin_noted();
    for key in noted {
        let remarks = module.get_mut(key).map_or_else(Vec::new, |(f, _)| f.body.take_remarks());
        remarks.into_iter().for_each(|(expr, diagnostic)| cx.report(module, key, expr, diagnostic));
    }
}

/// Drops messages from index `from` on that have the same text, function and binding as an earlier
/// message.
pub(crate) fn drop_repeated<T>(items: &mut Vec<T>, from: usize, message: impl Fn(&T) -> &Diagnostic) {
    let mut said = FxHashSet::default();
    let mut at = 0;
    items.retain(|item| {
        let Diagnostic { function, binding, message, .. } = message(item);
        let is_new = said.insert((function.clone(), binding.clone(), message.clone()));
        at += 1;
        is_new || at <= from
    });
}
