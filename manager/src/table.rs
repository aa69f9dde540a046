//! Common parts of the tables of the instruments.

/// The deepest nesting that a table shows by indentation. Deeper rows show their depth as a number.
const DEEPEST: usize = 8;

/// Returns a name in at most `columns` columns, indented by its nesting depth, with a mark behind
/// it that is always shown. A name that does not fit is cut, with a `…` at its end.
pub(crate) fn nested_name(name: &str, depth: usize, mark: &str, columns: usize) -> String {
    let lead = if depth > DEEPEST { format!("{:1$}{depth}: ", "", 2 * DEEPEST) } else { " ".repeat(2 * depth) };
    let room = columns.saturating_sub(lead.len() + mark.chars().count());
    format!("{lead}{}{mark}", clipped(name, room))
}

/// Returns a text, cut with a `…` if it does not fit.
pub(crate) fn clipped(text: &str, columns: usize) -> String {
    match text.chars().count() {
        n if n <= columns => text.to_string(),
        _ => text.chars().take(columns.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns a number in at most 10 characters, with all digits if they fit.
pub(crate) fn count(n: u64) -> String {
    if n < 10_000_000_000 { n.to_string() } else { format!("{:.3e}", n as f64) }
}
