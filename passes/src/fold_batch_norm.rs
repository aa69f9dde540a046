//! # FoldBatchNorm
//!
//! ```text
//! Notation   x an atom, c, k constants with one number a channel (or one for all), w a constant weight, s and t numbers a channel.
//! Needs      A-normal form.
//! Effect     let v = conv(x, w, c); let u = step(v); rest   =>   let v = conv(x, w * s, c * s + t); rest[u := v]
//!            where step(v) is s * v + t by channel:
//!                nn.batch_norm(v, scale, bias, mean, var)     s = scale / sqrt(var + epsilon), t = bias - mean * s
//!                multiply(v, k)   divide(v, k)   negative(v)  s = k, 1 / k, -1
//!                add(v, k)   subtract(v, k)   subtract(k, v)  t = k, -k, and k with s = -1
//!            and conv is nn.conv1d, nn.conv2d or nn.conv3d, with any groups, with a constant bias or none; or nn.gemm with
//!            beta = 1. Of matmul(x, w), which has no bias, only what has t = 0. Chains of steps, all into the first.
//!            In and out of dataflow regions, branches and lambdas; the step may be in an inner one.
//! Never      If v is used elsewhere; if a number of s or t is not finite; if a weight or a bias would become too large for its
//!            type, or all weights of a channel too small to keep their precision; beyond the budget.
//! Budget     That of FoldConstant: FoldConstant.max_growth_bytes a step, FoldConstant.max_total_growth_bytes a function. What
//!            counts is by how much constants grow: those that nothing else in the function uses are taken off.
//!            A splat times one number stays a splat; times one number a channel it is written out, within FoldConstant.max_work elements a function.
//! Not done   Weights that are computed; through aliases and tuples (CanonicalizeBindings takes them away); scales before a convolution.
//! Changes    Results, by rounding: s * (w * x) is computed as (s * w) * x. The new constants are computed in float64 from
//!            the old ones, over a whole chain, and rounded once to their type.
//! Cost       One walk to count uses and one forward sweep if there is a conv at all; a number a channel for each step; the new
//!            constants. Idempotent, unless the budget ran out.
//!
//! before     def @f(%x: Tensor[(1, 1, 4), float32]) {                 after  def @f(%x: Tensor[(1, 1, 4), float32]) {
//!              let %v = nn.conv1d(%x, dense<Tensor[(2, 1, 1),                  nn.conv1d(%x, dense<Tensor[(2, 1, 1),
//!                                     float32]>[1, 2]);                                  float32]>[3, 6],
//!              let %u = multiply(%v, 3f);                                                dense<Tensor[(2,), float32]>[1])
//!              add(%u, 1f)                                                   }
//!            }
//! ```

mod channels;
mod roles;

use anfora_ir::{Context, Diagnostic, Expr, ExprId, Function, Literal, Severity, SideTable};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, Refused, RewriteError, Site, Slot, Verdict, link_counts, mutate_function};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::fold_budget::{FoldBudget, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK};

use channels::{PerChannel, magnitudes, range, scaled};
use roles::{Affine, Role, Roles, Shape, affine, linear, per_channel};

register_pass! {
    /// Folds normalisations, scales and biases into the convolutions before them; rounds otherwise
    pub FOLD_BATCH_NORM = FunctionPass("FoldBatchNorm", 3).needing(["anf"]).with_tolerance(1e-4);
    configs { MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK }
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

/// What folding into weights did.
#[derive(Clone, Debug, Default)]
pub struct FoldedIntoWeights {
    /// How many calls were folded into a weight or a bias.
    pub folded: usize,
    /// By how many bytes constants grew.
    pub growth: usize,
    /// How many elements of splats were written out.
    pub work: u64,
    /// Why others were not. At most [`FoldedIntoWeights::MAX_REMARKS`].
    pub remarks: Vec<Diagnostic>,
}

impl FoldedIntoWeights {
    /// How many calls are spoken of one by one.
    pub const MAX_REMARKS: usize = 32;
}

/// Folds what scales and shifts the result of a convolution by channel into the constants of the
/// convolution.
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
    let mut pass = Pass {
        roles,
        links: link_counts(&function.body),
        by_result: FxHashMap::default(),
        weighted: Vec::new(),
        budget,
        unsaid: 0,
        result: FoldedIntoWeights::default(),
    };
    mutate_function(cx, function, &mut pass)?;
    for weighted in &pass.weighted {
        weighted.write(cx, function);
    }
    if pass.unsaid > 0 {
        let message = format!("{} more calls were not folded into the weights before them", pass.unsaid);
        pass.result.remarks.push(Diagnostic::new(Severity::Remark, message));
    }
    Ok(pass.result)
}

