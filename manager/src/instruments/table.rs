//! What the tables of the instruments have in common.

/// Nothing is nested deeper than this in a table. What stands deeper says how deep.
const DEEPEST: usize = 8;

/// A name in so many columns, indented by how deep it is nested, with a mark behind it that is always shown. What does not fit of the name is
/// left out, which a `…` shows.
pub(crate) fn nested_name(name: &str, depth: usize, mark: &str, columns: usize) -> String {
    let lead = if depth > DEEPEST { format!("{:1$}{depth}: ", "", 2 * DEEPEST) } else { " ".repeat(2 * depth) };
    let room = columns.saturating_sub(lead.len() + mark.chars().count());
    format!("{lead}{}{mark}", clipped(name, room))
}

/// As much of a text as fits.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    match text.chars().count() {
        n if n <= columns => text.to_string(),
        _ => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// A number in at most 10 characters, all digits of it where they fit.
pub(crate) fn count(n: u64) -> String {
    if n < 10_000_000_000 { n.to_string() } else { format!("{:.3e}", n as f64) }
}
