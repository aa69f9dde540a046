//! Backends that are written in Python.

use std::sync::Arc;

use anfora::manager::PassError;
use anfora::passes::{Backend, run_codegen};
use pyo3::prelude::*;

use crate::errors::{AnforaError, from_callback};
use crate::held::{Callee, Held};
use crate::module::Module;
use crate::pass::Pass;

/// Makes the pass RunCodegen for some backends. `generate` is given the name of a backend, the name
/// of a function, and a module in which the function is `main`. It returns the symbol of the code.
#[pyfunction]
#[pyo3(signature = (
    backends: "list[str]",
    generate: "typing.Callable[[str, str, Module], str]",
) -> "Pass")]
pub(crate) fn _run_codegen(backends: Vec<String>, generate: &Bound<'_, PyAny>) -> PyResult<Pass> {
    let (held, callee) = Held::of(generate)?;
    let backend = |name: String| {
        let (callee, own) = (callee.clone(), name.clone());
        Backend::new(name, move |function| generated(&callee, &own, function.name, function.module))
    };
    let pass = run_codegen(backends.into_iter().map(backend).collect());
    Ok(Pass::holding(Arc::new(pass), held))
}

/// Calls the function of Python that generates code.
fn generated(callee: &Callee, backend: &str, name: &str, module: &anfora::ir::Module) -> Result<String, PassError> {
    Python::attach(|py| {
        let gone = || AnforaError::new_err("nothing holds the pass `RunCodegen` any more");
        let generate = callee.get(py).ok_or_else(gone)?;
        generate.call1((backend, name, Module::of(module.clone())))?.extract::<String>()
    })
    .map_err(from_callback)
}
