//! The parser of the text format.
//!
//! The parser is a machine with an explicit stack of frames ([`expressions`]), so that a program
//! may nest as deep as memory allows. Types and dimensions have small machines of their own
//! ([`types`], [`dims`]). Each node gets its type when it is made, if the types of its parts are
//! known. They are not known if they depend on other functions or if there is an error. In such a
//! function, and in a function with a stated type that must be checked,
//! [`infer_module`](crate::infer::module) finds all types afterwards.
//!
//! After a syntax error, the parser skips to the next `;`, `}` or item. After another error (an
//! unknown name, a number out of range), it continues with an expression of the error type, so that
//! the error is reported once.

mod attributes;
mod dims;
mod expressions;
mod items;
mod literals;
mod parallel;
mod recovery;
mod scope;
mod signatures;
pub(super) mod sketches;
mod statements;
mod types;

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::core::body::Body;
use crate::core::context::Context;
use crate::core::entity::{AttrId, AttrsId, ExprId, GlobalId, LiteralId, NameId, OpId, SideTable, TypeId};
use crate::core::expr::{Expr, VarFlags, VarId};
use crate::core::module::Module;
use crate::infer::infer_expr;
use crate::infer::module::infer_module_where;
use crate::ops::op::OpRegistry;
use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::Diagnostics;
use crate::report::source::Source;
use crate::tables::attrs::Attr;
use crate::text::lexer::{Kind, Lexer, Token, bad_token_message, unescape};
use crate::text::threads;
use expressions::{Frame, State};
use items::Item;
use literals::SplatType;
use scope::{NewSymbol, Scopes, UnknownSymbols};
use signatures::OpenSignature;
use types::TypeFrame;

/// The most errors that are reported for one text.
pub const MAX_ERRORS: usize = 20;

/// Reads a module and infers the types of all its expressions. The module keeps the source, in
/// which diagnostics show places; [`Module::set_source`] removes it.
///
/// # Errors
/// Up to [`MAX_ERRORS`] errors, in the order of the text. After an error, parsing continues where
/// it can.
pub fn parse_module(source: impl Into<Arc<Source>>, registry: Arc<OpRegistry>) -> Result<Module, Diagnostics> {
    read_module(source.into(), registry, None, 1)
}

/// Reads a module as [`parse_module`] does, on up to `threads` threads; 0 for as many as the
/// machine runs at once. The result is the same. This pays for a text with many functions, each of
/// which ends with a line that is `}`, as the printer writes it.
///
/// ```
/// use anfora_ir::{Source, parse_module, parse_module_on};
///
/// let function = |i| format!("def @f{i}(%x: float32) {{\n  let %y = exp(%x);\n  %y\n}}\n");
/// let text: String = (0..5000).map(function).collect();
/// let module = parse_module_on(2, Source::new("a", text.clone()), anfora_ops::standard())?;
/// let same = parse_module(Source::new("b", text), anfora_ops::standard())?;
/// assert_eq!(module.to_text(), same.to_text());
/// # Ok::<(), anfora_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// The errors of [`parse_module`].
pub fn parse_module_on(
    threads: usize,
    source: impl Into<Arc<Source>>,
    registry: Arc<OpRegistry>,
) -> Result<Module, Diagnostics> {
    read_module(source.into(), registry, None, threads::count(threads))
}

/// Reads the contents of a function's block, and returns a module with that function, `@main`.
/// `params` are parameters as in a signature (`%x: Tensor[(8,), float32], %y: int64`, or nothing).
/// Locals that nothing binds become further parameters of type float32, in the order of their first
/// uses.
///
/// ```
/// use anfora_ir::parse_fragment;
///
/// let module = parse_fragment(
///     "%x: Tensor[(4,), float32]",
///     "let %a = multiply(%x, %y); tanh(%a)",
///     anfora_ops::standard(),
/// )?;
/// let signature = "def @main(%x: Tensor[(4,), float32], %y: Tensor[(), float32])";
/// assert!(module.to_text().starts_with(signature));
/// # Ok::<(), anfora_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// The errors of [`parse_module`]. Their places are in the text of the whole module.
pub fn parse_fragment(params: &str, text: &str, registry: Arc<OpRegistry>) -> Result<Module, Diagnostics> {
    let text = format!("def @main({params}\n) {{\n{text}\n}}\n");
    read_module(Arc::new(Source::new("fragment", text)), registry, Some(FxHashMap::default()), 1)
}

