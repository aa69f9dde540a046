//! Walking and rewriting programs of [`anfora_ir`], of any length and depth.
//!
//! No tool except [`ExprFunctor`] recurses over a program: a chain or a nest of a million Lets,
//! branches, lambdas or calls takes constant stack. The tools that read go through programs with
//! [`anfora_ir::Cursor`]. The tools that rewrite share one forward loop, and rules are applied from
//! a worklist.
//!
//! | task | tools |
//! |---|---|
//! | looking at a program, with callbacks | [`Visitor`] and [`walk`] |
//! | looking at a program, as an iterator | [`post_order`], [`program_order`]; [`bindings`] |
//! | looking at every node | [`for_each_expr`] |
//! | one chain, down and back up | [`expand_a_normal_form`], [`expand_every_chain`] |
//! | one chain, as an iterator | [`chain`] |
//! | rewriting bindings and nodes; types and regions stay correct | [`Mutator`] and [`mutate`] |
//! | rewriting node by node, with the node before and after | [`post_order_rewrite`] |
//! | building a block | [`LetList`] |
//! | outputs of regions that were made or merged | [`hide_unused_outputs`] |
//! | values of another type, tuples field by field | [`split_and_convert`] |
//! | single edits of a chain at a [`Link`] | [`unlink_let`], [`insert_before`], [`splice_before`] |
//! | results by expression, undone at the end of a scope | [`Memo`] |
//! | patterns | [`pattern`] |
//! | rewriting by rules to a fixpoint | [`rewrite_patterns`], [`Rule`](pattern::Rule) |
//! | definitions and uses, kept up to date | [`DefUse`] |
//! | recursion on a stack that grows | [`ExprFunctor`] |
//! | variables | [`free_variables`], [`bound_variables`], [`substitute`] |
//! | the block of an expression; the number of its uses | [`Blocks`], [`link_counts`] |
//! | a node that all paths from a value meet | [`PostDominators`], [`PostDominatorTree`] |
//! | the last use of a value | [`Liveness`] |
//! | calls with observable effects | [`Purity`], [`BodyPurity`] |
//! | the functions of a module | [`CallGraph`]; the names of functions: [`GlobalWalk`] |
//! | copies within a function, and of a whole function | [`copy_fresh`], [`copy_function`] |
//! | copies from one function to another | [`copy_between`] |
//! | copies of any kind, many with one table | [`Transplant`] |
//!
//! [`Purity`]: anfora_ir::Purity
//! [`BodyPurity`]: anfora_ir::BodyPurity
//! [`Transplant`]: anfora_ir::Transplant
//!
//! A visitor that visits only some nodes, or treats chains, branches and calls differently, needs
//! no walk of its own: its callbacks skip nodes. A pass can also call the cursor step by step, and
//! edit the body between two steps. See [mixed modes](#mixed-modes) below. For recursive code, use
//! [`ExprFunctor`].
//!
//! The classic first rewrite of a compiler, `x * 1` to `x`, at any place:
//!
//! ```
//! use anfora_ir::{Editor, ExprId, OpId};
//! use anfora_visit::{Mutator, Rewrite, RewriteError, Site, mutate};
//!
//! struct MultiplyByOne {
//!     multiply: OpId,
//! }
//!
//! impl Mutator for MultiplyByOne {
//!     type Error = RewriteError;
//!
//!     fn rewrite_expr(&mut self, site: &mut Site, id: ExprId) -> Result<Rewrite, RewriteError> {
//!         let Editor { cx, body } = &site.editor;
//!         if let Some(call) = body.call_of(id)
//!             && call.op == self.multiply
//!             && let &[x, one] = call.operands
//!             && body.is_splat(cx, one, 1)
//!             && body.type_of(x) == body.ty(id)
//!         {
//!             return Ok(Rewrite::Replace(x));
//!         }
//!         Ok(Rewrite::Keep)
//!     }
//! }
//! # use anfora_ir::{Arity, FunctionBuilder, Literal, Module, OpDef, OpRegistry, DType};
//! # use std::sync::Arc;
//! # let mut registry = OpRegistry::new();
//! # let multiply = OpDef::new("multiply", "Multiplies.", Arity::exactly(2), |call| {
//! #     Ok(call.operand(0).unwrap())
//! # });
//! # registry.register(multiply.commutative()).unwrap();
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
//! let multiply = cx.ops.resolve("multiply")?;
//! mutate(&mut Editor::new(cx, &mut function.body), &mut MultiplyByOne { multiply })?;
//! // fn (%x) { (%x, %x) }
//! let x = function.body.params()[0].expr();
//! assert_eq!(function.body.operands_of(function.body.root()), [x, x]);
//! # Ok::<(), RewriteError>(())
//! ```
//!
//! # Mixed modes
//!
//! Relay has a second visitor and a second mutator that go through calls, tuples and projections
//! with a loop, operands first, and recurse only where control flow begins. Here one engine does
//! both without recursion, and the two modes are two ways of using it:
//!
//! - Data flow (calls, tuples, projections) is visited operands first by [`Visitor::exit_expr`],
//!   and by [`Mutator::rewrite_expr`], which gets rewritten operands. Shared nodes are visited
//!   once.
//! - Control flow (blocks of branches and lambdas, chains, regions) is entered and left by the
//!   `enter_` and `exit_` callbacks. A visitor keeps a stack of its own: it pushes at `enter_` and
//!   pops at `exit_` what a recursion would keep in local variables. [`Visit::Skip`] skips a block.
//!
//! This visitor computes the cost of a program. The cost of an If is the cost of its costlier
//! branch:
//!
//! ```
//! use anfora_ir::{Body, Expr, ExprId};
//! use anfora_visit::{Branch, Visit, Visitor, walk};
//! use std::{convert::Infallible, ops::ControlFlow};
//!
//! /// The costs of the open blocks, innermost last.
//! struct Cost(Vec<u32>);
//!
//! impl Visitor for Cost {
//!     type Break = Infallible;
//!
//!     // Data flow.
//!     fn exit_expr(&mut self, body: &Body, id: ExprId) -> ControlFlow<Infallible> {
//!         if let Expr::CallOp { .. } | Expr::Tuple(_) = body.expr(id) {
//!             *self.0.last_mut().unwrap() += 1;
//!         }
//!         ControlFlow::Continue(())
//!     }
//!
//!     // Control flow.
//!     fn enter_lambda(&mut self, _: &Body, _: ExprId) -> Visit<Infallible> {
//!         Visit::Skip
//!     }
//!     fn enter_branch(&mut self, _: &Body, _: ExprId, _: Branch) -> Visit<Infallible> {
//!         self.0.push(0);
//!         Visit::Continue
//!     }
//!     fn exit_branch(&mut self, _: &Body, _: ExprId, branch: Branch) -> ControlFlow<Infallible> {
//!         if branch == Branch::Else {
//!             let (otherwise, then) = (self.0.pop().unwrap(), self.0.pop().unwrap());
//!             *self.0.last_mut().unwrap() += then.max(otherwise);
//!         }
//!         ControlFlow::Continue(())
//!     }
//! }
//! # use anfora_ir::{DType, FunctionBuilder, Module, OpRegistry};
//! # use std::sync::Arc;
//! # let mut module = Module::new(Arc::new(OpRegistry::new()));
//! # let flag = module.cx.types.scalar(DType::Bool);
//! # let mut f = FunctionBuilder::new(&mut module, "main");
//! # let c = f.param("c", flag);
//! # let a = f.tuple(&[c, c]);
//! # let a = f.bind("a", a);
//! # f.open_block();
//! # let inner = f.tuple(&[a]);
//! # let b = f.tuple(&[inner, a]);
//! # let then_block = f.close_block(b).unwrap();
//! # f.open_block();
//! # let inner = f.tuple(&[a]);
//! # let b = f.bind("b", inner);
//! # let b = f.tuple(&[b, a]);
//! # let else_block = f.close_block(b).unwrap();
//! # let choice = f.if_(c, then_block, else_block).unwrap();
//! # let key = f.finish(choice).unwrap();
//! // let %a = (%c, %c); if (%c) { ((%a,), %a) } else { let %b = (%a,); (%b, %a) }
//! let mut cost = Cost(vec![0]);
//! let _ = walk(&module.get(key).unwrap().body, &mut cost);
//! assert_eq!(cost.0, [3]);
//! ```

