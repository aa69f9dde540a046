//! The parser of the text format.
//!
//! It is a machine with an explicit stack of frames ([`expressions`]), so that a program may nest
//! as deep as memory allows. Types and dimensions have small machines of their own ([`types`],
//! [`dims`]). Nodes are made as they are read, each with its type, as long as the types of its
//! parts are known. In a function in which they are not (they are those of other functions, or
//! there is a mistake), and where one is stated that has to be checked,
//! [`infer_module`](crate::infer::module) finds all types afterwards.
//!
//! A syntax error is reported and the text skipped to the next `;`, `}` or item; a mistake in what
//! is said (an unknown name, a number out of range) is reported and reading goes on with an
//! expression of the error type, which silences what follows from it.

mod attributes;
mod dims;
mod expressions;
mod items;
mod literals;
mod recovery;
mod scope;
mod signatures;
mod sketches;
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
use expressions::{Frame, State};
use items::Item;
use literals::SplatType;
use scope::{NewSymbol, Scopes, UnknownSymbols};
use signatures::Head;
use types::TypeFrame;

pub use sketches::{Sketch, SketchAttr, SketchNode, SketchParts, SketchValue, parse_sketch};

/// The most errors that are reported of one text.
pub const MAX_ERRORS: usize = 20;

/// Reads a module, with the types of all that is in it. The module keeps the source, by which
/// diagnostics show places; [`Module::set_source`] lets it go.
///
/// # Errors
/// With up to [`MAX_ERRORS`] errors, in the order of the text. Parsing goes on after an error where
/// it can.
pub fn parse_module(source: impl Into<Arc<Source>>, registry: Arc<OpRegistry>) -> Result<Module, Diagnostics> {
    read_module(source.into(), registry, None)
}

/// Reads what stands in the block of a function, as a module with that function, `@main`. `params`
/// are parameters as in a signature (`%x: Tensor[(8,), float32], %y: int64`, or nothing); locals
/// that nothing binds are further ones, each of type float32, in the order in which they are named
/// first.
///
/// ```
/// use anfora_ir::parse_fragment;
///
/// let module = parse_fragment("%x: Tensor[(4,), float32]", "let %a = multiply(%x, %y); tanh(%a)", anfora_ops::standard())?;
/// assert!(module.to_text().starts_with("def @main(%x: Tensor[(4,), float32], %y: Tensor[(), float32])"));
/// # Ok::<(), anfora_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// Those of [`parse_module`]; their places are in the text of the whole module.
pub fn parse_fragment(params: &str, text: &str, registry: Arc<OpRegistry>) -> Result<Module, Diagnostics> {
    let text = format!("def @main({params}\n) {{\n{text}\n}}\n");
    read_module(Arc::new(Source::new("fragment", text)), registry, Some(FxHashMap::default()))
}

fn read_module(
    source: Arc<Source>,
    registry: Arc<OpRegistry>,
    free_locals: Option<FxHashMap<NameId, ExprId>>,
) -> Result<Module, Diagnostics> {
    let mut module = Module::new(registry);
    let mut parser = match Parser::new(&mut module.cx, source.text()) {
        Ok(parser) => parser,
        Err(error) => return Err(Diagnostics::in_source(vec![*error], Some(source))),
    };
    parser.free_locals = free_locals;
    let attrs = parser.module_items();
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

/// Reads a type. A symbolic dimension that no function type in it binds is a new one for each name.
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

/// A syntax error was reported; what is being read cannot be gone on with.
#[derive(Copy, Clone, Debug)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

/// A range of bytes of the text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Place {
    start: u32,
    end: u32,
}

impl Place {
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl From<Token> for Place {
    fn from(t: Token) -> Place {
        Place { start: t.start(), end: t.end() }
    }
}

/// A named attribute with the place of its name.
#[derive(Copy, Clone)]
struct KeyValue {
    key: NameId,
    place: Place,
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
    /// The token that is looked at.
    tok: Token,
    /// Where the token before it ended.
    previous_end: u32,
    cx: &'c mut Context,
    diagnostics: Vec<Diagnostic>,
    /// Set when there are too many errors: the text counts as ended.
    stopped: bool,

    // The function that is being read.
    body: Body,
    /// True if every node of it so far has its type. From the first on that has not, the types are
    /// left to [`infer_module`].
    typed: bool,
    scopes: Scopes,
    /// Locals that nothing binds, if they are parameters of the function.
    free_locals: Option<FxHashMap<NameId, ExprId>>,

    // The machine.
    frames: Vec<Frame>,
    /// Operands of the calls and tuples that are being read.
    operands: Vec<ExprId>,
    /// Attributes of the lists that are being read.
    key_values: Vec<KeyValue>,
    /// Elements of the attribute lists that are being read.
    elements: Vec<AttrId>,
    heads: Vec<Head>,
    /// Parameters of the signatures that are being read.
    params: Vec<VarId>,
    /// `#[…]` of the binding or item that follows.
    meta: Option<AttrsId>,
    /// What a run of the machine that reads a single attribute ends with.
    result: Option<AttrId>,
    type_frames: Vec<TypeFrame>,
    type_values: Vec<TypeId>,
    function_types: types::FunctionTypes,
    /// Symbols that the signature or `match_cast` being read binds, if it may bind any.
    new_symbols: Option<Vec<NewSymbol>>,
    unknown_symbols: UnknownSymbols,
    /// Names that function types bound while `new_symbols` were collected.
    names_in_function_types: Vec<NameId>,

