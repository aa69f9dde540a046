//! Sketches: expressions with holes, in which rewrite rules are written.
//!
//! Sketches are expressions of the text format in which locals are holes. A machine with an
//! explicit stack reads them:
//!
//! ```text
//! TERM  = %NAME | NUMBER | true | false | "TEXT" | dense<TYPE>[…] | none | @NAME
//!       | OP(TERM, …, KEY = VALUE, …) | TERM(TERM, …) | (TERM, …) | TERM.INT
//! VALUE = an attribute value | %NAME | none
//! ```

use std::ops::Range;
use std::sync::Arc;

use super::{Parsed, Parser, Reported, SourceRange};
use crate::core::context::Context;
use crate::ops::op::OpRegistry;
use crate::report::diagnostics::Diagnostics;
use crate::tables::attrs::Attr;
use crate::tables::literal::Literal;
use crate::tables::value::AttrValue;
use crate::text::lexer::Kind;

/// An expression with holes: one side of a rewrite rule. It belongs to no module.
///
/// The nodes are stored in one list: the parts of a node before it, the root last.
#[derive(Clone, Debug, Default)]
pub struct Sketch {
    nodes: Vec<(SketchNode, SourceRange)>,
    parts: Vec<u32>,
    attrs: Vec<SketchAttr>,
}

/// A node of a [`Sketch`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SketchNode {
    /// `%x`: the name, without `%`.
    Hole(String),
    /// A whole number without a suffix, which may have any element type.
    Whole(i64),
    /// A number with a suffix, or a truth value.
    Scalar(Literal),
    /// Another constant.
    Tensor(Literal),
    /// `@f`: the name, without `@`.
    Global(String),
    /// `none`.
    None,
    /// A call of an operator.
    Op {
        /// The operator.
        name: String,
        /// The operands.
        operands: SketchParts,
        /// The attributes.
        attrs: SketchParts,
    },
    /// A call of a function value, which is the first of its operands.
    Call(SketchParts),
    /// A tuple.
    Tuple(SketchParts),
    /// A field of a tuple.
    Proj {
        /// The number of the node of the tuple.
        tuple: u32,
        /// The number of the field.
        index: u32,
    },
}

/// A list of parts or attributes of a node, for [`Sketch::parts`] and [`Sketch::attrs`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SketchParts(Range<usize>);

/// An attribute of a call in a [`Sketch`].
#[derive(Clone, Debug)]
pub struct SketchAttr {
    /// The name.
    pub name: String,
    /// The value after the `=`.
    pub value: SketchValue,
    /// The bytes of name and value.
    pub place: Range<usize>,
}

/// The value of an attribute in a [`Sketch`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum SketchValue {
    /// `%p`: the name, without `%`.
    Hole(String),
    /// `none`: the attribute is left out.
    Absent,
    /// An attribute value.
    Is(AttrValue),
}

impl Sketch {
    /// Returns the nodes with their bytes of the text. The parts of a node come before it; the last
    /// node is the root.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = (&SketchNode, Range<usize>)> {
        self.nodes.iter().map(|(node, place)| (node, place.range()))
    }

    /// Returns the numbers of the nodes of a list.
    pub fn parts(&self, list: &SketchParts) -> &[u32] {
        self.parts.get(list.0.clone()).unwrap_or(&[])
    }

    /// Returns the attributes of a list.
    pub fn attrs(&self, list: &SketchParts) -> &[SketchAttr] {
        self.attrs.get(list.0.clone()).unwrap_or(&[])
    }
}

/// Reads a sketch: an expression in which locals are holes. Names of operators are not looked up.
///
/// ```
/// use anfora_ir::{SketchNode, parse_sketch};
///
/// let sketch = parse_sketch("multiply(%x, 1)")?;
/// let (root, place) = sketch.nodes().last().expect("a sketch has a root");
/// assert!(matches!(root, SketchNode::Op { name, .. } if name == "multiply"));
/// assert_eq!(place, 0..15);
/// # Ok::<(), anfora_ir::Diagnostics>(())
/// ```
///
/// # Errors
/// If the text is not a sketch.
pub fn parse_sketch(text: &str) -> Result<Sketch, Diagnostics> {
    SketchReader::default().read(text)
}

/// A reader of many sketches, each of which it reads as [`parse_sketch`] does. The reader keeps the
/// names, constants and attributes of all texts in one set of tables. Earlier texts, also those
/// with errors, do not change how a text is read.
pub struct SketchReader {
    // Boxed, since the methods of a set of rules move the set, which holds a reader.
    cx: Box<Context>,
}

impl Default for SketchReader {
    fn default() -> SketchReader {
        SketchReader { cx: Box::new(Context::new(Arc::new(OpRegistry::new()))) }
    }
}

