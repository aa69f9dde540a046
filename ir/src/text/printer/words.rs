//! Decides which names are written without quotes, and quotes the others.

use crate::text::lexer::{is_plain_name, is_reserved, is_word};

use super::output::Output;

/// Returns true if an identifier is an operation on dimensions.
pub(super) fn is_dim_op(s: &str) -> bool {
    crate::tables::dim::DimOp::ALL.iter().any(|op| op.name() == s)
}

/// Returns true if the name of an operator needs no quotes: it consists of words with dots between
/// them and is not reserved.
pub(super) fn is_op_name(s: &str) -> bool {
    s.split('.').all(is_word) && !is_reserved(s)
}

impl Output<'_> {
    /// Prints a string in quotes, with escapes.
    pub(super) fn quoted(&mut self, s: &str) {
        self.ascii(b'"');
        let mut plain = 0;
        for (at, c) in s.char_indices() {
            let escape = match c {
                '"' => "\\\"",
                '\\' => "\\\\",
                '\n' => "\\n",
                '\t' => "\\t",
                c if c.is_control()
                    || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
                {
                    ""
                }
                _ => continue,
            };
            self.text(&s[plain..at]);
            plain = at + c.len_utf8();
            if escape.is_empty() {
                use std::fmt::Write;
                let _ = write!(self, "\\u{{{:x}}}", c as u32);
            } else {
                self.text(escape);
            }
        }
        self.text(&s[plain..]);
        self.ascii(b'"');
    }

    /// Prints the name of a local or global after its `%` or `@`.
    #[inline]
    pub(super) fn name(&mut self, s: &str) {
        if is_plain_name(s) { self.text(s) } else { self.quoted(s) }
    }
}
