//! The command line, which the wheel carries.

use pyo3::prelude::*;

/// Runs the command line with arguments, the name of the program first, and returns its exit
/// status.
#[pyfunction]
#[pyo3(signature = (arguments: "list[str]") -> "int")]
pub(crate) fn _main(py: Python<'_>, arguments: Vec<String>) -> u8 {
    py.detach(|| anfora_cli::main_with(arguments))
}