    // The module.
    /// How long the text of the function before was.
    last_length: u32,
    items: Vec<Item>,
    aliases: FxHashMap<NameId, (Alias, Place)>,
    definitions: FxHashMap<GlobalId, Place>,
    /// Where each function first names each global.
    global_uses: Vec<(GlobalId, Place)>,

    // Caches.
    match_cast: Option<OpId>,
    to_key: NameId,
    ops: Vec<(&'s str, OpId)>,
    splat_type: Option<SplatType<'s>>,
    scalars: FxHashMap<(u32, u64), (LiteralId, TypeId)>,
    bindings_seen: SideTable<ExprId, bool>,
}

impl<'s, 'c> Parser<'s, 'c> {
    fn new(cx: &'c mut Context, text: &'s str) -> Result<Parser<'s, 'c>, Box<Diagnostic>> {
        if u32::try_from(text.len()).is_err() || text.len() == u32::MAX as usize {
            let error = Diagnostic::error("the text is longer than 4 GiB").with_help("split it into several files");
            return Err(Box::new(error));
        }
        let body = Body::new(&cx.types);
        // A binding, which makes a name, seldom takes less text. Much of a long text may be
        // constants.
        let names = (text.len() / 60).min(1 << 17);
        cx.names.reserve(names);
        let match_cast = cx.ops.find("match_cast");
        let to_key = cx.names.intern("to");
        let mut scopes = Scopes::new();
        scopes.reserve(names);
        let mut lexer = Lexer::new(text, 0);
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

    /// What a parse of a single type or attribute comes to.
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

    /// Goes back (or on) to a token that starts at this place.
    fn seek(&mut self, place: u32) {
        self.lexer = Lexer::new(self.text, place as usize);
        self.previous_end = place;
        self.tok = self.lexer.next();
    }

    /// The token after the present one.
    fn peek(&self) -> Token {
        let mut ahead = self.lexer;
        ahead.next()
    }

    #[inline(always)]
    fn slice(&self, token: Token) -> &'s str {
        &self.text[token.range()]
    }

    /// From a place to the end of what was read last.
    fn since(&self, start: u32) -> Place {
        Place { start, end: self.previous_end.max(start) }
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

    /// Like [`Parser::expect`], with a help for the reader if another token stands there.
    #[inline]
    fn expect_or(&mut self, kind: Kind, help: &str) -> Parsed<Token> {
        if self.tok.kind == kind {
            return self.expect(kind);
        }
        Err(self.unexpected_help(kind.describe(), help))
    }

    /// Reads the items of a list and the `close` behind them.
    fn list(&mut self, close: Kind, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> Parsed<()> {
        let mut more = self.tok.kind != close;
        while more {
            item(self)?;
            more = self.comma_or(close)?;
        }
        self.next();
        Ok(())
    }

    /// Reads the comma between two items of a list, or sees that `close` follows. Whether there may
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

    /// The name behind `%` or `@`, or in a string.
    #[inline]
    fn name(&mut self, token: Token) -> NameId {
        let text = &self.text[token.start() as usize + 1..token.end() as usize];
        if text.as_bytes().first() == Some(&b'"') { self.quoted_name(token, 1) } else { self.cx.names.intern(text) }
    }

    /// Returns the name that stands behind `%` or `@`, or in a string.
    fn text_of(&mut self, token: Token) -> String {
        let name = if token.kind == Kind::Str { self.quoted_name(token, 0) } else { self.name(token) };
        self.cx.names.get(name).to_string()
    }

    /// The name that a string means, which starts `offset` bytes into the token.
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

    /// Reports an error. Of several at one place, only the first is kept.
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

    fn error_at(&mut self, place: impl Into<Place>, message: impl Into<String>) -> Reported {
        self.error(Diagnostic::error(message).at(place.into().range()))
    }

    fn error_help(&mut self, place: impl Into<Place>, message: impl Into<String>, help: impl Into<String>) -> Reported {
        self.error(Diagnostic::error(message).at(place.into().range()).with_help(help))
    }

    /// Reports that something else stands where `wanted` should.
    #[cold]
    fn unexpected(&mut self, wanted: &str) -> Reported {
        self.unexpected_or(wanted, None)
    }

    /// Like [`Parser::unexpected`], with a help for the reader.
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

    /// An expression that silences errors: a variable of the error type that nothing binds.
    #[cold]
    fn error_expr(&mut self) -> ExprId {
        self.typed = false;
        let ty = self.cx.types.error();
        self.body.push_var(None, VarFlags::PLAIN, ty, Some(self.previous_end)).expr()
    }

    /// Appends a node with its type, if those of its parts are known.
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

    /// Reads one attribute value that stands outside any function.
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
