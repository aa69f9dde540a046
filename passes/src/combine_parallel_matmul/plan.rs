//! Decisions about groups of products, and the new bindings.

use anfora_ir::{AttrValue, Body, Context, Editor, Expr, ExprId, TypeError, VarFlags, VarId};
use smallvec::SmallVec;

use super::Combination;
use super::branches::{Branch, FoundGroups, Group, without_axis};
use super::joined::{JoinCost, Joined, join};
use crate::fold_budget::FoldBudget;

/// The most products of a combination.
const MOST_BRANCHES: usize = 64;

/// Plans the combinations of a function.
pub(super) struct Planner<'a> {
    found: &'a FoundGroups,
    budget: FoldBudget,
    min_saved: i64,
    spent: JoinCost,
    pub(super) rewrite: Combination,
}

/// A step that all branches of a combination have.
struct CommonStep {
    /// The call of the first branch.
    call: ExprId,
    /// The position of the branch's result among the operands.
    position: usize,
    /// The other operands in order, each with the axis along which it is joined.
    others: SmallVec<[(Joined, usize); 1]>,
}

/// The parts of a combination.
struct CombinationPlan {
    weight: Joined,
    bias: Option<Joined>,
    steps: Vec<CommonStep>,
}

/// The reason why products are not combined.
enum Refusal {
    /// Constants cannot be joined.
    Join,
    /// The combination saves this number of calls.
    Saves(i64),
}

impl Refusal {
    fn text(&self, min_saved: i64) -> String {
        match self {
            Refusal::Join => {
                "the joined constants are over the budget of FoldConstant, or stay in their file".to_string()
            }
            Refusal::Saves(calls) => {
                format!("combining it with the other products saves {calls} calls, and `min_saved` is {min_saved}")
            }
        }
    }
}

/// The name under which near misses are recorded.
pub(super) const PASS: &str = "CombineParallelMatmul";

/// Records why products are not combined, if anyone asks.
fn explain<'b>(cx: &Context, body: &Body, branches: impl IntoIterator<Item = &'b Branch>, why: impl Fn() -> String) {
    if cx.rewrites.explains(PASS) {
        branches.into_iter().for_each(|b| cx.nearly(body, b.var.expr(), PASS, &why));
    }
}

impl CombinationPlan {
    /// Returns the number of calls that the combination of this number of branches saves.
    fn saved(&self, branches: usize) -> i64 {
        let (branches, steps) = (branches as i64, self.steps.len() as i64);
        let of_steps: i64 = self.steps.iter().flat_map(|step| &step.others).map(|(joined, _)| joined.calls()).sum();
        let joins = self.weight.calls() + self.bias.as_ref().map_or(0, Joined::calls) + of_steps;
        // The product and the steps stay once, and a split is added.
        branches * (1 + steps) - (2 + steps + joins)
    }
}

