//! Expressions: the machine's frames and states.

use super::statements::Block;
use super::{KeyValue, Parsed, Parser, SourceRange};
use crate::core::entity::{AttrId, AttrsId, ExprId, GlobalId, NameId, OpId, TypeId};
use crate::core::expr::{Expr, OperandList, VarId};
use crate::report::diagnostic::Diagnostic;
use crate::report::suggest::did_you_mean;
use crate::tables::dtype::DType;
use crate::text::lexer::{Kind, Token};

/// A construct that is being read. The stack has the innermost last.
pub(super) enum Frame {
    /// `{` …
    Block(Block),
    /// `let %x =` …
    Let(LetHead),
    /// `%x =` …
    Graph { name: NameId, meta: Option<AttrsId> },
    /// A call. Its operands and attributes so far are on the parser's stacks from these indices on.
    Call { callee: Callee, start: u32, operands: u32, key_values: u32 },
    /// `(` and an expression that may turn out to be the first field of a tuple.
    Paren { start: u32 },
    /// `(a,` …
    Tuple { start: u32, operands: u32 },
    /// `if (` …
    Condition { start: u32 },
    /// `if (c) {` …
    Then { start: u32, cond: ExprId },
    /// `if (c) { … } else {` …
    Else { start: u32, cond: ExprId, then_block: ExprId },
    /// The signature of a `def`, `declare` or `fn`, at its attributes. The rest is on the parser's
    /// stack of heads.
    Signature,
    /// The block of a function. The rest is on the parser's stack of heads.
    Function,
    /// `KEY =` …
    Key { key: NameId, place: SourceRange },
    /// `[` …, of an attribute list.
    List { elements: u32 },
    /// `#[` … before a binding or an item, or `#![` …
    Meta { key_values: u32 },
}

/// The target of a call.
#[derive(Copy, Clone)]
pub(super) enum Callee {
    Op(OpId),
    /// A function value: the first of the operands.
    Value,
    /// An unknown operator, for which an error was reported.
    Unknown,
}

/// A `let` up to its value.
#[derive(Copy, Clone)]
pub(super) struct LetHead {
    pub(super) name: NameId,
    pub(super) start: u32,
    /// The start of its name.
    pub(super) name_start: u32,
    pub(super) annotation: Option<TypeId>,
    /// The start of an annotation that names a symbol which only the value can bind.
    pub(super) later: Option<u32>,
    /// The variable, if it was made before the value: the value is a `fn`, which may name it.
    pub(super) var: Option<VarId>,
    pub(super) meta: Option<AttrsId>,
}

/// The next step of the machine.
#[derive(Copy, Clone)]
pub(super) enum State {
    /// Read a statement or the tail of the block on top of the stack.
    Statement,
    /// Read an expression.
    Expression,
    /// Continue after an expression with this start; arguments or `.INT` may follow.
    Value(ExprId, u32),
    /// Hand an expression to the frame that it is part of.
    Deliver(ExprId),
    /// Read the next argument of the call on top of the stack, or its end.
    Argument,
    /// Read an attribute value.
    Attribute,
    /// Hand an attribute value to the frame that it is part of.
    AttributeValue(AttrId),
    /// Read `KEY = attr`, or the end of the list that is on top of the stack.
    KeyValue,
    /// Nothing is left to be read.
    Done,
}

