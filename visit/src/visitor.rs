//! Visitors: callbacks chosen by an author, over a walk that cannot overflow the stack.

use std::ops::ControlFlow;

use anfora_ir::{BlockKind, Body, Cursor, Expr, ExprId, Step, VarId};

use crate::link::Binding;

/// The verdict of a callback on how the walk continues.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Visit<B> {
    /// Goes into the expression, then on.
    Continue,
    /// Continues without the parts of the expression. There is no exit callback for what was
    /// skipped.
    Skip,
    /// Ends the walk with this value.
    Stop(B),
}

/// A branch of an If.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Branch {
    /// The branch for a true condition.
    Then,
    /// The branch for a false condition.
    Else,
}

/// A read-only walk in program order; see [`walk`].
///
/// Every callback gets the body, and by default does nothing and continues. The visitor's own state
/// is in `self`. The walk is compiled for each visitor, so that callbacks that are not overridden
/// cost nothing. The effect of [`Visit::Skip`] depends on the callback:
///
/// | callback | [`Visit::Skip`] leaves out |
/// |---|---|
/// | [`visit_binding`] | the value of the Let (its variable is still visited by [`visit_def`]) |
/// | [`visit_expr`] | operands, branches or block of the node, and its [`exit_expr`] |
/// | [`enter_lambda`], [`enter_branch`], [`enter_block`] | that block, and the exit callback |
/// | [`enter_region`], [`visit_def`], [`visit_use`] | nothing: it is taken as `Continue` |
/// | [`visit_leaf`] | nothing: it is taken as `Continue` |
///
/// [`visit_binding`]: Visitor::visit_binding
/// [`visit_expr`]: Visitor::visit_expr
/// [`exit_expr`]: Visitor::exit_expr
/// [`enter_lambda`]: Visitor::enter_lambda
/// [`enter_branch`]: Visitor::enter_branch
/// [`enter_block`]: Visitor::enter_block
/// [`enter_region`]: Visitor::enter_region
/// [`visit_def`]: Visitor::visit_def
/// [`visit_use`]: Visitor::visit_use
/// [`visit_leaf`]: Visitor::visit_leaf
///
/// A visitor cannot edit the body, which is borrowed during the walk. Collect edits that depend on
/// a whole walk in `self` and make them afterwards, or use a [`Mutator`](crate::Mutator). If a pass
/// must read and edit in turns, it can use the [`Cursor`], which lends the body between steps.
pub trait Visitor {
    /// The value that ends the walk early; [`Infallible`](std::convert::Infallible) for a walk that
    /// is never stopped.
    type Break;

    /// Visits a Let, before its value.
    #[inline(always)]
    fn visit_binding(&mut self, body: &Body, binding: Binding) -> Visit<Self::Break> {
        let _ = (body, binding);
        Visit::Continue
    }

    /// Visits a node other than a Let or an atom, once, before its parts; in a graph, at its first
    /// place in program order.
    #[inline(always)]
    fn visit_expr(&mut self, body: &Body, id: ExprId) -> Visit<Self::Break> {
        let _ = (body, id);
        Visit::Continue
    }

    /// Visits the same node after its parts.
    #[inline(always)]
    fn exit_expr(&mut self, body: &Body, id: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, id);
        ControlFlow::Continue(())
    }

    /// Visits a variable where it comes into scope: parameters before the block of their function
    /// or lambda, a Let's variable after its value.
    #[inline(always)]
    fn visit_def(&mut self, body: &Body, var: VarId) -> Visit<Self::Break> {
        let _ = (body, var);
        Visit::Continue
    }

    /// Visits a use of a variable: as an operand, a condition, a value or a tail. Operands of a
    /// shared node are visited once.
    #[inline(always)]
    fn visit_use(&mut self, body: &Body, var: VarId) -> Visit<Self::Break> {
        let _ = (body, var);
        Visit::Continue
    }

    /// Visits a use of an atom that is not a variable: a literal, a global, an operator or `none`.
    #[inline(always)]
    fn visit_leaf(&mut self, body: &Body, id: ExprId) -> Visit<Self::Break> {
        let _ = (body, id);
        Visit::Continue
    }

    /// Enters the block of a Lambda, before its parameters. `lambda` is the Lambda's id.
    #[inline(always)]
    fn enter_lambda(&mut self, body: &Body, lambda: ExprId) -> Visit<Self::Break> {
        let _ = (body, lambda);
        Visit::Continue
    }

    /// Leaves the block of a Lambda. `lambda` is the Lambda's id.
    #[inline(always)]
    fn exit_lambda(&mut self, body: &Body, lambda: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, lambda);
        ControlFlow::Continue(())
    }

    /// Enters a branch of an If. `if_` is the If's id.
    #[inline(always)]
    fn enter_branch(&mut self, body: &Body, if_: ExprId, branch: Branch) -> Visit<Self::Break> {
        let _ = (body, if_, branch);
        Visit::Continue
    }

    /// Leaves a branch of an If. `if_` is the If's id.
    #[inline(always)]
    fn exit_branch(&mut self, body: &Body, if_: ExprId, branch: Branch) -> ControlFlow<Self::Break> {
        let _ = (body, if_, branch);
        ControlFlow::Continue(())
    }

    /// Enters a block that is neither a branch nor the block of a Lambda: the block of the whole
    /// walk, or a chain as a value or an operand. `start` is its first Let, or its tail if it has
    /// no Lets.
    #[inline(always)]
    fn enter_block(&mut self, body: &Body, start: ExprId) -> Visit<Self::Break> {
        let _ = (body, start);
        Visit::Continue
    }

    /// Leaves such a block.
    #[inline(always)]
    fn exit_block(&mut self, body: &Body, start: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, start);
        ControlFlow::Continue(())
    }

    /// Enters a dataflow region, which begins with this Let.
    #[inline(always)]
    fn enter_region(&mut self, body: &Body, first: ExprId) -> Visit<Self::Break> {
        let _ = (body, first);
        Visit::Continue
    }

    /// Leaves a dataflow region, which ended with this Let.
    #[inline(always)]
    fn exit_region(&mut self, body: &Body, last: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, last);
        ControlFlow::Continue(())
    }
}

