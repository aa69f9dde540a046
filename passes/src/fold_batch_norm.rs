//! # FoldBatchNorm
//!
//! ```text
//! Notation   x an atom; w a constant weight; c, k constants with one number per channel (or one
//!            for all); s and t numbers per channel.
//! Needs      A-normal form.
//! Effect     let v = conv(x, w, c); let u = step(v); rest
//!                =>   let v = conv(x, w * s, c * s + t); rest[u := v]
//!            let u = step(x); let v = conv(u, w, c); rest
//!                =>   let v = conv(x, w * s, c); rest, if t = 0
//!            where step(v) is s * v + t by channel:
//!                nn.batch_norm(v, scale, bias, mean, var)
//!                                             s = scale / sqrt(var + epsilon), t = bias - mean * s
//!                multiply(v, k)   divide(v, k)   negative(v)  s = k, 1 / k, -1
//!                add(v, k)   subtract(v, k)   subtract(k, v)  t = k, -k, and k with s = -1
//!            and conv is nn.conv1d, nn.conv2d or nn.conv3d, or one of these transposed, with any
//!            groups, with a constant bias or none; or nn.gemm with beta = 1. Into matmul(x, w),
//!            which has no bias, only steps with t = 0 are folded. Chains of steps go into the conv
//!            step by step, the nearest first. Inside and outside dataflow regions, branches and
//!            lambdas.
//!            A step between two convs goes into the first if it can. A scale before convs goes
//!            into all convs that use its result, at most 16, whose channels are along one axis. A
//!            scale of positive numbers goes through nn.relu and nn.leaky_relu:
//!            let u = step(x); let r = nn.relu(u); conv(r, w, c).
//! Never      If v is used elsewhere, or u by anything but such convs; if a number of s or t is not
//!            finite; if a weight or a bias would become too large for its type, or all weights of
//!            a channel too small to keep their precision; beyond the budget. A shift before a
//!            conv: the zeros around x are not shifted, and where x is near -t, w * x + w * t has
//!            no correct digit of w * (x + t). A call that two Lets share.
//! Budget     That of FoldConstant: FoldConstant.max_growth_bytes per step,
//!            FoldConstant.max_total_growth_bytes per function. The growth of the constants counts:
//!            old constants that nothing else in the function uses are subtracted. A splat times
//!            one number stays a splat; times one number per channel it is written out, within
//!            FoldConstant.max_work elements per function. A step before a conv counts all
//!            elements of the weight as well, unless it keeps a splat a splat.
//!            FoldConstant.max_file_bytes leaves large weights in a larger file.
//! Not done   Computed weights; weights behind aliases and tuples (CanonicalizeBindings removes
//!            these); s * x + t as s * (x + t / s), which would leave the shift and fold the
//!            scale into the conv after it.
//! Changes    Results, by rounding: s * (w * x) and w * (s * x) are computed as (s * w) * x. The
//!            new constants are computed in float64 from the old ones, over a whole chain, and
//!            rounded once to their type. Where s * x or s * (w * x) overflows, the new result may
//!            be a number, and the other way round.
//! Cost       One walk to count uses and one forward sweep if there is a conv at all, and one more
//!            sweep if steps before convs go. Besides, one number per channel for each step after a
//!            conv, the weight for each step before it, and the new constants. Idempotent, unless
//!            the budget ran out.
//!
//! before     def @f(%x: Tensor[(1, 1, 4), float32]) {
//!              let %a = multiply(%x, 5f);
//!              let %r = nn.relu(%a);
//!              let %v = nn.conv1d(%r, dense<Tensor[(2, 1, 1), float32]>[1, 2]);
//!              let %u = multiply(%v, 3f);
//!              add(%u, 1f)
//!            }
//! after      def @f(%x: Tensor[(1, 1, 4), float32]) {
//!              let %r = nn.relu(%x);
//!              let %v = nn.conv1d(%r, dense<Tensor[(2, 1, 1), float32]>[15, 30],
//!                                 dense<Tensor[(2,), float32]>[1]);
//!              %v
//!            }
//! ```

mod channels;
mod inputs;
mod roles;

