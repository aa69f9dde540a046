//! The ledger of rewrites: single rewrites of passes are counted, limited and recorded.
//!
//! A rewrite is one decision of a pass that changes a program: a rule that applies, a binding that
//! is removed, a call that is inlined. Code that makes rewrites asks
//! [`may_rewrite`](Rewrites::may_rewrite) before each one, and reports it afterwards
//! ([`Editor::rewrote`](crate::Editor::rewrote)). With a limit of `n`, a program is therefore as it
//! was after the first `n` rewrites of a run without a limit, so a binary search over `n` finds the
//! first rewrite after which a program is wrong.
//!
//! The tables of a module hold a handle ([`Context::rewrites`]), which is off by default. Then each
//! report costs one branch. Clones of the tables, and overlays, share the ledger. The engines that
//! rewrite programs count by themselves, so most passes need not.

use std::convert::Infallible;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;

/// The request to a [ledger](Rewrites).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RewriteOptions {
    /// The number of rewrites that are made. Later ones are not.
    pub limit: Option<u64>,
    /// The numbers of the rewrites that are recorded, from 1.
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

/// A selection of near misses. All of them are selected by default.
///
/// It is written as `WHAT`, `WHAT@BINDING` or `@BINDING`; the last `@` counts.
///
/// ```
/// use anfora_ir::WhyNot;
///
/// let asked: WhyNot = "FoldConstant@%y".parse()?;
/// assert_eq!(asked.what.as_deref(), Some("FoldConstant"));
/// assert_eq!(asked.binding.as_deref(), Some("y"));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WhyNot {
    /// The name of the rule, of another kind of rewrite, or of a pass; any if `None`.
    pub what: Option<String>,
    /// The name of the binding, without `%`; any if `None`.
    pub binding: Option<String>,
}

/// A rewrite that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RewriteRecord {
    /// The number of the rewrite, from 1.
    pub number: u64,
    /// The name of the pass; empty outside of passes.
    pub pass: Arc<str>,
    /// The name of the function, without `@`; `None` if a pass changed the module as a whole.
    pub function: Option<Arc<str>>,
    /// The name of the rewritten binding, without `%`; `None` if it has no name, or for a tail.
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

/// A rewrite that nearly applied.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NearMiss {
    /// The name of the pass; empty outside of passes.
    pub pass: Arc<str>,
    /// The name of the function, without `@`.
    pub function: Option<Arc<str>>,
    /// The name of the binding, without `%`.
    pub binding: Option<String>,
    /// The rule, or another kind of rewrite.
    pub what: String,
    /// The condition that did not hold.
    pub why: String,
}

/// The number of near misses that a ledger keeps; later ones are counted only.
pub const MAX_NEAR_MISSES: usize = 10_000;

/// A handle of a ledger of rewrites; see [`Context::rewrites`]. It is off by default.
#[derive(Clone, Default)]
pub struct Rewrites(Option<Arc<Ledger>>);

struct Ledger {
    count: AtomicU64,
    limit: u64,
    recorded: RangeInclusive<u64>,
    spans: bool,
    explained: Vec<WhyNot>,
    log: Mutex<RewriteLog>,
}

/// The records, and the place of the next rewrite.
struct RewriteLog {
    runs: u64,
    run: u64,
    pass: Arc<str>,
    function: Option<Arc<str>>,
    records: Vec<RewriteRecord>,
    spans: Vec<RewriteSpan>,
    misses: Vec<NearMiss>,
    /// The misses again: a pass that runs several times finds the same ones.
    known_misses: FxHashSet<NearMiss>,
    unkept_misses: u64,
}

/// The place of rewrites: a run of a pass and a function. [`Rewrites::leave`] goes back to it.
#[derive(Clone, Debug)]
pub struct RewritePlace {
    run: u64,
    pass: Arc<str>,
    function: Option<Arc<str>>,
}

impl Ledger {
    fn log(&self) -> MutexGuard<'_, RewriteLog> {
        // Entries are added as a whole, so the log is valid after a panic of another holder.
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn note(&self, binding: Option<&str>, why: impl Display) {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let is_recorded = self.recorded.contains(&number);
        if !is_recorded && !self.spans {
            return;
        }
        let mut log = self.log();
        let RewriteLog { run, pass, function, records, spans, .. } = &mut *log;
        if is_recorded {
            records.push(RewriteRecord {
                number,
                pass: pass.clone(),
                function: function.clone(),
                binding: binding.map(str::to_string),
                why: why.to_string(),
                is_undone: false,
            });
        }
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
        let nothing: Arc<str> = Arc::from("");
        let log = RewriteLog {
            runs: 0,
            run: 0,
            pass: nothing,
            function: None,
            records: Vec::new(),
            spans: Vec::new(),
            misses: Vec::new(),
            known_misses: FxHashSet::default(),
            unkept_misses: 0,
        };
        #[allow(clippy::reversed_empty_ranges, reason = "no number is recorded")]
        let recorded = recorded.unwrap_or(1..=0);
        Rewrites(Some(Arc::new(Ledger {
            count: AtomicU64::new(0),
            limit: limit.unwrap_or(u64::MAX),
            recorded,
            spans,
            explained,
            log: Mutex::new(log),
        })))
    }

