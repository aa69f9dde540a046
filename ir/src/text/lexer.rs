//! The lexer: splits the text format into tokens, by bytes, without allocation.

use crate::tables::dtype::DType;

/// The kind of a token.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    End,
    /// No valid token: a stray character, or a string or comment that is not closed.
    Bad,
    /// `%NAME` or `%"…"`
    Local,
    /// `@NAME` or `@"…"`
    Global,
    /// A word that is not a keyword, with the dotted words that follow it.
    Word,
    /// Digits, with fraction, exponent and suffix; or `0x` and hexadecimal digits.
    Number,
    /// `"…"`
    Str,
    LParen,
    RParen,
    LBrace,
    RBrace,
    LBracket,
    RBracket,
    Less,
    Greater,
    Comma,
    Semicolon,
    Colon,
    Equal,
    Arrow,
    Minus,
    Plus,
    Star,
    Dot,
    Question,
    /// `!NAME`
    Alias,
    /// `#[`
    Meta,
    /// `#![`
    ModuleMeta,
    Any,
    Attr,
    Dataflow,
    Declare,
    Def,
    Dense,
    Else,
    False,
    Fn,
    If,
    Let,
    None,
    Op,
    Output,
    Private,
    Shape,
    Tensor,
    True,
    Type,
}

impl Kind {
    /// Returns true for a word or keyword, which can be the key of an attribute.
    pub(crate) fn is_word(self) -> bool {
        self == Kind::Word || self as u8 >= Kind::Any as u8
    }

    /// Returns the name of the kind in messages.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Kind::End => "the end of the text",
            Kind::Bad => "something that is no token",
            Kind::Local => "a local (`%name`)",
            Kind::Global => "a global (`@name`)",
            Kind::Word => "a name",
            Kind::Number => "a number",
            Kind::Str => "a string",
            Kind::LParen => "`(`",
            Kind::RParen => "`)`",
            Kind::LBrace => "`{`",
            Kind::RBrace => "`}`",
            Kind::LBracket => "`[`",
            Kind::RBracket => "`]`",
            Kind::Less => "`<`",
            Kind::Greater => "`>`",
            Kind::Comma => "`,`",
            Kind::Semicolon => "`;`",
            Kind::Colon => "`:`",
            Kind::Equal => "`=`",
            Kind::Arrow => "`->`",
            Kind::Minus => "`-`",
            Kind::Plus => "`+`",
            Kind::Star => "`*`",
            Kind::Dot => "`.`",
            Kind::Question => "`?`",
            Kind::Alias => "an alias (`!name`)",
            Kind::Meta => "`#[`",
            Kind::ModuleMeta => "`#![`",
            Kind::Any => "`Any`",
            Kind::Attr => "`attr`",
            Kind::Dataflow => "`dataflow`",
            Kind::Declare => "`declare`",
            Kind::Def => "`def`",
            Kind::Dense => "`dense`",
            Kind::Else => "`else`",
            Kind::False => "`false`",
            Kind::Fn => "`fn`",
            Kind::If => "`if`",
            Kind::Let => "`let`",
            Kind::None => "`none`",
            Kind::Op => "`op`",
            Kind::Output => "`output`",
            Kind::Private => "`private`",
            Kind::Shape => "`shape`",
            Kind::Tensor => "`Tensor`",
            Kind::True => "`true`",
            Kind::Type => "`type`",
        }
    }
}

#[inline]
fn keyword(word: &[u8]) -> Kind {
    match word {
        b"let" => Kind::Let,
        b"Any" => Kind::Any,
        b"attr" => Kind::Attr,
        b"dataflow" => Kind::Dataflow,
        b"declare" => Kind::Declare,
        b"def" => Kind::Def,
        b"dense" => Kind::Dense,
        b"else" => Kind::Else,
        b"false" => Kind::False,
        b"fn" => Kind::Fn,
        b"if" => Kind::If,
        b"none" => Kind::None,
        b"op" => Kind::Op,
        b"output" => Kind::Output,
        b"private" => Kind::Private,
        b"shape" => Kind::Shape,
        b"Tensor" => Kind::Tensor,
        b"true" => Kind::True,
        b"type" => Kind::Type,
        _ => Kind::Word,
    }
}

/// Returns true if a word is a keyword, an element type or a number (`inff`). Such a word names an
/// operator or a dimension only in quotes.
pub(crate) fn is_reserved(word: &str) -> bool {
    keyword(word.as_bytes()) != Kind::Word || word.parse::<DType>().is_ok() || special_float(word).is_some()
}

