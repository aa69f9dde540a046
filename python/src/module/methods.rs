//! Modules as Python sees them: reading, editing and printing of programs.

use std::sync::Arc;

use anfora::ir::{self, FunctionKey, PrintOptions, Source, verify_module};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::attributes;
use crate::errors::{self, AnforaError, ParseError, VerifyError, guarded};
use crate::function::Function;
use crate::module::{Module, ended};
use crate::owner::Owner;

/// Reads a program from text.
///
/// # Errors
/// `ParseError` with all mistakes of the text.
#[pyfunction]
#[pyo3(signature = (text: "str", name: "str" = "<string>".to_string()) -> "Module")]
pub(crate) fn loads(py: Python<'_>, text: String, name: String) -> PyResult<Module> {
    let parsed = py.detach(|| guarded(|| ir::parse_module(Source::new(name, text), anfora::onnx::registry())))?;
    parsed.map(Module::of).map_err(|errors| errors::from_diagnostics(py, &py.get_type::<ParseError>(), &errors))
}

impl Module {
    /// Returns the key of the function with a name.
    ///
    /// # Errors
    /// `KeyError` with a suggestion, if there is none.
    fn find(&self, name: &str) -> PyResult<FunctionKey> {
        self.read(|module| {
            module.find(name.trim_start_matches('@')).ok_or_else(|| {
                let names = module.functions().map(|(key, _)| module.name(key));
                let help = ir::did_you_mean(name, names).map_or_else(String::new, |n| format!("; did you mean {n:?}?"));
                PyKeyError::new_err(format!("there is no function {name:?}{help}"))
            })
        })?
    }
}

#[pymethods]
impl Module {
    /// Makes an empty module.
    #[new]
    fn new() -> Module {
        Module::of(ir::Module::new(anfora::onnx::registry()))
    }