impl Planner<'_> {
    pub(super) fn new(found: &FoundGroups, budget: FoldBudget, min_saved: i64) -> Planner<'_> {
        Planner { found, budget, min_saved, spent: JoinCost::default(), rewrite: Combination::default() }
    }

    /// Plans the combinations of a group.
    pub(super) fn plan(&mut self, cx: &mut Context, body: &mut Body, group: &Group) {
        let Some(first) = group.branches.first() else { return };
        let is_bound = |atom: ExprId| self.found.is_bound_before(atom, first.position);
        let branches: Vec<&Branch> =
            group.branches.iter().filter(|b| is_bound(b.weight) && b.bias.is_none_or(is_bound)).collect();
        let unbound = group.branches.iter().filter(|b| !(is_bound(b.weight) && b.bias.is_none_or(is_bound)));
        explain(cx, body, unbound, || {
            let first =
                body.binding_name(cx, first.var.expr()).map_or("the first product".to_string(), |n| format!("%{n}"));
            format!("its weight or bias is computed after {first}, with which it would be combined")
        });
        for branches in branches.chunks(MOST_BRANCHES).filter(|branches| branches.len() > 1) {
            let mut spent = self.spent;
            let plan = match self.decide((cx, body), group, branches, &mut spent) {
                Ok(plan) => plan,
                Err(refusal) => {
                    explain(cx, body, branches.iter().copied(), || refusal.text(self.min_saved));
                    continue;
                }
            };
            let made = make(&mut Editor::new(cx, body), group, branches, plan, &mut self.rewrite);
            if made.is_ok_and(|made| made) {
                self.spent = spent;
                self.rewrite.done.products += branches.len();
                self.rewrite.done.combined += 1;
            } else {
                explain(cx, body, branches.iter().copied(), || "a part would have another type".to_string());
            }
        }
    }

    /// Returns the plan for a combination.
    ///
    /// # Errors
    /// If it does not save enough calls, or its constants cannot be joined.
    fn decide(
        &self,
        (cx, body): (&Context, &Body),
        group: &Group,
        branches: &[&Branch],
        spent: &mut JoinCost,
    ) -> Result<CombinationPlan, Refusal> {
        let mut join_operands = |operands: SmallVec<[ExprId; 4]>, axis: usize| {
            join((cx, body), &self.found.links, operands, axis, &self.budget, spent)
        };
        let weight = join_operands(branches.iter().map(|b| b.weight).collect(), group.weight_axis);
        let weight = weight.ok_or(Refusal::Join)?;
        let biases: Option<SmallVec<[ExprId; 4]>> = branches.iter().map(|b| b.bias).collect();
        let bias = match biases {
            Some(biases) => Some(join_operands(biases, group.bias_axis).ok_or(Refusal::Join)?),
            None => None,
        };
        let mut steps = Vec::new();
        while let Some(step) = self.common_step((cx, body), group, branches, steps.len(), &mut join_operands) {
            steps.push(step);
        }
        let plan = CombinationPlan { weight, bias, steps };
        let saved = plan.saved(branches.len());
        if saved >= self.min_saved { Ok(plan) } else { Err(Refusal::Saves(saved)) }
    }

    /// Returns the step of a number, if all branches have the same one.
    fn common_step(
        &self,
        (cx, body): (&Context, &Body),
        group: &Group,
        branches: &[&Branch],
        number: usize,
        join_operands: &mut dyn FnMut(SmallVec<[ExprId; 4]>, usize) -> Option<Joined>,
    ) -> Option<CommonStep> {
        let first = branches[0].steps.get(number)?;
        let Expr::CallOp { op, operands, attrs } = body.expr(first.call) else { return None };
        let count = operands.len();
        let may_swap = count == 2 && cx.ops.facts(op).is_commutative();
        for branch in branches {
            let step = branch.steps.get(number)?;
            let is_same = matches!(body.expr(step.call), Expr::CallOp { op: other, operands, attrs: of_other }
                if other == op && of_other == attrs && operands.len() == count);
            if !is_same || (step.operand != first.operand && !may_swap) {
                return None;
            }
        }
        let mut others = SmallVec::new();
        for position in 0..count - 1 {
            // The operands of a branch without its result.
            let other = |branch: &&Branch| {
                let step = branch.steps[number];
                body.operands_of(step.call)[position + usize::from(position >= step.operand)]
            };
            let operands: SmallVec<[ExprId; 4]> = branches.iter().map(other).collect();
            let start = branches[0].position;
            if !operands.iter().all(|&operand| self.found.is_bound_before(operand, start)) {
                return None;
            }
            others.push(joined_operand((cx, body), group, branches, operands, join_operands)?);
        }
        Some(CommonStep { call: first.call, position: first.operand, others })
    }
}

/// Returns the operands at one position of a step as one operand, with the axis along which they
/// are joined.
fn joined_operand(
    (cx, body): (&Context, &Body),
    group: &Group,
    branches: &[&Branch],
    operands: SmallVec<[ExprId; 4]>,
    join_operands: &mut dyn FnMut(SmallVec<[ExprId; 4]>, usize) -> Option<Joined>,
) -> Option<(Joined, usize)> {
    let first = operands[0];
    let shape = cx.types.as_tensor(body.type_of(first))?.shape.as_deref()?;
    let axis = shape.len().checked_sub(group.axis_from_end);
    // An operand that is the same along the split axis may stay.
    let is_repeated = axis.is_none_or(|axis| cx.types.dims.as_constant(shape[axis]) == Some(1));
    if is_repeated && operands.iter().all(|&operand| operand == first) {
        return Some((Joined::Same(first), 0));
    }
    let axis = axis?;
    let (wanted, _) = without_axis(cx, body, first, group.axis_from_end)?;
    for (branch, &operand) in branches.iter().zip(&operands) {
        let (others, extent) = without_axis(cx, body, operand, group.axis_from_end)?;
        if others != wanted || cx.types.dims.as_constant(extent) != Some(branch.extent) {
            return None;
        }
    }
    Some((join_operands(operands, axis)?, axis))
}

