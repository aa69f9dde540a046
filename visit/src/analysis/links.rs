//! The number of links to each expression.

use anfora_ir::{Body, Cursor, Expr, ExprId, SideTable, Step};

/// Returns the number of links to each expression of a function, by its id: 0 for an expression
/// that the root does not reach, more than one for a shared node. For a variable it is the number
/// of its uses. The root of the body has one link, [`Link::Root`](crate::Link::Root). Walks the
/// body once.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let shared = f.tuple(&[a]);
/// # let pair = f.tuple(&[shared, shared]);
/// # let key = f.finish(pair).unwrap();
/// // %0 = (%a,); (%0, %0)
/// let body = &module.get(key).unwrap().body;
/// let links = anfora_visit::link_counts(body);
/// assert_eq!((links[pair], links[shared], links[a]), (1, 2, 1));
/// ```
pub fn link_counts(body: &Body) -> SideTable<ExprId, u32> {
    let mut counts = body.side_table(0);
    let mut count = |id| *counts.get_mut(id) += 1;
    count(body.root());
    let mut cursor = Cursor::new(body);
    while let Some(step) = cursor.next(body) {
        let (Step::Let(id) | Step::Flat(id) | Step::Enter(id)) = step else { continue };
        match body.expr(id) {
            Expr::Let { value, body: rest, .. } => [value, rest].into_iter().for_each(&mut count),
            Expr::If { cond, then_block, else_block } => {
                [cond, then_block, else_block].into_iter().for_each(&mut count);
            }
            Expr::Lambda { body: only, .. } | Expr::Proj { tuple: only, .. } => count(only),
            _ => body.operands_of(id).iter().copied().for_each(&mut count),
        }
    }
    counts
}
