//! The builder for the right sides of rules.

use std::ops::Range;

use anfora_ir::{
    AttrReader, AttrValue, AttrsId, Body, Context, Editor, EntityId, Expr, ExprId, Literal, Number, OpDef, OpId,
    TypeError, TypeId, VarFlags, VarId,
};
use smallvec::SmallVec;

use crate::let_list::LetList;
use crate::link::{Binding, Link};
use crate::pattern::captures::Captures;
use crate::pattern::facts::{Facts, is_primitive};
use crate::pattern::guard::Match;
use crate::pattern::illegal_edit::IllegalEdit;
use crate::pattern::sight::Sight;

/// Makes the expressions that replace a match, and gives read access to the program around it.
///
/// It only makes expressions: it cannot overwrite a link, type, flag or binding of the program. The
/// expressions may be nested. In a program in A-normal form, parts that are not atoms are bound
/// just before the binding or tail that is rewritten, each once however often it is used. Operands
/// are captures, expressions in scope at the root of the match, and expressions made here. An
/// expression that is not part of the rule's result has no effect.
pub struct Rewriter<'r, 'e> {
    editor: &'r mut Editor<'e>,
    facts: &'r Facts<'r>,
    root: ExprId,
    /// The number of nodes when the rule began.
    start: usize,
    /// Numbers of the nodes in each `fn` with the attribute `Primitive=1`.
    closed: Vec<Range<usize>>,
    /// The new functions without observable effects.
    pure: Vec<ExprId>,
    /// Numbers of the parameters of the functions that are being made.
    scopes: Vec<Range<usize>>,
}

impl<'r, 'e> Rewriter<'r, 'e> {
    pub(crate) fn new(editor: &'r mut Editor<'e>, facts: &'r Facts<'r>, root: ExprId) -> Rewriter<'r, 'e> {
        let start = editor.body.len();
        Rewriter { editor, facts, root, start, closed: Vec::new(), pure: Vec::new(), scopes: Vec::new() }
    }

    /// Returns the number ranges of the nodes in closed functions, and the functions that are pure.
    pub(crate) fn finish(self) -> (Vec<Range<usize>>, Vec<ExprId>) {
        (self.closed, self.pure)
    }

    // ---- Looking ----

