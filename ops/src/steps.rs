//! How many steps kernels take that compute more than they read and write: sums of products,
//! windows, resizes.
//!
//! The numbers are of the order of what is computed, and saturate. They are asked for before a call
//! is evaluated, so that one that would not come to an end is refused.

use anfora_ir::{KernelCall, Literal};

use crate::kernels::einsum::Equation;

/// One, whatever the operands are: the kernel looks at their extents alone.
pub(crate) fn one(_: &KernelCall<'_>) -> u64 {
    1
}

/// Of a matrix product of operand 0: the summed extent for each element of the result.
pub(crate) fn matrix_product(call: &KernelCall<'_>) -> u64 {
    let depth = shape(call, 0).last().copied().unwrap_or(1);
    call.result_elements().saturating_mul(depth as u64)
}

/// Of a product of two matrices, of which the first may be transposed.
pub(crate) fn gemm(call: &KernelCall<'_>) -> u64 {
    let axis = usize::from(!call.attrs.bool("trans_a").unwrap_or(false));
    let depth = shape(call, 0).get(axis).copied().unwrap_or(1);
    call.result_elements().saturating_mul(depth as u64)
}

/// Of the determinants of square matrices.
pub(crate) fn determinant(call: &KernelCall<'_>) -> u64 {
    let extent = shape(call, 0).last().copied().unwrap_or(1);
    elements(call, 0).saturating_mul(extent as u64)
}

/// Of a convolution: the taps of a feature for each element of the result. The weight is operand 1.
pub(crate) fn convolution(call: &KernelCall<'_>) -> u64 {
    call.result_elements().saturating_mul(taps(call, 1))
}

/// Likewise, where scales and zero points come in between, and the weight is operand 3.
pub(crate) fn quantized_convolution(call: &KernelCall<'_>) -> u64 {
    call.result_elements().saturating_mul(taps(call, 3))
}

/// Of a transposed convolution: each element of operand 0 goes to as many places as there are taps.
pub(crate) fn transposed_convolution(call: &KernelCall<'_>) -> u64 {
    elements(call, 0).saturating_mul(taps(call, 1)).saturating_add(call.result_elements())
}

/// Of what is computed under windows of the attribute `pool_size`.
pub(crate) fn windows(call: &KernelCall<'_>) -> u64 {
    let size = call.attrs.ints("pool_size").unwrap_or_default();
    let window = size.iter().fold(1u64, |n, &extent| n.saturating_mul(u64::try_from(extent).unwrap_or(0)));
    call.result_elements().saturating_mul(window)
}

/// Of what is computed over a few neighbouring channels.
pub(crate) fn neighbouring_channels(call: &KernelCall<'_>) -> u64 {
    let channels = shape(call, 0).get(1).map_or(1, |&c| c as u64);
    let size = call.attrs.int("size").and_then(|s| u64::try_from(s).ok()).unwrap_or(1);
    elements(call, 0).saturating_mul(size.min(channels))
}

/// Of a resize: one axis after the other, each with a few elements for each of the larger of
/// operand and result.
pub(crate) fn resize(call: &KernelCall<'_>) -> u64 {
    /// The taps of a cubic filter.
    const TAPS: u64 = 4;
    let rank = shape(call, 0).len().max(1) as u64;
    elements(call, 0).max(call.result_elements()).saturating_mul(TAPS * rank)
}

/// Of a sum of products over named axes: the product of all extents.
pub(crate) fn einsum(call: &KernelCall<'_>) -> u64 {
    let count = call.operands.len();
    let Some(Ok(equation)) = call.attrs.str("subscripts").map(|text| Equation::parse(text, count)) else { return 1 };
    let mut extents = Vec::new();
    for (i, term) in equation.operands.iter().enumerate() {
        let shape = shape(call, i);
        let Ok(labels) = term.labels_of(shape.len()) else { return 1 };
        extents.extend(labels.into_iter().zip(shape.iter().copied()));
    }
    // Of axes that broadcast, the larger extent counts: the last of those with one label.
    extents.sort_unstable();
    let last_of_label = extents.chunk_by(|a, b| a.0 == b.0).filter_map(|same| same.last());
    last_of_label.fold(1u64, |n, &(_, extent)| n.saturating_mul(extent as u64))
}

fn shape<'a>(call: &'a KernelCall<'_>, operand: usize) -> &'a [usize] {
    call.optional(operand).map_or(&[], Literal::shape)
}

fn elements(call: &KernelCall<'_>, operand: usize) -> u64 {
    shape(call, operand).iter().fold(1u64, |n, &extent| n.saturating_mul(extent as u64))
}

/// The elements of a weight for one extent of its first axis.
fn taps(call: &KernelCall<'_>, weight: usize) -> u64 {
    shape(call, weight).iter().skip(1).fold(1u64, |n, &extent| n.saturating_mul(extent as u64))
}
