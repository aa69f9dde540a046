"""Visitors and mutators.

A loop in Rust calls their methods in program order. Nested expressions take no Python frames, so a
program of any depth is walked on any stack. A method does not call ``super()``: the loop visits the
operands of an expression before the expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from . import _anfora
from ._anfora import Binding, DataflowBlock, Expr, Function, Module


class _Skip:
    """The type of ``SKIP``."""

    def __repr__(self) -> str:
        return "SKIP"


#: If ``visit_binding_``, ``visit_if_``, ``visit_function_`` or ``visit_branch_`` returns this, the
#: walk skips the contents of the binding or expression.
SKIP: Final = _Skip()


class ExprVisitor:
    """Visits a program without changing it. Override the methods for the expressions of interest.

    Calls, tuples and projections are visited after their operands. An ``if``, a branch, a function
    value and a binding are visited before their contents; these methods may return ``SKIP`` to skip
    the contents. All other results are ignored.
    """

    _only: tuple[str, ...] | None = None

    def only(self, *ops: str) -> ExprVisitor:
        """Calls ``visit_call_`` only for calls of these operators. Returns the visitor."""
        self._only = ops
        return self

    def visit(self, target: Function | Module | Expr) -> None:
        """Walks a function, all functions of a module, or an expression and its parts."""
        _anfora._visit(self, target, self._only)

    def visit_expr(self, target: Function | Module | Expr) -> None:
        """As ``visit``."""
        self.visit(target)

    def visit_call_(self, expr: Expr) -> Any:
        """Visits a call of an operator or of a function."""

    def visit_tuple_(self, expr: Expr) -> Any:
        """Visits a tuple."""

    def visit_tuple_getitem_(self, expr: Expr) -> Any:
        """Visits a projection."""

    def visit_if_(self, expr: Expr) -> Any:
        """Visits an ``if``, before its branches."""

    def leave_if_(self, expr: Expr) -> Any:
        """Visits an ``if`` again, after its branches."""

    def visit_branch_(self, expr: Expr) -> Any:
        """Visits a branch of an ``if``, before its bindings."""

    def visit_function_(self, expr: Expr) -> Any:
        """Visits a function value, before its block."""

    def leave_function_(self, expr: Expr) -> Any:
        """Visits a function value again, after its block."""

    def visit_binding_(self, binding: Binding) -> Any:
        """Visits a binding, before its value."""

    def visit_var_def_(self, expr: Expr) -> Any:
        """Visits a variable where it comes into scope."""

    def visit_var_(self, expr: Expr) -> Any:
        """Visits the use of a variable."""

    def visit_constant_(self, expr: Expr) -> Any:
        """Visits the use of a constant."""

    def visit_global_var_(self, expr: Expr) -> Any:
        """Visits the use of a global function."""

    def visit_dataflow_block_(self, expr: Expr) -> Any:
        """Enters a dataflow region, which begins with this binding."""

    def leave_dataflow_block_(self, expr: Expr) -> Any:
        """Leaves a dataflow region, which ended with this binding."""


class ExprMutator(_anfora.MutatorBase):
    """Rewrites a program. The result of a method replaces the expression. If a method returns
    ``None`` or the expression itself, nothing changes.

    The operands and blocks of an expression are rewritten before the expression. ``emit``,
    ``emit_tuple``, ``emit_tuple_getitem`` and ``match_cast`` bind further values before the current
    binding.
    """

    _only: tuple[str, ...] | None = None

    def only(self, *ops: str) -> ExprMutator:
        """Calls ``visit_call_`` only for calls of these operators. Returns the mutator."""
        self._only = ops
        return self

    _Target = TypeVar("_Target", Function, Module, DataflowBlock)

    def visit(self, target: _Target) -> _Target:
        """Rewrites a function, a dataflow region, or all functions of a module, and returns it."""
        _anfora._mutate(self, target, self._only)
        return target

    def visit_expr(self, target: _Target) -> _Target:
        """As ``visit``."""
        return self.visit(target)

    def visit_call_(self, expr: Expr) -> Any:
        """Rewrites a call of an operator or of a function."""

    def visit_tuple_(self, expr: Expr) -> Any:
        """Rewrites a tuple."""

    def visit_tuple_getitem_(self, expr: Expr) -> Any:
        """Rewrites a projection."""

    def visit_if_(self, expr: Expr) -> Any:
        """Rewrites an ``if``."""

    def visit_function_(self, expr: Expr) -> Any:
        """Rewrites a function value."""


#: The names that TVM has for these classes.
PyExprVisitor = ExprVisitor
PyExprMutator = ExprMutator


class _PostOrder(ExprVisitor):
    def __init__(self, function: Callable[[Expr], Any]) -> None:
        self._function = function

    def _call(self, expr: Expr) -> None:
        self._function(expr)

    visit_call_ = visit_tuple_ = visit_tuple_getitem_ = leave_if_ = leave_function_ = _call
    visit_var_ = visit_constant_ = visit_global_var_ = _call


def post_order_visit(target: Function | Module | Expr, function: Callable[[Expr], Any]) -> None:
    """Calls ``function`` for each expression, after its parts."""
    _PostOrder(function).visit(target)


class _PostOrderRewrite(ExprMutator):
    def __init__(self, function: Callable[[Expr], Any]) -> None:
        self._function = function

    def _call(self, expr: Expr) -> Any:
        return self._function(expr)

    visit_call_ = visit_tuple_ = visit_tuple_getitem_ = visit_if_ = visit_function_ = _call


_Target = TypeVar("_Target", Function, Module, DataflowBlock)


def post_order_rewrite(target: _Target, function: Callable[[Expr], Any]) -> _Target:
    """Calls ``function`` for each call, tuple, projection, ``if`` and function value, after its
    parts. The result replaces the expression; ``None`` keeps it. Returns the target."""
    return _PostOrderRewrite(function).visit(target)