fn read_module(
    source: Arc<Source>,
    registry: Arc<OpRegistry>,
    free_locals: Option<FxHashMap<NameId, ExprId>>,
    threads: usize,
) -> Result<Module, Diagnostics> {
    let mut module = Module::new(registry);
    let mut parser = match Parser::new(&mut module.cx, source.text()) {
        Ok(parser) => parser,
        Err(error) => return Err(Diagnostics::in_source(vec![*error], Some(source))),
    };
    parser.free_locals = free_locals;
    let attrs = parser.module_items(threads);
    let Parser { mut diagnostics, items, .. } = parser;
    module.set_attrs(attrs);
    let mut typed = FxHashSet::default();
    for Item { global, function, is_typed } in items {
        // A duplicate was reported when it was read.
        if let Ok(key) = module.add(global, function)
            && is_typed
        {
            typed.insert(key);
        }
    }
    module.cx.names.shrink();
    module.set_source(Some(source.clone()));
    diagnostics.extend(infer_module_where(&mut module, |key| !typed.contains(&key)));
    if diagnostics.is_empty() {
        return Ok(module);
    }
    diagnostics.sort_by_key(|d| d.span.as_ref().map_or(usize::MAX, |s| s.start));
    diagnostics.dedup_by(|a, b| a.span == b.span && a.message == b.message);
    diagnostics.truncate(MAX_ERRORS);
    Err(Diagnostics::in_source(diagnostics, Some(source)))
}

/// Reads a type. Each name in a dimension that no function type binds becomes a new symbol.
///
/// # Errors
/// If the text is not a type.
pub fn parse_type(cx: &mut Context, text: &str) -> Result<TypeId, Diagnostics> {
    let mut parser = Parser::new(cx, text).map_err(|e| *e)?;
    let ty = parser.binding_types(|p| p.parse_type());
    let ty = ty.and_then(|ty| parser.expect(Kind::End).map(|_| ty));
    parser.finish(ty, "type")
}

/// Reads an attribute value.
///
/// # Errors
/// If the text is not an attribute value.
pub fn parse_attr(cx: &mut Context, text: &str) -> Result<AttrId, Diagnostics> {
    let mut parser = Parser::new(cx, text).map_err(|e| *e)?;
    let attr = parser.run_attribute();
    let attr = attr.and_then(|attr| parser.expect(Kind::End).map(|_| attr));
    parser.finish(attr, "attribute")
}

/// Marks that a syntax error was reported and that the current construct cannot be read further.
#[derive(Copy, Clone, Debug)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// A range of bytes of the text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct SourceRange {
    start: u32,
    end: u32,
}

impl SourceRange {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl From<Token> for SourceRange {
    fn from(t: Token) -> SourceRange {
        SourceRange { start: t.start(), end: t.end() }
    }
}

/// A named attribute with the place of its name.
#[derive(Copy, Clone)]
struct KeyValue {
    key: NameId,
    place: SourceRange,
    value: AttrId,
}

/// An alias of a type or attribute.
#[derive(Copy, Clone)]
enum Alias {
    Type(TypeId),
    Attr(AttrId),
}

struct Parser<'s, 'c> {
    text: &'s str,
    lexer: Lexer<'s>,
    /// The current token.
    tok: Token,
    /// The end of the token before it.
    previous_end: u32,
    cx: &'c mut Context,
    diagnostics: Vec<Diagnostic>,
    /// True after too many errors: the text counts as ended.
    stopped: bool,

