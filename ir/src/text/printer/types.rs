//! Prints types and dimensions, in programs and in messages.
//!
//! One machine prints both, with a stack of the remaining parts. The two uses differ in
//! [`TypeNames`].

use crate::core::context::Context;
use crate::core::entity::{DimId, TypeId};
use crate::tables::dim::Dim;
use crate::tables::types::{TensorType, Type};

use super::Printer;
use super::aliases::Aliases;
use super::output::Output;
use super::symbols::{SymbolNames, products};

/// Messages show at most this many characters of a type.
const LONGEST: usize = 400;

/// A part of a type that remains to be printed.
pub(super) enum TypePart {
    Type(TypeId),
    Dim(DimId),
    Text(&'static str),
    Number(u64),
    LeaveFunction,
}

/// The names of the parts of types, and the order of sums.
enum TypeNames<'a> {
    /// The text of a program, which parses back: with aliases, and sums in the order of names.
    Program { aliases: &'a Aliases, symbols: &'a mut SymbolNames },
    /// A message, which is cut: without aliases, and sums in the order of the table.
    Message,
}

/// The printing of one type.
struct TypeText<'a, 'w> {
    cx: &'a Context,
    out: &'a mut Output<'w>,
    names: TypeNames<'a>,
    parts: &'a mut Vec<TypePart>,
}

impl Context {
    /// Returns a type in the text format, for messages: without aliases, and cut after a few
    /// hundred characters.
    pub fn type_text(&self, ty: TypeId) -> String {
        self.message_text(TypePart::Type(ty))
    }

    /// Returns a dimension in the text format, for messages: cut after a few hundred characters.
    pub fn dim_text(&self, dim: DimId) -> String {
        self.message_text(TypePart::Dim(dim))
    }

    fn message_text(&self, top: TypePart) -> String {
        let mut text = String::new();
        let mut out = Output::new(&mut text);
        TypeText { cx: self, out: &mut out, names: TypeNames::Message, parts: &mut vec![top] }.run();
        out.finish().expect("a string takes all text");
        text
    }
}

impl<'w> Printer<'_, 'w> {
    fn type_text(&mut self) -> TypeText<'_, 'w> {
        let names = TypeNames::Program { aliases: &self.aliases, symbols: &mut self.symbols };
        TypeText { cx: self.cx, out: &mut self.out, names, parts: &mut self.type_parts }
    }

    /// Prints a type, by its alias if it has one.
    pub(super) fn ty(&mut self, ty: TypeId) {
        let mut text = self.type_text();
        text.ty(ty);
        text.run();
    }

    /// Prints a type in full; its parts may be aliases.
    pub(super) fn type_in_full(&mut self, ty: TypeId) {
        let mut text = self.type_text();
        text.composite(ty);
        text.run();
    }

    /// Prints dimensions with commas between them.
    pub(super) fn dims(&mut self, dims: &[DimId]) {
        let mut text = self.type_text();
        text.list(dims, TypePart::Dim);
        text.run();
    }

    /// Gives the symbols of a type their names, so that a type printed next to it cannot take them.
    pub(super) fn name_symbols(&mut self, ty: TypeId) {
        if self.cx.types.is_symbolic(ty) {
            let (cx, symbols) = (self.cx, &mut self.symbols);
            cx.types.for_each_symbol(ty, |d| {
                if let Dim::Symbol(s) = *cx.types.dims.get(d) {
                    symbols.label(cx, s);
                }
            });
        }
    }
}

impl TypeText<'_, '_> {
    fn is_message(&self) -> bool {
        matches!(self.names, TypeNames::Message)
    }

    /// Prints the remaining parts.
    fn run(&mut self) {
        while let Some(part) = self.parts.pop() {
            if self.is_message() && self.out.position() > LONGEST {
                self.out.text("…");
                return self.parts.clear();
            }
            match part {
                TypePart::Text(t) => self.out.text(t),
                TypePart::Number(n) => self.out.number(n),
                TypePart::Type(t) => self.ty(t),
                TypePart::Dim(d) => self.dim(d),
                TypePart::LeaveFunction => {
                    if let TypeNames::Program { symbols, .. } = &mut self.names {
                        symbols.leave_type();
                    }
                }
            }
            if !self.out.pass_on() {
                self.parts.clear();
            }
        }
    }

    fn ty(&mut self, ty: TypeId) {
        if let TypeNames::Program { aliases, .. } = &self.names {
            if let Some(n) = aliases.of_type(ty) {
                self.out.text("!t");
                return self.out.number(n.into());
            }
            if aliases.is_too_large(ty) {
                return self.out.text("Any");
            }
        }
        self.composite(ty);
    }

