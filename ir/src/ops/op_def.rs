//! The description of an operator: its row.

use std::borrow::Cow;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;
use crate::ops::adjoint::AdjointRule;
use crate::ops::catch_panic::catch_panic;
use crate::ops::decomposition::DecompositionRule;
use crate::ops::facts::{self, OpFacts};
use crate::ops::op::{
    AttrReader, ElementsRule, FusionRule, Kernel, KernelCall, KnownByType, SizeBound, StepsRule, TypeRule,
};
use crate::ops::op_kinds::{Arity, AttrDef, AttrDefault, FusionPattern, OpPurity, PrecisionPolicy, Splat};
use crate::ops::relayout::RelayoutRule;
use crate::tables::literal::Literal;

/// All that the passes need to know about an operator.
#[derive(Clone)]
pub struct OpDef {
    /// The name in the text format, such as `nn.conv2d`.
    pub name: Cow<'static, str>,
    /// A line that states the computation.
    pub doc: Cow<'static, str>,
    /// The number of operands.
    pub arity: Arity,
    /// The attributes.
    pub attrs: Cow<'static, [AttrDef]>,
    /// The rule for the type of the result.
    pub infer: TypeRule,
    /// The purity: impure if the evaluation can be observed.
    pub purity: OpPurity,
    /// The treatment by FuseOps.
    pub fusion: FusionPattern,
    /// The rule for the treatment of a call by FuseOps, if it depends on the attributes; see
    /// [`OpDef::fusion_of`].
    pub fusion_rule: Option<FusionRule>,
    /// The kernel, which evaluates the operator on constants; `None` for an operator that only
    /// compiled code can run.
    pub kernel: Option<Kernel>,
    /// True if the two operands may be exchanged without changing a bit of the result.
    pub commutative: bool,
    /// True if the evaluation may fail on operands of the right types. No pass may move such a call
    /// to a place where it would run although it did not run before.
    pub may_fail: bool,
    /// Pairs (result, operand): this result of the returned tuple is this operand. For a result
    /// that is not a tuple, the number of the result is 0.
    pub forwards: &'static [(u32, u32)],
    /// True if the elements of the result are those of the first operand in row-major order, under
    /// another shape. An implementation need not move them.
    pub relabels: bool,
    /// The operands whose elements determine the extents of the result. They may be left out if the
    /// row permits it. A call in which one of them is not a constant may fail, since no type rule
    /// has checked that operand.
    pub shape_operands: &'static [u32],
    /// An upper bound of the size of the results, for an operator whose type rule does not
    /// determine it even for constants.
    pub size_bound: Option<SizeBound>,
    /// The rule for the number of steps of the kernel, for operators that compute more, or less,
    /// than they read and write; see [`KernelCall::steps`].
    pub steps: Option<StepsRule>,
    /// The operands on which all results are splats, whatever their size.
    pub splat: Splat,
    /// The rule for the known elements of the results, for an operator with which shapes are
    /// computed.
    pub elements: Option<ElementsRule>,
    /// The rule for results that follow from the types of the operands, be the operands constants
    /// or not.
    pub known_by_type: Option<KnownByType>,
    /// The rule that writes a call in other operators; `None` for a primitive operator.
    pub decomposition: Option<DecompositionRule>,
    /// The treatment by ToMixedPrecision.
    pub precision: PrecisionPolicy,
    /// The rule that writes the adjoints of the operands of a call, for Gradient; `None` if there
    /// are none, or if they follow from the decomposition.
    pub adjoint: Option<AdjointRule>,
    /// The rule that writes a call for operands whose axes have another order; `None` if the
    /// operands must keep their order.
    pub relayout: Option<RelayoutRule>,
}

/// Prints the name and the number of operands.
impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpDef").field("name", &self.name).field("arity", &self.arity).finish_non_exhaustive()
    }
}

impl OpDef {
    /// Returns a pure operator without attributes and without a kernel, which is not fused and
    /// cannot fail. The methods below set its other properties.
    ///
    /// Cost: linear in the text.
    pub fn new(
        name: impl Into<Cow<'static, str>>,
        doc: impl Into<Cow<'static, str>>,
        arity: Arity,
        infer: TypeRule,
    ) -> OpDef {
        OpDef {
            name: name.into(),
            doc: doc.into(),
            arity,
            attrs: Cow::Borrowed(&[]),
            infer,
            purity: OpPurity::Pure,
            fusion: FusionPattern::Opaque,
            fusion_rule: None,
            kernel: None,
            commutative: false,
            may_fail: false,
            forwards: &[],
            relabels: false,
            shape_operands: &[],
            size_bound: None,
            steps: None,
            splat: Splat::Unknown,
            elements: None,
            known_by_type: None,
            decomposition: None,
            precision: PrecisionPolicy::Never,
            adjoint: None,
            relayout: None,
        }
    }