    fn sight(&self) -> Sight<'_> {
        Sight { cx: self.editor.cx, body: self.editor.body, facts: self.facts }
    }

    /// Returns the match that is replaced.
    pub(crate) fn matched<'m>(&'m self, captures: &Captures<'m>) -> Match<'m> {
        Match { sight: self.sight(), captures: *captures }
    }

    /// Returns the node that is to be replaced.
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// Returns the tables of the module and the body.
    pub fn program(&self) -> (&Context, &Body) {
        (self.editor.cx, self.editor.body)
    }

    /// Returns the tables of the module, in which attributes, types, names and literals are
    /// interned.
    pub fn cx(&mut self) -> &mut Context {
        self.editor.cx
    }

    /// Returns the value that a variable is bound to, as far as patterns look through it; for any
    /// other expression, the expression itself.
    ///
    /// Cost: one node.
    pub fn value(&self, id: ExprId) -> ExprId {
        self.facts.value(self.editor.body, id)
    }

    /// Returns a copy of the list that a [`rest`](crate::pattern::rest) captured (see
    /// [`Captures::list`]), so that expressions can be made from it.
    ///
    /// Cost: one loop.
    pub fn list(&self, captures: &Captures<'_>, name: &str) -> SmallVec<[ExprId; 4]> {
        SmallVec::from_slice(captures.list(self.editor.body, name))
    }

    /// Returns the type of an expression. The type of a Let is that of the tail of its chain, which
    /// is walked.
    pub fn ty(&self, id: ExprId) -> TypeId {
        self.editor.body.type_of(id)
    }

    /// Returns the row of the operator that an expression calls, looked through to its value.
    ///
    /// Cost: one node.
    pub fn op_of(&self, id: ExprId) -> Option<&OpDef> {
        Some(self.editor.cx.ops.get(self.attrs(id)?.op))
    }

    /// Returns the attributes of an expression that is an operator call, looked through to its
    /// value, with the defaults of the operator's row.
    ///
    /// Cost: one node.
    pub fn attrs(&self, id: ExprId) -> Option<AttrReader<'_>> {
        self.sight().call(id)
    }

    /// Returns the tensor if an expression is a literal, looked through to its value.
    ///
    /// Cost: one node.
    pub fn literal_of(&self, id: ExprId) -> Option<&Literal> {
        self.sight().literal(id)
    }

    // ---- Making ----

    /// Makes a call of the operator with this name, without attributes.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If there is no such operator, or the operands do not fit it.
    pub fn op(&mut self, name: &str, operands: &[ExprId]) -> Result<ExprId, TypeError> {
        self.editor.call_named(name, operands)
    }

    /// Makes a call of the operator with this name, with attributes.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If there is no such operator, or operands or attributes do not fit it.
    pub fn op_with(
        &mut self,
        name: &str,
        operands: &[ExprId],
        attrs: &[(&str, AttrValue)],
    ) -> Result<ExprId, TypeError> {
        self.editor.op(name, operands, attrs)
    }

    /// Makes a call with the operator and attributes of another call (looked through to its value).
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If `other` is not an operator call, or the operands do not fit.
    pub fn op_like(&mut self, other: ExprId, operands: &[ExprId]) -> Result<ExprId, TypeError> {
        let Some(AttrReader { op, attrs, .. }) = self.attrs(other) else {
            return Err(TypeError::new("the expression whose operator is to be called is not a call of an operator"));
        };
        self.editor.call_op(op, operands, attrs)
    }

    /// Makes a call of an operator with interned attributes.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If operands or attributes do not fit the operator.
    pub fn call_op(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError> {
        self.editor.call_op(op, operands, attrs)
    }

    /// Makes a call for the place of the replaced node. An operator without a row, which has no
    /// rule for its type, gets the type of that node.
    pub(crate) fn call_as_root(&mut self, op: OpId, operands: &[ExprId], attrs: AttrsId) -> Result<ExprId, TypeError> {
        if !self.editor.cx.ops.is_opaque(op) {
            return self.call_op(op, operands, attrs);
        }
        let ty = self.editor.body.type_of(self.root);
        Ok(self.editor.call_opaque(op, operands, attrs, ty))
    }

    pub(crate) fn intern_attrs<'a>(&mut self, attrs: impl Iterator<Item = (&'a str, &'a AttrValue)>) -> AttrsId {
        let cx = &mut *self.editor.cx;
        let list: SmallVec<[_; 4]> = attrs.map(|(name, value)| (cx.names.intern(name), value.intern(cx))).collect();
        cx.attrs(&list)
    }

    /// Makes a call of a function value.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If `function` is not a function, or the arguments do not fit.
    pub fn call(&mut self, function: ExprId, arguments: &[ExprId]) -> Result<ExprId, TypeError> {
        let attrs = self.editor.cx.attrs.empty();
        self.editor.call(function, arguments, attrs)
    }

    /// Makes a tuple.
    ///
    /// Cost: one node.
    pub fn tuple(&mut self, fields: &[ExprId]) -> ExprId {
        self.editor.tuple(fields)
    }

    /// Makes a projection of a tuple's field.
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// If `tuple` is not a tuple, or has no such field.
    pub fn proj(&mut self, tuple: ExprId, index: u32) -> Result<ExprId, TypeError> {
        self.editor.proj(tuple, index)
    }

    /// Makes a tensor.
    pub fn literal(&mut self, literal: Literal) -> ExprId {
        self.editor.literal(literal)
    }

    /// Makes a rank-0 tensor of the element type of another expression; `None` if that expression
    /// is not a tensor, or its element type cannot represent the number.
    ///
    /// Cost: one node.
    pub fn number_like(&mut self, number: impl Into<Number>, other: ExprId) -> Option<ExprId> {
        let dtype = self.editor.cx.types.as_tensor(self.ty(other))?.dtype;
        let literal = number.into().scalar(dtype)?;
        Some(self.editor.literal(literal))
    }

    /// Makes a whole number as written in the text of a rule. Returns `None` for a 0 of a float
    /// type, since floats have two zeros.
    pub(crate) fn whole_like(&mut self, value: i64, other: ExprId) -> Option<ExprId> {
        let is_zero_of_floats = value == 0 && {
            let types = &self.editor.cx.types;
            types.as_tensor(self.ty(other)).is_some_and(|tensor| tensor.dtype.is_float())
        };
        if is_zero_of_floats { None } else { self.number_like(value, other) }
    }

    /// Makes a reference to the global function with this name, without `@`.
    ///
    /// Cost: one node.
    pub fn global(&mut self, name: &str) -> ExprId {
        let global = self.editor.cx.global(name);
        self.editor.global(global)
    }

    /// Makes `none`.
    pub fn none(&mut self) -> ExprId {
        self.editor.none()
    }

    /// Makes a `fn` with these parameter types and attributes; `block` gets the parameters and
    /// makes the result. In a program in A-normal form, nested parts are bound inside the `fn`.
    /// With the attribute `Primitive=1`, nothing in it is rewritten. Without it, the rules continue
    /// inside: a rule that wraps its match in a `fn` matches again in there, without end
    /// ([`StopReason::OutOfSweeps`](crate::pattern::StopReason)).
    ///
    /// Cost: one node.
    ///
    /// # Errors
    /// The errors of `block`, and if it uses a part of the program that is not an atom.
    pub fn lambda<E: From<TypeError>>(
        &mut self,
        params: &[TypeId],
        attrs: &[(&str, AttrValue)],
        block: impl FnOnce(&mut Rewriter<'_, 'e>, &[ExprId]) -> Result<ExprId, E>,
    ) -> Result<ExprId, E> {
        let mark = self.editor.body.len();
        let vars: SmallVec<[_; 4]> = params.iter().map(|&ty| self.editor.var(None, VarFlags::PLAIN, ty)).collect();
        let uses: SmallVec<[ExprId; 4]> = vars.iter().map(|v| v.expr()).collect();
        let attrs = self.intern_attrs(attrs.iter().map(|(name, value)| (*name, value)));
        let lambda = self.editor.body.push_lambda(&vars, None, attrs);
        self.scopes.push(mark..mark + uses.len());
        let tail = block(self, &uses).and_then(|tail| Ok(self.bind_parts(tail, mark)?));
        self.scopes.pop();
        let tail = tail?;
        let made = mark..self.editor.body.len();
        let (cx, body) = (&*self.editor.cx, &*self.editor.body);
        let is_pure = made.clone().all(|i| match ExprId::from_index(i) {
            id if !self.facts.call_is_barred(cx, body, id) => true,
            id => {
                matches!(body.expr(id), Expr::Call { operands, .. } if self.pure.contains(&body.operand(operands, 0)))
            }
        });
        let function = self.editor.lambda(lambda, tail);
        if is_pure {
            self.pure.push(function);
        }
        if is_primitive(self.editor.cx, self.editor.body, function) {
            self.closed.push(made);
        }
        Ok(function)
    }

    /// Binds the parts of a tail that were made since `mark`, if the program is in A-normal form.
    /// Returns the block.
    fn bind_parts(&mut self, tail: ExprId, mark: usize) -> Result<ExprId, TypeError> {
        if !self.facts.is_anf {
            return Ok(tail);
        }
        let mut nested = Nested::default();
        let new = New { from: mark, start: self.start, root: self.root, scopes: &self.scopes };
        let found = nested.find(self.editor, self.facts, tail, new);
        let tail = found.map_err(|illegal| TypeError::new(illegal.to_string()))?;
        let mut list = LetList::new();
        for (var, value) in nested.bindings {
            if self.pure.contains(&value) {
                self.pure.push(var.expr());
            }
            list.push(self.editor, var, value);
        }
        Ok(list.finish(self.editor, tail))
    }
}

