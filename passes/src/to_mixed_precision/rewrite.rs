//! Gives the values of a function the types of its plan, and inserts the casts.
//!
//! A cast of a variable follows its binding, so each value is cast once to each type. A cast of a
//! parameter is at the beginning of its block.

use anfora_ir::{
    Attr, BlockKind, Context, Cursor, Editor, Expr, ExprId, Function, OpId, Step, TypeError, TypeId, VarFlags, VarId,
};
use anfora_manager::PassError;
use anfora_visit::{Link, hide_unused_outputs, insert_before, set_var_flags, split_and_convert, tail_link};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Precision;
use super::plan::{FunctionPlan, castable};
use super::signatures::planned_result;

/// Rewrites a function as its plan says, and returns the number of casts.
///
/// # Errors
/// If a constant cannot be read, or if the row of an operator contradicts its policy.
pub(super) fn rewrite_function(
    cx: &mut Context,
    function: &mut Function,
    precision: &mut Precision,
    plan: &FunctionPlan,
) -> Result<u64, PassError> {
    let ret = planned_result(cx, function, precision, plan);
    let before = function.body.type_of(function.body.root());
    let astype = cx.ops.resolve("astype")?;
    let editor = Editor::new(cx, &mut function.body);
    let mut rewriter =
        Rewriter { editor, precision, plan, astype, cast: FxHashMap::default(), casts: 0, has_new_outputs: false };
    rewriter.use_signatures();
    rewriter.run()?;
    let (casts, has_new_outputs) = (rewriter.casts, rewriter.has_new_outputs);
    if has_new_outputs {
        hide_unused_outputs(&mut function.body, |_| true);
    }
    function.ret = ret;
    // A cast may have a more specific type than the value had.
    if ret.is_none() && plan.result == before && function.body.type_of(function.body.root()) != before {
        function.ret = Some(before);
    }
    Ok(casts)
}

struct Rewriter<'a> {
    editor: Editor<'a>,
    precision: &'a mut Precision,
    plan: &'a FunctionPlan,
    astype: OpId,
    /// By variable and type: the variable of the cast.
    cast: FxHashMap<(ExprId, TypeId), ExprId>,
    casts: u64,
    /// True if a variable was made that is an output of a dataflow region, and need not be one.
    has_new_outputs: bool,
}

