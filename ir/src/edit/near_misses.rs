//! Near misses: rewrites that nearly applied, as a [ledger](Rewrites) keeps them.
//!
//! Passes report near misses; the ledger keeps those that a request ([`WhyNot`]) selects. Each
//! reader has a position of its own in the log ([`LogPosition`]), so reading takes nothing away
//! from other readers. There are two kinds of requests, and the log has room for each of them: near
//! misses that a request names are kept even if a request for all of them has filled its own room.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::hash::BuildHasher;
use std::str::FromStr;
use std::sync::Arc;

use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};

use crate::edit::rewrites::{LogPosition, Rewrites};
use crate::text::unescape;

/// A selection of near misses. All of them are selected by default.
///
/// It is written as `WHAT`, `WHAT@BINDING` or `@BINDING`; the last `@` counts. A binding may be
/// written as in a program, with `%` and quotes, or without them.
///
/// ```
/// use anfora_ir::WhyNot;
///
/// let asked: WhyNot = "FoldConstant@%y".parse()?;
/// assert_eq!(asked.what.as_deref(), Some("FoldConstant"));
/// assert_eq!(asked.binding.as_deref(), Some("y"));
/// let asked: WhyNot = r#"@%"layer/y""#.parse()?;
/// assert_eq!(asked.binding.as_deref(), Some("layer/y"));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WhyNot {
    /// The name of the rule, of another kind of rewrite, or of a pass; any if `None`.
    pub what: Option<String>,
    /// The name of the binding, without `%`, or its [`binding_label`](crate::binding_label) if it
    /// has no name; any if `None`.
    pub binding: Option<String>,
}

/// The kind of request that selects a near miss. The ledger has room for each kind.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AskedBy {
    /// A request for all near misses.
    All,
    /// A request that names a rule, a pass or a binding.
    Name,
}

/// A rewrite that nearly applied.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NearMiss {
    /// The name of the pass; empty outside of passes.
    pub pass: Arc<str>,
    /// The name of the function, without `@`.
    pub function: Option<Arc<str>>,
    /// The name of the binding, without `%`, or its [`binding_label`](crate::binding_label) if it
    /// has no name; `None` for a tail.
    pub binding: Option<String>,
    /// The rule, or another kind of rewrite.
    pub what: String,
    /// The condition that did not hold.
    pub why: String,
}

/// The near misses that a reader finds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NearMisses {
    /// The different near misses, in the order in which they were found first.
    pub found: Vec<NearMiss>,
    /// The number of near misses of requests with a name for which there was no room.
    pub left_out: u64,
    /// True if there was no room for another near miss of a request without a name. How many there
    /// are is not known: their reasons take longer to find than the passes take to run.
    pub is_cut: bool,
}

/// The number of near misses that a ledger keeps for requests with a name.
pub const MAX_NEAR_MISSES: usize = 10_000;

/// The number of near misses of one run of a pass that a ledger keeps for requests without a name.
pub const MAX_NEAR_MISSES_OF_RUN: usize = 1000;

/// The number of near misses that a ledger keeps for requests without a name.
const MAX_UNNAMED: usize = 100_000;

/// The number of entries of the log. A near miss has one for each run that finds it.
const MAX_ENTRIES: usize = 1_000_000;

/// The near misses of a ledger.
#[derive(Default)]
pub(super) struct NearMissLog {
    misses: Vec<KeptMiss>,
    indices: FxHashMap<NearMiss, u32>,
    /// The index of each near miss, once for each run that found it, in order.
    entries: Vec<u32>,
    /// The number of near misses that are kept, by kind of request.
    kept: [usize; 2],
    last_run: RunMisses,
    /// The number of runs in which there was no room for a request without a name.
    runs_cut: u64,
    /// The hashes of the near misses of requests with a name that were left out, so that each is
    /// counted once.
    refused: FxHashSet<u64>,
    left_out: u64,
    /// The passes, rules and other kinds of rewrites that might have reported near misses.
    names: BTreeSet<Box<str>>,
}

/// The near misses of one run for requests without a name.
#[derive(Default)]
struct RunMisses {
    run: u64,
    kept: usize,
    /// True if others were left out.
    is_cut: bool,
}

struct KeptMiss {
    miss: NearMiss,
    /// The last run that found it.
    run: u64,
}

