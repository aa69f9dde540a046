//! Dimensions: an operator-precedence machine.

use std::num::IntErrorKind;

use super::{Parsed, Parser, SourceRange};
use crate::core::entity::DimId;
use crate::tables::dim::DimOp;
use crate::text::lexer::{Kind, is_reserved};

enum DimFrame {
    Paren,
    First(DimOp),
    Second(DimOp, DimId),
    /// An operator with its left operand.
    Binary(Kind, DimId),
}

/// Returns the precedence of an operator on dimensions; a higher number binds more tightly. Returns
/// `None` for other tokens.
fn precedence(kind: Kind) -> Option<u8> {
    match kind {
        Kind::Plus | Kind::Minus => Some(1),
        Kind::Star => Some(2),
        _ => None,
    }
}

impl Parser<'_, '_> {
    /// Reads a dimension.
    pub(super) fn parse_dim(&mut self) -> Parsed<DimId> {
        let mut frames: Vec<DimFrame> = Vec::new();
        loop {
            // Read a factor, or open a frame for a parenthesis or an operation.
            let tok = self.tok;
            let mut value = match tok.kind {
                Kind::Number => {
                    self.next();
                    self.dim_number(tok.into())
                }
                Kind::Question => {
                    self.next();
                    self.cx.types.dims.unknown()
                }
                Kind::LParen => {
                    self.next();
                    frames.push(DimFrame::Paren);
                    continue;
                }
                Kind::Word => {
                    let word = self.slice(tok);
                    self.next();
                    if self.tok.kind == Kind::LParen {
                        let Some(op) = DimOp::ALL.into_iter().find(|op| op.name() == word) else {
                            return Err(self.error_help(
                                tok,
                                format!("unknown operation `{word}` on dimensions"),
                                "there are floordiv, ceildiv, mod, min and max",
                            ));
                        };
                        self.next();
                        frames.push(DimFrame::First(op));
                        continue;
                    }
                    if word.contains('.') || is_reserved(word) {
                        return Err(self.error_at(tok, format!("`{word}` cannot name a dimension")));
                    }
                    let name = self.cx.names.intern(word);
                    self.symbolic_dim(name, tok.into())
                }
                Kind::Minus => {
                    return Err(self.unexpected_help("a dimension", "a negative number is written `0 - 1`"));
                }
                _ => return Err(self.unexpected("a dimension")),
            };
            // Handle what may follow a factor.
            loop {
                let next = precedence(self.tok.kind);
                while let Some(&DimFrame::Binary(operator, lhs)) = frames.last()
                    && precedence(operator) >= next
                {
                    frames.pop();
                    let dims = &mut self.cx.types.dims;
                    value = match operator {
                        Kind::Star => dims.mul(lhs, value),
                        Kind::Plus => dims.add(lhs, value),
                        _ => dims.sub(lhs, value),
                    };
                }
                if next.is_some() {
                    frames.push(DimFrame::Binary(self.tok.kind, value));
                    self.next();
                    break;
                }
                match frames.pop() {
                    None => return Ok(value),
                    Some(DimFrame::Paren) => {
                        self.expect(Kind::RParen)?;
                    }
                    Some(DimFrame::First(op)) => {
                        self.expect(Kind::Comma)?;
                        frames.push(DimFrame::Second(op, value));
                        break;
                    }
                    Some(DimFrame::Second(op, lhs)) => {
                        self.expect(Kind::RParen)?;
                        value = self.cx.types.dims.op(op, lhs, value);
                    }
                    // No operator frame is left if no operator follows.
                    Some(DimFrame::Binary(..)) => {}
                }
            }
        }
    }

    /// Returns the dimension of a number.
    pub(super) fn dim_number(&mut self, place: SourceRange) -> DimId {
        let text = &self.text[place.range()];
        match text.parse::<i64>() {
            Ok(value) => return self.cx.types.dims.constant(value),
            Err(e) if *e.kind() == IntErrorKind::PosOverflow => {
                self.error_at(place, format!("`{text}` is out of range: a dimension is at most {}", i64::MAX))
            }
            Err(_) => self.error_help(
                place,
                format!("`{text}` is not a dimension"),
                "a dimension is a whole number without a suffix",
            ),
        };
        self.cx.types.dims.unknown()
    }
}