    /// The functions by name, in program order.
    #[getter]
    fn functions<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let all: Vec<(String, FunctionKey)> =
            slf.get().read(|m| m.functions().map(|(key, _)| (m.name(key).to_string(), key)).collect())?;
        let functions = PyDict::new(slf.py());
        for (name, key) in all {
            functions.set_item(name, Function::new(slf.clone().unbind(), key))?;
        }
        Ok(functions)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.read(|m| m.order().len())
    }

    fn __contains__(&self, name: &str) -> PyResult<bool> {
        self.read(|m| m.find(name.trim_start_matches('@')).is_some())
    }

    fn __getitem__(slf: &Bound<'_, Self>, name: &str) -> PyResult<Function> {
        Ok(Function::new(slf.clone().unbind(), slf.get().find(name)?))
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Module::functions(slf)?.call_method0("__iter__")
    }

    /// The attributes of the module by name.
    #[getter]
    fn attrs<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let owner = Owner::Module(slf.clone().unbind());
        slf.get().read(|module| attributes::dict(slf.py(), &owner, &module.cx, module.attrs()))?
    }

    /// Sets an attribute of the module; `None` removes it.
    #[pyo3(signature = (name: "str", value: "typing.Any") -> "None")]
    fn set_attr(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = attributes::Given::of(value)?;
        self.edit(py, |module| {
            let value = value.intern(&mut module.cx)?;
            let attrs = module.cx.with_attr(module.attrs(), name, value);
            module.set_attrs(attrs);
            Ok(())
        })
    }

    /// Renames a function. All calls of it follow.
    #[pyo3(signature = (old: "str", new: "str") -> "None")]
    fn rename(&self, py: Python<'_>, old: &str, new: &str) -> PyResult<()> {
        let key = self.find(old)?;
        let taken = || AnforaError::new_err(format!("there is a function {new:?} already"));
        self.edit(py, |module| {
            let global = module.get(key).and_then(ir::Function::global).ok_or_else(ended)?;
            let name = module.cx.names.intern(new.trim_start_matches('@'));
            if module.rename(global, name) { Ok(()) } else { Err(taken()) }
        })
    }

    /// Removes functions.
    #[pyo3(signature = (*names: "str") -> "None")]
    fn remove(&self, py: Python<'_>, names: &Bound<'_, PyTuple>) -> PyResult<()> {
        let names: Vec<String> = names.extract()?;
        let keys = names.iter().map(|n| self.find(n)).collect::<PyResult<Vec<_>>>()?;
        self.edit(py, |module| {
            module.remove(&keys);
            Ok(())
        })
    }

    fn __delitem__(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        let key = self.find(name)?;
        self.edit(py, |module| {
            module.remove(&[key]);
            Ok(())
        })
    }

    /// Returns the module as text, which `loads` reads. `elide` shortens large constants, for
    /// readers.
    #[pyo3(signature = (*, elide: "bool" = false) -> "str")]
    fn text(&self, py: Python<'_>, elide: bool) -> PyResult<String> {
        let program = self.snapshot()?;
        py.detach(|| guarded(|| text_of(&program, elide)))
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        self.text(py, true)
    }

    fn __repr__(&self) -> PyResult<String> {
        let names = self.read(|m| {
            let mut names: Vec<String> = m.functions().take(4).map(|(key, _)| format!("@{}", m.name(key))).collect();
            if m.order().len() > names.len() {
                names.push("...".to_string());
            }
            names.join(", ")
        });
        Ok(match names {
            Ok(names) => format!("<anfora.Module {names}>"),
            Err(_) => "<anfora.Module (ended)>".to_string(),
        })
    }

    /// Checks the rules of well-formed modules.
    ///
    /// # Errors
    /// `VerifyError` with the mistakes.
    #[pyo3(signature = () -> "None")]
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        let program = self.snapshot()?;
        let found = py.detach(|| guarded(|| verify_module(&program)))?;
        found.map(drop).map_err(|errors| errors::in_module(py, &py.get_type::<VerifyError>(), &errors, &program))
    }

    /// The number of bindings of all functions.
    #[getter]
    fn binding_count(&self, py: Python<'_>) -> PyResult<usize> {
        let program = self.snapshot()?;
        py.detach(|| guarded(|| ir::Counts::of_module(&program).bindings))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let Ok(other) = other.cast::<Module>() else { return Ok(py.NotImplemented()) };
        let (left, right) = (self.snapshot()?, other.get().snapshot()?);
        let equal = Arc::ptr_eq(&left, &right) || py.detach(|| guarded(|| ir::alpha_equal(&left, &right)))?;
        Ok(pyo3::types::PyBool::new(py, equal).to_owned().into_any().unbind())
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let program = self.snapshot()?;
        py.detach(|| guarded(|| ir::module_hash(&program)))
    }

    /// Returns a copy, which shares the program until one of the two is edited.
    #[pyo3(signature = () -> "Module")]
    fn copy(&self) -> PyResult<Module> {
        Ok(Module::sharing(self.snapshot()?))
    }

    fn __copy__(&self) -> PyResult<Module> {
        self.copy()
    }

    #[pyo3(signature = (memo: "typing.Any") -> "Module")]
    fn __deepcopy__(&self, memo: &Bound<'_, PyAny>) -> PyResult<Module> {
        let _ = memo;
        self.copy()
    }

    #[pyo3(signature = () -> "tuple[typing.Any, tuple[str]]")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let loads = py.import("anfora._anfora")?.getattr("loads")?;
        Ok((loads, (self.text(py, false)?,)))
    }

    /// Returns the functions and bindings as a page for a notebook: the first 200 lines.
    #[pyo3(signature = () -> "str")]
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let text = slf.get().text(slf.py(), true)?;
        slf.py().import("anfora._html")?.getattr("page")?.call1((text,))
    }
}

/// Returns a program as text.
fn text_of(program: &ir::Module, elide: bool) -> String {
    let literals = if elide { ir::PrintLiterals::Elided { more_than: 16 } } else { ir::PrintLiterals::Full };
    let options = PrintOptions { literals, ..PrintOptions::default() };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = ir::print_module(program, &options, &mut text);
    text
}
