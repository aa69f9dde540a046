//! How much memory passes take.

use std::fmt;
use std::sync::Mutex;

use anfora_ir::Module;

use crate::context::lock;
use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};

use super::open_runs::OpenRuns;
use super::table::{count, nested_name};

/// Notes for each run of a pass how many bytes the module's arenas and tables hold before and after it
/// ([`Module::capacity_bytes`]), and, given a probe of the allocator, what the process allocates meanwhile.
///
/// What a pass leaves is noted when it is done, before its edit is kept and bodies that have become sparse are compacted; what it finds, after
/// that. Of a pass that failed, `after` is what there is once it is taken back. A probe also sees what other instruments and other threads do.
#[derive(Default)]
pub struct Memory {
    probe: Option<Box<Probe>>,
    state: Mutex<State>,
}

type Probe = dyn Fn() -> AllocationCounts + Send + Sync;

/// What an allocator that counts says at some time. Parts that it does not count are absent.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub struct AllocationCounts {
    /// How often memory was allocated since the process began.
    pub allocations: Option<u64>,
    /// The most bytes that were in use at once since the probe was called last: the probe starts counting anew.
    pub peak_bytes: Option<u64>,
}

/// How many runs a [`Memory`] keeps. Later ones are only counted.
pub const MAX_MEMORY_RUNS: usize = 100_000;

#[derive(Default)]
struct State {
    runs: Vec<MemoryRun>,
    open: OpenRuns<Open>,
    dropped: u64,
}

struct Open {
    /// The place among the runs, if there is one.
    run: Option<usize>,
    allocations: Option<u64>,
    peak: Option<u64>,
}

/// One run of a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryRun {
    /// The pass.
    pub name: String,
    /// How many passes were around it.
    pub depth: usize,
    /// Bytes of the module before it.
    pub before: usize,
    /// Bytes of the module after it; absent while it runs.
    pub after: Option<usize>,
    /// Whether it failed.
    pub failed: bool,
    /// How often memory was allocated while it ran, if the probe counts that.
    pub allocations: Option<u64>,
    /// The most bytes that the process had in use at once while it ran, if the probe counts that.
    pub peak_bytes: Option<u64>,
}

impl Memory {
    /// Looks at the module only.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Also asks an allocator: before and after each run, on the thread that runs it.
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

    /// The runs, in the order in which they began.
    pub fn runs(&self) -> Vec<MemoryRun> {
        lock(&self.state).runs.clone()
    }

    /// As JSON: `{"runs": [{"name", "depth", "before_bytes", "after_bytes", "failed", "allocations", "peak_bytes"}], "runs_left_out"}`; `null` for what
    /// was not counted.
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
        let peak = open.peak.max(counts.peak_bytes);
        // What was in use at once inside of a pass was so in the pass around it.
        if let Some(outer) = state.open.last_mut() {
            outer.peak = outer.peak.max(peak);
        }
        if let Some(run) = open.run {
            let run = &mut state.runs[run];
            run.after = Some(module.capacity_bytes());
            run.failed = failed;
            run.peak_bytes = peak;
            run.allocations = counts.allocations.zip(open.allocations).map(|(now, then)| now.saturating_sub(then));
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
        if let Some(outer) = state.open.last_mut() {
            outer.peak = outer.peak.max(counts.peak_bytes);
        }
        let at = (state.runs.len() < MAX_MEMORY_RUNS).then_some(state.runs.len());
        match at {
            Some(_) => state.runs.push(MemoryRun {
                name: run.name().to_string(),
                depth: run.depth(),
                before,
                after: None,
                failed: false,
                allocations: None,
                peak_bytes: None,
            }),
            None => state.dropped += 1,
        }
        state.open.begin(Open { run: at, allocations: counts.allocations, peak: None });
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

/// A table of at most 80 columns, a run a line. Columns that were not counted are left out.
impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = lock(&self.state);
        if state.runs.is_empty() {
            return writeln!(f, "no pass ran");
        }
        let peak = state.runs.iter().any(|r| r.peak_bytes.is_some());
        let allocations = state.runs.iter().any(|r| r.allocations.is_some());
        write!(f, "{:>10} {:>10} {:>11}", "before", "after", "change")?;
        if peak {
            write!(f, " {:>10}", "peak")?;
        }
        if allocations {
            write!(f, " {:>10}", "allocs")?;
        }
        writeln!(f, "  pass")?;
        let room = 80 - 35 - 11 * (usize::from(peak) + usize::from(allocations));
        for run in &state.runs {
            let after = run.after.map_or_else(String::new, |n| bytes(n as u64));
            write!(f, "{:>10} {after:>10} {:>11}", bytes(run.before as u64), change(run))?;
            if peak {
                write!(f, " {:>10}", run.peak_bytes.map_or_else(String::new, bytes))?;
            }
            if allocations {
                write!(f, " {:>10}", run.allocations.map_or_else(String::new, count))?;
            }
            let mark = if run.failed { " (failed)" } else { "" };
            writeln!(f, "  {}", nested_name(&run.name, run.depth, mark, room))?;
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

/// A number of bytes in at most 10 characters.
fn bytes(n: u64) -> String {
    let mut value = n as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        // As it will be rounded.
        if value < 1023.95 {
            return if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.0} PiB")
}
