//! Messages about expressions, with the places that have to be looked up.

use anfora_ir::{Body, Context, Diagnostic, ExprId, FunctionKey, Module, Severity, expr_extent};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::report_site::{ReportSite, name_bindings, name_place};

/// The maximum number of remarks that a context keeps; later ones are only counted.
pub const MAX_REMARKS: usize = 100_000;

/// The greatest number of bytes of the source that are read to find the end of an expression.
const LONGEST: usize = 4096;

/// Messages in the order in which they were left, about one body or about a module.
#[derive(Default)]
pub(crate) struct Messages {
    items: Vec<Message>,
    /// The number of messages for which there was no room.
    dropped: u64,
    /// The number of errors, including those for which there was no room.
    errors: usize,
    /// The index of the first message that walks noted, if there is one. Noted messages that repeat
    /// a message of the pass itself are dropped.
    noted_from: Option<usize>,
}

struct Message {
    diagnostic: Diagnostic,
    /// The expression whose binding is to be looked up, with its function where that is known.
    site: Option<(Option<FunctionKey>, ReportSite)>,
}

impl Messages {
    /// Adds a message. A list that is full for other messages still takes errors, up to twice its
    /// size.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic, site: Option<(Option<FunctionKey>, ReportSite)>) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.keep(Message { diagnostic, site });
    }

    fn keep(&mut self, message: Message) {
        let is_error = message.diagnostic.severity == Severity::Error;
        if self.items.len() < if is_error { 2 * MAX_REMARKS } else { MAX_REMARKS } {
            self.items.push(message);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds a message about an expression of the body of a function.
    pub(crate) fn report(
        &mut self,
        cx: &Context,
        body: &Body,
        function: &str,
        expr: ExprId,
        mut diagnostic: Diagnostic,
    ) {
        diagnostic.function.get_or_insert_with(|| function.to_string());
        let (diagnostic, site) = name_place(cx, body, expr, diagnostic);
        self.push(diagnostic, site.map(|site| (None, site)));
    }

    /// Adds all messages of another list.
    pub(crate) fn append(&mut self, others: Messages) {
        self.errors += others.errors;
        self.dropped += others.dropped;
        others.items.into_iter().for_each(|message| self.keep(message));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.dropped == 0
    }

    /// Returns the number of errors.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    pub(crate) fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.items.iter().map(|message| &message.diagnostic)
    }

    /// Returns the messages, and the number of those that were not kept.
    pub(crate) fn into_parts(self) -> (impl Iterator<Item = Diagnostic>, u64) {
        (self.items.into_iter().map(|message| message.diagnostic), self.dropped)
    }

    // ---- The end of the work on a body, and of a pass ----

    /// Looks up the bindings of messages about a body, while it exists, and adds the messages that
    /// walks noted in it for the author of the pass, except for those that the author reported.
    pub(crate) fn end_body(&mut self, cx: &Context, body: &mut Body, function: &str) {
        self.name_bindings_in(cx, body);
        let noted = body.take_remarks();
        if noted.is_empty() {
            return;
        }
        self.begin_noted();
        noted.into_iter().for_each(|(expr, diagnostic)| self.report(cx, body, function, expr, diagnostic));
        self.name_bindings_in(cx, body);
        self.drop_repeated();
    }

    fn name_bindings_in(&mut self, cx: &Context, body: &Body) {
        name_bindings(cx, body, self.items.iter_mut().filter_map(|m| Some((m.site.take()?.1, &mut m.diagnostic))));
    }

    /// Looks up the bindings of messages about the functions of a module.
    pub(crate) fn name_bindings(&mut self, module: &Module) {
        let mut by_function: FxHashMap<FunctionKey, Vec<(ReportSite, &mut Diagnostic)>> = FxHashMap::default();
        for Message { diagnostic, site } in &mut self.items {
            if let Some((Some(key), site)) = site.take() {
                by_function.entry(key).or_default().push((site, diagnostic));
            }
        }
        // The order of the functions does not matter: each message gets a binding of its own.
        for (key, sites) in by_function {
            if let Some(function) = module.get(key) {
                name_bindings(&module.cx, &function.body, sites.into_iter());
            }
        }
    }

    /// Marks the messages that follow as noted by walks.
    pub(crate) fn begin_noted(&mut self) {
        self.noted_from = Some(self.items.len());
    }

    /// Drops the noted messages that have the same text, function and binding as an earlier
    /// message.
    pub(crate) fn drop_repeated(&mut self) {
        let Some(from) = self.noted_from.take() else { return };
        let mut said = FxHashSet::default();
        let mut at = 0;
        self.items.retain(|Message { diagnostic: Diagnostic { function, binding, message, .. }, .. }| {
            let is_new = said.insert((function.clone(), binding.clone(), message.clone()));
            at += 1;
            is_new || at <= from
        });
    }

    /// Extends spans of one byte to whole expressions. Bodies have only the beginnings of
    /// expressions; their ends are found in the source.
    pub(crate) fn extend_spans(&mut self, module: &Module) {
        let Some(source) = module.source() else { return };
        for Message { diagnostic, .. } in &mut self.items {
            let Some(span) = diagnostic.span.as_mut().filter(|s| s.len() == 1) else { continue };
            let mut end = span.start.saturating_add(LONGEST).min(source.text().len());
            while !source.text().is_char_boundary(end) {
                end -= 1;
            }
            let extent = expr_extent(&source.text()[..end], span.start.min(end));
            if extent.start == span.start && extent.end > span.end {
                *span = extent;
            }
        }
    }
}
