//! Reading a long text on several threads.
//!
//! The text is cut after lines that are `}`. The printer ends each function with such a line. Each
//! thread reads chunks under an overlay of the tables, as if a chunk were a whole text. A chunk is
//! taken over if it was read without an error and defines neither an alias nor a function that was
//! defined before. Otherwise, this chunk and the text after it are read again, on one thread, so
//! the errors are the same. If a cut is inside of a block or a comment, the block or comment is not
//! closed in its chunk, which is an error.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::items::Item;
use super::{Alias, Parser, SourceRange};
use crate::core::context::Context;
use crate::core::entity::{GlobalId, NameId};
use crate::tables::parallel::overlay::{Additions, Translation};
use crate::text::lexer::Kind;
use crate::text::threads;

/// The least number of bytes of a chunk. One thread first reads this many bytes, which fills the
/// tables with the entries that chunks have in common.
const LEAST: usize = 64 << 10;

/// The number of chunks for each thread.
const SHARES: usize = 16;

/// A chunk that was read without an error.
struct ReadChunk {
    items: Vec<Item>,
    definitions: Vec<(GlobalId, SourceRange)>,
    global_uses: Vec<(GlobalId, SourceRange)>,
    /// The length of the text of the last function.
    last_length: u32,
    additions: Option<Additions>,
}

impl Parser<'_, '_> {
    /// Returns true if a function begins here, enough was read, and enough text is left for several
    /// threads. Aliases come before the functions.
    pub(super) fn is_worth_sharing(&self) -> bool {
        let read = self.tok.start() as usize;
        let is_function = matches!(self.tok.kind, Kind::Def | Kind::Declare | Kind::Meta);
        let is_enough = read >= LEAST && self.text.len() - read >= 2 * LEAST;
        is_function && is_enough && self.meta.is_none() && self.diagnostics.is_empty()
    }

    /// Reads items on several threads. Stops before the first chunk that one thread has to read,
    /// or at the end of the text.
    pub(super) fn items_on_threads(&mut self, threads: usize) {
        let chunks = chunks(self.text, self.tok.start() as usize, threads);
        if chunks.len() < 2 {
            return;
        }
        self.cx.freeze();
        let read = read_chunks(self.text, self.cx, &self.aliases, &chunks, threads);
        self.cx.thaw();
        let mut taken = Vec::with_capacity(chunks.len());
        let mut end = self.tok.start() as usize;
        for (range, chunk) in chunks.into_iter().zip(read) {
            let Some(chunk) = chunk else { break };
            let translation = match chunk.additions.as_ref().map(|a| self.cx.absorb(a)).transpose() {
                Ok(translation) => translation,
                Err(_) => break,
            };
            let global = |global| translation.as_ref().map_or(global, |t| t.global(global));
            if chunk.definitions.iter().any(|&(g, _)| self.definitions.contains_key(&global(g))) {
                break;
            }
            self.definitions.extend(chunk.definitions.into_iter().map(|(g, place)| (global(g), place)));
            self.global_uses.extend(chunk.global_uses.into_iter().map(|(g, place)| (global(g), place)));
            self.last_length = chunk.last_length;
            taken.push((chunk.items, translation.filter(|t| !t.is_identity())));
            end = range.end;
        }
        self.items.extend(translated(taken, threads));
        self.seek(end as u32);
    }

    /// Reads the text to its end. Returns `None` if there is an error, or an alias is defined.
    fn chunk(&mut self, aliases: &FxHashMap<NameId, (Alias, SourceRange)>) -> Option<ReadChunk> {
        self.aliases.clone_from(aliases);
        while self.tok.kind != Kind::End {
            if self.item().is_err() || !self.diagnostics.is_empty() || self.aliases.len() > aliases.len() {
                return None;
            }
        }
        if self.meta.is_some() {
            return None;
        }
        Some(ReadChunk {
            items: std::mem::take(&mut self.items),
            definitions: self.definitions.drain().collect(),
            global_uses: std::mem::take(&mut self.global_uses),
            last_length: self.last_length,
            additions: self.cx.take_additions(),
        })
    }
}

/// Cuts the text from `start` on into chunks.
fn chunks(text: &str, start: usize, threads: usize) -> Vec<Range<usize>> {
    const END: &str = "\n}\n";
    let least = ((text.len() - start) / (threads * SHARES)).max(LEAST);
    let mut chunks = Vec::new();
    let mut from = start;
    while from < text.len() {
        let bytes = text.as_bytes();
        let mut to = (from + least).min(text.len());
        // A cut is between characters.
        while to < text.len() && bytes[to] & 0xc0 == 0x80 {
            to += 1;
        }
        let end = text[to..].find(END).map_or(text.len(), |at| to + at + END.len());
        chunks.push(from..end);
        from = end;
    }
    chunks
}

/// Reads chunks, under overlays of frozen tables. The entry of a chunk that could not be read is
/// `None`, and so may be those after it.
fn read_chunks(
    text: &str,
    tables: &Context,
    aliases: &FxHashMap<NameId, (Alias, SourceRange)>,
    chunks: &[Range<usize>],
    threads: usize,
) -> Vec<Option<ReadChunk>> {
    // The first chunk that is known to have failed. Those after it need not be read.
    let failure = AtomicUsize::new(usize::MAX);
    let read = |overlay: &mut Context, at: usize| {
        if failure.load(Ordering::Relaxed) < at {
            return None;
        }
        let Range { start, end } = chunks[at];
        let chunk = Parser::from(overlay, &text[..end], start).ok()?.chunk(aliases);
        if chunk.is_none() {
            overlay.take_additions();
            failure.fetch_min(at, Ordering::Relaxed);
        }
        chunk
    };
    threads::map(threads, chunks.len(), || tables.overlay(), read)
}

/// Returns the items of chunks, in order, with the ids of the tables that absorbed the additions.
fn translated(chunks: Vec<(Vec<Item>, Option<Translation>)>, threads: usize) -> Vec<Item> {
    let chunks: Vec<_> = chunks.into_iter().map(Mutex::new).collect();
    let translate = |(): &mut (), at: usize| {
        let mut chunk = chunks[at].lock().unwrap_or_else(PoisonError::into_inner);
        let (mut items, translation) = std::mem::take(&mut *chunk);
        if let Some(translation) = translation {
            for item in &mut items {
                item.global = translation.global(item.global);
                item.function.translate(&translation);
            }
        }
        items
    };
    threads::map(threads, chunks.len(), || (), translate).into_iter().flatten().collect()
}
