//! Quantization, and products and convolutions of quantized tensors.

use anfora_ir::FusionPattern::{Broadcast, Opaque, OutEWiseFusable};
use anfora_ir::{
    Arity, AttrDef, AttrDefault, AttrKind, DType, KernelCall, KernelError, Literal, OpDef, Splat, TensorType, TypeCall,
    TypeError, TypeId,
};

use crate::elementwise::conversion::SATURATE;
use crate::kernels::quantization::{self, Along, Granularity, Scaled};
use crate::matrix::product_type;
use crate::row::row;
use crate::steps;
use crate::typing::{Elements, RequiredAttrs, one, optional, result, same_elements, tensor};
use crate::window::{Lists, convolution_type, plain_convolution_attrs};

const AXIS: AttrDef = AttrDef::new(
    "axis",
    AttrKind::Int,
    AttrDefault::Int(1),
    "the axis along which scales and zero points differ, if there is more than one",
);
const BLOCK_SIZE: AttrDef = AttrDef::new(
    "block_size",
    AttrKind::Int,
    AttrDefault::Int(0),
    "how many neighbours along the axis share a scale; 0 for one scale an index, or one for all",
);
const DTYPE: &str = "dtype";
const QUANTIZE_ATTRS: &[AttrDef] = &[
    AXIS,
    BLOCK_SIZE,
    AttrDef::optional(
        DTYPE,
        AttrKind::DType,
        "the element type of the result; that of the zero point or else uint8 if left out",
    ),
    AttrDef::optional(
        "precision",
        AttrKind::DType,
        "the element type in which x is divided; that of the scale if left out",
    ),
    SATURATE,
];
const DEQUANTIZE_ATTRS: &[AttrDef] = &[
    AXIS,
    BLOCK_SIZE,
    AttrDef::optional(DTYPE, AttrKind::DType, "the element type of the result; that of the scale if left out"),
];

/// Returns the rows of this family.
#[expect(clippy::too_many_lines, reason = "a table of rows")]
pub(crate) fn rows() -> Vec<OpDef> {
    let mut rows = vec![
        row(
            "quantize",
            "`round(x / scale) + zero_point`, as the nearest integer that there is; operands x, scale, optionally zero_point",
            Arity::between(2, 3),
            quantize_type,
            |c| {
                let (x, scale) = (c.operand(0)?, c.operand(1)?);
                let precision = c.attrs.dtype("precision").unwrap_or(scale.dtype());
                let to = c.optional(2).map(Literal::dtype).or(c.attrs.dtype(DTYPE)).unwrap_or(DType::UInt8);
                let saturate = c.attrs.required_bool("saturate")?;
                one(quantization::quantize(x, scale, c.optional(2), along(c)?, precision, to, saturate))
            },
        )
        .attrs(QUANTIZE_ATTRS)
        .splat(Splat::OfAll)
        .fusion(Broadcast),
        row(
            "dequantize",
            "`(x - zero_point) * scale`; operands x, scale, optionally zero_point",
            Arity::between(2, 3),
            dequantize_type,
            |c| {
                let (x, scale) = (c.operand(0)?, c.operand(1)?);
                let to = c.attrs.dtype(DTYPE).unwrap_or(scale.dtype());
                one(quantization::dequantize(x, scale, c.optional(2), along(c)?, to))
            },
        )
        .attrs(DEQUANTIZE_ATTRS)
        .splat(Splat::OfAll)
        .fusion(Broadcast),
        row(
            "dynamic_quantize",
            "the tuple of x as uint8, and the scale and zero point that bring its elements and zero into range",
            Arity::exactly(1),
            |call| {
                let x = tensor(call, 0, Elements::Float)?;
                let y = result(call.cx, DType::UInt8, x.shape.as_deref());
                let types = &mut call.cx.types;
                let (scale, zero) = (types.tensor(x.dtype, &[]), types.tensor(DType::UInt8, &[]));
                Ok(types.tuple(&[y, scale, zero]))
            },
            |c| Ok(quantization::dynamic_quantize(c.operand(0)?)?),
        )
        .splat(Splat::OfAll)
        .fusion(Opaque),
        row(
            "matmul_integer",
            "the int32 product of matrices of 8-bit integers around zero points; operands a, b, optionally the zero points of a and b",
            Arity::between(2, 4),
            |call| {
                let (a, b) = (eight_bits(call, 0)?, eight_bits(call, 1)?);
                zero_point(call, &a, 2)?;
                zero_point(call, &b, 3)?;
                product_type(call, 0, 1, &a, &b, DType::Int32)
            },
            |c| one(quantization::matmul_integer(c.operand(0)?, c.operand(1)?, c.optional(2), c.optional(3))),
        )
        .steps(steps::matrix_product)
        .splat(Splat::OfAll)
        .fusion(OutEWiseFusable),
        row(
            "quantized_matmul",
            "the matrix product of quantized tensors; operands a, its scale and zero point, likewise b, and scale and zero point of the result",
            Arity::exactly(8),
            |call| {
                let (a, b) = (eight_bits(call, 0)?, eight_bits(call, 3)?);
                let y = scaled_operands(call, &a, &b)?;
                product_type(call, 0, 3, &a, &b, y)
            },
            |c| {
                one(quantization::quantized_matmul(
                    c.operand(0)?,
                    scaled(c, 1)?,
                    c.operand(3)?,
                    scaled(c, 4)?,
                    scaled(c, 6)?,
                ))
            },
        )
        .steps(steps::matrix_product)
        .splat(Splat::OfAll)
        .fusion(OutEWiseFusable),
    ];
    rows.extend(convolutions::<1>("nn.conv_integer1d", "nn.quantized_conv1d"));
    rows.extend(convolutions::<2>("nn.conv_integer2d", "nn.quantized_conv2d"));
    rows.extend(convolutions::<3>("nn.conv_integer3d", "nn.quantized_conv3d"));
    rows
}

