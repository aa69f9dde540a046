//! The loops that compute. There are five shapes of loop: elementwise with broadcasting, reduction, index map, window and
//! matrix product; an op chooses one and says what it does with an element.
//!
//! # Rules
//! - Results have the same bits on every machine: functions come from `libm`, nothing is fused, sums add in ascending index
//!   order, and a NaN that is computed is the canonical one.
//! - A splat is handled as one element wherever the result allows, and never written out for its own sake.
//! - A kernel takes memory for its operands and its result, not beyond; the caller looks at the size of the result first.
//! - No panic, whatever the operands.

use anfora_ir::DType;

pub(crate) mod activation;
pub(crate) mod arithmetic;
pub(crate) mod bits;
pub(crate) mod cast;
pub(crate) mod convolution;
pub(crate) mod creation;
pub(crate) mod determinant;
pub(crate) mod einsum;
pub(crate) mod elementwise;
pub(crate) mod found;
pub(crate) mod gather;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod normalise;
pub(crate) mod number;
#[cfg(not(feature = "kernels"))]
mod one_width;
pub(crate) mod order;
pub(crate) mod pad;
pub(crate) mod pool;
pub(crate) mod positions;
pub(crate) mod quantization;
pub(crate) mod random;
pub(crate) mod reduction;
pub(crate) mod resize;
pub(crate) mod resize_size;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod standardise;
pub(crate) mod strides;
#[cfg(test)]
mod test_values;
pub(crate) mod transposed;
mod view;
pub(crate) mod window;

/// Why a call has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// An integer is divided by zero, or zero is raised to a negative power.
    #[error("integer division by zero")]
    DivisionByZero,
    /// Two extents do not broadcast.
    #[error("extents {left} and {right} of axis {axis} do not broadcast")]
    Broadcast {
        /// Axis of the result.
        axis: usize,
        /// Extent of the first operand.
        left: usize,
        /// Extent of the second.
        right: usize,
    },
    /// An axis is out of range.
    #[error("axis {axis} is out of range for rank {rank}")]
    Axis {
        /// As given.
        axis: i64,
        /// Rank of the tensor.
        rank: usize,
    },
    /// An axis is named twice.
    #[error("axis {axis} is named twice")]
    AxisTwice {
        /// As given.
        axis: i64,
    },
    /// An index is out of range.
    #[error("index {index} is out of range for extent {extent}")]
    Index {
        /// As given.
        index: i64,
        /// Of the indexed axis.
        extent: usize,
    },
    /// Operands or attributes do not go together.
    #[error("{0}")]
    Mismatch(String),
    /// The op does not compute with this element type.
    #[error("no kernel for {0}")]
    ElementType(DType),
    /// The result does not fit in memory's address range.
    #[error("the result is too large")]
    TooLarge,
    /// The call would take too long.
    #[error("the call takes too many steps")]
    TooLong,
    /// A reduction that has no value for no elements.
    #[error("nothing to reduce")]
    Empty,
}

/// The most steps where an operand is a splat, so that no time of its own went into making it.
const MOST_STEPS: u128 = 1 << 26;

/// A shape for a message.
pub(crate) fn shape_text(shape: &[impl ToString]) -> String {
    let extents: Vec<String> = shape.iter().map(|e| e.to_string()).collect();
    if let [one] = extents.as_slice() { format!("({one},)") } else { format!("({})", extents.join(", ")) }
}
