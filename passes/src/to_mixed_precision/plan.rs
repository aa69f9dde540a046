//! The new types of the values of a function, and the casts that it needs.
//!
//! Phase 1 goes forward through the body. It decides for each call whether it is computed in 16
//! bits, and gives each value its new type, from the new types of its operands. Each use of a
//! variable *requires* a type; if that is not the new type of the variable, the variable needs a
//! cast.
//!
//! Phase 2 goes backward through the values that may have either type, which are *open*: the
//! constants that are only given another shape, and tuples, whose fields may be cast before they
//! are built. The uses that follow select their types.

use anfora_ir::{
    Body, Context, Cursor, EntityId, Expr, ExprId, Function, IdSet, LiteralId, OpId, Operand, PrecisionPolicy, Step,
    TypeId, VarId, infer_call, infer_op,
};
use anfora_manager::PassError;
use anfora_visit::RewriteError;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Precision;
use super::signatures::Argument;
use super::types::LowTypes;

/// The type of the result of a function.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum ResultType {
    /// The type that it has.
    Kept,
    /// The type with elements of 16 bits.
    Low,
    /// Either of them, whichever the value has.
    Either,
}

/// The plan of a function.
pub(super) struct FunctionPlan {
    /// By expression: its type before.
    pub(super) old: Vec<TypeId>,
    /// By expression: its new type.
    new: Vec<TypeId>,
    /// The calls of operators that are computed in 16 bits.
    pub(super) low_calls: IdSet<ExprId>,
    pub(super) low_call_count: u64,
    /// By variable: the other types that its uses require.
    pub(super) casts: FxHashMap<ExprId, SmallVec<[TypeId; 1]>>,
    /// The variables with a use that requires their new type.
    used: IdSet<ExprId>,
    /// The variables that a call needs in 16 bits whose policy is [`PrecisionPolicy::Always`].
    pub(super) wanted: IdSet<ExprId>,
    /// True if the function calls one whose type has changed.
    has_new_callee: bool,
    /// The type of the tail before.
    old_result: TypeId,
    /// The type that the tail must have.
    pub(super) result: TypeId,
}

impl FunctionPlan {
    /// Returns true if the plan changes nothing.
    pub(super) fn is_empty(&self) -> bool {
        let is_same = self.old == self.new && self.result == self.old_result;
        is_same && self.casts.is_empty() && !self.has_new_callee
    }

    /// Returns true if the function had an expression before it was rewritten.
    pub(super) fn covers(&self, id: ExprId) -> bool {
        id.index() < self.old.len()
    }

    /// Returns the type of an expression before.
    pub(super) fn old_type(&self, id: ExprId) -> TypeId {
        self.old[id.index()]
    }

    /// Returns the new type of an expression.
    pub(super) fn new_type(&self, id: ExprId) -> TypeId {
        self.new[id.index()]
    }

    /// Returns the other types that the uses of a variable require.
    pub(super) fn casts_of(&self, var: ExprId) -> &[TypeId] {
        self.casts.get(&var).map_or(&[], |types| types)
    }

    fn require(&mut self, var: ExprId, ty: TypeId) {
        if self.new[var.index()] == ty {
            self.used.insert(var);
            return;
        }
        let casts = self.casts.entry(var).or_default();
        if !casts.contains(&ty) {
            casts.push(ty);
        }
    }
}

/// A value that may have either type.
#[derive(Copy, Clone)]
struct OpenValue {
    value: ExprId,
    var: Option<VarId>,
}

/// Plans a function. `low_params` are the parameters that get elements of 16 bits.
///
/// # Errors
/// If the body is not in A-normal form, a constant cannot be read, or a call does not fit.
pub(super) fn plan_function(
    cx: &mut Context,
    function: &Function,
    precision: &mut Precision,
    low_params: &[bool],
    result: ResultType,
) -> Result<FunctionPlan, PassError> {
    let body = &function.body;
    let old: Vec<TypeId> = body.exprs().map(|(id, _)| body.ty(id)).collect();
    let root = body.type_of(body.root());
    let plan = FunctionPlan {
        new: old.clone(),
        old,
        low_calls: IdSet::with_capacity(body.len()),
        low_call_count: 0,
        casts: FxHashMap::default(),
        used: IdSet::with_capacity(body.len()),
        wanted: IdSet::with_capacity(body.len()),
        has_new_callee: false,
        old_result: root,
        result: root,
    };
    let mut planner = Planner {
        cx,
        body,
        precision,
        plan,
        binding: None,
        open: Vec::new(),
        is_open: IdSet::with_capacity(body.len()),
        is_kept: IdSet::with_capacity(body.len()),
    };
    for (param, _) in body.params().iter().zip(low_params).filter(|(_, is_low)| **is_low) {
        let lowered = planner.lowered(param.expr());
        planner.set(param.expr(), lowered);
    }
    planner.forward()?;
    planner.require_result(function, result);
    planner.backward();
    Ok(planner.plan)
}

