//! Pools other than those of the largest element and the mean, and the inverses of windows:
//! transposed convolutions, unpooling, images of patches.

use anfora_ir::FusionPattern::{Opaque, OutEWiseFusable};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, Context, DType, DimId, KernelCall, Literal, OpDef, Splat, TypeCall,
    TypeError, TypeId,
};

use crate::axis_letters::{
    AxisPlaces, DATA_LAYOUT, KERNEL_LAYOUT, POOL_LAYOUT, data_layout, in_layout, kernel_layout, plain_data,
    plain_transposed_kernel, pool_layout,
};
use crate::kernels::pool::{self, Numbering};
use crate::kernels::reduction::{self, Axes, Reduce};
use crate::kernels::transposed;
use crate::kernels::window::Windows;
use crate::kernels::{Failure, shape_text};
use crate::row::row;
use crate::steps;
use crate::typing::{
    Elements, Extents, RequiredAttrs, as_extent, differ, extent, one, optional, ranked, result, same_elements, tensor,
    unify,
};
use crate::window::{CEIL_MODE, GROUPS, Lists, POOL_SIZE, dilation, global_type, padding, pool_dims, strides};

/// Returns the rows of this family.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
pub(crate) fn rows() -> Vec<OpDef> {
    let mut rows = Vec::new();
    rows.extend(by_axes::<1>(
        [
            "nn.lp_pool1d",
            "nn.max_pool_with_indices1d",
            "nn.global_max_pool1d",
            "nn.global_lp_pool1d",
            "nn.max_unpool1d",
            "nn.conv1d_transpose",
        ],
        const {
            &[
                POOL_SIZE,
                strides(&[1]),
                padding(&[0; 2]),
                dilation(&[1]),
                CEIL_MODE,
                P,
                COLUMN_MAJOR,
                pool_layout(plain_data(1)),
            ]
        },
        const {
            &[
                strides(&[1]),
                padding(&[0; 2]),
                output_padding(&[0]),
                dilation(&[1]),
                GROUPS,
                data_layout(plain_data(1)),
                kernel_layout(plain_transposed_kernel(1)),
            ]
        },
    ));
    rows.extend(by_axes::<2>(
        [
            "nn.lp_pool2d",
            "nn.max_pool_with_indices2d",
            "nn.global_max_pool2d",
            "nn.global_lp_pool2d",
            "nn.max_unpool2d",
            "nn.conv2d_transpose",
        ],
        const {
            &[
                POOL_SIZE,
                strides(&[1; 2]),
                padding(&[0; 4]),
                dilation(&[1; 2]),
                CEIL_MODE,
                P,
                COLUMN_MAJOR,
                pool_layout(plain_data(2)),
            ]
        },
        const {
            &[
                strides(&[1; 2]),
                padding(&[0; 4]),
                output_padding(&[0; 2]),
                dilation(&[1; 2]),
                GROUPS,
                data_layout(plain_data(2)),
                kernel_layout(plain_transposed_kernel(2)),
            ]
        },
    ));
    rows.extend(by_axes::<3>(
        [
            "nn.lp_pool3d",
            "nn.max_pool_with_indices3d",
            "nn.global_max_pool3d",
            "nn.global_lp_pool3d",
            "nn.max_unpool3d",
            "nn.conv3d_transpose",
        ],
        const {
            &[
                POOL_SIZE,
                strides(&[1; 3]),
                padding(&[0; 6]),
                dilation(&[1; 3]),
                CEIL_MODE,
                P,
                COLUMN_MAJOR,
                pool_layout(plain_data(3)),
            ]
        },
        const {
            &[
                strides(&[1; 3]),
                padding(&[0; 6]),
                output_padding(&[0; 3]),
                dilation(&[1; 3]),
                GROUPS,
                data_layout(plain_data(3)),
                kernel_layout(plain_transposed_kernel(3)),
            ]
        },
    ));
    rows.push(
        row(
            "col2im",
            "the images of which x (n, c * taps, windows) has the patches, which are added up where they overlap; operands x, image_shape, block_shape",
            Arity::exactly(3),
            col2im_type,
            |c| {
                let image = extents_of(c.operand(1)?, 1)?;
                let lists = ImageLists::read(&c.attrs, c.operand(2)?.to_i64s().unwrap_or_default())?;
                one(transposed::images_of_patches(c.operand(0)?, &image, lists.0.sliding(&lists.0.kernel)))
            },
        )
        .attrs(
            const {
                &[
                    per_axis("strides", "the distance of neighbouring patches on each axis; 1 if left out"),
                    per_axis("padding", "elements put before each axis of the image, then those put after; 0 if left out"),
                    per_axis("dilation", "the distance of neighbouring elements of a patch on each axis; 1 if left out"),
                ]
            },
        )
        .may_fail()
        .fusion(Opaque),
    );
    rows
}