    /// Returns true if rewrites are counted.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the number of rewrites so far; 0 if they are not counted. A rollback does not
    /// subtract.
    ///
    /// Cost: one entry.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |ledger| ledger.count.load(Ordering::Relaxed))
    }

    /// Returns the number of rewrites that are made at most; `None` if there is no limit.
    ///
    /// Cost: one entry.
    pub fn limit(&self) -> Option<u64> {
        self.0.as_ref().map(|ledger| ledger.limit).filter(|&limit| limit < u64::MAX)
    }

    /// Returns false once the limit is reached. A pass must make no further rewrite then.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn may_rewrite(&self) -> bool {
        self.0.as_ref().is_none_or(|ledger| ledger.count.load(Ordering::Relaxed) < ledger.limit)
    }

    /// Counts one rewrite of the current function, or of the module, at a binding with a name.
    /// Code with an editor calls [`Editor::rewrote`](crate::Editor::rewrote) instead. `why` is
    /// shown only if the rewrite is recorded.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn note(&self, binding: Option<&str>, why: impl Display) {
        if let Some(ledger) = &self.0 {
            ledger.note(binding, why);
        }
    }

    /// Begins a run of a pass, and returns the place before it for [`Rewrites::leave`]. The manager
    /// does this for each pass that is not a sequence.
    ///
    /// Cost: linear in the text.
    pub fn enter_pass(&self, name: &str) -> Option<RewritePlace> {
        let mut log = self.0.as_ref()?.log();
        log.runs += 1;
        let run = log.runs;
        let before = RewritePlace {
            run: std::mem::replace(&mut log.run, run),
            pass: std::mem::replace(&mut log.pass, Arc::from(name)),
            function: log.function.take(),
        };
        Some(before)
    }

    /// Ends a run of a pass.
    ///
    /// Cost: one entry.
    pub fn leave(&self, before: Option<RewritePlace>) {
        if let (Some(ledger), Some(RewritePlace { run, pass, function })) = (&self.0, before) {
            let mut log = ledger.log();
            (log.run, log.pass, log.function) = (run, pass, function);
        }
    }

    /// Names the function of the next rewrites, without `@`; `None` for the module as a whole. The
    /// manager does this for function passes. A pass over modules does it for each function that it
    /// edits.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn enter_function(&self, name: Option<&str>) {
        if let Some(ledger) = &self.0 {
            ledger.log().function = name.map(Arc::from);
        }
    }

    /// Marks the records of the rewrites after the first `count` as undone. The rewrites still
    /// count.
    ///
    /// Cost: one loop.
    pub fn undo_after(&self, count: u64) {
        if let Some(ledger) = &self.0 {
            let mut log = ledger.log();
            let kept = log.records.partition_point(|record| record.number <= count);
            log.records[kept..].iter_mut().for_each(|record| record.is_undone = true);
        }
    }

    /// Takes the records of the rewrites so far, in order.
    ///
    /// Cost: one entry.
    pub fn take_records(&self) -> Vec<RewriteRecord> {
        self.0.as_ref().map_or_else(Vec::new, |ledger| std::mem::take(&mut ledger.log().records))
    }

    /// Takes the spans of the rewrites so far, in order.
    ///
    /// Cost: one entry.
    pub fn take_spans(&self) -> Vec<RewriteSpan> {
        self.0.as_ref().map_or_else(Vec::new, |ledger| std::mem::take(&mut ledger.log().spans))
    }

    /// Takes the near misses so far, in order, and the number of those that were not kept because
    /// there were more than [`MAX_NEAR_MISSES`].
    ///
    /// Cost: one entry.
    pub fn take_near_misses(&self) -> (Vec<NearMiss>, u64) {
        let Some(ledger) = &self.0 else { return (Vec::new(), 0) };
        let mut log = ledger.log();
        log.known_misses.clear();
        (std::mem::take(&mut log.misses), std::mem::take(&mut log.unkept_misses))
    }

    /// Returns true if near misses of a rule of the pass that runs, or of another kind of rewrite,
    /// are recorded.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn explains(&self, what: &str) -> bool {
        self.0.as_ref().is_some_and(|ledger| {
            !ledger.explained.is_empty() && {
                let pass = &ledger.log().pass;
                ledger.explained.iter().any(|asked| asked.is_about(what, pass))
            }
        })
    }

    /// Returns true if near misses of a rule, or of another kind of rewrite, are asked for by name.
    ///
    /// Cost: linear in the text.
    pub fn names(&self, what: &str) -> bool {
        let is_named = |asked: &WhyNot| asked.what.as_deref() == Some(what);
        self.0.as_ref().is_some_and(|ledger| ledger.explained.iter().any(is_named))
    }

    /// Returns true if near misses of a rule are recorded at a binding.
    ///
    /// Cost: linear in the text.
    pub fn explains_at(&self, what: &str, binding: Option<&str>) -> bool {
        self.0.as_ref().is_some_and(|ledger| {
            let pass = &ledger.log().pass;
            ledger.explained.iter().any(|asked| asked.is_about(what, pass) && asked.is_at(binding))
        })
    }

    /// Records a near miss, unless nobody asked for it.
    fn note_near_miss(&self, binding: Option<&str>, what: &str, why: impl FnOnce() -> String) {
        let Some(ledger) = self.0.as_ref().filter(|ledger| !ledger.explained.is_empty()) else { return };
        let mut log = ledger.log();
        let pass = log.pass.clone();
        if !ledger.explained.iter().any(|asked| asked.is_about(what, &pass) && asked.is_at(binding)) {
            return;
        }
        if log.misses.len() == MAX_NEAR_MISSES {
            log.unkept_misses += 1;
            return;
        }
        drop(log);
        let why = why();
        let mut log = ledger.log();
        let function = log.function.clone();
        let (binding, what) = (binding.map(str::to_string), what.to_string());
        let miss = NearMiss { pass, function, binding, what, why };
        if log.known_misses.insert(miss.clone()) {
            log.misses.push(miss);
        }
    }
}

