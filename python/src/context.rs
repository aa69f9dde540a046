//! Contexts, and the current one of each thread.

use std::cell::RefCell;
use std::ffi::CString;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anfora::ir::{LogPosition, RewriteOptions, WhyNot};
use anfora::manager::{self, ContextError, ScopeGuard};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::authored;
use crate::errors::{self, ConfigError};
use crate::held::Held;
use crate::instrument::instrument_of;
use crate::near_miss::NearMiss;
use crate::pass::{name_of, quoted};

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

/// A context that is current.
struct Current {
    /// The guard of the scope, if `with` made it current. It goes before the context, which holds
    /// the instruments that hear of the end of the scope.
    scope: Option<ScopeGuard>,
    context: Py<PassContext>,
    /// The handle of the pass that runs under it, if it is current for a callback of the pass.
    running: Option<manager::PassContext>,
}

thread_local! {
    /// The current contexts of this thread, innermost last. Nothing is called while it is borrowed.
    static CURRENT: RefCell<Vec<Current>> = const { RefCell::new(Vec::new()) };
    /// The context of this thread outside of every `with`.
    static OUTSIDE: RefCell<Option<Py<PassContext>>> = const { RefCell::new(None) };
}

/// A stream of Python as the output of passes that print, where tests and notebooks find it.
pub(crate) struct Stream(pub(crate) &'static str);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        Python::attach(|py| {
            let written = py.import("sys")?.getattr(self.0)?.call_method1("write", (text,));
            match written {
                Err(error) if errors::ends_program(py, &error) => errors::keep_interrupt(error),
                other => _ = other?,
            }
            PyResult::Ok(())
        })
        .map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| py.import("sys")?.getattr(self.0)?.call_method0("flush").map(drop))
            .map_err(io::Error::other)
    }
}

/// Runs passes, or the callback of a pass (`running` is its handle), with a context as the current
/// one.
pub(crate) fn during<T>(
    py: Python<'_>,
    context: &Py<PassContext>,
    running: Option<manager::PassContext>,
    work: impl FnOnce() -> T,
) -> T {
    let entered = Current { context: context.clone_ref(py), scope: None, running };
    CURRENT.with(|current| current.borrow_mut().push(entered));
    let result = work();
    let left = CURRENT.with(|current| current.borrow_mut().pop());
    drop(left);
    result
}

/// Returns the current context of the thread.
pub(crate) fn current(py: Python<'_>) -> PyResult<Py<PassContext>> {
    let found = CURRENT.with(|current| current.borrow().last().map(|c| c.context.clone_ref(py)));
    let found = found.or_else(|| OUTSIDE.with(|outside| outside.borrow().as_ref().map(|c| c.clone_ref(py))));
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
    let is_outside = CURRENT.with(|current| current.borrow().is_empty());
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

/// Returns the context for the toolkit. Inside of a pass that runs under it, passes that are run
/// are inside of that pass.
pub(crate) fn inner_of(py: Python<'_>, context: &Py<PassContext>) -> manager::PassContext {
    let running = CURRENT.with(|current| {
        let current = current.borrow();
        current.last().filter(|c| c.context.is(context)).and_then(|c| c.running.clone())
    });
    let _ = py;
    running.unwrap_or_else(|| context.get().inner.clone())
}

/// Returns true in a callback of a pass, which is verified when the pass ends.
pub(crate) fn in_pass() -> bool {
    CURRENT.with(|current| current.borrow().last().is_some_and(|c| c.running.is_some()))
}

/// Returns the context of Python under which a pass runs: the current one, or a new one on a thread
/// that has none.
pub(crate) fn of_running(py: Python<'_>, inner: &manager::PassContext) -> PyResult<Py<PassContext>> {
    let found = CURRENT.with(|current| current.borrow().last().map(|c| c.context.clone_ref(py)));
    found.map_or_else(|| Py::new(py, PassContext::of(py, inner.clone())), Ok)
}

/// Returns a level.
///
/// # Errors
/// `ValueError`, if it is none.
pub(crate) fn level_of(level: i64) -> PyResult<u8> {
    let wrong = || PyValueError::new_err(format!("opt_level is between 0 and 255, not {level}"));
    u8::try_from(level).map_err(|_| wrong())
}

/// Returns the exception for settings that make no context.
fn config_error(error: &ContextError) -> PyErr {
    ConfigError::new_err(error.to_string())
}

/// Returns a setting or an option as a value of Rust: numbers as they are, other things as text.
///
/// # Errors
/// `TypeError`, if it is no setting.
pub(crate) fn config_value(value: &Bound<'_, PyAny>) -> PyResult<Setting> {
    Ok(if let Ok(v) = value.cast::<PyBool>() {
        Setting::Text(v.is_true().to_string())
    } else if value.is_instance_of::<PyInt>() {
        Setting::Text(value.str()?.to_string())
    } else if let Ok(text) = value.cast::<PyString>() {
        Setting::Text(text.to_string())
    } else if value.is_none() {
        Setting::Text("none".to_string())
    } else if let Ok(list) = value.cast::<PyList>() {
        Setting::List(texts(list.as_any())?)
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        Setting::List(texts(tuple.as_any())?)
    } else {
        Setting::Text(value.str()?.to_string())
    })
}

/// Returns the items of a list as text.
fn texts(list: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    list.try_iter()?.map(|item| Ok(item?.str()?.to_string())).collect()
}

/// A setting as it was given.
pub(crate) enum Setting {
    Text(String),
    List(Vec<String>),
}

impl Setting {
    /// Returns the setting as it is written in a pipeline.
    pub(crate) fn text(&self) -> String {
        match self {
            Setting::Text(text) => text.clone(),
            Setting::List(items) => format!("[{}]", items.iter().map(|i| quoted(i)).collect::<Vec<_>>().join(",")),
        }
    }

    /// Returns the setting as an option of a pass is written.
    pub(crate) fn quoted(&self) -> String {
        match self {
            Setting::Text(text) => quoted(text),
            Setting::List(_) => self.text(),
        }
    }
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

/// Returns names of passes: of strings, or of passes.
///
/// # Errors
/// `TypeError`, if they are no such list.
pub(crate) fn names(list: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(list) = list.filter(|l| !l.is_none()) else { return Ok(Vec::new()) };
    if list.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err(format!("passes are named by a list, such as [{}]", list.repr()?)));
    }
    list.try_iter()?.map(|item| name_of(&item?)).collect()
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
        let entered = Current { context: slf.clone().unbind(), scope: Some(scope), running: None };
        CURRENT.with(|current| current.borrow_mut().push(entered));
        Ok(slf.clone())
    }

    #[pyo3(signature = (*args: "typing.Any") -> "None")]
    fn __exit__(slf: &Bound<'_, Self>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let left = CURRENT.with(|current| {
            let mut current = current.borrow_mut();
            match current.last() {
                Some(last) if last.context.is(slf) && last.scope.is_some() => current.pop(),
                _ => None,
            }
        });
        let wrong = || PyRuntimeError::new_err("the context is not the current one of this thread");
        let left = left.ok_or_else(wrong)?;
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
