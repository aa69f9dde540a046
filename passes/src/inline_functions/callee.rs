//! A function that is inlined.

use anfora_ir::{
    AttrsId, Body, Context, Cursor, EntityId, Expr, ExprId, Function, GlobalId, IdSet, LambdaData, LambdaId, Step,
    SymbolId, SymbolWalk, Transplant, TypeId, VarId,
};
use anfora_visit::chain;
use rustc_hash::{FxHashMap, FxHashSet};

use super::named_in;
use crate::attach_global_symbol::GLOBAL_SYMBOL;

/// The parts of a function that are copied to its uses: its parameters and its block, without
/// unreachable nodes.
pub(super) struct Callee {
    pub(super) body: Body,
    /// The stated result type.
    pub(super) ret: Option<TypeId>,
    /// The function's attributes without its symbol.
    pub(super) attrs: AttrsId,
    pub(super) meta: AttrsId,
    /// True if its block contains no If outside of lambdas.
    pub(super) is_straight: bool,
    /// The symbols that its parameters bind.
    pub(super) param_symbols: Vec<SymbolId>,
    /// The symbols that its `match_cast`s bind.
    pub(super) inner_symbols: Vec<SymbolId>,
    /// The variables that are bound to calls and have no uses other than projections.
    pub(super) projected: Vec<VarId>,
    /// The number of its nodes after the functions that it names are inlined.
    pub(super) full_size: usize,
}

impl Callee {
    /// Returns the callee for a function, which may name other callees.
    pub(super) fn of(cx: &mut Context, function: &Function, others: &FxHashMap<GlobalId, Callee>) -> Callee {
        let mut body = Transplant::moving().function(cx, function).body;
        for i in 0..body.lambda_count() {
            let lambda = LambdaId::from_index(i);
            let data = body.lambda(lambda);
            let attrs = without_symbol(cx, data.attrs);
            body.set_lambda(lambda, LambdaData { attrs, ..data });
        }
        let root = body.root();
        let is_if = |id| matches!(body.expr(id), Expr::If { .. });
        let is_straight = !chain(&body, root).any(|b| is_if(b.value)) && !is_if(body.tail(root));
        let (mut param_symbols, mut inner_symbols) = (Vec::new(), Vec::new());
        if cx.types.dims.symbol_count() > 0 {
            let mut seen = FxHashSet::default();
            for &param in body.params() {
                cx.types.for_each_binding_symbol(body.ty(param.expr()), |s| {
                    if seen.insert(s) {
                        param_symbols.push(s);
                    }
                });
            }
            let mut walk = SymbolWalk::new();
            for (_, expr) in body.exprs() {
                if let Some(to) = cx.cast_type(expr) {
                    walk.in_type(cx, to, |s| {
                        if seen.insert(s) {
                            inner_symbols.push(s);
                        }
                    });
                }
            }
        }
        let projected = projected_calls(&body);
        let named = named_in(&body, |global| others.contains_key(&global));
        // Includes the call, which stays in the arenas.
        let full_size = named.iter().fold(body.len() + 1, |size, global| size.saturating_add(others[global].full_size));
        Callee {
            body,
            ret: function.ret,
            attrs: without_symbol(cx, function.attrs),
            meta: function.meta,
            is_straight,
            param_symbols,
            inner_symbols,
            projected,
            full_size,
        }
    }

    /// Returns true if it binds symbols.
    pub(super) fn is_symbolic(&self) -> bool {
        !self.param_symbols.is_empty() || !self.inner_symbols.is_empty()
    }
}

/// Returns attributes without the symbol, which belongs to one function.
fn without_symbol(cx: &mut Context, attrs: AttrsId) -> AttrsId {
    match cx.find_attr(attrs, GLOBAL_SYMBOL) {
        Some(_) => cx.with_attr(attrs, GLOBAL_SYMBOL, None),
        None => attrs,
    }
}

/// Returns the variables of a body that Lets bind to calls and that have no uses other than
/// projections.
pub(super) fn projected_calls(body: &Body) -> Vec<VarId> {
    let mut used: IdSet<ExprId> = IdSet::with_capacity(body.len());
    let mut calls = Vec::new();
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        match step {
            Step::Let(id) => {
                if let Expr::Let { var, value, .. } = body.expr(id)
                    && let Expr::Call { .. } = body.expr(value)
                {
                    calls.push(var);
                }
            }
            Step::Atom(id) => {
                used.insert(id);
            }
            Step::Flat(id) => {
                for &operand in body.operands_of(id) {
                    used.insert(operand);
                }
            }
            _ => {}
        }
    }
    calls.retain(|var| !used.contains(var.expr()));
    calls
}
