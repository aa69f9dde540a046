//! Layouts: the order of the axes of an operand, as letters.
//!
//! Convolutions, pools and normalisations by channel are defined on operands in the *plain* layout:
//! batch, channels, then spatial axes (`NCHW`), and `OIHW` for kernels. An attribute states another
//! order of these axes. The type rules and kernels read the extents and elements in the plain
//! layout, and give the result the order of the operand.

use anfora_ir::{AttrDef, AttrDefault, AttrKind, AttrReader, KernelCall, KernelError, Literal};
use smallvec::SmallVec;

use crate::decompositions::counted;
use crate::kernels::Failure;
use crate::kernels::index::permute_dims;
use crate::typing::one;

/// The attribute for the layout of the image of a convolution.
pub(crate) const DATA_LAYOUT: &str = "data_layout";
/// The attribute for the layout of the kernel of a convolution.
pub(crate) const KERNEL_LAYOUT: &str = "kernel_layout";
/// The attribute for the layout of the operand of a pool.
pub(crate) const POOL_LAYOUT: &str = "layout";
/// The attribute for the axis of the channels of a normalisation.
pub(crate) const CHANNEL_AXIS: &str = "axis";

/// Returns the plain layout of an image with `spatial` axes.
pub(crate) const fn plain_data(spatial: usize) -> &'static str {
    match spatial {
        1 => "NCW",
        2 => "NCHW",
        _ => "NCDHW",
    }
}

/// Returns the plain layout of the kernel of a convolution with `spatial` axes.
pub(crate) const fn plain_kernel(spatial: usize) -> &'static str {
    match spatial {
        1 => "OIW",
        2 => "OIHW",
        _ => "OIDHW",
    }
}

/// Returns the plain layout of the kernel of a transposed convolution with `spatial` axes.
pub(crate) const fn plain_transposed_kernel(spatial: usize) -> &'static str {
    match spatial {
        1 => "IOW",
        2 => "IOHW",
        _ => "IODHW",
    }
}

/// Returns the attribute for the layout of an image.
pub(crate) const fn data_layout(plain: &'static str) -> AttrDef {
    let doc = "the order of the axes of the first operand and of the result";
    AttrDef::new(DATA_LAYOUT, AttrKind::Str, AttrDefault::Str(plain), doc)
}

/// Returns the attribute for the layout of a kernel.
pub(crate) const fn kernel_layout(plain: &'static str) -> AttrDef {
    AttrDef::new(KERNEL_LAYOUT, AttrKind::Str, AttrDefault::Str(plain), "the order of the axes of the kernel")
}

/// Returns the attribute for the layout of the operand of a pool.
pub(crate) const fn pool_layout(plain: &'static str) -> AttrDef {
    let doc = "the order of the axes of the operand and of the result";
    AttrDef::new(POOL_LAYOUT, AttrKind::Str, AttrDefault::Str(plain), doc)
}

/// The places of the axes of a plain layout in a tensor.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AxisPlaces(SmallVec<[usize; 6]>);

impl AxisPlaces {
    /// Returns the places that a layout states. A layout has each letter of the plain one once.
    pub(crate) fn of_letters(layout: &str, plain: &str) -> Option<AxisPlaces> {
        let places: Option<SmallVec<[usize; 6]>> = plain.chars().map(|letter| layout.find(letter)).collect();
        places.filter(|places| layout.len() == plain.len() && places.len() == plain.len()).map(AxisPlaces)
    }

    /// Reads the attribute of a call that states a layout.
    pub(crate) fn read(attrs: &AttrReader<'_>, name: &str, plain: &str) -> Result<AxisPlaces, Failure> {
        let layout = attrs.str(name).unwrap_or(plain);
        AxisPlaces::of_letters(layout, plain).ok_or_else(|| {
            Failure::Mismatch(format!(
                "attribute `{name}` is \"{layout}\", but the letters of \"{plain}\" in some order are expected"
            ))
        })
    }

