//! Attributes: between the tables of a module and values of Python.

use std::collections::{HashMap, HashSet};

use anfora::ir::{self, Attr, AttrDefault, AttrId, AttrKind, AttrsId, Context, DType, DimId};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::AnforaError;
use crate::literal::Literal;
use crate::owner::Owner;
use crate::types::{Type, shape, type_of_text};

/// The most values that one attribute from Python may hold, in all its lists.
const MOST_VALUES: usize = 10_000_000;

/// Returns a list of attributes as a dictionary.
pub(crate) fn dict<'py>(py: Python<'py>, owner: &Owner, cx: &Context, attrs: AttrsId) -> PyResult<Bound<'py, PyDict>> {
    let attributes = PyDict::new(py);
    for &(name, value) in cx.attrs.list(attrs) {
        attributes.set_item(cx.names.get(name), to_python(py, owner, cx, value)?)?;
    }
    Ok(attributes)
}

/// Returns the attributes of a call of an operator as a dictionary, with the defaults of the row.
pub(crate) fn dict_of_call<'py>(
    py: Python<'py>,
    owner: &Owner,
    cx: &Context,
    op: ir::OpId,
    attrs: AttrsId,
) -> PyResult<Bound<'py, PyDict>> {
    let attributes = dict(py, owner, cx, attrs)?;
    for def in &*cx.ops.get(op).attrs {
        if attributes.contains(def.name)? {
            continue;
        }
        match def.default {
            AttrDefault::Required | AttrDefault::Absent => {}
            AttrDefault::Bool(v) => attributes.set_item(def.name, v)?,
            AttrDefault::Int(v) => attributes.set_item(def.name, v)?,
            AttrDefault::Float(v) => attributes.set_item(def.name, v)?,
            AttrDefault::Str(v) => attributes.set_item(def.name, v)?,
            AttrDefault::Ints(v) => attributes.set_item(def.name, v.to_vec())?,
            AttrDefault::DType(v) => attributes.set_item(def.name, v.name())?,
        }
    }
    Ok(attributes)
}

/// Returns an attribute as a value of Python: a list for a list (equal lists inside of it are the
/// same object), a tuple for a shape.
fn to_python<'py>(py: Python<'py>, owner: &Owner, cx: &Context, id: AttrId) -> PyResult<Bound<'py, PyAny>> {
    enum Todo {
        Value(AttrId),
        List(AttrId, usize),
    }
    let mut made: HashMap<AttrId, Bound<'py, PyAny>> = HashMap::new();
    let mut results: Vec<Bound<'py, PyAny>> = Vec::new();
    let mut todo = vec![Todo::Value(id)];
    while let Some(next) = todo.pop() {
        let value = match next {
            Todo::List(id, len) => {
                let items = results.split_off(results.len() - len);
                let list = PyList::new(py, items)?.into_any();
                made.insert(id, list.clone());
                list
            }
            Todo::Value(id) => match cx.attrs.get(id) {
                Attr::List(items) => {
                    if let Some(list) = made.get(&id) {
                        list.clone()
                    } else {
                        todo.push(Todo::List(id, items.len()));
                        todo.extend(items.iter().rev().map(|&item| Todo::Value(item)));
                        continue;
                    }
                }
                leaf => leaf_to_python(py, owner, cx, leaf)?,
            },
        };
        results.push(value);
    }
    results.pop().ok_or_else(|| PyValueError::new_err("an attribute has no value"))
}

fn leaf_to_python<'py>(py: Python<'py>, owner: &Owner, cx: &Context, leaf: &Attr) -> PyResult<Bound<'py, PyAny>> {
    Ok(match leaf {
        Attr::None | Attr::List(_) => py.None().into_bound(py),
        Attr::Bool(v) => PyBool::new(py, *v).to_owned().into_any(),
        Attr::Int(v) => v.into_pyobject(py)?.into_any(),
        Attr::Float(bits) => PyFloat::new(py, f64::from_bits(*bits)).into_any(),
        Attr::Str(name) => PyString::new(py, cx.names.get(*name)).into_any(),
        Attr::Shape(dims) => shape(py, cx, dims)?.into_any(),
        Attr::Literal(id) => Bound::new(py, Literal::of(cx.literals.get(*id).clone(), None))?.into_any(),
        Attr::DType(dtype) => PyString::new(py, dtype.name()).into_any(),
        Attr::Type(id) => Bound::new(py, Type::new(owner.clone_ref(py), *id))?.into_any(),
        Attr::Function(id) => {
            let function = &cx.function_attrs[*id];
            PyString::new(py, &format!("<fn with {} parameters>", function.body.params().len())).into_any()
        }
        Attr::Global(id) => PyString::new(py, &format!("@{}", cx.global_name(*id))).into_any(),
        Attr::Op(id) => PyString::new(py, &cx.ops.get(*id).name).into_any(),
    })
}

/// A value of an attribute, as it was given in Python: the values in postfix order, so that lists
/// of any depth need no recursion.
pub(crate) struct Given(Vec<Part>);

enum Part {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    Literal(ir::Literal),
    /// The text of a type.
    Type(String),
    /// As many values before it.
    List(usize),
    Shape(usize),
}

