//! The symbols in types: finding them, and putting something else in their place.
//!
//! Types share their parts, so each walk looks at a part once. A walk of many types that have parts
//! in common keeps what it has seen from one to the next.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{TensorType, Type, Types};
use crate::core::entity::{DimId, SymbolId, TypeId};
use crate::tables::dim::{Dim, Dims};

/// The parts of types that a walk of several types has looked at: see
/// [`Types::for_each_new_symbol`].
#[derive(Clone, Default, Debug)]
pub struct SeenParts {
    types: FxHashSet<TypeId>,
    dims: FxHashSet<DimId>,
}

impl SeenParts {
    /// Returns the dimensions that were looked at.
    pub(crate) fn dims_mut(&mut self) -> &mut FxHashSet<DimId> {
        &mut self.dims
    }
}

/// The parts of types of which a substitution has found out what they become: see
/// [`Types::substitute_in`].
#[derive(Clone, Default, Debug)]
pub struct SubstitutedParts {
    /// True if a part may become something else where another number of function types is around
    /// it.
    by_depth: bool,
    types: FxHashMap<(TypeId, u32), TypeId>,
    dims: FxHashMap<(DimId, u32), DimId>,
}

impl SubstitutedParts {
    /// Those of a substitution that depends on how many function types are around a part.
    pub(super) fn by_depth() -> SubstitutedParts {
        SubstitutedParts { by_depth: true, ..SubstitutedParts::default() }
    }
}

/// Which symbols a walk of a type is for.
#[derive(Copy, Clone)]
pub(super) enum Reach {
    /// Those that no function type binds.
    Free,
    /// Bound ones too.
    All,
}

impl Types {
    /// Returns the type with free symbols replaced; `None` keeps a symbol.
    pub fn substitute(&mut self, id: TypeId, map: impl FnMut(SymbolId) -> Option<DimId>) -> TypeId {
        self.substitute_in(id, &mut SubstitutedParts::default(), map)
    }

    /// Returns the type with free symbols replaced, where `done` says what became of parts under
    /// the same `map` already. Linear in the parts that `done` does not say, which it says
    /// afterwards.
    pub fn substitute_in(
        &mut self,
        id: TypeId,
        done: &mut SubstitutedParts,
        mut map: impl FnMut(SymbolId) -> Option<DimId>,
    ) -> TypeId {
        self.substitute_with(id, Reach::Free, done, &mut |dims, d, _| match *dims.get(d) {
            Dim::Symbol(s) => map(s),
            _ => None,
        })
    }

    fn has_symbol(&self, id: TypeId, reach: Reach) -> bool {
        match reach {
            Reach::Free => self.types.note(id).symbols.free,
            Reach::All => self.types.note(id).symbols.any,
        }
    }

    /// Replaces symbols all through a type; parts without symbols of the kind are not looked into.
    /// `leaf` is told how many function types lie between the place and the top. Linear in the
    /// distinct (type, depth) pairs under `id`; an explicit stack.
    pub(super) fn substitute_with(
        &mut self,
        id: TypeId,
        reach: Reach,
        done: &mut SubstitutedParts,
        leaf: &mut impl FnMut(&mut Dims, DimId, u32) -> Option<DimId>,
    ) -> TypeId {
        if !self.has_symbol(id, reach) {
            return id;
        }
        let SubstitutedParts { by_depth, types: memo, dims: done_dims } = done;
        let mut stack = vec![(id, 0u32)];
        while let Some(&(top, depth)) = stack.last() {
            if memo.contains_key(&(top, depth)) {
                stack.pop();
                continue;
            }
            let ty = self.get(top).clone();
            let height = stack.len();
            let inner = depth + u32::from(*by_depth && matches!(ty, Type::Function(_)));
            let is_left = |part: &&TypeId| self.has_symbol(**part, reach) && !memo.contains_key(&(**part, inner));
            stack.extend(ty.parts().filter(is_left).map(|&part| (part, inner)));
            if stack.len() > height {
                continue;
            }
            let new = match ty {
                Type::Tensor(t) => {
                    let mut put = |d: &DimId| {
                        self.dims.substitute_with(*d, depth, done_dims, |dims, symbol| leaf(dims, symbol, depth))
                    };
                    let shape = t.shape.map(|s| s.iter().map(&mut put).collect());
                    let elements: Option<Vec<DimId>> = t.elements.map(|e| e.iter().map(put).collect());
                    let plain = self.intern(Type::Tensor(TensorType::new(t.dtype, shape)));
                    elements.map_or(plain, |e| self.with_elements(plain, &e))
                }
                ty => {
                    let part = |part| memo.get(&(part, inner)).copied().unwrap_or(part);
                    self.intern(ty.with_parts(|dim| dim, part))
                }
            };
            memo.insert((top, depth), new);
            stack.pop();
        }
        memo[&(id, 0)]
    }

