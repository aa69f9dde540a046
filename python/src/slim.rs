//! The call that makes a program smaller.

use anfora::slim::{SlimOptions, slim};
use pyo3::prelude::*;

use crate::errors::{self, ConfigError, guarded};
use crate::module::Module;

/// The options of the call, from a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    input_shapes: Vec<(String, Vec<Option<usize>>)>,
    exact: bool,
    contrib: bool,
    opset: Option<i64>,
    size_threshold: u64,
    config: Vec<String>,
    disable: Vec<String>,
    check: u64,
    threads: usize,
}

/// Makes a module smaller in place, and returns the number of bindings before and after. The
/// options are those of `anfora.onnx.slim`, all of them.
#[pyfunction]
#[pyo3(signature = (r#mod: "Module", options: "dict[str, typing.Any]") -> "tuple[int, int]")]
pub(crate) fn _slim(py: Python<'_>, r#mod: &Bound<'_, Module>, options: Options) -> PyResult<(usize, usize)> {
    let Options { input_shapes, exact, contrib, opset, size_threshold, config, disable, check, threads } = options;
    let registry = crate::registry::registry();
    for name in &disable {
        if let Err(error) = registry.make(name) {
            return Err(ConfigError::new_err(error.to_string()));
        }
    }
    let options = SlimOptions {
        passes: registry,
        input_shapes,
        exact,
        contrib,
        opset,
        size_threshold,
        config,
        disable,
        check,
        threads,
        ..SlimOptions::default()
    };
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
