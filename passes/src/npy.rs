//! NumPy files: a tensor (`.npy`), or tensors by name in an archive (`.npz`).
//!
//! A tensor is a header, the text of a Python dictionary with the element type, order and shape,
//! followed by the elements. Archives are zip files of such tensors, compressed or not. Reading
//! them needs the feature `npz`.
//!
//! Files are not trusted: nothing is allocated for data that a header claims but the file does not
//! contain, and objects that Python would have to unpickle are refused.

use std::fs::File;
#[cfg(feature = "npz")]
use std::io::Seek;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use anfora_ir::{DType, Diagnostic, Diagnostics, IntoDiagnostics, Literal, LiteralError, element_count};

/// The error of reading or writing a NumPy file.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The contents are not a valid file of this format, or not a tensor.
    #[error("{0}")]
    Contents(String),
    /// NumPy has no equivalent element type.
    #[error("NumPy has no element type for {0}")]
    ElementType(DType),
    /// The elements do not make a tensor.
    #[error(transparent)]
    Literal(#[from] LiteralError),
}

impl IntoDiagnostics for NpyError {
    fn into_diagnostics(self) -> Diagnostics {
        Diagnostic::from_error(&self).into()
    }
}

fn contents(message: impl Into<String>) -> NpyError {
    NpyError::Contents(message.into())
}

const MAGIC: &[u8] = b"\x93NUMPY";

/// The greatest length of a header. Longer headers are those of structured arrays.
const LONGEST_HEADER: usize = 1 << 16;

/// The element types that NumPy has too, as written in headers, without the byte order.
const ELEMENT_TYPES: [(DType, &str); 12] = [
    (DType::Bool, "b1"),
    (DType::Int8, "i1"),
    (DType::Int16, "i2"),
    (DType::Int32, "i4"),
    (DType::Int64, "i8"),
    (DType::UInt8, "u1"),
    (DType::UInt16, "u2"),
    (DType::UInt32, "u4"),
    (DType::UInt64, "u8"),
    (DType::Float16, "f2"),
    (DType::Float32, "f4"),
    (DType::Float64, "f8"),
];

/// Reads a `.npy` file. Arrays of either byte order, and in C or Fortran order, become row-major
/// tensors.
///
/// # Errors
/// If the file cannot be read, is not of this format, is shorter than its header says, or has
/// elements of a type that has no equivalent.
pub fn read_npy(path: &Path) -> Result<Literal, NpyError> {
    NpyFile::open(path)?.read_tensor()
}

/// An open file: a tensor, or an archive of tensors; the first bytes tell them apart. It is opened
/// once, since the bytes of a pipe can be read only once.
#[derive(Debug)]
pub struct NpyFile {
    file: File,
    beginning: Vec<u8>,
}

impl NpyFile {
    /// Opens a file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn open(path: &Path) -> Result<NpyFile, NpyError> {
        let file = File::open(path)?;
        let mut beginning = Vec::new();
        (&file).take(2).read_to_end(&mut beginning)?;
        Ok(NpyFile { file, beginning })
    }

    /// Returns true if the file begins like an archive.
    pub fn is_archive(&self) -> bool {
        self.beginning == b"PK"
    }

    /// Reads the tensor in the file.
    ///
    /// # Errors
    /// As for [`read_npy`].
    pub fn read_tensor(self) -> Result<Literal, NpyError> {
        let there = self.file.metadata()?;
        // The size of a pipe is not known.
        let bytes = there.is_file().then_some(there.len());
        read_tensor(io::Cursor::new(self.beginning).chain(BufReader::new(self.file)), bytes)
    }

    /// Reads the tensors of an archive whose names pass the test `wanted`.
    ///
    /// # Errors
    /// As for [`read_npz`].
    #[cfg(feature = "npz")]
    pub fn read_archive(mut self, wanted: impl Fn(&str) -> bool) -> Result<Vec<(String, Literal)>, NpyError> {
        let there = self.file.metadata()?;
        if !there.is_file() {
            return Err(contents("an archive is read from a file, and not from a pipe"));
        }
        self.file.rewind()?;
        read_entries(self.file, there.len(), wanted)
    }
}

/// Reads the tensors of a `.npz` file with their names, in the order of the file.
///
/// # Errors
/// If the file cannot be read or is not an archive, or if one of the tensors cannot be read.
#[cfg(feature = "npz")]
pub fn read_npz(path: &Path) -> Result<Vec<(String, Literal)>, NpyError> {
    NpyFile::open(path)?.read_archive(|_| true)
}

