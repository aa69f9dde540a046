//! Expressions, blocks and functions.

use crate::core::body::Body;
use crate::core::entity::{AttrsId, ExprId, TypeId};
use crate::core::expr::{Expr, OperandList, VarId};
use crate::core::function::{Function, Visibility};
use crate::tables::types::Type;
use crate::walk::cursor::BlockKind;
use crate::walk::self_uses::SelfUses;

use super::names::Labels;
use super::shared::{SharedNodes, Slot, glance, place};
use super::{Annotations, Printer, Task, annotation, is_nameable, result_annotation};

/// The printer's data about the current body.
pub(super) struct BodyState<'m> {
    pub(super) body: &'m Body,
    pub(super) labels: Labels,
    shared: Option<SharedNodes>,
    self_uses: SelfUses,
}

impl<'m> BodyState<'m> {
    pub(super) fn nothing(body: &'m Body) -> BodyState<'m> {
        BodyState { body, labels: Labels::default(), shared: None, self_uses: SelfUses::default() }
    }
}

/// The position in a block that is being printed.
#[derive(Copy, Clone)]
pub(super) struct Statements {
    at: ExprId,
    /// The slot of the tail, if `at` is the tail.
    slot: Slot,
    /// The index in the printer's outputs from which on they belong to the open dataflow region.
    outputs_from: u32,
    in_region: bool,
    phase: Phase,
}

#[derive(Copy, Clone, PartialEq)]
enum Phase {
    Start,
    /// The graph bindings before the statement are printed.
    Placed,
    /// The attributes that tools attached to the statement are printed too.
    Noted,
}

impl<'m> Printer<'m, '_> {
    // ---- Functions ----

    /// Prints a definition or declaration.
    pub(super) fn function(&mut self, f: &'m Function) {
        self.symbols.clear();
        let labels = std::mem::take(&mut self.state.labels);
        self.begin_body(f, labels);
        if !self.cx.attrs.list(f.meta).is_empty() {
            self.meta(f.meta);
            self.run();
        }
        let end = if f.is_definition() { Task::Body(f.body.root()) } else { Task::Text(";") };
        self.tasks.extend([Task::Text("\n"), end]);
        self.head(f);
        self.run();
    }

    /// Prints a definition or declaration without its block. Its result type, and attributes that
    /// nest, are left to tasks.
    pub(super) fn head(&mut self, f: &Function) {
        self.out.text(match (f.is_definition(), f.visibility) {
            (false, _) => "declare @",
            (true, Visibility::Public) => "def @",
            (true, Visibility::Private) => "def private @",
        });
        self.out.name(f.global().map_or("", |g| self.cx.global_name(g)));
        self.signature(f.body.params().iter().copied(), f.attrs, result_annotation(self.cx, f));
    }

    /// Prints a function that is an attribute. It has names and symbols of its own.
    pub(super) fn function_attr(&mut self, f: &'m Function) {
        self.names.enter();
        self.symbols.enter();
        let outer = std::mem::replace(&mut self.state, BodyState::nothing(&f.body));
        self.outer.push(outer);
        self.begin_body(f, Labels::default());
        let slot = Slot::tail_of(&f.body, BlockKind::Root);
        self.tasks.extend([Task::LeaveFunction, Task::Block(f.body.root(), slot), Task::Text(" ")]);
        let ret = f.ret.or_else(|| match self.options.annotations {
            Annotations::Needed => None,
            Annotations::All => result_annotation(self.cx, f),
        });
        self.out.text("fn ");
        self.signature(f.body.params().iter().copied(), f.attrs, ret);
    }

    /// Returns to the function that encloses a function in an attribute.
    pub(super) fn leave_function(&mut self) {
        self.names.leave();
        self.symbols.leave();
        if let Some(outer) = self.outer.pop() {
            self.state = outer;
        }
    }