const P: AttrDef = AttrDef::new("p", AttrKind::Int, AttrDefault::Int(2), "which norm");
const COLUMN_MAJOR: AttrDef = AttrDef::flag(
    "column_major",
    "whether the first spatial axis is the fastest in the numbers of the elements of a channel",
);

const fn output_padding(zeros: &'static [i64]) -> AttrDef {
    AttrDef::new(
        "output_padding",
        AttrKind::Ints,
        AttrDefault::Ints(zeros),
        "what is added to each spatial extent of the result, at the end",
    )
}

const fn per_axis(name: &'static str, doc: &'static str) -> AttrDef {
    AttrDef::optional(name, AttrKind::Ints, doc)
}

/// Returns the rows for a number of spatial axes. `pool` lists the attributes of pools: size,
/// strides, padding, dilation and ceil_mode, then `p`, `column_major` and `layout`.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
fn by_axes<const N: usize>(
    [lp, with_indices, global_max, global_lp, unpool, transpose]: [&'static str; 6],
    pool: &'static [AttrDef; 8],
    transposed: &'static [AttrDef],
) -> [OpDef; 6] {
    let [size, strides, padding, dilation, ceil, p, column_major, layout] = pool;
    let list = |attrs: &[&AttrDef]| -> Vec<AttrDef> { attrs.iter().map(|&a| a.clone()).collect() };
    [
        row(
            lp,
            "the p-norm of the elements under each window",
            Arity::exactly(1),
            |call| {
                let x = tensor(call, 0, Elements::Float)?;
                norm(call)?;
                let dims = pool_dims(call, &x, N)?;
                Ok(result(call.cx, x.dtype, Some(&dims)))
            },
            |c| {
                let lists = Lists::read(&c.attrs)?;
                let p = c.attrs.required_int("p")?;
                in_layout(c, (POOL_LAYOUT, plain_data(N)), |x| pool::lp_pool(x, lists.sliding(&lists.kernel), p))
            },
        )
        .steps(steps::windows)
        .attrs(list(&[size, strides, padding, dilation, ceil, p, layout]))
        .fusion(OutEWiseFusable),
        row(
            with_indices,
            "the tuple of the largest element under each window, and the number of the first such element in x, or -1",
            Arity::exactly(1),
            |call| {
                let x = tensor(call, 0, Elements::Number)?;
                let dims = pool_dims(call, &x, N)?;
                let types = &mut call.cx.types;
                let (largest, numbers) = (types.tensor(x.dtype, &dims), types.tensor(DType::Int64, &dims));
                Ok(types.tuple(&[largest, numbers]))
            },
            |c| {
                let lists = Lists::read(&c.attrs)?;
                let column_major = c.attrs.required_bool("column_major")?;
                let numbering = if column_major { Numbering::ColumnMajor } else { Numbering::RowMajor };
                Ok(pool::max_pool_with_indices(c.operand(0)?, lists.sliding(&lists.kernel), numbering)?)
            },
        )
        .steps(steps::windows)
        .attrs(list(&[size, strides, padding, dilation, ceil, column_major]))
        .fusion(Opaque),
        row(
            global_max,
            "the largest element over the spatial axes, which become 1",
            Arity::exactly(1),
            |call| {
                let x = tensor(call, 0, Elements::Number)?;
                global_type(call, &x, N)
            },
            |c| {
                in_layout(c, (POOL_LAYOUT, plain_data(N)), |x| {
                    reduction::reduce(Reduce::Max, x, &Axes::from(2, x.rank()))
                })
            },
        )
        .attrs(list(&[layout]))
        .splat(Splat::OfAll)
        .fusion(OutEWiseFusable),
        row(
            global_lp,
            "the p-norm over the spatial axes, which become 1",
            Arity::exactly(1),
            |call| {
                let x = tensor(call, 0, Elements::Float)?;
                norm(call)?;
                global_type(call, &x, N)
            },
            |c| {
                let p = c.attrs.required_int("p")?;
                in_layout(c, (POOL_LAYOUT, plain_data(N)), |x| pool::global_lp_pool(x, p))
            },
        )
        .attrs(list(&[p, layout]))
        .splat(Splat::OfAll)
        .fusion(OutEWiseFusable),
        row(
            unpool,
            "x at the places that the numbers of elements say, among zeros; operands x, indices, optionally the shape of a larger result",
            Arity::between(2, 3),
            |call| unpool_type(call, N),
            |c| {
                let x = c.operand(0)?;
                let shape = unpooled(x.shape(), &Lists::read(&c.attrs)?)?;
                let padded = c.optional(2).map(|l| extents_of(l, 0)).transpose()?;
                one(pool::max_unpool(x, c.operand(1)?, &shape, padded.as_deref()))
            },
        )
        .attrs(list(&[size, strides, padding]))
        .may_fail()
        .fusion(Opaque),
        row(
            transpose,
            "the transposed convolution of (n, c, spatial…) with (c, m / groups, kernel…), plus an optional bias (m)",
            Arity::between(2, 3),
            |call| transposed_type(call, N),
            |c: &KernelCall<'_>| {
                let lists = Lists::read(&c.attrs)?;
                let (groups, more) = (c.attrs.required_int("groups")?, c.attrs.required_ints("output_padding")?);
                let kernel = AxisPlaces::read(&c.attrs, KERNEL_LAYOUT, plain_transposed_kernel(N))?;
                let w = kernel.to_plain(c.operand(1)?)?;
                in_layout(c, (DATA_LAYOUT, plain_data(N)), |x| {
                    transposed::convolve_transposed(x, &w, c.optional(2), groups, lists.sliding(&[]), &more)
                })
            },
        )
        .steps(steps::transposed_convolution)
        .attrs(transposed)
        .fusion(OutEWiseFusable),
    ]
}

