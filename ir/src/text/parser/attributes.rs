//! Attribute values, and lists of named attributes.

use super::expressions::{Callee, Frame, State};
use super::literals::Unsuffixed;
use super::{Alias, KeyValue, Parsed, Parser};
use crate::core::entity::AttrsId;
use crate::tables::attrs::Attr;
use crate::tables::dtype::DType;
use crate::text::lexer::Kind;

impl Parser<'_, '_> {
    /// Reads an attribute value, or begins one with nested values.
    pub(super) fn attribute(&mut self) -> Parsed<State> {
        let tok = self.tok;
        let attr = match tok.kind {
            // Texts, `none` and arrays.
            Kind::Str => {
                let name = self.quoted_name(tok, 0);
                self.next();
                Attr::Str(name)
            }
            Kind::None => {
                self.next();
                Attr::None
            }
            Kind::Dense => Attr::Literal(self.dense()?.0),
            // A list begins, whose elements follow.
            Kind::LBracket => {
                self.next();
                self.frames.push(Frame::List { elements: self.elements.len() as u32 });
                if self.tok.kind == Kind::RBracket {
                    return self.finish_list();
                }
                return Ok(State::Attribute);
            }
            // Shapes, functions and aliases.
            Kind::Shape => {
                self.next();
                Attr::Shape(self.dim_list(false)?.into_iter().collect())
            }
            Kind::Global => {
                self.next();
                let global = self.global_name(tok);
                self.global_uses.push((global, tok.into()));
                Attr::Global(global)
            }
            Kind::Alias => {
                let ahead = self.alias()?;
                match ahead.0 {
                    Some(Alias::Attr(attr)) => return self.deliver_attribute(attr),
                    Some(Alias::Type(ty)) => Attr::Type(ty),
                    None => Attr::None,
                }
            }
            // Types, and values that begin as types do.
            Kind::Tensor | Kind::Any | Kind::LParen => self.type_attr()?,
            Kind::Fn => {
                if self.at_function_attr() {
                    return self.function_attr();
                }
                let ty = self.type_attr()?;
                if self.tok.kind == Kind::LBrace {
                    // It was the signature of a function without parameters.
                    self.seek(tok.start());
                    return self.function_attr();
                }
                ty
            }
            // Operators, numbers and element types.
            Kind::Op => {
                self.next();
                self.quoted_op()?.map_or(Attr::None, Attr::Op)
            }
            _ if self.at_literal() => {
                let number = self.number(Unsuffixed::Attribute)?;
                match number.dtype {
                    DType::Int64 => Attr::Int(number.bits as i64),
                    DType::Float64 => Attr::Float(number.bits),
                    DType::Bool => Attr::Bool(number.bits != 0),
                    _ => Attr::Literal(self.cx.literals.intern(number.literal())),
                }
            }
            Kind::Word => {
                let word = self.slice(tok);
                self.next();
                match word.parse::<DType>() {
                    Ok(dtype) => Attr::DType(dtype),
                    Err(()) => self.op_of(word, tok.into()).map_or(Attr::None, Attr::Op),
                }
            }
            _ => {
                return Err(self.unexpected_help(
                    "an attribute value",
                    "such as a number, `\"text\"`, `[1, 2]`, `shape(2, n)`, `float32`, `Tensor[(8,), float32]` or `@f`",
                ));
            }
        };
        let attr = self.cx.attr(attr);
        self.deliver_attribute(attr)
    }

    /// Reads a type as an attribute value. The type of a `match_cast` binds symbols.
    fn type_attr(&mut self) -> Parsed<Attr> {
        let binds = match self.frames.as_slice() {
            [.., Frame::Call { callee: Callee::Op(op), .. }, Frame::Key { key, .. }] => {
                self.match_cast == Some(*op) && *key == self.to_key
            }
            _ => false,
        };
        let ty = if binds { self.binding_types(|p| p.parse_type())? } else { self.parse_type()? };
        Ok(Attr::Type(ty))
    }

    /// Returns true if the `fn` here begins a function and not a type, judged by what follows the
    /// parenthesis. A `fn()` with a result type after it counts as a type.
    fn at_function_attr(&self) -> bool {
        let mut ahead = self.lexer;
        if ahead.next().kind != Kind::LParen {
            return false;
        }
        let first = ahead.next().kind;
        let second = ahead.next().kind;
        match first {
            Kind::Local => true,
            Kind::RParen => second != Kind::Arrow,
            kind => (kind.is_word() || kind == Kind::Str) && second == Kind::Equal,
        }
    }

