//! Tensors with elements in other files.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{
    DType, FileRange, Literal, LiteralError, Shape, StorageError, StoredFile, StoredFileKind, element_count,
};
use bytes::Bytes;
use prost::Message;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{ExternalError, ImportProblem};
use crate::model_file::own_location;
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::tensor::dtype_of;
use crate::wire;

/// A source of the files that hold elements of a model's tensors.
///
/// An import asks for each file once. Literals are slices of the returned contents, or ranges of
/// the opened file.
pub trait DataFiles: Send + Sync {
    /// Returns the contents of a file. The location is a path relative to the model, with `/`
    /// between its parts, none of which is `.` or `..`.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    fn read(&self, location: &str) -> io::Result<Bytes>;

    /// Opens a file of the system, in which the elements stay until something needs them. `None` if
    /// the source has no such files; then the file is read.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// As [`DataFiles::read`].
    fn open(&self, location: &str) -> io::Result<Option<StoredFile>> {
        let _ = location;
        Ok(None)
    }
}

/// Files in memory, by location.
impl DataFiles for FxHashMap<String, Bytes> {
    fn read(&self, location: &str) -> io::Result<Bytes> {
        self.get(location).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such file"))
    }
}

/// The files in a folder and its subfolders. Links that lead out of the folder are refused.
///
/// A model that is a symbolic link has files in two folders: beside the link, and beside the file
/// that it leads to. The folder of the link is searched first, and links may lead from either
/// folder to the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DataFolder {
    folder: PathBuf,
    /// The folder of the file that the model links to.
    linked: Option<PathBuf>,
}

impl DataFolder {
    /// Returns the files in a folder.
    pub fn new(folder: impl Into<PathBuf>) -> DataFolder {
        DataFolder { folder: folder.into(), linked: None }
    }

    /// Returns the files beside a model's file.
    pub fn beside(model: &Path) -> DataFolder {
        let parent = model.parent().filter(|p| !p.as_os_str().is_empty());
        // A link with a missing target has only its own folder.
        let target = model.is_symlink().then(|| fs::canonicalize(model).ok()).flatten();
        let linked = target.and_then(|target| target.parent().map(Path::to_path_buf));
        DataFolder { folder: parent.unwrap_or(Path::new(".")).to_path_buf(), linked }
    }

    /// Returns the path of a location, with all links resolved.
    fn find(&self, location: &str) -> io::Result<PathBuf> {
        let folder = fs::canonicalize(&self.folder)?;
        let path = match (fs::canonicalize(folder.join(location)), &self.linked) {
            (Err(e), Some(linked)) if e.kind() == io::ErrorKind::NotFound => {
                // A file in neither folder is reported as missing beside the link.
                fs::canonicalize(linked.join(location)).map_err(|_| e)?
            }
            (found, _) => found?,
        };
        let is_inside = |folder: &Path| path.starts_with(folder);
        if !is_inside(&folder) && !self.linked.as_deref().is_some_and(is_inside) {
            return refused("it is a link that leads out of the model's folder");
        }
        Ok(path)
    }
}

fn refused<T>(message: &str) -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

