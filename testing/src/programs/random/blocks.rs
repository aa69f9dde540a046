//! Blocks: the steps that open them, and the steps that close them.

use anfora_ir::{BuildError, Expr, ExprId, Literal, VarId};

use super::kinds::{Kind, Mark};
use super::{Generator, Role, Vocabulary};

/// The purpose of a block that is being generated, with the data that is needed to close it.
pub(super) enum Frame {
    Function,
    Then {
        cond: ExprId,
        kind: Kind,
    },
    Else {
        cond: ExprId,
        kind: Kind,
        then_block: ExprId,
    },
    Lambda {
        var: VarId,
    },
    /// A lambda from a vector to a lambda from a vector to a vector.
    Maker {
        var: VarId,
    },
    /// The step of a recursive lambda, which runs until its counter `n` is zero.
    Recursive {
        var: VarId,
        y: ExprId,
        n: ExprId,
        stop: ExprId,
    },
    Value {
        kind: Kind,
    },
}

pub(super) struct Block {
    pub(super) frame: Frame,
    /// A mark of the values that were in scope when the block began.
    values: Option<Mark>,
    /// The number of statements that are left to generate in the block.
    left: usize,
}

impl Block {
    pub(super) fn of_function(size: usize) -> Block {
        Block { frame: Frame::Function, values: None, left: size }
    }
}

/// The largest depth of nested blocks.
const DEPTH: usize = 12;

