"""The differences of two modules."""

from __future__ import annotations

import functools
import json
from typing import Any

from ._anfora import FoundDifferences, Module, _diff
from ._html import Page


class Differences(Page):
    """All differences of two modules, by function and binding; false if there are none.

    ``str()`` has a line for each. ``functions`` and ``module`` are the same as lists of dicts, with
    the fields of ``anfora diff --json``. ``show()`` shows them as a page in a notebook, and ``save``
    writes the page to a file.
    """

    def __init__(self, found: FoundDifferences, names: tuple[str, str] = ("left", "right")) -> None:
        self._found = found
        self._names = names
        self.title = f"{names[0]} → {names[1]}"

    @functools.cached_property
    def _dict(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self._found.json())
        return parsed

    @property
    def functions(self) -> list[dict[str, Any]]:
        """The functions that differ."""
        functions: list[dict[str, Any]] = self._dict["functions"]
        return functions

    @property
    def module(self) -> list[dict[str, Any]]:
        """The changes of the modules themselves."""
        changes: list[dict[str, Any]] = self._dict["module"]
        return changes

    def to_json(self) -> str:
        """Returns the differences as JSON."""
        return self._found.json()

    def html(self) -> str:
        """Returns the differences as a page. It has the first 20,000 of them."""
        return self._found.page(*self._names)

    def __len__(self) -> int:
        return self._found.count()

    def __bool__(self) -> bool:
        return self._found.count() > 0

    def __str__(self) -> str:
        return self._found.text()

    def __repr__(self) -> str:
        return f"<Differences: {len(self)}>"


def diff(
    left: Module, right: Module, *, metadata: bool = False, names: tuple[str, str] = ("left", "right")
) -> Differences:
    """Returns all differences of two modules; none if and only if the modules are equal.

    Names of variables do not count. With ``metadata``, the metadata of tools counts too, such as the
    names of ONNX nodes. ``names`` are the names of the modules in a page of the differences.
    """
    return Differences(_diff(left, right, metadata), names)