/// Reads the tensors of an archive of `file_bytes` bytes whose names pass the test `wanted`.
#[cfg(feature = "npz")]
fn read_entries(
    file: File,
    file_bytes: u64,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, Literal)>, NpyError> {
    /// The greatest factor by which Deflate can expand data.
    const MOST_EXPANSION: u64 = 1032;
    let broken = |e: zip::result::ZipError| match e {
        zip::result::ZipError::Io(e) => NpyError::Io(e),
        other => contents(other.to_string()),
    };
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(broken)?;
    let mut tensors = Vec::new();
    let mut compressed = 0u64;
    for i in 0..archive.len() {
        let entry = archive.by_index(i).map_err(broken)?;
        // Entries that share bytes could expand a small file without limit.
        compressed = compressed.saturating_add(entry.compressed_size());
        if compressed > file_bytes {
            return Err(contents("the entries of the archive are larger than the file"));
        }
        let file_name = entry.name().map_err(broken)?.into_owned();
        let Some(name) = file_name.strip_suffix(".npy").filter(|name| wanted(name)) else { continue };
        let bytes = entry.size().min(entry.compressed_size().saturating_mul(MOST_EXPANSION));
        let tensor = read_tensor(entry, Some(bytes));
        tensors.push((name.to_string(), tensor.map_err(|e| contents(format!("array `{name}`: {e}")))?));
    }
    Ok(tensors)
}