impl<'s> Parser<'s, '_> {
    /// Reads a primary expression, without the arguments and projections that may follow it.
    pub(super) fn expression(&mut self) -> Parsed<State> {
        let tok = self.tok;
        let start = tok.start();
        match tok.kind {
            Kind::Local => {
                self.next();
                let name = self.name(tok);
                Ok(State::Value(self.local(name, tok), start))
            }
            Kind::Word if !self.at_literal() => {
                self.next();
                let op = self.op_of(self.slice(tok), tok.into());
                self.operator(op, start)
            }
            Kind::Word | Kind::Number | Kind::Minus | Kind::True | Kind::False | Kind::Dense | Kind::Str => {
                let (literal, ty) = self.literal()?;
                Ok(State::Value(self.body.literal(literal, ty), start))
            }
            Kind::Global => {
                self.next();
                let id = self.global(tok);
                Ok(State::Value(id, start))
            }
            Kind::LParen => {
                self.next();
                if self.eat(Kind::RParen) {
                    let ty = self.cx.types.unit();
                    let id = self.body.push(Expr::Tuple(OperandList::EMPTY), ty, Some(start));
                    return Ok(State::Value(id, start));
                }
                self.frames.push(Frame::Paren { start });
                Ok(State::Expression)
            }
            Kind::LBrace => {
                self.next();
                self.open_block(start);
                Ok(State::Statement)
            }
            Kind::Fn => self.lambda(start, None),
            Kind::If => {
                self.next();
                self.expect(Kind::LParen)?;
                self.frames.push(Frame::Condition { start });
                Ok(State::Expression)
            }
            Kind::None => {
                self.next();
                let ty = self.cx.types.any();
                let id = self.body.none(ty);
                Ok(State::Value(id, start))
            }
            Kind::Op => {
                self.next();
                let op = self.quoted_op()?;
                self.operator(op, start)
            }
            Kind::Let => Err(self.unexpected_help("an expression", "bindings stand in a block: `{ let %x = …; %x }`")),
            _ => Err(self.unexpected("an expression")),
        }
    }

    /// Returns the operator with a name; `None` after an error.
    #[inline]
    pub(super) fn op_of(&mut self, name: &'s str, place: SourceRange) -> Option<OpId> {
        for &(known, op) in &self.ops {
            if known == name {
                return Some(op);
            }
        }
        let op = self.resolve_op(name, place)?;
        if self.ops.len() >= 8 {
            self.ops.remove(0);
        }
        self.ops.push((name, op));
        Some(op)
    }

    pub(super) fn resolve_op(&mut self, name: &str, place: SourceRange) -> Option<OpId> {
        let error = match self.cx.ops.resolve(name) {
            Ok(op) => return Some(op),
            Err(error) => error,
        };
        let help = error.help.or_else(|| match name.parse::<DType>() {
            Ok(_) => Some("this names an element type".to_string()),
            Err(()) => did_you_mean(name, DType::ALL.iter().map(|d| d.name()))
                .map(|near| format!("did you mean the element type `{near}`?")),
        });
        self.error(Diagnostic { help, ..Diagnostic::error(error.message).at(place.range()) });
        None
    }

    /// Reads the string after `op`. Returns the operator with that name; `None` after an error.
    pub(super) fn quoted_op(&mut self) -> Parsed<Option<OpId>> {
        let tok = self.expect(Kind::Str)?;
        let name = self.text_of(tok);
        Ok(self.resolve_op(&name, tok.into()))
    }

    /// Continues after the name of an operator: begins a call of it, or takes the operator as a
    /// value.
    fn operator(&mut self, op: Option<OpId>, start: u32) -> Parsed<State> {
        if self.tok.kind == Kind::LParen {
            self.next();
            let frame = self.call(op.map_or(Callee::Unknown, Callee::Op), start);
            self.frames.push(frame);
            return Ok(State::Argument);
        }
        let id = match op {
            Some(op) => {
                let ty = self.cx.types.any();
                self.body.op(op, ty)
            }
            None => self.error_expr(),
        };
        Ok(State::Value(id, start))
    }

    /// Returns the frame of a call whose operands and attributes go on the stacks from here on.
    fn call(&self, callee: Callee, start: u32) -> Frame {
        Frame::Call { callee, start, operands: self.operands.len() as u32, key_values: self.key_values.len() as u32 }
    }

    /// Returns the node of a global that was read.
    fn global(&mut self, tok: Token) -> ExprId {
        let global = self.global_name(tok);
        let before = self.body.len();
        let ty = self.cx.types.error();
        let id = self.body.global(global, ty);
        if self.body.len() > before {
            self.typed = false;
            self.global_uses.push((global, tok.into()));
        }
        id
    }

    /// Returns the global with the name in a token.
    pub(super) fn global_name(&mut self, tok: Token) -> GlobalId {
        let name = self.name(tok);
        self.cx.globals.intern(name)
    }

    /// Continues after a primary expression: with arguments, projections, or the frame that it is
    /// part of.
    pub(super) fn value(&mut self, mut id: ExprId, start: u32) -> Parsed<State> {
        loop {
            match self.tok.kind {
                Kind::LParen => {
                    self.next();
                    let frame = self.call(Callee::Value, start);
                    self.frames.push(frame);
                    self.operands.push(id);
                    return Ok(State::Argument);
                }
                Kind::Dot => {
                    id = match self.field()? {
                        Some(index) => self.node(Expr::Proj { tuple: id, index }, start),
                        None => self.error_expr(),
                    };
                }
                _ => return self.deliver(id),
            }
        }
    }

    /// Reads `.INT`. Returns `None`, after an error, if no field has the number.
    pub(super) fn field(&mut self) -> Parsed<Option<u32>> {
        let digits = self.lexer.digits();
        let text = self.slice(digits);
        if text.is_empty() {
            return Err(self.error_help(self.tok, "expected the number of a field after `.`", "such as `%x.0`"));
        }
        let index = text.parse().ok();
        if index.is_none() {
            self.error_at(digits, format!("no tuple has a field {text}"));
        }
        self.tok = digits;
        self.next();
        Ok(index)
    }

    /// Hands a complete expression to the frame that it is part of.
    pub(super) fn deliver(&mut self, id: ExprId) -> Parsed<State> {
        let Some(frame) = self.frames.last_mut() else { return Ok(State::Done) };
        match frame {
            // Operands of calls.
            Frame::Call { .. } => {
                self.operands.push(id);
                if self.comma_or(Kind::RParen)? {
                    return Ok(State::Argument);
                }
                self.finish_call()
            }
            // Values of bindings, and tails.
            Frame::Let(_) | Frame::Graph { .. } => {
                self.expect_or(Kind::Semicolon, "a binding ends with `;`")?;
                match self.frames.pop() {
                    Some(Frame::Let(head)) => self.finish_let(head, id),
                    Some(Frame::Graph { name, meta }) => self.finish_graph_binding(name, meta, id),
                    _ => {}
                }
                Ok(State::Statement)
            }
            Frame::Block(_) => self.tail(id),
            // Parentheses, which may turn out to be a tuple.
            &mut Frame::Paren { start } => {
                if self.eat(Kind::Comma) {
                    let operands = self.operands.len() as u32;
                    self.operands.push(id);
                    self.frames.pop();
                    self.frames.push(Frame::Tuple { start, operands });
                    if self.tok.kind != Kind::RParen {
                        return Ok(State::Expression);
                    }
                    return self.finish_tuple();
                }
                if self.tok.kind != Kind::RParen {
                    return Err(self.unexpected("`,` or `)`"));
                }
                self.next();
                self.frames.pop();
                Ok(State::Value(id, start))
            }
            Frame::Tuple { .. } => {
                self.operands.push(id);
                if self.comma_or(Kind::RParen)? {
                    return Ok(State::Expression);
                }
                self.finish_tuple()
            }
            // Parts of an `if`.
            &mut Frame::Condition { start } => {
                self.expect(Kind::RParen)?;
                let brace = self.expect(Kind::LBrace)?;
                self.frames.pop();
                self.frames.push(Frame::Then { start, cond: id });
                self.open_block(brace.start());
                Ok(State::Statement)
            }
            &mut Frame::Then { start, cond } => {
                self.expect_or(Kind::Else, "an `if` is an expression and has both branches")?;
                let help = "branches are blocks: `else { if (…) { … } else { … } }`";
                let brace = self.expect_or(Kind::LBrace, help)?;
                self.frames.pop();
                self.frames.push(Frame::Else { start, cond, then_block: id });
                self.open_block(brace.start());
                Ok(State::Statement)
            }
            &mut Frame::Else { start, cond, then_block } => {
                self.frames.pop();
                let id = self.node(Expr::If { cond, then_block, else_block: id }, start);
                Ok(State::Deliver(id))
            }
            // Bodies of functions.
            Frame::Function => {
                self.frames.pop();
                Ok(self.finish_function(id))
            }
            Frame::Signature | Frame::Key { .. } | Frame::List { .. } | Frame::Meta { .. } => {
                // In these frames, only attribute values are read.
                Err(self.unexpected("an attribute value"))
            }
        }
    }

    /// Reads the next argument of a call. Atoms are read in a loop.
    pub(super) fn argument(&mut self) -> Parsed<State> {
        loop {
            let tok = self.tok;
            match tok.kind {
                Kind::Local => {
                    self.next();
                    let name = self.name(tok);
                    let id = self.local(name, tok);
                    match self.tok.kind {
                        Kind::Comma => {
                            self.operands.push(id);
                            self.next();
                        }
                        Kind::RParen => {
                            self.operands.push(id);
                            return self.finish_call();
                        }
                        _ => return self.value(id, tok.start()),
                    }
                }
                Kind::RParen => return self.finish_call(),
                _ if self.at_key() => return self.key_value(),
                _ => return Ok(State::Expression),
            }
        }
    }

    /// Reads the `)` of a call and makes its node.
    pub(super) fn finish_call(&mut self) -> Parsed<State> {
        self.expect(Kind::RParen)?;
        let Some(Frame::Call { callee, start, operands, key_values }) = self.frames.pop() else {
            return Err(self.unexpected("an expression"));
        };
        let id = self.make_call(callee, start, operands as usize, key_values);
        Ok(State::Value(id, start))
    }

    /// Reads the call of an operator that is the value of a `let`. Usually all operands are atoms.
    /// If one is not, or if there are attributes, pushes the frames for what was read so far and
    /// returns the next state.
    #[inline]
    pub(super) fn call_of_atoms(&mut self, head: LetHead) -> Parsed<Result<(ExprId, u32), State>> {
        let name = self.tok;
        let start = name.start();
        self.next();
        let op = self.op_of(self.slice(name), name.into());
        if self.tok.kind != Kind::LParen {
            self.frames.push(Frame::Let(head));
            return self.operator(op, start).map(Err);
        }
        self.next();
        let operands = self.operands.len();
        let key_values = self.key_values.len() as u32;
        let callee = op.map_or(Callee::Unknown, Callee::Op);
        let frame = Frame::Call { callee, start, operands: operands as u32, key_values };
        let rest = loop {
            let tok = self.tok;
            let id = match tok.kind {
                Kind::Local => {
                    self.next();
                    let name = self.name(tok);
                    self.local(name, tok)
                }
                Kind::Number | Kind::Dense => match self.literal() {
                    Ok((literal, ty)) => self.body.literal(literal, ty),
                    Err(reported) => break Some(Err(reported)),
                },
                Kind::RParen => break None,
                _ => break Some(Ok(State::Argument)),
            };
            match self.tok.kind {
                Kind::Comma => {
                    self.operands.push(id);
                    self.next();
                }
                Kind::RParen => {
                    self.operands.push(id);
                    break None;
                }
                _ => break Some(Ok(State::Value(id, tok.start()))),
            }
        };
        if let Some(rest) = rest {
            self.frames.extend([Frame::Let(head), frame]);
            return rest.map(Err);
        }
        self.next();
        Ok(Ok((self.make_call(callee, start, operands, key_values), start)))
    }

    /// Makes a call of the operands and attributes on the stacks from these indices on.
    #[inline]
    fn make_call(&mut self, callee: Callee, start: u32, operands: usize, key_values: u32) -> ExprId {
        let mut attrs = self.cx.attrs.empty();
        if self.key_values.len() > key_values as usize {
            attrs = self.take_key_values(key_values);
        }
        let id = match callee {
            Callee::Op(op) => match self.cx.check_op_attrs(op, attrs) {
                Ok(attrs) => {
                    let given = self.cx.given_operands(&self.body, op, &self.operands[operands..]);
                    let list = self.body.push_operands(given);
                    let expr = Expr::CallOp { op, operands: list, attrs };
                    if self.cx.ops.is_opaque(op) {
                        let any = self.cx.types.any();
                        self.body.push(expr, any, Some(start))
                    } else {
                        self.node(expr, start)
                    }
                }
                Err((e, key)) => {
                    self.attrs_error(e, key, start);
                    self.error_expr()
                }
            },
            Callee::Value => {
                let list = self.body.push_operands(&self.operands[operands..]);
                self.node(Expr::Call { operands: list, attrs }, start)
            }
            Callee::Unknown => self.error_expr(),
        };
        self.operands.truncate(operands);
        self.key_values.truncate(key_values as usize);
        id
    }

    /// Reports an error in the attributes of a call, at the attribute if `key` names one.
    #[cold]
    fn attrs_error(&mut self, e: crate::ops::op::TypeError, key: Option<String>, start: u32) {
        let names = &self.cx.names;
        let found = key.and_then(|key| self.key_values.iter().rev().find(|kv| names.get(kv.key) == key));
        let place = found.map_or(self.since(start), |&KeyValue { place, .. }| place);
        self.error(Diagnostic { help: e.help, ..Diagnostic::error(e.message).at(place.range()) });
    }

    /// Reads the `)` of a tuple and makes its node.
    fn finish_tuple(&mut self) -> Parsed<State> {
        self.expect(Kind::RParen)?;
        let Some(Frame::Tuple { start, operands }) = self.frames.pop() else {
            return Err(self.unexpected("an expression"));
        };
        let fields = self.body.push_operands(&self.operands[operands as usize..]);
        self.operands.truncate(operands as usize);
        Ok(State::Value(self.node(Expr::Tuple(fields), start), start))
    }
}