    /// Hands a complete attribute value to the frame that it is part of.
    pub(super) fn deliver_attribute(&mut self, value: crate::core::entity::AttrId) -> Parsed<State> {
        match self.frames.last() {
            Some(&Frame::Key { key, place }) => {
                self.frames.pop();
                self.key_values.push(KeyValue { key, place, value });
                if self.comma_or(self.key_values_end())? {
                    return Ok(State::KeyValue);
                }
                self.finish_key_values()
            }
            Some(Frame::List { .. }) => {
                self.elements.push(value);
                if self.comma_or(Kind::RBracket)? {
                    return Ok(State::Attribute);
                }
                self.finish_list()
            }
            _ => {
                self.result = Some(value);
                Ok(State::Done)
            }
        }
    }

    /// Reads the `]` of a list and makes its value.
    fn finish_list(&mut self) -> Parsed<State> {
        self.expect(Kind::RBracket)?;
        let Some(Frame::List { elements }) = self.frames.pop() else { return Err(self.unexpected("a value")) };
        let items = self.elements[elements as usize..].into();
        self.elements.truncate(elements as usize);
        let attr = self.cx.attr(Attr::List(items));
        Ok(State::AttributeValue(attr))
    }

    // ---- Named attributes ----

    /// Returns true if a named attribute begins here.
    pub(super) fn at_key(&self) -> bool {
        (self.tok.kind.is_word() || self.tok.kind == Kind::Str) && self.peek().kind == Kind::Equal
    }

    /// Returns the token that closes the list of named attributes on top of the stack.
    fn key_values_end(&self) -> Kind {
        match self.frames.last() {
            Some(Frame::Call { .. } | Frame::Signature) => Kind::RParen,
            _ => Kind::RBracket,
        }
    }

    /// Reads `KEY =`, or the end of the list.
    pub(super) fn key_value(&mut self) -> Parsed<State> {
        let tok = self.tok;
        let end = self.key_values_end();
        if tok.kind == end {
            return self.finish_key_values();
        }
        let key = match tok.kind {
            Kind::Str => self.quoted_name(tok, 0),
            kind if kind.is_word() => self.cx.names.intern(self.slice(tok)),
            _ => {
                return Err(match self.frames.last() {
                    Some(Frame::Call { .. }) => {
                        self.unexpected_help("an attribute (`name = value`)", "operands stand before attributes")
                    }
                    Some(Frame::Signature) => self.unexpected_help(
                        "a parameter, an attribute or `)`",
                        "parameters are `%x: TYPE` and stand before attributes, which are `name = value`",
                    ),
                    _ => self.unexpected("`name = value`"),
                });
            }
        };
        self.next();
        self.expect_or(Kind::Equal, "an attribute is `name = value`")?;
        self.frames.push(Frame::Key { key, place: tok.into() });
        Ok(State::Attribute)
    }

    /// Ends a list of named attributes, whose owner is on top of the stack.
    fn finish_key_values(&mut self) -> Parsed<State> {
        match self.frames.last() {
            Some(Frame::Call { .. }) => self.finish_call(),
            Some(Frame::Signature) => self.finish_signature(),
            Some(&Frame::Meta { key_values }) => {
                self.expect(Kind::RBracket)?;
                self.frames.pop();
                self.add_meta(key_values);
                // An item is in no block, so nothing is left to be read.
                Ok(if self.frames.is_empty() { State::Done } else { State::Statement })
            }
            _ => Err(self.unexpected("an attribute value")),
        }
    }

    /// Adds the attributes of a `#[…]` to those before it.
    fn add_meta(&mut self, key_values: u32) {
        let mut attrs = self.take_key_values(key_values);
        self.key_values.truncate(key_values as usize);
        if let Some(before) = self.meta {
            let mut both = self.cx.attrs.list(before).to_vec();
            both.extend_from_slice(self.cx.attrs.list(attrs));
            attrs = self.cx.attrs(&both);
        }
        self.meta = Some(attrs);
    }

    /// Returns the named attributes on the stack from index `from` on. They stay on the stack, with
    /// their places.
    pub(super) fn take_key_values(&mut self, from: u32) -> AttrsId {
        let list = &self.key_values[from as usize..];
        if list.is_empty() {
            return self.cx.attrs.empty();
        }
        let pairs: smallvec::SmallVec<[_; 8]> = list.iter().map(|kv| (kv.key, kv.value)).collect();
        let mut seen = rustc_hash::FxHashMap::default();
        let mut again = list.iter().filter(|_| list.len() > 1);
        let duplicate = again.find_map(|kv| seen.insert(kv.key, kv.place).map(|first| (*kv, first)));
        if let Some((kv, first)) = duplicate {
            let text = format!("the attribute `{}`", self.cx.names.get(kv.key));
            self.duplicate(&text, kv.place, first);
        }
        self.cx.attrs(&pairs)
    }
}
