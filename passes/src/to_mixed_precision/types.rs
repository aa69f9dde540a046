//! Types with elements of 16 bits.

use anfora_ir::{DType, Type, TypeId, Types};
use rustc_hash::FxHashMap;

/// The most tensors in a tuple whose element types change. To convert a larger tuple, as many
/// projections and casts would be needed.
const MOST_FIELDS: usize = 64;

/// The types that values of `float32` get.
pub(super) struct LowTypes {
    pub(super) low: DType,
    /// By type: the type with the elements `low`, and the number of tensors in it.
    lowered: FxHashMap<TypeId, (TypeId, usize)>,
}

impl LowTypes {
    pub(super) fn new(low: DType) -> LowTypes {
        LowTypes { low, lowered: FxHashMap::default() }
    }

    /// Returns a type with elements of 16 bits in the place of `float32`, in the fields of tuples
    /// too. Functions keep their types, and so do large tuples.
    pub(super) fn lower(&mut self, types: &mut Types, ty: TypeId) -> TypeId {
        if let Some(&(lowered, _)) = self.lowered.get(&ty) {
            return lowered;
        }
        let mut open = vec![ty];
        while let Some(&at) = open.last() {
            let done = match types.get(at) {
                Type::Tensor(tensor) if tensor.dtype == DType::Float32 => {
                    let lowered = match tensor.shape.clone() {
                        Some(shape) => types.tensor(self.low, &shape),
                        None => types.unranked(self.low),
                    };
                    (lowered, 1)
                }
                Type::Tuple(fields) => {
                    let height = open.len();
                    open.extend(fields.iter().filter(|field| !self.lowered.contains_key(field)));
                    if open.len() > height {
                        continue;
                    }
                    let fields: Vec<(TypeId, usize)> = fields.iter().map(|field| self.lowered[field]).collect();
                    let tensors = fields.iter().fold(0usize, |sum, &(_, tensors)| sum.saturating_add(tensors));
                    let lowered: Vec<TypeId> = fields.into_iter().map(|(lowered, _)| lowered).collect();
                    (if tensors <= MOST_FIELDS { types.tuple(&lowered) } else { at }, tensors)
                }
                _ => (at, 1),
            };
            self.lowered.insert(at, done);
            open.pop();
        }
        self.lowered[&ty].0
    }

    /// Returns true if a type is a tensor of `float32`.
    pub(super) fn is_float32(types: &Types, ty: TypeId) -> bool {
        types.as_tensor(ty).is_some_and(|tensor| tensor.dtype == DType::Float32)
    }
}
