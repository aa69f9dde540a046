//! The forward half: scales are folded into the calls after them.
//!
//! A step is folded if every use of its result is the first operand of a weighted call, or of a
//! call that commutes with it and is itself used in this way. Steps are processed from the last to
//! the first, so that all uses of a step are known when it is processed, and the step next to the
//! weight is folded first.

use anfora_ir::{Body, Context, ExprId};
use anfora_visit::{Mutator, Refused, RewriteError, Site, Slot, Verdict};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::channels::{Factors, stays_in_range};
use super::roles::{Affine, Role, Side, affine};
use super::{BatchNormFolder, Constants, Cost, PASS, Stays, weight_of};

/// The greatest number of calls that one step is folded into, which bounds the work for each step.
const MAX_USERS: usize = 16;

/// The weighted calls that take a scale from a variable.
struct Users {
    /// The indices of the weighted calls.
    calls: SmallVec<[u32; 4]>,
    /// The number of references to the variable that lead to them.
    links: u32,
    /// True if a scale reaches them only if it is positive.
    only_positive: bool,
}

impl BatchNormFolder {
    /// Folds steps into the weighted calls after them, and returns the replacement of each step.
    pub(super) fn fold_into_inputs(&mut self, cx: &Context, body: &Body) -> FxHashMap<ExprId, ExprId> {
        let mut bypassed = FxHashMap::default();
        let before = std::mem::take(&mut self.before);
        if before.is_empty() {
            return bypassed;
        }
        let mut users = FxHashMap::default();
        for (i, weighted) in self.weighted.iter().enumerate() {
            let calls = SmallVec::from_slice(&[i as u32]);
            let operand = body.operands_of(weighted.call)[0];
            self.add_users(&mut users, operand, Users { calls, links: 1, only_positive: false });
        }
        for (slot, call, role) in before.into_iter().rev() {
            let Some(var) = slot.var else { continue };
            let Some(mut of_var) = users.remove(&var.expr()) else { continue };
            let operands = body.operands_of(call);
            let position = usize::from(body.as_literal(operands[0]).is_some());
            let Some(&operand) = operands.get(position) else { continue };
            if of_var.links != self.links[var.expr()] || body.ty(call) != body.ty(operand) {
                if role != Role::Homogeneous {
                    cx.nearly(body, slot.at, PASS, || match body.ty(call) == body.ty(operand) {
                        true => "not every use of it is by one of a few calls with the same channels".to_string(),
                        false => "it changes the type of its operand".to_string(),
                    });
                }
                continue;
            }
            if role == Role::Homogeneous {
                of_var.only_positive = true;
            } else {
                let side = self.weighted[of_var.calls[0] as usize].shape.input;
                let Some((step, constants)) = affine(cx, body, (call, role), position, (&side, operand)) else {
                    cx.nearly(body, slot.at, PASS, || {
                        "it is not constant by the channels of the calls after it".to_string()
                    });
                    continue;
                };
                let freed = constants.iter().map(|&c| self.freed_bytes(cx, body, c)).sum();
                match self.absorb_before(cx, body, &of_var, &step, freed) {
                    Ok(()) => bypassed.insert(call, operand),
                    Err((index, why)) => {
                        self.remark(cx, body, (slot, call), index, why);
                        continue;
                    }
                };
            }
            of_var.links = 1;
            self.add_users(&mut users, operand, of_var);
        }
        bypassed
    }

    /// Adds users of a variable, unless there are too many or their channels differ. In that case,
    /// not all references to the variable lead to users, so that no step before it is folded.
    fn add_users(&self, users: &mut FxHashMap<ExprId, Users>, operand: ExprId, more: Users) {
        let side = |users: &Users| self.weighted[users.calls[0] as usize].shape.input;
        let Some(all) = users.get_mut(&operand) else {
            users.insert(operand, more);
            return;
        };
        let (Side { axis, channels, .. }, other) = (side(all), side(&more));
        if (axis, channels) == (other.axis, other.channels) && all.calls.len() + more.calls.len() <= MAX_USERS {
            all.calls.extend(more.calls);
            all.links += more.links;
            all.only_positive |= more.only_positive;
        }
    }

