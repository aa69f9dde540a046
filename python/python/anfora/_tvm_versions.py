"""The constants of Relax, which apache-tvm 0.26 and 0.27 have under different names."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

#: True for 0.26, which has a class for each kind of constant.
_HAS_CLASSES = hasattr(relax, "Constant")


def tensor_of(expr: Any) -> Any:
    """Returns the tensor of a constant; ``None`` for any other expression."""
    name = type(expr).__name__
    if name == "Constant":
        return expr.data
    if name == "GenericConst" and isinstance(expr.value, tvm.runtime.Tensor):
        return expr.value
    return None


def is_string(expr: Any) -> bool:
    """Returns true for a string."""
    return type(expr).__name__ == "StringImm"


def dtype_of(expr: Any) -> str | None:
    """Returns the name of a data type that is a value; ``None`` for any other expression."""
    name = type(expr).__name__
    if name == "DataTypeImm" or name == "GenericConst" and tensor_of(expr) is None:
        return str(expr.value)
    return None


def make_tensor(tensor: Any) -> Any:
    """Returns a tensor as a constant."""
    if _HAS_CLASSES:
        return relax.Constant(tensor)
    return tvm.ir.GenericConst(tensor, relax.TensorType(tensor.shape, str(tensor.dtype)))


def make_string(text: str) -> Any:
    """Returns a string as a value."""
    return (relax if _HAS_CLASSES else tvm.ir).StringImm(text)


def make_dtype(name: str) -> Any:
    """Returns a data type as a value."""
    if _HAS_CLASSES:
        return relax.DataTypeImm(name)
    return tvm.ir.GenericConst(tvm.DataType(name), relax.AnyType())
