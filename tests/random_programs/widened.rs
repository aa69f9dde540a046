//! Programs whose floats of 16 bits are read as `float32`.
//!
//! A pass that computes in fewer bits changes results, and a comparison may then go the other way.
//! But if all its floats of 16 bits are `float32`, no bit of any result is different: the casts
//! change nothing. The constants have the precision of 16 bits, before the pass and after it.

use anfora::ir::{Module, Source, parse_module};
use half::{bf16, f16};

/// Returns a program with `float32` in the place of an element type of 16 bits, and with constants
/// that have that type's precision. Returns `None` if that is no program, such as one that reads
/// the bits of a number.
pub(crate) fn widened(module: &Module, low: &str) -> Option<Module> {
    let text = module.to_text();
    let mut widener = Widener { low, text: String::with_capacity(text.len()), element_type: false, in_list: false };
    let mut word = String::new();
    let mut in_payload = false;
    for c in text.chars().chain(['\n']) {
        // The payload of a NaN is no number, and is lost by a cast.
        in_payload |= c == '(' && word == "nan" && widener.in_list;
        if in_payload {
            in_payload = c != ')';
            continue;
        }
        let is_exponent = c == '-' && word.ends_with('e') && word.starts_with(|c: char| c.is_ascii_digit());
        if is_exponent || c.is_ascii_alphanumeric() || "_.$%@".contains(c) {
            word.push(c);
            continue;
        }
        widener.word(&word);
        word.clear();
        match c {
            '[' if widener.text.ends_with('>') => widener.in_list = widener.element_type,
            ']' => widener.in_list = false,
            _ => {}
        }
        widener.text.push(c);
    }
    parse_module(Source::new("widened", widener.text), anfora::ops::standard()).ok()
}

struct Widener<'a> {
    low: &'a str,
    text: String,
    /// True if the last name of an element type is `float32` or that of 16 bits.
    element_type: bool,
    /// True in the elements of a constant of such a type.
    in_list: bool,
}

impl Widener<'_> {
    fn word(&mut self, word: &str) {
        let suffix = if self.low == "float16" { "f16" } else { "bf16" };
        let is_float = word.starts_with("float") || word.starts_with("bfloat");
        if is_float || word.starts_with("int") || word.starts_with("uint") || word == "bool" {
            self.element_type = word == "float32" || word == self.low;
        }
        let is_digits = word.starts_with(|c: char| c.is_ascii_digit()) && !word.starts_with("0x");
        let is_number = is_digits || word.starts_with("inf") || word.starts_with("nan");
        let low = word.strip_suffix(suffix).filter(|number| is_number && !number.ends_with('b'));
        if word == self.low {
            self.text.push_str("float32");
        } else if let Some(number) = low.or(word.strip_suffix('f').filter(|_| is_digits)) {
            let rounded = self.rounded(number);
            self.text.extend([&rounded, "f"]);
        } else if is_digits && self.in_list {
            let rounded = self.rounded(word);
            self.text.push_str(&rounded);
        } else {
            self.text.push_str(word);
        }
    }

    /// Returns a number with the precision of 16 bits.
    fn rounded(&self, number: &str) -> String {
        let Some(value) = number.parse::<f32>().ok().filter(|value| value.is_finite()) else {
            return number.to_string();
        };
        let rounded =
            if self.low == "float16" { f16::from_f32(value).to_f32() } else { bf16::from_f32(value).to_f32() };
        format!("{rounded:?}")
    }
}
