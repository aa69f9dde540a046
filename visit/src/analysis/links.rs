//! Every link of a program.

use anfora_ir::{Body, Cursor, Expr, ExprId, SideTable, Step};

use crate::link::Link;

/// Calls `f` with every link under `start` and what hangs there, each once: the links that a node holds one after the other, nodes in
/// [`pre_order`](crate::pre_order). That at which `start` itself hangs is not among them. One walk.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::Link;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let pair = f.tuple(&[a, a]);
/// # let x = f.bind("x", pair);
/// # let key = f.finish(x).unwrap();
/// // %a -> let %x = (%a, %a); %x
/// let body = &module.get(key).unwrap().body;
/// let mut links = Vec::new();
/// anfora_visit::for_each_link(body, body.root(), |link, target| {
///     assert_eq!(link.target(body), target);
///     links.push(link);
/// });
/// let root = body.root();
/// assert_eq!(links, [Link::Value(root), Link::Rest(root), Link::Operand(pair, 0), Link::Operand(pair, 1)]);
/// ```
#[inline]
pub fn for_each_link(body: &Body, start: ExprId, mut f: impl FnMut(Link, ExprId)) {
    let mut cursor = Cursor::at(body, start);
    while let Some(step) = cursor.next(body) {
        let (Step::Let(id) | Step::Flat(id) | Step::Enter(id)) = step else { continue };
        match body.expr(id) {
            Expr::Let { value, body: rest, .. } => {
                f(Link::Value(id), value);
                f(Link::Rest(id), rest);
            }
            Expr::If { cond, then_block, else_block } => {
                f(Link::Cond(id), cond);
                f(Link::Then(id), then_block);
                f(Link::Else(id), else_block);
            }
            Expr::Lambda { body: block, .. } => f(Link::Lambda(id), block),
            _ => {
                for (i, &input) in body.inputs(id).iter().enumerate() {
                    f(Link::Operand(id, i as u32), input);
                }
            }
        }
    }
}

/// How many links each expression of a function hangs at, by its id: 0 for what cannot be reached, 1 for most of the rest, more for a node that is
/// shared. The block of the function hangs at one, [`Link::Root`]. Of a variable it is what [`use_counts`](crate::use_counts) says. One walk.
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
    counts.set(body.root(), 1);
    for_each_link(body, body.root(), |_, target| *counts.get_mut(target) += 1);
    counts
}
