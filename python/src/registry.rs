//! The registry of passes that Python uses, and the names of passes written in Python.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use anfora::manager::{ConfigDef, ConfigKind, PassRegistry};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Returns the registry: that of the standard passes.
pub(crate) fn registry() -> Arc<PassRegistry> {
    static REGISTRY: LazyLock<Arc<PassRegistry>> = LazyLock::new(anfora::passes::registry);
    REGISTRY.clone()
}

static AUTHORED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Notes the name of a pass that was written in Python, so that contexts may require or disable it.
pub(crate) fn note_authored(name: &str) {
    AUTHORED.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_string());
}

/// Returns the names of the passes that were written in Python.
pub(crate) fn authored() -> Vec<String> {
    AUTHORED.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
}

/// Returns the type of Python for the values of an option.
fn python_type(kind: &ConfigKind) -> &'static str {
    match kind {
        ConfigKind::Int { .. } => "int",
        ConfigKind::Float { .. } => "float",
        ConfigKind::Bool => "bool",
        ConfigKind::Str | ConfigKind::OneOf(_) => "str",
        ConfigKind::Limit => "int | str",
        ConfigKind::IntList { .. } => "list[int]",
        ConfigKind::Numbers { .. } => "dict[str, int]",
        _ => "list[str]",
    }
}

/// Returns the registered passes: name, level, documentation, and options with their types. The
/// settings that a pipeline may give like options follow the options.
#[pyfunction]
#[pyo3(signature = () -> "list[dict[str, typing.Any]]")]
pub(crate) fn _registered_passes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let (list, registry) = (PyList::empty(py), registry());
    for pass in registry.passes() {
        let entry = PyDict::new(py);
        entry.set_item("name", pass.name())?;
        entry.set_item("opt_level", pass.opt_level())?;
        entry.set_item("doc", pass.doc())?;
        let settings = registry.settings_of(pass);
        let options = pass.options().iter().map(|option| (option.key, option));
        entry.set_item("options", option_rows(py, options.chain(settings))?)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Returns the named pipelines: name, text, documentation, and options with their types.
#[pyfunction]
#[pyo3(signature = () -> "list[dict[str, typing.Any]]")]
pub(crate) fn _registered_pipelines(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for pipeline in registry().pipelines() {
        let entry = PyDict::new(py);
        entry.set_item("name", &pipeline.name)?;
        entry.set_item("text", &pipeline.text)?;
        entry.set_item("doc", &pipeline.doc)?;
        let options = pipeline.options.iter().map(|option| (option.key, option));
        entry.set_item("options", option_rows(py, options)?)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Returns options, each under the name by which it is given: name, type, default, documentation.
fn option_rows<'py, 'o>(
    py: Python<'py>,
    options: impl Iterator<Item = (&'static str, &'o ConfigDef)>,
) -> PyResult<Bound<'py, PyList>> {
    let rows = PyList::empty(py);
    for (name, option) in options {
        let row = PyDict::new(py);
        row.set_item("name", name)?;
        row.set_item("type", python_type(&option.kind))?;
        row.set_item("default", option.default.to_string())?;
        row.set_item("doc", option.doc)?;
        rows.append(row)?;
    }
    Ok(rows)
}
