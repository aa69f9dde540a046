//! Dataflow regions.

use anfora_ir::ExprId;

use super::Generator;
use super::kinds::Mark;

/// The open dataflow region.
#[derive(Default)]
pub(super) struct Region {
    /// A mark of the values that were in scope when the region began; `None` if no region is open.
    start: Option<Mark>,
    /// The variables of the region.
    variables: Vec<ExprId>,
}

impl Region {
    pub(super) fn is_open(&self) -> bool {
        self.start.is_some()
    }

    pub(super) fn bound(&mut self, var: ExprId) {
        if self.is_open() {
            self.variables.push(var);
        }
    }
}

impl Generator<'_> {
    pub(super) fn toggle_region(&mut self) {
        if self.region.is_open() {
            self.end_region();
            return;
        }
        self.b.begin_dataflow();
        self.region.start = Some(self.values.mark());
    }

    /// Ends the region, if one is open. About a third of its variables become outputs, and in
    /// regions to fuse, the last and about an eighth; the others go out of scope.
    pub(super) fn end_region(&mut self) {
        let Some(start) = self.region.start.take() else { return };
        let mut outputs = std::mem::take(&mut self.region.variables);
        match outputs.last().copied() {
            Some(last) if self.vocabulary.is_regions() => outputs.retain(|&v| v == last || self.rng.one_in(8)),
            _ => outputs.retain(|v| self.sinks.contains(v) || self.rng.one_in(3)),
        }
        self.b.end_dataflow(&outputs);
        let visible: std::collections::HashSet<ExprId> = outputs.into_iter().collect();
        self.values.retain_since(start, |v| visible.contains(&v));
    }
}