impl DataFiles for DataFolder {
    fn read(&self, location: &str) -> io::Result<Bytes> {
        let file = StoredFile::open(&self.find(location)?, StoredFileKind::Data)?;
        let size = usize::try_from(file.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        FileRange::new(Arc::new(file), 0, size).and_then(|whole| whole.read()).map_err(io::Error::other)
    }

    fn open(&self, location: &str) -> io::Result<Option<StoredFile>> {
        StoredFile::open(&self.find(location)?, StoredFileKind::Data).map(Some)
    }
}

/// Returns a location in normal form: parts other than `.` and `..`, with `/` between them. Returns
/// `None` if the location is not inside the folder that it is relative to.
pub(crate) fn normal_location(location: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for component in Path::new(location).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let has_zero = location.contains('\0');
    (!parts.is_empty() && !has_zero).then(|| parts.join("/"))
}

/// The ranges of a file that tensors take may have this many times the bytes of the file together,
/// equal ranges counted once. Ranges that overlap more would take many times the time and the
/// memory that the files suggest.
const MOST_OVERLAP: u64 = 8;
/// The ranges may have this many bytes together in any case.
const SMALL_RANGES: u64 = 1 << 20;

/// The files that an import has read or opened.
pub(crate) struct ReadFiles {
    files: Option<Arc<dyn DataFiles>>,
    contents: FxHashMap<String, DataContents>,
}

/// The contents of a file, and the ranges that tensors take.
struct DataContents {
    home: DataHome,
    ranges: FxHashSet<(u64, u64)>,
    range_bytes: u64,
}

enum DataHome {
    Memory(Bytes),
    File(Arc<StoredFile>),
}

/// The elements of a tensor that are not in its message.
enum ElementBytes {
    Memory(Bytes),
    File(FileRange),
}

impl ReadFiles {
    /// Returns the files of an import. `own` is the file of the model, if elements are there.
    pub(crate) fn new(files: Option<Arc<dyn DataFiles>>, own: Option<Arc<StoredFile>>) -> ReadFiles {
        let own = own.map(|file| (own_location().to_owned(), DataContents::new(DataHome::File(file))));
        ReadFiles { files, contents: own.into_iter().collect() }
    }

    /// Reads the elements of a tensor into it if they are in a file.
    fn fill(&mut self, kind: &str, tensor: &mut TensorProto) -> Result<(), ImportProblem> {
        if !is_external(tensor) {
            return Ok(());
        }
        let elements = self.elements(tensor).and_then(|elements| match elements {
            ElementBytes::Memory(bytes) => Ok(bytes),
            ElementBytes::File(range) => range.read().map_err(|e| unreadable(tensor, &e)),
        });
        let elements = elements.map_err(|problem| at_tensor(kind, tensor, problem))?;
        tensor.raw_data = Some(elements);
        tensor.external_data = Vec::new();
        tensor.data_location = None;
        Ok(())
    }

    /// Returns the constant of an initializer whose elements stay in their file. Other elements are
    /// read into the tensor, and there is no constant yet.
    fn stored(&mut self, tensor: &mut TensorProto) -> Result<Option<Literal>, ImportProblem> {
        // The tensor is kept beside the constant if it says more.
        let is_plain = tensor.doc_string.is_none() && tensor.metadata_props.is_empty() && tensor.segment.is_none();
        let shape: Option<Shape> = tensor.dims.iter().map(|&d| usize::try_from(d).ok()).collect();
        let (Some(dtype), Some(shape), true) = (dtype_of(tensor.data_type.unwrap_or(0)), shape, is_plain) else {
            return self.fill(INITIALIZER, tensor).map(|()| None);
        };
        if !is_external(tensor) {
            return Ok(None);
        }
        let literal = self.elements(tensor).and_then(|elements| match elements {
            ElementBytes::Memory(bytes) => {
                tensor.raw_data = Some(bytes);
                Ok(None)
            }
            ElementBytes::File(range) => match Literal::in_file(dtype, &shape, range) {
                Ok(literal) => Ok(Some(literal)),
                Err(LiteralError::Storage(e)) => Err(unreadable(tensor, &e)),
                Err(LiteralError::ByteCount { expected, actual, .. }) => Err(ExternalError::Length {
                    location: stated_location(tensor).unwrap_or_default().to_owned(),
                    length: actual as u64,
                    expected: expected as u64,
                }),
                Err(_) => Err(ExternalError::NoLength(stated_location(tensor).unwrap_or_default().to_owned())),
            },
        });
        let literal = literal.map_err(|problem| at_tensor(INITIALIZER, tensor, problem))?;
        tensor.external_data = Vec::new();
        tensor.data_location = None;
        Ok(literal)
    }

