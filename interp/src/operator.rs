//! Calls of operators: by their kernels, or by the machine for operators that are not functions of
//! tensors.

use anfora_ir::{
    Attr, AttrKind, AttrReader, AttrsId, Context, DType, Diagnostic, Diagnostics, ExprId, IntoDiagnostics, KernelCall,
    Literal, OpDef, OpId, OpPurity, Operand, Shape, TypeId, element_count, infer_op,
};
use anfora_ops::{draw_normal, draw_uniform};
use smallvec::SmallVec;

use crate::effect::Effect;
use crate::error::EvalErrorKind;
use crate::machine::{Machine, State, Step, ill_formed};
use crate::value::{Entry, Ref, ValueId};

/// The most elements of a constant that type rules see.
const SHOWN_ELEMENTS: usize = 1 << 12;

/// The weight of a [`Scratch`] from which on the next call replaces it.
const MAX_SCRATCH: usize = 1 << 18;
/// The weight of an operand besides its elements.
const OPERAND_WEIGHT: usize = 16;

/// Tables for the types of calls on actual operands. They start as a copy of the module's tables,
/// and are replaced by a new copy when they grow too large, such as in a loop.
pub(crate) struct Scratch {
    cx: Context,
    /// The number of elements and operands that were added.
    weight: usize,
}

/// The error for a call of an operator on constants that has no result.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// The operator is impure.
    #[error("the operator is impure")]
    Impure,
    /// The operator has no kernel.
    #[error("the operator has no kernel")]
    NoKernel,
    /// An attribute is computed from symbolic dimensions, which have no values yet.
    #[error("a symbolic dimension is not known")]
    Symbolic,
    /// Neither the type nor the operator's row determines the size of the result.
    #[error("the size of the result is not known")]
    UnknownSize,
    /// The result is larger than allowed.
    #[error("the result takes {bytes} bytes, and {allowed} are allowed")]
    TooLarge {
        /// The bytes of the result; `usize::MAX` if they overflow.
        bytes: usize,
        /// The bytes allowed.
        allowed: usize,
    },
    /// The kernel takes more steps than allowed.
    #[error("the kernel takes {steps} steps, and {allowed} are allowed")]
    TooLong {
        /// The steps, as [`KernelCall::steps`] counts them.
        steps: u64,
        /// The steps allowed.
        allowed: u64,
    },
    /// The kernel fails on these operands.
    #[error(transparent)]
    Kernel(#[from] anfora_ir::KernelError),
}

impl IntoDiagnostics for OpError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

/// The resources that the evaluation of one call may use.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OpLimits {
    /// The bytes of the results. A splat takes one element.
    pub bytes: usize,
    /// The steps of the kernel, as [`KernelCall::steps`] counts them.
    pub steps: u64,
}

/// The outcome of a call of an operator on constants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Evaluated {
    /// The result, or the fields of the tuple that is the result. An error if the operator cannot
    /// be evaluated, the call would exceed the limits, the operator fails, or the kernel is faulty
    /// ([`KernelCall::evaluate`]).
    pub results: Result<Vec<Literal>, OpError>,
    /// The steps of the kernel, as [`KernelCall::steps`] counts them, even if it failed; 0 if it
    /// did not run.
    pub steps: u64,
}

/// Evaluates one call of a pure operator on constants. `None` stands for an omitted operand, and
/// `ty` is the type of the call. The call fails if it would exceed `limits`.
///
/// Cost: that of the kernel.
pub fn evaluate_op(
    cx: &Context,
    op: OpId,
    attrs: AttrsId,
    operands: &[Option<&Literal>],
    ty: TypeId,
    limits: OpLimits,
) -> Evaluated {
    let call = KernelCall { operands, attrs: AttrReader { cx, op, attrs }, ty };
    match allowed_steps(&call, limits) {
        Ok(steps) => Evaluated { results: evaluate_within(&call, limits.bytes), steps },
        Err(why) => Evaluated { results: Err(why), steps: 0 },
    }
}

