//! Symbolic dimensions that parameters bind no longer.

use rustc_hash::FxHashSet;

use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, DimId, ExprId, SymbolId, TypeId};
use crate::core::expr::{Expr, VarId};
use crate::core::function::Function;
use crate::tables::attrs::Attr;
use crate::tables::dim::Dim;
use crate::tables::types::{SeenParts, Types};
use crate::walk::cursor::{Cursor, Step};

/// Returns a symbol that a function names and none of its parameters binds, and the Let that it is
/// at: one that the parameters `before` bound, or that a parameter names. A `match_cast` to a symbol
/// that a parameter bound compared with it, so that it does not do instead.
///
/// Linear in the parameters, and in the function if its parameters bind less than before.
pub(super) fn not_bound(cx: &Context, function: &Function, before: &[VarId]) -> Option<(SymbolId, Option<ExprId>)> {
    let body = &function.body;
    let bound_by = |params: &[VarId]| {
        let mut bound: FxHashSet<SymbolId> = FxHashSet::default();
        for param in params {
            cx.types.for_each_binding_symbol(body.ty(param.expr()), |s| {
                bound.insert(s);
            });
        }
        bound
    };
    let bound = bound_by(body.params());
    let mut names = Names { cx, seen: SeenParts::default(), seen_attrs: FxHashSet::default() };
    for param in body.params() {
        if let Some(symbol) = names.find_in_type(body.ty(param.expr()), |s| !bound.contains(&s)) {
            return Some((symbol, None));
        }
    }
    let lost: FxHashSet<SymbolId> = bound_by(before).difference(&bound).copied().collect();
    if lost.is_empty() {
        return None;
    }
    let is_lost = |s: SymbolId| lost.contains(&s);
    let in_head = function.ret.and_then(|ret| names.find_in_type(ret, is_lost));
    let in_head = in_head.or_else(|| names.find_in_attrs(function.attrs, is_lost));
    if let Some(symbol) = in_head {
        return Some((symbol, None));
    }
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Atom(id) | Step::Flat(id) | Step::Enter(id)) = step else { continue };
        let mut found = names.find_in_type(body.ty(id), is_lost);
        let attrs = match body.expr(id) {
            Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => attrs,
            Expr::Lambda { lambda, .. } => {
                let data = body.lambda(lambda);
                let params = body.lambda_params(lambda).map(|p| body.ty(p.expr()));
                for ty in params.chain(data.ret) {
                    found = found.or_else(|| names.find_in_type(ty, is_lost));
                }
                data.attrs
            }
            _ => cx.attrs.empty(),
        };
        found = found.or_else(|| names.find_in_attrs(attrs, is_lost));
        if let Some(symbol) = found {
            return Some((symbol, cursor.binding()));
        }
    }
    None
}

/// A search for symbols that looks at each part of types and attributes once. A part that was
/// looked at before names none that is looked for.
struct Names<'a> {
    cx: &'a Context,
    seen: SeenParts,
    seen_attrs: FxHashSet<AttrId>,
}

impl Names<'_> {
    /// Returns a symbol that a type names and that is looked for.
    fn find_in_type(&mut self, ty: TypeId, is_wanted: impl Fn(SymbolId) -> bool) -> Option<SymbolId> {
        let types = &self.cx.types;
        let mut found = None;
        types.for_each_new_symbol(ty, &mut self.seen, |d| {
            found = found.or_else(|| symbol_of(types, d).filter(|&s| is_wanted(s)));
        });
        found
    }

    /// Returns a symbol that attributes name and that is looked for.
    fn find_in_attrs(&mut self, attrs: AttrsId, is_wanted: impl Fn(SymbolId) -> bool) -> Option<SymbolId> {
        let cx = self.cx;
        let mut found = None;
        let mut stack: Vec<AttrId> = cx.attrs.list(attrs).iter().rev().map(|&(_, value)| value).collect();
        while let (Some(value), None) = (stack.pop(), found) {
            if !self.seen_attrs.insert(value) {
                continue;
            }
            match cx.attrs.get(value) {
                Attr::List(items) => stack.extend(items.iter().rev()),
                Attr::Type(ty) => found = self.find_in_type(*ty, &is_wanted),
                Attr::Shape(dims) => {
                    for &d in dims {
                        cx.types.dims.for_each_symbol(d, |d| {
                            found = found.or_else(|| symbol_of(&cx.types, d).filter(|&s| is_wanted(s)));
                        });
                    }
                }
                _ => {}
            }
        }
        found
    }
}

fn symbol_of(types: &Types, dim: DimId) -> Option<SymbolId> {
    match *types.dims.get(dim) {
        Dim::Symbol(symbol) => Some(symbol),
        _ => None,
    }
}
