//! The loops of the kernels. There are five kinds of loops: elementwise with broadcasting,
//! reduction, index map, window and matrix product. An operator selects a kind and supplies the
//! computation on an element.
//!
//! # Rules
//! - Results have the same bits on every machine: functions come from `libm`, operations are not
//!   fused, sums add in ascending index order, and a computed NaN is the canonical NaN.
//! - A splat is processed as one element where the result allows it, and is not expanded without
//!   need.
//! - A kernel allocates memory only in proportion to its operands and its result. The caller checks
//!   the size of the result first.
//! - A kernel does not panic, whatever the operands are.

use anfora_ir::DType;

pub(crate) mod activation;
pub(crate) mod arithmetic;
pub(crate) mod attention;
pub(crate) mod bits;
pub(crate) mod cast;
pub(crate) mod causal_convolution;
pub(crate) mod convolution;
pub(crate) mod cosine_window;
pub(crate) mod creation;
pub(crate) mod determinant;
pub(crate) mod einsum;
pub(crate) mod elementwise;
pub(crate) mod search;
pub(crate) mod gather;
pub(crate) mod grid_sample;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod linear_attention;
pub(crate) mod loss;
pub(crate) mod matmul;
pub(crate) mod non_max_suppression;
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
pub(crate) mod recurrent;
pub(crate) mod resize;
pub(crate) mod resize_size;
pub(crate) mod rotary;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod small_number;
pub(crate) mod standardise;
pub(crate) mod strides;
#[cfg(test)]
mod test_values;
pub(crate) mod transposed;
mod view;
pub(crate) mod window;
pub(crate) mod working;

/// The error of a call that has no result.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// An integer is divided by zero, or zero is raised to a negative power.
    #[error("integer division by zero")]
    DivisionByZero,
    /// Two extents do not broadcast.
    #[error("extents {left} and {right} of axis {axis} do not broadcast")]
    Broadcast {
        /// The axis of the result.
        axis: usize,
        /// The extent of the first operand.
        left: usize,
        /// The extent of the second operand.
        right: usize,
    },
    /// An axis is out of range.
    #[error("axis {axis} is out of range for rank {rank}")]
    Axis {
        /// The axis as given.
        axis: i64,
        /// The rank of the tensor.
        rank: usize,
    },
    /// An axis is named twice.
    #[error("axis {axis} is named twice")]
    AxisTwice {
        /// The axis as given.
        axis: i64,
    },
    /// An index is out of range.
    #[error("index {index} is out of range for extent {extent}")]
    Index {
        /// The index as given.
        index: i64,
        /// The extent of the indexed axis.
        extent: usize,
    },
    /// Operands or attributes do not fit together.
    #[error("{0}")]
    Mismatch(String),
    /// The operator does not support this element type.
    #[error("no kernel for {0}")]
    ElementType(DType),
    /// The result does not fit in the address space.
    #[error("the result is too large")]
    TooLarge,
    /// The call would take too long.
    #[error("the call takes too many steps")]
    TooLong,
    /// A reduction of no elements that has no identity.
    #[error("nothing to reduce")]
    Empty,
}

/// The most steps of a call with a splat operand, since a splat may have many elements without
/// cost.
const MOST_STEPS: u128 = 1 << 26;

/// Returns the text of a shape for a message.
pub(crate) fn shape_text(shape: &[impl ToString]) -> String {
    let extents: Vec<String> = shape.iter().map(|e| e.to_string()).collect();
    if let [one] = extents.as_slice() { format!("({one},)") } else { format!("({})", extents.join(", ")) }
}
