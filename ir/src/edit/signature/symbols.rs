//! Symbolic dimensions that parameters no longer bind.

use rustc_hash::FxHashSet;

use crate::core::context::Context;
use crate::core::entity::{ExprId, SymbolId};
use crate::core::expr::VarId;
use crate::core::function::Function;
use crate::walk::cursor::{Cursor, Step};
use crate::walk::symbols::SymbolWalk;

/// Returns a symbol that a function names but none of its parameters binds, and the Let that names
/// it: a symbol that the parameters `before` bound, or that a parameter names. A `match_cast` to a
/// symbol that a parameter bound was a comparison, so it does not count as binding the symbol.
///
/// Linear in the parameters, and in the function if its parameters bind fewer symbols than before.
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
    // A part that was visited before names none of the symbols in question.
    let mut walk = SymbolWalk::new();
    for param in body.params() {
        let mut found = None;
        walk.in_type(cx, body.ty(param.expr()), |s| found = found.or((!bound.contains(&s)).then_some(s)));
        if let Some(symbol) = found {
            return Some((symbol, None));
        }
    }
    let lost: FxHashSet<SymbolId> = bound_by(before).difference(&bound).copied().collect();
    if lost.is_empty() {
        return None;
    }
    let mut found = None;
    let mut each = |s: SymbolId| found = found.or(lost.contains(&s).then_some(s));
    function.ret.into_iter().for_each(|ret| walk.in_type(cx, ret, &mut each));
    walk.in_attrs(cx, function.attrs, &mut each);
    if let Some(symbol) = found {
        return Some((symbol, None));
    }
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Atom(id) | Step::Flat(id) | Step::Enter(id)) = step else { continue };
        let mut found = None;
        walk.in_node(cx, body, id, |s| found = found.or(lost.contains(&s).then_some(s)));
        if let Some(symbol) = found {
            return Some((symbol, cursor.binding()));
        }
    }
    None
}