    /// Returns the places for channels along an axis: the batch is the first axis, and the other
    /// axes keep their order. `axis` counts from the end if it is negative.
    pub(crate) fn of_channels(axis: i64, rank: usize) -> Result<AxisPlaces, Failure> {
        let channels = counted(axis, rank).filter(|&axis| axis > 0).ok_or_else(|| {
            Failure::Mismatch(format!("attribute `axis` is {axis}, which is no axis of channels of rank {rank}"))
        })?;
        let others = (1..rank).filter(|&axis| axis != channels);
        Ok(AxisPlaces([0, channels].into_iter().chain(others).collect()))
    }

    /// Returns the place of an axis of the plain layout.
    pub(crate) fn place(&self, axis: usize) -> usize {
        self.0[axis]
    }

    /// Returns true if the layout is the plain one.
    pub(crate) fn is_plain(&self) -> bool {
        self.0.iter().enumerate().all(|(axis, &place)| axis == place)
    }

    /// Returns what each axis of the tensor has, in the plain layout.
    pub(crate) fn in_plain<T: Copy>(&self, of_tensor: &[T]) -> SmallVec<[T; 4]> {
        self.0.iter().map(|&place| of_tensor[place]).collect()
    }

    /// Returns what each axis of the plain layout has, in the layout of the tensor.
    pub(crate) fn in_tensor<T: Copy>(&self, of_plain: &[T]) -> SmallVec<[T; 4]> {
        let mut of_tensor: SmallVec<[T; 4]> = of_plain.into();
        self.0.iter().zip(of_plain).for_each(|(&place, &value)| of_tensor[place] = value);
        of_tensor
    }

    /// Returns a tensor in the plain layout.
    pub(crate) fn to_plain(&self, x: &Literal) -> Result<Literal, Failure> {
        if self.is_plain() || x.rank() != self.0.len() {
            return Ok(x.clone());
        }
        let axes: SmallVec<[i64; 6]> = self.0.iter().map(|&place| place as i64).collect();
        permute_dims(x, Some(&axes))
    }

    /// Returns a tensor in the plain layout in the layout of the places.
    pub(crate) fn out_of_plain(&self, y: &Literal) -> Result<Literal, Failure> {
        if self.is_plain() {
            return Ok(y.clone());
        }
        let plain: SmallVec<[i64; 6]> = (0..self.0.len() as i64).collect();
        permute_dims(y, Some(&self.in_tensor(&plain)))
    }
}

/// Evaluates a call whose first operand and result have the layout of an attribute. `kernel` gets
/// the operand in the plain layout, and returns the result in it.
pub(crate) fn in_layout(
    c: &KernelCall<'_>,
    (attribute, plain): (&str, &str),
    kernel: impl FnOnce(&Literal) -> Result<Literal, Failure>,
) -> Result<Vec<Literal>, KernelError> {
    evaluated_in(&AxisPlaces::read(&c.attrs, attribute, plain)?, c, kernel)
}

/// Evaluates a call whose first operand and result have channels along the attribute `axis`.
/// `kernel` gets the operand with the channels along axis 1, and returns such a result.
pub(crate) fn by_channels(
    c: &KernelCall<'_>,
    kernel: impl FnOnce(&Literal) -> Result<Literal, Failure>,
) -> Result<Vec<Literal>, KernelError> {
    let axis = c.attrs.int(CHANNEL_AXIS).unwrap_or(1);
    evaluated_in(&AxisPlaces::of_channels(axis, c.operand(0)?.rank())?, c, kernel)
}

fn evaluated_in(
    places: &AxisPlaces,
    c: &KernelCall<'_>,
    kernel: impl FnOnce(&Literal) -> Result<Literal, Failure>,
) -> Result<Vec<Literal>, KernelError> {
    let x = c.operand(0)?;
    one(match places.is_plain() {
        true => kernel(x),
        false => kernel(&places.to_plain(x)?).and_then(|y| places.out_of_plain(&y)),
    })
}
