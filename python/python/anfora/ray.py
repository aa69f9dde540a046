"""Fleets of models and of random programs, on the workers of a Ray cluster.

Each task runs the program ``anfora`` as a process with limits of time and of memory of its own. A
task whose worker dies runs again, on another one. The package ray is needed when a run begins:
``pip install 'anfora[ray]'``.
"""

from __future__ import annotations

import importlib
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TextIO, TypeVar

from . import _anfora, _limited, _reduce

#: Tasks that are handed to Ray for each of its processors before the first of them has ended.
_TASKS_PER_CPU = 4
#: The seconds between two looks at the tasks, and between two lines of a progress bar in a file.
_TICK, _LINE = 0.2, 10.0
_BAR = 24
_UNITS = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class _Row(Protocol):
    #: The headings of a table of such rows.
    headings: ClassVar[tuple[str, ...]]

    @property
    def status(self) -> str:
        """The end of the task, as in ``SlimRow``."""

    def cells(self) -> tuple[str, ...]:
        """Returns the texts of the row in a table."""


@dataclass(frozen=True)
class SlimRow:
    """The end of a model."""

    path: str
    #: ``ok``, ``failed``, ``timeout``, ``memory``, ``crashed``, or ``lost``: the workers that had
    #: the task died, more often than it may be tried again.
    status: str
    #: The file that was written; ``None`` if there is none.
    output: str | None = None
    seconds: float = 0.0
    #: The most memory that the process held at once, if the system tells.
    peak_bytes: int | None = None
    #: The nodes, and the bytes of the file, before and after.
    nodes: tuple[int, int] | None = None
    sizes: tuple[int, int] | None = None
    #: The reason of a failure.
    message: str = ""

    headings: ClassVar[tuple[str, ...]] = ("model", "status", "nodes", "bytes", "s", "peak MiB", "message")

    def cells(self) -> tuple[str, ...]:
        """Returns the texts of the row in a table."""
        pairs = [f"{p[0]} -> {p[1]}" if p else "" for p in (self.nodes, self.sizes)]
        return (self.path, self.status, *pairs, *_figures(self.seconds, self.peak_bytes), _first(self.message))


@dataclass(frozen=True)
class CampaignRow:
    """The end of a pipeline on the random program of a seed."""

    seed: int
    pipeline: str
    #: As that of ``SlimRow``. A pass that changes a result has ``failed``.
    status: str
    seconds: float = 0.0
    peak_bytes: int | None = None
    #: The reason of a failure.
    message: str = ""
    #: The smallest program found that fails in the same way, as text, and the command that shows
    #: the failure. ``None`` if nothing has failed.
    program: str | None = None
    command: str | None = None
    #: The command that fails on the program of the seed.
    original: str | None = None

    headings: ClassVar[tuple[str, ...]] = ("seed", "pipeline", "status", "s", "peak MiB", "lines", "message")

    def cells(self) -> tuple[str, ...]:
        """Returns the texts of the row in a table."""
        lines = "" if self.program is None else str(self.program.count("\n"))
        figures = _figures(self.seconds, self.peak_bytes)
        return (str(self.seed), self.pipeline, self.status, *figures, lines, _first(self.message))


def _figures(seconds: float, peak: int | None) -> tuple[str, str]:
    return f"{seconds:.2f}", "" if peak is None else f"{peak / (1 << 20):.0f}"


def _first(message: str) -> str:
    return next(iter(message.splitlines()), "")[:80]


_R = TypeVar("_R", bound=_Row)


