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
    externals: what computes functions without a body, by their symbols: the attribute
        ``global_symbol``, or the name. It is called with literals, and returns what is taken as an
        argument, or a tuple of these if the function returns a tuple.
    seed: the seed of the operators that draw random numbers.

    Returns a ``Literal``, a tuple of results, or ``None`` for a result that is a function.

    Raises ``RunError`` if an argument does not fit or an operator fails. Exceptions of ``externals``
    are passed on.
    """
    return _anfora._run(mod, arguments, function, None if externals is None else dict(externals), seed)