/// Returns the steps of a call's kernel.
///
/// # Errors
/// If it cannot be evaluated, or would take more than `limits` allow.
fn allowed_steps(call: &KernelCall<'_>, limits: OpLimits) -> Result<u64, OpError> {
    let AttrReader { cx, op, attrs } = call.attrs;
    let row = cx.ops.get(op);
    if row.purity == OpPurity::Impure {
        return Err(OpError::Impure);
    }
    if row.kernel.is_none() {
        return Err(OpError::NoKernel);
    }
    if has_shape_attr(row) && !has_constant_shapes(cx, attrs) {
        return Err(OpError::Symbolic);
    }
    let bytes = row.result_bytes(call).ok_or(OpError::UnknownSize)?;
    if bytes > limits.bytes && !row.gives_splat(call.operands) {
        return Err(OpError::TooLarge { bytes, allowed: limits.bytes });
    }
    match call.steps() {
        steps if steps > limits.steps => Err(OpError::TooLong { steps, allowed: limits.steps }),
        steps => Ok(steps),
    }
}

/// Runs the kernel of a call.
///
/// # Errors
/// If it fails, or its results take more bytes than allowed.
fn evaluate_within(call: &KernelCall<'_>, allowed: usize) -> Result<Vec<Literal>, OpError> {
    let results = call.evaluate()?;
    match results.iter().fold(0usize, |sum, l| sum.saturating_add(l.stored_bytes())) {
        bytes if bytes > allowed => Err(OpError::TooLarge { bytes, allowed }),
        _ => Ok(results),
    }
}

/// Returns true if an attribute of the operator lists extents.
fn has_shape_attr(row: &OpDef) -> bool {
    row.attrs.iter().any(|attr| attr.kind == AttrKind::Shape)
}

/// Returns true if the extents that attributes list are all constants.
fn has_constant_shapes(cx: &Context, attrs: AttrsId) -> bool {
    cx.attrs.list(attrs).iter().all(|&(_, value)| match cx.attrs.get(value) {
        Attr::Shape(dims) => dims.iter().all(|&d| cx.types.dims.as_constant(d).is_some()),
        _ => true,
    })
}

