//! The destination of the printer's text: a buffer that is handed on in chunks.

use std::fmt;
use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::tables::literal::Literal;

/// The initial capacity, for the text of a constant or of a type in a message.
const SHORT: usize = 128;

/// The buffer is handed on when it holds this many bytes, unless another number is set.
const CHUNK: usize = 32 * 1024;

/// The depth up to which indentation grows.
const DEEPEST: u32 = 32;

const SPACES: &[u8; 2 * DEEPEST as usize] = &[b' '; 2 * DEEPEST as usize];

/// A buffer that collects text and hands it on in chunks.
pub(super) struct Output<'w> {
    buffer: Vec<u8>,
    sink: &'w mut dyn fmt::Write,
    failed: bool,
    /// The number of bytes that were handed on.
    handed: usize,
    depth: u32,
    chunk: usize,
    /// True if a constant without its elements is printed with a hash of them.
    with_hashes: bool,
    /// True if a constant was printed without its elements.
    has_elided: bool,
}

impl<'w> Output<'w> {
    pub(super) fn new(sink: &'w mut dyn fmt::Write) -> Output<'w> {
        Output {
            buffer: Vec::with_capacity(SHORT),
            sink,
            failed: false,
            handed: 0,
            depth: 0,
            chunk: CHUNK,
            with_hashes: false,
            has_elided: false,
        }
    }

    /// Reserves space for a chunk, for long texts.
    pub(super) fn with_room(mut self) -> Output<'w> {
        self.buffer.reserve(CHUNK + 1024);
        self
    }

    /// Hands on the buffer when it holds this many bytes.
    pub(super) fn with_chunk(self, chunk: usize) -> Output<'w> {
        Output { chunk, ..self }
    }

    /// Prints constants without their elements with a hash of them.
    pub(super) fn with_hashes(self) -> Output<'w> {
        Output { with_hashes: true, ..self }
    }

    /// Returns true if a constant was printed without its elements.
    pub(super) fn has_elided(&self) -> bool {
        self.has_elided
    }

    /// Prints a constant of many elements without them.
    pub(super) fn elided(&mut self, literal: &Literal) {
        self.has_elided = true;
        self.text("[elided ");
        self.number(literal.element_count() as u64);
        if self.with_hashes {
            let mut hasher = FxHasher::default();
            literal.hash(&mut hasher);
            self.text(" #");
            for byte in ((hasher.finish() >> 32) as u32).to_be_bytes() {
                self.hex_byte(byte);
            }
        }
        self.ascii(b']');
    }

    #[inline]
    pub(super) fn text(&mut self, s: &str) {
        self.buffer.extend_from_slice(s.as_bytes());
    }

    /// Appends an ASCII character.
    #[inline]
    pub(super) fn ascii(&mut self, c: u8) {
        debug_assert!(c.is_ascii());
        self.buffer.push(c);
    }

    /// Appends the comma before item `i` of a list: nothing before the first.
    #[inline]
    pub(super) fn comma(&mut self, i: usize) {
        if i > 0 {
            self.text(", ");
        }
    }

    #[inline]
    pub(super) fn number(&mut self, n: u64) {
        if n < 10 {
            self.buffer.push(b'0' + n as u8);
            return;
        }
        self.text(itoa::Buffer::new().format(n));
    }

    pub(super) fn signed(&mut self, n: i64) {
        if n < 0 {
            self.ascii(b'-');
        }
        self.number(n.unsigned_abs());
    }

    pub(super) fn hex_byte(&mut self, b: u8) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        self.buffer.extend_from_slice(&[HEX[usize::from(b >> 4)], HEX[usize::from(b & 0xf)]]);
    }

    pub(super) fn deeper(&mut self) {
        self.depth += 1;
    }

    pub(super) fn shallower(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    #[inline]
    pub(super) fn indent(&mut self) {
        self.buffer.extend_from_slice(&SPACES[..2 * self.depth.min(DEEPEST) as usize]);
    }

    /// Hands on the buffer if it holds a chunk. Returns true if the sink still takes text.
    #[inline]
    pub(super) fn pass_on(&mut self) -> bool {
        if self.buffer.len() >= self.chunk {
            self.flush();
        }
        !self.failed
    }

    fn flush(&mut self) {
        let text = std::str::from_utf8(&self.buffer).expect("only whole strings are appended");
        if !self.failed {
            self.failed = self.sink.write_str(text).is_err();
        }
        self.handed += self.buffer.len();
        self.buffer.clear();
    }

    /// Returns the number of bytes so far.
    pub(super) fn position(&self) -> usize {
        self.handed + self.buffer.len()
    }

    /// Hands on the rest.
    pub(super) fn finish(&mut self) -> fmt::Result {
        self.flush();
        if self.failed { Err(fmt::Error) } else { Ok(()) }
    }
}

/// Appends formatted text, for rare cases.
impl fmt::Write for Output<'_> {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.text(s);
        Ok(())
    }
}