fn convolutions<const N: usize>(integer: &'static str, quantized: &'static str) -> [OpDef; 2] {
    [
        row(
            integer,
            "the int32 convolution of 8-bit integers around zero points; operands x, w, optionally the zero points of x and w",
            Arity::between(2, 4),
            |call| {
                let (x, w) = (eight_bits(call, 0)?, eight_bits(call, 1)?);
                zero_point(call, &x, 2)?;
                zero_point(call, &w, 3)?;
                convolution_type::<N>(call, [(0, &x), (1, &w)], None, DType::Int32)
            },
            |c| {
                let lists = Lists::read(&c.attrs)?;
                one(quantization::convolve_integer(
                    c.operand(0)?,
                    c.operand(1)?,
                    c.optional(2),
                    c.optional(3),
                    None,
                    c.attrs.required_int("groups")?,
                    lists.sliding(&[]),
                ))
            },
        )
        .steps(steps::convolution)
        .attrs(plain_convolution_attrs(N))
        .fusion(OutEWiseFusable),
        row(
            quantized,
            "the convolution of quantized tensors; operands x, its scale and zero point, likewise w, scale and zero point of the result, optionally an int32 bias",
            Arity::between(8, 9),
            |call| {
                let (x, w) = (eight_bits(call, 0)?, eight_bits(call, 3)?);
                let y = scaled_operands(call, &x, &w)?;
                let bias = optional(call, 8, Elements::Integer)?;
                if let Some(bias) = bias.as_ref().filter(|b| b.dtype != DType::Int32) {
                    let found = bias.dtype;
                    return Err(TypeError::operand(8, format!("operand 8 has elements of {found}, not of int32")));
                }
                convolution_type::<N>(call, [(0, &x), (3, &w)], bias.as_ref().map(|b| (8, b)), y)
            },
            |c| {
                let lists = Lists::read(&c.attrs)?;
                one(quantization::quantized_convolve(
                    [c.operand(0)?, c.operand(3)?],
                    scaled(c, 1)?,
                    scaled(c, 4)?,
                    scaled(c, 6)?,
                    c.optional(8),
                    c.attrs.required_int("groups")?,
                    lists.sliding(&[]),
                ))
            },
        )
        .steps(steps::quantized_convolution)
        .attrs(plain_convolution_attrs(N))
        .fusion(OutEWiseFusable),
    ]
}

fn along(c: &KernelCall<'_>) -> Result<Along, KernelError> {
    Ok(Along { axis: c.attrs.required_int("axis")?, block: c.attrs.required_int("block_size")? })
}

fn scaled<'a>(c: &'a KernelCall<'_>, i: usize) -> Result<Scaled<'a>, KernelError> {
    Ok(Scaled { scale: c.operand(i)?, zero: c.operand(i + 1)? })
}

/// Returns the type of an operand, which must have 8-bit integers.
fn eight_bits(call: &TypeCall<'_>, i: usize) -> Result<TensorType, TypeError> {
    let x = tensor(call, i, Elements::Integer)?;
    if matches!(x.dtype, DType::Int8 | DType::UInt8) {
        return Ok(x);
    }
    let found = x.dtype;
    Err(TypeError::operand(i, format!("operand {i} has elements of {found}, but int8 or uint8 is expected")))
}

