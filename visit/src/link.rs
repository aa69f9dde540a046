//! Links: the places that hold expressions, and the parts of a Let.

use anfora_ir::{BlockKind, Body, Expr, ExprId, LetFlags, VarId};

/// A place that holds an expression: the only parent link of a Let, a branch or a lambda's block,
/// or any operand.
///
/// Edits identify their place by a link: [`Link::target`] reads the expression there, and
/// [`Link::set`] replaces it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Link {
    /// The block of the function.
    Root,
    /// The rest of the chain after a Let.
    Rest(ExprId),
    /// The value of a Let.
    Value(ExprId),
    /// The condition of an If.
    Cond(ExprId),
    /// The first branch of an If.
    Then(ExprId),
    /// The second branch of an If.
    Else(ExprId),
    /// The block of a Lambda.
    Lambda(ExprId),
    /// An operand of a call or tuple (in an [`Expr::Call`], the function is operand 0), or operand
    /// 0 of a projection.
    Operand(ExprId, u32),
}

impl Link {
    /// Returns the link that holds a block; `None` for a block that is an operand, since its kind
    /// does not contain the operand's number.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn of_block(kind: BlockKind) -> Option<Link> {
        match kind {
            BlockKind::Root => Some(Link::Root),
            BlockKind::Then(id) => Some(Link::Then(id)),
            BlockKind::Else(id) => Some(Link::Else(id)),
            BlockKind::Lambda(id) => Some(Link::Lambda(id)),
            BlockKind::Value(id) => Some(Link::Value(id)),
            BlockKind::Operand(_) => None,
        }
    }

    /// Returns the expression at this link.
    ///
    /// # Panics
    /// If the node is not of the kind that has such a link.
    #[inline]
    pub fn target(self, body: &Body) -> ExprId {
        let Some(id) = self.holder() else { return body.root() };
        match (self, body.expr(id)) {
            (Link::Rest(_), Expr::Let { body: rest, .. }) => rest,
            (Link::Value(_), Expr::Let { value, .. }) => value,
            (Link::Cond(_), Expr::If { cond, .. }) => cond,
            (Link::Then(_), Expr::If { then_block, .. }) => then_block,
            (Link::Else(_), Expr::If { else_block, .. }) => else_block,
            (Link::Lambda(_), Expr::Lambda { body: block, .. }) => block,
            (Link::Operand(_, 0), Expr::Proj { tuple, .. }) => tuple,
            (Link::Operand(_, i), holder) => match holder.operand_list() {
                Some(list) => body.operand(list, i as usize),
                None => self.mismatch(holder),
            },
            (_, holder) => self.mismatch(holder),
        }
    }

    /// Replaces the expression at this link. The old one is no longer linked from here. Types stay
    /// as they are.
    ///
    /// # Panics
    /// If the node is not of the kind that has such a link.
    #[inline]
    pub fn set(self, body: &mut Body, target: ExprId) {
        let Some(id) = self.holder() else { return body.set_root(target) };
        let holder = match (self, body.expr(id)) {
            (Link::Rest(_), _) => return body.set_let_body(id, target),
            (Link::Value(_), Expr::Let { var, body, flags, .. }) => Expr::Let { var, value: target, body, flags },
            (Link::Cond(_), Expr::If { then_block, else_block, .. }) => {
                Expr::If { cond: target, then_block, else_block }
            }
            (Link::Then(_), Expr::If { cond, else_block, .. }) => Expr::If { cond, then_block: target, else_block },
            (Link::Else(_), Expr::If { cond, then_block, .. }) => Expr::If { cond, then_block, else_block: target },
            (Link::Lambda(_), Expr::Lambda { lambda, .. }) => Expr::Lambda { lambda, body: target },
            (Link::Operand(_, 0), Expr::Proj { index, .. }) => Expr::Proj { tuple: target, index },
            (Link::Operand(_, i), holder) => match holder.operand_list() {
                Some(list) => return body.set_operand(list, i as usize, target),
                None => self.mismatch(holder),
            },
            (_, holder) => self.mismatch(holder),
        };
        body.set_expr(id, holder);
    }

    /// Returns the node that holds this link; `None` for the block of the function.
    ///
    /// Cost: one entry.
    #[inline]
    pub fn holder(self) -> Option<ExprId> {
        match self {
            Link::Root => None,
            Link::Rest(id)
            | Link::Value(id)
            | Link::Cond(id)
            | Link::Then(id)
            | Link::Else(id)
            | Link::Lambda(id)
            | Link::Operand(id, _) => Some(id),
        }
    }

    #[cold]
    fn mismatch(self, found: Expr) -> ! {
        panic!("{self:?} is not a link of {found:?}")
    }
}

/// The parts of a Let.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Binding {
    /// The Let itself.
    pub id: ExprId,
    /// The variable that it binds.
    pub var: VarId,
    /// The value, which may be a chain itself.
    pub value: ExprId,
    /// The rest of the chain: another Let, or the tail.
    pub rest: ExprId,
    /// The flags, which say whether it is in a dataflow region.
    pub flags: LetFlags,
}

impl Binding {
    /// Returns the parts of a Let; `None` for any other expression.
    #[inline]
    pub fn of(body: &Body, id: ExprId) -> Option<Binding> {
        match body.expr(id) {
            Expr::Let { var, value, body: rest, flags } => Some(Binding { id, var, value, rest, flags }),
            _ => None,
        }
    }
}

/// Returns the bindings of the chain that begins at `start`, in program order, without the bindings
/// in their values.
///
/// The iterator borrows the body, so that nothing can be edited in the meantime;
/// [`expand_a_normal_form`](crate::expand_a_normal_form) walks a chain with edits.
///
/// ```
/// # use anfora_ir::{FunctionBuilder, Literal, Module, OpRegistry};
/// # use std::sync::Arc;
/// let mut module = Module::new(Arc::new(OpRegistry::new()));
/// let mut f = FunctionBuilder::new(&mut module, "main");
/// let one = f.literal(Literal::scalar(1i32));
/// let pair = f.tuple(&[one, one]);
/// let x = f.bind("x", pair);
/// let first = f.proj(x, 0).unwrap();
/// let y = f.bind("y", first);
/// let key = f.finish(y).unwrap();
///
/// let body = &module.get(key).unwrap().body;
/// assert_eq!(anfora_visit::chain(body, body.root()).count(), 2);
/// ```
pub fn chain(body: &Body, start: ExprId) -> impl Iterator<Item = Binding> + '_ {
    std::iter::successors(Binding::of(body, start), |b| Binding::of(body, b.rest))
}
