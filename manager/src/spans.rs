//! The spans and events of the feature `tracing`.

use anfora_ir::{Context, Function};
use tracing::{Dispatch, Level, Span, dispatcher};

use crate::error::PassFailure;
use crate::info::{Outcome, PassInfo, PassKind, SkipReason};

/// The target of all spans and events.
const TARGET: &str = "anfora";

/// Returns the span of the run of a pass.
pub(crate) fn pass_span(info: &PassInfo, kind: PassKind, dependency_of: Option<&str>) -> Span {
    let kind = match kind {
        PassKind::Module => "module",
        PassKind::Function => "function",
        PassKind::DataflowBlock => "dataflow block",
        PassKind::Sequence => "sequence",
    };
    let name = info.name.as_str();
    tracing::span!(target: TARGET, Level::INFO, "pass", name, kind, dependency_of)
}

/// Leaves an event with the outcome of a pass.
pub(crate) fn ended(result: &Result<Outcome, PassFailure>) {
    match result {
        Ok(Outcome::Changed) => tracing::event!(target: TARGET, Level::INFO, outcome = "changed"),
        Ok(_) => tracing::event!(target: TARGET, Level::INFO, outcome = "unchanged"),
        Err(failure) => tracing::event!(target: TARGET, Level::ERROR, outcome = "failed", error = %failure),
    }
}

/// Leaves an event for a pass that does not run.
pub(crate) fn skipped(info: &PassInfo, reason: &SkipReason) {
    let pass = info.name.as_str();
    tracing::event!(target: TARGET, Level::INFO, outcome = "skipped", pass, %reason);
}

/// Returns the span of the work on a function.
pub(crate) fn function_span(tables: &Context, function: &Function) -> Span {
    let name = function.global().map(|global| tables.global_name(global));
    tracing::span!(target: TARGET, Level::DEBUG, "function", name)
}

/// Returns work that another thread does for this one, with the subscriber and the span of this
/// thread.
pub(crate) fn on_behalf(work: impl Fn() + Send) -> impl Fn() + Send {
    let (dispatch, span) = (dispatcher::get_default(Dispatch::clone), Span::current());
    move || dispatcher::with_default(&dispatch, || span.in_scope(&work))
}