/// Returns the type of a zero point, if there is one. It must have the element type of `x`.
fn zero_point(call: &TypeCall<'_>, x: &TensorType, i: usize) -> Result<Option<TensorType>, TypeError> {
    let zero = optional(call, i, Elements::Any)?;
    if let Some(zero) = zero.as_ref().filter(|z| z.dtype != x.dtype) {
        let (found, wanted) = (zero.dtype, x.dtype);
        return Err(TypeError::operand(i, format!("operand {i} has elements of {found}, but {wanted} is expected")));
    }
    Ok(zero)
}

/// Checks the scales and zero points of a product of two quantized tensors. Returns the element
/// type of the result.
fn scaled_operands(call: &TypeCall<'_>, a: &TensorType, b: &TensorType) -> Result<DType, TypeError> {
    let scale = tensor(call, 1, Elements::Float)?;
    for i in [4, 6] {
        let other = tensor(call, i, Elements::Float)?;
        if other.dtype != scale.dtype {
            let (found, wanted) = (other.dtype, scale.dtype);
            return Err(TypeError::operand(
                i,
                format!("operand {i} has elements of {found}, but {wanted} is expected"),
            ));
        }
    }
    for (x, i) in [(a, 2), (b, 5)] {
        if zero_point(call, x, i)?.is_none() {
            return Err(TypeError::operand(i, format!("operand {i} is missing")));
        }
    }
    Ok(eight_bits(call, 7)?.dtype)
}

/// Fails if the shape of scales or zero points is known not to fit the elements.
fn belongs(call: &mut TypeCall<'_>, x: &TensorType, i: usize) -> Result<(), TypeError> {
    let attrs = call.attrs();
    let (axis, block) = (attrs.required_int("axis")?, attrs.required_int("block_size")?);
    let Some(ty) = call.operand(i) else { return Ok(()) };
    let known = |ty| call.cx.types.static_shape(ty);
    let (Some(shape), Some(parameters)) = (known(call.ty(0)), known(ty)) else {
        if block < 0 {
            return Err(TypeError::new(format!("a block of {block} is out of range")));
        }
        if let Some(shape) = &x.shape
            && call.cx.types.as_tensor(ty).is_some_and(|t| t.shape.as_ref().is_some_and(|s| s.len() > 1))
        {
            crate::kernels::strides::resolve_axis(axis, shape.len())?;
        }
        return Ok(());
    };
    let block = if parameters.len() < 2 && i == 2 { 0 } else { block };
    Granularity::new(&shape, &parameters, axis, block)?;
    Ok(())
}

fn quantize_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, scale) = (tensor(call, 0, Elements::Number)?, tensor(call, 1, Elements::Float)?);
    let zero = optional(call, 2, Elements::Number)?;
    let attrs = call.attrs();
    let (wanted, precision) = (attrs.dtype(DTYPE), attrs.dtype("precision").unwrap_or(scale.dtype));
    if !Elements::Float.accepts(precision) {
        return Err(TypeError::new(format!("`precision` is {precision}, but a type of floats is expected")));
    }
    let to = match (&zero, wanted) {
        (Some(zero), Some(wanted)) if zero.dtype != wanted => {
            let found = zero.dtype;
            return Err(TypeError::operand(2, format!("operand 2 has elements of {found}, but `dtype` is {wanted}")));
        }
        (Some(zero), _) => zero.dtype,
        (None, wanted) => wanted.unwrap_or(DType::UInt8),
    };
    if !to.is_integer() && !to.is_small_number() {
        let wanted = "integers or floats of at most 8 bits";
        return Err(TypeError::new(format!("the result has elements of {to}, but {wanted} are expected")));
    }
    belongs(call, &x, 1)?;
    belongs(call, &x, 2)?;
    Ok(result(call.cx, to, x.shape.as_deref()))
}

fn dequantize_type(call: &mut TypeCall<'_>) -> Result<TypeId, TypeError> {
    let (x, scale) = (tensor(call, 0, Elements::Number)?, tensor(call, 1, Elements::Float)?);
    if !x.dtype.is_integer() && !x.dtype.is_small_number() {
        let (found, wanted) = (x.dtype, "integers or floats of at most 8 bits");
        return Err(TypeError::operand(0, format!("operand 0 has elements of {found}, but {wanted} are expected")));
    }
    if let Some(zero) = optional(call, 2, Elements::Number)? {
        same_elements(&x, &zero, 2)?;
    }
    let to = call.attrs().dtype(DTYPE).unwrap_or(scale.dtype);
    if !Elements::Float.accepts(to) {
        return Err(TypeError::new(format!("`dtype` is {to}, but a type of floats is expected")));
    }
    belongs(call, &x, 1)?;
    belongs(call, &x, 2)?;
    Ok(result(call.cx, to, x.shape.as_deref()))
}
