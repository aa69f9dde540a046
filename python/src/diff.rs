//! The differences of two modules.

use anfora::ir::{self, AlphaOptions, MetaPolicy, diff_with};
use anfora::report::DiffPage;
use pyo3::prelude::*;

use crate::errors::guarded;
use crate::module::Module;

/// The differences of two modules, which the class of the package shows.
#[pyclass(frozen, module = "anfora._anfora")]
pub(crate) struct FoundDifferences {
    found: ir::Differences,
}

#[pymethods]
impl FoundDifferences {
    /// Returns the number of differences.
    #[pyo3(signature = () -> "int")]
    fn count(&self) -> usize {
        self.found.len()
    }

    /// Returns a line for each difference.
    #[pyo3(signature = () -> "str")]
    fn text(&self) -> String {
        self.found.to_string()
    }

    /// Returns the differences as JSON.
    #[pyo3(signature = () -> "str")]
    fn json(&self) -> String {
        self.found.to_json()
    }

    /// Returns the differences as a page of HTML, with names for the two modules.
    #[pyo3(signature = (left: "str", right: "str") -> "str")]
    fn page(&self, py: Python<'_>, left: &str, right: &str) -> String {
        let facts = vec![("anfora".to_string(), env!("CARGO_PKG_VERSION").to_string())];
        py.detach(|| DiffPage { facts, ..DiffPage::new(&self.found, left, right) }.to_html())
    }
}

/// Compares two modules.
#[pyfunction]
#[pyo3(signature = (left: "Module", right: "Module", metadata: "bool") -> "FoundDifferences")]
pub(crate) fn _diff(
    py: Python<'_>,
    left: &Bound<'_, Module>,
    right: &Bound<'_, Module>,
    metadata: bool,
) -> PyResult<FoundDifferences> {
    let (left, right) = (left.get().snapshot()?, right.get().snapshot()?);
    let meta = if metadata { MetaPolicy::Compare } else { MetaPolicy::Ignore };
    let found = py.detach(|| guarded(|| diff_with(&left, &right, AlphaOptions { meta })))?;
    Ok(FoundDifferences { found })
}
