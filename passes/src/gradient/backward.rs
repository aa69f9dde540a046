//! The walk through a function: its bindings from the first to the last, where calls and branches
//! get a fn that computes adjoints, and back from the last to the first, where the adjoints of
//! operands are added up.
//!
//! A block is walked forward and backward before the walk of the block around it goes on. So there
//! is one backward walk at a time, which uses one table of adjoints. The entries that are left at
//! its end belong to variables from outside of the block. The open blocks are a list, not a
//! recursion.

use anfora_ir::{
    Adjoint, AdjointError, DType, Editor, Expr, ExprId, Functions, Number, ResultAdjoint, SideTable, TypeError, TypeId,
    VarId,
};
use anfora_manager::PassError;
use anfora_visit::{LetList, Link, RewriteError};
use rustc_hash::FxHashMap;

use super::adjoints::{AdjointId, AdjointValue};
use super::flow::Flow;
use super::pullbacks::Pullbacks;
use super::segments::RecomputedValue;
use super::tangents::AdjointTypes;
use super::{Target, WantedValue};

/// A binding through which derivatives flow.
pub(super) struct DifferentiatedBinding {
    pub(super) var: VarId,
    /// The value before the walk.
    pub(super) value: ExprId,
    /// For a call of a function and an If: the fn that computes the adjoints of other values.
    pub(super) pullback: Option<Box<PullbackUse>>,
}

/// The fn of a call or an If that computes adjoints, and the values whose adjoints it returns.
pub(super) struct PullbackUse {
    pub(super) back: ExprId,
    pub(super) values: Vec<ExprId>,
}

/// The state of one function that is differentiated.
pub(super) struct Differentiator<'e, 'b> {
    pub(super) editor: &'e mut Editor<'b>,
    pub(super) functions: Functions<'e>,
    pub(super) pullbacks: &'e mut Pullbacks,
    pub(super) target: Target,
    pub(super) flow: Flow,
    pub(super) types: AdjointTypes,
    /// The adjoints that are being added up, and those of variables.
    pub(super) store: Vec<AdjointValue>,
    pub(super) adjoints: SideTable<ExprId, Option<AdjointId>>,
    /// The variables that have got an adjoint in the current backward walk, in order.
    pub(super) reached: Vec<ExprId>,
    /// The bindings of the current backward walk.
    pub(super) list: LetList,
    /// The zeros that `list` has, by the types of the values whose adjoints they are. They depend
    /// on no value.
    pub(super) zeros: FxHashMap<TypeId, ExprId>,
    /// The variables of the current segment whose values have been computed again.
    pub(super) recomputed: FxHashMap<ExprId, RecomputedValue>,
    /// The adjoints of variables that are wanted and not parameters.
    kept: FxHashMap<ExprId, Option<ExprId>>,
}

impl<'e, 'b> Differentiator<'e, 'b> {
    /// Returns the state before the walk of a function, which is differentiated by its `wanted`
    /// values. They are active in the flow.
    pub(super) fn new(
        editor: &'e mut Editor<'b>,
        functions: Functions<'e>,
        pullbacks: &'e mut Pullbacks,
        wanted: &[WantedValue],
        target: Target,
        flow: Flow,
    ) -> Differentiator<'e, 'b> {
        let adjoints = editor.body.side_table(None);
        let kept = wanted.iter().filter(|value| !value.is_param).map(|value| (value.var, None)).collect();
        Differentiator {
            editor,
            functions,
            pullbacks,
            target,
            flow,
            types: AdjointTypes::default(),
            store: Vec::new(),
            adjoints,
            reached: Vec::new(),
            list: LetList::new(),
            zeros: FxHashMap::default(),
            recomputed: FxHashMap::default(),
            kept,
        }
    }

    /// Makes the function return its result and the adjoints of the wanted values.
    pub(super) fn write_adjoint(mut self, wanted: &[WantedValue]) -> Result<(), PassError> {
        let (end, records) = self.forward()?;
        let tail = self.target.tail;
        let seed = self.seed();
        self.contribute(tail, seed).map_err(type_error)?;
        self.backward_by_segments(records)?;
        let mut results = Vec::with_capacity(wanted.len());
        for value in wanted {
            let result = match self.kept.get(&value.var) {
                Some(&Some(kept)) => kept,
                // A variable that the walk has not reached has zeros.
                _ => {
                    let adjoint = self.adjoints[value.var];
                    let ty = self.editor.body.ty(value.var);
                    self.make(adjoint, ty, value.var).map_err(type_error)?
                }
            };
            results.push(result);
        }
        let results = self.editor.tuple(&results);
        let results = self.bind(None, results);
        let pair = self.editor.tuple(&[tail, results]);
        let list = std::mem::take(&mut self.list);
        let block = list.finish(self.editor, pair);
        end.set(self.editor.body, block);
        Ok(())
    }

