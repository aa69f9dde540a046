//! Visitors: callbacks at what an author asks for, over a walk that cannot overflow the stack.

use std::ops::ControlFlow;

use anfora_ir::{BlockKind, Body, Cursor, Expr, ExprId, Step, VarId};

use crate::link::Binding;

/// How a walk goes on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Visit<B> {
    /// Into what was come to, then on.
    Continue,
    /// On, past what is in it. There is no exit callback for what was skipped.
    Skip,
    /// Not at all: the walk ends with this.
    Stop(B),
}

/// Which branch of an If.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Branch {
    /// Where the condition is true.
    Then,
    /// Where it is false.
    Else,
}

/// A read-only walk in program order; see [`walk`].
///
/// Every callback has a default that goes on, and is given the body; what an author keeps is in
/// `self`. The walk is compiled for each visitor, so that callbacks that are left out cost nothing.
/// Where a callback returns [`Visit::Skip`] it means:
///
/// | callback | [`Visit::Skip`] leaves out |
/// |---|---|
/// | [`visit_binding`](Visitor::visit_binding) | the value of the Let (its variable is still visited by [`visit_def`](Visitor::visit_def)) |
/// | [`visit_expr`](Visitor::visit_expr) | operands, branches or block of the node, and its [`exit_expr`](Visitor::exit_expr) |
/// | [`enter_lambda`](Visitor::enter_lambda), [`enter_branch`](Visitor::enter_branch), [`enter_block`](Visitor::enter_block) | that block, and the exit callback |
/// | [`enter_region`](Visitor::enter_region), [`visit_def`](Visitor::visit_def), [`visit_use`](Visitor::visit_use), [`visit_leaf`](Visitor::visit_leaf) | nothing: it is taken as `Continue` |
///
/// A visitor cannot edit what it walks: the body is borrowed during the walk. Edits that depend on
/// a whole walk are collected in `self` and made after it, or made by a
/// [`Mutator`](crate::Mutator). For a pass that must look and edit in turns, the [`Cursor`] itself
/// lends the body between steps.
pub trait Visitor {
    /// What ends the walk early; [`Infallible`](std::convert::Infallible) for a walk that never
    /// does.
    type Break;

    /// A Let, before its value.
    #[inline(always)]
    fn visit_binding(&mut self, body: &Body, binding: Binding) -> Visit<Self::Break> {
        let _ = (body, binding);
        Visit::Continue
    }

    /// A node other than a Let or an atom, once, before what is in it; in a graph, where it comes
    /// first in program order.
    #[inline(always)]
    fn visit_expr(&mut self, body: &Body, id: ExprId) -> Visit<Self::Break> {
        let _ = (body, id);
        Visit::Continue
    }

    /// The same node, after what is in it.
    #[inline(always)]
    fn exit_expr(&mut self, body: &Body, id: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, id);
        ControlFlow::Continue(())
    }

    /// A variable where it comes into scope: parameters before the block of their function or
    /// lambda, a Let's variable after its value.
    #[inline(always)]
    fn visit_def(&mut self, body: &Body, var: VarId) -> Visit<Self::Break> {
        let _ = (body, var);
        Visit::Continue
    }

    /// A use of a variable: as an operand, a condition, a value or a tail. Operands of a shared
    /// node are visited once.
    #[inline(always)]
    fn visit_use(&mut self, body: &Body, var: VarId) -> Visit<Self::Break> {
        let _ = (body, var);
        Visit::Continue
    }

    /// A use of an atom that is not a variable: a literal, a global, an operator or `none`.
    #[inline(always)]
    fn visit_leaf(&mut self, body: &Body, id: ExprId) -> Visit<Self::Break> {
        let _ = (body, id);
        Visit::Continue
    }

    /// The block of a Lambda (its id), before its parameters.
    #[inline(always)]
    fn enter_lambda(&mut self, body: &Body, lambda: ExprId) -> Visit<Self::Break> {
        let _ = (body, lambda);
        Visit::Continue
    }

    /// The end of the block of a Lambda (its id).
    #[inline(always)]
    fn exit_lambda(&mut self, body: &Body, lambda: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, lambda);
        ControlFlow::Continue(())
    }

    /// A branch of an If (its id).
    #[inline(always)]
    fn enter_branch(&mut self, body: &Body, if_: ExprId, branch: Branch) -> Visit<Self::Break> {
        let _ = (body, if_, branch);
        Visit::Continue
    }

    /// The end of a branch of an If (its id).
    #[inline(always)]
    fn exit_branch(&mut self, body: &Body, if_: ExprId, branch: Branch) -> ControlFlow<Self::Break> {
        let _ = (body, if_, branch);
        ControlFlow::Continue(())
    }

    /// A block that is neither a branch nor that of a Lambda: the whole walk's own, or a chain as a
    /// value or an operand. `start` is its first Let, or its tail if it has none.
    #[inline(always)]
    fn enter_block(&mut self, body: &Body, start: ExprId) -> Visit<Self::Break> {
        let _ = (body, start);
        Visit::Continue
    }

    /// The end of such a block.
    #[inline(always)]
    fn exit_block(&mut self, body: &Body, start: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, start);
        ControlFlow::Continue(())
    }

    /// A dataflow region begins with this Let.
    #[inline(always)]
    fn enter_region(&mut self, body: &Body, first: ExprId) -> Visit<Self::Break> {
        let _ = (body, first);
        Visit::Continue
    }

    /// A dataflow region ended with this Let.
    #[inline(always)]
    fn exit_region(&mut self, body: &Body, last: ExprId) -> ControlFlow<Self::Break> {
        let _ = (body, last);
        ControlFlow::Continue(())
    }
}

/// Walks a function's body in program order: its parameters, then its block.
///
/// Each node is visited once, each Let chain by a loop, nests on an explicit stack. Nothing can be
/// edited during the walk.
///
/// # Errors
/// Breaks with what the visitor stopped with.
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

/// Walks what is under one expression, which may be a block. See [`walk`].
///
/// # Errors
/// Breaks with what the visitor stopped with.
pub fn walk_from<V: Visitor>(body: &Body, start: ExprId, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut cursor = Cursor::with_regions_at(body, start);
    while let Some(step) = cursor.next(body) {
        match step {
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

/// Returns true if what is skipped is to be skipped.
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
