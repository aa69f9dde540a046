//! Adjoints: the rules of reverse-mode differentiation, one for each operator.
//!
//! The adjoint of a value is the derivative of a scalar by each element of the value. A row may
//! have a rule ([`OpDef::adjoint`](crate::OpDef::adjoint)) that writes the adjoints of the operands
//! of a call, from the adjoint of its result, as steps: calls of other operators. Such a rule has
//! the form of a decomposition ([`Decomposer`]), and an [`AdjointWriter`] has all methods of a
//! decomposer.

use std::ops::{Deref, DerefMut};

use smallvec::{SmallVec, smallvec};

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{ExprId, TypeId};
use crate::core::expr::VarId;
use crate::ops::catch_panic::catch_panic;
use crate::ops::decomposition::{Decomposer, DecompositionPart, Step};
use crate::ops::op::TypeError;
use crate::tables::types::TensorType;

/// A rule that writes the adjoints of the operands of a call. It gives one for each operand on
/// which the result depends in a differentiable way ([`AdjointWriter::give`]), and may leave out
/// those that are not wanted ([`AdjointWriter::wants`]). It returns `None` if it cannot write the
/// adjoints of this call, for example because a rank is not known, or for a reason that it states
/// ([`AdjointWriter::refuse`]).
///
/// ```
/// use anfora_ir::AdjointWriter;
///
/// /// `dx = dy * y`
/// fn exp(a: &mut AdjointWriter<'_>) -> Option<()> {
///     let (adjoint, result) = (a.adjoint()?, a.result());
///     let product = a.op("multiply", &[adjoint, result]);
///     a.give(0, product);
///     Some(())
/// }
/// ```
pub type AdjointRule = fn(&mut AdjointWriter<'_>) -> Option<()>;

/// The adjoint of the result of a call.
#[derive(Clone, Debug)]
pub enum ResultAdjoint {
    /// The adjoint of a tensor.
    Tensor(ExprId),
    /// The adjoints of the fields of a tuple; `None` for a field on which nothing depends.
    Fields(Vec<Option<ExprId>>),
}

/// A call, the adjoint of its result, and the steps that a rule has written. All methods of
/// [`Decomposer`] are available.
pub struct AdjointWriter<'a> {
    steps: Decomposer<'a>,
    result: DecompositionPart,
    result_type: TypeId,
    adjoint: ResultAdjoint,
    is_wanted: SmallVec<[bool; 4]>,
    given: SmallVec<[(usize, DecompositionPart); 2]>,
    refusal: Option<&'static str>,
}

impl<'a> Deref for AdjointWriter<'a> {
    type Target = Decomposer<'a>;
    fn deref(&self) -> &Decomposer<'a> {
        &self.steps
    }
}

impl<'a> DerefMut for AdjointWriter<'a> {
    fn deref_mut(&mut self) -> &mut Decomposer<'a> {
        &mut self.steps
    }
}

impl<'a> AdjointWriter<'a> {
    /// Returns the result of the call.
    pub fn result(&self) -> DecompositionPart {
        self.result
    }

    /// Returns the type of the result; `None` if it is no tensor.
    pub fn result_tensor(&self) -> Option<&'a TensorType> {
        self.cx().types.as_tensor(self.result_type)
    }

    /// Returns the adjoint of the result; `None` if it is a tuple.
    pub fn adjoint(&mut self) -> Option<DecompositionPart> {
        match self.adjoint {
            ResultAdjoint::Tensor(adjoint) => Some(self.expression(adjoint)),
            ResultAdjoint::Fields(_) => None,
        }
    }

    /// Returns the adjoint of a field of the result, a tuple; `None` if nothing depends on that.
    pub fn field_adjoint(&mut self, field: usize) -> Option<DecompositionPart> {
        match &self.adjoint {
            ResultAdjoint::Tensor(_) => None,
            ResultAdjoint::Fields(fields) => {
                let adjoint = (*fields.get(field)?)?;
                Some(self.expression(adjoint))
            }
        }
    }

    /// Returns the number of fields of the result; 0 if it is no tuple.
    ///
    /// Cost: one entry.
    pub fn field_count(&self) -> usize {
        match &self.adjoint {
            ResultAdjoint::Tensor(_) => 0,
            ResultAdjoint::Fields(fields) => fields.len(),
        }
    }

    /// Returns true if the adjoint of an operand is wanted: the operand depends on a value that is
    /// differentiated by.
    ///
    /// Cost: one entry.
    pub fn wants(&self, operand: usize) -> bool {
        self.is_wanted.get(operand).copied().unwrap_or(false)
    }

    /// Gives the adjoint of an operand, which has its element type and shape. It is ignored if it
    /// is not wanted.
    ///
    /// Cost: one entry.
    pub fn give(&mut self, operand: usize, adjoint: DecompositionPart) {
        if self.wants(operand) {
            self.given.push((operand, adjoint));
        }
    }

    /// Returns `None`, which the rule returns in turn. `reason` is the help for the user: a
    /// sentence without a full stop that states what the rule needs.
    ///
    /// Cost: one entry.
    pub fn refuse<T>(&mut self, reason: &'static str) -> Option<T> {
        self.refusal = Some(reason);
        None
    }
}

/// The reason for which a call has no adjoint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AdjointError {
    /// The call is none of an operator with a rule.
    #[error("the operator has no adjoint")]
    NoRule,
    /// The rule cannot write the adjoints of this call, for the reason that it states.
    #[error("the rule does not apply to the call")]
    Refused(Option<&'static str>),
    /// The rule is wrong.
    #[error(transparent)]
    Wrong(#[from] TypeError),
}

/// The adjoints of the operands of a call: the steps, and the parts that are the adjoints.
#[derive(Clone, Debug)]
pub struct Adjoint {
    pub(super) steps: Vec<Step>,
    pub(super) given: SmallVec<[(usize, DecompositionPart); 2]>,
    pub(super) call: ExprId,
    pub(super) operator: Box<str>,
}

impl Adjoint {
    /// Returns the adjoints of the operands of the call `call` in a body, whose value is bound to
    /// `result`. `is_wanted` returns true for the number of an operand that needs an adjoint.
    ///
    /// Cost: one loop.
    ///
    /// # Errors
    /// If `call` is no call of an operator with a row, if the row has no rule, if the rule cannot
    /// write the adjoints of this call, or if it panics.
    pub fn of(
        cx: &Context,
        body: &Body,
        call: ExprId,
        result: VarId,
        adjoint: ResultAdjoint,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Result<Adjoint, AdjointError> {
        let mut steps = Decomposer::of(cx, body, call).ok_or(AdjointError::NoRule)?;
        let row = steps.row();
        let rule = row.adjoint.ok_or(AdjointError::NoRule)?;
        let wanted = (0..steps.operand_count()).map(|i| steps.is_given(i) && is_wanted(i)).collect();
        let mut writer = AdjointWriter {
            result: steps.expression(result.expr()),
            result_type: body.ty(call),
            steps,
            adjoint,
            is_wanted: wanted,
            given: smallvec![],
            refusal: None,
        };
        let written = catch_panic(|| rule(&mut writer))
            .map_err(|text| TypeError::new(format!("its adjoint panics: {text}")).of_op(&*row.name))?;
        let AdjointWriter { steps, given, refusal, .. } = writer;
        let Some(()) = written else { return Err(AdjointError::Refused(refusal)) };
        Ok(Adjoint { steps: steps.into_steps(), given, call, operator: (&*row.name).into() })
    }
}

crate::brief_debug! { AdjointWriter<'_> { field_count }; }
