//! Rule 11: where symbolic dimensions are bound.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::attrs::Attr;
use crate::context::Context;
use crate::dim::Dim;
use crate::entity::{AttrsId, DimId, EntityId, SymbolId, TypeId};

/// Which symbols are bound at the place that is being looked at.
pub(super) struct Symbols {
    states: Vec<State>,
    /// What is bound, innermost last.
    bound: Vec<SymbolId>,
    /// The function at hand, by number.
    function: u32,
    of_types: FxHashMap<TypeId, Box<[SymbolId]>>,
    of_attrs: FxHashMap<AttrsId, Box<[SymbolId]>>,
}

#[derive(Copy, Clone)]
struct State {
    bound: bool,
    /// The number of the function that bound it; 0 for none.
    owner: u32,
}

/// What is wrong with a symbol.
pub(super) enum SymbolError {
    /// It is not bound here.
    Unbound(SymbolId),
    /// Another function binds it too.
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
            states: vec![State { bound: false, owner: 0 }; cx.types.dims.symbol_count()],
            bound: Vec::new(),
            function: 0,
            of_types: FxHashMap::default(),
            of_attrs: FxHashMap::default(),
        }
    }

    pub(super) fn begin_function(&mut self) {
        self.undo(0);
        self.function += 1;
    }

    /// How many are bound: to go back to.
    pub(super) fn mark(&self) -> usize {
        self.bound.len()
    }

    /// What was bound since is bound no more.
    pub(super) fn undo(&mut self, mark: usize) {
        for s in self.bound.drain(mark..) {
            self.states[s.index()].bound = false;
        }
    }

    /// Binds the symbols that stand alone as a dimension in a type, of those that `may_bind` and are not bound.
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
        cx.types.for_each_binding_symbol(ty, |s| {
            let Some(state) = self.states.get_mut(s.index()) else { return };
            if state.bound || !may_bind(s) {
                return;
            }
            state.bound = true;
            self.bound.push(s);
            if state.owner != 0 && state.owner != self.function {
                report(SymbolError::Shared(s));
            }
            state.owner = self.function;
        });
    }

    /// A symbol that a type names and that is not bound.
    #[inline]
    pub(super) fn check_type(&mut self, cx: &Context, ty: TypeId) -> Option<SymbolError> {
        if !cx.types.is_symbolic(ty) {
            return None;
        }
        let symbols = self.of_types.entry(ty).or_insert_with(|| {
            let mut found = Found::default();
            cx.types.for_each_symbol(ty, |d| found.add(cx, d));
            found.list.into()
        });
        first_unbound(&self.states, symbols)
    }

    /// A symbol that an attribute names and that is not bound.
    pub(super) fn check_attrs(&mut self, cx: &Context, attrs: AttrsId) -> Option<SymbolError> {
        if self.states.is_empty() || attrs == cx.attrs.empty() {
            return None;
        }
        let symbols = self.of_attrs.entry(attrs).or_insert_with(|| symbols_of_attrs(cx, attrs));
        first_unbound(&self.states, symbols)
    }
}

fn first_unbound(states: &[State], symbols: &[SymbolId]) -> Option<SymbolError> {
    let unbound = symbols.iter().find(|s| states.get(s.index()).is_none_or(|s| !s.bound))?;
    Some(SymbolError::Unbound(*unbound))
}

/// Returns the symbols that attributes name, each once.
pub(crate) fn symbols_of_attrs(cx: &Context, attrs: AttrsId) -> Box<[SymbolId]> {
    let mut found = Found::default();
    let mut seen = FxHashSet::default();
    let mut stack: Vec<_> = cx.attrs.list(attrs).iter().rev().map(|&(_, v)| v).collect();
    while let Some(value) = stack.pop() {
        if !seen.insert(value) {
            continue;
        }
        match cx.attrs.get(value) {
            Attr::List(items) => stack.extend(items.iter().rev()),
            Attr::Type(t) => cx.types.for_each_symbol(*t, |d| found.add(cx, d)),
            Attr::Shape(shape) => {
                for &d in shape {
                    cx.types.dims.for_each_symbol(d, |d| found.add(cx, d));
                }
            }
            _ => {}
        }
    }
    found.list.into()
}

#[derive(Default)]
struct Found {
    list: Vec<SymbolId>,
    seen: FxHashSet<SymbolId>,
}

impl Found {
    fn add(&mut self, cx: &Context, d: DimId) {
        if let Dim::Symbol(s) = *cx.types.dims.get(d)
            && self.seen.insert(s)
        {
            self.list.push(s);
        }
    }
}
