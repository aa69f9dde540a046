//! The language of the rows: the outputs of operators as functions of their operands and
//! attributes.

use std::fmt;

use anfora_ir::{DType, DimId, OpPurity, TypeId};
use smallvec::SmallVec;

use super::node_types::NodeTypes;

/// Extents of an output; `None` if the rank is not known.
pub(super) type OutputShape = Option<SmallVec<[DimId; 4]>>;

/// A row of the table: operators with the same outputs, for a range of versions.
#[derive(Copy, Clone)]
pub(super) struct Signature {
    pub(super) operators: &'static [&'static str],
    pub(super) since: i64,
    pub(super) until: i64,
    pub(super) purity: OpPurity,
    pub(super) outputs: &'static [OutputType],
    /// True if there may be more outputs, all like the last one.
    pub(super) repeats: bool,
}

impl Signature {
    /// Returns a row for all versions of pure operators.
    pub(super) const fn of(operators: &'static [&'static str], outputs: &'static [OutputType]) -> Signature {
        Signature { operators, since: 1, until: i64::MAX, purity: OpPurity::Pure, outputs, repeats: false }
    }

    /// Sets the first version.
    pub(super) const fn since(self, version: i64) -> Signature {
        Signature { since: version, ..self }
    }

    /// Sets the last version.
    pub(super) const fn until(self, version: i64) -> Signature {
        Signature { until: version, ..self }
    }

    /// Makes the operators impure: equal calls may have different results.
    pub(super) const fn impure(self) -> Signature {
        Signature { purity: OpPurity::Impure, ..self }
    }

    /// Allows more outputs like the last one.
    pub(super) const fn repeating(self) -> Signature {
        Signature { repeats: true, ..self }
    }
}

/// The type of an output.
#[derive(Copy, Clone)]
pub(super) enum OutputType {
    /// The type of an operand, whatever value it is.
    Same(usize),
    /// A tensor.
    Tensor(ElementChoices, OutputExtents),
    /// A value of this kind, which is no tensor, with elements of the type that a function finds.
    Kind(&'static str, fn(&mut NodeTypes<'_>) -> Option<TypeId>),
    /// The type of the elements of an operand, or that of the operand if it is a tensor.
    ElementOf(usize),
    /// A type that a function finds.
    By(fn(&mut NodeTypes<'_>) -> TypeId),
}

/// Element types. The first that applies to a node is that of the output.
pub(super) type ElementChoices = &'static [ElementType];

/// An element type of an output.
#[derive(Copy, Clone)]
pub(super) enum ElementType {
    /// The element type of an operand, if the node has the operand.
    Of(usize),
    Is(DType),
    /// The number in an attribute, if it is there and not 0.
    Attribute(&'static str),
    /// The element type of the tensor in an attribute, if it is there.
    OfTensor(&'static str),
    /// This one, if the node has an attribute that is not empty.
    If(&'static str, DType),
    /// `int64` for an operand of `string`, and `string` for one of `int64`.
    Exchanged(usize),
}

/// The extents of an output.
#[derive(Copy, Clone)]
pub(super) enum OutputExtents {
    /// Of unknown rank.
    Unranked,
    Are(&'static [ExtentOf]),
    /// Those of an operand.
    Like(usize),
    /// The first ones, and unknown others up to the rank of an operand.
    RankOf(usize, &'static [ExtentOf]),
    /// Those that operands broadcast to; those of all operands if the list is empty.
    Broadcast(&'static [usize]),
    /// Those that the type rule of one of our operators finds for operands with these extents.
    Ours(&'static str, &'static [usize]),
    /// Those that a function finds.
    By(fn(&mut NodeTypes<'_>) -> OutputShape),
}

/// An extent of an output.
#[derive(Copy, Clone)]
pub(super) enum ExtentOf {
    Unknown,
    Is(i64),
    /// The extent of an operand on an axis. Negative axes count from the end.
    Of(usize, i64),
    /// The value of an attribute, or a default.
    Attribute(&'static str, i64),
    /// The value of an operand with one element.
    Value(usize),
}

pub(super) const FIRST: ElementChoices = &[ElementType::Of(0)];
pub(super) const SECOND: ElementChoices = &[ElementType::Of(1)];
pub(super) const BOOL: ElementChoices = &[ElementType::Is(DType::Bool)];
pub(super) const INT64: ElementChoices = &[ElementType::Is(DType::Int64)];
pub(super) const INT32: ElementChoices = &[ElementType::Is(DType::Int32)];
pub(super) const IS_FLOAT: ElementType = ElementType::Is(DType::Float32);
pub(super) const FLOAT: ElementChoices = &[IS_FLOAT];
pub(super) const STRING: ElementChoices = &[ElementType::Is(DType::String)];
pub(super) const UINT8: ElementChoices = &[ElementType::Is(DType::UInt8)];

pub(super) const SCALAR: OutputExtents = OutputExtents::Are(&[]);
/// The elements and the extents of the first operand.
pub(super) const LIKE_FIRST: OutputType = OutputType::Tensor(FIRST, OutputExtents::Like(0));
/// The elements of the first operand, in a tensor of the same rank.
pub(super) const RANK_OF_FIRST: OutputType = OutputType::Tensor(FIRST, OutputExtents::RankOf(0, &[]));
/// The elements of the first operand, in a tensor with the extents that all operands broadcast to.
pub(super) const BROADCAST: OutputType = OutputType::Tensor(FIRST, OutputExtents::Broadcast(&[]));
/// A sequence whose elements are no tensors.
pub(super) const SEQUENCE: OutputType = OutputType::Kind("a sequence", |_| None);

impl fmt::Display for OutputType {
    /// Writes the element types from which the first that applies is taken, as in `of 2, attribute
    /// output_dtype, uint8`; for values that are no tensors, the kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputType::Same(operand) => write!(f, "same as {operand}"),
            OutputType::Tensor(choices, _) => choices.iter().enumerate().try_for_each(|(i, choice)| {
                let comma = if i == 0 { "" } else { ", " };
                write!(f, "{comma}{choice}")
            }),
            OutputType::Kind(kind, _) => f.write_str(kind),
            OutputType::ElementOf(operand) => write!(f, "element of {operand}"),
            OutputType::By(_) => f.write_str("by the node"),
        }
    }
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementType::Of(operand) => write!(f, "of {operand}"),
            ElementType::Is(dtype) => write!(f, "{dtype}"),
            ElementType::Attribute(name) => write!(f, "attribute {name}"),
            ElementType::OfTensor(name) => write!(f, "tensor {name}"),
            ElementType::If(name, dtype) => write!(f, "{dtype} with {name}"),
            ElementType::Exchanged(operand) => write!(f, "exchanged {operand}"),
        }
    }
}
