//! Bytes that stay in a file until something needs them.
//!
//! A [`StoredFile`] is an open file of which constants are ranges ([`FileRange`]). Ranges are read
//! by position. The file's length and time of modification are compared with those of its opening
//! before and after each read, so a file that changes gives an error and never other bytes. The
//! first error of a file is kept: all later reads of the file fail with it. Code that cannot return
//! an error where it reads, such as the comparison of two constants, leaves the error there, and
//! [`LiteralTable::failure`](crate::LiteralTable::failure) finds it.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;

use crate::report::diagnostic::Diagnostic;
use crate::report::diagnostics::{Diagnostics, IntoDiagnostics};

/// The most files that this process keeps open. Further files are opened again for each read.
const MOST_OPEN: usize = 256;
/// Bytes are read in pieces of this size where they are not kept.
pub(crate) const PIECE: usize = 256 << 10;

static OPEN: AtomicUsize = AtomicUsize::new(0);
/// True once a read of any file has failed.
static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// The reason why the bytes of a constant cannot be read from their file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StorageError {
    /// The file is not as it was when the program was read.
    #[error("{} has changed since the program was read, so its constants cannot be read any more", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("{} cannot be read at byte {offset}: {message}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The first byte of the range.
        offset: u64,
        /// The message of the system.
        message: String,
    },
    /// The range is not inside the file.
    #[error("{} has {size} bytes, so there are no {len} bytes from byte {offset} on", path.display())]
    Outside {
        /// The file.
        path: PathBuf,
        /// The first byte of the range.
        offset: u64,
        /// The number of bytes of the range.
        len: u64,
        /// The number of bytes of the file.
        size: u64,
    },
}

impl IntoDiagnostics for StorageError {
    fn into_diagnostics(self) -> Diagnostics {
        let found = Diagnostic::from_error(&self);
        match self {
            StorageError::Changed { .. } => found.with_help("read the program again").into(),
            StorageError::Unreadable { .. } | StorageError::Outside { .. } => found.into(),
        }
    }
}

/// The kind of a file that holds constants.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StoredFileKind {
    /// A file of constants, to which several programs may refer.
    Data,
    /// The file of a program, with the constants among the rest.
    Program,
}

/// The state of a file that changes with its contents.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FileState {
    len: u64,
    modified: Option<SystemTime>,
    /// The device and the number of the file, on systems that have them.
    identity: Option<(u64, u64)>,
}

