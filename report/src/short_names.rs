//! Long names of variables in the texts of a page, each written as one character.
//!
//! Models have names such as `/model/layers.12/self_attn/q_proj/MatMul_output_0`, and a line has
//! several. A name is in the list `names` once, and a character for private use stands for it in
//! lines and near misses. The page writes the names out again when it shows a text.

use rustc_hash::FxHashMap;
use serde_json::Value;

/// The least number of bytes of a name that is written as one character.
const LONG: usize = 16;

/// The ranges of characters for private use. Those of the first range stand for the first names,
/// and so on.
const PRIVATE_USE: [(char, char); 3] =
    [('\u{E000}', '\u{F8FF}'), ('\u{F0000}', '\u{FFFFD}'), ('\u{100000}', '\u{10FFFD}')];

/// Shortens the names in a recording as JSON, and states so in its field `short_names`. Does
/// nothing if no name is long, or if a text has characters for private use of its own. Linear.
pub(crate) fn shorten(recording: &mut Value) {
    let Some(names) = recording["names"].as_array().cloned() else { return };
    let characters = PRIVATE_USE.iter().flat_map(|&(first, last)| first..=last);
    let named = names.iter().filter_map(Value::as_str).zip(characters);
    let long: FxHashMap<&str, char> = named.filter(|(name, _)| name.len() >= LONG).collect();
    let is_private = |c: char| PRIVATE_USE.iter().any(|&(first, last)| (first..=last).contains(&c));
    let mut texts = texts(recording);
    if long.is_empty()
        || names.iter().filter_map(Value::as_str).any(|name| name.contains(is_private))
        || texts.iter().any(|text| text.contains(is_private))
    {
        return;
    }
    texts.iter_mut().for_each(|text| **text = shortened(text, &long));
    recording["short_names"] = true.into();
}

/// Returns the texts with names: those of lines, and the bindings and reasons of near misses.
fn texts(recording: &mut Value) -> Vec<&mut String> {
    let Value::Object(fields) = recording else { return Vec::new() };
    let mut texts = Vec::new();
    for (key, value) in fields.iter_mut() {
        let Value::Array(items) = value else { continue };
        match key.as_str() {
            "lines" => texts.extend(items.iter_mut().filter_map(|line| text(line.get_mut(0)?))),
            "runs" => {
                let misses = items.iter_mut().filter_map(|run| run.get_mut("near_misses")?.as_array_mut()).flatten();
                for miss in misses.filter_map(Value::as_array_mut) {
                    texts.extend(miss.iter_mut().skip(2).filter_map(text));
                }
            }
            _ => {}
        }
    }
    texts
}

fn text(value: &mut Value) -> Option<&mut String> {
    match value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Returns a text with the characters of its long names.
fn shortened(text: &str, long: &FxHashMap<&str, char>) -> String {
    let mut short = String::with_capacity(text.len());
    let mut left = text;
    while let Some(at) = left.find('%') {
        short.push_str(&left[..at]);
        left = &left[at..];
        let name = &left[..name_length(left)];
        match long.get(name) {
            Some(&character) => short.push(character),
            None => short.push_str(name),
        }
        left = &left[name.len()..];
    }
    short + left
}

/// Returns the length of the name at the beginning of a text that begins with `%`.
fn name_length(text: &str) -> usize {
    let rest = &text[1..];
    let Some(quoted) = rest.strip_prefix('"') else {
        let is_end = |c: char| !(c.is_alphanumeric() || c == '_');
        return 1 + rest.find(is_end).unwrap_or(rest.len());
    };
    let mut is_escaped = false;
    let end = quoted.find(|c: char| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or(1, |end| end + 3)
}
