//! Constant tensors, and their way from and to NumPy.

use std::sync::Arc;

use anfora::ir::{self, DType, Number};
use bytes::Bytes;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// A constant tensor: `Literal(np.ones((4,), "float32"), name="bias")`.
///
/// Numbers need no NumPy: `Literal(2.0)` is a float32, `Literal(2)` an int32, as in TVM, and
/// `dtype` states another element type.
#[pyclass(frozen, module = "anfora")]
pub(crate) struct Literal {
    pub(crate) inner: ir::Literal,
    pub(crate) name: Option<String>,
}

/// The names of element types in the package `ml_dtypes`, where they differ from ours or where
/// NumPy itself lacks the type.
const ML_DTYPES: &[(DType, &str)] = &[
    (DType::BFloat16, "bfloat16"),
    (DType::Int2, "int2"),
    (DType::UInt2, "uint2"),
    (DType::Int4, "int4"),
    (DType::UInt4, "uint4"),
    (DType::Float4E2M1, "float4_e2m1fn"),
    (DType::Float8E4M3FN, "float8_e4m3fn"),
    (DType::Float8E4M3FNUZ, "float8_e4m3fnuz"),
    (DType::Float8E5M2, "float8_e5m2"),
    (DType::Float8E5M2FNUZ, "float8_e5m2fnuz"),
    (DType::Float8E8M0, "float8_e8m0fnu"),
];

impl Literal {
    pub(crate) fn of(inner: ir::Literal, name: Option<String>) -> Literal {
        Literal { inner, name }
    }
}

/// Returns the element type with a name of ours or of NumPy.
///
/// # Errors
/// `ValueError` with a suggestion, if there is none.
pub(crate) fn dtype_named(name: &str) -> PyResult<DType> {
    if let Ok(dtype) = name.parse() {
        return Ok(dtype);
    }
    if let Some(&(dtype, _)) = ML_DTYPES.iter().find(|(_, n)| *n == name) {
        return Ok(dtype);
    }
    let names = DType::ALL.iter().map(|d| d.name());
    let help = ir::did_you_mean(name, names).map_or_else(String::new, |n| format!("; did you mean {n:?}?"));
    Err(PyValueError::new_err(format!("there is no element type {name:?}{help}")))
}

/// Returns a number of Python; `None` for any other value.
fn number_of(value: &Bound<'_, PyAny>) -> PyResult<Option<(Number, DType)>> {
    Ok(Some(if let Ok(v) = value.cast::<PyBool>() {
        (Number::Bool(v.is_true()), DType::Bool)
    } else if value.is_instance_of::<PyInt>() {
        (Number::Int(value.extract()?), DType::Int32)
    } else if value.is_exact_instance_of::<PyFloat>() {
        // A scalar of NumPy is a float too, and keeps its element type.
        (Number::Float(value.extract()?), DType::Float32)
    } else {
        return Ok(None);
    }))
}

