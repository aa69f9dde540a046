"""The declared functions that stand for expressions of Relax without a counterpart in anfora."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import relax

from ._tvm_codec import quoted


class Forms:
    """The declarations of the forms of a module."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken
        self._names: dict[tuple[str, ...], str] = {}
        self.declarations: list[str] = []

    def name(
        self, stem: str, form: str, operands: int, symbols: int, result: str, pure: bool, pattern: int | None = None
    ) -> str:
        """Returns the function that stands for a form. ``pattern`` is the kind that FuseOps goes
        by."""
        key = (stem, form, str(operands), str(symbols), result, str(pure), str(pattern))
        if key in self._names:
            return self._names[key]
        number = len(self._names)
        while f"{stem}#{number}" in self._taken:
            number += 1
        name = self._names[key] = f"{stem}#{number}"
        self._taken.add(name)
        params = []
        if symbols:
            listed = ", ".join(f"s{i}" for i in range(symbols))
            params.append(f"%symbols: Tensor[({symbols},), int64, [{listed}]]")
        params += [f"%{i}: Any" for i in range(operands)]
        params += ["Pure=1"] * pure + [f"tvm_form={quoted(form)}"]
        if pattern is not None:
            params.append(f"op_pattern={pattern}")
        self.declarations.append(f"declare @{quoted(name)}({', '.join(params)}) -> {result};\n")
        return name


#: Operators whose results are memory. TVM calls them pure, but two equal calls are not one.
_ALLOCATORS = frozenset(
    f"relax.{name}"
    for name in "builtin.alloc_tensor vm.alloc_storage vm.alloc_tensor memory.alloc_storage memory.alloc_tensor".split()
)


def is_pure(root: Any) -> bool:
    """Returns true if an expression has no effect, and equal ones have equal results."""
    todo = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, tvm.ir.Call):
            if isinstance(item.op, tvm.ir.Op):
                if not item.op.get_attr("FPurity") or item.op.name in _ALLOCATORS:
                    return False
            elif not getattr(item.op.ty, "purity", False):
                return False
            todo.extend(item.args)
        elif isinstance(item, relax.Tuple):
            todo.extend(item.fields)
        elif isinstance(item, relax.TupleGetItem):
            todo.append(item.tuple_value)
    return True
