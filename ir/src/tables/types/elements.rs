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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::names::Names;

    /// Returns types, a symbol and the constants from 0 to 4.
    fn setup() -> (Types, DimId, [DimId; 5]) {
        let (mut t, mut names) = (Types::default(), Names::default());
        let n = t.dims.new_symbol(names.intern("n"));
        let n = t.dims.symbol(n);
        let numbers = [0, 1, 2, 3, 4].map(|c| t.dims.constant(c));
        (t, n, numbers)
    }

    #[test]
    fn only_small_tensors_of_integers_and_bool_say_elements() {
        let (mut t, n, [zero, one, two, ..]) = setup();
        let unknown = t.dims.unknown();
        let pair = t.static_tensor(DType::Int64, &[2]);
        let known = t.with_elements(pair, &[n, two]);
        assert_eq!(t.elements(known), Some(&[n, two][..]));
        assert!(t.has_elements(known) && !t.has_elements(pair));
        assert_eq!(t.with_elements(known, &[unknown, unknown]), pair);
        assert_eq!(t.with_elements(pair, &[two]), pair);
        for (dtype, elements, kept) in [
            (DType::Int32, [n, two], Some([unknown, two])),
            (DType::Bool, [two, one], Some([unknown, one])),
            (DType::UInt64, [zero, one], Some([zero, one])),
            (DType::Float32, [zero, one], None),
        ] {
            let ty = t.static_tensor(dtype, &[2]);
            let with = t.with_elements(ty, &elements);
            assert_eq!(t.elements(with), kept.as_ref().map(|k| &k[..]), "{dtype}");
        }
        for (value, fits) in [(127, true), (128, false), (-128, true), (-129, false)] {
            let (ty, value) = (t.scalar(DType::Int8), t.dims.constant(value));
            assert_eq!(t.with_elements(ty, &[value]) != ty, fits);
        }
        let large = t.static_tensor(DType::Int64, &[MAX_KNOWN_ELEMENTS + 1]);
        assert_eq!(t.with_elements(large, &[one; MAX_KNOWN_ELEMENTS + 1]), large);
        let open = t.tensor(DType::Int64, &[n]);
        assert_eq!(t.with_elements(open, &[one]), open);
    }

    #[test]
    fn a_type_with_elements_is_more_specific() {
        let (mut t, n, [_, one, two, ..]) = setup();
        let unknown = t.dims.unknown();
        let pair = t.static_tensor(DType::Int64, &[2]);
        let [a, b, half] = [[n, one], [n, two], [n, unknown]].map(|e| t.with_elements(pair, &e));
        assert!(t.accepts(pair, a) && t.accepts(half, a) && t.accepts(half, b));
        assert!(!t.accepts(a, pair) && !t.accepts(a, half) && !t.accepts(a, b));
        assert_eq!(t.join(a, b), Some(half));
        assert_eq!(t.join(a, pair), Some(pair));
        let (p, q) = (t.tuple(&[a, a]), t.tuple(&[b, pair]));
        let expected = t.tuple(&[half, pair]);
        assert_eq!(t.join(p, q), Some(expected));
        let plain = t.tuple(&[pair, pair]);
        assert_eq!(t.without_elements(p), plain);
    }

    #[test]
    fn symbols_in_elements_are_replaced_and_bound() {
        let (mut t, n, [.., four]) = setup();
        let scalar = t.scalar(DType::Int64);
        let (known, number) = (t.with_elements(scalar, &[n]), t.with_elements(scalar, &[four]));
        let mut found = Vec::new();
        t.for_each_binding_symbol(known, |s| found.push(s));
        let &[s] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(t.substitute(known, |_| Some(four)), number);
        let shaped = t.tensor(DType::Float32, &[n]);
        let f = t.function(&[known], shaped, &[s]);
        let (params, ret) = t.instantiate(f, &[four]).unwrap();
        assert_eq!(params.as_slice(), &[number]);
        assert_eq!(t.static_shape(ret).unwrap().as_slice(), &[4]);
        let unknown = t.dims.unknown();
        assert_eq!(t.instantiate(f, &[unknown]).unwrap().0.as_slice(), &[scalar]);
    }
}