/// The bindings of a combination, in order.
struct NewBindings {
    flags: VarFlags,
    list: Vec<(VarId, ExprId)>,
}

impl NewBindings {
    fn bind(&mut self, editor: &mut Editor<'_>, value: ExprId) -> ExprId {
        let ty = editor.body.type_of(value);
        let var = editor.var(None, self.flags, ty);
        self.list.push((var, value));
        var.expr()
    }

    /// Returns a joined operand as an atom.
    fn operand(&mut self, editor: &mut Editor<'_>, joined: Joined, axis: usize) -> Result<ExprId, TypeError> {
        Ok(match joined {
            Joined::Same(atom) => atom,
            Joined::Constant(literal) => editor.literal(literal),
            Joined::Computed(operands) => {
                let call = editor.op("concat", &operands, &[("axis", AttrValue::from(axis as i64))])?;
                self.bind(editor, call)
            }
        })
    }
}

/// Makes the bindings of a combination. Returns false, and leaves the rewrite as it is, if a part
/// would not have the type of the value that it replaces.
fn make(
    editor: &mut Editor<'_>,
    group: &Group,
    branches: &[&Branch],
    plan: CombinationPlan,
    rewrite: &mut Combination,
) -> Result<bool, TypeError> {
    let flags = if group.in_region { VarFlags::DATAFLOW } else { VarFlags::PLAIN };
    let mut new = NewBindings { flags, list: Vec::new() };
    let steps = plan.steps.len();
    let mut operands: SmallVec<[ExprId; 4]> = SmallVec::from_slice(&[group.x]);
    operands.push(new.operand(editor, plan.weight, group.weight_axis)?);
    if let Some(bias) = plan.bias {
        operands.push(new.operand(editor, bias, group.bias_axis)?);
    }
    let call = editor.call_op(group.op, &operands, group.attrs)?;
    let mut value = new.bind(editor, call);
    for step in plan.steps {
        let Expr::CallOp { op, attrs, .. } = editor.body.expr(step.call) else { return Ok(false) };
        let mut operands: SmallVec<[ExprId; 4]> = SmallVec::new();
        for (joined, axis) in step.others {
            operands.push(new.operand(editor, joined, axis)?);
        }
        operands.insert(step.position, value);
        let call = editor.call_op(op, &operands, attrs)?;
        value = new.bind(editor, call);
    }

    let rank = editor.cx.types.as_tensor(editor.body.type_of(value)).and_then(|t| Some(t.shape.as_ref()?.len()));
    let Some(axis) = rank.and_then(|rank| rank.checked_sub(group.axis_from_end)) else { return Ok(false) };
    let extents: Vec<i64> = branches.iter().map(|b| b.extent).collect();
    let parts = if extents.windows(2).all(|pair| pair[0] == pair[1]) && extents[0] > 0 {
        ("sections", AttrValue::from(extents.len() as i64))
    } else {
        let ends = extents[..extents.len() - 1].iter().scan(0i64, |end, extent| {
            *end = end.saturating_add(*extent);
            Some(*end)
        });
        ("indices", AttrValue::from(ends.collect::<Vec<i64>>()))
    };
    let call = editor.op("split", &[value], &[parts, ("axis", AttrValue::from(axis as i64))])?;
    let split = new.bind(editor, call);

    let last = |branch: &Branch| match steps.checked_sub(1) {
        Some(last) => (branch.steps[last].var, branch.steps[last].call),
        None => (branch.var, branch.call),
    };
    let mut parts = Vec::with_capacity(branches.len());
    for (i, branch) in branches.iter().enumerate() {
        let part = editor.proj(split, i as u32)?;
        let (var, old) = last(branch);
        if editor.body.ty(part) != editor.body.ty(old) {
            return Ok(false);
        }
        parts.push((var, part));
    }
    rewrite.inserted.insert(branches[0].var, new.list);
    rewrite.parts.extend(parts);
    for branch in branches {
        let before = [branch.var].into_iter().chain(branch.steps[..steps].iter().map(|step| step.var));
        rewrite.dropped.extend(before.take(steps));
    }
    Ok(true)
}