use anfora_ir::{Body, Context, Diagnostic, Expr, ExprId, Function, Literal, Severity, SideTable, VarId};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, Refused, RewriteError, Site, Slot, Verdict, link_counts, mutate_function};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::fold_budget::{FoldBudget, MAX_FILE_BYTES, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK};
use crate::match_facts::float_range;

use channels::{Factors, PerChannel, magnitude_of, magnitudes, scaled};
use inputs::Bypass;
use roles::{Affine, Role, Roles, Shape, affine, linear, per_channel};

register_pass! {
    /// Folds normalisations, scales and biases into the convolutions next to them; changes rounding
    pub FOLD_BATCH_NORM = FunctionPass("FoldBatchNorm", 3).needing(["anf"]).with_tolerance(1e-4);
    configs { MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK, MAX_FILE_BYTES }
    run |edit, _, cx| {
        if edit.function.is_primitive(edit.cx) {
            return Ok(());
        }
        let budget = FoldBudget::of(cx)?;
        let done = fold_batch_norm(edit.cx, edit.function, budget)?;
        cx.count("folded", done.folded as u64);
        cx.count("bytes", done.growth as u64);
        let name = edit.name().to_string();
        done.remarks.into_iter().for_each(|r| cx.remark(r.in_function(&name)));
        Ok(())
    }
}

/// The result of folding into weights.
#[derive(Clone, Debug, Default)]
pub struct FoldedIntoWeights {
    /// The number of calls that were folded into a weight or a bias.
    pub folded: usize,
    /// The number of bytes by which constants grew.
    pub growth: usize,
    /// The number of elements of splats that were written out.
    pub work: u64,
    /// The reasons why other calls were not folded. At most [`FoldedIntoWeights::MAX_REMARKS`].
    pub remarks: Vec<Diagnostic>,
}

impl FoldedIntoWeights {
    /// The greatest number of calls with a remark of their own.
    pub const MAX_REMARKS: usize = 32;
}

/// Folds scales and shifts by channel of a convolution's result or operand into the constants of
/// the convolution. A call that several Lets share stays, and nothing is folded into it.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn fold_batch_norm(
    cx: &mut Context,
    function: &mut Function,
    budget: FoldBudget,
) -> Result<FoldedIntoWeights, RewriteError> {
    let roles = Roles::new(cx);
    if !roles.any_linear(&function.body) {
        return Ok(FoldedIntoWeights::default());
    }
    let mut pass = BatchNormFolder {
        roles,
        links: link_counts(&function.body),
        by_result: FxHashMap::default(),
        weighted: Vec::new(),
        before: Vec::new(),
        budget,
        unsaid: 0,
        result: FoldedIntoWeights::default(),
        stuck: cx.rewrites.explains(PASS).then(FxHashMap::default),
        missed: Vec::new(),
    };
    mutate_function(cx, function, &mut pass)?;
    let may_rewrite = cx.rewrites.may_rewrite();
    let bypassed = if may_rewrite { pass.fold_into_inputs(cx, &function.body) } else { FxHashMap::default() };
    for (at, call, why) in std::mem::take(&mut pass.missed) {
        if !bypassed.contains_key(&call) {
            cx.nearly(&function.body, at, PASS, || why);
        }
    }
    if !bypassed.is_empty() {
        cx.rewrites.note(None, "folded into the weights of later calls");
        mutate_function(cx, function, &mut Bypass(bypassed))?;
    }
    for weighted in &pass.weighted {
        weighted.write(cx, function);
    }
    if pass.unsaid > 0 {
        let message = format!("{} more calls were not folded into weights", pass.unsaid);
        pass.result.remarks.push(Diagnostic::new(Severity::Remark, message));
    }
    Ok(pass.result)
}

/// A call that is linear in a constant weight, with its new constants.
struct Weighted {
    call: ExprId,
    /// The variable bound to the call.
    var: Option<VarId>,
    shape: Shape,
    constants: Constants,
    /// The largest magnitude of each channel of the weight, once computed.
    magnitudes: Option<PerChannel>,
}

/// The new constants of a call.
struct Constants {
    /// The factors of the weight.
    factors: Factors,
    bias: PerChannel,
    has_bias: bool,
    is_scaled: bool,
    is_biased: bool,
    /// The sizes of the new constants in bytes; 0 for a constant that stays.
    weight_bytes: usize,
    bias_bytes: usize,
    /// The number of elements of splats that are to be written out.
    work: u64,
}