/// Walks a function's body in program order: its parameters, then its block.
///
/// Each node is visited once, each Let chain by a loop, and nested nodes on an explicit stack.
/// Nothing can be edited during the walk.
///
/// # Errors
/// Breaks with the value with which the visitor stopped.
///
/// ```
/// # use anfora_ir::{Body, FunctionBuilder, Literal, Module, OpRegistry, VarId};
/// # use std::{convert::Infallible, sync::Arc};
/// use anfora_visit::{Visit, Visitor, walk};
///
/// /// Counts the uses of variables.
/// struct Uses(usize);
///
/// impl Visitor for Uses {
///     type Break = Infallible;
///     fn visit_use(&mut self, _: &Body, _: VarId) -> Visit<Infallible> {
///         self.0 += 1;
///         Visit::Continue
///     }
/// }
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let one = f.literal(Literal::scalar(1i32));
/// # let pair = f.tuple(&[one, one]);
/// # let x = f.bind("x", pair);
/// # let nested = f.tuple(&[x, x]);
/// # let y = f.bind("y", nested);
/// # let key = f.finish(y).unwrap();
/// // let %x = (1, 1); let %y = (%x, %x); %y
/// let mut uses = Uses(0);
/// let _ = walk(&module.get(key).unwrap().body, &mut uses);
/// assert_eq!(uses.0, 3);
/// ```
pub fn walk<V: Visitor>(body: &Body, visitor: &mut V) -> ControlFlow<V::Break> {
    for &param in body.params() {
        verdict(visitor.visit_def(body, param))?;
    }
    walk_from(body, body.root(), visitor)
}

/// Walks one expression, which may be a block. See [`walk`].
///
/// # Errors
/// Breaks with the value with which the visitor stopped.
pub fn walk_from<V: Visitor>(body: &Body, start: ExprId, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut cursor = Cursor::with_regions_at(body, start);
    while let Some(step) = cursor.next(body) {
        match step {
            // Bindings and regions.
            Step::Let(id) => {
                let Some(binding) = Binding::of(body, id) else { continue };
                if verdict(visitor.visit_binding(body, binding))? {
                    cursor.skip();
                }
            }
            Step::Bound(id) => {
                let Some(binding) = Binding::of(body, id) else { continue };
                verdict(visitor.visit_def(body, binding.var))?;
            }
            Step::EnterRegion(first) => _ = verdict(visitor.enter_region(body, first))?,
            Step::ExitRegion(last) => visitor.exit_region(body, last)?,
            // Expressions.
            Step::Atom(id) => visit_atom(body, id, visitor)?,
            Step::Flat(id) => {
                if !verdict(visitor.visit_expr(body, id))? {
                    for &input in body.inputs(id) {
                        visit_atom(body, input, visitor)?;
                    }
                    visitor.exit_expr(body, id)?;
                }
            }
            Step::Enter(id) => {
                if verdict(visitor.visit_expr(body, id))? {
                    cursor.skip();
                }
            }
            Step::Exit(id) => visitor.exit_expr(body, id)?,
            Step::Seen(_) => {}
            // Blocks.
            Step::EnterBlock(start, kind) => {
                let skip = match kind {
                    BlockKind::Then(if_) => verdict(visitor.enter_branch(body, if_, Branch::Then))?,
                    BlockKind::Else(if_) => verdict(visitor.enter_branch(body, if_, Branch::Else))?,
                    BlockKind::Lambda(id) => {
                        let skip = verdict(visitor.enter_lambda(body, id))?;
                        if !skip && let Expr::Lambda { lambda, .. } = body.expr(id) {
                            for param in body.lambda_params(lambda) {
                                verdict(visitor.visit_def(body, param))?;
                            }
                        }
                        skip
                    }
                    BlockKind::Root | BlockKind::Value(_) | BlockKind::Operand(_) => {
                        verdict(visitor.enter_block(body, start))?
                    }
                };
                if skip {
                    cursor.skip();
                }
            }
            Step::ExitBlock(start, kind) => match kind {
                BlockKind::Then(if_) => visitor.exit_branch(body, if_, Branch::Then)?,
                BlockKind::Else(if_) => visitor.exit_branch(body, if_, Branch::Else)?,
                BlockKind::Lambda(id) => visitor.exit_lambda(body, id)?,
                BlockKind::Root | BlockKind::Value(_) | BlockKind::Operand(_) => visitor.exit_block(body, start)?,
            },
        }
    }
    ControlFlow::Continue(())
}

/// Returns true if the parts are to be skipped. Breaks if the walk ends.
#[inline(always)]
fn verdict<B>(visit: Visit<B>) -> ControlFlow<B, bool> {
    match visit {
        Visit::Continue => ControlFlow::Continue(false),
        Visit::Skip => ControlFlow::Continue(true),
        Visit::Stop(b) => ControlFlow::Break(b),
    }
}

#[inline(always)]
fn visit_atom<V: Visitor>(body: &Body, id: ExprId, visitor: &mut V) -> ControlFlow<V::Break> {
    verdict(match body.as_var(id) {
        Some(var) => visitor.visit_use(body, var),
        None => visitor.visit_leaf(body, id),
    })?;
    ControlFlow::Continue(())
}