mod link;

mod visitor;

mod expand;

mod order;
mod search;

mod functor;

mod engine;
mod mutator;
mod mutate;
mod site;

mod sweep_back;

mod rewriter;

mod let_list;

mod hide_outputs;

mod conversion;

mod chain;

mod memo;

mod variables;

mod global_walk;

mod analysis;

pub mod pattern;

mod substitute;

mod copy;

mod error;

pub use analysis::{
    BlockId, Blocks, CallGraph, DefUse, Definition, FlowEdge, FlowGraph, LastUse, Liveness, PostDominatorTree,
    PostDominators, link_counts,
};
pub use chain::{insert_before, set_var_flags, splice_before, tail_link, unlink_let};
pub use conversion::split_and_convert;
pub use copy::{CopyError, copy_between, copy_fresh, copy_function};
pub use error::RewriteError;
pub use expand::{ChainLink, HoldsBody, expand_a_normal_form, expand_every_chain};
pub use functor::ExprFunctor;
pub use global_walk::GlobalWalk;
pub use hide_outputs::hide_unused_outputs;
pub use let_list::LetList;
pub use link::{Binding, Link, chain};
pub use memo::Memo;
pub use mutate::{mutate, mutate_at, mutate_function};
pub use mutator::{Edits, Mutator, Refused, Rewrite, Scope, Slot, Verdict};
pub use order::{bindings, post_order, program_order};
pub use pattern::rewrite_patterns;
pub use rewriter::post_order_rewrite;
pub use search::for_each_expr;
pub use site::Site;
pub use substitute::substitute;
pub use sweep_back::{BackwardSweep, sweep_back};
pub use variables::{bound_variables, free_variables};
pub use visitor::{Branch, Visit, Visitor, walk, walk_from};