/// The position of a reader in the log of near misses.
#[derive(Clone, Debug, Default)]
pub(super) struct MissPosition {
    entries: usize,
    left_out: u64,
    runs_cut: u64,
}

impl NearMissLog {
    pub(super) fn hear_name(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    pub(super) fn position(&self) -> MissPosition {
        MissPosition { entries: self.entries.len(), left_out: self.left_out, runs_cut: self.runs_cut }
    }

    fn of_run(&mut self, run: u64) -> &mut RunMisses {
        if self.last_run.run != run {
            self.last_run = RunMisses { run, ..RunMisses::default() };
        }
        &mut self.last_run
    }

    /// Returns true if there is room for another near miss of a request without a name in a run.
    /// Otherwise the run is cut.
    fn has_room(&mut self, run: u64) -> bool {
        let is_full = self.of_run(run).kept >= MAX_NEAR_MISSES_OF_RUN
            || self.entries.len() >= MAX_ENTRIES
            || self.kept[AskedBy::All as usize] >= MAX_UNNAMED;
        if is_full {
            self.cut(run);
        }
        !is_full
    }

    /// Records that a run left out near misses of requests without a name.
    fn cut(&mut self, run: u64) {
        let is_new = !std::mem::replace(&mut self.of_run(run).is_cut, true);
        self.runs_cut += u64::from(is_new);
    }

    fn add(&mut self, asked_by: AskedBy, run: u64, miss: NearMiss) {
        if let Some(&index) = self.indices.get(&miss) {
            let known = &mut self.misses[index as usize];
            if known.run != run && self.entries.len() < MAX_ENTRIES {
                known.run = run;
                self.entries.push(index);
            }
            return;
        }
        match asked_by {
            AskedBy::All if !self.has_room(run) => return,
            AskedBy::All => self.of_run(run).kept += 1,
            AskedBy::Name => {
                let is_full = self.entries.len() >= MAX_ENTRIES || self.kept[asked_by as usize] >= MAX_NEAR_MISSES;
                if is_full {
                    self.left_out += u64::from(self.refused.insert(FxBuildHasher.hash_one(&miss)));
                    return;
                }
            }
        }
        self.kept[asked_by as usize] += 1;
        let index = self.misses.len() as u32;
        self.entries.push(index);
        self.indices.insert(miss.clone(), index);
        self.misses.push(KeptMiss { miss, run });
    }
}

impl Rewrites {
    /// Returns the near misses since a position in the log that one of these requests selects, and
    /// moves the position to the end. The number of near misses for which there was no room is that
    /// of all requests with a name. A run without room for others is reported once, also if it goes
    /// on after that.
    ///
    /// Cost: linear in the text.
    pub fn read_near_misses(&self, from: &mut LogPosition, asked: &[WhyNot]) -> NearMisses {
        let Some(log) = self.log() else { return NearMisses::default() };
        let log = &log.misses;
        let start = std::mem::replace(&mut from.misses, log.position());
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        let new = log.entries[start.entries.min(log.entries.len())..].iter().filter(|&&index| seen.insert(index));
        let new = new.map(|&index| &log.misses[index as usize].miss);
        let found = new.filter(|miss| asked.iter().any(|asked| asked.selects(miss))).cloned().collect();
        let is_cut = log.runs_cut > start.runs_cut && asked.iter().any(WhyNot::is_for_all);
        NearMisses { found, left_out: log.left_out.saturating_sub(start.left_out), is_cut }
    }

    /// Returns the names of the passes that have run, and of the rules and other kinds of rewrites
    /// that might have reported near misses, sorted. Empty if nobody asks for near misses. If no
    /// request has a name, those that a run without room would have reported are not among them.
    ///
    /// Cost: linear in the text.
    pub fn explained_names(&self) -> Vec<String> {
        self.log().map_or_else(Vec::new, |log| log.misses.names.iter().map(|name| name.to_string()).collect())
    }

    /// Returns the requests of this ledger.
    ///
    /// Cost: one entry.
    pub fn requests(&self) -> &[WhyNot] {
        self.explained()
    }

    /// Returns true if near misses of a rule of the pass that runs, or of another kind of rewrite,
    /// are recorded: they are asked for, and the run has room for another one. The answer may
    /// become false during the run; code that searches long for near misses asks again.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn explains(&self, what: &str) -> bool {
        self.asked_by(what, |_| true).is_some()
    }

