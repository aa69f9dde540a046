//! The call that makes a program smaller.

use anfora::slim::{SlimOptions, slim};
use pyo3::prelude::*;

use crate::errors::{self, ConfigError, guarded};
use crate::module::Module;

/// Makes a module smaller in place, and returns the number of bindings before and after.
#[pyfunction]
#[pyo3(signature = (
    r#mod: "Module",
    input_shapes: "list[tuple[str, list[int | None]]]",
    disable: "list[str]",
    check: "int",
    threads: "int",
    entry: "str",
) -> "tuple[int, int]")]
pub(crate) fn _slim(
    py: Python<'_>,
    r#mod: &Bound<'_, Module>,
    input_shapes: Vec<(String, Vec<Option<usize>>)>,
    disable: Vec<String>,
    check: u64,
    threads: usize,
    entry: String,
) -> PyResult<(usize, usize)> {
    let registry = crate::registry::registry();
    for name in &disable {
        if let Err(error) = registry.make(name) {
            return Err(ConfigError::new_err(error.to_string()));
        }
    }
    let options = SlimOptions { entry, input_shapes, disable, check, threads, ..SlimOptions::default() };
    let mut program = (*r#mod.get().snapshot()?).clone();
    let (program, done) = py.detach(|| {
        guarded(|| {
            let done = slim(&mut program, &options);
            (program, done)
        })
    })?;
    let slimmed = done.map_err(|failure| errors::from_failure(py, &failure, Some(&program)))?;
    r#mod.get().replace(py, |_| (program.into(), ()))?;
    Ok((slimmed.before.bindings, slimmed.after.bindings))
}
