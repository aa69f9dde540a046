"""Passes, contexts, pipelines and instruments, as a typed program writes them."""

from __future__ import annotations

import anfora as af
from anfora import instrument as I
from anfora import transform as T
from anfora.pattern import Rule, rewrite


@T.function_pass(opt_level=1, name="MultiplyByOne")
def multiply_by_one(func: af.Function, mod: af.Module, ctx: T.PassContext) -> af.Function:
    return rewrite(func, [Rule("x*1", "multiply(%x, 1)", "%x")])


@T.module_pass
def plain(mod: af.Module, ctx: T.PassContext) -> af.Module:
    for name, function in mod.functions.items():
        function.set_attr("seen", name)
    return mod


@T.dataflowblock_pass
def region(block: af.DataflowBlock, mod: af.Module, ctx: T.PassContext) -> af.DataflowBlock:
    first: str | None = block.bindings[0].name
    assert len(block.bindings) >= len(block.outputs), first
    return block


class Watch(I.PassInstrument):
    def should_run(self, mod: af.Module, info: T.PassInfo) -> bool:
        return info.opt_level < 3

    def run_after_pass(self, mod: af.Module, info: T.PassInfo) -> None:
        print(info.name, mod.binding_count)


def optimize(mod: af.Module) -> af.Module:
    timing = I.PassTimingInstrument()
    watchers = [timing, Watch()]
    with T.PassContext(opt_level=3, disabled_pass=["FuseOps"], instruments=watchers) as ctx:
        small: af.Module = T.Sequential([T.FoldConstant(), plain, region])(mod)
        outcome = T.parse_pipeline("O2").apply(small)
    changed: bool = outcome.changed
    seconds: float = timing.total
    folded: int = ctx.statistics["FoldConstant"]["folded"]
    messages: list[str] = [remark.message for remark in ctx.take_remarks()]
    print(changed, seconds, folded, messages, timing.render())
    return T.O2(T.EliminateCommonSubexpr(commutative=True)(small))
