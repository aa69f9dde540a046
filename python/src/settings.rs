//! Settings and options: from values of Python to what pipelines write.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyString, PyTuple};

/// Returns a level.
///
/// # Errors
/// `ValueError`, if it is none.
pub(crate) fn level_of(level: i64) -> PyResult<u8> {
    let wrong = || PyValueError::new_err(format!("opt_level is between 0 and 255, not {level}"));
    u8::try_from(level).map_err(|_| wrong())
}

/// Returns a setting or an option as text, or as a list of texts.
///
/// # Errors
/// Those of `str()` of the value.
pub(crate) fn config_value(value: &Bound<'_, PyAny>) -> PyResult<Setting> {
    Ok(if let Ok(v) = value.cast::<PyBool>() {
        Setting::Text(v.is_true().to_string())
    } else if value.is_instance_of::<PyInt>() {
        Setting::Text(value.str()?.to_string())
    } else if let Ok(text) = value.cast::<PyString>() {
        Setting::Text(text.to_string())
    } else if value.is_none() {
        Setting::Text("none".to_string())
    } else if let Ok(list) = value.cast::<PyList>() {
        Setting::List(texts(list.as_any())?)
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        Setting::List(texts(tuple.as_any())?)
    } else {
        Setting::Text(value.str()?.to_string())
    })
}

/// Returns the items of a list as text.
pub(crate) fn texts(list: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    list.try_iter()?.map(|item| Ok(item?.str()?.to_string())).collect()
}

/// A setting as it was given.
pub(crate) enum Setting {
    Text(String),
    List(Vec<String>),
}

impl Setting {
    /// Returns the setting as it is written in a pipeline.
    pub(crate) fn text(&self) -> String {
        match self {
            Setting::Text(text) => text.clone(),
            Setting::List(items) => format!("[{}]", items.iter().map(|i| quoted(i)).collect::<Vec<_>>().join(",")),
        }
    }

    /// Returns the setting as an option of a pass is written.
    pub(crate) fn quoted(&self) -> String {
        match self {
            Setting::Text(text) => quoted(text),
            Setting::List(_) => self.text(),
        }
    }
}

/// Returns a text as pipelines write it: in quotes, unless it is a word.
pub(crate) fn quoted(text: &str) -> String {
    let is_word = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.+-".contains(c));
    if is_word { text.to_string() } else { format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")) }
}
