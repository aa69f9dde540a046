//! # FoldConstant
//!
//! ```text
//! Notation   v a variable, c a literal, a an atom.
//! Needs      A-normal form.
//! Effect     let v = op(c, ...); rest   =>   rest[v := c']
//!              the call is pure and evaluates to c'
//!            let v = op(c, ...); rest   =>   let v = (c', ...); rest
//!              op returns a tuple
//!            let v = (a0, a1); ... v.i  =>   ... ai
//!            let v = a; rest            =>   rest[v := a]
//!            op(x)                      =>   c
//!              the type of x determines c, as of shape_of(x) with constant extents
//!            let v = if (true) { bs e } else { .. }; rest   =>   bs let v = e; rest
//!            Inside and outside dataflow regions, in branches and lambdas, transitively, in one
//!            sweep.
//! Never      Impure, random and opaque operators; calls that fail (a remark says why);
//!            results and kernels beyond the budget.
//! Budget     FoldConstant.max_growth_bytes limits the growth by one call, and
//!            FoldConstant.max_total_growth_bytes that by all calls in a function. The growth is
//!            the size of the result, less that of large operands that nothing else in the
//!            function uses. It is known from the type before anything is computed. A splat counts
//!            as one element.
//!            FoldConstant.max_work limits the steps of all kernels in a function together. It
//!            also holds if the bytes are unlimited: the reduction of a large splat may take very
//!            long, although its result is small.
//!            FoldConstant.max_file_bytes leaves large constants in a larger file, where they may
//!            get another shape, but are not read.
//! Not done   Calls of functions; algebra (x * 0).
//! Cost       One forward sweep, and the kernels. Idempotent, unless the total budget ran out.
//!
//! before     def @f(%x: int32) {                after   def @f(%x: int32) {
//!              let %a = add(1, 2);                        multiply(%x, 9)
//!              let %b = multiply(%a, 3);                }
//!              multiply(%x, %b)
//!            }
//! ```

use anfora_interp::{Evaluated, OpError, OpLimits, evaluate_op};
use anfora_ir::{
    Body, Context, DType, Diagnostic, Expr, ExprId, Function, Literal, LiteralId, OpId, Operand, Severity, TypeCall,
};
use anfora_manager::register_pass;
use anfora_visit::{Mutator, Refused, RewriteError, Site, Slot, Verdict, link_counts, mutate_function};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::fold_budget::{FoldBudget, MAX_FILE_BYTES, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK};

register_pass! {
    /// Evaluates calls on constants, within a budget, and takes known branches
    pub FOLD_CONSTANT = FunctionPass("FoldConstant", 2).needing(["anf"]).sparing_primitive().breaking(["primitive-operators"]);
    configs { MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK, MAX_FILE_BYTES }
    run |edit, _, cx| {
        let budget = FoldBudget::of(cx)?;
        let done = fold_constant(edit.cx, edit.function, budget)?;
        cx.count("folded", done.folded as u64);
        cx.count("branches", done.branches as u64);
        cx.count("bytes", done.growth as u64);
        done.remarks.into_iter().for_each(|r| cx.remark(r.in_function(edit.name())));
        Ok(())
    }
}

/// The result of folding.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// The number of bindings and tails that became constants or fields.
    pub folded: usize,
    /// The number of Ifs that were replaced by one of their branches.
    pub branches: usize,
    /// The bytes of the new literals, less those of large operands that nothing else used.
    pub growth: usize,
    /// The steps of the kernels that ran, including those that failed.
    pub work: u64,
    /// The reasons why calls on constants were not folded. At most [`Folded::MAX_REMARKS`].
    pub remarks: Vec<Diagnostic>,
}

impl Folded {
    /// The greatest number of calls with a remark of their own.
    pub const MAX_REMARKS: usize = 32;
}

/// Evaluates the calls on constants in a function, and takes known branches.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn fold_constant(cx: &mut Context, function: &mut Function, budget: FoldBudget) -> Result<Folded, RewriteError> {
    let mut pass = ConstantFolder {
        budget,
        used_once: literals_used_once(cx, &function.body, budget),
        explains: cx.rewrites.explains(PASS),
        unsaid: 0,
        result: Folded::default(),
    };
    mutate_function(cx, function, &mut pass)?;
    if pass.unsaid > 0 {
        let message = format!("{} more calls on constants were not folded", pass.unsaid);
        pass.result.remarks.push(Diagnostic::new(Severity::Remark, message));
    }
    Ok(pass.result)
}

