//! Types and dimensions as they stand in messages.

use std::fmt::Write;

use crate::core::context::Context;
use crate::core::entity::{DimId, TypeId};
use crate::tables::dim::Dim;
use crate::tables::types::Type;

/// Messages show at most this many characters of a type.
const LONGEST: usize = 400;

enum Piece {
    Type(TypeId),
    Dim(DimId),
    /// A dimension that is a factor: a sum in parentheses.
    Factor(DimId),
    Text(&'static str),
    Number(u64),
}

impl Context {
    /// A type in the text format, for messages: without aliases, cut after a few hundred characters.
    pub fn type_text(&self, ty: TypeId) -> String {
        self.pieces_text(Piece::Type(ty))
    }

    /// A dimension in the text format, for messages: cut after a few hundred characters.
    pub fn dim_text(&self, dim: DimId) -> String {
        self.pieces_text(Piece::Dim(dim))
    }

    fn pieces_text(&self, top: Piece) -> String {
        let mut out = String::new();
        let mut stack = vec![top];
        while let Some(piece) = stack.pop() {
            if out.len() > LONGEST {
                out.push('…');
                break;
            }
            match piece {
                Piece::Text(t) => out.push_str(t),
                Piece::Number(n) => {
                    let _ = write!(out, "{n}");
                }
                Piece::Type(t) => self.type_pieces(t, &mut out, &mut stack),
                Piece::Dim(d) => self.dim_pieces(d, &mut out, &mut stack),
                Piece::Factor(d) => match self.types.dims.get(d) {
                    Dim::Sum(_) => stack.extend([Piece::Text(")"), Piece::Dim(d), Piece::Text("(")]),
                    _ => stack.push(Piece::Dim(d)),
                },
            }
        }
        out
    }

    fn type_pieces(&self, ty: TypeId, out: &mut String, stack: &mut Vec<Piece>) {
        match self.types.get(ty) {
            Type::Any => out.push_str("Any"),
            Type::Error => out.push_str("an unknown type"),
            Type::Tensor(t) => {
                out.push_str("Tensor[");
                stack.push(Piece::Text("]"));
                if let Some(elements) = &t.elements {
                    let is_list = t.shape.as_ref().is_none_or(|s| !s.is_empty());
                    stack.extend(is_list.then_some(Piece::Text("]")));
                    push_list(stack, elements.iter().map(|&d| Piece::Dim(d)));
                    stack.push(Piece::Text(if is_list { ", [" } else { ", " }));
                }
                stack.push(Piece::Text(t.dtype.name()));
                match t.shape.as_deref() {
                    None => out.push_str("?, "),
                    Some(dims) => {
                        out.push('(');
                        stack.push(Piece::Text(if dims.len() == 1 { ",), " } else { "), " }));
                        push_list(stack, dims.iter().map(|&d| Piece::Dim(d)));
                    }
                }
            }
            Type::Tuple(fields) => {
                out.push('(');
                stack.push(Piece::Text(if fields.len() == 1 { ",)" } else { ")" }));
                push_list(stack, fields.iter().map(|&f| Piece::Type(f)));
            }
            Type::Function(f) => {
                out.push_str("fn(");
                stack.extend([Piece::Type(f.ret), Piece::Text(") -> ")]);
                push_list(stack, f.params.iter().map(|&p| Piece::Type(p)));
            }
        }
    }

    fn dim_pieces(&self, dim: DimId, out: &mut String, stack: &mut Vec<Piece>) {
        match self.types.dims.get(dim) {
            Dim::Unknown => out.push('?'),
            Dim::Const(c) => {
                let _ = write!(out, "{c}");
            }
            Dim::Symbol(s) => out.push_str(self.names.get(self.types.dims.symbol_name(*s))),
            Dim::Bound { depth, index } => {
                let _ = match depth {
                    0 => write!(out, "n{index}"),
                    _ => write!(out, "n{index}_{depth}"),
                };
            }
            Dim::Op { op, lhs, rhs } => {
                let _ = write!(out, "{}(", op.name());
                stack.extend([Piece::Text(")"), Piece::Dim(*rhs), Piece::Text(", "), Piece::Dim(*lhs)]);
            }
            Dim::Sum(terms) => {
                let mut pieces = Vec::new();
                for (i, t) in terms.iter().enumerate() {
                    match (i, t.coefficient < 0) {
                        (0, false) => {}
                        (0, true) => pieces.push(Piece::Text("0 - ")),
                        (_, false) => pieces.push(Piece::Text(" + ")),
                        (_, true) => pieces.push(Piece::Text(" - ")),
                    }
                    let magnitude = t.coefficient.unsigned_abs();
                    let mut first = true;
                    if magnitude != 1 || t.factors.is_empty() {
                        pieces.push(Piece::Number(magnitude));
                        first = false;
                    }
                    for &f in &t.factors {
                        if !first {
                            pieces.push(Piece::Text(" * "));
                        }
                        first = false;
                        pieces.push(Piece::Factor(f));
                    }
                }
                stack.extend(pieces.into_iter().rev());
            }
        }
    }
}

fn push_list(stack: &mut Vec<Piece>, items: impl DoubleEndedIterator<Item = Piece> + ExactSizeIterator) {
    // The text is cut before it has come to the others.
    for (i, item) in items.take(LONGEST).rev().enumerate() {
        if i > 0 {
            stack.push(Piece::Text(", "));
        }
        stack.push(item);
    }
}
