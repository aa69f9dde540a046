//! The depth of the programs of tests, and the size of the stack that they run on. This crate
//! depends on no other crate, so that the tests of every crate can use it.
//!
//! The environment sets both for all tests at once: `ANFORA_DEEP=1000000` sets the depth, and
//! `ANFORA_STACK_KIB=256` the size of the stack. Code that is built without optimisation has frames
//! several times as large. It needs a stack that is larger by the same factor, however deep the
//! program is.

use std::panic::resume_unwind;
use std::thread::Builder;

/// Returns the number of bindings or levels: `ANFORA_DEEP` if it is set, or else `ordinary`. The
/// stack of [`on_small_stack`] holds the frames of some hundred calls, so a thousand levels already
/// tell a loop from a recursion.
///
/// # Panics
/// If the variable is not a number.
pub fn depth(ordinary: usize) -> usize {
    setting("ANFORA_DEEP", ordinary)
}

/// Runs `work` on a thread with a stack of 64 KiB, or of `ANFORA_STACK_KIB`, and returns its
/// result. A stack overflow ends the process.
///
/// # Panics
/// If `work` panics, or no thread can be started.
pub fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let kib = setting("ANFORA_STACK_KIB", 64);
    let thread = Builder::new().stack_size(kib << 10).spawn(work).expect("a thread starts");
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

fn setting(name: &str, ordinary: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => ordinary,
    }
}
