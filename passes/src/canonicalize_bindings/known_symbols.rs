//! Symbols bound by casts whose values are already known.

use anfora_ir::{
    BlockKind, Body, Context, Cursor, Dim, Expr, FreeSymbols, Step, SymbolId, SymbolSubstitution, SymbolWalk, TypeId,
};
use rustc_hash::FxHashSet;

/// Returns the symbols that `match_cast`s bind to dimensions known from the types of their
/// operands, with these dimensions. The body must be in A-normal form.
pub(super) fn known_symbols(cx: &mut Context, body: &Body) -> SymbolSubstitution {
    if !body.exprs().any(|(_, node)| cx.cast_type(node).is_some_and(|to| cx.types.is_symbolic(to))) {
        return SymbolSubstitution::default();
    }
    let mut known = Known::default();
    for &param in body.params() {
        known.note(cx, body.ty(param.expr()));
    }
    // The symbols found in the open blocks, and the start of each block's symbols.
    let (mut found, mut marks): (Vec<SymbolId>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::EnterBlock(_, kind) => {
                marks.push(found.len());
                if let BlockKind::Lambda(id) = kind
                    && let Expr::Lambda { lambda, .. } = body.expr(id)
                {
                    body.lambda_params(lambda).for_each(|param| known.note(cx, body.ty(param.expr())));
                }
            }
            Step::ExitBlock(..) => {
                let mark = marks.pop().expect("a block is left after it is entered");
                known.closed.extend(found.drain(mark..));
            }
            Step::Flat(id) => {
                let Some(to) = cx.cast_type(body.expr(id)) else { continue };
                let Some(&operand) = body.operands_of(id).first() else { continue };
                if !known.cast(cx, body.ty(operand), to, &mut found) {
                    return SymbolSubstitution::default();
                }
            }
            _ => {}
        }
    }
    known.by
}

#[derive(Default)]
struct Known {
    by: SymbolSubstitution,
    /// The symbols that were bound so far.
    bound: FxHashSet<SymbolId>,
    /// The symbols that got a value in a block that was left.
    closed: FxHashSet<SymbolId>,
    walk: SymbolWalk,
    free: FreeSymbols,
    /// The pairs of types that were compared.
    compared: FxHashSet<(TypeId, TypeId)>,
}

impl Known {
    fn note(&mut self, cx: &Context, ty: TypeId) {
        self.walk.in_type(cx, ty, |symbol| {
            self.bound.insert(symbol);
        });
    }

    /// Processes a cast of a value of type `from`. Returns false if it binds a symbol that got a
    /// value in another block.
    fn cast(&mut self, cx: &mut Context, from: TypeId, to: TypeId, found: &mut Vec<SymbolId>) -> bool {
        if !cx.types.is_symbolic(to) {
            return true;
        }
        if !self.closed.is_empty() && self.free.of(&cx.types, to).iter().any(|symbol| self.closed.contains(symbol)) {
            return false;
        }
        let from = self.by.ty(cx, from);
        let dims = &cx.types.dims;
        cx.types.for_each_dim_beside(to, from, &mut self.compared, |bound, dim| {
            if let Dim::Symbol(symbol) = *dims.get(bound)
                && dim != dims.unknown()
                && self.bound.insert(symbol)
            {
                self.by.set(symbol, dim);
                found.push(symbol);
            }
        });
        self.note(cx, to);
        true
    }
}
