//! Models in files: the graph is read, and the elements of large initializers stay in the file.
//!
//! A model is read by position. Initializers of the graph with large `raw_data` are replaced by
//! ones that refer to a range of the file, in the form in which tensors refer to other files. The
//! rest of the model is as in the file. The location of such a reference contains a number that is
//! drawn for the process, so a file cannot contain one itself.
//!
//! If the file does not have the expected form, it is read whole, and the import finds its faults.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use anfora_ir::{StoredFile, StoredFileKind};
use bytes::Bytes;
use prost::Message;

use crate::proto::tensor_proto::DataLocation;
use crate::proto::{StringStringEntryProto, TensorProto};

/// Files of fewer bytes are read whole.
const READ_WHOLE: u64 = 1 << 20;
/// Initializers with at least this many bytes stay in the file.
const STAYS: u64 = 4 << 10;
/// The file is read in pieces of this size.
const PIECE: usize = 256 << 10;

/// A model that was read from a file, without the elements that stay there.
#[derive(Clone, Debug)]
pub struct ModelFile {
    pub(crate) bytes: Bytes,
    /// The file, if elements stay in it.
    pub(crate) file: Option<Arc<StoredFile>>,
    len: u64,
}

impl ModelFile {
    /// Reads a model. Something other than a regular file is read whole.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(path: &Path) -> io::Result<ModelFile> {
        let metadata = std::fs::metadata(path)?;
        if metadata.is_file() && metadata.len() >= READ_WHOLE {
            let file = Arc::new(StoredFile::open(path, StoredFileKind::Program)?);
            if let Some(bytes) = without_large_tensors(&file) {
                let len = file.len();
                return Ok(ModelFile { bytes, file: Some(file), len });
            }
        }
        Ok(std::fs::read(path)?.into())
    }

    /// Reads a model from a stream.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the stream cannot be read.
    pub fn read_from(stream: &mut dyn Read) -> io::Result<ModelFile> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        Ok(bytes.into())
    }

    /// Returns the number of bytes of the model.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the model has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl From<Bytes> for ModelFile {
    fn from(bytes: Bytes) -> ModelFile {
        ModelFile { len: bytes.len() as u64, bytes, file: None }
    }
}

impl From<Vec<u8>> for ModelFile {
    fn from(bytes: Vec<u8>) -> ModelFile {
        Bytes::from(bytes).into()
    }
}

/// Returns the location that stands for the file of the model itself.
pub(crate) fn own_location() -> &'static str {
    static LOCATION: OnceLock<String> = OnceLock::new();
    LOCATION.get_or_init(|| format!("\0{:016x}", RandomState::new().build_hasher().finish()))
}

/// A reader of the fields of a message in a file. Every method returns `None` if the bytes do not
/// have the expected form or cannot be read.
struct FieldReader<'a> {
    file: &'a StoredFile,
    buffer: Vec<u8>,
    /// The position of the buffer in the file.
    start: u64,
    pos: u64,
}

/// A field of a message.
struct FieldPlace {
    number: u64,
    /// The position of the tag.
    start: u64,
    /// The position and the number of bytes of the contents of a delimited field.
    contents: Option<(u64, u64)>,
}

impl FieldReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let at = |start: u64, pos: u64| pos.checked_sub(start).and_then(|at| usize::try_from(at).ok());
        if at(self.start, self.pos).is_none_or(|at| at >= self.buffer.len()) {
            let left = self.file.len().checked_sub(self.pos)?;
            self.buffer.resize(left.min(PIECE as u64) as usize, 0);
            self.start = self.pos;
            self.file.read_at(self.pos, &mut self.buffer).ok()?;
        }
        let byte = *self.buffer.get(at(self.start, self.pos)?)?;
        self.pos += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        // The tenth byte is only used by negative numbers.
        (self.byte()? <= 1).then_some(value)
    }

    /// Reads the field at the current position and goes to the next one. The message ends at `end`.
    fn field(&mut self, end: u64) -> Option<FieldPlace> {
        let start = self.pos;
        let tag = self.varint()?;
        let mut contents = None;
        match tag & 7 {
            0 => drop(self.varint()?),
            1 => self.pos += 8,
            5 => self.pos += 4,
            2 => {
                let len = self.varint()?;
                contents = Some((self.pos, len));
                self.pos = self.pos.checked_add(len)?;
            }
            _ => return None,
        }
        (self.pos <= end).then_some(FieldPlace { number: tag >> 3, start, contents })
    }

    /// Appends bytes of the file.
    fn copy(&self, from: u64, to: u64, out: &mut Vec<u8>) -> Option<()> {
        let (at, len) = (out.len(), usize::try_from(to - from).ok()?);
        out.try_reserve(len).ok()?;
        // Most of what is copied was just read.
        let in_buffer = from.checked_sub(self.start).and_then(|skipped| usize::try_from(skipped).ok());
        let read = in_buffer.and_then(|skipped| self.buffer.get(skipped..)?.get(..len));
        if let Some(read) = read {
            out.extend_from_slice(read);
            return Some(());
        }
        out.resize(at + len, 0);
        self.file.read_at(from, &mut out[at..]).ok()
    }
}

