//! The instrument that records what passes do.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anfora_ir::{LogPosition, Module, RewriteOptions, WhyNot};
use anfora_manager::{Instrument, OpenRuns, Outcome, PassError, PassFailure, PassKind, PassRun, RunRole, SkipReason};

use crate::recording::{RecordedOutcome, RecordedPass, Recording, RecordingWriter};

/// The reasons of failures and skips are cut after this many characters.
const LONGEST_REASON: usize = 4096;

/// An instrument that records the passes that run, nested as they ran: their times, outcomes,
/// counts and messages, the memory of the module, the calls of each operator, and each changed line
/// of each function. See [`Recording`].
///
/// The changes of a pass are read from the edit that the pass has made, while it is open. So the
/// cost is linear in the functions that the pass changed: for each of them, the time to copy it
/// once and to walk it twice. The program before the first pass is walked once.
///
/// The instrument turns on the ledger of rewrites of the context
/// ([`PassContext::rewrites`](anfora_manager::PassContext::rewrites)), and copies the reasons of
/// rewrites and the near misses from it. A context with a ledger runs passes on one thread.
///
/// The instrument records one module: the one that the first pass ran on. If another instrument
/// rejects the result of a pass, the pass is recorded as failed.
#[derive(Default)]
pub struct Recorder {
    state: Mutex<RecorderState>,
}

#[derive(Default)]
struct RecorderState {
    writer: RecordingWriter,
    open: OpenRuns<OpenRecord>,
    first: Option<Instant>,
}

/// A run that has not ended.
struct OpenRecord {
    /// The index among the runs, if the run is kept.
    run: Option<usize>,
    /// The position in the log of the ledger at the beginning.
    log: LogPosition,
}

impl Recorder {
    /// Makes an instrument that has recorded nothing.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// Returns a copy of what was recorded so far.
    pub fn recording(&self) -> Recording {
        self.with_recording(Recording::clone)
    }

    /// Calls `read` with what was recorded so far, and returns its result. `read` must not run
    /// passes that this instrument records.
    pub fn with_recording<T>(&self, read: impl FnOnce(&Recording) -> T) -> T {
        read(&self.lock().writer.recording)
    }

    /// Takes the lock of the state, even if another holder panicked. The state is consistent after
    /// every statement.
    fn lock(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecorderState {
    /// Returns the record of a run that is about to begin or was skipped, inside of the innermost
    /// open run.
    fn record(&mut self, module: &Module, run: &PassRun<'_>, now: Instant) -> RecordedPass {
        let parent = self.open.innermost().and_then(|open| open.run);
        let began = self.first.get_or_insert(now);
        // The outermost sequence says what a sequence in it consists of.
        let is_part_of_text = run.kind() == PassKind::Sequence && parent.is_some();
        RecordedPass {
            name: run.name().to_string(),
            text: if is_part_of_text { String::new() } else { run.pipeline_text() },
            kind: run.kind(),
            parent,
            round: run.round(),
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
            has_more_near_misses: false,
            operators: Default::default(),
            changes: Vec::new(),
            functions_left_out: 0,
        }
    }

    /// Returns the index of the innermost open run, if it is kept.
    fn innermost(&mut self) -> Option<usize> {
        self.open.innermost()?.run
    }
}

/// Returns a text, which is cut if it is long.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_REASON) {
        text.truncate(end);
        text.push('…');
    }
    text
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
        let state = &mut *self.lock();
        state.writer.begin(module);
        let record = state.record(module, run, Instant::now());
        let record = OpenRecord { run: state.writer.add(record), log: run.context().rewrites().position() };
        state.open.begin(run, record);
        Ok(())
    }

    fn run_after(&self, module: &Module, run: &PassRun<'_>, outcome: &Outcome) -> Result<(), PassError> {
        let state = &mut *self.lock();
        let role = state.open.role_of_innermost();
        let Some(record) = state.innermost() else { return Ok(()) };
        let RecordingWriter { recording, .. } = &mut state.writer;
        recording.runs[record].counts = run.counts();
        recording.runs[record].bytes[1] = module.capacity_bytes();
        // If a pass runs another pass, the changes of the inner pass are among those of the outer.
        if role == Some(RunRole::Whole) && outcome.is_changed() {
            state.writer.changes(module, record);
        }
        Ok(())
    }

    fn on_end(&self, module: &Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let state = &mut *self.lock();
        let ledger = run.context().rewrites();
        // The rewrites of a part are among those of the pass that runs it.
        let log = match state.open.role_of_innermost() {
            Some(RunRole::Whole) => state.open.innermost().map(|open| &mut open.log),
            _ => None,
        };
        let (rewrites, near_misses) = match log {
            Some(log) => (ledger.read_records(log), ledger.read_near_misses(log, &[WhyNot::default()])),
            None => Default::default(),
        };
        if let Some(record) = state.innermost() {
            let writer = &mut state.writer;
            writer.rewrites(rewrites, record);
            writer.near_misses(near_misses, record);
            writer.messages(run.remarks(), record);
            let record = &mut writer.recording.runs[record];
            record.time = run.time().unwrap_or_default();
            match result {
                Ok(outcome) if outcome.is_changed() => record.outcome = RecordedOutcome::Changed,
                Ok(_) => record.outcome = RecordedOutcome::Unchanged,
                Err(failure) => {
                    record.outcome = RecordedOutcome::Failed(cut(failure.to_string()));
                    record.bytes[1] = module.capacity_bytes();
                    (record.changes, record.operators, record.functions_left_out) = Default::default();
                }
            }
        }
        state.open.end();
    }

    fn on_skip(&self, module: &Module, run: &PassRun<'_>, reason: &SkipReason) {
        let state = &mut *self.lock();
        let mut record = state.record(module, run, Instant::now());
        record.outcome = RecordedOutcome::Skipped(cut(reason.to_string()));
        state.writer.add(record);
    }
}

anfora_ir::brief_debug! { Recorder; }
