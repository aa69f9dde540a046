//! Interned types: two types are the same if and only if their ids are.

use std::hash::{Hash, Hasher};

use smallvec::{SmallVec, smallvec};

use crate::core::entity::{DimId, SymbolId, TypeId};
use crate::infer::call_types::CallTypes;
use crate::tables::dim::{Dim, Dims, Symbols};
use crate::tables::dtype::DType;
use crate::tables::intern::Interner;

mod elements;
mod symbols;

pub use elements::MAX_KNOWN_ELEMENTS;
use symbols::Reach;
pub use symbols::{SeenParts, SubstitutedParts};

/// A type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Type {
    /// A tensor.
    Tensor(TensorType),
    /// A tuple; the empty tuple is written `()`.
    Tuple(Box<[TypeId]>),
    /// A function.
    Function(FunctionType),
    /// A type that accepts every value. Only `match_cast` turns it into another type.
    Any,
    /// The type of an expression with an error in it. It agrees with every type, so that a mistake
    /// is reported only once.
    Error,
}

impl Hash for Type {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Type::Tensor(tensor) => (0u8, tensor).hash(state),
            Type::Tuple(fields) => (1u8, fields).hash(state),
            Type::Function(FunctionType { params, ret, symbols }) => {
                Signature { params, ret: *ret, symbols: *symbols }.hash(state);
            }
            Type::Any => 3u8.hash(state),
            Type::Error => 4u8.hash(state),
        }
    }
}

/// A function type whose parts are borrowed. It hashes as the type does, so that an interned type
/// is found without making a new one.
struct Signature<'a> {
    params: &'a [TypeId],
    ret: TypeId,
    symbols: u32,
}

impl Hash for Signature<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (2u8, self.params, self.ret, self.symbols).hash(state);
    }
}

impl Signature<'_> {
    fn is(&self, ty: &Type) -> bool {
        match ty {
            Type::Function(FunctionType { params, ret, symbols }) => {
                **params == *self.params && *ret == self.ret && *symbols == self.symbols
            }
            _ => false,
        }
    }
}

impl Type {
    /// Returns the fields of a tuple type, or the parameters and the result of a function type;
    /// empty for other types.
    ///
    /// Cost: one entry.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &TypeId> + Clone {
        let (parts, ret): (&[TypeId], _) = match self {
            Type::Tuple(fields) => (fields, None),
            Type::Function(f) => (&f.params, Some(&f.ret)),
            Type::Tensor(_) | Type::Any | Type::Error => (&[], None),
        };
        parts.iter().chain(ret)
    }

    /// Returns the dimensions of a tensor type: its extents, then its elements.
    pub(crate) fn dims(&self) -> impl DoubleEndedIterator<Item = &DimId> {
        let tensor = match self {
            Type::Tensor(t) => Some(t),
            _ => None,
        };
        tensor.into_iter().flat_map(TensorType::dims)
    }

    /// Returns the type with its dimensions and parts replaced by the results of `dim` and `part`.
    pub(crate) fn with_parts(&self, dim: impl Fn(DimId) -> DimId, part: impl Fn(TypeId) -> TypeId) -> Type {
        match self {
            Type::Any => Type::Any,
            Type::Error => Type::Error,
            Type::Tensor(TensorType { dtype, shape, elements }) => Type::Tensor(TensorType {
                dtype: *dtype,
                shape: shape.as_ref().map(|shape| shape.iter().map(|&d| dim(d)).collect()),
                elements: elements.as_ref().map(|elements| elements.iter().map(|&d| dim(d)).collect()),
            }),
            Type::Tuple(fields) => Type::Tuple(fields.iter().map(|&f| part(f)).collect()),
            Type::Function(FunctionType { params, ret, symbols }) => Type::Function(FunctionType {
                params: params.iter().map(|&p| part(p)).collect(),
                ret: part(*ret),
                symbols: *symbols,
            }),
        }
    }
}