/// A call that is linear in a constant weight, and what has been folded into it so far.
struct Weighted {
    call: ExprId,
    shape: Shape,
    /// What its weight is to be multiplied by.
    scale: PerChannel,
    /// The bias that it is to have.
    bias: PerChannel,
    has_bias: bool,
    is_scaled: bool,
    is_biased: bool,
    /// The largest magnitude of each channel of the weight, once that was asked for.
    magnitudes: Option<PerChannel>,
    /// Bytes of the constants that it is to have.
    weight_bytes: usize,
    bias_bytes: usize,
    /// Elements of splats that are to be written out.
    work: u64,
}

impl Weighted {
    /// Gives the call its new constants.
    fn write(&self, cx: &mut Context, function: &mut Function) {
        let body = &mut function.body;
        let Expr::CallOp { op, operands, attrs } = body.expr(self.call) else {
            unreachable!("only calls of operators are weighted");
        };
        let mut operands: SmallVec<[ExprId; 4]> = SmallVec::from_slice(body.operands(operands));
        let weight = body.as_literal(self.shape.weight).expect("what is not a constant is not noted as a weight");
        let weight = cx.literals.get(weight);
        let dtype = weight.dtype();
        let new_weight = self.is_scaled.then(|| scaled(weight, self.shape.weight_axis, &self.scale)).flatten();
        let new_bias = self.is_biased.then(|| self.bias.to_literal(dtype, self.shape.channels)).flatten();
        let mut editor = anfora_ir::Editor::new(cx, body);
        if let Some(weight) = new_weight {
            operands[1] = editor.literal(weight);
        }
        if let Some(bias) = new_bias {
            let bias = editor.literal(bias);
            operands.truncate(2);
            operands.push(bias);
        }
        if self.is_scaled || self.is_biased {
            let operands = body.push_operands(&operands);
            body.set_expr(self.call, Expr::CallOp { op, operands, attrs });
        }
    }
}

/// Why a step stays.
enum Stays {
    /// The constants would grow by more bytes than are left.
    TooLarge(usize),
    /// More elements of a splat would be written out than are left.
    TooLong(u64),
    /// A number would leave the range of its type.
    OutOfRange,
    /// It adds something, and there is no bias.
    NoBias,
}

struct Pass {
    roles: Roles,
    /// How often each node is mentioned.
    links: SideTable<ExprId, u32>,
    /// The weighted calls whose results may be scaled and shifted, by the variables that they are
    /// bound to.
    by_result: FxHashMap<ExprId, u32>,
    weighted: Vec<Weighted>,
    budget: FoldBudget,
    unsaid: usize,
    result: FoldedIntoWeights,
}

impl Pass {
    /// Notes a call that is linear in its weight, if its result is used once.
    fn note(&mut self, s: &Site<'_>, slot: Slot, call: ExprId, role: Role) {
        let Some(result) = slot.var.map(|v| v.expr()).filter(|&v| self.links[v] == 1) else { return };
        let Some(shape) = linear(s.editor.cx, s.editor.body, call, role) else { return };
        let literal = |constant: ExprId| s.editor.body.as_literal(constant).map(|id| s.editor.cx.literals.get(id));
        let bias = match shape.bias.and_then(literal) {
            None => Some(PerChannel::Same(0.0)),
            Some(bias) if role == Role::Convolution => PerChannel::of(bias),
            Some(bias) => per_channel(s.editor.cx, s.editor.body, bias, &shape, call),
        };
        let Some(bias) = bias else { return };
        let bytes = |constant: Option<ExprId>| constant.and_then(literal).map_or(0, Literal::stored_bytes);
        self.by_result.insert(result, self.weighted.len() as u32);
        self.weighted.push(Weighted {
            call,
            shape,
            scale: PerChannel::Same(1.0),
            bias,
            has_bias: shape.bias.is_some(),
            is_scaled: false,
            is_biased: false,
            magnitudes: None,
            weight_bytes: bytes(Some(shape.weight)),
            bias_bytes: bytes(shape.bias),
            work: 0,
        });
    }

