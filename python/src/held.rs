//! Objects of Python that code in Rust calls, as the collector of garbage sees them.
//!
//! The collector cannot look into a closure of Rust. A reference in one would keep every cycle that
//! it is part of alive. So code in Rust holds a [`Callee`], which is weak. The object of Python
//! that the code belongs to (a pass or a context) holds the [`Held`], which the collector follows.
//! An owner refers only to objects that were made before it. So each cycle through an owner
//! contains another object, which the collector can clear.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

type Slot = Mutex<Option<Py<PyAny>>>;

/// The only strong reference of this package to an object that code in Rust calls.
#[pyclass(frozen, module = "anfora._anfora")]
pub(crate) struct Held {
    slot: Arc<Slot>,
}

/// A weak reference to an object: that of a [`Held`].
#[derive(Clone)]
pub(crate) struct Callee(Weak<Slot>);

impl Held {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<(Py<Held>, Callee)> {
        let slot = Arc::new(Mutex::new(Some(object.clone().unbind())));
        let callee = Callee(Arc::downgrade(&slot));
        Ok((Py::new(object.py(), Held { slot })?, callee))
    }

    /// Returns true if the object was let go with [`Callee::let_go`].
    pub(crate) fn is_empty(&self) -> bool {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

#[pymethods]
impl Held {
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self.slot.try_lock() {
            Ok(object) => object.iter().try_for_each(|object| visit.call(object)),
            Err(_) => Ok(()),
        }
    }
}

impl Callee {
    /// Returns the object, if its owner still exists.
    pub(crate) fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let slot = self.0.upgrade()?;
        let object = slot.lock().unwrap_or_else(PoisonError::into_inner);
        object.as_ref().map(|object| object.bind(py).clone())
    }

    /// Returns true if the owner of the object still exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }

    /// Lets the object go before its owner does.
    pub(crate) fn let_go(&self) {
        let Some(slot) = self.0.upgrade() else { return };
        let object = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The lock is free when the object goes, which may run code of Python.
        drop(object);
    }
}