/// An element type and, if known, extents and elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// The element type.
    pub dtype: DType,
    /// The extents, outermost first; `None` if the rank is unknown.
    pub shape: Option<SmallVec<[DimId; 4]>>,
    /// The elements in row-major order, if any of them is known: see [`Types::with_elements`],
    /// which makes such types.
    pub elements: Option<Box<[DimId]>>,
}

impl TensorType {
    /// Returns a tensor type with these extents, or of unknown rank, and with unknown elements.
    ///
    /// Cost: one entry.
    pub fn new(dtype: DType, shape: Option<SmallVec<[DimId; 4]>>) -> TensorType {
        TensorType { dtype, shape, elements: None }
    }

    /// Returns all dimensions of the type: its extents, then its elements.
    pub fn dims(&self) -> impl DoubleEndedIterator<Item = &DimId> {
        self.shape.iter().flatten().chain(self.elements.iter().flatten())
    }

    /// Returns the extents of two types in pairs, then their elements in pairs, if both types have
    /// them.
    pub fn dims_beside<'a>(&'a self, other: &'a TensorType) -> impl Iterator<Item = (&'a DimId, &'a DimId)> {
        let extents = self.shape.iter().flatten().zip(other.shape.iter().flatten());
        extents.chain(self.elements.iter().flatten().zip(other.elements.iter().flatten()))
    }
}

/// Parameter types and a result type. The symbolic dimensions that the type binds are numbered by
/// first appearance, so types that differ only in the names of their symbols are equal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FunctionType {
    /// The types of the parameters.
    pub params: Box<[TypeId]>,
    /// The type of the result.
    pub ret: TypeId,
    /// The number of symbolic dimensions that the type binds.
    pub symbols: u32,
}

/// The note of an interned type.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Note {
    /// The symbols that occur in the type.
    symbols: Symbols,
    /// True if the type, or a field of a tuple type, includes elements of a tensor.
    elements: bool,
}

/// The types of a module, with their dimensions.
#[derive(Clone)]
pub struct Types {
    /// Dimensions and symbols.
    pub dims: Dims,
    pub(crate) types: Interner<TypeId, Type, Note>,
    any: TypeId,
    error: TypeId,
    unit: TypeId,
    /// Types of calls that were inferred before.
    pub(crate) calls: CallTypes,
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Interner::default();
        let mut intern = |ty| types.intern_with(ty, |_, _| Note::default());
        let [any, error, unit] = [Type::Any, Type::Error, Type::Tuple(Box::new([]))].map(&mut intern);
        Types { dims: Dims::default(), types, any, error, unit, calls: CallTypes::default() }
    }
}