/// The new parts of a replacement, and the replaced node.
#[derive(Copy, Clone)]
pub(crate) struct New<'a> {
    /// Nodes from this number on may be split into bindings.
    pub(crate) from: usize,
    /// Variables below this number must be bound.
    pub(crate) start: usize,
    pub(crate) root: ExprId,
    /// Number ranges of the parameters that are visible in it.
    pub(crate) scopes: &'a [Range<usize>],
}

/// Finds the parts of a new expression that are not atoms, and gives them variables.
#[derive(Default)]
pub(crate) struct Nested {
    /// In the order of computation: operands from first to last, each part before its user.
    pub(crate) bindings: Vec<(VarId, ExprId)>,
    /// The name of the root, then that of each node from `New::from` on, by its distance to that
    /// node.
    names: Vec<Option<ExprId>>,
    stack: Vec<(ExprId, u32)>,
}

impl Nested {
    /// Splits a new expression into bindings and returns it with operands that are atoms. The
    /// replaced node may be a part of it.
    pub(crate) fn find(
        &mut self,
        editor: &mut Editor<'_>,
        facts: &Facts,
        top: ExprId,
        new: New<'_>,
    ) -> Result<ExprId, IllegalEdit> {
        self.bindings.clear();
        let mark = new.from;
        let top = named(editor.body, facts, top, new)?;
        if top.index() < mark {
            return Ok(top);
        }
        // The root has the first place, new nodes follow.
        let place = |id: ExprId| id.index().checked_sub(mark).map_or(0, |later| later + 1);
        self.names.clear();
        self.names.resize(editor.body.len() - mark + 1, None);
        self.stack.clear();
        self.stack.push((top, 0));
        while let Some((id, next)) = self.stack.pop() {
            let Some(&operand) = editor.body.inputs(id).get(next as usize) else {
                if !self.stack.is_empty() {
                    self.names[place(id)] = Some(self.bind(editor, facts, id, new.root));
                }
                continue;
            };
            let part = named(editor.body, facts, operand, new)?;
            if part == new.root && self.names[0].is_none() {
                self.names[0] = Some(self.bind(editor, facts, part, new.root));
            }
            let name = if editor.body.expr(part).is_atom() { Some(part) } else { self.names[place(part)] };
            let Some(name) = name else {
                self.stack.extend([(id, next), (part, 0)]);
                continue;
            };
            self.stack.push((id, next + 1));
            if name != operand {
                Link::Operand(id, next).set(editor.body, name);
            }
        }
        Ok(top)
    }

