//! Walking and rewriting programs of [`anfora_ir`], however long and deep.
//!
//! No tool here recurses over the shape of a program: a chain, or a nest, of a million Lets, branches, lambdas or calls takes constant stack. All of them are
//! thin on top of the one traversal, [`anfora_ir::Cursor`].
//!
//! | for | there is |
//! |---|---|
//! | looking at a program, with callbacks | [`Visitor`] and [`walk`] |
//! | one chain, down and back up | [`expand_a_normal_form`], [`expand_every_chain`]; [`chain`] to iterate |
//! | rewriting bindings and nodes, types and regions kept right | [`Mutator`] and [`mutate`] |
//! | rewriting node by node, with the node before and after | [`post_order_rewrite`] |
//! | building a block | [`LetList`] |
//! | single edits of a chain | [`unlink_let`], [`insert_before`], [`insert_after`], [`splice_before`], [`replace_value`], at a [`Link`] |
//! | results by expression, undone at the end of a scope | [`Memo`] |
//! | variables | [`use_counts`], [`free_variables`], [`bound_variables`], [`substitute`] |
//! | copies | [`copy_fresh`], [`Copier`] |
//!
//! A visitor that must stop at some nodes and not at others, or treat chains, branches and calls in ways of its own, needs no engine of its own: callbacks
//! skip what they do not want, and the cursor itself can be driven step by step and lends the body in between.
//!
//! The rewrite that every compiler has first, `x * 1` to `x`, wherever it stands:
//!
//! ```
//! use anfora_ir::{Editor, Expr, ExprId};
//! use anfora_visit::{Mutator, Rewrite, RewriteError, Site, mutate};
//!
//! struct MultiplyByOne;
//!
//! impl Mutator for MultiplyByOne {
//!     type Error = RewriteError;
//!
//!     fn rewrite_expr(&mut self, site: &mut Site, id: ExprId) -> Result<Rewrite, RewriteError> {
//!         let Editor { cx, body } = &site.editor;
//!         if let Expr::CallOp { op, .. } = body.expr(id)
//!             && cx.ops.get(op).name == "multiply"
//!             && let &[x, one] = body.operands_of(id)
//!             && let Some(literal) = body.as_literal(one)
//!             && cx.literals.get(literal).as_scalar::<f32>() == Some(1.0)
//!             && body.type_of(x) == body.ty(id)
//!         {
//!             return Ok(Rewrite::Replace(x));
//!         }
//!         Ok(Rewrite::Keep)
//!     }
//! }
//! # use anfora_ir::{Arity, FunctionBuilder, FusionPattern, Literal, Module, OpDef, OpPurity, OpRegistry, DType};
//! # use std::sync::Arc;
//! # let mut registry = OpRegistry::new();
//! # registry.register(OpDef {
//! #     name: "multiply".into(), doc: "Multiplies.".into(), arity: Arity::exactly(2), attrs: Vec::new().into(),
//! #     infer: |call| Ok(call.operand(0).unwrap()), purity: OpPurity::Pure, fusion: FusionPattern::ElemWise,
//! #     kernel: None, commutative: true, may_fail: false, forwards: &[],
//! # }).unwrap();
//! # let mut module = Module::new(Arc::new(registry));
//! # let f32 = module.cx.types.scalar(DType::Float32);
//! # let mut f = FunctionBuilder::new(&mut module, "main");
//! # let x = f.param("x", f32);
//! # let one = f.literal(Literal::scalar(1f32));
//! # let product = f.call_op("multiply", &[x, one], &[]).unwrap();
//! # let y = f.bind("y", product);
//! # let pair = f.tuple(&[y, y]);
//! # let key = f.finish(pair).unwrap();
//! // fn (%x) { let %y = multiply(%x, 1f); (%y, %y) }
//! let (function, cx) = module.get_mut(key).unwrap();
//! mutate(&mut Editor::new(cx, &mut function.body), &mut MultiplyByOne)?;
//! // fn (%x) { (%x, %x) }
//! let x = function.body.params()[0].expr();
//! assert_eq!(function.body.operands_of(function.body.root()), [x, x]);
//! # Ok::<(), RewriteError>(())
//! ```

mod link;

mod visitor;

mod expand;

mod engine;
mod mutator;
mod site;

mod rewriter;

mod let_list;

mod chain;

mod memo;

mod variables;

mod substitute;

mod copy;

mod error;

pub use chain::{
    insert_after, insert_before, replace_value, set_let_flags, set_var_flags, splice_before, tail_link, unlink_let,
};
pub use copy::{Copier, copy_fresh};
pub use error::RewriteError;
pub use expand::{ChainLink, HoldsBody, expand_a_normal_form, expand_every_chain};
pub use let_list::LetList;
pub use link::{Binding, Link, chain};
pub use memo::Memo;
pub use mutator::{BindingRewrite, Edits, Mutator, Rewrite, mutate, mutate_at};
pub use rewriter::{ExprRewriter, post_order_rewrite};
pub use site::Site;
pub use substitute::substitute;
pub use variables::{bound_variables, free_variables, use_counts};
pub use visitor::{Branch, Visit, Visitor, walk, walk_from};