    fn composite(&mut self, ty: TypeId) {
        match self.cx.types.get(ty) {
            Type::Error if self.is_message() => self.out.text("an unknown type"),
            // A type that contains an error agrees with everything, as `Any` does. A module without
            // errors has no such type.
            Type::Any | Type::Error => self.out.text("Any"),
            Type::Tensor(t) => self.tensor(t),
            Type::Tuple(fields) => {
                self.out.ascii(b'(');
                self.parts.push(TypePart::Text(if fields.len() == 1 { ",)" } else { ")" }));
                self.list(fields, TypePart::Type);
            }
            Type::Function(f) => {
                self.out.text("fn(");
                if let TypeNames::Program { symbols, .. } = &mut self.names {
                    symbols.enter_type(f.symbols);
                    self.parts.push(TypePart::LeaveFunction);
                }
                self.parts.extend([TypePart::Type(f.ret), TypePart::Text(") -> ")]);
                self.list(&f.params, TypePart::Type);
            }
        }
    }

    fn tensor(&mut self, t: &TensorType) {
        self.out.text("Tensor[");
        self.parts.push(TypePart::Text("]"));
        if let Some(elements) = &t.elements {
            let is_list = t.shape.as_ref().is_none_or(|s| !s.is_empty());
            self.parts.extend(is_list.then_some(TypePart::Text("]")));
            self.list(elements, TypePart::Dim);
            self.parts.push(TypePart::Text(if is_list { ", [" } else { ", " }));
        }
        self.parts.push(TypePart::Text(t.dtype.name()));
        match t.shape.as_deref() {
            None => self.out.text("?, "),
            Some(dims) => {
                self.out.ascii(b'(');
                self.parts.push(TypePart::Text(if dims.len() == 1 { ",), " } else { "), " }));
                self.list(dims, TypePart::Dim);
            }
        }
    }

    /// Pushes items with commas between them, to be printed later.
    fn list<T: Copy>(&mut self, items: &[T], part: fn(T) -> TypePart) {
        // A message is cut before the remaining items.
        let most = if self.is_message() { LONGEST } else { usize::MAX };
        for (i, &item) in items.iter().take(most).enumerate().rev() {
            self.parts.push(part(item));
            if i > 0 {
                self.parts.push(TypePart::Text(", "));
            }
        }
    }

    fn dim(&mut self, dim: DimId) {
        let TypeText { cx, out, names, .. } = self;
        let kind = cx.types.dims.get(dim);
        if let Dim::Op { .. } | Dim::Sum(_) = kind {
            return self.computed_dim(dim);
        }
        match (kind, names) {
            (Dim::Unknown, _) => out.ascii(b'?'),
            (&Dim::Const(c), _) if c >= 0 => out.number(c as u64),
            (&Dim::Const(c), TypeNames::Message) => out.signed(c),
            // No dimension starts with a sign, and the magnitude of the smallest integer does not
            // fit an int64.
            (Dim::Const(i64::MIN), _) => {
                out.text("0 - ");
                out.number(i64::MAX as u64);
                out.text(" - 1");
            }
            (Dim::Const(c), _) => {
                out.text("0 - ");
                out.number(c.unsigned_abs());
            }
            (&Dim::Symbol(s), TypeNames::Program { symbols, .. }) => out.text(symbols.text(cx, s)),
            (&Dim::Symbol(s), TypeNames::Message) => out.text(cx.names.get(cx.types.dims.symbol_name(s))),
            (&Dim::Bound { depth, index }, names) => {
                let number = match names {
                    TypeNames::Program { symbols, .. } => symbols.bound(depth, index),
                    TypeNames::Message => Some(index),
                };
                let Some(number) = number else { return out.ascii(b'?') };
                out.ascii(b'n');
                out.number(number.into());
                if depth > 0 && matches!(names, TypeNames::Message) {
                    out.ascii(b'_');
                    out.number(depth.into());
                }
            }
            (Dim::Op { .. } | Dim::Sum(_), _) => {}
        }
    }

    fn computed_dim(&mut self, dim: DimId) {
        let TypeText { cx, out, names, parts } = self;
        let written = match names {
            TypeNames::Program { symbols, .. } => {
                if !symbols.prepare(cx, dim) {
                    return out.ascii(b'?');
                }
                symbols.written(cx, dim)
            }
            TypeNames::Message => cx.types.dims.get(dim),
        };
        match written {
            &Dim::Op { op, lhs, rhs } => {
                out.text(op.name());
                out.ascii(b'(');
                parts.extend([TypePart::Text(")"), TypePart::Dim(rhs), TypePart::Text(", "), TypePart::Dim(lhs)]);
            }
            Dim::Sum(terms) => {
                let from = parts.len();
                for (i, product) in terms.iter().flat_map(products).enumerate() {
                    parts.push(TypePart::Text(match (i, product.negative) {
                        (0, false) => "",
                        (0, true) => "0 - ",
                        (_, false) => " + ",
                        (_, true) => " - ",
                    }));
                    parts.extend(product.magnitude.map(TypePart::Number));
                    for (j, &f) in product.factors.iter().enumerate() {
                        if j > 0 || product.magnitude.is_some() {
                            parts.push(TypePart::Text(" * "));
                        }
                        let sum = matches!(cx.types.dims.get(f), Dim::Sum(_));
                        parts.extend(sum.then_some(TypePart::Text("(")));
                        parts.push(TypePart::Dim(f));
                        parts.extend(sum.then_some(TypePart::Text(")")));
                    }
                }
                parts[from..].reverse();
            }
            _ => {}
        }
    }
}
