//! Layouts: the rules that write calls for operands whose axes have another order.
//!
//! Convolutions, pools and normalisations by channel state their layout in attributes, so any order
//! of the axes of their first operand is another value of these attributes. Other operators compute
//! on any order, if attributes and lists that name axes are changed too.

use anfora_ir::{AxisOrder, LayoutRequest, Literal, Relayout, RelayoutCall, RelayoutRule};
use smallvec::SmallVec;

use crate::axis_letters::{
    AxisPlaces, CHANNEL_AXIS, DATA_LAYOUT, KERNEL_LAYOUT, POOL_LAYOUT, plain_data, plain_kernel,
    plain_transposed_kernel,
};
use crate::decompositions::counted;

/// Longer constant lists are left as they are. Those of calls are about as long as a shape.
const MOST_ENTRIES: usize = 1 << 10;

/// The operators with rules, beside the elementwise ones.
const RULES: &[(&str, RelayoutRule)] = &[
    ("nn.conv1d", |c| windows(c, DATA_LAYOUT, plain_data(1), Some(plain_kernel(1)))),
    ("nn.conv2d", |c| windows(c, DATA_LAYOUT, plain_data(2), Some(plain_kernel(2)))),
    ("nn.conv3d", |c| windows(c, DATA_LAYOUT, plain_data(3), Some(plain_kernel(3)))),
    ("nn.conv1d_transpose", |c| windows(c, DATA_LAYOUT, plain_data(1), Some(plain_transposed_kernel(1)))),
    ("nn.conv2d_transpose", |c| windows(c, DATA_LAYOUT, plain_data(2), Some(plain_transposed_kernel(2)))),
    ("nn.conv3d_transpose", |c| windows(c, DATA_LAYOUT, plain_data(3), Some(plain_transposed_kernel(3)))),
    ("nn.max_pool1d", |c| windows(c, POOL_LAYOUT, plain_data(1), None)),
    ("nn.max_pool2d", |c| windows(c, POOL_LAYOUT, plain_data(2), None)),
    ("nn.max_pool3d", |c| windows(c, POOL_LAYOUT, plain_data(3), None)),
    ("nn.avg_pool1d", |c| windows(c, POOL_LAYOUT, plain_data(1), None)),
    ("nn.avg_pool2d", |c| windows(c, POOL_LAYOUT, plain_data(2), None)),
    ("nn.avg_pool3d", |c| windows(c, POOL_LAYOUT, plain_data(3), None)),
    ("nn.lp_pool1d", |c| windows(c, POOL_LAYOUT, plain_data(1), None)),
    ("nn.lp_pool2d", |c| windows(c, POOL_LAYOUT, plain_data(2), None)),
    ("nn.lp_pool3d", |c| windows(c, POOL_LAYOUT, plain_data(3), None)),
    ("nn.global_avg_pool1d", |c| windows(c, POOL_LAYOUT, plain_data(1), None)),
    ("nn.global_avg_pool2d", |c| windows(c, POOL_LAYOUT, plain_data(2), None)),
    ("nn.global_avg_pool3d", |c| windows(c, POOL_LAYOUT, plain_data(3), None)),
    ("nn.global_max_pool1d", |c| windows(c, POOL_LAYOUT, plain_data(1), None)),
    ("nn.global_max_pool2d", |c| windows(c, POOL_LAYOUT, plain_data(2), None)),
    ("nn.global_max_pool3d", |c| windows(c, POOL_LAYOUT, plain_data(3), None)),
    ("nn.global_lp_pool1d", |c| windows(c, POOL_LAYOUT, plain_data(1), None)),
    ("nn.global_lp_pool2d", |c| windows(c, POOL_LAYOUT, plain_data(2), None)),
    ("nn.global_lp_pool3d", |c| windows(c, POOL_LAYOUT, plain_data(3), None)),
    ("nn.instance_norm", by_channels),
    ("nn.group_norm", by_channels),
    ("nn.lrn", by_channels),
    ("nn.batch_norm", by_any_channels),
    ("nn.batch_norm_training", by_any_channels),
    ("nn.lp_norm", along_axis),
    ("nn.mean_variance_norm", along_axes),
    ("nn.layer_norm", over_last_axes),
    ("nn.rms_norm", over_last_axes),
    ("nn.softmax", along_neighbours),
    ("nn.log_softmax", along_neighbours),
    ("nn.hardmax", along_neighbours),
    ("nn.dropout", same_order),
    ("sum", reduction),
    ("mean", reduction),
    ("prod", reduction),
    ("max", reduction),
    ("min", reduction),
    ("sum_square", reduction),
    ("l1_norm", reduction),
    ("l2_norm", reduction),
    ("log_sum", reduction),
    ("log_sum_exp", reduction),
    ("argmax", index_along),
    ("argmin", index_along),
    ("cumsum", scan),
    ("cumprod", scan),
    ("take", take),
    ("gather_elements", elements_along),
    ("scatter_elements", elements_along),
    ("tile", tile),
    ("concat", elements_along),
    ("split", split),
    ("strided_slice", |c| over_listed_axes(c, "axes", c.attrs().ints("begin")?.len())),
    ("squeeze", squeeze),
    ("expand_dims", expand_dims),
    ("nn.pad", pad),
    ("image.resize", |c| over_lists(c, &[1])),
    ("image.crop_and_resize", |c| over_lists(c, &[1, 2])),
];

