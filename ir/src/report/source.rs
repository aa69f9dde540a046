//! Source texts.

/// A text with the name that diagnostics give it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    name: String,
    text: String,
}

impl Source {
    /// Returns a source with a text, such as the contents of the file `name`.
    ///
    /// Cost: linear in the text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        Source { name: name.into(), text: text.into() }
    }

    /// Returns the name that diagnostics give the text.
    ///
    /// Cost: one entry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text.
    ///
    /// Cost: one entry.
    pub fn text(&self) -> &str {
        &self.text
    }
}
