//! How long passes take.

use std::fmt;
use std::sync::Mutex;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use anfora_ir::Module;

use crate::context::lock;
use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};

/// Times passes, as a tree: a pass stands under the one that runs it, and runs of the same pass under the same one are added up. A pass that
/// fails is timed up to its failure.
#[derive(Default)]
pub struct PassTiming {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Vec<Row>,
    /// The passes that are running, outermost first, of each thread that runs some.
    open: Vec<(ThreadId, Vec<Open>)>,
}

struct Row {
    name: String,
    parent: Option<usize>,
    runs: u64,
    failed: u64,
    total: Duration,
}

struct Open {
    row: usize,
    depth: usize,
    began: Instant,
}

/// A line of the tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimingRow {
    /// The pass.
    pub name: String,
    /// How many passes stand above it.
    pub depth: usize,
    /// How often it ran.
    pub runs: u64,
    /// How often it failed.
    pub failed: u64,
    /// The time of all its runs, with that of the passes that it ran.
    pub total: Duration,
    /// The time of all its runs, without that of the passes that it ran.
    pub own: Duration,
}

impl PassTiming {
    /// An instrument that has timed nothing yet.
    pub fn new() -> PassTiming {
        PassTiming::default()
    }

    /// Forgets the passes that are not running.
    pub fn clear(&self) {
        let state = &mut *lock(&self.state);
        if state.open.is_empty() {
            state.rows.clear();
        }
    }

    /// The tree, each pass before the passes that it ran, these in the order in which they first ran.
    pub fn rows(&self) -> Vec<TimingRow> {
        let state = &*lock(&self.state);
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); state.rows.len()];
        let mut roots = Vec::new();
        let mut inside = vec![Duration::ZERO; state.rows.len()];
        for (i, row) in state.rows.iter().enumerate() {
            match row.parent {
                Some(parent) => {
                    children[parent].push(i);
                    inside[parent] += row.total;
                }
                None => roots.push(i),
            }
        }
        let mut rows = Vec::with_capacity(state.rows.len());
        let mut stack: Vec<(usize, usize)> = roots.iter().rev().map(|&i| (i, 0)).collect();
        while let Some((i, depth)) = stack.pop() {
            let Row { name, runs, failed, total, .. } = &state.rows[i];
            rows.push(TimingRow {
                name: name.clone(),
                depth,
                runs: *runs,
                failed: *failed,
                total: *total,
                own: total.saturating_sub(inside[i]),
            });
            stack.extend(children[i].iter().rev().map(|&c| (c, depth + 1)));
        }
        rows
    }

    /// The time of all passes that no other ran.
    pub fn total(&self) -> Duration {
        lock(&self.state).rows.iter().filter(|r| r.parent.is_none()).map(|r| r.total).sum()
    }

    /// As JSON: `{"total_us", "passes": [{"name", "depth", "runs", "failed", "total_us", "self_us", "percent"}]}`.
    pub fn to_json(&self) -> serde_json::Value {
        let all = self.total();
        let micros = |d: Duration| d.as_nanos() as f64 / 1000.0;
        let passes: serde_json::Value = self
            .rows()
            .into_iter()
            .map(|r| {
                serde_json::json!({
                    "name": r.name, "depth": r.depth, "runs": r.runs, "failed": r.failed,
                    "total_us": micros(r.total), "self_us": micros(r.own), "percent": percent(r.total, all),
                })
            })
            .collect();
        serde_json::json!({ "total_us": micros(all), "passes": passes })
    }

    fn begin(&self, run: &PassRun<'_>) {
        let state = &mut *lock(&self.state);
        let thread = std::thread::current().id();
        let i = match state.open.iter().position(|(t, _)| *t == thread) {
            Some(i) => i,
            None => {
                state.open.push((thread, Vec::new()));
                state.open.len() - 1
            }
        };
        let open = &mut state.open[i].1;
        let parent = open.last().map(|o| o.row);
        let name = run.name();
        let row = match state.rows.iter().position(|r| r.parent == parent && r.name == name) {
            Some(row) => row,
            None => {
                state.rows.push(Row { name: name.to_string(), parent, runs: 0, failed: 0, total: Duration::ZERO });
                state.rows.len() - 1
            }
        };
        open.push(Open { row, depth: run.depth(), began: Instant::now() });
    }

    fn end(&self, run: &PassRun<'_>, failed: u64) {
        let now = Instant::now();
        let state = &mut *lock(&self.state);
        let thread = std::thread::current().id();
        let Some(i) = state.open.iter().position(|(t, _)| *t == thread) else { return };
        while let Some(open) = state.open[i].1.pop() {
            let row = &mut state.rows[open.row];
            row.runs += 1;
            row.failed += failed;
            row.total += now - open.began;
            if open.depth <= run.depth() {
                break;
            }
        }
        if state.open[i].1.is_empty() {
            state.open.swap_remove(i);
        }
    }
}

fn percent(part: Duration, all: Duration) -> f64 {
    if all.is_zero() { 0.0 } else { 100.0 * (part.as_secs_f64() / all.as_secs_f64()) }
}

impl Instrument for PassTiming {
    fn name(&self) -> &str {
        "PassTiming"
    }

    fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        self.begin(run);
        Ok(())
    }

    fn run_after(&self, _: &Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        self.end(run, 0);
        Ok(())
    }

    fn on_error(&self, _: &Module, run: &PassRun<'_>, _: &PassFailure) {
        self.end(run, 1);
    }
}

/// A table of at most 80 columns, a pass a line.
impl fmt::Display for PassTiming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME: usize = 40;
        let all = self.total();
        writeln!(f, "{:>10} {:>10} {:>6} {:>6}  pass", "total ms", "self ms", "%", "runs")?;
        for row in self.rows() {
            // What is nested deeper than fits is shown at the edge.
            let indent = (2 * row.depth).min(NAME / 2);
            let marks = if row.failed > 0 { " (failed)" } else { "" };
            let room = NAME - indent - marks.len();
            let name: String = match row.name.chars().count() {
                n if n <= room => row.name,
                _ => row.name.chars().take(room - 1).chain(['…']).collect(),
            };
            writeln!(
                f,
                "{:>10} {:>10} {:>6.1} {:>6}  {:indent$}{name}{marks}",
                millis(row.total),
                millis(row.own),
                percent(row.total, all),
                row.runs,
                "",
            )?;
        }
        Ok(())
    }
}

/// Milliseconds in at most 10 characters.
fn millis(d: Duration) -> String {
    let ms = d.as_secs_f64() * 1e3;
    if ms < 1e5 { format!("{ms:.3}") } else { format!("{ms:.0}") }
}
