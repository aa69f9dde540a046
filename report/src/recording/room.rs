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
    /// True from the first item on that did not fit. What is kept is then the beginning.
    is_full: bool,
}

impl Room {
    pub(super) fn new(bytes: usize, rows: usize, functions: usize) -> Room {
        Room { bytes, rows, functions, is_full: false }
    }

    /// Takes bytes. Returns false if they do not fit; then nothing fits any more.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.is_full |= bytes > self.bytes;
        if !self.is_full {
            self.bytes -= bytes;
        }
        !self.is_full
    }

    /// Returns true if these bytes fit.
    pub(super) fn fits(&self, bytes: usize) -> bool {
        !self.is_full && bytes <= self.bytes
    }

    /// Takes a row. Returns false if there is none left.
    pub(super) fn take_row(&mut self) -> bool {
        self.is_full |= self.rows == 0;
        if !self.is_full {
            self.rows -= 1;
        }
        !self.is_full
    }

    /// Returns true if nothing fits any more.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }
}
