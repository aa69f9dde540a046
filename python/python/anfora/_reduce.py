"""Makes a program on which a pipeline fails smaller, as long as the pipeline fails in the same way.

``python -m anfora._reduce FOLDER`` reads the program and the job in a folder, and writes the
smallest program so far there whenever it has found one. So nothing that was found is lost if the
process is ended.

1. The last pass that began takes the place of the pipeline, on the program that it was given, if it
   fails alone.
2. Functions are removed, and expressions become zeros of their type or one of their operands: first
   many at once, then half as many, down to one by one. Bindings that nothing uses any more are
   removed.
3. Lines of the text are removed, if the rest is a program: bindings, and blocks with all that is in
   them.
"""

from __future__ import annotations

import functools
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _limited, transform
from ._anfora import Expr, Literal, Module, PassContext, loads
from ._errors import AnforaError
from .visitor import ExprMutator

#: The files of a job.
JOB, PROGRAM, BEST = "job.json", "program.anf", "best.json"


@dataclass(frozen=True)
class Check:
    """A way to run pipelines on programs and to look at the end of it."""

    program: list[str] | None
    seconds: float
    memory: int | None
    level: int

    def arguments(self, file: str, pipeline: str) -> list[str]:
        """Returns the arguments of the command that runs a pipeline on a file."""
        level = f"-O{self.level}"
        return ["opt", file, level, "--passes", pipeline, "--check-meaning", "--emit", "none"]

    def run(self, text: str, pipeline: str, *extra: str) -> _limited.Done:
        """Runs a pipeline on a program."""
        arguments = [*self.arguments("-", pipeline), "--from", "anf", "--quiet", *extra]
        return _limited.run(
            arguments,
            program=self.program,
            seconds=self.seconds,
            memory=self.memory,
            stdin=text.encode(),
        )


def kind_of(done: _limited.Done) -> tuple[str, int, str]:
    """Returns what failures of one kind have in common: how the process ended, and the first line
    of its message without the names and the numbers of the program. Without a failure, the first
    item is ``ok``."""
    if done.status in ("timeout", "memory"):
        return done.status, 0, ""
    line = next(iter(done.message.splitlines()), "")
    return done.status, done.code, re.sub(r"[%@][\w.]+|\d+", "", line)


class _Replace(ExprMutator):
    """Replaces the expressions with some numbers, in the order of the walk, and counts them all."""

    def __init__(self, numbers: range, substitute: Callable[[_Replace, Expr], Any]) -> None:
        self._numbers = numbers
        self._substitute = substitute
        self.count = 0

    def _each(self, expr: Expr) -> Any:
        number = self.count
        self.count += 1
        return self._substitute(self, expr) if number in self._numbers else None

    visit_call_ = visit_tuple_ = visit_tuple_getitem_ = visit_if_ = visit_function_ = _each


def _zeros(mutator: _Replace, expr: Expr) -> Any:
    """Returns zeros of the type of an expression; ``None`` if it is not a tensor of known
    extents."""
    ty = expr.type
    if ty.kind == "tuple" and not ty.fields:
        return None if expr.kind == "tuple" else mutator.emit_tuple()
    if ty.kind != "tensor" or ty.shape is None or not all(isinstance(n, int) for n in ty.shape):
        return None
    extents = "".join(f"{n}, " for n in ty.shape)
    return _zero_literal(f"Tensor[({extents}), {ty.dtype}]", "false" if ty.dtype == "bool" else "0")


_made: dict[str, Literal | None] = {}


def _zero_literal(ty: str, zero: str) -> Literal | None:
    if ty not in _made:
        text = f"def @main() {{ let %x = dense<{ty}>[{zero}]; %x }}"
        _made[ty] = loads(text)["main"].bindings[0].value.literal
    return _made[ty]


def _operand(_: _Replace, expr: Expr) -> Any:
    """Returns the first operand that has the type of an expression; ``None`` if there is none."""
    return next((arg for arg in expr.args if arg.type == expr.type), None)


