"""The bindings of a function, as a typed program goes through them."""

from __future__ import annotations

import anfora as af


def names(function: af.Function) -> list[str | None]:
    return [binding.name for binding in function.bindings]


def pairs(function: af.Function) -> list[tuple[int, af.Binding]]:
    return list(enumerate(reversed(function.bindings)))