    // The current function.
    body: Body,
    /// True if every node of the function has its type so far. After the first node without one,
    /// the types are left to [`infer_module`].
    typed: bool,
    scopes: Scopes,
    /// The parameters of the function that stand for locals that nothing binds, if such are
    /// allowed.
    free_locals: Option<FxHashMap<NameId, ExprId>>,

    // The machine.
    frames: Vec<Frame>,
    /// Operands of the calls and tuples that are being read.
    operands: Vec<ExprId>,
    /// Attributes of the lists that are being read.
    key_values: Vec<KeyValue>,
    /// Elements of the attribute lists that are being read.
    elements: Vec<AttrId>,
    heads: Vec<OpenSignature>,
    /// Parameters of the signatures that are being read.
    params: Vec<VarId>,
    /// The `#[…]` of the following binding or item.
    meta: Option<AttrsId>,
    /// The result of a run of the machine that reads a single attribute.
    result: Option<AttrId>,
    type_frames: Vec<TypeFrame>,
    type_values: Vec<TypeId>,
    function_types: types::FunctionTypes,
    /// The symbols that the current signature or `match_cast` binds, if it may bind symbols.
    new_symbols: Option<Vec<NewSymbol>>,
    unknown_symbols: UnknownSymbols,
    /// The names that function types bound while `new_symbols` were collected.
    names_in_function_types: Vec<NameId>,

    // The module.
    /// The length of the text of the previous function.
    last_length: u32,
    items: Vec<Item>,
    aliases: FxHashMap<NameId, (Alias, SourceRange)>,
    definitions: FxHashMap<GlobalId, SourceRange>,
    /// The first use of each global in each function.
    global_uses: Vec<(GlobalId, SourceRange)>,

    // Caches.
    match_cast: Option<OpId>,
    to_key: NameId,
    ops: Vec<(&'s str, OpId)>,
    splat_type: Option<SplatType<'s>>,
    scalars: FxHashMap<(u32, u64), (LiteralId, TypeId)>,
    /// The nodes of the current function that contain a binding and were used.
    bindings_seen: SideTable<ExprId, bool>,
}

impl<'s, 'c> Parser<'s, 'c> {
    fn new(cx: &'c mut Context, text: &'s str) -> Result<Parser<'s, 'c>, Box<Diagnostic>> {
        Parser::from(cx, text, 0)
    }

    /// Returns a parser of a text from `start` on.
    fn from(cx: &'c mut Context, text: &'s str, start: usize) -> Result<Parser<'s, 'c>, Box<Diagnostic>> {
        if u32::try_from(text.len()).is_err() || text.len() == u32::MAX as usize {
            let error = Diagnostic::error("the text is longer than 4 GiB").with_help("split it into several files");
            return Err(Box::new(error));
        }
        let body = Body::new(&cx.types);
        // A binding, which makes a name, seldom takes less text. A long text may consist largely of
        // constants.
        let names = ((text.len() - start) / 60).min(1 << 17);
        cx.names.reserve(names);
        let match_cast = cx.ops.find("match_cast");
        let to_key = cx.names.intern("to");
        let mut scopes = Scopes::new();
        scopes.reserve(names);
        let mut lexer = Lexer::new(text, start);
        let tok = lexer.next();
        Ok(Parser {
            text,
            lexer,
            tok,
            previous_end: 0,
            cx,
            diagnostics: Vec::new(),
            stopped: false,
            body,
            typed: true,
            scopes,
            free_locals: None,
            frames: Vec::new(),
            operands: Vec::new(),
            key_values: Vec::new(),
            elements: Vec::new(),
            heads: Vec::new(),
            params: Vec::new(),
            meta: None,
            result: None,
            type_frames: Vec::new(),
            type_values: Vec::new(),
            function_types: Default::default(),
            new_symbols: None,
            unknown_symbols: UnknownSymbols::Error,
            names_in_function_types: Vec::new(),
            last_length: 0,
            items: Vec::new(),
            aliases: FxHashMap::default(),
            definitions: FxHashMap::default(),
            global_uses: Vec::new(),
            match_cast,
            to_key,
            ops: Vec::new(),
            splat_type: None,
            scalars: FxHashMap::default(),
            bindings_seen: SideTable::new(0, false),
        })
    }