impl SketchReader {
    /// Reads a sketch.
    ///
    /// # Errors
    /// If the text is not a sketch.
    pub fn read(&mut self, text: &str) -> Result<Sketch, Diagnostics> {
        let mut parser = Parser::new(&mut self.cx, text).map_err(|e| *e)?;
        let mut reader = SketchState::default();
        let read = parser.term(&mut reader).and_then(|()| match parser.tok.kind {
            Kind::End => Ok(()),
            Kind::RParen => {
                let place = parser.tok;
                Err(parser.error_help(place, "nothing is opened that this `)` closes", "leave it out"))
            }
            _ => Err(parser.unexpected("the end of the term")),
        });
        if let (Err(_), Some(open), Some(error)) = (read, reader.open.last(), parser.diagnostics.last_mut())
            && error.span.as_ref().is_some_and(|span| span.start >= text.trim_end().len())
        {
            let at = open.paren as usize;
            error.related.push((at..at + 1, "this is not closed".to_string()));
            error.help.get_or_insert_with(|| "add `)`".to_string());
        }
        parser.finish(read.map(|()| reader.sketch), "sketch")
    }
}

crate::brief_debug! { SketchReader; }

/// The state of one read: the values that were read, and the constructs that are being read.
#[derive(Default)]
struct SketchState {
    sketch: Sketch,
    open: Vec<Open>,
    /// The nodes that are parts of open constructs.
    values: Vec<u32>,
}

/// A construct with parts whose end has not been read.
struct Open {
    kind: OpenKind,
    start: u32,
    /// The start of its `(`.
    paren: u32,
    /// The number of values that were read before its parts.
    values: usize,
}

enum OpenKind {
    Op(String),
    Call,
    /// One expression in parentheses, or the first field of a tuple.
    Paren,
    Tuple,
}

/// The next step of the reader.
enum Next {
    Term,
    /// Read a part of the innermost open construct, or its end.
    Part,
    /// Read what may follow a term: arguments, `.INT`, or the rest of the innermost open construct.
    After(u32),
}

impl SketchState {
    fn push(&mut self, node: SketchNode, place: SourceRange) -> u32 {
        self.sketch.nodes.push((node, place));
        self.sketch.nodes.len() as u32 - 1
    }

    fn open(&mut self, kind: OpenKind, start: u32, paren: u32) -> Next {
        self.open.push(Open { kind, start, paren, values: self.values.len() });
        Next::Part
    }

    /// Moves the values from index `from` on to the parts of the sketch.
    fn parts(&mut self, from: usize) -> SketchParts {
        let start = self.sketch.parts.len();
        self.sketch.parts.extend(self.values.drain(from..));
        SketchParts(start..self.sketch.parts.len())
    }
}

impl Parser<'_, '_> {
    fn term(&mut self, reader: &mut SketchState) -> Parsed<()> {
        let mut next = Next::Term;
        loop {
            next = match next {
                Next::Term => self.primary(reader)?,
                Next::Part if self.tok.kind == Kind::RParen => Next::After(self.close(reader, 0)?),
                Next::Part if self.at_key() => Next::After(self.attributes_and_close(reader)?),
                Next::Part => Next::Term,
                Next::After(node) => match self.after(reader, node)? {
                    Some(next) => next,
                    None => return Ok(()),
                },
            };
        }
    }

    /// Reads a term without the arguments and projections that may follow it.
    fn primary(&mut self, reader: &mut SketchState) -> Parsed<Next> {
        let tok = self.tok;
        let node = match tok.kind {
            Kind::Local => {
                self.next();
                SketchNode::Hole(self.text_of(tok))
            }
            Kind::Global => {
                self.next();
                SketchNode::Global(self.text_of(tok))
            }
            Kind::None => {
                self.next();
                SketchNode::None
            }
            Kind::LParen => {
                self.next();
                return Ok(reader.open(OpenKind::Paren, tok.start(), tok.start()));
            }
            _ if self.at_literal() => self.constant()?,
            Kind::Word | Kind::Op => {
                let name = self.operator_name()?;
                let paren = self.tok.start();
                if self.tok.kind != Kind::LParen {
                    let help = format!("holes are `%{name}`, and operators have operands: `{name}(%x)`");
                    return Err(self.unexpected_help("`(`", &help));
                }
                self.next();
                return Ok(reader.open(OpenKind::Op(name), tok.start(), paren));
            }
            Kind::Let | Kind::LBrace | Kind::If | Kind::Fn => {
                return Err(self.unexpected_help(
                    "a call, a tuple, a constant or a hole",
                    "a rule looks through bindings by itself, and has no blocks: nest what is bound",
                ));
            }
            _ => return Err(self.unexpected_help("a term", "such as `add(%x, 1)`, `(%x, %y)`, `%x.0` or `2f`")),
        };
        let place = self.since(tok.start());
        Ok(Next::After(reader.push(node, place)))
    }

    fn operator_name(&mut self) -> Parsed<String> {
        let tok = self.tok;
        self.next();
        if tok.kind == Kind::Word {
            return Ok(self.slice(tok).to_string());
        }
        let name = self.expect(Kind::Str)?;
        Ok(self.text_of(name))
    }

