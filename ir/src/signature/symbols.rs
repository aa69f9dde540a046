//! Symbolic dimensions that parameters bind no longer.

use rustc_hash::FxHashSet;

use crate::context::Context;
use crate::cursor::{Cursor, Step};
use crate::dim::Dim;
use crate::entity::{AttrsId, ExprId, SymbolId, TypeId};
use crate::expr::{Expr, VarId};
use crate::function::Function;
use crate::verify::symbols_of_attrs;

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
    let mut types = Types { cx, seen: FxHashSet::default() };
    for param in body.params() {
        if let Some(symbol) = types.find(body.ty(param.expr()), |s| !bound.contains(&s)) {
            return Some((symbol, None));
        }
    }
    let lost: FxHashSet<SymbolId> = bound_by(before).difference(&bound).copied().collect();
    if lost.is_empty() {
        return None;
    }
    let is_lost = |s: SymbolId| lost.contains(&s);
    let in_attrs = |attrs: AttrsId| match attrs == cx.attrs.empty() {
        true => None,
        false => symbols_of_attrs(cx, attrs).iter().copied().find(|s| lost.contains(s)),
    };
    let in_head = function.ret.and_then(|ret| types.find(ret, is_lost)).or_else(|| in_attrs(function.attrs));
    if let Some(symbol) = in_head {
        return Some((symbol, None));
    }
    let mut seen_attrs: FxHashSet<AttrsId> = FxHashSet::default();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Atom(id) | Step::Flat(id) | Step::Enter(id)) = step else { continue };
        let mut found = types.find(body.ty(id), is_lost);
        let attrs = match body.expr(id) {
            Expr::CallOp { attrs, .. } | Expr::Call { attrs, .. } => attrs,
            Expr::Lambda { lambda, .. } => {
                let data = body.lambda(lambda);
                let params = body.lambda_params(lambda).map(|p| body.ty(p.expr()));
                for ty in params.chain(data.ret) {
                    found = found.or_else(|| types.find(ty, is_lost));
                }
                data.attrs
            }
            _ => cx.attrs.empty(),
        };
        if found.is_none() && seen_attrs.insert(attrs) {
            found = in_attrs(attrs);
        }
        if let Some(symbol) = found {
            return Some((symbol, cursor.binding()));
        }
    }
    None
}

/// Looks at each type once.
struct Types<'a> {
    cx: &'a Context,
    seen: FxHashSet<TypeId>,
}

impl Types<'_> {
    /// Returns a symbol that a type names and that is looked for; `None` if the type was looked at
    /// before.
    fn find(&mut self, ty: TypeId, is_wanted: impl Fn(SymbolId) -> bool) -> Option<SymbolId> {
        let types = &self.cx.types;
        if !types.is_symbolic(ty) || !self.seen.insert(ty) {
            return None;
        }
        let mut found = None;
        types.for_each_symbol(ty, |d| {
            if let Dim::Symbol(s) = *types.dims.get(d)
                && found.is_none()
                && is_wanted(s)
            {
                found = Some(s);
            }
        });
        found
    }
}
