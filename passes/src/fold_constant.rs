//! # FoldConstant
//!
//! ```text
//! Notation   v a variable, c a literal, a an atom.
//! Needs      A-normal form.
//! Effect     let v = op(c, ...); rest        =>  rest[v := c']                 the call is pure and evaluates to c'
//!            let v = op(c, ...); rest        =>  let v = (c', ...); rest       op returns a tuple
//!            let v = (a0, a1); ... v.i       =>  ... ai
//!            let v = a; rest                 =>  rest[v := a]
//!            op(x)                           =>  c                             the type of x tells it: shape_of(x) of constant extents
//!            let v = if (true) { bs e } else { .. }; rest   =>  bs let v = e; rest
//!            In and out of dataflow regions, in branches and lambdas, transitively, in one sweep.
//! Never      Impure, random and opaque operators; calls that fail (a remark says why); results beyond the budget: of one call, by
//!            FoldConstant.max_growth_bytes; of all in a function, by FoldConstant.max_total_growth_bytes. The size is known from the type
//!            before anything is computed. A splat counts as one element. Kernels that would take more than FoldConstant.max_work steps,
//!            all in a function together: that is a limit also where there is none to the bytes, for a reduction of a splat may be
//!            endless, and its result small.
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
    VarId,
};
use anfora_manager::register_pass;
use anfora_visit::RewriteError;
use smallvec::SmallVec;

use crate::fold_budget::{FoldBudget, MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK};
use crate::support::definitions::Definitions;
use crate::support::sweep::{Outcome, Rewrite, Scope, Site, Sweep, sweep};

register_pass! {
    /// Evaluates calls on constants, within a budget, and takes known branches
    pub FOLD_CONSTANT = FunctionPass("FoldConstant", 2).needing(["anf"]);
    configs { MAX_GROWTH_BYTES, MAX_TOTAL_GROWTH_BYTES, MAX_WORK }
    run |edit, _, cx| {
        if edit.function.is_primitive(edit.cx) {
            return Ok(());
        }
        let budget = FoldBudget::of(cx)?;
        let done = fold_constant(edit.cx, edit.function, budget)?;
        cx.count("folded", done.folded as u64);
        cx.count("branches", done.branches as u64);
        cx.count("bytes", done.growth as u64);
        let name = edit.name().to_string();
        done.remarks.into_iter().for_each(|r| cx.remark(r.in_function(&name)));
        Ok(())
    }
}

/// What folding did.
#[derive(Clone, Debug, Default)]
pub struct Folded {
    /// How many bindings and tails became constants or fields.
    pub folded: usize,
    /// How many Ifs were replaced by one of their branches.
    pub branches: usize,
    /// Bytes of the literals that were made.
    pub growth: usize,
    /// Steps of the kernels that ran, also of those that failed.
    pub work: u64,
    /// Why calls on constants were not folded. At most [`Folded::MAX_REMARKS`].
    pub remarks: Vec<Diagnostic>,
}

impl Folded {
    /// How many calls are spoken of one by one.
    pub const MAX_REMARKS: usize = 32;
}

/// Evaluates what can be evaluated in a function.
///
/// # Errors
/// If the body is not in A-normal form.
pub fn fold_constant(cx: &mut Context, function: &mut Function, budget: FoldBudget) -> Result<Folded, RewriteError> {
    let mut pass = Pass { definitions: Definitions::new(&function.body), budget, unsaid: 0, result: Folded::default() };
    sweep(cx, function, &mut pass)?;
    if pass.unsaid > 0 {
        let message = format!("{} more calls on constants were not folded", pass.unsaid);
        pass.result.remarks.push(Diagnostic::new(Severity::Remark, message));
    }
    Ok(pass.result)
}

struct Pass {
    definitions: Definitions,
    budget: FoldBudget,
    unsaid: usize,
    result: Folded,
}

impl Pass {
    #[inline]
    fn call(&mut self, s: &mut Sweep<'_>, site: Site, value: ExprId) -> Outcome {
        let Expr::CallOp { op, operands, attrs } = s.body.expr(value) else { return Outcome::Keep };
        let list = s.body.operands(operands);
        // Most calls are seen not to be foldable by their first operand.
        if let Some(&first) = list.first()
            && !matches!(s.body.expr(first), Expr::Literal(_) | Expr::None)
        {
            return if s.cx.ops.facts(op).is_known_by_type() { self.known(s, site, value, op) } else { Outcome::Keep };
        }
        if !s.cx.ops.facts(op).is_foldable() {
            return if s.cx.ops.facts(op).is_known_by_type() { self.known(s, site, value, op) } else { Outcome::Keep };
        }
        let mut literals: SmallVec<[Option<LiteralId>; 4]> = SmallVec::new();
        for &o in list {
            match s.body.expr(o) {
                Expr::Literal(l) => literals.push(Some(l)),
                Expr::None => literals.push(None),
                _ if s.cx.ops.facts(op).is_known_by_type() => return self.known(s, site, value, op),
                _ => return Outcome::Keep,
            }
        }
        let left = self.budget.total.map(|t| t.saturating_sub(self.result.growth));
        let limits = OpLimits {
            bytes: self.budget.per_call.unwrap_or(usize::MAX).min(left.unwrap_or(usize::MAX)),
            steps: self.budget.work.saturating_sub(self.result.work),
        };
        let Evaluated { results, steps } = {
            let constants: SmallVec<[Option<&Literal>; 4]> =
                literals.iter().map(|l| l.map(|l| s.cx.literals.get(l))).collect();
            evaluate_op(s.cx, op, attrs, &constants, s.body.ty(value), limits)
        };
        self.result.work += steps;
        match results {
            Ok(results) => self.replace(s, site, value, results),
            Err(why) => {
                self.remark(s, site, op, why);
                Outcome::Keep
            }
        }
    }