    /// Returns the result of parsing a single type or attribute.
    fn finish<T>(self, result: Parsed<T>, source: &str) -> Result<T, Diagnostics> {
        match result {
            Ok(value) if self.diagnostics.is_empty() => Ok(value),
            _ => Err(Diagnostics::in_source(self.diagnostics, Some(Arc::new(Source::new(source, self.text))))),
        }
    }

    // ---- Tokens ----

    #[inline(always)]
    fn next(&mut self) {
        self.previous_end = self.tok.end();
        self.tok = self.lexer.next();
    }

    /// Moves back or forward to the token that starts at `place`.
    fn seek(&mut self, place: u32) {
        self.lexer = Lexer::new(self.text, place as usize);
        self.previous_end = place;
        self.tok = self.lexer.next();
    }

    /// Returns the token after the current one.
    fn peek(&self) -> Token {
        let mut ahead = self.lexer;
        ahead.next()
    }

    #[inline(always)]
    fn slice(&self, token: Token) -> &'s str {
        &self.text[token.range()]
    }

    /// Returns the range from `start` to the end of the last token that was read.
    fn since(&self, start: u32) -> SourceRange {
        SourceRange { start, end: self.previous_end.max(start) }
    }

    #[inline]
    fn eat(&mut self, kind: Kind) -> bool {
        if self.tok.kind == kind {
            self.next();
            return true;
        }
        false
    }

    /// Reads a token of a kind.
    #[inline]
    fn expect(&mut self, kind: Kind) -> Parsed<Token> {
        if self.tok.kind == kind {
            let token = self.tok;
            self.next();
            return Ok(token);
        }
        Err(self.unexpected(kind.describe()))
    }

    /// Like [`Parser::expect`], with a help text if another token is found.
    #[inline]
    fn expect_or(&mut self, kind: Kind, help: &str) -> Parsed<Token> {
        if self.tok.kind == kind {
            return self.expect(kind);
        }
        Err(self.unexpected_help(kind.describe(), help))
    }

    /// Reads the items of a list and the `close` after them.
    fn list(&mut self, close: Kind, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let mut more = self.tok.kind != close;
        while more {
            item(self)?;
            more = self.comma_or(close)?;
        }
        self.next();
        Ok(())
    }

    /// Reads the comma after an item of a list, unless `close` follows. Returns true if there may
    /// be another item.
    fn comma_or(&mut self, close: Kind) -> Parsed<bool> {
        if self.eat(Kind::Comma) {
            return Ok(self.tok.kind != close);
        }
        if self.tok.kind == close {
            return Ok(false);
        }
        Err(self.unexpected(match close {
            Kind::RBracket => "`,` or `]`",
            _ => "`,` or `)`",
        }))
    }

    /// Returns the name in a token: the text after `%` or `@`, or the contents of a string.
    #[inline]
    fn name(&mut self, token: Token) -> NameId {
        let text = &self.text[token.start() as usize + 1..token.end() as usize];
        if text.as_bytes().first() == Some(&b'"') { self.quoted_name(token, 1) } else { self.cx.names.intern(text) }
    }

    /// Returns the text of the name in a token, which is a string, a local or a global.
    fn text_of(&mut self, token: Token) -> String {
        let name = if token.kind == Kind::Str { self.quoted_name(token, 0) } else { self.name(token) };
        self.cx.names.get(name).to_string()
    }

    /// Returns the name that a quoted string denotes. The string starts `offset` bytes into the
    /// token.
    fn quoted_name(&mut self, token: Token, offset: u32) -> NameId {
        let quoted = &self.text[(token.start() + offset) as usize..token.end() as usize];
        match unescape(quoted) {
            Ok(name) => self.cx.names.intern(&name),
            Err(range) => {
                let at = (token.start() + offset) as usize;
                self.error(
                    Diagnostic::error("unknown escape in a string")
                        .at(at + range.start..at + range.end)
                        .with_help("the escapes are `\\\"`, `\\\\`, `\\n`, `\\t` and `\\u{…}`"),
                );
                self.cx.names.intern(quoted)
            }
        }
    }

