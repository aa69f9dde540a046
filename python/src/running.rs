//! Programs that the interpreter runs.

use std::sync::{Arc, Mutex, PoisonError};

use anfora::interp::{EvalErrorKind, Externals, Interpreter, Outcome, Value, ValueId, Values};
use anfora::ir::{self, Context, Type, TypeId};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::errors::{self, RunError, guarded};
use crate::literal::{Literal, literal_of};
use crate::module::Module;

/// The exception of a closure that failed.
type Raised = Arc<Mutex<Option<PyErr>>>;

/// Runs a function of a module on arguments: constants, and tuples of them. Returns a literal, a
/// tuple of results, or `None` for what is neither.
///
/// Raises `RunError` if the run fails, and what a function in `externals` raises.
#[pyfunction]
#[pyo3(signature = (
    r#mod: "Module",
    arguments: "collections.abc.Iterable[typing.Any]",
    function: "str",
    externals: "dict[str, typing.Callable[..., typing.Any]] | None",
    seed: "int",
) -> "typing.Any")]
pub(crate) fn _run<'py>(
    r#mod: &Bound<'py, Module>,
    arguments: &Bound<'py, PyAny>,
    function: &str,
    externals: Option<&Bound<'py, PyDict>>,
    seed: u64,
) -> PyResult<Bound<'py, PyAny>> {
    let py = r#mod.py();
    errors::check_stack()?;
    let module = r#mod.get().snapshot()?;
    let function = function.trim_start_matches('@');
    let called = module.find(function).and_then(|key| module.get(key));
    let mut types = called.into_iter().flat_map(|f| f.body.params().iter().map(|param| f.body.ty(param.expr())));
    let (mut values, mut given) = (Values::new(), Vec::new());
    for argument in arguments.try_iter()? {
        given.push(value_of(&mut values, &module.cx, argument?, types.next())?);
    }
    let raised = Raised::default();
    let externals = externals_of(externals, &raised)?;
    let outcome = py.detach(|| {
        guarded(|| Interpreter::new(&module).externals(&externals).seed(seed).call(function, values, &given))
    })?;
    match outcome {
        Ok(outcome) => object_of(py, &outcome),
        Err(error) => match raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(raised) if matches!(error.kind, EvalErrorKind::ExternalFailed { .. }) => Err(raised),
            _ => Err(RunError::new_err(error.to_string())),
        },
    }
}

/// A tuple among the arguments of which some items are left.
struct OpenTuple<'a, 'py> {
    items: std::vec::IntoIter<Bound<'py, PyAny>>,
    /// The types that are expected of the items, as far as they are known.
    types: &'a [TypeId],
    fields: Vec<ValueId>,
}

/// Adds an argument for a parameter of a type to the values of a run. Tuples may be nested to any
/// depth.
fn value_of(values: &mut Values, cx: &Context, argument: Bound<'_, PyAny>, ty: Option<TypeId>) -> PyResult<ValueId> {
    let mut open: Vec<OpenTuple<'_, '_>> = Vec::new();
    let (mut next, mut wanted) = (argument, ty);
    loop {
        let expected = wanted.map(|ty| cx.types.get(ty));
        let mut value = match (next.cast::<PyTuple>(), expected) {
            (Ok(items), expected) => {
                let types: &[TypeId] = if let Some(Type::Tuple(types)) = expected { types } else { &[] };
                let items: Vec<Bound<'_, PyAny>> = items.iter().collect();
                open.push(OpenTuple { items: items.into_iter(), types, fields: Vec::new() });
                None
            }
            // Numbers and lists of Python have no element type of their own.
            (Err(_), Some(Type::Tensor(tensor))) if !next.hasattr("dtype")? => {
                Some(values.tensor(literal_of(&next, Some(tensor.dtype))?))
            }
            (Err(_), _) => Some(values.tensor(literal_of(&next, None)?)),
        };
        // Close the tuples that are complete.
        next = loop {
            let Some(OpenTuple { items, types, fields }) = open.last_mut() else {
                return value.ok_or_else(|| PyTypeError::new_err("an argument is a constant or a tuple"));
            };
            fields.extend(value.take());
            if let Some(item) = items.next() {
                wanted = types.get(fields.len()).copied();
                break item;
            }
            value = open.pop().map(|tuple| values.tuple(&tuple.fields));
        };
    }
}

/// Returns the result of a run as an object of Python. Parts of tuples that are shared are shared
/// there too.
fn object_of<'py>(py: Python<'py>, outcome: &Outcome) -> PyResult<Bound<'py, PyAny>> {
    let mut made: std::collections::HashMap<ValueId, Bound<'py, PyAny>> = std::collections::HashMap::new();
    let mut stack = vec![outcome.result];
    while let Some(&value) = stack.last() {
        if made.contains_key(&value) {
            stack.pop();
            continue;
        }
        let object = match outcome.values.get(value) {
            Value::Tensor(literal) => Bound::new(py, Literal::of(literal.clone(), None))?.into_any(),
            Value::Tuple(fields) => {
                let left = stack.len();
                stack.extend(fields.iter().filter(|field| !made.contains_key(field)));
                if stack.len() > left {
                    continue;
                }
                PyTuple::new(py, fields.iter().map(|field| &made[field]))?.into_any()
            }
            Value::Function | Value::Absent => py.None().into_bound(py),
        };
        made.insert(value, object);
        stack.pop();
    }
    Ok(made[&outcome.result].clone())
}

/// Returns closures that call functions of Python, and keep the exception if one fails.
fn externals_of(functions: Option<&Bound<'_, PyDict>>, raised: &Raised) -> PyResult<Externals> {
    let mut externals = Externals::new();
    for (symbol, function) in functions.into_iter().flatten() {
        let (symbol, function, raised) = (symbol.extract::<String>()?, function.unbind(), Arc::clone(raised));
        externals.insert(symbol, move |arguments: &[ir::Literal]| {
            Python::attach(|py| call_external(py, &function, arguments)).map_err(|error| {
                let message = error.to_string();
                *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                message
            })
        });
    }
    Ok(externals)
}

/// Calls a function of Python with literals. It returns a constant, or a tuple or list of them.
fn call_external(py: Python<'_>, function: &Py<PyAny>, arguments: &[ir::Literal]) -> PyResult<Vec<ir::Literal>> {
    let arguments: Vec<Literal> = arguments.iter().map(|argument| Literal::of(argument.clone(), None)).collect();
    let result = function.bind(py).call1(PyTuple::new(py, arguments)?)?;
    if result.is_instance_of::<PyTuple>() || result.is_instance_of::<PyList>() {
        return result.try_iter()?.map(|item| literal_of(&item?, None)).collect();
    }
    Ok(vec![literal_of(&result, None)?])
}