    fn begin_body(&mut self, f: &'m Function, labels: Labels) {
        let body = &f.body;
        let labels = self.names.begin(body, labels);
        self.state = BodyState { labels, ..BodyState::nothing(body) };
        // In a line, names need no labels, and a block shows nothing that is shared.
        if self.line.is_some() {
            return;
        }
        let (names, labels) = (&mut self.names, &self.state.labels);
        let declare = |id| {
            if let Expr::Var { name: Some(name), .. } = body.expr(id) {
                names.declare(labels, name);
            }
        };
        if f.is_definition() {
            let seen = glance(body, declare);
            self.state.self_uses = seen.self_uses;
            self.state.shared = seen.has_shared.then(|| place(body));
        } else {
            body.params().iter().map(|p| p.expr()).for_each(declare);
        }
    }

    /// Prints `(%x: T, …, KEY=attr, …)`. The result type is left to a task, and so are the
    /// attributes from the first nested one on.
    fn signature(&mut self, params: impl ExactSizeIterator<Item = VarId> + Clone, attrs: AttrsId, ret: Option<TypeId>) {
        let body = self.state.body;
        for ty in params.clone().map(|p| body.ty(p.expr())).chain(ret) {
            self.name_symbols(ty);
        }
        self.out.ascii(b'(');
        let has_params = params.len() > 0;
        for (i, p) in params.enumerate() {
            self.out.comma(i);
            self.parameter(p);
            self.out.text(": ");
            self.ty(body.ty(p.expr()));
        }
        self.tasks.push(Task::Result(ret));
        self.named_attrs(self.cx.attrs.list(attrs), has_params, ")");
    }

    fn parameter(&mut self, p: VarId) {
        if let (Some(line), true) = (&mut self.line, self.outer.is_empty()) {
            line.parameters.push(p);
        }
        self.names.print(&mut self.state.labels, &self.cx.names, self.state.body, p.expr(), &mut self.out);
    }

    fn lambda(&mut self, id: ExprId, is_recursive: bool) {
        let body = self.state.body;
        let Expr::Lambda { lambda, body: block } = body.expr(id) else { return };
        let data = body.lambda(lambda);
        let must = is_recursive || self.options.annotations == Annotations::All;
        let ret = data.ret.or_else(|| {
            let found = must.then(|| body.type_of(block))?;
            let params = body.lambda_params(lambda).map(|p| body.ty(p.expr()));
            let own = |s| body.lambda_symbols(lambda).contains(&s);
            let is_known = !matches!(self.cx.types.get(found), Type::Error);
            (is_known && is_nameable(self.cx, found, params, own)).then_some(found)
        });
        self.tasks.extend([Task::Block(block, Slot::tail_of(body, BlockKind::Lambda(id))), Task::Text(" ")]);
        for &s in body.lambda_symbols(lambda) {
            self.symbols.label(self.cx, s);
        }
        self.out.text("fn ");
        let params = body
            .operands(data.params)
            .iter()
            .filter_map(|&p| body.as_var(p))
            .collect::<smallvec::SmallVec<[VarId; 8]>>();
        self.signature(params.iter().copied(), data.attrs, ret);
    }

    // ---- Blocks ----

    /// Prints the block of a function of the module.
    pub(super) fn function_block(&mut self, root: ExprId) {
        self.open_block(root, Slot::tail_of(self.state.body, BlockKind::Root));
    }

    /// Prints a block, on one line if it consists of a simple tail.
    pub(super) fn block(&mut self, start: ExprId, slot: Slot) {
        let body = self.state.body;
        let is_bare = self.line.is_none()
            && !matches!(body.expr(start), Expr::Let { .. })
            && self.first_before(slot).is_none()
            && self.hidden_type(start).is_none()
            && self.is_flat(start);
        if is_bare {
            self.out.text("{ ");
            self.expr(start);
            self.out.text(" }");
        } else {
            self.open_block(start, slot);
        }
    }

    fn open_block(&mut self, start: ExprId, slot: Slot) {
        if self.line.is_some() {
            return self.out.text("{ … }");
        }
        self.out.text("{\n");
        self.out.deeper();
        self.tasks.push(Task::CloseBlock);
        let outputs_from = self.outputs.len() as u32;
        self.statements(Statements { at: start, slot, outputs_from, in_region: false, phase: Phase::Start });
    }

    /// Prints the closing brace of a block.
    pub(super) fn close_block(&mut self) {
        self.out.shallower();
        self.out.indent();
        self.out.ascii(b'}');
    }

