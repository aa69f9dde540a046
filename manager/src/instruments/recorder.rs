//! The instrument that records what passes do.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use anfora_ir::{LogPosition, Module, RewriteOptions, WhyNot};

use crate::error::{PassError, PassFailure};
use crate::info::{Outcome, PassKind, SkipReason};
use crate::instrument::{Instrument, PassRun};
use crate::open_runs::{OpenRuns, RunRole};
use crate::recording::{
    MAX_MESSAGES_OF_RUN, MAX_RECORDED_RUNS, RecordedOutcome, RecordedPass, Recording, RecordingWriter,
};
use crate::sync::lock;

/// An instrument that records the passes that run, nested as they ran: their times, outcomes,
/// counts and messages, the memory of the module, the calls of each operator, and each changed line
/// of each function. See [`Recording`].
///
/// The changes of a pass are read from the edit that the pass has made, while it is open. So the
/// cost is linear in the functions that the pass changed: for each of them, the time to copy it
/// once and to walk it twice. The program before the first pass is walked once.
///
/// The context also records why bindings were rewritten, and explains near misses, in its ledger of
/// rewrites ([`PassContext::rewrites`](crate::PassContext::rewrites)), in which the recording reads
/// them. Therefore it runs passes on one thread.
///
/// The instrument records one module: the one that the first pass ran on. As the last of the
/// instruments it also records that passes failed whose result another instrument rejected.
#[derive(Default)]
pub struct Recorder {
    state: Mutex<RecorderState>,
}

#[derive(Default)]
struct RecorderState {
    writer: RecordingWriter,
    /// The runs that have not ended; those for which there was no room have no index.
    open: OpenRuns<OpenRecord>,
    first: Option<Instant>,
}

/// A run that has not ended.
struct OpenRecord {
    /// The index among the runs, if the run is kept.
    run: Option<usize>,
    /// The number of rounds so far, and the passes that ran in the last one. Only for a fixpoint.
    round: Option<(u32, Vec<PassIdentity>)>,
    /// The position in the log of the ledger at the beginning.
    log: LogPosition,
}

/// A pass of a sequence: the place of the pass in memory, which does not change while the sequence
/// runs, and its text.
type PassIdentity = (usize, String);

impl Recorder {
    /// Makes an instrument that has recorded nothing.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Returns what was recorded so far.
    pub fn recording(&self) -> Recording {
        lock(&self.state).writer.to_recording()
    }
}

impl RecorderState {
    /// Returns the record of a run that is about to begin or was skipped, inside of the innermost
    /// open run.
    fn record(&mut self, module: &Module, run: &PassRun<'_>, now: Instant) -> RecordedPass {
        let identity = (std::ptr::from_ref(run.pass).cast::<()>().addr(), run.pipeline_text());
        let outer = self.open.innermost();
        let parent = outer.as_ref().and_then(|outer| outer.run);
        let round = outer.and_then(|outer| outer.round.as_mut()).map(|(round, passes)| {
            // A pass that has run in this round begins the next one.
            if run.dependency_of().is_none() {
                if passes.contains(&identity) {
                    *round += 1;
                    passes.clear();
                }
                passes.push(identity.clone());
            }
            *round
        });
        let began = self.first.get_or_insert(now);
        RecordedPass {
            name: run.name().to_string(),
            text: if run.kind() == PassKind::Sequence { String::new() } else { identity.1 },
            kind: run.kind(),
            parent,
            round,
            dependency_of: run.dependency_of().map(str::to_string),
            begin: now.saturating_duration_since(*began),
            time: Duration::ZERO,
            outcome: RecordedOutcome::Running,
            bytes: [module.capacity_bytes(); 2],
            counts: Vec::new(),
            messages: Vec::new(),
            messages_left_out: 0,
            rewrites: Vec::new(),
            rewrites_left_out: 0,
            near_misses: Vec::new(),
            near_misses_left_out: 0,
            operators: Default::default(),
            changes: Vec::new(),
        }
    }

