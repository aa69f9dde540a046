//! Recursive walks, for authors who want to recurse. No other code in the project recurses over
//! programs.
//!
//! Everything else walks with explicit stacks. Here each step of a recursion checks how much stack
//! is left. If it is less than the red zone, the recursion goes on in a new segment from the
//! operating system ([`stacker`]). So any program that fits into memory can be walked from a stack
//! of any size, even a long Let chain with one recursive call per Let.
//!
//! # Cost
//!
//! Time: one check of the stack pointer against a thread-local limit at each step, and the calls
//! themselves. `benches/README.md` compares the figures with those of [`walk`](crate::walk) and
//! [`mutate`](crate::mutate).
//!
//! Memory: the frames of all open steps. A Let of a long chain takes about 100 bytes of stack with
//! a small callback in an optimised build, and about 350 in an unoptimised one. So a chain of a
//! million Lets takes 0.1 or 0.35 GB until it returns, while [`walk`](crate::walk) takes none.
//! Local variables that a callback keeps across [`ExprFunctor::recurse`] take more. Segments are
//! freed as the recursion returns. A step that finds less than the red zone allocates and frees a
//! segment of its own (some microseconds), so a callback at just that depth that recurses into a
//! million parts does so a million times.
//!
//! # The red zone
//!
//! At least [`ExprFunctor::RED_ZONE`] bytes are left when a callback begins. Until the next
//! [`ExprFunctor::recurse`], the callback and all functions that it calls must not need more. The
//! default is far more than a callback needs in any build, unless it has large arrays as local
//! variables or calls another recursive function. Such an author must set it higher, and
//! [`ExprFunctor::SEGMENT`] to a multiple of it.
//!
//! # Panics, and targets without segments
//!
//! A panic in a callback unwinds through the segments to the code that catches it, and frees them.
//! On targets where `stacker` cannot switch stacks (WebAssembly, and targets that it does not
//! know), a recursion has only the thread's stack. The other tools of this crate work there as
//! everywhere.

use anfora_ir::{AttrsId, Expr, ExprId, GlobalId, LambdaId, LiteralId, OpId, OperandList, VarId};

use crate::expand::HoldsBody;
use crate::link::Binding;

/// A recursion over expressions: a callback for each kind of expression, which calls
/// [`ExprFunctor::recurse`] on the parts that it wants to visit, and returns a value of the
/// author's type.
///
/// The default of each callback is to call [`ExprFunctor::visit_default`]. If a recursion can fail,
/// its output is a [`Result`].
///
/// The context is the author's own ([`HoldsBody`]). If it holds an [`Editor`](anfora_ir::Editor),
/// every edit except compaction is legal at any time. A callback gets the parts of its expression
/// as they are when it is called; later overwrites do not affect them.
///
/// ```
/// # use anfora_ir::{Body, ExprId, FunctionBuilder, Module, OpRegistry};
/// # use std::sync::Arc;
/// use anfora_visit::{Binding, ExprFunctor, HoldsBody};
///
/// /// How deep expressions nest, Lets not counted.
/// struct Depth<'b>(&'b Body);
///
/// impl HoldsBody for Depth<'_> {
///     fn body(&self) -> &Body {
///         self.0
///     }
/// }
///
/// impl ExprFunctor for Depth<'_> {
///     type Output = usize;
///
///     fn visit_default(&mut self, id: ExprId) -> usize {
///         let mut deepest = 0;
///         self.recurse_parts(id, |_, depth| deepest = depth.max(deepest));
///         deepest + 1
///     }
///
///     fn visit_let(&mut self, binding: Binding) -> usize {
///         self.recurse(binding.value).max(self.recurse(binding.rest))
///     }
/// }
///
/// # let mut module = Module::new(Arc::new(OpRegistry::new()));
/// # let unit = module.cx.types.unit();
/// # let mut f = FunctionBuilder::new(&mut module, "main");
/// # let a = f.param("a", unit);
/// # let inner = f.tuple(&[a]);
/// # let outer = f.tuple(&[inner]);
/// # let x = f.bind("x", outer);
/// # let key = f.finish(x).unwrap();
/// // let %x = ((%a,),); %x
/// let body = &module.get(key).unwrap().body;
/// assert_eq!(Depth(body).recurse(body.root()), 3);
/// ```
pub trait ExprFunctor: HoldsBody + Sized {
    /// The result of a recursion.
    type Output;

    /// The least number of bytes of stack at the start of a callback. It must exceed the needs of a
    /// callback and its calls between two steps.
    const RED_ZONE: usize = 32 << 10;

    /// The number of bytes of stack allocated at a time.
    const SEGMENT: usize = 2 << 20;

    /// Calls the callback of an expression, on a stack with at least [`ExprFunctor::RED_ZONE`]
    /// bytes left, and returns its value. If a value is remembered for the expression, returns that
    /// value.
    fn recurse(&mut self, id: ExprId) -> Self::Output {
        stacker::maybe_grow(Self::RED_ZONE, Self::SEGMENT, || dispatch(self, id))
    }

