//! The children of a node, whatever its kind.

use std::iter::FusedIterator;

use super::Body;
use crate::core::entity::ExprId;
use crate::core::expr::Expr;

/// The children of a node in program order: see [`Body::parts`].
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    inputs: std::slice::Iter<'a, ExprId>,
    blocks: [Option<ExprId>; 2],
}

impl Body {
    /// Returns the inputs of a node: the operands of a call (for a call of a function value, the
    /// function first), the fields of a tuple, the tuple of a projection, the condition of an If.
    /// Other nodes have no inputs.
    ///
    /// Cost: one node.
    #[inline]
    #[track_caller]
    pub fn inputs(&self, id: ExprId) -> &[ExprId] {
        self.check_id(id);
        match &self.exprs[id] {
            &(Expr::CallOp { operands, .. } | Expr::Call { operands, .. } | Expr::Tuple(operands)) => {
                self.operands(operands)
            }
            Expr::Proj { tuple: only, .. } | Expr::If { cond: only, .. } => std::slice::from_ref(only),
            _ => &[],
        }
    }

    /// Returns the children of a node in program order: its [inputs](Body::inputs), then its
    /// blocks. The blocks are the branches of an If and the block of a Lambda; a Let has its value
    /// and the rest of its chain. The variable of a Let and the parameters of a Lambda are not
    /// children.
    ///
    /// Cost: one node.
    ///
    /// ```
    /// # use anfora_ir::{FunctionBuilder, Module, OpRegistry};
    /// # use std::sync::Arc;
    /// # let mut module = Module::new(Arc::new(OpRegistry::new()));
    /// # let mut f = FunctionBuilder::new(&mut module, "main");
    /// let unit = f.tuple(&[]);
    /// let pair = f.tuple(&[unit, unit]);
    /// let field = f.proj(pair, 1)?;
    /// let x = f.bind("x", field);
    /// # let key = f.finish(x)?;
    ///
    /// let body = &module.get(key).unwrap().body;
    /// assert_eq!(body.parts(pair).len(), 2);
    /// assert!(body.parts(field).eq([pair]));
    /// assert!(body.parts(body.root()).eq([field, x]));
    /// # Ok::<(), anfora_ir::BuildError>(())
    /// ```
    #[inline]
    #[track_caller]
    pub fn parts(&self, id: ExprId) -> Parts<'_> {
        let blocks = match self.expr(id) {
            Expr::Let { value, body: rest, .. } => [Some(value), Some(rest)],
            Expr::If { then_block, else_block, .. } => [Some(then_block), Some(else_block)],
            Expr::Lambda { body: block, .. } => [Some(block), None],
            _ => [None, None],
        };
        Parts { inputs: self.inputs(id).iter(), blocks }
    }

    /// Returns true for an atom, and for a call, tuple or projection all of whose inputs are atoms.
    ///
    /// Cost: one node.
    #[inline]
    #[track_caller]
    pub fn is_flat(&self, id: ExprId) -> bool {
        match self.expr(id) {
            Expr::Let { .. } | Expr::If { .. } | Expr::Lambda { .. } => false,
            _ => self.inputs(id).iter().all(|&input| self.expr(input).is_atom()),
        }
    }
}

impl Iterator for Parts<'_> {
    type Item = ExprId;

    #[inline]
    fn next(&mut self) -> Option<ExprId> {
        match self.inputs.next() {
            Some(&input) => Some(input),
            None => self.blocks[0].take().or_else(|| self.blocks[1].take()),
        }
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<ExprId> {
        let inputs = self.inputs.len();
        if n < inputs {
            return self.inputs.nth(n).copied();
        }
        self.inputs = [].iter();
        (inputs..n).try_for_each(|_| self.next().map(drop))?;
        self.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.inputs.len() + self.blocks.iter().flatten().count();
        (len, Some(len))
    }

    #[inline]
    fn fold<B, F: FnMut(B, ExprId) -> B>(self, init: B, mut f: F) -> B {
        let of_inputs = self.inputs.fold(init, |b, &input| f(b, input));
        self.blocks.into_iter().flatten().fold(of_inputs, f)
    }
}

impl DoubleEndedIterator for Parts<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<ExprId> {
        self.blocks[1].take().or_else(|| self.blocks[0].take()).or_else(|| self.inputs.next_back().copied())
    }
}

impl ExactSizeIterator for Parts<'_> {}

impl FusedIterator for Parts<'_> {}
