//! The span of the work on a function, and the subscriber and span of the threads that share it.

use anfora_ir::{Context, Function};
#[cfg(feature = "tracing")]
use tracing::{Dispatch, Level, Span, dispatcher};

/// The target of all spans and events.
#[cfg(feature = "tracing")]
pub(super) const TARGET: &str = "anfora";

/// Returns the span of the work on a function.
#[cfg(feature = "tracing")]
pub(crate) fn function_span(tables: &Context, function: &Function) -> Span {
    let name = function.global().map(|global| tables.global_name(global));
    tracing::span!(target: TARGET, Level::DEBUG, "function", name)
}

/// The subscriber and the span of a thread, for the threads that work for it.
#[cfg(feature = "tracing")]
pub(crate) struct Here {
    dispatch: Dispatch,
    span: Span,
}

#[cfg(feature = "tracing")]
impl Here {
    pub(crate) fn new() -> Here {
        Here { dispatch: dispatcher::get_default(Dispatch::clone), span: Span::current() }
    }

    /// Runs work of that thread on another one.
    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        dispatcher::with_default(&self.dispatch, || self.span.in_scope(work))
    }
}

/// Stands for the span where there are no spans.
#[cfg(not(feature = "tracing"))]
pub(crate) struct Here;

#[cfg(not(feature = "tracing"))]
#[inline]
pub(crate) fn function_span(_tables: &Context, _function: &Function) -> Here {
    Here
}

#[cfg(not(feature = "tracing"))]
impl Here {
    #[inline]
    pub(crate) fn new() -> Here {
        Here
    }

    #[inline]
    pub(crate) fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    #[inline]
    pub(crate) fn in_scope<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }
}
