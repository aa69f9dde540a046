"""Mistakes that a checker of types has to find: each line names the kind of error."""

from __future__ import annotations

import anfora as af
from anfora import transform as T
from anfora.pattern import rewrite
from anfora.visitor import ExprVisitor

mod = af.loads(3)  # error: arg-type
mod["main"].bindings[0].op.upper()  # error: union-attr
text: str = mod["main"]  # error: assignment
mod.functoins  # error: attr-defined
T.O2("O2")  # error: arg-type
T.PassContext(opt_levle=3)  # error: call-arg
T.Sequential([3])  # error: list-item
T.EliminateCommonSubexpr(comutative=True)  # error: call-arg
rewrite(3, [])  # error: type-var
outcome: af.Module = T.FoldConstant().apply(mod)  # error: assignment
af.FunctionBuilder(mod, "f").param("x", 3)  # error: arg-type


class Wrong(ExprVisitor):
    def visit_call_(self, expr: str) -> None:  # error: override
        pass
