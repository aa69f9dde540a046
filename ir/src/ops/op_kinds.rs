//! The plain properties of operators and of their attributes.

use crate::tables::dtype::DType;

/// The operands on which all results of an operator are splats: tensors that store one element for
/// all elements. The kernel must return splats for such operands.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Splat {
    /// Unknown: no operands are known to give splats.
    Unknown,
    /// Any operands.
    Always,
    /// Operands of which the first is a splat. The others only determine which elements of the
    /// first are used.
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
    /// Cost: one entry.
    pub const fn new(name: &'static str, kind: AttrKind, default: AttrDefault, doc: &'static str) -> AttrDef {
        AttrDef { name, kind, default, doc }
    }
    /// Returns an attribute that must be given.
    ///
    /// Cost: one entry.
    pub const fn required(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Required, doc)
    }
    /// Returns an attribute that has no value if it is left out.
    ///
    /// Cost: one entry.
    pub const fn optional(name: &'static str, kind: AttrKind, doc: &'static str) -> AttrDef {
        AttrDef::new(name, kind, AttrDefault::Absent, doc)
    }
    /// Returns a boolean attribute that is false if it is left out.
    ///
    /// Cost: one entry.
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

impl AttrKind {
    /// Returns the kind with an article, for messages.
    pub fn describe(self) -> &'static str {
        match self {
            AttrKind::Bool => "a boolean",
            AttrKind::Int => "an integer",
            AttrKind::Float => "a number",
            AttrKind::Str => "a string",
            AttrKind::Ints => "a list of integers",
            AttrKind::Floats => "a list of numbers",
            AttrKind::Strs => "a list of strings",
            AttrKind::Shape => "a `shape(…)`",
            AttrKind::Literal => "a constant",
            AttrKind::DType => "an element type",
            AttrKind::Type => "a type",
            AttrKind::Any => "a value",
        }
    }
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
    /// Its calls are computed in 16 bits if all float operands but constants have 16 bits anyway.
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
