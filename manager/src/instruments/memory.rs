//! The memory that passes use.

use std::fmt;
use std::sync::Mutex;

use anfora_ir::Module;

use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::open_runs::OpenRuns;
use crate::sync::lock;

use crate::table::{count, nested_name};

/// An instrument that records for each run of a pass how many bytes the module's arenas and tables
/// hold before and after it ([`Module::capacity_bytes`]), and, given a probe of the allocator, what
/// the process allocates during the run.
///
/// The size after a pass is recorded when the pass is done, before its edit is committed and sparse
/// bodies are compacted; the size before a pass is recorded after that. For a pass that failed,
/// `after` is the size after the rollback. A probe also counts what other instruments and other
/// threads allocate.
#[derive(Default)]
pub struct Memory {
    probe: Option<Box<Probe>>,
    state: Mutex<Measurements>,
}

type Probe = dyn Fn() -> AllocationCounts + Send + Sync;

/// The figures of a counting allocator at some time. Figures that it does not count are absent.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AllocationCounts {
    /// The number of allocations since the process began.
    pub allocations: Option<u64>,
    /// The greatest number of bytes that were in use at once since the last call of the probe,
    /// which restarts this figure.
    pub peak_bytes: Option<u64>,
}

/// The maximum number of runs that a [`Memory`] keeps. Later ones are only counted.
pub const MAX_MEMORY_RUNS: usize = 100_000;

#[derive(Default)]
struct Measurements {
    runs: Vec<MemoryRun>,
    open: OpenRuns<Open>,
    dropped: u64,
}

struct Open {
    /// The index among the runs, if the run is kept.
    run: Option<usize>,
    /// The figures of the probe before the run, with the peak of the runs inside of it.
    counts: AllocationCounts,
}

/// One run of a pass.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryRun {
    /// The name of the pass.
    pub name: String,
    /// The number of passes around it.
    pub depth: usize,
    /// Bytes of the module before the pass.
    pub before: usize,
    /// Bytes of the module after the pass; absent while it runs.
    pub after: Option<usize>,
    /// True if the pass failed.
    pub failed: bool,
    /// The number of allocations during the run, if the probe counts them.
    pub allocations: Option<u64>,
    /// The greatest number of bytes that the process had in use at once during the run, if the
    /// probe counts them.
    pub peak_bytes: Option<u64>,
}

impl Memory {
    /// Makes an instrument that measures the module only.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Makes an instrument that also asks an allocator, before and after each run, on the thread
    /// that runs the pass.
    ///
    /// ```
    /// use anfora_manager::{AllocationCounts, Memory};
    /// use peak_alloc::PeakAlloc;
    ///
    /// #[global_allocator]
    /// static ALLOCATOR: PeakAlloc = PeakAlloc;
    ///
    /// let memory = Memory::with_probe(|| {
    ///     let peak = ALLOCATOR.peak_usage() as u64;
    ///     ALLOCATOR.reset_peak_usage();
    ///     AllocationCounts { peak_bytes: Some(peak), ..AllocationCounts::default() }
    /// });
    /// # let _ = memory;
    /// ```
    pub fn with_probe(probe: impl Fn() -> AllocationCounts + Send + Sync + 'static) -> Memory {
        Memory { probe: Some(Box::new(probe)), state: Mutex::default() }
    }

    /// Returns the runs, in the order in which they began.
    pub fn runs(&self) -> Vec<MemoryRun> {
        lock(&self.state).runs.clone()
    }

    /// Returns JSON: `{"runs": [{"name", "depth", "before_bytes", "after_bytes", "failed",
    /// "allocations", "peak_bytes"}], "runs_left_out"}`; `null` for figures that were not counted.
    pub fn to_json(&self) -> serde_json::Value {
        let state = lock(&self.state);
        let runs: serde_json::Value = state
            .runs
            .iter()
            .map(|r| {
                serde_json::json!({
                    "name": r.name, "depth": r.depth, "before_bytes": r.before, "after_bytes": r.after, "failed": r.failed,
                    "allocations": r.allocations, "peak_bytes": r.peak_bytes,
                })
            })
            .collect();
        serde_json::json!({ "runs": runs, "runs_left_out": state.dropped })
    }

