"""The differences of two modules of Relax, binding by binding, with a list as the stack."""

from __future__ import annotations

from typing import Any

import tvm
import tvm_ffi
from tvm import relax

from ._tvm_codec import encode, is_missing, kind
from ._tvm_literals import show
from ._tvm_symbols import handle


class _Names:
    """Numbers the variables and symbols of one side in the order of their first use."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def __call__(self, item: Any) -> int:
        return self._numbers.setdefault(handle(item), len(self._numbers))


#: The operands that are no variables.
_PLAIN = ("ShapeExpr", "IntImm", "FloatImm")


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
        """Returns true if the operands of two calls are of the same kinds, and those that are
        shapes or numbers are the same."""
        if len(left) != len(right):
            return False
        pairs = [(a, b, kind(a)) for a, b in zip(left, right)]
        return all(of == kind(b) and (of not in _PLAIN or self.same(a, b)) for a, b, of in pairs)

    def same_value(self, left: Any, right: Any) -> bool:
        """Returns true if two values are of the same kind, with the same operator and
        attributes."""
        of = kind(left)
        if of != kind(right):
            return False
        if of != "Call":
            return True
        op, left_attrs, right_attrs = left.op, left.attrs, right.attrs
        if isinstance(op, tvm.ir.Op) and not op.same_as(right.op):
            return False
        if left_attrs is None or right_attrs is None:
            same_attrs = left_attrs is None and right_attrs is None
        else:
            same_attrs = bool(tvm_ffi.structural_equal(left_attrs, right_attrs))
        return same_attrs and self.same_operands(left.args, right.args)

    def same_types(self, left_var: Any, left: Any, right_var: Any, right: Any) -> bool:
        """Returns true if two variables have the same type, and so have their values."""
        if not self.same(left_var, right_var):
            return False
        are_shared = left_var is not None and left_var.same_as(left) and right_var.same_as(right)
        return are_shared or self.same(left, right)


def _shape(seq: Any) -> list[tuple[str, int]]:
    return [(kind(b), len(b.bindings)) for b in seq.blocks]


def are_equal(left: Any, right: Any, has_free_symbols: bool) -> bool:
    """Returns true if two modules are structurally equal. Symbols that nothing binds, which TVM
    compares by identity, correspond in each function."""
    if not has_free_symbols:
        return bool(tvm_ffi.structural_equal(left, right))
    ours = {gv.name_hint: fn for gv, fn in left.functions.items()}
    theirs = {gv.name_hint: fn for gv, fn in right.functions.items()}
    return (
        ours.keys() == theirs.keys()
        and all(tvm_ffi.structural_equal(fn, theirs[name], map_free_vars=True) for name, fn in ours.items())
        and bool(tvm_ffi.structural_equal(left.attrs, right.attrs))
    )


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
                if not sides.same(a.ty, b.ty) or not sides.same_value(a.body, b.body):
                    message = message or f"a block of the type {show(a.ty)} has no form in anfora (in @{name})"
                for p, q in zip(a.blocks, b.blocks):
                    for m, n in zip(p.bindings, q.bindings):
                        of, value, var = kind(m), m.value, m.var
                        other, other_var = n.value, n.var
                        same = of == kind(n) and kind(var) == kind(other_var) and sides.same_value(value, other)
                        if not same or not sides.same_types(var.ty, value.ty, other_var.ty, other.ty):
                            found.append((name, var))
                        elif isinstance(value, (relax.Function, relax.SeqExpr, relax.If)):
                            todo.append((value, other))
    return found, message