/// Returns a value as a constant: a literal, a number, or anything that NumPy makes an array of.
///
/// # Errors
/// `TypeError` or `ValueError`, if it is none of these.
pub(crate) fn literal_of(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<ir::Literal> {
    if let Ok(literal) = value.cast::<Literal>() {
        let inner = &literal.get().inner;
        return match dtype {
            Some(dtype) if dtype != inner.dtype() => {
                Err(PyValueError::new_err(format!("the literal has elements of {}, not of {dtype}", inner.dtype())))
            }
            _ => Ok(inner.clone()),
        };
    }
    if let Some((number, natural)) = number_of(value)?
        && dtype.is_none_or(DType::has_kernels)
    {
        let dtype = dtype.unwrap_or(natural);
        return number
            .scalar(dtype)
            .ok_or_else(|| PyValueError::new_err(format!("{dtype} has no exact element for {value}")));
    }
    from_array(value, dtype)
}

fn from_array(value: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<ir::Literal> {
    let py = value.py();
    let numpy = py.import("numpy").map_err(|_| {
        PyTypeError::new_err("a constant is a Literal, a number, or an array, for which numpy has to be installed")
    })?;
    let mut array = numpy.call_method1("asarray", (value,))?;
    if let Some(dtype) = dtype {
        let cast = array.call_method1("astype", (numpy_dtype(py, dtype)?,))?;
        // Floats are rounded; an integer that does not fit is a mistake.
        if dtype.is_integer() && !numpy.call_method1("array_equal", (&cast, &array))?.is_truthy()? {
            return Err(PyValueError::new_err(format!("an element is no {dtype}")));
        }
        array = cast;
    }
    let of_array = array.getattr("dtype")?;
    let kind: String = of_array.getattr("kind")?.extract()?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let wrong = |e: ir::LiteralError| PyValueError::new_err(e.to_string());
    if kind == "U" || kind == "O" || kind == "S" {
        let flat = array.call_method0("ravel")?.call_method0("tolist")?;
        let strings = flat.try_iter()?.map(|item| {
            let item = item?;
            match item.cast::<PyString>() {
                Ok(text) => Ok(Arc::from(text.to_str()?)),
                Err(_) => Err(PyTypeError::new_err(format!("an array of objects has to hold strings, not {item}"))),
            }
        });
        return ir::Literal::from_strings(&shape, strings.collect::<PyResult<_>>()?).map_err(wrong);
    }
    let name: String = of_array.getattr("name")?.extract()?;
    let dtype = dtype_named(&name)?;
    // The bytes are in the order of this machine, which the literal takes: little-endian.
    let native = of_array.call_method1("newbyteorder", ("<",))?;
    let ordered = array.call_method1("astype", (native,)).or_else(|_| Ok::<_, PyErr>(array.clone()))?;
    let bytes: PyBackedBytes = match dtype.bits() {
        0..8 => ordered.call_method1("astype", ("uint8",)).or_else(|_| ordered.call_method1("view", ("uint8",)))?,
        _ => ordered,
    }
    .call_method0("tobytes")?
    .extract()?;
    if dtype == DType::Float4E2M1 {
        let codes: PyBackedBytes = array.call_method1("view", ("uint8",))?.call_method0("tobytes")?.extract()?;
        return ir::Literal::from_codes(dtype, &shape, &codes).map_err(wrong);
    }
    if dtype.is_small_integer() {
        return ir::Literal::from_codes(dtype, &shape, &bytes).map_err(wrong);
    }
    ir::Literal::from_bytes(dtype, &shape, Bytes::from_owner(bytes)).map_err(wrong)
}

fn unreadable(error: ir::StorageError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn numpy_dtype<'py>(py: Python<'py>, dtype: DType) -> PyResult<Bound<'py, PyAny>> {
    let numpy = py.import("numpy")?;
    match ML_DTYPES.iter().find(|(d, _)| *d == dtype) {
        None if dtype == DType::String => numpy.call_method1("dtype", ("object",)),
        None => numpy.call_method1("dtype", (dtype.name(),)),
        Some((_, name)) => {
            let missing =
                || PyTypeError::new_err(format!("NumPy has {dtype} only if the package ml_dtypes is installed"));
            let class = py.import("ml_dtypes").map_err(|_| missing())?.getattr(*name)?;
            numpy.call_method1("dtype", (class,))
        }
    }
}

#[pymethods]
impl Literal {
    #[new]
    #[pyo3(signature = (value: "typing.Any", dtype: "str | None" = None, *, name: "str | None" = None) -> "Literal")]
    fn new(value: &Bound<'_, PyAny>, dtype: Option<&str>, name: Option<String>) -> PyResult<Literal> {
        let dtype = dtype.map(dtype_named).transpose()?;
        Ok(Literal { inner: literal_of(value, dtype)?, name })
    }

    /// The name, if one was given.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The element type, such as `"float32"`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.inner.dtype().name()
    }

    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.inner.shape())
    }

    /// The number of elements.
    #[getter]
    fn size(&self) -> usize {
        self.inner.element_count()
    }

    /// The number of bytes of the elements; `None` for strings.
    #[getter]
    fn nbytes(&self) -> Option<usize> {
        self.inner.expanded_bytes()
    }

    /// Returns the elements as bytes, in row-major order and little-endian, packed if they take
    /// less than a byte.
    #[pyo3(signature = () -> "bytes")]
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let (Some(element), Some(len)) = (self.inner.as_splat(), self.inner.expanded_bytes()) else {
            return Ok(PyBytes::new(py, &self.inner.read_dense().map_err(unreadable)?));
        };
        // Python says if there is not enough memory.
        PyBytes::new_with(py, len, |bytes| {
            let bits = self.inner.dtype().bits();
            if bits >= 8 {
                bytes.chunks_mut(element.len().max(1)).for_each(|chunk| chunk.copy_from_slice(&element[..chunk.len()]));
                return Ok(());
            }
            let copies = |count: usize| (0..count).fold(0, |byte, i| byte | element[0] << (i * bits));
            bytes.fill(copies(8 / bits));
            let used = self.inner.element_count() % (8 / bits);
            if let (1.., Some(last)) = (used, bytes.last_mut()) {
                *last = copies(used);
            }
            Ok(())
        })
    }

    /// Returns the constant as an array of NumPy, which is read-only.
    #[pyo3(signature = () -> "typing.Any")]
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let shape = PyTuple::new(py, self.inner.shape())?;
        let dtype = numpy_dtype(py, self.inner.dtype())?;
        if let Some(strings) = self.inner.as_strings() {
            let list: Vec<&str> = strings.iter().map(|s| &**s).collect();
            let array = numpy.call_method1("array", (list, dtype))?.call_method1("reshape", (shape,))?;
            array.call_method1("setflags", (false,))?;
            return Ok(array);
        }
        let bytes = match (self.inner.to_codes(), self.inner.as_splat()) {
            (Some(codes), _) => PyBytes::new(py, &codes),
            (None, Some(element)) => PyBytes::new(py, element),
            (None, None) => PyBytes::new(py, &self.inner.read_dense().map_err(unreadable)?),
        };
        let flat = if self.inner.dtype().is_small_integer() {
            let codes = signed_codes(bytes.as_bytes(), self.inner.dtype());
            let array = numpy.call_method1("frombuffer", (PyBytes::new(py, &codes), "int8"))?;
            let array = array.call_method1("astype", (dtype,))?;
            array.call_method1("setflags", (false,))?;
            array
        } else {
            numpy.call_method1("frombuffer", (bytes, dtype))?
        };
        match self.inner.as_splat() {
            Some(_) => numpy.call_method1("broadcast_to", (flat.get_item(0)?, shape)),
            None => flat.call_method1("reshape", (shape,)),
        }
    }

    /// Returns the elements as numbers of Python, in nested lists. Needs NumPy.
    #[pyo3(signature = () -> "typing.Any")]
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.numpy(py)?.call_method0("tolist")
    }

    /// Returns the only element as a number of Python.
    #[pyo3(signature = () -> "bool | int | float")]
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if self.inner.element_count() != 1 {
            return Err(PyValueError::new_err(format!("the constant has {} elements", self.inner.element_count())));
        }
        let flat = |ints: Vec<i128>| ints.first().copied();
        if self.inner.dtype() == DType::Bool {
            return Ok(PyBool::new(py, self.inner.as_scalar().unwrap_or_default()).to_owned().into_any());
        }
        if let Some(n) = self.inner.to_i128s().and_then(flat) {
            return Ok(n.into_pyobject(py)?.into_any());
        }
        if let Some(v) = self.inner.elements::<f32>().and_then(|e| e.first().copied()) {
            return Ok(PyFloat::new(py, f64::from(v)).into_any());
        }
        if let Some(v) = self.inner.elements::<f64>().and_then(|e| e.first().copied()) {
            return Ok(PyFloat::new(py, v).into_any());
        }
        self.numpy(py)?.call_method0("item")
    }

    #[pyo3(signature = (dtype: "typing.Any" = None, copy: "bool | None" = None) -> "typing.Any")]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let array = self.numpy(py)?;
        let array = match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,))?,
            None => array,
        };
        if copy == Some(true) { array.call_method0("copy") } else { Ok(array) }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Literal>().is_ok_and(|other| self.inner == other.get().inner)
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.inner.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.inner.shape().iter().map(usize::to_string).collect();
        let name = self.name.as_ref().map_or_else(String::new, |n| format!(" {n:?}"));
        format!("<anfora.Literal{name} {}[{}]>", self.inner.dtype(), shape.join(", "))
    }

    #[pyo3(signature = () -> "tuple[typing.Any, typing.Any]")]
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let restore = py.import("anfora._anfora")?.getattr("_restore_literal")?;
        let strings: Option<Vec<&str>> = self.inner.as_strings().map(|all| all.iter().map(|s| &**s).collect());
        let splat = self.inner.as_splat().map(|element| PyBytes::new(py, element));
        let is_splat = splat.is_some();
        let bytes = match splat {
            Some(element) => Some(element),
            None if strings.is_none() => Some(self.tobytes(py)?),
            None => None,
        };
        let arguments = (self.dtype(), self.inner.shape().to_vec(), bytes, strings, self.name.clone(), is_splat);
        Ok((restore, arguments.into_pyobject(py)?))
    }
}

