//! Unified diffs of texts, line by line.

use std::io::{self, Write};
use std::ops::Range;

use super::sequence::sequence_changes;

/// The number of lines that are shown around a difference.
const CONTEXT: usize = 3;

/// Returns the difference of two texts as a unified diff; empty if they are equal. `names` are the
/// names of the texts in its head. Linear in the texts, up to the logarithmic factor of
/// [`sequence_changes`].
pub fn unified_diff(names: [&str; 2], old: &str, new: &str) -> String {
    let mut out = Vec::new();
    write_unified_diff(names, old, new, &mut out).expect("writing to a vector succeeds");
    String::from_utf8_lossy(&out).into_owned()
}

/// Writes the difference of two texts as [`unified_diff`] returns it; nothing if they are equal.
///
/// # Errors
/// Those of `to`.
pub fn write_unified_diff([old_name, new_name]: [&str; 2], old: &str, new: &str, to: &mut dyn Write) -> io::Result<()> {
    if old == new {
        return Ok(());
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let changes = sequence_changes(&old, &new);
    writeln!(to, "--- {old_name}\n+++ {new_name}")?;
    let mut rest = &changes[..];
    while let [first, ..] = rest {
        // Changes whose contexts touch share a hunk.
        let count = 1 + rest.windows(2).take_while(|w| w[1].old.start - w[0].old.end <= 2 * CONTEXT).count();
        let (hunk, later) = rest.split_at(count);
        rest = later;
        let last = &hunk[count - 1];
        let before = first.old.start.min(CONTEXT);
        let after = (old.len() - last.old.end).min(CONTEXT);
        let old_shown = first.old.start - before..last.old.end + after;
        let new_shown = first.new.start - before..last.new.end + after;
        writeln!(to, "@@ -{} +{} @@", place(&old_shown), place(&new_shown))?;
        let mut at = old_shown.start;
        for change in hunk {
            lines(to, ' ', &old[at..change.old.start])?;
            lines(to, '-', &old[change.old.clone()])?;
            lines(to, '+', &new[change.new.clone()])?;
            at = change.old.end;
        }
        lines(to, ' ', &old[at..old_shown.end])?;
    }
    Ok(())
}

/// Returns the position of lines as a hunk states it, counted from 1; for an empty range, the line
/// before it.
fn place(lines: &Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        n => format!("{},{n}", lines.start + 1),
    }
}

fn lines(to: &mut dyn Write, mark: char, lines: &[&str]) -> io::Result<()> {
    lines.iter().try_for_each(|line| writeln!(to, "{mark}{line}"))
}