    /// Recurses into all parts of an expression in program order, and passes their values to
    /// `each`: the operands of a call (with the function of a function value first) or tuple, the
    /// tuple of a projection, the condition and branches of an If, the block of a Lambda, the value
    /// and rest of a Let.
    fn recurse_parts(&mut self, id: ExprId, mut each: impl FnMut(&mut Self, Self::Output)) {
        for i in 0..self.body().parts(id).len() {
            // The functor may edit the expression.
            let Some(part) = self.body().parts(id).nth(i) else { break };
            let value = self.recurse(part);
            each(self, value);
        }
    }

    /// Returns the remembered value of an expression, so that it is not visited again. A functor
    /// that remembers values ([`ExprFunctor::remember`]) visits a shared node once. Without them,
    /// it visits a shared node once per use, and a graph has more paths than nodes: a row of n
    /// diamonds has 2^n.
    ///
    /// It is not called for Lets, which have one parent.
    #[inline(always)]
    fn recall(&self, id: ExprId) -> Option<Self::Output> {
        let _ = id;
        None
    }

    /// Remembers the value of an expression other than an atom or a Let, for example in a
    /// [`Memo`](crate::Memo). If values depend on the scope, the memory must do so too.
    #[inline(always)]
    fn remember(&mut self, id: ExprId, value: &Self::Output) {
        let _ = (id, value);
    }

    /// Visits every expression whose own callback is not overridden.
    fn visit_default(&mut self, id: ExprId) -> Self::Output;

    /// Visits a use of a variable.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_var(&mut self, var: VarId) -> Self::Output {
        self.visit_default(var.expr())
    }

    /// Visits a constant.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_literal(&mut self, id: ExprId, literal: LiteralId) -> Self::Output {
        let _ = literal;
        self.visit_default(id)
    }

    /// Visits a global function.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_global(&mut self, id: ExprId, global: GlobalId) -> Self::Output {
        let _ = global;
        self.visit_default(id)
    }

    /// Visits an operator as a value.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_op(&mut self, id: ExprId, op: OpId) -> Self::Output {
        let _ = op;
        self.visit_default(id)
    }

    /// Visits `none`.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_none(&mut self, id: ExprId) -> Self::Output {
        self.visit_default(id)
    }

    /// Visits a call of an operator.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_call_op(&mut self, id: ExprId, op: OpId, operands: OperandList, attrs: AttrsId) -> Self::Output {
        let _ = (op, operands, attrs);
        self.visit_default(id)
    }

    /// Visits a call of a function value, which is operand 0.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_call(&mut self, id: ExprId, operands: OperandList, attrs: AttrsId) -> Self::Output {
        let _ = (operands, attrs);
        self.visit_default(id)
    }

    /// Visits a tuple.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_tuple(&mut self, id: ExprId, fields: OperandList) -> Self::Output {
        let _ = fields;
        self.visit_default(id)
    }

    /// Visits a projection.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_proj(&mut self, id: ExprId, tuple: ExprId, index: u32) -> Self::Output {
        let _ = (tuple, index);
        self.visit_default(id)
    }

    /// Visits a Let. Recursing into the rest of the chain takes one recursive call per Let.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_let(&mut self, binding: Binding) -> Self::Output {
        self.visit_default(binding.id)
    }

    /// Visits an If.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_if(&mut self, id: ExprId, cond: ExprId, then_block: ExprId, else_block: ExprId) -> Self::Output {
        let _ = (cond, then_block, else_block);
        self.visit_default(id)
    }

    /// Visits a Lambda.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_lambda(&mut self, id: ExprId, lambda: LambdaId, block: ExprId) -> Self::Output {
        let _ = (lambda, block);
        self.visit_default(id)
    }
}

fn dispatch<F: ExprFunctor>(functor: &mut F, id: ExprId) -> F::Output {
    let value = match functor.body().expr(id) {
        Expr::Var { .. } => {
            let var = functor.body().as_var(id).expect("the expression was just seen to be a variable");
            return functor.visit_var(var);
        }
        Expr::Literal(literal) => return functor.visit_literal(id, literal),
        Expr::Global(global) => return functor.visit_global(id, global),
        Expr::Op(op) => return functor.visit_op(id, op),
        Expr::None => return functor.visit_none(id),
        Expr::Let { var, value, body: rest, flags } => {
            return functor.visit_let(Binding { id, var, value, rest, flags });
        }
        inner => {
            if let Some(value) = functor.recall(id) {
                return value;
            }
            visit_node(functor, id, inner)
        }
    };
    functor.remember(id, &value);
    value
}

/// Calls the callback of a call, tuple, projection, If or Lambda.
fn visit_node<F: ExprFunctor>(functor: &mut F, id: ExprId, node: Expr) -> F::Output {
    match node {
        Expr::CallOp { op, operands, attrs } => functor.visit_call_op(id, op, operands, attrs),
        Expr::Call { operands, attrs } => functor.visit_call(id, operands, attrs),
        Expr::Tuple(fields) => functor.visit_tuple(id, fields),
        Expr::Proj { tuple, index } => functor.visit_proj(id, tuple, index),
        Expr::If { cond, then_block, else_block } => functor.visit_if(id, cond, then_block, else_block),
        Expr::Lambda { lambda, body: block } => functor.visit_lambda(id, lambda, block),
        _ => functor.visit_default(id),
    }
}
