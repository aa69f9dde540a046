//! Convolutions and pools.

use anfora_ir::{AttrId, ExprId};

use super::{
    Conversion, Conversions, Lowered, NodeExport, NodeImport, OPSETS, export_direct, int_attribute, ints_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::{AttributeProto, AttributeType};

pub(super) const CONV: &[(&str, AttributeType)] = &[
    ("auto_pad", AttributeType::String),
    ("dilations", AttributeType::Ints),
    ("group", AttributeType::Int),
    ("kernel_shape", AttributeType::Ints),
    ("pads", AttributeType::Ints),
    ("strides", AttributeType::Ints),
];
pub(super) const MAX_POOL: &[(&str, AttributeType)] = &[
    ("auto_pad", AttributeType::String),
    ("ceil_mode", AttributeType::Int),
    ("dilations", AttributeType::Ints),
    ("kernel_shape", AttributeType::Ints),
    ("pads", AttributeType::Ints),
    ("strides", AttributeType::Ints),
];
const AVERAGE_POOL: &[(&str, AttributeType)] = &[
    ("auto_pad", AttributeType::String),
    ("ceil_mode", AttributeType::Int),
    ("count_include_pad", AttributeType::Int),
    ("dilations", AttributeType::Ints),
    ("kernel_shape", AttributeType::Ints),
    ("pads", AttributeType::Ints),
    ("strides", AttributeType::Ints),
];

pub(super) fn register(table: &mut Conversions) {
    for native in ["nn.conv1d", "nn.conv2d", "nn.conv3d"] {
        let row = Conversion::new("Conv", OPSETS, native);
        table.register(row.import(import_conv).export(export_conv).attributes(CONV));
    }
    for native in ["nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"] {
        let row = Conversion::new("MaxPool", OPSETS, native).import(import_max_pool).export(export_max_pool);
        // The storage order only affects the second output.
        table.register(row.attributes(MAX_POOL).carried(&["storage_order"]));
    }
    for native in ["nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"] {
        let row = Conversion::new("AveragePool", OPSETS, native);
        table.register(row.import(import_average_pool).export(export_average_pool).attributes(AVERAGE_POOL));
    }
    for native in ["nn.global_avg_pool1d", "nn.global_avg_pool2d", "nn.global_avg_pool3d"] {
        let row = Conversion::new("GlobalAveragePool", OPSETS, native);
        table.register(row.import(import_global).export(export_direct));
    }
}

/// Refuses weights without a spatial axis.
pub(super) fn has_window(n: &mut NodeImport<'_, '_>, weights: usize) -> Result<(), UnsupportedReason> {
    match n.rank(weights)? {
        rank @ 0..=2 => {
            Err(UnsupportedReason::misfit(format!("input {weights} has {rank} axes, none of them that of a window")))
        }
        _ => Ok(()),
    }
}

/// Returns our operator for windows of a number of axes: one, two or three.
pub(super) fn by_rank(names: [&'static str; 3], axes: usize) -> Result<&'static str, UnsupportedReason> {
    let name = axes.checked_sub(1).and_then(|i| names.get(i));
    name.copied().ok_or_else(|| because(format!("its windows have {axes} axes")))
}

/// The position of windows, with one entry for each spatial axis.
pub(super) struct Window {
    kernel: Vec<i64>,
    pub(super) strides: Vec<i64>,
    dilations: Vec<i64>,
    /// All begins, then all ends.
    pub(super) pads: Vec<i64>,
}

impl Window {
    /// Reads the attributes except `auto_pad` from a node whose first operand is
    /// `(n, c, spatial…)`.
    pub(super) fn read_lists(n: &mut NodeImport<'_, '_>, kernel: Vec<i64>) -> Result<Window, UnsupportedReason> {
        let axes = kernel.len();
        if n.rank(0)? != axes + 2 {
            return Err(UnsupportedReason::misfit(format!(
                "its windows have {axes} axes, but its first input has another rank"
            )));
        }
        let list = |name: &str, default: i64, len: usize| match n.ints(name) {
            Some(v) if v.len() != len => {
                Err(UnsupportedReason::misfit(format!("the attribute `{name}` does not have {len} entries")))
            }
            Some(v) => Ok(v.to_vec()),
            None => Ok(vec![default; len]),
        };
        let strides = list("strides", 1, axes)?;
        let dilations = list("dilations", 1, axes)?;
        let pads = list("pads", 0, 2 * axes)?;
        let is_positive = |v: &[i64]| v.iter().all(|&x| (1..1 << 31).contains(&x));
        if !is_positive(&kernel) || !is_positive(&strides) || !is_positive(&dilations) {
            return Err(because("an extent, a stride or a dilation of its windows is not positive, or is huge"));
        }
        if pads.iter().any(|p| !(0..1 << 31).contains(p)) {
            return Err(because("its padding is negative, or huge"));
        }
        Ok(Window { kernel, strides, dilations, pads })
    }

    /// Reads the attributes of a node whose first operand is `(n, c, spatial…)`.
    pub(super) fn read(n: &mut NodeImport<'_, '_>, kernel: Vec<i64>) -> Result<Window, UnsupportedReason> {
        let mut window = Window::read_lists(n, kernel)?;
        match n.str("auto_pad") {
            None if n.attribute("auto_pad").is_none() => {}
            Some("NOTSET") => {}
            Some(mode) if n.ints("pads").is_none() => {
                let upper = match mode {
                    "VALID" => return Ok(window),
                    "SAME_UPPER" => true,
                    "SAME_LOWER" => false,
                    other => return Err(because(format!("the attribute `auto_pad` is `{other}`"))),
                };
                let extents = n.extents(0)?;
                let padded = window.pad_to_same(&extents, upper);
                padded.ok_or_else(|| because("its padding follows from extents that are not known"))?;
            }
            _ => return Err(because("it has both `auto_pad` and `pads`")),
        }
        window.check_number(n)?;
        Ok(window)
    }

    /// Checks that the format and the runtimes agree on the number of windows. If a window is
    /// larger than the padded input, some runtimes round the number towards zero.
    fn check_number(&self, n: &mut NodeImport<'_, '_>) -> Result<(), UnsupportedReason> {
        let is_rounded_up = n.int("ceil_mode").unwrap_or(0) != 0;
        let extents = n.extents(0)?;
        let axes = self.kernel.len();
        for axis in 0..axes {
            let Some(extent) = extents[axis + 2] else { continue };
            let padded = extent.saturating_add(self.pads[axis] + self.pads[axes + axis]);
            let room = padded.saturating_sub(self.reach(axis));
            if room < 0 && (room % self.strides[axis] == 0) == is_rounded_up {
                return Err(because(
                    "a window is larger than the padded extent; the number of windows is not agreed upon",
                ));
            }
        }
        Ok(())
    }

    /// Sets the padding so that there is one window for each stride that begins in the input. If
    /// the padding of an axis is odd, the larger half goes to the end if `odd_at_end`, otherwise to
    /// the beginning. Returns `None` if an extent is not known.
    fn pad_to_same(&mut self, extents: &[Option<i64>], odd_at_end: bool) -> Option<()> {
        let axes = self.kernel.len();
        for axis in 0..axes {
            let extent = extents[axis + 2]?;
            let windows = extent.checked_add(self.strides[axis] - 1)? / self.strides[axis];
            let reach = (windows - 1).checked_mul(self.strides[axis])?.checked_add(self.reach(axis))?;
            let total = (reach - extent).max(0);
            let (less, more) = (total / 2, total - total / 2);
            let (begin, end) = if odd_at_end { (less, more) } else { (more, less) };
            self.pads[axis] = begin;
            self.pads[axes + axis] = end;
        }
        Some(())
    }

    /// Returns the windows of a call whose operand has `extents` axes; `None` if the lists of the
    /// call do not fit that.
    fn of_call(n: &NodeExport<'_>, extents: usize) -> Option<Window> {
        let kernel = n.attrs().ints("pool_size")?;
        let axes = kernel.len();
        let list = |name: &str, default: i64, len: usize| {
            let list = n.attrs().ints(name).unwrap_or_else(|| vec![default; len]);
            (list.len() == len).then_some(list)
        };
        let strides = list("strides", 1, axes)?;
        let dilations = list("dilation", 1, axes)?;
        let pads = list("padding", 0, 2 * axes)?;
        (extents == axes + 2 && strides.iter().all(|&s| s > 0)).then_some(Window { kernel, strides, dilations, pads })
    }

    /// Returns the extent of a window, including the gaps of a dilation.
    pub(super) fn reach(&self, axis: usize) -> i64 {
        (self.kernel[axis] - 1).saturating_mul(self.dilations[axis]).saturating_add(1)
    }

    /// Returns true if every window begins before the padding at the end when the number of windows
    /// is rounded up. Versions of the format differ in the treatment of other windows. Returns
    /// `None` if it is not known.
    fn all_begin_inside(&self, extents: &[Option<i64>]) -> Option<bool> {
        let axes = self.kernel.len();
        for axis in 0..axes {
            let inside = extents[axis + 2]?.checked_add(self.pads[axis])?;
            let free = inside.checked_add(self.pads[axes + axis])?.checked_sub(self.reach(axis))?;
            let last = free.checked_add(self.strides[axis] - 1)? / self.strides[axis];
            if last.checked_mul(self.strides[axis])? >= inside {
                return Some(false);
            }
        }
        Some(true)
    }

    pub(super) fn attrs(&self, n: &mut NodeImport<'_, '_>) -> Vec<(&'static str, AttrId)> {
        let mut attrs = Vec::new();
        // A default is a list with one entry for each axis. The operator's row cannot state it, so
        // it is left out here.
        for (name, values, default) in
            [("strides", &self.strides, 1), ("padding", &self.pads, 0), ("dilation", &self.dilations, 1)]
        {
            if values.iter().any(|&v| v != default) {
                attrs.push((name, n.cx().ints_attr(values)));
            }
        }
        attrs
    }
}

pub(super) fn call(
    op: &'static str,
    operands: Vec<ExprId>,
    attrs: Vec<(&'static str, AttrId)>,
) -> Result<Lowered, UnsupportedReason> {
    Ok(Lowered::Call { op: op.into(), operands, attrs })
}

fn import_conv(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let (op, attrs) = conv_operands(n, 1, ["nn.conv1d", "nn.conv2d", "nn.conv3d"])?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    call(op, operands, attrs)
}

/// Attributes of a call.
type Attrs = Vec<(&'static str, AttrId)>;

/// Returns our operator for the number of axes, and the attributes of a convolution whose weights
/// are the operand `weights`.
pub(super) fn conv_operands(
    n: &mut NodeImport<'_, '_>,
    weights: usize,
    names: [&'static str; 3],
) -> Result<(&'static str, Attrs), UnsupportedReason> {
    has_window(n, weights)?;
    let weights = n.extents(weights)?;
    let kernel: Option<Vec<i64>> = weights.iter().skip(2).copied().collect();
    let kernel = kernel.ok_or_else(|| because("the extents of its weights are not known"))?;
    if n.ints("kernel_shape").is_some_and(|k| k != kernel) {
        return Err(UnsupportedReason::misfit("the attribute `kernel_shape` is not the extents of its weights"));
    }
    let op = by_rank(names, kernel.len())?;
    let window = Window::read(n, kernel)?;
    let mut attrs = window.attrs(n);
    let groups = n.int("group").unwrap_or(1);
    attrs.push(("groups", n.cx().int_attr(groups)));
    Ok((op, attrs))
}

fn import_max_pool(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let order = n.int("storage_order");
    if order.is_some() && n.opset() < 8 {
        return Err(because("the attribute `storage_order` is younger than the version"));
    }
    if n.output_count() < 2 {
        // The storage order only affects the second output.
        return import_pool(n, ["nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"]);
    }
    let names = ["nn.max_pool_with_indices1d", "nn.max_pool_with_indices2d", "nn.max_pool_with_indices3d"];
    let mut lowered = import_pool(n, names)?;
    if let (Lowered::Call { attrs, .. }, 1) = (&mut lowered, order.unwrap_or(0)) {
        attrs.push(("column_major", n.bool_attr(true)));
    }
    Ok(lowered)
}

fn import_average_pool(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    import_pool(n, ["nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"])
}

fn import_pool(n: &mut NodeImport<'_, '_>, names: [&'static str; 3]) -> Result<Lowered, UnsupportedReason> {
    let kernel = n.needed("kernel_shape", n.ints("kernel_shape"))?.to_vec();
    let op = by_rank(names, kernel.len())?;
    let pool_size = n.cx().ints_attr(&kernel);
    let window = Window::read(n, kernel)?;
    let operands = n.all_operands()?;
    let mut attrs = window.attrs(n);
    attrs.push(("pool_size", pool_size));
    add_ceil_mode(n, &window, &mut attrs)?;
    if n.int("count_include_pad").unwrap_or(0) != 0 {
        attrs.push(("count_include_pad", n.bool_attr(true)));
    }
    call(op, operands, attrs)
}

/// Since this version the format, like our operators, ignores windows that would begin in the
/// padding at the end.
const CEIL_SINCE: i64 = 22;

/// Adds `ceil_mode` if the node has it with the meaning that it has in our operators.
pub(super) fn add_ceil_mode(
    n: &mut NodeImport<'_, '_>,
    window: &Window,
    attrs: &mut Vec<(&'static str, AttrId)>,
) -> Result<(), UnsupportedReason> {
    if n.int("ceil_mode").unwrap_or(0) == 0 {
        return Ok(());
    }
    if n.opset() < CEIL_SINCE {
        let count = n.int("count_include_pad").unwrap_or(0) != 0;
        if count || window.all_begin_inside(&n.extents(0)?) != Some(true) {
            return Err(because("`ceil_mode` may make windows of padding alone"));
        }
    }
    attrs.push(("ceil_mode", n.bool_attr(true)));
    Ok(())
}

fn import_global(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let names = ["nn.global_avg_pool1d", "nn.global_avg_pool2d", "nn.global_avg_pool3d"];
    let op = by_rank(names, n.rank(0)?.saturating_sub(2))?;
    let operands = n.all_operands()?;
    call(op, operands, Vec::new())
}

/// Returns the attributes that convolutions and pools share, without those that have their default
/// value.
pub(super) fn window_attributes(n: &NodeExport<'_>) -> Vec<AttributeProto> {
    let mut attributes = Vec::new();
    for (ours, theirs, default) in [("dilation", "dilations", 1), ("padding", "pads", 0), ("strides", "strides", 1)] {
        let values = n.attrs().ints(ours).filter(|v| v.iter().any(|&x| x != default));
        attributes.extend(values.map(|v| ints_attribute(theirs, &v)));
    }
    attributes
}

fn export_conv(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    export_windows(n, "Conv", 1)
}

/// Writes a convolution whose weights are the operand `weights`.
pub(super) fn export_windows(n: &mut NodeExport<'_>, op_type: &str, weights: usize) -> Result<(), ExportProblem> {
    let mut attributes = window_attributes(n);
    let groups = n.attrs().int("groups").unwrap_or(1);
    if groups != 1 {
        attributes.push(int_attribute("group", groups));
    }
    if let Some(kernel) = n.extents(weights).and_then(|w| w.get(2..).map(<[i64]>::to_vec)) {
        attributes.push(ints_attribute("kernel_shape", &kernel));
    }
    let inputs = n.operands()?;
    n.emit(op_type, inputs, attributes);
    Ok(())
}

fn export_max_pool(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().ints("dilation").is_some_and(|d| d.iter().any(|&x| x != 1)) {
        n.needs_opset(10)?;
    }
    let attributes = pool_attributes(n)?;
    let inputs = n.operands()?;
    n.emit("MaxPool", inputs, attributes);
    Ok(())
}

/// The first version in which the mean of a window may count its padding.
const COUNTS_PADDING_SINCE: i64 = 7;

fn export_average_pool(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().ints("dilation").is_some_and(|d| d.iter().any(|&x| x != 1)) {
        n.needs_opset(19)?;
    }
    let mut attributes = pool_attributes(n)?;
    let mut inputs = n.operands()?;
    if n.attrs().bool("count_include_pad").unwrap_or(false) {
        if n.states_versions() && n.opset() < COUNTS_PADDING_SINCE {
            // Elements that an operator of its own adds count.
            attributes.retain(|attribute| attribute.name() != "pads");
            let margins = n.attrs().ints("padding").unwrap_or_default();
            let (begins, ends) = margins.split_at(margins.len() / 2);
            let pads = [&[0, 0], begins, &[0, 0], ends].concat();
            inputs[0] = n.step("Pad", vec![std::mem::take(&mut inputs[0])], vec![ints_attribute("pads", &pads)]);
        } else {
            n.needs_opset(COUNTS_PADDING_SINCE)?;
            attributes.push(int_attribute("count_include_pad", 1));
        }
    }
    n.emit("AveragePool", inputs, attributes);
    Ok(())
}

pub(super) fn pool_attributes(n: &mut NodeExport<'_>) -> Result<Vec<AttributeProto>, ExportProblem> {
    let mut attributes = window_attributes(n);
    attributes.extend(n.attrs().ints("pool_size").map(|k| ints_attribute("kernel_shape", &k)));
    if n.attrs().bool("ceil_mode").unwrap_or(false) {
        n.needs_opset(10)?;
        let extents = n.partial_extents(0).unwrap_or_default();
        let window = Window::of_call(n, extents.len());
        let all_begin_inside = window.and_then(|w| w.all_begin_inside(&extents)) == Some(true);
        if !all_begin_inside || n.attrs().bool("count_include_pad").unwrap_or(false) {
            n.needs_opset(CEIL_SINCE)?;
        }
        attributes.push(int_attribute("ceil_mode", 1));
    }
    Ok(attributes)
}
