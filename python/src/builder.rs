//! Functions that are being built from Python.

mod methods;

use std::sync::{Mutex, PoisonError};

use anfora::ir::{self, Body, Context};
use pyo3::prelude::*;

use crate::errors::AnforaError;
use crate::module::Module;

/// Builds a function of a module, binding by binding:
///
/// ```python
/// fb = af.FunctionBuilder(mod, "main")
/// x = fb.param("x", "Tensor[(8,), float32]")
/// y = fb.emit("add", x, 1.0, name="y")
/// fb.finish(fb.emit("exp", y))
/// ```
#[pyclass(frozen, subclass, module = "anfora")]
pub(crate) struct FunctionBuilder {
    module: Py<Module>,
    /// The function so far. It is taken out while it is used; `None` when it is finished.
    unfinished: Mutex<Option<ir::UnfinishedFunction>>,
}

impl FunctionBuilder {
    /// Uses the function so far, which is taken out of the lock meanwhile.
    fn with<T>(
        &self,
        work: impl FnOnce(ir::UnfinishedFunction) -> (Option<ir::UnfinishedFunction>, PyResult<T>),
    ) -> PyResult<T> {
        let lock = || self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        let unfinished = lock().take();
        let unfinished = unfinished.ok_or_else(|| AnforaError::new_err("the function is finished"))?;
        let (unfinished, result) = work(unfinished);
        *lock() = unfinished;
        result
    }

    /// Reads the tables and the body as built so far.
    ///
    /// # Errors
    /// If the function is finished, or the module is being edited.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Context, &Body) -> T) -> PyResult<T> {
        self.with(|unfinished| {
            let result = self.module.get().read(|module| read(&module.cx, unfinished.body()));
            (Some(unfinished), result)
        })
    }

    /// Continues the function in its module.
    ///
    /// # Errors
    /// Those of the work, and if the function is finished or the module is being edited.
    fn continued<T>(&self, work: impl FnOnce(&mut ir::FunctionBuilder<'_>) -> PyResult<T>) -> PyResult<T> {
        self.with(|unfinished| {
            let mut kept = Some(unfinished);
            let result = self.module.get().extend(|module| {
                let mut builder = ir::FunctionBuilder::resume(module, kept.take()?);
                let result = work(&mut builder);
                kept = Some(builder.set_aside());
                Some(result)
            });
            (
                kept,
                result.and_then(|done| done.unwrap_or_else(|| Err(AnforaError::new_err("the function is finished")))),
            )
        })
    }
}