    /// Returns the adjoint of the tail: 1 for the scalar that is differentiated.
    fn seed(&mut self) -> AdjointId {
        let Target { tail, field } = self.target;
        let cx = &*self.editor.cx;
        let ty = self.editor.body.ty(tail);
        let scalar = field.map_or(ty, |field| cx.types.as_tuple(ty).unwrap_or_default()[field]);
        let dtype = cx.types.as_tensor(scalar).map_or(DType::Float32, |tensor| tensor.dtype);
        let one = Number::Float(1.0).scalar(dtype).expect("a float type has a one");
        let one = self.editor.literal(one);
        let one = self.store(AdjointValue::value(one));
        match field {
            None => one,
            Some(field) => self.store(AdjointValue::field(field as u32, one)),
        }
    }

    /// Goes through the bindings of a block from the last to the first, and adds up the adjoints of
    /// the values that they use.
    pub(super) fn backward(&mut self, records: Vec<DifferentiatedBinding>) -> Result<(), PassError> {
        for record in records.into_iter().rev() {
            let var = record.var.expr();
            if self.kept.contains_key(&var) {
                self.keep_adjoint(var).map_err(type_error)?;
            }
            let Some(adjoint) = self.take_adjoint(var) else { continue };
            self.backward_at(record, adjoint).map_err(|error| self.at_binding(error, var))?;
        }
        Ok(())
    }

    /// Records the adjoint of a variable, which is complete.
    fn keep_adjoint(&mut self, var: ExprId) -> Result<(), TypeError> {
        let adjoint = self.take_adjoint(var);
        let ty = self.editor.body.ty(var);
        let made = self.make(adjoint, ty, var)?;
        self.kept.insert(var, Some(made));
        if adjoint.is_some() {
            let again = self.store(AdjointValue::value(made));
            self.adjoints.set(var, Some(again));
        }
        Ok(())
    }

    /// Adds the adjoints of the values that a binding uses, given that of its variable.
    fn backward_at(&mut self, record: DifferentiatedBinding, adjoint: AdjointId) -> Result<(), PassError> {
        let DifferentiatedBinding { var, value, pullback } = record;
        if let Some(pullback) = pullback {
            return self.call_back(var, *pullback, adjoint).map_err(type_error);
        }
        match self.editor.body.expr(value) {
            Expr::CallOp { .. } => return self.backward_call(var, value, adjoint),
            Expr::Tuple(fields) => {
                let adjoints = self.take_fields(adjoint).map_err(type_error)?;
                for (i, adjoint) in adjoints {
                    let field = self.editor.body.operand(fields, i as usize);
                    self.contribute(field, adjoint).map_err(type_error)?;
                }
            }
            Expr::Proj { tuple, index } => self.contribute_field(tuple, index, adjoint).map_err(type_error)?,
            Expr::Var { .. } => self.contribute(value, adjoint).map_err(type_error)?,
            _ => {}
        }
        Ok(())
    }

    /// Calls the fn of a call or an If with the adjoint of its result.
    fn call_back(&mut self, var: VarId, pullback: PullbackUse, adjoint: AdjointId) -> Result<(), TypeError> {
        let ty = self.editor.body.ty(var.expr());
        let argument = self.make(Some(adjoint), ty, var.expr())?;
        // The type of the variable may be less specific than that of the call.
        let back = self.editor.cx.types.as_function(self.editor.body.ty(pullback.back));
        let parameter = back.and_then(|back| back.params.first().copied());
        let argument = parameter.map_or(Ok(argument), |ty| self.conform(argument, ty))?;
        let no_attrs = self.editor.cx.attrs.empty();
        let call = self.editor.call(pullback.back, &[argument], no_attrs)?;
        let results = self.bind(None, call);
        for (i, value) in (0..).zip(pullback.values) {
            if self.wants(value) {
                let result = self.editor.proj(results, i)?;
                let name = self.adjoint_name(value);
                let result = self.bind(name, result);
                let adjoint = self.store(AdjointValue::value(result));
                self.contribute(value, adjoint)?;
            }
        }
        Ok(())
    }

