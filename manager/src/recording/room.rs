//! The room of a recording, in bytes of its JSON.

/// The bytes of a line without its texts.
pub(super) const LINE: usize = 48;

/// The bytes of an index, with what separates it from the next one.
pub(super) const INDEX: usize = 8;

/// The bytes of a hunk without its lines.
pub(super) const HUNK: usize = 64;

/// The bytes of the changes of a function without its hunks.
pub(super) const CHANGE: usize = 128;

/// The bytes of a run without its texts and lists.
pub(super) const RUN: usize = 400;

/// The bytes of a message without its texts.
pub(super) const MESSAGE: usize = 200;

/// Returns the bytes of a text as an item of JSON in a page, where `<` is escaped too.
pub(super) fn bytes_of(text: &str) -> usize {
    let bytes = text.bytes().map(|b| match b {
        b'<' => 6,
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..0x20 => 6,
        _ => 1,
    });
    bytes.sum::<usize>() + 3
}

/// The room of one part of a recording, such as the changes of a pass.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) bytes: usize,
    pub(super) rows: usize,
    pub(super) functions: usize,
}

impl Room {
    /// Takes bytes. Returns false and leaves nothing if there are not enough.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let is_enough = bytes <= self.bytes;
        self.bytes = if is_enough { self.bytes - bytes } else { 0 };
        is_enough
    }

    /// Returns true if no row fits.
    pub(super) fn is_full(&self) -> bool {
        self.bytes == 0 || self.rows == 0
    }

    /// Leaves no room.
    pub(super) fn fill(&mut self) {
        self.bytes = 0;
    }
}
