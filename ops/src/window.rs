//! Convolutions and pools of one to three spatial axes.

use anfora_ir::FusionPattern::OutEWiseFusable;
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, AttrReader, Context, DType, DimId, DimOp, KernelCall, KernelError, Literal,
    OpDef, Splat, TensorType, TypeCall, TypeError, TypeId,
};

use crate::axis_letters::{
    AxisPlaces, DATA_LAYOUT, KERNEL_LAYOUT, POOL_LAYOUT, data_layout, in_layout, kernel_layout, plain_data,
    plain_kernel, pool_layout,
};
use crate::kernels::Failure;
use crate::kernels::convolution;
use crate::kernels::pool::{self, Divisor};
use crate::kernels::reduction::{self, Axes, Reduce};
use crate::kernels::window::{Rounding, Sliding, Windows};
use crate::row::row;
use crate::steps;
use crate::typing::{
    Elements, Extents, RequiredAttrs, as_extent, differ, extent, optional, ranked, result, same_elements, tensor, unify,
};

macro_rules! windows {
    ($($n:literal $ones:tt $zeros:tt $conv:literal $max:literal $avg:literal $global:literal;)*) => {
        /// Returns the rows of this family.
        pub(crate) fn rows() -> Vec<OpDef> {
            vec![$(
                row(
                    $conv,
                    "the convolution of (n, c, spatial…) with (m, c / groups, kernel…), plus an optional bias (m)",
                    Arity::between(2, 3),
                    conv_type::<$n>,
                    convolve::<$n>,
                )
                .steps(steps::convolution)
                .attrs(
                    const {
                        &[
                            strides(&$ones),
                            padding(&$zeros),
                            dilation(&$ones),
                            GROUPS,
                            data_layout(plain_data($n)),
                            kernel_layout(plain_kernel($n)),
                        ]
                    },
                )
                .fusion(OutEWiseFusable),
                row($max, "the largest element under each window; padding is left out", Arity::exactly(1), max_pool_type::<$n>, |c| {
                    let lists = Lists::read(&c.attrs)?;
                    in_layout(c, (POOL_LAYOUT, plain_data($n)), |x| pool::max_pool(x, lists.sliding(&lists.kernel)))
                })
                .steps(steps::windows)
                .attrs(
                    const {
                        &[
                            POOL_SIZE,
                            strides(&$ones),
                            padding(&$zeros),
                            dilation(&$ones),
                            CEIL_MODE,
                            pool_layout(plain_data($n)),
                        ]
                    },
                )
                .fusion(OutEWiseFusable),
                row($avg, "the mean of the elements under each window", Arity::exactly(1), avg_pool_type::<$n>, |c| {
                    let lists = Lists::read(&c.attrs)?;
                    let padded = c.attrs.required_bool("count_include_pad")?;
                    let divisor = if padded { Divisor::Padded } else { Divisor::Inside };
                    in_layout(c, (POOL_LAYOUT, plain_data($n)), |x| {
                        pool::avg_pool(x, lists.sliding(&lists.kernel), divisor)
                    })
                })
                .steps(steps::windows)
                .attrs(
                    const {
                        &[
                            POOL_SIZE,
                            strides(&$ones),
                            padding(&$zeros),
                            dilation(&$ones),
                            CEIL_MODE,
                            COUNT_INCLUDE_PAD,
                            pool_layout(plain_data($n)),
                        ]
                    },
                )
                .fusion(OutEWiseFusable),
                row($global, "the mean over the spatial axes, which become 1", Arity::exactly(1), global_pool_type::<$n>, |c| {
                    in_layout(c, (POOL_LAYOUT, plain_data($n)), |x| {
                        reduction::reduce(Reduce::Mean, x, &Axes::from(2, x.rank()))
                    })
                })
                .attrs(const { &[pool_layout(plain_data($n))] })
                .splat(Splat::OfAll)
                .fusion(OutEWiseFusable),
            )*]
        }
    };
}
windows! {
    1 [1] [0, 0] "nn.conv1d" "nn.max_pool1d" "nn.avg_pool1d" "nn.global_avg_pool1d";
    2 [1, 1] [0, 0, 0, 0] "nn.conv2d" "nn.max_pool2d" "nn.avg_pool2d" "nn.global_avg_pool2d";
    3 [1, 1, 1] [0, 0, 0, 0, 0, 0] "nn.conv3d" "nn.max_pool3d" "nn.avg_pool3d" "nn.global_avg_pool3d";
}

/// Returns the attributes of a quantized convolution with `spatial` spatial axes. It has the plain
/// layout.
pub(crate) fn plain_convolution_attrs(spatial: usize) -> &'static [AttrDef] {
    match spatial {
        1 => const { &[strides(&[1]), padding(&[0; 2]), dilation(&[1]), GROUPS] },
        2 => const { &[strides(&[1; 2]), padding(&[0; 4]), dilation(&[1; 2]), GROUPS] },
        _ => const { &[strides(&[1; 3]), padding(&[0; 6]), dilation(&[1; 3]), GROUPS] },
    }
}

