"""Building functions, binding by binding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from . import _anfora


class FunctionBuilder(_anfora.FunctionBuilder):
    """Builds a function of a module.

    ::

        fb = FunctionBuilder(mod, "main")
        x = fb.param("x", "Tensor[(8,), float32]")
        with fb.dataflow() as region:
            y = fb.emit("add", x, 1.0, name="y")
            region.output(y)
        fb.finish(fb.emit("exp", y))
    """

    @contextmanager
    def dataflow(self) -> Iterator[Region]:
        """Begins a dataflow region, which ends with the ``with``."""
        region = Region()
        self.begin_dataflow()
        yield region
        self.end_dataflow(*region.outputs)


class Region:
    """A dataflow region that is being built."""

    def __init__(self) -> None:
        self.outputs: list[_anfora.Expr] = []

    def output(self, *variables: _anfora.Expr) -> None:
        """Makes variables of the region visible after it."""
        self.outputs.extend(variables)