/// Splits `inff16` and the like. Returns true for a NaN, and the suffix.
pub(crate) fn special_float(word: &str) -> Option<(bool, &str)> {
    let (nan, suffix) = match (word.strip_prefix("inf"), word.strip_prefix("nan")) {
        (Some(s), _) => (false, s),
        (_, Some(s)) => (true, s),
        _ => return None,
    };
    (suffix.is_empty() || suffix_dtype(suffix).is_some_and(DType::is_float)).then_some((nan, suffix))
}

/// The suffixes of numbers. If a type has two suffixes, the printer writes the first.
const SUFFIXES: [(&str, DType); 13] = [
    ("f", DType::Float32),
    ("f32", DType::Float32),
    ("f64", DType::Float64),
    ("f16", DType::Float16),
    ("bf16", DType::BFloat16),
    ("i8", DType::Int8),
    ("i16", DType::Int16),
    ("i32", DType::Int32),
    ("i64", DType::Int64),
    ("u8", DType::UInt8),
    ("u16", DType::UInt16),
    ("u32", DType::UInt32),
    ("u64", DType::UInt64),
];

/// Returns the element type of a suffix.
pub(crate) fn suffix_dtype(suffix: &str) -> Option<DType> {
    SUFFIXES.iter().find(|&&(text, _)| text == suffix).map(|&(_, dtype)| dtype)
}

/// Returns the suffix of numbers of an element type. It is empty for int32, which is written
/// without a suffix, and for types that have none.
pub(crate) fn dtype_suffix(dtype: DType) -> &'static str {
    SUFFIXES.iter().find(|&&(_, of)| of == dtype && of != DType::Int32).map_or("", |&(text, _)| text)
}

/// A token: its kind, and its bytes in the text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    /// The start and, in the upper half, the end. A token with two fields is passed in registers.
    /// With three fields it went through memory and was read in larger pieces than it was written
    /// in, which took a fifth of the time of parsing.
    bounds: u64,
}

impl Token {
    #[inline(always)]
    pub(crate) fn new(kind: Kind, start: u32, end: u32) -> Token {
        Token { kind, bounds: u64::from(end) << 32 | u64::from(start) }
    }

    #[inline(always)]
    pub(crate) fn start(self) -> u32 {
        self.bounds as u32
    }

    #[inline(always)]
    pub(crate) fn end(self) -> u32 {
        (self.bounds >> 32) as u32
    }

    #[inline(always)]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start() as usize..self.end() as usize
    }
}

const NAME: u8 = 1;
const SPACE: u8 = 2;
const DIGIT: u8 = 4;
const WORD_START: u8 = 8;
const WORD: u8 = 16;

const fn classes() -> [u8; 256] {
    let mut table = [0u8; 256];
    let mut b = 0;
    while b < 256 {
        let c = b as u8;
        if c.is_ascii_alphanumeric() || c == b'_' || c == b'$' {
            table[b] |= NAME;
            if c != b'$' {
                table[b] |= WORD;
            }
        }
        if c.is_ascii_alphabetic() || c == b'_' {
            table[b] |= WORD_START;
        }
        if c.is_ascii_digit() {
            table[b] |= DIGIT;
        }
        if matches!(c, b' ' | b'\t' | b'\n' | b'\r') {
            table[b] |= SPACE;
        }
        b += 1;
    }
    table
}

static CLASS: [u8; 256] = classes();

/// Returns true if a name can follow `%` or `@` without quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| CLASS[b as usize] & NAME != 0)
}

/// Returns true if a name has the letters of a word, such as an operator, a key or a dimension. The
/// word may be reserved.
pub(crate) fn is_word(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| CLASS[b as usize] & WORD_START != 0) && bytes.all(|b| CLASS[b as usize] & WORD != 0)
}

/// The lexer: reads the tokens of a text one after the other.
#[derive(Copy, Clone)]
pub(crate) struct Lexer<'s> {
    bytes: &'s [u8],
    pos: usize,
}

