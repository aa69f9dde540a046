"""The layout of a module of anfora, read from its text."""

from __future__ import annotations

import re
from typing import NamedTuple

from . import _anfora


class Layout(NamedTuple):
    """Facts about a module that its text tells in the least time."""

    #: The numbers of bindings of the dataflow regions, by function, in program order.
    sizes: dict[str, list[int]]
    #: True if there are closures, which LambdaLifting makes.
    has_closures: bool


#: The first words of a line that binds or returns a closure.
_CLOSURE = re.compile(r'(let %("([^"\\]|\\.)*"|[^" ]*)(: [^=]*)? = )?make_closure\(')


def layout_of(mod: _anfora.Module) -> Layout:
    """Returns the layout of a module."""
    sizes: dict[str, list[int]] = {}
    has_closures = False
    names = iter(name for name, fn in mod.functions.items() if fn.is_definition)
    current: list[int] = []
    depth = 0
    #: The depths and the numbers of the regions that are open.
    regions: list[tuple[int, int]] = []
    for line in mod.text(elide=True).splitlines():
        text = line.lstrip()
        has_closures = has_closures or _CLOSURE.match(text) is not None
        if depth == 0 and text.startswith("def "):
            current = sizes[next(names)] = []
        if regions and depth == regions[-1][0] and text.startswith(("let ", "%")):
            current[regions[-1][1]] += 1
        if text == "dataflow {":
            regions.append((depth + 1, len(current)))
            current.append(0)
        depth += text.endswith("{") - text.startswith("}")
        if regions and depth < regions[-1][0]:
            regions.pop()
    return Layout(sizes, has_closures)
