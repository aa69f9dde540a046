//! Expressions made from Python: the operands and attributes of `emit`.

use anfora::ir::{self, AttrKind, ExprId, TypeError};
use anfora::visit;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};

use crate::attributes::Given;
use crate::errors::{self, StaleError, VerifyError};
use crate::expr::{Binding, Expr};
use crate::frames::Maker;
use crate::literal::literal_of;
use crate::owner::Home;

/// Returns the exception for an expression whose parts do not fit together.
pub(crate) fn does_not_fit(py: Python<'_>, error: TypeError) -> PyErr {
    errors::from_diagnostics(py, &py.get_type::<VerifyError>(), &ir::IntoDiagnostics::into_diagnostics(error))
}

/// Returns the id of a handle that belongs to this owner.
///
/// # Errors
/// `StaleError`, if it belongs to another one.
pub(crate) fn id_in(home: &Home, expr: &Expr) -> PyResult<ExprId> {
    if expr.home.is(home) {
        return Ok(expr.id);
    }
    Err(elsewhere())
}

fn elsewhere() -> PyErr {
    StaleError::new_err("the expression belongs to another function, or to another state of this one")
}

/// Returns the expression that a handle names, or the variable of a binding; `None` for any other
/// value.
///
/// # Errors
/// `StaleError`, if the handle belongs elsewhere.
fn handle(maker: &mut dyn Maker, home: &Home, value: &Bound<'_, PyAny>) -> PyResult<Option<ExprId>> {
    if let Ok(expr) = value.cast::<Expr>() {
        return id_in(home, expr.get()).map(Some);
    }
    let Ok(binding) = value.cast::<Binding>() else { return Ok(None) };
    let binding = binding.get();
    if !binding.home.is(home) {
        return Err(elsewhere());
    }
    let (_, body) = maker.program();
    Ok(visit::Binding::of(body, binding.id).map(|b| b.var.expr()))
}

/// Returns an operand: an expression, a constant, or `None` for an operand that is left out. A
/// number takes the element type of `like`, the first operand that is a tensor.
///
/// # Errors
/// `TypeError` for any other value.
pub(crate) fn operand(
    maker: &mut dyn Maker,
    home: &Home,
    value: &Bound<'_, PyAny>,
    like: Option<ir::DType>,
) -> PyResult<ExprId> {
    if let Some(id) = handle(maker, home, value)? {
        return Ok(maker.resolve(id));
    }
    if value.is_none() {
        return Ok(maker.none());
    }
    let is_number = value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>();
    let dtype = like.filter(|_| is_number && !value.is_instance_of::<PyBool>());
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyDict>() {
        let name = value.get_type().qualname()?;
        return Err(PyTypeError::new_err(format!("an operand is an expression, a constant or None, not {name}")));
    }
    Ok(maker.literal(literal_of(value, dtype)?))
}

/// Returns operands.
///
/// # Errors
/// See [`operand`].
pub(crate) fn operands(maker: &mut dyn Maker, home: &Home, values: &[Bound<'_, PyAny>]) -> PyResult<Vec<ExprId>> {
    let like = values.iter().find_map(|value| {
        let id = handle(maker, home, value).ok()??;
        let (cx, body) = maker.program();
        Some(cx.types.as_tensor(body.type_of(id))?.dtype)
    });
    values.iter().map(|value| operand(maker, home, value, like)).collect()
}

/// Makes a call of an operator by name, or of a function value.
///
/// # Errors
/// `VerifyError`, if there is no such operator, or operands or attributes do not fit it.
pub(crate) fn call(
    maker: &mut dyn Maker,
    home: &Home,
    op: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyTuple>,
    attrs: Option<&Bound<'_, PyDict>>,
) -> PyResult<ExprId> {
    let py = op.py();
    let values: Vec<Bound<'_, PyAny>> = arguments.iter().collect();
    if let Ok(function) = op.cast::<Expr>() {
        if attrs.is_some_and(|attrs| !attrs.is_empty()) {
            return Err(PyTypeError::new_err("a call of a function has no attributes"));
        }
        let function = maker.resolve(id_in(home, function.get())?);
        let values = operands(maker, home, &values)?;
        return maker.call(function, &values).map_err(|e| does_not_fit(py, e));
    }
    let name: &Bound<'_, PyString> = op.cast().map_err(|_| {
        PyTypeError::new_err("what is called is the name of an operator, @name for a function, or a function value")
    })?;
    let name = name.to_str()?;
    let values = operands(maker, home, &values)?;
    if let Some(global) = name.strip_prefix('@') {
        let function = maker.global(global);
        return maker.call(function, &values).map_err(|e| does_not_fit(py, e));
    }
    let op = maker.tables().ops.resolve(name).map_err(|e| does_not_fit(py, e))?;
    let mut list = Vec::new();
    if let Some(attrs) = attrs {
        for (key, value) in attrs {
            let key: String = key.extract()?;
            let given = Given::of(&value)?;
            let cx = maker.tables();
            let def = cx.ops.get(op).attrs.iter().find(|def| def.name == key);
            let kind = def.map_or(AttrKind::Any, |def| def.kind);
            if let Some(value) = given.intern_as(cx, kind)? {
                list.push((cx.names.intern(&key), value));
            }
        }
    }
    let attrs = maker.tables().attrs(&list);
    maker.call_op(op, &values, attrs).map_err(|e| does_not_fit(py, e))
}

