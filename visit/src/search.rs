//! A loop over every expression in program order, without a visitor.

use anfora_ir::{Body, ExprId};

use crate::order::program_order;

/// Calls `f` with every node under `start`, each once, in [`program_order`]. Atoms are not
/// included.
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
/// anfora_visit::for_each_expr(body, body.root(), |id| {
///     tuples += usize::from(matches!(body.expr(id), Expr::Tuple(_)));
/// });
/// assert_eq!(tuples, 1);
/// ```
pub fn for_each_expr(body: &Body, start: ExprId, f: impl FnMut(ExprId)) {
    program_order(body, start).for_each(f);
}
