//! The rewrites that nearly applied.

use anfora::ir;
use pyo3::prelude::*;

/// A rewrite that nearly applied, with the condition that did not hold:
/// `PassContext(why_not=[...])` asks for them, `take_near_misses` returns them.
#[pyclass(frozen, module = "anfora.transform")]
pub(crate) struct NearMiss {
    miss: ir::NearMiss,
}

impl NearMiss {
    pub(crate) fn of(miss: ir::NearMiss) -> NearMiss {
        NearMiss { miss }
    }
}

#[pymethods]
impl NearMiss {
    /// The name of the pass.
    #[getter]
    fn pass_name(&self) -> &str {
        &self.miss.pass
    }

    /// The name of the function, without `@`.
    #[getter]
    fn function(&self) -> Option<&str> {
        self.miss.function.as_deref()
    }

    /// The name of the binding, without `%`, `#57` or `#2:57` if it has none; `None` for
    /// a tail.
    #[getter]
    fn binding(&self) -> Option<&str> {
        self.miss.binding.as_deref()
    }

    /// The rule, or another kind of rewrite.
    #[getter]
    fn what(&self) -> &str {
        &self.miss.what
    }

    /// The condition that did not hold.
    #[getter]
    fn why(&self) -> &str {
        &self.miss.why
    }

    fn __str__(&self) -> String {
        self.miss.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<NearMiss: {}>", self.miss)
    }
}
