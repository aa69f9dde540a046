//! The time that passes take.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anfora_ir::Module;

use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::open_runs::OpenRuns;
use crate::sync::lock;

use crate::table::nested_name;

/// An instrument that times passes, as a tree: a pass is the child of the pass that runs it, and
/// runs of the same pass under the same parent are added up. A pass that fails is timed up to its
/// failure. The time that instruments take is not part of the time of any pass, for any order of
/// the instruments.
///
/// It displays as a table, and returns the same as JSON ([`to_json`](PassTiming::to_json)), or each
/// run separately for a viewer of traces ([`to_chrome_trace`](PassTiming::to_chrome_trace)). It
/// keeps its times until [`clear`](PassTiming::clear), also after its context is left.
#[derive(Default)]
pub struct PassTiming {
    state: Mutex<Times>,
}

/// The maximum number of single runs that a [`PassTiming`] keeps for a trace. Later ones are only
/// added up.
pub const MAX_TIMED_RUNS: usize = 100_000;

#[derive(Default)]
struct Times {
    rows: Vec<Row>,
    /// The row for each parent and name.
    by_name: HashMap<(Option<usize>, String), usize>,
    open: OpenRuns<usize>,
    runs: Vec<TimedRun>,
    dropped: u64,
}

struct Row {
    parent: Option<usize>,
    /// Its own time and percentage are not known yet.
    shown: TimingRow,
    /// The time of the passes that it ran.
    inside: Duration,
}

/// One run of a pass, in wall-clock time.
struct TimedRun {
    row: usize,
    began: Instant,
    wall: Duration,
    time: Duration,
    outcome: &'static str,
    functions: usize,
    thread: std::thread::ThreadId,
}

/// A line of the tree.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TimingRow {
    /// The name of the pass.
    pub name: String,
    /// The number of passes above it in the tree.
    pub depth: usize,
    /// The number of runs.
    pub runs: u64,
    /// The number of runs that failed.
    pub failed: u64,
    /// The time of all its runs, including the passes that it ran.
    pub total: Duration,
    /// The time of all its runs, without the passes that it ran.
    pub own: Duration,
    /// The total as a percentage of the total of the parent, or of the whole time if there is no
    /// parent.
    pub percent_of_parent: f64,
}

impl PassTiming {
    /// Makes an instrument without times.
    pub fn new() -> PassTiming {
        PassTiming::default()
    }

    /// Drops all times. Does nothing while a pass is running.
    pub fn clear(&self) {
        let state = &mut *lock(&self.state);
        if state.open.is_empty() {
            *state = Times::default();
        }
    }

    /// Returns the tree, each pass before the passes that it ran, these in the order in which they
    /// first ran.
    pub fn rows(&self) -> Vec<TimingRow> {
        let state = &*lock(&self.state);
        let all = state.total();
        let roots = state.rows.len();
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); roots + 1];
        for (i, row) in state.rows.iter().enumerate().rev() {
            children[row.parent.unwrap_or(roots)].push(i);
        }
        let mut stack = std::mem::take(&mut children[roots]);
        let mut rows = Vec::with_capacity(roots);
        while let Some(i) = stack.pop() {
            let Row { parent, shown, inside } = &state.rows[i];
            let outer = parent.map_or(all, |p| state.rows[p].shown.total);
            rows.push(TimingRow {
                own: shown.total.saturating_sub(*inside),
                percent_of_parent: percent(shown.total, outer),
                ..shown.clone()
            });
            stack.append(&mut children[i]);
        }
        rows
    }

    /// Returns the time of all passes without a parent.
    pub fn total(&self) -> Duration {
        lock(&self.state).total()
    }

    /// Returns JSON: `{"total_us", "passes": [{"name", "depth", "runs", "failed", "total_us",
    /// "self_us", "percent", "percent_of_parent"}]}`, with the passes as in
    /// [`rows`](PassTiming::rows).
    pub fn to_json(&self) -> serde_json::Value {
        let all = self.total();
        let passes: serde_json::Value = self
            .rows()
            .into_iter()
            .map(|r| {
                serde_json::json!({
                    "name": r.name, "depth": r.depth, "runs": r.runs, "failed": r.failed,
                    "total_us": micros(r.total), "self_us": micros(r.own),
                    "percent": percent(r.total, all), "percent_of_parent": r.percent_of_parent,
                })
            })
            .collect();
        serde_json::json!({ "total_us": micros(all), "passes": passes })
    }

    /// Returns the single runs, in the JSON that viewers of traces load (`chrome://tracing`,
    /// Perfetto): one complete event for each, with times in microseconds since the first run
    /// began. The times are wall-clock times, so that the events nest: the time of instruments is
    /// the space between them, and `args.time_us` is the time of the run without it. `args` also
    /// has the outcome and the number of functions after the run.
    ///
    /// If there are more than [`MAX_TIMED_RUNS`], the first ones are included;
    /// `otherData.runs_left_out` is the number of the others.
    pub fn to_chrome_trace(&self) -> serde_json::Value {
        let state = &*lock(&self.state);
        let first = state.runs.iter().map(|r| r.began).min();
        let mut threads = Vec::new();
        // By beginning. A run ends after those inside of it, and so comes after them in `runs`.
        let mut order: Vec<(usize, &TimedRun)> = state.runs.iter().enumerate().collect();
        order.sort_by_key(|&(i, r)| (r.began, std::cmp::Reverse(i)));
        let mut events = vec![serde_json::json!({
            "name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": { "name": "anfora" },
        })];
        for (_, run) in order {
            let thread = threads.iter().position(|t| *t == run.thread).unwrap_or_else(|| {
                threads.push(run.thread);
                threads.len() - 1
            });
            events.push(serde_json::json!({
                "name": state.rows[run.row].shown.name, "cat": "pass", "ph": "X",
                "ts": micros(first.map_or(Duration::ZERO, |first| run.began - first)), "dur": micros(run.wall),
                "pid": 1, "tid": thread,
                "args": { "outcome": run.outcome, "functions": run.functions, "time_us": micros(run.time) },
            }));
        }
        serde_json::json!({
            "displayTimeUnit": "ms",
            "otherData": { "runs_left_out": state.dropped },
            "traceEvents": events,
        })
    }

    fn end(&self, module: &Module, run: &PassRun<'_>, outcome: &'static str) {
        let state = &mut *lock(&self.state);
        let Some(i) = state.open.end() else { return };
        // A pass that did not begin, because an instrument failed, took no time.
        let time = run.time().unwrap_or_default();
        let Row { parent, shown, .. } = &mut state.rows[i];
        shown.runs += 1;
        shown.failed += u64::from(outcome == FAILED);
        shown.total += time;
        if let Some(parent) = *parent {
            state.rows[parent].inside += time;
        }
        let Some((began, wall)) = run.wall_time() else { return };
        if state.runs.len() == MAX_TIMED_RUNS {
            state.dropped += 1;
            return;
        }
        let (functions, thread) = (module.order().len(), std::thread::current().id());
        state.runs.push(TimedRun { row: i, began, wall, time, outcome, functions, thread });
    }
}

