//! Handles of functions.

use std::collections::HashMap;

use anfora::ir::{self, Editor, ExprId, FunctionKey, IntoDiagnostics, PrintOptions, Stamp, Visibility};
use anfora::visit;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attributes::{self, Given};
use crate::context::current;
use crate::errors::{self, StaleError, VerifyError};
use crate::expr::{Bindings, Expr};
use crate::module::Module;
use crate::owner::{Home, Owner};
use crate::place;
use crate::types::Type;

/// A function of a module: its parameters, its bindings, its result.
///
/// It is a handle: it shows the function as it is now.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct Function {
    pub(crate) module: Py<Module>,
    pub(crate) key: FunctionKey,
}

impl Function {
    pub(crate) fn new(module: Py<Module>, key: FunctionKey) -> Function {
        Function { module, key }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&ir::Module, &ir::Function) -> PyResult<T>) -> PyResult<T> {
        self.module.get().read(|module| match module.get(self.key) {
            Some(function) => read(module, function),
            None => Err(removed()),
        })?
    }

    pub(crate) fn home(&self, py: Python<'_>) -> PyResult<Home> {
        let stamp = self.read(|_, function| Ok(function.body.stamp()))?;
        Ok(Home::of_function(self.module.clone_ref(py), self.key, stamp))
    }

    /// Edits the function. An edit that fails leaves it as it was.
    ///
    /// # Errors
    /// Those of the edit, and if the module cannot be edited now.
    pub(crate) fn edit<T: Send>(
        &self,
        py: Python<'_>,
        edit: impl FnOnce(&mut Editor<'_>) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.module.get().edit(py, |module| {
            let before = module.get(self.key).map(|f| f.body.stamp());
            let done = edit_one(module, self.key, edit)?;
            if module.get(self.key).map(|f| f.body.stamp()) != before {
                verify_edited(module, &[self.key])?;
            }
            Ok(done)
        })
    }

    fn set_attribute(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = Given::of(value)?;
        self.module.get().edit(py, |module| {
            let value = given.intern(&mut module.cx)?;
            let (function, cx) = module.get_mut(self.key).ok_or_else(removed)?;
            function.attrs = cx.with_attr(function.attrs, name, value);
            Ok(())
        })
    }
}

