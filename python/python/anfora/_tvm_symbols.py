"""The symbols of a function of Relax: their names in anfora, and the types that tell all of
them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from ._errors import ParseError
from ._tvm_codec import TO_DTYPE, TvmError, dtype_name, encode, is_missing, parse_type, type_from
from ._tvm_literals import is_plain

_IDENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
#: Words that cannot be the name of a symbol.
_WORDS = frozenset("floordiv ceildiv mod min max let def fn if else dataflow output none true false dense op".split())


def handle(item: Any) -> int:
    """Returns the identity of an object of TVM, whose ``==`` may make an expression."""
    return int(item.__chandle__())


def is_free(name: str) -> bool:
    """Returns true for the name of a symbol that nothing binds, which is in forms alone."""
    return name.startswith("$")


def _stem(var: Any) -> str:
    stem = str(var.name)
    if not _IDENT.match(stem) or stem in _WORDS or stem in TO_DTYPE.values():
        stem = "n_" + re.sub(r"\W", "_", stem)
    return stem


def _unused(stem: str, used: set[str]) -> str:
    name, count = stem, 0
    while name in used:
        count += 1
        name = f"{stem}_{count}"
    used.add(name)
    return name


class FreeSymbols:
    """The symbols of a module that nothing binds. Each is the same one wherever it is."""

    def __init__(self) -> None:
        self._names: dict[int, tuple[str, Any]] = {}
        self._used: set[str] = set()
        self._functions: dict[str, dict[int, str]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._functions.values()))

    def of(self, function: str) -> dict[int, str]:
        """Returns the names of those of a function, by handle."""
        return self._functions.setdefault(function, {})

    def add(self, function: str, symbols: list[Any]) -> None:
        """Adds symbols that a function does not bind."""
        for var in symbols:
            if handle(var) not in self._names:
                self._names[handle(var)] = _unused(f"${_stem(var)}", self._used), var
            self.of(function)[handle(var)] = self._names[handle(var)][0]


class Symbols:
    """The symbols of a function. ``free`` are those that are known to have no binding, and
    ``is_variable`` returns true for a variable of the program, which may be an extent as well."""

    def __init__(self, free: dict[int, str], is_variable: Callable[[Any], bool]) -> None:
        self._free = free
        self._is_variable = is_variable
        self._names: dict[int, tuple[str, Any]] = {}
        self._used: set[str] = set()
        self._bound: set[int] = set()
        self._exact: dict[int, tuple[bool, Any]] = {}

    def name(self, var: Any) -> str:
        """Returns the name of a symbol."""
        known = self._names.get(handle(var))
        if known is not None:
            return known[0]
        if self._is_variable(var):
            raise TvmError(f"the variable {var.name} in the type of a function has no form in anfora")
        if dtype_name(var.ty) != "int64":
            raise TvmError(f"a symbol of {dtype_name(var.ty)} has no form in anfora: {var.name}")
        name = self._free.get(handle(var)) or _unused(_stem(var), self._used)
        self._names[handle(var)] = name, var
        return name

    def extent(self, var: Any) -> str | None:
        """Returns the name of a symbol in a type of anfora, where variables of the program and
        symbols that nothing binds are unknown extents."""
        if handle(var) not in self._names and self._is_variable(var):
            return None
        name = self.name(var)
        return None if is_free(name) else name

    def bind(self, ty: Any) -> None:
        """Records that the symbols of a type are bound, if the type may bind them."""
        if is_missing(ty) or isinstance(ty, relax.TensorType) and is_plain(ty):
            return
        # A function type binds symbols of its own.
        encode(ty, handle, lambda var: self._bound.add(handle(var)), self._is_variable)

    def unbound(self) -> list[Any]:
        """Returns the symbols that no type binds, and that were not known to be free."""
        return [
            var
            for at, (name, var) in self._names.items()
            if at not in self._bound and not is_free(name)
        ]

    def is_exact(self, ty: Any) -> bool:
        """Returns true if the closest type of anfora says all that the type says."""
        known = self._exact.get(handle(ty))
        if known is not None:
            return known[0]
        exact = self._comes_back(ty)
        self._exact[handle(ty)] = exact, ty
        return exact

    def _comes_back(self, ty: Any) -> bool:
        if is_missing(ty) or isinstance(ty, (relax.ShapeType, tvm.ir.PrimType)):
            return False
        if isinstance(ty, relax.TensorType) and is_plain(ty):
            return True
        variables: dict[str, Any] = {}

        def name(var: Any) -> str | None:
            text = self.extent(var)
            if text is not None:
                variables[text] = var
            return text

        try:
            back = type_from(parse_type(ty, name), variables.__getitem__)
        except (ParseError, TvmError, KeyError):
            return False
        return bool(tvm_ffi.structural_equal(ty, back))