/// The methods of Python classes that make expressions, over `with(py, |maker, home| ...)`.
///
/// A macro, since `#[pymethods]` takes no methods from traits.
macro_rules! making_methods {
    ($class:ident) => {
        #[pymethods]
        impl $class {
            /// Makes a call of an operator (by name), of a function (`"@name"` or an expression),
            /// binds it, and returns the variable. Operands are expressions, constants, numbers, or
            /// `None` for one that is left out; attributes are keyword arguments.
            #[pyo3(signature = (op: "str | Expr", *args: "typing.Any", name: "str | None" = None, **attrs: "typing.Any") -> "Expr")]
            fn emit(
                slf: &Bound<'_, Self>,
                op: &Bound<'_, PyAny>,
                args: &Bound<'_, PyTuple>,
                name: Option<String>,
                attrs: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Expr> {
                $class::making(slf, |maker, home| {
                    let value = crate::making::call(maker, home, op, args, attrs)?;
                    Ok(maker.bind(name.as_deref(), value))
                })
            }

            /// Makes a tuple, binds it, and returns the variable.
            #[pyo3(signature = (*fields: "typing.Any", name: "str | None" = None) -> "Expr")]
            fn emit_tuple(slf: &Bound<'_, Self>, fields: &Bound<'_, PyTuple>, name: Option<String>) -> PyResult<Expr> {
                let fields: Vec<Bound<'_, PyAny>> = fields.iter().collect();
                $class::making(slf, |maker, home| {
                    let fields = crate::making::operands(maker, home, &fields)?;
                    let value = maker.tuple(&fields);
                    Ok(maker.bind(name.as_deref(), value))
                })
            }

            /// Takes a field of a tuple, binds it, and returns the variable.
            #[pyo3(signature = (tuple: "Expr", index: "int", *, name: "str | None" = None) -> "Expr")]
            fn emit_tuple_getitem(
                slf: &Bound<'_, Self>,
                tuple: &Bound<'_, Expr>,
                index: u32,
                name: Option<String>,
            ) -> PyResult<Expr> {
                $class::making(slf, |maker, home| {
                    let tuple_id = maker.resolve(crate::making::id_in(home, tuple.get())?);
                    let value = maker.proj(tuple_id, index).map_err(|e| crate::making::does_not_fit(slf.py(), e))?;
                    Ok(maker.bind(name.as_deref(), value))
                })
            }

            /// Casts a value to a type (a `Type` or its text), which is checked at run time, binds
            /// it, and returns the variable.
            #[pyo3(signature = (value: "Expr", ty: "Type | str", *, name: "str | None" = None) -> "Expr")]
            fn match_cast(
                slf: &Bound<'_, Self>,
                value: &Bound<'_, Expr>,
                ty: &Bound<'_, PyAny>,
                name: Option<String>,
            ) -> PyResult<Expr> {
                let text = crate::types::text_of(ty)?;
                $class::making(slf, |maker, home| {
                    let value = maker.resolve(crate::making::id_in(home, value.get())?);
                    let to = crate::types::type_of_text(maker.tables(), &text)?;
                    let cast = maker.match_cast(value, to).map_err(|e| crate::making::does_not_fit(slf.py(), e))?;
                    Ok(maker.bind(name.as_deref(), cast))
                })
            }

            /// Returns a constant as an expression: of a literal, a number, or an array.
            #[pyo3(signature = (value: "typing.Any", dtype: "str | None" = None) -> "Expr")]
            fn const_(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>, dtype: Option<&str>) -> PyResult<Expr> {
                let dtype = dtype.map(crate::literal::dtype_named).transpose()?;
                let literal = crate::literal::literal_of(value, dtype)?;
                $class::making(slf, |maker, _| Ok(maker.literal(literal)))
            }
        }
    };
}
pub(crate) use making_methods;
