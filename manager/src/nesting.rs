//! The number of passes that run on each thread.

use std::cell::Cell;
use std::marker::PhantomData;

use crate::error::{MAX_NESTING, PassError};

thread_local! {
    static RUNS: Cell<usize> = const { Cell::new(0) };
}

/// The maximum nesting of passes on a thread, in each other and in the hooks of instruments, under
/// whatever contexts.
const MOST_RUNS: usize = 2 * MAX_NESTING;

/// Keeps a run of a pass open on this thread until it is dropped.
pub(crate) struct OpenRun {
    thread: PhantomData<*const ()>,
}

/// Begins a run of a pass on this thread.
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