    fn elements(&mut self, tensor: &TensorProto) -> Result<ElementBytes, ExternalError> {
        let number = |key: &'static str| {
            let bytes = |value: &str| match value.parse::<u64>() {
                Ok(n) => Ok(n),
                Err(_) => Err(ExternalError::Number { key, value: value.to_owned() }),
            };
            entry_of(tensor, key).map(bytes).transpose()
        };
        let stated = stated_location(tensor).ok_or(ExternalError::NoLocation)?;
        let location = match stated == own_location() {
            true => stated.to_owned(),
            false => normal_location(stated).ok_or_else(|| ExternalError::Outside(stated.to_owned()))?,
        };
        let (offset, length) = (number("offset")?.unwrap_or(0), number("length")?);
        let dtype = dtype_of(tensor.data_type.unwrap_or(0));
        if dtype == Some(DType::String) {
            return Err(ExternalError::Strings);
        }
        if has_elements(tensor) {
            return Err(ExternalError::Twice(location));
        }
        let shape: Option<Shape> = tensor.dims.iter().map(|&d| usize::try_from(d).ok()).collect();
        let bytes = dtype.zip(shape.and_then(|s| element_count(&s))).and_then(|(dtype, n)| dtype.byte_len(n));
        let length = match (length, bytes.map(|b| b as u64)) {
            (Some(length), Some(expected)) if length != expected => {
                return Err(ExternalError::Length { location, length, expected });
            }
            (Some(length), _) | (None, Some(length)) => length,
            (None, None) => return Err(ExternalError::NoLength(location)),
        };
        self.contents(&location)?.range(&location, offset, length)
    }

    fn contents(&mut self, location: &str) -> Result<&mut DataContents, ExternalError> {
        if !self.contents.contains_key(location) {
            let files = self.files.as_ref().ok_or_else(|| ExternalError::NoFiles(location.to_owned()))?;
            let opened = files.open(location).and_then(|opened| match opened {
                Some(file) => Ok(DataHome::File(Arc::new(file))),
                None => files.read(location).map(DataHome::Memory),
            });
            let home = opened
                .map_err(|e| ExternalError::Unreadable { location: location.to_owned(), message: e.to_string() })?;
            self.contents.insert(location.to_owned(), DataContents::new(home));
        }
        Ok(self.contents.get_mut(location).expect("it was inserted if it was missing"))
    }

    fn fill_sparse(&mut self, tensor: &mut SparseTensorProto) -> Result<(), ImportProblem> {
        tensor.values.iter_mut().chain(&mut tensor.indices).try_for_each(|t| self.fill("tensor", t))
    }

    /// Reads the elements of the tensors of a graph, except those in the graphs of its nodes.
    /// Returns the constants of initializers whose elements stay in their files, by index.
    ///
    /// # Errors
    /// If the elements of a tensor cannot be read.
    pub(crate) fn fill_graph(&mut self, graph: &mut GraphProto) -> Result<FxHashMap<usize, Literal>, ImportProblem> {
        let mut stored = FxHashMap::default();
        for (i, tensor) in graph.initializer.iter_mut().enumerate() {
            stored.extend(self.stored(tensor)?.map(|literal| (i, literal)));
        }
        graph.sparse_initializer.iter_mut().try_for_each(|t| self.fill_sparse(t))?;
        self.fill_nodes(&mut graph.node)?;
        Ok(stored)
    }

    fn fill_nodes(&mut self, nodes: &mut [NodeProto]) -> Result<(), ImportProblem> {
        for a in nodes.iter_mut().flat_map(|n| &mut n.attribute) {
            a.t.iter_mut().map(|t| &mut **t).chain(&mut a.tensors).try_for_each(|t| self.fill("tensor", t))?;
            let sparse = a.sparse_tensor.iter_mut().map(|t| &mut **t).chain(&mut a.sparse_tensors);
            sparse.into_iter().try_for_each(|t| self.fill_sparse(t))?;
        }
        Ok(())
    }