pub(crate) const fn strides(ones: &'static [i64]) -> AttrDef {
    AttrDef::new(
        "strides",
        AttrKind::Ints,
        AttrDefault::Ints(ones),
        "the distance of neighbouring windows on each spatial axis",
    )
}

pub(crate) const fn padding(zeros: &'static [i64]) -> AttrDef {
    AttrDef::new(
        "padding",
        AttrKind::Ints,
        AttrDefault::Ints(zeros),
        "elements put before each spatial axis, then those put after each",
    )
}

pub(crate) const fn dilation(ones: &'static [i64]) -> AttrDef {
    AttrDef::new(
        "dilation",
        AttrKind::Ints,
        AttrDefault::Ints(ones),
        "the distance of neighbouring taps on each spatial axis",
    )
}

pub(crate) const GROUPS: AttrDef =
    AttrDef::new("groups", AttrKind::Int, AttrDefault::Int(1), "how many groups the channels and features fall into");
pub(crate) const POOL_SIZE: AttrDef = AttrDef::required("pool_size", AttrKind::Ints, "the taps on each spatial axis");
pub(crate) const CEIL_MODE: AttrDef = AttrDef::flag(
    "ceil_mode",
    "whether a last, incomplete window counts, unless it would start in the padding at the end",
);
const COUNT_INCLUDE_PAD: AttrDef =
    AttrDef::flag("count_include_pad", "whether the mean divides by the taps in the padding too");

/// The attributes that are lists.
pub(crate) struct Lists {
    /// Empty for a convolution.
    pub(crate) kernel: Vec<i64>,
    pub(crate) strides: Vec<i64>,
    pub(crate) padding: Vec<i64>,
    pub(crate) dilation: Vec<i64>,
    pub(crate) rounding: Rounding,
}

impl Lists {
    pub(crate) fn read(attrs: &AttrReader<'_>) -> Result<Lists, Failure> {
        let ceil = attrs.bool("ceil_mode").unwrap_or(false);
        Ok(Lists {
            kernel: attrs.ints("pool_size").unwrap_or_default(),
            strides: attrs.required_ints("strides")?,
            padding: attrs.required_ints("padding")?,
            dilation: attrs.ints("dilation").unwrap_or_default(),
            rounding: if ceil { Rounding::Ceil } else { Rounding::Floor },
        })
    }

    pub(crate) fn sliding<'a>(&'a self, kernel: &'a [i64]) -> Sliding<'a> {
        Sliding {
            kernel,
            strides: &self.strides,
            padding: &self.padding,
            dilation: &self.dilation,
            rounding: self.rounding,
        }
    }

    /// Returns the spatial extents of the result.
    fn output(&self, cx: &mut Context, input: &[DimId], kernel: &[Option<i64>]) -> Result<Extents, TypeError> {
        let spatial = input.len();
        // Unknown extents must not hide an error in the lists. Unknown kernel extents are replaced
        // by 1, and unknown input extents by extents in which the window fits.
        let stand_in: Vec<i64> = kernel.iter().map(|k| k.unwrap_or(1)).collect();
        let fits = |i: usize| {
            let reach = (stand_in[i] as u128).saturating_mul(self.dilation.get(i).map_or(1, |&d| d.max(1) as u128));
            usize::try_from(reach).unwrap_or(usize::MAX).min(1 << 60)
        };
        let extents: Vec<usize> = (0..spatial).map(|i| as_extent(cx, input[i]).unwrap_or_else(|| fits(i))).collect();
        let windows = Windows::new(&extents, self.sliding(&stand_in))?;
        let output = windows.output();
        let mut dims = Extents::new();
        for i in 0..spatial {
            let known = as_extent(cx, input[i]).is_some();
            let dim = match kernel[i] {
                Some(_) if known => extent(cx, output[i]),
                Some(k) if self.rounding == Rounding::Floor => self.symbolic(cx, input[i], k, i, spatial),
                _ => cx.types.dims.unknown(),
            };
            dims.push(dim);
        }
        Ok(dims)
    }

    /// Returns `floordiv(input + padding - reach, stride) + 1`. The lists must have been checked.
    fn symbolic(&self, cx: &mut Context, input: DimId, kernel: i64, i: usize, spatial: usize) -> DimId {
        let reach = (kernel - 1).saturating_mul(self.dilation[i]).saturating_add(1);
        let slack = self.padding[i].saturating_add(self.padding[spatial + i]).saturating_sub(reach);
        let dims = &mut cx.types.dims;
        let (slack, stride, one) = (dims.constant(slack), dims.constant(self.strides[i]), dims.constant(1));
        let room = dims.add(input, slack);
        let steps = dims.op(DimOp::FloorDiv, room, stride);
        dims.add(steps, one)
    }
}

