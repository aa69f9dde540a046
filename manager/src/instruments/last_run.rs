//! The last run of a pass, with the program before it.

use std::sync::Mutex;

use anfora_ir::{Module, PrintOptions, print_module};

use crate::error::{PassError, PassFailure};
use crate::info::Outcome;
use crate::instrument::{Instrument, PassRun};
use crate::open_runs::{OpenRuns, RunRole};
use crate::reproducer_file::{end_header, lines_of_run};
use crate::sync::lock;

/// An instrument that keeps the program before the last run of a pass, in memory, with everything
/// that is needed to run the pass again. [`Reproducer`](crate::Reproducer) keeps the same in a
/// file, so that it survives the end of the process.
///
/// A pass that is run by another pass that is not a sequence belongs to that pass. Cost: the module
/// is copied once for each pass that runs.
#[derive(Default)]
pub struct LastRun {
    state: Mutex<LastRunState>,
}

#[derive(Default)]
struct LastRunState {
    runs: OpenRuns<()>,
    count: u64,
    last: Option<RecordedRun>,
}

/// A run of a pass, as it was about to begin.
#[derive(Clone)]
pub struct RecordedRun {
    /// The number of the run among those of passes that are not sequences, from 1.
    pub number: u64,
    /// The name of the pass.
    pub pass: String,
    /// The pass with its options, as a pipeline.
    pub pipeline: String,
    /// The program before the pass.
    pub module: Module,
    lines: String,
}

impl RecordedRun {
    /// Returns the text of a reproducer of the run with another program, or with its own: a
    /// [`ReproducerFile`](crate::ReproducerFile) reads it.
    pub fn reproducer(&self, module: &Module, failure: Option<&PassFailure>) -> String {
        let mut text = self.lines.clone();
        end_header(&mut text, failure);
        print_module(module, &PrintOptions::default(), &mut text).expect("a string takes all");
        text
    }
}

impl LastRun {
    /// Returns an instrument that has seen no run yet.
    pub fn new() -> LastRun {
        LastRun::default()
    }

    /// Takes the last run that began.
    pub fn take(&self) -> Option<RecordedRun> {
        lock(&self.state).last.take()
    }
}

impl Instrument for LastRun {
    fn name(&self) -> &str {
        LAST_RUN
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let mut state = lock(&self.state);
        if state.runs.begin(run, ()) == RunRole::Whole {
            state.count += 1;
            state.last = Some(RecordedRun {
                number: state.count,
                pass: run.name().to_string(),
                pipeline: run.pipeline_text(),
                module: module.clone(),
                lines: lines_of_run(run),
            });
        }
        Ok(())
    }

    fn on_end(&self, _: &Module, _: &PassRun<'_>, _: Result<&Outcome, &PassFailure>) {
        lock(&self.state).runs.end();
    }
}

/// The name of the instrument. It is not part of reproducers, which do not depend on it.
pub(crate) const LAST_RUN: &str = "LastRun";

anfora_ir::brief_debug! { LastRun; RecordedRun; }
