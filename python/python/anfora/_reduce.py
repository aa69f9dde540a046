"""Makes a program on which a pipeline fails smaller, as long as the pipeline fails in the same way.

``anfora reduce`` searches. Its test is ``python -m anfora._reduce JOB PROGRAM``, which runs the
pipeline on a program as a process with limits of its own, and ends with status 0 if that ends in
the same way as on the whole program: also by a signal, by its time or by its memory.

First, the last pass that began takes the place of the pipeline, on the program that it was given,
if it fails alone.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from . import _limited


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


def kind_of(done: _limited.Done) -> list[str | int]:
    """Returns what failures of one kind have in common: how the process ended, and the first line
    of its message without the names and the numbers of the program. Without a failure, the first
    item is ``ok``."""
    if done.status in ("timeout", "memory"):
        return [done.status, 0, ""]
    line = next(iter(done.message.splitlines()), "")
    return [done.status, done.code, re.sub(r'[%@]("(\\.|[^"\\])*"|[\w.$]+)|\d+', "", line)]


def smaller(text: str, pipeline: str, check: Check, seconds: float) -> tuple[str, str]:
    """Returns a smaller program, and a shorter pipeline, that fail in the same way; those that are
    given if there are none. Searches for this many seconds."""
    with tempfile.TemporaryDirectory(prefix="anfora-") as name:
        folder = Path(name)
        # The reproducer is needed once: it has the program that the failing pass was given.
        reproducer = folder / "reproducer.anf"
        kind = kind_of(check.run(text, pipeline, "--reproducer", str(reproducer)))
        if kind[0] == "ok":
            return text, pipeline
        if reproducer.exists():
            head, found, rest = reproducer.read_text(encoding="utf-8").partition("// ----\n")
            last = re.search(r"^// pipeline: (.*)$", head, re.MULTILINE)
            if found and last and kind_of(check.run(rest, last[1])) == kind:
                text, pipeline = rest, last[1]
        job, whole, best = (folder / file for file in ("job.json", "whole.anf", "best.anf"))
        job.write_text(json.dumps({"check": asdict(check), "pipeline": pipeline, "kind": kind}), encoding="utf-8")
        whole.write_text(text, encoding="utf-8")
        test = shlex.join([sys.executable, "-m", __name__, str(job)])
        # If the time is over, the command writes the smallest program so far.
        _limited.run(
            ["reduce", str(whole), "--test", test, "-o", str(best), "--quiet"],
            program=None,
            seconds=seconds,
            memory=check.memory,
        )
        return best.read_text(encoding="utf-8") if best.exists() else text, pipeline


def main(job: Path, program: Path) -> int:
    """Returns 0 if the pipeline of a job fails on a program as on the whole one."""
    told = json.loads(job.read_text(encoding="utf-8"))
    done = Check(**told["check"]).run(program.read_text(encoding="utf-8"), told["pipeline"])
    return 0 if kind_of(done) == told["kind"] else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
