//! The recursive style, for an author who wants to recurse: the one place in the project that
//! recurses over programs.
//!
//! Everything else walks with explicit stacks. Here each step of a recursion checks how much stack
//! is left, and goes on in a new segment from the operating system where that is less than the red
//! zone ([`stacker`]). So any program that fits into memory is walked from a stack of any size, a
//! long Let chain by one recursion a Let included.
//!
//! # What it costs
//!
//! Time: one check of the stack pointer against a thread-local limit at each step, and the calls
//! themselves; `benches/README.md` has the figures beside those of [`walk`](crate::walk) and
//! [`mutate`](crate::mutate).
//!
//! Memory: the frames of every open step, as long as it is open. A Let of a long chain takes about
//! 100 bytes of stack with a small callback in an optimised build and about 350 in an unoptimised
//! one, so a chain of a million takes 0.1 or 0.35 GB until it returns, where [`walk`](crate::walk)
//! takes none. More is taken by what a callback keeps in locals across [`ExprFunctor::recurse`].
//! Segments are given back as the recursion returns. A step that finds less than the red zone takes
//! and gives back a segment of its own (some microseconds), so that a callback at just that depth
//! that recurses into a million parts does so a million times.
//!
//! # The red zone
//!
//! At least [`ExprFunctor::RED_ZONE`] bytes are left whenever a callback begins. Until the next
//! [`ExprFunctor::recurse`] the callback, and all that it calls itself, have to do with that. The
//! default is far more than a callback needs in any build, unless it has large arrays among its
//! locals or calls something that recurses by itself; then the author sets it higher, and
//! [`ExprFunctor::SEGMENT`] to a multiple of it.
//!
//! # Panics, and targets without segments
//!
//! A panic in a callback unwinds through the segments to whoever catches it, and gives them back.
//! Where `stacker` cannot switch stacks (WebAssembly, and targets that it does not know) a
//! recursion has the thread's stack and no more; the other tools of this crate work there as
//! everywhere.

use anfora_ir::{AttrsId, Expr, ExprId, GlobalId, LambdaId, LiteralId, OpId, OperandList, VarId};

use crate::expand::HoldsBody;
use crate::link::Binding;

/// A recursion over expressions: a callback for each kind of expression, which calls
/// [`ExprFunctor::recurse`] on the parts that it wants to go into, when it wants to, and returns a
/// value of the author's type.
///
/// Callbacks that are left out do as [`ExprFunctor::visit_default`] does. A fallible recursion has
/// a [`Result`] as its output.
///
/// Edits: the context is the author's own ([`HoldsBody`]), and if it holds an
/// [`Editor`](anfora_ir::Editor), every edit is legal at any time but for compaction. A callback is
/// given the parts of its expression as they were when it was called; what is overwritten
/// afterwards has no effect on it.
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
    /// What a recursion returns.
    type Output;

    /// Bytes of stack that a callback finds at least: more than it, and what it calls between two
    /// steps, can need.
    const RED_ZONE: usize = 32 << 10;

    /// Bytes of stack that are taken from the operating system at a time.
    const SEGMENT: usize = 2 << 20;

    /// Goes into an expression: its callback, on a stack with at least [`ExprFunctor::RED_ZONE`]
    /// bytes left. The value that was remembered for it, if there is one.
    fn recurse(&mut self, id: ExprId) -> Self::Output {
        stacker::maybe_grow(Self::RED_ZONE, Self::SEGMENT, || dispatch(self, id))
    }

    /// Goes into all parts of an expression in program order, and gives their values to `each`: the
    /// operands of a call (of a function value: it first) or tuple, the tuple of a projection,
    /// condition and branches of an If, the block of a Lambda, value and rest of a Let.
    fn recurse_parts(&mut self, id: ExprId, mut each: impl FnMut(&mut Self, Self::Output)) {
        for i in 0..self.body().parts(id).len() {
            // The functor may edit what it goes into.
            let Some(part) = self.body().parts(id).nth(i) else { break };
            let value = self.recurse(part);
            each(self, value);
        }
    }

    /// The value of an expression that need not be gone into again. A functor that remembers
    /// ([`ExprFunctor::remember`]) goes into a shared node once; one that does not goes into it
    /// from each of its uses, and a graph has more paths than nodes: a row of n diamonds 2^n.
    ///
    /// Not asked for Lets, which have one parent.
    #[inline(always)]
    fn recall(&self, id: ExprId) -> Option<Self::Output> {
        let _ = id;
        None
    }

    /// Takes note of the value of an expression other than an atom or a Let, in a
    /// [`Memo`](crate::Memo), say. Where values depend on the scope, so do the author's notes.
    #[inline(always)]
    fn remember(&mut self, id: ExprId, value: &Self::Output) {
        let _ = (id, value);
    }

    /// Every expression whose own callback is left out.
    fn visit_default(&mut self, id: ExprId) -> Self::Output;

    /// The use of a variable.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_var(&mut self, var: VarId) -> Self::Output {
        self.visit_default(var.expr())
    }

    /// A constant.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_literal(&mut self, id: ExprId, literal: LiteralId) -> Self::Output {
        let _ = literal;
        self.visit_default(id)
    }

    /// A global function.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_global(&mut self, id: ExprId, global: GlobalId) -> Self::Output {
        let _ = global;
        self.visit_default(id)
    }

    /// An operator as a value.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_op(&mut self, id: ExprId, op: OpId) -> Self::Output {
        let _ = op;
        self.visit_default(id)
    }

    /// `none`.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_none(&mut self, id: ExprId) -> Self::Output {
        self.visit_default(id)
    }

    /// A call of an operator.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_call_op(&mut self, id: ExprId, op: OpId, operands: OperandList, attrs: AttrsId) -> Self::Output {
        let _ = (op, operands, attrs);
        self.visit_default(id)
    }

    /// A call of a function value, which is operand 0.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_call(&mut self, id: ExprId, operands: OperandList, attrs: AttrsId) -> Self::Output {
        let _ = (operands, attrs);
        self.visit_default(id)
    }

    /// A tuple.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_tuple(&mut self, id: ExprId, fields: OperandList) -> Self::Output {
        let _ = fields;
        self.visit_default(id)
    }

    /// A projection.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_proj(&mut self, id: ExprId, tuple: ExprId, index: u32) -> Self::Output {
        let _ = (tuple, index);
        self.visit_default(id)
    }

    /// A Let. To go into the rest of the chain is one recursion a Let.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_let(&mut self, binding: Binding) -> Self::Output {
        self.visit_default(binding.id)
    }

    /// An If.
    ///
    /// Cost: that of the author's code.
    #[inline(always)]
    fn visit_if(&mut self, id: ExprId, cond: ExprId, then_block: ExprId, else_block: ExprId) -> Self::Output {
        let _ = (cond, then_block, else_block);
        self.visit_default(id)
    }

    /// A Lambda.
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
