"""Programs in files."""

from __future__ import annotations

import os

from . import _anfora
from ._anfora import Module
from .onnx import from_onnx


def load(path: str | os.PathLike[str]) -> Module:
    """Reads a program from a file: ONNX for the suffix ``.onnx``, and text otherwise.

    Raises ``ParseError`` or ``OnnxError`` with what is wrong in the file.
    """
    name = os.fspath(path)
    if name.endswith(".onnx"):
        return from_onnx(name)
    with open(name, encoding="utf-8") as file:
        return _anfora.loads(file.read(), name)


def save(mod: Module, path: str | os.PathLike[str]) -> None:
    """Writes a program to a file: ONNX for the suffix ``.onnx``, and text otherwise."""
    name = os.fspath(path)
    if name.endswith(".onnx"):
        _anfora._save_onnx(mod, name)
        return
    with open(name, "w", encoding="utf-8") as file:
        file.write(mod.text())
