//! A log of the passes that ran.

use std::sync::Mutex;
use std::time::Duration;

use anfora_ir::Module;

use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassKind};
use crate::instrument::{Instrument, PassRun};
use crate::sync::lock;

/// An instrument that records which passes ran, in the order in which they ended, with their
/// results. Sequences are not recorded, only their passes.
///
/// As the last of the instruments it also records that passes failed whose result another
/// instrument rejected.
#[derive(Default)]
pub struct RunLog {
    records: Mutex<Vec<RunRecord>>,
}

/// One run of a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunRecord {
    /// The pass, as a pipeline writes it.
    pub pass: String,
    /// The number of passes around it.
    pub depth: usize,
    /// True if the pass changed the module; absent if it failed.
    pub changed: Option<bool>,
    /// The duration, without the time that instruments took; zero if the pass did not begin because
    /// an instrument failed before it.
    pub time: Duration,
}

impl RunLog {
    /// Makes an empty log.
    pub fn new() -> RunLog {
        RunLog::default()
    }

    /// Returns the runs so far.
    pub fn records(&self) -> Vec<RunRecord> {
        lock(&self.records).clone()
    }

    fn note(&self, run: &PassRun<'_>, changed: Option<bool>) {
        if run.kind() != PassKind::Sequence {
            let (pass, time) = (run.pipeline_text(), run.time().unwrap_or_default());
            lock(&self.records).push(RunRecord { pass, depth: run.depth(), changed, time });
        }
    }
}

impl Instrument for RunLog {
    fn name(&self) -> &str {
        "RunLog"
    }

    fn run_after(&self, _: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        self.note(run, Some(outcome.is_changed()));
        Ok(())
    }

    fn on_error(&self, _: &Module, run: &PassRun<'_>, _: &PassFailure) {
        self.note(run, None);
    }
}

anfora_ir::brief_debug! { RunLog; }
