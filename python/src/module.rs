//! Modules: programs that Python owns, or that a running pass lends to a callback.

pub(crate) mod methods;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anfora::ir::{self, Source};
use pyo3::prelude::*;

use crate::errors::{AnforaError, StaleError, guarded};
use crate::frames;

/// The place of the program of a handle.
enum Place {
    /// The handle owns it, perhaps together with copies.
    Owned(Arc<ir::Module>),
    /// The program is being edited, or a pass runs on it.
    Taken,
    /// It is lent under this number while a callback runs: see [`frames`].
    Lent(u64),
    /// A copy that can only be read: an edit of it would be lost.
    Shown(Arc<ir::Module>),
    /// The pass that gave it to a callback has ended.
    Ended,
}

/// A program: functions in their order, with attributes.
///
/// A copy (`copy.copy(mod)`) shares the program until one of the two is edited. Modules that differ
/// only in the names of variables are equal and have equal hashes.
#[pyclass(frozen, module = "anfora", weakref)]
pub(crate) struct Module {
    place: Mutex<Place>,
    /// The starts of the lines of the source text, computed when an expression is first asked for
    /// its place.
    lines: Mutex<Option<Lines>>,
}

/// A source text, and the byte at which each of its lines begins.
type Lines = (Arc<Source>, Arc<[usize]>);

/// An edit in progress: the program was taken out of its handle, and is put back at the end.
struct Taken<'a> {
    module: &'a Module,
    program: Option<Arc<ir::Module>>,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        if let Some(program) = self.program.take() {
            *self.module.place() = Place::Owned(program);
        }
    }
}

impl Module {
    pub(crate) fn of(program: ir::Module) -> Module {
        Module::sharing(Arc::new(program))
    }

    pub(crate) fn sharing(program: Arc<ir::Module>) -> Module {
        Module { place: Mutex::new(Place::Owned(program)), lines: Mutex::default() }
    }

    /// Returns a handle for the module that is lent under a number.
    pub(crate) fn lent(number: u64) -> Module {
        Module { place: Mutex::new(Place::Lent(number)), lines: Mutex::default() }
    }

    /// Returns a handle for a copy that can be read and not edited.
    pub(crate) fn shown(program: Arc<ir::Module>) -> Module {
        Module { place: Mutex::new(Place::Shown(program)), lines: Mutex::default() }
    }