impl<'s> Lexer<'s> {
    /// Returns a lexer that starts at a byte offset. The text must be shorter than 4 GiB.
    pub(crate) fn new(text: &'s str, pos: usize) -> Lexer<'s> {
        Lexer { bytes: text.as_bytes(), pos }
    }

    #[inline(always)]
    fn at(&self, i: usize) -> u8 {
        self.bytes.get(i).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn is(&self, i: usize, class: u8) -> bool {
        CLASS[self.at(i) as usize] & class != 0
    }

    /// Returns the end of the run of bytes of a class that starts at `from`.
    #[inline(always)]
    fn end_of(&self, from: usize, class: u8) -> usize {
        let rest = self.bytes.get(from..).unwrap_or_default();
        from + rest.iter().position(|&b| CLASS[b as usize] & class == 0).unwrap_or(rest.len())
    }

    /// Returns the text from the current position on.
    #[inline]
    pub(crate) fn rest(&self) -> &'s [u8] {
        &self.bytes[self.pos..]
    }

    #[inline]
    fn token(&mut self, kind: Kind, start: usize, end: usize) -> Token {
        self.pos = end;
        Token::new(kind, start as u32, end as u32)
    }

    /// Returns the next token. At the end of the text, returns [`Kind::End`] on every call.
    #[inline]
    pub(crate) fn next(&mut self) -> Token {
        let mut start = self.pos;
        let mut first = self.at(start);
        if CLASS[first as usize] & SPACE != 0 {
            // Usually there is one space.
            start += 1;
            first = self.at(start);
            if CLASS[first as usize] & SPACE != 0 {
                start = self.end_of(start, SPACE);
                first = self.at(start);
            }
        }
        let single = match first {
            b'%' | b'@' | b'!' => {
                let kind = match first {
                    b'%' => Kind::Local,
                    b'@' => Kind::Global,
                    _ => Kind::Alias,
                };
                let end = self.end_of(start + 1, NAME);
                if end > start + 1 {
                    return self.token(kind, start, end);
                }
                if self.at(end) == b'"' && kind != Kind::Alias {
                    return self.quoted(start, end, kind);
                }
                return self.token(Kind::Bad, start, end);
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.word(start),
            b'0'..=b'9' => return self.number(start),
            b',' => Kind::Comma,
            b'(' => Kind::LParen,
            b')' => Kind::RParen,
            b';' => Kind::Semicolon,
            b'=' => Kind::Equal,
            b'[' => Kind::LBracket,
            b']' => Kind::RBracket,
            b'<' => Kind::Less,
            b'>' => Kind::Greater,
            b'{' => Kind::LBrace,
            b'}' => Kind::RBrace,
            b':' => Kind::Colon,
            b'+' => Kind::Plus,
            b'*' => Kind::Star,
            b'.' => Kind::Dot,
            b'?' => Kind::Question,
            _ => return self.rare(start),
        };
        self.token(single, start, start + 1)
    }

    #[inline]
    fn word(&mut self, start: usize) -> Token {
        let mut i = start;
        let mut dotted = false;
        loop {
            i = self.end_of(i, WORD);
            if self.at(i) == b'.' && self.is(i + 1, WORD_START) {
                dotted = true;
                i += 1;
                continue;
            }
            break;
        }
        let kind = if dotted { Kind::Word } else { keyword(&self.bytes[start..i]) };
        self.token(kind, start, i)
    }

    fn number(&mut self, start: usize) -> Token {
        let mut i = start;
        if self.at(i) == b'0' && self.at(i + 1) == b'x' {
            i += 2;
        } else {
            i = self.end_of(i, DIGIT);
            if self.at(i) == b'.' && self.is(i + 1, DIGIT) {
                i = self.end_of(i + 2, DIGIT);
            }
            if matches!(self.at(i), b'e' | b'E') {
                let sign = usize::from(matches!(self.at(i + 1), b'+' | b'-'));
                if self.is(i + 1 + sign, DIGIT) {
                    i += 1 + sign;
                }
            }
        }
        let end = self.end_of(i, NAME);
        self.token(Kind::Number, start, end)
    }

    /// Reads the remaining tokens: `-`, `->`, strings, comments, `#`, the end, and invalid tokens.
    #[cold]
    fn rare(&mut self, start: usize) -> Token {
        match self.at(start) {
            b'-' if self.at(start + 1) == b'>' => self.token(Kind::Arrow, start, start + 2),
            b'-' => self.token(Kind::Minus, start, start + 1),
            b'"' => self.quoted(start, start, Kind::Str),
            b'#' if self.at(start + 1) == b'[' => self.token(Kind::Meta, start, start + 2),
            b'#' if self.at(start + 1) == b'!' && self.at(start + 2) == b'[' => {
                self.token(Kind::ModuleMeta, start, start + 3)
            }
            b'/' if matches!(self.at(start + 1), b'/' | b'*') => self.after_comments(start),
            _ if start >= self.bytes.len() => self.token(Kind::End, start, start),
            _ => {
                let mut i = start + 1;
                // A character of several bytes is one token.
                while self.at(i) & 0xc0 == 0x80 {
                    i += 1;
                }
                self.token(Kind::Bad, start, i)
            }
        }
    }

    /// Returns the token after one or more comments.
    fn after_comments(&mut self, start: usize) -> Token {
        let mut i = start;
        while self.at(i) == b'/' {
            match self.at(i + 1) {
                b'/' => {
                    while i < self.bytes.len() && self.at(i) != b'\n' {
                        i += 1;
                    }
                }
                b'*' => match self.end_of_comment(i) {
                    Some(end) => i = end,
                    None => return self.token(Kind::Bad, i, self.bytes.len()),
                },
                _ => break,
            }
            i = self.end_of(i, SPACE);
        }
        self.pos = i;
        self.next()
    }

    /// Returns the end of the comment `/* … */` that starts at `start`; `None` if it is not closed.
    fn end_of_comment(&self, start: usize) -> Option<usize> {
        let mut i = start;
        let mut depth = 0usize;
        loop {
            match (self.at(i), self.at(i + 1)) {
                (b'/', b'*') => depth += 1,
                (b'*', b'/') => depth -= 1,
                _ if i >= self.bytes.len() => return None,
                _ => {
                    i += 1;
                    continue;
                }
            }
            i += 2;
            if depth == 0 {
                return Some(i);
            }
        }
    }

    /// Returns a token whose text is in quotes. A string ends on its line.
    fn quoted(&mut self, start: usize, quote: usize, kind: Kind) -> Token {
        let mut i = quote + 1;
        loop {
            match self.at(i) {
                b'"' => return self.token(kind, start, i + 1),
                b'\\' if self.at(i + 1) == b'"' || self.at(i + 1) == b'\\' => i += 2,
                b'\n' => return self.token(Kind::Bad, start, i),
                0 if i >= self.bytes.len() => return self.token(Kind::Bad, start, i),
                _ => i += 1,
            }
        }
    }

    /// Returns the digits that follow immediately, as after the dot of a projection. The token is
    /// empty if there are none.
    pub(crate) fn digits(&mut self) -> Token {
        let start = self.pos;
        let end = self.end_of(start, DIGIT);
        self.token(Kind::Number, start, end)
    }
}

/// Returns a message for a [`Kind::Bad`] token with this text, and possibly a help text.
pub(crate) fn bad_token_message(text: &str) -> (String, Option<&'static str>) {
    match text.as_bytes() {
        [b'"', ..] | [b'%' | b'@', b'"', ..] => {
            ("the string is not closed".to_string(), Some("a string ends on its line; write `\\n` for a line break"))
        }
        [b'/', b'*', ..] => ("the comment is not closed".to_string(), Some("`/* … */` nest")),
        [b'!'] => ("`!` without a name".to_string(), Some("an alias is `!name`")),
        [b'%'] => ("`%` without a name".to_string(), Some("a local is `%name` or `%\"any string\"`")),
        [b'@'] => ("`@` without a name".to_string(), Some("a global is `@name` or `@\"any string\"`")),
        _ => (format!("unexpected character `{}`", text.escape_debug()), None),
    }
}

/// Returns the text that a string in quotes denotes.
///
/// # Errors
/// The bytes within `quoted` of an escape that is none of `\" \\ \n \t \u{…}`.
pub(crate) fn unescape(quoted: &str) -> Result<std::borrow::Cow<'_, str>, std::ops::Range<usize>> {
    let inner = quoted.strip_prefix('"').and_then(|s| s.strip_suffix('"')).unwrap_or(quoted);
    if !inner.contains('\\') {
        return Ok(inner.into());
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let offset = 1 + (inner.len() - rest.len()) + at;
        let after = &rest[at + 1..];
        let next = after.chars().next();
        let mut taken = next.map_or(0, char::len_utf8);
        match next {
            Some('"') => out.push('"'),
            Some('\\') => out.push('\\'),
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let close = after.bytes().take(16).position(|b| b == b'}');
                let c = close.and_then(|close| {
                    let digits = after.get(1..close)?.strip_prefix('{')?;
                    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
                    plain.then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32)).flatten()
                });
                match (c, close) {
                    (Some(c), Some(close)) => {
                        out.push(c);
                        taken = close + 1;
                    }
                    (_, close) => return Err(offset..offset + 1 + close.map_or(1, |c| c + 1)),
                }
            }
            _ => return Err(offset..offset + 1 + taken),
        }
        rest = &after[taken..];
    }
    out.push_str(rest);
    Ok(out.into())
}
