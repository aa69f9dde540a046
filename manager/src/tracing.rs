//! The spans and events of the feature `tracing`. Without the feature, everything here is empty.

#[cfg(feature = "tracing")]
mod on {
    use anfora_ir::{Context, Function};
    use tracing::{Dispatch, Level, Span, dispatcher};

    use crate::error::PassFailure;
    use crate::info::{Outcome, PassInfo, PassKind, SkipReason};
    use crate::instrument::PassRun;

    /// The target of all spans and events.
    const TARGET: &str = "anfora";

    /// Runs a pass in a span, and leaves an event with its outcome in the span.
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
    pub(crate) fn skipped(info: &PassInfo, reason: &SkipReason) {
        let pass = info.name.as_str();
        tracing::event!(target: TARGET, Level::INFO, outcome = "skipped", pass, %reason);
    }

    /// Returns the span of the work on a function.
    pub(crate) fn function_span(tables: &Context, function: &Function) -> Span {
        let name = function.global().map(|global| tables.global_name(global));
        tracing::span!(target: TARGET, Level::DEBUG, "function", name)
    }

    /// The subscriber and the span of a thread, for the threads that work for it.
    pub(crate) struct Here {
        dispatch: Dispatch,
        span: Span,
    }

    impl Here {
        pub(crate) fn new() -> Here {
            Here { dispatch: dispatcher::get_default(Dispatch::clone), span: Span::current() }
        }

        /// Runs work of that thread on another one.
        pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
            dispatcher::with_default(&self.dispatch, || self.span.in_scope(work))
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use anfora_ir::{Context, Function};

    use crate::error::PassFailure;
    use crate::info::{Outcome, PassInfo, SkipReason};
    use crate::instrument::PassRun;

    #[inline]
    pub(crate) fn in_pass(
        _run: &PassRun<'_>,
        execute: impl FnOnce() -> Result<Outcome, PassFailure>,
    ) -> Result<Outcome, PassFailure> {
        execute()
    }

    #[inline]
    pub(crate) fn skipped(_info: &PassInfo, _reason: &SkipReason) {}

    #[inline]
    pub(crate) fn function_span(_tables: &Context, _function: &Function) -> NoSpan {
        NoSpan
    }

    pub(crate) struct NoSpan;

    impl NoSpan {
        #[inline]
        pub(crate) fn in_scope<T>(&self, work: impl FnOnce() -> T) -> T {
            work()
        }
    }

    pub(crate) struct Here;

    impl Here {
        #[inline]
        pub(crate) fn new() -> Here {
            Here
        }

        #[inline]
        pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
            work()
        }
    }
}

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{Here, function_span, in_pass, skipped};
#[cfg(feature = "tracing")]
pub(crate) use on::{Here, function_span, in_pass, skipped};
