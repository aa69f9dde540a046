"""From anfora to Relax: a module."""

from __future__ import annotations

import json
from typing import Any

import tvm
from tvm import relax, tirx

from . import _anfora
from ._tvm_codec import TvmError
from ._tvm_from import SHARED_ATTRS
from ._tvm_layout import layout_of
from ._tvm_to_functions import FunctionReader
from ._tvm_to_values import NotNormalError, typed


class ModuleReader:
    """Makes a module of Relax from a module of anfora."""

    def __init__(self, mod: _anfora.Module) -> None:
        self._mod = mod
        self.forms: dict[str, str] = {}
        self._takes_symbols: set[str] = set()
        self._variables: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._free: dict[str, Any] = {}
        self._readers: dict[str, FunctionReader] = {}
        #: The element types that calls state for their results, by operator.
        self.out_dtypes: dict[str, str] = json.loads(mod.attrs.get("tvm_out_dtypes", "{}"))
        self._definitions: list[tuple[str, _anfora.Function]] = []
        #: True if functions that are values are closures, which Relax calls in a way of its own.
        self.has_closures = False
        for name, fn in mod.functions.items():
            attrs = fn.attrs
            if "tvm_function" in attrs:
                self._others[name] = self._other(attrs)
            elif fn.is_definition:
                self._definitions.append((name, fn))
            elif "tvm_form" in attrs:
                self.forms[name] = attrs["tvm_form"]
                if fn.params and fn.params[0].name == "symbols":
                    self._takes_symbols.add(name)
            else:
                raise TvmError(f"the function @{name} is only declared, which Relax has no form of")

    def _other(self, attrs: dict[str, Any]) -> Any:
        """Returns a function that anfora has only carried, with the symbol that it has now."""
        fn = tvm.ir.load_json(attrs["tvm_function"])
        symbol = attrs.get("global_symbol")
        if symbol is None or fn.attrs is not None and fn.attrs.get("global_symbol") == symbol:
            return fn
        return fn.with_attr("global_symbol", symbol)

    def takes_symbols(self, name: str) -> bool:
        """Returns true if a form has symbols, which its first operand lists."""
        return name in self._takes_symbols

    def free_symbol(self, name: str) -> Any:
        """Returns the variable of a symbol that nothing binds."""
        if name not in self._free:
            self._free[name] = tirx.Var(name[1:], "int64")
        return self._free[name]

    def left_out(self, name: str) -> set[int]:
        """Returns the parameters that a function does without in Relax."""
        return self._readers[name].left_out if name in self._readers else set()

    def variable(self, name: str) -> Any:
        """Returns the variable of a function."""
        if name not in self._variables:
            raise TvmError(f"there is no function @{name}")
        return self._variables[name]

    def module(self) -> Any:
        """Returns the module of Relax."""
        sizes, self.has_closures = layout_of(self._mod)
        functions: dict[Any, Any] = {}
        for name, fn in self._others.items():
            self._variables[name] = var = typed(tvm.ir.GlobalVar(name), getattr(fn, "ty", None))
            functions[var] = fn
        for name, fn in self._definitions:
            self._variables[name] = var = tvm.ir.GlobalVar(name)
            self._readers[name] = FunctionReader(self, sizes.get(name, []))
            relax.expr._update_type(var, self._readers[name].signature(fn))
        for name, fn in self._definitions:
            try:
                functions[self._variables[name]] = self._readers[name].function(fn)
            except TvmError as e:
                raise type(e)(f"{e} (in @{name})") from e
        given = self._mod.attrs
        attrs = {key: given[key] for key in SHARED_ATTRS if isinstance(given.get(key), str)}
        if "tvm_attrs" in given:
            attrs.update(tvm.ir.load_json(given["tvm_attrs"]).items())
        return tvm.IRModule(functions, attrs=attrs or None)


def relax_of(mod: _anfora.Module) -> Any:
    """Returns a module of Relax. One that is not in A-normal form is brought into it."""
    try:
        return ModuleReader(mod).module()
    except NotNormalError:
        normal = _anfora._make_pass("ToANormalForm", {})(mod, _anfora.PassContext())
        return ModuleReader(normal).module()
