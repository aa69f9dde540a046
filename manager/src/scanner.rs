//! The characters of a text, and the values and lists that are written in it: `[1,2]`,
//! `[a,"b c"]`.

/// Returns true if a character needs no quotes in a pipeline.
pub(crate) fn is_bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '+' | '@' | '%' | '/' | ':')
}

/// A text that is being read.
pub(crate) struct Scanner {
    pub(crate) chars: Vec<char>,
    pub(crate) at: usize,
}

/// A mistake in a text.
pub(crate) struct Mistake {
    /// The character that it is about, counted from 0.
    pub(crate) at: usize,
    pub(crate) message: String,
    /// The name that was probably meant.
    pub(crate) suggestion: Option<String>,
}

impl Mistake {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Mistake {
        Mistake { at, message: message.into(), suggestion: None }
    }
}

impl Scanner {
    pub(crate) fn new(text: &str) -> Scanner {
        Scanner { chars: text.chars().collect(), at: 0 }
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    pub(crate) fn skip_blanks(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Takes a character, after blanks, if it is `c`.
    pub(crate) fn take(&mut self, c: char) -> bool {
        self.skip_blanks();
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn expect(&mut self, c: char, wanted: &'static str) -> Result<(), Mistake> {
        if self.take(c) { Ok(()) } else { Err(self.unexpected(wanted)) }
    }

    pub(crate) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> String {
        self.skip_blanks();
        let start = self.at;
        while self.peek().is_some_and(&accept) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    /// Returns the mistake that something else was wanted here.
    pub(crate) fn unexpected(&self, wanted: &str) -> Mistake {
        let found = self.peek().map_or_else(|| "the end".to_string(), |c| format!("`{c}`"));
        Mistake::new(self.at, format!("expected {wanted}, found {found}"))
    }

    /// Reads a word, or a text in quotes.
    pub(crate) fn value(&mut self) -> Result<String, Mistake> {
        if self.peek() != Some('"') {
            let word = self.take_while(is_bare);
            return if word.is_empty() { Err(self.unexpected("a value")) } else { Ok(word) };
        }
        let opened = self.at;
        self.at += 1;
        let mut value = String::new();
        loop {
            let next = self.peek();
            self.at += 1;
            match next {
                Some('"') => return Ok(value),
                Some('\\') if matches!(self.peek(), Some('"' | '\\')) => {
                    value.extend(self.peek());
                    self.at += 1;
                }
                Some(c) => value.push(c),
                None => return Err(Mistake::new(opened, "the text is not closed with `\"`")),
            }
        }
    }

    /// Reads a list of values.
    pub(crate) fn list(&mut self) -> Result<Vec<String>, Mistake> {
        self.expect('[', "`[`")?;
        let mut items = Vec::new();
        while !self.take(']') {
            if !items.is_empty() {
                self.expect(',', "`,` or `]`")?;
            }
            self.skip_blanks();
            items.push(self.value()?);
        }
        Ok(items)
    }
}

/// Returns a value as pipelines write it: in quotes unless it is a word.
pub(crate) fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_bare) {
        return text.to_string();
    }
    in_quotes(text)
}

/// Returns a value in quotes.
pub(crate) fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns a list as it is written, in brackets and with commas between the items.
pub(crate) fn list_text(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

/// Returns the items of a written list, without their quotes; `None` if the text is not a list.
/// Items may have blanks around them.
pub(crate) fn parse_list(text: &str) -> Option<Vec<String>> {
    let mut scanner = Scanner::new(text);
    let items = scanner.list().ok()?;
    scanner.skip_blanks();
    scanner.peek().is_none().then_some(items)
}
