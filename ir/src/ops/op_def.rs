//! The description of an operator: its row.

use std::borrow::Cow;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;
use crate::ops::adjoint::AdjointRule;
use crate::ops::decomposition::DecompositionRule;
use crate::ops::kernel::catch_panic;
use crate::ops::op::{
    AttrReader, ElementsRule, FusionRule, Kernel, KernelCall, KnownByType, SizeBound, StepsRule, TypeRule,
};
use crate::ops::relayout::RelayoutRule;
use crate::tables::dtype::DType;
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

/// The operands on which the results of an operator are splats (tensors that store one element for
/// all), and on which its kernel returns them as splats.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Splat {
    /// Unknown: no operands are known to give splats.
    Unknown,
    /// Any operands.
    Always,
    /// Operands of which the first is a splat; the others only determine the use of its elements.
    OfFirst,
    /// Operands that are all splats: equal elements are computed from equal elements.
    OfAll,
    /// Operands that are all splats of the same element.
    OfEqual,
}

/// The number of operands that an operator takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Arity {
    /// The smallest number.
    pub min: usize,
    /// The largest number; `None` if there is none.
    pub max: Option<usize>,
}

impl Arity {
    /// Returns an arity of exactly `n` operands.
    pub const fn exactly(n: usize) -> Arity {
        Arity { min: n, max: Some(n) }
    }
    /// Returns an arity of `min` to `max` operands.
    pub const fn between(min: usize, max: usize) -> Arity {
        Arity { min, max: Some(max) }
    }
    /// Returns an arity of `min` or more operands.
    pub const fn at_least(min: usize) -> Arity {
        Arity { min, max: None }
    }
    /// Returns true if `n` operands are permitted.
    pub fn accepts(self, n: usize) -> bool {
        n >= self.min && self.max.is_none_or(|max| n <= max)
    }
}

/// An attribute of an operator.
#[derive(Clone, Debug)]
pub struct AttrDef {
    /// The name.
    pub name: &'static str,
    /// The kind of values that it takes.
    pub kind: AttrKind,
    /// The value if it is left out.
    pub default: AttrDefault,
    /// The meaning, in a line.
    pub doc: &'static str,
}

impl AttrDef {
    /// Returns an attribute.
    ///
    /// Cost: linear in the text.
    pub const fn new(name: &'static str, kind: AttrKind, default: AttrDefault, doc: &'static str) -> AttrDef {
        AttrDef { name, kind, default, doc }
    }
    /// Returns an attribute that must be given.
    ///
    /// Cost: linear in the text.
    pub const fn required(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Required, doc)
    }
    /// Returns an attribute that has no value if it is left out.
    ///
    /// Cost: linear in the text.
    pub const fn optional(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Absent, doc)
    }
    /// Returns a boolean attribute that is false if it is left out.
    ///
    /// Cost: linear in the text.
    pub const fn flag(name: &'static str, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Bool, AttrDefault::Bool(false), doc)
    }
}

/// The kinds of values that an attribute may take.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttrKind {
    /// `true`, `false`
    Bool,
    /// An integer.
    Int,
    /// A float64; integers are accepted too.
    Float,
    /// A string.
    Str,
    /// A list of integers.
    Ints,
    /// A list of float64.
    Floats,
    /// A list of strings.
    Strs,
    /// `shape(…)`
    Shape,
    /// A constant tensor, scalars included.
    Literal,
    /// An element type.
    DType,
    /// A type.
    Type,
    /// Any value.
    Any,
}

/// The value of an attribute that is left out.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum AttrDefault {
    /// There is none: the attribute must be given.
    Required,
    /// The attribute has no value.
    Absent,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A float64.
    Float(f64),
    /// A string.
    Str(&'static str),
    /// A list of integers.
    Ints(&'static [i64]),
    /// An element type.
    DType(DType),
}

/// The purity of an operator: impure if its evaluation can be observed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OpPurity {
    /// The evaluation cannot be observed: equal operands give equal results, and an unused result
    /// need not be computed.
    Pure,
    /// The evaluation can be observed: the number and order of evaluations are kept.
    Impure,
}

/// The treatment of an operator by ToMixedPrecision, which computes parts of a program in a float
/// type of 16 bits.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PrecisionPolicy {
    /// Its calls are computed in 16 bits: their operands are cast. For operators that take most of
    /// the time, such as products and convolutions.
    Always,
    /// Its calls are computed in 16 bits if all of their operands have 16 bits anyway.
    Follow,
    /// Its calls are computed in the types that they have. For operators that lose too much by
    /// rounding, or whose results overflow.
    Never,
}

/// The treatment of an operator by FuseOps.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FusionPattern {
    /// Element i of the result needs element i of each operand.
    ElemWise = 0,
    /// Element i of the result needs element i of each operand, after repeating operands along
    /// axes.
    Broadcast = 1,
    /// Each element of the result needs one element of an operand, at a computed position.
    Injective = 2,
    /// A reduction over axes.
    CommReduce = 3,
    /// A computation that elementwise operations can be appended to, such as a convolution.
    OutEWiseFusable = 4,
    /// A tuple.
    Tuple = 7,
    /// Not fused.
    Opaque = 8,
}