impl Types {
    /// Returns the type with an id.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn get(&self, id: TypeId) -> &Type {
        &self.types[id]
    }

    /// Returns the type `Any`.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn any(&self) -> TypeId {
        self.any
    }

    /// Returns the error type, which prevents further errors.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn error(&self) -> TypeId {
        self.error
    }

    /// Returns the type `()`.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn unit(&self) -> TypeId {
        self.unit
    }

    pub(crate) fn intern(&mut self, ty: Type) -> TypeId {
        let dims = &self.dims;
        self.types.intern_with(ty, |types, ty| {
            let of_dims = ty.dims().fold(Symbols::default(), |symbols, &d| symbols.and(dims.symbols(d)));
            let symbols = ty.parts().fold(of_dims, |symbols, &part| symbols.and(types.note(part).symbols));
            let elements = match ty {
                Type::Tensor(t) => t.elements.is_some(),
                Type::Tuple(fields) => fields.iter().any(|f| types.note(*f).elements),
                Type::Function(_) | Type::Any | Type::Error => false,
            };
            Note { symbols, elements }
        })
    }

    /// Returns a tensor type.
    ///
    /// Cost: one loop.
    pub fn tensor(&mut self, dtype: DType, shape: &[DimId]) -> TypeId {
        self.intern(Type::Tensor(TensorType::new(dtype, Some(shape.into()))))
    }

    /// Returns a tensor type of constant extents.
    ///
    /// Cost: one loop.
    pub fn static_tensor(&mut self, dtype: DType, shape: &[usize]) -> TypeId {
        let dims: SmallVec<[DimId; 4]> = shape
            .iter()
            .map(|&d| match i64::try_from(d) {
                Ok(d) => self.dims.constant(d),
                Err(_) => self.dims.unknown(),
            })
            .collect();
        self.tensor(dtype, &dims)
    }

    /// Returns a tensor type of unknown rank.
    ///
    /// Cost: one entry.
    pub fn unranked(&mut self, dtype: DType) -> TypeId {
        self.intern(Type::Tensor(TensorType::new(dtype, None)))
    }

    /// Returns a rank-0 tensor type.
    ///
    /// Cost: one entry.
    pub fn scalar(&mut self, dtype: DType) -> TypeId {
        self.tensor(dtype, &[])
    }

    /// Returns a tuple type.
    pub fn tuple(&mut self, fields: &[TypeId]) -> TypeId {
        self.intern(Type::Tuple(fields.into()))
    }

    /// Returns a function type that binds the symbols of `binds` that occur in its parameters.
    /// Symbols of `binds` that occur only in the result become `?`, since no caller can determine
    /// them. All other symbols stay free.
    pub fn function(&mut self, params: &[TypeId], ret: TypeId, binds: &[SymbolId]) -> TypeId {
        let free = params.iter().chain([&ret]).any(|t| self.types.note(*t).symbols.free);
        if binds.is_empty() || !free {
            let key = Signature { params, ret, symbols: 0 };
            return match self.types.find(&key, |ty| key.is(ty)) {
                Some(id) => id,
                None => self.intern(Type::Function(FunctionType { params: params.into(), ret, symbols: 0 })),
            };
        }
        let bound: rustc_hash::FxHashSet<DimId> = binds.iter().map(|&s| self.dims.symbol(s)).collect();
        let mut numbers: rustc_hash::FxHashMap<DimId, u32> = Default::default();
        let mut seen = SeenParts::default();
        for &part in params {
            self.symbols_within(part, Reach::Free, &mut seen, |d| {
                if bound.contains(&d) {
                    let next = numbers.len() as u32;
                    numbers.entry(d).or_insert(next);
                }
            });
        }
        let unknown = self.dims.unknown();
        let mut done = SubstitutedParts::by_depth();
        let mut close = |types: &mut Types, id| {
            types.substitute_with(id, Reach::Free, &mut done, &mut |dims, d, depth| match numbers.get(&d) {
                Some(&index) => Some(dims.bound(depth, index)),
                None => bound.contains(&d).then_some(unknown),
            })
        };
        let params: Vec<TypeId> = params.iter().map(|&p| close(self, p)).collect();
        let ret = close(self, ret);
        self.intern(Type::Function(FunctionType { params: params.into(), ret, symbols: numbers.len() as u32 }))
    }

    /// Returns the parameter types and the result type of a function type, with the symbols that it
    /// binds replaced by the dimensions in `dims`, in their numbering; `None` if it is not a
    /// function type.
    pub fn instantiate(&mut self, function: TypeId, dims: &[DimId]) -> Option<(SmallVec<[TypeId; 4]>, TypeId)> {
        let Type::Function(f) = self.get(function).clone() else { return None };
        if f.symbols == 0 {
            return Some((f.params.iter().copied().collect(), f.ret));
        }
        let mut done = SubstitutedParts::by_depth();
        let mut open = |types: &mut Types, id| {
            types.substitute_with(id, Reach::All, &mut done, &mut |t, d, depth| match *t.get(d) {
                Dim::Bound { depth: at, index } if at == depth => dims.get(index as usize).copied(),
                _ => None,
            })
        };
        let params = f.params.iter().map(|&p| open(self, p)).collect();
        Some((params, open(self, f.ret)))
    }

    /// Returns true if a symbol, free or bound, occurs in the type.
    pub fn is_symbolic(&self, id: TypeId) -> bool {
        self.types.note(id).symbols.any
    }

    /// Returns the tensor type, if it is one.
    ///
    /// Cost: one entry.
    pub fn as_tensor(&self, id: TypeId) -> Option<&TensorType> {
        match self.get(id) {
            Type::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the fields, if it is a tuple type.
    ///
    /// Cost: one entry.
    pub fn as_tuple(&self, id: TypeId) -> Option<&[TypeId]> {
        match self.get(id) {
            Type::Tuple(f) => Some(f),
            _ => None,
        }
    }

    /// Returns the function type, if it is one.
    ///
    /// Cost: one entry.
    pub fn as_function(&self, id: TypeId) -> Option<&FunctionType> {
        match self.get(id) {
            Type::Function(f) => Some(f),
            _ => None,
        }
    }

    /// Returns the extents, if it is a tensor type whose extents are all constants.
    pub fn static_shape(&self, id: TypeId) -> Option<SmallVec<[usize; 4]>> {
        let shape = self.as_tensor(id)?.shape.as_ref()?;
        shape.iter().map(|&d| self.dims.as_constant(d).and_then(|c| usize::try_from(c).ok())).collect()
    }

    /// Returns true if all extents of a tensor, or of all fields of a tuple of tensors, are known:
    /// constants, symbols or expressions over them.
    ///
    /// Cost: one entry.
    pub fn has_known_extents(&self, id: TypeId) -> bool {
        let is_known = |&ty: &TypeId| {
            let shape = self.as_tensor(ty).and_then(|t| t.shape.as_ref());
            shape.is_some_and(|shape| shape.iter().all(|&d| !matches!(self.dims.get(d), Dim::Unknown)))
        };
        self.as_tuple(id).map_or_else(|| is_known(&id), |fields| fields.iter().all(is_known))
    }

    /// Returns the number of bytes that the elements of a tensor, or of all fields of a tuple of
    /// tensors, take in full; `None` if the type does not determine it, `usize::MAX` if it
    /// overflows.
    pub fn static_bytes(&self, id: TypeId) -> Option<usize> {
        let tensor = |id| -> Option<usize> {
            let dtype = self.as_tensor(id)?.dtype;
            let shape = self.static_shape(id)?;
            Some(crate::tables::literal::element_count(&shape).and_then(|n| dtype.byte_len(n)).unwrap_or(usize::MAX))
        };
        match self.as_tuple(id) {
            Some(fields) => fields.iter().try_fold(0usize, |n, &f| Some(n.saturating_add(tensor(f)?))),
            None => tensor(id),
        }
    }

    /// Returns true if every value of `specific` is a value of `general`: the types are equal, or
    /// `general` is less specific. The error type agrees with every type. Function types are
    /// covariant in their results and contravariant in their parameters.
    pub fn accepts(&self, general: TypeId, specific: TypeId) -> bool {
        let mut seen = rustc_hash::FxHashSet::default();
        let mut stack: SmallVec<[(TypeId, TypeId); 4]> = smallvec![(general, specific)];
        while let Some((g, s)) = stack.pop() {
            if g == s || g == self.any || g == self.error || s == self.error || !seen.insert((g, s)) {
                continue;
            }
            match (self.get(g), self.get(s)) {
                (Type::Tensor(a), Type::Tensor(b)) => {
                    if a.dtype != b.dtype {
                        return false;
                    }
                    let elements = (a.elements.as_deref(), b.elements.as_deref());
                    for (known, found) in [(a.shape.as_deref(), b.shape.as_deref()), elements] {
                        let Some(known) = known else { continue };
                        let Some(found) = found.filter(|found| found.len() == known.len()) else { return false };
                        if known.iter().zip(found).any(|(d, e)| d != e && *d != self.dims.unknown()) {
                            return false;
                        }
                    }
                }
                (Type::Tuple(a), Type::Tuple(b)) if a.len() == b.len() => {
                    stack.extend(a.iter().copied().zip(b.iter().copied()));
                }
                (Type::Function(a), Type::Function(b))
                    if a.params.len() == b.params.len() && a.symbols == b.symbols =>
                {
                    stack.push((a.ret, b.ret));
                    stack.extend(b.params.iter().copied().zip(a.params.iter().copied()));
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns the most specific type that accepts both types, if there is one: the common type of
    /// two branches. Extents that differ become `?`, and so do elements; ranks that differ make the
    /// rank unknown; different element types or kinds have no common type.
    pub fn join(&mut self, a: TypeId, b: TypeId) -> Option<TypeId> {
        let mut memo: rustc_hash::FxHashMap<(TypeId, TypeId), TypeId> = Default::default();
        let mut stack = vec![(a, b)];
        while let Some(&(x, y)) = stack.last() {
            if memo.contains_key(&(x, y)) {
                stack.pop();
                continue;
            }
            let joined = if self.accepts_shallow(x, y) {
                x
            } else if self.accepts_shallow(y, x) {
                y
            } else {
                match (self.get(x).clone(), self.get(y).clone()) {
                    (Type::Tensor(s), Type::Tensor(t)) => {
                        if s.dtype != t.dtype {
                            return None;
                        }
                        match (&s.shape, &t.shape) {
                            (Some(d), Some(e)) if d.len() == e.len() => {
                                let unknown = self.dims.unknown();
                                let common = |(&d, &e): (&DimId, &DimId)| if d == e { d } else { unknown };
                                let dims: SmallVec<[DimId; 4]> = d.iter().zip(e).map(common).collect();
                                let plain = self.tensor(s.dtype, &dims);
                                match (&s.elements, &t.elements) {
                                    (Some(x), Some(y)) => {
                                        let elements: Vec<DimId> = x.iter().zip(y).map(common).collect();
                                        self.with_elements(plain, &elements)
                                    }
                                    _ => plain,
                                }
                            }
                            _ => self.unranked(s.dtype),
                        }
                    }
                    (Type::Tuple(s), Type::Tuple(t)) if s.len() == t.len() => {
                        let height = stack.len();
                        for (&p, &q) in s.iter().zip(&t) {
                            if !memo.contains_key(&(p, q)) {
                                stack.push((p, q));
                            }
                        }
                        if stack.len() > height {
                            continue;
                        }
                        let fields: Vec<TypeId> = s.iter().zip(&t).map(|(&p, &q)| memo[&(p, q)]).collect();
                        self.tuple(&fields)
                    }
                    // Functions are contravariant in their parameters: one side must accept the
                    // other.
                    _ if self.accepts(x, y) => x,
                    _ if self.accepts(y, x) => y,
                    _ => return None,
                }
            };
            memo.insert((x, y), joined);
            stack.pop();
        }
        memo.get(&(a, b)).copied()
    }

    /// Returns true if the types are equal, `general` is `Any` or `specific` is the error type.
    fn accepts_shallow(&self, general: TypeId, specific: TypeId) -> bool {
        general == specific || general == self.any || specific == self.error
    }

    /// Returns the number of types.
    ///
    /// Cost: one entry.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Takes the layers above the frozen ones.
    pub(crate) fn take_own(&mut self) -> Types {
        // The remembered calls may have types of the layer that is taken.
        self.calls = CallTypes::default();
        let Types { any, error, unit, .. } = *self;
        let (dims, types) = (self.dims.take_own(), self.types.take_own());
        Types { dims, types, any, error, unit, calls: CallTypes::default() }
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.types.capacity_bytes() + self.dims.capacity_bytes()
    }

    /// Returns false: `Any` is always there.
    ///
    /// Cost: one entry.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns ids and types in the order in which they were made. The parts of a type come before
    /// it.
    ///
    /// Cost: one loop.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (TypeId, &Type)> + ExactSizeIterator {
        self.types.iter()
    }
}
