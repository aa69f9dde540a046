//! Passes: those of the registry, sequences, and those written in Python.

use std::sync::Arc;

use anfora::ir;
use anfora::manager::{self, ConfigKind, Declare, Outcome, PassInfo as Info, parse_pipeline};
use anfora::passes::{ParamRef, bind_params};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use pyo3::{PyTraverseError, PyVisit};

use crate::author::{AuthorKind, AuthorPass};
use crate::authored;
use crate::context::PassContext;
use crate::context::current::{during, inner_of};
use crate::context::methods::current_for;
use crate::errors::{self, ConfigError, guarded};
use crate::held::Held;
use crate::literal::literal_of;
use crate::module::Module;
use crate::settings::{config_value, level_of, quoted};

/// The name, the level and the dependencies of a pass.
#[pyclass(frozen, eq, hash, get_all, module = "anfora.transform")]
#[derive(Clone, PartialEq, Hash)]
pub(crate) struct PassInfo {
    /// The least level of the contexts under which the pass runs.
    opt_level: u8,
    /// The name, as pipelines write it.
    name: String,
    /// The names of the passes that have to run before.
    required: Vec<String>,
}

#[pymethods]
impl PassInfo {
    #[new]
    #[pyo3(signature = (opt_level: "int", name: "str", required: "collections.abc.Iterable[str] | None" = None) -> "PassInfo")]
    fn new(opt_level: i64, name: String, required: Option<&Bound<'_, PyAny>>) -> PyResult<PassInfo> {
        Ok(PassInfo { opt_level: level_of(opt_level)?, name, required: names(required)? })
    }

    fn __repr__(&self) -> String {
        format!("PassInfo(opt_level={}, name={:?}, required={:?})", self.opt_level, self.name, self.required)
    }
}

impl PassInfo {
    pub(crate) fn of(info: &Info) -> PassInfo {
        PassInfo { opt_level: info.opt_level, name: info.name.clone(), required: info.required.clone() }
    }
}

/// The effect of a pass on a module.
#[pyclass(frozen, get_all, module = "anfora.transform", name = "Outcome")]
pub(crate) struct PassOutcome {
    /// True if the pass changed the module.
    changed: bool,
    /// The reason why the context did not let the pass run; `None` if it ran.
    skipped: Option<String>,
}

impl PassOutcome {
    pub(crate) fn of(outcome: &Outcome) -> PassOutcome {
        let skipped = match outcome {
            Outcome::Skipped(reason) => Some(reason.to_string()),
            Outcome::Changed | Outcome::Unchanged => None,
        };
        PassOutcome { changed: outcome.is_changed(), skipped }
    }
}

#[pymethods]
impl PassOutcome {
    fn __repr__(&self) -> String {
        match &self.skipped {
            Some(reason) => format!("<Outcome skipped: {reason}>"),
            None => format!("<Outcome {}>", if self.changed { "changed" } else { "unchanged" }),
        }
    }
}

/// A pass: a transformation of modules.
///
/// `p(mod)` returns the transformed module and leaves `mod` as it is; `p.apply(mod)` works in place
/// and returns what happened. Both run under the current context, or under the one that is given.
#[pyclass(frozen, subclass, module = "anfora.transform")]
pub(crate) struct Pass {
    pub(crate) inner: Arc<dyn manager::Pass>,
    /// The function of a pass that is written in Python.
    held: Option<Py<Held>>,
    /// The passes that this one was made of, which hold their functions.
    parts: Vec<Py<Pass>>,
}

impl Pass {
    pub(crate) fn of(inner: Arc<dyn manager::Pass>) -> Pass {
        Pass { inner, held: None, parts: Vec::new() }
    }

    /// Returns a pass that calls an object of Python.
    pub(crate) fn holding(inner: Arc<dyn manager::Pass>, held: Py<Held>) -> Pass {
        Pass { inner, held: Some(held), parts: Vec::new() }
    }

