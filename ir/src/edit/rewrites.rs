//! The ledger of rewrites: single rewrites of passes are counted, limited and recorded.
//!
//! A rewrite is one decision of a pass that changes a program: a rule that applies, a binding that
//! is removed, a call that is inlined. Code that makes rewrites asks
//! [`may_rewrite`](Rewrites::may_rewrite) before each one, and reports it afterwards
//! ([`Editor::rewrote`](crate::Editor::rewrote)). With a limit of `n`, a program is therefore as it
//! was after the first `n` rewrites of a run without a limit, so a binary search over `n` finds the
//! first rewrite after which a program is wrong.
//!
//! The tables of a module hold a handle ([`Context::rewrites`](crate::Context::rewrites)), which is
//! off by default. Then each report costs one branch. Clones of the tables, and overlays, share the
//! ledger. The manager gives the tables a handle for each run of a pass ([`Rewrites::for_run`]),
//! which is off after the run, so clones that a pass keeps do not count. The engines that rewrite
//! programs count by themselves, so most passes need not.
//!
//! Code that takes rewrites back and goes on, so that they are in no program, takes their counts
//! back too ([`Rewrites::take_back`]). The rewrites of a pass that fails keep their numbers
//! ([`Rewrites::undo_since`]), because a search for the rewrite that makes it fail needs them.
//!
//! The log only grows. Each reader has a position of its own ([`LogPosition`]), so that several
//! readers find all that they asked for.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::edit::near_misses::{MissPosition, NearMissLog, WhyNot};

/// The request to a [ledger](Rewrites).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RewriteOptions {
    /// The number of rewrites that are made. Later ones are not.
    pub limit: Option<u64>,
    /// The numbers of the rewrites that are recorded, from 1; of one run of a pass, at most
    /// [`MAX_RECORDS_OF_RUN`].
    pub recorded: Option<RangeInclusive<u64>>,
    /// True if the pass and function of all rewrites are recorded, as spans.
    pub spans: bool,
    /// The near misses that are recorded.
    pub explained: Vec<WhyNot>,
}

impl RewriteOptions {
    /// Returns a request that asks for everything that two requests ask for. The smaller limit
    /// counts. Rewrites between two ranges that are recorded are recorded too.
    ///
    /// Cost: one loop.
    #[must_use]
    pub fn with(mut self, other: RewriteOptions) -> RewriteOptions {
        let limit = self.limit.into_iter().chain(other.limit).min();
        let recorded = match (self.recorded, other.recorded) {
            (Some(a), Some(b)) => Some(*a.start().min(b.start())..=*a.end().max(b.end())),
            (a, b) => a.or(b),
        };
        self.explained.extend(other.explained);
        RewriteOptions { limit, recorded, spans: self.spans || other.spans, explained: self.explained }
    }
}

/// A rewrite that was made. If it changes several bindings, there is a record for each of them,
/// with the same number; the first is that of the binding that was rewritten itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewriteRecord {
    /// The number of the rewrite, from 1.
    pub number: u64,
    /// The name of the pass; empty outside of passes.
    pub pass: Arc<str>,
    /// The name of the function, without `@`; `None` if a pass changed the module as a whole.
    pub function: Option<Arc<str>>,
    /// The label of the rewritten binding ([`binding_label`](crate::binding_label)): its name,
    /// without `%`, if it has one; `None` for a tail.
    pub binding: Option<String>,
    /// The rule, or another description of the rewrite.
    pub why: String,
    /// True if the rewrite was rolled back, because its pass failed or gave up.
    pub is_undone: bool,
}

/// Consecutive rewrites of one function by one run of a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewriteSpan {
    /// The number of the run among all runs of passes that are not sequences, from 1; 0 outside of
    /// passes.
    pub run: u64,
    /// The name of the pass.
    pub pass: Arc<str>,
    /// The name of the function, without `@`; `None` for the module as a whole.
    pub function: Option<Arc<str>>,
    /// The number of the first of these rewrites.
    pub first: u64,
}

/// A handle of a ledger of rewrites; see [`Context::rewrites`](crate::Context::rewrites). It is off
/// by default.
#[derive(Clone, Default)]
pub struct Rewrites(Option<Arc<LedgerHandle>>);

struct LedgerHandle {
    ledger: Arc<Ledger>,
    /// True after the run of a pass that the handle was made for.
    is_over: AtomicBool,
}