/// The bytes and the work that new constants cost.
#[derive(Copy, Clone, Default)]
struct Cost {
    /// Bytes of the new constants, and of the constants that are freed.
    new: usize,
    freed: usize,
    /// The number of elements that are written out or read.
    work: u64,
}

impl Weighted {
    /// Replaces the constants of the call.
    fn write(&self, cx: &mut Context, function: &mut Function) {
        let Constants { factors, bias, is_scaled, is_biased, .. } = &self.constants;
        if !is_scaled && !is_biased {
            return;
        }
        let body = &mut function.body;
        let Expr::CallOp { op, operands, attrs } = body.expr(self.call) else {
            unreachable!("only calls of operators are weighted");
        };
        let mut operands: SmallVec<[ExprId; 4]> = SmallVec::from_slice(body.operands(operands));
        let weight = body.as_literal(self.shape.weight).expect("what is not a constant is not noted as a weight");
        let weight = cx.literals.get(weight);
        let dtype = weight.dtype();
        let new_weight = is_scaled.then(|| scaled(weight, &self.shape, factors)).flatten();
        let new_bias = is_biased.then(|| bias.to_literal(dtype, self.shape.output.channels)).flatten();
        let mut editor = anfora_ir::Editor::new(cx, body);
        if let Some(weight) = new_weight {
            operands[1] = editor.literal(weight);
        }
        if let Some(bias) = new_bias {
            let bias = editor.literal(bias);
            operands.truncate(2);
            operands.push(bias);
        }
        let operands = body.push_operands(&operands);
        body.set_expr(self.call, Expr::CallOp { op, operands, attrs });
    }
}

/// The reason why a step stays.
enum Stays {
    /// The constants would grow by this number of bytes, which is more than the budget.
    TooLarge(usize),
    /// This number of elements of constants would be computed, which is more than the budget.
    TooLong(u64),
    /// The weight, of this number of bytes, stays in its file.
    InFile(usize),
    /// A number would be out of the range of its type.
    OutOfRange,
    /// The call cannot take the step: what is said of the call.
    Unfit(&'static str),
}

struct BatchNormFolder {
    roles: Roles,
    /// The number of references to each node.
    links: SideTable<ExprId, u32>,
    /// The weighted calls whose results may be scaled and shifted, by the variables bound to them.
    by_result: FxHashMap<ExprId, u32>,
    weighted: Vec<Weighted>,
    /// The steps that stay and the calls that commute with scales, in program order.
    before: Vec<(Slot, ExprId, Role)>,
    budget: FoldBudget,
    unsaid: usize,
    result: FoldedIntoWeights,
    /// If near misses are asked for: the results of calls that are linear in an operand and take no
    /// steps, with the reason.
    stuck: Option<FxHashMap<ExprId, &'static str>>,
    /// The Lets and calls of steps that were not folded into the call before them, with the reason.
    missed: Vec<(ExprId, ExprId, String)>,
}

/// The name under which near misses are recorded.
const PASS: &str = "FoldBatchNorm";

impl BatchNormFolder {
    /// Records a call that is linear in its weight.
    fn note(&mut self, s: &Site<'_>, slot: Slot, call: ExprId, role: Role) {
        let (cx, body) = (&*s.editor.cx, &*s.editor.body);
        let Some(shape) = linear(cx, body, call, role) else {
            return self.note_stuck(slot, "has no constant weight that a scale can go into");
        };
        let literal = |constant: ExprId| body.as_literal(constant).map(|id| cx.literals.get(id));
        let bias = match shape.bias.and_then(literal) {
            None => Some(PerChannel::Same(0.0)),
            Some(bias) if role.is_convolution() => PerChannel::of(bias),
            Some(bias) => per_channel(cx, body, bias, &shape.output, call),
        };
        let Some(bias) = bias else { return self.note_stuck(slot, "has a bias that differs inside of a channel") };
        let bytes = |constant: Option<ExprId>| constant.and_then(literal).map_or(0, Literal::stored_bytes);
        if let Some(result) = slot.var.map(|v| v.expr()).filter(|&v| self.links[v] == 1) {
            self.by_result.insert(result, self.weighted.len() as u32);
        } else {
            self.note_stuck(slot, "is used elsewhere");
        }
        let constants = Constants {
            factors: Factors { output: PerChannel::Same(1.0), input: PerChannel::Same(1.0) },
            bias,
            has_bias: shape.bias.is_some(),
            is_scaled: false,
            is_biased: false,
            weight_bytes: bytes(Some(shape.weight)),
            bias_bytes: bytes(shape.bias),
            work: 0,
        };
        self.weighted.push(Weighted { call, var: slot.var, shape, constants, magnitudes: None });
    }

