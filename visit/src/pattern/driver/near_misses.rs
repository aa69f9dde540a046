//! The near misses of rules: which rules are asked about, and the reasons that are reported.

use anfora_ir::{Context, Editor, EntityId, ExprId};
use rustc_hash::FxHashMap;

use super::Driver;
use crate::pattern::rule::RuleTable;

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
        self.explained.get(rule) == Some(&true)
    }

    /// Returns true if anyone asks why a rule does not apply at a node.
    #[inline]
    pub(super) fn may_explain(&mut self, rule: usize, node: ExprId) -> bool {
        if !self.is_explained(rule) || self.explanations == 0 {
            return false;
        }
        let Editor { cx, body } = &*self.editor;
        let binding = self.facts.let_of(body, node).and_then(|binding| body.binding_name(cx, binding.id));
        let is_asked = cx.rewrites.explains_at(&self.table.rules[rule].name, binding);
        self.explanations -= usize::from(is_asked);
        is_asked
    }

    /// Records the reason why a rule does not apply at a node, if anyone asks.
    #[inline]
    pub(super) fn miss(&mut self, rule: usize, node: ExprId, why: impl FnOnce() -> String) {
        if self.may_explain(rule, node) {
            self.misses.insert((node, rule), (usize::MAX, why()));
        }
    }

    /// Reports the near misses at the nodes that are left. Of the rules that nobody named, only
    /// those are reported that came furthest at a node.
    pub(super) fn report_misses(&mut self) {
        let mut misses: Vec<((ExprId, usize), (usize, String))> = self.misses.drain().collect();
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
            if self.facts.def_use.use_count(node) > 0 && !self.editor.body.expr(node).is_atom() {
                let at = self.facts.let_of(self.editor.body, node).map_or(node, |binding| binding.id);
                self.editor.nearly(at, &self.table.rules[rule].name, |_| why);
            }
        }
    }
}
