//! Pools whose windows move. Those with one window are reductions, and are decomposed.

use anfora_ir::{AdjointRule, AdjointWriter, AttrValue, DType, Literal, Number};

use super::convolutions::{
    OTHER_LAYOUT, UNKNOWN_EXTENTS, WindowLists, give_zeros_if_empty, image_is_plain, result_extent,
};
use super::{filled, flattened, number, reshaped_like};

pub(super) const RULES: &[(&str, AdjointRule)] = &[
    ("nn.max_pool1d", |a| max_pool::<1>(a, "nn.max_pool_with_indices1d")),
    ("nn.max_pool2d", |a| max_pool::<2>(a, "nn.max_pool_with_indices2d")),
    ("nn.max_pool3d", |a| max_pool::<3>(a, "nn.max_pool_with_indices3d")),
    ("nn.avg_pool1d", |a| avg_pool::<1>(a, "nn.conv1d", "nn.conv1d_transpose")),
    ("nn.avg_pool2d", |a| avg_pool::<2>(a, "nn.conv2d", "nn.conv2d_transpose")),
    ("nn.avg_pool3d", |a| avg_pool::<3>(a, "nn.conv3d", "nn.conv3d_transpose")),
];

/// Adds the adjoint of each window to the first of its largest elements. A window of padding alone
/// has the index -1.
fn max_pool<const N: usize>(a: &mut AdjointWriter<'_>, with_indices: &'static str) -> Option<()> {
    if !image_is_plain(a, N) {
        return a.refuse(OTHER_LAYOUT);
    }
    if give_zeros_if_empty(a)? {
        return Some(());
    }
    let (x, dy, attrs) = (a.operand(0)?, a.adjoint()?, a.attrs());
    let lists = ["pool_size", "strides", "padding", "dilation"].map(|name| attrs.ints(name).map(|list| (name, list)));
    let mut given: Vec<(&'static str, AttrValue)> = vec![("ceil_mode", attrs.bool("ceil_mode")?.into())];
    for list in lists {
        let (name, list) = list?;
        given.push((name, list.into()));
    }
    let both = a.op_with(with_indices, &[x], &given);
    let indices = a.field(both, 1);
    let (none, zero) = (a.number(0, DType::Int64)?, number(a, 0, 0.0)?);
    let is_element = a.op("greater_equal", &[indices, none]);
    let values = a.op("where", &[is_element, dy, zero]);
    let places = a.op("where", &[is_element, indices, none]);
    let size = a.op("size", &[x]);
    let list = a.ints(&[1]);
    let length = a.op("reshape", &[size, list]);
    let zero = Number::Float(0.0).scalar(a.dtype(0)?)?;
    let zeros = filled(a, length, zero);
    let [places, values] = [places, values].map(|x| flattened(a, x));
    let sums = a.op_with("scatter_elements", &[zeros, places, values], &[("reduction", "add".into())]);
    let dx = reshaped_like(a, 0, sums)?;
    a.give(0, dx);
    Some(())
}

/// The share of each element of a window, by a transposed convolution with ones. Extents must be
/// known, since the number of elements in a window depends on them.
fn avg_pool<const N: usize>(a: &mut AdjointWriter<'_>, conv: &'static str, transpose: &'static str) -> Option<()> {
    if !image_is_plain(a, N) {
        return a.refuse(OTHER_LAYOUT);
    }
    if give_zeros_if_empty(a)? {
        return Some(());
    }
    let lists = WindowLists::of::<N>(a)?;
    let taps = a.attrs().ints("pool_size").filter(|taps| taps.len() == N)?;
    let (dy, one) = (a.adjoint()?, Number::Float(1.0).scalar(a.dtype(0)?)?);
    let extents: Option<Vec<i64>> = (0..N).map(|axis| a.extent(0, 2 + axis)).collect();
    let (Some(channels), Some(extents)) = (a.extent(0, 1), extents) else { return a.refuse(UNKNOWN_EXTENTS) };
    // The padding at the end up to which windows reach, and the elements that none has.
    let (mut padding, mut left_out) = (lists.padding.clone(), vec![0; N]);
    for axis in 0..N {
        let rest = lists.rest(axis, extents[axis], result_extent(a, 2 + axis)?, taps[axis])?;
        let end = padding[N + axis].checked_sub(rest)?;
        (padding[N + axis], left_out[axis]) = (end.max(0), (-end).max(0));
    }
    let attributes = |groups: i64| -> Vec<(&'static str, AttrValue)> {
        vec![
            ("strides", lists.strides.clone().into()),
            ("padding", padding.clone().into()),
            ("dilation", lists.dilation.clone().into()),
            ("groups", groups.into()),
        ]
    };
    let ones = |a: &mut AdjointWriter<'_>, first: i64, extents: &[i64], one: &Literal| {
        let shape = a.ints(&[&[first, 1], extents].concat());
        filled(a, shape, one.clone())
    };
    let (image, window) = (ones(a, 1, &extents, &one), ones(a, 1, &taps, &one));
    let mut divisor = a.op_with(conv, &[image, window], &attributes(1));
    if a.attrs().bool("count_include_pad")? {
        let means = a.same_op(&[image])?;
        divisor = a.op("divide", &[divisor, means]);
    }
    let share = a.op("divide", &[dy, divisor]);
    let windows = ones(a, channels, &taps, &one);
    let mut attrs = attributes(channels);
    attrs.push(("output_padding", left_out.into()));
    let dx = a.op_with(transpose, &[share, windows], &attrs);
    a.give(0, dx);
    Some(())
}
