//! Decompositions: calls of operators, written in other operators.
//!
//! A row may have a rule ([`OpDef::decomposition`](crate::OpDef::decomposition)) that writes a call
//! of its operator as steps: calls of other operators, tuples and projections. An operator with
//! such a rule is *composite*; the others are *primitive*.
//!
//! The rule reads the call through a [`Decomposer`] and makes no expressions. The same rule
//! therefore says whether a call can be written in other operators (for the invariant
//! `primitive-operators`), and how (for the pass DecomposeOps).

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{ExprId, TypeId};
use crate::ops::catch_panic::catch_panic;
use crate::ops::op::{AttrReader, TypeError};
use crate::ops::op_call::OpCall;
use crate::ops::op_def::OpDef;
use crate::tables::dtype::DType;
use crate::tables::literal::Literal;
use crate::tables::types::TensorType;
use crate::tables::value::{AttrValue, Number};

/// A rule that writes a call in other operators. It returns the part that is the result of the
/// call, or `None` if it cannot write this call, for example because a rank is not known.
///
/// ```
/// use anfora_ir::{Decomposer, DecompositionPart};
///
/// /// `x * tanh(softplus(x))`
/// fn mish(d: &mut Decomposer<'_>) -> Option<DecompositionPart> {
///     let x = d.operand(0)?;
///     let softplus = d.op("nn.softplus", &[x]);
///     let gate = d.op("tanh", &[softplus]);
///     Some(d.op("multiply", &[x, gate]))
/// }
/// ```
pub type DecompositionRule = fn(&mut Decomposer<'_>) -> Option<DecompositionPart>;

/// An operand of the call, a constant, or the result of a step, by number.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct DecompositionPart(pub(super) u32);

impl DecompositionPart {
    /// Returns the number of the step.
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a decomposition. It only uses parts before it.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// An expression of the program.
    Given(ExprId),
    Constant(Literal),
    Omitted,
    Call {
        op: &'static str,
        operands: Parts,
        attrs: SmallVec<[(&'static str, AttrValue); 2]>,
    },
    Tuple(Parts),
    Field(DecompositionPart, u32),
}

pub(super) type Parts = SmallVec<[DecompositionPart; 3]>;

impl Step {
    /// Returns the parts that the step uses.
    pub(super) fn uses(&self) -> &[DecompositionPart] {
        match self {
            Step::Given(_) | Step::Constant(_) | Step::Omitted => &[],
            Step::Call { operands, .. } => operands,
            Step::Tuple(fields) => fields,
            Step::Field(of, _) => std::slice::from_ref(of),
        }
    }
}

/// A call that a rule reads, and the steps that the rule has written.
pub struct Decomposer<'a> {
    cx: &'a Context,
    body: &'a Body,
    call: OpCall<'a>,
    ty: TypeId,
    steps: Vec<Step>,
}

impl<'a> Decomposer<'a> {
    /// Returns a decomposer of a call; `None` if `call` is no call of an operator with a row.
    pub(crate) fn of(cx: &'a Context, body: &'a Body, call: ExprId) -> Option<Decomposer<'a>> {
        let read = body.call_of(call).filter(|read| !cx.ops.is_opaque(read.op))?;
        Some(Decomposer { cx, body, call: read, ty: body.ty(call), steps: Vec::new() })
    }

    /// Returns the row of the operator.
    pub(crate) fn row(&self) -> &'a OpDef {
        self.cx.ops.get(self.call.op)
    }

    /// Returns the steps that the rule has written.
    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    /// Returns an expression of the program as a part.
    pub(crate) fn expression(&mut self, id: ExprId) -> DecompositionPart {
        self.push(Step::Given(id))
    }

    // ---- The call ----

    /// Returns the tables of the module.
    pub fn cx(&self) -> &'a Context {
        self.cx
    }

    /// Returns the attributes of the call, with the defaults of the row.
    pub fn attrs(&self) -> AttrReader<'a> {
        self.call.attrs(self.cx)
    }

    /// Returns the type of the call.
    pub fn result_type(&self) -> TypeId {
        self.ty
    }

    /// Returns the number of operands, omitted ones included.
    pub fn operand_count(&self) -> usize {
        self.call.operands.len()
    }

    /// Returns true if an operand is given.
    pub fn is_given(&self, i: usize) -> bool {
        self.given(i).is_some()
    }

    fn given(&self, i: usize) -> Option<ExprId> {
        let operand = *self.call.operands.get(i)?;
        (self.body.expr(operand) != crate::core::expr::Expr::None).then_some(operand)
    }

    /// Returns the type of an operand that is a tensor; `None` if it is omitted or no tensor.
    pub fn tensor(&self, i: usize) -> Option<&'a TensorType> {
        self.cx.types.as_tensor(self.body.ty(self.given(i)?))
    }

    /// Returns the element type of an operand.
    pub fn dtype(&self, i: usize) -> Option<DType> {
        Some(self.tensor(i)?.dtype)
    }

    /// Returns the rank of an operand; `None` if it is not known.
    pub fn rank(&self, i: usize) -> Option<usize> {
        Some(self.tensor(i)?.shape.as_ref()?.len())
    }

    /// Returns an extent of an operand; `None` if it is not a known number.
    pub fn extent(&self, i: usize, axis: usize) -> Option<i64> {
        self.cx.types.dims.as_constant(*self.tensor(i)?.shape.as_ref()?.get(axis)?)
    }

    /// Returns the value of an operand that is a constant.
    pub fn literal(&self, i: usize) -> Option<&'a Literal> {
        Some(self.cx.literals.get(self.body.as_literal(self.given(i)?)?))
    }

    // ---- Parts ----

    fn push(&mut self, step: Step) -> DecompositionPart {
        let part = DecompositionPart(self.steps.len() as u32);
        self.steps.push(step);
        part
    }

    /// Returns an operand of the call; `None` if it is omitted.
    pub fn operand(&mut self, i: usize) -> Option<DecompositionPart> {
        let operand = self.given(i)?;
        Some(self.push(Step::Given(operand)))
    }

    /// Returns `none`, for an omitted operand of a step.
    pub fn none(&mut self) -> DecompositionPart {
        self.push(Step::Omitted)
    }

    /// Returns a constant.
    pub fn constant(&mut self, literal: Literal) -> DecompositionPart {
        self.push(Step::Constant(literal))
    }

    /// Returns a scalar of an element type; `None` if the element type cannot represent the number.
    /// A float is rounded to the nearest number of the element type.
    pub fn number(&mut self, number: impl Into<Number>, dtype: DType) -> Option<DecompositionPart> {
        let literal = number.into().scalar(dtype)?;
        Some(self.constant(literal))
    }

    /// Returns a list of int64 numbers, such as the operand `shape` of `reshape`.
    pub fn ints(&mut self, list: &[i64]) -> DecompositionPart {
        let literal = Literal::from_elements(&[list.len()], list).expect("there is an element for each place");
        self.constant(literal)
    }

    /// Adds a call of an operator with default attributes, and returns its result.
    ///
    /// Cost: one node.
    pub fn op(&mut self, op: &'static str, operands: &[DecompositionPart]) -> DecompositionPart {
        self.op_with(op, operands, &[])
    }

    /// Adds a call of an operator, and returns its result.
    ///
    /// Cost: one node.
    pub fn op_with(
        &mut self,
        op: &'static str,
        operands: &[DecompositionPart],
        attrs: &[(&'static str, AttrValue)],
    ) -> DecompositionPart {
        self.push(Step::Call { op, operands: operands.into(), attrs: attrs.into() })
    }

    /// Adds a call of the operator of this call, with its attributes, on other operands, and
    /// returns its result; `None` if the name of the operator was made at run time.
    pub fn same_op(&mut self, operands: &[DecompositionPart]) -> Option<DecompositionPart> {
        let std::borrow::Cow::Borrowed(op) = self.row().name else { return None };
        let given = |name| self.cx.find_attr(self.call.attrs, name).map(|value| (name, AttrValue::Interned(value)));
        let attrs = self.row().attrs.iter().filter_map(|attr| given(attr.name)).collect();
        Some(self.push(Step::Call { op, operands: operands.into(), attrs }))
    }

    /// Adds a tuple, and returns it.
    pub fn tuple(&mut self, fields: &[DecompositionPart]) -> DecompositionPart {
        self.push(Step::Tuple(fields.into()))
    }

    /// Adds the projection of a field of a tuple, and returns the field.
    pub fn field(&mut self, tuple: DecompositionPart, index: u32) -> DecompositionPart {
        self.push(Step::Field(tuple, index))
    }
}

/// A call written in other operators: the steps, and the part that is its result.
#[derive(Clone, Debug)]
pub struct Decomposition {
    pub(super) steps: Vec<Step>,
    pub(super) result: DecompositionPart,
    /// The name of the operator, for errors.
    pub(super) operator: Box<str>,
    pub(super) ty: TypeId,
}

impl Decomposition {
    /// Returns the decomposition of the call `call` in a body. Returns `None` if `call` is no call
    /// of an operator with a row, if the row has no rule, or if the rule cannot write this call.
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If the rule panics.
    pub fn of(cx: &Context, body: &Body, call: ExprId) -> Result<Option<Decomposition>, TypeError> {
        let Some(mut decomposer) = Decomposer::of(cx, body, call) else { return Ok(None) };
        let row = decomposer.row();
        let Some(rule) = row.decomposition else { return Ok(None) };
        let result = catch_panic(|| rule(&mut decomposer))
            .map_err(|text| TypeError::new(format!("its decomposition panics: {text}")).of_op(&*row.name))?;
        let written = |result| Decomposition {
            steps: decomposer.into_steps(),
            result,
            operator: (&*row.name).into(),
            ty: body.ty(call),
        };
        Ok(result.map(written))
    }
}

crate::brief_debug! { Decomposer<'_> { operand_count }; }