    /// Records why steps are not folded into a call, if anyone asks.
    #[inline]
    fn note_stuck(&mut self, slot: Slot, why: &'static str) {
        if let (Some(stuck), Some(var)) = (&mut self.stuck, slot.var) {
            stuck.insert(var.expr(), why);
        }
    }

    /// Records why a step was not folded into the call before it. `unfit` is the result of that
    /// call and what is said of it, if it takes other steps.
    #[cold]
    fn note_miss(&mut self, s: &Site<'_>, slot: Slot, call: ExprId, unfit: Option<(ExprId, &'static str)>) {
        let (cx, body) = (&*s.editor.cx, &*s.editor.body);
        let Some(stuck) = &self.stuck else { return };
        let name = |o: ExprId| body.binding_name(cx, o).map_or("the operand".to_string(), |name| format!("%{name}"));
        let reason = body.operands_of(call).iter().take(2).find_map(|&o| match (stuck.get(&o), unfit) {
            (Some(why), _) => Some(format!("{}, which it scales or shifts, {why}", name(o))),
            (None, Some((result, why))) if result == o => Some(format!("{} {why}", name(o))),
            (None, _) => None,
        });
        self.missed.extend(reason.map(|why| (slot.at, call, why)));
    }

    /// Folds a call into the weighted call whose result it scales and shifts. If there is no such
    /// call, or the step does not fit it, the call is recorded, since it may be folded into calls
    /// after it.
    fn step(&mut self, s: &Site<'_>, slot: Slot, call: ExprId, role: Role) -> Verdict {
        let (cx, body) = (&*s.editor.cx, &*s.editor.body);
        let operands = body.operands_of(call);
        let found = operands.iter().take(2).enumerate().find_map(|(i, o)| Some((i, *o, *self.by_result.get(o)?)));
        let step = found.filter(|(_, result, _)| body.ty(call) == body.ty(*result)).and_then(|(i, result, index)| {
            let side = &self.weighted[index as usize].shape.output;
            Some((result, index as usize, affine(cx, body, (call, role), i, (side, result))?))
        });
        let absorbed = step.map(|(result, index, (affine, constants))| {
            let freed = constants.iter().map(|&c| self.freed_bytes(cx, body, c)).sum();
            (result, index, self.absorb(cx, body, index, &affine, freed))
        });
        match absorbed {
            Some((result, _, Ok(()))) => {
                let uses = slot.var.map_or(0, |v| self.links[v.expr()]);
                if uses != 1 {
                    self.by_result.remove(&result);
                }
                return Verdict::Var(result);
            }
            Some((
                _,
                index,
                Err(why @ (Stays::TooLarge(_) | Stays::TooLong(_) | Stays::InFile(_) | Stays::OutOfRange)),
            )) => {
                self.remark(cx, body, (slot, call), index, why);
            }
            None | Some((.., Err(Stays::Unfit(_)))) => {
                if self.stuck.is_some() {
                    let unfit = found.map(|(_, result, _)| match absorbed {
                        Some((.., Err(Stays::Unfit(why)))) => (result, why),
                        _ if body.ty(call) != body.ty(result) => {
                            (result, "would get another type by the scale or shift")
                        }
                        _ => (result, "cannot take the scale or shift, which is not constant by channel"),
                    });
                    self.note_miss(s, slot, call, unfit);
                }
                self.before.push((slot, call, role));
            }
        }
        Verdict::Keep
    }

    /// Returns the bytes of a constant that is no longer used; 0 if the function has other
    /// references to it.
    fn freed_bytes(&self, cx: &Context, body: &Body, constant: ExprId) -> usize {
        match body.as_literal(constant) {
            Some(literal) if self.links[constant] <= 1 => cx.literals.get(literal).stored_bytes(),
            _ => 0,
        }
    }

