//! The functions that are inlined.

use anfora_ir::{AttrsId, Body, Context, Function, GlobalId, SideTable, SymbolId, SymbolWalk, TypeId};
use rustc_hash::FxHashSet;

use super::facts::InlineFacts;
use super::lambdas::is_straight;
use crate::attach_global_symbol::GLOBAL_SYMBOL;

/// A function that is inlined.
pub(super) struct Callee {
    /// Its position in program order.
    pub(super) position: usize,
    /// The symbols that its parameters bind.
    pub(super) param_symbols: Vec<SymbolId>,
    /// The symbols that its `match_cast`s bind.
    pub(super) inner_symbols: Vec<SymbolId>,
    /// The number of its nodes after the functions that it names are inlined.
    pub(super) full_size: usize,
    /// True if its block contains no If outside of lambdas.
    pub(super) is_straight: bool,
    /// The function as it was before others were inlined into it, if that was done.
    pub(super) before: Option<Box<Before>>,
}

/// The parts of a function that inlining into it may change.
pub(super) struct Before {
    pub(super) body: Body,
    /// The stated result type.
    pub(super) ret: Option<TypeId>,
}

impl Callee {
    /// Returns the callee for the function at a position, which may name other callees.
    pub(super) fn of(
        cx: &Context,
        function: &Function,
        position: usize,
        facts: &InlineFacts,
        others: &Callees,
    ) -> Callee {
        let of = facts.at(position);
        let (mut param_symbols, mut inner_symbols) = (Vec::new(), Vec::new());
        if cx.types.dims.symbol_count() > 0 {
            let mut seen = FxHashSet::default();
            for &param in function.body.params() {
                cx.types.for_each_binding_symbol(function.body.ty(param.expr()), |s| {
                    if seen.insert(s) {
                        param_symbols.push(s);
                    }
                });
            }
            let mut walk = SymbolWalk::new();
            for &to in &of.casts {
                walk.in_type(cx, to, |s| {
                    if seen.insert(s) {
                        inner_symbols.push(s);
                    }
                });
            }
        }
        let named = of.named.iter().filter_map(|&global| others.get(global));
        // Includes the call, which stays in the arenas.
        let full_size = named.fold(of.size + 1, |size, callee| size.saturating_add(callee.full_size));
        let is_straight = is_straight(&function.body, function.body.root());
        Callee { position, param_symbols, inner_symbols, full_size, is_straight, before: None }
    }

    /// Returns true if it binds symbols.
    pub(super) fn is_symbolic(&self) -> bool {
        !self.param_symbols.is_empty() || !self.inner_symbols.is_empty()
    }
}

/// The functions that are inlined, by their globals.
pub(super) struct Callees {
    /// By global: its number plus one.
    numbers: SideTable<GlobalId, u32>,
    callees: Vec<Callee>,
}

impl Callees {
    pub(super) fn new(cx: &Context) -> Callees {
        Callees { numbers: SideTable::new(cx.globals.len(), 0), callees: Vec::new() }
    }

    pub(super) fn insert(&mut self, global: GlobalId, callee: Callee) {
        self.callees.push(callee);
        self.numbers.set(global, self.callees.len() as u32);
    }

    pub(super) fn contains(&self, global: GlobalId) -> bool {
        self.numbers[global] != 0
    }

    pub(super) fn get(&self, global: GlobalId) -> Option<&Callee> {
        self.callees.get((self.numbers[global] as usize).wrapping_sub(1))
    }

    pub(super) fn get_mut(&mut self, global: GlobalId) -> Option<&mut Callee> {
        self.callees.get_mut((self.numbers[global] as usize).wrapping_sub(1))
    }
}

/// Returns attributes without the symbol, which belongs to one function.
pub(super) fn without_symbol(cx: &mut Context, attrs: AttrsId) -> AttrsId {
    match cx.find_attr(attrs, GLOBAL_SYMBOL) {
        Some(_) => cx.with_attr(attrs, GLOBAL_SYMBOL, None),
        None => attrs,
    }
}