/// Reads a tensor from a stream of at most `bytes` bytes, if the number is known.
fn read_tensor(mut stream: impl Read, bytes: Option<u64>) -> Result<Literal, NpyError> {
    let header = Header::read(&mut stream)?;
    let elements = element_count(&header.shape).ok_or_else(|| contents("the array is too large"))?;
    let size = header.dtype.bits() / 8;
    let wanted = elements.checked_mul(size).ok_or_else(|| contents("the array is too large"))?;
    let mut data = Vec::new();
    if let Some(bytes) = bytes {
        if wanted as u64 > bytes {
            return Err(contents(format!("the header claims {elements} elements, but the file has {bytes} bytes")));
        }
        data.try_reserve_exact(wanted).map_err(|_| contents("there is no memory for the array"))?;
    }
    stream.by_ref().take(wanted as u64).read_to_end(&mut data)?;
    if data.len() < wanted {
        let (found, dtype) = (data.len() / size, header.dtype);
        return Err(contents(format!("the header claims {elements} elements of {dtype}, but there are {found}")));
    }
    // At the end of an entry of an archive, its checksum is verified.
    let _ = stream.read(&mut [0])?;
    if header.big_endian {
        data.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    if header.column_major {
        data = to_row_major(&data, size, &header.shape)?;
    }
    Ok(Literal::from_bytes(header.dtype, &header.shape, data.into())?)
}

/// Copies the elements of an array whose first index varies fastest to row-major order.
fn to_row_major(data: &[u8], size: usize, shape: &[usize]) -> Result<Vec<u8>, NpyError> {
    let mut row_major = Vec::new();
    // If there are no elements, the extents may be too large to compute strides.
    if data.is_empty() {
        return Ok(row_major);
    }
    row_major.try_reserve_exact(data.len()).map_err(|_| contents("there is no memory for the array"))?;
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = size;
    for &extent in shape {
        strides.push(stride);
        stride *= extent;
    }
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    while row_major.len() < data.len() {
        row_major.extend_from_slice(&data[at..at + size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    Ok(row_major)
}

/// The element type, the order and the shape in the header of a file.
struct Header {
    dtype: DType,
    big_endian: bool,
    column_major: bool,
    shape: Vec<usize>,
}

impl Header {
    fn read(stream: &mut impl Read) -> Result<Header, NpyError> {
        let no_header = || contents("this is no NumPy file: its header is missing");
        let mut start = [0; 8];
        stream.read_exact(&mut start).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => no_header(),
            _ => NpyError::Io(e),
        })?;
        let Some([version, _]) = start.strip_prefix(MAGIC) else { return Err(no_header()) };
        let mut length = [0; 4];
        match version {
            1 => stream.read_exact(&mut length[..2])?,
            2 | 3 => stream.read_exact(&mut length)?,
            _ => return Err(contents(format!("version {version} of the format is not known"))),
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST_HEADER {
            return Err(contents("the header is too long for that of a tensor"));
        }
        let mut text = vec![0; length];
        stream.read_exact(&mut text)?;
        let text = std::str::from_utf8(&text).map_err(|_| contents("the header is not text"))?;
        HeaderText { rest: text }.parse()
    }
}

/// The unread rest of a header: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct HeaderText<'a> {
    rest: &'a str,
}

impl<'a> HeaderText<'a> {
    fn parse(mut self) -> Result<Header, NpyError> {
        let (mut element_type, mut column_major, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            match key {
                "descr" => element_type = Some(self.element_type()?),
                "fortran_order" => column_major = Some(self.boolean()?),
                "shape" => shape = Some(self.shape()?),
                _ => return Err(self.malformed()),
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        match (element_type, column_major, shape) {
            (Some((dtype, big_endian)), Some(column_major), Some(shape)) => {
                Ok(Header { dtype, big_endian, column_major, shape })
            }
            _ => Err(self.malformed()),
        }
    }

    fn malformed(&self) -> NpyError {
        contents("the header is not that of a NumPy file")
    }

    fn take(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        let found = self.rest.strip_prefix(c);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn expect(&mut self, c: char) -> Result<(), NpyError> {
        if self.take(c) { Ok(()) } else { Err(self.malformed()) }
    }

    fn string(&mut self) -> Result<&'a str, NpyError> {
        let quote = if self.take('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect('\'')?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or_else(|| self.malformed())?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, NpyError> {
        self.rest = self.rest.trim_start();
        let (value, rest) = match self.rest.strip_prefix("True") {
            Some(rest) => (true, rest),
            None => (false, self.rest.strip_prefix("False").ok_or_else(|| self.malformed())?),
        };
        self.rest = rest;
        Ok(value)
    }

    fn shape(&mut self) -> Result<Vec<usize>, NpyError> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.take(')') {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            if digits.is_empty() {
                return Err(self.malformed());
            }
            shape.push(digits.parse().map_err(|_| contents("the array is too large"))?);
            // Python 2 wrote long numbers with an L.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }

    /// Returns the element type, and true if the most significant byte comes first.
    fn element_type(&mut self) -> Result<(DType, bool), NpyError> {
        self.rest = self.rest.trim_start();
        if self.rest.starts_with(['[', '(']) {
            return Err(contents("structured arrays are not tensors"));
        }
        let text = self.string()?;
        let code = text.trim_start_matches(['<', '>', '|', '=']);
        if code.starts_with('O') {
            return Err(contents("the elements are pickled Python objects, which are not read"));
        }
        match ELEMENT_TYPES.iter().find(|(_, c)| *c == code) {
            Some(&(dtype, _)) => Ok((dtype, text.starts_with('>'))),
            None => Err(contents(format!("elements of type {code} are not supported"))),
        }
    }
}

/// Returns true if NumPy has an equivalent element type.
pub fn has_npy_type(dtype: DType) -> bool {
    ELEMENT_TYPES.iter().any(|(d, _)| *d == dtype)
}

/// Writes a tensor as a `.npy` file.
///
/// # Errors
/// If writing fails, or NumPy has no equivalent element type ([`has_npy_type`]).
pub fn write_npy(out: &mut (impl Write + ?Sized), tensor: &Literal) -> Result<(), NpyError> {
    /// The elements begin at a multiple of this number of bytes.
    const ALIGNMENT: usize = 64;
    /// The number of elements of a splat that are written at a time.
    const PART: usize = 1 << 13;
    let dtype = tensor.dtype();
    let Some((_, code)) = ELEMENT_TYPES.iter().find(|(d, _)| *d == dtype) else {
        return Err(NpyError::ElementType(dtype));
    };
    let order = if dtype.bits() > 8 { '<' } else { '|' };
    let extents: Vec<String> = tensor.shape().iter().map(|e| format!("{e},")).collect();
    let shape = extents.join(" ");
    let mut text = format!("{{'descr': '{order}{code}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The header ends with a newline, after padding with blanks.
    let before = |text: &str| if text.len() < usize::from(u16::MAX) - ALIGNMENT { 10 } else { 12 };
    let blanks = (before(&text) + text.len() + 1).next_multiple_of(ALIGNMENT) - before(&text) - text.len() - 1;
    let short = before(&text) == 10;
    text.push_str(&" ".repeat(blanks));
    text.push('\n');
    out.write_all(MAGIC)?;
    if short {
        out.write_all(&[1, 0])?;
        out.write_all(&(text.len() as u16).to_le_bytes())?;
    } else {
        out.write_all(&[2, 0])?;
        out.write_all(&(text.len() as u32).to_le_bytes())?;
    }
    out.write_all(text.as_bytes())?;
    match tensor.as_splat() {
        Some(element) => {
            let element = &element[..dtype.bits() / 8];
            let part = element.repeat(PART.min(tensor.element_count()));
            let mut left = tensor.element_count();
            while left > 0 {
                let now = left.min(PART);
                out.write_all(&part[..now * element.len()])?;
                left -= now;
            }
        }
        None => out.write_all(&tensor.read_dense().map_err(io::Error::other)?)?,
    }
    Ok(())
}
