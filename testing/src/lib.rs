//! Everything that tests, benches and the command line share, and that users of the toolkit do not
//! need:
//!
//! - [`programs`]: programs of any size and shape;
//! - [`depth`] and [`on_small_stack`]: how deep programs of tests are, and the stack that they run
//!   on;
//! - [`cases`]: how many random programs a test takes;
//! - `stress`: every operation of the toolkit, on all of these programs;
//! - `guide`: how to write a pass, page by page.
//!
//! The last two have the feature `toolkit`, which is on by default. Without it, this crate depends
//! only on the representation and the operators. The tests of the other crates use it so.
//!
//! The environment sets both for all tests at once: `ANFORA_DEEP=1000000` sets the depth, and
//! `ANFORA_STACK_KIB=48` the size of the stack. Code that is built without optimisation has frames
//! several times as large. It needs a stack that is larger by the same factor, however deep the
//! program is. The profile of tests builds most crates so, to build them fast.

#[cfg(feature = "toolkit")]
pub mod guide;
pub mod programs;
#[cfg(feature = "toolkit")]
pub mod stress;

use std::io;
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

/// Returns the number of random programs or inputs of a test: `ANFORA_CASES` if it is set, or else
/// `ordinary`.
///
/// # Panics
/// If the variable is not a number.
pub fn cases(ordinary: usize) -> usize {
    setting("ANFORA_CASES", ordinary)
}

/// Runs `work` on a thread with a stack of 128 KiB, or of `ANFORA_STACK_KIB`, and returns its
/// result. A stack overflow ends the process.
///
/// # Panics
/// If `work` panics, or no thread can be started.
pub fn on_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    on_stack(setting("ANFORA_STACK_KIB", 128), work).expect("a thread starts")
}

/// Runs `work` on a thread with a stack of `kib` KiB and returns its result. A stack overflow ends
/// the process.
///
/// # Errors
/// If the thread cannot be started.
///
/// # Panics
/// If `work` panics.
pub fn on_stack<T: Send + 'static>(kib: usize, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let thread = Builder::new().stack_size(kib << 10).spawn(work)?;
    Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
}

fn setting(name: &str, ordinary: usize) -> usize {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => ordinary,
    }
}
