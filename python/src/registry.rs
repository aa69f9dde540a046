//! The registry of passes that Python uses, and the names of passes written in Python.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use anfora::manager::{ConfigKind, PassRegistry};
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
        let options = PyList::empty(py);
        let settings = registry.settings_of(pass);
        for (name, option) in pass.options().iter().map(|option| (option.key, option)).chain(settings) {
            let row = PyDict::new(py);
            row.set_item("name", name)?;
            row.set_item("type", python_type(&option.kind))?;
            row.set_item("default", option.default.to_string())?;
            row.set_item("doc", option.doc)?;
            options.append(row)?;
        }
        entry.set_item("options", options)?;
        list.append(entry)?;
    }
    Ok(list)
}

/// Returns the named pipelines: name, text, documentation.
#[pyfunction]
#[pyo3(signature = () -> "list[tuple[str, str, str]]")]
pub(crate) fn _registered_pipelines(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let rows =
        registry().pipelines().iter().map(|p| (p.name.clone(), p.text.clone(), p.doc.clone())).collect::<Vec<_>>();
    PyList::new(py, rows)
}