    fn absorb(&mut self, cx: &Context, body: &Body, index: usize, step: &Affine, freed: usize) -> Result<(), Stays> {
        let Weighted { shape, constants: old, magnitudes: known, .. } = &mut self.weighted[index];
        let (weight, (largest, smallest)) = weight_of(cx, body, shape)?;
        let output = old.factors.output.zip(&step.scale, |a, b| a * b);
        let bias = old.bias.zip(&step.scale, |a, b| a * b).zip(&step.shift, |a, b| a + b);
        let is_scaled = old.is_scaled || !step.scale.all(|s| s == 1.0);
        let is_shifted = !step.shift.all(|t| t == 0.0);
        let has_bias = old.has_bias || is_shifted;
        if has_bias && !shape.takes_bias {
            return Err(Stays::Unfit("has no bias that could take the shift"));
        }
        if !output.all(f64::is_finite) || !bias.all(|b| b.abs() <= largest) {
            return Err(Stays::OutOfRange);
        }
        if is_scaled {
            self.budget.stays_in_file(weight).map_or(Ok(()), |bytes| Err(Stays::InFile(bytes)))?;
            if known.is_none() {
                *known = magnitudes(weight, &shape.output);
            }
            let magnitudes = known.as_ref().ok_or(Stays::OutOfRange)?;
            // The factor of a channel of zeros does not matter.
            let products = magnitudes.zip(&output, magnitude_of);
            if !products.all(|p| p == 0.0 || (smallest..=largest).contains(&p)) {
                return Err(Stays::OutOfRange);
            }
        }
        let is_biased = old.is_biased || is_shifted || (old.has_bias && is_scaled);
        let factors = Factors { output, input: old.factors.input.clone() };
        let mut new =
            Constants { factors, bias, has_bias, is_scaled, is_biased, weight_bytes: 0, bias_bytes: 0, work: 0 };
        let mut cost = self.cost(cx, body, index, &mut new);
        cost.freed += freed;
        self.spend(cost)?;
        self.weighted[index].constants = new;
        Ok(())
    }

    /// Returns the cost of new constants for a call, and stores their sizes in `new`.
    fn cost(&self, cx: &Context, body: &Body, index: usize, new: &mut Constants) -> Cost {
        let Weighted { shape, constants: old, .. } = &self.weighted[index];
        let literal = |constant: ExprId| body.as_literal(constant).map(|id| cx.literals.get(id));
        let Some(weight) = literal(shape.weight) else { return Cost::default() };
        let full = |count: usize| weight.dtype().byte_len(count).unwrap_or(usize::MAX);
        let of = |is_same: bool, count: usize| if is_same { full(1) } else { full(count) };
        new.weight_bytes = match (new.is_scaled, weight.as_splat()) {
            (true, Some(_)) => of(new.factors.is_same(), weight.element_count()),
            (true, None) => full(weight.element_count()),
            (false, _) => old.weight_bytes,
        };
        new.bias_bytes = if new.is_biased { of(new.bias.is_same(), shape.output.channels) } else { old.bias_bytes };
        // A constant that only this call uses is freed when it is replaced; a constant with other
        // uses stays.
        let kept = |was_new: bool, old: Option<ExprId>, bytes: usize| match old {
            Some(old) if !was_new => self.freed_bytes(cx, body, old),
            _ => bytes,
        };
        let written = |is_same: bool, old: Option<ExprId>, count: usize| {
            let was_splat = old.is_none_or(|old| literal(old).is_some_and(|l| l.as_splat().is_some()));
            if was_splat && !is_same { count as u64 } else { 0 }
        };
        let mut cost = Cost::default();
        if new.is_scaled {
            cost.freed += kept(old.is_scaled, Some(shape.weight), old.weight_bytes);
            cost.new = cost.new.saturating_add(new.weight_bytes);
            new.work += written(new.factors.is_same(), Some(shape.weight), weight.element_count());
        }
        if new.is_biased {
            cost.freed += kept(old.is_biased, shape.bias, old.bias_bytes);
            cost.new = cost.new.saturating_add(new.bias_bytes);
            new.work = new.work.saturating_add(written(new.bias.is_same(), shape.bias, shape.output.channels));
        }
        cost.work = new.work.saturating_sub(old.work);
        new.work = new.work.max(old.work);
        cost
    }

