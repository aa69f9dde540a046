//! Contexts as Python makes and uses them, and the one of a thread outside of every `with`.

use std::cell::RefCell;
use std::ffi::CString;
use std::sync::{Arc, Mutex};

use anfora::ir::{RewriteOptions, WhyNot};
use anfora::manager::{self, ContextError};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::authored;
use crate::context::current::{enter, innermost, leave};
use crate::context::{PassContext, lock};
use crate::errors::{self, ConfigError};
use crate::instrument::instrument_of;
use crate::near_miss::NearMiss;
use crate::pass::names;
use crate::settings::{config_value, level_of, texts};
use crate::stream::Stream;

thread_local! {
    /// The context of this thread outside of every `with`.
    static OUTSIDE: RefCell<Option<Py<PassContext>>> = const { RefCell::new(None) };
}

/// Returns the current context of the thread.
fn current(py: Python<'_>) -> PyResult<Py<PassContext>> {
    let found = innermost(py).or_else(|| OUTSIDE.with(|outside| outside.borrow().as_ref().map(|c| c.clone_ref(py))));
    if let Some(context) = found {
        return Ok(context);
    }
    let context = Py::new(py, PassContext::new(py, 2, None, None, None, None, 1, None, None)?)?;
    OUTSIDE.with(|outside| *outside.borrow_mut() = Some(context.clone_ref(py)));
    Ok(context)
}

/// Returns the current context of the thread for a pass. Outside of every `with`, the context is
/// replaced by one with its settings, if the pass requires a pass that is newer than the context.
pub(crate) fn current_for(py: Python<'_>, pass: &Arc<dyn manager::Pass>) -> PyResult<Py<PassContext>> {
    let context = current(py)?;
    let is_outside = innermost(py).is_none();
    let old = context.get();
    if !is_outside || !authored::lacks(old.inner.registry(), pass) {
        return Ok(context);
    }
    let inner = old.inner.derive().registry(authored::registry()).build().map_err(|e| config_error(&e))?;
    let held = lock(&old.held).iter().map(|held| held.clone_ref(py)).collect();
    let instruments = Mutex::new(old.given_instruments(py));
    let (asked, read) = (old.asked.clone(), Mutex::new(lock(&old.read).clone()));
    let context = Py::new(py, PassContext { inner, instruments, held: Mutex::new(held), asked, read })?;
    let replaced = OUTSIDE.with(|outside| outside.borrow_mut().replace(context.clone_ref(py)));
    drop(replaced);
    Ok(context)
}

/// Returns the exception for settings that make no context.
fn config_error(error: &ContextError) -> PyErr {
    ConfigError::new_err(error.to_string())
}

