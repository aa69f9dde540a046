//! The current context of each thread.

use std::cell::RefCell;
use std::marker::PhantomData;

use crate::context::PassContext;
use crate::error::PassFailure;

struct Scopes {
    /// The contexts with their numbers. A context that was asked for where none was entered is the
    /// first one, has the number 0, and stays.
    entered: Vec<(u64, PassContext)>,
    last: u64,
}

thread_local! {
    // Borrowed only while a handle is pushed, popped or cloned: no foreign code runs during that
    // time.
    static SCOPES: RefCell<Scopes> = const { RefCell::new(Scopes { entered: Vec::new(), last: 0 }) };
}

impl PassContext {
    /// Returns the context that was entered last on this thread and not left, or else the default
    /// context of the thread.
    pub fn current() -> PassContext {
        SCOPES
            .try_with(|scopes| {
                let scopes = &mut *scopes.borrow_mut();
                if scopes.entered.is_empty() {
                    scopes.entered.push((0, PassContext::new()));
                }
                scopes.entered.last().map(|(_, cx)| cx.clone()).unwrap_or_default()
            })
            // The thread is ending, and its scopes are gone.
            .unwrap_or_default()
    }

    /// Makes this the current context of the thread, until the guard is dropped. A context may be
    /// entered more than once.
    ///
    /// # Errors
    /// If an instrument cannot be entered. The context is then not current, those entered before it
    /// are exited, last first, and the context has lost its instruments.
    pub fn enter(&self) -> Result<ScopeGuard, PassFailure> {
        self.enter_instruments()?;
        Ok(push(self.clone(), true))
    }

    /// Runs a closure with this as the current context of the thread.
    ///
    /// # Errors
    /// If an instrument fails in its `enter` (the closure then does not run) or in its `exit`.
    pub fn scope<T>(&self, f: impl FnOnce() -> T) -> Result<T, PassFailure> {
        let guard = self.enter()?;
        let value = f();
        guard.exit()?;
        Ok(value)
    }

    /// Returns true on a thread that works on a function of a distributed pass.
    pub(crate) fn is_in_distributed_work() -> bool {
        SCOPES.try_with(|scopes| scopes.borrow().entered.iter().any(|(_, cx)| cx.is_fork())).unwrap_or(false)
    }
}

/// Makes a context current until the guard is dropped.
fn push(cx: PassContext, has_entered: bool) -> ScopeGuard {
    let id = SCOPES.try_with(|scopes| {
        let scopes = &mut *scopes.borrow_mut();
        scopes.last += 1;
        scopes.entered.push((scopes.last, cx.clone()));
        scopes.last
    });
    ScopeGuard { id: id.ok(), cx, has_entered, thread: PhantomData }
}

/// Runs a closure with a context as the current one of the thread, without entering its
/// instruments. Contexts that the closure enters and does not leave are left.
pub(crate) fn inherit<T>(cx: &PassContext, f: impl FnOnce() -> T) -> T {
    let guard = push(cx.clone(), false);
    let value = f();
    drop(guard);
    value
}

/// Pops the context that was entered last, if the context `id` is still entered.
fn pop(id: u64) -> Option<(u64, PassContext)> {
    SCOPES
        .try_with(|scopes| {
            let entered = &mut scopes.borrow_mut().entered;
            if entered.iter().any(|&(e, _)| e == id) { entered.pop() } else { None }
        })
        .ok()
        .flatten()
}

/// Keeps a context current on the thread that entered it. When the guard is dropped, the context is
/// not current any more, and its instruments are exited. Contexts that were entered later and not
/// left are left first.
#[must_use = "the context is current only until the guard goes"]
pub struct ScopeGuard {
    id: Option<u64>,
    cx: PassContext,
    /// False if the instruments were not entered.
    has_entered: bool,
    /// Prevents sending the guard to another thread.
    thread: PhantomData<*const ()>,
}

impl ScopeGuard {
    /// Leaves the context.
    ///
    /// # Errors
    /// If one of its instruments fails in its `exit`. The context is not current any more even
    /// then.
    pub fn exit(mut self) -> Result<(), PassFailure> {
        self.leave()
    }

    fn leave(&mut self) -> Result<(), PassFailure> {
        let Some(id) = self.id.take() else { return Ok(()) };
        while let Some((popped, cx)) = pop(id) {
            if popped == id {
                return if self.has_entered { cx.exit_instruments() } else { Ok(()) };
            }
            if let Err(failure) = cx.exit_instruments() {
                cx.report_failure(&failure);
            }
        }
        Ok(())
    }
}

impl Drop for ScopeGuard {
    fn drop(&mut self) {
        // A failure of an exit is left among the remarks of the context.
        if let Err(failure) = self.leave() {
            self.cx.report_failure(&failure);
        }
    }
}

anfora_ir::brief_debug! { ScopeGuard; }
