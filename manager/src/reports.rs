//! Messages about expressions of a body that a pass holds in its hands.

use anfora_ir::{Body, Context, Diagnostic, ExprId};

use crate::context::PassContext;
use crate::left::{Dropped, is_full};
use crate::place::{Place, name_bindings, name_place};

/// What was reported of one body, in order.
#[derive(Default)]
pub(crate) struct Reports {
    items: Vec<Report>,
    /// What is not kept is counted.
    dropped: Dropped,
}

/// A message about an expression of the body, with what is left to be found.
struct Report {
    diagnostic: Diagnostic,
    place: Option<Place>,
}

impl Reports {
    /// Notes a message about an expression of the body of a function.
    pub(crate) fn push(&mut self, cx: &Context, body: &Body, function: &str, expr: ExprId, mut diagnostic: Diagnostic) {
        if is_full(self.items.len(), &diagnostic) {
            self.dropped.add(&diagnostic);
            return;
        }
        diagnostic.function.get_or_insert_with(|| function.to_string());
        let (diagnostic, place) = name_place(cx, body, expr, diagnostic);
        self.items.push(Report { diagnostic, place });
    }

    /// Finds the bindings of what was reported, while the body is there.
    pub(crate) fn name_bindings(&mut self, cx: &Context, body: &Body) {
        name_bindings(cx, body, self.items.iter_mut().filter_map(|r| Some((r.place.take()?, &mut r.diagnostic))));
    }

    /// Adds what was reported of a part of the body, and has its bindings.
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

    /// Leaves everything in the context.
    pub(crate) fn leave(&mut self, context: &PassContext) {
        self.items.drain(..).for_each(|r| context.remark(r.diagnostic));
        context.note_dropped(&std::mem::take(&mut self.dropped));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}