    /// Returns the kind of request that selects near misses of a rule or of another kind of
    /// rewrite, among those that a condition holds for and that there is room for.
    fn asked_by(&self, what: &str, is_at: impl Fn(&WhyNot) -> bool) -> Option<AskedBy> {
        let mut log = if self.may_explain() { self.log()? } else { return None };
        let log = &mut *log;
        log.misses.hear_name(what);
        let run = log.run();
        let selects = |asked: &&WhyNot| asked.is_about(what, log.pass()) && is_at(asked);
        let kind = |asked: &WhyNot| if asked.is_for_all() { AskedBy::All } else { AskedBy::Name };
        let kind = self.explained().iter().filter(selects).map(kind).max()?;
        let has_room = kind == AskedBy::Name || log.misses.has_room(run);
        if !has_room {
            self.close_near_misses();
        }
        has_room.then_some(kind)
    }

    /// Returns true if near misses of a rule, or of another kind of rewrite, are asked for by name.
    ///
    /// Cost: linear in the text.
    pub fn names(&self, what: &str) -> bool {
        self.explained().iter().any(|asked| asked.what.as_deref() == Some(what))
    }

    /// Returns the kind of request that selects near misses of a rule at a binding; `None` if they
    /// are not recorded, or if there is no room for another one that nobody named.
    ///
    /// Cost: linear in the text.
    pub fn explains_at(&self, what: &str, binding: Option<&str>) -> Option<AskedBy> {
        self.asked_by(what, |asked| asked.is_at(binding))
    }

    /// Counts near misses of requests with a name for which code that collects them has no room.
    ///
    /// Cost: one entry.
    pub fn leave_out_near_misses(&self, number: u64) {
        if let Some(mut log) = self.log() {
            log.misses.left_out += number;
        }
    }

    /// Records that code that collects near misses has no room for others that nobody named.
    ///
    /// Cost: one entry.
    pub fn cut_near_misses(&self) {
        if let Some(mut log) = self.log() {
            let run = log.run();
            log.misses.cut(run);
        }
    }

    /// Returns true if a request has a name.
    ///
    /// Cost: linear in the text.
    pub fn has_named_requests(&self) -> bool {
        self.explained().iter().any(|asked| !asked.is_for_all())
    }

    /// Records a near miss, unless nobody asked for it.
    pub(super) fn note_near_miss(&self, binding: Option<&str>, what: &str, why: impl FnOnce() -> String) {
        let Some(asked_by) = self.explains_at(what, binding) else { return };
        // The reason may ask the ledger itself.
        let why = why();
        let Some(mut log) = self.log() else { return };
        let (pass, function, run) = log.place();
        let miss = NearMiss { pass, function, binding: binding.map(str::to_string), what: what.to_string(), why };
        log.misses.add(asked_by, run, miss);
    }
}

impl WhyNot {
    /// Returns true if a near miss is one of the selected ones.
    ///
    /// Cost: linear in the text.
    pub fn selects(&self, miss: &NearMiss) -> bool {
        self.is_about(&miss.what, &miss.pass) && self.is_at(miss.binding.as_deref())
    }

    /// Returns true if all near misses are selected.
    ///
    /// Cost: one entry.
    pub fn is_for_all(&self) -> bool {
        self.what.is_none() && self.binding.is_none()
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
        // A name in quotes may contain `@`.
        let quoted = text.ends_with('"').then(|| text.rfind("@%\"").or_else(|| text.rfind("@\""))).flatten();
        let (what, binding) = match quoted.or_else(|| text.rfind('@')) {
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (text, ""),
        };
        let given = |text: &str| (!text.is_empty()).then(|| text.to_string());
        let binding = binding.trim_start_matches('%');
        let is_quoted = binding.len() >= 2 && binding.starts_with('"') && binding.ends_with('"');
        let unquoted = if is_quoted { unescape(binding).ok() } else { None };
        Ok(WhyNot { what: given(what), binding: given(unquoted.as_deref().unwrap_or(binding)) })
    }
}

/// `SimplifyExpr@%a`
impl Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.what.as_deref().unwrap_or_default())?;
        match &self.binding {
            Some(binding) => write!(f, "@%{binding}"),
            None => Ok(()),
        }
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