struct Ledger {
    count: AtomicU64,
    limit: u64,
    recorded: RangeInclusive<u64>,
    spans: bool,
    explained: Vec<WhyNot>,
    /// True if no further near miss of the run is recorded. It is read without the log.
    is_full: AtomicBool,
    log: Mutex<RewriteLog>,
}

/// The number of records of one run of a pass that a ledger keeps; later ones are counted only.
pub const MAX_RECORDS_OF_RUN: usize = 20_000;

/// The number of records that a ledger keeps.
const MAX_RECORDS: usize = 1_000_000;

/// The records, and the place of the next rewrite.
pub(super) struct RewriteLog {
    runs: u64,
    place: RewritePlace,
    records: Vec<RewriteRecord>,
    records_left_out: u64,
    spans: Vec<RewriteSpan>,
    pub(super) misses: NearMissLog,
}

/// The place of rewrites: a run of a pass and a function. [`Rewrites::leave`] goes back to it.
#[derive(Clone, Debug)]
pub struct RewritePlace {
    run: u64,
    pass: Arc<str>,
    function: Option<Arc<str>>,
    /// The number of records of the run.
    records: usize,
}

/// The position of a reader in the log of a ledger; by default the beginning.
#[derive(Clone, Debug, Default)]
pub struct LogPosition {
    records: usize,
    records_left_out: u64,
    pub(super) misses: MissPosition,
}

/// The state of a ledger before rewrites that may be taken back ([`Rewrites::take_back`]) or fail
/// ([`Rewrites::undo_since`]).
#[derive(Copy, Clone, Debug, Default)]
pub struct RewriteMark {
    count: u64,
    records: usize,
    records_left_out: u64,
    records_of_run: usize,
}

impl RewriteLog {
    /// Returns the name of the pass that runs.
    pub(super) fn pass(&self) -> &str {
        &self.place.pass
    }

    /// Returns the number of the run.
    pub(super) fn run(&self) -> u64 {
        self.place.run
    }

    /// Returns the pass, the function and the number of the run.
    pub(super) fn place(&self) -> (Arc<str>, Option<Arc<str>>, u64) {
        (self.place.pass.clone(), self.place.function.clone(), self.place.run)
    }

    fn record(&mut self, number: u64, binding: Option<&str>, why: impl Display) {
        if self.place.records == MAX_RECORDS_OF_RUN || self.records.len() == MAX_RECORDS {
            self.records_left_out += 1;
            return;
        }
        self.place.records += 1;
        self.records.push(RewriteRecord {
            number,
            pass: self.place.pass.clone(),
            function: self.place.function.clone(),
            binding: binding.map(str::to_string),
            why: why.to_string(),
            is_undone: false,
        });
    }
}

impl Ledger {
    fn log(&self) -> MutexGuard<'_, RewriteLog> {
        // Entries are added as a whole, so the log is valid after a panic of another holder.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn note<'b>(&self, binding: impl FnOnce() -> Option<Cow<'b, str>>, why: impl Display) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let is_recorded = self.recorded.contains(&number);
        if !is_recorded && !self.spans {
            return;
        }
        let mut log = self.log();
        if is_recorded {
            log.record(number, binding().as_deref(), why);
        }
        let RewriteLog { place: RewritePlace { run, pass, function, .. }, spans, .. } = &mut *log;
        if self.spans && spans.last().is_none_or(|span| span.run != *run || span.function != *function) {
            spans.push(RewriteSpan { run: *run, pass: pass.clone(), function: function.clone(), first: number });
        }
    }
}

impl Rewrites {
    /// Makes a ledger.
    ///
    /// Cost: one entry.
    pub fn new(options: RewriteOptions) -> Rewrites {
        let RewriteOptions { limit, recorded, spans, explained } = options;
        let log = RewriteLog {
            runs: 0,
            place: RewritePlace { run: 0, pass: Arc::from(""), function: None, records: 0 },
            records: Vec::new(),
            records_left_out: 0,
            spans: Vec::new(),
            misses: NearMissLog::default(),
        };
        #[allow(clippy::reversed_empty_ranges, reason = "no number is recorded")]
        let recorded = recorded.unwrap_or(1..=0);
        Rewrites::of(Arc::new(Ledger {
            count: AtomicU64::new(0),
            limit: limit.unwrap_or(u64::MAX),
            recorded,
            spans,
            explained,
            is_full: AtomicBool::new(false),
            log: Mutex::new(log),
        }))
    }

    fn of(ledger: Arc<Ledger>) -> Rewrites {
        Rewrites(Some(Arc::new(LedgerHandle { ledger, is_over: AtomicBool::new(false) })))
    }