    fn first_before(&self, slot: Slot) -> Option<u32> {
        self.state.shared.as_ref()?.first_before(slot)
    }

    /// Prints statements. Statements that do not nest are printed in a loop; at a nested one, the
    /// rest is left to a task.
    pub(super) fn statements(&mut self, mut s: Statements) {
        let body = self.state.body;
        while self.out.pass_on() {
            let Expr::Let { var, value, body: rest, flags } = body.expr(s.at) else { return self.tail(s) };
            if s.phase == Phase::Start {
                if s.in_region && (flags.starts_region() || !flags.is_dataflow()) {
                    self.close_region(&mut s);
                }
                s.phase = Phase::Placed;
                if let Some(n) = self.first_before(Slot::let_(s.at)) {
                    self.tasks.extend([
                        Task::Statements(s),
                        Task::GraphBinding { n, is_noted: false, in_region: s.in_region },
                    ]);
                    return;
                }
            }
            if s.phase == Phase::Placed {
                if flags.is_dataflow() && !s.in_region {
                    self.out.indent();
                    self.out.text("dataflow {\n");
                    self.out.deeper();
                    s.in_region = true;
                    s.outputs_from = self.outputs.len() as u32;
                }
                if let Some(meta) = body.meta(var.expr()) {
                    s.phase = Phase::Noted;
                    self.tasks.push(Task::Statements(s));
                    return self.meta(meta);
                }
            }
            self.out.indent();
            self.out.text("let ");
            self.local(var.expr());
            let annotation = annotation(self.cx, self.options, body, var, value);
            if let Some(ty) = annotation.filter(|&t| !self.aliases.is_too_large(t)) {
                self.out.text(": ");
                self.ty(ty);
            }
            self.out.text(" = ");
            if s.in_region && !body.is_dataflow_var(var) {
                self.outputs.push(var.expr());
            }
            s = Statements { at: rest, slot: Slot::tail_after(s.at), phase: Phase::Start, ..s };
            if self.is_flat(value) {
                self.let_value(value, false);
                self.out.text(";\n");
            } else {
                let is_recursive = self.state.self_uses.contains(var);
                self.tasks.extend([Task::Statements(s), Task::Text(";\n"), Task::LetValue { value, is_recursive }]);
                return;
            }
        }
    }

    fn close_region(&mut self, s: &mut Statements) {
        self.out.indent();
        self.out.text("output(");
        for i in s.outputs_from as usize..self.outputs.len() {
            self.out.comma(i - s.outputs_from as usize);
            self.local(self.outputs[i]);
        }
        self.outputs.truncate(s.outputs_from as usize);
        self.out.text(");\n");
        self.out.shallower();
        self.out.indent();
        self.out.text("}\n");
        s.in_region = false;
    }

    fn tail(&mut self, mut s: Statements) {
        if s.phase == Phase::Start {
            if s.in_region {
                self.close_region(&mut s);
            }
            s.phase = Phase::Placed;
            if let Some(n) = self.first_before(s.slot) {
                self.tasks.extend([Task::Statements(s), Task::GraphBinding { n, is_noted: false, in_region: false }]);
                return;
            }
        }
        match self.hidden_type(s.at) {
            Some(ty) => self.typed_tail(s.at, ty),
            None => {
                self.out.indent();
                self.tasks.push(Task::Text("\n"));
                self.expr(s.at);
            }
        }
    }

    /// Prints a graph binding and those after it.
    pub(super) fn graph_binding(&mut self, n: u32, is_noted: bool, in_region: bool) {
        let Some(shared) = &self.state.shared else { return };
        let (id, next) = shared.binding(n);
        let (body, is_output) = (self.state.body, shared.is_let(id));
        if let Some(meta) = body.meta(id)
            && !is_noted
        {
            self.tasks.push(Task::GraphBinding { n, is_noted: true, in_region });
            return self.meta(meta);
        }
        self.out.indent();
        let annotation = self.opaque_type(id);
        // Only a `let` can have a type or be an output.
        if is_output || annotation.is_some() {
            self.out.text("let ");
            if in_region {
                self.outputs.push(id);
            }
        }
        self.local(id);
        if let Some(ty) = annotation {
            self.out.text(": ");
            self.ty(ty);
        }
        self.out.text(" = ");
        self.tasks.extend(next.map(|n| Task::GraphBinding { n, is_noted: false, in_region }));
        self.tasks.push(Task::Text(";\n"));
        self.node(id);
    }

