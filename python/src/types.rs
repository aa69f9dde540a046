//! Types of values.

use anfora::ir::{self, Context, Dim, DimId, TypeId};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::errors::{self, ParseError};
use crate::module::Module;
use crate::owner::Owner;

/// The type of a value: a tensor, a tuple, a function, or `Any`.
///
/// `Type("Tensor[(n, 4), float32]")` reads the text of a type.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct Type {
    owner: Owner,
    id: TypeId,
}

impl Type {
    pub(crate) fn new(owner: Owner, id: TypeId) -> Type {
        Type { owner, id }
    }

    /// Returns the type as text.
    ///
    /// # Errors
    /// If the module of the type was only there for a while.
    pub(crate) fn text(&self) -> PyResult<String> {
        self.owner.context(|cx| cx.type_text(self.id))
    }

    fn of_parts(&self, py: Python<'_>, parts: Vec<TypeId>) -> Vec<Type> {
        parts.into_iter().map(|id| Type::new(self.owner.clone_ref(py), id)).collect()
    }

    fn read<T>(&self, read: impl FnOnce(&Context, &ir::Type) -> T) -> PyResult<T> {
        self.owner.context(|cx| read(cx, cx.types.get(self.id)))
    }
}

#[pymethods]
impl Type {
    #[new]
    #[pyo3(signature = (text: "str") -> "Type")]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Type> {
        let mut owner = ir::Module::new(anfora::onnx::registry());
        let id = type_of_text(&mut owner.cx, text)?;
        Ok(Type { owner: Owner::Module(Py::new(py, Module::of(owner))?), id })
    }

    /// The kind of type: `"tensor"`, `"tuple"`, `"function"` or `"any"`.
    #[getter]
    fn kind(&self) -> PyResult<&'static str> {
        self.read(|_, ty| match ty {
            ir::Type::Tensor(_) => "tensor",
            ir::Type::Tuple(_) => "tuple",
            ir::Type::Function(_) => "function",
            ir::Type::Any | ir::Type::Error => "any",
        })
    }

    /// The element type of a tensor, such as `"float32"`; `None` for another type.
    #[getter]
    fn dtype(&self) -> PyResult<Option<&'static str>> {
        self.read(|_, ty| match ty {
            ir::Type::Tensor(tensor) => Some(tensor.dtype.name()),
            _ => None,
        })
    }

    /// The extents of a tensor: numbers, the text of symbolic ones, `None` for unknown ones. `None`
    /// for a tensor of unknown rank, and for another type.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.read(|cx, ty| match ty {
            ir::Type::Tensor(tensor) => tensor.shape.as_ref().map(|dims| shape(py, cx, dims)).transpose(),
            _ => Ok(None),
        })?
    }

    /// The number of extents of a tensor, if it is known.
    #[getter]
    fn ndim(&self) -> PyResult<Option<usize>> {
        self.read(|_, ty| match ty {
            ir::Type::Tensor(tensor) => tensor.shape.as_ref().map(|dims| dims.len()),
            _ => None,
        })
    }

    /// The types of the fields of a tuple; empty for another type.
    #[getter]
    fn fields(&self, py: Python<'_>) -> PyResult<Vec<Type>> {
        let fields = self.read(|_, ty| match ty {
            ir::Type::Tuple(fields) => fields.to_vec(),
            _ => Vec::new(),
        })?;
        Ok(self.of_parts(py, fields))
    }

    /// The types of the parameters of a function; empty for another type.
    #[getter]
    fn params(&self, py: Python<'_>) -> PyResult<Vec<Type>> {
        let params = self.read(|_, ty| match ty {
            ir::Type::Function(function) => function.params.to_vec(),
            _ => Vec::new(),
        })?;
        Ok(self.of_parts(py, params))
    }

    /// The type of the result of a function; `None` for another type.
    #[getter]
    fn ret(&self, py: Python<'_>) -> PyResult<Option<Type>> {
        self.read(|_, ty| match ty {
            ir::Type::Function(function) => Some(Type::new(self.owner.clone_ref(py), function.ret)),
            _ => None,
        })
    }

    fn __str__(&self) -> PyResult<String> {
        self.text()
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("Type({:?})", self.text()?))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Ok(other) = other.cast::<Type>() else { return Ok(false) };
        let other = other.get();
        if self.owner.is(&other.owner) && self.id == other.id {
            return Ok(true);
        }
        Ok(self.text()? == other.text()?)
    }

    fn __hash__(&self) -> PyResult<u64> {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.text()?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    #[pyo3(signature = () -> "tuple[type[Type], tuple[str]]")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, pyo3::types::PyType>, (String,))> {
        Ok((py.get_type::<Type>(), (self.text()?,)))
    }
}

/// Returns the text of a type that is given as a `Type` or as text.
///
/// # Errors
/// `TypeError` for any other value.
pub(crate) fn text_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<Type>() {
        Ok(ty) => ty.get().text(),
        Err(_) => value.extract::<String>().map_err(|_| {
            pyo3::exceptions::PyTypeError::new_err("a type is a Type, or text such as \"Tensor[(n, 4), float32]\"")
        }),
    }
}

/// Reads the text of a type.
///
/// # Errors
/// `ParseError`, if it is none.
pub(crate) fn type_of_text(cx: &mut Context, text: &str) -> PyResult<ir::TypeId> {
    ir::parse_type(cx, text)
        .map_err(|errors| Python::attach(|py| errors::from_diagnostics(py, &py.get_type::<ParseError>(), &errors)))
}

/// Returns extents: numbers, the text of symbolic ones, `None` for unknown ones.
pub(crate) fn shape<'py>(py: Python<'py>, cx: &Context, dims: &[DimId]) -> PyResult<Bound<'py, PyTuple>> {
    let extent = |&dim: &DimId| -> PyResult<Bound<'py, PyAny>> {
        Ok(match cx.types.dims.get(dim) {
            Dim::Unknown => py.None().into_bound(py),
            Dim::Const(n) => n.into_pyobject(py)?.into_any(),
            _ => PyString::new(py, &cx.dim_text(dim)).into_any(),
        })
    };
    PyTuple::new(py, dims.iter().map(extent).collect::<PyResult<Vec<_>>>()?)
}