    // ---- Errors ----

    /// Reports an error. Of consecutive errors at one place, only the first is kept.
    #[cold]
    fn error(&mut self, diagnostic: Diagnostic) -> Reported {
        if self.stopped || self.diagnostics.last().is_some_and(|d| d.span == diagnostic.span) {
            return Reported;
        }
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() >= MAX_ERRORS {
            self.stopped = true;
            let end = self.text.len() as u32;
            self.seek(end);
        }
        Reported
    }

    fn error_at(&mut self, place: impl Into<SourceRange>, message: impl Into<String>) -> Reported {
        self.error(Diagnostic::error(message).at(place.into().range()))
    }

    fn error_help(
        &mut self,
        place: impl Into<SourceRange>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Reported {
        self.error(Diagnostic::error(message).at(place.into().range()).with_help(help))
    }

    /// Reports that the current token is not `wanted`.
    #[cold]
    fn unexpected(&mut self, wanted: &str) -> Reported {
        self.unexpected_or(wanted, None)
    }

    /// Like [`Parser::unexpected`], with a help text.
    #[cold]
    fn unexpected_help(&mut self, wanted: &str, help: &str) -> Reported {
        self.unexpected_or(wanted, Some(help))
    }

    fn unexpected_or(&mut self, wanted: &str, help: Option<&str>) -> Reported {
        let tok = self.tok;
        let (message, help) = match tok.kind {
            Kind::Bad => bad_token_message(self.slice(tok)),
            Kind::Word | Kind::Local | Kind::Global | Kind::Number => {
                let found: String = self.slice(tok).chars().take(60).collect();
                (format!("expected {wanted}, found `{found}`"), help)
            }
            kind => (format!("expected {wanted}, found {}", kind.describe()), help),
        };
        let help = help.map(str::to_string);
        self.error(Diagnostic { help, ..Diagnostic::error(message).at(tok.range()) })
    }

    // ---- Nodes ----

    /// Returns an expression that suppresses further errors: a variable of the error type that
    /// nothing binds.
    #[cold]
    fn error_expr(&mut self) -> ExprId {
        self.typed = false;
        let ty = self.cx.types.error();
        self.body.push_var(None, VarFlags::PLAIN, ty, Some(self.previous_end)).expr()
    }

    /// Appends a node. Sets its type if the types of its parts are known.
    #[inline]
    fn node(&mut self, expr: Expr, start: u32) -> ExprId {
        let error = self.cx.types.error();
        let id = self.body.push(expr, error, Some(start));
        if self.typed {
            match infer_expr(self.cx, &self.body, id) {
                Ok(ty) if ty != error => self.body.set_type(id, ty),
                _ => self.typed = false,
            }
        }
        id
    }

    fn new_var(&mut self, name: NameId, flags: VarFlags, ty: TypeId, start: u32) -> VarId {
        self.body.push_var(Some(name), flags, ty, Some(start))
    }

    // ---- Runs of the machine ----

    /// Reads one attribute value outside any function.
    fn run_attribute(&mut self) -> Parsed<AttrId> {
        self.run(State::Attribute)?;
        Ok(self.result.take().unwrap_or_else(|| self.cx.attr(Attr::None)))
    }

    /// Runs the machine until the stack is empty.
    fn run(&mut self, mut state: State) -> Parsed<()> {
        loop {
            let next = match state {
                State::Statement => self.statement(),
                State::Expression => self.expression(),
                State::Value(id, start) => self.value(id, start),
                State::Deliver(id) => self.deliver(id),
                State::Argument => self.argument(),
                State::Attribute => self.attribute(),
                State::AttributeValue(attr) => self.deliver_attribute(attr),
                State::KeyValue => self.key_value(),
                State::Done => return Ok(()),
            };
            state = match next {
                Ok(state) => state,
                Err(Reported) => self.recover()?,
            };
        }
    }
}