    /// Locks the place. The lock is held for a few instructions at a time, and never while Python
    /// code runs.
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the program. The program does not change during the read, even if `read` runs Python
    /// code that edits the module.
    ///
    /// # Errors
    /// If a pass runs on the program, or the handle has ended.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&ir::Module) -> T) -> PyResult<T> {
        let number = match &*self.place() {
            Place::Owned(program) | Place::Shown(program) => Ok(program.clone()),
            Place::Lent(number) => Err(*number),
            Place::Taken => return Err(taken()),
            Place::Ended => return Err(ended()),
        };
        match number {
            Ok(program) => Ok(read(&program)),
            Err(number) => frames::read_lent(number, read).ok_or_else(ended),
        }
    }

    /// Returns the program, shared with the handle. Returns a copy of a lent program.
    ///
    /// # Errors
    /// If a pass runs on the program, or the handle has ended.
    pub(crate) fn snapshot(&self) -> PyResult<Arc<ir::Module>> {
        if let Place::Owned(program) | Place::Shown(program) = &*self.place() {
            return Ok(program.clone());
        }
        self.read(|module| Arc::new(module.clone()))
    }

    /// Takes the program out of the handle, runs `work` on it without the interpreter lock, and
    /// puts the program that `work` returns into the handle. During the work, other uses of the
    /// handle are errors.
    ///
    /// # Errors
    /// If a pass runs on the program, the handle has ended, or the module is only lent for reading.
    /// The program is then as it was. If `work` panics, the program is lost, and the handle ends.
    pub(crate) fn replace<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Arc<ir::Module>) -> (Arc<ir::Module>, T) + Send,
    ) -> PyResult<T> {
        let mut taken = Taken { module: self, program: Some(self.take()?) };
        let program = taken.program.take();
        let done = py.detach(|| guarded(|| program.map(work)));
        match done {
            Ok(Some((program, result))) => {
                taken.program = Some(program);
                Ok(result)
            }
            Ok(None) => Err(ended()),
            Err(panic) => {
                // The panic has dropped the program, which was half edited.
                *self.place() = Place::Ended;
                Err(panic)
            }
        }
    }

    /// Edits the program in place. If the program is shared, edits a copy of it, which replaces the
    /// program. An edit that fails leaves the program as it was.
    ///
    /// # Errors
    /// If the program cannot be edited now, or if the edit returns an error.
    pub(crate) fn edit<T: Send>(
        &self,
        py: Python<'_>,
        edit: impl FnOnce(&mut ir::Module) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        self.replace(py, |mut shared| {
            let program = Arc::make_mut(&mut shared);
            program.begin_edit();
            let done = guarded(|| edit(program)).and_then(|done| done);
            match &done {
                Ok(_) => _ = program.commit(),
                Err(_) => program.rollback(),
            }
            (shared, done)
        })?
    }

    /// Adds to the program in place, without an edit: entries of its tables, or parts of a function
    /// that is being built. Callers must not change finished functions.
    ///
    /// # Errors
    /// If the program cannot be edited now.
    pub(crate) fn extend<T>(&self, extend: impl FnOnce(&mut ir::Module) -> T) -> PyResult<T> {
        let mut taken = Taken { module: self, program: Some(self.take()?) };
        match &mut taken.program {
            Some(program) => Ok(extend(Arc::make_mut(program))),
            None => Err(ended()),
        }
    }

    /// Takes the program out of the handle.
    fn take(&self) -> PyResult<Arc<ir::Module>> {
        let mut place = self.place();
        match std::mem::replace(&mut *place, Place::Taken) {
            Place::Owned(program) => Ok(program),
            other => {
                let error = match &other {
                    Place::Lent(_) | Place::Shown(_) => AnforaError::new_err(
                        "this module may be looked at, and not changed; edit a copy: copy.copy(mod)",
                    ),
                    Place::Ended => ended(),
                    Place::Owned(_) | Place::Taken => taken(),
                };
                *place = other;
                Err(error)
            }
        }
    }

    /// Returns the file, line and column of a byte of the text that the program was read from.
    /// Lines and columns are counted from 1. Returns `None` if the text was not kept.
    ///
    /// # Errors
    /// If the program cannot be read now.
    pub(crate) fn place_in_text(&self, byte: usize) -> PyResult<Option<(String, usize, usize)>> {
        let Some(source) = self.read(|module| module.source().cloned())? else { return Ok(None) };
        let lines = {
            let mut known = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            match &*known {
                Some((of, lines)) if Arc::ptr_eq(of, &source) => lines.clone(),
                _ => {
                    let starts = source.text().bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i + 1);
                    let lines: Arc<[usize]> = std::iter::once(0).chain(starts).collect();
                    *known = Some((source.clone(), lines.clone()));
                    lines
                }
            }
        };
        let line = lines.partition_point(|&start| start <= byte);
        let start = line.checked_sub(1).and_then(|i| lines.get(i)).copied().unwrap_or(0);
        let column = source.text().get(start..byte).map_or(0, |before| before.chars().count()) + 1;
        Ok(Some((source.name().to_string(), line, column)))
    }

    /// Ends the handle of a pass that has ended, and returns its program. Returns `None` while
    /// another thread works on the program; the handle has not ended then.
    pub(crate) fn end(&self) -> Option<Arc<ir::Module>> {
        let mut place = self.place();
        match std::mem::replace(&mut *place, Place::Ended) {
            Place::Owned(program) => Some(program),
            other => {
                *place = other;
                None
            }
        }
    }

    /// Ends a handle for a lent module.
    pub(crate) fn end_loan(&self) {
        *self.place() = Place::Ended;
    }
}

fn taken() -> PyErr {
    AnforaError::new_err(
        "the module is being edited: use the module that the pass was given, or wait for the other thread",
    )
}

/// Returns the exception for a handle that has ended.
fn ended() -> PyErr {
    StaleError::new_err("the module was only there while the pass or the instrument ran; keep a copy: copy.copy(mod)")
}
