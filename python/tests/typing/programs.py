"""Programs, handles, visitors and rules, as a typed program uses them."""

from __future__ import annotations

import copy

import anfora as af
from anfora.pattern import Match, Matcher, Pattern, Rule, RuleSet
from anfora.pattern import any_literal, capture, count_rewrites, op
from anfora.visitor import ExprMutator, ExprVisitor, post_order_visit


def look(mod: af.Module) -> list[str]:
    function: af.Function = mod["main"]
    lines: list[str] = [str(function.ret_type)]
    for binding in function.body.bindings:
        called: str | af.Expr | None = binding.op
        shape: tuple[int | str | None, ...] | None = binding.type.shape
        place: af.Location | None = binding.loc
        operands: list[af.Expr] = binding.args
        constants = [a.literal.item() for a in operands if a.literal is not None]
        lines.append(f"{binding.name} {called} {shape} {place} {constants}")
    same: bool = copy.copy(mod) == mod
    return lines if same else []


class Count(ExprVisitor):
    def __init__(self) -> None:
        self.calls = 0

    def visit_call_(self, expr: af.Expr) -> None:
        self.calls += 1


class ToTanh(ExprMutator):
    def visit_call_(self, expr: af.Expr) -> af.Expr | None:
        if expr.op != "exp":
            return None
        return self.emit("tanh", expr.args[0], name="t")


def double(match: Match) -> af.Expr:
    return match.emit("add", match["x"], match["x"])


def change(mod: af.Module) -> dict[str, int]:
    count = Count()
    count.visit(mod)
    function: af.Function = ToTanh().visit(mod["main"])
    module: af.Module = ToTanh().visit(mod)
    post_order_visit(function, lambda expr: None)
    pattern: Pattern = op("multiply", capture("x"), any_literal()) | op("exp", capture("x"))
    found: list[Match] = Matcher(pattern).find_all(function)
    rules = RuleSet([Rule("double", pattern, double, where=lambda m: m["x"].type.ndim == 1)])
    return count_rewrites(module, rules) if found else {}


def build() -> af.Function:
    mod = af.Module()
    fb = af.FunctionBuilder(mod, "main")
    x = fb.param("x", "Tensor[(n,), float32]")
    with fb.dataflow() as region:
        y = fb.emit("add", x, 1.0, name="y")
        region.output(y)
    return fb.finish(fb.emit("exp", y))


def mistakes() -> list[str | None]:
    try:
        af.loads("def @main(")
    except af.ParseError as error:
        return [diagnostic.help for diagnostic in error.diagnostics]
    except af.ConfigError as error:
        return [str(error), error.pass_name]
    return []


def models(data: bytes) -> af.Module:
    mod: af.Module = af.onnx.from_onnx(data)
    written: bytes = af.onnx.to_bytes(mod, opset=18)
    return af.onnx.from_onnx(written)
