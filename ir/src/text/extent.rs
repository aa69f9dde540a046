//! Finds the ends of constructs in the text from their starts. Bodies store only the starts.

use std::ops::Range;

use super::lexer::{Kind, Lexer, Token};

/// A reader of tokens that counts brackets.
struct Scanner<'s> {
    lexer: Lexer<'s>,
    tok: Token,
    /// The end of the last token that was taken.
    end: usize,
}

impl<'s> Scanner<'s> {
    fn new(text: &'s str, start: usize) -> Scanner<'s> {
        let start = if text.is_char_boundary(start) { start } else { text.len() };
        let mut lexer = Lexer::new(text, start);
        let tok = lexer.next();
        Scanner { lexer, tok, end: start }
    }

    fn next(&mut self) {
        self.end = self.tok.end() as usize;
        self.tok = self.lexer.next();
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.tok.kind == kind;
        if found {
            self.next();
        }
        found
    }

    /// Takes at most `most` tokens; a group in brackets counts as one token. Stops before a token
    /// of the kinds `stops` outside brackets, and before an unmatched closing bracket.
    fn take(&mut self, stops: &[Kind], most: usize) {
        let (mut depth, mut taken) = (0usize, 0);
        while taken < most {
            match self.tok.kind {
                Kind::End => return,
                kind if depth == 0 && stops.contains(&kind) => return,
                Kind::LParen | Kind::LBrace | Kind::LBracket => depth += 1,
                Kind::RParen | Kind::RBrace | Kind::RBracket if depth > 0 => depth -= 1,
                Kind::RParen | Kind::RBrace | Kind::RBracket => return,
                _ => {}
            }
            self.next();
            taken += usize::from(depth == 0);
        }
    }

    /// Takes tokens and whole groups, up to a token of the kinds `stops` or an unmatched closing
    /// bracket.
    fn until(&mut self, stops: &[Kind]) {
        self.take(stops, usize::MAX);
    }

    /// Takes a group: an opening bracket and everything up to the matching closing bracket.
    fn group(&mut self) {
        self.take(&[], 1);
    }

    /// Takes an expression without the arguments and projections after it. Returns true if these
    /// may follow.
    fn primary(&mut self) -> bool {
        match self.tok.kind {
            Kind::Fn => {
                self.next();
                self.group();
                self.until(&[Kind::LBrace, Kind::Semicolon, Kind::Comma]);
                if self.tok.kind == Kind::LBrace {
                    self.group();
                }
                return false;
            }
            Kind::If => {
                self.next();
                self.group();
                self.group();
                if self.eat(Kind::Else) {
                    self.group();
                }
                return false;
            }
            Kind::LParen | Kind::LBrace => self.group(),
            Kind::Minus => {
                self.next();
                self.next();
            }
            Kind::Dense => {
                self.next();
                self.until(&[Kind::Greater, Kind::Semicolon]);
                self.eat(Kind::Greater);
                match self.tok.kind {
                    Kind::LBracket => self.group(),
                    Kind::Str => self.next(),
                    _ => {}
                }
            }
            Kind::Op => {
                self.next();
                self.eat(Kind::Str);
                if self.tok.kind == Kind::LParen {
                    self.group();
                }
            }
            Kind::Word => {
                self.next();
                if self.tok.kind == Kind::LParen {
                    self.group();
                }
            }
            Kind::End => return false,
            _ => self.next(),
        }
        true
    }

    /// Takes up to `most` argument lists and projections.
    fn postfixes(&mut self, most: usize) {
        for _ in 0..most {
            match self.tok.kind {
                Kind::LParen => self.group(),
                Kind::Dot => {
                    self.tok = self.lexer.digits();
                    self.next();
                }
                _ => return,
            }
        }
    }

    fn range_from(&self, start: usize) -> Range<usize> {
        start..self.end.max(start)
    }
}

/// Returns the range of the token at a place.
pub(crate) fn token_extent(text: &str, start: usize) -> Range<usize> {
    let scanner = Scanner::new(text, start);
    scanner.tok.range()
}

/// Returns the bytes of the expression, the `let` (up to its `;`) or the item that starts at a
/// place. An expression includes all arguments and projections after it. Linear in the extent.
pub fn expr_extent(text: &str, start: usize) -> Range<usize> {
    let mut s = Scanner::new(text, start);
    let start = s.tok.start() as usize;
    match s.tok.kind {
        Kind::Let => s.until(&[Kind::Semicolon]),
        Kind::Def | Kind::Declare => {
            s.until(&[Kind::LBrace, Kind::Semicolon]);
            if s.tok.kind == Kind::LBrace {
                s.group();
            }
        }
        _ => {
            if s.primary() {
                s.postfixes(usize::MAX);
            }
        }
    }
    s.range_from(start)
}

/// Like [`expr_extent`], but with only the first `postfixes` argument lists and projections after
/// the primary expression.
pub(crate) fn postfix_extent(text: &str, start: usize, postfixes: usize) -> Range<usize> {
    let mut s = Scanner::new(text, start);
    let start = s.tok.start() as usize;
    if s.primary() {
        s.postfixes(postfixes);
    }
    s.range_from(start)
}

/// Returns the bytes of operand `index` of the call or tuple that starts at a place. If `postfixes`
/// is 0, this is an operand of an operator's call or a field of a tuple; otherwise it is an
/// argument in that argument list after a primary expression. Returns `None` if there is no such
/// operand.
pub(crate) fn operand_extent(text: &str, start: usize, postfixes: usize, index: usize) -> Option<Range<usize>> {
    let mut s = Scanner::new(text, start);
    if postfixes == 0 {
        if s.eat(Kind::Op) {
            s.eat(Kind::Str);
        } else if s.tok.kind == Kind::Word {
            s.next();
        }
    } else if s.primary() {
        s.postfixes(postfixes - 1);
    }
    if !s.eat(Kind::LParen) {
        return None;
    }
    for _ in 0..index {
        s.until(&[Kind::Comma]);
        if !s.eat(Kind::Comma) {
            return None;
        }
    }
    let from = s.tok.start() as usize;
    s.until(&[Kind::Comma]);
    (s.end > from).then_some(from..s.end)
}

/// Returns the bytes of the annotation of the `let` that starts at a place.
pub(crate) fn annotation_extent(text: &str, start: usize) -> Option<Range<usize>> {
    let mut s = Scanner::new(text, start);
    if !(s.eat(Kind::Let) && s.eat(Kind::Local) && s.eat(Kind::Colon)) {
        return None;
    }
    let from = s.tok.start() as usize;
    s.until(&[Kind::Equal, Kind::Semicolon]);
    (s.end > from).then_some(from..s.end)
}

/// Returns the bytes of the stated result type of the `fn`, `def` or `declare` that starts at a
/// place.
pub(crate) fn result_extent(text: &str, start: usize) -> Option<Range<usize>> {
    let mut s = Scanner::new(text, start);
    s.until(&[Kind::LParen, Kind::Semicolon]);
    if s.tok.kind != Kind::LParen {
        return None;
    }
    s.group();
    if !s.eat(Kind::Arrow) {
        return None;
    }
    let from = s.tok.start() as usize;
    s.until(&[Kind::LBrace, Kind::Semicolon]);
    (s.end > from).then_some(from..s.end)
}

/// Returns the bytes of the name of the `def` or `declare` that starts at a place.
pub(crate) fn item_name_extent(text: &str, start: usize) -> Range<usize> {
    let mut s = Scanner::new(text, start);
    s.until(&[Kind::Global, Kind::LParen]);
    s.tok.range()
}