/// Returns the literals with a use each that are large enough to matter for the budget.
fn literals_used_once(cx: &Context, body: &Body, budget: FoldBudget) -> FxHashSet<LiteralId> {
    let mut uses: FxHashMap<LiteralId, u32> = FxHashMap::default();
    let Some(limit) = budget.per_call.or(budget.total) else { return FxHashSet::default() };
    let is_large = |id: LiteralId| cx.literals.get(id).stored_bytes() > limit / 8;
    if body.exprs().any(|(_, expr)| matches!(expr, Expr::Literal(id) if is_large(id))) {
        let links = link_counts(body);
        for (id, expr) in body.exprs() {
            match expr {
                Expr::Literal(literal) if is_large(literal) => *uses.entry(literal).or_default() += links[id],
                // The uses of the variable are uses of the literal.
                Expr::Let { value, .. } => {
                    let literal = body.as_literal(value);
                    literal.into_iter().for_each(|literal| *uses.entry(literal).or_default() += 2);
                }
                _ => {}
            }
        }
    }
    uses.into_iter().filter(|&(_, uses)| uses == 1).map(|(literal, _)| literal).collect()
}

/// Operators that return the elements of their first operand under another shape.
const RELABELS: &[&str] = &["expand_dims", "nn.flatten", "reshape", "squeeze"];

/// The reason why a call on constants stays.
enum Stays {
    /// A constant of this number of bytes stays in its file.
    InFile(usize),
    NotEvaluated(OpError),
}

struct ConstantFolder {
    budget: FoldBudget,
    /// Large literals with one use when the run began: a fold of that use frees them.
    used_once: FxHashSet<LiteralId>,
    /// True if near misses are asked for.
    explains: bool,
    unsaid: usize,
    result: Folded,
}

