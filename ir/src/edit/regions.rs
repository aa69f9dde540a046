//! The dataflow regions of a body, and their replacement.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::body::Body;
use crate::core::entity::ExprId;
use crate::core::expr::{Expr, VarId};
use crate::walk::cursor::{BlockKind, Cursor, Step};
use crate::walk::per_block::PerBlock;

/// A dataflow region: consecutive Lets of one chain.
#[derive(Copy, Clone)]
pub(super) struct Region {
    /// The parent of the first Let: the Let before it, or the node that has the block; absent for
    /// the body itself.
    parent: Option<ExprId>,
    pub(super) first: ExprId,
    pub(super) last: ExprId,
}

/// Returns the regions of a body in program order. A region in a branch or a function value inside
/// of another region is a part of the outer one, and not listed. Linear.
pub(super) fn regions_of(body: &Body) -> Vec<Region> {
    let mut regions = Vec::new();
    // The parent of the next Let of each open block.
    let mut parents: PerBlock<Option<ExprId>> = PerBlock::default();
    // The number of blocks around the open region, the parent of its first Let, and that Let.
    let mut open: Option<(usize, Option<ExprId>, ExprId)> = None;
    let mut cursor = Cursor::with_regions(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::EnterBlock(_, kind) => parents.enter_with(owner(kind)),
            Step::EnterRegion(first) if open.is_none() => open = Some((parents.depth(), *parents, first)),
            Step::Bound(id) => *parents = Some(id),
            Step::ExitRegion(last) => {
                if let Some((_, parent, first)) = open.take_if(|(depth, ..)| *depth == parents.depth()) {
                    regions.push(Region { parent, first, last });
                }
            }
            Step::ExitBlock(..) => {
                parents.exit();
            }
            _ => {}
        }
    }
    regions
}

/// Returns the variables that the bindings from one Let to a later one of its chain use and do not
/// bind before, in the order of their first uses. Linear.
///
/// # Errors
/// If an expression is part of itself, or a Let stands at two places: returns it.
pub(super) fn free_variables(body: &Body, [first, last]: [ExprId; 2]) -> Result<Vec<VarId>, ExprId> {
    let mut free = Vec::new();
    let mut known: FxHashSet<ExprId> = FxHashSet::default();
    let mut open: FxHashSet<ExprId> = FxHashSet::default();
    let mut depth = 0;
    let mut cursor = Cursor::at(body, first);
    while let Some(step) = cursor.next(body) {
        let mut used = |id| {
            if let (Some(var), true) = (body.as_var(id), known.insert(id)) {
                free.push(var);
            }
        };
        match step {
            Step::EnterBlock(..) => depth += 1,
            Step::ExitBlock(..) => depth -= 1,
            Step::Atom(id) => used(id),
            Step::Flat(id) => body.inputs(id).iter().for_each(|&input| used(input)),
            Step::Seen(id) if open.contains(&id) => return Err(id),
            Step::Let(id) => {
                let Expr::Let { var, .. } = body.expr(id) else { return Err(id) };
                if !open.insert(id) {
                    return Err(id);
                }
                known.insert(var.expr());
            }
            Step::Enter(id) => {
                open.insert(id);
                if let Expr::Lambda { lambda, .. } = body.expr(id) {
                    known.extend(body.lambda_params(lambda).map(VarId::expr));
                }
            }
            Step::Exit(id) => drop(open.remove(&id)),
            Step::Bound(id) if id == last && depth == 1 => break,
            Step::Bound(_) | Step::Seen(_) => {}
        }
    }
    Ok(free)
}

fn owner(kind: BlockKind) -> Option<ExprId> {
    match kind {
        BlockKind::Root => None,
        BlockKind::Then(id)
        | BlockKind::Else(id)
        | BlockKind::Lambda(id)
        | BlockKind::Value(id)
        | BlockKind::Operand(id) => Some(id),
    }
}

/// A replacement of regions by Lets, given in the order of [`regions_of`].
#[derive(Default)]
pub(super) struct Relink {
    /// For the last Let of a replaced region, the node that is now the parent of what follows.
    moved: FxHashMap<ExprId, Option<ExprId>>,
    /// For each node, the number of its operands that were searched.
    looked: FxHashMap<ExprId, usize>,
}

impl Relink {
    /// Replaces a region by the chain of Lets from the first of `new` to the last of it, or by
    /// nothing.
    pub(super) fn replace(&mut self, body: &mut Body, region: &Region, new: Option<[ExprId; 2]>) {
        let Expr::Let { body: rest, .. } = body.expr(region.last) else { return };
        let moved = |id| self.moved.get(&id).copied().unwrap_or(Some(id));
        let parent = region.parent.and_then(moved);
        let (target, last) = match new {
            Some([first, last]) => {
                body.set_let_body(last, rest);
                (first, Some(last))
            }
            None => (rest, parent),
        };
        self.moved.insert(region.last, last);
        self.link(body, parent, region.first, target);
    }

    fn link(&mut self, body: &mut Body, parent: Option<ExprId>, old: ExprId, new: ExprId) {
        let Some(parent) = parent else { return body.set_root(new) };
        let at = |id: ExprId| if id == old { new } else { id };
        let expr = match body.expr(parent) {
            Expr::Let { var, value, body: rest, flags } => Expr::Let { var, value: at(value), body: at(rest), flags },
            Expr::If { cond, then_block, else_block } => {
                Expr::If { cond: at(cond), then_block: at(then_block), else_block: at(else_block) }
            }
            Expr::Lambda { lambda, body: block } => Expr::Lambda { lambda, body: at(block) },
            Expr::Proj { tuple, index } => Expr::Proj { tuple: at(tuple), index },
            other => {
                // Regions come in the order of the operands, so each operand is visited once.
                let from = self.looked.entry(parent).or_default();
                let found = body.operands_of(parent)[*from..].iter().position(|&o| o == old);
                if let (Some(list), Some(i)) = (other.operand_list(), found) {
                    *from += i;
                    body.set_operand(list, *from, new);
                }
                return;
            }
        };
        body.set_expr(parent, expr);
    }
}
