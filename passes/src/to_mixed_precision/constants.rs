//! Constants with elements of 16 bits.

use anfora_ir::{Context, DType, Element, Literal, LiteralId, StorageError};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use rustc_hash::FxHashMap;

/// The number of elements that are converted at a time.
const BLOCK: usize = 1024;

/// A converted constant.
struct LowConstant {
    literal: Literal,
    /// The largest absolute value of the finite elements, if it does not fit.
    beyond: Option<f32>,
}

/// The constants of a module with elements of 16 bits, each converted once.
pub(super) struct LowConstants {
    low: DType,
    made: FxHashMap<LiteralId, LowConstant>,
}

impl LowConstants {
    pub(super) fn new(low: DType) -> LowConstants {
        LowConstants { low, made: FxHashMap::default() }
    }

    /// Returns the largest absolute value of a constant of `float32` if its range does not fit;
    /// `None` if it fits.
    ///
    /// # Errors
    /// If the elements are in a file that cannot be read.
    pub(super) fn beyond(&mut self, cx: &Context, id: LiteralId) -> Result<Option<f32>, StorageError> {
        if let Some(made) = self.made.get(&id) {
            return Ok(made.beyond);
        }
        let constant = convert(cx.literals.get(id), self.low)?;
        let beyond = constant.beyond;
        self.made.insert(id, constant);
        Ok(beyond)
    }

    /// Returns a constant of `float32` with elements of 16 bits, whatever its range is.
    ///
    /// # Errors
    /// If the elements are in a file that cannot be read.
    pub(super) fn converted(&mut self, cx: &mut Context, id: LiteralId) -> Result<LiteralId, StorageError> {
        self.beyond(cx, id)?;
        Ok(cx.literals.intern(self.made[&id].literal.clone()))
    }
}

/// An element type of 16 bits.
trait Half: Element {
    /// The largest finite number.
    const LARGEST: f32;
    /// A constant whose elements are all smaller has lost their values: the smallest number with
    /// five significant bits.
    const SMALLEST: f32;

    fn convert(from: &[f32], to: &mut [Self]);

    fn bits(self) -> u16;
}

impl Half for f16 {
    const LARGEST: f32 = 65504.0;
    // The smallest subnormal number is 2^-24.
    const SMALLEST: f32 = 1.0 / (1u32 << 20) as f32;

    fn convert(from: &[f32], to: &mut [f16]) {
        to.convert_from_f32_slice(from);
    }

    fn bits(self) -> u16 {
        self.to_bits()
    }
}

impl Half for bf16 {
    const LARGEST: f32 = f32::from_bits(0x7f7f_0000);
    // The smallest subnormal number is 2^-133, and that of float32 is 2^-149.
    const SMALLEST: f32 = f32::from_bits(1 << (149 - 129));

    fn convert(from: &[f32], to: &mut [bf16]) {
        to.convert_from_f32_slice(from);
    }

    fn bits(self) -> u16 {
        self.to_bits()
    }
}

fn convert(literal: &Literal, low: DType) -> Result<LowConstant, StorageError> {
    if low == DType::BFloat16 { convert_to::<bf16>(literal) } else { convert_to::<f16>(literal) }
}

/// Converts a constant piece by piece: elements in a file are not kept.
fn convert_to<T: Half>(literal: &Literal) -> Result<LowConstant, StorageError> {
    let mut largest = 0;
    let splat = literal.as_splat().map(<[u8]>::to_vec);
    let converted = match splat {
        Some(element) => {
            let mut bytes = Vec::new();
            append::<T>(&element, &mut bytes, &mut largest);
            Literal::splat_bytes(T::DTYPE, literal.shape(), &bytes)
        }
        None => {
            let mut bytes = Vec::with_capacity(literal.stored_bytes() / 2);
            literal.for_each_piece(|piece| append::<T>(piece, &mut bytes, &mut largest))?;
            Literal::from_bytes(T::DTYPE, literal.shape(), bytes.into())
                .expect("there is a converted element for each element")
        }
    };
    let largest = f32::from_bits(largest as u32);
    let fits = largest == 0.0 || (T::SMALLEST..=T::LARGEST).contains(&largest);
    Ok(LowConstant { literal: converted, beyond: (!fits).then_some(largest) })
}

/// Appends the converted elements of a piece, and updates the bits of the largest absolute value of
/// finite elements.
fn append<T: Half>(piece: &[u8], bytes: &mut Vec<u8>, largest: &mut i32) {
    // Without the sign bit, floats have the order of their bits. The bits are compared as signed
    // integers, since processors compare vectors of these fastest.
    const INFINITY: i32 = f32::INFINITY.to_bits() as i32;
    let mut wide = [0f32; BLOCK];
    let mut narrow = [T::read(&[0; 2]); BLOCK];
    for block in piece.chunks(4 * BLOCK) {
        let count = block.len() / 4;
        let mut found = *largest;
        for (element, from) in wide.iter_mut().zip(block.as_chunks::<4>().0) {
            let bits = i32::from_le_bytes(*from);
            let magnitude = bits & i32::MAX;
            found = found.max(if magnitude < INFINITY { magnitude } else { 0 });
            // As `astype` does, which makes one NaN of all.
            *element = f32::from_bits(if magnitude > INFINITY { f32::NAN.to_bits() } else { bits as u32 });
        }
        *largest = found;
        T::convert(&wide[..count], &mut narrow[..count]);
        let start = bytes.len();
        bytes.resize(start + 2 * count, 0);
        for (to, element) in bytes[start..].as_chunks_mut::<2>().0.iter_mut().zip(&narrow) {
            *to = element.bits().to_le_bytes();
        }
    }
}