impl ConstantFolder {
    #[inline]
    fn call(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Verdict {
        let Expr::CallOp { op, operands, attrs } = s.editor.body.expr(value) else { return Verdict::Keep };
        let facts = s.editor.cx.ops.facts(op);
        let list = s.editor.body.operands(operands);
        let is_constant = |&o: &ExprId| matches!(s.editor.body.expr(o), Expr::Literal(_) | Expr::None);
        // For most calls, the first operand shows that they cannot be folded.
        if !list.iter().all(is_constant) || !facts.is_foldable() {
            let known = if facts.is_known_by_type() { self.known(s, value, op) } else { Verdict::Keep };
            if self.explains && matches!(known, Verdict::Keep) {
                explain_operands(s, slot, value, op);
            }
            return known;
        }
        let mut literals =
            list.iter().filter_map(|&o| s.editor.body.as_literal(o)).map(|l| s.editor.cx.literals.get(l));
        if let Some(bytes) = literals.find_map(|literal| self.budget.stays_in_file(literal)) {
            return self.without_reading(s, slot, (value, op), bytes);
        }
        let freed = self.freed_by(s.editor.cx, s.editor.body, list);
        let left = self.budget.total.map(|t| t.saturating_sub(self.result.growth));
        let limits = OpLimits {
            bytes: self.budget.per_call.unwrap_or(usize::MAX).min(left.unwrap_or(usize::MAX)).saturating_add(freed),
            steps: self.budget.work.saturating_sub(self.result.work),
        };
        let Evaluated { results, steps } = {
            let literal = |&o: &ExprId| s.editor.body.as_literal(o).map(|l| s.editor.cx.literals.get(l));
            let constants: SmallVec<[Option<&Literal>; 4]> = list.iter().map(literal).collect();
            evaluate_op(s.editor.cx, op, attrs, &constants, s.editor.body.ty(value), limits)
        };
        self.result.work += steps;
        match results {
            Ok(results) => self.replace(s, value, results, freed),
            Err(why) => {
                self.remark(s, slot, op, Stays::NotEvaluated(why));
                Verdict::Keep
            }
        }
    }

    /// Folds a call on a constant of `bytes` bytes that stays in its file, if the result is known
    /// from its type, or is the constant under another shape.
    fn without_reading(&mut self, s: &mut Site<'_>, slot: Slot, (value, op): (ExprId, OpId), bytes: usize) -> Verdict {
        if s.editor.cx.ops.facts(op).is_known_by_type() {
            return self.known(s, value, op);
        }
        let operands = s.editor.body.operands_of(value);
        let relabelled = RELABELS.contains(&&*s.editor.cx.ops.get(op).name).then(|| {
            let literal = s.editor.cx.literals.get(s.editor.body.as_literal(*operands.first()?)?);
            literal.reshaped(&s.editor.cx.types.static_shape(s.editor.body.ty(value))?).ok()
        });
        match relabelled.flatten() {
            Some(literal) => {
                let freed = self.freed_by(s.editor.cx, s.editor.body, operands);
                self.replace(s, value, vec![literal], freed)
            }
            None => {
                self.remark(s, slot, op, Stays::InFile(bytes));
                Verdict::Keep
            }
        }
    }

    /// Folds a call of an operator whose results may be known from the types of the operands.
    fn known(&mut self, s: &mut Site<'_>, value: ExprId, op: OpId) -> Verdict {
        let Expr::CallOp { operands, attrs, .. } = s.editor.body.expr(value) else { return Verdict::Keep };
        let Some(rule) = s.editor.cx.ops.get(op).known_by_type else { return Verdict::Keep };
        let operands: SmallVec<[Operand; 4]> =
            s.editor.body.operands(operands).iter().map(|&o| operand(s.editor.body, o)).collect();
        match rule(&mut TypeCall::new(s.editor.cx, op, &operands, attrs)) {
            Some(results) => self.replace(s, value, results, 0),
            None => Verdict::Keep,
        }
    }

    /// Returns the bytes of the operands of a call that its fold frees.
    fn freed_by(&self, cx: &Context, body: &Body, operands: &[ExprId]) -> usize {
        if self.used_once.is_empty() {
            return 0;
        }
        let freed = |&operand: &ExprId| body.as_literal(operand).filter(|literal| self.used_once.contains(literal));
        operands.iter().filter_map(freed).map(|literal| cx.literals.get(literal).stored_bytes()).sum()
    }

    /// Replaces a call by its results, if they have the type that was inferred for the call.
    /// `freed` is the number of bytes of operands that nothing else uses.
    fn replace(&mut self, s: &mut Site<'_>, value: ExprId, mut results: Vec<Literal>, freed: usize) -> Verdict {
        let wanted = s.editor.body.ty(value);
        let bytes = results.iter().map(Literal::stored_bytes).sum::<usize>();
        let outcome = if s.editor.cx.types.as_tuple(wanted).is_some() {
            let fields: SmallVec<[ExprId; 4]> = results.into_iter().map(|l| s.editor.literal(l)).collect();
            let new = s.editor.tuple(&fields);
            if !s.editor.cx.types.accepts(wanted, s.editor.body.ty(new)) {
                return Verdict::Keep;
            }
            Verdict::Value(new)
        } else {
            let (Some(literal), true) = (results.pop(), results.is_empty()) else { return Verdict::Keep };
            let literal = s.editor.cx.literals.intern(literal);
            let ty = s.editor.cx.literal_type(literal);
            if !s.editor.cx.types.accepts(wanted, ty) {
                return Verdict::Keep;
            }
            Verdict::Var(s.literal_in_place(value, literal, ty))
        };
        self.result.growth += bytes.saturating_sub(freed);
        self.result.folded += 1;
        outcome
    }

    #[cold]
    fn remark(&mut self, s: &Site<'_>, slot: Slot, op: OpId, why: Stays) {
        let name = &s.editor.cx.ops.get(op).name;
        let (message, help) = match why {
            Stays::InFile(bytes) => (
                format!("`{name}` on constants was not folded: {bytes} bytes stay in their file"),
                Some("raise FoldConstant.max_file_bytes"),
            ),
            Stays::NotEvaluated(OpError::TooLarge { bytes, .. }) => (
                format!("`{name}` on constants was not folded: the result would take {bytes} bytes"),
                Some(
                    "raise FoldConstant.max_growth_bytes or FoldConstant.max_total_growth_bytes, or set them to unlimited",
                ),
            ),
            Stays::NotEvaluated(OpError::TooLong { steps, allowed }) => (
                format!(
                    "`{name}` on constants was not folded: its kernel would take {steps} steps, and {allowed} are left"
                ),
                Some("raise FoldConstant.max_work"),
            ),
            Stays::NotEvaluated(OpError::Kernel(why)) if why.is_fault() => (
                format!("`{name}` on constants was not folded, because the operator is faulty: {why}"),
                Some("this is a mistake in the row with which the operator was registered"),
            ),
            Stays::NotEvaluated(OpError::Kernel(why)) => {
                (format!("`{name}` on constants was not folded, because it fails: {why}"), None)
            }
            // There is no kernel, or what it needs is not known. That is usual.
            Stays::NotEvaluated(why) => {
                s.editor.nearly(slot.at, PASS, |_| format!("`{name}` on constants cannot be evaluated: {why}"));
                return;
            }
        };
        s.editor.nearly(slot.at, PASS, |_| message.clone());
        if self.result.remarks.len() >= Folded::MAX_REMARKS {
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

/// The name under which near misses are recorded.
const PASS: &str = "FoldConstant";

/// Records the reason why a call is not folded that has some constant operands, or a result that
/// would follow from the types of its operands.
#[cold]
fn explain_operands(s: &Site<'_>, slot: Slot, value: ExprId, op: OpId) {
    let (cx, body) = (&*s.editor.cx, &*s.editor.body);
    let (facts, operands) = (cx.ops.facts(op), body.operands_of(value));
    let is_constant = |o: ExprId| matches!(body.expr(o), Expr::Literal(_) | Expr::None);
    let name = |o: ExprId| body.binding_name(cx, o).map_or("an operand".to_string(), |name| format!("%{name}"));
    let mut others = operands.iter().copied().filter(|&o| !is_constant(o));
    let (first, more) = (others.next(), others.count());
    let near = |why: &dyn Fn() -> String| s.editor.nearly(slot.at, PASS, |_| why());
    match (first, facts.is_foldable()) {
        (first, _) if facts.is_known_by_type() => {
            near(&|| format!("the extents of {} are not known", first.map_or("the operand".to_string(), name)))
        }
        (Some(one), true) if more == 0 && operands.len() > 1 => near(&|| format!("{} is not constant", name(one))),
        (Some(first), true) if more + 1 < operands.len() => {
            near(&|| format!("{} and {more} more operands are not constant", name(first)));
        }
        (None, false) => near(&|| format!("`{}` has effects, or cannot be evaluated", cx.ops.get(op).name)),
        _ => {}
    }
}

/// Returns an operand as type rules read it.
fn operand(body: &Body, id: ExprId) -> Operand {
    Operand { ty: body.type_of(id), literal: body.as_literal(id), absent: matches!(body.expr(id), Expr::None) }
}

impl Mutator for ConstantFolder {
    type Error = RewriteError;
    const REASON: &'static str = "it follows from constants and types";
    const NODES: bool = false;
    const VALUES: bool = true;
    const REFUSED: Refused = Refused::CastBack;

    /// Returns the taken branch of an If, if the condition is known.
    #[inline]
    fn expand(&mut self, s: &mut Site<'_>, _: Slot, value: ExprId) -> Result<Option<ExprId>, RewriteError> {
        let Expr::If { cond, then_block, else_block } = s.editor.body.expr(value) else { return Ok(None) };
        let Some(literal) = s.editor.body.as_literal(s.resolve(cond)) else { return Ok(None) };
        let literal = s.editor.cx.literals.get(literal);
        if literal.dtype() != DType::Bool || literal.rank() != 0 {
            return Ok(None);
        }
        let Some(taken) = literal.as_scalar::<bool>() else { return Ok(None) };
        self.result.branches += 1;
        Ok(Some(if taken { then_block } else { else_block }))
    }

    #[inline]
    fn rewrite_value(&mut self, s: &mut Site<'_>, slot: Slot, value: ExprId) -> Result<Verdict, RewriteError> {
        Ok(match s.editor.body.expr(value) {
            Expr::CallOp { .. } => self.call(s, slot, value),
            Expr::Proj { tuple, index } => match s.field(tuple, index) {
                Some(field) => {
                    self.result.folded += 1;
                    Verdict::Var(field)
                }
                None => Verdict::Keep,
            },
            expr if expr.is_atom() => {
                self.result.folded += 1;
                Verdict::Var(value)
            }
            _ => Verdict::Keep,
        })
    }
}
