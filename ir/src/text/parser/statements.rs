//! Blocks: bindings, dataflow regions and the tail.

use super::expressions::{Frame, LetHead, State};
use super::scope::{LocalKind, Mark, UnknownSymbols};
use super::signatures::Recursive;
use super::{Parsed, Parser, SourceRange};
use crate::core::entity::{AttrsId, EntityId, ExprId, NameId, TypeId};
use crate::core::expr::{Expr, LetFlags, VarFlags};
use crate::report::diagnostic::Diagnostic;
use crate::text::lexer::Kind;

/// A block that is being read.
pub(super) struct Block {
    pub(super) start: u32,
    first: Option<ExprId>,
    last: Option<ExprId>,
    pub(super) mark: Mark,
    region: Option<Region>,
}

/// A dataflow region that is being read.
struct Region {
    start: u32,
    /// True if no binding of the region was read yet.
    empty: bool,
    mark: Mark,
    /// The number of nodes before the region.
    nodes: u32,
}

impl Parser<'_, '_> {
    pub(super) fn open_block(&mut self, start: u32) {
        let mark = self.scopes.mark();
        self.frames.push(Frame::Block(Block { start, first: None, last: None, mark, region: None }));
    }

    /// Returns the block on top of the stack.
    fn block(&mut self) -> Option<&mut Block> {
        match self.frames.last_mut() {
            Some(Frame::Block(block)) => Some(block),
            _ => None,
        }
    }

    /// Reads a statement, or begins the tail.
    pub(super) fn statement(&mut self) -> Parsed<State> {
        let tok = self.tok;
        let region = self.block().is_some_and(|b| b.region.is_some());
        match tok.kind {
            Kind::Let => {
                self.next();
                self.let_binding(tok.start())
            }
            Kind::Local => {
                let after = self.peek().kind;
                if after == Kind::Equal {
                    let name = self.name(tok);
                    self.next();
                    self.next();
                    let meta = self.meta.take();
                    self.frames.push(Frame::Graph { name, meta });
                    return Ok(State::Expression);
                }
                self.tail_expression(region)
            }
            Kind::Meta => {
                self.next();
                self.frames.push(Frame::Meta { key_values: self.key_values.len() as u32 });
                Ok(State::KeyValue)
            }
            Kind::Dataflow if region => Err(self.error_at(tok, "a dataflow region cannot hold another")),
            Kind::Dataflow => {
                self.no_meta("a region");
                self.next();
                self.expect(Kind::LBrace)?;
                let mark = self.scopes.mark();
                let nodes = self.body.len() as u32;
                if let Some(block) = self.block() {
                    block.region = Some(Region { start: tok.start(), empty: true, mark, nodes });
                }
                Ok(State::Statement)
            }
            Kind::Output if region => self.output(),
            Kind::RBrace if region => {
                self.error_help(
                    tok,
                    "the dataflow region has no `output(…)`",
                    "end it with `output(%x)`, or `output()`",
                );
                self.next();
                self.end_region(&[]);
                Ok(State::Statement)
            }
            Kind::RBrace => {
                self.error_help(tok, "the block has no result", "a block ends with an expression, such as `()`");
                let id = self.error_expr();
                self.tail(id)
            }
            _ => self.tail_expression(region),
        }
    }

    fn tail_expression(&mut self, region: bool) -> Parsed<State> {
        if region {
            return Err(self.unexpected_help(
                "a binding or `output(…)`",
                "a dataflow region holds bindings and ends with `output(%x, …)`",
            ));
        }
        self.no_meta("the result of a block");
        Ok(State::Expression)
    }

    /// Reports an error if a `#[…]` was read: it belongs to a binding or an item, not to `what`.
    fn no_meta(&mut self, what: &str) {
        if self.meta.take().is_some() {
            self.error_at(self.tok, format!("`#[…]` belongs to a binding or an item, not to {what}"));
        }
    }

    /// Reads a `let` after its keyword. If its value is a call of an operator on atoms, which is
    /// the usual case, no frame is pushed.
    #[inline]
    fn let_binding(&mut self, start: u32) -> Parsed<State> {
        let tok = self.expect_or(Kind::Local, "a binding is `let %x = …;`")?;
        let name = self.name(tok);
        let meta = self.meta.take();
        let mut head = LetHead { name, start, name_start: tok.start(), annotation: None, later: None, var: None, meta };
        if self.tok.kind != Kind::Equal
            && let Err(reported) = self.annotation(&mut head)
        {
            // The value of a broken statement is not checked against its annotation.
            self.frames.push(Frame::Let(LetHead { annotation: None, later: None, ..head }));
            return Err(reported);
        }
        self.next();
        let (value, value_start) = match self.tok.kind {
            Kind::Word if !self.at_literal() => match self.call_of_atoms(head)? {
                Ok(value) => value,
                Err(state) => return Ok(state),
            },
            Kind::Fn => return self.let_function(head),
            _ => {
                self.frames.push(Frame::Let(head));
                return Ok(State::Expression);
            }
        };
        if self.tok.kind != Kind::Semicolon {
            self.frames.push(Frame::Let(head));
            return Ok(State::Value(value, value_start));
        }
        self.next();
        self.finish_let(head, value);
        Ok(State::Statement)
    }