impl Machine<'_> {
    /// Returns the value of a call whose operands are on the stack from `base` on.
    pub(crate) fn call_op(&mut self, id: ExprId, op: OpId, attrs: AttrsId, base: usize) -> Step<Ref> {
        // The machine itself evaluates some operators without a kernel or with effects.
        let row = self.cx.ops.get(op);
        let this = Some(op);
        if row.kernel.is_none() || row.purity == OpPurity::Impure {
            if this == self.own.make_closure {
                return self.make_closure(base);
            } else if this == self.own.match_cast {
                return self.match_cast(attrs, base);
            } else if this == self.own.print {
                let text = AttrReader { cx: self.cx, op, attrs }.str("format").unwrap_or_default().to_string();
                self.record(op, text, base);
                return self.insert(Entry::Tuple(Box::new([])));
            } else if this == self.own.assert {
                return self.assert(op, attrs, base);
            } else if this == self.own.uniform || this == self.own.normal {
                return self.draw(op, attrs);
            }
        }
        if row.kernel.is_none() {
            return Err(EvalErrorKind::NoKernel(row.name.to_string()));
        }
        if row.purity == OpPurity::Impure {
            self.record(op, String::new(), base);
        }
        let failed = |message: String| EvalErrorKind::Operator { op: row.name.to_string(), message };

        // Discard the types that earlier calls made if they are many.
        if self.scratch.as_ref().is_some_and(|scratch| scratch.weight >= MAX_SCRATCH) {
            self.scratch = None;
        }
        // Find the size of the result by the static type.
        let stated = self.body().ty(id);
        let (is_splat, mut size) = {
            let operands = self.operand_tensors(base)?;
            let call = KernelCall { operands: &operands, attrs: AttrReader { cx: self.cx, op, attrs }, ty: stated };
            (row.gives_splat(&operands), row.result_bytes(&call))
        };
        let mut ty = stated;
        // If the static type does not determine the size of the result, the type is inferred again
        // from the actual operands.
        let concrete = size.is_none() && (!is_splat || self.cx.types.is_symbolic(stated));
        if concrete {
            ty = self.concrete_type(op, attrs, stated, base).map_err(failed)?;
            let cx = self.scratch.as_ref().map_or(self.cx, |scratch| &scratch.cx);
            let operands = self.operand_tensors(base)?;
            size = row.result_bytes(&KernelCall { operands: &operands, attrs: AttrReader { cx, op, attrs }, ty });
        }
        // Check the limit of memory.
        if !is_splat {
            match size {
                Some(usize::MAX) => return Err(self.out_of_memory()),
                Some(bytes) => self.reserve(bytes, State::Eval(id))?,
                None => return Err(failed("the size of the result is not known".into())),
            }
        }
        // Put the extents into attributes that are shapes.
        let bound = if has_shape_attr(row) && !has_constant_shapes(self.cx, attrs) {
            Some(self.bind_shapes(attrs).map_err(failed)?)
        } else {
            None
        };
        let cx = match &self.scratch {
            Some(scratch) if concrete || bound.is_some() => &scratch.cx,
            _ => self.cx,
        };
        let attrs = bound.unwrap_or(attrs);
        // Check the limit of work, and run the kernel.
        let (steps, results) = {
            let operands = self.operand_tensors(base)?;
            let call = KernelCall { operands: &operands, attrs: AttrReader { cx, op, attrs }, ty };
            let steps = self.work.saturating_add(call.steps());
            if steps > self.limits.work {
                return Err(EvalErrorKind::Work(self.limits.work));
            }
            (steps, call.evaluate())
        };
        self.work = steps;
        self.insert_results(id, results.map_err(|e| failed(e.message))?)
    }

    /// Returns attributes in which the extents are constants, evaluated in the current activation.
    /// They are in the tables of [`Machine::scratch`], which exist afterwards.
    fn bind_shapes(&mut self, attrs: AttrsId) -> Result<AttrsId, String> {
        let mut scratch = self.scratch.take().unwrap_or_else(|| self.new_scratch());
        let mut list = self.cx.attrs.list(attrs).to_vec();
        let mut failed = None;
        for (_, value) in &mut list {
            let Attr::Shape(dims) = self.cx.attrs.get(*value) else { continue };
            scratch.weight += OPERAND_WEIGHT + dims.len();
            let mut extents = Vec::with_capacity(dims.len());
            for &dim in dims {
                match self.extent(dim).and_then(|e| i64::try_from(e).ok()) {
                    Some(extent) => extents.push(scratch.cx.types.dims.constant(extent)),
                    None => failed = Some(format!("its extent {} is not known", self.cx.dim_text(dim))),
                }
            }
            *value = scratch.cx.attr(Attr::Shape(extents.into()));
        }
        let bound = scratch.cx.attrs(&list);
        self.scratch = Some(scratch);
        failed.map_or(Ok(bound), Err)
    }

    fn new_scratch(&self) -> Box<Scratch> {
        Box::new(Scratch { cx: self.cx.clone(), weight: 0 })
    }

    /// Returns the operands from `base` on in the form that a kernel takes.
    fn operand_tensors(&self, base: usize) -> Step<SmallVec<[Option<&Literal>; 8]>> {
        self.operands[base..]
            .iter()
            .map(|&value| match self.tensor(value) {
                Some(literal) => Ok(Some(literal)),
                None if value == Ref::ABSENT => Ok(None),
                None => ill_formed("an operand is not a tensor"),
            })
            .collect()
    }

    /// Returns the type of a call on the actual operands.
    fn concrete_type(&mut self, op: OpId, attrs: AttrsId, stated: TypeId, base: usize) -> Result<TypeId, String> {
        let mut scratch = self.scratch.take().unwrap_or_else(|| self.new_scratch());
        let result = self.concrete_type_in(&mut scratch, op, attrs, stated, base);
        self.scratch = Some(scratch);
        result
    }

    fn concrete_type_in(
        &self,
        Scratch { cx: scratch, weight }: &mut Scratch,
        op: OpId,
        attrs: AttrsId,
        stated: TypeId,
        base: usize,
    ) -> Result<TypeId, String> {
        *weight += OPERAND_WEIGHT;
        // The values of symbols may already make the type static.
        let mut symbols: SmallVec<[(anfora_ir::SymbolId, i64); 4]> = SmallVec::new();
        self.cx.types.for_each_symbol(stated, |dim| {
            if let anfora_ir::Dim::Symbol(s) = *self.cx.types.dims.get(dim)
                && let Some(extent) = self.symbol(s)
            {
                symbols.push((s, extent));
            }
        });
        let constants: SmallVec<[(anfora_ir::SymbolId, anfora_ir::DimId); 4]> =
            symbols.iter().map(|&(s, extent)| (s, scratch.types.dims.constant(extent))).collect();
        let ty = scratch.types.substitute(stated, |s| constants.iter().find(|(t, _)| *t == s).map(|&(_, d)| d));
        if scratch.types.static_bytes(ty).is_some() {
            return Ok(ty);
        }
        let mut operands: SmallVec<[Operand; 8]> = SmallVec::new();
        for &value in &self.operands[base..] {
            operands.push(match self.tensor(value) {
                None => Operand { ty: scratch.types.any(), literal: None, absent: true },
                Some(literal) => {
                    let ty = scratch.types.static_tensor(literal.dtype(), literal.shape());
                    let small = literal.element_count() <= SHOWN_ELEMENTS;
                    *weight += if small { OPERAND_WEIGHT + literal.element_count() } else { OPERAND_WEIGHT };
                    let literal = small.then(|| scratch.literals.intern(literal.clone()));
                    Operand { ty, literal, absent: false }
                }
            });
        }
        infer_op(scratch, op, &operands, attrs, stated).map_err(|e| e.to_string())
    }

    // ---- Operators that are not functions of tensors ----

    fn make_closure(&mut self, base: usize) -> Step<Ref> {
        let Some((&function, captures)) = self.operands[base..].split_first() else {
            return ill_formed("a closure of nothing");
        };
        if captures.is_empty() {
            return Ok(function);
        }
        let captures = captures.into();
        self.insert(Entry::Partial { function, captures })
    }

    fn match_cast(&mut self, attrs: AttrsId, base: usize) -> Step<Ref> {
        let Some(&value) = self.operands.get(base) else { return ill_formed("a match_cast of nothing") };
        let to = self.cx.find_attr(attrs, "to").map(|a| self.cx.attrs.get(a));
        let Some(&Attr::Type(to)) = to else { return ill_formed("a match_cast to no type") };
        self.bind_symbols(value, to)?;
        if self.is_of(value, to)? {
            return Ok(value);
        }
        Err(EvalErrorKind::MatchCast { wanted: self.wanted_text(to), found: self.found_text(value) })
    }

    fn assert(&mut self, op: OpId, attrs: AttrsId, base: usize) -> Step<Ref> {
        let holds = self.operands.get(base).and_then(|&v| self.tensor(v)).and_then(Literal::as_scalar::<bool>);
        let message = AttrReader { cx: self.cx, op, attrs }.str("message").unwrap_or_default();
        match holds {
            Some(true) => {
                self.record(op, message.to_string(), base);
                self.insert(Entry::Tuple(Box::new([])))
            }
            Some(false) => Err(EvalErrorKind::Assert(message.to_string())),
            None => ill_formed("an assertion of what is no rank-0 bool tensor"),
        }
    }

    fn draw(&mut self, op: OpId, attrs: AttrsId) -> Step<Ref> {
        let name = self.cx.ops.get(op).name.to_string();
        let failed = |message: String| EvalErrorKind::Operator { op: name.clone(), message };
        let reader = AttrReader { cx: self.cx, op, attrs };
        let dtype = reader.dtype("dtype").unwrap_or(DType::Float32);
        let Some(Attr::Shape(dims)) = reader.raw("shape") else { return ill_formed("a draw without a shape") };
        let shape: Option<Shape> = dims.iter().map(|&d| self.extent(d).and_then(|e| usize::try_from(e).ok())).collect();
        let shape = shape.ok_or_else(|| failed("the shape is not known, or negative".into()))?;
        let float = |name: &str| reader.float(name).unwrap_or_default();
        let bytes = element_count(&shape).and_then(|n| dtype.byte_len(n)).ok_or_else(|| self.out_of_memory())?;
        let uniform = Some(op) == self.own.uniform;
        let (first, second) = if uniform { (float("low"), float("high")) } else { (float("mean"), float("std")) };
        self.reserve(bytes, State::Give(Ref::ABSENT))?;
        let text = format!("{dtype}{:?}", shape.as_slice());
        self.record(op, text, self.operands.len());
        let drawn = match uniform {
            true => draw_uniform(&shape, dtype, first, second, &mut self.random),
            false => draw_normal(&shape, dtype, first, second, &mut self.random),
        };
        let literal = drawn.map_err(|e| failed(e.message))?;
        self.insert(Entry::Tensor(literal))
    }

    /// Appends an impure operator to the trace, with the operands from `base` on.
    fn record(&mut self, op: OpId, text: String, base: usize) {
        let operands: Vec<ValueId> = self.operands[base..].iter().map(|&o| ValueId::from_ref(o)).collect();
        let name = self.cx.ops.get(op).name.to_string();
        self.used += size_of::<Effect>() + name.len() + text.len() + operands.len() * 4;
        self.trace.push(Effect { op: name, text, operands });
    }
}