    /// Writes the adjoints of the operands of a call of an operator.
    fn backward_call(&mut self, var: VarId, call: ExprId, adjoint: AdjointId) -> Result<(), PassError> {
        let operands = self.editor.body.operands_of(call).to_vec();
        if let Some(&hiding) = operands.iter().find(|&&operand| self.hides_derivatives(operand)) {
            return Err(self.hidden_derivative(call, hiding));
        }
        let wanted: Vec<bool> = operands.iter().map(|&operand| self.wants(operand)).collect();
        if !wanted.contains(&true) {
            return Ok(());
        }
        let ty = self.editor.body.ty(call);
        let result = match self.editor.cx.types.as_tuple(ty).map(<[_]>::to_vec) {
            None => ResultAdjoint::Tensor(self.make(Some(adjoint), ty, var.expr()).map_err(type_error)?),
            Some(types) => {
                let mut made = vec![None; types.len()];
                for (i, field) in self.take_fields(adjoint).map_err(type_error)? {
                    let i = i as usize;
                    made[i] = Some(self.make(Some(field), types[i], var.expr()).map_err(type_error)?);
                }
                ResultAdjoint::Fields(made)
            }
        };
        let (cx, body) = (&*self.editor.cx, &*self.editor.body);
        // The rule uses the values of the segment.
        let again = self.recomputed.get(&var.expr());
        let (var, call) = again.map_or((var, call), |again| (again.var, again.value));
        let is_wanted = |i: usize| wanted.get(i).copied().unwrap_or(false);
        let rule = Adjoint::of(cx, body, call, var, result, is_wanted).map_err(|error| self.no_adjoint(call, error))?;
        let names: Vec<_> = operands.iter().map(|&operand| self.adjoint_name(operand)).collect();
        let list = &mut self.list;
        let adjoints = rule.write(self.editor, |editor, operand, value| {
            list.bind(editor, operand.and_then(|operand| names[operand]), value)
        });
        for (operand, adjoint) in adjoints.map_err(type_error)? {
            let adjoint = self.store(AdjointValue::value(adjoint));
            self.contribute(operands[operand], adjoint).map_err(type_error)?;
        }
        Ok(())
    }

    /// Returns true if an operand depends on a value that is differentiated by, and has a part
    /// without an adjoint through which a derivative may flow.
    fn hides_derivatives(&mut self, operand: ExprId) -> bool {
        let ty = self.editor.body.ty(operand);
        self.flow.is_active(operand) && self.types.hides_derivatives(self.editor.cx, ty)
    }

    // ---- Errors ----

    fn hidden_derivative(&self, call: ExprId, operand: ExprId) -> PassError {
        let (cx, body) = (&*self.editor.cx, &*self.editor.body);
        let ty = cx.type_text(body.ty(operand));
        let operator = body.call_of(call).map_or("", |call| &*cx.ops.get(call.op).name);
        let operand = body.binding_name(cx, operand).map_or("an operand".to_string(), |name| format!("`%{name}`"));
        PassError::new(format!("the derivative of `{operator}` by {operand} is not known: its type is {ty}"))
            .with_help("state a type of float16, bfloat16, float32 or float64 where the value is bound")
    }

    fn no_adjoint(&self, call: ExprId, error: AdjointError) -> PassError {
        let cx = &*self.editor.cx;
        let name = self.editor.body.call_of(call).map_or("", |call| &*cx.ops.get(call.op).name);
        match error {
            AdjointError::NoRule => PassError::new(format!("`{name}` has no derivative")).with_help(
                "list parameters that do not flow through it in `require_grads`, or give its row an `adjoint`",
            ),
            AdjointError::Refused(reason) => {
                let reason = reason
                    .unwrap_or("its rule needs a rank or an extent that is not known: state it with `match_cast`");
                PassError::new(format!("the derivative of this call of `{name}` is not known")).with_help(reason)
            }
            AdjointError::Wrong(error) => type_error(error),
        }
    }

    /// Returns an error with the name of a variable.
    pub(super) fn at_binding(&self, error: PassError, var: ExprId) -> PassError {
        let name = self.editor.body.binding_name(self.editor.cx, var);
        match name {
            Some(name) if error.binding().is_none() => error.on_binding(name),
            _ => error,
        }
    }
}

/// Returns the error of a step that does not fit.
pub(super) fn type_error(error: TypeError) -> PassError {
    RewriteError::Type(error).into()
}

/// The end of a walk forward: the place of the tail, and the bindings to go back through.
pub(super) type ForwardEnd = (Link, Vec<DifferentiatedBinding>);