    /// Returns a handle of the same ledger for one run of a pass.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn for_run(&self) -> Rewrites {
        self.0.as_ref().map_or_else(Rewrites::default, |handle| Rewrites::of(handle.ledger.clone()))
    }

    /// Turns this handle and its clones off, at the end of the run that it was made for.
    ///
    /// Cost: one entry.
    pub fn end_run(&self) {
        self.0.iter().for_each(|handle| handle.is_over.store(true, Ordering::Relaxed));
    }

    #[inline(always)]
    fn ledger(&self) -> Option<&Ledger> {
        self.0.as_ref().filter(|handle| !handle.is_over.load(Ordering::Relaxed)).map(|handle| &*handle.ledger)
    }

    /// Returns the log; `None` if the ledger is off.
    pub(super) fn log(&self) -> Option<MutexGuard<'_, RewriteLog>> {
        self.ledger().map(|ledger| ledger.log())
    }

    /// Returns the requests for near misses.
    pub(super) fn explained(&self) -> &[WhyNot] {
        self.ledger().map_or(&[], |ledger| &ledger.explained)
    }

    /// Returns true if near misses may be recorded: there are requests, and the run has room.
    #[inline]
    pub(super) fn may_explain(&self) -> bool {
        self.ledger().is_some_and(|ledger| !ledger.explained.is_empty() && !ledger.is_full.load(Ordering::Relaxed))
    }

    /// Ends the recording of near misses in the current run, which has no room for those that
    /// nobody named. Does nothing if there are requests with a name.
    pub(super) fn close_near_misses(&self) {
        if let Some(ledger) = self.ledger().filter(|_| !self.has_named_requests()) {
            ledger.is_full.store(true, Ordering::Relaxed);
        }
    }

    /// Returns true if rewrites are counted.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.ledger().is_some()
    }

    /// Returns the number of rewrites so far; 0 if they are not counted. Those of passes that have
    /// failed are included, those that were [taken back](Rewrites::take_back) are not.
    ///
    /// Cost: one entry.
    pub fn count(&self) -> u64 {
        self.ledger().map_or(0, |ledger| ledger.count.load(Ordering::Relaxed))
    }

    /// Returns the number of rewrites that are made at most; `None` if there is no limit.
    ///
    /// Cost: one entry.
    pub fn limit(&self) -> Option<u64> {
        self.ledger().map(|ledger| ledger.limit).filter(|&limit| limit < u64::MAX)
    }

    /// Returns false once the limit is reached. A pass must make no further rewrite then.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn may_rewrite(&self) -> bool {
        self.ledger().is_none_or(|ledger| ledger.count.load(Ordering::Relaxed) < ledger.limit)
    }

    /// Returns the number of rewrites that may still be made.
    ///
    /// Cost: one entry.
    pub fn room(&self) -> u64 {
        self.ledger().map_or(u64::MAX, |ledger| ledger.limit.saturating_sub(self.count()))
    }

    /// Returns true if there are not more rewrites than the limit.
    ///
    /// Cost: one entry.
    pub fn is_within_limit(&self) -> bool {
        self.ledger().is_none_or(|ledger| self.count() <= ledger.limit)
    }

    /// Counts one rewrite of the current function, or of the module, at a binding with this label
    /// ([`binding_label`](crate::binding_label)).
    /// Code with an editor calls [`Editor::rewrote`](crate::Editor::rewrote) instead. `why` is
    /// shown only if the rewrite is recorded.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn note(&self, binding: Option<&str>, why: impl Display) {
        self.note_at(|| binding.map(Cow::Borrowed), why);
    }

    /// Counts one rewrite as [`Rewrites::note`] does, at a binding whose label is made only if the
    /// rewrite is recorded.
    #[inline(always)]
    pub(super) fn note_at<'b>(&self, binding: impl FnOnce() -> Option<Cow<'b, str>>, why: impl Display) {
        if let Some(ledger) = self.ledger() {
            ledger.note(binding, why);
        }
    }

    /// Returns true if the last rewrite is recorded. Then the other bindings that it changes are
    /// recorded too ([`Rewrites::note_also`]).
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn records_last(&self) -> bool {
        self.ledger().is_some_and(|ledger| ledger.recorded.contains(&ledger.count.load(Ordering::Relaxed)))
    }

    /// Records another binding that the last rewrite has changed, made or removed, or another
    /// function, which is the current one then. Does nothing if the last rewrite is not recorded.
    ///
    /// Cost: one entry.
    pub fn note_also(&self, binding: Option<&str>, why: impl Display) {
        if self.records_last() {
            let number = self.count();
            self.log().into_iter().for_each(|mut log| log.record(number, binding, &why));
        }
    }

    /// Begins a run of a pass, and returns the place before it for [`Rewrites::leave`]. The manager
    /// does this for each pass that is not a sequence.
    ///
    /// Cost: linear in the text.
    pub fn enter_pass(&self, name: &str) -> Option<RewritePlace> {
        let ledger = self.ledger()?;
        let mut log = ledger.log();
        log.runs += 1;
        if !ledger.explained.is_empty() {
            log.misses.hear_name(name);
        }
        let place = RewritePlace { run: log.runs, pass: Arc::from(name), function: None, records: 0 };
        ledger.is_full.store(false, Ordering::Relaxed);
        Some(std::mem::replace(&mut log.place, place))
    }

    /// Ends a run of a pass.
    ///
    /// Cost: one entry.
    pub fn leave(&self, before: Option<RewritePlace>) {
        if let (Some(ledger), Some(before)) = (self.ledger(), before) {
            ledger.log().place = before;
            ledger.is_full.store(false, Ordering::Relaxed);
        }
    }

    /// Names the function of the next rewrites, without `@`; `None` for the module as a whole. The
    /// manager does this for function passes. A pass over modules does it for each function that it
    /// edits.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn enter_function(&self, name: Option<&str>) {
        if let Some(ledger) = self.ledger() {
            ledger.log().place.function = name.map(Arc::from);
        }
    }

    /// Marks the records of the rewrites since a mark as undone, because code that made them has
    /// failed. The rewrites still count.
    ///
    /// Cost: one loop.
    pub fn undo_since(&self, mark: RewriteMark) {
        if let Some(mut log) = self.log() {
            let undone = log.records.iter_mut().skip(mark.records);
            undone.for_each(|record| record.is_undone = true);
        }
    }

    /// Returns the state of the ledger.
    ///
    /// Cost: one entry.
    pub fn mark(&self) -> RewriteMark {
        let Some(log) = self.log() else { return RewriteMark::default() };
        RewriteMark {
            count: self.count(),
            records: log.records.len(),
            records_left_out: log.records_left_out,
            records_of_run: log.place.records,
        }
    }

    /// Takes back the rewrites since a mark in the same run of a pass, because the program is as it
    /// was before them. They do not count, and are not recorded.
    ///
    /// Cost: one loop.
    pub fn take_back(&self, mark: RewriteMark) {
        if let Some(ledger) = self.ledger() {
            let mut log = ledger.log();
            ledger.count.store(mark.count, Ordering::Relaxed);
            log.records.truncate(mark.records);
            (log.records_left_out, log.place.records) = (mark.records_left_out, mark.records_of_run);
            let kept = log.spans.partition_point(|span| span.first <= mark.count);
            log.spans.truncate(kept);
        }
    }

    /// Returns the position at the end of the log, from which a reader finds what is added later.
    ///
    /// Cost: one entry.
    pub fn position(&self) -> LogPosition {
        self.log().map_or_else(LogPosition::default, |log| LogPosition {
            records: log.records.len(),
            records_left_out: log.records_left_out,
            misses: log.misses.position(),
        })
    }

    /// Returns the records of the rewrites since a position in the log, in order, and the number of
    /// those for which there was no room ([`MAX_RECORDS_OF_RUN`]). Moves the position to the end.
    ///
    /// Cost: one loop.
    pub fn read_records(&self, from: &mut LogPosition) -> (Vec<RewriteRecord>, u64) {
        let Some(log) = self.log() else { return (Vec::new(), 0) };
        let start = std::mem::replace(&mut from.records, log.records.len());
        let left_out = std::mem::replace(&mut from.records_left_out, log.records_left_out);
        let records = log.records[start.min(log.records.len())..].to_vec();
        (records, log.records_left_out.saturating_sub(left_out))
    }

    /// Returns the spans of the rewrites so far, in order.
    ///
    /// Cost: one loop.
    pub fn spans(&self) -> Vec<RewriteSpan> {
        self.log().map_or_else(Vec::new, |log| log.spans.clone())
    }
}

impl fmt::Debug for Rewrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ledger() {
            Some(ledger) => {
                f.debug_struct("Rewrites").field("count", &self.count()).field("limit", &ledger.limit).finish()
            }
            None => f.write_str("Rewrites(off)"),
        }
    }
}