    /// Continues after a term: with its arguments, a projection, or the construct that it is a part
    /// of. Returns `None` at the end.
    fn after(&mut self, reader: &mut SketchState, node: u32) -> Parsed<Option<Next>> {
        let start = reader.sketch.nodes[node as usize].1.start;
        match self.tok.kind {
            Kind::LParen => {
                let paren = self.tok.start();
                self.next();
                let next = reader.open(OpenKind::Call, start, paren);
                reader.values.push(node);
                return Ok(Some(next));
            }
            Kind::Dot => {
                let index = self.field()?.ok_or(Reported)?;
                let place = self.since(start);
                return Ok(Some(Next::After(reader.push(SketchNode::Proj { tuple: node, index }, place))));
            }
            _ => {}
        }
        let Some(open) = reader.open.last_mut() else { return Ok(None) };
        if matches!(open.kind, OpenKind::Paren) {
            if self.tok.kind != Kind::Comma {
                self.expect_closed()?;
                reader.open.pop();
                return Ok(Some(Next::After(node)));
            }
            open.kind = OpenKind::Tuple;
        }
        reader.values.push(node);
        match self.comma_or(Kind::RParen)? {
            true => Ok(Some(Next::Part)),
            false => Ok(Some(Next::After(self.close(reader, 0)?))),
        }
    }

    fn expect_closed(&mut self) -> Parsed<()> {
        if self.eat(Kind::RParen) { Ok(()) } else { Err(self.unexpected("`,` or `)`")) }
    }

    /// Reads the `)` of the innermost open construct and makes its node. The last `attrs`
    /// attributes belong to it. Returns the number of the node.
    fn close(&mut self, reader: &mut SketchState, attrs: usize) -> Parsed<u32> {
        self.expect_closed()?;
        let Some(Open { kind, start, values, .. }) = reader.open.pop() else { return Err(self.unexpected("a term")) };
        let parts = reader.parts(values);
        let all = reader.sketch.attrs.len();
        let node = match kind {
            OpenKind::Op(name) => SketchNode::Op { name, operands: parts, attrs: SketchParts(all - attrs..all) },
            OpenKind::Call => SketchNode::Call(parts),
            OpenKind::Paren | OpenKind::Tuple => SketchNode::Tuple(parts),
        };
        let place = self.since(start);
        Ok(reader.push(node, place))
    }

    /// Reads `KEY = VALUE, …)` of a call. Returns the number of its node.
    fn attributes_and_close(&mut self, reader: &mut SketchState) -> Parsed<u32> {
        if !matches!(reader.open.last(), Some(Open { kind: OpenKind::Op(_), .. })) {
            return Err(self.error_help(
                self.tok,
                "only calls of operators have attributes",
                "an attribute is `name = value`, behind the operands of an operator",
            ));
        }
        let mut count = 0;
        loop {
            if !self.at_key() {
                return Err(self.unexpected_help("an attribute (`name = value`)", "operands stand before attributes"));
            }
            let key = self.tok;
            self.next();
            self.expect(Kind::Equal)?;
            let name = if key.kind == Kind::Str { self.text_of(key) } else { self.slice(key).to_string() };
            let value = self.attribute_term()?;
            let place = self.since(key.start()).range();
            reader.sketch.attrs.push(SketchAttr { name, value, place });
            count += 1;
            if !self.comma_or(Kind::RParen)? {
                return self.close(reader, count);
            }
        }
    }

    fn attribute_term(&mut self) -> Parsed<SketchValue> {
        let tok = self.tok;
        match tok.kind {
            Kind::Local => {
                self.next();
                return Ok(SketchValue::Hole(self.text_of(tok)));
            }
            Kind::None => {
                self.next();
                return Ok(SketchValue::Absent);
            }
            _ => {}
        }
        let attr = self.run_attribute()?;
        let value = match self.cx.attrs.get(attr) {
            Attr::Bool(value) => AttrValue::Bool(*value),
            Attr::Int(value) => AttrValue::Int(*value),
            Attr::Float(bits) => AttrValue::Float(f64::from_bits(*bits)),
            Attr::Str(text) => AttrValue::Str(self.cx.names.get(*text).to_string()),
            Attr::DType(dtype) => AttrValue::DType(*dtype),
            Attr::Literal(literal) => AttrValue::Literal(self.cx.literals.get(*literal).clone()),
            _ => match self.cx.attr_ints(attr) {
                Some(values) => AttrValue::Ints(values),
                None => {
                    let place = self.since(tok.start());
                    return Err(self.error_help(
                        place,
                        "a value of this kind cannot stand in a rule's text",
                        "it takes numbers, texts, lists of integers, element types, constants, `none` and holes",
                    ));
                }
            },
        };
        Ok(SketchValue::Is(value))
    }

    fn constant(&mut self) -> Parsed<SketchNode> {
        let tok = self.tok;
        let (id, _) = self.literal()?;
        let literal = self.cx.literals.get(id).clone();
        let text = &self.text[self.since(tok.start()).range()];
        let is_plain = text.trim_start_matches('-').trim_start().bytes().all(|b| b.is_ascii_digit());
        Ok(match (is_plain, literal.as_scalar::<i32>()) {
            (true, Some(value)) => SketchNode::Whole(value.into()),
            _ if matches!(tok.kind, Kind::Dense | Kind::Str) => SketchNode::Tensor(literal),
            _ => SketchNode::Scalar(literal),
        })
    }
}
