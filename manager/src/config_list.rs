//! Lists as the values of settings, and their written form: `[1,2]`, `[a,"b c"]`.

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
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let (fixed, given): (&[&str], &[String]) = match self {
            TextList::Static(texts) => (texts, &[]),
            TextList::Owned(texts) => (&[], texts),
        };
        fixed.iter().copied().chain(given.iter().map(String::as_str))
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