    /// Folds a step into all users of its result, or into none. An error names the first user that
    /// cannot take it.
    fn absorb_before(
        &mut self,
        cx: &Context,
        body: &Body,
        users: &Users,
        step: &Affine,
        freed: usize,
    ) -> Result<(), (usize, Stays)> {
        let mut total = Cost { freed, ..Cost::default() };
        let mut absorbed = SmallVec::<[(usize, Constants); 2]>::new();
        for &index in &users.calls {
            let index = index as usize;
            let taken = self.absorbed_before(cx, body, index, (step, users.only_positive), &mut total);
            absorbed.push((index, taken.map_err(|why| (index, why))?));
        }
        self.spend(total).map_err(|why| (users.calls[0] as usize, why))?;
        for (index, constants) in absorbed {
            self.weighted[index].constants = constants;
        }
        Ok(())
    }

    /// Returns the constants of a call after a step before it is folded into it, and adds their
    /// cost to `total`.
    fn absorbed_before(
        &self,
        cx: &Context,
        body: &Body,
        index: usize,
        (step, only_positive): (&Affine, bool),
        total: &mut Cost,
    ) -> Result<Constants, Stays> {
        let (shape, old) = (&self.weighted[index].shape, &self.weighted[index].constants);
        if !step.shift.all(|t| t == 0.0) {
            return Err(Stays::Unfit("cannot take a shift before it"));
        }
        if only_positive && !step.scale.all(|s| s > 0.0) {
            return Err(Stays::Unfit("comes after `nn.relu`, through which only positive scales pass"));
        }
        let (weight, range) = weight_of(cx, body, shape)?;
        let input = old.factors.input.zip(&step.scale, |a, b| a * b);
        if !input.all(f64::is_finite) {
            return Err(Stays::OutOfRange);
        }
        let is_scaled = !step.scale.all(|s| s == 1.0);
        let factors = Factors { output: old.factors.output.clone(), input };

        // Each element of the weight is checked, unless all are equal or unchanged.
        let is_same = weight.as_splat().is_some() && factors.is_same();
        let count = if is_same { 1 } else { weight.element_count() };
        if is_scaled {
            self.budget.stays_in_file(weight).map_or(Ok(()), |bytes| Err(Stays::InFile(bytes)))?;
            total.work = total.work.saturating_add(count as u64);
            if total.work > self.budget.work.saturating_sub(self.result.work) {
                return Err(Stays::TooLong(total.work));
            }
            if !stays_in_range(weight, shape, &factors, (range, count)) {
                return Err(Stays::OutOfRange);
            }
        }

        let mut new = Constants {
            factors,
            bias: old.bias.clone(),
            has_bias: old.has_bias,
            is_scaled: old.is_scaled || is_scaled,
            is_biased: old.is_biased,
            weight_bytes: 0,
            bias_bytes: 0,
            work: 0,
        };
        let cost = self.cost(cx, body, index, &mut new);
        total.new = total.new.saturating_add(cost.new);
        total.freed += cost.freed;
        total.work = total.work.saturating_add(cost.work);
        Ok(new)
    }
}

/// Replaces calls by other atoms.
pub(super) struct Bypass(pub(super) FxHashMap<ExprId, ExprId>);

impl Mutator for Bypass {
    type Error = RewriteError;
    const NODES: bool = false;
    const REFUSED: Refused = Refused::CastBack;
    const SEPARABLE: bool = false;

    #[inline]
    fn rewrite_value(&mut self, _: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        Ok(self.0.get(&value).map_or(Verdict::Keep, |&atom| Verdict::Var(atom)))
    }
}