/// Edits one function of a module that is being edited. Callers of the function follow.
///
/// # Errors
/// Those of the edit, and if the function was removed.
pub(crate) fn edit_one<T>(
    module: &mut ir::Module,
    key: FunctionKey,
    edit: impl FnOnce(&mut Editor<'_>) -> PyResult<T>,
) -> PyResult<T> {
    let (function, cx) = module.get_mut(key).ok_or_else(removed)?;
    let before = function.ret.is_none().then(|| function.body.type_of(function.body.root()));
    let done = edit(&mut Editor::new(cx, &mut function.body));
    let done = done.inspect_err(|error| place::note(error, Some(module.name(key)), None))?;
    let (function, _) = module.get_mut(key).ok_or_else(removed)?;
    // The result type is not stated, so callers see that of the block.
    if before.is_some_and(|before| before != function.body.type_of(function.body.root())) {
        ir::update_signatures(module, &[key]).map_err(|error| {
            let found = IntoDiagnostics::into_diagnostics(error);
            Python::attach(|py| errors::in_module(py, &py.get_type::<VerifyError>(), &found, module))
        })?;
    }
    Ok(done)
}

/// Edits every function of a module that has a body, as one edit.
///
/// # Errors
/// The first error of an edit. The module is then as it was.
pub(crate) fn edit_all<T: Send>(
    module: &Bound<'_, Module>,
    mut edit: impl FnMut(&mut Editor<'_>) -> PyResult<T> + Send,
) -> PyResult<Vec<T>> {
    module.get().edit(module.py(), |program| {
        let with_bodies = program.functions().filter(|(_, f)| f.is_definition());
        let before: Vec<(FunctionKey, Stamp)> = with_bodies.map(|(key, f)| (key, f.body.stamp())).collect();
        let done = before.iter().map(|&(key, _)| edit_one(program, key, &mut edit)).collect::<PyResult<_>>()?;
        verify_edited(program, &changed_since(program, &before))?;
        Ok(done)
    })
}

/// Returns the functions that are in another state than before, or were added.
pub(crate) fn changed_since(module: &ir::Module, before: &[(FunctionKey, Stamp)]) -> Vec<FunctionKey> {
    let before: HashMap<FunctionKey, Stamp> = before.iter().copied().collect();
    let defined = module.functions().filter(|(_, f)| f.is_definition());
    defined.filter(|(key, f)| before.get(key) != Some(&f.body.stamp())).map(|(key, _)| key).collect()
}

/// Verifies functions that were edited, unless a pass edited them, which is verified as a whole.
///
/// # Errors
/// `VerifyError` with the mistakes.
pub(crate) fn verify_edited(module: &ir::Module, keys: &[FunctionKey]) -> PyResult<()> {
    if keys.is_empty() || current::in_pass() {
        return Ok(());
    }
    ir::verify_functions(module, keys)
        .map(drop)
        .map_err(|found| Python::attach(|py| errors::in_module(py, &py.get_type::<VerifyError>(), &found, module)))
}

fn removed() -> PyErr {
    StaleError::new_err("the function was removed from its module")
}

#[pymethods]
impl Function {
    /// The name, without `@`.
    #[getter]
    fn name(&self) -> PyResult<String> {
        self.read(|module, _| Ok(module.name(self.key).to_string()))
    }

    /// The module that the function is in.
    #[getter]
    fn module(&self, py: Python<'_>) -> Py<Module> {
        self.module.clone_ref(py)
    }

    /// The parameters.
    #[getter]
    fn params(&self, py: Python<'_>) -> PyResult<Vec<Expr>> {
        let home = self.home(py)?;
        let ids: Vec<ExprId> = self.read(|_, f| Ok(f.body.params().iter().map(|v| v.expr()).collect()))?;
        Ok(ids.into_iter().map(|id| Expr::new(home.clone_ref(py), id)).collect())
    }

    /// The type of the result.
    #[getter]
    fn ret_type(&self, py: Python<'_>) -> PyResult<Type> {
        let id = self.read(|_, f| Ok(f.ret.unwrap_or_else(|| f.body.type_of(f.body.root()))))?;
        Ok(Type::new(Owner::Module(self.module.clone_ref(py)), id))
    }

    /// The bindings in program order, with those of the blocks in it. Linear in the function.
    #[getter]
    fn bindings(&self, py: Python<'_>) -> PyResult<Bindings> {
        let home = self.home(py)?;
        let ids = self.read(|_, f| {
            Ok(visit::program_order(&f.body, f.body.root())
                .filter(|&id| matches!(f.body.expr(id), ir::Expr::Let { .. }))
                .collect())
        })?;
        Ok(Bindings { home, ids })
    }

    /// The block: its own bindings, and its result.
    #[getter]
    fn body(&self, py: Python<'_>) -> PyResult<Expr> {
        let home = self.home(py)?;
        Ok(Expr::new(home, self.read(|_, f| Ok(f.body.root()))?))
    }

    /// The result of the block.
    #[getter]
    fn result(&self, py: Python<'_>) -> PyResult<Expr> {
        let home = self.home(py)?;
        Ok(Expr::new(home, self.read(|_, f| Ok(f.body.tail(f.body.root())))?))
    }

    /// The attributes by name.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let owner = Owner::Module(self.module.clone_ref(py));
        self.read(|module, f| attributes::dict(py, &owner, &module.cx, f.attrs))
    }

    /// True if the function is visible outside of the module.
    #[getter]
    fn is_public(&self) -> PyResult<bool> {
        self.read(|_, f| Ok(f.visibility == Visibility::Public))
    }

    /// True if the function has a body; false if it is only declared.
    #[getter]
    fn is_definition(&self) -> PyResult<bool> {
        self.read(|_, f| Ok(f.is_definition()))
    }

    /// Sets an attribute; `None` removes it. Returns the function.
    #[pyo3(signature = (name: "str", value: "typing.Any") -> "Function")]
    fn set_attr<'py>(slf: &Bound<'py, Self>, name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        slf.get().set_attribute(slf.py(), name, value)?;
        Ok(slf.clone())
    }

    /// As `set_attr`, in the words of TVM.
    #[pyo3(signature = (name: "str", value: "typing.Any") -> "Function")]
    fn with_attr<'py>(slf: &Bound<'py, Self>, name: &str, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        Function::set_attr(slf, name, value)
    }

    /// Returns the function as text.
    #[pyo3(signature = () -> "str")]
    fn text(&self) -> PyResult<String> {
        self.read(|module, _| {
            let mut text = String::new();
            // Writing to a string does not fail.
            let _ = ir::print_function(module, self.key, &PrintOptions::default(), &mut text);
            Ok(text)
        })
    }

    fn __str__(&self) -> PyResult<String> {
        self.text()
    }

    fn __repr__(&self) -> String {
        self.name().map_or_else(|_| "<anfora.Function (removed)>".to_string(), |n| format!("<anfora.Function @{n}>"))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Function>().is_ok_and(|o| self.module.is(&o.get().module) && self.key == o.get().key)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.key.hash(&mut hasher);
        hasher.finish()
    }
}