impl WhyNot {
    /// Returns true if a near miss is one of the selected ones.
    ///
    /// Cost: linear in the text.
    pub fn selects(&self, miss: &NearMiss) -> bool {
        self.is_about(&miss.what, &miss.pass) && self.is_at(miss.binding.as_deref())
    }

    fn is_at(&self, binding: Option<&str>) -> bool {
        self.binding.as_deref().is_none_or(|name| binding == Some(name))
    }

    fn is_about(&self, what: &str, pass: &str) -> bool {
        self.what.as_deref().is_none_or(|asked| asked == what || asked == pass)
    }
}

impl FromStr for WhyNot {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<WhyNot, Infallible> {
        let (what, binding) = text.rsplit_once('@').unwrap_or((text, ""));
        let given = |text: &str| (!text.is_empty()).then(|| text.to_string());
        Ok(WhyNot { what: given(what), binding: given(binding.trim_start_matches('%')) })
    }
}

/// `why not SimplifyExpr: x * 1 at @main %a: %b is not constant`
impl Display for NearMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NearMiss { pass, function, binding, what, why } = self;
        f.write_str("why not ")?;
        if !pass.is_empty() && **pass != **what {
            write!(f, "{pass}: ")?;
        }
        write!(f, "{what} at ")?;
        match function {
            Some(function) => write!(f, "@{function}")?,
            None => f.write_str("the module")?,
        }
        match binding {
            Some(binding) => write!(f, " %{binding}: {why}"),
            None => write!(f, ", in its result: {why}"),
        }
    }
}

impl Context {
    /// Counts a rewrite at a Let, variable or tail of a body; see
    /// [`Editor::rewrote`](crate::Editor::rewrote).
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn rewrote(&self, body: &Body, at: ExprId, why: impl Display) {
        if self.rewrites.is_on() {
            self.rewrites.note(body.binding_name(self, at), why);
        }
    }

    /// Records a near miss at a Let, variable or tail of a body; see
    /// [`Editor::nearly`](crate::Editor::nearly).
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn nearly(&self, body: &Body, at: ExprId, what: &str, why: impl FnOnce() -> String) {
        if self.rewrites.is_on() {
            self.rewrites.note_near_miss(body.binding_name(self, at), what, why);
        }
    }
}

impl fmt::Debug for Rewrites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(ledger) => {
                f.debug_struct("Rewrites").field("count", &self.count()).field("limit", &ledger.limit).finish()
            }
            None => f.write_str("Rewrites(off)"),
        }
    }
}