    /// Reads the annotation of a `let`, up to its `=`.
    fn annotation(&mut self, head: &mut LetHead) -> Parsed<()> {
        let wanted = if self.tok.kind == Kind::Colon { "`=`" } else { "`:` or `=`" };
        if self.eat(Kind::Colon) {
            let at = self.tok.start();
            let errors = self.diagnostics.len();
            self.unknown_symbols = UnknownSymbols::Later;
            let annotation = self.parse_type();
            match std::mem::replace(&mut self.unknown_symbols, UnknownSymbols::Error) {
                UnknownSymbols::Found => head.later = Some(at),
                _ => head.annotation = Some(annotation?).filter(|_| self.diagnostics.len() == errors),
            }
        }
        if self.tok.kind != Kind::Equal {
            return Err(self.unexpected_help(wanted, "a binding is `let %x = …;`"));
        }
        Ok(())
    }

    /// Begins the `fn` that is the value of a `let`: makes the variable, which the block of the
    /// `fn` may name, and reads up to the attributes of the signature.
    fn let_function(&mut self, mut head: LetHead) -> Parsed<State> {
        let flags = self.let_var_flags();
        let ty = head.annotation.unwrap_or(self.cx.types.error());
        let var = self.new_var(head.name, flags, ty, head.name_start);
        head.var = Some(var);
        self.frames.push(Frame::Let(head));
        self.lambda(self.tok.start(), Some(Recursive { name: head.name, var, typed: head.annotation.is_some() }))
    }

    fn let_var_flags(&mut self) -> VarFlags {
        match self.block() {
            Some(Block { region: Some(_), .. }) => VarFlags::DATAFLOW,
            _ => VarFlags::PLAIN,
        }
    }

    /// Reads the annotation of a `let` again after its value, and returns to the current place.
    #[cold]
    fn later_annotation(&mut self, at: u32) -> Option<TypeId> {
        let here = self.tok.start();
        self.seek(at);
        let errors = self.diagnostics.len();
        let annotation = self.parse_type().ok();
        if !self.stopped {
            self.seek(here);
        }
        annotation.filter(|_| self.diagnostics.len() == errors)
    }

    /// Makes the Let of a binding after its value was read. The block is on top of the stack.
    #[inline]
    pub(super) fn finish_let(&mut self, mut head: LetHead, value: ExprId) {
        if let Some(at) = head.later {
            head.annotation = self.later_annotation(at);
            if let (Some(var), Some(ty)) = (head.var, head.annotation) {
                self.body.set_type(var.expr(), ty);
            }
        }
        let error = self.cx.types.error();
        let found = if self.typed { self.body.type_of(value) } else { error };
        let Some(Frame::Block(block)) = self.frames.last_mut() else { return };
        let (var_flags, flags) = match &mut block.region {
            None => (VarFlags::PLAIN, LetFlags::PLAIN),
            Some(region) => {
                let first = std::mem::replace(&mut region.empty, false);
                (VarFlags::DATAFLOW, if first { LetFlags::REGION_START } else { LetFlags::DATAFLOW })
            }
        };
        if let Some(annotation) = head.annotation
            && let Expr::CallOp { op, .. } = self.body.expr(value)
            && self.cx.ops.is_opaque(op)
        {
            self.body.set_type(value, annotation);
        }
        let var = match head.var {
            Some(var) => var,
            None => {
                let ty = head.annotation.unwrap_or(found);
                self.typed &= ty == found;
                self.body.push_var(Some(head.name), var_flags, ty, Some(head.name_start))
            }
        };
        // Until the block continues or ends, the body of the Let is a placeholder: the variable.
        let link = self.body.push(Expr::Let { var, value, body: var.expr(), flags }, error, Some(head.start));
        match block.last.replace(link) {
            Some(last) => self.body.set_let_body(last, link),
            None => block.first = Some(link),
        }
        if let Some(meta) = head.meta {
            self.body.set_meta(var.expr(), Some(meta));
        }
        self.scopes.declare(head.name, var.expr(), LocalKind::Plain);
    }

