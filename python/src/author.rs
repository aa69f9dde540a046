//! Passes whose work is a function of Python.
//!
//! The manager gives a pass a `&mut Module`, and Python needs a handle. For a function pass or a
//! module pass, the module is moved into a handle while the Python function runs, and moved back
//! afterwards. Edits through the handle are part of the transaction of the pass. The handle is
//! stale when the pass ends. For a pass over dataflow regions, the editor of each region is lent
//! instead ([`frames`]).

use std::sync::Arc;
use std::time::Duration;

use anfora::ir::{self, Attr, FunctionKey, verify_module};
use anfora::manager::{self, Outcome, PassError, PassFailure, PassInfo, PassKind, SKIP_OPTIMIZATION};
use pyo3::prelude::*;

use crate::block::DataflowBlock;
use crate::context::{PassContext, current};
use crate::errors::{AnforaError, from_callback};
use crate::frames;
use crate::function::{Function, changed_since};
use crate::held::Callee;
use crate::module::Module;
use crate::place;

/// The kind of a pass written in Python: the part of a program that each call of its function gets.
#[derive(Copy, Clone, PartialEq)]
pub(crate) enum AuthorKind {
    Module,
    Function,
    DataflowBlock,
}

/// A pass written in Python.
#[derive(Clone)]
pub(crate) struct AuthorPass {
    info: PassInfo,
    kind: AuthorKind,
    run: Callee,
}

impl AuthorPass {
    pub(crate) fn new(info: PassInfo, kind: AuthorKind, run: Callee) -> AuthorPass {
        AuthorPass { info, kind, run }
    }

    /// Returns true if the object of the pass still exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.run.is_alive()
    }

    /// Returns the function.
    ///
    /// # Errors
    /// If the object of the pass does not exist any more.
    fn run<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let gone = || AnforaError::new_err(format!("nothing holds the pass `{}` any more", self.info.name));
        self.run.get(py).ok_or_else(gone)
    }

    /// Calls the function with the whole module. If it returns another module, that one replaces
    /// the module.
    fn on_module(&self, module: &mut ir::Module, cx: &manager::PassContext) -> Result<(), PassError> {
        let returned = with_handle(module, cx, |handle, context| {
            let py = handle.py();
            let returned = current::during(py, context, Some(cx.clone()), || self.run(py)?.call1((handle, context)))?;
            if returned.is_none() {
                return Err(missing("mod"));
            }
            let other: &Bound<'_, Module> = returned.cast().map_err(|_| wrong(&returned, "a module", "mod"))?;
            if other.is(handle) { Ok(None) } else { other.get().snapshot().map(Some) }
        })?;
        let Some(new) = returned else { return Ok(()) };
        verify_module(&new)
            .map_err(|found| PassError::from(found).with_message("the pass returned an ill-formed module"))?;
        Ok(module.replace_with(&new)?)
    }

    /// Calls the Python function for each function with a body, except those that are marked
    /// `SkipOptimization`.
    fn on_functions(&self, module: &mut ir::Module, cx: &manager::PassContext) -> Result<(), PassError> {
        let keys = worked_on(module);
        with_handle(module, cx, |handle, context| {
            for key in keys {
                if handle.get().read(|m| m.get(key).is_none())? {
                    continue;
                }
                self.on_function(handle, key, context, cx).inspect_err(|error| {
                    let name = handle.get().read(|m| m.get(key).map(|_| m.name(key).to_string()));
                    place::note(error, name.ok().flatten().as_deref(), None);
                })?;
            }
            Ok(())
        })
    }

    /// Calls the Python function for one function of a module.
    fn on_function(
        &self,
        handle: &Bound<'_, Module>,
        key: FunctionKey,
        context: &Py<PassContext>,
        cx: &manager::PassContext,
    ) -> PyResult<()> {
        let py = handle.py();
        let function = Bound::new(py, Function::new(handle.clone().unbind(), key))?;
        let call = || self.run(py)?.call1((&function, handle, context));
        let returned = current::during(py, context, Some(cx.clone()), call)?;
        if returned.is_none() {
            return Err(missing("func"));
        }
        let other: &Bound<'_, Function> = returned.cast().map_err(|_| wrong(&returned, "a function", "func"))?;
        if other.eq(&function)? {
            Ok(())
        } else {
            Err(wrong(&returned, "the function that it was given, edited,", "func"))
        }
    }

    /// Calls the Python function for each dataflow region.
    fn on_blocks(&self, module: &mut ir::Module, cx: &manager::PassContext) -> Result<Outcome, PassFailure> {
        let before = Arc::new(module.clone());
        let this = self.clone();
        let pass = manager::DataflowBlockPass::new(self.info.name.clone(), self.info.opt_level, move |block, _, cx| {
            let outputs = block.outputs().to_vec();
            let number = frames::new_number();
            let mut lent = frames::LentEditor { editor: block.editor() };
            Python::attach(|py| {
                let context = current::of_running(py, cx)?;
                let handle = Bound::new(py, DataflowBlock::new(number, outputs))?;
                let module = Bound::new(py, Module::shown(before.clone()))?;
                let returned = frames::lend_maker(number, &mut lent, || {
                    let call = || this.run(py)?.call1((&handle, &module, &context));
                    current::during(py, &context, Some(cx.clone()), call)
                })?;
                if returned.is_none() {
                    return Err(missing("block"));
                }
                if returned.is(&handle) {
                    Ok(())
                } else {
                    Err(wrong(&returned, "the block that it was given", "block"))
                }
            })
            .map_err(from_callback)
        });
        manager::Pass::run(&pass, module, cx)
    }
}

