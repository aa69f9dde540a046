"""The differences of two modules of Relax, binding by binding, with a list as the stack."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import relax, tirx

from ._tvm_codec import encode, is_missing, kind
from ._tvm_from import handle, show


class _Names:
    """Numbers the variables and symbols of one side in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def __call__(self, item: Any) -> int:
        return self._numbers.setdefault(handle(item), len(self._numbers))


#: The operands that are no variables.
_PLAIN = (relax.ShapeExpr, tirx.IntImm, tirx.FloatImm)


class _Sides:
    """Compares types of two functions, whose symbols correspond."""

    def __init__(self) -> None:
        self._left, self._right = _Names(), _Names()

    def same(self, left: Any, right: Any) -> bool:
        """Returns true if two types are the same."""
        if is_missing(left) or is_missing(right):
            return is_missing(left) and is_missing(right)
        if tvm_ffi.structural_equal(left, right):
            return True
        return encode(left, self._left, self._left) == encode(right, self._right, self._right)


    def same_operands(self, left: Any, right: Any) -> bool:
        """Returns true if the operands of two calls that are shapes or numbers are the same."""
        if not isinstance(left, tvm.ir.Call):
            return True
        return all(self.same(a, b) for a, b in zip(left.args, right.args) if isinstance(a, _PLAIN))

    def same_types(self, left: Any, right: Any) -> bool:
        """Returns true if the types of two bindings are the same."""
        a, b, c, d = left.var.ty, left.value.ty, right.var.ty, right.value.ty
        return self.same(a, c) and (a is not None and a.same_as(b) and c.same_as(d) or self.same(b, d))


def _same_value(left: Any, right: Any) -> bool:
    """Returns true if two values are of the same kind, with the same operator and attributes."""
    if kind(left) != kind(right):
        return False
    if isinstance(left, tvm.ir.Call):
        if isinstance(left.op, tvm.ir.Op) and not left.op.same_as(right.op):
            return False
        same_attrs = left.attrs is None and right.attrs is None or tvm_ffi.structural_equal(left.attrs, right.attrs)
        return bool(same_attrs) and [kind(a) for a in left.args] == [kind(a) for a in right.args]
    return True


def _shape(seq: Any) -> list[tuple[str, int]]:
    return [(kind(b), len(b.bindings)) for b in seq.blocks]


def differences(left: Any, right: Any) -> tuple[list[tuple[str, Any]], str | None]:
    """Returns the functions and variables of the first module whose values or types differ in the
    second, and a message if it differs elsewhere."""
    found: list[tuple[str, Any]] = []
    message: str | None = None
    for gv, fn in left.functions.items():
        if not isinstance(fn, relax.Function):
            continue
        name = gv.name_hint
        sides = _Sides()
        todo: list[tuple[Any, Any]] = [(fn, right[name])]
        if not sides.same(fn.ty, right[name].ty):
            message = message or f"a function of the type {show(fn.ty)} has no form in anfora (in @{name})"
        while todo:
            a, b = todo.pop()
            if isinstance(a, relax.Function):
                for p, q in zip(a.params, b.params):
                    if not sides.same(p.ty, q.ty):
                        message = message or f"a parameter of the type {show(p.ty)} has no form in anfora (in @{name})"
                if not sides.same(a.ret_ty, b.ret_ty):
                    message = message or f"a result of the type {show(a.ret_ty)} has no form in anfora (in @{name})"
                todo.append((a.body, b.body))
            elif isinstance(a, relax.If):
                todo += [(a.true_branch, b.true_branch), (a.false_branch, b.false_branch)]
            elif isinstance(a, relax.SeqExpr):
                if _shape(a) != _shape(b):
                    message = message or f"the blocks of bindings of @{name} have no form in anfora"
                    break
                if not sides.same(a.ty, b.ty) or not _same_value(a.body, b.body):
                    message = message or f"a block of the type {show(a.ty)} has no form in anfora (in @{name})"
                for p, q in zip(a.blocks, b.blocks):
                    for m, n in zip(p.bindings, q.bindings):
                        same = kind(m) == kind(n) and kind(m.var) == kind(n.var) and _same_value(m.value, n.value)
                        same = same and sides.same_operands(m.value, n.value)
                        if not same or not sides.same_types(m, n):
                            found.append((name, m.var))
                        elif isinstance(m.value, (relax.Function, relax.SeqExpr, relax.If)):
                            todo.append((m.value, n.value))
    return found, message
