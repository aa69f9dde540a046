//! Tensors with elements in other files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anfora_ir::{DType, Shape, element_count};
use bytes::Bytes;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::error::{ExternalError, ImportProblem};
use crate::proto::tensor_proto::DataLocation;
use crate::proto::{FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto};
use crate::tensor::dtype_of;
use crate::wire;

/// A source of the files that hold elements of a model's tensors.
///
/// An import reads each file once. Literals are slices of the returned contents.
pub trait DataFiles: Send + Sync {
    /// Returns the contents of a file. The location is a path relative to the model, with `/`
    /// between its parts, none of which is `.` or `..`.
    ///
    /// Cost: linear in the text.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    fn read(&self, location: &str) -> io::Result<Bytes>;
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
        let path = self.find(location)?;
        // Opening something other than a regular file may block forever, and reading it may never
        // end.
        let metadata = fs::metadata(&path)?;
        if !metadata.is_file() {
            return refused("it is not a regular file");
        }
        let mut contents = Vec::new();
        let size = usize::try_from(metadata.len()).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        contents.try_reserve_exact(size).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        File::open(&path)?.take(metadata.len()).read_to_end(&mut contents)?;
        Ok(contents.into())
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

/// The files that an import has read.
pub(crate) struct ReadFiles {
    files: Option<Arc<dyn DataFiles>>,
    contents: FxHashMap<String, Bytes>,
}

impl ReadFiles {
    pub(crate) fn new(files: Option<Arc<dyn DataFiles>>) -> ReadFiles {
        ReadFiles { files, contents: FxHashMap::default() }
    }

    /// Reads the elements of a tensor into it if they are in a file.
    fn fill(&mut self, kind: &str, tensor: &mut TensorProto) -> Result<(), ImportProblem> {
        let is_external = tensor.data_location == Some(DataLocation::External as i32);
        if !is_external && tensor.external_data.is_empty() {
            return Ok(());
        }
        let elements = self.elements(tensor).map_err(|problem| {
            let tensor =
                if tensor.name().is_empty() { format!("a {kind}") } else { format!("the {kind} `{}`", tensor.name()) };
            ImportProblem::External { tensor, problem }
        })?;
        tensor.raw_data = Some(elements);
        tensor.external_data = Vec::new();
        tensor.data_location = None;
        Ok(())
    }

    fn elements(&mut self, tensor: &TensorProto) -> Result<Bytes, ExternalError> {
        // As with metadata, the last entry of a key applies.
        let find = |key: &str| tensor.external_data.iter().rev().find(|e| e.key() == key).map(|e| e.value());
        let number = |key: &'static str| {
            let bytes = |value: &str| match value.parse::<u64>() {
                Ok(n) => Ok(n),
                Err(_) => Err(ExternalError::Number { key, value: value.to_owned() }),
            };
            find(key).map(bytes).transpose()
        };
        let stated = find("location").filter(|l| !l.is_empty()).ok_or(ExternalError::NoLocation)?;
        let location = normal_location(stated).ok_or_else(|| ExternalError::Outside(stated.to_owned()))?;
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
        let contents = self.contents(&location)?;
        let size = contents.len() as u64;
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(contents.slice(offset as usize..end as usize)),
            _ => Err(ExternalError::Short { location, offset, length, size }),
        }
    }

    fn contents(&mut self, location: &str) -> Result<&Bytes, ExternalError> {
        if !self.contents.contains_key(location) {
            let files = self.files.as_ref().ok_or_else(|| ExternalError::NoFiles(location.to_owned()))?;
            let read = files.read(location);
            let contents =
                read.map_err(|e| ExternalError::Unreadable { location: location.to_owned(), message: e.to_string() })?;
            self.contents.insert(location.to_owned(), contents);
        }
        Ok(&self.contents[location])
    }

    fn fill_sparse(&mut self, tensor: &mut SparseTensorProto) -> Result<(), ImportProblem> {
        tensor.values.iter_mut().chain(&mut tensor.indices).try_for_each(|t| self.fill("tensor", t))
    }

    /// Reads the elements of the tensors of a graph, except those in the graphs of its nodes.
    ///
    /// # Errors
    /// If the elements of a tensor cannot be read.
    pub(crate) fn fill_graph(&mut self, graph: &mut GraphProto) -> Result<(), ImportProblem> {
        graph.initializer.iter_mut().try_for_each(|t| self.fill("initializer", t))?;
        graph.sparse_initializer.iter_mut().try_for_each(|t| self.fill_sparse(t))?;
        self.fill_nodes(&mut graph.node)
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

#[cfg(test)]
mod tests {
    use super::normal_location;

    #[test]
    fn locations_stay_inside_the_folder() {
        for (given, normal) in [
            ("w.bin", Some("w.bin")),
            ("./a//w.bin", Some("a/w.bin")),
            ("a/./w", Some("a/w")),
            ("../w", None),
            ("a/../w", None),
            ("a/../../w", None),
            ("/etc/passwd", None),
            (".", None),
            ("", None),
            ("a\0b", None),
        ] {
            assert_eq!(normal_location(given).as_deref(), normal, "{given:?}");
        }
    }
}