fn norm(call: &TypeCall<'_>) -> Result<(), TypeError> {
    let p = call.attrs().required_int("p")?;
    if p < 1 { Err(TypeError::new(format!("there is no {p}-norm"))) } else { Ok(()) }
}

/// Returns the extents in a list of integers.
fn extents_of(list: &Literal, least: i64) -> Result<Vec<usize>, Failure> {
    let extents = if list.rank() == 1 && list.element_count() <= 64 { list.to_i64s() } else { None };
    let extents = extents.ok_or_else(|| Failure::Mismatch("a shape is a list of at most 64 integers".into()))?;
    extents
        .into_iter()
        .map(|e| usize::try_from(e).ok().filter(|_| e >= least))
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::Mismatch("an extent is negative, or zero".into()))
}

/// Returns the shape from which windows without overlap produce `shape`.
fn unpooled(shape: &[usize], lists: &Lists) -> Result<Vec<usize>, Failure> {
    let mut unpooled = shape.to_vec();
    let spatial = shape.len().saturating_sub(2);
    if lists.kernel.len() != spatial || lists.strides.len() != spatial || lists.padding.len() != 2 * spatial {
        return Err(Failure::Mismatch("lists of strides, padding or kernel extents of the wrong length".into()));
    }
    for i in 0..spatial {
        let padding = [lists.padding[i], lists.padding[spatial + i]];
        unpooled[2 + i] =
            transposed::transposed_extent(shape[2 + i], lists.kernel[i], lists.strides[i], 1, padding, 0)?;
    }
    Ok(unpooled)
}