    /// Reads the elements of the tensors of a function that is preserved in encoded form.
    ///
    /// # Errors
    /// If the elements of a tensor cannot be read, or a graph in a node has tensors with external
    /// elements: such graphs are not decoded.
    pub(crate) fn fill_function(&mut self, encoded: &mut Bytes) -> Result<(), ImportProblem> {
        let mut function = FunctionProto::decode(encoded.clone())?;
        self.fill_nodes(&mut function.node)?;
        let attributes = || function.node.iter().flat_map(|n| &n.attribute).chain(&function.attribute_proto);
        let in_graphs =
            attributes().flat_map(|a| a.g.iter().chain(&a.graphs)).any(|g| wire::graph_has_external_data(g));
        let in_defaults = function.attribute_proto.iter().any(|a| {
            let sparse = a.sparse_tensor.iter().map(|t| &**t).chain(&a.sparse_tensors);
            let parts = sparse.flat_map(|s| s.values.iter().chain(&s.indices));
            a.t.iter().map(|t| &**t).chain(&a.tensors).chain(parts).any(|t| !t.external_data.is_empty())
        });
        match in_graphs || in_defaults {
            true => {
                Err(ImportProblem::Unsupported("data in other files, in a subgraph or a default value of a function,"))
            }
            false => {
                *encoded = function.encode_to_vec().into();
                Ok(())
            }
        }
    }
}

impl DataContents {
    fn new(home: DataHome) -> DataContents {
        DataContents { home, ranges: FxHashSet::default(), range_bytes: 0 }
    }

    /// Returns the bytes of a range, after a check that the ranges do not overlap too much.
    fn range(&mut self, location: &str, offset: u64, length: u64) -> Result<ElementBytes, ExternalError> {
        let size = match &self.home {
            DataHome::Memory(bytes) => bytes.len() as u64,
            DataHome::File(file) => file.len(),
        };
        let location = || location.to_owned();
        if offset.checked_add(length).is_none_or(|end| end > size) {
            return Err(ExternalError::Short { location: location(), offset, length, size });
        }
        if self.ranges.insert((offset, length)) {
            self.range_bytes = self.range_bytes.saturating_add(length);
        }
        let most = size.saturating_mul(MOST_OVERLAP).max(SMALL_RANGES);
        if self.range_bytes > most {
            return Err(ExternalError::Overlap { location: location(), size, most });
        }
        match &self.home {
            DataHome::Memory(bytes) => {
                Ok(ElementBytes::Memory(bytes.slice(offset as usize..(offset + length) as usize)))
            }
            DataHome::File(file) => {
                match usize::try_from(length).map(|n| FileRange::new(Arc::clone(file), offset, n)) {
                    Ok(Ok(range)) => Ok(ElementBytes::File(range)),
                    _ => Err(ExternalError::Short { location: location(), offset, length, size }),
                }
            }
        }
    }
}

const INITIALIZER: &str = "initializer";

/// Returns an entry of a tensor about its elements. As with metadata, the last entry of a key
/// applies.
fn entry_of<'t>(tensor: &'t TensorProto, key: &str) -> Option<&'t str> {
    tensor.external_data.iter().rev().find(|e| e.key() == key).map(|e| e.value())
}

fn stated_location(tensor: &TensorProto) -> Option<&str> {
    entry_of(tensor, "location").filter(|l| !l.is_empty())
}

fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(DataLocation::External as i32) || !tensor.external_data.is_empty()
}

fn unreadable(tensor: &TensorProto, error: &StorageError) -> ExternalError {
    let location = stated_location(tensor).unwrap_or_default().to_owned();
    ExternalError::Unreadable { location, message: error.to_string() }
}

fn at_tensor(kind: &str, tensor: &TensorProto, problem: ExternalError) -> ImportProblem {
    let tensor = match tensor.name() {
        "" => format!("a {kind}"),
        name => format!("the {kind} `{name}`"),
    };
    ImportProblem::External { tensor, problem }
}

/// Returns true if a tensor has elements in the model.
fn has_elements(t: &TensorProto) -> bool {
    t.raw_data.as_ref().is_some_and(|r| !r.is_empty())
        || !t.float_data.is_empty()
        || !t.int32_data.is_empty()
        || !t.int64_data.is_empty()
        || !t.double_data.is_empty()
        || !t.uint64_data.is_empty()
        || !t.string_data.is_empty()
}
