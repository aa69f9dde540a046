//! The threads of a context, and the distribution of work over them.

use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock, PoisonError};

use anfora_ir::{Context, Function, FunctionKey, Module};
use rayon::{ThreadPool, ThreadPoolBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::context::PassContext;
use crate::function_pass::Frozen;
use crate::scope::inherit;
use crate::sync::lock;

/// The maximum number of threads that a context uses.
pub const MAX_THREADS: usize = 256;

/// The default for the least number of nodes of a module whose functions are distributed over
/// threads. To wake threads takes about as long as a cheap pass takes for this many nodes.
pub(crate) const WORTH_SHARING: usize = 8192;

/// The threads that a context and those derived from it share.
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

    /// Returns the pool; `None` where work is not distributed: with one thread, and on a thread of
    /// any pool. On a thread of a pool, a pass runs inside of distributed work, and a waiting
    /// thread would take up more of that work in the middle of the pass.
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

impl PassContext {
    /// Edits functions of a module, and returns each key with the result of `edit`, in the order of
    /// the keys. Keys of removed functions, and keys that occur again, are left out.
    ///
    /// This is for a module pass that does the same to many functions. `edit` gets the tables for
    /// reading, so it cannot intern. The functions are edited on the threads of the context
    /// ([`PassContextBuilder::threads`](crate::PassContextBuilder::threads)) if they are a large
    /// part of the module and large enough that it pays, and the ledger of rewrites is off.
    /// Otherwise, they are edited one after the other, and rewrites count as those of the function.
    /// `edit` returns its messages and counts: those that it left in a context would come in
    /// the order of the threads.
    ///
    /// Cost: that of the author's code.
    ///
    /// ```
    /// use anfora_ir::{Source, parse_module};
    /// use anfora_manager::PassContext;
    ///
    /// let text = "def @f(%x: float32) { %x } def @g(%x: int64, %y: int64) { %y }";
    /// let mut module = parse_module(Source::new("example", text), Default::default())?;
    /// let keys = module.order().to_vec();
    /// let counts = PassContext::new().edit_each(&mut module, &keys, |_tables, function| {
    ///     function.body.params().len()
    /// });
    /// assert_eq!(counts, [(keys[0], 1), (keys[1], 2)]);
    /// # Ok::<(), anfora_ir::Diagnostics>(())
    /// ```
    pub fn edit_each<R: Send>(
        &self,
        module: &mut Module,
        keys: &[FunctionKey],
        edit: impl Fn(&Context, &mut Function) -> R + Sync,
    ) -> Vec<(FunctionKey, R)> {
        // To collect all functions of a module for editing takes a step for each of them.
        let nodes = match keys.len() >= module.order().len() / 8 {
            true => keys.iter().filter_map(|&key| module.get(key)).map(|f| f.body.len()).sum(),
            false => 0,
        };
        let Some(workers) = self.workers_for(&module.cx.rewrites, keys.len(), nodes) else {
            let mut edited = FxHashSet::default();
            let mut edit_one = |key| {
                let (function, tables) = module.get_mut(key).filter(|_| edited.insert(key))?;
                tables.rewrites.enter_function(function.global().map(|global| tables.global_name(global)));
                Some((key, edit(tables, function)))
            };
            return keys.iter().filter_map(|&key| edit_one(key)).collect();
        };
        module.cx.freeze();
        let (functions, tables) = module.get_all_mut();
        let frozen = Frozen(tables);
        let mut functions: FxHashMap<FunctionKey, &mut Function> = functions.into_iter().collect();
        let job = |key| {
            let function = functions.remove(&key)?;
            Some(Job { size: function.body.len(), what: (key, function) })
        };
        let jobs = keys.iter().copied().filter_map(job).collect();
        // Each thread has arenas of its own for scratch memory, in an overlay.
        let own = || (frozen.0.overlay(), self.fork());
        let edit_all = |tables: &Context, functions: Vec<(FunctionKey, &mut Function)>| -> Vec<(FunctionKey, R)> {
            functions.into_iter().map(|(key, function)| (key, edit(tables, function))).collect()
        };
        let edited = workers.map(workers.chunks(jobs), own, |(tables, handle), _, functions| {
            inherit(handle, || edit_all(tables, functions))
        });
        edited.into_iter().flatten().collect()
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