impl Generator<'_> {
    fn innermost(&mut self) -> &mut Block {
        self.blocks.last_mut().expect("the function's block is left last")
    }

    pub(super) fn one_statement_is_left(&mut self) -> bool {
        let block = self.innermost();
        let some = block.left > 0;
        block.left -= usize::from(some);
        some
    }

    /// Returns true if another block may be opened here.
    pub(super) fn may_nest(&self) -> bool {
        !self.region.is_open() && self.blocks.len() < DEPTH
    }

    pub(super) fn is_outermost(&self) -> bool {
        self.blocks.len() == 1
    }

    pub(super) fn in_lambda(&self) -> bool {
        let is_lambda =
            |b: &Block| matches!(b.frame, Frame::Lambda { .. } | Frame::Maker { .. } | Frame::Recursive { .. });
        self.blocks.iter().any(is_lambda)
    }

    pub(super) fn recursions(&self) -> usize {
        self.blocks.iter().filter(|b| matches!(b.frame, Frame::Recursive { .. })).count()
    }

    /// Opens a block.
    pub(super) fn enter(&mut self, frame: Frame) {
        self.b.open_block();
        let values = self.values.mark();
        self.enter_opened(frame, values);
    }

    /// Continues in a block that is already open. `values` marks the values in scope before it.
    pub(super) fn enter_opened(&mut self, frame: Frame, values: Mark) {
        let draw = self.rng.below(12);
        let outer = self.innermost();
        let left = draw.min(outer.left);
        outer.left -= left;
        self.blocks.push(Block { frame, values: Some(values), left });
    }

    /// Ends the innermost block. Returns the tail of the function if the block is the function's
    /// own.
    pub(super) fn leave(&mut self) -> Result<Option<ExprId>, BuildError> {
        self.end_region();
        let block = self.blocks.pop().expect("the function's block is left last");
        let Some(values) = block.values else {
            return self.result().map(Some);
        };
        match block.frame {
            Frame::Function => unreachable!("the function's block has nothing around it"),
            Frame::Then { cond, kind } => {
                let tail = self.pick(kind)?;
                let then_block = self.b.close_block(tail)?;
                self.values.truncate(values);
                self.enter(Frame::Else { cond, kind, then_block });
            }
            Frame::Else { cond, kind, then_block } => {
                let tail = self.pick(kind)?;
                let else_block = self.b.close_block(tail)?;
                self.values.truncate(values);
                let choice = self.b.if_(cond, then_block, else_block)?;
                self.bind_owner(choice, kind)?;
            }
            Frame::Lambda { var } => {
                let tail = self.pick(Kind::Vector)?;
                let lambda = self.b.close_lambda(tail)?;
                self.values.truncate(values);
                // The elements of its result may be known.
                let ty = self.b.body().type_of(lambda);
                self.b.body().set_type(var.expr(), ty);
                self.bind_declared(var, lambda, Kind::Function);
            }
            Frame::Maker { var } => {
                let tail = self.pick(Kind::Function)?;
                let lambda = self.b.close_lambda(tail)?;
                self.values.truncate(values);
                self.b.bind_var(var, lambda, None);
                let v = self.pick(Kind::Vector)?;
                let call = self.b.call(var.expr(), &[v])?;
                self.bind_let(call, Kind::Function);
            }
            Frame::Recursive { var, y, n, stop } => self.leave_recursion(var, y, n, stop, values)?,
            Frame::Value { kind } => {
                let tail = self.pick(kind)?;
                let inner = self.b.close_block(tail)?;
                self.values.truncate(values);
                self.bind_owner(inner, kind)?;
            }
        }
        Ok(None)
    }

    fn result(&mut self) -> Result<ExprId, BuildError> {
        match self.role {
            Role::Helper | Role::Sized => self.pick(Kind::Vector),
            Role::Maker => self.pick(Kind::Function),
            Role::Main if self.vocabulary != Vocabulary::Whole => self.narrow_result(),
            Role::Main => {
                let mut fields = std::mem::take(&mut self.sinks);
                for kind in [Kind::TENSORS; 3].concat() {
                    fields.push(self.pick(kind)?);
                }
                for kind in [Kind::Pair, Kind::Nested, self.any_three(), self.any_three()] {
                    if self.rng.one_in(3) {
                        fields.push(self.pick(kind)?);
                    }
                }
                let all = self.b.tuple(&fields);
                Ok(self.b.bind("result", all))
            }
        }
    }

    /// Binds a value. In graph form, may leave it as a node that others share.
    pub(super) fn bind(&mut self, value: ExprId, kind: Kind) -> ExprId {
        let plain = matches!(self.b.body().expr(value), Expr::CallOp { .. } | Expr::Tuple(_) | Expr::Proj { .. });
        if self.graph && plain && self.rng.one_in(3) {
            self.values.push(kind, value);
            return value;
        }
        self.bind_let(value, kind)
    }

    pub(super) fn bind_let(&mut self, value: ExprId, kind: Kind) -> ExprId {
        self.names += 1;
        let name = self.name();
        let id = self.b.bind(&name, value);
        self.values.push(kind, id);
        self.region.bound(id);
        id
    }

    pub(super) fn bind_declared(&mut self, var: VarId, value: ExprId, kind: Kind) {
        self.b.bind_var(var, value, None);
        self.values.push(kind, var.expr());
        self.region.bound(var.expr());
    }

    /// Returns the node itself in graph form, and otherwise a variable that is bound to it.
    pub(super) fn unnamed(&mut self, value: ExprId) -> ExprId {
        if self.graph {
            return value;
        }
        let id = self.b.bind("", value);
        self.region.bound(id);
        id
    }

    /// Binds a value that owns blocks, or the result of an operator on it.
    fn bind_owner(&mut self, owner: ExprId, kind: Kind) -> Result<(), BuildError> {
        let mut value = owner;
        if self.graph && Kind::TENSORS.contains(&kind) && self.rng.one_in(2) {
            let other = self.pick(kind)?;
            let op = if kind == Kind::Bool { "logical_and" } else { "maximum" };
            value = self.b.call_op(op, &[owner, other], &[])?;
        }
        self.bind_let(value, kind);
        Ok(())
    }

    /// Ends a recursive lambda, which calls itself with a smaller counter, directly or from a
    /// lambda of its own.
    fn leave_recursion(
        &mut self,
        var: VarId,
        y: ExprId,
        n: ExprId,
        stop: ExprId,
        values: Mark,
    ) -> Result<(), BuildError> {
        let one = self.b.literal(Literal::scalar(1i64));
        let rest = self.b.call_op("subtract", &[n, one], &[])?;
        let rest = self.unnamed(rest);
        let next = self.pick(Kind::Vector)?;
        let next = self.b.call_op("maximum", &[next, y], &[])?;
        let next = self.unnamed(next);
        let call = if self.rng.one_in(3) {
            let vector = self.types.of(Kind::Vector);
            let inner = self.b.open_lambda(&[("z", vector)], None, &[]);
            let call = self.b.call(var.expr(), &[inner[0], rest])?;
            let call = self.b.bind("deeper", call);
            let lambda = self.b.close_lambda(call)?;
            let inner = self.b.bind("inner", lambda);
            self.b.call(inner, &[next])?
        } else {
            self.b.call(var.expr(), &[next, rest])?
        };
        let again = self.b.bind("again", call);
        let tail = if self.rng.one_in(2) {
            let v = self.pick(Kind::Vector)?;
            self.b.call_op("minimum", &[again, v], &[])?
        } else {
            again
        };
        let else_block = self.b.close_block(tail)?;
        let choice = self.b.if_(stop, y, else_block)?;
        let lambda = self.b.close_lambda(choice)?;
        self.values.truncate(values);
        self.b.bind_var(var, lambda, None);
        let (v, two) = (self.pick(Kind::Vector)?, self.b.literal(Literal::scalar(2i64)));
        let call = self.b.call(var.expr(), &[v, two])?;
        self.bind_let(call, Kind::Vector);
        Ok(())
    }
}