impl FileState {
    fn of(metadata: &Metadata) -> FileState {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino()))
        };
        #[cfg(not(unix))]
        let identity = None;
        FileState { len: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// A file of which constants are ranges.
#[derive(Debug)]
pub struct StoredFile {
    path: PathBuf,
    kind: StoredFileKind,
    state: FileState,
    /// The open file; `None` if too many files are open.
    handle: Option<File>,
    /// Held by code that moves the position of `handle`.
    position: Mutex<()>,
    failure: OnceLock<StorageError>,
}

impl StoredFile {
    /// Opens a regular file. It stays open, so removing or replacing it does not change the
    /// constants. If the process has very many such files, the file is opened again for each read.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the file cannot be opened, or is not a regular file.
    pub fn open(path: &Path, kind: StoredFileKind) -> io::Result<StoredFile> {
        // Opening something other than a regular file may block forever.
        refuse_special(&std::fs::metadata(path)?)?;
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        refuse_special(&metadata)?;
        let path = std::fs::canonicalize(path)?;
        let is_kept = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < MOST_OPEN).then_some(n + 1));
        Ok(StoredFile {
            path,
            kind,
            state: FileState::of(&metadata),
            handle: is_kept.is_ok().then_some(file),
            position: Mutex::new(()),
            failure: OnceLock::new(),
        })
    }

    /// Returns the path of the file, with all links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the kind of the file.
    pub fn kind(&self) -> StoredFileKind {
        self.kind
    }

    /// Returns the number of bytes of the file when it was opened.
    pub fn len(&self) -> u64 {
        self.state.len
    }

    /// Returns true if the file had no bytes when it was opened.
    pub fn is_empty(&self) -> bool {
        self.state.len == 0
    }

    /// Returns true if the path still leads to this file, and the file has not changed.
    ///
    /// Cost: one entry.
    pub fn is_in_place(&self) -> bool {
        std::fs::metadata(&self.path).is_ok_and(|metadata| FileState::of(&metadata) == self.state)
    }

    /// Returns the first error of a read; `None` if no read has failed.
    pub fn failure(&self) -> Option<&StorageError> {
        self.failure.get()
    }

    /// Keeps an error, and returns the first one.
    fn fail(&self, error: StorageError) -> StorageError {
        HAS_FAILED.store(true, Ordering::Release);
        self.failure.get_or_init(|| error).clone()
    }

    fn check(&self, file: &File) -> Result<(), StorageError> {
        match file.metadata() {
            Ok(metadata) if FileState::of(&metadata) == self.state => Ok(()),
            _ => Err(self.fail(StorageError::Changed { path: self.path.clone() })),
        }
    }

    /// Calls a function with the open file, which is unchanged before and afterwards.
    fn with_file<T>(&self, offset: u64, read: impl FnOnce(&File) -> io::Result<T>) -> Result<T, StorageError> {
        if let Some(error) = self.failure.get() {
            return Err(error.clone());
        }
        let opened;
        let file = match &self.handle {
            Some(file) => file,
            None => match File::open(&self.path) {
                Ok(file) => {
                    opened = file;
                    &opened
                }
                Err(_) => return Err(self.fail(StorageError::Changed { path: self.path.clone() })),
            },
        };
        self.check(file)?;
        let done = read(file);
        self.check(file)?;
        done.map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => self.fail(StorageError::Changed { path: self.path.clone() }),
            _ => self.fail(StorageError::Unreadable { path: self.path.clone(), offset, message: e.to_string() }),
        })
    }

    /// Fills a buffer with the bytes from `offset` on.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the file has changed or cannot be read. All later reads fail then.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), StorageError> {
        self.with_file(offset, |file| self.read_exact_at(file, offset, buffer))
    }

    #[cfg(unix)]
    fn read_exact_at(&self, file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
    }

    #[cfg(windows)]
    fn read_exact_at(&self, file: &File, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            match std::os::windows::fs::FileExt::seek_read(file, buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(n) => {
                    offset += n as u64;
                    buffer = &mut buffer[n..];
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    #[cfg(not(any(unix, windows)))]
    fn read_exact_at(&self, mut file: &File, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let _position = self.position.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(buffer)
    }
}

fn refuse_special(metadata: &Metadata) -> io::Result<()> {
    match metadata.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        if self.handle.is_some() {
            OPEN.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns true if a read of any file of this process has failed.
pub(crate) fn has_failed() -> bool {
    HAS_FAILED.load(Ordering::Acquire)
}

/// A range of a file.
#[derive(Clone, Debug)]
pub struct FileRange {
    file: Arc<StoredFile>,
    offset: u64,
    len: usize,
}

impl FileRange {
    /// Returns a range of a file.
    ///
    /// Cost: one entry.
    ///
    /// # Errors
    /// If the file was shorter when it was opened.
    pub fn new(file: Arc<StoredFile>, offset: u64, len: usize) -> Result<FileRange, StorageError> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= file.len() => Ok(FileRange { file, offset, len }),
            _ => {
                let (path, size) = (file.path.clone(), file.len());
                Err(StorageError::Outside { path, offset, len: len as u64, size })
            }
        }
    }

    /// Returns the file.
    pub fn file(&self) -> &Arc<StoredFile> {
        &self.file
    }

    /// Returns the position of the first byte in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the range has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_same_place(&self, other: &FileRange) -> bool {
        let is_same_file = Arc::ptr_eq(&self.file, &other.file) || self.file.state_is_of(&other.file);
        is_same_file && (self.offset, self.len) == (other.offset, other.len)
    }

    /// Reads the bytes from `from` on, relative to the range.
    fn read_part(&self, from: usize, buffer: &mut [u8]) -> Result<(), StorageError> {
        debug_assert!(from + buffer.len() <= self.len, "the part is inside the range");
        self.file.read_at(self.offset + from as u64, buffer)
    }

    /// Reads several parts, given relative to the range. Returns their bytes, one part after the
    /// other.
    pub(crate) fn read_parts(&self, parts: &[Range<usize>]) -> Result<Vec<u8>, StorageError> {
        debug_assert!(parts.iter().all(|part| part.end <= self.len), "the parts are inside the range");
        let mut bytes = vec![0; parts.iter().map(Range::len).sum()];
        self.file.with_file(self.offset, |file| {
            let mut rest = &mut bytes[..];
            for part in parts {
                let (buffer, others) = rest.split_at_mut(part.len());
                self.file.read_exact_at(file, self.offset + part.start as u64, buffer)?;
                rest = others;
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Reads all bytes.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the file has changed or cannot be read.
    pub fn read(&self) -> Result<Bytes, StorageError> {
        let mut buffer = Vec::new();
        if buffer.try_reserve_exact(self.len).is_err() {
            let (path, message) = (self.file.path.clone(), format!("there is no memory for {} bytes", self.len));
            return Err(self.file.fail(StorageError::Unreadable { path, offset: self.offset, message }));
        }
        buffer.resize(self.len, 0);
        self.read_part(0, &mut buffer)?;
        Ok(buffer.into())
    }

    /// Calls a function with the bytes in order, a piece at a time. All pieces but the last have
    /// the same size, a multiple of every element's. Stops early if the function returns false.
    pub(crate) fn for_each_piece(&self, mut f: impl FnMut(&[u8]) -> bool) -> Result<(), StorageError> {
        thread_local! {
            /// The buffer of the last walk on this thread. A new one would be filled with zeros.
            static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
        }
        let mut buffer = BUFFER.take();
        let size = self.len.min(PIECE);
        buffer.resize(size.max(buffer.len()), 0);
        let mut walk = || {
            let mut from = 0;
            while from < self.len {
                let piece = &mut buffer[..(self.len - from).min(PIECE)];
                self.read_part(from, piece)?;
                from += piece.len();
                if !f(piece) {
                    break;
                }
            }
            Ok(())
        };
        let walked = walk();
        BUFFER.set(buffer);
        walked
    }

    /// Writes the bytes, a piece at a time.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// If the bytes cannot be read or written. The source of the error is a [`StorageError`] if
    /// they cannot be read.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut written = Ok(());
        self.for_each_piece(|piece| {
            written = out.write_all(piece);
            written.is_ok()
        })
        .map_err(io::Error::other)?;
        written
    }

    /// Appends the bytes to a file. On Linux, the system copies them.
    ///
    /// Cost: linear in the bytes.
    ///
    /// # Errors
    /// As [`FileRange::write_to`].
    pub fn copy_to(&self, out: &mut File) -> io::Result<()> {
        let Some(mut file) = self.file.handle.as_ref() else { return self.write_to(out) };
        let copied = self.file.with_file(self.offset, |_| {
            let _position = self.file.position.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(self.offset))?;
            let copied = io::copy(&mut file.take(self.len as u64), out)?;
            Ok(copied)
        });
        match copied {
            Ok(n) if n == self.len as u64 => Ok(()),
            Ok(_) => {
                let error = StorageError::Changed { path: self.file.path.clone() };
                Err(io::Error::other(self.file.fail(error)))
            }
            Err(e) => Err(io::Error::other(e)),
        }
    }
}

impl StoredFile {
    fn state_is_of(&self, other: &StoredFile) -> bool {
        self.path == other.path && self.state == other.state
    }
}

/// 128 bits that differ for different bytes. They are computed with keys that are drawn once for
/// the process, so no file can be made for which they agree, and no result depends on their value.
pub(crate) type Digest = [u64; 2];

/// Computes a [`Digest`] of bytes that are given in pieces of [`PIECE`] bytes, the last of which
/// may be shorter.
pub(crate) struct DigestState([std::hash::DefaultHasher; 2]);

impl DigestState {
    pub(crate) fn new() -> DigestState {
        static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
        let [a, b] = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
        DigestState([a.build_hasher(), b.build_hasher()])
    }

    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.0.iter_mut().for_each(|hasher| hasher.write(piece));
    }

    pub(crate) fn finish(self) -> Digest {
        self.0.map(|hasher| hasher.finish())
    }

    /// Returns the digest of bytes in memory.
    pub(crate) fn of(bytes: &[u8]) -> Digest {
        let mut digest = DigestState::new();
        bytes.chunks(PIECE).for_each(|piece| digest.add(piece));
        digest.finish()
    }
}
