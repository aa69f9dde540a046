"""Programs in files."""

from __future__ import annotations

import os

from . import _anfora
from ._anfora import Module
from ._errors import Diagnostic, ParseError
from .onnx import from_onnx


def load(path: str | os.PathLike[str]) -> Module:
    """Reads a program from a file: ONNX for the suffix ``.onnx``, and text otherwise.

    Raises ``ParseError`` or ``OnnxError`` with what is wrong in the file.
    """
    name = os.fsdecode(path)
    if name.endswith(".onnx"):
        return from_onnx(name)
    with open(name, "rb") as file:
        data = file.read()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        begin = data.rfind(b"\n", 0, error.start) + 1
        column = len(data[begin : error.start].decode("utf-8")) + 1
        found = Diagnostic(
            "error",
            f"byte {error.start} is not UTF-8 text",
            file=name,
            line=line,
            column=column,
        )
        raise ParseError(str(found), [found]) from None
    return _anfora.loads(text, name)


def save(mod: Module, path: str | os.PathLike[str]) -> None:
    """Writes a program to a file: ONNX for the suffix ``.onnx``, and text otherwise.

    If the program cannot be written, the file is as it was.
    """
    name = os.fsdecode(path)
    if not isinstance(mod, Module):
        raise TypeError(f"a Module is saved, not {type(mod).__name__}")
    if name.endswith(".onnx"):
        _anfora._save_onnx(mod, name)
        return
    # The file is opened when the text is there.
    text = mod.text()
    with open(name, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