    /// Sets the attributes.
    #[must_use]
    pub fn attrs(self, attrs: impl Into<Cow<'static, [AttrDef]>>) -> OpDef {
        OpDef { attrs: attrs.into(), ..self }
    }

    /// Sets the kernel, which evaluates the operator on constants.
    #[must_use]
    pub fn kernel(self, kernel: Kernel) -> OpDef {
        OpDef { kernel: Some(kernel), ..self }
    }

    /// Sets the treatment by FuseOps.
    #[must_use]
    pub fn fusion(self, fusion: FusionPattern) -> OpDef {
        OpDef { fusion, ..self }
    }

    /// Sets the rule for the treatment by FuseOps, which depends on the attributes of a call.
    #[must_use]
    pub fn fusion_rule(self, rule: FusionRule) -> OpDef {
        OpDef { fusion_rule: Some(rule), ..self }
    }

    /// Declares that the two operands may be exchanged without changing a bit of the result.
    #[must_use]
    pub fn commutative(self) -> OpDef {
        OpDef { commutative: true, ..self }
    }

    /// Declares that the operator may fail on operands of the right types.
    #[must_use]
    pub fn may_fail(self) -> OpDef {
        OpDef { may_fail: true, ..self }
    }

    /// Declares that the evaluation can be observed; it may fail, too.
    #[must_use]
    pub fn impure(self) -> OpDef {
        OpDef { purity: OpPurity::Impure, may_fail: true, ..self }
    }

    /// Sets the pairs (result, operand) such that the result is the operand.
    #[must_use]
    pub fn forwards(self, forwards: &'static [(u32, u32)]) -> OpDef {
        OpDef { forwards, ..self }
    }

    /// Declares that the elements of the result are those of the first operand in row-major order,
    /// under another shape.
    #[must_use]
    pub fn relabels(self) -> OpDef {
        OpDef { relabels: true, ..self }
    }

    /// Sets the operands whose elements determine the extents of the result.
    #[must_use]
    pub fn shape_operands(self, operands: &'static [u32]) -> OpDef {
        OpDef { shape_operands: operands, ..self }
    }

    /// Sets the upper bound of the size of the results, for an operator whose extents depend on
    /// elements in a way that its type rule does not follow.
    #[must_use]
    pub fn size_bound(self, bound: SizeBound) -> OpDef {
        OpDef { size_bound: Some(bound), ..self }
    }

    /// Sets the rule for the number of steps of the kernel. Without it, the kernel takes about a
    /// step for each element that it reads and writes.
    #[must_use]
    pub fn steps(self, rule: StepsRule) -> OpDef {
        OpDef { steps: Some(rule), ..self }
    }

    /// Sets the operands on which the results are splats, and which the kernel must return as
    /// splats.
    #[must_use]
    pub fn splat(self, splat: Splat) -> OpDef {
        OpDef { splat, ..self }
    }

    /// Sets the rule for the elements of the results that are known although not all operands are
    /// constants. For instance, the first element of a `shape_of` may be a symbolic dimension. The
    /// types of values that are computed from it include such elements in turn, up to the use as
    /// the shape of a tensor.
    #[must_use]
    pub fn elements(self, rule: ElementsRule) -> OpDef {
        OpDef { elements: Some(rule), ..self }
    }

    /// Sets the rule for results that follow from the types of the operands alone, such as those of
    /// `shape_of`.
    #[must_use]
    pub fn known_by_type(self, rule: KnownByType) -> OpDef {
        OpDef { known_by_type: Some(rule), ..self }
    }

    /// Sets the rule that writes a call in other operators: DecomposeOps replaces calls by what it
    /// writes, and the operator is not primitive. The steps must compute the results of the kernel
    /// up to rounding, and end in calls of primitive operators: no operator may be written by way
    /// of itself.
    #[must_use]
    pub fn decomposition(self, rule: DecompositionRule) -> OpDef {
        OpDef { decomposition: Some(rule), ..self }
    }

    /// Sets the treatment by ToMixedPrecision. With another policy than [`PrecisionPolicy::Never`],
    /// the operator must accept operands of `float16` and `bfloat16` wherever it accepts those of
    /// `float32`, apart from the operands that determine extents.
    ///
    /// Cost: one entry.
    #[must_use]
    pub fn precision(self, precision: PrecisionPolicy) -> OpDef {
        OpDef { precision, ..self }
    }