    fn bind(&mut self, editor: &mut Editor<'_>, facts: &Facts, value: ExprId, root: ExprId) -> ExprId {
        let flags = if facts.place(root).region != 0 { VarFlags::DATAFLOW } else { VarFlags::PLAIN };
        let ty = editor.body.ty(value);
        let var = editor.var(None, flags, ty);
        self.bindings.push((var, value));
        var.expr()
    }
}

/// Returns the form in which an expression is a part of a new one in A-normal form: a new node, the
/// root or an atom. For an expression that is bound elsewhere, this is the variable.
pub(crate) fn named(body: &Body, facts: &Facts, id: ExprId, new: New<'_>) -> Result<ExprId, IllegalEdit> {
    if let Some(var) = body.as_var(id) {
        // The variable that is being rewritten would be bound to itself: its old value is meant.
        if facts.def_use.value(body, var) == Some(new.root) {
            return Ok(new.root);
        }
        if id.index() >= new.start {
            return match new.scopes.iter().any(|scope| scope.contains(&id.index())) {
                true => Ok(id),
                false => Err(IllegalEdit::NotVisible),
            };
        }
        return facts.check_visible(body, var, new.root).map(|()| id);
    }
    if id.index() >= new.from || id == new.root || body.expr(id).is_atom() {
        return Ok(id);
    }
    let Binding { var, .. } = facts.let_of(body, id).ok_or(IllegalEdit::Elsewhere)?;
    facts.check_visible(body, var, new.root).map(|()| var.expr())
}

anfora_ir::brief_debug! { Rewriter<'_, '_> { root }; }
