//! Programs whose floats of 16 bits are read as `float32`.
//!
//! A pass that computes in fewer bits changes results, and a comparison may then go the other way.
//! But if all its floats of 16 bits are `float32`, no bit of any result is different: the casts
//! change nothing, and the constants have few digits.

use anfora::ir::{Module, Source, parse_module};

/// Returns a program with `float32` in the place of an element type of 16 bits; `None` if that is
/// no program, such as one that reads the bits of a number.
pub(crate) fn widened(module: &Module, low: &str) -> Option<Module> {
    let suffix = match low {
        "float16" => "f16",
        _ => "bf16",
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$%@".contains(c);
    let mut text = String::new();
    let mut word = String::new();
    for c in module.to_text().chars().chain(['\n']) {
        if is_part(c) {
            word.push(c);
            continue;
        }
        let is_number =
            word.starts_with(|c: char| c.is_ascii_digit()) || ["inf", "nan"].iter().any(|n| word.starts_with(n));
        match word.strip_suffix(suffix).filter(|number| is_number && !number.ends_with('b')) {
            Some(number) => text.extend([number, "f"]),
            None if word == low => text.push_str("float32"),
            None => text.push_str(&word),
        }
        word.clear();
        text.push(c);
    }
    parse_module(Source::new("widened", text), anfora::ops::standard()).ok()
}
