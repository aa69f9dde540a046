"""ONNX models: reading, writing, and making them smaller."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _anfora
from ._anfora import Module

#: What is accepted as a model: a path, bytes, or an object with ``SerializeToString``, such as an
#: ``onnx.ModelProto``.
Model = Any


def _parts(model: Model) -> tuple[bytes | None, str | None]:
    """Returns the bytes of a model, or its path."""
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model), None
    if isinstance(model, (str, os.PathLike)):
        return None, os.fspath(model)
    serialize = getattr(model, "SerializeToString", None)
    if serialize is None:
        kind = type(model).__name__
        raise TypeError(
            f"a model is a path, bytes, or has SerializeToString (as a ModelProto has), not {kind}"
        )
    return serialize(), None


def from_onnx(model: Model, *, data_folder: str | os.PathLike[str] | None = None) -> Module:
    """Reads a model. Its graph becomes the function ``main``.

    ``model`` is a path, bytes, or an ``onnx.ModelProto``. Weights that are in files of their own are
    found beside the path, or in ``data_folder``. Raises ``OnnxError`` with the place in the model.
    """
    data, path = _parts(model)
    folder = None if data_folder is None else os.fspath(data_folder)
    return _anfora._import_onnx(data, path, folder)[0]


def to_bytes(mod: Module, *, entry: str = "main", opset: int | None = None) -> bytes:
    """Returns the function ``entry`` as a model. Raises ``OnnxError`` if ONNX cannot express it."""
    return _anfora._export_onnx(mod, entry, opset)[0]


def to_onnx(mod: Module, *, entry: str = "main", opset: int | None = None) -> Any:
    """Returns the function ``entry`` as an ``onnx.ModelProto`` if the package onnx is installed, and
    as bytes otherwise. Raises ``OnnxError`` if ONNX cannot express it."""
    return _proto(to_bytes(mod, entry=entry, opset=opset))


def _proto(data: bytes) -> Any:
    try:
        import onnx
    except ImportError:
        return data
    return onnx.load_model_from_string(data)