class Run(Generic[_R]):
    """Tasks that are running. Iteration gives a row for each result as soon as it is ready."""

    def __init__(
        self,
        ray: Any,
        jobs: Sequence[Any],
        start: Callable[[Any], Any],
        lost: Callable[[Any, str], list[_R]],
        progress: bool | TextIO,
    ) -> None:
        self._ray = ray
        self._jobs = enumerate(jobs)
        self._start, self._lost = start, lost
        self._pending: dict[Any, tuple[int, Any]] = {}
        self._rows: dict[int, list[_R]] = {}
        self._ready: list[_R] = []
        self._limit = _TASKS_PER_CPU * max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._progress = _Progress(len(jobs), progress)
        self._fill()

    @property
    def rows(self) -> list[_R]:
        """The rows so far, in the order of what was asked for."""
        return [row for number in sorted(self._rows) for row in self._rows[number]]

    @property
    def failures(self) -> list[_R]:
        """The rows so far whose status is not ``ok``."""
        return [row for row in self.rows if row.status != "ok"]

    def wait(self) -> Run[_R]:
        """Waits for all tasks. Returns the run."""
        for _ in self:
            pass
        return self

    def cancel(self) -> None:
        """Ends all tasks. What is ready stays; nothing else comes."""
        for reference in self._pending:
            self._ray.cancel(reference, force=True)
        self._pending.clear()
        self._jobs = enumerate(())
        self._progress.close()

    def table(self) -> str:
        """Returns the rows so far as a table, in the order of what was asked for."""
        rows = self.rows
        lines = [rows[0].headings, *(row.cells() for row in rows)] if rows else []
        widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
        texts = ["  ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in lines]
        return "\n".join(text.rstrip() for text in texts)

    def __str__(self) -> str:
        return self.table()

    def __iter__(self) -> Iterator[_R]:
        return self

    def __next__(self) -> _R:
        try:
            while not self._ready and self._pending:
                self._look()
        except BaseException:
            self.cancel()
            raise
        if not self._ready:
            self._progress.close()
            raise StopIteration
        return self._ready.pop(0)

    def _fill(self) -> None:
        """Hands tasks to Ray, up to a number that keeps all workers busy."""
        while len(self._pending) < self._limit:
            number, job = next(self._jobs, (-1, None))
            if number < 0:
                return
            self._pending[self._start(job)] = number, job

    def _look(self) -> None:
        """Waits a moment for tasks, and takes the results of those that have ended."""
        pending = list(self._pending)
        done, _ = self._ray.wait(pending, num_returns=1, timeout=_TICK)
        if done:
            done, _ = self._ray.wait(pending, num_returns=len(pending), timeout=0)
        for reference in done:
            number, job = self._pending.pop(reference)
            try:
                rows: list[_R] = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                rows = self._lost(job, str(error))
            self._rows[number] = rows
            self._ready += rows
            self._progress.add(rows)
        self._fill()
        self._progress.show()


class _Progress:
    """A line about how far a run is: redrawn on a terminal, written now and then elsewhere."""

    def __init__(self, total: int, out: bool | TextIO) -> None:
        self._out: TextIO | None = sys.stderr if out is True else out or None
        self._total, self._done = total, 0
        self._counts: dict[str, int] = {}
        self._begin = self._shown = time.monotonic()
        self._last = ""

    def add(self, rows: Sequence[_Row]) -> None:
        """Counts a task that has ended."""
        self._done += 1
        for row in rows:
            self._counts[row.status] = self._counts.get(row.status, 0) + 1

    def show(self, end: str = "") -> None:
        """Writes the line, if that is due."""
        if self._out is None:
            return
        now = time.monotonic()
        redraws = self._out.isatty()
        if not end and not redraws and now - self._shown < _LINE:
            return
        filled = _BAR * self._done // max(1, self._total)
        counts = ", ".join(f"{n} {status}" for status, n in sorted(self._counts.items()))
        took = now - self._begin
        line = f"[{'#' * filled}{'.' * (_BAR - filled)}] {self._done}/{self._total} in {took:.0f} s  {counts}"
        self._shown = now
        if line == self._last and not redraws:
            return
        self._out.write("\r" + line.ljust(len(self._last)) + end if redraws else line + "\n")
        self._last = line
        self._out.flush()

    def close(self) -> None:
        """Writes the line for the last time."""
        self.show("\n")
        self._out = None


def slim_files(
    paths: Iterable[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    *,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    exact: bool = False,
    contrib: bool = False,
    size_threshold: int | None = None,
    disable: Sequence[str] = (),
    check: int = 0,
    timeout: float = 600.0,
    memory: int | str | None = "4GiB",
    retries: int = 3,
    progress: bool | TextIO = True,
    program: Sequence[str] | None = None,
) -> Run[SlimRow]:
    """Makes models smaller, a task for each, and returns the run.

    The results have the names of the models, in the folder ``output``, which all workers must
    reach. Every model gets a row, also if its task fails. A result appears whole or not at all.

    ``timeout`` and ``memory`` limit the process of each model: its seconds, and its bytes of
    address space (on Linux). ``retries`` is how often a model is tried again when the worker that
    has it dies. ``progress`` shows a bar on standard error, or in a file. ``program`` is the
    program that takes the place of ``anfora``. All other options are those of ``anfora.slim``.

    Raises ``ImportError`` if ray is not installed, and ``ValueError`` if two models have one name.
    """
    sources = [os.path.abspath(os.fspath(path)) for path in paths]
    folder = os.path.abspath(os.fspath(output))
    names: dict[str, str] = {}
    for source in sources:
        other = names.setdefault(os.path.basename(source), source)
        if other != source or os.path.dirname(source) == folder:
            raise ValueError(f"the result of {source} would take the place of that of {other}")
    sources = list(names.values())
    if exact and contrib:
        raise ValueError("contrib changes rounding, and exact keeps all bits")
    if isinstance(disable, str):
        raise TypeError("disable is a list of names of passes")
    flags = ["--exact"] * exact + ["--contrib"] * contrib + [f"--check={check}"]
    flags += [f"--disable={name}" for name in disable]
    flags += [] if size_threshold is None else [f"--size-threshold={size_threshold}"]
    for name, shape in (input_shapes or {}).items():
        extents = ",".join("?" if extent is None else str(extent) for extent in shape)
        flags.append(f"--input-shape={name}={extents}")
    limits = _limits(program, timeout, memory)
    ray, task = _task(_slim, retries)
    os.makedirs(folder, exist_ok=True)

    def start(source: str) -> Any:
        return task.remote(source, os.path.join(folder, os.path.basename(source)), flags, limits)

    def lost(source: str, message: str) -> list[SlimRow]:
        return [SlimRow(source, "lost", message=message)]

    return Run(ray, sources, start, lost, progress)


def campaign(
    seeds: Iterable[int],
    pipelines: str | Iterable[str],
    *,
    size: int = 200,
    shape: str = "random",
    timeout: float = 60.0,
    memory: int | str | None = "4GiB",
    reduce: float = 60.0,
    retries: int = 3,
    folder: str | os.PathLike[str] | None = None,
    progress: bool | TextIO = True,
    program: Sequence[str] | None = None,
) -> Run[CampaignRow]:
    """Runs pipelines on random programs, a task for each seed, and returns the run.

    For each seed, ``anfora gen`` makes a program of ``size`` bindings. Each pipeline runs on it at
    level 3, and the interpreter compares the results after each pass that changes the program.
    Every seed gets a row for each pipeline.

    A program on which a pipeline fails is made smaller for ``reduce`` seconds, as long as the
    pipeline fails in the same way; the row has the program and a command. With ``folder``, the
    programs are also written there. All other options are those of ``slim_files``.

    Raises ``ImportError`` if ray is not installed, and ``ConfigError`` for a wrong pipeline.
    """
    pipelines = [pipelines] if isinstance(pipelines, str) else list(pipelines)
    if program is None:
        for pipeline in pipelines:
            _anfora._parse_pipeline(pipeline)
    jobs = list(dict.fromkeys(int(seed) for seed in seeds))
    limits = _limits(program, timeout, memory)
    into = None if folder is None else os.path.abspath(os.fspath(folder))
    ray, task = _task(_campaign, retries)
    if into is not None:
        os.makedirs(into, exist_ok=True)

    def start(seed: int) -> Any:
        return task.remote(seed, pipelines, [shape, str(size)], limits, reduce, into)

    def lost(seed: int, message: str) -> list[CampaignRow]:
        return [CampaignRow(seed, pipeline, "lost", message=message) for pipeline in pipelines]

    return Run(ray, jobs, start, lost, progress)


@dataclass(frozen=True)
class _Limits:
    """The program of a run, and the limits of each of its processes."""

    program: list[str] | None
    seconds: float
    memory: int | None

    def run(self, arguments: Sequence[str], stdin: bytes = b"") -> _limited.Done:
        """Runs the program within the limits."""
        return _limited.run(
            arguments,
            program=self.program,
            seconds=self.seconds,
            memory=self.memory,
            stdin=stdin,
        )


def _limits(program: Sequence[str] | None, seconds: float, memory: int | str | None) -> _Limits:
    if isinstance(program, str):
        raise TypeError("program is a list: the program and its first arguments")
    if not seconds > 0:
        raise ValueError("timeout is a number of seconds above 0")
    if isinstance(memory, str):
        parts = re.fullmatch(r"(\d+)\s*([KMGT]iB|B|)", memory)
        if parts is None:
            raise ValueError(f"{memory!r} is no number of bytes, such as 4GiB")
        memory = int(parts[1]) * _UNITS[parts[2]]
    return _Limits(None if program is None else list(program), seconds, memory)


def _task(function: Callable[..., Any], retries: int) -> tuple[Any, Any]:
    """Returns the package ray, and a function as a task that is tried again if its worker dies or
    cannot start a process. Connects to the cluster that the environment names, or starts one on
    this machine, unless that is done."""
    try:
        ray = importlib.import_module("ray")
    except ImportError as error:
        message = "anfora.ray needs the package ray: pip install 'anfora[ray]'"
        raise ImportError(message, name="ray") from error
    if not ray.is_initialized():
        ray.init(include_dashboard=False)
    options = {"num_cpus": 1, "max_retries": retries, "retry_exceptions": [OSError]}
    return ray, ray.remote(**options)(function)


def _slim(source: str, output: str, flags: list[str], limits: _Limits) -> list[SlimRow]:
    """Makes a model smaller: the task of `slim_files`."""
    done = limits.run(["slim", source, output, *flags])
    if done.status != "ok":
        return [SlimRow(source, done.status, None, done.seconds, done.peak_bytes, message=done.message)]
    nodes = re.search(r"^all nodes +(\d+) +(\d+)", done.stderr, re.MULTILINE)
    sizes = os.path.getsize(source), os.path.getsize(output)
    counts = (int(nodes[1]), int(nodes[2])) if nodes else None
    return [SlimRow(source, "ok", output, done.seconds, done.peak_bytes, counts, sizes)]


def _campaign(
    seed: int, pipelines: list[str], shape: list[str], limits: _Limits, reduce: float, folder: str | None
) -> list[CampaignRow]:
    """Runs the pipelines on the program of a seed: the task of `campaign`."""
    generate = ["gen", *shape, "--seed", str(seed)]
    made = limits.run(generate)
    if made.status != "ok":
        about = made.seconds, made.peak_bytes, f"anfora {shlex.join(generate)}: {made.message}"
        return [CampaignRow(seed, pipeline, made.status, *about) for pipeline in pipelines]
    check = _reduce.Check(limits.program, limits.seconds, limits.memory, level=3)
    rows = []
    for number, pipeline in enumerate(pipelines):
        text = made.stdout.decode()
        done = check.run(text, pipeline)
        if done.status == "ok":
            rows.append(CampaignRow(seed, pipeline, "ok", done.seconds, done.peak_bytes))
            continue
        original = [*check.arguments("-", pipeline), "--from", "anf"]
        shown = f"anfora {shlex.join(generate)} | anfora {shlex.join(original)}"
        text, smaller = _reduce.smaller(text, pipeline, check, reduce) if reduce > 0 else (text, pipeline)
        file = f"seed-{seed}.anf" if len(pipelines) == 1 else f"seed-{seed}-{number}.anf"
        command = f"anfora {shlex.join(check.arguments(file, smaller))}"
        if folder is not None:
            _write(Path(folder) / file, f"// {command}\n// of: {shown}\n{text}")
        about = done.seconds, done.peak_bytes, done.message
        rows.append(CampaignRow(seed, pipeline, done.status, *about, text, command, shown))
    return rows


def _write(path: Path, text: str) -> None:
    """Writes a file that appears whole."""
    unfinished = path.with_suffix(".new")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)
