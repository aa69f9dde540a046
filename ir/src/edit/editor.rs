//! The editor, through which passes make and change typed expressions.

use std::fmt::Display;

use smallvec::SmallVec;

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, ExprId, GlobalId, LambdaId, LiteralId, NameId, OpId, TypeId};
use crate::core::expr::{Expr, LetFlags, VarFlags, VarId};
use crate::infer::infer_expr;
use crate::ops::op::TypeError;
use crate::tables::attrs::Attr;
use crate::tables::literal::Literal;
use crate::tables::value::AttrValue;

/// A body together with the tables that it refers to. The editor makes expressions, infers their
/// types, and rewrites links. While the body's journal is open, all edits can be rolled back.
pub struct Editor<'a> {
    /// The tables of the module.
    pub cx: &'a mut Context,
    /// The body.
    pub body: &'a mut Body,
}

impl<'a> Editor<'a> {
    /// Returns an editor of a body.
    ///
    /// Cost: one node.
    pub fn new(cx: &'a mut Context, body: &'a mut Body) -> Editor<'a> {
        Editor { cx, body }
    }

    // ---- Atoms ----

    /// Returns the node of a constant, which is interned first.
    ///
    /// Cost: one node.
    pub fn literal(&mut self, literal: Literal) -> ExprId {
        let id = self.cx.literals.intern(literal);
        self.literal_id(id)
    }

    /// Returns the node of an interned constant.
    ///
    /// Cost: one node.
    pub fn literal_id(&mut self, id: LiteralId) -> ExprId {
        self.body.literal_with(id, || self.cx.literal_type(id))
    }

    /// Returns the node of a global function. Its type is its signature, or the error type while
    /// the signature is not known.
    ///
    /// Cost: one node.
    pub fn global(&mut self, global: GlobalId) -> ExprId {
        let ty = self.cx.globals.get(global).signature.unwrap_or(self.cx.types.error());
        self.body.global(global, ty)
    }

    /// Returns the node of an operator as a value.
    ///
    /// Cost: one node.
    pub fn op_value(&mut self, op: OpId) -> ExprId {
        let ty = self.cx.types.any();
        self.body.op(op, ty)
    }

    /// Returns the node of `none`.
    ///
    /// Cost: one node.
    pub fn none(&mut self) -> ExprId {
        let ty = self.cx.types.any();
        self.body.none(ty)
    }

    /// Returns a new variable, which is not bound yet.
    ///
    /// Cost: one node.
    pub fn var(&mut self, name: Option<NameId>, flags: VarFlags, ty: TypeId) -> VarId {
        self.body.push_var(name, flags, ty, None)
    }

    // ---- Calls and values ----

    /// Appends a call of an operator and returns it. The attributes are checked against the
    /// operator's row.
    ///
    /// # Errors
    /// If operands or attributes do not fit the operator.
    pub fn call_op(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError> {
        let attrs = self.cx.check_op_attrs(op, attrs).map_err(|(e, _)| e)?;
        let given = self.cx.given_operands(self.body, op, operands);
        let list = self.body.push_operands(given);
        self.push(Expr::CallOp { op, operands: list, attrs })
    }

    /// Appends a call of the operator with a name, with attributes by name, and returns it.
    ///
    /// Cost: one node.
    ///
    /// ```
    /// # use anfora_ir::{DType, Editor, FunctionBuilder, Module, TypeError};
    /// # let mut module = Module::new(anfora_ops::standard());
    /// # let ty = module.cx.types.static_tensor(DType::Float32, &[2, 3]);
    /// # let mut f = FunctionBuilder::new(&mut module, "main");
    /// # let x = f.param("x", ty);
    /// # let mut editor = f.editor();
    /// let sum = editor.op("sum", &[x], &[("keepdims", true.into())])?;
    /// let scaled = editor.op("multiply", &[x, sum], &[])?;
    /// # assert_eq!(editor.body.ty(scaled), ty);
    /// # Ok::<(), TypeError>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such operator, or operands or attributes do not fit it.
    pub fn op(
        &mut self,
        name: &str,
        operands: &[ExprId],
        attributes: &[(&str, AttrValue)],
    ) -> Result<ExprId, TypeError> {
        let op = self.cx.ops.resolve(name)?;
        let attributes: SmallVec<[(&str, AttrId); 4]> =
            attributes.iter().map(|(name, value)| (*name, value.intern(self.cx))).collect();
        let attrs = self.cx.named_attrs(&attributes);
        self.call_op(op, operands, attrs)
    }

    /// Appends a call of the operator with a name, without attributes, and returns it.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If there is no such operator, or operands do not fit it.
    pub fn call_named(&mut self, op: &str, operands: &[ExprId]) -> Result<ExprId, TypeError> {
        self.op(op, operands, &[])
    }

    /// Appends a `match_cast` of a value, which is checked at run time, and returns it.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If the value cannot have the type.
    pub fn match_cast(&mut self, value: ExprId, to: TypeId) -> Result<ExprId, TypeError> {
        let match_cast = self.cx.ops.resolve("match_cast")?;
        let to = self.cx.attr(Attr::Type(to));
        let attrs = self.cx.named_attrs(&[("to", to)]);
        self.call_op(match_cast, &[value], attrs)
    }

    /// Appends a call of an operator without a row, with the stated type, and returns it.
    ///
    /// Cost: one node.
    pub fn call_opaque(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId, ty: TypeId) -> ExprId {
        let list = self.body.push_operands(operands);
        self.body.push(Expr::CallOp { op, operands: list, attrs }, ty, None)
    }

    /// Appends a call of a function value and returns it.
    ///
    /// # Errors
    /// If `function` is not a function, or the arguments do not fit.
    pub fn call(&mut self, function: ExprId, arguments: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError> {
        let mut all: SmallVec<[ExprId; 8]> = SmallVec::with_capacity(arguments.len() + 1);
        all.push(function);
        all.extend_from_slice(arguments);
        let operands = self.body.push_operands(&all);
        self.push(Expr::Call { operands, attrs })
    }

    /// Appends a tuple and returns it.
    pub fn tuple(&mut self, fields: &[ExprId]) -> ExprId {
        let list = self.body.push_operands(fields);
        self.push(Expr::Tuple(list)).expect("every list of fields has a tuple type")
    }

    /// Appends a projection of a field of a tuple and returns it.
    ///
    /// # Errors
    /// If `tuple` is not a tuple, or has no such field.
    pub fn proj(&mut self, tuple: ExprId, index: u32) -> Result<ExprId, TypeError> {
        self.push(Expr::Proj { tuple, index })
    }

    /// Appends an If over two blocks and returns it.
    ///
    /// # Errors
    /// If the condition is not a rank-0 bool tensor, or the blocks' types have no common type.
    pub fn if_(&mut self, cond: ExprId, then_block: ExprId, else_block: ExprId) -> Result<ExprId, TypeError> {
        self.push(Expr::If { cond, then_block, else_block })
    }

    /// Appends a function value and returns it. Its parameters, annotation and attributes must have
    /// been made by [`Body::push_lambda`].
    pub fn lambda(&mut self, lambda: LambdaId, block: ExprId) -> ExprId {
        self.push(Expr::Lambda { lambda, body: block }).expect("a function type is made of any parts")
    }

    /// Appends a link of a Let chain and returns it.
    ///
    /// Cost: one node.
    pub fn let_(&mut self, var: VarId, value: ExprId, rest: ExprId, flags: LetFlags) -> ExprId {
        let ty = self.cx.types.unit();
        self.body.push(Expr::Let { var, value, body: rest, flags }, ty, None)
    }

    /// Appends a copy of a call, tuple or projection with other operands and returns it. The copy
    /// has the type, position and metadata of the original.
    ///
    /// Cost: one loop.
    ///
    /// # Panics
    /// If `of` is a projection and there are no operands.
    pub fn with_operands(&mut self, of: ExprId, operands: &[ExprId]) -> ExprId {
        let expr = match self.body.expr(of) {
            Expr::CallOp { op, attrs, .. } => Expr::CallOp { op, operands: self.body.push_operands(operands), attrs },
            Expr::Call { attrs, .. } => Expr::Call { operands: self.body.push_operands(operands), attrs },
            Expr::Tuple(_) => Expr::Tuple(self.body.push_operands(operands)),
            Expr::Proj { index, .. } => Expr::Proj { tuple: operands[0], index },
            other => other,
        };
        let node = self.body.push(expr, self.body.ty(of), self.body.span(of));
        if let Some(meta) = self.body.meta(of) {
            self.body.set_meta(node, Some(meta));
        }
        node
    }

    fn push(&mut self, expr: Expr) -> Result<ExprId, TypeError> {
        let error = self.cx.types.error();
        let id = self.body.push(expr, error, None);
        let ty = infer_expr(self.cx, self.body, id)?;
        self.body.set_type(id, ty);
        Ok(id)
    }

    // ---- Rewriting ----

    /// Returns false once the limit of rewrites is reached; see [`Rewrites`](crate::Rewrites).
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn may_rewrite(&self) -> bool {
        self.cx.rewrites.may_rewrite()
    }

    /// Counts a rewrite at a Let, variable or tail, if rewrites are counted. `why` is the rule, or
    /// another short description: `removed`, `inlined`. It is formatted only if the rewrite is
    /// recorded.
    ///
    /// The engines of rewriting count the answers of their authors, so only code that edits a
    /// program in another way calls this.
    ///
    /// Cost: one entry.
    #[inline(always)]
    pub fn rewrote(&self, at: ExprId, why: impl Display) {
        self.cx.rewrote(self.body, at, why);
    }

    /// Records that a rewrite nearly applied at a Let, variable or tail, if anyone asks for near
    /// misses of `what`: a rule, or another kind of rewrite. `why` returns the condition that does
    /// not hold, with the names of the bindings that it is about.
    ///
    /// Cost: linear in the text.
    #[inline]
    pub fn nearly(&self, at: ExprId, what: &str, why: impl FnOnce(&Editor<'_>) -> String) {
        self.cx.nearly(self.body, at, what, || why(self));
    }

    /// Infers the type of a node again and stores it. Returns true if it differs from before. A
    /// changed type must then be propagated to the users of the node: see
    /// [`retype`](crate::edit::retype::retype_from).
    ///
    /// # Errors
    /// If the parts of the node do not fit together any more.
    pub fn refresh_type(&mut self, id: ExprId) -> Result<bool, TypeError> {
        let ty = infer_expr(self.cx, self.body, id)?;
        let changed = ty != self.body.ty(id);
        self.body.set_type(id, ty);
        Ok(changed)
    }
}
