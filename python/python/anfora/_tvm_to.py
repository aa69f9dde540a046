"""From anfora to Relax: a module."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any

import tvm
from tvm import relax, tirx

from . import _anfora
from ._tvm_codec import TvmError
from ._tvm_definitions import by_definitions
from ._tvm_from import SHARED_ATTRS
from ._tvm_layout import layout_of
from ._tvm_to_functions import FunctionReader
from ._tvm_to_values import NoCounterpartError, NotNormalError, typed


class ModuleReader:
    """Makes a module of Relax from a module of anfora."""

    def __init__(self, mod: _anfora.Module) -> None:
        self._mod = mod
        self.forms: dict[str, str] = {}
        self._takes_symbols: set[str] = set()
        self._variables: dict[str, Any] = {}
        self._others: dict[str, Any] = {}
        self._free: dict[str, Any] = {}
        self._sizes: dict[str, list[int]] = {}
        #: The parameters of new functions that calls pass scalars to.
        self._scalars: dict[str, set[int]] = {}
        #: The functions to read, in order, and the one that is being read.
        self._todo: OrderedDict[str, None] = OrderedDict()
        self._current = ""
        #: By function, the functions that were read and name it.
        self._users: dict[str, dict[str, None]] = {}
        self._readers: dict[str, FunctionReader] = {}
        #: The readers that have not read their function yet.
        self._unread: dict[str, FunctionReader] = {}
        #: The element types that calls state for their results, by operator.
        self.out_dtypes: dict[str, str] = json.loads(mod.attrs.get("tvm_out_dtypes", "{}"))
        self._definitions: dict[str, _anfora.Function] = {}
        #: True if functions that are values are closures, which Relax calls in a way of its own.
        self.has_closures = False
        for name, fn in mod.functions.items():
            attrs = fn.attrs
            if "tvm_function" in attrs:
                self._others[name] = self._other(attrs)
            elif fn.is_definition:
                self._definitions[name] = fn
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

    def constants(self, name: str) -> list[_anfora.Expr]:
        """Returns the constants in a function that are operands of its calls in Relax."""
        return self._readers[name].constants if name in self._readers else []

    def is_kernel_call(self, call: _anfora.Expr) -> bool:
        """Returns true if a call is one of a function of the tensor level."""
        callee: Any = call.op
        if isinstance(callee, str) or callee.kind != "global":
            return False
        return str(callee.name) in self.forms and str(callee.name).startswith("relax.call_tir")

    def variable(self, name: str) -> Any:
        """Returns the variable of a function."""
        if name not in self._variables:
            raise TvmError(f"there is no function @{name}")
        self._users.setdefault(name, {})[self._current] = None
        return self._variables[name]

    def pass_scalars(self, name: str, operands: list[Any], types: list[Any] | None, first: int) -> None:
        """Takes note of the scalars that a new function is called with, where it has tensors.
        ``first`` is the parameter of the first operand."""
        fn = self._definitions.get(name)
        if fn is None or fn.is_public:
            return
        new = {
            i
            for i, (operand, ty) in enumerate(zip(operands, (types or ())[first:]), first)
            if isinstance(ty, relax.TensorType) and isinstance(operand.ty, tvm.ir.PrimType)
        }
        if new:
            self._scalars.setdefault(name, set()).update(new)
            # TVM gives a variable a type only once, so the functions that have it get another one.
            self._sign(name)
            for again in (name, *self._users.pop(name, ())):
                self._todo.setdefault(again)

    def _sign(self, name: str) -> None:
        """Makes the variable of a function."""
        self._variables[name] = typed(tvm.ir.GlobalVar(name), self._prepare(name))

    def _prepare(self, name: str) -> Any:
        """Makes the reader of a function, and returns the type of the function."""
        reader = self._unread[name] = self._readers[name] = FunctionReader(self, self._sizes.get(name, []))
        return reader.signature(self._definitions[name], self._scalars.get(name, set()))

    def _read(self) -> dict[str, Any]:
        """Returns the functions of Relax. A call may come after the function that it says more
        about, so functions are read again."""
        made: dict[str, Any] = {}
        errors: dict[str, TvmError] = {}
        self._todo = OrderedDict.fromkeys(self._definitions)
        while self._todo:
            name, _ = self._todo.popitem(last=False)
            self._current = name
            if name not in self._unread:
                self._prepare(name)
            try:
                made[name] = self._unread.pop(name).function(self._definitions[name])
                errors.pop(name, None)
            except TvmError as e:
                errors[name] = type(e)(f"{e} (in @{name})")
        if errors:
            raise next(iter(errors.values()))
        return {name: made[name] for name in self._definitions}

    def module(self) -> Any:
        """Returns the module of Relax."""
        self._sizes, self.has_closures = layout_of(self._mod)
        functions: dict[Any, Any] = {}
        for name, fn in self._others.items():
            self._variables[name] = var = typed(tvm.ir.GlobalVar(name), getattr(fn, "ty", None))
            functions[var] = fn
        for name in self._definitions:
            self._sign(name)
        for name, fn in self._read().items():
            functions[self._variables[name]] = fn
        given = self._mod.attrs
        attrs = {key: given[key] for key in SHARED_ATTRS if isinstance(given.get(key), str)}
        if "tvm_attrs" in given:
            attrs.update(tvm.ir.load_json(given["tvm_attrs"]).items())
        return tvm.IRModule(functions, attrs=attrs or None)


def _in_normal_form(mod: _anfora.Module) -> _anfora.Module:
    """Returns a module in A-normal form."""
    return _anfora._make_pass("ToANormalForm", {})(mod, _anfora.PassContext())


def relax_of(mod: _anfora.Module) -> Any:
    """Returns a module of Relax. One that is not in A-normal form is brought into it, and operators
    that Relax does not have are written by their definitions."""
    changes = {NotNormalError: _in_normal_form, NoCounterpartError: by_definitions}
    while True:
        try:
            return ModuleReader(mod).module()
        except (NotNormalError, NoCounterpartError) as error:
            change = changes.pop(type(error), None)
            if change is None:
                raise
            mod = change(mod)
