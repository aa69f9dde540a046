//! Compaction of the tables of a module: all entries that its functions name are made again in
//! empty tables.

use super::{Remap, live, remap};
use crate::core::context::{Context, Global};
use crate::core::entity::{EntityId, FunctionKey, SymbolId};
use crate::core::module::Module;
use crate::core::translate::IdMap;
use crate::edit::take_over::{TableMap, TakeOverError};
use crate::edit::transplant::rebuild_function;
use crate::tables::entry::Entry;
use crate::walk::symbols::SymbolWalk;

pub(super) fn compact_module(module: &mut Module) -> Vec<(FunctionKey, Remap)> {
    let empty = Context::new(module.cx.ops.registry().clone());
    let old = std::mem::replace(&mut module.cx, empty);
    refill(module, &old).expect("there are no more operators than before")
}

/// Fills the empty tables of a module with the entries of the old tables that it uses.
fn refill(module: &mut Module, old: &Context) -> Result<Vec<(FunctionKey, Remap)>, TakeOverError> {
    let mut tables = TableMap::of_all(old);
    // Symbols keep the order in which they were made, since the form of sums depends on it.
    for symbol in used_symbols(module, old) {
        tables.take(&mut module.cx, Entry::Symbol(symbol))?;
    }
    let mut remaps = Vec::with_capacity(module.order().len());
    for key in module.order().to_vec() {
        let (function, cx) = module.get_mut(key).expect("the order names functions that are there");
        tables.parts_of(cx, function)?;
        let (mut new, copied) = rebuild_function(function, &mut &tables.ids);
        remaps.push((key, remap(&function.body, &mut new.body, copied)));
        *function = new;
    }
    let attrs = module.attrs();
    let attrs = tables.take_list(&mut module.cx, attrs)?;
    module.set_attrs(attrs);
    for (id, &Global { signature, target, .. }) in old.globals.iter() {
        if tables.ids.globals.get(id).is_some() {
            let signature = signature.map(|ty| tables.take_type(&mut module.cx, ty)).transpose()?;
            module
                .cx
                .globals
                .update(tables.ids.globals.translated(id), |g| (g.signature, g.target) = (signature, target));
        }
    }
    Ok(remaps)
}

/// Returns the symbols that the functions of a module name, in the order in which they were made.
fn used_symbols(module: &Module, old: &Context) -> Vec<SymbolId> {
    let mut used = Vec::new();
    if old.types.dims.symbol_count() > 0 {
        let mut walk = SymbolWalk::new();
        for (_, function) in module.functions() {
            for id in live(&function.body) {
                walk.in_node(old, &function.body, id, |symbol| used.push(symbol));
            }
        }
    }
    used.sort_unstable_by_key(|symbol| symbol.index());
    used.dedup();
    used
}