const GRAPH: u64 = 7;
const TRAINING_INFO: u64 = 20;
const INITIALIZER: u64 = 5;
const DATA_TYPE: u64 = 2;
const RAW_DATA: u64 = 9;
const EXTERNAL_DATA: u64 = 13;
const DATA_LOCATION: u64 = 14;

/// The most bytes of a tag and a length.
const MOST_HEADER: usize = 20;

/// Returns the model without the elements of large initializers; `None` if there are none, or the
/// file does not have the expected form.
fn without_large_tensors(file: &StoredFile) -> Option<Bytes> {
    let end = file.len();
    let mut reader = FieldReader { file, buffer: Vec::new(), start: 0, pos: 0 };
    // The graph comes first, after room for its tag and length.
    let mut out = vec![0; MOST_HEADER];
    let mut graph_bytes = None;
    let mut others = Vec::new();
    while reader.pos < end {
        let field = reader.field(end)?;
        match (field.number, field.contents) {
            (GRAPH, Some((from, len))) if graph_bytes.is_none() => {
                let after = reader.pos;
                reader.pos = from;
                graph_without_large_tensors(&mut reader, from + len, &mut out)?;
                graph_bytes = Some(out.len() - MOST_HEADER);
                reader.pos = after;
            }
            // Training refers to initializers in ways of its own.
            (GRAPH | TRAINING_INFO, _) => return None,
            _ => reader.copy(field.start, reader.pos, &mut others)?,
        }
    }
    let mut header = Vec::with_capacity(MOST_HEADER);
    prost::encoding::encode_key(GRAPH as u32, prost::encoding::WireType::LengthDelimited, &mut header);
    prost::encoding::encode_varint(graph_bytes? as u64, &mut header);
    let from = MOST_HEADER - header.len();
    out[from..MOST_HEADER].copy_from_slice(&header);
    out.append(&mut others);
    // Without large tensors, positions in errors should be those of the file.
    (out.len() as u64 + STAYS < end).then(|| Bytes::from(out).slice(from..))
}

/// Appends the fields of a graph that ends at `end`.
fn graph_without_large_tensors(reader: &mut FieldReader<'_>, end: u64, out: &mut Vec<u8>) -> Option<()> {
    let mut copied = reader.pos;
    while reader.pos < end {
        let field = reader.field(end)?;
        let Some((from, len)) = field.contents.filter(|c| field.number == INITIALIZER && c.1 >= STAYS) else {
            continue;
        };
        let after = reader.pos;
        reader.pos = from;
        let tensor = large_tensor(reader, from, from + len)?;
        reader.pos = after;
        let Some(tensor) = tensor else { continue };
        reader.copy(copied, field.start, out)?;
        prost::encoding::encode_key(INITIALIZER as u32, prost::encoding::WireType::LengthDelimited, out);
        prost::encoding::encode_varint(tensor.len() as u64, out);
        out.extend_from_slice(&tensor);
        copied = after;
    }
    reader.copy(copied, end, out)
}

/// Returns a tensor without its elements, which it refers to. The inner `None` stands for a tensor
/// that is read.
#[allow(clippy::option_option)]
fn large_tensor(reader: &mut FieldReader<'_>, start: u64, end: u64) -> Option<Option<Vec<u8>>> {
    let mut raw = None;
    while reader.pos < end {
        let field = reader.field(end)?;
        match (field.number, field.contents) {
            (RAW_DATA, Some((from, len))) if raw.is_none() && len >= STAYS => raw = Some((field.start, from, len)),
            (RAW_DATA | EXTERNAL_DATA | DATA_LOCATION, _) | (DATA_TYPE, Some(_)) => return Some(None),
            _ => {}
        }
    }
    let Some((field_start, from, len)) = raw else { return Some(None) };
    let mut tensor = Vec::new();
    reader.copy(start, field_start, &mut tensor)?;
    reader.copy(from + len, end, &mut tensor)?;
    let entry = |key: &str, value: String| StringStringEntryProto { key: Some(key.to_owned()), value: Some(value) };
    let place = TensorProto {
        data_location: Some(DataLocation::External as i32),
        external_data: vec![
            entry("location", own_location().to_owned()),
            entry("offset", from.to_string()),
            entry("length", len.to_string()),
        ],
        ..TensorProto::default()
    };
    tensor.extend_from_slice(&place.encode_to_vec());
    Some(Some(tensor))
}
