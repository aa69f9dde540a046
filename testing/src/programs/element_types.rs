//! Programs with other element types.

/// Returns the text of functions with another element type in the place of one, in types and
/// literals. An element type consists of its name and the suffix of its literals.
pub fn with_type(function: &str, own: (&str, &str), other: (&str, &str)) -> String {
    let mut text = String::new();
    let mut rest = function;
    let is_word = |c: char| c.is_ascii_alphanumeric() || "%@_.".contains(c);
    while let Some(start) = rest.find(is_word) {
        let (before, from) = rest.split_at(start);
        text.push_str(before);
        let (word, after) = from.split_at(from.find(|c| !is_word(c)).unwrap_or(from.len()));
        let is_written = word.starts_with(|c: char| c.is_ascii_digit()) || word.starts_with("inf");
        let number = if is_written { word.strip_suffix(own.1) } else { None };
        let is_number = number.is_some_and(|n| n.parse::<f64>().is_ok()) && !own.1.is_empty();
        if word == own.0 {
            text.push_str(other.0);
        } else if is_number {
            text.push_str(number.unwrap_or_default());
            text.push_str(other.1);
        } else {
            text.push_str(word);
        }
        rest = after;
    }
    text + rest
}
