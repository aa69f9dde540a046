//! Convolutions and transposed convolutions, of one to three spatial axes. Each is the adjoint of
//! the other by its first operand.

use anfora_ir::{AdjointRule, AdjointWriter, AttrValue, DecompositionPart as Part, DimId, TensorType};

use crate::axis_letters::{DATA_LAYOUT, KERNEL_LAYOUT, POOL_LAYOUT, plain_data, plain_kernel, plain_transposed_kernel};
use crate::decompositions::extents::{Extent, join_axes, split_axis_into};

use super::zeros_like;

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    ("nn.conv1d", |a| convolution::<1>(a, "nn.conv1d", "nn.conv1d_transpose")),
    ("nn.conv2d", |a| convolution::<2>(a, "nn.conv2d", "nn.conv2d_transpose")),
    ("nn.conv3d", |a| convolution::<3>(a, "nn.conv3d", "nn.conv3d_transpose")),
    ("nn.conv1d_transpose", |a| transposed::<1>(a, "nn.conv1d")),
    ("nn.conv2d_transpose", |a| transposed::<2>(a, "nn.conv2d")),
    ("nn.conv3d_transpose", |a| transposed::<3>(a, "nn.conv3d")),
];

/// The lists of attributes of windows that slide over spatial axes.
pub(super) struct WindowLists {
    pub(super) strides: Vec<i64>,
    pub(super) padding: Vec<i64>,
    pub(super) dilation: Vec<i64>,
}

impl WindowLists {
    /// Reads the attributes of a call; `None` if a list has another length.
    pub(super) fn of<const N: usize>(a: &AdjointWriter<'_>) -> Option<WindowLists> {
        let attrs = a.attrs();
        let (strides, padding, dilation) = (attrs.ints("strides")?, attrs.ints("padding")?, attrs.ints("dilation")?);
        let fits = strides.len() == N && padding.len() == 2 * N && dilation.len() == N;
        fits.then_some(WindowLists { strides, padding, dilation })
    }

    /// Returns the number of elements after the last window along an axis with `windows` windows of
    /// `taps` taps, padding excluded; negative if windows reach beyond the end.
    pub(super) fn rest(&self, axis: usize, extent: i64, windows: i64, taps: i64) -> Option<i64> {
        let n = self.strides.len();
        let reach = (taps - 1).checked_mul(self.dilation[axis])?.checked_add(1)?;
        let end = (windows - 1).checked_mul(self.strides[axis])?.checked_add(reach)?;
        extent.checked_add(self.padding[axis])?.checked_add(self.padding[n + axis])?.checked_sub(end)
    }
}

/// Returns true if the axes of an image with `spatial` axes, and those of the result, have the
/// plain order. The rules are written for this order, in which a program is differentiated.
pub(super) fn image_is_plain(a: &AdjointWriter<'_>, spatial: usize) -> bool {
    let plain = plain_data(spatial);
    [DATA_LAYOUT, POOL_LAYOUT].iter().all(|name| a.attrs().str(name).is_none_or(|layout| layout == plain))
}

/// Returns an extent of the result, if it is known.
pub(super) fn result_extent(a: &AdjointWriter<'_>, axis: usize) -> Option<i64> {
    a.cx().types.dims.as_constant(*a.result_tensor()?.shape.as_ref()?.get(axis)?)
}

/// The reason for which a rule refuses a layout.
pub(super) const OTHER_LAYOUT: &str =
    "images and kernels must have the default layout: run ConvertLayout after Gradient";

/// The reason for which a rule refuses extents that are not known.
pub(super) const UNKNOWN_EXTENTS: &str =
    "the extents of the images and of the kernel must be known: state them with `match_cast`";

/// Gives an image and a kernel zeros if one of them, or the result, is known to have no elements,
/// which convolutions of adjoints do not take. Returns true if this is so.
pub(super) fn give_zeros_if_empty(a: &mut AdjointWriter<'_>) -> Option<bool> {
    let is_zero = |&dim: &DimId| a.cx().types.dims.as_constant(dim) == Some(0);
    let is_empty = |tensor: &TensorType| tensor.shape.as_ref().is_some_and(|shape| shape.iter().any(is_zero));
    if ![a.tensor(0), a.tensor(1), a.result_tensor()].into_iter().flatten().any(is_empty) {
        return Some(false);
    }
    for i in [0, 1] {
        if a.wants(i) {
            let zeros = zeros_like(a, i)?;
            a.give(i, zeros);
        }
    }
    Some(true)
}

