//! Pools other than maximum and mean, and operators that invert windows.

use anfora_ir::DType;

use super::window::{MAX_POOL, Window, add_ceil_mode, by_rank, call, has_window, pool_attributes, window_attributes};
use super::{
    Conversion, Conversions, Lowered, NEWEST, NodeExport, NodeImport, OPSETS, export_direct, int_attribute,
    ints_attribute,
};
use crate::error::{ExportProblem, UnsupportedReason, because};
use crate::proto::AttributeType;

const LP_POOL: &[(&str, AttributeType)] = &[
    ("auto_pad", AttributeType::String),
    ("ceil_mode", AttributeType::Int),
    ("dilations", AttributeType::Ints),
    ("kernel_shape", AttributeType::Ints),
    ("p", AttributeType::Int),
    ("pads", AttributeType::Ints),
    ("strides", AttributeType::Ints),
];
const UNPOOL: &[(&str, AttributeType)] =
    &[("kernel_shape", AttributeType::Ints), ("pads", AttributeType::Ints), ("strides", AttributeType::Ints)];
const TRANSPOSED: &[(&str, AttributeType)] = &[
    ("auto_pad", AttributeType::String),
    ("dilations", AttributeType::Ints),
    ("group", AttributeType::Int),
    ("kernel_shape", AttributeType::Ints),
    ("output_padding", AttributeType::Ints),
    ("output_shape", AttributeType::Ints),
    ("pads", AttributeType::Ints),
    ("strides", AttributeType::Ints),
];
const IMAGES: &[(&str, AttributeType)] =
    &[("dilations", AttributeType::Ints), ("pads", AttributeType::Ints), ("strides", AttributeType::Ints)];

pub(super) fn register(table: &mut Conversions) {
    for native in ["nn.lp_pool1d", "nn.lp_pool2d", "nn.lp_pool3d"] {
        let row = Conversion::new("LpPool", OPSETS, native).attributes(LP_POOL);
        table.register(row.import(import_lp_pool).export(export_lp_pool));
    }
    for native in ["nn.max_pool_with_indices1d", "nn.max_pool_with_indices2d", "nn.max_pool_with_indices3d"] {
        // The row of the pool without indices imports it.
        table.register(Conversion::new("MaxPool", 8..=NEWEST, native).attributes(MAX_POOL).export(export_with_indices));
    }
    for native in ["nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d"] {
        let row = Conversion::new("GlobalMaxPool", OPSETS, native);
        table.register(row.import(import_global_max).export(export_direct));
    }
    for native in ["nn.global_lp_pool1d", "nn.global_lp_pool2d", "nn.global_lp_pool3d"] {
        let row = Conversion::new("GlobalLpPool", OPSETS, native).attributes(&[("p", AttributeType::Int)]);
        table.register(row.import(import_global_lp).export(export_global_lp));
    }
    for native in ["nn.max_unpool1d", "nn.max_unpool2d", "nn.max_unpool3d"] {
        let row = Conversion::new("MaxUnpool", 9..=NEWEST, native).attributes(UNPOOL);
        table.register(row.import(import_unpool).export(export_unpool));
    }
    for native in ["nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"] {
        let row = Conversion::new("ConvTranspose", OPSETS, native).attributes(TRANSPOSED);
        table.register(row.import(import_transposed).export(export_transposed));
    }
    let row = Conversion::new("Col2Im", 18..=NEWEST, "col2im").attributes(IMAGES);
    table.register(row.import(import_images).export(export_images));
}

fn import_lp_pool(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let kernel = n.needed("kernel_shape", n.ints("kernel_shape"))?.to_vec();
    let op = by_rank(["nn.lp_pool1d", "nn.lp_pool2d", "nn.lp_pool3d"], kernel.len())?;
    let pool_size = n.cx().ints_attr(&kernel);
    let window = Window::read(n, kernel)?;
    let operands = n.all_operands()?;
    let p = n.int("p").unwrap_or(2);
    if p < 1 {
        return n.unknown_value("p", p);
    }
    let mut attrs = window.attrs(n);
    attrs.extend([("pool_size", pool_size), ("p", n.cx().int_attr(p))]);
    add_ceil_mode(n, &window, &mut attrs)?;
    call(op, operands, attrs)
}

