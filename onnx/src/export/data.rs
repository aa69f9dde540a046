//! Constants in a file beside the model.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{Literal, StoredFile, StoredFileKind};
use rustc_hash::FxHashMap;

use crate::error::ExportProblem;
use crate::external::normal_location;
use crate::proto::StringStringEntryProto;

/// Constants of at least this many bytes begin at a multiple of [`PAGE`], so that each can be
/// mapped into memory separately.
const LARGE: u64 = 64 << 10;
const PAGE: u64 = 4096;
/// All other constants begin at a multiple of this many bytes, which suits every element type.
const SMALL_ALIGNMENT: u64 = 64;
/// Splats are written in pieces of about this many bytes.
const PIECE: usize = 64 << 10;

/// The settings for large constants that are written to a file beside the model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExternalData {
    /// The file as named in the model: relative to the model's folder, with `/` between its parts.
    pub location: String,
    /// Constants of at least this many bytes are written to the file. Strings stay in the model.
    pub min_bytes: u64,
    /// The condition under which the file is used.
    pub when: WhenExternal,
}

/// The condition under which large constants are written to a file beside the model.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum WhenExternal {
    /// Only if the model would otherwise be larger than protocol buffers allow.
    #[default]
    TooLarge,
    /// Always.
    Always,
}

impl ExternalData {
    /// Returns settings for constants of at least 1 KiB, used only if the model would otherwise be
    /// too large.
    ///
    /// Cost: linear in the text.
    pub fn new(location: impl Into<String>) -> ExternalData {
        ExternalData { location: location.into(), min_bytes: 1024, when: WhenExternal::default() }
    }
}

/// A file of constants that belongs beside the model it was exported with.
///
/// It holds the elements of the module's literals and shares their bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFile {
    location: String,
    min_bytes: u64,
    /// The constants with the offsets at which their elements begin, in ascending order.
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

    /// Returns the file as named in the model.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns the number of bytes in the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the file holds no constant.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Writes the contents of the file. Takes only constant memory.
    ///
    /// # Errors
    /// If they cannot be written.
    #[expect(clippy::redundant_closure, reason = "the lifetime of the writer would not be general")]
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_parts(out, |literal, bytes, out| write_elements(literal, bytes, out))
    }

    /// Writes the contents to a file. On Linux, the system copies the elements that are in files.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_to_file(&self, out: &mut BufWriter<File>) -> io::Result<()> {
        self.write_parts(out, copy_elements)
    }

    fn write_parts<W: Write + ?Sized>(
        &self,
        out: &mut W,
        write: impl Fn(&Literal, u64, &mut W) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut position = 0;
        for (offset, literal) in &self.parts {
            io::copy(&mut io::Read::take(io::repeat(0), offset - position), out)?;
            let bytes = written_bytes(literal).unwrap_or(0);
            write(literal, bytes, out)?;
            position = offset + bytes;
        }
        Ok(())
    }

    /// Adds a constant to the file and returns the entries of its tensor that say where the
    /// elements are. Returns `None` if the constant stays in the model.
    pub(super) fn take(&mut self, literal: &Literal) -> Result<Option<Vec<StringStringEntryProto>>, ExportProblem> {
        let Some(bytes) = written_bytes(literal).filter(|&b| b >= self.min_bytes && b > 0) else { return Ok(None) };
        let alignment = if bytes >= LARGE { PAGE } else { SMALL_ALIGNMENT };
        let offset = self.len.checked_next_multiple_of(alignment);
        let end = offset.and_then(|o| o.checked_add(bytes)).filter(|&e| e <= i64::MAX as u64);
        let (Some(offset), Some(end)) = (offset, end) else { return Err(ExportProblem::TooLarge) };
        self.parts.push((offset, literal.clone()));
        self.len = end;
        Ok(Some(entries(&self.location, offset, bytes)))
    }
}