    /// Calls `f` with every symbol in a type, free or bound, in order of first appearance, possibly
    /// more than once.
    pub fn for_each_symbol(&self, id: TypeId, f: impl FnMut(DimId)) {
        self.for_each_new_symbol(id, &mut SeenParts::default(), f);
    }

    /// Calls `f` with every symbol in a type, free or bound, in order of first appearance, possibly
    /// more than once, but not with those of parts that were seen. The parts of the type are seen
    /// then: all walks with the same `seen` together take time linear in the distinct parts.
    pub fn for_each_new_symbol(&self, id: TypeId, seen: &mut SeenParts, f: impl FnMut(DimId)) {
        self.symbols_within(id, Reach::All, seen, f);
    }

    pub(super) fn symbols_within(&self, id: TypeId, reach: Reach, seen: &mut SeenParts, mut f: impl FnMut(DimId)) {
        if !self.has_symbol(id, reach) {
            return;
        }
        let mut stack = vec![id];
        while let Some(t) = stack.pop() {
            if !self.has_symbol(t, reach) || !seen.types.insert(t) {
                continue;
            }
            let ty = self.get(t);
            for &d in ty.dims() {
                self.dims.for_each_new_symbol(d, &mut seen.dims, &mut f);
            }
            stack.extend(ty.parts().rev());
        }
    }

    /// Calls `f` with every dimension of a tensor in a symbolic type, or in the fields of a tuple,
    /// and the one in its place in another type: where a parameter or a `match_cast` of the first
    /// type binds what a value of the other one has. Pairs of types that are `seen` are left out.
    pub fn for_each_dim_beside(
        &self,
        id: TypeId,
        other: TypeId,
        seen: &mut FxHashSet<(TypeId, TypeId)>,
        mut f: impl FnMut(DimId, DimId),
    ) {
        let mut stack = vec![(id, other)];
        while let Some((a, b)) = stack.pop() {
            if !self.is_symbolic(a) || !seen.insert((a, b)) {
                continue;
            }
            match (self.get(a), self.get(b)) {
                (Type::Tensor(a), Type::Tensor(b)) => a.dims_beside(b).for_each(|(&d, &e)| f(d, e)),
                (Type::Tuple(a), Type::Tuple(b)) => stack.extend(a.iter().copied().zip(b.iter().copied()).rev()),
                _ => {}
            }
        }
    }

    /// Calls `f` with every symbol that stands alone as a dimension, or as an element, of a tensor
    /// in a type, or in the fields of a tuple, where a parameter or a `match_cast` of that type
    /// binds it: in order of first appearance, possibly more than once.
    pub fn for_each_binding_symbol(&self, id: TypeId, f: impl FnMut(SymbolId)) {
        self.binding_symbols_within(id, |_| true, f);
    }

    /// The same, but parts that `enter` says no to are not looked into.
    pub(crate) fn binding_symbols_within(
        &self,
        id: TypeId,
        enter: impl Fn(TypeId) -> bool,
        mut f: impl FnMut(SymbolId),
    ) {
        if !self.is_symbolic(id) {
            return;
        }
        let mut seen = FxHashSet::default();
        let mut stack = vec![id];
        while let Some(t) = stack.pop() {
            if !self.is_symbolic(t) || !enter(t) || !seen.insert(t) {
                continue;
            }
            match self.get(t) {
                Type::Tensor(t) => {
                    for &d in t.dims() {
                        if let Dim::Symbol(s) = *self.dims.get(d) {
                            f(s);
                        }
                    }
                }
                Type::Tuple(fields) => stack.extend(fields.iter().rev()),
                Type::Function(_) | Type::Any | Type::Error => {}
            }
        }
    }
}
