//! Checks rule 11: symbolic dimensions are named only where they are bound.

use rustc_hash::FxHashMap;

use crate::core::context::Context;
use crate::core::entity::{AttrsId, EntityId, SymbolId, TypeId};
use crate::tables::dim::Dim;
use crate::tables::entry::Entry;
use crate::walk::parts_first::PartsFirst;

/// The symbols that are bound at the current place of the walk.
pub(super) struct Symbols {
    states: Vec<State>,
    /// The bound symbols, innermost last.
    bound: Vec<SymbolId>,
    /// The number of bindings so far.
    bindings: u64,
    /// The number of the current function.
    function: u32,
    parts: FxHashMap<Entry, Named>,
}

#[derive(Copy, Clone)]
struct State {
    /// The number of the current binding of the symbol; 0 if it is not bound.
    binding: u64,
    /// The number of the function that bound it; 0 for none.
    owner: u32,
}

/// The cached result for the symbols of a part: the first symbol that is not bound or, if all are
/// bound, the one that was bound last. Bindings end in reverse order, so all symbols of the part
/// are bound as long as this one is.
#[derive(Copy, Clone)]
struct Named {
    /// Absent if the part names no symbols.
    symbol: Option<SymbolId>,
    /// The binding of the symbol; 0 if it was not bound.
    binding: u64,
}

impl Named {
    const NOTHING: Named = Named { symbol: None, binding: 0 };

    fn unbound(self) -> Option<SymbolId> {
        self.symbol.filter(|_| self.binding == 0)
    }

    /// Combines the results of two parts, of which `next` appears later.
    fn and(self, next: Named) -> Named {
        let keeps = self.unbound().is_some() || (next.unbound().is_none() && self.binding >= next.binding);
        if keeps { self } else { next }
    }
}

/// An error about a symbol.
pub(super) enum SymbolError {
    /// The symbol is not bound here.
    Unbound(SymbolId),
    /// Another function binds the symbol too.
    Shared(SymbolId),
}

impl SymbolError {
    pub(super) fn message(&self, cx: &Context) -> String {
        let name = |s: SymbolId| cx.names.get(cx.types.dims.symbol_name(s)).to_string();
        match *self {
            SymbolError::Unbound(s) => format!("the symbolic dimension `{}` is named where it is not bound", name(s)),
            SymbolError::Shared(s) => format!("the symbolic dimension `{}` is bound in another function too", name(s)),
        }
    }
}

impl Symbols {
    pub(super) fn new(cx: &Context) -> Symbols {
        Symbols {
            states: vec![State { binding: 0, owner: 0 }; cx.types.dims.symbol_count()],
            bound: Vec::new(),
            bindings: 0,
            function: 0,
            parts: FxHashMap::default(),
        }
    }

    pub(super) fn begin_function(&mut self) {
        self.undo(0);
        self.function += 1;
    }

    /// Returns the number of bound symbols, for [`undo`](Self::undo).
    pub(super) fn mark(&self) -> usize {
        self.bound.len()
    }

    /// Unbinds the symbols that were bound since `mark`.
    pub(super) fn undo(&mut self, mark: usize) {
        for s in self.bound.drain(mark..) {
            self.states[s.index()].binding = 0;
        }
    }

    /// Returns true if any function has bound a symbol.
    pub(super) fn are_owned(&self) -> bool {
        self.bindings > 0
    }

    /// Returns the number of the function that bound a symbol, counted from 1.
    pub(super) fn owner(&self, symbol: SymbolId) -> Option<usize> {
        self.states.get(symbol.index()).map(|s| s.owner as usize).filter(|&owner| owner > 0)
    }

    /// Binds the symbols that occur alone as a dimension in a type, if they are not bound yet and
    /// `may_bind` is true for them.
    pub(super) fn bind(
        &mut self,
        cx: &Context,
        ty: TypeId,
        may_bind: impl Fn(SymbolId) -> bool,
        mut report: impl FnMut(SymbolError),
    ) {
        if !cx.types.is_symbolic(ty) {
            return;
        }
        let mut fresh: Vec<SymbolId> = Vec::new();
        cx.types.binding_symbols_within(ty, |part| !self.has_all_bound(part), |s| fresh.push(s));
        for s in fresh {
            let Some(state) = self.states.get_mut(s.index()) else { continue };
            if state.binding != 0 || !may_bind(s) {
                continue;
            }
            self.bindings += 1;
            state.binding = self.bindings;
            self.bound.push(s);
            if state.owner != 0 && state.owner != self.function {
                report(SymbolError::Shared(s));
            }
            state.owner = self.function;
        }
    }

    /// Returns true if all symbols of a type are known to be bound.
    fn has_all_bound(&self, ty: TypeId) -> bool {
        self.known(Entry::Type(ty)).is_some_and(|named| named.unbound().is_none())
    }

    /// Returns an error if a type names a symbol that is not bound.
    #[inline]
    pub(super) fn check_type(&mut self, cx: &Context, ty: TypeId) -> Option<SymbolError> {
        // A module without symbols has no types that name one.
        if self.states.is_empty() || !cx.types.is_symbolic(ty) {
            return None;
        }
        self.check(cx, Entry::Type(ty))
    }

    /// Returns an error if an attribute names a symbol that is not bound.
    pub(super) fn check_attrs(&mut self, cx: &Context, attrs: AttrsId) -> Option<SymbolError> {
        if self.states.is_empty() || attrs == cx.attrs.empty() {
            return None;
        }
        self.check(cx, Entry::Attrs(attrs))
    }

    fn check(&mut self, cx: &Context, part: Entry) -> Option<SymbolError> {
        let named = self.known(part).unwrap_or_else(|| self.find_out(cx, part));
        named.unbound().map(SymbolError::Unbound)
    }

    /// Returns the cached result for a part, if it still holds.
    fn known(&self, part: Entry) -> Option<Named> {
        let named = *self.parts.get(&part)?;
        named.symbol.is_none_or(|s| self.binding(s) == named.binding).then_some(named)
    }

    fn binding(&self, symbol: SymbolId) -> u64 {
        self.states.get(symbol.index()).map_or(0, |s| s.binding)
    }

    /// Computes the result for a part, after those of its parts that have no valid result.
    #[cold]
    fn find_out(&mut self, cx: &Context, part: Entry) -> Named {
        let mut work = PartsFirst::to(part);
        let push_parts = |whole: Entry, stack: &mut Vec<Entry>| {
            whole.for_each_part(cx, |part| stack.extend(may_name_symbols(cx, part).then_some(part)));
        };
        while let Some(next) = work.next(|part| self.known(part).is_some(), push_parts) {
            let mut named = Named::NOTHING;
            if let Entry::Dim(dim) = next
                && let Dim::Symbol(symbol) = *cx.types.dims.get(dim)
            {
                named = Named { symbol: Some(symbol), binding: self.binding(symbol) };
            }
            next.for_each_part(cx, |part| named = self.known(part).map_or(named, |next| named.and(next)));
            self.parts.insert(next, named);
        }
        self.known(part).unwrap_or(Named::NOTHING)
    }
}

/// Returns true if an entry may name symbols, which must then be bound.
fn may_name_symbols(cx: &Context, entry: Entry) -> bool {
    match entry {
        Entry::Type(ty) => cx.types.is_symbolic(ty),
        Entry::Dim(dim) => cx.types.dims.is_symbolic(dim),
        Entry::Attr(_) | Entry::Attrs(_) => true,
        _ => false,
    }
}