#[pymethods]
impl PassContext {
    #[new]
    #[pyo3(signature = (
        opt_level: "int" = 2,
        required_pass: "collections.abc.Iterable[str] | None" = None,
        disabled_pass: "collections.abc.Iterable[str] | None" = None,
        instruments: "collections.abc.Iterable[typing.Any] | None" = None,
        config: "collections.abc.Mapping[str, typing.Any] | None" = None,
        *,
        threads: "int" = 1,
        verify: "bool | None" = None,
        why_not: "collections.abc.Iterable[str] | None" = None,
    ) -> "PassContext")]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        opt_level: i64,
        required_pass: Option<&Bound<'_, PyAny>>,
        disabled_pass: Option<&Bound<'_, PyAny>>,
        instruments: Option<&Bound<'_, PyAny>>,
        config: Option<&Bound<'_, PyAny>>,
        threads: i64,
        verify: Option<bool>,
        why_not: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PassContext> {
        let level = level_of(opt_level)?;
        let threads = usize::try_from(threads).map_err(|_| {
            PyValueError::new_err(format!("threads is 0 (as many as there are) or more, not {threads}"))
        })?;
        let mut builder = manager::PassContext::builder()
            .registry(authored::registry())
            .opt_level(level)
            .threads(threads)
            .print_to(Stream("stdout"));
        builder = crate::registry::authored().into_iter().fold(builder, manager::PassContextBuilder::knowing);
        builder = names(required_pass)?.into_iter().fold(builder, manager::PassContextBuilder::require);
        builder = names(disabled_pass)?.into_iter().fold(builder, manager::PassContextBuilder::disable);
        if let Some(config) = config.filter(|c| !c.is_none()) {
            if !config.hasattr("items")? {
                return Err(PyTypeError::new_err("config is a mapping of settings to their values"));
            }
            for pair in config.call_method0("items")?.try_iter()? {
                let (key, value): (String, Bound<'_, PyAny>) = pair?.extract()?;
                builder = builder.config_text(format!("{key}={}", config_value(&value)?.text()));
            }
        }
        if let Some(verify) = verify {
            let when = if verify { manager::Verification::AfterEachPass } else { manager::Verification::Off };
            builder = builder.verification(when);
        }
        let mut asked: Vec<WhyNot> = Vec::new();
        if let Some(given) = why_not.filter(|given| !given.is_none()) {
            if given.is_instance_of::<PyString>() {
                return Err(PyTypeError::new_err(format!("why_not is a list, such as [{}]", given.repr()?)));
            }
            // Any text is a selection.
            asked.extend(texts(given)?.iter().filter_map(|text| text.parse::<WhyNot>().ok()));
            let explained = asked.clone();
            builder = builder.rewrites(RewriteOptions { explained, ..RewriteOptions::default() });
        }
        let (given, mut all_held) = (PyList::empty(py), Vec::new());
        if let Some(instruments) = instruments.filter(|i| !i.is_none()) {
            for instrument in instruments.try_iter()? {
                let instrument = instrument?;
                let (made, held) = instrument_of(&instrument)?;
                builder = builder.instrument(made);
                all_held.extend(held);
                given.append(instrument)?;
            }
        }
        let inner = builder.build().map_err(|e| config_error(&e))?;
        let (instruments, held) = (Mutex::new(given.unbind()), Mutex::new(all_held));
        Ok(PassContext { inner, instruments, held, asked, read: Mutex::default() })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is held now is held by a running call, so the context is in use.
        if let Ok(list) = self.instruments.try_lock() {
            visit.call(&*list)?;
        }
        if let Ok(held) = self.held.try_lock() {
            held.iter().try_for_each(|held| visit.call(held))?;
        }
        Ok(())
    }

    /// Returns the current context of the thread: that of the innermost `with`, or of the pass that
    /// runs, or one with the defaults.
    #[staticmethod]
    #[pyo3(signature = () -> "PassContext")]
    fn current(py: Python<'_>) -> PyResult<Py<PassContext>> {
        current(py)
    }

    /// Returns the settings: by key, the kind, the default and the meaning.
    #[staticmethod]
    #[pyo3(signature = () -> "dict[str, dict[str, str]]")]
    fn list_configs(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let all = PyDict::new(py);
        for def in crate::registry::registry().configs() {
            let entry = PyDict::new(py);
            entry.set_item("type", def.kind.to_string())?;
            entry.set_item("default", def.default.to_string())?;
            entry.set_item("help", def.doc)?;
            all.set_item(def.key, entry)?;
        }
        Ok(all)
    }

    /// The level: passes of a higher level do not run.
    #[getter]
    fn opt_level(&self) -> u8 {
        self.inner.opt_level()
    }

    /// The names of the passes that run whatever the level.
    #[getter]
    fn required_pass(&self) -> Vec<String> {
        self.inner.required().to_vec()
    }

    /// The names of the passes that do not run.
    #[getter]
    fn disabled_pass(&self) -> Vec<String> {
        self.inner.disabled().to_vec()
    }

    /// The instruments, as they were given.
    #[getter]
    fn instruments(&self, py: Python<'_>) -> Py<PyList> {
        if self.inner.instruments().is_empty() {
            // They failed, and the context has lost them.
            return PyList::empty(py).unbind();
        }
        self.given_instruments(py)
    }

    /// The settings that differ from their defaults, as text.
    #[getter]
    fn config<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let config = PyDict::new(py);
        for (def, value) in self.inner.changed_config() {
            config.set_item(def.key, value.to_string())?;
        }
        Ok(config)
    }

    /// The number of threads for function passes.
    #[getter]
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    /// The counts that passes have left: by pass and counter.
    #[getter]
    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for row in self.inner.statistics().rows() {
            let of_pass = match all.get_item(&row.pass)? {
                Some(counters) => counters.cast_into::<PyDict>()?,
                None => {
                    let counters = PyDict::new(py);
                    all.set_item(&row.pass, &counters)?;
                    counters
                }
            };
            of_pass.set_item(row.counter, row.value)?;
        }
        Ok(all)
    }

    /// Takes the messages that passes have left, oldest first. Each has a `pass_name`.
    #[pyo3(signature = () -> "list[Diagnostic]")]
    fn take_remarks<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let remarks = self.inner.take_remarks();
        let diagnostics: Vec<_> = remarks.iter().map(|r| r.diagnostic.clone()).collect();
        let list = errors::diagnostics(py, &diagnostics, None)?;
        for (diagnostic, remark) in list.iter().zip(&remarks) {
            diagnostic.setattr("pass_name", (!remark.pass.is_empty()).then_some(&remark.pass))?;
        }
        Ok(list)
    }

    /// Takes the rewrites that nearly applied, oldest first, as far as `why_not` asked for them: by
    /// the name of a rule or pass, with `@` and a binding or without. Warns about a name that no
    /// pass has, nor a rule of a pass that has run.
    #[pyo3(signature = () -> "list[NearMiss]")]
    fn take_near_misses(&self, py: Python<'_>) -> PyResult<Vec<NearMiss>> {
        let rewrites = self.inner.rewrites();
        let names = rewrites.explained_names();
        let registry = self.inner.registry();
        let known = || registry.passes().iter().map(|pass| pass.name()).chain(names.iter().map(String::as_str));
        let asked = self.asked.iter().filter_map(|asked| asked.what.as_deref());
        for what in asked.filter(|what| !names.is_empty() && known().all(|name| name != *what)) {
            let message = manager::UnknownName::new("pass or rule", what, known()).to_string();
            let message = CString::new(message.replace('\0', " "))?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &message, 1)?;
        }
        let read = rewrites.read_near_misses(&mut lock(&self.read), &self.asked);
        Ok(read.found.into_iter().map(NearMiss::of).collect())
    }

    /// Replaces the instruments: those that there are, are exited, the new ones are entered.
    #[pyo3(signature = (instruments: "collections.abc.Iterable[typing.Any] | None") -> "None")]
    fn override_instruments(&self, py: Python<'_>, instruments: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (list, mut new, mut all_held) = (PyList::empty(py), Vec::new(), Vec::new());
        if let Some(instruments) = instruments.filter(|i| !i.is_none()) {
            for instrument in instruments.try_iter()? {
                let instrument = instrument?;
                let (made, held) = instrument_of(&instrument)?;
                new.push(made);
                all_held.extend(held);
                list.append(instrument)?;
            }
        }
        self.keep_instruments(list.unbind());
        let unused = lock(&self.held).extract_if(.., |held| held.get().is_empty()).collect::<Vec<_>>();
        drop(unused);
        lock(&self.held).extend(all_held);
        let done = py.detach(|| self.inner.override_instruments(new));
        done.map_err(|failure| errors::from_failure(py, &failure, None))
    }

    #[pyo3(signature = () -> "PassContext")]
    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        let scope = slf.get().inner.enter().map_err(|f| errors::from_failure(slf.py(), &f, None))?;
        enter(slf.clone().unbind(), scope);
        Ok(slf.clone())
    }

    #[pyo3(signature = (*args: "typing.Any") -> "None")]
    fn __exit__(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let wrong = || PyRuntimeError::new_err("the context is not the current one of this thread");
        let left = leave(slf).ok_or_else(wrong)?;
        let Some(scope) = left.scope else { return Ok(()) };
        scope.exit().map_err(|failure| {
            let error = errors::from_failure(slf.py(), &failure, None);
            // The exception of the body is the context of the exception of a hook, as in any
            // `finally`.
            if let Ok(raised) = args.get_item(1) {
                let _ = error.value(slf.py()).setattr("__context__", raised);
            }
            error
        })
    }

    fn __repr__(&self) -> String {
        let list = |names: &[String]| names.iter().map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
        format!(
            "PassContext(opt_level={}, required_pass=[{}], disabled_pass=[{}])",
            self.inner.opt_level(),
            list(self.inner.required()),
            list(self.inner.disabled())
        )
    }
}