/// Returns the extent of the result of an inverse of windows along an axis.
fn undone(
    cx: &mut Context,
    input: DimId,
    kernel: Option<i64>,
    lists: &Lists,
    i: usize,
    more: i64,
) -> Result<DimId, TypeError> {
    let spatial = lists.strides.len();
    let (stride, dilation) = (lists.strides[i], lists.dilation.get(i).copied().unwrap_or(1));
    let padding = [lists.padding[i], lists.padding[spatial + i]];
    let Some(kernel) = kernel else { return Ok(cx.types.dims.unknown()) };
    if let Some(known) = as_extent(cx, input) {
        let undone = transposed::transposed_extent(known, kernel, stride, dilation, padding, more)?;
        return Ok(extent(cx, undone));
    }
    // A large extent is used to check whether the lists are in range.
    transposed::transposed_extent(1 << 40, kernel, stride, dilation, padding, more)?;
    let dims = &mut cx.types.dims;
    let reach = (kernel - 1) * dilation + 1;
    let offset = dims.constant(reach + more - padding[0] - padding[1] - stride);
    let by = dims.constant(stride);
    let steps = dims.mul(input, by);
    Ok(dims.add(steps, offset))
}

fn lengths(lists: &Lists, spatial: usize) -> Result<(), TypeError> {
    if lists.strides.len() == spatial && lists.padding.len() == 2 * spatial {
        return Ok(());
    }
    Err(TypeError::new("lists of strides, padding, dilation or extents of the wrong length".to_owned()))
}

fn transposed_type(call: &mut TypeCall<'_>, spatial: usize) -> Result<TypeId, TypeError> {
    let (x, w) = (tensor(call, 0, Elements::Float)?, tensor(call, 1, Elements::Float)?);
    same_elements(&x, &w, 1)?;
    let bias = optional(call, 2, Elements::Float)?;
    let lists = Lists::read(&call.attrs())?;
    let (groups, more) = (call.attrs().required_int("groups")?, call.attrs().required_ints("output_padding")?);
    let data = AxisPlaces::read(&call.attrs(), DATA_LAYOUT, plain_data(spatial))?;
    let kernel = AxisPlaces::read(&call.attrs(), KERNEL_LAYOUT, plain_transposed_kernel(spatial))?;
    let xs = data.in_plain(&ranked(call.cx, &x, 0, spatial + 2)?);
    let ws = kernel.in_plain(&ranked(call.cx, &w, 1, spatial + 2)?);
    lengths(&lists, spatial)?;
    if lists.dilation.len() != spatial || more.len() != spatial {
        return Err(TypeError::new("lists of dilation or output_padding of the wrong length".to_owned()));
    }
    let Some(channels) = unify(call.cx, ws[0], xs[1]) else {
        return Err(differ(call.cx, 1, "the number of channels", ws[0], xs[1]));
    };
    if groups < 1 || call.cx.types.dims.as_constant(channels).is_some_and(|c| c % groups != 0) {
        let c = call.cx.dim_text(channels);
        return Err(TypeError::operand(0, format!("{c} channels of operand 0 do not fall into {groups} groups")));
    }
    let by = call.cx.types.dims.constant(groups);
    let features = call.cx.types.dims.mul(ws[1], by);
    if let Some(bias) = bias {
        same_elements(&x, &bias, 2)?;
        let b = ranked(call.cx, &bias, 2, 1)?;
        if unify(call.cx, b[0], features).is_none() {
            return Err(differ(call.cx, 2, "the extent", b[0], features));
        }
    }
    let mut dims = Extents::from_slice(&[xs[0], features]);
    for i in 0..spatial {
        let kernel = call.cx.types.dims.as_constant(ws[2 + i]);
        let dim = undone(call.cx, xs[2 + i], kernel, &lists, i, more[i])?;
        dims.push(dim);
    }
    Ok(result(call.cx, x.dtype, Some(&data.in_tensor(&dims))))
}