fn export_lp_pool(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let has = |list: Option<Vec<i64>>| list.is_some_and(|d| d.iter().any(|&x| x != 1));
    if has(n.attrs().ints("dilation")) || n.attrs().bool("ceil_mode").unwrap_or(false) {
        n.needs_opset(18)?;
    }
    let mut attributes = pool_attributes(n)?;
    attributes.extend(n.attrs().int("p").filter(|&p| p != 2).map(|p| int_attribute("p", p)));
    let inputs = n.operands()?;
    n.emit("LpPool", inputs, attributes);
    Ok(())
}

fn export_with_indices(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if n.attrs().ints("dilation").is_some_and(|d| d.iter().any(|&x| x != 1)) {
        n.needs_opset(10)?;
    }
    let mut attributes = pool_attributes(n)?;
    if n.attrs().bool("column_major").unwrap_or(false) {
        attributes.push(int_attribute("storage_order", 1));
    }
    let inputs = n.operands()?;
    n.drop_unused_outputs(1);
    n.emit("MaxPool", inputs, attributes);
    Ok(())
}

fn import_global_max(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let names = ["nn.global_max_pool1d", "nn.global_max_pool2d", "nn.global_max_pool3d"];
    let op = by_rank(names, n.rank(0)?.saturating_sub(2))?;
    let operands = n.all_operands()?;
    call(op, operands, Vec::new())
}

fn import_global_lp(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let names = ["nn.global_lp_pool1d", "nn.global_lp_pool2d", "nn.global_lp_pool3d"];
    let op = by_rank(names, n.rank(0)?.saturating_sub(2))?;
    let p = n.int("p").unwrap_or(2);
    if p < 1 {
        return n.unknown_value("p", p);
    }
    let operands = n.all_operands()?;
    let p = n.cx().int_attr(p);
    call(op, operands, vec![("p", p)])
}

fn export_global_lp(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let p = n.attrs().int("p").unwrap_or(2);
    let inputs = n.operands()?;
    n.emit("GlobalLpPool", inputs, if p == 2 { Vec::new() } else { vec![int_attribute("p", p)] });
    Ok(())
}

fn import_unpool(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    n.float_dtype(0)?;
    let kernel = n.needed("kernel_shape", n.ints("kernel_shape"))?.to_vec();
    let op = by_rank(["nn.max_unpool1d", "nn.max_unpool2d", "nn.max_unpool3d"], kernel.len())?;
    let pool_size = n.cx().ints_attr(&kernel);
    let window = Window::read(n, kernel)?;
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    let mut attrs = window.attrs(n);
    attrs.push(("pool_size", pool_size));
    call(op, operands, attrs)
}

fn export_unpool(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    if !n.dtype(0).is_some_and(DType::is_float) {
        return Err(ExportProblem::Unsupported(format!("`{}` of elements that are not floats", n.native())));
    }
    let attributes = pool_attributes(n)?;
    let inputs = n.operands()?;
    n.emit("MaxUnpool", inputs, attributes);
    Ok(())
}

