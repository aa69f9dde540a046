//! Iterators over the expressions of a program, in a given order.

use anfora_ir::{Body, Cursor, ExprId, Step};

use crate::link::Binding;

/// Returns the nodes under `start`, each after all nodes in it. The Lets of a chain come after its
/// tail, the last one first.
///
/// ```
/// # use anfora_ir::{Expr, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let first = f.proj(x, 0).unwrap();
/// # let key = f.finish(first).unwrap();
/// // let %x = (1, 1); %x.0
/// let body = &module.get(key).unwrap().body;
/// let order = anfora_visit::post_order(body, body.root());
/// let kinds: Vec<Expr> = order.map(|id| body.expr(id)).collect();
/// assert!(matches!(kinds[..], [Expr::Tuple(_), Expr::Proj { .. }, Expr::Let { .. }]));
/// ```
pub fn post_order(body: &Body, start: ExprId) -> impl Iterator<Item = ExprId> + '_ {
    let mut cursor = Cursor::at(body, start);
    // The Lets of the open blocks, and the start of each block's Lets. The Lets of a block that was
    // left are yielded from the end.
    let (mut lets, mut marks): (Vec<ExprId>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut left = 0;
    std::iter::from_fn(move || {
        loop {
            if left > 0 {
                left -= 1;
                return lets.pop();
            }
            match cursor.next(body)? {
                Step::EnterBlock(..) => marks.push(lets.len()),
                Step::Let(id) => lets.push(id),
                Step::ExitBlock(..) => left = lets.len() - marks.pop().unwrap_or(0),
                Step::Flat(id) | Step::Exit(id) => return Some(id),
                Step::Bound(_) | Step::Atom(_) | Step::Enter(_) | Step::Seen(_) => {}
            }
        }
    })
}

/// Returns the nodes under `start` in the order of evaluation: operands and blocks before the node
/// that has them, a Let after its value and before the rest of its chain.
///
/// The branches of an If come one after the other, and the block of a Lambda where the Lambda
/// stands. So the operands of a node come before it, and a binding before the uses of its variable,
/// except that a recursive `fn` uses its name before it is bound.
///
/// | iterator | a Let comes |
/// |---|---|
/// | [`post_order`] | after its value and the rest of its chain |
/// | [`program_order`] | after its value, before the rest of its chain |
///
/// In both, any other node comes after its operands and blocks. Both yield the Lets, calls, tuples,
/// projections, Ifs and Lambdas that can be reached from `start`, each once. A node with several
/// users is yielded where it is reached first, when the parts of each node are visited in the order
/// of evaluation. Atoms are not yielded: read them from the nodes that hold them
/// ([`Body::operands_of`]), or use a [`Visitor`](crate::Visitor), which has callbacks for them.
///
/// The iterator borrows the body, so that nothing can be edited while it exists:
///
/// ```compile_fail,E0502
/// # fn edit(mut body: anfora_ir::Body) {
/// for id in anfora_visit::program_order(&body, body.root()) {
///     body.set_root(id);
/// }
/// # }
/// ```
///
/// To edit nodes, collect them first, or walk with the [`Cursor`], which lends the body between
/// steps.
///
/// ```
/// # use anfora_ir::{Expr, FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let first = f.proj(x, 0).unwrap();
/// # let key = f.finish(first).unwrap();
/// // let %x = (1, 1); %x.0
/// let body = &module.get(key).unwrap().body;
/// let order = anfora_visit::program_order(body, body.root());
/// let kinds: Vec<Expr> = order.map(|id| body.expr(id)).collect();
/// assert!(matches!(kinds[..], [Expr::Tuple(_), Expr::Let { .. }, Expr::Proj { .. }]));
/// ```
pub fn program_order(body: &Body, start: ExprId) -> impl Iterator<Item = ExprId> + '_ {
    let mut cursor = Cursor::at(body, start);
    std::iter::from_fn(move || {
        loop {
            if let Step::Bound(id) | Step::Flat(id) | Step::Exit(id) = cursor.next(body)? {
                return Some(id);
            }
        }
    })
}

/// Returns the bindings of every chain under `start`, including those in values, branches, lambdas
/// and operands, in program order: each binding where its variable comes into scope, after the
/// bindings in its value. [`chain`](crate::chain) returns those of one chain alone.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # f.open_block();
/// # let pair = f.tuple(&[one, one]);
/// # let inner = f.bind("inner", pair);
/// # let block = f.close_block(inner).unwrap();
/// # let outer = f.bind("outer", block);
/// # let key = f.finish(outer).unwrap();
/// // let %outer = { let %inner = (1, 1); %inner }; %outer
/// let body = &module.get(key).unwrap().body;
/// let names: Vec<&str> = anfora_visit::bindings(body, body.root())
///     .map(|b| module.cx.names.get(body.var_name(b.var).unwrap()))
///     .collect();
/// assert_eq!(names, ["inner", "outer"]);
/// ```
pub fn bindings(body: &Body, start: ExprId) -> impl Iterator<Item = Binding> + '_ {
    let mut cursor = Cursor::at(body, start);
    std::iter::from_fn(move || {
        loop {
            if let Step::Bound(id) = cursor.next(body)? {
                return Binding::of(body, id);
            }
        }
    })
}
