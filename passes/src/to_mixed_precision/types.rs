//! Types with elements of 16 bits.

use anfora_ir::{DType, Type, TypeId, Types};
use rustc_hash::FxHashMap;

/// The most tensors in a tuple whose element types change. To convert a larger tuple, as many
/// projections and casts would be needed.
const MOST_FIELDS: usize = 64;

/// The types that values of `float32` get.
pub(super) struct LowTypes {
    pub(super) low: DType,
    lowered: FxHashMap<TypeId, LoweredType>,
}

/// A type with elements of 16 bits in the place of another one.
#[derive(Copy, Clone)]
struct LoweredType {
    ty: TypeId,
    /// The number of tensors in the type.
    tensors: usize,
    /// True if a part of the type is `Any`.
    has_any: bool,
}

impl LowTypes {
    pub(super) fn new(low: DType) -> LowTypes {
        LowTypes { low, lowered: FxHashMap::default() }
    }

    /// Returns a type with elements of 16 bits in the place of `float32`, in the fields of tuples
    /// too. Functions keep their types, and so do large tuples.
    pub(super) fn lower(&mut self, types: &mut Types, ty: TypeId) -> TypeId {
        self.of(types, ty).ty
    }

    /// Returns true if values of the type `of` may get other elements than the type `stated` shows,
    /// which is less specific: a part of `stated` is `Any`.
    pub(super) fn is_hidden(&mut self, types: &mut Types, stated: TypeId, of: TypeId) -> bool {
        stated != of && self.of(types, stated).has_any && self.lower(types, of) != of
    }

    /// Returns true if a part of a type is `Any`.
    pub(super) fn has_any(&mut self, types: &mut Types, ty: TypeId) -> bool {
        self.of(types, ty).has_any
    }

    fn of(&mut self, types: &mut Types, ty: TypeId) -> LoweredType {
        if let Some(&lowered) = self.lowered.get(&ty) {
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
                    LoweredType { ty: lowered, tensors: 1, has_any: false }
                }
                Type::Tuple(fields) => {
                    let height = open.len();
                    open.extend(fields.iter().filter(|field| !self.lowered.contains_key(field)));
                    if open.len() > height {
                        continue;
                    }
                    let fields: Vec<LoweredType> = fields.iter().map(|field| self.lowered[field]).collect();
                    let tensors = fields.iter().fold(0usize, |sum, field| sum.saturating_add(field.tensors));
                    let has_any = fields.iter().any(|field| field.has_any);
                    let lowered: Vec<TypeId> = fields.into_iter().map(|field| field.ty).collect();
                    let ty = if tensors <= MOST_FIELDS { types.tuple(&lowered) } else { at };
                    LoweredType { ty, tensors, has_any }
                }
                other => LoweredType { ty: at, tensors: 1, has_any: matches!(other, Type::Any) },
            };
            self.lowered.insert(at, done);
            open.pop();
        }
        self.lowered[&ty]
    }

    /// Returns true if a type is a tensor of `float32`.
    pub(super) fn is_float32(types: &Types, ty: TypeId) -> bool {
        types.as_tensor(ty).is_some_and(|tensor| tensor.dtype == DType::Float32)
    }
}
