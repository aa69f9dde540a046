//! How deep the programs of tests are, and how small the stack is that they run on. It depends on no other crate, so that the tests of each can use it.
//!
//! The environment sets both for all tests at once: `ANFORA_DEEP=1000000` how deep, `ANFORA_STACK_KIB=256` how small. What is built without optimisation
//! has frames several times as large, and needs a stack that is larger by as much, however deep the program is.

use std::panic::resume_unwind;
use std::thread::Builder;

/// How many bindings or levels: `ANFORA_DEEP`, or as many as is ordinary for the test. The stack of [`on_small_stack`] holds the frames of some hundred
/// calls, so that a thousand levels already tell a loop from a recursion.
///
/// # Panics
/// If the variable is not a number.
pub fn depth(ordinary: usize) -> usize {
    setting("ANFORA_DEEP", ordinary)
}

/// The result of `work` on a thread with a stack of 64 KiB, or of `ANFORA_STACK_KIB`. Should it overflow, the process ends.
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
