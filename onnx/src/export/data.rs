//! Constants that go to another file.

use std::io::{self, Write};

use anfora_ir::Literal;

use crate::error::ExportProblem;
use crate::external::normal_location;
use crate::proto::StringStringEntryProto;

/// Elements of at least this many bytes begin at a multiple of [`PAGE`], so that they can be mapped into memory by themselves.
const LARGE: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// Where all others begin: a multiple of this, which suits every element type.
const SMALL_ALIGNMENT: u64 = 64;
/// Splats are written in pieces of about this many bytes.
const PIECE: usize = 64 << 10;

/// That large constants go to a file beside the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExternalData {
    /// The file, as the model names it: relative to the model's folder, with `/` between its parts.
    pub location: String,
    /// Constants of at least so many bytes go there. Strings stay in the model.
    pub min_bytes: u64,
    /// Whether they do so always.
    pub when: WhenExternal,
}

/// When large constants go to a file of their own.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum WhenExternal {
    /// If the model would otherwise be larger than protocol buffers may be.
    #[default]
    TooLarge,
    /// In any case.
    Always,
}

impl ExternalData {
    /// Constants of at least 1 KiB, if the model would otherwise be too large.
    ///
    /// Cost: linear in the text.
    pub fn new(location: impl Into<String>) -> ExternalData {
        ExternalData { location: location.into(), min_bytes: 1024, when: WhenExternal::default() }
    }
}

/// A file of constants, which belongs beside the model that was exported with it.
///
/// It holds the elements of the module's literals, and shares their bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    location: String,
    min_bytes: u64,
    /// Where the elements of each constant begin, in ascending order.
    parts: Vec<(u64, Literal)>,
    len: u64,
}

impl DataFile {
    pub(super) fn new(options: &ExternalData) -> Result<DataFile, ExportProblem> {
        if normal_location(&options.location).as_ref() != Some(&options.location) {
            let what = format!("constants in the file `{}`, which is not inside the model's folder,", options.location);
            return Err(ExportProblem::Unsupported(what));
        }
        Ok(DataFile { location: options.location.clone(), min_bytes: options.min_bytes, parts: Vec::new(), len: 0 })
    }

    /// The file, as the model names it.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no constant is in it.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Writes the file's contents. Takes no more than constant memory.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut position = 0;
        for (offset, literal) in &self.parts {
            io::copy(&mut io::Read::take(io::repeat(0), offset - position), out)?;
            let bytes = written_bytes(literal).unwrap_or(0);
            match (literal.as_dense(), literal.as_splat()) {
                (Some(dense), _) => out.write_all(dense)?,
                (None, Some(element)) => write_repeated(element, bytes, out)?,
                (None, None) => {}
            }
            position = offset + bytes;
        }
        Ok(())
    }

    /// Takes a constant, unless it stays in the model: what a tensor says of where its elements are.
    pub(super) fn take(&mut self, literal: &Literal) -> Result<Option<Vec<StringStringEntryProto>>, ExportProblem> {
        let Some(bytes) = written_bytes(literal).filter(|&b| b >= self.min_bytes && b > 0) else { return Ok(None) };
        let alignment = if bytes >= LARGE { PAGE } else { SMALL_ALIGNMENT };
        let offset = self.len.checked_next_multiple_of(alignment);
        let end = offset.and_then(|o| o.checked_add(bytes)).filter(|&e| e <= i64::MAX as u64);
        let (Some(offset), Some(end)) = (offset, end) else { return Err(ExportProblem::TooLarge) };
        self.parts.push((offset, literal.clone()));
        self.len = end;
        let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) };
        Ok(Some(vec![
            entry("location", self.location.clone()),
            entry("offset", offset.to_string()),
            entry("length", bytes.to_string()),
        ]))
    }
}

/// How many bytes a constant takes in a file of its own; `None` if it has no place there.
fn written_bytes(literal: &Literal) -> Option<u64> {
    let is_whole = literal.as_dense().is_some() || (literal.as_splat().is_some() && literal.dtype().bits() >= 8);
    literal.expanded_bytes().filter(|_| is_whole).map(|b| b as u64)
}

fn write_repeated(element: &[u8], bytes: u64, out: &mut dyn Write) -> io::Result<()> {
    let piece = element.repeat((PIECE / element.len()).max(1));
    let mut left = bytes;
    while left > 0 {
        let now = left.min(piece.len() as u64);
        out.write_all(&piece[..now as usize])?;
        left -= now;
    }
    Ok(())
}
