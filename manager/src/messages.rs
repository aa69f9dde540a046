//! Messages about expressions, with the places that have to be looked up.

use anfora_ir::{
    Body, Context, Cursor, Diagnostic, EntityId, Expr, ExprId, FunctionKey, Module, Severity, Step, expr_extent,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{PassError, PassFailure, caught};

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
    pub(crate) errors: usize,
    /// The index of the first message that walks noted, if there is one. Noted messages that repeat
    /// a message of the pass itself are dropped.
    noted_from: Option<usize>,
}

struct Message {
    diagnostic: Diagnostic,
    /// The expression whose binding is to be looked up, with its function where that is known.
    site: Option<(Option<FunctionKey>, ReportSite)>,
}

/// An expression of a body, with the generation of its numbering.
#[derive(Copy, Clone)]
struct ReportSite {
    expr: ExprId,
    generation: u32,
}

impl Messages {
    /// Adds a message without a place to look up. A list that is full for other messages still
    /// takes errors, up to twice its size.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        self.keep(Message { diagnostic, site: None });
    }

    fn keep(&mut self, message: Message) {
        let is_error = message.diagnostic.severity == Severity::Error;
        if self.items.len() < if is_error { 2 * MAX_REMARKS } else { MAX_REMARKS } {
            self.items.push(message);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds a message about an expression of the body of a function. The key tells the function in
    /// a list of messages about a module.
    pub(crate) fn report(
        &mut self,
        (cx, body): (&Context, &Body),
        (name, key): (&str, Option<FunctionKey>),
        expr: ExprId,
        mut diagnostic: Diagnostic,
    ) {
        diagnostic.function.get_or_insert_with(|| name.to_string());
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        let site = name_place(cx, body, expr, &mut diagnostic).map(|site| (key, site));
        self.keep(Message { diagnostic, site });
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
        noted.into_iter().for_each(|(expr, d)| self.report((cx, body), (function, None), expr, d));
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
    fn drop_repeated(&mut self) {
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
    fn extend_spans(&mut self, module: &Module) {
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

    /// Looks up the places of the messages of a pass, while the module is as the pass made it. If
    /// the pass has reported errors, returns a failure with them. If the pass has left a body so
    /// ill-formed that a walk of it panics, returns a failure too; the messages then have no
    /// bindings.
    pub(crate) fn settle<T>(&mut self, module: &Module, result: Result<T, PassFailure>) -> Result<T, PassFailure> {
        let named = caught(|| {
            self.name_bindings(module);
            Ok(())
        });
        let result = result.and_then(|done| named.map(|()| done).map_err(PassFailure::from));
        self.drop_repeated();
        self.extend_spans(module);
        if self.errors == 0 {
            return result;
        }
        let errors = self.diagnostics().filter(|d| d.severity == Severity::Error).cloned().collect();
        Err(match result {
            Ok(_) => PassError::reported(errors, self.errors).into(),
            Err(failure) => failure.after_reported(errors, self.errors),
        })
    }
}

/// Adds the known facts about an expression at once: its bytes in the source, and, for a Let or
/// variable, its binding. Returns a place for an expression whose binding has to be looked up
/// later.
fn name_place(cx: &Context, body: &Body, expr: ExprId, diagnostic: &mut Diagnostic) -> Option<ReportSite> {
    if expr.index() >= body.len() {
        return None;
    }
    if diagnostic.span.is_none() {
        diagnostic.span = body.span(expr).map(|start| start as usize..start as usize + 1);
    }
    if diagnostic.binding.is_some() {
        return None;
    }
    if let Expr::Let { .. } | Expr::Var { .. } = body.expr(expr) {
        diagnostic.binding = body.binding_name(cx, expr).map(str::to_string);
        return None;
    }
    Some(ReportSite { expr, generation: body.generation() })
}

/// Adds the bindings of places that [`name_place`] returned, in one walk of the body. Expressions
/// that are not linked any more, or that no named binding contains, get none. Linear in the body
/// and the places.
fn name_bindings<'d>(cx: &Context, body: &Body, places: impl Iterator<Item = (ReportSite, &'d mut Diagnostic)>) {
    let mut wanted: FxHashMap<ExprId, Vec<&mut Diagnostic>> = FxHashMap::default();
    let mut atoms = false;
    for (place, diagnostic) in places {
        if place.generation == body.generation() && place.expr.index() < body.len() {
            atoms |= body.expr(place.expr).is_atom();
            wanted.entry(place.expr).or_default().push(diagnostic);
        }
    }
    let found = |wanted: &mut FxHashMap<ExprId, Vec<&mut Diagnostic>>, id: ExprId, lets: &[ExprId]| {
        if let (Some(about), Some(&link)) = (wanted.remove(&id), lets.last())
            && let Some(name) = body.binding_name(cx, link)
        {
            about.into_iter().for_each(|d| d.binding = Some(name.to_string()));
        }
    };
    // The Lets whose values contain the current node of the walk.
    let mut lets: Vec<ExprId> = Vec::new();
    let mut cursor = Cursor::new(body);
    while let (false, Some(step)) = (wanted.is_empty(), cursor.next(body)) {
        match step {
            Step::Let(id) => lets.push(id),
            Step::Bound(_) => drop(lets.pop()),
            Step::Atom(id) | Step::Enter(id) => found(&mut wanted, id, &lets),
            Step::Flat(id) => {
                found(&mut wanted, id, &lets);
                let inputs = if atoms { body.inputs(id) } else { &[] };
                inputs.iter().for_each(|&o| found(&mut wanted, o, &lets));
            }
            Step::EnterBlock(..) | Step::ExitBlock(..) | Step::Exit(_) | Step::Seen(_) => {}
        }
    }
}

/// Returns the error of a pass over a body, with the binding at which the last walk of the body
/// ended, if the error may be that of a walk and names no binding.
pub(crate) fn at_stop(cx: &Context, body: &Body, error: PassError) -> PassError {
    let is_open = error.is_of_walk() && error.binding().is_none();
    let Some(stop) = body.stop().filter(|at| is_open && at.index() < body.len()) else {
        return error;
    };
    // The pass may have left a body so ill-formed that a walk of it panics. The error is returned
    // as it is then.
    let found = caught(|| {
        let mut found = Messages::default();
        found.report((cx, body), ("", None), stop, Diagnostic::error(""));
        found.name_bindings_in(cx, body);
        Ok(found.items.pop().and_then(|message| message.diagnostic.binding))
    });
    match found.ok().flatten() {
        Some(binding) => error.or_on_binding(&binding),
        None => error,
    }
}

/// Returns the error of a pass over a module, with the function and binding at which a walk ended,
/// if the error may be that of a walk and does not name them. If walks of several functions ended
/// with errors, and the error does not name one of them, it gets no place.
pub(crate) fn at_stop_in_module(module: &Module, error: PassError) -> PassError {
    if !error.is_of_walk() {
        return error;
    }
    let is_meant = |key| error.function().is_none_or(|name| module.name(key) == name);
    let mut stopped = module.functions().filter(|(key, f)| f.body.stop().is_some() && is_meant(*key));
    match (stopped.next(), stopped.next()) {
        (Some((key, f)), None) => at_stop(&module.cx, &f.body, error.or_in_function(module.name(key))),
        _ => error,
    }
}
