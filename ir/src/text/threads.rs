//! The distribution of the parts of a text over threads. The threads end with the text: it is read
//! or printed once, so a pool would not be used again.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The most threads that read or print a text.
const MAX_THREADS: usize = 256;

/// Returns the number of threads to use for a given number; for 0, as many as the machine runs at
/// once.
pub(super) fn count(given: usize) -> usize {
    match given {
        0 => thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        n => n.min(MAX_THREADS),
    }
}

/// Returns the results of `work` for the numbers from 0 to `jobs`, in order. This thread and
/// others, `threads` in total, take one number after the other, and each has a state of its own. If
/// the system cannot start a thread, fewer do the work.
pub(super) fn map<S, R: Send>(
    threads: usize,
    jobs: usize,
    state: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs));
    let run = || {
        let mut state = state();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                return;
            }
            let result = work(&mut state, job);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((job, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(jobs) {
            if thread::Builder::new().name("anfora-text".to_string()).spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(job, _)| job);
    done.into_iter().map(|(_, result)| result).collect()
}