    // ---- Expressions ----

    /// Prints a variable, or a shared node by its number.
    #[inline]
    pub(super) fn local(&mut self, id: ExprId) {
        if let (Some(line), true) = (&mut self.line, self.outer.is_empty()) {
            line.uses.extend(self.state.body.as_var(id));
        }
        self.names.print(&mut self.state.labels, &self.cx.names, self.state.body, id, &mut self.out);
    }

    fn is_shared(&self, id: ExprId) -> bool {
        self.state.shared.as_ref().is_some_and(|s| s.contains(id))
    }

    /// Returns true if an expression prints without tasks.
    #[inline]
    fn is_flat(&self, id: ExprId) -> bool {
        let body = self.state.body;
        let is_word = |o: ExprId| body.expr(o).is_atom() || self.is_shared(o);
        is_word(id)
            || match body.expr(id) {
                Expr::CallOp { operands, attrs, .. } => {
                    body.operands(operands).iter().all(|&o| is_word(o)) && self.are_simple(attrs)
                }
                Expr::Call { operands, attrs } => {
                    let list = body.operands(operands);
                    list.iter().all(|&o| is_word(o))
                        && self.are_simple(attrs)
                        && list.first().is_some_and(|&f| self.is_callee(f))
                }
                Expr::Tuple(fields) => body.operands(fields).iter().all(|&o| is_word(o)),
                Expr::Proj { tuple, .. } => is_word(tuple) && self.is_callee(tuple),
                _ => false,
            }
    }

    /// Returns true if `(…)` or `.0` may follow an expression without parentheses.
    fn is_callee(&self, id: ExprId) -> bool {
        self.is_shared(id)
            || self.hidden_type(id).is_none()
                && matches!(
                    self.state.body.expr(id),
                    Expr::Var { .. }
                        | Expr::Global(_)
                        | Expr::CallOp { .. }
                        | Expr::Call { .. }
                        | Expr::Tuple(_)
                        | Expr::Proj { .. }
                )
    }

    /// Returns the type of a call of an opaque operator. Only the annotation of a Let can state it.
    fn opaque_type(&self, id: ExprId) -> Option<TypeId> {
        let Expr::CallOp { op, .. } = self.state.body.expr(id) else { return None };
        if self.line.is_some() || !self.cx.ops.is_opaque(op) {
            return None;
        }
        let ty = self.state.body.ty(id);
        (!matches!(self.cx.types.get(ty), Type::Any | Type::Error)).then_some(ty)
    }

    /// Returns [`Printer::opaque_type`] of a node, unless the node prints as a number.
    fn hidden_type(&self, id: ExprId) -> Option<TypeId> {
        self.opaque_type(id).filter(|_| !self.is_shared(id))
    }

    /// Prints an expression as an operand, a condition or a tail.
    #[inline]
    pub(super) fn expr(&mut self, id: ExprId) {
        if self.is_shared(id) {
            return self.local(id);
        }
        let Some(ty) = self.opaque_type(id) else { return self.node(id) };
        self.out.text("{\n");
        self.out.deeper();
        self.tasks.push(Task::CloseBlock);
        self.typed_tail(id, ty);
    }

    /// Prints the value of a Let.
    pub(super) fn let_value(&mut self, id: ExprId, is_recursive: bool) {
        match self.state.body.expr(id) {
            _ if self.is_shared(id) => self.local(id),
            Expr::Lambda { .. } => self.lambda(id, is_recursive),
            _ => self.node(id),
        }
    }

    /// Prints a tail whose type only the annotation of a Let can state.
    fn typed_tail(&mut self, id: ExprId, ty: TypeId) {
        let number = self.names.number(&mut self.state.labels, &self.cx.names);
        self.out.indent();
        self.out.text("let %");
        self.out.number(number.into());
        self.out.text(": ");
        self.ty(ty);
        self.out.text(" = ");
        self.tasks.extend([Task::NumberedTail(number), Task::Text(";\n")]);
        self.node(id);
    }

