//! Signatures, and the functions, declarations and `fn`s that they belong to.

use std::sync::Arc;

use smallvec::SmallVec;

use super::expressions::{Frame, State};
use super::items::Item;
use super::scope::{LocalKind, Mark};
use super::{Parsed, Parser, SourceRange};
use crate::core::body::Body;
use crate::core::entity::{AttrsId, ExprId, GlobalId, LambdaId, NameId, SideTable, TypeId};
use crate::core::expr::{Expr, VarFlags, VarId};
use crate::core::function::{Function, FunctionKind, Visibility};
use crate::tables::attrs::Attr;
use crate::text::lexer::Kind;

/// A signature whose function, declaration or `fn` is not finished.
pub(super) struct OpenSignature {
    kind: HeadKind,
    start: u32,
    mark: Mark,
    /// The number of the enclosing function.
    owner: u32,
    /// The numbers of parameters, attributes and symbols of `fn`s on the stacks before the
    /// signature.
    params: u32,
    key_values: u32,
    lambda_symbols: u32,
    attrs: AttrsId,
    ret: Option<TypeId>,
}

enum HeadKind {
    Item {
        global: GlobalId,
        visibility: Visibility,
        kind: FunctionKind,
        meta: AttrsId,
    },
    Lambda {
        recursive: Option<Recursive>,
        lambda: Option<LambdaId>,
    },
    /// A `fn` that is an attribute value, with what belongs to the enclosing body, whose reading is
    /// suspended.
    FunctionAttr(Box<(Body, SideTable<ExprId, bool>)>),
}

/// The variable that a `fn` is bound to, which its block may name.
#[derive(Copy, Clone)]
pub(super) struct Recursive {
    pub(super) name: NameId,
    pub(super) var: VarId,
    /// True if the binding states the type of the variable.
    pub(super) typed: bool,
}

impl Parser<'_, '_> {
    /// Begins a `fn` expression: reads up to the attributes of its signature.
    pub(super) fn lambda(&mut self, start: u32, recursive: Option<Recursive>) -> Parsed<State> {
        self.next();
        self.begin_signature(HeadKind::Lambda { recursive, lambda: None }, start)
    }

    /// Begins a `fn` that is an attribute value, a closed function: reads up to the attributes of
    /// its signature.
    pub(super) fn function_attr(&mut self) -> Parsed<State> {
        let start = self.tok.start();
        self.next();
        let around = std::mem::replace(&mut self.body, Body::new(&self.cx.types));
        let seen = std::mem::replace(&mut self.bindings_seen, SideTable::new(0, false));
        self.begin_signature(HeadKind::FunctionAttr(Box::new((around, seen))), start)
    }

    /// Begins a `def` or `declare`: reads up to the attributes of its signature.
    pub(super) fn function_item(&mut self) -> Parsed<State> {
        let start = self.tok.start();
        let definition = self.tok.kind == Kind::Def;
        self.next();
        let private = definition && self.eat(Kind::Private);
        let name = self.expect(Kind::Global)?;
        let global = self.global_name(name);
        let place = SourceRange::from(name);
        match self.definitions.get(&global) {
            Some(&first) => {
                let text = format!("`@{}`", self.cx.global_name(global));
                self.duplicate(&text, place, first);
            }
            None => {
                self.definitions.insert(global, place);
            }
        }
        self.body = Body::new(&self.cx.types);
        self.bindings_seen = SideTable::new(0, false);
        self.typed = true;
        self.reserve(start);
        let meta = self.meta.take().unwrap_or(self.cx.attrs.empty());
        let visibility = if private { Visibility::Private } else { Visibility::Public };
        let kind = if definition { FunctionKind::Definition } else { FunctionKind::Declaration };
        self.begin_signature(HeadKind::Item { global, visibility, kind, meta }, start)
    }

    /// Reserves space for the function that starts here. The first function may take all of the
    /// text; the others are assumed to be about as long as the previous one.
    fn reserve(&mut self, start: u32) {
        /// The least number of bytes of text for a node.
        const BYTES: usize = 20;
        let rest = self.text.len() - start as usize;
        let expected = if self.items.is_empty() { rest } else { rest.min(2 * self.last_length as usize) };
        self.body.reserve(expected / BYTES);
    }

    fn begin_signature(&mut self, kind: HeadKind, start: u32) -> Parsed<State> {
        let owner = match kind {
            HeadKind::Lambda { .. } => self.scopes.owner,
            HeadKind::Item { .. } | HeadKind::FunctionAttr(_) => self.scopes.begin_function(),
        };
        self.frames.push(Frame::Signature);
        self.heads.push(OpenSignature {
            kind,
            start,
            mark: self.scopes.mark(),
            owner,
            params: self.params.len() as u32,
            key_values: self.key_values.len() as u32,
            lambda_symbols: self.scopes.lambda_symbols.len() as u32,
            attrs: self.cx.attrs.empty(),
            ret: None,
        });
        self.expect(Kind::LParen)?;
        let params = self.binding_types(|p| p.parameters())?;
        for &(name, place, ty) in &params {
            let var = self.new_var(name, VarFlags::PLAIN, ty, place.start);
            self.params.push(var);
        }
        self.check_parameters(&params);
        Ok(State::KeyValue)
    }

