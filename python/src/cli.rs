//! The command line, which the wheel carries.

use anfora_cli::CommandLine;
use pyo3::prelude::*;

/// Runs the command line with arguments, the name of the program first, and returns its exit
/// status.
#[pyfunction]
#[pyo3(signature = (arguments: "list[str]") -> "int")]
pub(crate) fn _main(py: Python<'_>, arguments: Vec<String>) -> PyResult<u8> {
    let python = py.import("sys")?.getattr("executable")?.extract::<Option<String>>()?;
    let again = vec!["-m".into(), "anfora".into()];
    let program = match python.filter(|path| !path.is_empty()) {
        Some(python) => CommandLine::default().started_by(python, again),
        None => CommandLine::default(),
    };
    Ok(py.detach(|| anfora_cli::main_with(program, arguments)))
}
