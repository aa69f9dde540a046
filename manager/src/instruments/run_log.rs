//! What ran, in order.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anfora_ir::Module;

use crate::context::lock;
use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::pass::PassKind;

/// Remembers which passes ran, in the order in which they ended, and what came of it. Sequences are not among them, only their passes.
#[derive(Default)]
pub struct RunLog {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    records: Vec<RunRecord>,
    /// When each of the passes that are running began, outermost first.
    running: Vec<Instant>,
}

/// One run of a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    /// The pass, as a pipeline writes it.
    pub pass: String,
    /// How many passes were around it.
    pub depth: usize,
    /// Whether it changed the module; absent if it failed.
    pub changed: Option<bool>,
    /// How long it took. Instruments that come after this one in the context are not counted in what they do after the pass.
    pub time: Duration,
}

impl RunLog {
    /// A log of nothing.
    pub fn new() -> RunLog {
        RunLog::default()
    }

    /// What ran so far.
    pub fn records(&self) -> Vec<RunRecord> {
        lock(&self.state).records.clone()
    }

    fn note(&self, run: &PassRun<'_>, changed: Option<bool>) {
        if run.kind() != PassKind::Sequence {
            let mut state = lock(&self.state);
            let time = state.running.pop().map_or(Duration::ZERO, |start| start.elapsed());
            state.records.push(RunRecord { pass: run.pipeline_text(), depth: run.depth(), changed, time });
        }
    }
}

impl Instrument for RunLog {
    fn name(&self) -> &str {
        "RunLog"
    }

    fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        if run.kind() != PassKind::Sequence {
            lock(&self.state).running.push(Instant::now());
        }
        Ok(())
    }

    fn run_after(&self, _: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        self.note(run, Some(outcome.is_changed()));
        Ok(())
    }

    fn on_error(&self, _: &Module, run: &PassRun<'_>, _: &PassFailure) {
        self.note(run, None);
    }
}
