//! Finds lines and columns in a text after one pass over it, and cuts long lines to a window around
//! a place.

use std::borrow::Cow;
use std::ops::Range;

use super::COLUMNS;

/// The size in bytes of the blocks for which characters are counted.
const BLOCK: usize = 1024;

/// The columns of a long line that are shown before the place.
const BEFORE: usize = 50;

/// The mark for the part of a line that is not shown.
const CUT: &str = "…";

/// The starts of the lines of a text, and the numbers of characters before places in it.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
    /// The number of characters that begin before each block of bytes.
    chars: Vec<usize>,
}

/// The position of a character in a text: line and column, from 1.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Lines<'t> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        let mut chars = Vec::with_capacity(text.len() / BLOCK + 1);
        let mut count = 0;
        for block in text.as_bytes().chunks(BLOCK) {
            chars.push(count);
            count += block.iter().filter(|&&b| begins_char(b)).count();
        }
        Lines { text, starts, chars }
    }

    /// Returns the number of characters that begin before an offset.
    fn chars_before(&self, offset: usize) -> usize {
        let block = (offset / BLOCK).min(self.chars.len().saturating_sub(1));
        let counted = self.chars.get(block).copied().unwrap_or(0);
        let rest = &self.text.as_bytes()[block * BLOCK..offset];
        counted + rest.iter().filter(|&&b| begins_char(b)).count()
    }

    /// Returns the nearest offset at or before `offset` that is inside the text and at which a
    /// character begins.
    fn floor(&self, offset: usize) -> usize {
        let mut i = offset.min(self.text.len());
        while !self.text.is_char_boundary(i) {
            i -= 1;
        }
        i
    }

    /// Returns the index of the line that contains an offset.
    fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|&s| s <= offset).saturating_sub(1)
    }

    /// Returns the line and column of any offset.
    pub(super) fn position(&self, offset: usize) -> Position {
        let at = self.floor(offset);
        let line = self.line_of(at);
        Position { line: line + 1, column: self.chars_before(at) - self.chars_before(self.starts[line]) + 1 }
    }

    /// Returns the first line of any span, cut around the span if the line is long.
    pub(super) fn excerpt(&self, span: &Range<usize>) -> Excerpt<'t> {
        let start = self.floor(span.start);
        let index = self.line_of(start);
        let from = self.starts[index];
        let to = self.starts.get(index + 1).map_or(self.text.len(), |&next| next - 1);
        let line = self.text[from..to].trim_end_matches('\r');
        let start = (start - from).min(line.len());
        let end = self.floor(span.end).clamp(from + start, from + line.len()) - from;
        let position = self.position(from + start);
        if line.len() <= COLUMNS || self.chars_before(from + line.len()) - self.chars_before(from) <= COLUMNS {
            return Excerpt { text: Cow::Borrowed(line), span: start..end, position };
        }
        let first = line[..start].char_indices().rev().take(BEFORE).last().map_or(start, |(i, _)| i);
        let last = line[first..].char_indices().nth(COLUMNS - 2).map_or(line.len(), |(i, _)| first + i);
        let (before, after) = (if first > 0 { CUT } else { "" }, if last < line.len() { CUT } else { "" });
        let shift = |i: usize| i.min(last) - first + before.len();
        Excerpt {
            text: Cow::Owned([before, &line[first..last], after].concat()),
            span: shift(start)..shift(end),
            position,
        }
    }
}

fn begins_char(b: u8) -> bool {
    b & 0xc0 != 0x80
}

/// The part of a line that is shown.
pub(super) struct Excerpt<'t> {
    pub(super) text: Cow<'t, str>,
    /// The place, in bytes of the shown text.
    pub(super) span: Range<usize>,
    /// The start of the place in the whole text.
    pub(super) position: Position,
}

impl Excerpt<'_> {
    pub(super) fn into_owned(self) -> Excerpt<'static> {
        Excerpt { text: Cow::Owned(self.text.into_owned()), span: self.span, position: self.position }
    }
}