    /// Adds a record, and returns its index if there is room for it.
    fn add(&mut self, record: RecordedPass) -> Option<usize> {
        let recording = &mut self.writer.recording;
        if recording.runs.len() == MAX_RECORDED_RUNS {
            recording.runs_left_out += 1;
            return None;
        }
        recording.runs.push(record);
        Some(recording.runs.len() - 1)
    }

    /// Returns the record of the innermost open run, if it is kept.
    fn innermost(&mut self) -> Option<&mut RecordedPass> {
        let run = self.open.innermost()?.run?;
        self.writer.recording.runs.get_mut(run)
    }
}

impl Instrument for Recorder {
    fn name(&self) -> &str {
        "Recorder"
    }

    fn rewrites(&self) -> Option<RewriteOptions> {
        let (recorded, explained) = (Some(1..=u64::MAX), vec![WhyNot::default()]);
        Some(RewriteOptions { recorded, explained, ..RewriteOptions::default() })
    }

    fn run_before(&self, module: &Module, run: &PassRun<'_>) -> Result<(), PassError> {
        let state = &mut *lock(&self.state);
        state.writer.begin(module);
        let record = state.record(module, run, Instant::now());
        let round = (run.pass.max_rounds() > 1).then(|| (1, Vec::new()));
        let record = OpenRecord { run: state.add(record), round, log: run.context().rewrites().position() };
        state.open.begin(run, record);
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let state = &mut *lock(&self.state);
        let role = state.open.role_of_innermost();
        // The changes of a pass that another pass runs are among those of that pass.
        let has_changes = role == Some(RunRole::Whole) && outcome.is_changed();
        let (changes, operators) = if has_changes { state.writer.changes(module) } else { Default::default() };
        if let Some(record) = state.innermost() {
            record.counts = run.counts();
            record.bytes[1] = module.capacity_bytes();
            (record.changes, record.operators) = (changes, operators);
        }
        Ok(())
    }

    fn on_end(&self, module: &Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let state = &mut *lock(&self.state);
        let ledger = run.context().rewrites();
        let log = match state.open.role_of_innermost() {
            Some(RunRole::Whole) => state.open.innermost().map(|open| &mut open.log),
            _ => None,
        };
        let ((rewrites, rewrites_left_out), near_misses) = match log {
            Some(log) => (ledger.read_records(log), ledger.read_near_misses(log, &[WhyNot::default()])),
            None => Default::default(),
        };
        let rewrites = state.writer.rewrites(rewrites);
        if let Some(record) = state.innermost() {
            (record.rewrites, record.rewrites_left_out) = (rewrites, rewrites_left_out);
            (record.near_misses, record.near_misses_left_out) = (near_misses.found, near_misses.left_out);
            record.time = run.time().unwrap_or_default();
            let mut messages = run.remarks();
            record.messages_left_out = messages.len().saturating_sub(MAX_MESSAGES_OF_RUN);
            messages.truncate(MAX_MESSAGES_OF_RUN);
            record.messages = messages;
            match result {
                Ok(outcome) if outcome.is_changed() => record.outcome = RecordedOutcome::Changed,
                Ok(_) => record.outcome = RecordedOutcome::Unchanged,
                Err(failure) => {
                    record.outcome = RecordedOutcome::Failed(failure.to_string());
                    record.bytes[1] = module.capacity_bytes();
                    (record.changes, record.operators) = Default::default();
                }
            }
        }
        state.open.end();
    }

    fn on_skip(&self, module: &Module, run: &PassRun<'_>, reason: &SkipReason) {
        let state = &mut *lock(&self.state);
        let mut record = state.record(module, run, Instant::now());
        record.outcome = RecordedOutcome::Skipped(reason.to_string());
        state.add(record);
    }
}

anfora_ir::brief_debug! { Recorder; }
