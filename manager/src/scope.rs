//! Which context is the current one of a thread, and how many passes run on it.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use crate::context::PassContext;
use crate::error::{MAX_NESTING, PassError, PassFailure};

struct Scopes {
    /// What is current outside all scopes.
    default: Option<PassContext>,
    entered: Vec<(u64, PassContext)>,
    next: u64,
}

thread_local! {
    // Borrowed only for as long as it takes to push, pop or clone a handle: no code of others runs meanwhile.
    static SCOPES: RefCell<Scopes> = const { RefCell::new(Scopes { default: None, entered: Vec::new(), next: 0 }) };
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// How deep passes nest on a thread, in each other and in the hooks of instruments, under whatever contexts.
const MOST_RUNS: usize = 2 * MAX_NESTING;

/// A run of a pass is open on this thread as long as it is there.
pub(crate) struct OpenRun {
    thread: PhantomData<*const ()>,
}

/// A run of a pass begins on this thread.
pub(crate) fn open_run() -> Result<OpenRun, PassError> {
    let open = RUNS.get();
    if open == MOST_RUNS {
        return Err(PassError::new(format!("passes nest more than {MOST_RUNS} deep on this thread")));
    }
    RUNS.set(open + 1);
    Ok(OpenRun { thread: PhantomData })
}

impl Drop for OpenRun {
    fn drop(&mut self) {
        RUNS.set(RUNS.get().saturating_sub(1));
    }
}

pub(crate) fn current() -> PassContext {
    SCOPES
        .try_with(|scopes| {
            let scopes = &mut *scopes.borrow_mut();
            match scopes.entered.last() {
                Some((_, cx)) => cx.clone(),
                None => scopes.default.get_or_insert_with(PassContext::new).clone(),
            }
        })
        // The thread is ending, and its scopes are gone.
        .unwrap_or_default()
}

pub(crate) fn push(cx: PassContext) -> ScopeGuard {
    ScopeGuard { id: push_entry(cx.clone()), cx, thread: PhantomData }
}

fn push_entry(cx: PassContext) -> Option<u64> {
    let id = SCOPES.try_with(|scopes| {
        let scopes = &mut *scopes.borrow_mut();
        scopes.next += 1;
        scopes.entered.push((scopes.next, cx));
        scopes.next
    });
    id.ok()
}

/// Runs a closure with a context as the current one of the thread. Its instruments are not told. Contexts that the closure enters and does not leave are left.
pub(crate) fn inherit<T>(cx: &PassContext, f: impl FnOnce() -> T) -> T {
    let guard = InheritGuard(push_entry(cx.clone()));
    let value = f();
    drop(guard);
    value
}

struct InheritGuard(Option<u64>);

impl Drop for InheritGuard {
    fn drop(&mut self) {
        let Some(id) = self.0 else { return };
        while let Some((popped, cx)) = pop(id)
            && popped != id
        {
            if let Err(failure) = cx.exit_instruments() {
                cx.report_failure(&failure);
            }
        }
    }
}

/// Takes off the context that was entered last, if that of `id` is among those entered.
fn pop(id: u64) -> Option<(u64, PassContext)> {
    SCOPES
        .try_with(|scopes| {
            let entered = &mut scopes.borrow_mut().entered;
            if entered.iter().any(|&(e, _)| e == id) { entered.pop() } else { None }
        })
        .ok()
        .flatten()
}

/// Keeps a context current on the thread that entered it. When it goes, the context is not current any more, and its instruments are
/// exited; contexts that were entered since and not left go first.
#[must_use = "the context is current only until the guard goes"]
pub struct ScopeGuard {
    id: Option<u64>,
    cx: PassContext,
    /// Not to be sent to another thread.
    thread: PhantomData<*const ()>,
}

impl ScopeGuard {
    /// Leaves the context.
    ///
    /// # Errors
    /// If one of its instruments fails in its `exit`. The context is not current any more in any case.
    pub fn exit(mut self) -> Result<(), PassFailure> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), PassFailure> {
        let Some(id) = self.id.take() else { return Ok(()) };
        while let Some((popped, cx)) = pop(id) {
            let exited = cx.exit_instruments();
            if popped == id {
                return exited;
            }
            if let Err(failure) = exited {
                cx.report_failure(&failure);
            }
        }
        Ok(())
    }
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        // An exit that fails is left among the remarks of the context.
        if let Err(failure) = self.leave() {
            self.cx.report_failure(&failure);
        }
    }
}
