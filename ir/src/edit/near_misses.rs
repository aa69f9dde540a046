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

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
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
    /// The name of the binding, without `%`; any if `None`.
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
    /// The name of the binding, without `%`.
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
    /// The number of near misses for which there was no room.
    pub left_out: u64,
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
    /// The run whose near misses are counted, and the number of those that were kept for requests
    /// without a name.
    of_run: (u64, usize),
    /// The hashes of the places of near misses that are kept for requests without a name, and of
    /// the near misses that were left out, so that each is counted once.
    kept_places: FxHashSet<u64>,
    refused: FxHashSet<u64>,
    /// The number of near misses that were left out, by kind of request.
    left_out: [u64; 2],
    /// The passes, rules and other kinds of rewrites that might have reported near misses.
    names: BTreeSet<Box<str>>,
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
    left_out: [u64; 2],
}

impl NearMissLog {
    pub(super) fn hear_name(&mut self, name: &str) {
        if !self.names.contains(name) {
            self.names.insert(name.into());
        }
    }

    pub(super) fn position(&self) -> MissPosition {
        MissPosition { entries: self.entries.len(), left_out: self.left_out }
    }

    /// Returns true if there is no room for another near miss of a request without a name in a run.
    fn is_full(&mut self, run: u64) -> bool {
        if self.of_run.0 != run {
            self.of_run = (run, 0);
        }
        self.entries.len() == MAX_ENTRIES || self.kept[0] == MAX_UNNAMED || self.of_run.1 == MAX_NEAR_MISSES_OF_RUN
    }

    /// Returns true if there is no room for a near miss of a request without a name, and counts it
    /// then. Nothing is known of it but its place, since its reason takes time to find. At one
    /// place, it is counted once for each run.
    fn refuses(&mut self, run: u64, place: u64) -> bool {
        if !self.is_full(run) || self.kept_places.contains(&place) {
            return false;
        }
        if self.refused.insert(FxBuildHasher.hash_one((run, place))) {
            self.left_out[AskedBy::All as usize] += 1;
        }
        true
    }

    fn add(&mut self, asked_by: AskedBy, run: u64, place: u64, miss: NearMiss) {
        if let Some(&index) = self.indices.get(&miss) {
            let known = &mut self.misses[index as usize];
            if known.run != run && self.entries.len() < MAX_ENTRIES {
                known.run = run;
                self.entries.push(index);
            }
            return;
        }
        // The room of a run is counted for each run.
        let (is_full, left_out) = match asked_by {
            AskedBy::All => (self.is_full(run), FxBuildHasher.hash_one((run, place))),
            AskedBy::Name => {
                let is_full = self.entries.len() == MAX_ENTRIES || self.kept[1] == MAX_NEAR_MISSES;
                (is_full, FxBuildHasher.hash_one(&miss))
            }
        };
        if is_full {
            self.left_out[asked_by as usize] += u64::from(self.refused.insert(left_out));
            return;
        }
        self.kept[asked_by as usize] += 1;
        if asked_by == AskedBy::All {
            self.of_run.1 += 1;
            self.kept_places.insert(place);
        }
        let index = self.misses.len() as u32;
        self.entries.push(index);
        self.indices.insert(miss.clone(), index);
        self.misses.push(KeptMiss { miss, run });
    }
}

impl Rewrites {
    /// Returns the near misses since a position in the log that one of these requests selects, and
    /// moves the position to the end. The number of near misses for which there was no room is that
    /// of all requests with a name, or of all requests if one of these has none.
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
        let left_out = |kind: AskedBy| log.left_out[kind as usize].saturating_sub(start.left_out[kind as usize]);
        let unnamed = if asked.iter().any(WhyNot::is_for_all) { left_out(AskedBy::All) } else { 0 };
        NearMisses { found, left_out: left_out(AskedBy::Name) + unnamed }
    }

    /// Returns the names of the passes that have run, and of the rules and other kinds of rewrites
    /// that might have reported near misses, sorted. Empty if nobody asks for near misses.
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
    /// are recorded.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn explains(&self, what: &str) -> bool {
        !self.explained().is_empty()
            && self.log().is_some_and(|mut log| {
                log.misses.hear_name(what);
                self.explained().iter().any(|asked| asked.is_about(what, log.pass()))
            })
    }

    /// Returns true if near misses of a rule, or of another kind of rewrite, are asked for by name.
    ///
    /// Cost: linear in the text.
    pub fn names(&self, what: &str) -> bool {
        self.explained().iter().any(|asked| asked.what.as_deref() == Some(what))
    }

    /// Returns the kind of request that selects near misses of a rule at a binding; `None` if they
    /// are not recorded.
    ///
    /// Cost: linear in the text.
    pub fn explains_at(&self, what: &str, binding: Option<&str>) -> Option<AskedBy> {
        let log = self.log().filter(|_| !self.explained().is_empty())?;
        let selects = |asked: &&WhyNot| asked.is_about(what, log.pass()) && asked.is_at(binding);
        let kind = |asked: &WhyNot| if asked.is_for_all() { AskedBy::All } else { AskedBy::Name };
        self.explained().iter().filter(selects).map(kind).max()
    }

    /// Counts near misses for which code that collects them has no room.
    ///
    /// Cost: one entry.
    pub fn leave_out_near_misses(&self, asked_by: AskedBy, number: u64) {
        if let Some(mut log) = self.log() {
            log.misses.left_out[asked_by as usize] += number;
        }
    }

    /// Records a near miss, unless nobody asked for it.
    fn note_near_miss(&self, binding: Option<&str>, what: &str, why: impl FnOnce() -> String) {
        if self.explained().is_empty() {
            return;
        }
        let asked_by = self.explains_at(what, binding);
        let Some(asked_by) = asked_by else {
            self.log().into_iter().for_each(|mut log| log.misses.hear_name(what));
            return;
        };
        let place = {
            let Some(mut log) = self.log() else { return };
            let (_, function, run) = log.place();
            let place = FxBuildHasher.hash_one((function, binding, what));
            if asked_by == AskedBy::All && log.misses.refuses(run, place) {
                log.misses.hear_name(what);
                return;
            }
            place
        };
        // The reason may ask the ledger itself.
        let why = why();
        let Some(mut log) = self.log() else { return };
        let (pass, function, run) = log.place();
        let miss = NearMiss { pass, function, binding: binding.map(str::to_string), what: what.to_string(), why };
        log.misses.hear_name(what);
        log.misses.add(asked_by, run, place, miss);
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

impl Context {
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
