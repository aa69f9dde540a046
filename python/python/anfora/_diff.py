"""The differences of two modules."""

from __future__ import annotations

import json
from typing import Any

from ._anfora import Module, _diff


class Differences:
    """All differences of two modules, by function and binding; false if there are none.

    ``str()`` has a line for each. ``functions`` and ``module`` are the same as lists of dicts, with
    the fields of ``anfora diff --json``.
    """

    def __init__(self, count: int, text: str, as_json: str) -> None:
        self._count = count
        self._text = text
        self._json = as_json
        self._parsed: dict[str, Any] | None = None

    def _dict(self) -> dict[str, Any]:
        if self._parsed is None:
            parsed: dict[str, Any] = json.loads(self._json)
            self._parsed = parsed
        return self._parsed

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The functions that differ."""
        functions: list[dict[str, Any]] = self._dict()["functions"]
        return functions

    @property
    def module(self) -> list[dict[str, Any]]:
        """The changes of the modules themselves."""
        changes: list[dict[str, Any]] = self._dict()["module"]
        return changes

    def to_json(self) -> str:
        """Returns the differences as JSON."""
        return self._json

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Differences: {self._count}>"


def diff(left: Module, right: Module, *, metadata: bool = False) -> Differences:
    """Returns all differences of two modules; none if and only if the modules are equal.

    Names of variables do not count. With ``metadata``, the metadata of tools counts too, such as the
    names of ONNX nodes.
    """
    return Differences(*_diff(left, right, metadata))
