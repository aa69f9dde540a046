//! Makes a variable of a dataflow region an output of it where an author's expression uses it
//! outside.

use anfora_ir::{Body, EntityId, Expr, ExprId, IdSet, VarFlags, VarId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::chain::set_var_flags;
use crate::link::Binding;

/// The open regions of a walk of a whole body. Which variables they bind is looked up when an
/// expression asks, from where the last one stopped asking, so that walks in which the author
/// replaces nothing do not pay for it.
pub(crate) struct RegionOutputs {
    /// Nodes from here on were made during the walk, and are looked into.
    fresh: usize,
    open: Vec<OpenRegion>,
    /// Variables of the open regions, as far as they were looked up.
    bound: IdSet<ExprId>,
    /// Nodes made during the walk, with the number of regions that had begun or ended when they
    /// were looked into.
    looked_into: FxHashMap<ExprId, u64>,
    changes: u64,
}

struct OpenRegion {
    /// The number of its block among the open ones.
    block: usize,
    /// The Let after which variables are still to be looked up; `None` for the beginning of the
    /// block.
    after: Option<ExprId>,
    looked_up: bool,
    vars: Vec<ExprId>,
}

impl RegionOutputs {
    pub(crate) fn new(body: &Body) -> RegionOutputs {
        RegionOutputs {
            fresh: body.len(),
            open: Vec::new(),
            bound: IdSet::with_capacity(0),
            looked_into: FxHashMap::default(),
            changes: 0,
        }
    }

    /// A region begins in an open block, after its Let `after`.
    pub(crate) fn begin(&mut self, block: usize, after: Option<ExprId>) {
        self.changes += 1;
        self.open.push(OpenRegion { block, after, looked_up: false, vars: Vec::new() });
    }

    /// The innermost region ends.
    pub(crate) fn end(&mut self) {
        self.changes += 1;
        for var in self.open.pop().into_iter().flat_map(|region| region.vars) {
            self.bound.remove(var);
        }
    }

    /// Makes variables that an expression uses, and that neither it nor an open region binds,
    /// outputs of their regions. Linear in what is new of the expression. `own` is the variable
    /// that the expression is going to be the value of: a recursive `fn` uses it where it is bound.
    /// `chain` says of an open block which Lets stay of it: the first, and the last.
    pub(crate) fn let_out(
        &mut self,
        body: &mut Body,
        id: ExprId,
        own: Option<VarId>,
        chain: impl Fn(usize) -> (Option<ExprId>, Option<ExprId>),
    ) {
        let mut used: SmallVec<[ExprId; 8]> = SmallVec::new();
        let mut binds: FxHashSet<ExprId> = FxHashSet::default();
        let mut stack: SmallVec<[ExprId; 8]> = smallvec::smallvec![id];
        while let Some(at) = stack.pop() {
            let mut part = |part: ExprId| match body.expr(part) {
                Expr::Var { flags, .. } if flags.is_dataflow() => used.push(part),
                expr if expr.is_atom() || part.index() < self.fresh => {}
                _ if self.looked_into.insert(part, self.changes) == Some(self.changes) => {}
                _ => stack.push(part),
            };
            match body.expr(at) {
                Expr::Var { .. } => part(at),
                Expr::Let { var, value, body: rest, .. } => {
                    if binds.insert(var.expr()) {
                        stack.extend([rest, value]);
                    }
                }
                Expr::If { cond, then_block, else_block } => [cond, then_block, else_block].into_iter().for_each(part),
                Expr::Lambda { body: block, .. } => part(block),
                Expr::Proj { tuple, .. } => part(tuple),
                _ => body.operands_of(at).iter().for_each(|&o| part(o)),
            }
        }
        used.retain(|var| !binds.contains(var) && own.is_none_or(|own| own.expr() != *var));
        if used.is_empty() {
            return;
        }
        self.look_up(body, chain);
        for var in used {
            if !self.bound.contains(var)
                && let Some(var) = body.as_var(var)
            {
                set_var_flags(body, var, VarFlags::PLAIN);
            }
        }
    }

    /// Looks up what the open regions bind by now. While a region is open, those around it get no
    /// further.
    fn look_up(&mut self, body: &Body, chain: impl Fn(usize) -> (Option<ExprId>, Option<ExprId>)) {
        for region in self.open.iter_mut().rev() {
            let (first, last) = chain(region.block);
            if std::mem::replace(&mut region.looked_up, true) && region.after == last {
                break;
            }
            while last.is_some() && region.after != last {
                let next = match region.after {
                    Some(after) => Binding::of(body, after).map(|b| b.rest),
                    None => first,
                };
                let Some(binding) = next.and_then(|id| Binding::of(body, id)) else { break };
                self.bound.insert(binding.var.expr());
                region.vars.push(binding.var.expr());
                region.after = Some(binding.id);
            }
        }
    }
}
