//! The text format: `.anf`.

mod type_text;