impl Given {
    /// Reads a value: a number, a string, a literal, a type, `None`, a list, or a tuple for a
    /// shape.
    ///
    /// # Errors
    /// `TypeError` for any other value, `ValueError` for a list that holds itself or is too large.
    pub(crate) fn of(value: &Bound<'_, PyAny>) -> PyResult<Given> {
        enum Todo<'py> {
            Value(Bound<'py, PyAny>),
            End(Part, usize),
        }
        let mut parts = Vec::new();
        let mut open: HashSet<usize> = HashSet::new();
        let mut todo = vec![Todo::Value(value.clone())];
        while let Some(next) = todo.pop() {
            if parts.len() + todo.len() > MOST_VALUES {
                return Err(PyValueError::new_err(format!("an attribute holds more than {MOST_VALUES} values")));
            }
            match next {
                Todo::End(part, address) => {
                    open.remove(&address);
                    parts.push(part);
                }
                Todo::Value(value) => {
                    let items: Option<Vec<Bound<'_, PyAny>>> = match (value.cast::<PyList>(), value.cast::<PyTuple>()) {
                        (Ok(list), _) => Some(list.iter().collect()),
                        (_, Ok(tuple)) => Some(tuple.iter().collect()),
                        _ => None,
                    };
                    let Some(items) = items else {
                        parts.push(leaf(&value)?);
                        continue;
                    };
                    let address = value.as_ptr() as usize;
                    if !items.is_empty() && !open.insert(address) {
                        return Err(PyValueError::new_err("a list holds itself"));
                    }
                    let end = match value.is_instance_of::<PyTuple>() {
                        true => Part::Shape(items.len()),
                        false => Part::List(items.len()),
                    };
                    todo.push(Todo::End(end, address));
                    todo.extend(items.into_iter().rev().map(Todo::Value));
                }
            }
        }
        Ok(Given(parts))
    }

    /// Returns the attribute in the tables of a module; `None` for `None`.
    ///
    /// # Errors
    /// If a text of a type is none, or a shape has other values than extents.
    pub(crate) fn intern(self, cx: &mut Context) -> PyResult<Option<AttrId>> {
        self.intern_as(cx, AttrKind::Any)
    }

    /// Returns the attribute for an attribute of this kind: a string also names an element type or
    /// a type, a list of integers is also a shape or a list of floats, a number is also a literal.
    ///
    /// # Errors
    /// See [`Given::intern`].
    pub(crate) fn intern_as(self, cx: &mut Context, kind: AttrKind) -> PyResult<Option<AttrId>> {
        if let [Part::None] = self.0[..] {
            return Ok(None);
        }
        let mut results: Vec<AttrId> = Vec::new();
        for part in self.0 {
            let attr = match part {
                Part::None => Attr::None,
                Part::Bool(v) => Attr::Bool(v),
                Part::Int(v) if matches!(kind, AttrKind::Float | AttrKind::Floats) =>
                {
                    #[allow(clippy::cast_precision_loss)]
                    Attr::Float((v as f64).to_bits())
                }
                Part::Int(v) if kind == AttrKind::Literal => {
                    let literal = ir::Literal::scalar(v);
                    Attr::Literal(cx.literals.intern(literal))
                }
                Part::Int(v) => Attr::Int(v),
                Part::Float(v) if kind == AttrKind::Literal =>
                {
                    #[allow(clippy::cast_possible_truncation)]
                    Attr::Literal(cx.literals.intern(ir::Literal::scalar(v as f32)))
                }
                Part::Float(v) => Attr::Float(v.to_bits()),
                Part::Str(text) => match (kind, text.parse::<DType>()) {
                    (AttrKind::DType, Ok(dtype)) => Attr::DType(dtype),
                    (AttrKind::Type, _) => Attr::Type(type_of_text(cx, &text)?),
                    _ => Attr::Str(cx.names.intern(&text)),
                },
                Part::Literal(literal) => Attr::Literal(cx.literals.intern(literal)),
                Part::Type(text) => Attr::Type(type_of_text(cx, &text)?),
                Part::List(n) | Part::Shape(n) => {
                    let items = results.split_off(results.len() - n);
                    if matches!(part, Part::Shape(_)) && kind == AttrKind::Any || kind == AttrKind::Shape {
                        Attr::Shape(extents(cx, &items)?)
                    } else {
                        Attr::List(items.into())
                    }
                }
            };
            results.push(cx.attr(attr));
        }
        Ok(results.pop())
    }
}

fn leaf(value: &Bound<'_, PyAny>) -> PyResult<Part> {
    if value.is_none() {
        Ok(Part::None)
    } else if let Ok(v) = value.cast::<PyBool>() {
        Ok(Part::Bool(v.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        value.extract().map(Part::Int)
    } else if value.is_instance_of::<PyFloat>() {
        value.extract().map(Part::Float)
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(Part::Str(text.to_string()))
    } else if let Ok(literal) = value.cast::<Literal>() {
        Ok(Part::Literal(literal.get().inner.clone()))
    } else if let Ok(ty) = value.cast::<Type>() {
        Ok(Part::Type(ty.get().text()?))
    } else if value.hasattr("__index__")? {
        // The integers of NumPy.
        value.call_method0("__index__")?.extract().map(Part::Int)
    } else if value.hasattr("__float__")? {
        value.call_method0("__float__")?.extract().map(Part::Float)
    } else {
        let name = value.get_type().qualname()?;
        Err(PyTypeError::new_err(format!(
            "an attribute is a number, a string, a list, a tuple (a shape), a Literal, a Type or None, not {name}"
        )))
    }
}

fn extents(cx: &mut Context, items: &[AttrId]) -> PyResult<Box<[DimId]>> {
    items
        .iter()
        .map(|&item| match *cx.attrs.get(item) {
            Attr::Int(n) => Ok(cx.types.dims.constant(n)),
            Attr::None => Ok(cx.types.dims.unknown()),
            _ => Err(AnforaError::new_err("an extent of a shape is a number, or None for an unknown one")),
        })
        .collect()
}
