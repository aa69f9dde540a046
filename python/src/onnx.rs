//! ONNX models in and out.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora::ir::{self, StoredFile, UnfinishedFile};
use anfora::onnx::{DataFiles, DataFolder, ExportOptions, ExternalData, ImportOptions, ModelFile, WhenExternal};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::errors::{self, OnnxError, guarded};
use crate::module::Module;

/// The data files of a model: objects of Python by location, and the files of a folder.
struct DataSources {
    memory: HashMap<String, Bytes>,
    folder: Option<DataFolder>,
}

impl DataFiles for DataSources {
    fn read(&self, location: &str) -> io::Result<Bytes> {
        match (self.memory.get(location), &self.folder) {
            (Some(data), _) => Ok(data.clone()),
            (None, Some(folder)) => folder.read(location),
            (None, None) => Err(io::Error::new(io::ErrorKind::NotFound, "there is no such file")),
        }
    }

    fn open(&self, location: &str) -> io::Result<Option<StoredFile>> {
        match &self.folder {
            Some(folder) if !self.memory.contains_key(location) => folder.open(location),
            _ => Ok(None),
        }
    }
}

/// Reads a model from bytes, whose constants share them, or from a file. `files` are data files in
/// memory, by location, which constants share too. Returns the module, the number of nodes, what is
/// kept unchanged, and warnings.
#[pyfunction]
#[pyo3(signature = (
    data: "bytes | None",
    path: "str | None",
    folder: "str | None",
    files: "dict[str, bytes] | None" = None,
) -> "tuple[Module, int, list[str], list[Diagnostic]]")]
pub(crate) fn _import_onnx<'py>(
    py: Python<'py>,
    data: Option<PyBackedBytes>,
    path: Option<PathBuf>,
    folder: Option<PathBuf>,
    files: Option<HashMap<String, PyBackedBytes>>,
) -> PyResult<(Module, usize, Vec<String>, Bound<'py, PyList>)> {
    let model = match (data, &path) {
        (Some(data), _) => Bytes::from_owner(data).into(),
        (None, Some(path)) => py.detach(|| ModelFile::read(path))?,
        (None, None) => Bytes::new().into(),
    };
    let folder = match (&path, folder) {
        (Some(path), _) => Some(DataFolder::beside(path)),
        (None, folder) => folder.map(DataFolder::new),
    };
    let memory = files.map(|f| f.into_iter().map(|(name, data)| (name, Bytes::from_owner(data))).collect());
    let data_files = match (memory, folder) {
        (None, None) => None,
        (memory, folder) => {
            let sources = DataSources { memory: memory.unwrap_or_default(), folder };
            Some(Arc::new(sources) as Arc<dyn DataFiles>)
        }
    };
    let options = ImportOptions { data_files, ..ImportOptions::default() };
    let read = py.detach(|| guarded(|| anfora::onnx::import_file(model, &options)))?;
    let imported = read.map_err(|error| {
        let name = path.as_deref().map_or_else(|| "<model>".to_string(), |p| p.display().to_string());
        let mut found = error.diagnostic();
        found.message = format!("{name}: {error}");
        errors::from_diagnostics(py, &py.get_type::<OnnxError>(), &found.into())
    })?;
    let kept = imported.kept.iter().map(|k| k.to_string()).collect();
    let warnings = errors::diagnostics(py, &imported.warnings, None)?;
    Ok((Module::of(imported.module), imported.nodes.total(), kept, warnings))
}

/// Returns a module as a model.
#[pyfunction]
#[pyo3(signature = (
    r#mod: "Module",
    entry: "str" = "main",
    opset: "int | None" = None,
    max_splat_bytes: "int | None" = None,
) -> "tuple[bytes, int]")]
pub(crate) fn _export_onnx<'py>(
    py: Python<'py>,
    r#mod: &Bound<'py, Module>,
    entry: &str,
    opset: Option<i64>,
    max_splat_bytes: Option<u64>,
) -> PyResult<(Bound<'py, PyBytes>, usize)> {
    let program = r#mod.get().snapshot()?;
    let options = ExportOptions { entry: entry.to_string(), opset, ..with_splats(max_splat_bytes) };
    let written = py.detach(|| guarded(|| anfora::onnx::export(&program, &options)))?;
    let exported = written.map_err(|error| export_error(py, &error, &program))?;
    Ok((PyBytes::new(py, &exported.bytes), exported.nodes.total()))
}