/// Returns the entries of a tensor that say where its elements are.
fn entries(location: &str, offset: u64, bytes: u64) -> Vec<StringStringEntryProto> {
    let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) };
    vec![
        entry("location", location.to_owned()),
        entry("offset", offset.to_string()),
        entry("length", bytes.to_string()),
    ]
}

/// The data files that constants stay in.
pub(super) struct KeptData {
    /// The folder of the model, with all links resolved.
    folder: PathBuf,
    /// The file that the model replaces, if there is one.
    replaced: Option<PathBuf>,
    /// The location of each file by its address; `None` if its constants do not stay.
    locations: FxHashMap<usize, Option<String>>,
}

impl KeptData {
    /// Returns the data files beside a model; `None` if its folder does not exist.
    pub(super) fn beside(model: &Path) -> Option<KeptData> {
        let folder = model.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (folder, replaced) = (fs::canonicalize(folder).ok()?, fs::canonicalize(model).ok());
        Some(KeptData { folder, replaced, locations: FxHashMap::default() })
    }

    /// Returns the entries of the tensor of a constant that stays in its file.
    pub(super) fn place(&mut self, literal: &Literal) -> Option<Vec<StringStringEntryProto>> {
        let range = literal.file_range()?;
        let file = range.file();
        let location = self
            .locations
            .entry(Arc::as_ptr(file).addr())
            .or_insert_with(|| {
                let is_replaced = self.replaced.as_deref() == Some(file.path());
                location_in(&self.folder, file).filter(|_| !is_replaced)
            })
            .as_deref()?;
        Some(entries(location, range.offset(), range.len() as u64))
    }
}

/// Returns the location of a data file of a folder, if it is there and unchanged.
fn location_in(folder: &Path, file: &StoredFile) -> Option<String> {
    if file.kind() != StoredFileKind::Data || !file.is_in_place() {
        return None;
    }
    let mut parts = Vec::new();
    for component in file.path().strip_prefix(folder).ok()?.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            _ => return None,
        }
    }
    normal_location(&parts.join("/"))
}

/// Copies the elements of a constant that take `bytes` bytes to a file.
pub(super) fn copy_elements(literal: &Literal, bytes: u64, out: &mut BufWriter<File>) -> io::Result<()> {
    match literal.file_range() {
        Some(range) => {
            out.flush()?;
            range.copy_to(out.get_mut())
        }
        None => write_elements(literal, bytes, out),
    }
}

/// Returns the number of bytes that a constant takes as raw data; 0 if it cannot be stored so.
pub(super) fn raw_bytes(literal: &Literal) -> u64 {
    written_bytes(literal).unwrap_or(0)
}

/// Returns the number of bytes that a constant takes in the file; `None` if it cannot be stored
/// there.
pub(super) fn written_bytes(literal: &Literal) -> Option<u64> {
    let is_whole = literal.is_dense() || (literal.as_splat().is_some() && literal.dtype().bits() >= 8);
    literal.expanded_bytes().filter(|_| is_whole).map(|b| b as u64)
}

/// Writes the elements of a constant that take `bytes` bytes.
pub(super) fn write_elements(literal: &Literal, bytes: u64, out: &mut dyn Write) -> io::Result<()> {
    match (literal.file_range(), literal.as_splat()) {
        (Some(range), _) => range.write_to(out),
        (None, Some(element)) => for_each_repetition(element, bytes, |piece| out.write_all(piece)),
        (None, None) => out.write_all(&literal.read_dense().map_err(io::Error::other)?),
    }
}

/// Calls a function with the bytes of a repeated element, in pieces.
pub(super) fn for_each_repetition<E>(
    element: &[u8],
    bytes: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let piece = element.repeat((PIECE / element.len()).max(1));
    let mut left = bytes;
    while left > 0 {
        let now = left.min(piece.len() as u64);
        each(&piece[..now as usize])?;
        left -= now;
    }
    Ok(())
}