    /// Takes the cost of a step off the budget, if the budget allows it.
    fn spend(&mut self, cost: Cost) -> Result<(), Stays> {
        let growth = cost.new.saturating_sub(cost.freed);
        let left = self.budget.total.map_or(usize::MAX, |t| t.saturating_sub(self.result.growth));
        if growth > self.budget.per_call.unwrap_or(usize::MAX).min(left) {
            return Err(Stays::TooLarge(growth));
        }
        if cost.work > self.budget.work.saturating_sub(self.result.work) {
            return Err(Stays::TooLong(cost.work));
        }
        self.result.growth += growth;
        self.result.work += cost.work;
        self.result.folded += 1;
        Ok(())
    }

    #[cold]
    fn remark(&mut self, cx: &Context, body: &Body, (slot, call): (Slot, ExprId), index: usize, why: Stays) {
        let Expr::CallOp { op, .. } = body.expr(call) else { return };
        let name = &cx.ops.get(op).name;
        let into = self.weighted[index].var.and_then(|v| body.var_name(v)).map(|n| cx.names.get(n));
        let into = into.map_or_else(|| "a weight".to_string(), |n| format!("the weight of `%{n}`"));
        let (message, help) = match why {
            Stays::Unfit(why) => {
                let after = self.weighted[index].var.and_then(|v| body.binding_name(cx, v.expr()));
                cx.nearly(body, slot.at, PASS, || {
                    format!("{} {why}", after.map_or("a call after it".to_string(), |n| format!("%{n}")))
                });
                return;
            }
            Stays::TooLarge(bytes) => (
                format!("`{name}` was not folded into {into}: the constants would grow by {bytes} bytes"),
                Some(
                    "raise FoldConstant.max_growth_bytes or FoldConstant.max_total_growth_bytes, or set them to unlimited",
                ),
            ),
            Stays::TooLong(elements) => (
                format!("`{name}` was not folded into {into}: {elements} elements of constants would be computed"),
                Some("raise FoldConstant.max_work"),
            ),
            Stays::InFile(bytes) => (
                format!("`{name}` was not folded into {into}, whose {bytes} bytes stay in their file"),
                Some("raise FoldConstant.max_file_bytes"),
            ),
            Stays::OutOfRange => {
                (format!("`{name}` was not folded into {into}: a number would leave the range of its type"), None)
            }
        };
        cx.nearly(body, slot.at, PASS, || message.clone());
        if self.result.remarks.len() >= FoldedIntoWeights::MAX_REMARKS {
            self.unsaid += 1;
            return;
        }
        let mut remark = Diagnostic::new(Severity::Remark, message);
        remark.binding = body.binding_name(cx, slot.at).map(str::to_string);
        remark.span = body.span(slot.at).map(|start| start as usize..start as usize + 1);
        remark.help = help.map(str::to_string);
        self.result.remarks.push(remark);
    }
}

impl Mutator for BatchNormFolder {
    type Error = RewriteError;
    const NODES: bool = false;
    const REFUSED: Refused = Refused::CastBack;

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Expr::CallOp { op, .. } = s.editor.body.expr(value) else { return Ok(Verdict::Keep) };
        Ok(match self.roles.of(op) {
            Role::Nothing => Verdict::Keep,
            // A call that two Lets share is not folded.
            _ if self.links[value] != 1 => Verdict::Keep,
            role if role.is_linear() => {
                self.note(s, slot, value, role);
                Verdict::Keep
            }
            role @ Role::Homogeneous => {
                self.before.push((slot, value, role));
                Verdict::Keep
            }
            role => self.step(s, slot, value, role),
        })
    }
}

/// Returns a weight, with the largest number of its type and the smallest number of full precision.
fn weight_of<'c>(cx: &'c Context, body: &Body, shape: &Shape) -> Result<(&'c Literal, (f64, f64)), Stays> {
    let weight = cx.literals.get(body.as_literal(shape.weight).ok_or(Stays::OutOfRange)?);
    Ok((weight, float_range(weight.dtype()).ok_or(Stays::OutOfRange)?))
}
