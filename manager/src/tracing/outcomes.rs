//! The span of the run of a pass, and events with its outcome.

#[cfg(feature = "tracing")]
use tracing::Level;

#[cfg(feature = "tracing")]
use super::spans::TARGET;
use crate::error::PassFailure;
#[cfg(feature = "tracing")]
use crate::info::PassKind;
use crate::info::{Outcome, PassInfo, SkipReason};
use crate::instrument::PassRun;

/// Runs a pass in a span, and leaves an event with its outcome in the span.
#[cfg(feature = "tracing")]
pub(crate) fn in_pass(
    run: &PassRun<'_>,
    execute: impl FnOnce() -> Result<Outcome, PassFailure>,
) -> Result<Outcome, PassFailure> {
    let kind = match run.kind() {
        PassKind::Module => "module",
        PassKind::Function => "function",
        PassKind::DataflowBlock => "dataflow block",
        PassKind::Sequence => "sequence",
    };
    let dependency_of = run.dependency_of();
    let span = tracing::span!(target: TARGET, Level::INFO, "pass", name = run.name(), kind, dependency_of);
    let _entered = span.enter();
    let result = execute();
    match &result {
        Ok(Outcome::Changed) => tracing::event!(target: TARGET, Level::INFO, outcome = "changed"),
        Ok(_) => tracing::event!(target: TARGET, Level::INFO, outcome = "unchanged"),
        Err(failure) => tracing::event!(target: TARGET, Level::ERROR, outcome = "failed", error = %failure),
    }
    result
}

/// Leaves an event for a pass that does not run.
#[cfg(feature = "tracing")]
pub(crate) fn skipped(info: &PassInfo, reason: &SkipReason) {
    let pass = info.name.as_str();
    tracing::event!(target: TARGET, Level::INFO, outcome = "skipped", pass, %reason);
}

#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn in_pass(
    _run: &PassRun<'_>,
    execute: impl FnOnce() -> Result<Outcome, PassFailure>,
) -> Result<Outcome, PassFailure> {
    execute()
}

#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn skipped(_info: &PassInfo, _reason: &SkipReason) {}