fn convolution<const N: usize>(a: &mut AdjointWriter<'_>, conv: &'static str, transpose: &'static str) -> Option<()> {
    if !image_is_plain(a, N) || a.attrs().str(KERNEL_LAYOUT)? != plain_kernel(N) {
        return a.refuse(OTHER_LAYOUT);
    }
    let lists = WindowLists::of::<N>(a)?;
    let groups = a.attrs().int("groups")?;
    let (x, w, dy) = (a.operand(0)?, a.operand(1)?, a.adjoint()?);
    if give_zeros_if_empty(a)? {
        give_bias::<N>(a, dy);
        return Some(());
    }
    if a.wants(0) {
        // A distance of 1 leaves no element out.
        let left_out = |axis: usize| match lists.strides[axis] {
            1 => Some(0),
            _ => lists.rest(axis, a.extent(0, 2 + axis)?, result_extent(a, 2 + axis)?, a.extent(1, 2 + axis)?),
        };
        let rest: Option<Vec<i64>> = (0..N).map(left_out).collect();
        let Some(rest) = rest else { return a.refuse(UNKNOWN_EXTENTS) };
        let mut attrs = attributes(&lists.strides, &lists.padding, &lists.dilation, groups);
        attrs.push(("output_padding", rest.into()));
        let dx = a.op_with(transpose, &[dy, w], &attrs);
        a.give(0, dx);
    }
    if a.wants(1) {
        let dw = weight_adjoint::<N>(a, conv, &lists, groups, [x, dy])?;
        a.give(1, dw);
    }
    give_bias::<N>(a, dy);
    Some(())
}

fn transposed<const N: usize>(a: &mut AdjointWriter<'_>, conv: &'static str) -> Option<()> {
    if !image_is_plain(a, N) || a.attrs().str(KERNEL_LAYOUT)? != plain_transposed_kernel(N) {
        return a.refuse(OTHER_LAYOUT);
    }
    let lists = WindowLists::of::<N>(a)?;
    let groups = a.attrs().int("groups")?;
    let added = a.attrs().ints("output_padding")?;
    // More than that, and the convolution would have more windows.
    if added.iter().zip(&lists.strides).any(|(added, stride)| added >= stride) {
        return a.refuse("`output_padding` must be less than the strides");
    }
    let (x, w, dy) = (a.operand(0)?, a.operand(1)?, a.adjoint()?);
    if give_zeros_if_empty(a)? {
        give_bias::<N>(a, dy);
        return Some(());
    }
    if a.wants(0) {
        let dx = a.op_with(conv, &[dy, w], &attributes(&lists.strides, &lists.padding, &lists.dilation, groups));
        a.give(0, dx);
    }
    if a.wants(1) {
        let dw = weight_adjoint::<N>(a, conv, &lists, groups, [dy, x])?;
        a.give(1, dw);
    }
    give_bias::<N>(a, dy);
    Some(())
}

fn attributes(strides: &[i64], padding: &[i64], dilation: &[i64], groups: i64) -> Vec<(&'static str, AttrValue)> {
    vec![
        ("strides", strides.into()),
        ("padding", padding.into()),
        ("dilation", dilation.into()),
        ("groups", groups.into()),
    ]
}

fn give_bias<const N: usize>(a: &mut AdjointWriter<'_>, dy: Part) {
    if a.wants(2) {
        let axes: Vec<i64> = [0].into_iter().chain(2..2 + N as i64).collect();
        let db = a.op_with("sum", &[dy], &[("axis", axes.into())]);
        a.give(2, db);
    }
}

/// Returns the adjoint of the weights of a convolution of `x` `(n, c, …)` with the adjoint `dy`
/// `(n, m, …)`: a convolution in which `dy` is the kernel, and examples and channels have exchanged
/// their roles. Taps of the kernel are as far apart as the windows were, and the reverse.
fn weight_adjoint<const N: usize>(
    a: &mut AdjointWriter<'_>,
    conv: &'static str,
    lists: &WindowLists,
    groups: i64,
    [x, dy]: [Part; 2],
) -> Option<Part> {
    let exchanged = |first: [i64; 2]| -> Vec<i64> { first.into_iter().chain(2..2 + N as i64).collect() };
    let kernel = a.op_with("permute_dims", &[dy], &[("axes", exchanged([1, 0]).into())]);
    let images = if groups == 1 {
        a.op_with("permute_dims", &[x], &[("axes", exchanged([1, 0]).into())])
    } else {
        // (n, g, c / g, …), then (c / g, g, n, …), then (c / g, g * n, …).
        let of_group = Extent::of(a, 1, 1)?;
        let split = split_axis_into(a, x, 1, 2 + N, groups, of_group);
        let axes: Vec<i64> = [2, 1, 0].into_iter().chain(3..3 + N as i64).collect();
        let permuted = a.op_with("permute_dims", &[split], &[("axes", axes.into())]);
        let whole = Extent::of(a, 0, 0)?.times(a, groups)?;
        join_axes(a, permuted, 1, 3 + N, whole)
    };
    let attrs = attributes(&lists.dilation, &lists.padding, &lists.strides, groups);
    let mut product = a.op_with(conv, &[images, kernel], &attrs);
    // Elements after the last window make more taps.
    if lists.strides.iter().any(|&stride| stride != 1) {
        let taps: Option<Vec<i64>> = (0..N).map(|axis| a.extent(1, 2 + axis)).collect();
        let Some(taps) = taps else { return a.refuse(UNKNOWN_EXTENTS) };
        let axes: Vec<i64> = (2..2 + N as i64).collect();
        let attrs = [("axes", axes.into()), ("begin", vec![0; N].into()), ("end", taps.into())];
        product = a.op_with("strided_slice", &[product], &attrs);
    }
    Some(a.op_with("permute_dims", &[product], &[("axes", exchanged([1, 0]).into())]))
}
