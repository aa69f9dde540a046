"""What a stage of a system costs, as it comes out of a run, and the best of several runs."""

from dataclasses import dataclass


@dataclass
class Figure:
    """A stage that was run once: its CPU time in seconds, and how many operations there are after it (functions, after
    lifting), if that was counted."""

    stage: str
    n: int
    seconds: float
    operations: int | None = None


class Figures:
    """The best figure by system, stage and size.

    >>> figures = Figures()
    >>> for seconds in [0.5, 0.2, 0.3]:
    ...     figures.add("mlir", Figure("cse", 100_000, seconds, 59_710))
    >>> round(figures.microseconds("mlir", "cse", 100_000), 6)
    2.0
    >>> figures.microseconds("mlir", "dce", 100_000)
    >>> figures.largest("mlir", "cse", 1_000_000)
    100000
    >>> figures.largest("mlir", "cse", 10_000)
    """

    def __init__(self):
        self.best = {}

    def add(self, system, figure):
        key = system, figure.stage, figure.n
        known = self.best.get(key)
        if known and known.operations != figure.operations:
            raise SystemExit(f"{system}, {figure.stage} on {figure.n}: {known.operations} operations left, then {figure.operations}")
        if not known or figure.seconds < known.seconds:
            self.best[key] = figure

    def microseconds(self, system, stage, n):
        """What it costs a binding, or None."""
        figure = self.best.get((system, stage, n))
        return figure.seconds / n * 1e6 if figure else None

    def operations(self, system, stage, n):
        figure = self.best.get((system, stage, n))
        return figure.operations if figure else None

    def largest(self, system, stage, n):
        """The largest size, up to n, that there is a figure for, or None."""
        return max((size for s, t, size in self.best if (s, t) == (system, stage) and size <= n), default=None)

    def systems(self):
        return {system for system, _, _ in self.best}


def of_lines(lines):
    """Figures of the lines of JSON that `anfora-peers time` and tvm_worker.py print: the shortest of the runs in each.

    >>> of_lines(['{"stage": "print", "n": 10, "seconds": [0.5, 0.25], "operations": null}'])
    [Figure(stage='print', n=10, seconds=0.25, operations=None)]
    """
    import json

    lines = [json.loads(line) for line in lines]
    return [Figure(line["stage"], line["n"], min(line["seconds"]), line["operations"]) for line in lines]