fn convolve<const N: usize>(c: &KernelCall<'_>) -> Result<Vec<Literal>, KernelError> {
    let lists = Lists::read(&c.attrs)?;
    let groups = c.attrs.required_int("groups")?;
    let w = AxisPlaces::read(&c.attrs, KERNEL_LAYOUT, plain_kernel(N))?.to_plain(c.operand(1)?)?;
    in_layout(c, (DATA_LAYOUT, plain_data(N)), |x| {
        convolution::convolve(x, &w, c.optional(2), groups, lists.sliding(&[]))
    })
}

fn conv_type<const N: usize>(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, w) = (tensor(call, 0, Elements::Float)?, tensor(call, 1, Elements::Float)?);
    same_elements(&x, &w, 1)?;
    let bias = optional(call, 2, Elements::Float)?;
    if let Some(bias) = &bias {
        same_elements(&x, bias, 2)?;
    }
    convolution_type::<N>(call, [(0, &x), (1, &w)], bias.as_ref().map(|b| (2, b)), x.dtype)
}

/// Returns the type of a convolution of two operands, given with their indices, with elements of
/// `dtype`.
pub(crate) fn convolution_type<const N: usize>(
    call: &mut TypeCall<'_>,
    [(i, x), (j, w)]: [(usize, &TensorType); 2],
    bias: Option<(usize, &TensorType)>,
    dtype: DType,
) -> Result<TypeId, TypeError> {
    let lists = Lists::read(&call.attrs())?;
    let groups = call.attrs().required_int("groups")?;
    let data = AxisPlaces::read(&call.attrs(), DATA_LAYOUT, plain_data(N))?;
    let kernel = AxisPlaces::read(&call.attrs(), KERNEL_LAYOUT, plain_kernel(N))?;
    let xs = data.in_plain(&ranked(call.cx, x, i, N + 2)?);
    let ws = kernel.in_plain(&ranked(call.cx, w, j, N + 2)?);
    if groups < 1 {
        return Err(TypeError::new(format!("{groups} groups")));
    }
    let by = call.cx.types.dims.constant(groups);
    let channels = call.cx.types.dims.mul(ws[1], by);
    if unify(call.cx, channels, xs[1]).is_none() {
        return Err(differ(call.cx, i, "the number of channels", xs[1], channels));
    }
    if call.cx.types.dims.as_constant(ws[0]).is_some_and(|m| m % groups != 0) {
        let m = call.cx.dim_text(ws[0]);
        return Err(TypeError::operand(j, format!("{m} features of operand {j} do not fall into {groups} groups")));
    }
    if let Some((k, bias)) = bias {
        let b = ranked(call.cx, bias, k, 1)?;
        if unify(call.cx, b[0], ws[0]).is_none() {
            return Err(differ(call.cx, k, "the extent", b[0], ws[0]));
        }
    }
    let kernel: Vec<Option<i64>> = ws[2..].iter().map(|&d| call.cx.types.dims.as_constant(d)).collect();
    let mut dims = Extents::from_slice(&[xs[0], ws[0]]);
    dims.extend(lists.output(call.cx, &xs[2..], &kernel)?);
    Ok(result(call.cx, dtype, Some(&data.in_tensor(&dims))))
}

/// Returns the extents of the result of a pool.
pub(crate) fn pool_dims(call: &mut TypeCall<'_>, x: &TensorType, spatial: usize) -> Result<Extents, TypeError> {
    let lists = Lists::read(&call.attrs())?;
    let layout = AxisPlaces::read(&call.attrs(), POOL_LAYOUT, plain_data(spatial))?;
    let xs = layout.in_plain(&ranked(call.cx, x, 0, spatial + 2)?);
    if lists.kernel.len() != spatial {
        return Err(TypeError::new(format!("attribute `pool_size` has {} entries, not {spatial}", lists.kernel.len())));
    }
    let kernel: Vec<Option<i64>> = lists.kernel.iter().map(|&k| Some(k)).collect();
    let mut dims: Extents = xs[..2].into();
    dims.extend(lists.output(call.cx, &xs[2..], &kernel)?);
    Ok(layout.in_tensor(&dims))
}

fn max_pool_type<const N: usize>(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Number)?;
    let dims = pool_dims(call, &x, N)?;
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

fn avg_pool_type<const N: usize>(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    let dims = pool_dims(call, &x, N)?;
    Ok(result(call.cx, x.dtype, Some(&dims)))
}

fn global_pool_type<const N: usize>(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let x = tensor(call, 0, Elements::Float)?;
    global_type(call, &x, N)
}

/// Returns the type of `x` with spatial extents of 1.
pub(crate) fn global_type(call: &mut TypeCall<'_>, x: &TensorType, spatial: usize) -> Result<TypeId, TypeError> {
    let layout = AxisPlaces::read(&call.attrs(), POOL_LAYOUT, plain_data(spatial))?;
    let mut dims = ranked(call.cx, x, 0, spatial + 2)?;
    let one = call.cx.types.dims.constant(1);
    (2..spatial + 2).for_each(|axis| dims[layout.place(axis)] = one);
    Ok(result(call.cx, x.dtype, Some(&dims)))
}
