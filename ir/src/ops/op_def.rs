//! What is said of an operator: its row.

use std::borrow::Cow;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;
use crate::ops::kernel::catch_panic;
use crate::ops::op::{
    AttrReader, ElementsRule, FusionRule, Kernel, KernelCall, KnownByType, SizeBound, StepsRule, TypeRule,
};
use crate::tables::dtype::DType;
use crate::tables::literal::Literal;

/// All that the passes need to know of an operator.
#[derive(Clone)]
pub struct OpDef {
    /// Name in the text format, such as `nn.conv2d`.
    pub name: Cow<'static, str>,
    /// One line that says what it computes.
    pub doc: Cow<'static, str>,
    /// Operands.
    pub arity: Arity,
    /// Attributes.
    pub attrs: Cow<'static, [AttrDef]>,
    /// The type of the result.
    pub infer: TypeRule,
    /// Whether evaluating it can be observed.
    pub purity: OpPurity,
    /// How FuseOps treats it.
    pub fusion: FusionPattern,
    /// How FuseOps treats a call of it, where that depends on the attributes; see [`OpDef::fusion_of`].
    pub fusion_rule: Option<FusionRule>,
    /// Evaluates it on constants; `None` for an operator that only compiled code can run.
    pub kernel: Option<Kernel>,
    /// Whether its (two) operands may be exchanged without changing a bit of the result.
    pub commutative: bool,
    /// Whether evaluating it may fail on operands of the right types, so that no pass may move it to where it would not have run.
    pub may_fail: bool,
    /// Pairs (result, operand): that result of the tuple it returns is just that operand. For a result that is not a tuple, result 0.
    pub forwards: &'static [(u32, u32)],
    /// The operands whose elements say what the extents of the result are. They may be left out where the row lets them. A
    /// call in which one is no constant may fail, since no type rule has seen it.
    pub shape_operands: &'static [u32],
    /// How large the results are at most, for an operator of which the type rule does not say it even for constants.
    pub size_bound: Option<SizeBound>,
    /// Counts the steps of the kernel, for operators that compute more, or less, than they read and write; see [`KernelCall::steps`].
    pub steps: Option<StepsRule>,
    /// On which operands all results are splats, whatever their size.
    pub splat: Splat,
    /// The elements of the results as far as they are known, for an operator with which shapes are computed.
    pub elements: Option<ElementsRule>,
    /// Gives the results where the types of the operands tell them, whether or not the operands are constants.
    pub known_by_type: Option<KnownByType>,
}

/// By its name, with the number of operands.
impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpDef").field("name", &self.name).field("arity", &self.arity).finish_non_exhaustive()
    }
}

impl OpDef {
    /// Returns a pure operator without attributes and without a kernel, which is not fused and
    /// cannot fail. What else there is to say of it, the methods below say.
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
            shape_operands: &[],
            size_bound: None,
            steps: None,
            splat: Splat::Unknown,
            elements: None,
            known_by_type: None,
        }
    }

    /// With these attributes.
    #[must_use]
    pub fn attrs(self, attrs: impl Into<Cow<'static, [AttrDef]>>) -> OpDef {
        OpDef { attrs: attrs.into(), ..self }
    }

    /// With a kernel that evaluates it on constants.
    #[must_use]
    pub fn kernel(self, kernel: Kernel) -> OpDef {
        OpDef { kernel: Some(kernel), ..self }
    }

    /// Treated by FuseOps in this way.
    #[must_use]
    pub fn fusion(self, fusion: FusionPattern) -> OpDef {
        OpDef { fusion, ..self }
    }

    /// Treated by FuseOps as the rule says for the attributes of a call.
    #[must_use]
    pub fn fusion_rule(self, rule: FusionRule) -> OpDef {
        OpDef { fusion_rule: Some(rule), ..self }
    }

    /// Its two operands may be exchanged without changing a bit of the result.
    #[must_use]
    pub fn commutative(self) -> OpDef {
        OpDef { commutative: true, ..self }
    }

    /// It may fail on operands of the right types.
    #[must_use]
    pub fn may_fail(self) -> OpDef {
        OpDef { may_fail: true, ..self }
    }

    /// That it was evaluated can be observed; it may fail, too.
    #[must_use]
    pub fn impure(self) -> OpDef {
        OpDef { purity: OpPurity::Impure, may_fail: true, ..self }
    }

    /// Pairs (result, operand): that result is just that operand.
    #[must_use]
    pub fn forwards(self, forwards: &'static [(u32, u32)]) -> OpDef {
        OpDef { forwards, ..self }
    }

    /// Returns the elements of these operands say what the extents of the result are.
    #[must_use]
    pub fn shape_operands(self, operands: &'static [u32]) -> OpDef {
        OpDef { shape_operands: operands, ..self }
    }

    /// Returns the extents of its results depend on elements in a way that its type rule does not
    /// follow, and this says how large they are at most.
    #[must_use]
    pub fn size_bound(self, bound: SizeBound) -> OpDef {
        OpDef { size_bound: Some(bound), ..self }
    }

    /// Its kernel takes as many steps as this says, rather than about one for each element that it reads and writes.
    #[must_use]
    pub fn steps(self, rule: StepsRule) -> OpDef {
        OpDef { steps: Some(rule), ..self }
    }

    /// Its results are splats on such operands, and its kernel makes them as such.
    #[must_use]
    pub fn splat(self, splat: Splat) -> OpDef {
        OpDef { splat, ..self }
    }

    /// What is known of its elements where not all operands are constants, such as that the first element of a `shape_of` is a
    /// symbolic dimension, says this rule. The types of what is computed from it say it on, up to where it is the shape of a tensor.
    #[must_use]
    pub fn elements(self, rule: ElementsRule) -> OpDef {
        OpDef { elements: Some(rule), ..self }
    }

    /// Its results may be known from the types of the operands alone, as those of `shape_of` are.
    #[must_use]
    pub fn known_by_type(self, rule: KnownByType) -> OpDef {
        OpDef { known_by_type: Some(rule), ..self }
    }

    /// Returns the most bytes that the results of a call take, written out: those that its type
    /// says, else those that the row says. `usize::MAX` if they overflow; `None` if neither says
    /// anything, or the row panics.
    pub fn result_bytes(&self, call: &KernelCall<'_>) -> Option<usize> {
        call.attrs
            .cx
            .types
            .static_bytes(call.ty)
            .or_else(|| catch_panic(|| self.size_bound.map(|bound| bound(call))).ok()?)
    }

    /// Returns true if the extents of the result of a call are known when it is compiled: each
    /// operand that says something of them is a constant, or left out.
    ///
    /// Cost: one entry.
    pub fn has_known_extents(&self, body: &Body, operands: &[ExprId]) -> bool {
        let is_known = |&o: &ExprId| matches!(body.expr(o), Expr::Literal(_) | Expr::None);
        self.shape_operands.iter().all(|&i| operands.get(i as usize).is_none_or(is_known))
    }

    /// Returns how FuseOps treats a call of this operator, the expression `call` of `body`.
    ///
    /// The call is opaque if it can be observed, or if its extents are found out only when it is evaluated: an operand
    /// that says them is no constant, and the type of the call does not know them either. Symbols are known extents.
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

    /// Returns true if all results of a call on these operands (`None` for one that is left out)
    /// are splats, so that they take the memory of one element each however large they are. Errs on
    /// the safe side: a call of which it says no may give a splat too.
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