/// Returns a module as a model, and the contents of its data file `location`: the constants of at
/// least `min_bytes` bytes. Constants that are in files of `folder` stay there.
#[pyfunction]
#[pyo3(signature = (
    r#mod: "Module",
    location: "str",
    min_bytes: "int",
    folder: "str | None" = None,
) -> "tuple[bytes, bytes]")]
pub(crate) fn _split_onnx<'py>(
    py: Python<'py>,
    r#mod: &Bound<'py, Module>,
    location: String,
    min_bytes: u64,
    folder: Option<PathBuf>,
) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let program = r#mod.get().snapshot()?;
    let external = ExternalData { min_bytes, when: WhenExternal::Always, ..ExternalData::new(location) };
    let options = ExportOptions {
        external_data: Some(external),
        keep_data_beside: folder.map(|f| f.join("model")),
        ..ExportOptions::default()
    };
    let written = py.detach(|| guarded(|| anfora::onnx::export_model(&program, &options)))?;
    let exported = written.map_err(|error| export_error(py, &error, &program))?;
    let model = py.detach(|| exported.model.into_bytes()).map_err(io::Error::other)?;
    let data = match exported.data {
        None => PyBytes::new(py, &[]),
        // The elements are written into the object of Python itself.
        Some(data) => {
            let len = usize::try_from(data.len()).map_err(io::Error::other)?;
            PyBytes::new_with(py, len, |mut buffer| Ok(data.write_to(&mut buffer)?))?
        }
    };
    Ok((PyBytes::new(py, &model), data))
}

/// Writes a module as a model to a file, with the constants in a file beside it if that is asked
/// for or necessary.
#[pyfunction]
#[pyo3(signature = (r#mod: "Module", path: "str", entry: "str" = "main", opset: "int | None" = None, external_data: "int | None" = None, max_splat_bytes: "int | None" = None) -> "int")]
pub(crate) fn _save_onnx(
    py: Python<'_>,
    r#mod: &Bound<'_, Module>,
    path: PathBuf,
    entry: &str,
    opset: Option<i64>,
    external_data: Option<u64>,
    max_splat_bytes: Option<u64>,
) -> PyResult<usize> {
    let program = r#mod.get().snapshot()?;
    let location = path.file_name().and_then(|n| n.to_str()).map(|n| format!("{n}.data"));
    let external = location.map(|location| match external_data {
        Some(min_bytes) => ExternalData { min_bytes, when: WhenExternal::Always, ..ExternalData::new(location) },
        None => ExternalData::new(location),
    });
    let options = ExportOptions {
        entry: entry.to_string(),
        opset,
        external_data: external,
        keep_data_beside: external_data.is_none().then(|| path.clone()),
        ..with_splats(max_splat_bytes)
    };
    let written = py.detach(|| guarded(|| anfora::onnx::export_model(&program, &options)))?;
    let exported = written.map_err(|error| export_error(py, &error, &program))?;
    py.detach(|| write(&exported, &path))?;
    Ok(exported.nodes.total())
}

/// Returns options of an export that writes constants that repeat a number in full up to a number
/// of bytes each; the default options without such a number.
fn with_splats(max_bytes: Option<u64>) -> ExportOptions {
    match max_bytes {
        None => ExportOptions::default(),
        Some(max_splat_bytes) => {
            ExportOptions { max_splat_bytes, max_total_splat_bytes: u64::MAX, ..ExportOptions::default() }
        }
    }
}

/// Writes the files of a model. They appear only when all of them are written.
fn write(exported: &anfora::onnx::ExportedModel, path: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    if let Some(data) = &exported.data {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".data");
        files.push(UnfinishedFile::write(Path::new(&beside), |out| data.write_to_file(out))?);
    }
    files.push(UnfinishedFile::write(path, |out| exported.model.write_to_file(out))?);
    UnfinishedFile::finish_all(files).map_err(io::Error::other)
}

fn export_error(py: Python<'_>, error: &anfora::onnx::ExportError, program: &ir::Module) -> PyErr {
    errors::in_module(py, &py.get_type::<OnnxError>(), &[error.diagnostic()], program)
}
