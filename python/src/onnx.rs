//! ONNX models in and out.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anfora::ir;
use anfora::ir::UnfinishedFile;
use anfora::onnx::{DataFolder, ExportOptions, ExternalData, ImportOptions, ModelFile, WhenExternal};
use bytes::Bytes;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList};

use crate::errors::{self, OnnxError, guarded};
use crate::module::Module;

/// Reads a model from bytes, whose constants share them, or from a file. Returns the module, the
/// number of nodes, what is kept unchanged, and warnings.
#[pyfunction]
#[pyo3(signature = (data: "bytes | None", path: "str | None", folder: "str | None") -> "tuple[Module, int, list[str], list[Diagnostic]]")]
pub(crate) fn _import_onnx<'py>(
    py: Python<'py>,
    data: Option<PyBackedBytes>,
    path: Option<PathBuf>,
    folder: Option<PathBuf>,
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
    let data_files = folder.map(|f| Arc::new(f) as Arc<dyn anfora::onnx::DataFiles>);
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
fn write(exported: &anfora::onnx::ExportedModel, path: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    if let Some(data) = &exported.data {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".data");
        files.push(UnfinishedFile::write(Path::new(&beside), |out| data.write_to_file(out))?);
    }
    files.push(UnfinishedFile::write(path, |out| exported.model.write_to_file(out))?);
    UnfinishedFile::finish_all(files).map_err(std::io::Error::other)
}

fn export_error(py: Python<'_>, error: &anfora::onnx::ExportError, program: &ir::Module) -> PyErr {
    errors::in_module(py, &py.get_type::<OnnxError>(), &[error.diagnostic()], program)
}
