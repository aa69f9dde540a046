//! The search for the run of a pass that breaks a program.

use std::ops::RangeInclusive;
use std::sync::Mutex;

use anfora_ir::Module;

use crate::error::PassError;
use crate::info::PassKind;
use crate::instrument::{Instrument, PassRun};
use crate::sync::lock;

/// An instrument that numbers the runs of passes, from 1, and lets only some of them run, so that
/// bisection finds the first run after which a program is wrong.
///
/// Sequences are not counted, only their passes. A dependency belongs to the run of the pass that
/// depends on it and is not counted either. A pass that the context requires is counted, and runs
/// whatever its number is.
pub struct Bisect {
    runs: RangeInclusive<u64>,
    seen: Mutex<Vec<BisectRun>>,
}

/// A run of a pass that was allowed or not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BisectRun {
    /// The number of the run.
    pub number: u64,
    /// The pass, as a pipeline writes it.
    pub pass: String,
    /// True if the pass was allowed to run.
    pub ran: bool,
}

impl Bisect {
    /// Lets the first `limit` runs run.
    pub fn limit(limit: u64) -> Bisect {
        Bisect::interval(1..=limit)
    }

    /// Lets the runs with these numbers run.
    pub fn interval(runs: RangeInclusive<u64>) -> Bisect {
        Bisect { runs, seen: Mutex::default() }
    }

    /// Returns the runs so far, in order.
    pub fn runs(&self) -> Vec<BisectRun> {
        lock(&self.seen).clone()
    }

    /// Counts a run, and returns true if it is allowed.
    fn count(&self, run: &PassRun<'_>) -> bool {
        let mut seen = lock(&self.seen);
        let number = seen.len() as u64 + 1;
        let ran = run.is_forced() || self.runs.contains(&number);
        seen.push(BisectRun { number, pass: run.pipeline_text(), ran });
        ran
    }
}

impl Instrument for Bisect {
    fn name(&self) -> &str {
        "Bisect"
    }

    fn should_run(&self, _: &Module, run: &PassRun<'_>) -> Result<bool, PassError> {
        if run.kind() == PassKind::Sequence || run.dependency_of().is_some() {
            return Ok(true);
        }
        Ok(self.count(run))
    }

    fn run_before(&self, _: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        // Instruments are not asked about a pass that is required.
        if run.is_forced() && run.kind() != PassKind::Sequence && run.dependency_of().is_none() {
            self.count(run);
        }
        Ok(())
    }
}

anfora_ir::brief_debug! { Bisect; }