/// Returns the rule of an operator that is not elementwise; `None` if its operands must keep the
/// order of their axes.
pub(crate) fn rule_of(operator: &str) -> Option<RelayoutRule> {
    RULES.iter().find(|(name, _)| *name == operator).map(|&(_, rule)| rule)
}

/// The rule of elementwise operators: all operands and results have the same order of axes.
pub(crate) fn elements(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (followed, order) = c.followed()?;
    let given = |i: usize| c.is_given(i).then(|| order.clone());
    for i in (0..c.operand_count()).filter(|&i| c.is_given(i)) {
        let rank = c.rank(i)?;
        if rank > order.rank() || (i == followed && rank != order.rank()) {
            return None;
        }
    }
    Some(Relayout {
        operands: (0..c.operand_count()).map(given).collect(),
        results: SmallVec::from_iter([Some(order.clone())]),
        attrs: Vec::new(),
        constants: Vec::new(),
    })
}

/// The first operand and all results have the same order of axes.
fn same_order(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let mut answer = c.with_first()?;
    let order = answer.results[0].clone();
    answer.results = (0..c.result_count()).map(|_| order.clone()).collect();
    Some(answer)
}

/// The layouts of the operands of a convolution or pool are the attribute `data` and, for a
/// convolution, [`KERNEL_LAYOUT`].
fn windows(c: &RelayoutCall<'_>, data: &'static str, plain: &str, plain_kernel: Option<&str>) -> Option<Relayout> {
    let attrs = c.attrs();
    let own = attrs.str(data)?;
    let (wanted, wanted_kernel) = match c.request() {
        LayoutRequest::Follow { operand: 0, order } => {
            let letters: Vec<char> = own.chars().collect();
            let reordered = order.axes().iter().map(|&axis| letters.get(axis).copied()).collect::<Option<String>>()?;
            (reordered, None)
        }
        LayoutRequest::Follow { .. } => return None,
        LayoutRequest::Letters { data, kernel } => ((*data).to_owned(), *kernel),
        LayoutRequest::Plain => (plain.to_owned(), plain_kernel),
    };
    let order = between(own, &wanted, plain)?;
    let mut answer = Relayout {
        operands: SmallVec::from_iter([Some(order.clone())]),
        results: SmallVec::from_iter([Some(order)]),
        attrs: vec![(data, wanted.into())],
        constants: Vec::new(),
    };
    if let (Some(wanted), Some(plain)) = (wanted_kernel, plain_kernel) {
        let own = attrs.str(KERNEL_LAYOUT)?;
        answer.operands.push(Some(between(own, wanted, plain)?));
        answer.attrs.push((KERNEL_LAYOUT, wanted.into()));
    }
    Some(answer)
}

/// Returns the order of the axes of a layout in which they have another layout.
fn between(own: &str, wanted: &str, plain: &str) -> Option<AxisOrder> {
    AxisPlaces::of_letters(wanted, plain)?;
    let axes: Option<SmallVec<[usize; 8]>> = wanted.chars().map(|letter| own.find(letter)).collect();
    AxisOrder::new(&axes?)
}

/// The channels are the attribute [`CHANNEL_AXIS`], and axis 1 in the plain layout. The batch stays
/// the first axis.
fn by_channels(c: &RelayoutCall<'_>) -> Option<Relayout> {
    if c.followed().is_some_and(|(_, order)| order.place(0) != Some(0)) {
        return None;
    }
    by_any_channels(c)
}