    /// A call of an operator of which the results may be known by the types of the operands.
    fn known(&mut self, s: &mut Sweep<'_>, site: Site, value: ExprId, op: OpId) -> Outcome {
        let Expr::CallOp { operands, attrs, .. } = s.body.expr(value) else { return Outcome::Keep };
        let Some(rule) = s.cx.ops.get(op).known_by_type else { return Outcome::Keep };
        let operands: SmallVec<[Operand; 4]> = s.body.operands(operands).iter().map(|&o| operand(s.body, o)).collect();
        match rule(&mut TypeCall { cx: s.cx, op, operands: &operands, as_they_are: &operands, attrs }) {
            Some(results) => self.replace(s, site, value, results),
            None => Outcome::Keep,
        }
    }

    /// Puts results, if they are of the type that was inferred for the call, in its place.
    fn replace(&mut self, s: &mut Sweep<'_>, site: Site, value: ExprId, mut results: Vec<Literal>) -> Outcome {
        let wanted = s.body.ty(value);
        let bytes = results.iter().map(Literal::stored_bytes).sum::<usize>();
        let outcome = if s.cx.types.as_tuple(wanted).is_some() {
            let mut ed = s.editor();
            let fields: SmallVec<[ExprId; 4]> = results.into_iter().map(|l| ed.literal(l)).collect();
            let new = ed.tuple(&fields);
            if !s.cx.types.accepts(wanted, s.body.ty(new)) {
                return Outcome::Keep;
            }
            if let Some(var) = site.var {
                self.definitions.set(var, new);
            }
            Outcome::Become(new)
        } else {
            let (Some(literal), true) = (results.pop(), results.is_empty()) else { return Outcome::Keep };
            let literal = s.cx.literals.intern(literal);
            let ty = s.cx.literal_type(literal);
            if !s.cx.types.accepts(wanted, ty) {
                return Outcome::Keep;
            }
            Outcome::Replace(s.body.literal_in_place(value, literal, ty))
        };
        self.result.growth += bytes;
        self.result.folded += 1;
        outcome
    }

    #[cold]
    fn remark(&mut self, s: &Sweep<'_>, site: Site, op: OpId, why: OpError) {
        let name = &s.cx.ops.get(op).name;
        let (message, help) = match why {
            OpError::TooLarge { bytes, .. } => (
                format!("`{name}` on constants was not folded: the result would take {bytes} bytes"),
                Some(
                    "raise FoldConstant.max_growth_bytes or FoldConstant.max_total_growth_bytes, or set them to unlimited",
                ),
            ),
            OpError::TooLong { steps, allowed } => (
                format!(
                    "`{name}` on constants was not folded: its kernel would take {steps} steps, and {allowed} are left"
                ),
                Some("raise FoldConstant.max_work"),
            ),
            OpError::Kernel(why) if why.is_fault() => (
                format!("`{name}` on constants was not folded, because the operator is faulty: {why}"),
                Some("this is a mistake in the row with which the operator was registered"),
            ),
            OpError::Kernel(why) => (format!("`{name}` on constants was not folded, because it fails: {why}"), None),
            _ => return,
        };
        if self.result.remarks.len() >= Folded::MAX_REMARKS {
            self.unsaid += 1;
            return;
        }
        let mut remark = Diagnostic::new(Severity::Remark, message);
        remark.binding = s.body.binding_name(s.cx, site.at).map(str::to_string);
        remark.span = s.body.span(site.at).map(|start| start as usize..start as usize + 1);
        remark.help = help.map(str::to_string);
        self.result.remarks.push(remark);
    }

    fn define(&mut self, var: Option<VarId>, value: ExprId) -> Outcome {
        if let Some(var) = var {
            self.definitions.set(var, value);
        }
        Outcome::Keep
    }
}

/// An operand as rules about types see it.
fn operand(body: &Body, id: ExprId) -> Operand {
    Operand { ty: body.type_of(id), literal: body.as_literal(id), absent: matches!(body.expr(id), Expr::None) }
}

impl Rewrite for Pass {
    #[inline]
    fn value(&mut self, s: &mut Sweep<'_>, site: Site, value: ExprId) -> Result<Outcome, RewriteError> {
        Ok(match s.body.expr(value) {
            Expr::CallOp { .. } => self.call(s, site, value),
            Expr::Tuple(_) => self.define(site.var, value),
            Expr::Proj { tuple, index } => match self.definitions.field(s, tuple, index) {
                Some(field) => {
                    self.result.folded += 1;
                    Outcome::Replace(field)
                }
                None => Outcome::Keep,
            },
            Expr::Var { .. } | Expr::Literal(_) | Expr::Global(_) | Expr::Op(_) | Expr::None => {
                self.result.folded += 1;
                Outcome::Replace(value)
            }
            Expr::Call { .. } | Expr::If { .. } | Expr::Lambda { .. } | Expr::Let { .. } => Outcome::Keep,
        })
    }

    fn known_branch(&mut self, s: &Sweep<'_>, cond: ExprId) -> Option<bool> {
        let literal = s.cx.literals.get(s.body.as_literal(cond)?);
        if literal.dtype() != DType::Bool || literal.rank() != 0 {
            return None;
        }
        let taken = literal.as_scalar::<bool>()?;
        self.result.branches += 1;
        Some(taken)
    }

    fn enter(&mut self, _: &Sweep<'_>, scope: Scope) {
        self.definitions.enter(scope);
    }

    fn exit(&mut self, _: &Sweep<'_>, scope: Scope) {
        self.definitions.exit(scope);
    }
}