/// On which operands the results of an operator are splats (tensors that store one element for all), and its kernel makes them as such.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Splat {
    /// Nothing is known.
    Unknown,
    /// On all.
    Always,
    /// If the first operand is a splat: the others only say what becomes of its elements.
    OfFirst,
    /// If all operands are: equal elements are computed from equal elements.
    OfAll,
    /// If all operands are splats of the same element.
    OfEqual,
}

/// How many operands an operator takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Arity {
    /// The fewest.
    pub min: usize,
    /// The most; `None` for any number.
    pub max: Option<usize>,
}

impl Arity {
    /// Just `n`.
    pub const fn exactly(n: usize) -> Arity {
        Arity { min: n, max: Some(n) }
    }
    /// From `min` to `max`.
    pub const fn between(min: usize, max: usize) -> Arity {
        Arity { min, max: Some(max) }
    }
    /// `min` or more.
    pub const fn at_least(min: usize) -> Arity {
        Arity { min, max: None }
    }
    /// Returns true if `n` operands are right.
    pub fn accepts(self, n: usize) -> bool {
        n >= self.min && self.max.is_none_or(|max| n <= max)
    }
}

/// An attribute of an operator.
#[derive(Clone, Debug)]
pub struct AttrDef {
    /// Name.
    pub name: &'static str,
    /// What values it takes.
    pub kind: AttrKind,
    /// The value where it is left out.
    pub default: AttrDefault,
    /// What it means.
    pub doc: &'static str,
}

impl AttrDef {
    /// Returns an attribute.
    ///
    /// Cost: linear in the text.
    pub const fn new(name: &'static str, kind: AttrKind, default: AttrDefault, doc: &'static str) -> AttrDef {
        AttrDef { name, kind, default, doc }
    }
    /// One that has to be given.
    ///
    /// Cost: linear in the text.
    pub const fn required(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Required, doc)
    }
    /// One that has no value where it is left out.
    ///
    /// Cost: linear in the text.
    pub const fn optional(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Absent, doc)
    }
    /// Returns a boolean that is false where it is left out.
    ///
    /// Cost: linear in the text.
    pub const fn flag(name: &'static str, doc: &'static str) -> AttrDef {
        AttrDef::new(name, AttrKind::Bool, AttrDefault::Bool(false), doc)
    }
}

/// What values an attribute takes.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum AttrKind {
    /// `true`, `false`
    Bool,
    /// An integer.
    Int,
    /// A float64; integers are taken too.
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
    /// It has to be given.
    Required,
    /// It has no value then.
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

/// Whether evaluating an operator can be observed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OpPurity {
    /// It cannot: equal operands give equal results, and a result that nobody uses need not be computed.
    Pure,
    /// It can: the number and order of evaluations are kept.
    Impure,
}

/// How FuseOps treats an operator.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum FusionPattern {
    /// Element i of the result needs element i of each operand.
    ElemWise = 0,
    /// Likewise after repeating operands along axes.
    Broadcast = 1,
    /// Each element of the result needs one element of an operand, at a computed place.
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
