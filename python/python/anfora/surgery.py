"""Edits of programs by the names of their values: parts, names, shapes, attributes.

Each function returns a new module, and leaves its argument as it is. Names of values are given
without ``%`` and names of functions without ``@``. For a model, they are the names in its file.
Types are inferred again, and the result is verified. A mistake raises ``SurgeryError``, with the
nearest names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from . import _anfora
from ._anfora import Module

__all__ = ["extract", "rename", "set_attributes", "set_shapes"]


def _names(what: str, names: Iterable[str] | None) -> list[str] | None:
    if isinstance(names, str):
        raise TypeError(f"{what} is a list of names")
    return None if names is None else list(names)


def extract(
    mod: Module,
    inputs: Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
    *,
    entry: str = "main",
) -> Module:
    """Returns the part of a program that computes ``outputs`` from ``inputs``.

    An input is an input of the program, or a value that it computes, which becomes an input. An
    output is any value outside of branches and functions. Without ``inputs``, the part has the
    inputs of the program that its outputs need; without ``outputs``, the outputs of the program.
    """
    return _anfora._extract(mod, entry, _names("inputs", inputs), _names("outputs", outputs))


def rename(
    mod: Module,
    values: Mapping[str, str] | None = None,
    *,
    functions: Mapping[str, str] | None = None,
    symbols: Mapping[str, str] | None = None,
    entry: str = "main",
) -> Module:
    """Renames values (inputs, outputs, constants and all others), functions, and symbolic dimensions.

    Each mapping is from old names to new ones. All values are renamed at once, so two may swap
    their names.
    """
    pairs = [list((names or {}).items()) for names in (values, functions, symbols)]
    return _anfora._rename(mod, entry, *pairs)


def set_shapes(
    mod: Module, shapes: Mapping[str, Sequence[int | str | None]], *, entry: str = "main"
) -> Module:
    """Gives inputs their extents: numbers, or names of symbolic dimensions.

    ``None`` leaves an extent as it is. ``{"x": ["batch", 3, None, None]}`` makes the first extent of
    ``x`` symbolic.
    """
    for name, shape in shapes.items():
        if isinstance(shape, str):
            raise TypeError(f"the shape of {name} is a list of extents")
    return _anfora._set_shapes(mod, entry, [(name, list(shape)) for name, shape in shapes.items()])


def set_attributes(
    mod: Module,
    attributes: Mapping[str, Mapping[str, object]],
    *,
    entry: str = "main",
) -> Module:
    """Sets attributes of calls of operators: ``{"scores": {"axis": -1}}``.

    A call is found by the name of its value, or by the name of its node in the file. The attributes
    are those of the text format, which ``anfora ops`` lists. A value is a number, also one of
    NumPy, a string, a list, a tuple (a shape), a ``Literal`` or a ``Type``; a string also names an
    element type. All are set at once, so values may be given that fit only together.
    """
    edits = [(node, name, value) for node, values in attributes.items() for name, value in values.items()]
    return _anfora._set_attributes(mod, entry, edits)