/// The channels are the attribute [`CHANNEL_AXIS`], and axis 1 in the plain layout.
fn by_any_channels(c: &RelayoutCall<'_>) -> Option<Relayout> {
    if *c.request() != LayoutRequest::Plain {
        return along_axis(c);
    }
    let (axis, rank) = (c.attrs().int(CHANNEL_AXIS)?, c.rank(0)?);
    let axis = counted(axis, rank)?;
    let mut axes: SmallVec<[usize; 8]> = (0..rank).filter(|&other| other != axis).collect();
    axes.insert(axes.len().min(1), axis);
    let order = AxisOrder::new(&axes)?;
    let place = order.place(axis)? as i64;
    Some(Relayout {
        operands: SmallVec::from_iter([Some(order.clone())]),
        results: SmallVec::from_iter([Some(order)]),
        attrs: vec![(CHANNEL_AXIS, place.into())],
        constants: Vec::new(),
    })
}

/// The attribute `axis` names an axis of the first operand and of the first result.
fn along_axis(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    Some(c.with_first()?.with_attr("axis", order.place_of(c.attrs().int("axis")?)?))
}

/// The attribute `axes` names axes of the first operand, in any order.
fn along_axes(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let mut places = order.places_of(&c.attrs().ints("axes")?)?;
    places.sort_unstable();
    Some(c.with_first()?.with_attr("axes", places))
}

/// The attribute `axes` names the last axes of the first operand, in order. The results beside the
/// first one have an extent of 1 there.
fn over_last_axes(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let places = order.places_of(&c.attrs().ints("axes")?)?;
    let first = order.rank().checked_sub(places.len())? as i64;
    let are_last = (first..).zip(&places).all(|(last, &place)| last == place);
    // Scale and bias have no other axes.
    let are_within = (1..c.operand_count()).all(|i| !c.is_given(i) || c.rank(i).is_some_and(|r| r <= places.len()));
    if !are_last || !are_within {
        return None;
    }
    Some(same_order(c)?.with_attr("axes", places))
}

/// The attribute `axis` names an axis, unless the attribute `axes` names neighbours in order.
fn along_neighbours(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let Some(axes) = c.attrs().ints("axes") else { return along_axis(c) };
    let places = order.places_of(&axes)?;
    let are_neighbours = places.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    if !are_neighbours {
        return None;
    }
    Some(c.with_first()?.with_attr("axes", places))
}

/// Returns the order of the axes that a reduction leaves.
fn left_by(order: &AxisOrder, reduced: &[i64], keepdims: bool) -> Option<AxisOrder> {
    if keepdims {
        return Some(order.clone());
    }
    let places = order.places_of(reduced)?;
    let axes = order.axes();
    let is_reduced = |axis: usize| places.iter().any(|&place| axes.get(place as usize) == Some(&axis));
    Some(order.restricted(|axis| !is_reduced(axis)))
}

/// A reduction over the axes of an attribute or a constant operand; over all axes without them.
fn reduction(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let keepdims = c.attrs().bool("keepdims")?;
    let operand = if c.is_given(1) { Some(c.ints(1)?) } else { None };
    let is_operand = operand.is_some();
    let mut answer = c.with_first()?;
    let Some(axes) = operand.or_else(|| c.attrs().ints("axis")) else {
        answer.results[0] = keepdims.then(|| order.clone());
        return Some(answer);
    };
    if is_operand && axes.is_empty() {
        return None;
    }
    answer.results[0] = Some(left_by(order, &axes, keepdims)?);
    let mut places = order.places_of(&axes)?;
    places.sort_unstable();
    if is_operand {
        answer.constants.push((1, Literal::from_elements(&[places.len()], &places).ok()?));
        return Some(answer);
    }
    Some(answer.with_attr("axis", places))
}

/// The index of an element along the attribute `axis`.
fn index_along(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let axis = c.attrs().int("axis")?;
    let mut answer = along_axis(c)?;
    answer.results[0] = Some(left_by(order, &[axis], c.attrs().bool("keepdims")?)?);
    Some(answer)
}

/// The operands have the same axes, one of which the attribute `axis` names.
fn elements_along(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let have_rank = (0..c.operand_count()).all(|i| c.rank(i) == Some(order.rank()));
    if !have_rank {
        return None;
    }
    Some(elements(c)?.with_attr("axis", order.place_of(c.attrs().int("axis")?)?))
}

/// A constant operand or the attribute `axis` names an axis, which may also be none.
fn scan(c: &RelayoutCall<'_>) -> Option<Relayout> {
    if !c.is_given(1) {
        return along_axis(c);
    }
    let (_, order) = c.followed()?;
    let place = order.places_of(&c.ints(1)?)?;
    let mut answer = c.with_first()?;
    answer.constants.push((1, Literal::from_elements(&[place.len()], &place).ok()?));
    Some(answer)
}

/// The axis of the attribute stays for a list of indices, and goes for a single one.
fn take(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let axis = c.attrs().int("axis")?;
    let mut answer = along_axis(c)?;
    answer.results[0] = Some(match c.rank(1)? {
        0 => left_by(order, &[axis], false)?,
        1 => order.clone(),
        _ => return None,
    });
    Some(answer)
}

