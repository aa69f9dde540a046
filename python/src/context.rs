//! Contexts: what passes run under.

pub(crate) mod current;
pub(crate) mod methods;

use std::sync::{Mutex, MutexGuard, PoisonError};

use anfora::ir::{LogPosition, WhyNot};
use anfora::manager;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::held::Held;

/// The context that passes run under: a level, passes that are required or disabled, settings, and
/// instruments. `with PassContext(...)` makes it the current one of the thread.
#[pyclass(frozen, module = "anfora.transform")]
pub(crate) struct PassContext {
    pub(crate) inner: manager::PassContext,
    /// The instruments as they were given.
    instruments: Mutex<Py<PyList>>,
    /// The instruments written in Python that are still used.
    held: Mutex<Vec<Py<Held>>>,
    /// The near misses that `take_near_misses` returns.
    asked: Vec<WhyNot>,
    /// The position of `take_near_misses` in the log of the ledger.
    read: Mutex<LogPosition>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PassContext {
    pub(crate) fn of(py: Python<'_>, inner: manager::PassContext) -> PassContext {
        let instruments = Mutex::new(PyList::empty(py).unbind());
        // An instrument asks for all near misses.
        let asked = inner.rewrites().requests().iter().filter(|asked| !asked.is_for_all()).cloned().collect();
        PassContext { inner, instruments, held: Mutex::default(), asked, read: Mutex::default() }
    }

    fn given_instruments(&self, py: Python<'_>) -> Py<PyList> {
        lock(&self.instruments).clone_ref(py)
    }

    fn keep_instruments(&self, list: Py<PyList>) {
        let old = std::mem::replace(&mut *lock(&self.instruments), list);
        drop(old);
    }
}
