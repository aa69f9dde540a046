//! The near misses of rules: which rules are asked about, and the reasons that are reported.

use anfora_ir::{AskedBy, Context, Editor, EntityId, ExprId, MAX_NEAR_MISSES, MAX_NEAR_MISSES_OF_RUN, binding_label};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Driver;
use crate::pattern::rule::RuleTable;

/// The near misses that a driver collects. They are reported at the end, for the nodes that are
/// left.
pub(super) struct DriverMisses {
    /// For each rule, true if its near misses are asked for; empty if none are.
    explained: Vec<bool>,
    /// True if requests with a name are among those that ask.
    has_names: bool,
    /// True if a reason was refused that nobody named.
    is_cut: bool,
    /// The number of reasons that may still be given, by kind of request: as many as the ledger
    /// keeps.
    room: [usize; 2],
    /// The last reason why a rule did not apply at a node, by node and rule, with the number of
    /// parts of the pattern that matched before.
    found: FxHashMap<(ExprId, usize), (usize, String)>,
    /// The kind of request for which a reason was given, by node and rule.
    asked: FxHashMap<(ExprId, usize), AskedBy>,
    /// The nodes and rules that were asked for by name, and for which there was no room.
    refused: FxHashSet<(ExprId, usize)>,
}

impl DriverMisses {
    pub(super) fn new(cx: &Context, table: &RuleTable) -> DriverMisses {
        DriverMisses {
            explained: explained(cx, table),
            has_names: cx.rewrites.has_named_requests(),
            is_cut: false,
            room: [MAX_NEAR_MISSES_OF_RUN, MAX_NEAR_MISSES],
            found: FxHashMap::default(),
            asked: FxHashMap::default(),
            refused: FxHashSet::default(),
        }
    }

    /// Returns true if near misses of a rule are asked for, and there may be room for more.
    pub(super) fn are_asked_for(&self) -> bool {
        !self.explained.is_empty() && !self.is_closed()
    }

    /// Returns true if there is no room for further nodes. Nobody is told how many there are, so
    /// nobody has to look for them.
    fn is_closed(&self) -> bool {
        self.is_cut && !self.has_names
    }

    /// Records the reason why a rule does not apply at a node, with the number of parts of the
    /// pattern that match.
    pub(super) fn add(&mut self, rule: usize, node: ExprId, why: (usize, String)) {
        self.found.insert((node, rule), why);
    }

    /// Returns true if there is room for the reason why a rule does not apply at a node, which is
    /// asked for.
    fn has_room(&mut self, rule: usize, node: ExprId, asked_by: AskedBy) -> bool {
        if self.asked.contains_key(&(node, rule)) {
            return true;
        }
        let room = &mut self.room[asked_by as usize];
        if *room == 0 {
            match asked_by {
                AskedBy::All => self.is_cut = true,
                AskedBy::Name => {
                    self.refused.insert((node, rule));
                }
            }
            return false;
        }
        *room -= 1;
        self.asked.insert((node, rule), asked_by);
        true
    }
}

/// Returns for each rule whether its near misses are asked for; empty if none are.
pub(super) fn explained(cx: &Context, table: &RuleTable) -> Vec<bool> {
    if !cx.rewrites.is_on() {
        return Vec::new();
    }
    let asked: Vec<bool> = table.rules.iter().map(|rule| cx.rewrites.explains(&rule.name)).collect();
    if asked.contains(&true) { asked } else { Vec::new() }
}

impl Driver<'_, '_> {
    #[inline]
    pub(super) fn is_explained(&self, rule: usize) -> bool {
        self.near_misses.explained.get(rule) == Some(&true)
    }

    /// Returns true if anyone asks why a rule does not apply at a node.
    #[inline]
    pub(super) fn may_explain(&mut self, rule: usize, node: ExprId) -> bool {
        if !self.is_explained(rule) {
            return false;
        }
        if self.near_misses.is_closed() {
            return self.near_misses.asked.contains_key(&(node, rule));
        }
        let Editor { cx, body } = &*self.editor;
        let binding = self.facts.let_of(body, node).and_then(|binding| binding_label(cx, body, binding.id));
        let asked_by = cx.rewrites.explains_at(&self.table.rules[rule].name, binding.as_deref());
        asked_by.is_some_and(|asked_by| self.near_misses.has_room(rule, node, asked_by))
    }

    /// Records the reason why a rule does not apply at a node, if anyone asks.
    #[inline]
    pub(super) fn miss(&mut self, rule: usize, node: ExprId, why: impl FnOnce() -> String) {
        if self.may_explain(rule, node) {
            self.near_misses.add(rule, node, (usize::MAX, why()));
        }
    }

    /// Reports the near misses at the nodes that are left. Of the rules that nobody named, only
    /// those are reported that came furthest at a node.
    pub(super) fn report_misses(&mut self) {
        let mut misses: Vec<_> = self.near_misses.found.drain().collect();
        misses.sort_unstable_by_key(|((node, rule), _)| (node.index(), *rule));
        let mut furthest: FxHashMap<ExprId, usize> = FxHashMap::default();
        for ((node, _), (matched, _)) in &misses {
            let most = furthest.entry(*node).or_default();
            *most = (*matched).max(*most);
        }
        for ((node, rule), (matched, why)) in misses {
            if matched < furthest[&node] && !self.editor.cx.rewrites.names(&self.table.rules[rule].name) {
                continue;
            }
            if self.is_left(node) {
                let at = self.facts.let_of(self.editor.body, node).map_or(node, |binding| binding.id);
                self.editor.nearly(at, &self.table.rules[rule].name, |_| why);
            }
        }
        let refused = self.near_misses.refused.iter().filter(|&&(node, _)| self.is_left(node)).count();
        self.editor.cx.rewrites.leave_out_near_misses(refused as u64);
        if self.near_misses.is_cut {
            self.editor.cx.rewrites.cut_near_misses();
        }
    }

    fn is_left(&self, node: ExprId) -> bool {
        self.facts.def_use.use_count(node) > 0 && !self.editor.body.expr(node).is_atom()
    }
}
