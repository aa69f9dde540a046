"""Constants, numbers and attributes of TVM as text of anfora, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx

from ._tvm_codec import FROM_DTYPE, TO_DTYPE, TvmError, dtype_name, kind, quoted
from ._tvm_versions import make_tensor, tensor_of

#: The element types of numbers that are operands, which Relax has besides tensors of rank 0.
SCALARS = frozenset("bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split())


def show(ty: Any) -> str:
    """Returns a type for a message."""
    try:
        return str(ty)
    except Exception:
        return kind(ty)


def is_plain(ty: Any) -> bool:
    """Returns true for a tensor type of an element type that anfora has, with numbers as
    extents."""
    if ty.vdevice is not None or not isinstance(ty.shape, relax.ShapeExpr) or dtype_name(ty.dtype) not in TO_DTYPE:
        return False
    return all(isinstance(d, tirx.IntImm) and d.value >= 0 and dtype_name(d.ty) == "int64" for d in ty.shape.values)


def literal_text(constant: Any) -> str:
    """Returns a constant as the text format writes it."""
    tensor = tensor_of(constant)
    name = dtype_name(tensor.dtype)
    dtype = TO_DTYPE.get(name or "")
    if dtype is None or not is_plain(constant.ty):
        raise TvmError(f"a constant of the type {show(constant.ty)} has no form in anfora")
    try:
        array = tensor.numpy()
    except Exception as e:
        raise TvmError(f"a constant of {name} cannot be read: {e}") from e
    shape = tuple(array.shape)
    listed = f"({', '.join(map(str, shape))}{',' * (len(shape) == 1)})"
    if array.size == 0:
        return f"dense<Tensor[{listed}, {dtype}]>[]"
    data = np.ascontiguousarray(array).tobytes()
    return f'dense<Tensor[{listed}, {dtype}]>"0x{data.hex()}"'


def attribute_text(value: Any) -> str:
    """Returns an attribute as the text format writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(map(attribute_text, value))}]"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return f"{value!r}f64"
    return str(value)


def number_text(item: Any) -> str | None:
    """Returns a number that is an operand, as the text of a tensor of rank 0; ``None`` for all
    else."""
    name = dtype_name(item.ty) if isinstance(item, (tirx.FloatImm, tirx.IntImm)) else None
    if name not in SCALARS:
        return None
    data = np.asarray(item.value, name).tobytes()
    return f'dense<Tensor[(), {TO_DTYPE[name]}]>"0x{data.hex()}"'


def constant(literal: Any) -> Any:
    """Returns a constant of Relax."""
    if literal.dtype not in FROM_DTYPE:
        raise TvmError(f"TVM has no constants of {literal.dtype}")
    return make_tensor(tvm.runtime.tensor(literal.numpy()))


def number(literal: Any, name: str) -> Any:
    """Returns a number of Relax, with the digits that the name of its variable adds."""
    array = literal.numpy()
    value = array.item()
    words = name.split()
    if isinstance(value, float) and len(words) == 3:
        try:
            exact = float(words[1])
        except ValueError:
            exact = value
        value = exact if array.dtype.type(exact) == array else value
    make = tirx.FloatImm if isinstance(value, float) else tirx.IntImm
    return make(FROM_DTYPE[literal.dtype], value)