impl Rewriter<'_> {
    fn run(&mut self) -> Result<(), PassError> {
        let params = self.editor.body.params().to_vec();
        for &param in &params {
            self.editor.body.set_type(param.expr(), self.plan.new_type(param.expr()));
        }
        self.insert_casts(Link::Root, &params)?;
        let mut cursor = Cursor::new(self.editor.body);
        while let Some(step) = cursor.next(self.editor.body) {
            match step {
                Step::EnterBlock(_, BlockKind::Lambda(id)) => {
                    if let Expr::Lambda { lambda, .. } = self.editor.body.expr(id) {
                        let params: Vec<VarId> = self.editor.body.lambda_params(lambda).collect();
                        self.insert_casts(Link::Lambda(id), &params)?;
                    }
                }
                Step::Flat(id) if self.plan.covers(id) => self.flat(id)?,
                Step::Exit(id) => self.leave(id)?,
                Step::Bound(id) if self.plan.covers(id) => self.bound(id)?,
                _ => {}
            }
        }
        self.convert_tail(Link::Root, self.plan.result)
    }

    /// Gives the uses of functions their new types.
    fn use_signatures(&mut self) {
        for (leaf, global) in self.editor.body.global_leaves() {
            if self.precision.signatures.contains_key(&global)
                && let Some(signature) = self.editor.cx.globals.get(global).signature
                && signature != self.editor.body.ty(leaf)
            {
                self.editor.body.set_type(leaf, signature);
            }
        }
    }

    // ---- Values ----

    fn flat(&mut self, id: ExprId) -> Result<(), PassError> {
        let operands: SmallVec<[ExprId; 8]> = SmallVec::from_slice(self.editor.body.inputs(id));
        let required = self.required(id, &operands);
        let mut is_changed = false;
        for (i, (&operand, ty)) in operands.iter().zip(required).enumerate() {
            let new = self.mapped(operand, ty)?;
            if new != operand {
                is_changed = true;
                Link::Operand(id, i as u32).set(self.editor.body, new);
            }
        }
        if is_changed || self.plan.new_type(id) != self.plan.old_type(id) {
            self.refresh(id)?;
        }
        Ok(())
    }

    /// Returns the types that a call, tuple or projection requires of its operands.
    fn required(&mut self, id: ExprId, operands: &[ExprId]) -> SmallVec<[TypeId; 8]> {
        let plan = self.plan;
        let old = |operand: &ExprId| plan.old_type(*operand);
        match self.editor.body.expr(id) {
            Expr::CallOp { .. } if plan.low_calls.contains(id) => {
                let casts = castable(self.editor.cx, self.editor.body, id, &plan.old);
                let types = &mut self.precision.types;
                let mut ty = |operand: &ExprId, is_cast| match is_cast {
                    true => types.lower(&mut self.editor.cx.types, old(operand)),
                    false => old(operand),
                };
                operands.iter().zip(casts).map(|(operand, is_cast)| ty(operand, is_cast)).collect()
            }
            Expr::Call { .. } => {
                let signature = operands.first().and_then(|&callee| match self.editor.body.expr(callee) {
                    Expr::Global(global) => self.precision.signatures.get(&global).cloned(),
                    _ => None,
                });
                let Some(signature) = signature else { return operands.iter().map(old).collect() };
                let types = &mut self.precision.types;
                let mut ty = |i: usize, operand: &ExprId| match i > 0 && signature.is_low(i - 1) {
                    true => types.lower(&mut self.editor.cx.types, old(operand)),
                    false => old(operand),
                };
                operands.iter().enumerate().map(|(i, operand)| ty(i, operand)).collect()
            }
            Expr::Tuple(_) => match self.editor.cx.types.as_tuple(plan.new_type(id)) {
                Some(fields) => fields.iter().copied().collect(),
                None => operands.iter().map(old).collect(),
            },
            Expr::Proj { .. } => operands.iter().map(|&operand| plan.new_type(operand)).collect(),
            _ => operands.iter().map(old).collect(),
        }
    }

    /// Returns the atom to use in the place of `atom` where a type is required.
    fn mapped(&mut self, atom: ExprId, ty: TypeId) -> Result<ExprId, PassError> {
        if ty == self.plan.new_type(atom) {
            return Ok(atom);
        }
        if let Some(literal) = self.editor.body.as_literal(atom) {
            let low = self.precision.constants.converted(self.editor.cx, literal)?;
            return Ok(self.editor.literal_id(low));
        }
        Ok(self.cast.get(&(atom, ty)).copied().unwrap_or(atom))
    }

    /// Infers the type of a node whose parts have new types.
    fn refresh(&mut self, id: ExprId) -> Result<(), PassError> {
        self.editor.refresh_type(id)?;
        let (planned, found) = (self.plan.new_type(id), self.editor.body.ty(id));
        if self.editor.cx.types.accepts(planned, found) {
            return Ok(());
        }
        let [planned, found] = [planned, found].map(|ty| self.editor.cx.type_text(ty));
        Err(TypeError::new(format!("it has the type {found} in 16 bits, and {planned} was planned")).into())
    }

    /// An If or a `fn` after its blocks.
    fn leave(&mut self, id: ExprId) -> Result<(), PassError> {
        match self.editor.body.expr(id) {
            Expr::If { .. } => {
                let is_kept = self.plan.new_type(id) == self.plan.old_type(id);
                for block in [Link::Then(id), Link::Else(id)] {
                    let link = tail_link(self.editor.body, block);
                    let tail = link.target(self.editor.body);
                    let old = self.plan.old_type(tail);
                    let ty = if is_kept { old } else { self.precision.types.lower(&mut self.editor.cx.types, old) };
                    self.convert_tail_at(link, ty)?;
                }
                if !is_kept {
                    self.refresh(id)?;
                }
                Ok(())
            }
            Expr::Lambda { .. } => {
                let link = tail_link(self.editor.body, Link::Lambda(id));
                let ty = self.plan.old_type(link.target(self.editor.body));
                self.convert_tail_at(link, ty)
            }
            _ => Ok(()),
        }
    }

    fn convert_tail(&mut self, block: Link, ty: TypeId) -> Result<(), PassError> {
        let link = tail_link(self.editor.body, block);
        self.convert_tail_at(link, ty)
    }

    /// Makes the tail at a link a value of a type.
    fn convert_tail_at(&mut self, link: Link, ty: TypeId) -> Result<(), PassError> {
        let tail = link.target(self.editor.body);
        if self.editor.body.expr(tail).is_atom() {
            let new = self.mapped(tail, ty)?;
            if new != tail {
                link.set(self.editor.body, new);
            }
            return Ok(());
        }
        if self.plan.new_type(tail) == ty {
            return Ok(());
        }
        let from = self.editor.body.ty(tail);
        let var = self.editor.var(None, VarFlags::PLAIN, from);
        let mut bindings: Bindings = vec![(var, tail)];
        let result = self.convert(var.expr(), ty, &mut bindings)?;
        link.set(self.editor.body, result);
        insert_before(&mut self.editor, link, &bindings);
        Ok(())
    }

    /// A binding after its value.
    fn bound(&mut self, id: ExprId) -> Result<(), PassError> {
        let Expr::Let { var, value, .. } = self.editor.body.expr(id) else { return Ok(()) };
        let ty = self.plan.new_type(var.expr());
        if ty != self.plan.old_type(var.expr()) {
            self.editor.body.set_type(var.expr(), ty);
        } else if self.plan.covers(value) && self.editor.body.expr(value).is_atom() {
            // A variable that keeps its type stands for a value of the old type.
            let kept = self.mapped(value, self.plan.old_type(value))?;
            if kept != value {
                Link::Value(id).set(self.editor.body, kept);
            }
        }
        self.insert_casts(Link::Rest(id), &[var])
    }

    // ---- Casts ----

    /// Inserts the casts of variables at a link.
    fn insert_casts(&mut self, link: Link, vars: &[VarId]) -> Result<(), PassError> {
        let plan = self.plan;
        let mut bindings = Bindings::new();
        for &var in vars {
            if !plan.covers(var.expr()) {
                continue;
            }
            for &ty in plan.casts_of(var.expr()) {
                let before = bindings.len();
                let value = self.convert(var.expr(), ty, &mut bindings)?;
                let new = self.editor.body.type_of(value);
                let cast = self.editor.var(None, VarFlags::PLAIN, new);
                bindings.push((cast, value));
                // Inside of a dataflow region, the casts are visible where the variable is.
                if self.editor.body.is_dataflow_var(var) {
                    for &(cast, _) in &bindings[before..] {
                        set_var_flags(self.editor.body, cast, VarFlags::DATAFLOW);
                    }
                } else {
                    self.has_new_outputs = true;
                }
                self.cast.insert((var.expr(), ty), cast.expr());
            }
        }
        if !bindings.is_empty() {
            insert_before(&mut self.editor, link, &bindings);
        }
        Ok(())
    }

    /// Returns a value of a type made from a variable.
    fn convert(&mut self, var: ExprId, to: TypeId, bindings: &mut Bindings) -> Result<ExprId, PassError> {
        split_and_convert(self, |this| &mut this.editor, var, to, bindings, Rewriter::cast_tensor)
    }

    fn cast_tensor(&mut self, tensor: ExprId, to: TypeId, _: &mut Bindings) -> Result<ExprId, PassError> {
        let cx = &mut *self.editor.cx;
        let Some(dtype) = cx.types.as_tensor(to).map(|tensor| tensor.dtype) else { return Ok(tensor) };
        let dtype = cx.attr(Attr::DType(dtype));
        let attrs = cx.named_attrs(&[("dtype", dtype)]);
        self.casts += 1;
        Ok(self.editor.call_op(self.astype, &[tensor], attrs)?)
    }
}

/// Bindings that are inserted.
type Bindings = Vec<(VarId, ExprId)>;