    fn probed(&self) -> AllocationCounts {
        self.probe.as_ref().map_or_else(AllocationCounts::default, |probe| probe())
    }

    fn end(&self, module: &Module, failed: bool) {
        let counts = self.probed();
        let state = &mut *lock(&self.state);
        let Some(open) = state.open.end() else { return };
        let peak = open.counts.peak_bytes.max(counts.peak_bytes);
        // The peak inside of a pass is also reached in the pass around it.
        if let Some(outer) = state.open.innermost() {
            outer.counts.peak_bytes = outer.counts.peak_bytes.max(peak);
        }
        if let Some(run) = open.run {
            let run = &mut state.runs[run];
            run.after = Some(module.capacity_bytes());
            run.failed = failed;
            run.peak_bytes = peak;
            run.allocations =
                counts.allocations.zip(open.counts.allocations).map(|(now, then)| now.saturating_sub(then));
        }
    }
}

impl Instrument for Memory {
    fn name(&self) -> &str {
        "Memory"
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let before = module.capacity_bytes();
        let counts = self.probed();
        let state = &mut *lock(&self.state);
        if let Some(outer) = state.open.innermost() {
            outer.counts.peak_bytes = outer.counts.peak_bytes.max(counts.peak_bytes);
        }
        let at = (state.runs.len() < MAX_MEMORY_RUNS).then_some(state.runs.len());
        state.dropped += u64::from(at.is_none());
        if at.is_some() {
            let (name, depth) = (run.name().to_string(), run.depth());
            state.runs.push(MemoryRun { name, depth, before, ..MemoryRun::default() });
        }
        state.open.begin(run, Open { run: at, counts: AllocationCounts { peak_bytes: None, ..counts } });
        Ok(())
    }

    fn run_after(&self, module: &Module, _: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        self.end(module, false);
        Ok(())
    }

    fn on_error(&self, module: &Module, _: &PassRun<'_>, _: &PassFailure) {
        self.end(module, true);
    }
}

/// Writes a table of at most 80 columns, one run per line. Columns that were not counted are left
/// out.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        if state.runs.is_empty() {
            return writeln!(f, "no pass ran");
        }
        let peak = state.runs.iter().any(|r| r.peak_bytes.is_some());
        let allocations = state.runs.iter().any(|r| r.allocations.is_some());
        let column = |shown: bool, text: String| if shown { format!(" {text:>10}") } else { String::new() };
        let columns = |a: String, b: String| column(peak, a) + &column(allocations, b);
        let head = columns("peak".to_string(), "allocs".to_string());
        writeln!(f, "{:>10} {:>10} {:>11}{head}  pass", "before", "after", "change")?;
        for run in &state.runs {
            let after = run.after.map_or_else(String::new, |n| bytes(n as u64));
            let counts = columns(
                run.peak_bytes.map_or_else(String::new, bytes),
                run.allocations.map_or_else(String::new, count),
            );
            let mark = if run.failed { " (failed)" } else { "" };
            let name = nested_name(&run.name, run.depth, mark, 80 - 35 - head.len());
            writeln!(f, "{:>10} {after:>10} {:>11}{counts}  {name}", bytes(run.before as u64), change(run))?;
        }
        match state.dropped {
            0 => Ok(()),
            n => writeln!(f, "{n} more runs were not kept"),
        }
    }
}

fn change(run: &MemoryRun) -> String {
    match run.after {
        Some(after) if after > run.before => format!("+{}", bytes((after - run.before) as u64)),
        Some(after) if after < run.before => format!("-{}", bytes((run.before - after) as u64)),
        Some(_) => "0".to_string(),
        None => String::new(),
    }
}

/// Returns a number of bytes in at most 10 characters.
fn bytes(n: u64) -> String {
    let mut value = n as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        // Compared as it will be rounded.
        if value < 1023.95 {
            return if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.0} PiB")
}

anfora_ir::brief_debug! { Memory; }