    fn context(&self, py: Python<'_>, context: Option<&Bound<'_, PassContext>>) -> PyResult<Py<PassContext>> {
        context.map_or_else(|| current_for(py, &self.inner), |context| Ok(context.clone().unbind()))
    }
}

/// Runs a pass on a program, which is edited in place unless it is shared. If nothing changes, the
/// program that was given is returned.
fn run(
    pass: &dyn manager::Pass,
    given: Arc<ir::Module>,
    context: &manager::PassContext,
) -> (Arc<ir::Module>, Result<Outcome, manager::PassFailure>) {
    let (mut program, kept) = match Arc::try_unwrap(given) {
        Ok(unique) => (unique, None),
        Err(shared) => ((*shared).clone(), Some(shared)),
    };
    let done = pass.apply(&mut program, context);
    let changed = done.as_ref().is_ok_and(Outcome::is_changed);
    match kept {
        Some(kept) if !changed => (kept, done),
        _ => (Arc::new(program), done),
    }
}

/// Returns the name of a pass that is given as a text or as a pass.
///
/// # Errors
/// `TypeError` for any other value.
fn name_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(pass) = value.cast::<Pass>() {
        return Ok(pass.get().inner.info().name.clone());
    }
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Err(PyTypeError::new_err("a pass is named by a text or by the pass itself")),
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
impl Pass {
    /// Makes a pass from a function of Python. `module_pass`, `function_pass` and
    /// `dataflowblock_pass` are the ways to call this.
    #[new]
    #[pyo3(signature = (kind: "str", name: "str", run: "typing.Callable[..., typing.Any]", opt_level: "int" = 0, required: "collections.abc.Iterable[str] | None" = None) -> "Pass")]
    fn new(
        kind: &str,
        name: &str,
        run: Bound<'_, PyAny>,
        opt_level: i64,
        required: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pass> {
        let kind = match kind {
            "module" => AuthorKind::Module,
            "function" => AuthorKind::Function,
            "dataflowblock" => AuthorKind::DataflowBlock,
            _ => return Err(PyValueError::new_err("the kind of a pass is module, function or dataflowblock")),
        };
        let level = level_of(opt_level)?;
        if !run.is_callable() {
            return Err(PyTypeError::new_err(
                "a pass is made from a function, or from a class with a transform method",
            ));
        }
        let required = names(required)?;
        let info = Info::new(name, level).requiring(required);
        let (held, callee) = Held::of(&run)?;
        let pass = AuthorPass::new(info, kind, callee);
        authored::note(&pass);
        Ok(Pass { inner: Arc::new(pass), held: Some(held), parts: Vec::new() })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.held.iter().try_for_each(|held| visit.call(held))?;
        self.parts.iter().try_for_each(|part| visit.call(part))
    }

    /// The name, the level and the dependencies.
    #[getter]
    fn info(&self) -> PassInfo {
        PassInfo::of(self.inner.info())
    }

    /// The pass as a pipeline writes it.
    #[getter]
    fn pipeline(&self) -> String {
        self.inner.pipeline_text()
    }

    /// The passes that this one runs, in order; none for a pass that holds no others.
    #[getter]
    fn passes(&self, py: Python<'_>) -> PyResult<Vec<Py<Pass>>> {
        if !self.parts.is_empty() {
            return Ok(self.parts.iter().map(|part| part.clone_ref(py)).collect());
        }
        self.inner.passes().iter().map(|p| Py::new(py, Pass::of(p.clone()))).collect()
    }

    /// Returns the transformed module. `mod` stays as it is; both share the unchanged parts.
    ///
    /// Raises `PassError` if the pass fails.
    #[pyo3(signature = (r#mod: "Module", context: "PassContext | None" = None) -> "Module")]
    fn __call__(
        &self,
        py: Python<'_>,
        r#mod: &Bound<'_, Module>,
        context: Option<&Bound<'_, PassContext>>,
    ) -> PyResult<Module> {
        errors::check_stack()?;
        let context = self.context(py, context)?;
        let given = r#mod.get().snapshot()?;
        let kept = given.clone();
        let inner = inner_of(&context);
        let (program, done) =
            during(py, &context, None, || py.detach(|| guarded(|| run(&*self.inner, given, &inner))))?;
        errors::raise_interrupt()?;
        done.map_err(|failure| errors::from_failure(py, &failure, Some(&kept)))?;
        Ok(Module::sharing(program))
    }

    /// Transforms the module in place, and returns the outcome. A pass that fails leaves the module
    /// as it was; a sequence that fails keeps the changes of the passes before the one that failed.
    ///
    /// Raises `PassError` if the pass fails.
    #[pyo3(signature = (r#mod: "Module", context: "PassContext | None" = None) -> "Outcome")]
    fn apply(
        &self,
        py: Python<'_>,
        r#mod: &Bound<'_, Module>,
        context: Option<&Bound<'_, PassContext>>,
    ) -> PyResult<PassOutcome> {
        errors::check_stack()?;
        let context = self.context(py, context)?;
        let inner = inner_of(&context);
        let done =
            during(py, &context, None, || r#mod.get().replace(py, |program| run(&*self.inner, program, &inner)))?;
        errors::raise_interrupt()?;
        match done {
            Ok(outcome) => Ok(PassOutcome::of(&outcome)),
            Err(failure) => {
                let program = r#mod.get().snapshot()?;
                Err(errors::from_failure(py, &failure, Some(&program)))
            }
        }
    }

    fn __repr__(&self) -> String {
        format!("<anfora.transform.Pass {}>", self.inner.pipeline_text())
    }
}

/// Returns passes that are to be parts of another one.
fn parts_of(passes: &Bound<'_, PyAny>) -> PyResult<Vec<Py<Pass>>> {
    let one = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        match item.cast::<Pass>() {
            Ok(pass) => Ok(pass.clone().unbind()),
            Err(_) => {
                let name = item.get_type().qualname()?;
                Err(PyTypeError::new_err(format!(
                    "a sequence holds passes, not {name}; a class of a pass is called first"
                )))
            }
        }
    };
    passes.try_iter()?.map(one).collect()
}

/// Returns passes as the toolkit takes them.
fn inner_passes(parts: &[Py<Pass>]) -> Vec<Arc<dyn manager::Pass>> {
    parts.iter().map(|part| part.get().inner.clone()).collect()
}

/// Returns a pass that runs passes one after the other.
#[pyfunction]
#[pyo3(signature = (passes: "collections.abc.Iterable[Pass]", opt_level: "int" = 0, name: "str" = "sequential", required: "collections.abc.Iterable[str] | None" = None) -> "Pass")]
pub(crate) fn _sequential(
    passes: &Bound<'_, PyAny>,
    opt_level: i64,
    name: &str,
    required: Option<&Bound<'_, PyAny>>,
) -> PyResult<Pass> {
    let info = Info::new(name, level_of(opt_level)?).requiring(names(required)?);
    crate::registry::note_authored(name);
    let parts = parts_of(passes)?;
    let made = manager::Sequential::named(info, inner_passes(&parts));
    let inner = Arc::new(made.map_err(|e| PyValueError::new_err(e.to_string()))?);
    Ok(Pass { inner, held: None, parts })
}

/// Returns a pass that runs passes again and again, until none changes anything or the number of
/// rounds is reached.
#[pyfunction]
#[pyo3(signature = (passes: "collections.abc.Iterable[Pass]", max_rounds: "int" = 4) -> "Pass")]
pub(crate) fn _repeat(passes: &Bound<'_, PyAny>, max_rounds: u32) -> PyResult<Pass> {
    let parts = parts_of(passes)?;
    let made = manager::Repeat::new(inner_passes(&parts), max_rounds);
    let inner = Arc::new(made.map_err(|e| PyValueError::new_err(e.to_string()))?);
    Ok(Pass { inner, held: None, parts })
}

/// Reads a pipeline: passes with options, and names of pipelines, such as
/// `"O2,FuseOps{max_depth=64}"`.
///
/// Raises `ConfigError` with a suggestion, if the text is no pipeline.
#[pyfunction]
#[pyo3(signature = (text: "str") -> "Pass")]
pub(crate) fn _parse_pipeline(text: &str) -> PyResult<Pass> {
    let parsed = parse_pipeline(&crate::registry::registry(), text);
    let parsed = parsed.map_err(|e| ConfigError::new_err(format!("{e}\n{}", e.marked())))?;
    Ok(Pass::of(Arc::new(parsed)))
}

/// Makes a pass or a named pipeline of the registry with options.
///
/// Raises `ConfigError` with a suggestion, if there is no such pass, pipeline or option.
#[pyfunction]
#[pyo3(signature = (name: "str", options: "dict[str, typing.Any]") -> "Pass")]
pub(crate) fn _make_pass(name: &str, options: &Bound<'_, PyDict>) -> PyResult<Pass> {
    let registry = crate::registry::registry();
    let of_passes = registry.passes().iter().map(|pass| (pass.name(), pass.options()));
    let of_pipelines = registry.pipelines().iter().map(|pipeline| (&*pipeline.name, pipeline.options));
    let options_by_name = of_passes.chain(of_pipelines).find(|entry| entry.0 == name);
    let declared = options_by_name.map_or(&[][..], |(_, options)| options);
    let takes_numbers =
        |key: &str| declared.iter().any(|o| o.key == key && matches!(o.kind, ConfigKind::Numbers { .. }));
    let mut given = Vec::new();
    for (key, value) in options {
        let key: String = key.extract()?;
        if takes_numbers(&key) && !value.is_none() && !value.is_instance_of::<PyDict>() {
            return Err(PyTypeError::new_err(format!("{key} is a dictionary of names and numbers")));
        }
        if let Ok(numbers) = value.cast::<PyDict>() {
            // An option of numbers by name: each is written as an option.
            for (key, value) in numbers {
                given.push(format!("{}={}", quoted(&key.extract::<String>()?), config_value(&value)?.text()));
            }
        } else if !value.is_none() {
            given.push(format!("{}={}", quoted(&key), config_value(&value)?.quoted()));
        }
    }
    let text = if given.is_empty() { name.to_string() } else { format!("{name}{{{}}}", given.join(",")) };
    let parsed = parse_pipeline(&crate::registry::registry(), &text);
    let parsed = parsed.map_err(|e| ConfigError::new_err(format!("{e}\n{}", e.marked())))?;
    // A pipeline keeps its name, also if it is one pass.
    match manager::Pass::passes(&parsed) {
        [one] if manager::Pass::info(&parsed).name != name => Ok(Pass::of(one.clone())),
        _ => Ok(Pass::of(Arc::new(parsed))),
    }
}

/// Makes a pass that binds parameters of a function to constants.
#[pyfunction]
#[pyo3(signature = (function: "str", params: "dict[str, typing.Any]") -> "Pass")]
pub(crate) fn _bind_params(function: String, params: &Bound<'_, PyDict>) -> PyResult<Pass> {
    let mut given: Vec<(String, ir::Literal)> = Vec::new();
    for (name, value) in params {
        given.push((name.extract::<String>()?.trim_start_matches('%').to_string(), literal_of(&value, None)?));
    }
    let function = function.trim_start_matches('@').to_string();
    let pass = manager::ModulePass::new("BindParams", 0, move |module, cx| {
        let params: Vec<_> = given.iter().map(|(name, value)| (ParamRef::Name(name), value.clone())).collect();
        cx.count("bound", bind_params(module, &function, &params)? as u64);
        Ok(())
    });
    Ok(Pass::of(Arc::new(pass)))
}
