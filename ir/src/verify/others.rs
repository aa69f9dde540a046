//! Checks that verified functions share no symbols with the functions that are not verified.

use rustc_hash::FxHashSet;

use super::in_function;
use super::module_rules::{Verifier, function_name, same_symbol};
use crate::core::attr_names::GLOBAL_SYMBOL;
use crate::core::body::Body;
use crate::core::entity::{FunctionKey, SymbolId, TypeId};
use crate::core::expr::Expr;
use crate::core::function::Function;
use crate::report::diagnostic::Diagnostic;
use crate::tables::attrs::Attr;
use crate::walk::cursor::{Cursor, Step};
use crate::walk::symbols::SymbolWalk;

impl Verifier<'_> {
    /// Checks that no other definition has the `global_symbol` of a checked function, or names a
    /// symbolic dimension that a checked function binds.
    pub(super) fn others(&mut self, checked: &[FunctionKey]) {
        let module = self.module;
        if self.linked.is_empty() && !self.symbols.are_owned() {
            return;
        }
        let checked: FxHashSet<FunctionKey> =
            checked.iter().copied().filter(|&key| module.get(key).is_some()).collect();
        if checked.len() >= module.order().len() {
            return;
        }
        let mut seen = SymbolWalk::default();
        let mut reported: FxHashSet<SymbolId> = FxHashSet::default();
        for (key, function) in module.functions() {
            if checked.contains(&key) || !function.is_definition() {
                continue;
            }
            self.linked_symbol_of_other(function);
            if self.symbols.are_owned() {
                self.dimensions_of_other(function, &mut seen, &mut reported);
            }
        }
    }

    fn linked_symbol_of_other(&mut self, function: &Function) {
        let module = self.module;
        let cx = &module.cx;
        let Some(value) = cx.find_attr(function.attrs, GLOBAL_SYMBOL) else { return };
        let Attr::Str(symbol) = *cx.attrs.get(value) else { return };
        if let Some(&name) = self.linked.get(&symbol) {
            let other = function_name(module, function.global);
            self.errors.report(|| same_symbol(cx.names.get(symbol), other, name));
        }
    }

    /// Checks that a function that is not in the checked set names no symbolic dimension that a
    /// checked function binds.
    fn dimensions_of_other(&mut self, function: &Function, seen: &mut SymbolWalk, reported: &mut FxHashSet<SymbolId>) {
        let body = &function.body;
        let named = body.exprs().filter(|(_, expr)| !matches!(expr, Expr::Let { .. })).map(|(id, _)| body.ty(id));
        if self.owned_among(named, seen).is_empty() {
            return;
        }
        // Nodes that are not reachable from the root may name any symbol.
        let owned = self.owned_among(linked_types(body), &mut SymbolWalk::default());
        if owned.is_empty() {
            *seen = SymbolWalk::default();
        }
        let cx = &self.module.cx;
        let other = function_name(self.module, function.global);
        for (symbol, owner) in owned {
            if !reported.insert(symbol) {
                continue;
            }
            let name = self.bodies.get(owner - 1).copied().unwrap_or_default();
            let symbol = cx.names.get(cx.types.dims.symbol_name(symbol));
            self.errors.report(|| {
                let message = format!("the symbolic dimension `{symbol}` is bound in `@{other}` too");
                in_function(Diagnostic::error(message), name)
            });
        }
    }

    /// Returns those symbols in the types that checked functions bind, each with the number of the
    /// function that binds it, in order of appearance.
    fn owned_among(&self, types: impl Iterator<Item = TypeId>, seen: &mut SymbolWalk) -> Vec<(SymbolId, usize)> {
        let cx = &self.module.cx;
        let mut owned = Vec::new();
        for ty in types {
            seen.in_type(cx, ty, |symbol| owned.extend(self.symbols.owner(symbol).map(|owner| (symbol, owner))));
        }
        owned
    }
}

/// Returns the types of the parameters and of the nodes that are reachable from the root.
fn linked_types(body: &Body) -> impl Iterator<Item = TypeId> {
    let mut types: Vec<TypeId> = body.params().iter().map(|p| body.ty(p.expr())).collect();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        if let Step::Enter(id) | Step::Flat(id) = step {
            match body.expr(id) {
                Expr::Lambda { lambda, .. } => types.extend(body.lambda_params(lambda).map(|p| body.ty(p.expr()))),
                Expr::Let { .. } => {}
                _ => types.push(body.ty(id)),
            }
        }
    }
    types.into_iter()
}
