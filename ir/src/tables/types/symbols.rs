//! Walks and substitutions of the symbols in types.
//!
//! Types share their parts, so each walk visits a part once. Several walks of types with common
//! parts can share the set of visited parts.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{TensorType, Type, Types};
use crate::core::entity::{DimId, SymbolId, TypeId};
use crate::tables::dim::{Dim, Dims};

/// The parts of types that several walks have visited: see [`Types::for_each_new_symbol`].
#[derive(Clone, Default, Debug)]
pub struct SeenParts {
    types: FxHashSet<TypeId>,
    dims: FxHashSet<DimId>,
}

impl SeenParts {
    /// Returns the dimensions that were visited.
    pub(crate) fn dims_mut(&mut self) -> &mut FxHashSet<DimId> {
        &mut self.dims
    }
}

/// The parts of types that a substitution has visited, with their results: see
/// [`Types::substitute_in`].
#[derive(Clone, Default, Debug)]
pub struct SubstitutedParts {
    /// True if the result for a part depends on the number of function types around it.
    by_depth: bool,
    types: FxHashMap<(TypeId, u32), TypeId>,
    dims: FxHashMap<(DimId, u32), DimId>,
}

impl SubstitutedParts {
    /// Returns an empty map for a substitution that depends on the number of function types around
    /// a part.
    pub(super) fn by_depth() -> SubstitutedParts {
        SubstitutedParts { by_depth: true, ..SubstitutedParts::default() }
    }
}

/// The symbols that a walk of a type visits.
#[derive(Copy, Clone)]
pub(super) enum Reach {
    /// Symbols that no function type binds.
    Free,
    /// All symbols, bound ones too.
    All,
}

impl Types {
    /// Returns the type with free symbols replaced by the results of `map`; `None` keeps a symbol.
    pub fn substitute(&mut self, id: TypeId, map: impl FnMut(SymbolId) -> Option<DimId>) -> TypeId {
        self.substitute_in(id, &mut SubstitutedParts::default(), map)
    }

    /// Returns the type with free symbols replaced as in [`Types::substitute`]. `done` has the
    /// results for parts under the same `map`; the results of this call are added to it. Linear in
    /// the parts that are not in `done`.
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

    /// Replaces symbols throughout a type; parts without symbols in `reach` are skipped. `leaf` is
    /// passed the number of function types between the symbol and the top. Linear in the distinct
    /// (type, depth) pairs under `id`; uses an explicit stack.
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
    /// more than once. Parts in `seen` are skipped, and the parts of the type are added to it: all
    /// walks with the same `seen` together take time linear in the distinct parts.
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

    /// Calls `f` with each dimension of a symbolic tensor type, or of the fields of a tuple type,
    /// and the dimension at the same position in another type. Here a parameter or a `match_cast`
    /// of the first type binds symbols to the dimensions of a value of the other type. Pairs of
    /// types in `seen` are skipped.
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

    /// Calls `f` with every symbol that is by itself a dimension, or an element, of a tensor in a
    /// type, or in the fields of a tuple. There a parameter or a `match_cast` of that type binds
    /// it. Symbols come in order of first appearance, possibly more than once.
    pub fn for_each_binding_symbol(&self, id: TypeId, f: impl FnMut(SymbolId)) {
        self.binding_symbols_within(id, |_| true, f);
    }

    /// Calls `f` as [`Types::for_each_binding_symbol`] does, but skips parts for which `enter`
    /// returns false.
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