    /// Folds a call into the weighted one whose result it scales and shifts.
    fn step(&mut self, s: &Site<'_>, slot: Slot, call: ExprId, role: Role) -> Verdict {
        let operands = s.editor.body.operands_of(call);
        let found = operands.iter().take(2).enumerate().find_map(|(i, o)| Some((i, *o, *self.by_result.get(o)?)));
        let Some((position, result, index)) = found else { return Verdict::Keep };
        let shape = self.weighted[index as usize].shape;
        if s.editor.body.ty(call) != s.editor.body.ty(result) {
            return Verdict::Keep;
        }
        let Some((affine, constants)) = affine(s.editor.cx, s.editor.body, (call, role), position, (&shape, result))
        else {
            return Verdict::Keep;
        };
        let freed = constants.iter().map(|&c| self.freed_bytes(s, c)).sum();
        match self.absorb(s, index as usize, &affine, freed) {
            Ok(()) => {
                let uses = slot.var.map_or(0, |v| self.links[v.expr()]);
                if uses != 1 {
                    self.by_result.remove(&result);
                }
                Verdict::Var(result)
            }
            Err(why) => {
                self.remark(s, (slot, call), result, why);
                Verdict::Keep
            }
        }
    }

    /// The bytes of a constant that goes, unless it is mentioned elsewhere in the function.
    fn freed_bytes(&self, s: &Site<'_>, constant: ExprId) -> usize {
        match s.editor.body.as_literal(constant) {
            Some(literal) if self.links[constant] <= 1 => s.editor.cx.literals.get(literal).stored_bytes(),
            _ => 0,
        }
    }

    fn absorb(&mut self, s: &Site<'_>, index: usize, step: &Affine, freed: usize) -> Result<(), Stays> {
        let first = &self.weighted[index];
        let shape = first.shape;
        let weight = s.editor.body.as_literal(shape.weight).ok_or(Stays::OutOfRange)?;
        let weight = s.editor.cx.literals.get(weight);
        let (largest, smallest) = range(weight.dtype()).ok_or(Stays::OutOfRange)?;
        let scale = first.scale.zip(&step.scale, |a, b| a * b);
        let bias = first.bias.zip(&step.scale, |a, b| a * b).zip(&step.shift, |a, b| a + b);
        let is_scaled = first.is_scaled || !step.scale.all(|s| s == 1.0);
        let is_shifted = !step.shift.all(|t| t == 0.0);
        let has_bias = first.has_bias || is_shifted;
        if has_bias && !shape.takes_bias {
            return Err(Stays::NoBias);
        }
        if !scale.all(f64::is_finite) || !bias.all(|b| b.abs() <= largest) {
            return Err(Stays::OutOfRange);
        }
        if is_scaled {
            if first.magnitudes.is_none() {
                self.weighted[index].magnitudes = magnitudes(weight, shape.weight_axis);
            }
            let magnitudes = self.weighted[index].magnitudes.as_ref().ok_or(Stays::OutOfRange)?;
            // What a channel that is all zeros is multiplied by does not matter.
            let products = magnitudes.zip(&scale, |m, s| if m == 0.0 || s == 0.0 { 0.0 } else { (m * s).abs() });
            if !products.all(|p| p == 0.0 || (smallest..=largest).contains(&p)) {
                return Err(Stays::OutOfRange);
            }
        }

        let first = &self.weighted[index];
        let is_biased = first.is_biased || is_shifted || (first.has_bias && is_scaled);
        let full = |count: usize| weight.dtype().byte_len(count).unwrap_or(usize::MAX);
        let of = |numbers: &PerChannel, count: usize| if numbers.is_same() { full(1) } else { full(count) };
        let weight_bytes = match (is_scaled, weight.as_splat()) {
            (true, Some(_)) => of(&scale, weight.element_count()),
            (true, None) => full(weight.element_count()),
            (false, _) => first.weight_bytes,
        };
        let bias_bytes = if is_biased { of(&bias, shape.channels) } else { first.bias_bytes };
        // What this call alone has goes when it is replaced; what others have too stays with them.
        let kept = |was_new: bool, old: Option<ExprId>, bytes: usize| match old {
            Some(old) if !was_new => self.freed_bytes(s, old),
            _ => bytes,
        };
        let mut before = freed;
        if is_scaled {
            before += kept(first.is_scaled, Some(shape.weight), first.weight_bytes);
        }
        if is_biased {
            before += kept(first.is_biased, shape.bias, first.bias_bytes);
        }
        let after = (if is_scaled { weight_bytes } else { 0 }).saturating_add(if is_biased { bias_bytes } else { 0 });
        let growth = after.saturating_sub(before);
        let left = self.budget.total.map_or(usize::MAX, |t| t.saturating_sub(self.result.growth));
        if growth > self.budget.per_call.unwrap_or(usize::MAX).min(left) {
            return Err(Stays::TooLarge(growth));
        }
        let written = |is_new: bool, numbers: &PerChannel, old: Option<ExprId>, count: usize| {
            let was_splat = old.is_none_or(|old| {
                s.editor.body.as_literal(old).is_some_and(|l| s.editor.cx.literals.get(l).as_splat().is_some())
            });
            if is_new && was_splat && !numbers.is_same() { count as u64 } else { 0 }
        };
        let work = written(is_scaled, &scale, Some(shape.weight), weight.element_count()).saturating_add(written(
            is_biased,
            &bias,
            shape.bias,
            shape.channels,
        ));
        let more = work.saturating_sub(first.work);
        if more > self.budget.work.saturating_sub(self.result.work) {
            return Err(Stays::TooLong(more));
        }

        self.result.growth += growth;
        self.result.work += more;
        self.result.folded += 1;
        let first = &mut self.weighted[index];
        (first.scale, first.bias, first.has_bias) = (scale, bias, has_bias);
        (first.is_scaled, first.is_biased) = (is_scaled, is_biased);
        (first.weight_bytes, first.bias_bytes) = (weight_bytes, bias_bytes);
        first.work = first.work.max(work);
        Ok(())
    }

