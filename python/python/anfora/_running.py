"""Programs, run by the interpreter of the toolkit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import _anfora
from ._anfora import Module


def run(
    mod: Module,
    *arguments: Any,
    function: str = "main",
    externals: Mapping[str, Callable[..., Any]] | None = None,
    seed: int = 0,
) -> Any:
    """Runs a function of a module, and returns its result.

    The interpreter is a reference: it computes each operator on its own, in the order of the
    program, on one processor.

    mod: the module.
    arguments: the arguments: literals, numbers, arrays of NumPy, or tuples of these. Numbers and
        lists of Python get the element type of the parameter.
    function: the name of the function.
    externals: callables that compute functions without a body, by their symbols: the attribute
        ``global_symbol``, or the name. They are called with literals, and return a literal or an
        array; a tuple or list of these is the fields of a tuple.
    seed: the seed of the operators that draw random numbers.

    Returns a ``Literal``, a tuple of results, or ``None`` for a result that is a function.

    Raises ``RunError`` if an argument does not fit or an operator fails. Exceptions of ``externals``
    are passed on.
    """
    return _anfora._run(mod, arguments, function, None if externals is None else dict(externals), seed)
