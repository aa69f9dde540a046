//! Operands of parallel calls as one operand.

use anfora_ir::{Body, Context, ExprId, Literal, SideTable, element_count};
use smallvec::SmallVec;

use crate::fold_budget::FoldBudget;

/// One operand for all calls of a combination.
pub(super) enum Joined {
    /// All calls have the same operand, which stays.
    Same(ExprId),
    /// The operands are constants, joined here.
    Constant(Literal),
    /// The operands are joined by a call of `concat`.
    Computed(SmallVec<[ExprId; 4]>),
}

impl Joined {
    /// Returns the number of calls that compute it.
    pub(super) fn calls(&self) -> i64 {
        i64::from(matches!(self, Joined::Computed(_)))
    }
}

/// The growth and the work of the constants that are joined, as parts of a budget.
#[derive(Copy, Clone, Default)]
pub(super) struct JoinCost {
    pub(super) growth: usize,
    pub(super) work: u64,
}

/// Joins operands along an axis. If all are constants, returns their joint constant, and adds its
/// cost to `spent`. Returns `None` if the budget does not allow that.
pub(super) fn join(
    (cx, body): (&Context, &Body),
    links: &SideTable<ExprId, u32>,
    operands: SmallVec<[ExprId; 4]>,
    axis: usize,
    budget: &FoldBudget,
    spent: &mut JoinCost,
) -> Option<Joined> {
    let constants: Option<SmallVec<[&Literal; 4]>> =
        operands.iter().map(|&o| body.as_literal(o).map(|id| cx.literals.get(id))).collect();
    let Some(constants) = constants else { return Some(Joined::Computed(operands)) };
    if constants.iter().any(|constant| budget.stays_in_file(constant).is_some()) {
        return None;
    }
    let mut freed = 0usize;
    for (i, operand) in operands.iter().enumerate() {
        let uses = operands.iter().filter(|o| *o == operand).count();
        if !operands[..i].contains(operand) && links[*operand] as usize == uses {
            freed += constants[i].stored_bytes();
        }
    }
    let most = budget.total.map_or(usize::MAX, |total| total.saturating_sub(spent.growth));
    let most = budget.per_call.unwrap_or(usize::MAX).min(most).saturating_add(freed);
    let work = budget.work.saturating_sub(spent.work);
    let joined = joined_constant(&constants, axis, most, work)?;
    spent.growth += joined.stored_bytes().saturating_sub(freed);
    spent.work += if joined.as_splat().is_some() { 0 } else { joined.element_count() as u64 };
    Some(Joined::Constant(joined))
}

/// Returns tensors of one type, whose shapes differ along an axis only, as one tensor. `None` if it
/// has more than `most` bytes or more than `work` elements, unless it is a splat, or if the
/// elements cannot be read or are smaller than a byte.
fn joined_constant(constants: &[&Literal], axis: usize, most: usize, work: u64) -> Option<Literal> {
    let first = *constants.first()?;
    let mut shape: SmallVec<[usize; 6]> = SmallVec::from_slice(first.shape());
    shape[axis] = constants.iter().try_fold(0usize, |sum, c| sum.checked_add(c.shape()[axis]))?;
    let count = element_count(&shape)?;
    if let Some(element) = first.as_splat()
        && constants.iter().all(|c| c.as_splat() == Some(element))
    {
        return Some(Literal::splat_bytes(first.dtype(), &shape, element));
    }
    let bytes = first.dtype().byte_len(count)?;
    if first.dtype().bits() < 8 || bytes > most || count as u64 > work || count == 0 {
        return None;
    }
    constants.iter().try_for_each(|c| c.load()).ok()?;
    let rows: usize = shape[..axis].iter().product();
    let parts: SmallVec<[_; 4]> = constants.iter().map(|c| c.to_bytes()).collect();
    let mut joined = Vec::with_capacity(bytes);
    for row in 0..rows {
        for part in &parts {
            let size = part.len() / rows;
            joined.extend_from_slice(&part[row * size..(row + 1) * size]);
        }
    }
    Literal::from_bytes(first.dtype(), &shape, joined.into()).ok()
}