    /// Sets the rule that writes the adjoints of the operands of a call, with which Gradient
    /// differentiates it. A composite operator needs none: the pass differentiates its steps.
    #[must_use]
    pub fn adjoint(self, rule: AdjointRule) -> OpDef {
        OpDef { adjoint: Some(rule), ..self }
    }

    /// Sets the rule that writes a call for operands whose axes have another order, for
    /// ConvertLayout. The written call must compute the results of the call, with their axes in the
    /// orders that the rule states.
    #[must_use]
    pub fn relayout(self, rule: RelayoutRule) -> OpDef {
        OpDef { relayout: Some(rule), ..self }
    }

    /// Returns an upper bound of the bytes that the results of a call take in full: that of its
    /// type, else that of the row. `usize::MAX` if they overflow; `None` if neither determines it,
    /// or if the function of the row panics.
    pub fn result_bytes(&self, call: &KernelCall<'_>) -> Option<usize> {
        call.attrs
            .cx
            .types
            .static_bytes(call.ty)
            .or_else(|| catch_panic(|| self.size_bound.map(|bound| bound(call))).ok()?)
    }

    /// Returns true if the extents of the result of a call are known at compile time: each operand
    /// that determines them is a constant or left out.
    ///
    /// Cost: one entry.
    pub fn has_known_extents(&self, body: &Body, operands: &[ExprId]) -> bool {
        let is_known = |&o: &ExprId| matches!(body.expr(o), Expr::Literal(_) | Expr::None);
        self.shape_operands.iter().all(|&i| operands.get(i as usize).is_none_or(is_known))
    }

    /// Returns the treatment by FuseOps of a call of this operator, the expression `call` of
    /// `body`.
    ///
    /// The call is opaque if it can be observed, or if its extents are known only when it is
    /// evaluated: an operand that determines them is not a constant, and they are not known from
    /// the type of the call either. Symbols are known extents.
    ///
    /// Cost: one entry.
    pub fn fusion_of(&self, cx: &Context, body: &Body, call: ExprId) -> FusionPattern {
        let Expr::CallOp { op, operands, attrs } = body.expr(call) else { return FusionPattern::Opaque };
        let operands = body.operands(operands);
        if self.purity == OpPurity::Impure
            || !self.has_known_extents(body, operands) && !cx.types.has_known_extents(body.ty(call))
        {
            return FusionPattern::Opaque;
        }
        self.fusion_rule.map_or(self.fusion, |rule| rule(&AttrReader { cx, op, attrs }))
    }

    /// Returns the properties that walks need at every call.
    pub(super) fn facts(&self) -> OpFacts {
        let pure = self.purity == OpPurity::Pure;
        let fusion = match self.fusion_rule.is_some() || !self.shape_operands.is_empty() {
            true => None,
            false if pure => Some(self.fusion),
            false => Some(FusionPattern::Opaque),
        };
        let flags = [
            (!pure, facts::IMPURE),
            (self.name == "match_cast", facts::MATCH_CAST),
            (self.commutative, facts::COMMUTATIVE),
            (!self.forwards.is_empty(), facts::FORWARDS),
            (self.kernel.is_some(), facts::KERNEL),
            (self.known_by_type.is_some() && pure, facts::KNOWN_BY_TYPE),
            (self.attrs.iter().any(|attr| attr.default == AttrDefault::Required), facts::REQUIRES_ATTRS),
        ];
        let flags = flags.iter().filter(|(holds, _)| *holds).fold(0, |flags, (_, flag)| flags | flag);
        OpFacts::new(flags, fusion)
    }

    /// Returns true if all results of a call on these operands (`None` for an operand that is left
    /// out) are splats. Each result then takes the memory of one element, however large it is. Errs
    /// on the safe side: if it returns false, the results may still be splats.
    pub fn gives_splat(&self, operands: &[Option<&Literal>]) -> bool {
        let is_splat = |o: &Option<&Literal>| o.is_none_or(|l| l.as_splat().is_some());
        match self.splat {
            Splat::Unknown => false,
            Splat::Always => true,
            Splat::OfFirst => operands.first().is_none_or(is_splat),
            Splat::OfAll => operands.iter().all(is_splat),
            Splat::OfEqual => {
                let first = operands.first().copied().flatten().and_then(Literal::as_splat);
                first.is_some() && operands.iter().all(|o| o.and_then(Literal::as_splat) == first)
            }
        }
    }
}
