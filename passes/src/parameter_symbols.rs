//! The parameters that a function cannot lose, because they alone bind a symbol that it names.

use anfora_ir::{Body, Context, Cursor, EntityId, Function, Step, SymbolId, SymbolWalk};
use rustc_hash::{FxHashMap, FxHashSet};

/// Returns the positions of the unneeded parameters that alone bind a symbol which the function
/// names: in its body, or in the type of a parameter that stays. If several bind it, the first
/// stays. `in_body` returns the symbols that the body names; it is called if an unneeded parameter
/// binds a symbol.
///
/// Cost: linear in the types of the parameters.
pub fn only_binders(
    cx: &Context,
    body: &Body,
    is_needed: &[bool],
    in_body: impl FnOnce() -> FxHashSet<SymbolId>,
) -> Vec<usize> {
    let type_of = |i: usize| body.ty(body.params()[i].expr());
    let mut first_binder: FxHashMap<SymbolId, usize> = FxHashMap::default();
    for i in (0..is_needed.len()).filter(|&i| !is_needed[i]) {
        cx.types.for_each_binding_symbol(type_of(i), |symbol| _ = first_binder.entry(symbol).or_insert(i));
    }
    if first_binder.is_empty() {
        return Vec::new();
    }
    let mut wanted: Vec<SymbolId> = in_body().into_iter().collect();
    wanted.sort_unstable_by_key(|symbol| symbol.index());
    let mut bound: FxHashSet<SymbolId> = FxHashSet::default();
    let mut walk = SymbolWalk::new();
    let mut keep = |i: usize, wanted: &mut Vec<SymbolId>, bound: &mut FxHashSet<SymbolId>| {
        walk.in_type(cx, type_of(i), |symbol| wanted.push(symbol));
        cx.types.for_each_binding_symbol(type_of(i), |symbol| _ = bound.insert(symbol));
    };
    (0..is_needed.len()).filter(|&i| is_needed[i]).for_each(|i| keep(i, &mut wanted, &mut bound));
    // A parameter that stays may name further symbols.
    let mut kept = Vec::new();
    while let Some(symbol) = wanted.pop() {
        if !bound.contains(&symbol)
            && let Some(&i) = first_binder.get(&symbol)
        {
            kept.push(i);
            keep(i, &mut wanted, &mut bound);
        }
    }
    kept.sort_unstable();
    kept
}

/// Returns the symbols that a function names outside of its parameters.
///
/// Cost: a walk of the function.
pub fn symbols_named_by(cx: &Context, function: &Function) -> FxHashSet<SymbolId> {
    let body = &function.body;
    let mut named = FxHashSet::default();
    let mut each = |symbol: SymbolId| {
        named.insert(symbol);
    };
    let mut walk = SymbolWalk::new();
    function.ret.into_iter().for_each(|ret| walk.in_type(cx, ret, &mut each));
    walk.in_attrs(cx, function.attrs, &mut each);
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Atom(id) | Step::Flat(id) | Step::Enter(id) = step {
            walk.in_node(cx, body, id, &mut each);
        }
    }
    named
}
