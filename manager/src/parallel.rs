//! The threads of a context, and the distribution of work over them.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::sync::lock;

/// The maximum number of threads that a context uses.
pub const MAX_THREADS: usize = 256;

/// The default of the least number of nodes with which the functions of a module are distributed
/// over threads. Waking threads takes about as long as a cheap pass over this many nodes.
pub(crate) const WORTH_SHARING: usize = 8192;

/// The threads of a context, which the contexts that are derived from it share.
pub(crate) struct Workers {
    pub(crate) threads: usize,
    /// One thread fewer than `threads`, since the thread that distributes the work takes part. Made
    /// when there is work for it; absent if the system cannot make the threads.
    pool: OnceLock<Option<ThreadPool>>,
}

impl Workers {
    /// Makes a set of `threads` threads; 0 for as many as the machine runs at once.
    pub(crate) fn new(threads: usize) -> Workers {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
            n => n,
        };
        Workers { threads: threads.min(MAX_THREADS), pool: OnceLock::new() }
    }

    /// Returns the pool. Returns `None` with one thread, if the system cannot make threads, and on
    /// a thread of any pool: a thread of a pool that waited here would start another job of its
    /// pool in the middle of its pass.
    pub(crate) fn pool(&self) -> Option<&ThreadPool> {
        if self.threads < 2 || rayon::current_thread_index().is_some() {
            return None;
        }
        let named = |i| format!("anfora-worker-{i}");
        let make = || ThreadPoolBuilder::new().num_threads(self.threads - 1).thread_name(named).build().ok();
        self.pool.get_or_init(make).as_ref()
    }

    /// Groups consecutive jobs into chunks that a thread takes at once: small enough that other
    /// threads do not wait long for the last chunk, and large enough that threads do not wait for
    /// the queue. A large job is a chunk of its own.
    pub(crate) fn chunks<J>(&self, jobs: Vec<Job<J>>) -> Vec<Job<Vec<J>>> {
        let share = total(&jobs) / (self.threads * SHARES);
        let mut chunks: Vec<Job<Vec<J>>> = Vec::new();
        for Job { size, what } in jobs {
            match chunks.last_mut() {
                Some(chunk) if chunk.size.saturating_add(size) <= share => {
                    chunk.size += size;
                    chunk.what.push(what);
                }
                _ => chunks.push(Job { size, what: vec![what] }),
            }
        }
        chunks
    }

    /// Drops things on a thread of the pool, while this thread continues.
    pub(crate) fn drop_in_background<T: Send + 'static>(&self, things: Vec<T>) {
        if let (false, Some(pool)) = (things.is_empty(), self.pool()) {
            pool.spawn(move || drop(things));
        }
    }

    /// Returns the results of `work` for each job, in the order of the jobs. The threads take the
    /// jobs in that order, one at a time, except that jobs which are much larger than others come
    /// first. Each thread has a state of its own.
    pub(crate) fn map<J: Send, S, R: Send>(
        &self,
        jobs: Vec<Job<J>>,
        state: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize, J) -> R + Sync,
    ) -> Vec<R> {
        let pool = match self.pool() {
            Some(pool) if jobs.len() > 1 => pool,
            _ => {
                let mut state = state();
                return jobs.into_iter().enumerate().map(|(i, job)| work(&mut state, i, job.what)).collect();
            }
        };
        let (count, total) = (jobs.len(), total(&jobs));
        let workers = self.threads.min(count);
        let large = total / (workers * 4);
        let mut queue: Vec<(usize, Job<J>)> = jobs.into_iter().enumerate().collect();
        queue.sort_by_key(|(_, job)| Reverse(job.size > large));
        let queue = Mutex::new(queue.into_iter());
        let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(count));
        let worker = &|| {
            let mut state = state();
            let mut results = Vec::new();
            loop {
                let next = lock(&queue).next();
                let Some((i, job)) = next else { break };
                results.push((i, work(&mut state, i, job.what)));
            }
            lock(&done).append(&mut results);
        };
        pool.in_place_scope(|scope| {
            for _ in 1..workers {
                #[cfg(feature = "tracing")]
                let worker = crate::spans::on_behalf(worker);
                scope.spawn(move |_| worker());
            }
            worker();
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_unstable_by_key(|&(i, _)| i);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

/// The number of chunks of jobs for each thread.
const SHARES: usize = 32;

fn total<J>(jobs: &[Job<J>]) -> usize {
    jobs.iter().map(|j| j.size).fold(0, usize::saturating_add)
}

/// A job, with its size relative to other jobs.
pub(crate) struct Job<J> {
    pub(crate) size: usize,
    pub(crate) what: J,
}