struct Planner<'a> {
    cx: &'a mut Context,
    body: &'a Body,
    precision: &'a mut Precision,
    plan: FunctionPlan,
    /// The variable that is bound to the current value.
    binding: Option<VarId>,
    open: Vec<OpenValue>,
    /// The variables of constants under another shape, whose new type is provisional.
    is_open: IdSet<ExprId>,
    /// The values that keep their types: the type of the variable does not show their elements.
    is_kept: IdSet<ExprId>,
}

/// The element types of a call of an operator.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CallPrecision {
    Kept,
    Low,
    /// Only constants get another shape.
    Either,
}

impl Planner<'_> {
    fn old(&self, id: ExprId) -> TypeId {
        self.plan.old_type(id)
    }

    fn new_type(&self, id: ExprId) -> TypeId {
        self.plan.new_type(id)
    }

    fn set(&mut self, id: ExprId, ty: TypeId) {
        self.plan.new[id.index()] = ty;
    }

    /// Returns the old type of an expression with elements of 16 bits.
    fn lowered(&mut self, id: ExprId) -> TypeId {
        let old = self.old(id);
        self.precision.types.lower(&mut self.cx.types, old)
    }

    /// Returns true if the old type of `by` would not show that `value` has elements of 16 bits.
    fn is_hidden(&mut self, by: ExprId, value: ExprId) -> bool {
        let (stated, of) = (self.old(by), self.old(value));
        self.precision.types.is_hidden(&mut self.cx.types, stated, of)
    }

    /// Records that a use of an atom requires a type.
    fn require(&mut self, atom: ExprId, ty: TypeId) {
        if self.body.as_var(atom).is_some() {
            self.plan.require(atom, ty);
        }
    }

    fn require_old(&mut self, atom: ExprId) {
        self.require(atom, self.old(atom));
    }

    /// Returns the type of an atom where it is used in a way that leaves it its type.
    fn settled(&self, atom: ExprId) -> TypeId {
        if self.is_open.contains(atom) { self.old(atom) } else { self.new_type(atom) }
    }

    // ---- Phase 1 ----

    fn forward(&mut self) -> Result<(), PassError> {
        let body = self.body;
        let mut cursor = Cursor::new(body);
        while let Some(step) = cursor.next(body) {
            RewriteError::unless_anf(self.cx, body, &cursor, step)?;
            match step {
                Step::EnterBlock(..) => self.binding = None,
                Step::Let(id) => {
                    if let Expr::Let { var, value, .. } = body.expr(id) {
                        self.binding = Some(var);
                        if self.is_hidden(var.expr(), value) {
                            self.is_kept.insert(value);
                        }
                    }
                }
                Step::Flat(id) => self.flat(id)?,
                Step::Exit(id) => self.leave(id),
                Step::Bound(id) => self.bound(id),
                _ => {}
            }
        }
        Ok(())
    }

    fn flat(&mut self, id: ExprId) -> Result<(), PassError> {
        let body = self.body;
        match body.expr(id) {
            Expr::CallOp { .. } => self.op_call(id),
            Expr::Call { .. } => self.call(id),
            Expr::Tuple(_) | Expr::Proj { .. } if self.is_kept.contains(id) => {
                body.inputs(id).iter().for_each(|&operand| self.require_old(operand));
                Ok(())
            }
            Expr::Tuple(fields) => {
                let fields = body.operands(fields);
                let types: SmallVec<[TypeId; 8]> = fields.iter().map(|&field| self.settled(field)).collect();
                let mut ty = self.cx.types.tuple(&types);
                // A large tuple has the fields that it had.
                if ty != self.old(id) && self.lowered(id) == self.old(id) {
                    ty = self.old(id);
                }
                self.set(id, ty);
                self.open.push(OpenValue { value: id, var: self.binding });
                Ok(())
            }
            Expr::Proj { tuple, index } => {
                let of = self.new_type(tuple);
                self.require(tuple, of);
                if of != self.old(tuple)
                    && let Some(&field) = self.cx.types.as_tuple(of).and_then(|fields| fields.get(index as usize))
                {
                    self.set(id, field);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn op_call(&mut self, id: ExprId) -> Result<(), PassError> {
        let body = self.body;
        let Some(call) = body.call_of(id) else { return Ok(()) };
        let (op, attrs, operands) = (call.op, call.attrs, call.operands);
        let casts = castable(self.cx, body, id, &self.plan.old);
        let mut decision = match self.is_kept.contains(id) {
            true => CallPrecision::Kept,
            false => self.decide(op, operands, &casts)?,
        };
        if decision != CallPrecision::Kept {
            let list: SmallVec<[Operand; 8]> =
                operands.iter().zip(&casts).map(|(&o, &is_cast)| self.operand(o, is_cast)).collect::<Result<_, _>>()?;
            match infer_op(self.cx, op, &list, attrs, self.old(id)) {
                Ok(ty) => self.set(id, ty),
                // The operator does not take such operands.
                Err(_) => decision = CallPrecision::Kept,
            }
        }
        match (decision, self.binding) {
            (CallPrecision::Kept, _) => operands.iter().for_each(|&operand| self.require_old(operand)),
            (CallPrecision::Low, _) => {
                self.plan.low_calls.insert(id);
                self.plan.low_call_count += 1;
                let is_wanted = self.cx.ops.get(op).precision == PrecisionPolicy::Always;
                for (&operand, &is_cast) in operands.iter().zip(&casts) {
                    if !is_cast {
                        self.require_old(operand);
                        continue;
                    }
                    let lowered = self.lowered(operand);
                    self.require(operand, lowered);
                    if is_wanted {
                        self.plan.wanted.insert(operand);
                    }
                }
            }
            (CallPrecision::Either, var) => {
                if let Some(var) = var {
                    self.is_open.insert(var.expr());
                }
                self.open.push(OpenValue { value: id, var });
            }
        }
        Ok(())
    }

    /// Returns an operand of a call in 16 bits as inference takes it.
    fn operand(&mut self, operand: ExprId, is_cast: bool) -> Result<Operand, PassError> {
        let ty = if is_cast { self.lowered(operand) } else { self.old(operand) };
        let (literal, absent) = match self.body.expr(operand) {
            Expr::Literal(literal) if is_cast => (Some(self.precision.constants.converted(self.cx, literal)?), false),
            Expr::Literal(literal) => (Some(literal), false),
            Expr::None => (None, true),
            _ => (None, false),
        };
        Ok(Operand { ty, literal, absent })
    }

    /// Decides about a call of an operator. `casts` says which operands would be cast.
    fn decide(&mut self, op: OpId, operands: &[ExprId], casts: &[bool]) -> Result<CallPrecision, PassError> {
        let Some(policy) = self.policy(op) else { return Ok(CallPrecision::Kept) };
        let (mut low, mut high, mut constants) = (false, false, SmallVec::<[LiteralId; 4]>::new());
        let mut any = false;
        for (&operand, _) in operands.iter().zip(casts).filter(|(_, is_cast)| **is_cast) {
            any = true;
            if let Some(literal) = self.body.as_literal(operand) {
                constants.push(literal);
            } else if !self.is_open.contains(operand) {
                let is_low = self.new_type(operand) != self.old(operand);
                low |= is_low;
                high |= !is_low;
            }
        }
        let relabels = self.cx.ops.get(op).relabels && self.binding.is_some();
        let decision = match policy {
            PrecisionPolicy::Always if any => CallPrecision::Low,
            PrecisionPolicy::Follow if low && !high => CallPrecision::Low,
            PrecisionPolicy::Follow if any && !low && !high && relabels => CallPrecision::Either,
            _ => return Ok(CallPrecision::Kept),
        };
        for literal in constants {
            if let Some(largest) = self.precision.constants.beyond(self.cx, literal)? {
                self.precision.keep(
                    self.cx,
                    op,
                    literal,
                    self.binding.and_then(|var| self.body.var_name(var)),
                    largest,
                );
                return Ok(CallPrecision::Kept);
            }
        }
        Ok(decision)
    }

    /// Returns the policy for the current call of an operator; `None` if it keeps its types.
    fn policy(&self, op: OpId) -> Option<PrecisionPolicy> {
        if self.cx.ops.is_opaque(op) || self.precision.except_ops.contains(&op) {
            return None;
        }
        let name = self.binding.and_then(|var| self.body.var_name(var));
        if name.is_some_and(|name| self.precision.except_bindings.contains(&name)) {
            return None;
        }
        let policy = self.cx.ops.get(op).precision;
        (policy != PrecisionPolicy::Never).then_some(policy)
    }

    /// A call of a function: its arguments have the types of the parameters.
    fn call(&mut self, id: ExprId) -> Result<(), PassError> {
        let body = self.body;
        let operands = body.inputs(id);
        let Some((&callee, arguments)) = operands.split_first() else { return Ok(()) };
        let signature = match body.expr(callee) {
            Expr::Global(global) => self.precision.signatures.get(&global).cloned(),
            _ => None,
        };
        let Some(signature) = signature else {
            operands.iter().for_each(|&operand| self.require_old(operand));
            return Ok(());
        };
        let mut types: SmallVec<[TypeId; 8]> = SmallVec::new();
        for (i, &argument) in arguments.iter().enumerate() {
            let is_low = signature.is_low(i);
            let seen = self.argument(argument)?;
            self.precision.pass(&signature, i, seen);
            let ty = if is_low { self.lowered(argument) } else { self.old(argument) };
            self.require(argument, ty);
            if is_low && signature.wants(i) {
                self.plan.wanted.insert(argument);
            }
            types.push(ty);
        }
        self.plan.has_new_callee |= signature.ty != body.ty(callee);
        let ty = infer_call(self.cx, signature.ty, &types).map_err(|error| {
            let name = self.binding.and_then(|var| body.var_name(var)).map(|name| self.cx.names.get(name));
            RewriteError::untyped(error, name)
        })?;
        self.set(id, ty);
        Ok(())
    }

    /// Returns the precision of an argument as it is.
    fn argument(&mut self, argument: ExprId) -> Result<Argument, PassError> {
        if let Some(literal) = self.body.as_literal(argument) {
            if !LowTypes::is_float32(&self.cx.types, self.old(argument)) {
                return Ok(Argument::Either);
            }
            let beyond = self.precision.constants.beyond(self.cx, literal)?;
            return Ok(if beyond.is_some() { Argument::Beyond } else { Argument::Either });
        }
        Ok(match self.new_type(argument) != self.old(argument) {
            _ if self.is_open.contains(argument) => Argument::Either,
            true => Argument::Low,
            false => Argument::High,
        })
    }

    /// An If or a `fn` after its blocks.
    fn leave(&mut self, id: ExprId) {
        let body = self.body;
        match body.expr(id) {
            Expr::If { cond, then_block, else_block } => {
                self.require_old(cond);
                let tails = [then_block, else_block].map(|block| body.tail(block));
                let lowered = self.lowered(id);
                let are_low = tails.iter().all(|&tail| self.settled(tail) == self.lowered(tail));
                let is_changed = tails.iter().any(|&tail| self.settled(tail) != self.old(tail));
                let is_shown = !self.is_kept.contains(id) && !tails.iter().any(|&tail| self.is_hidden(id, tail));
                let becomes_low = are_low && is_changed && is_shown && lowered != self.old(id);
                for tail in tails {
                    let ty = if becomes_low { self.lowered(tail) } else { self.old(tail) };
                    self.require_tail(tail, ty);
                }
                if becomes_low {
                    self.set(id, lowered);
                }
            }
            Expr::Lambda { body: block, .. } => {
                let tail = body.tail(block);
                self.require_tail(tail, self.old(tail));
            }
            _ => {}
        }
    }

    /// Records the type that the tail of a block must have. A tuple is built with that type.
    fn require_tail(&mut self, tail: ExprId, ty: TypeId) {
        if let Expr::Tuple(_) = self.body.expr(tail) {
            self.set(tail, ty);
        }
        self.require(tail, ty);
    }

    fn bound(&mut self, id: ExprId) {
        let Expr::Let { var, value, .. } = self.body.expr(id) else { return };
        self.binding = None;
        if self.is_kept.contains(value) {
            if self.body.expr(value).is_atom() {
                self.require_old(value);
            }
            return;
        }
        if self.body.expr(value).is_atom() {
            let ty = self.settled(value);
            self.require(value, ty);
        }
        let (old, new) =
            (self.old(value), if self.is_open.contains(value) { self.old(value) } else { self.new_type(value) });
        if old == new {
            return;
        }
        // A variable may have a less specific type than its value.
        let lowered = self.lowered(var.expr());
        let ty = if new == self.lowered(value) { lowered } else { new };
        self.set(var.expr(), ty);
    }

    fn require_result(&mut self, function: &Function, result: ResultType) {
        let tail = self.body.tail(self.body.root());
        let (old, lowered, found) = (self.old(tail), self.lowered(tail), self.settled(tail));
        let types = &mut self.cx.types;
        let is_hidden = function.ret.is_some_and(|ret| self.precision.types.is_hidden(types, ret, old));
        let ty = match result {
            _ if is_hidden => old,
            ResultType::Kept => old,
            ResultType::Low => lowered,
            // A stated type can only be changed as a whole.
            ResultType::Either if function.ret.is_some() && found != lowered => old,
            ResultType::Either => found,
        };
        self.require_tail(tail, ty);
        self.plan.result = ty;
    }

    // ---- Phase 2 ----

    fn backward(&mut self) {
        for open in std::mem::take(&mut self.open).into_iter().rev() {
            match self.body.expr(open.value) {
                Expr::Tuple(_) => self.build(open),
                _ => self.relabel(open),
            }
        }
    }

    /// Selects the type of a tuple: if all uses require another type, it is built with that type.
    fn build(&mut self, open: OpenValue) {
        if let Some(var) = open.var.map(VarId::expr)
            && !self.plan.used.contains(var)
            && let [ty] = *self.plan.casts_of(var)
        {
            self.plan.casts.remove(&var);
            self.plan.used.insert(var);
            self.set(var, ty);
            self.set(open.value, ty);
        }
        let Some(types) = self.cx.types.as_tuple(self.new_type(open.value)) else { return };
        let types: SmallVec<[TypeId; 8]> = types.iter().copied().collect();
        for (&field, ty) in self.body.inputs(open.value).iter().zip(types) {
            self.require(field, ty);
        }
    }

    /// Selects the type of a constant under another shape: that of its uses, the old one if they
    /// differ.
    fn relabel(&mut self, open: OpenValue) {
        let Some(var) = open.var.map(VarId::expr) else { return };
        let is_kept = !self.plan.used.contains(var) || self.plan.casts.contains_key(&var);
        if is_kept {
            let lowered = self.new_type(var);
            self.plan.casts.remove(&var);
            if self.plan.used.remove(var) {
                self.plan.casts.entry(var).or_default().push(lowered);
            }
            self.set(var, self.old(var));
            self.set(open.value, self.old(open.value));
        } else {
            self.plan.low_calls.insert(open.value);
            self.plan.low_call_count += 1;
        }
        let casts = castable(self.cx, self.body, open.value, &self.plan.old);
        for (&operand, is_cast) in self.body.inputs(open.value).iter().zip(casts) {
            let ty = if is_cast && !is_kept { self.lowered(operand) } else { self.old(operand) };
            self.require(operand, ty);
        }
    }
}

/// Returns for each operand of a call of an operator true if it is cast where the call is computed
/// in 16 bits: tensors of `float32`, except those that determine extents. `old` are the types
/// before.
pub(super) fn castable(cx: &Context, body: &Body, call: ExprId, old: &[TypeId]) -> SmallVec<[bool; 8]> {
    let Some(call) = body.call_of(call) else { return SmallVec::new() };
    let extents = if cx.ops.is_opaque(call.op) { &[] } else { cx.ops.get(call.op).shape_operands };
    let is_cast = |(i, operand): (usize, &ExprId)| {
        !extents.contains(&(i as u32)) && LowTypes::is_float32(&cx.types, old[operand.index()])
    };
    call.operands.iter().enumerate().map(is_cast).collect()
}
