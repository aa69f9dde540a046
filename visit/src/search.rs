//! Looking at every expression in program order, without a visitor.

use std::ops::ControlFlow;

use anfora_ir::{Body, ExprId};

use crate::order::program_order;

/// Calls `f` with every node under `start`, each once, in [`program_order`]. Atoms are not among them.
///
/// ```
/// # use anfora_ir::{Expr, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // let %x = (1, 1); %x
/// let body = &module.get(key).unwrap().body;
/// let mut tuples = 0;
/// anfora_visit::for_each_expr(body, body.root(), |id| tuples += usize::from(matches!(body.expr(id), Expr::Tuple(_))));
/// assert_eq!(tuples, 1);
/// ```
pub fn for_each_expr(body: &Body, start: ExprId, f: impl FnMut(ExprId)) {
    program_order(body, start).for_each(f);
}

/// The first node under `start`, in [`program_order`], that satisfies the predicate. What comes after it is not walked.
///
/// ```
/// # use anfora_ir::{Expr, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // let %x = (1, 1); %x
/// let body = &module.get(key).unwrap().body;
/// let pair = anfora_visit::find_expr(body, body.root(), |id| body.operands_of(id).len() == 2);
/// assert!(matches!(pair.map(|id| body.expr(id)), Some(Expr::Tuple(_))));
/// assert_eq!(anfora_visit::find_expr(body, body.root(), |id| matches!(body.expr(id), Expr::If { .. })), None);
/// ```
pub fn find_expr(body: &Body, start: ExprId, mut predicate: impl FnMut(ExprId) -> bool) -> Option<ExprId> {
    program_order(body, start).find(|&id| predicate(id))
}

/// Carries a value past every node under `start`, in [`program_order`], and returns what it has become.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // let %x = (1, 1); %x
/// let body = &module.get(key).unwrap().body;
/// let most_operands = anfora_visit::fold(body, body.root(), 0, |most, id| body.operands_of(id).len().max(most));
/// assert_eq!(most_operands, 2);
/// ```
pub fn fold<T>(body: &Body, start: ExprId, init: T, f: impl FnMut(T, ExprId) -> T) -> T {
    program_order(body, start).fold(init, f)
}

/// [`fold`] that can end early, with a value of a type of the author's.
///
/// # Errors
/// Breaks with what `f` broke with.
///
/// ```
/// # use anfora_ir::{Expr, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::{ops::ControlFlow, sync::Arc};
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // let %x = (1, 1); %x
/// let body = &module.get(key).unwrap().body;
/// // How many nodes come before the first Let?
/// let count = anfora_visit::try_fold(body, body.root(), 0, |n, id| match body.expr(id) {
///     Expr::Let { .. } => ControlFlow::Break(n),
///     _ => ControlFlow::Continue(n + 1),
/// });
/// assert_eq!(count, ControlFlow::Break(1));
/// ```
pub fn try_fold<T, B>(
    body: &Body,
    start: ExprId,
    init: T,
    f: impl FnMut(T, ExprId) -> ControlFlow<B, T>,
) -> ControlFlow<B, T> {
    program_order(body, start).try_fold(init, f)
}