const FAILED: &str = "failed";

impl Times {
    fn total(&self) -> Duration {
        self.rows.iter().filter(|r| r.parent.is_none()).map(|r| r.shown.total).sum()
    }

    fn begin(&mut self, run: &PassRun<'_>) {
        let (name, parent, new) = (run.name().to_string(), self.open.innermost().copied(), self.rows.len());
        let row = *self.by_name.entry((parent, name.clone())).or_insert(new);
        if row == new {
            let depth = parent.map_or(0, |p| self.rows[p].shown.depth + 1);
            let shown = TimingRow { name, depth, ..TimingRow::default() };
            self.rows.push(Row { parent, shown, inside: Duration::ZERO });
        }
        self.open.begin(run, row);
    }
}

fn micros(d: Duration) -> f64 {
    d.as_nanos() as f64 / 1000.0
}

fn percent(part: Duration, all: Duration) -> f64 {
    if all.is_zero() { 0.0 } else { 100.0 * (part.as_secs_f64() / all.as_secs_f64()) }
}

impl Instrument for PassTiming {
    fn name(&self) -> &str {
        "PassTiming"
    }

    fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        lock(&self.state).begin(run);
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        self.end(module, run, if outcome.is_changed() { "changed" } else { "unchanged" });
        Ok(())
    }

    fn on_error(&self, module: &Module, run: &PassRun<'_>, _: &PassFailure) {
        self.end(module, run, FAILED);
    }
}

/// Writes a table of at most 80 columns, one pass per line: `%` is the share of the whole time,
/// `% up` the share of the time of the parent.
impl fmt::Display for PassTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME: usize = 80 - 44;
        let all = self.total();
        let rows = self.rows();
        if rows.is_empty() {
            return writeln!(f, "no pass ran");
        }
        writeln!(f, "{:>10} {:>10} {:>5} {:>5} {:>8}  pass", "total ms", "self ms", "%", "% up", "runs")?;
        for row in rows {
            let mark = match row.failed {
                0 => String::new(),
                n if n == row.runs => " (failed)".to_string(),
                n => format!(" ({n} failed)"),
            };
            writeln!(
                f,
                "{:>10} {:>10} {:>5.1} {:>5.1} {:>8}  {}",
                millis(row.total),
                millis(row.own),
                percent(row.total, all),
                row.percent_of_parent,
                row.runs,
                nested_name(&row.name, row.depth, &mark, NAME),
            )?;
        }
        Ok(())
    }
}

/// Returns milliseconds in at most 10 characters, for times below a year.
fn millis(d: Duration) -> String {
    let ms = d.as_secs_f64() * 1e3;
    if ms < 1e5 { format!("{ms:.3}") } else { format!("{ms:.0}") }
}

anfora_ir::brief_debug! { PassTiming; }