    /// Gives a name to a graph node.
    pub(super) fn finish_graph_binding(&mut self, name: NameId, meta: Option<AttrsId>, value: ExprId) {
        let expr = self.body.expr(value);
        if meta.is_some() && !expr.is_atom() {
            self.body.set_meta(value, meta);
        }
        let kind = if expr.binds() { LocalKind::Once } else { LocalKind::Plain };
        self.scopes.declare(name, value, kind);
    }

    /// Handles the tail of the block on top of the stack, after it was read.
    pub(super) fn tail(&mut self, id: ExprId) -> Parsed<State> {
        if self.tok.kind == Kind::Semicolon {
            self.unexpected_help(
                "`}`",
                "the result of a block has no `;`; to evaluate and go on, write `let %name = …;`",
            );
            self.next();
            if self.tok.kind != Kind::RBrace {
                return Ok(State::Statement);
            }
        }
        self.expect_or(Kind::RBrace, "a block ends with one expression")?;
        self.close_block(id)
    }

    /// Closes the block on top of the stack after its `}` was read.
    pub(super) fn close_block(&mut self, tail: ExprId) -> Parsed<State> {
        let Some(Frame::Block(block)) = self.frames.pop() else { return Err(self.unexpected("an expression")) };
        let id = match (block.first, block.last) {
            (Some(first), Some(last)) => {
                self.body.set_let_body(last, tail);
                first
            }
            _ => tail,
        };
        let owned = matches!(self.frames.last(), Some(Frame::Then { .. } | Frame::Else { .. } | Frame::Function));
        match self.frames.as_slice() {
            // Nothing outside this function sees its names, so they need not be undone.
            [Frame::Function] => self.scopes.forget(block.mark),
            _ if owned => self.scopes.undo(block.mark),
            // A block that is a value is evaluated before the code that follows it, so the symbols
            // that it binds stay visible there.
            _ => self.scopes.undo_locals(block.mark),
        }
        Ok(if owned { State::Deliver(id) } else { State::Value(id, block.start) })
    }

    // ---- Dataflow ----

    /// Reads `output(…)` and the end of the region.
    fn output(&mut self) -> Parsed<State> {
        self.no_meta("`output`");
        self.next();
        self.expect(Kind::LParen)?;
        let mut outputs: Vec<(NameId, ExprId)> = Vec::new();
        self.list(Kind::RParen, |p| {
            let tok = p.expect(Kind::Local)?;
            let name = p.name(tok);
            let id = p.local(name, tok);
            p.check_output(name, id, tok.into());
            outputs.push((name, id));
            Ok(())
        })?;
        self.eat(Kind::Semicolon);
        self.expect_or(Kind::RBrace, "`output(…)` is the last statement of a dataflow region")?;
        self.end_region(&outputs);
        Ok(State::Statement)
    }

    fn check_output(&mut self, name: NameId, id: ExprId, place: SourceRange) {
        let nodes = self.block().and_then(|b| b.region.as_ref()).map_or(0, |r| r.nodes);
        let inside = id.index() >= nodes as usize;
        let error = match self.body.expr(id) {
            Expr::Var { name: None, .. } => return,
            Expr::Var { name: own, flags } if inside && flags.is_dataflow() => {
                self.body.set_expr(id, Expr::Var { name: own, flags: VarFlags::PLAIN });
                return;
            }
            Expr::Var { .. } if !inside => "is bound outside the region, and visible after it anyway",
            Expr::Var { .. } => "is named as an output twice",
            _ => "is a graph node; only a `let` of the region can be an output",
        };
        let text = self.cx.names.get(name).to_string();
        self.error_at(place, format!("`%{text}` {error}"));
    }

    /// Ends the region of the block on top of the stack. Its variables are no longer visible,
    /// except the outputs, whose dataflow flag was removed when they were named.
    pub(super) fn end_region(&mut self, outputs: &[(NameId, ExprId)]) {
        let Some(region) = self.block().and_then(|b| b.region.take()) else { return };
        self.scopes.undo_locals(region.mark);
        for &(name, id) in outputs {
            self.scopes.declare(name, id, LocalKind::Plain);
        }
    }

    /// Returns the start of the dataflow region that is open in the block on top of the stack.
    pub(super) fn open_region(&mut self) -> Option<u32> {
        self.block().and_then(|b| b.region.as_ref()).map(|r| r.start)
    }

    // ---- Errors ----

    /// Reports two declarations of one name.
    pub(super) fn duplicate(&mut self, what: &str, place: SourceRange, first: SourceRange) {
        self.error(
            Diagnostic::error(format!("{what} is defined twice"))
                .at(place.range())
                .with_related(first.range(), "first defined here"),
        );
    }
}
