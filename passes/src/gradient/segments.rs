//! Checkpoints: a function is divided into segments, and the values of a segment are computed again
//! before the walk goes back through it. So they need not be kept from their first computation on;
//! only the values that a segment needs from before it are.
//!
//! ```text
//! F0; F1; F2; y' = 1; B2; F1 again; B1; F0 again; B0
//! ```
//!
//! The values of the last segment are computed once, since its adjoints follow at once. Calls of
//! operators without effects are repeated, and the tuples and projections of their results. The
//! results of calls of functions and of Ifs are kept, as are the values in their fns.

use anfora_ir::{Expr, ExprId, VarFlags, VarId};
use anfora_manager::PassError;
use anfora_visit::{Binding, chain};
use rustc_hash::FxHashSet;

use super::backward::{DifferentiatedBinding, Differentiator};
use super::flow::inputs;

/// A value that is computed again.
#[derive(Copy, Clone)]
pub(super) struct RecomputedValue {
    pub(super) var: VarId,
    pub(super) value: ExprId,
}

impl Differentiator<'_, '_> {
    /// Goes back through the block of the function, segment by segment.
    pub(super) fn backward_by_segments(&mut self, mut records: Vec<DifferentiatedBinding>) -> Result<(), PassError> {
        let segments = self.pullbacks.checkpoints;
        if segments < 2 {
            return self.backward(records);
        }
        let all: Vec<Binding> = chain(self.editor.body, self.editor.body.root()).collect();
        let length = all.len().div_ceil(segments).max(1);
        let last = all.chunks(length).len().saturating_sub(1);
        for (number, segment) in all.chunks(length).enumerate().rev() {
            let vars: FxHashSet<VarId> = segment.iter().map(|binding| binding.var).collect();
            let before = records.iter().rposition(|record| !vars.contains(&record.var));
            let of_segment = records.split_off(before.map_or(0, |before| before + 1));
            if number < last {
                self.compute_again(segment);
            }
            self.backward(of_segment)?;
            self.recomputed.clear();
        }
        Ok(())
    }

    /// Binds copies of the values of a segment, which use each other.
    fn compute_again(&mut self, segment: &[Binding]) {
        for binding in segment {
            let (var, value) = (binding.var.expr(), binding.value);
            let operands: Vec<ExprId> =
                inputs(self.editor.body, &value).iter().map(|&operand| self.latest(operand)).collect();
            let uses_copies = || operands.iter().zip(inputs(self.editor.body, &value)).any(|(copy, of)| copy != of);
            let (cx, body) = (&*self.editor.cx, &*self.editor.body);
            let is_repeated = match body.expr(value) {
                Expr::CallOp { .. } => {
                    self.pullbacks.purity.as_ref().is_some_and(|purity| !purity.call_is_impure(cx, body, value))
                }
                Expr::Tuple(_) | Expr::Proj { .. } | Expr::Var { .. } => uses_copies(),
                _ => false,
            };
            if !is_repeated {
                continue;
            }
            let copy = match self.editor.body.expr(value) {
                Expr::Var { .. } => operands[0],
                _ => self.editor.with_operands(value, &operands),
            };
            let (name, ty) = (self.editor.body.var_name(binding.var), self.editor.body.ty(var));
            let again = self.editor.var(name, VarFlags::PLAIN, ty);
            self.list.push(self.editor, again, copy);
            self.recomputed.insert(var, RecomputedValue { var: again, value: copy });
        }
    }

    /// Returns the variable in which the current segment has the value of a variable: a copy, if it
    /// has been computed again.
    pub(super) fn latest(&self, var: ExprId) -> ExprId {
        self.recomputed.get(&var).map_or(var, |again| again.var.expr())
    }
}
