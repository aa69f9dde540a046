//! The differences of two modules.

use anfora::ir::{AlphaOptions, MetaPolicy, diff_with};
use pyo3::prelude::*;

use crate::errors::guarded;
use crate::module::Module;

/// Compares two modules. Returns the number of differences, their text, and the same as JSON.
#[pyfunction]
#[pyo3(signature = (left: "Module", right: "Module", metadata: "bool") -> "tuple[int, str, str]")]
pub(crate) fn _diff(
    py: Python<'_>,
    left: &Bound<'_, Module>,
    right: &Bound<'_, Module>,
    metadata: bool,
) -> PyResult<(usize, String, String)> {
    let (left, right) = (left.get().snapshot()?, right.get().snapshot()?);
    let meta = if metadata { MetaPolicy::Compare } else { MetaPolicy::Ignore };
    py.detach(|| {
        guarded(|| {
            let differences = diff_with(&left, &right, AlphaOptions { meta });
            (differences.len(), differences.to_string(), differences.to_json())
        })
    })
}
