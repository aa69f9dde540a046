//! The contexts that are current in a thread: those of `with`, and of the passes that run.

use std::cell::RefCell;

use anfora::manager::{self, ScopeGuard};
use pyo3::prelude::*;

use crate::context::PassContext;

/// A context that is current.
pub(super) struct Current {
    /// The guard of the scope, if `with` made it current. It goes before the context, which holds
    /// the instruments that hear of the end of the scope.
    pub(super) scope: Option<ScopeGuard>,
    context: Py<PassContext>,
    /// The handle of the pass that runs under it, if it is current for a callback of the pass.
    running: Option<manager::PassContext>,
}

thread_local! {
    /// The current contexts of this thread, innermost last. Nothing is called while it is borrowed.
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
}

/// Runs passes, or the callback of a pass (`running` is its handle), with a context as the current
/// one.
pub(crate) fn during<T>(
    py: Python<'_>,
    context: &Py<PassContext>,
    running: Option<manager::PassContext>,
    work: impl FnOnce() -> T,
) -> T {
    let entered = Current { context: context.clone_ref(py), scope: None, running };
    CURRENT.with(|current| current.borrow_mut().push(entered));
    let result = work();
    let left = CURRENT.with(|current| current.borrow_mut().pop());
    drop(left);
    result
}

/// Makes a context current by `with`, until [`leave`].
pub(super) fn enter(context: Py<PassContext>, scope: ScopeGuard) {
    let entered = Current { context, scope: Some(scope), running: None };
    CURRENT.with(|current| current.borrow_mut().push(entered));
}

/// Ends the innermost current context. Returns `None` and ends nothing, unless it is this context,
/// made current by `with`.
pub(super) fn leave(context: &Bound<'_, PassContext>) -> Option<Current> {
    CURRENT.with(|current| {
        let mut current = current.borrow_mut();
        match current.last() {
            Some(last) if last.context.is(context) && last.scope.is_some() => current.pop(),
            _ => None,
        }
    })
}

/// Returns the innermost current context of the thread; `None` outside of all.
pub(super) fn innermost(py: Python<'_>) -> Option<Py<PassContext>> {
    CURRENT.with(|current| current.borrow().last().map(|c| c.context.clone_ref(py)))
}

/// Returns the context for the toolkit. Inside of a pass that runs under it, passes that are run
/// are inside of that pass.
pub(crate) fn inner_of(context: &Py<PassContext>) -> manager::PassContext {
    let running = CURRENT.with(|current| {
        let current = current.borrow();
        current.last().filter(|c| c.context.is(context)).and_then(|c| c.running.clone())
    });
    running.unwrap_or_else(|| context.get().inner.clone())
}

/// Returns true in a callback of a pass, which is verified when the pass ends.
pub(crate) fn in_pass() -> bool {
    CURRENT.with(|current| current.borrow().last().is_some_and(|c| c.running.is_some()))
}

/// Returns the context of Python under which a pass runs: the current one, or a new one on a thread
/// that has none.
pub(crate) fn of_running(py: Python<'_>, inner: &manager::PassContext) -> PyResult<Py<PassContext>> {
    innermost(py).map_or_else(|| Py::new(py, PassContext::of(py, inner.clone())), Ok)
}
