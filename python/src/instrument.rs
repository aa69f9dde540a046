//! Instruments: those written in Python, and those of the toolkit.

use std::sync::Arc;

use anfora::ir;
use anfora::manager::{self, Instrument, Outcome, PassError, PassFailure, PassRun, PrintIr, Unchanged};
use anfora::report;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{self, from_callback, from_failure};
use crate::frames;
use crate::held::{Callee, Held};
use crate::module::Module;
use crate::pass::{PassInfo, PassOutcome};
use crate::stream::Stream;

/// The names of the hooks in Python.
const HOOKS: [&str; 7] =
    ["enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass", "on_error", "on_end"];

#[derive(Copy, Clone)]
enum Hook {
    Enter,
    Exit,
    ShouldRun,
    Before,
    After,
    Error,
    End,
}

/// An instrument written in Python: an object with some of the hooks.
struct Author {
    name: String,
    object: Callee,
    has: [bool; HOOKS.len()],
}

impl Author {
    /// Calls a hook with the module, which is lent while the call lasts, and the description of the
    /// pass.
    fn call<T: Default>(
        &self,
        hook: Hook,
        module: &ir::Module,
        run: &PassRun<'_>,
        more: impl FnOnce(Python<'_>) -> PyResult<Option<Py<PyAny>>>,
        read: impl FnOnce(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> PyResult<T> {
        if !self.has[hook as usize] {
            return Ok(T::default());
        }
        frames::lend(module, |number| {
            // The interpreter may have ended before the context did.
            let called = Python::try_attach(|py| {
                let Some(object) = self.object.get(py) else { return Ok(T::default()) };
                let handle = Bound::new(py, Module::lent(number))?;
                let info = PassInfo::of(run.info());
                let method = HOOKS[hook as usize];
                let returned = match more(py)? {
                    Some(argument) => object.call_method1(method, (&handle, info, argument)),
                    None => object.call_method1(method, (&handle, info)),
                };
                handle.get().end_loan();
                read(returned?)
            });
            called.unwrap_or_else(|| Ok(T::default()))
        })
    }

    fn call_plain(&self, hook: Hook) -> Result<(), PassError> {
        if !self.has[hook as usize] {
            return Ok(());
        }
        let called = Python::try_attach(|py| match self.object.get(py) {
            Some(object) => object.call_method0(HOOKS[hook as usize]).map(drop),
            None => Ok(()),
        });
        called.unwrap_or(Ok(())).map_err(from_callback)
    }
}

impl Instrument for Author {
    fn name(&self) -> &str {
        &self.name
    }

    fn enter(&self, _: &manager::PassContext) -> Result<(), PassError> {
        self.call_plain(Hook::Enter)
    }

    fn exit(&self, _: &manager::PassContext) -> Result<(), PassError> {
        self.call_plain(Hook::Exit)
    }

    fn should_run(&self, module: &ir::Module, run: &PassRun<'_>) -> Result<bool, PassError> {
        if !self.has[Hook::ShouldRun as usize] {
            return Ok(true);
        }
        let truth = |returned: Bound<'_, PyAny>| returned.is_truthy();
        self.call(Hook::ShouldRun, module, run, |_| Ok(None), truth).map_err(from_callback)
    }

    fn run_before(&self, module: &ir::Module, run: &PassRun<'_>) -> Result<(), PassError> {
        self.call(Hook::Before, module, run, |_| Ok(None), |_| Ok(())).map_err(from_callback)
    }

    fn run_after(&self, module: &ir::Module, run: &PassRun<'_>, _: &Outcome) -> Result<(), PassError> {
        self.call(Hook::After, module, run, |_| Ok(None), |_| Ok(())).map_err(from_callback)
    }

    fn on_error(&self, module: &ir::Module, run: &PassRun<'_>, failure: &PassFailure) {
        let error = |py: Python<'_>| Ok(Some(from_failure(py, failure, Some(module)).into_value(py).into_any()));
        self.tell(self.call(Hook::Error, module, run, error, |_| Ok(())));
    }

    fn on_end(&self, module: &ir::Module, run: &PassRun<'_>, result: Result<&Outcome, &PassFailure>) {
        let outcome = |py: Python<'_>| match result {
            Ok(outcome) => Ok(Some(Py::new(py, PassOutcome::of(outcome))?.into_any())),
            Err(_) => Ok(Some(py.None())),
        };
        self.tell(self.call(Hook::End, module, run, outcome, |_| Ok(())));
    }
}

impl Author {
    /// Reports an exception of a hook that cannot fail, as Python reports those of destructors.
    fn tell(&self, done: PyResult<()>) {
        if let Err(error) = done {
            Python::attach(|py| match errors::ends_program(py, &error) {
                true => errors::keep_interrupt(error),
                false => error.write_unraisable(py, self.object.get(py).as_ref()),
            });
        }
    }
}

/// The object goes when no run uses the instrument any more, even if the context stays.
impl Drop for Author {
    fn drop(&mut self) {
        self.object.let_go();
    }
}

/// An instrument of the toolkit.
#[pyclass(frozen, module = "anfora.instrument")]
pub(crate) struct Builtin {
    kind: Kind,
}

enum Kind {
    Timing(Arc<manager::PassTiming>),
    Log(Arc<manager::RunLog>),
    Bisect(Arc<manager::Bisect>),
    Report(Arc<report::Recorder>),
    Other(Arc<dyn Instrument>),
}

impl Builtin {
    fn instrument(&self) -> Arc<dyn Instrument> {
        match &self.kind {
            Kind::Timing(timing) => timing.clone(),
            Kind::Log(log) => log.clone(),
            Kind::Bisect(bisect) => bisect.clone(),
            Kind::Report(recorder) => recorder.clone(),
            Kind::Other(other) => other.clone(),
        }
    }
}

/// An event in the history of a binding: pass, kind, line before, line after, reasons.
type RecordedEvent = (String, String, Option<String>, Option<String>, Vec<String>);

#[pymethods]
impl Builtin {
    /// Returns a table of the time that each pass took.
    #[pyo3(signature = () -> "str")]
    fn render(&self) -> String {
        match &self.kind {
            Kind::Timing(timing) => timing.to_string(),
            Kind::Log(log) => log.records().iter().map(|r| format!("{r:?}\n")).collect(),
            Kind::Bisect(_) | Kind::Report(_) | Kind::Other(_) => String::new(),
        }
    }

    /// Returns the measurements as JSON.
    #[pyo3(signature = () -> "str")]
    fn json(&self) -> String {
        match &self.kind {
            Kind::Timing(timing) => timing.to_json().to_string(),
            Kind::Report(recorder) => recorder.with_recording(|recording| recording.to_json().to_string()),
            _ => "null".to_string(),
        }
    }

    /// Returns the measurements as a trace for the viewer of Chrome.
    #[pyo3(signature = () -> "str")]
    fn chrome_trace(&self) -> String {
        match &self.kind {
            Kind::Timing(timing) => timing.to_chrome_trace().to_string(),
            _ => "null".to_string(),
        }
    }

    /// The number of seconds that the passes took in all.
    #[getter]
    fn total(&self) -> f64 {
        match &self.kind {
            Kind::Timing(timing) => timing.total().as_secs_f64(),
            _ => 0.0,
        }
    }

    /// Returns the runs that the instrument has seen: number, name of the pass, and whether it ran.
    #[pyo3(signature = () -> "list[tuple[int, str, bool]]")]
    fn runs(&self) -> Vec<(u64, String, bool)> {
        match &self.kind {
            Kind::Bisect(bisect) => bisect.runs().iter().map(|r| (r.number, r.pass.clone(), r.ran)).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns what was recorded as a page of HTML.
    #[pyo3(signature = (title: "str") -> "str")]
    fn page(&self, py: Python<'_>, title: &str) -> String {
        let Kind::Report(recorder) = &self.kind else { return String::new() };
        let facts = vec![("anfora".to_string(), env!("CARGO_PKG_VERSION").to_string())];
        let page = |recording: &report::Recording| {
            let pipeline = &recording.pipeline();
            report::Page { title, pipeline, facts, ..report::Page::new(recording) }.to_html()
        };
        py.detach(|| recorder.with_recording(page))
    }

    /// Returns the events of a binding: the pass, what it did, the line before, the line after, and
    /// the reasons.
    #[pyo3(signature = (function: "str", binding: "str") -> "list[tuple[str, str, str | None, str | None, list[str]]]")]
    fn history(&self, py: Python<'_>, function: &str, binding: &str) -> Vec<RecordedEvent> {
        let Kind::Report(recorder) = &self.kind else { return Vec::new() };
        py.detach(|| recorder.with_recording(|recording| history_of(recording, function, binding)))
    }
}

fn history_of(recording: &report::Recording, function: &str, binding: &str) -> Vec<RecordedEvent> {
    let event = |event: report::BindingEvent<'_>| {
        let kind = match event.kind {
            report::BindingEventKind::Made => "made",
            report::BindingEventKind::Changed => "changed",
            report::BindingEventKind::Removed => "removed",
            report::BindingEventKind::NotKept => "not kept",
        };
        let text = |line: Option<&str>| line.map(str::to_string);
        let reasons = event.reasons.into_iter().map(|reason| reason.into_owned()).collect();
        let pass = recording.runs[event.run].name.clone();
        (pass, kind.to_string(), text(event.before), text(event.after), reasons)
    };
    recording.history(function, binding).into_iter().map(event).collect()
}

/// Makes an instrument of the toolkit.
#[pyfunction]
#[pyo3(signature = (kind: "str", options: "dict[str, typing.Any]") -> "Builtin")]
pub(crate) fn _builtin_instrument(kind: &str, options: &Bound<'_, PyDict>) -> PyResult<Builtin> {
    let flag = |name: &str| -> PyResult<bool> { options.get_item(name)?.map_or(Ok(false), |v| v.is_truthy()) };
    let print = |instrument: PrintIr| -> PyResult<Arc<dyn Instrument>> {
        Ok(match options.get_item("functions")?.filter(|v| !v.is_none()) {
            Some(names) => Arc::new(instrument.functions(names.extract::<Vec<String>>()?)),
            None => Arc::new(instrument),
        })
    };
    let all = || manager::PrintWhen::Always;
    let kind = match kind {
        "timing" => Kind::Timing(Arc::new(manager::PassTiming::new())),
        "log" => Kind::Log(Arc::new(manager::RunLog::new())),
        "report" => Kind::Report(Arc::new(report::Recorder::new())),
        "print_before" => Kind::Other(print(PrintIr::new(all(), manager::PrintWhen::Never, Stream("stdout")))?),
        "print_after" => Kind::Other(print(PrintIr::new(manager::PrintWhen::Never, all(), Stream("stdout")))?),
        "print_changed" if flag("diff")? => Kind::Other(print(PrintIr::diff(Stream("stdout")))?),
        "print_changed" => Kind::Other(print(PrintIr::changed(Stream("stdout")))?),
        "dump" => {
            let folder: std::path::PathBuf =
                options.get_item("folder")?.ok_or_else(|| PyTypeError::new_err("DumpIR needs a folder"))?.extract()?;
            let unchanged = if flag("unchanged")? { Unchanged::Dumped } else { Unchanged::LeftOut };
            let dump = manager::DumpIr::new(folder, unchanged);
            Kind::Other(Arc::new(if flag("replace")? { dump.replacing_earlier() } else { dump }))
        }
        "well_formed" => Kind::Other(Arc::new(manager::VerifyEach::with_input())),
        "check_meaning" => Kind::Other(Arc::new(anfora::passes::CheckMeaning::new())),
        "bisect" => {
            let limit: u64 =
                options.get_item("limit")?.ok_or_else(|| PyTypeError::new_err("Bisect needs a limit"))?.extract()?;
            Kind::Bisect(Arc::new(manager::Bisect::limit(limit)))
        }
        _ => return Err(PyTypeError::new_err(format!("there is no instrument {kind:?}"))),
    };
    Ok(Builtin { kind })
}

/// An instrument, and what its owner has to keep with it.
pub(crate) type OwnedInstrument = (Arc<dyn Instrument>, Option<Py<Held>>);

/// Returns an object as an instrument. The owner of the instrument has to keep what is returned
/// with it.
///
/// # Errors
/// `TypeError`, if it has none of the hooks.
pub(crate) fn instrument_of(object: &Bound<'_, PyAny>) -> PyResult<OwnedInstrument> {
    let py = object.py();
    let inner = object.getattr_opt("_builtin")?.unwrap_or_else(|| object.clone());
    if let Ok(builtin) = inner.cast::<Builtin>() {
        return Ok((builtin.get().instrument(), None));
    }
    let base = py.import("anfora.instrument")?.getattr("PassInstrument")?;
    let class = object.get_type();
    if let Ok(class) = object.cast::<pyo3::types::PyType>() {
        let name = class.qualname()?;
        return Err(PyTypeError::new_err(format!("{name} is a class; did you mean {name}()?")));
    }
    let mut has = [false; HOOKS.len()];
    for (has, hook) in has.iter_mut().zip(HOOKS) {
        // A hook that is only inherited from the base class does nothing, and is not called.
        *has = match class.getattr_opt(hook)? {
            Some(method) => !base.getattr_opt(hook)?.is_some_and(|inherited| inherited.is(&method)),
            None => object.hasattr(hook)?,
        };
    }
    if !has.contains(&true) && !object.is_instance(&base)? {
        let name = class.qualname()?;
        return Err(PyTypeError::new_err(format!(
            "{name} is no instrument: it has none of the methods {}",
            HOOKS.join(", ")
        )));
    }
    let name = class.qualname()?.to_string();
    let (held, object) = Held::of(object)?;
    Ok((Arc::new(Author { name, object, has }), Some(held)))
}
