//! The error for unknown names.

use std::fmt;

use crate::error::in_own_words;

/// A name that is not known, with the nearest known name and all known names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName {
    /// The kind of the thing that the name should name: `pass`, `config key`,
    /// `option of FoldConstant`.
    pub what: String,
    /// The name.
    pub name: String,
    /// The known name that was probably meant.
    pub suggestion: Option<String>,
    /// All known names, sorted.
    pub known: Vec<String>,
}

/// The greatest number of known names that a message lists.
const MAX_LISTED: usize = 100;

impl UnknownName {
    /// Makes the error for a name that is not among the known names.
    ///
    /// Cost: linear in the text.
    pub fn new<'a>(what: impl Into<String>, name: &str, known: impl IntoIterator<Item = &'a str>) -> UnknownName {
        let mut known: Vec<String> = known.into_iter().map(str::to_string).collect();
        known.sort();
        known.dedup();
        let suggestion = anfora_ir::did_you_mean(name, known.iter().map(String::as_str)).map(str::to_string);
        UnknownName { what: what.into(), name: name.to_string(), suggestion, known }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnknownName { what, name, suggestion, known } = self;
        write!(f, "unknown {what} `{name}`")?;
        if let Some(suggestion) = suggestion {
            write!(f, "; did you mean `{suggestion}`?")?;
        }
        match known.len() {
            0 => f.write_str(" (there are none)"),
            1..=MAX_LISTED => write!(f, " (known: {})", known.join(", ")),
            more => write!(f, " (known: {}, … and {} more)", known[..MAX_LISTED].join(", "), more - MAX_LISTED),
        }
    }
}

impl std::error::Error for UnknownName {}

in_own_words!(UnknownName);

pub(crate) fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '-')
}

pub(crate) fn is_name(name: &str) -> bool {
    name.starts_with(char::is_alphabetic) && name.chars().all(is_name_char)
}
