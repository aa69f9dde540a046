//! The owners of handles. A handle finds its tables and its body through its owner.

use anfora::ir::{Body, Context, FunctionKey, Stamp};
use pyo3::prelude::*;

use crate::builder::FunctionBuilder;
use crate::errors::StaleError;
use crate::frames;
use crate::module::Module;

/// The holder of the tables and the body that a handle refers to.
pub(crate) enum Owner {
    /// A function of a module.
    Module(Py<Module>),
    /// A program that a running mutator, rule or pass lends to a callback, by its number
    /// ([`frames`]).
    Lent(u64),
    /// A function that is being built.
    Builder(Py<FunctionBuilder>),
}

impl Owner {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Owner {
        match self {
            Owner::Module(module) => Owner::Module(module.clone_ref(py)),
            Owner::Lent(number) => Owner::Lent(*number),
            Owner::Builder(builder) => Owner::Builder(builder.clone_ref(py)),
        }
    }

    pub(crate) fn is(&self, other: &Owner) -> bool {
        match (self, other) {
            (Owner::Module(a), Owner::Module(b)) => a.is(b),
            (Owner::Lent(a), Owner::Lent(b)) => a == b,
            (Owner::Builder(a), Owner::Builder(b)) => a.is(b),
            _ => false,
        }
    }

    /// Reads the tables.
    ///
    /// # Errors
    /// If the module is being edited, or the callback that the tables were lent to has ended.
    pub(crate) fn context<T>(&self, read: impl FnOnce(&Context) -> T) -> PyResult<T> {
        match self {
            Owner::Module(module) => module.get().read(|module| read(&module.cx)),
            Owner::Lent(number) => frames::read_program(*number, |cx, _| read(cx)),
            Owner::Builder(builder) => builder.get().read(|cx, _| read(cx)),
        }
    }
}

/// The place of an expression: its owner and, in a module, the function and the stamp of its body.
pub(crate) struct Home {
    pub(crate) owner: Owner,
    pub(crate) at: Option<(FunctionKey, Stamp)>,
    /// For a lent dataflow region, the stamp of its body. An edit of the region changes the stamp,
    /// so older handles become stale.
    pub(crate) region: Option<Stamp>,
}

impl Home {
    pub(crate) fn of_function(module: Py<Module>, key: FunctionKey, stamp: Stamp) -> Home {
        Home { owner: Owner::Module(module), at: Some((key, stamp)), region: None }
    }

    pub(crate) fn lent(number: u64) -> Home {
        Home { owner: Owner::Lent(number), at: None, region: None }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Home {
        Home { owner: self.owner.clone_ref(py), at: self.at, region: self.region }
    }

    pub(crate) fn is(&self, other: &Home) -> bool {
        self.at == other.at && self.owner.is(&other.owner)
    }

    /// Returns the name of the function, if the place is in a module.
    pub(crate) fn function_name(&self) -> Option<String> {
        let (Owner::Module(module), Some((key, _))) = (&self.owner, self.at) else { return None };
        module.get().read(|m| m.get(key).map(|_| m.name(key).to_string())).ok().flatten()
    }

    /// Reads the tables and the body.
    ///
    /// # Errors
    /// `StaleError`, if the function was changed or removed since the handle was made, or if the
    /// callback that it was lent to has ended.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Context, &Body) -> PyResult<T>) -> PyResult<T> {
        match &self.owner {
            Owner::Module(module) => module.get().read(|module| {
                let Some((key, stamp)) = self.at else { return Err(changed()) };
                match module.get(key) {
                    Some(function) if function.body.stamp() == stamp => read(&module.cx, &function.body),
                    _ => Err(changed()),
                }
            })?,
            Owner::Lent(number) => frames::read_program(*number, |cx, body| match self.region {
                Some(stamp) if body.stamp() != stamp => Err(changed()),
                _ => read(cx, body),
            })?,
            Owner::Builder(builder) => builder.get().read(read)?,
        }
    }
}

pub(crate) fn changed() -> PyErr {
    StaleError::new_err("the function was changed since the handle was made; get the binding from the function again")
}