class _Reduction:
    """The smallest program that fails so far, and the search for a smaller one."""

    def __init__(self, folder: Path, text: str, pipeline: str, check: Check, end: float) -> None:
        self.folder = folder
        self.text, self.pipeline = text, pipeline
        self.check = check
        self.end = end
        self.runs = 1
        # The reproducer is needed once: it has the program that the failing pass was given.
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            reproducer = Path(temporary) / "reproducer.anf"
            self.kind = kind_of(check.run(text, pipeline, "--reproducer", str(reproducer)))
            self._reproduced = reproducer.read_text() if reproducer.exists() else ""

    def run(self) -> None:
        """Searches until nothing gets smaller, or the time is over."""
        if self.kind[0] == "ok":
            return
        self.keep_pass()
        before = None
        while before != self.text and not self.is_over():
            before = self.text
            self.remove_functions()
            for substitute in (_zeros, _operand):
                self.replace(substitute)
            self.remove_lines()

    def is_over(self) -> bool:
        """Returns true if the time is over."""
        return time.monotonic() >= self.end

    def fails(self, text: str, pipeline: str) -> bool:
        """Keeps a program and a pipeline if they fail in the same way."""
        if self.is_over():
            return False
        self.runs += 1
        if kind_of(self.check.run(text, pipeline)) != self.kind:
            return False
        self.text, self.pipeline = text, pipeline
        self.write()
        return True

    def write(self) -> None:
        """Writes the program and the pipeline. A reader sees the old or the new ones."""
        unfinished = self.folder / f"{BEST}.new"
        best = {"text": self.text, "pipeline": self.pipeline, "runs": self.runs}
        unfinished.write_text(json.dumps(best), encoding="utf-8")
        os.replace(unfinished, self.folder / BEST)

    def keep_pass(self) -> None:
        """Leaves out the passes before the one that fails, if it fails without them."""
        head, found, text = self._reproduced.partition("// ----\n")
        pipeline = re.search(r"^// pipeline: (.*)$", head, re.MULTILINE)
        if found and pipeline:
            self.fails(text, pipeline[1])

    def remove_functions(self) -> None:
        """Removes functions one by one, unless others call them."""
        for name in list(loads(self.text)):
            mod = loads(self.text)
            if name in mod and len(mod) > 1:
                self.offer(mod, functools.partial(_remove, name=name))

    def replace(self, substitute: Callable[[_Replace, Expr], Any]) -> None:
        """Replaces expressions: all, halves, quarters, and so on."""
        counter = _Replace(range(0), substitute)
        counter.visit(loads(self.text))
        count = chunk = counter.count
        while chunk >= 1 and not self.is_over():
            # From the end: what nothing uses any more is then gone before it is looked at.
            begin = count - chunk
            while begin > -chunk and not self.is_over():
                mutator = _Replace(range(max(begin, 0), begin + chunk), substitute)
                self.offer(loads(self.text), mutator.visit)
                begin -= chunk
            counter = _Replace(range(0), substitute)
            counter.visit(loads(self.text))
            count = counter.count
            chunk //= 2

    def remove_lines(self) -> None:
        """Removes lines: all, halves, quarters, and so on; then each with the block that it
        opens."""
        lines = self.text.splitlines(keepends=True)
        chunk = len(lines)
        while chunk >= 1 and not self.is_over():
            begin = len(lines) - chunk
            while begin > -chunk:
                # A single line goes with its block.
                end = begin + chunk if chunk > 1 else _end_of_block(lines, begin)
                rest = lines[: max(begin, 0)] + lines[end:]
                if self.offer_text("".join(rest)):
                    lines = rest
                begin -= chunk
            chunk //= 2

    def offer_text(self, text: str) -> bool:
        """Keeps a text if it is a program that fails."""
        try:
            loads(text).verify()
        except AnforaError:
            return False
        return self.fails(text, self.pipeline)

    def offer(self, mod: Module, edit: Callable[[Module], Any]) -> None:
        """Edits a program, removes what nothing uses, and keeps it if it is smaller and fails."""
        try:
            edit(mod)
            for text in _texts(mod):
                if len(text) < len(self.text) and self.fails(text, self.pipeline):
                    return
        except AnforaError:
            # The edit does not fit the program.
            return


def _end_of_block(lines: list[str], begin: int) -> int:
    """Returns the line behind a line and behind the block that it opens."""
    depth, end = 0, begin
    while end < len(lines):
        depth += lines[end].count("{") - lines[end].count("}")
        end += 1
        if depth <= 0:
            break
    return end


def _remove(mod: Module, name: str) -> None:
    mod.remove(name)


def _texts(mod: Module) -> Iterable[str]:
    """Returns a program without what nothing uses, and as it is."""
    mod.verify()
    with PassContext(opt_level=3):
        yield transform.DeadCodeElimination()(mod).text()
    yield mod.text()


def main(folder: Path) -> None:
    """Does the job in a folder."""
    job = json.loads((folder / JOB).read_text(encoding="utf-8"))
    end = time.monotonic() + job["reduce_seconds"]
    text = (folder / PROGRAM).read_text(encoding="utf-8")
    check = Check(job["program"], job["seconds"], job["memory"], job["level"])
    _Reduction(folder, text, job["pipeline"], check, end).run()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