    /// Prints the tail that names the Let before it.
    pub(super) fn numbered_tail(&mut self, number: u32) {
        self.out.indent();
        self.out.ascii(b'%');
        self.out.number(number.into());
        self.out.ascii(b'\n');
    }

    #[inline]
    fn node(&mut self, id: ExprId) {
        let body = self.state.body;
        match body.expr(id) {
            Expr::Var { .. } => self.local(id),
            Expr::Literal(l) => self.literals.print(&self.cx.literals, l, self.options.literals, &mut self.out),
            Expr::Global(g) => {
                self.out.ascii(b'@');
                self.out.name(self.cx.global_name(g));
            }
            Expr::Op(op) => self.op_name(op),
            Expr::None => self.out.text("none"),
            Expr::CallOp { op, operands, attrs } => {
                self.op_name(op);
                self.out.ascii(b'(');
                self.operands(operands, 0, Some(attrs));
            }
            Expr::Call { operands, attrs } => {
                let Some(&callee) = body.operands(operands).first() else { return self.out.text("none()") };
                let arguments = OperandList { start: operands.start + 1, len: operands.len - 1 };
                if self.word(callee) {
                    self.out.ascii(b'(');
                    return self.operands(arguments, 0, Some(attrs));
                }
                self.tasks.extend([Task::Operands { list: arguments, next: 0, attrs: Some(attrs) }, Task::Text("(")]);
                self.callee(callee);
            }
            Expr::Tuple(fields) => {
                self.out.ascii(b'(');
                self.operands(fields, 0, None);
            }
            Expr::Proj { tuple, index } => {
                if self.word(tuple) {
                    return self.field(index);
                }
                self.tasks.push(Task::Field(index));
                self.callee(tuple);
            }
            Expr::Let { .. } => self.open_block(id, Slot::tail_after(id)),
            Expr::If { cond, then_block, else_block } => {
                self.out.text("if (");
                self.tasks.extend([
                    Task::Block(else_block, Slot::tail_of(body, BlockKind::Else(id))),
                    Task::Text(" else "),
                    Task::Block(then_block, Slot::tail_of(body, BlockKind::Then(id))),
                    Task::Text(") "),
                    Task::Expr(cond),
                ]);
            }
            Expr::Lambda { .. } => self.lambda(id, false),
        }
    }

    /// Prints an expression that can be called or projected without parentheses and tasks. Returns
    /// false if it is not such an expression.
    fn word(&mut self, id: ExprId) -> bool {
        let is_word = match self.state.body.expr(id) {
            Expr::Var { .. } | Expr::Global(_) => true,
            _ => self.is_shared(id),
        };
        if is_word {
            self.expr(id);
        }
        is_word
    }

    /// Prints an expression that is called or projected.
    fn callee(&mut self, id: ExprId) {
        if !self.is_callee(id) {
            self.out.ascii(b'(');
            self.tasks.push(Task::Text(")"));
        }
        self.tasks.push(Task::Expr(id));
    }

    /// Prints `.0`.
    pub(super) fn field(&mut self, index: u32) {
        self.out.ascii(b'.');
        self.out.number(index.into());
    }

    /// Prints the operands from `next` on, then the attributes of a call, then the closing text.
    #[inline]
    pub(super) fn operands(&mut self, list: OperandList, next: u32, attrs: Option<AttrsId>) {
        let body = self.state.body;
        for i in next as usize..list.len() {
            let o = body.operand(list, i);
            self.out.comma(i);
            if body.expr(o).is_atom() {
                self.node(o);
            } else if self.is_shared(o) {
                self.local(o);
            } else {
                self.tasks.extend([Task::Operands { list, next: i as u32 + 1, attrs }, Task::Expr(o)]);
                return;
            }
        }
        match attrs {
            Some(attrs) => self.named_attrs(self.cx.attrs.list(attrs), !list.is_empty(), ")"),
            None => self.out.text(if list.len() == 1 { ",)" } else { ")" }),
        }
    }
}
