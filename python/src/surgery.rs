//! Edits by the names of values.

use anfora::ir::{self, AttrValue, Diagnostics};
use anfora::surgery::{self, AttributeEdit, NewAttribute, NewExtent, Part, Renames};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::attributes::Given;
use crate::errors::{self, SurgeryError, guarded};
use crate::module::Module;

/// Edits a copy of a module, and returns it.
fn edited(
    py: Python<'_>,
    module: &Bound<'_, Module>,
    edit: impl FnOnce(&mut ir::Module) -> Result<(), Diagnostics> + Send,
) -> PyResult<Module> {
    apply(py, (*module.get().snapshot()?).clone(), edit)
}

/// Edits a program, and returns it as a module.
fn apply(
    py: Python<'_>,
    mut program: ir::Module,
    edit: impl FnOnce(&mut ir::Module) -> Result<(), Diagnostics> + Send,
) -> PyResult<Module> {
    let (program, done) = py.detach(|| {
        guarded(|| {
            let done = edit(&mut program);
            (program, done)
        })
    })?;
    done.map_err(|all| errors::in_module(py, &py.get_type::<SurgeryError>(), &all, &program))?;
    Ok(Module::of(program))
}

/// Returns the part of a module between some of its values: see `anfora.surgery.extract`.
#[pyfunction]
#[pyo3(signature = (r#mod: "Module", entry: "str", inputs: "list[str] | None", outputs: "list[str] | None") -> "Module")]
pub(crate) fn _extract(
    py: Python<'_>,
    r#mod: &Bound<'_, Module>,
    entry: String,
    inputs: Option<Vec<String>>,
    outputs: Option<Vec<String>>,
) -> PyResult<Module> {
    let part = Part { inputs, outputs };
    edited(py, r#mod, |module| surgery::extract(module, &entry, &part))
}

/// Returns a module with other names: see `anfora.surgery.rename`.
#[pyfunction]
#[pyo3(signature = (
    r#mod: "Module",
    entry: "str",
    values: "list[tuple[str, str]]",
    functions: "list[tuple[str, str]]",
    symbols: "list[tuple[str, str]]"
) -> "Module")]
pub(crate) fn _rename(
    py: Python<'_>,
    r#mod: &Bound<'_, Module>,
    entry: String,
    values: Vec<(String, String)>,
    functions: Vec<(String, String)>,
    symbols: Vec<(String, String)>,
) -> PyResult<Module> {
    let names = Renames { values, functions, symbols };
    edited(py, r#mod, |module| surgery::rename(module, &entry, &names))
}

/// An extent: a number, the name of a symbolic dimension, or `None` for the old one.
#[derive(FromPyObject)]
pub(crate) enum Extent {
    Number(u64),
    Name(String),
}

/// Returns a module whose inputs have other shapes: see `anfora.surgery.set_shapes`.
#[pyfunction]
#[pyo3(signature = (
    r#mod: "Module",
    entry: "str",
    shapes: "list[tuple[str, list[int | str | None]]]"
) -> "Module")]
pub(crate) fn _set_shapes(
    py: Python<'_>,
    r#mod: &Bound<'_, Module>,
    entry: String,
    shapes: Vec<(String, Vec<Option<Extent>>)>,
) -> PyResult<Module> {
    let extent = |extent| match extent {
        None => NewExtent::Kept,
        Some(Extent::Number(number)) => NewExtent::Fixed(number),
        Some(Extent::Name(name)) => NewExtent::Named(name),
    };
    let shapes: Vec<(String, Vec<NewExtent>)> =
        shapes.into_iter().map(|(input, extents)| (input, extents.into_iter().map(extent).collect())).collect();
    edited(py, r#mod, |module| surgery::set_shapes(module, &entry, &shapes))
}

/// Returns a module with other attributes: see `anfora.surgery.set_attributes`. Each edit is a
/// node, an attribute, and its value.
#[pyfunction]
#[pyo3(signature = (r#mod: "Module", entry: "str", edits: "list[tuple[str, str, object]]") -> "Module")]
pub(crate) fn _set_attributes(
    py: Python<'_>,
    r#mod: &Bound<'_, Module>,
    entry: String,
    edits: Vec<(String, String, Bound<'_, PyAny>)>,
) -> PyResult<Module> {
    let mut program = (*r#mod.get().snapshot()?).clone();
    let mut done = Vec::with_capacity(edits.len());
    for (node, attribute, value) in edits {
        let value = match value.cast::<PyString>() {
            // A string may name an element type.
            Ok(text) => AttrValue::Str(text.to_string()),
            Err(_) => match Given::of(&value)?.intern(&mut program.cx)? {
                Some(value) => AttrValue::Interned(value),
                None => {
                    let message = format!("the attribute {attribute} of {node} needs a value, and None is given");
                    return Err(PyTypeError::new_err(message));
                }
            },
        };
        done.push(AttributeEdit { node, attribute, value: NewAttribute::Value(value) });
    }
    apply(py, program, |module| surgery::set_attributes(module, &entry, &done))
}