impl manager::Pass for AuthorPass {
    fn info(&self) -> &PassInfo {
        &self.info
    }

    fn run(&self, module: &mut ir::Module, cx: &manager::PassContext) -> Result<Outcome, PassFailure> {
        let before: Vec<_> = module.functions().map(|(key, f)| (key, f.body.stamp())).collect();
        match self.kind {
            AuthorKind::Module => self.on_module(module, cx)?,
            AuthorKind::Function => self.on_functions(module, cx)?,
            AuthorKind::DataflowBlock => return self.on_blocks(module, cx),
        }
        // The results of callbacks are not checked one by one.
        if let Err(found) = ir::verify_functions(module, &changed_since(module, &before)) {
            return Err(PassError::from(found).with_message("the pass made an ill-formed function").into());
        }
        Ok(Outcome::Changed)
    }

    fn kind(&self) -> PassKind {
        match self.kind {
            AuthorKind::Module => PassKind::Module,
            AuthorKind::Function => PassKind::Function,
            AuthorKind::DataflowBlock => PassKind::DataflowBlock,
        }
    }
}

/// Returns the functions that a function pass works on.
fn worked_on(module: &ir::Module) -> Vec<FunctionKey> {
    let cx = &module.cx;
    let is_skipped = |f: &ir::Function| {
        cx.find_attr(f.attrs, SKIP_OPTIMIZATION)
            .is_some_and(|id| !matches!(cx.attrs.get(id), Attr::Int(0) | Attr::Bool(false)))
    };
    module.functions().filter(|(_, f)| f.is_definition() && !is_skipped(f)).map(|(key, _)| key).collect()
}

/// Moves the module into a handle, runs `work` with the handle, and moves the module back.
fn with_handle<T>(
    module: &mut ir::Module,
    cx: &manager::PassContext,
    work: impl FnOnce(&Bound<'_, Module>, &Py<PassContext>) -> PyResult<T>,
) -> Result<T, PassError> {
    let empty = ir::Module::new(module.cx.ops.registry().clone());
    let owned = std::mem::replace(module, empty);
    Python::attach(|py| {
        let handle = Bound::new(py, Module::of(owned)).map_err(from_callback)?;
        let result = current::of_running(py, cx).and_then(|context| work(&handle, &context));
        let program = loop {
            match handle.get().end() {
                Some(program) => break program,
                // Another thread still works on the module.
                None => py.detach(|| std::thread::sleep(Duration::from_micros(100))),
            }
        };
        *module = Arc::try_unwrap(program).unwrap_or_else(|shared| (*shared).clone());
        result.map_err(from_callback)
    })
}

fn missing(what: &str) -> PyErr {
    pyo3::exceptions::PyTypeError::new_err(format!("the pass returned None; did you mean `return {what}`?"))
}

fn wrong(returned: &Bound<'_, PyAny>, wanted: &str, what: &str) -> PyErr {
    let name = returned.get_type().qualname().map_or_else(|_| "something else".to_string(), |n| n.to_string());
    pyo3::exceptions::PyTypeError::new_err(format!(
        "the pass has to return {wanted}, and returned {name}; did you mean `return {what}`?"
    ))
}
