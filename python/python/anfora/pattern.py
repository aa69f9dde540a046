"""Patterns and rules.

::

    from anfora.pattern import Rule, capture, op, rewrite

    rewrite(func, [Rule("x*1", op("multiply", capture("x"), 1), capture("x"))])
    rewrite(func, [Rule("x*1", "multiply(%x, 1)", "%x")])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from . import _anfora
from ._anfora import (
    DataflowBlock,
    Function,
    Match,
    Module,
    Pattern,
    Rule,
    RuleSet,
    any_,
    any_literal,
    any_of,
    call,
    capture,
    global_,
    literal,
    none_,
    op,
    op_in,
    rest,
    tuple_,
    tuple_getitem,
)

_Target = TypeVar("_Target", Function, Module, DataflowBlock)


def rewrite(target: _Target, rules: RuleSet | Rule | Iterable[Rule]) -> _Target:
    """Rewrites a function, a dataflow region or a module by rules, until none applies.

    Returns the target. If a rule is invalid or fails, the target is as it was.
    """
    _anfora._rewrite(target, rules)
    return target


def count_rewrites(
    target: Function | Module | DataflowBlock, rules: RuleSet | Rule | Iterable[Rule]
) -> dict[str, int]:
    """Rewrites as ``rewrite`` does, and returns the number of rewrites by rule."""
    return _anfora._rewrite(target, rules)


class Matcher:
    """Finds a pattern in functions, and changes nothing."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern

    def find_all(self, function: Function) -> list[Match]:
        """Returns the matches in a function, in program order."""
        return _anfora._find(function, self.pattern)


__all__ = [
    "Match",
    "Matcher",
    "Pattern",
    "Rule",
    "RuleSet",
    "any_",
    "any_literal",
    "any_of",
    "call",
    "capture",
    "count_rewrites",
    "global_",
    "literal",
    "none_",
    "op",
    "op_in",
    "rest",
    "rewrite",
    "tuple_",
    "tuple_getitem",
]
