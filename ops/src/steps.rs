//! The numbers of steps of kernels that compute more than they read and write: sums of products,
//! windows, resizes.
//!
//! The numbers have the magnitude of the computation, and saturate. They are computed before a call
//! is evaluated, so that a call that would take too long is rejected.

use anfora_ir::{KernelCall, Literal};

use crate::axis_letters::{CHANNEL_AXIS, KERNEL_LAYOUT};
use crate::kernels::einsum::Equation;

/// Returns 1 for all operands: the kernel only reads their extents.
pub(crate) fn one(_: &KernelCall<'_>) -> u64 {
    1
}

/// Returns the steps of a matrix product of operand 0: the summed extent for each element of the
/// result.
pub(crate) fn matrix_product(call: &KernelCall<'_>) -> u64 {
    let depth = shape(call, 0).last().copied().unwrap_or(1);
    call.result_elements().saturating_mul(depth as u64)
}

/// Returns the steps of a product of two matrices, the first of which may be transposed.
pub(crate) fn gemm(call: &KernelCall<'_>) -> u64 {
    let axis = usize::from(!call.attrs.bool("trans_a").unwrap_or(false));
    let depth = shape(call, 0).get(axis).copied().unwrap_or(1);
    call.result_elements().saturating_mul(depth as u64)
}

/// Returns the steps of the determinants of square matrices.
pub(crate) fn determinant(call: &KernelCall<'_>) -> u64 {
    let extent = shape(call, 0).last().copied().unwrap_or(1);
    elements(call, 0).saturating_mul(extent as u64)
}

/// Returns the steps of a convolution: the taps of a feature for each element of the result. The
/// weight is operand 1.
pub(crate) fn convolution(call: &KernelCall<'_>) -> u64 {
    call.result_elements().saturating_mul(taps(call, 1, 'O'))
}

/// Returns the steps of a quantized convolution. Its weight is operand 3, after the scale and the
/// zero point of operand 0.
pub(crate) fn quantized_convolution(call: &KernelCall<'_>) -> u64 {
    call.result_elements().saturating_mul(taps(call, 3, 'O'))
}

/// Returns the steps of a transposed convolution: each element of operand 0 is added to as many
/// positions as there are taps.
pub(crate) fn transposed_convolution(call: &KernelCall<'_>) -> u64 {
    elements(call, 0).saturating_mul(taps(call, 1, 'I')).saturating_add(call.result_elements())
}

/// Returns the steps of a computation under windows of the attribute `pool_size`.
pub(crate) fn windows(call: &KernelCall<'_>) -> u64 {
    let size = call.attrs.ints("pool_size").unwrap_or_default();
    let window = size.iter().fold(1u64, |n, &extent| n.saturating_mul(u64::try_from(extent).unwrap_or(0)));
    call.result_elements().saturating_mul(window)
}

/// Returns the steps of a computation over a few neighbouring channels.
pub(crate) fn neighbouring_channels(call: &KernelCall<'_>) -> u64 {
    let shape = shape(call, 0);
    let axis = call.attrs.int(CHANNEL_AXIS).unwrap_or(1);
    let axis = if axis < 0 { axis + shape.len() as i64 } else { axis };
    let channels = usize::try_from(axis).ok().and_then(|axis| shape.get(axis)).map_or(1, |&c| c as u64);
    let size = call.attrs.int("size").and_then(|s| u64::try_from(s).ok()).unwrap_or(1);
    elements(call, 0).saturating_mul(size.min(channels))
}

/// Returns the steps of a resize. The axes are resized one after the other, each with a few
/// elements for each element of the larger of operand and result.
pub(crate) fn resize(call: &KernelCall<'_>) -> u64 {
    /// The number of taps of a cubic filter.
    const TAPS: u64 = 4;
    let rank = shape(call, 0).len().max(1) as u64;
    elements(call, 0).max(call.result_elements()).saturating_mul(TAPS * rank)
}

/// Returns the steps of a sum of products over named axes: the product of all extents.
pub(crate) fn einsum(call: &KernelCall<'_>) -> u64 {
    let count = call.operands.len();
    let Some(Ok(equation)) = call.attrs.str("subscripts").map(|text| Equation::parse(text, count)) else { return 1 };
    let mut extents = Vec::new();
    for (i, term) in equation.operands.iter().enumerate() {
        let shape = shape(call, i);
        let Ok(labels) = term.labels_of(shape.len()) else { return 1 };
        extents.extend(labels.into_iter().zip(shape.iter().copied()));
    }
    // For axes that broadcast, the larger extent counts. It is the last extent with the label.
    extents.sort_unstable();
    let last_of_label = extents.chunk_by(|a, b| a.0 == b.0).filter_map(|same| same.last());
    last_of_label.fold(1u64, |n, &(_, extent)| n.saturating_mul(extent as u64))
}

/// Returns a number of steps as the limit counts them; `None` if it overflows.
pub(crate) fn saturated(steps: Option<u128>) -> u64 {
    steps.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX)
}

fn shape<'a>(call: &'a KernelCall<'_>, operand: usize) -> &'a [usize] {
    call.optional(operand).map_or(&[], Literal::shape)
}

fn elements(call: &KernelCall<'_>, operand: usize) -> u64 {
    shape(call, operand).iter().fold(1u64, |n, &extent| n.saturating_mul(extent as u64))
}

/// Returns the number of elements of a kernel for one index of the axis with a letter. This is the
/// first axis in the plain layout.
fn taps(call: &KernelCall<'_>, weight: usize, letter: char) -> u64 {
    let axis = call.attrs.str(KERNEL_LAYOUT).and_then(|layout| layout.find(letter)).unwrap_or(0);
    let others = shape(call, weight).iter().enumerate().filter(|&(i, _)| i != axis);
    others.fold(1u64, |n, (_, &extent)| n.saturating_mul(extent as u64))
}