fn unpool_type(call: &mut TypeCall<'_>, spatial: usize) -> Result<TypeId, TypeError> {
    let (x, indices) = (tensor(call, 0, Elements::Any)?, tensor(call, 1, Elements::Integer)?);
    let shape = optional(call, 2, Elements::Integer)?;
    for (i, list) in [(1, Some(&indices)), (2, shape.as_ref())] {
        if let Some(found) = list.map(|l| l.dtype).filter(|&d| d != DType::Int64) {
            return Err(TypeError::operand(i, format!("operand {i} has elements of {found}, but int64 is expected")));
        }
    }
    let lists = Lists { dilation: vec![1; spatial], ..Lists::read(&call.attrs())? };
    let (xs, is) = (ranked(call.cx, &x, 0, spatial + 2)?, ranked(call.cx, &indices, 1, spatial + 2)?);
    lengths(&lists, spatial)?;
    if lists.kernel.len() != spatial {
        return Err(TypeError::new(format!("attribute `pool_size` has {} entries, not {spatial}", lists.kernel.len())));
    }
    let mut dims = Extents::new();
    for (axis, (&dim, &other)) in xs.iter().zip(&is).enumerate() {
        let Some(dim) = unify(call.cx, dim, other) else {
            return Err(differ(call.cx, 1, &format!("the extent of axis {axis}"), other, dim));
        };
        dims.push(match axis.checked_sub(2) {
            None => dim,
            Some(i) => undone(call.cx, dim, Some(lists.kernel[i]), &lists, i, 0)?,
        });
    }
    if let Some(shape) = shape {
        ranked(call.cx, &shape, 2, 1)?;
        dims = match call.literal(2) {
            Some(list) => {
                let list = extents_of(&list.clone(), 0)?;
                if list.len() != spatial + 2 {
                    let found = shape_text(&list);
                    return Err(TypeError::operand(2, format!("the shape {found} has another rank than operand 0")));
                }
                list.into_iter().map(|e| extent(call.cx, e)).collect()
            }
            None => smallvec::smallvec![call.cx.types.dims.unknown(); spatial + 2],
        };
    }
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

/// The lists of windows over an image, with the defaults of omitted lists.
struct ImageLists(Lists);

impl ImageLists {
    fn read(attrs: &anfora_ir::AttrReader<'_>, block: Vec<i64>) -> Result<ImageLists, Failure> {
        let n = block.len();
        let list = |name: &str, value: i64, len: usize| attrs.ints(name).unwrap_or_else(|| vec![value; len]);
        Ok(ImageLists(Lists {
            kernel: block,
            strides: list("strides", 1, n),
            padding: list("padding", 0, 2 * n),
            dilation: list("dilation", 1, n),
            rounding: crate::kernels::window::Rounding::Floor,
        }))
    }
}

fn col2im_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Number)?;
    let dims = ranked(call.cx, &x, 0, 3)?;
    let mut axes = None;
    for i in [1, 2] {
        let list = tensor(call, i, Elements::Integer)?;
        if list.dtype != DType::Int64 {
            let found = list.dtype;
            return Err(TypeError::operand(i, format!("operand {i} has elements of {found}, but int64 is expected")));
        }
        let n = ranked(call.cx, &list, i, 1)?;
        axes = axes.or(as_extent(call.cx, n[0]));
    }
    let read = |call: &TypeCall<'_>, i: usize| call.literal(i).map(|l| extents_of(l, 1)).transpose();
    let (image, block) = (read(call, 1)?, read(call, 2)?);
    let channels = match (&block, as_extent(call.cx, dims[1])) {
        (Some(block), Some(rows)) => {
            let taps = block.iter().try_fold(1usize, |n, &e| n.checked_mul(e)).ok_or(Failure::TooLarge)?;
            if rows % taps != 0 {
                return Err(TypeError::operand(0, format!("{rows} rows of operand 0 are no whole patches of {taps}")));
            }
            extent(call.cx, rows / taps)
        }
        _ => call.cx.types.dims.unknown(),
    };
    if let (Some(image), Some(block)) = (&image, &block) {
        let kernel =
            block.iter().map(|&e| i64::try_from(e)).collect::<Result<_, _>>().map_err(|_| Failure::TooLarge)?;
        let lists = ImageLists::read(&call.attrs(), kernel)?;
        let windows = Windows::new(image, lists.0.sliding(&lists.0.kernel))?.product(|a| a.output)?;
        let windows = extent(call.cx, windows);
        if unify(call.cx, dims[2], windows).is_none() {
            return Err(differ(call.cx, 0, "the number of windows", dims[2], windows));
        }
    }
    let mut shape = Extents::from_slice(&[dims[0], channels]);
    match (image, axes) {
        (Some(image), _) => shape.extend(image.into_iter().map(|e| extent(call.cx, e))),
        (None, Some(n)) if n <= crate::kernels::window::MAX_SPATIAL => {
            shape.extend((0..n).map(|_| call.cx.types.dims.unknown()));
        }
        _ => return Ok(call.cx.types.unranked(x.dtype)),
    }
    Ok(result(call.cx, x.dtype, Some(&shape)))
}