/// Makes a pickled literal again.
///
/// # Errors
/// `ValueError`, if the bytes are not those of such a literal.
#[pyfunction]
#[pyo3(signature = (dtype: "str", shape: "list[int]", data: "bytes | None", strings: "list[str] | None", name: "str | None", splat: "bool") -> "Literal")]
pub(crate) fn _restore_literal(
    dtype: &str,
    shape: Vec<usize>,
    data: Option<PyBackedBytes>,
    strings: Option<Vec<String>>,
    name: Option<String>,
    splat: bool,
) -> PyResult<Literal> {
    let made = match (data, strings) {
        (Some(element), None) if splat => {
            let dtype = dtype_named(dtype)?;
            if element.len() != dtype.bits().div_ceil(8) || ir::element_count(&shape).is_none() {
                return Err(PyValueError::new_err("the pickled literal has no such element"));
            }
            Ok(ir::Literal::splat_bytes(dtype, &shape, &element))
        }
        (_, Some(strings)) => ir::Literal::from_strings(&shape, strings.into_iter().map(Arc::from).collect()),
        (Some(data), None) => ir::Literal::from_bytes(dtype_named(dtype)?, &shape, Bytes::from_owner(data)),
        (None, None) => return Err(PyValueError::new_err("the pickled literal has no elements")),
    };
    let inner = made.map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(Literal { inner, name })
}

/// Returns small integers, one a byte, with the signs of signed ones extended.
fn signed_codes(codes: &[u8], dtype: DType) -> Vec<u8> {
    let is_signed = matches!(dtype, DType::Int2 | DType::Int4);
    let spare = if is_signed { 8 - dtype.bits() as u32 } else { 0 };
    codes.iter().map(|&c| ((c << spare).cast_signed() >> spare).cast_unsigned()).collect()
}
