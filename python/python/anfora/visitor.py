"""Visitors and mutators.

Their methods are called in program order by a loop in Rust: there is no frame of Python for a level
of the program, so a program of any depth is walked on any stack. There is no ``super()`` to call:
the operands of an expression were visited before it.
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


#: Returned from ``visit_binding_``, ``visit_if_``, ``visit_function_`` or ``visit_branch_``: what is
#: inside is left out.
SKIP: Final = _Skip()


class ExprVisitor:
    """Looks at a program. Override the methods for what is of interest; all return nothing.

    Calls, tuples and projections are visited after their operands. A branch, a function value and a
    binding are visited before what is inside of them, and may return ``SKIP`` to leave it out.
    """

    _only: tuple[str, ...] | None = None

    def only(self, *ops: str) -> ExprVisitor:
        """Calls ``visit_call_`` only for calls of these operators. Returns the visitor."""
        self._only = ops
        return self

    def visit(self, target: Function | Module | Expr) -> None:
        """Walks a function, all functions of a module, or an expression with what is inside."""
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
        """Enters a dataflow region, which begins with this block."""

    def leave_dataflow_block_(self, expr: Expr) -> Any:
        """Leaves a dataflow region."""


class ExprMutator(_anfora.MutatorBase):
    """Rewrites a program. What a method returns takes the place of the expression; ``None`` or the
    same expression changes nothing.

    Operands and blocks are rewritten before the expression that has them. ``emit`` and its relatives
    bind further values before the present binding.
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
    """Calls ``function`` for each call, tuple, projection, branch and function value, after its
    parts; what it returns takes the place of the expression. Returns the target."""
    return _PostOrderRewrite(function).visit(target)