    #[cold]
    fn remark(&mut self, s: &Site<'_>, (slot, call): (Slot, ExprId), result: ExprId, why: Stays) {
        let Expr::CallOp { op, .. } = s.editor.body.expr(call) else { return };
        let name = &s.editor.cx.ops.get(op).name;
        let into =
            s.editor.body.as_var(result).and_then(|v| s.editor.body.var_name(v)).map(|n| s.editor.cx.names.get(n));
        let into = into.map_or_else(|| "the weight before it".to_string(), |n| format!("the weight of `%{n}`"));
        let (message, help) = match why {
            Stays::NoBias => return,
            Stays::TooLarge(bytes) => (
                format!("`{name}` was not folded into {into}: the constants would grow by {bytes} bytes"),
                Some(
                    "raise FoldConstant.max_growth_bytes or FoldConstant.max_total_growth_bytes, or set them to unlimited",
                ),
            ),
            Stays::TooLong(elements) => (
                format!("`{name}` was not folded into {into}: {elements} elements of a splat would be written out"),
                Some("raise FoldConstant.max_work"),
            ),
            Stays::OutOfRange => {
                (format!("`{name}` was not folded into {into}: a number would leave the range of its type"), None)
            }
        };
        if self.result.remarks.len() >= FoldedIntoWeights::MAX_REMARKS {
            self.unsaid += 1;
            return;
        }
        let mut remark = Diagnostic::new(Severity::Remark, message);
        remark.binding = s.editor.body.binding_name(s.editor.cx, slot.at).map(str::to_string);
        remark.span = s.editor.body.span(slot.at).map(|start| start as usize..start as usize + 1);
        remark.help = help.map(str::to_string);
        self.result.remarks.push(remark);
    }
}

impl Mutator for Pass {
    type Error = RewriteError;
    const NODES: bool = false;
    const REFUSED: Refused = Refused::CastBack;

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        let Expr::CallOp { op, .. } = s.editor.body.expr(value) else { return Ok(Verdict::Keep) };
        Ok(match self.roles.of(op) {
            Role::Nothing => Verdict::Keep,
            role @ (Role::Convolution | Role::Gemm | Role::Matmul) => {
                self.note(s, slot, value, role);
                Verdict::Keep
            }
            role => self.step(s, slot, value, role),
        })
    }
}