/// A constant list has the number of repetitions for each axis.
fn tile(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let repeats = reordered_list(c.literal(1)?, order)?;
    let mut answer = c.with_first()?;
    answer.constants.push((1, repeats));
    Some(answer)
}

fn split(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    Some(same_order(c)?.with_attr("axis", order.place_of(c.attrs().int("axis")?)?))
}

/// The attribute `name` lists axes, in the order of other lists. If it is left out, it lists the
/// first `count` axes.
fn over_listed_axes(c: &RelayoutCall<'_>, name: &'static str, count: usize) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let axes = c.attrs().ints(name).unwrap_or_else(|| (0..count as i64).collect());
    Some(c.with_first()?.with_attr(name, order.places_of(&axes)?))
}

/// The attribute `axes` lists axes, in the order of operands that are lists. If it is left out, the
/// operands have entries for all axes, and constant ones get another order of entries.
fn over_lists(c: &RelayoutCall<'_>, operands: &[usize]) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let reordered = |&i: &usize| Some((i, reordered_list(c.literal(i)?, order)?));
    if c.attrs().ints("axes").is_none()
        && let Some(constants) = operands.iter().map(reordered).collect::<Option<Vec<_>>>()
    {
        let mut answer = c.with_first()?;
        answer.constants = constants;
        return Some(answer);
    }
    over_listed_axes(c, "axes", order.rank())
}

/// Returns a constant list of one entry for each axis, or of several such lists one after the
/// other, for the axes in another order.
fn reordered_list(list: &Literal, order: &AxisOrder) -> Option<Literal> {
    if list.as_splat().is_some() {
        return Some(list.clone());
    }
    if list.element_count() > MOST_ENTRIES {
        return None;
    }
    let bytes = list.read_dense().ok()?;
    let width = list.dtype().bits() / 8;
    let length = order.rank() * width;
    if length == 0 || !bytes.len().is_multiple_of(length) {
        return None;
    }
    let axes = order.axes();
    let mut reordered = Vec::with_capacity(bytes.len());
    for group in bytes.chunks_exact(length) {
        axes.iter().for_each(|&axis| reordered.extend_from_slice(&group[axis * width..][..width]));
    }
    Literal::from_bytes(list.dtype(), list.shape(), reordered.into()).ok()
}

fn squeeze(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    if c.is_given(1) {
        return None;
    }
    let axes = c.attrs().ints("axis")?;
    let mut answer = c.with_first()?;
    answer.results[0] = Some(left_by(order, &axes, false)?);
    let mut places = order.places_of(&axes)?;
    places.sort_unstable();
    Some(answer.with_attr("axis", places))
}

/// The new axes keep their places. The axes of the operand keep the order that they have.
fn expand_dims(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    if c.is_given(1) {
        return None;
    }
    let axes = c.attrs().ints("axis")?;
    let rank = order.rank() + axes.len();
    let mut is_new: SmallVec<[bool; 8]> = SmallVec::from_elem(false, rank);
    for axis in axes {
        is_new[counted(axis, rank)?] = true;
    }
    // The axes of the result that come from the operand, in the order of the operand's axes.
    let old: SmallVec<[usize; 8]> = (0..rank).filter(|&axis| !is_new[axis]).collect();
    let from = order.axes();
    let mut reordered = from.iter().map(|&axis| old.get(axis).copied());
    let result: Option<SmallVec<[usize; 8]>> =
        (0..rank).map(|axis| if is_new[axis] { Some(axis) } else { reordered.next().flatten() }).collect();
    let mut answer = c.with_first()?;
    answer.results[0] = Some(AxisOrder::new(&result?)?);
    Some(answer)
}

/// The margins are a constant list for all axes, or for the axes of another constant list.
fn pad(c: &RelayoutCall<'_>) -> Option<Relayout> {
    let (_, order) = c.followed()?;
    let margins = c.ints(1)?;
    let mut answer = c.with_first()?;
    let (operand, list) = if c.is_given(3) {
        (3, order.places_of(&c.ints(3)?)?)
    } else {
        let rank = order.rank();
        let (begins, ends) = margins.split_at_checked(rank).filter(|(_, ends)| ends.len() == rank)?;
        let axes = order.axes();
        (1, axes.iter().map(|&axis| begins[axis]).chain(axes.iter().map(|&axis| ends[axis])).collect())
    };
    answer.constants.push((operand, Literal::from_elements(&[list.len()], &list).ok()?));
    Some(answer)
}