    /// Reads `%x: TYPE, …` up to the attributes or the end of a signature.
    fn parameters(&mut self) -> Parsed<SmallVec<[(NameId, SourceRange, TypeId); 4]>> {
        let mut params = SmallVec::new();
        while self.tok.kind == Kind::Local {
            let tok = self.tok;
            let name = self.name(tok);
            self.next();
            self.expect_or(Kind::Colon, "parameters have types: `%x: Tensor[(8,), float32]`")?;
            let ty = self.parse_type()?;
            params.push((name, tok.into(), ty));
            if !self.comma_or(Kind::RParen)? {
                break;
            }
        }
        Ok(params)
    }

    fn check_parameters(&mut self, params: &[(NameId, SourceRange, TypeId)]) {
        if params.len() < 2 {
            return;
        }
        let mut seen = rustc_hash::FxHashMap::default();
        for &(name, place, _) in params {
            if let Some(&first) = seen.get(&name) {
                let text = format!("the parameter `%{}`", self.cx.names.get(name));
                self.duplicate(&text, place, first);
            } else {
                seen.insert(name, place);
            }
        }
    }

    /// Reads the `)` of a signature, whose frame is on top of the stack, and the stated result
    /// type.
    pub(super) fn finish_signature(&mut self) -> Parsed<State> {
        self.expect(Kind::RParen)?;
        let key_values = self.heads.last().map_or(0, |h| h.key_values);
        let attrs = self.take_key_values(key_values);
        self.key_values.truncate(key_values as usize);
        let ret = if self.eat(Kind::Arrow) { Some(self.parse_type()?) } else { None };
        let is_declaration =
            |h: &OpenSignature| matches!(h.kind, HeadKind::Item { kind: FunctionKind::Declaration, .. });
        let is_declaration = self.heads.last().is_some_and(is_declaration);
        let end = match self.tok.kind {
            _ if is_declaration => self.expect_or(Kind::Semicolon, "a declaration has no block")?,
            Kind::LBrace => self.expect(Kind::LBrace)?,
            _ => return Err(self.unexpected(if ret.is_some() { "`{`" } else { "`->` or `{`" })),
        };
        let Some(head) = self.heads.last_mut() else { return Err(self.unexpected("an item")) };
        (head.attrs, head.ret) = (attrs, ret);
        let params: SmallVec<[VarId; 8]> = self.params.drain(head.params as usize..).collect();
        if let HeadKind::Lambda { recursive, lambda } = &mut head.kind {
            *lambda = Some(self.body.push_lambda(&params, ret, attrs));
            if let Some(r) = *recursive {
                let kind = if ret.is_some() || r.typed { LocalKind::Plain } else { LocalKind::Untyped };
                self.scopes.declare(r.name, r.var.expr(), kind);
            }
        } else {
            self.body.set_params(params.to_vec());
        }
        self.frames.pop();
        if is_declaration {
            let root = self.body.root();
            return Ok(self.finish_function(root));
        }
        for &p in &params {
            if let Some(name) = self.body.var_name(p) {
                self.scopes.declare(name, p.expr(), LocalKind::Plain);
            }
        }
        self.frames.push(Frame::Function);
        self.open_block(end.start());
        Ok(State::Statement)
    }

    /// Pops the innermost head and restores what it changed: its names are not visible any more.
    fn pop_head(&mut self) -> Option<OpenSignature> {
        let head = self.heads.pop()?;
        self.scopes.undo(head.mark);
        self.scopes.owner = head.owner;
        self.scopes.lambda_symbols.truncate(head.lambda_symbols as usize);
        self.params.truncate(head.params as usize);
        self.key_values.truncate(head.key_values as usize);
        Some(head)
    }

    /// Finishes the function on top of the stack of heads, after its block was read, or, for a
    /// `declare`, its signature.
    pub(super) fn finish_function(&mut self, root: ExprId) -> State {
        let symbols = self.heads.last().map_or(0, |h| h.lambda_symbols);
        let own = self.scopes.lambda_symbols.split_off(symbols as usize);
        let Some(head) = self.pop_head() else { return State::Done };
        let start = head.start;
        // Makes a function of the body that was read, and restores the enclosing body.
        let function = |p: &mut Self, around: Body| {
            p.body.set_root(root);
            let body = std::mem::replace(&mut p.body, around);
            Function { body, ret: head.ret, span: Some(start), ..Function::new(&p.cx.types, head.attrs) }
        };
        match head.kind {
            HeadKind::Lambda { lambda, .. } => {
                let Some(lambda) = lambda else { return State::Deliver(root) };
                if !own.is_empty() {
                    self.body.set_lambda_symbols(lambda, own);
                }
                // The stated result type must be checked.
                self.typed = false;
                let ty = self.cx.types.error();
                State::Deliver(self.body.push(Expr::Lambda { lambda, body: root }, ty, Some(start)))
            }
            HeadKind::Item { global, visibility, kind, meta } => {
                let around = Body::new(&self.cx.types);
                let mut function = Function { visibility, kind, meta, ..function(self, around) };
                function.body.shrink();
                self.last_length = self.previous_end - start;
                self.items.push(Item { global, function, is_typed: self.typed });
                State::Done
            }
            HeadKind::FunctionAttr(around) => {
                let (around, seen) = *around;
                self.bindings_seen = seen;
                let function = function(self, around);
                let id = self.cx.function_attrs.push(Arc::new(function));
                State::AttributeValue(self.cx.attr(Attr::Function(id)))
            }
        }
    }

    /// Gives up a signature, or the function that it belongs to, after an error.
    pub(super) fn abandon_head(&mut self) {
        if let Some(OpenSignature { kind: HeadKind::FunctionAttr(around), .. }) = self.pop_head() {
            (self.body, self.bindings_seen) = *around;
        }
    }
}
