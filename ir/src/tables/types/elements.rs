//! The elements of small integer tensors in types, from which shapes are computed.

use super::{TensorType, Type, Types};
use crate::core::entity::{DimId, TypeId};
use crate::tables::dtype::DType;

/// The largest number of elements of a tensor type that includes its elements.
pub const MAX_KNOWN_ELEMENTS: usize = 64;

impl Types {
    /// Returns a tensor type with the given elements, in row-major order; `?` is an unknown
    /// element. Returns `ty` unchanged if it cannot include them: if it is not a tensor type of
    /// integers or `bool` (whose elements are 0 and 1) of constant extents, or has another number
    /// of elements or more than [`MAX_KNOWN_ELEMENTS`]. If no element is known, the result includes
    /// no elements. An element that is not a value of the element type counts as unknown. So does
    /// an element that is not a constant if the element type is not `int64`, since it may not fit.
    ///
    /// Cost: one loop.
    pub fn with_elements(&mut self, ty: TypeId, elements: &[DimId]) -> TypeId {
        let Some(dtype) =
            self.element_count(ty).filter(|&n| n == elements.len()).and(self.as_tensor(ty)).map(|t| t.dtype)
        else {
            return ty;
        };
        let unknown = self.dims.unknown();
        let fits = |d: DimId| match (self.dims.as_constant(d), dtype) {
            (_, DType::Int64) => true,
            (None, _) => false,
            (Some(c), DType::Bool) => (0..=1).contains(&c),
            (Some(c), _) if dtype.is_unsigned() => c >= 0 && (dtype.bits() >= 63 || c < 1 << dtype.bits()),
            (Some(c), _) => (-1 << (dtype.bits() - 1)..1 << (dtype.bits() - 1)).contains(&c),
        };
        let elements: Box<[DimId]> = elements.iter().map(|&d| if fits(d) { d } else { unknown }).collect();
        let elements = Some(elements).filter(|e| e.iter().any(|&d| d != unknown));
        let Type::Tensor(t) = self.get(ty) else { return ty };
        if t.elements == elements {
            return ty;
        }
        let shape = t.shape.clone();
        self.intern(Type::Tensor(TensorType { dtype, shape, elements }))
    }

    /// Returns the number of elements of a tensor type that may include its elements: of integers
    /// or `bool`, of constant extents, and with at most [`MAX_KNOWN_ELEMENTS`] elements.
    ///
    /// Cost: one loop.
    pub fn element_count(&self, ty: TypeId) -> Option<usize> {
        let t = self.as_tensor(ty)?;
        if !t.dtype.is_integer() && t.dtype != DType::Bool {
            return None;
        }
        let extents = t.shape.as_ref()?.iter().map(|&d| self.dims.as_constant(d));
        let count = extents.map(|e| usize::try_from(e?).ok()).try_fold(1usize, |n, e| n.checked_mul(e?))?;
        (count <= MAX_KNOWN_ELEMENTS).then_some(count)
    }

    /// Returns the elements that a tensor type includes; `None` if it includes none.
    ///
    /// Cost: one entry.
    pub fn elements(&self, ty: TypeId) -> Option<&[DimId]> {
        self.as_tensor(ty)?.elements.as_deref()
    }

    /// Returns true if a type, or a field of a tuple type, includes elements of a tensor.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn has_elements(&self, ty: TypeId) -> bool {
        self.types.note(ty).elements
    }

    /// Returns the type without elements, but the same otherwise. Function types in it stay
    /// unchanged. Linear in the distinct types in it; uses an explicit stack.
    pub fn without_elements(&mut self, ty: TypeId) -> TypeId {
        let mut memo: rustc_hash::FxHashMap<TypeId, TypeId> = Default::default();
        let mut stack = vec![ty];
        while let Some(&top) = stack.last() {
            let new = match self.get(top) {
                _ if !self.has_elements(top) => top,
                Type::Tensor(t) => {
                    let plain = TensorType::new(t.dtype, t.shape.clone());
                    self.intern(Type::Tensor(plain))
                }
                Type::Tuple(fields) => {
                    let height = stack.len();
                    stack.extend(fields.iter().filter(|f| !memo.contains_key(f)));
                    if stack.len() > height {
                        continue;
                    }
                    let fields: Vec<TypeId> = fields.iter().map(|f| memo[f]).collect();
                    self.tuple(&fields)
                }
                _ => top,
            };
            memo.insert(top, new);
            stack.pop();
        }
        memo[&ty]
    }
}
