//! Lists as the values of settings, and their written form: `[1,2]`, `[a,"b c"]`.

use std::fmt;

use crate::scanner::{Scanner, is_bare};

/// A list of texts as the value of a setting: a constant list, or a given one. Two lists are equal
/// if they have the same texts.
#[derive(Clone, Debug)]
pub enum TextList {
    /// The list of a declaration.
    Static(&'static [&'static str]),
    /// A given list.
    Owned(Vec<String>),
}

impl TextList {
    /// Returns the texts, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.len()).map(|i| match self {
            TextList::Static(texts) => texts[i],
            TextList::Owned(texts) => texts[i].as_str(),
        })
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        match self {
            TextList::Static(texts) => texts.len(),
            TextList::Owned(texts) => texts.len(),
        }
    }

    /// Returns true if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl PartialEq for TextList {
    fn eq(&self, other: &TextList) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for TextList {}

/// Returns a value as pipelines write it: in quotes unless it is a word.
pub(crate) fn quoted(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_bare) {
        return text.to_string();
    }
    in_quotes(text)
}

/// Returns a value in quotes.
pub(crate) fn in_quotes(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// Writes a list in brackets, with commas between the items.
pub(crate) fn write_list(f: &mut fmt::Formatter<'_>, items: impl Iterator<Item = String>) -> fmt::Result {
    f.write_str("[")?;
    for (i, item) in items.enumerate() {
        write!(f, "{}{item}", if i == 0 { "" } else { "," })?;
    }
    f.write_str("]")
}

/// Returns the items of a written list, without their quotes; `None` if the text is not a list.
/// Items may have blanks around them.
pub(crate) fn parse_list(text: &str) -> Option<Vec<String>> {
    let mut scanner = Scanner::new(text);
    let items = scanner.list().ok()?;
    scanner.skip_blanks();
    scanner.peek().is_none().then_some(items)
}