fn import_transposed(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    // Check the weights and the attributes.
    n.float_dtype(0)?;
    has_window(n, 1)?;
    let weights = n.extents(1)?;
    let kernel: Option<Vec<i64>> = weights.iter().skip(2).copied().collect();
    let kernel = kernel.ok_or_else(|| because("the extents of its weights are not known"))?;
    if n.ints("kernel_shape").is_some_and(|k| k != kernel) {
        return Err(UnsupportedReason::misfit("the attribute `kernel_shape` is not the extents of its weights"));
    }
    let axes = kernel.len();
    let op = by_rank(["nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose"], axes)?;
    let more = n.ints("output_padding").map_or(vec![0; axes], <[i64]>::to_vec);
    if more.len() != axes || more.iter().any(|m| !(0..1 << 31).contains(m)) {
        return Err(because("the attribute `output_padding` does not have an entry for each axis, in range"));
    }
    let shape = n.ints("output_shape").map(<[i64]>::to_vec);
    let mode = n.str("auto_pad").unwrap_or("NOTSET").to_owned();
    let mut window = Window::read_lists(n, kernel)?;
    // `output_shape` or `auto_pad` defines the extents of the result; the padding is computed from
    // them.
    let wanted = match (&shape, mode.as_str()) {
        (Some(shape), "NOTSET" | "SAME_UPPER" | "SAME_LOWER") => {
            // Older files state the whole shape.
            let skipped = if shape.len() == axes + 2 { 2 } else { 0 };
            Some(shape[skipped..].iter().map(|&s| Some(s)).collect::<Vec<_>>())
        }
        (None, "SAME_UPPER" | "SAME_LOWER") => {
            let extents = n.extents(0)?;
            let wanted = extents[2..].iter().zip(&window.strides);
            Some(wanted.map(|(e, s)| e.and_then(|e| e.checked_mul(*s))).collect())
        }
        (None, "NOTSET" | "VALID") => None,
        _ => return n.unknown_value("auto_pad", mode),
    };
    if let Some(wanted) = wanted {
        if n.ints("pads").is_some_and(|p| p.iter().any(|&p| p != 0)) && shape.is_none() {
            return Err(because("it has both `auto_pad` and `pads`"));
        }
        let extents = n.extents(0)?;
        if wanted.len() != axes || extents.len() != axes + 2 {
            return Err(because("the attribute `output_shape` does not have an entry for each axis"));
        }
        for axis in 0..axes {
            let total = (|| {
                let steps = extents[axis + 2]?.checked_sub(1)?.checked_mul(window.strides[axis])?;
                steps.checked_add(more[axis])?.checked_add(window.reach(axis))?.checked_sub(wanted[axis]?)
            })();
            let total = total.ok_or_else(|| because("its padding follows from extents that are not known"))?;
            if !(0..1 << 31).contains(&total) {
                return Err(because("its padding would be negative, or huge"));
            }
            let (less, rest) = (total / 2, total - total / 2);
            let (begin, end) = if mode == "SAME_UPPER" { (less, rest) } else { (rest, less) };
            window.pads[axis] = begin;
            window.pads[axes + axis] = end;
        }
    }
    // Make the call.
    let mut operands = vec![n.required(0)?, n.required(1)?];
    operands.extend(n.operand(2));
    let mut attrs = window.attrs(n);
    let groups = n.int("group").unwrap_or(1);
    attrs.push(("groups", n.cx().int_attr(groups)));
    if more.iter().any(|&m| m != 0) {
        attrs.push(("output_padding", n.cx().ints_attr(&more)));
    }
    call(op, operands, attrs)
}

fn export_transposed(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = window_attributes(n);
    let groups = n.attrs().int("groups").unwrap_or(1);
    if groups != 1 {
        attributes.push(int_attribute("group", groups));
    }
    if let Some(kernel) = n.extents(1).and_then(|w| w.get(2..).map(<[i64]>::to_vec)) {
        attributes.push(ints_attribute("kernel_shape", &kernel));
    }
    let more = n.attrs().ints("output_padding").filter(|m| m.iter().any(|&m| m != 0));
    attributes.extend(more.map(|m| ints_attribute("output_padding", &m)));
    let inputs = n.operands()?;
    n.emit("ConvTranspose", inputs, attributes);
    Ok(())
}

fn import_images(n: &mut NodeImport<'_, '_>) -> Result<Lowered, UnsupportedReason> {
    let operands = n.all_operands()?;
    let mut attrs = Vec::new();
    for (theirs, ours) in [("strides", "strides"), ("pads", "padding"), ("dilations", "dilation")] {
        if let Some(values) = n.ints(theirs).map(<[i64]>::to_vec) {
            attrs.push((ours, n.cx().ints_attr(&values)));
        }
    }
    n.call(operands, attrs)
}

fn export_images(n: &mut NodeExport<'_>) -> Result<(), ExportProblem> {
    let mut attributes = Vec::new();
    for (ours, theirs) in [("dilation", "dilations"), ("padding", "pads"), ("strides", "strides")] {
        attributes.extend(n.attrs().ints(ours).map(|v| ints_attribute(theirs, &v)));
    }
    let inputs = n.operands()?;
    n.emit("Col2Im", inputs, attributes);
    Ok(())
}
